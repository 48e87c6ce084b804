//! The star filter: a condition on a dimension bounds the key by which the fact table is joined to it. The keys that
//! it leaves are ranges of the fact table (semi-join reduction).

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use super::{Split, literal};
use crate::facts::Kind;
use crate::plan::{Block, DIMENSION_ROWS_MOST, Part};

/// Ranges in one condition.
const RANGES_MOST: usize = 32;

/// Keys that follow each other in the dimension, each once.
type Run = Vec<String>;

pub(super) fn split(
    block: &Block,
    table: usize,
    connection: &mut Conn,
    count: usize,
) -> Result<Option<Split>> {
    let Some(fact) = block.facts(table) else { return Ok(None) };
    for (column, (other, key)) in block.equals_of(table) {
        let Some(dimension) = block.facts(*other) else { continue };
        let conditions: Vec<&str> = block.conditions_of(*other).map(|(_, text)| text).collect();
        let is_it = |name: &String| name.eq_ignore_ascii_case(column);
        let leads = fact.indexes.iter().any(|index| index.first().is_some_and(is_it))
            || fact.partitioned_by.as_ref().is_some_and(is_it);
        if conditions.is_empty() || !leads || dimension.rows > DIMENSION_ROWS_MOST {
            continue;
        }
        let kind = fact.column(column).map(|column| column.kind).unwrap_or_default();
        if !kind.has_ranges() {
            continue;
        }
        let runs = runs(block, *other, key, &conditions, connection)?;
        if runs.iter().map(Vec::len).sum::<usize>() < 2 {
            continue;
        }
        let name = block.column(table, column);
        let is_number = kind == Kind::Integer;
        let runs = if is_number { without_gaps(runs) } else { runs };
        let part = |ranges: &Vec<Range>| match is_number && ranges.len() <= RANGES_MOST {
            true => Part::Keys(*other, condition(&name, ranges, is_number)),
            false => Part::Where(condition(&name, &bounded(ranges), is_number)),
        };
        let parts = pieces(&runs, count).iter().map(part).collect();
        let words = format!("ranges of {column} that {} leaves", block.alias(*other));
        return Ok(Some(Split { parts, words }));
    }
    Ok(None)
}

fn runs(
    block: &Block,
    dimension: usize,
    key: &str,
    conditions: &[&str],
    connection: &mut Conn,
) -> Result<Vec<Run>> {
    let key = block.column(dimension, key);
    let query = format!(
        "SELECT CAST({key} AS CHAR), ({}) IS TRUE FROM {} WHERE {key} IS NOT NULL ORDER BY {key}",
        conditions.join(" AND "),
        block.from_text(dimension)
    );
    let rows: Vec<(String, bool)> = connection.query(query).context("asking for the keys of a dimension")?;
    Ok(runs_of(rows))
}

fn runs_of(rows: Vec<(String, bool)>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut is_open = false;
    for (key, is_left) in rows {
        let is_known = runs.last().and_then(|run| run.last()) == Some(&key);
        if is_left && !is_known {
            match runs.last_mut().filter(|_| is_open) {
                Some(run) => run.push(key),
                None => runs.push(vec![key]),
            }
        }
        is_open = is_left;
    }
    runs
}

/// First and last key.
type Range = (String, String);

/// Pieces of about as many keys each, in order, so that no key has two.
fn pieces(runs: &[Run], count: usize) -> Vec<Vec<Range>> {
    let total = runs.iter().map(Vec::len).sum::<usize>();
    let size = total.div_ceil(count).max(1);
    let mut pieces: Vec<Vec<Range>> = vec![Vec::new()];
    let mut room = size;
    for run in runs {
        let mut rest = run.as_slice();
        while !rest.is_empty() {
            if room == 0 {
                pieces.push(Vec::new());
                room = size;
            }
            let (taken, left) = rest.split_at(room.min(rest.len()));
            let range = (taken[0].clone(), taken[taken.len() - 1].clone());
            pieces.last_mut().expect("there is one").push(range);
            room -= taken.len();
            rest = left;
        }
    }
    pieces
}

/// From the first key to the last, if there are many ranges.
fn bounded(ranges: &[Range]) -> Vec<Range> {
    match ranges {
        [first, .., last] if ranges.len() > RANGES_MOST => vec![(first.0.clone(), last.1.clone())],
        few => few.to_vec(),
    }
}

/// Runs of integers between which there is no other, so that a range has no key that the dimension does not.
fn without_gaps(runs: Vec<Run>) -> Vec<Run> {
    let number = |key: &String| key.parse::<i128>().ok();
    let follows = |one: &String, other: &String| match (number(one), number(other)) {
        (Some(one), Some(other)) => other == one + 1,
        _ => false,
    };
    let split = |run: Run| -> Vec<Run> { run.chunk_by(follows).map(<[String]>::to_vec).collect() };
    runs.into_iter().flat_map(split).collect()
}

fn condition(name: &str, ranges: &[Range], is_number: bool) -> String {
    let range = |(first, last): &Range| {
        format!("{name} BETWEEN {} AND {}", literal(first, is_number), literal(last, is_number))
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(" OR ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys with an exclamation mark are left by the filter.
    fn runs(keys: &str) -> Vec<Run> {
        let row = |key: &str| (key.trim_end_matches('!').to_owned(), key.ends_with('!'));
        runs_of(keys.split(' ').map(row).collect())
    }

    #[track_caller]
    fn check(keys: &str, count: usize, expect: &[&str]) {
        let conditions: Vec<String> =
            pieces(&runs(keys), count).iter().map(|ranges| condition("k", &bounded(ranges), true)).collect();
        assert_eq!(conditions, expect);
    }

    #[test]
    fn a_run_ends_where_the_filter_leaves_a_key_out() {
        check("1 2! 3! 4 5! 6", 1, &["k BETWEEN 2 AND 3 OR k BETWEEN 5 AND 5"]);
        check("1! 2! 3! 4!", 2, &["k BETWEEN 1 AND 2", "k BETWEEN 3 AND 4"]);
        check("1! 2! 3 4! 5!", 2, &["k BETWEEN 1 AND 2", "k BETWEEN 4 AND 5"]);
    }

    #[test]
    fn a_key_that_the_dimension_has_twice_is_in_one_piece() {
        check("1! 1 1! 2!", 2, &["k BETWEEN 1 AND 1", "k BETWEEN 2 AND 2"]);
        check("1! 1! 1!", 2, &["k BETWEEN 1 AND 1"]);
    }

    #[test]
    fn a_gap_between_integers_ends_a_run() {
        let conditions: Vec<String> = pieces(&without_gaps(runs("1! 2! 4! 5!")), 1)
            .iter()
            .map(|ranges| condition("k", ranges, true))
            .collect();
        assert_eq!(conditions, ["k BETWEEN 1 AND 2 OR k BETWEEN 4 AND 5"]);
    }

    #[test]
    fn many_ranges_become_one() {
        let keys: Vec<String> = (0..100).map(|key| format!("{key}!  {key}5").replace("  ", " ")).collect();
        check(&keys.join(" "), 1, &["k BETWEEN 0 AND 99"]);
    }
}
