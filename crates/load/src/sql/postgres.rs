//! The PostgreSQL protocol: connections, and the classes of its errors.

use std::io::{BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail};
use postgres::config::Host;
use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::types::ToSql;
use postgres::{Client, Config, Error, NoTls, SimpleQueryMessage};

use super::{Class, Dialect, Row, RowWriter, Session, SqlError, Statement, Value, describe};
use crate::protocol::Endpoint;

mod format;

/// The server's default; part of the name of its socket.
pub const DEFAULT_PORT: u16 = 5432;
/// A database that exists in every installation.
pub const MAINTENANCE_DATABASE: &str = "postgres";
/// Size of one COPY message.
const COPY_BYTES: usize = 64 << 10;

/// A connection to PostgreSQL.
pub(super) struct Postgres {
    client: Client,
    statements: Vec<postgres::Statement>,
    begin_reading: &'static str,
}

impl Postgres {
    pub(super) fn connect(endpoint: &Endpoint) -> Result<Postgres> {
        let client = config(endpoint)?.connect(NoTls).map_err(|error| refused(endpoint, &error))?;
        Ok(Postgres { client, statements: Vec::new(), begin_reading: "BEGIN READ ONLY" })
    }
}

/// Creates the endpoint's database unless it exists.
pub(super) fn create_database(endpoint: &Endpoint) -> Result<()> {
    let mut config = config(endpoint)?;
    match config.connect(NoTls) {
        Err(error) if error.code() == Some(&SqlState::INVALID_CATALOG_NAME) => {}
        found => return found.map(drop).map_err(|error| refused(endpoint, &error)),
    }
    let name = config.get_dbname().unwrap_or_default().to_owned();
    let mut client =
        config.dbname(MAINTENANCE_DATABASE).connect(NoTls).map_err(|error| refused(endpoint, &error))?;
    client
        .batch_execute(&format!("CREATE DATABASE \"{name}\""))
        .map_err(SqlError::from)
        .with_context(|| format!("making the database \"{name}\" on {}", describe(endpoint)))
}

impl Session for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn prepare(&mut self, text: &str) -> Result<Statement, SqlError> {
        self.statements.push(self.client.prepare(&numbered(text))?);
        Ok(Statement(self.statements.len() - 1))
    }

    fn run(&mut self, statement: Statement, parameters: &[Value]) -> Result<u64, SqlError> {
        let parameters: Vec<&(dyn ToSql + Sync)> = parameters.iter().map(|value| value as _).collect();
        Ok(self.client.execute(&self.statements[statement.0], &parameters)?)
    }

    fn visit(
        &mut self,
        statement: Statement,
        parameters: &[Value],
        take: &mut dyn FnMut(Row) -> Result<(), SqlError>,
    ) -> Result<(), SqlError> {
        let mut rows = self.client.query_raw(&self.statements[statement.0], parameters)?;
        while let Some(row) = rows.next()? {
            take((0..row.len()).map(|column| row.try_get(column)).collect::<Result<Row, Error>>()?)?;
        }
        Ok(())
    }

    fn read(&mut self, text: &str) -> Result<u64, SqlError> {
        let messages = self.client.simple_query(text)?;
        let is_row = |message: &&SimpleQueryMessage| matches!(message, SimpleQueryMessage::Row(_));
        Ok(messages.iter().filter(is_row).count() as u64)
    }

    fn execute(&mut self, text: &str) -> Result<(), SqlError> {
        Ok(self.client.batch_execute(text)?)
    }

    /// Writing transactions have the isolation of the server's `default_transaction_isolation`. At READ
    /// COMMITTED, its default, an UPDATE that waited for a row continues with the newer row, as InnoDB does
    /// at REPEATABLE READ. PostgreSQL's own REPEATABLE READ would refuse each of them. Read-only transactions
    /// have one snapshot for all their statements.
    fn use_transactions(&mut self) -> Result<(), SqlError> {
        let isolation: String =
            self.client.query_one("SHOW default_transaction_isolation", &[])?.try_get(0)?;
        if isolation.starts_with("read ") {
            self.begin_reading = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";
        }
        Ok(())
    }

    fn begin(&mut self, writes: bool) -> Result<(), SqlError> {
        self.execute(if writes { "BEGIN" } else { self.begin_reading })
    }

    fn load(&mut self, table: &str, mut rows: RowWriter) -> Result<(), SqlError> {
        let copy = self.client.copy_in(&format!("COPY {table} FROM STDIN"))?;
        let mut writer = BufWriter::with_capacity(COPY_BYTES, copy);
        let written = rows(&mut writer).and_then(|()| writer.flush());
        let (copy, _) = writer.into_parts();
        match written {
            // The server reports errors in the rows at the end.
            Ok(()) => Ok(copy.finish().map(drop)?),
            Err(error) => Err(match error.downcast::<Error>() {
                Ok(error) => error.into(),
                Err(error) => SqlError { class: Class::Transaction, message: error.to_string() },
            }),
        }
    }
}

/// Replaces `?` by `$1`, `$2` and so on. In our statements every `?` is a parameter.
fn numbered(text: &str) -> String {
    let mut parts = text.split('?');
    let mut numbered = parts.next().unwrap_or_default().to_owned();
    for (number, part) in (1..).zip(parts) {
        numbered.push_str(&format!("${number}{part}"));
    }
    numbered
}

