//! Ranges of a column: of one that a condition bounds, or of the primary key.

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use super::{Split, literal};
use crate::facts::Kind;
use crate::plan::{Block, Part};

/// Of a column that begins an index and that the query's own conditions bound.
pub(super) fn of_condition(
    block: &Block,
    table: usize,
    connection: &mut Conn,
    count: usize,
) -> Result<Option<Split>> {
    let Some(facts) = block.facts(table) else { return Ok(None) };
    let firsts = facts.indexes.iter().filter_map(|columns| columns.first());
    for column in firsts {
        let bounds: Vec<&str> = block
            .conditions_of(table)
            .filter(|(columns, _)| columns.iter().all(|name| name.eq_ignore_ascii_case(column)))
            .map(|(_, text)| text)
            .collect();
        if bounds.is_empty() {
            continue;
        }
        if let Some(split) = of_column(block, table, column, &bounds, connection, count)? {
            return Ok(Some(split));
        }
    }
    Ok(None)
}

pub(super) fn of_primary_key(
    block: &Block,
    table: usize,
    connection: &mut Conn,
    count: usize,
) -> Result<Option<Split>> {
    let Some(facts) = block.facts(table) else { return Ok(None) };
    let first = facts.indexes.first().and_then(|columns| columns.first());
    match first {
        Some(column) if facts.column(column).is_some_and(|column| !column.nullable) => {
            of_column(block, table, column, &[], connection, count)
        }
        _ => Ok(None),
    }
}

/// Ranges of equal width between the least and the greatest value.
fn of_column(
    block: &Block,
    table: usize,
    column: &str,
    conditions: &[&str],
    connection: &mut Conn,
    count: usize,
) -> Result<Option<Split>> {
    let Some(facts) = block.facts(table) else { return Ok(None) };
    let kind = facts.column(column).map(|column| column.kind).unwrap_or_default();
    let name = block.column(table, column);
    let all = match conditions {
        [] => String::new(),
        conditions => format!(" WHERE {}", conditions.join(" AND ")),
    };
    let from = block.from_text(table);
    let asking = || format!("asking for the range of {column}");
    let bounds = match kind {
        Kind::Integer => {
            let row: Option<(Option<i64>, Option<i64>)> = connection
                .query_first(format!("SELECT MIN({name}), MAX({name}) FROM {from}{all}"))
                .with_context(asking)?;
            let Some((Some(least), Some(most))) = row else { return Ok(None) };
            let cuts = cuts(i128::from(most) - i128::from(least), count);
            cuts.into_iter().map(|cut| (i128::from(least) + cut).to_string()).collect()
        }
        Kind::Date => {
            let row: Option<(Option<String>, Option<i64>)> = connection
                .query_first(format!(
                    "SELECT CAST(MIN({name}) AS CHAR), DATEDIFF(MAX({name}), MIN({name})) FROM {from}{all}"
                ))
                .with_context(asking)?;
            let Some((Some(least), Some(days))) = row else { return Ok(None) };
            dates(&least, &cuts(days.into(), count), connection)?
        }
        _ => return Ok(None),
    };
    Ok(between(&name, &bounds, kind == Kind::Integer)
        .map(|parts| Split { parts, words: format!("ranges of {column}") }))
}

/// Distances from the least value at which a new part begins.
fn cuts(width: i128, count: usize) -> Vec<i128> {
    let count = (count as i128).min(width + 1);
    (1..count).map(|index| (width + 1) * index / count).collect()
}

fn dates(least: &str, days: &[i128], connection: &mut Conn) -> Result<Vec<String>> {
    if days.is_empty() {
        return Ok(Vec::new());
    }
    let each = days.iter().map(|day| format!("CAST(DATE_ADD('{least}', INTERVAL {day} DAY) AS CHAR)"));
    let query = format!("SELECT {}", each.collect::<Vec<_>>().join(", "));
    let row: Option<mysql::Row> = connection.query_first(query).context("asking for dates")?;
    Ok(row.map(crate::servers::texts).unwrap_or_default().into_iter().flatten().collect())
}

/// The outer parts are open, so that no row that is inserted meanwhile has no part.
fn between(name: &str, cuts: &[String], is_number: bool) -> Option<Vec<Part>> {
    let [first, .., last] = cuts else {
        let [only] = cuts else { return None };
        let only = literal(only, is_number);
        return Some(vec![Part::Where(format!("{name} < {only}")), Part::Where(format!("{name} >= {only}"))]);
    };
    let mut parts = vec![Part::Where(format!("{name} < {}", literal(first, is_number)))];
    parts.extend(cuts.windows(2).map(|pair| {
        let (from, to) = (literal(&pair[0], is_number), literal(&pair[1], is_number));
        Part::Where(format!("{name} >= {from} AND {name} < {to}"))
    }));
    parts.push(Part::Where(format!("{name} >= {}", literal(last, is_number))));
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_divide_a_range_evenly() {
        assert_eq!(cuts(99, 4), [25, 50, 75]);
        assert_eq!(cuts(1, 4), [1]);
        assert_eq!(cuts(0, 4), []);
        assert_eq!(cuts(i128::from(u64::MAX), 2), [1 << 63]);
    }

    #[test]
    fn every_value_has_one_part() {
        let texts = |cuts: &[&str]| {
            let cuts: Vec<String> = cuts.iter().map(|cut| (*cut).to_owned()).collect();
            let text = |part: Part| match part {
                Part::Where(text) => text,
                other => panic!("{other:?}"),
            };
            between("a", &cuts, true).map(|parts| parts.into_iter().map(text).collect::<Vec<_>>())
        };
        assert_eq!(texts(&[]), None);
        assert_eq!(texts(&["5"]).unwrap_or_default(), ["a < 5", "a >= 5"]);
        let three = ["a < 5", "a >= 5 AND a < 9", "a >= 9"];
        assert_eq!(texts(&["5", "9"]).unwrap_or_default(), three);
    }
}
