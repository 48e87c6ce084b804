//! SQLite inside this process: the database is a file, and there is no server.
//!
//! Statements come from files and run with the rights of this process, which may be root. So they may open no
//! file but the database: `ATTACH`, `VACUUM INTO` and pragmas that set the location of SQLite's files are
//! refused.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
pub use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Error, ErrorCode, ToSql, ffi, params_from_iter};

use super::{Class, Dialect, Row, RowWriter, Session, SqlError, Statement, Value, waits};

/// How long a writer waits for the current one. SQLite has one writer at a time.
const PATIENCE: Duration = Duration::from_secs(60);
/// Sleeps of a writer that waits, as in SQLite's own handler (`sqliteDefaultBusyCallback`); the last one is
/// repeated.
const SLEEPS_MS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];
/// The pragma that replaces the handler.
const OWN_PATIENCE: &str = "busy_timeout";
/// Above the number of statements of any workload.
const STATEMENTS: usize = 512;

/// A connection to a database file.
#[derive(Debug)]
pub(super) struct Sqlite {
    connection: Connection,
    texts: Vec<String>,
}

/// The version of the built-in library.
pub fn version() -> &'static str {
    rusqlite::version()
}

/// The value of a pragma in SQLite's notation; `None` if there is no such pragma.
///
/// # Errors
/// The file cannot be opened.
pub fn pragma(connection: &Connection, name: &str) -> Result<Option<String>> {
    let text = |row: &rusqlite::Row<'_>| row.get_ref(0).map(|value| words(value));
    match connection.pragma_query_value(None, name, text) {
        Ok(value) => Ok(Some(value)),
        Err(Error::QueryReturnedNoRows) => Ok(None),
        Err(error) => Err(error).with_context(|| format!("PRAGMA {name}")),
    }
}

/// The names of all pragmas.
///
/// # Errors
/// The file cannot be read.
pub fn pragmas(connection: &Connection) -> Result<Vec<String>> {
    let mut statement = connection.prepare("PRAGMA pragma_list").context("PRAGMA pragma_list")?;
    let names = statement.query_map([], |row| row.get(0)).context("PRAGMA pragma_list")?;
    Ok(names.collect::<rusqlite::Result<_>>()?)
}

/// Opens or creates the file with these pragmas.
///
/// # Errors
/// The file is not a database, or a pragma is refused.
pub fn open(path: &Path, pragmas: &BTreeMap<String, String>) -> Result<Connection> {
    let connection =
        Connection::open(path).map_err(in_words).with_context(|| format!("opening {}", path.display()))?;
    connection.busy_timeout(PATIENCE)?;
    connection.authorizer(Some(no_other_file));
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Other pragmas may create the file, and then these are fixed.
    let comes_first = |name: &&String| ["auto_vacuum", "encoding", "page_size"].contains(&name.as_str());
    let (first, then): (Vec<_>, Vec<_>) = pragmas.iter().partition(|(name, _)| comes_first(name));
    for (name, value) in first.into_iter().chain(then) {
        ensure!(!value.contains(';'), "PRAGMA {name} = {value}: is more than a value");
        connection
            .execute_batch(&format!("PRAGMA {name} = {value}"))
            .map_err(in_words)
            .with_context(|| format!("PRAGMA {name} = {value}"))?;
    }
    Ok(connection)
}

/// The sentence of SQLite. The cause behind it says the same in other words.
fn in_words(error: Error) -> anyhow::Error {
    match error {
        Error::SqliteFailure(_, Some(words)) => anyhow!(words),
        other => other.into(),
    }
}

/// sqlite.org/c3ref/set_authorizer.html. A plain VACUUM attaches a database without a name.
fn no_other_file(context: AuthContext<'_>) -> Authorization {
    const DIRECTORIES: [&str; 2] = ["temp_store_directory", "data_store_directory"];
    match context.action {
        AuthAction::Attach { filename } if !filename.is_empty() => Authorization::Deny,
        AuthAction::Pragma { pragma_name, .. } if DIRECTORIES.contains(&pragma_name) => Authorization::Deny,
        _ => Authorization::Allow,
    }
}

/// SQLite's own handler with a stopwatch. False when the patience is at an end.
fn sleep_for_lock(sleeps: i32) -> bool {
    let index = usize::try_from(sleeps).unwrap_or_default();
    let last = SLEEPS_MS.len() - 1;
    let slept_ms = SLEEPS_MS[..index.min(last)].iter().sum::<u64>()
        + SLEEPS_MS[last] * index.saturating_sub(last) as u64;
    let left = PATIENCE.saturating_sub(Duration::from_millis(slept_ms));
    waits::sleep_for_lock(left.min(Duration::from_millis(SLEEPS_MS[index.min(last)])));
    !left.is_zero()
}

