//! test-ATIS: 28 small tables about air travel, and selects on them: joins, DISTINCT and GROUP BY.
//!
//! Tables and queries are data files. The columns and keys are those of the database of the Air Travel
//! Information System. Every query is checked by its number of result rows.

mod data;

use super::list::{Action, List, drop_if_exists};
use crate::sql::Dialect;

/// Each paragraph has the name of a table, its columns, and its secondary indexes. In the order of the load.
const TABLES: &str = include_str!("atis/tables.txt");
/// Each paragraph has the name of an operation and its queries, each after its number of result rows.
const QUERIES: &str = include_str!("atis/queries.txt");
/// Executions of each query.
const LOOPS: u64 = 100;

struct Table {
    name: &'static str,
    columns: &'static str,
    /// Secondary indexes, as (name, columns).
    indexes: Vec<(&'static str, &'static str)>,
}

/// The paragraphs of a file, as (first line, other lines).
fn paragraphs(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.split("\n\n").filter_map(|paragraph| paragraph.split_once('\n'))
}

fn tables() -> impl Iterator<Item = Table> {
    paragraphs(TABLES).map(|(name, definition)| {
        let mut lines = definition.lines();
        Table {
            name,
            columns: lines.next().unwrap_or_default(),
            indexes: lines.filter_map(|index| index.split_once(": ")).collect(),
        }
    })
}

/// Queries with their numbers of result rows, in the words of the database.
fn queries(lines: &str, dialect: Dialect) -> Vec<(String, u64)> {
    let deviation = match dialect {
        Dialect::Mysql => "STD(engines)",
        Dialect::Postgres => "STDDEV_POP(engines)",
        // SQLite has no square root; this is the square.
        Dialect::Sqlite => "AVG(engines * engines) - AVG(engines) * AVG(engines)",
    };
    let total = if dialect == Dialect::Postgres { "COUNT(*)" } else { "total" };
    let query = |line: &str| {
        let (rows, query) = line.split_once(' ')?;
        Some((query.replace("{deviation}", deviation).replace("{total}", total), rows.parse().ok()?))
    };
    lines.lines().map(|line| query(line).expect("a line has a number and a query")).collect()
}

pub(super) fn atis(list: &mut List) {
    for table in tables() {
        list.quietly(Action::Execute(drop_if_exists(table.name)));
    }
    let create = |table: Table| list.create_indexed(table.name, table.columns, &table.indexes);
    let create: Vec<Action> = tables().map(create).collect();
    list.creates(create);
    for table in tables() {
        list.fill(table.name, data::rows(table.name));
    }
    let (loops, dialect) = (list.scaled(LOOPS), list.dialect);
    for (operation, lines) in paragraphs(QUERIES) {
        list.queries(operation, loops, queries(lines, dialect));
    }
    let drops: Vec<String> = tables().map(|table| format!("DROP TABLE {}", table.name)).collect();
    list.changes("drop_table", drops.len() as u64, move |index, _| drops[index as usize].clone());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_have_as_many_rows_as_those_of_sql_bench() {
        let counts: Vec<usize> = tables().map(|table| data::rows(table.name).len()).collect();
        let expect = [
            135, 314, 9, 14, 11, 27, 15, 149, 351, 164, 7, 114, 534, 579, 2_895, 448, 2_998, 121, 33, 12, 12,
            612, 4, 65, 63, 69, 9, 4,
        ];
        assert_eq!(counts, expect);
        assert_eq!(counts.iter().sum::<usize>(), 9_768);
    }

    /// PostgreSQL, and MySQL in its strict mode, refuse longer texts.
    #[test]
    fn every_text_fits_its_column() {
        for table in tables() {
            let lengths: Vec<Option<usize>> = table
                .columns
                .split(", ")
                .map(|column| column.split_once("CHAR(")?.1.split_once(')')?.0.parse().ok())
                .collect();
            for row in data::rows(table.name) {
                for (value, length) in row.split(", ").zip(&lengths) {
                    let text = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\''));
                    assert_eq!(text.is_some(), length.is_some(), "{}: {row}", table.name);
                    assert!(text.is_none_or(|text| text.len() <= length.unwrap()), "{}: {row}", table.name);
                }
            }
        }
    }
}
