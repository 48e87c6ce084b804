//! What all connections of a query have in common, so that each server computes the same.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::plan::Refusal;
use crate::sql::print::quoted;

/// Settings of a session that change values.
const SETTINGS: [&str; 9] = [
    "sql_mode",
    "time_zone",
    "group_concat_max_len",
    "div_precision_increment",
    "character_set_client",
    "collation_connection",
    "default_week_format",
    "lc_time_names",
    "sql_big_selects",
];

/// Modes in which the same text is another query.
pub(crate) const OTHER_GRAMMARS: [&str; 6] = [
    "ANSI_QUOTES",
    "PIPES_AS_CONCAT",
    "NO_BACKSLASH_ESCAPES",
    "HIGH_NOT_PRECEDENCE",
    "IGNORE_SPACE",
    "ORACLE",
];

#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    values: Vec<(&'static str, String)>,
    version: String,
    is_autocommit: bool,
    /// The database in use.
    pub database: Option<String>,
    /// What NOW is for all fragments, in seconds.
    timestamp_s: f64,
}

impl Session {
    /// The settings of a connection, for the others.
    pub fn of(connection: &mut Conn) -> Result<Session> {
        let names = SETTINGS.map(|name| format!("@@SESSION.{name}")).join(", ");
        let row: Option<mysql::Row> = connection
            .query_first(format!("SELECT {names}, @@version, @@SESSION.autocommit, DATABASE()"))
            .context("asking for the session's settings")?;
        let mut values = row.map(super::texts).unwrap_or_default();
        let mut last = || values.pop().flatten();
        let (database, autocommit, version) = (last(), last(), last());
        let values = SETTINGS.into_iter().zip(values.into_iter().map(Option::unwrap_or_default)).collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Session {
            values,
            version: version.unwrap_or_default(),
            is_autocommit: autocommit.as_deref() == Some("1"),
            database,
            timestamp_s: now.as_secs_f64(),
        })
    }

    /// A setting whose value differs, with both.
    pub(crate) fn difference<'a>(&'a self, other: &'a Session) -> Option<(&'static str, &'a str, &'a str)> {
        let version = ("version", self.version.as_str(), other.version.as_str());
        let settings = self.values.iter().zip(&other.values);
        let settings = settings.map(|((name, one), (_, other))| (*name, one.as_str(), other.as_str()));
        [version].into_iter().chain(settings).find(|(_, one, other)| one != other)
    }

    fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// # Errors
    /// In its mode, texts mean something else than the planner reads.
    pub fn check(&self) -> Result<(), Refusal> {
        if !self.is_autocommit {
            return Err(Refusal("its connection is in a transaction".to_owned()));
        }
        let characters = self.value("character_set_client");
        if !characters.starts_with("utf8") {
            return Err(Refusal(format!("its characters are {characters}")));
        }
        let mode = self.value("sql_mode");
        match OTHER_GRAMMARS.iter().find(|other| mode.split(',').any(|part| part == **other)) {
            Some(other) => Err(Refusal(format!("its sql_mode has {other}"))),
            None => Ok(()),
        }
    }

    /// Gives a connection for fragments these settings.
    pub fn apply(&self, connection: &mut Conn) -> Result<()> {
        self.set(connection, self.value("sql_mode").to_owned())
    }

    /// Gives the merging connection these settings. A server grouped its columns already, and read its dates.
    pub fn apply_to_merge(&self, connection: &mut Conn) -> Result<()> {
        const NOT_AGAIN: [&str; 3] = ["ONLY_FULL_GROUP_BY", "NO_ZERO_DATE", "NO_ZERO_IN_DATE"];
        let mode = self.value("sql_mode").split(',');
        let kept: Vec<&str> = mode.filter(|part| !NOT_AGAIN.contains(part)).collect();
        self.set(connection, kept.join(","))
    }

    fn set(&self, connection: &mut Conn, sql_mode: String) -> Result<()> {
        let mut parts = vec![format!("timestamp = {}", self.timestamp_s)];
        for (name, value) in &self.values {
            let value = if *name == "sql_mode" { &sql_mode } else { value };
            let text = match value.parse::<u64>() {
                Ok(number) => number.to_string(),
                Err(_) => format!("'{}'", value.replace('\'', "''")),
            };
            parts.push(format!("{name} = {text}"));
        }
        connection
            .query_drop(format!("SET SESSION {}", parts.join(", ")))
            .context("giving a connection the session's settings")?;
        self.database.as_deref().map_or(Ok(()), |database| use_database(connection, database))
    }
}

pub(crate) fn use_database(connection: &mut Conn, database: &str) -> Result<()> {
    let using = || format!("using the database {database}");
    connection.query_drop(format!("USE {}", quoted(database))).with_context(using)
}
