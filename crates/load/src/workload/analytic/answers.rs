//! The answers of queries: computed from the rows while they are loaded, kept in a table of the database, and
//! compared with those of the server.

use anyhow::{Context, Result};

use super::Query;
use crate::sql::{Dialect, Row, Session, SqlError, Value};
use crate::values;
use crate::workload::loading::check_row_count;
use crate::workload::{Check, Violations};
use spindle_base::hash::content_hash;

/// The rows and digests of the right answers, and how many times each was given.
const TABLE: &str = "analytic_answers";

/// The right answer of one query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) row_count: u64,
    /// Of the sorted rows.
    pub(crate) digest: String,
}

impl Answer {
    /// Rows in any order, as texts.
    pub(crate) fn of(query: &Query, rows: impl IntoIterator<Item = Vec<String>>) -> Answer {
        let compared = |mut row: Vec<String>| match query.compared_column {
            Some(column) => vec![row.swap_remove(column)],
            None => row,
        };
        let mut rows: Vec<Vec<String>> = rows.into_iter().map(compared).collect();
        rows.sort_unstable();
        Answer { row_count: rows.len() as u64, digest: content_hash(&rows) }
    }

    /// The answer of a server.
    pub(super) fn of_server(query: &Query, rows: Vec<Row>) -> Answer {
        Answer::of(query, rows.into_iter().map(|row| row.into_iter().map(text).collect()))
    }
}

fn text(value: Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::Integer(value) => value.to_string(),
        Value::Real(value) if value.fract() == 0.0 => (value as i64).to_string(),
        Value::Real(value) => value.to_string(),
        Value::Text(text) => String::from_utf8_lossy(&text).into_owned(),
    }
}

/// The quotient of two integers as the database prints it. MySQL's is a decimal number with four places; the
/// others divide integers.
pub(crate) fn rounded(dividend: u64, divisor: u64, dialect: Dialect) -> String {
    match dialect {
        Dialect::Mysql => {
            let ten_thousandths = (dividend * 10_000 + divisor / 2) / divisor;
            format!("{}.{:04}", ten_thousandths / 10_000, ten_thousandths % 10_000)
        }
        Dialect::Postgres | Dialect::Sqlite => (dividend / divisor).to_string(),
    }
}

/// Stands in place of a digest in the lines that have the rows of a table.
const OF_TABLE: &str = "table";

