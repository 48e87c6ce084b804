//! Connections to the servers that answer fragments, and what they say of their tables and plans.

pub mod explain;
pub mod session;
pub(crate) mod tables;

use std::time::Duration;

use anyhow::{Context, Result};
use mysql::{Conn, Opts, OptsBuilder};

pub use session::Session;

/// Character set of columns that are bytes.
pub(crate) const BINARY: u16 = 63;

/// A server with the database that a query reads.
#[derive(Debug, Clone)]
pub struct Server {
    /// In sentences, without its password.
    pub name: String,
    pub options: Opts,
}

impl Server {
    pub fn connect(&self) -> Result<Conn> {
        self.connect_for(None)
    }

    /// A connection on which no answer is awaited for longer than this.
    pub fn connect_for(&self, longest: Option<Duration>) -> Result<Conn> {
        let options = OptsBuilder::from_opts(self.options.clone());
        let options = match longest {
            Some(_) => options.read_timeout(longest),
            None => options,
        };
        Conn::new(options).with_context(|| format!("connecting to {}", self.name))
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

/// The server's own words of an error, where it has some.
pub fn words(error: &mysql::Error) -> String {
    match error {
        mysql::Error::MySqlError(error) => error.message.clone(),
        other => other.to_string(),
    }
}
