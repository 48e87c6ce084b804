//! The MySQL protocol: connections, and the classes of its errors.

use std::io::Write;

use anyhow::{Context, Result, anyhow, bail};
use mysql::prelude::Queryable;
use mysql::{Conn, Error, LocalInfileHandler, OptsBuilder, Params};

use super::{Class, Dialect, Row, RowWriter, Session, SqlError, Statement, Value, describe};
use crate::protocol::Endpoint;

/// A connection to MariaDB, MySQL or Percona Server.
#[derive(Debug)]
pub(super) struct Mysql {
    connection: Conn,
    statements: Vec<mysql::Statement>,
}

impl Mysql {
    pub(super) fn connect(endpoint: &Endpoint) -> Result<Mysql> {
        Ok(Mysql { connection: connect(endpoint)?, statements: Vec::new() })
    }
}

/// Creates the endpoint's database unless it exists.
pub(super) fn create_database(endpoint: &Endpoint) -> Result<()> {
    let name = match endpoint {
        Endpoint::MysqlSocket { database, .. } | Endpoint::MysqlTcp { database, .. } => database,
        _ => bail!("{} is no MySQL server", describe(endpoint)),
    };
    open(endpoint, false)?
        .query_drop(format!("CREATE DATABASE IF NOT EXISTS `{name}`"))
        .with_context(|| format!("making the database `{name}` on {}", describe(endpoint)))
}

impl Session for Mysql {
    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn prepare(&mut self, text: &str) -> Result<Statement, SqlError> {
        self.statements.push(self.connection.prep(text)?);
        Ok(Statement(self.statements.len() - 1))
    }

    fn run(&mut self, statement: Statement, parameters: &[Value]) -> Result<u64, SqlError> {
        self.connection.exec_drop(&self.statements[statement.0], positional(parameters))?;
        Ok(self.connection.affected_rows())
    }

    fn visit(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        for row in self.connection.exec_iter(&self.statements[statement.0], positional(parameters))? {
            take(row?.unwrap().into_iter().map(received).collect())?;
        }
        Ok(())
    }

    fn last_insert_id(&self) -> u64 {
        self.connection.last_insert_id()
    }

    fn read(&mut self, text: &str) -> Result<u64, SqlError> {
        let mut rows = self.connection.query_iter(text)?;
        Ok(rows.try_fold(0, |count, row| row.map(|_| count + 1))?)
    }

    fn execute(&mut self, text: &str) -> Result<(), SqlError> {
        Ok(self.connection.query_drop(text)?)
    }

    /// Disables autocommit: the first statement begins the transaction, one round trip less than with BEGIN.
    fn use_transactions(&mut self) -> Result<(), SqlError> {
        self.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")?;
        self.execute("SET SESSION autocommit = 0")
    }

    fn begin(&mut self, _writes: bool) -> Result<(), SqlError> {
        Ok(())
    }

    fn load(&mut self, table: &str, mut rows: RowWriter) -> Result<(), SqlError> {
        // Otherwise MariaDB locks an empty table for its first stream, and the others wait for it once per
        // table.
        self.execute("SET SESSION unique_checks = 0, foreign_key_checks = 0")?;
        let handler = LocalInfileHandler::new(move |_, output| rows(output as &mut dyn Write));
        self.connection.set_local_infile_handler(Some(handler));
        self.execute(&format!("LOAD DATA LOCAL INFILE 'spindle' INTO TABLE {table}")).map_err(|error| {
            let message = format!("{} (the server needs local_infile=ON)", error.message);
            SqlError { message, ..error }
        })
    }
}

fn positional(parameters: &[Value]) -> Params {
    match parameters {
        [] => Params::Empty,
        _ => Params::Positional(parameters.iter().map(sent).collect()),
    }
}

fn sent(value: &Value) -> mysql::Value {
    match value {
        Value::Null => mysql::Value::NULL,
        Value::Integer(value) => mysql::Value::Int(*value),
        Value::Real(value) => mysql::Value::Double(*value),
        Value::Text(text) => mysql::Value::Bytes(text.clone()),
    }
}

