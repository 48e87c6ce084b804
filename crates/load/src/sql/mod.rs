//! One SQL connection, whichever database is behind it: a file for each database.
//!
//! Statements are written with `?` for parameters. Where databases differ in words, [`Dialect`] has them.

mod dialect;
pub mod mysql;
pub mod postgres;
pub mod sqlite;
mod value;

use std::fmt::{self, Debug};
use std::io::{self, Write};

use anyhow::{Result, bail};

pub use dialect::{Dialect, Engine};
pub use value::{FromRow, FromValue, Row, Value};

use crate::protocol::Endpoint;

/// A prepared statement of the session that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(usize);

/// Writes rows as LOAD DATA and COPY read them: tab between columns, `\N` for null, newline after a row.
pub type RowWriter = Box<dyn FnMut(&mut dyn Write) -> io::Result<()> + Send>;

/// What a client does about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Deadlock, lock wait timeout, or a row changed since the snapshot: roll back and try again.
    Retry,
    /// This transaction failed: a row with this key exists.
    Duplicate,
    /// This transaction failed.
    Transaction,
    /// The connection or the server is gone, or there is no room for anything more.
    Fatal,
}

/// The database's own words, and what they mean for a client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SqlError {
    pub class: Class,
    pub message: String,
}

impl SqlError {
    fn unexpected_row() -> SqlError {
        let message = "the database answered with a row that is not what the query asks for".to_owned();
        SqlError { class: Class::Transaction, message }
    }
}

/// One connection. What it prepares lives as long as it does.
pub trait Session: Send {
    fn dialect(&self) -> Dialect;

    fn prepare(&mut self, text: &str) -> Result<Statement, SqlError>;

    /// Rows affected.
    fn run(&mut self, statement: Statement, parameters: &[Value]) -> Result<u64, SqlError>;

    /// Hands over one row after the other.
    fn visit(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError>;

    /// What the last statement put into `LAST_INSERT_ID`; only where [`Dialect::has_returning`] is false.
    fn last_insert_id(&self) -> u64;

    /// One query as text; its rows are read and dropped. How many there were.
    fn read(&mut self, text: &str) -> Result<u64, SqlError>;

    /// One statement without parameters or rows.
    fn execute(&mut self, text: &str) -> Result<(), SqlError>;

    /// From here on a transaction begins with [`Session::begin`] or with the first statement after the last
    /// one ended.
    fn use_transactions(&mut self) -> Result<(), SqlError>;

    /// `writes` says whether the transaction changes anything.
    fn begin(&mut self, writes: bool) -> Result<(), SqlError>;

    fn commit(&mut self) -> Result<(), SqlError> {
        self.execute("COMMIT")
    }

    fn rollback(&mut self) -> Result<(), SqlError> {
        self.execute("ROLLBACK")
    }

    /// Fills a table in one transaction.
    fn load(&mut self, table: &str, rows: RowWriter) -> Result<(), SqlError>;
}

impl Debug for dyn Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Session").field("dialect", &self.dialect()).finish_non_exhaustive()
    }
}

impl dyn Session + '_ {
    /// Begins a transaction although [`Session::use_transactions`] was not called.
    pub fn begin_now(&mut self, writes: bool) -> Result<(), SqlError> {
        match self.dialect() {
            Dialect::Sqlite => self.begin(writes),
            Dialect::Mysql | Dialect::Postgres => self.execute("BEGIN"),
        }
    }

    pub fn rows<T: FromRow>(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<Vec<T>, SqlError> {
        let mut rows = Vec::new();
        self.each(statement, parameters, |row| rows.push(row))?;
        Ok(rows)
    }

    pub fn first<T: FromRow>(
        &mut self,
        statement: Statement,
        parameters: &[Value],
    ) -> Result<Option<T>, SqlError> {
        let mut first = None;
        self.each(statement, parameters, |row| {
            first.get_or_insert(row);
        })?;
        Ok(first)
    }

    /// The one number that a query answers with.
    ///
    /// # Errors
    /// It answers with something else; or as [`Session::prepare`].
    pub fn number(&mut self, query: &str) -> Result<i64, SqlError> {
        let statement = self.prepare(query)?;
        self.first(statement, &[])?.map(|(number,)| number).ok_or_else(SqlError::unexpected_row)
    }

    pub fn each<T: FromRow>(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        mut take: impl FnMut(T),
    ) -> Result<(), SqlError> {
        self.visit(statement, parameters, &mut |row| {
            take(T::from_row(row).ok_or_else(SqlError::unexpected_row)?);
            Ok(())
        })
    }
}

/// Parameters of different types.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*][..] };
}

/// Connects to the endpoint's database.
///
/// # Errors
/// The server does not answer or does not let us in; names the endpoint.
pub fn connect(endpoint: &Endpoint) -> Result<Box<dyn Session>> {
    Ok(match endpoint {
        Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => {
            Box::new(mysql::Mysql::connect(endpoint)?)
        }
        Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. } => {
            Box::new(postgres::Postgres::connect(endpoint)?)
        }
        Endpoint::Sqlite { path, pragmas } => Box::new(sqlite::Sqlite::connect(path, pragmas)?),
        Endpoint::Directory { .. } => bail!("{} has no server to connect to", describe(endpoint)),
        Endpoint::Mock => bail!("the mock endpoint has no server to connect to"),
    })
}

/// Makes the endpoint's database unless it exists, and connects to it.
///
/// # Errors
/// As [`connect`]; or the user may not make a database.
pub fn connect_and_create_database(endpoint: &Endpoint) -> Result<Box<dyn Session>> {
    Ok(match endpoint {
        Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => {
            Box::new(mysql::Mysql::connect_and_create_database(endpoint)?)
        }
        Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. } => {
            Box::new(postgres::Postgres::connect_and_create_database(endpoint)?)
        }
        Endpoint::Sqlite { .. } => connect(endpoint)?,
        Endpoint::Directory { .. } => bail!("{} has no database", describe(endpoint)),
        Endpoint::Mock => bail!("the mock endpoint has no database"),
    })
}

/// Why an engine cannot be chosen anywhere else.
pub const NO_ENGINES: &str = "only MariaDB and MySQL have storage engines; leave it out";

/// The server's default storage engine, if it has no transactions.
///
/// # Errors
/// The server does not say.
pub(crate) fn default_engine_without_transactions(session: &mut dyn Session) -> Result<Option<String>> {
    let Some(question) = session.dialect().engine_without_transactions() else { return Ok(None) };
    let statement = session.prepare(question)?;
    let engine = session.first::<(Vec<u8>,)>(statement, &[])?;
    Ok(engine.map(|(name,)| String::from_utf8_lossy(&name).into_owned()))
}

/// Names an endpoint for an error message.
pub fn describe(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::MysqlSocket { path, .. } => format!("socket {}", path.display()),
        Endpoint::PostgresSocket { directory, port, .. } => {
            format!("socket {}/.s.PGSQL.{port}", directory.display())
        }
        Endpoint::MysqlTcp { host, port, .. } | Endpoint::PostgresTcp { host, port, .. } => {
            format!("{host}:{port}")
        }
        Endpoint::Sqlite { path, .. } => path.display().to_string(),
        Endpoint::Directory { path } => format!("the directory {}", path.display()),
        Endpoint::Mock => "mock".to_owned(),
    }
}