impl Sqlite {
    pub(super) fn connect(path: &Path, pragmas: &BTreeMap<String, String>) -> Result<Sqlite> {
        let connection = open(path, pragmas)?;
        waits::begin();
        connection.commit_hook(Some(|| {
            waits::commit_begins();
            false
        }));
        if !pragmas.keys().any(|name| name.eq_ignore_ascii_case(OWN_PATIENCE)) {
            connection.busy_handler(Some(sleep_for_lock))?;
        }
        Ok(Sqlite { connection, texts: Vec::new() })
    }
}

impl Session for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    /// The library caches prepared statements by their text.
    fn prepare(&mut self, text: &str) -> Result<Statement, SqlError> {
        self.connection.prepare_cached(text)?;
        self.texts.push(text.to_owned());
        Ok(Statement(self.texts.len() - 1))
    }

    fn run(&mut self, statement: Statement, parameters: &[Value]) -> Result<u64, SqlError> {
        let _end = waits::CommitEnd;
        let mut statement = self.connection.prepare_cached(&self.texts[statement.0])?;
        Ok(statement.execute(params_from_iter(parameters))? as u64)
    }

    fn visit(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let _end = waits::CommitEnd;
        let mut statement = self.connection.prepare_cached(&self.texts[statement.0])?;
        let columns = statement.column_count();
        let mut rows = statement.query(params_from_iter(parameters))?;
        while let Some(row) = rows.next()? {
            let column = |index| row.get_ref(index).map(received);
            take((0..columns).map(column).collect::<Result<Row, Error>>()?)?;
        }
        Ok(())
    }

    fn read(&mut self, text: &str) -> Result<u64, SqlError> {
        let _end = waits::CommitEnd;
        let mut statement = self.connection.prepare(text)?;
        let mut rows = statement.query([])?;
        let mut count = 0;
        while rows.next()?.is_some() {
            count += 1;
        }
        Ok(count)
    }

    fn execute(&mut self, text: &str) -> Result<(), SqlError> {
        let _end = waits::CommitEnd;
        Ok(self.connection.execute_batch(text)?)
    }

    /// A writing transaction declares itself at the start. A transaction that starts with a read is refused
    /// if another one has written since.
    fn begin(&mut self, writes: bool) -> Result<(), SqlError> {
        self.execute(if writes { "BEGIN IMMEDIATE" } else { "BEGIN" })
    }

    fn rollback(&mut self) -> Result<(), SqlError> {
        // Some errors have already rolled back.
        if self.connection.is_autocommit() { Ok(()) } else { self.execute("ROLLBACK") }
    }

    fn load(&mut self, table: &str, mut rows: RowWriter) -> Result<(), SqlError> {
        self.begin(true)?;
        let mut inserter =
            Inserter { connection: &self.connection, table, text: None, rest: Vec::new(), refused: None };
        let written = rows(&mut inserter);
        let refused = inserter.refused.take();
        match (refused, written) {
            (None, Ok(())) => self.commit(),
            (refused, written) => {
                self.rollback()?;
                Err(refused.unwrap_or_else(|| {
                    let message = written.err().map_or_else(String::new, |error| error.to_string());
                    SqlError { class: Class::Transaction, message }
                }))
            }
        }
    }
}

/// Receives the lines of a load and inserts them.
struct Inserter<'a> {
    connection: &'a Connection,
    table: &'a str,
    /// The INSERT; known after the first row, which gives the number of columns.
    text: Option<String>,
    /// An incomplete line.
    rest: Vec<u8>,
    refused: Option<SqlError>,
}

impl Inserter<'_> {
    fn insert(&mut self, line: &[u8]) -> Result<(), Error> {
        let columns: Vec<Value> = line
            .split(|&byte| byte == b'\t')
            .map(|column| if column == b"\\N" { Value::Null } else { Value::Text(column.to_vec()) })
            .collect();
        let text = self.text.get_or_insert_with(|| {
            format!("INSERT INTO {} VALUES ({})", self.table, vec!["?"; columns.len()].join(", "))
        });
        self.connection.prepare_cached(text)?.execute(params_from_iter(&columns)).map(drop)
    }
}

impl Write for Inserter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.rest.extend_from_slice(bytes);
        while let Some(end) = self.rest.iter().position(|&byte| byte == b'\n') {
            let line: Vec<u8> = self.rest.drain(..=end).collect();
            if let Err(error) = self.insert(&line[..end]) {
                self.refused = Some(error.into());
                return Err(io::Error::other("the database refused a row"));
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<rusqlite::types::ToSqlOutput<'_>> {
        // Our data is ASCII. A blob would not compare equal to text.
        let text = |text| str::from_utf8(text).map_err(|error| Error::ToSqlConversionFailure(error.into()));
        Ok(rusqlite::types::ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Integer(value) => ValueRef::Integer(*value),
            Value::Real(value) => ValueRef::Real(*value),
            Value::Text(bytes) => ValueRef::Text(text(bytes)?.as_bytes()),
        }))
    }
}

