//! What a server's `information_schema` says of a table.

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::facts::{Column, Kind, TableFacts, TableName};
use crate::sql::print::{quoted, text_literal};

/// `None` for a table that the server does not have or does not show.
pub(crate) fn table_facts(connection: &mut Conn, name: &TableName) -> Result<Option<TableFacts>> {
    let schema = match &name.schema {
        Some(schema) => text_literal(schema),
        None => "DATABASE()".to_owned(),
    };
    let which = format!("table_schema = {schema} AND table_name = {}", text_literal(&name.name));
    let of = |what: &str, from: &str, rest: &str| {
        format!("SELECT {what} FROM information_schema.{from} WHERE {which} {rest}")
    };
    let asking = || format!("asking for the table {}", name.name);

    let found: Option<(String, Option<u64>)> =
        connection.query_first(of("table_type, table_rows", "tables", "")).with_context(asking)?;
    let Some((kind, rows)) = found else { return Ok(None) };
    let columns: Vec<(String, String, String, String, Option<String>)> = connection
        .query(of(
            "column_name, data_type, column_type, is_nullable, collation_name",
            "columns",
            "ORDER BY ordinal_position",
        ))
        .with_context(asking)?;
    let partitions: Vec<(Option<String>, u64, Option<String>)> = connection
        .query(of(
            "partition_name, MIN(partition_ordinal_position), MIN(partition_expression)",
            "partitions",
            "AND partition_name IS NOT NULL GROUP BY partition_name ORDER BY 2",
        ))
        .with_context(asking)?;
    let keys: Vec<(String, String, bool)> = connection
        .query(of(
            "index_name, column_name, non_unique = 0",
            "statistics",
            "ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index",
        ))
        .with_context(asking)?;
    let mut indexes: Vec<(String, Vec<String>, bool)> = Vec::new();
    for (index, column, is_unique) in keys {
        match indexes.last_mut() {
            Some((last, columns, _)) if *last == index => columns.push(column),
            _ => indexes.push((index, vec![column], is_unique)),
        }
    }
    let columns: Vec<Column> = columns.into_iter().map(column).collect();
    let expression = partitions.first().and_then(|(_, _, expression)| expression.as_deref());
    let by = expression.map(|expression| expression.trim().trim_matches('`'));
    let by = by.and_then(|by| columns.iter().find(|column| column.name.eq_ignore_ascii_case(by)));
    let unique = indexes.iter().filter(|(_, _, is_unique)| *is_unique).map(|(_, columns, _)| columns.clone());
    Ok(Some(TableFacts {
        partitioned_by: by.map(|column| column.name.clone()),
        columns,
        rows: rows.unwrap_or(0),
        partitions: partitions.into_iter().filter_map(|(name, ..)| name).collect(),
        unique: unique.collect(),
        indexes: indexes.into_iter().map(|(_, columns, _)| columns).collect(),
        is_base_table: kind == "BASE TABLE",
        key: None,
    }))
}

/// How many rows tell about all.
const SAMPLED: u64 = 20_000;

/// See [`crate::facts::Facts::groups`]. Equal combinations in the first rows of a table tell how many there are, if
/// combinations come in any order. A column of which these rows have fewer values than rows in any order would comes in
/// an order, and there are as many times more combinations.
pub(crate) fn group_count(
    connection: &mut Conn,
    table: &TableName,
    columns: &[(&str, u64)],
) -> Result<Option<u64>> {
    let names: Vec<String> = columns.iter().map(|(name, _)| quoted(name)).collect();
    let all = names.join(", ");
    let of_each: Vec<String> = names.iter().map(|name| format!("COUNT(DISTINCT {name})")).collect();
    let row: Option<mysql::Row> = connection
        .query_first(format!(
            "SELECT COUNT(*), COUNT(DISTINCT {all}), {} FROM (SELECT {all} FROM {} LIMIT {SAMPLED}) sampled",
            of_each.join(", "),
            table.quoted()
        ))
        .with_context(|| format!("asking for groups of the table {}", table.name))?;
    let counts: Option<Vec<f64>> = row
        .map(super::texts)
        .unwrap_or_default()
        .into_iter()
        .map(|count| count.and_then(|count| count.parse().ok()))
        .collect();
    let Some([rows, groups, of_each @ ..]) = counts.as_deref() else { return Ok(None) };
    if *rows == 0.0 {
        return Ok(None);
    }
    let most = columns.iter().map(|(_, most)| *most as f64);
    let in_order = most.zip(of_each).map(|(most, found)| (seen(most, *rows) / found.max(1.0)).max(1.0));
    Ok(Some((total(*groups, *rows) * in_order.product::<f64>()) as u64))
}

/// How many of so many values are expected in so many draws.
fn seen(values: f64, draws: f64) -> f64 {
    -values * (-draws / values).exp_m1()
}

/// Of how many values so many draws have so many.
fn total(found: f64, draws: f64) -> f64 {
    let (mut low, mut high) = (found, found.max(1.0) * 1e6);
    for _ in 0..60 {
        let middle = (low * high).sqrt();
        if seen(middle, draws) < found {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

fn column(
    (name, kind, declared, nullable, collation): (String, String, String, String, Option<String>),
) -> Column {
    let collation = collation.unwrap_or_default();
    let kind = match kind.as_str() {
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" => Kind::Integer,
        "date" => Kind::Date,
        "char" | "varchar" if collation.ends_with("_bin") => Kind::BinaryText,
        "char" | "varchar" => Kind::Text,
        _ => Kind::Other,
    };
    let declared = format!("{declared} {collation}").trim_end().to_owned();
    Column { name, kind, declared, nullable: nullable == "YES" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_values_tell_how_many_there_are() {
        // A tenth as many values as draws: all are seen.
        assert!((seen(100.0, 1_000.0) - 100.0).abs() < 0.01);
        for values in [50.0, 5_000.0, 100_000.0] {
            let found = total(seen(values, 20_000.0), 20_000.0);
            assert!((found / values - 1.0).abs() < 0.01, "{values}: {found}");
        }
        // No value twice: there may be any number.
        assert!(total(20_000.0, 20_000.0) > 1e9);
    }
}