fn received(value: mysql::Value) -> Value {
    match value {
        mysql::Value::NULL => Value::Null,
        mysql::Value::Int(value) => Value::Integer(value),
        mysql::Value::UInt(value) => Value::Integer(value as i64),
        mysql::Value::Float(value) => Value::Real(value.into()),
        mysql::Value::Double(value) => Value::Real(value),
        mysql::Value::Bytes(text) => Value::Text(text),
        date => Value::Text(date.as_sql(true).into_bytes()),
    }
}

impl From<Error> for SqlError {
    fn from(error: Error) -> SqlError {
        let class = classify(&error);
        let message = match (class, &error) {
            (Class::Fatal, Error::MySqlError(_)) => sentence(&error),
            (Class::Fatal, _) => format!("the connection to the server broke: {}", sentence(&error)),
            _ => sentence(&error),
        };
        SqlError { class, message }
    }
}

/// Connects and selects the endpoint's database.
pub fn connect(endpoint: &Endpoint) -> Result<Conn> {
    open(endpoint, true)
}

/// How to connect to an endpoint. An empty database selects none.
pub fn options(endpoint: &Endpoint, select_database: bool) -> Result<OptsBuilder> {
    // Clients keep the statements themselves. A cache that evicts would close statements still in use.
    let options = OptsBuilder::new().stmt_cache_size(0);
    let named = |database: &str| Some(database.to_owned()).filter(|name| select_database && !name.is_empty());
    Ok(match endpoint {
        Endpoint::MysqlSocket { path, user, database } => options
            .socket(Some(path.to_string_lossy().into_owned()))
            .user(Some(user))
            .db_name(named(database)),
        Endpoint::MysqlTcp { host, port, user, password, database } => options
            .ip_or_hostname(Some(host))
            .tcp_port(*port)
            .prefer_socket(false)
            .user(Some(user))
            .pass(Some(password))
            .db_name(named(database)),
        _ => bail!("{} is no MySQL server", describe(endpoint)),
    })
}

fn open(endpoint: &Endpoint, select_database: bool) -> Result<Conn> {
    // All our data is ASCII, and the tables are latin1, so that no conversion comes between a value and an
    // index.
    let options = options(endpoint, select_database)?.init(vec!["SET NAMES latin1 COLLATE latin1_bin"]);
    Conn::new(options).map_err(|error| anyhow!("connecting to {}: {}", describe(endpoint), sentence(&error)))
}

fn classify(error: &Error) -> Class {
    match error {
        // 1020: record changed since last read (MariaDB's innodb_snapshot_isolation).
        Error::MySqlError(error) => match error.code {
            1213 | 1205 | 1020 => Class::Retry,
            1062 => Class::Duplicate,
            // Shutdown in progress, connection killed, server gone, idle timeout.
            1053 | 1927 | 2006 | 2013 | 4031 => Class::Fatal,
            // The disk is full; a table cannot grow.
            1021 | 1114 => Class::Fatal,
            _ => Class::Transaction,
        },
        _ => Class::Fatal,
    }
}

/// The server's own message, without the prefix of the crate.
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
    fn check(code: u16, class: Class) {
        let state = "HY000".to_owned();
        let error: Error = MySqlError { state, message: "Words".to_owned(), code }.into();
        assert_eq!(SqlError::from(error), SqlError { class, message: format!("Words (error {code})") });
    }

    #[test]
    fn a_full_disk_ends_the_load_in_the_servers_words() {
        check(1114, Class::Fatal);
        check(1021, Class::Fatal);
    }

    #[test]
    fn a_refused_statement_fails_its_transaction_only() {
        // A foreign key is violated; a column is unknown.
        check(1452, Class::Transaction);
        check(1054, Class::Transaction);
    }

    #[test]
    fn a_key_that_exists_is_told_apart() {
        check(1062, Class::Duplicate);
    }

    #[test]
    fn a_deadlock_is_tried_again() {
        check(1213, Class::Retry);
    }
}
