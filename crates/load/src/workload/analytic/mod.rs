//! Analytic workloads: a list of queries over loaded tables, each executed and timed alone, with known
//! answers.
//!
//! A workload has its queries as a file of SQL, computes the answers from the rows that it loads, and has
//! them stored beside its tables. One client then executes the queries in order and compares every answer.

mod answers;
mod client;
mod split;
mod star;

pub(crate) use answers::{Answer, rounded, store};
pub(crate) use split::{Over, Shard};
pub(crate) use star::{Analytic, Star};

use anyhow::{Result, bail};

use super::Complaint;
use crate::sql::{Dialect, Engine, NO_ENGINES};
use spindle_base::near;

/// # Errors
/// The server has no storage engines, or no queries in fragments, and the workload named `name` asks for them.
pub(crate) fn check_dialect(name: &str, dialect: Dialect, engine: Option<Engine>, over: Over) -> Result<()> {
    if dialect == Dialect::Mysql {
        return Ok(());
    }
    if engine.is_some() {
        bail!("{name}: engine: {NO_ENGINES}");
    }
    for (key, count) in [("split", over.connections), ("shards", over.shards)] {
        if count > 1 {
            bail!("{name}: {key}: only MariaDB and MySQL have queries in fragments; leave it out");
        }
    }
    Ok(())
}

/// A statement of an analytic workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Query {
    /// For example `Q8.0`.
    pub name: &'static str,
    /// Without a semicolon.
    pub sql: &'static str,
    /// The column, from zero, by which answers are compared; `None`: all of them. A LIMIT may cut between
    /// rows that are equal in the order, and then only the column of the order is certain.
    pub compared_column: Option<usize>,
}

/// Begins the line with the name of a query.
const NAME: &str = "-- ";
/// Follows the name of a query that is compared by one column, counted from one.
const COMPARED_BY: &str = ", compared by column ";

/// The queries of a file: each begins with a line `-- NAME`, and ends with a semicolon. Lines that begin with
/// `#` are comments.
pub fn queries(file: &'static str) -> Vec<Query> {
    let parts = file.split(NAME).skip(1);
    let query = |part: &'static str| {
        let (head, sql) = part.split_once('\n').expect("a test reads every file");
        let (name, compared_column) = match head.split_once(COMPARED_BY) {
            Some((name, column)) => (name, Some(column.parse::<usize>().expect("a test reads it") - 1)),
            None => (head, None),
        };
        Query { name, sql: sql.trim().trim_end_matches(';'), compared_column }
    };
    parts.map(query).collect()
}

/// The named queries, in the order of the workload; all without names.
///
/// # Errors
/// A name is unknown, or there twice.
pub(crate) fn chosen(all: &[Query], names: &[String]) -> Result<Vec<Query>, Complaint> {
    let known: Vec<&str> = all.iter().map(|query| query.name).collect();
    for (index, name) in names.iter().enumerate() {
        if !known.contains(&name.as_str()) {
            let hint = near::hint(name, &known);
            return Err(("queries", format!("`{name}` is no query of this workload{hint}")));
        }
        if names[..index].contains(name) {
            return Err(("queries", format!("`{name}` is named twice")));
        }
    }
    let is_chosen = |query: &&Query| names.is_empty() || names.iter().any(|name| name == query.name);
    Ok(all.iter().filter(is_chosen).copied().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# From a paper.\n-- Q1\nSELECT 1\n  FROM t;\n\n-- Q2, compared by column 2\nSELECT a, b\n  FROM t\n LIMIT 1;\n";

    #[test]
    fn a_file_has_its_queries_by_name() {
        let found = queries(FILE);
        let expect = [
            Query { name: "Q1", sql: "SELECT 1\n  FROM t", compared_column: None },
            Query { name: "Q2", sql: "SELECT a, b\n  FROM t\n LIMIT 1", compared_column: Some(1) },
        ];
        assert_eq!(found, expect);
    }

    #[test]
    fn queries_are_chosen_by_name_and_keep_their_order() {
        let all = queries(FILE);
        let check = |names: &[&str], expect: Result<&[&str], &str>| {
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let found = chosen(&all, &names);
            let found = found.map(|queries| queries.iter().map(|query| query.name).collect::<Vec<_>>());
            let expect = expect.map(<[_]>::to_vec).map_err(|words| ("queries", words.to_owned()));
            assert_eq!(found, expect);
        };
        check(&[], Ok(&["Q1", "Q2"]));
        check(&["Q2", "Q1"], Ok(&["Q1", "Q2"]));
        check(&["Q2", "Q2"], Err("`Q2` is named twice"));
        assert!(
            chosen(&all, &["Q3".to_owned()]).unwrap_err().1.starts_with("`Q3` is no query of this workload")
        );
    }
}
