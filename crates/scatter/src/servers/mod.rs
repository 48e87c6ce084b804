//! Connections to the servers that answer fragments, and what they say of their tables and plans.

pub mod catalog;
pub mod explain;
pub mod session;

use anyhow::{Context, Result};
use mysql::{Conn, Opts};

/// A server with the database that a query reads.
#[derive(Debug, Clone)]
pub struct Server {
    /// In sentences, without its password.
    pub name: String,
    pub options: Opts,
}

impl Server {
    pub fn connect(&self) -> Result<Conn> {
        Conn::new(self.options.clone()).with_context(|| format!("connecting to {}", self.name))
    }
}

/// One row of a result as text, NULL as `None`.
pub(crate) fn texts(row: mysql::Row) -> Vec<Option<String>> {
    let text = |value: mysql::Value| match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        other => Some(other.as_sql(true).trim_matches('\'').to_owned()),
    };
    row.unwrap().into_iter().map(text).collect()
}