fn received(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(value) => Value::Integer(value),
        ValueRef::Real(value) => Value::Real(value),
        ValueRef::Text(text) | ValueRef::Blob(text) => Value::Text(text.to_vec()),
    }
}

fn words(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => String::new(),
        ValueRef::Integer(value) => value.to_string(),
        ValueRef::Real(value) => value.to_string(),
        ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
    }
}

/// A duplicate unique column, primary key or row number (sqlite.org/rescode.html).
const DUPLICATE: [i32; 3] =
    [ffi::SQLITE_CONSTRAINT_UNIQUE, ffi::SQLITE_CONSTRAINT_PRIMARYKEY, ffi::SQLITE_CONSTRAINT_ROWID];

impl From<Error> for SqlError {
    fn from(error: Error) -> SqlError {
        let is_duplicate = error.sqlite_error().is_some_and(|error| DUPLICATE.contains(&error.extended_code));
        let class = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Class::Retry,
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly,
            ) => Class::Fatal,
            _ if is_duplicate => Class::Duplicate,
            _ => Class::Transaction,
        };
        SqlError { class, message: error.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values;

    fn session() -> (tempfile::TempDir, Box<dyn Session>) {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = Sqlite::connect(&directory.path().join("database"), &BTreeMap::new()).unwrap();
        (directory, Box::new(sqlite))
    }

    #[test]
    fn rows_are_loaded_and_read_back() {
        let (_directory, mut session) = session();
        session.execute("CREATE TABLE t (a INT, b DECIMAL(4,2), c VARCHAR(9))").unwrap();
        session.load("t", Box::new(|output| output.write_all(b"1\t0.25\tone\n2\t\\N\ttwo\n"))).unwrap();
        let select = session.prepare("SELECT a, b, c FROM t WHERE a >= ? ORDER BY a").unwrap();
        let rows: Vec<(u32, Option<f64>, Vec<u8>)> = session.rows(select, values![1_u32]).unwrap();
        assert_eq!(rows, [(1, Some(0.25), b"one".to_vec()), (2, None, b"two".to_vec())]);
    }

    #[test]
    fn the_stopwatch_sees_the_commit_of_a_statement_and_the_wait_for_a_writer() {
        let (directory, mut session) = session();
        session.execute("CREATE TABLE t (a INT)").unwrap();
        assert!(waits::take_commit().unwrap() > Duration::ZERO);
        let select = session.prepare("SELECT COUNT(*) FROM t").unwrap();
        assert_eq!(session.first(select, &[]).unwrap(), Some((0_u32,)));
        assert_eq!(waits::take_commit(), Some(Duration::ZERO), "a read commits nothing");
        let path = directory.path().join("database");
        let mut writer = Sqlite::connect(&path, &BTreeMap::new()).unwrap();
        writer.begin(true).unwrap();
        let before = waits::lock_wait().unwrap();
        let writing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(50));
            writer.commit().unwrap();
        });
        session.execute("INSERT INTO t VALUES (1)").unwrap();
        writing.join().unwrap();
        let slept = waits::lock_wait().unwrap() - before;
        assert!(slept >= Duration::from_millis(10), "{slept:?}");
        assert!(waits::take_commit().unwrap() > Duration::ZERO);
    }

    #[test]
    fn patience_with_a_writer_has_an_end() {
        assert!(sleep_for_lock(0));
        assert!(!sleep_for_lock(10_000));
    }

    #[test]
    fn a_statement_reaches_no_other_file() {
        let (directory, mut session) = session();
        let other = directory.path().join("other");
        for text in [
            format!("ATTACH DATABASE '{}' AS other", other.display()),
            format!("VACUUM INTO '{}'", other.display()),
            format!("PRAGMA temp_store_directory = '{}'", directory.path().display()),
        ] {
            let error = session.execute(&text).unwrap_err();
            let words = ["not authorized", "authorization denied"];
            assert!(words.iter().any(|words| error.message.contains(words)), "{text}: {error}");
        }
        assert!(!other.exists());
        session.execute("CREATE TABLE t (a INT)").unwrap();
        session.execute("VACUUM").unwrap();
        let pragmas = BTreeMap::from([("synchronous".to_owned(), "1; DROP TABLE t".to_owned())]);
        let error = open(&directory.path().join("database"), &pragmas).unwrap_err();
        assert!(error.to_string().contains("is more than a value"), "{error}");
    }

    #[test]
    fn a_load_that_is_refused_leaves_nothing() {
        let (_directory, mut session) = session();
        session.execute("CREATE TABLE t (a INT PRIMARY KEY)").unwrap();
        let error = session.load("t", Box::new(|output| output.write_all(b"1\n1\n"))).unwrap_err();
        assert!(error.message.contains("UNIQUE"), "{error}");
        assert_eq!(error.class, Class::Duplicate);
        let count = session.prepare("SELECT COUNT(*) FROM t").unwrap();
        assert_eq!(session.first(count, &[]).unwrap(), Some((0_u32,)));
    }
}
