//! One SQL connection to any of the databases; each database has a file.
//!
//! Statements are written with `?` for parameters. Differences between databases are in [`Dialect`].

mod dialect;
pub mod mysql;
pub mod postgres;
pub mod sqlite;
mod value;
pub mod waits;

use std::fmt::{self, Debug};
use std::io::{self, Write};

use anyhow::{Context, Result, bail};

pub use dialect::{Dialect, Engine};
pub use value::{FromRow, FromValue, Row, Value};

use crate::protocol::Endpoint;

/// A prepared statement; valid for its own session only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement(usize);

/// Writes rows in the format of LOAD DATA and COPY: tab between columns, `\N` for null, newline after a row.
pub type RowWriter = Box<dyn FnMut(&mut dyn Write) -> io::Result<()> + Send>;

/// How a client reacts to an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// Deadlock, lock wait timeout, or a row changed since the snapshot: roll back and retry.
    Retry,
    /// This transaction failed: a row with this key already exists.
    Duplicate,
    /// This transaction failed.
    Transaction,
    /// The connection or the server is gone, or storage is full.
    Fatal,
}

/// The database's own message, and its class.
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

/// One connection. Its prepared statements live as long as it does.
pub trait Session: Send {
    fn dialect(&self) -> Dialect;

    fn prepare(&mut self, text: &str) -> Result<Statement, SqlError>;

    /// Executes a statement. Returns the rows affected.
    fn run(&mut self, statement: Statement, parameters: &[Value]) -> Result<u64, SqlError>;

    /// Executes a query and passes its rows on one by one.
    fn visit(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError>;

    /// The `LAST_INSERT_ID` of the last statement; only if [`Dialect::has_returning`] is false.
    fn last_insert_id(&self) -> u64 {
        0
    }

    /// Executes a query as text, then reads and drops its rows. Returns their number.
    fn read(&mut self, text: &str) -> Result<u64, SqlError>;

    /// Executes a statement without parameters or rows.
    fn execute(&mut self, text: &str) -> Result<(), SqlError>;

    /// Enables transactions: from here on one begins with [`Session::begin`], or with the first statement
    /// after the end of the last one.
    fn use_transactions(&mut self) -> Result<(), SqlError> {
        Ok(())
    }

    /// `writes`: the transaction changes data.
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
    /// Begins a transaction without [`Session::use_transactions`].
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

    /// The result of a query that returns one number.
    ///
    /// # Errors
    /// The query returns anything else; or as [`Session::prepare`].
    pub fn number(&mut self, query: &str) -> Result<i64, SqlError> {
        let statement = self.prepare(query)?;
        self.first(statement, &[])?.map(|(number,)| number).ok_or_else(SqlError::unexpected_row)
    }

    /// Executes statements without parameters in order.
    ///
    /// # Errors
    /// The database refuses a statement; the message has the statement.
    pub fn execute_each(&mut self, statements: impl IntoIterator<Item = impl AsRef<str>>) -> Result<()> {
        statements.into_iter().try_for_each(|statement| {
            let statement = statement.as_ref();
            self.execute(statement).with_context(|| format!("executing {statement}"))
        })
    }

    /// The number of rows of a table that satisfy a condition.
    ///
    /// # Errors
    /// The database refuses the query; the message names the table.
    pub fn count(&mut self, table: &str, condition: &str) -> Result<i64> {
        self.number(&format!("SELECT COUNT(*) FROM {table} WHERE {condition}"))
            .with_context(|| format!("reading {table}"))
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

/// A list of parameters of different types.
#[macro_export]
macro_rules! values {
    ($($value:expr),* $(,)?) => { &[$($crate::sql::Value::from($value)),*][..] };
}

/// Connects to the endpoint's database.
///
/// # Errors
/// The server does not answer or refuses the login; the message names the endpoint.
pub fn connect(endpoint: &Endpoint) -> Result<Box<dyn Session>> {
    Ok(match endpoint {
        Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => {
            Box::new(mysql::Mysql::connect(endpoint)?)
        }
        Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. } => {
            Box::new(postgres::Postgres::connect(endpoint)?)
        }
        Endpoint::Sqlite { path, pragmas } => Box::new(sqlite::Sqlite::connect(path, pragmas)?),
        Endpoint::Directory { .. } | Endpoint::Mock => {
            bail!("{} has no server to connect to", describe(endpoint))
        }
    })
}

/// Creates the endpoint's database unless it exists, and connects to it.
///
/// # Errors
/// As [`connect`]; or the user may not create a database.
pub fn connect_and_create_database(endpoint: &Endpoint) -> Result<Box<dyn Session>> {
    match endpoint {
        Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => mysql::create_database(endpoint)?,
        Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. } => {
            postgres::create_database(endpoint)?;
        }
        Endpoint::Sqlite { .. } | Endpoint::Directory { .. } | Endpoint::Mock => {}
    }
    connect(endpoint)
}

/// The message if an engine is chosen for another database.
pub const NO_ENGINES: &str = "only MariaDB and MySQL have storage engines; leave it out";

/// The server's default storage engine if it has no transactions; otherwise `None`.
///
/// # Errors
/// The server does not answer the query.
pub(crate) fn default_engine_without_transactions(session: &mut dyn Session) -> Result<Option<String>> {
    let Some(question) = session.dialect().engine_without_transactions() else { return Ok(None) };
    let statement = session.prepare(question)?;
    let engine = session.first::<(Vec<u8>,)>(statement, &[])?;
    Ok(engine.map(|(name,)| String::from_utf8_lossy(&name).into_owned()))
}

/// The name of an endpoint for an error message.
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
        Endpoint::Mock => "the mock endpoint".to_owned(),
    }
}
