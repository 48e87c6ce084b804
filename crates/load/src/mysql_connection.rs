//! The MySQL protocol: connections, and which of its errors mean what.

use anyhow::{Context, Result, anyhow, bail};
use mysql::prelude::Queryable;
use mysql::{Conn, Error, OptsBuilder};

use crate::protocol::Endpoint;
use crate::workload::Failure;

/// Names an endpoint for an error message.
pub fn describe(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::MysqlSocket { path, .. } => format!("socket {}", path.display()),
        Endpoint::MysqlTcp { host, port, .. } => format!("{host}:{port}"),
        Endpoint::Mock => "mock".to_owned(),
    }
}

/// Connects and selects the endpoint's database.
pub fn connect(endpoint: &Endpoint) -> Result<Conn> {
    open(endpoint, true)
}

/// Makes the endpoint's database unless it exists, and connects to it.
pub fn connect_and_create_database(endpoint: &Endpoint) -> Result<Conn> {
    let mut connection = open(endpoint, false)?;
    let name = match endpoint {
        Endpoint::MysqlSocket { database, .. } | Endpoint::MysqlTcp { database, .. } => database,
        Endpoint::Mock => bail!("the mock endpoint has no database"),
    };
    connection
        .query_drop(format!("CREATE DATABASE IF NOT EXISTS `{name}`"))
        .with_context(|| format!("making the database `{name}` on {}", describe(endpoint)))?;
    connect(endpoint)
}

fn open(endpoint: &Endpoint, select_database: bool) -> Result<Conn> {
    // Statements are kept by the clients themselves: a cache that evicts would close them behind our back.
    let options = OptsBuilder::new().stmt_cache_size(0);
    // Everything we send is ASCII, and the tables are latin1: no conversion stands between a value and an index.
    let options = options.init(vec!["SET NAMES latin1 COLLATE latin1_bin"]);
    let options = match endpoint {
        Endpoint::MysqlSocket { path, user, database } => options
            .socket(Some(path.to_string_lossy().into_owned()))
            .user(Some(user))
            .db_name(select_database.then_some(database)),
        Endpoint::MysqlTcp { host, port, user, password, database } => options
            .ip_or_hostname(Some(host))
            .tcp_port(*port)
            .prefer_socket(false)
            .user(Some(user))
            .pass(Some(password))
            .db_name(select_database.then_some(database)),
        Endpoint::Mock => bail!("the mock endpoint has no server to connect to"),
    };
    Conn::new(options).map_err(|error| anyhow!("connecting to {}: {}", describe(endpoint), sentence(&error)))
}

/// What a client does about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Deadlock, lock wait timeout, or a row changed since the snapshot: roll back and try again.
    Retry,
    /// This transaction failed.
    Transaction,
    /// The connection or the server is gone, or there is no room for anything more.
    Fatal,
}

pub fn classify(error: &Error) -> Class {
    match error {
        // 1020: record changed since last read (MariaDB's innodb_snapshot_isolation).
        Error::MySqlError(error) => match error.code {
            1213 | 1205 | 1020 => Class::Retry,
            // Shutdown in progress, connection killed, server gone, idle timeout.
            1053 | 1927 | 2006 | 2013 | 4031 => Class::Fatal,
            // The disk is full; a table cannot grow.
            1021 | 1114 => Class::Fatal,
            _ => Class::Transaction,
        },
        _ => Class::Fatal,
    }
}

pub fn failure(error: &Error) -> Failure {
    match classify(error) {
        Class::Fatal if matches!(error, Error::MySqlError(_)) => Failure::Fatal(sentence(error)),
        Class::Fatal => Failure::Fatal(format!("the connection to the server broke: {}", sentence(error))),
        Class::Retry | Class::Transaction => Failure::Transaction(sentence(error)),
    }
}

/// The server's own words without the crate's wrapping.
fn sentence(error: &Error) -> String {
    match error {
        Error::MySqlError(error) => format!("{} (error {})", error.message, error.code),
        Error::IoError(error) => error.to_string(),
        Error::CodecError(error) => error.to_string(),
        Error::DriverError(error) => error.to_string(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use mysql::error::MySqlError;

    use super::*;

    #[track_caller]
    fn check(code: u16, expect: Failure) {
        let state = "HY000".to_owned();
        assert_eq!(failure(&MySqlError { state, message: "Words".to_owned(), code }.into()), expect);
    }

    #[test]
    fn a_full_disk_ends_the_load_in_the_servers_words() {
        check(1114, Failure::Fatal("Words (error 1114)".to_owned()));
        check(1021, Failure::Fatal("Words (error 1021)".to_owned()));
    }

    #[test]
    fn a_refused_statement_fails_its_transaction_only() {
        check(1062, Failure::Transaction("Words (error 1062)".to_owned()));
    }
}
