//! How a server would answer a query.

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

/// The access to one table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Step {
    /// By its alias.
    pub table: String,
    /// `ALL`, `range`, `ref` and so on.
    pub access: String,
    /// The server's estimate for one execution of the step.
    pub rows: f64,
    /// Names of those read; empty if the table has none.
    pub partitions: Vec<String>,
}

/// The steps of a query's plan, in the order of its nested loops.
pub fn explain(connection: &mut Conn, query: &str) -> Result<Vec<Step>> {
    // Servers before MySQL 5.7, and MariaDB, show partitions on request only.
    let with_partitions = connection.query_iter(format!("EXPLAIN PARTITIONS {query}")).map(steps);
    match with_partitions {
        Ok(Ok(steps)) if !steps.is_empty() => Ok(steps),
        _ => steps(connection.query_iter(format!("EXPLAIN {query}")).context("asking for a plan")?),
    }
}

fn steps<'a>(rows: mysql::QueryResult<'a, 'a, 'a, mysql::Text>) -> Result<Vec<Step>> {
    let names: Vec<String> =
        rows.columns().as_ref().iter().map(|column| column.name_str().to_ascii_lowercase()).collect();
    let mut steps = Vec::new();
    for row in rows {
        let values = super::texts(row.context("reading a plan")?);
        let value = |name: &str| {
            let index = names.iter().position(|known| known == name)?;
            values.get(index)?.clone()
        };
        let partitions = value("partitions").unwrap_or_default();
        steps.push(Step {
            table: value("table").unwrap_or_default(),
            access: value("type").unwrap_or_default(),
            rows: value("rows").and_then(|rows| rows.parse().ok()).unwrap_or(0.0),
            partitions: partitions.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        });
    }
    Ok(steps)
}