fn config(endpoint: &Endpoint) -> Result<Config> {
    let mut config = Config::new();
    config.application_name("spindle");
    match endpoint {
        Endpoint::PostgresSocket { directory, port, user, database } => {
            config.host_path(directory).port(*port).user(user).dbname(database);
        }
        Endpoint::PostgresTcp { host, port, user, password, database } => {
            config.host(host).port(*port).user(user).password(password).dbname(database);
        }
        _ => bail!("{} is no PostgreSQL server", describe(endpoint)),
    }
    Ok(config)
}

/// The endpoint of a `postgresql://` URL. The default user is `postgres`, the default database is
/// `default_database`.
///
/// # Errors
/// A sentence about the URL.
pub fn parse_url(text: &str, default_database: &str) -> Result<Endpoint, String> {
    let config: Config = text.parse().map_err(|error: Error| error.to_string())?;
    let ([host], ports) = (config.get_hosts(), config.get_ports()) else {
        return Err("a URL of PostgreSQL names one host".to_owned());
    };
    let port = ports.first().copied().unwrap_or(DEFAULT_PORT);
    let user = config.get_user().unwrap_or("postgres").to_owned();
    let database = config.get_dbname().unwrap_or(default_database).to_owned();
    Ok(match host {
        Host::Unix(directory) => socket(directory.clone(), port, user, database),
        Host::Tcp(host) => {
            let password = String::from_utf8_lossy(config.get_password().unwrap_or_default()).into_owned();
            Endpoint::PostgresTcp { host: host.clone(), port, user, password, database }
        }
    })
}

fn socket(directory: PathBuf, port: u16, user: String, database: String) -> Endpoint {
    Endpoint::PostgresSocket { directory, port, user, database }
}

fn refused(endpoint: &Endpoint, error: &Error) -> anyhow::Error {
    anyhow!("connecting to {}: {}", describe(endpoint), sentence(error))
}

impl From<Error> for SqlError {
    fn from(error: Error) -> SqlError {
        let message = sentence(&error);
        match error.code() {
            Some(code) => SqlError { class: classify(code), message },
            None if is_broken(&error) => {
                let message = format!("the connection to the server broke: {message}");
                SqlError { class: Class::Fatal, message }
            }
            // A value of an unexpected type.
            None => SqlError { class: Class::Transaction, message },
        }
    }
}

fn is_broken(error: &Error) -> bool {
    let is_io = |source: &(dyn std::error::Error + 'static)| source.is::<std::io::Error>();
    error.is_closed() || std::error::Error::source(error).is_some_and(is_io)
}

/// The class of an SQLSTATE (appendix A of PostgreSQL's manual).
fn classify(code: &SqlState) -> Class {
    const RETRIED: [SqlState; 3] =
        [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED, SqlState::LOCK_NOT_AVAILABLE];
    /// The server shuts down or recovers, or its storage failed.
    const FATAL: [SqlState; 7] = [
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::DISK_FULL,
        SqlState::IO_ERROR,
        SqlState::DATA_CORRUPTED,
        SqlState::INDEX_CORRUPTED,
    ];
    if RETRIED.contains(code) {
        Class::Retry
    } else if FATAL.contains(code) || code.code().starts_with("08") {
        Class::Fatal
    } else if *code == SqlState::UNIQUE_VIOLATION {
        Class::Duplicate
    } else {
        Class::Transaction
    }
}

/// The server's own message, without the prefix of the crate.
fn sentence(error: &Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} (SQLSTATE {})", error.message(), error.code().code()),
        None => match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(
            numbered("SELECT ?, a FROM t WHERE b IN (?, ?)"),
            "SELECT $1, a FROM t WHERE b IN ($2, $3)"
        );
        assert_eq!(numbered("SELECT 1"), "SELECT 1");
    }

    #[test]
    fn errors_are_told_apart_by_their_state() {
        let check = |state: &str, class| assert_eq!(classify(&SqlState::from_code(state)), class, "{state}");
        for conflict in ["40001", "40P01", "55P03"] {
            check(conflict, Class::Retry);
        }
        for end in ["57P01", "57P03", "53100", "58030", "08006", "XX001"] {
            check(end, Class::Fatal);
        }
        check("23505", Class::Duplicate);
        // A violated foreign key, a statement after an error, a cancelled statement.
        for refusal in ["23503", "25P02", "57014"] {
            check(refusal, Class::Transaction);
        }
    }

    #[test]
    fn a_url_names_a_host_or_a_socket() {
        let tcp = Endpoint::PostgresTcp {
            host: "db.example".to_owned(),
            port: 5433,
            user: "me".to_owned(),
            password: "p@ss".to_owned(),
            database: "shop".to_owned(),
        };
        assert_eq!(parse_url("postgresql://me:p%40ss@db.example:5433/shop", "x"), Ok(tcp));
        let socket = socket("/run/pg".into(), DEFAULT_PORT, "postgres".to_owned(), "x".to_owned());
        assert_eq!(parse_url("postgresql://%2Frun%2Fpg", "x"), Ok(socket));
        assert!(parse_url("postgresql://a,b/c", "x").unwrap_err().contains("one host"));
        assert!(parse_url("postgresql://db.example:port/c", "x").is_err());
    }

    #[test]
    fn nobody_at_home_is_said_with_the_place() {
        let endpoint = socket("/nowhere".into(), DEFAULT_PORT, "me".to_owned(), "x".to_owned());
        let error = Postgres::connect(&endpoint).err().expect("nobody listens").to_string();
        assert!(error.starts_with("connecting to socket /nowhere/.s.PGSQL.5432: "), "{error}");
        assert!(error.contains("No such file or directory"), "{error}");
    }
}
