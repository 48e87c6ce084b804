//! What a server's `information_schema` says of a table.

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::facts::{Column, Kind, TableFacts, TableName};
use crate::sql::print::text_literal;

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
    let partitions: Vec<(Option<String>, u64)> = connection
        .query(of(
            "partition_name, MIN(partition_ordinal_position)",
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
    let unique = indexes.iter().filter(|(_, _, is_unique)| *is_unique).map(|(_, columns, _)| columns.clone());
    Ok(Some(TableFacts {
        columns: columns.into_iter().map(column).collect(),
        rows: rows.unwrap_or(0),
        partitions: partitions.into_iter().filter_map(|(name, _)| name).collect(),
        unique: unique.collect(),
        indexes: indexes.into_iter().map(|(_, columns, _)| columns).collect(),
        is_base_table: kind == "BASE TABLE",
        key: None,
    }))
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
