//! Which parts of one table the fragments of a query read. A split is taken only if the server says that a fragment
//! reads its part: a fragment that reads the whole table makes a query slower.

mod ranges;
mod star;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use mysql::Conn;

use crate::plan::{Block, Part, Refusal};
use crate::servers::explain::{Step, explain};
use crate::sql::print::text_literal;

#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Fragments that a server answers at a time.
    pub connections: usize,
    /// All fragments read what was committed at one moment, which no server writes past meanwhile.
    pub is_snapshot: bool,
    /// Longest time for all fragments.
    pub timeout: Option<Duration>,
    /// Connections for fragments stay between queries.
    pub keeps_connections: bool,
    /// A query that reads fewer rows is not split: it is over before a second connection has begun.
    pub rows_least: f64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            connections: 4,
            is_snapshot: false,
            timeout: None,
            keeps_connections: true,
            rows_least: 20_000.0,
        }
    }
}

#[derive(Debug, Clone)]
pub struct Split {
    pub parts: Vec<Part>,
    /// For people: "ranges of date_id".
    pub words: String,
}

impl Split {
    /// One fragment that reads all.
    pub fn whole() -> Split {
        Split { parts: vec![Part::Everything], words: "itself".to_owned() }
    }
}

/// Parts for each connection: a slow part then keeps few of them waiting.
const PARTS_EACH: usize = 4;
/// All fragments together may read this many times the rows of the query itself, by the server's estimates: InnoDB
/// estimates a range at up to twice its rows.
const MORE_ROWS: f64 = 2.5;

/// A way to split, which asks the server for what it needs.
type Candidate<'a> = &'a dyn Fn(&mut Conn) -> Result<Option<Split>>;

/// The first split that the server confirms.
///
/// # Errors
/// There is none, or the server does not answer.
pub fn choose(block: &Block, connection: &mut Conn, options: &Options) -> Result<Result<Split, Refusal>> {
    let whole = match explain(connection, &block.fragment(&Part::Everything)) {
        Ok(whole) => whole,
        Err(error) => return Ok(Err(Refusal(format!("the server does not tell its plan: {error:#}")))),
    };
    let Some(table) = block.largest() else {
        return Ok(Err(Refusal("it has no table whose parts make its answer".to_owned())));
    };
    let alias = block.alias(table);
    let Some(rows) = rows_read(&whole, alias) else {
        return Ok(Err(Refusal("the server reads no row for it".to_owned())));
    };
    if rows < options.rows_least {
        return Ok(Err(Refusal("it reads few rows".to_owned())));
    }
    if options.connections == 1 {
        return Ok(match star::split(block, table, connection, 1)? {
            Some(split) if confirms(block, &split, (alias, rows), &whole, connection)? => Ok(split),
            _ => Err(Refusal("there is one connection for its fragments".to_owned())),
        });
    }
    let count = options.connections * PARTS_EACH;
    let mut refused = Vec::new();
    let candidates: [Candidate<'_>; 4] = [
        &|connection| star::split(block, table, connection, count),
        &|connection| ranges::of_condition(block, table, connection, count),
        &|_| Ok(partitions(block, table, &whole)),
        &|connection| ranges::of_primary_key(block, table, connection, count),
    ];
    for candidate in candidates {
        let Some(split) = candidate(connection)? else { continue };
        if split.parts.len() > 1 && confirms(block, &split, (alias, rows), &whole, connection)? {
            return Ok(Ok(split));
        }
        refused.push(split.words);
    }
    let why = match refused.is_empty() {
        true => "no index and no partition divides its largest table".to_owned(),
        false => format!("the server would read too much by {}", refused.join(" and by ")),
    };
    Ok(Err(Refusal(why)))
}

/// Rows of a table that the plan reads, by the server's estimates.
fn rows_read(steps: &[Step], alias: &str) -> Option<f64> {
    let last = steps.iter().position(|step| step.table.eq_ignore_ascii_case(alias))?;
    Some(steps[..=last].iter().map(|step| step.rows.max(1.0)).product())
}

/// Whether the server reads each part, and not more than that. `whole` is its plan of the query itself.
fn confirms(
    block: &Block,
    split: &Split,
    (alias, whole_rows): (&str, f64),
    whole: &[Step],
    connection: &mut Conn,
) -> Result<bool> {
    let count = split.parts.len();
    let of_table = |steps: &[Step]| steps.iter().find(|step| step.table.eq_ignore_ascii_case(alias)).cloned();
    let all_partitions = of_table(whole).map(|step| step.partitions).unwrap_or_default();
    // Of parts that are alike, one in the middle and the last tell about all.
    let samples = BTreeSet::from([count / 2, count - 1]);
    let mut rows = 0.0;
    for index in samples.iter().copied() {
        let part = &split.parts[index];
        let steps = explain(connection, &block.fragment(part))?;
        let reads_all = of_table(&steps).is_some_and(|step| {
            matches!(step.access.as_str(), "ALL" | "index") && step.partitions.len() >= all_partitions.len()
        });
        if reads_all && part.condition().is_some() {
            return Ok(false);
        }
        rows += rows_read(&steps, alias).unwrap_or(0.0);
    }
    Ok(rows / samples.len() as f64 * count as f64 <= MORE_ROWS * whole_rows)
}

/// Each partition that the query reads.
fn partitions(block: &Block, table: usize, whole: &[Step]) -> Option<Split> {
    let step = whole.iter().find(|step| step.table.eq_ignore_ascii_case(block.alias(table)))?;
    let part = |name: &String| Part::Partitions(table, vec![name.clone()]);
    // Subpartitions have names of their own, which a query may use as well.
    let parts: Vec<Part> = step.partitions.iter().map(part).collect();
    (parts.len() > 1).then(|| Split { parts, words: "partitions".to_owned() })
}

/// A value as a text of the server's, in a condition.
fn literal(value: &str, is_number: bool) -> String {
    match is_number {
        true => value.to_owned(),
        false => text_literal(value),
    }
}