/// Stores the right answers, and the numbers of rows of the tables, which must have them.
///
/// # Errors
/// A table has other rows, or the database refuses the statements.
pub(crate) fn store(
    session: &mut dyn Session,
    answers: &[(Query, Answer)],
    row_counts: &[(&'static str, u64)],
) -> Result<()> {
    for (table, row_count) in row_counts {
        check_row_count(session, table, *row_count)?;
    }
    let columns = "name VARCHAR(20) NOT NULL PRIMARY KEY, row_count BIGINT NOT NULL, digest VARCHAR(64) NOT NULL, passes INTEGER NOT NULL";
    let create = session.dialect().create_table(&format!("CREATE TABLE {TABLE} ({columns})"));
    session.execute_each([format!("DROP TABLE IF EXISTS {TABLE}"), create])?;
    let insert = format!("INSERT INTO {TABLE} VALUES (?, ?, ?, 0)");
    let insert = session.prepare(&insert).with_context(|| format!("filling {TABLE}"))?;
    let of_queries =
        answers.iter().map(|(query, answer)| (query.name, answer.row_count, answer.digest.as_str()));
    let of_tables = row_counts.iter().map(|(table, row_count)| (*table, *row_count, OF_TABLE));
    for (name, row_count, digest) in of_queries.chain(of_tables) {
        session.run(insert, values![name, row_count, digest]).with_context(|| format!("filling {TABLE}"))?;
    }
    Ok(())
}

/// The right answers of these queries.
pub(super) fn read(session: &mut dyn Session, queries: &[Query]) -> Result<Vec<Answer>> {
    let reading = || format!("reading {TABLE}; is the database loaded?");
    let select = format!("SELECT name, row_count, digest FROM {TABLE}");
    let select = session.prepare(&select).with_context(reading)?;
    let rows: Vec<(Vec<u8>, u64, Vec<u8>)> = session.rows(select, &[]).with_context(reading)?;
    let of = |query: &Query| {
        let (_, row_count, digest) = rows.iter().find(|(name, ..)| name == query.name.as_bytes())?;
        Some(Answer { row_count: *row_count, digest: String::from_utf8_lossy(digest).into_owned() })
    };
    queries.iter().map(|query| of(query).with_context(|| format!("{TABLE} has no {}", query.name))).collect()
}

/// Counts a pass in which each of these queries was answered rightly.
pub(super) fn count_pass(session: &mut dyn Session, queries: &[Query]) -> Result<(), SqlError> {
    let names: Vec<String> = queries.iter().map(|query| format!("'{}'", query.name)).collect();
    session.execute(&format!("UPDATE {TABLE} SET passes = passes + 1 WHERE name IN ({})", names.join(", ")))
}

/// One check for all queries: each was answered, and rightly. A wrong answer would have ended the trial.
///
/// # Errors
/// The database is not loaded.
pub(super) fn check_passes(session: &mut dyn Session, queries: &[Query]) -> Result<Check> {
    let mut missing = Vec::new();
    for query in queries {
        if session.count(TABLE, &format!("name = '{}' AND passes > 0", query.name))? == 0 {
            missing.push(query.name);
        }
    }
    let name = "every query was answered as computed from the rows";
    let place = format!("{} queries", queries.len());
    Ok(Check::of(name, &place, missing.is_empty(), || {
        format!("the window ended before a pass over all queries did: {}", missing.join(", "))
    }))
}

/// One check for all tables: the queries have left them as they were loaded.
///
/// # Errors
/// The database is not loaded.
pub(super) fn check_rows(session: &mut dyn Session) -> Result<Check> {
    let reading = || format!("reading {TABLE}");
    let select = format!("SELECT name, row_count FROM {TABLE} WHERE digest = '{OF_TABLE}'");
    let select = session.prepare(&select).with_context(reading)?;
    let tables: Vec<(Vec<u8>, i64)> = session.rows(select, &[]).with_context(reading)?;
    let mut violations = Violations::default();
    for (table, expected) in &tables {
        let table = String::from_utf8_lossy(table);
        let found = session.count(&table, "1 = 1")?;
        violations.note(found == *expected, || format!("{table} has {found} rows, not {expected}"));
    }
    Ok(violations.check("the tables have their rows", &format!("{} tables", tables.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUERY: Query = Query { name: "Q1", sql: "SELECT 1", compared_column: None };

    #[test]
    fn answers_are_equal_whatever_the_order_and_the_types() {
        let expect =
            Answer::of(&QUERY, [vec!["b".to_owned(), "2".to_owned()], vec!["a".to_owned(), "1".to_owned()]]);
        let row = |name: &str, count: Value| vec![Value::from(name), count];
        let found = Answer::of_server(&QUERY, vec![row("a", Value::Real(1.0)), row("b", Value::from("2"))]);
        assert_eq!(found, expect);
        let other = Answer::of_server(&QUERY, vec![row("a", Value::Integer(1)), row("b", Value::Integer(3))]);
        assert_ne!(other, expect);
        let by_name = Query { compared_column: Some(0), ..QUERY };
        let names = Answer::of(&by_name, [vec!["a".to_owned()], vec!["b".to_owned()]]);
        assert_eq!(Answer::of_server(&by_name, vec![row("a", Value::Null), row("b", Value::Null)]), names);
    }

    #[test]
    fn quotients_are_those_of_the_database() {
        assert_eq!(rounded(2_000, 3, Dialect::Mysql), "666.6667");
        assert_eq!(rounded(1_000, 1, Dialect::Mysql), "1000.0000");
        assert_eq!(rounded(2_000, 3, Dialect::Sqlite), "666");
    }
}
