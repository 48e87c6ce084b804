//! Whether servers have a table as shards must: the same definition on each, and each row on the server of its key, or
//! the same rows on each. It reads a few keys of a sharded table, and all of a reference table (CHECKSUM TABLE).

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use spindle_base::Mistake;

use crate::facts::{Kind, TableFacts, TableName};
use crate::mapping::{KeyValue, Mapping};
use crate::servers::{Server, Session};
use crate::sql::print::quoted;

/// Values of its key that are looked at on each server.
const SAMPLED: usize = 64;

/// Settings in which servers may differ, and others by which the same query has another meaning.
pub(crate) fn sessions(servers: &[Server], connections: &mut [Conn]) -> Result<()> {
    let mut first: Option<Session> = None;
    for (server, connection) in servers.iter().zip(connections) {
        let session = Session::of(connection)?;
        let Some(first) = &first else {
            first = Some(session);
            continue;
        };
        if let Some((setting, here, there)) = first.difference(&session) {
            let (one, other) = (&servers[0].name, &server.name);
            return Err(Mistake::new(format!("{other}: {setting} is {there}, and {here} on {one}")).into());
        }
    }
    Ok(())
}

/// What is known of a table of several servers.
///
/// # Errors
/// Servers do not have the table as they should.
pub(super) fn table(
    name: &TableName,
    facts: Vec<Option<TableFacts>>,
    servers: &[Server],
    connections: &mut [Conn],
    mapping: &Mapping,
) -> Result<Option<TableFacts>> {
    if facts.iter().all(Option::is_none) {
        return Ok(None);
    }
    let wrong = |words: String| Mistake::new(format!("table {}: {words}", name.name));
    let mut all = Vec::new();
    for (server, facts) in servers.iter().zip(facts) {
        all.push(facts.ok_or_else(|| wrong(format!("is missing on {}", server.name)))?);
    }
    for (server, facts) in servers.iter().zip(&all) {
        if let Some(words) = difference(&all[0], facts) {
            return Err(wrong(format!("{words} on {}, unlike on {}", server.name, servers[0].name)).into());
        }
    }
    if !all[0].is_base_table {
        return Err(wrong("is a view; over several servers, name its tables".to_owned()).into());
    }
    let mut found = all[0].clone();
    let key = mapping.column_of(&name.name, |column| found.column(column).is_some());
    let Some(key) = key else {
        return match differing(name, connections)? {
            None => Ok(Some(found)),
            Some(index) => Err(wrong(format!(
                "has other rows on {} than on {}, and no column {} by which it is sharded",
                servers[index].name, servers[0].name, mapping.column
            ))
            .into()),
        };
    };
    let kind = found.column(key).map(|column| column.kind).unwrap_or_default();
    if kind == Kind::Other {
        return Err(wrong(format!("{key} is neither an integer nor a date nor a text")).into());
    }
    match misplaced(name, key, kind, connections, mapping)? {
        None => {
            found.rows = all.iter().map(|facts| facts.rows).sum();
            found.key = Some(key.to_owned());
            Ok(Some(found))
        }
        // A copy on each server, though it has the column.
        Some(_) if differing(name, connections)?.is_none() => Ok(Some(found)),
        Some((index, value)) => Err(wrong(format!(
            "{} has a row whose {key} is {value}, which belongs on another server",
            servers[index].name
        ))
        .into()),
    }
}

fn difference(one: &TableFacts, other: &TableFacts) -> Option<String> {
    if one.is_base_table != other.is_base_table {
        return Some("is a view".to_owned());
    }
    if one.columns.len() != other.columns.len() {
        return Some(format!("has {} columns", other.columns.len()));
    }
    let mut pairs = one.columns.iter().zip(&other.columns);
    let (_, column) = pairs.find(|(one, other)| one != other)?;
    Some(format!("has a column {} of {}", column.name, column.declared))
}

/// Index of a server whose rows are not those of the first.
fn differing(name: &TableName, connections: &mut [Conn]) -> Result<Option<usize>> {
    let mut first = None;
    for (index, connection) in connections.iter_mut().enumerate() {
        let row: Option<(String, Option<u64>)> = connection
            .query_first(format!("CHECKSUM TABLE {}", name.quoted()))
            .with_context(|| format!("comparing the table {}", name.name))?;
        let checksum = row.and_then(|(_, checksum)| checksum);
        match first {
            None => first = Some(checksum),
            Some(first) if first != checksum => return Ok(Some(index)),
            Some(_) => {}
        }
    }
    Ok(None)
}

/// A server with a value that belongs on another one.
fn misplaced(
    name: &TableName,
    key: &str,
    kind: Kind,
    connections: &mut [Conn],
    mapping: &Mapping,
) -> Result<Option<(usize, String)>> {
    let count = connections.len();
    let column = quoted(key);
    let query = format!("SELECT DISTINCT CAST({column} AS CHAR) FROM {} LIMIT {SAMPLED}", name.quoted());
    for (index, connection) in connections.iter_mut().enumerate() {
        let values: Vec<Option<String>> = connection
            .query(&query)
            .with_context(|| format!("asking for keys of the table {}", name.name))?;
        let is_here = |value: &Option<String>| {
            let value = KeyValue::of(value.as_deref(), kind);
            value.and_then(|value| mapping.mapper.shard_of(&value, count)) == Some(index)
        };
        if let Some(value) = values.into_iter().find(|value| !is_here(value)) {
            return Ok(Some((index, value.unwrap_or_else(|| "NULL".to_owned()))));
        }
    }
    Ok(None)
}
