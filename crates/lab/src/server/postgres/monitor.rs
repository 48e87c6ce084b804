//! A connection that queries the server's settings and counters.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use spindle_load::Endpoint;
use spindle_load::sql::postgres::MAINTENANCE_DATABASE;
use spindle_load::sql::{Class, Session, SqlError, Statement, connect};

use super::telemetry::production::{self, SESSIONS_AT_WORK, UPTIME};
use super::telemetry::{
    CHECKPOINT_AGE, DEAD_ROWS, IO_WAITERS, LATCH_WAITERS, LOCK_WAITERS, LOG_LIMIT, PostgresTelemetry,
    SNAPSHOT_AGE,
};
use super::{DATABASE, cache};
use crate::server::connection::{self, Protocol, Scope};
use crate::server::settings::{Settings, plain_name};

pub(in crate::server) static PROTOCOL: Protocol = Protocol {
    speaks: |endpoint| matches!(endpoint, Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. }),
    connect: |endpoint, scope| Ok(Box::new(Monitor::connect(endpoint, scope)?)),
    fill_cache: cache::fill,
    telemetry: &PostgresTelemetry,
    production: &production::PRODUCTION,
};

/// A connection, and the query of [`connection::Monitor::counters`].
#[derive(Debug)]
struct Monitor {
    session: Box<dyn Session>,
    counters: Statement,
    scope: Scope,
}

impl Monitor {
    fn connect(endpoint: &Endpoint, scope: Scope) -> Result<Monitor> {
        let mut session = session(endpoint, scope)?;
        let statement = session.prepare("SELECT viewname FROM pg_views WHERE schemaname = 'pg_catalog'")?;
        let views: Vec<(Vec<u8>,)> = session.rows(statement, &[])?;
        let has = |view: &str| views.iter().any(|(name,)| name == view.as_bytes());
        let counters = session.prepare(&counters_question(scope, has))?;
        let mut monitor = Monitor { session, counters, scope };
        // The first answer reads the catalogs, which takes long where others keep the storage busy.
        connection::Monitor::counters(&mut monitor)?;
        Ok(monitor)
    }
}

impl Monitor {
    /// # Errors
    /// The setting is not there, or is read at the start alone.
    fn check_changeable(&mut self, name: &str) -> Result<()> {
        let context = self.session.prepare("SELECT context FROM pg_settings WHERE name = lower(?)")?;
        let found: Option<(Vec<u8>,)> =
            self.session.first(context, spindle_load::values![plain_name(name)])?;
        let Some((context,)) = found else { bail!("`{name}` is not a setting of the server") };
        let at_the_start = [&b"postmaster"[..], b"internal"].contains(&context.as_slice());
        ensure!(!at_the_start, "`{name}` can be set at the server's start alone");
        Ok(())
    }

    /// When this process read the server's files of settings.
    fn loaded_at(&mut self) -> Result<Vec<u8>> {
        let statement = self.session.prepare("SELECT pg_conf_load_time()::text")?;
        let found: Option<(Vec<u8>,)> = self.session.first(statement, &[])?;
        Ok(found.map(|(time,)| time).unwrap_or_default())
    }
}

/// A trial's is in its own database once that is there, because a session sees the tables of one database only.
fn session(endpoint: &Endpoint, scope: Scope) -> Result<Box<dyn Session>> {
    let mut session = connect(endpoint)?;
    let Endpoint::PostgresSocket { directory, port, user, database } = endpoint else { return Ok(session) };
    if scope == Scope::Server || database != MAINTENANCE_DATABASE {
        return Ok(session);
    }
    let own = session.prepare("SELECT 1::bigint FROM pg_database WHERE datname = ?")?;
    let found: Option<(i64,)> = session.first(own, spindle_load::values![DATABASE])?;
    if found.is_none() {
        return Ok(session);
    }
    connect(&Endpoint::PostgresSocket {
        directory: directory.clone(),
        port: *port,
        user: user.clone(),
        database: DATABASE.to_owned(),
    })
}

/// Longest time until a process has read the settings.
const RELOAD_PATIENCE: Duration = Duration::from_secs(10);
const RELOAD_STEP: Duration = Duration::from_millis(5);

impl connection::Monitor for Monitor {
    fn settings(&mut self, names: &[String]) -> Result<Settings> {
        // NULL for an unknown setting.
        let current = self.session.prepare("SELECT current_setting(?, true)")?;
        let mut known = BTreeMap::new();
        for name in names {
            let found: Result<Option<(Option<Vec<u8>>,)>, SqlError> =
                self.session.first(current, spindle_load::values![name.as_str()]);
            let value = match found {
                // A user of a server that is not ours may not see every setting.
                Err(error) if self.scope == Scope::Server && error.class != Class::Fatal => continue,
                found => found?,
            };
            if let Some((Some(value),)) = value {
                known.insert(name.clone(), String::from_utf8_lossy(&value).into_owned());
            }
        }
        Ok(known)
    }

    fn set(&mut self, settings: &Settings) -> Result<()> {
        for (name, value) in settings {
            self.check_changeable(name)?;
            let statement =
                format!("ALTER SYSTEM SET {} = '{}'", plain_name(name), value.replace('\'', "''"));
            self.session.execute(&statement).with_context(|| format!("telling the server: {statement}"))?;
        }
        if settings.is_empty() {
            return Ok(());
        }
        let loaded_at = self.loaded_at()?;
        self.session.read("SELECT pg_reload_conf()").context("telling the server to read its settings")?;
        // Each process reads them by itself; this one has when it says so.
        let end = Instant::now() + RELOAD_PATIENCE;
        while self.loaded_at()? == loaded_at {
            ensure!(Instant::now() < end, "the server has not read its settings");
            sleep(RELOAD_STEP);
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        let pairs: Vec<(Vec<u8>, Option<Vec<u8>>)> = self.session.rows(self.counters, &[])?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let number = |value: Option<Vec<u8>>| text(value?).parse().ok();
        Ok(pairs.into_iter().filter_map(|(name, value)| Some((text(name), number(value)?))).collect())
    }
}

/// Query for the cumulative statistics of the database, of checkpoints and of the log, as `view.column`, and
/// for levels. Views differ between versions.
fn counters_question(scope: Scope, has_view: impl Fn(&str) -> bool) -> String {
    const VIEWS: [&str; 4] = ["pg_stat_database", "pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal"];
    let views = VIEWS.iter().filter(|view| has_view(view)).map(|view| {
        if *view == VIEWS[0] && scope == Scope::Server {
            return sums_question(view);
        }
        let of_the_database =
            if *view == VIEWS[0] { format!(" WHERE datname = '{DATABASE}'") } else { String::new() };
        format!(
            "SELECT '{view}.' || key, value FROM (SELECT to_jsonb(v) - 'numbackends' AS all_columns FROM {view} v{of_the_database}) w, \
             jsonb_each_text(all_columns)"
        )
    });
    let io = has_view("pg_stat_io").then(io_question);
    let levels = match scope {
        Scope::Trial => levels_questions().to_vec(),
        Scope::Server => levels_of_server().to_vec(),
    };
    views.chain(io).chain(levels).collect::<Vec<_>>().join(" UNION ALL ")
}

/// The sums of the columns of a view that are numbers.
fn sums_question(view: &str) -> String {
    /// Without a question mark, which would be a parameter.
    const NUMBER: &str = "^-{0,1}[0-9]+[.]{0,1}[0-9]*$";
    format!(
        "SELECT '{view}.' || key, SUM(CASE WHEN value ~ '{NUMBER}' THEN value::numeric END)::text \
         FROM (SELECT to_jsonb(v) - 'numbackends' - 'datid' - 'datname' AS all_columns FROM {view} v) w, \
         jsonb_each_text(all_columns) GROUP BY key"
    )
}

/// Writes and fsyncs of the sessions, and of everybody on the log, as `pg_stat_io...`.
fn io_question() -> String {
    let sum = |name: &str, column: &str, which: &str| {
        format!("SELECT 'pg_stat_io.{name}', SUM({column})::text FROM pg_stat_io WHERE {which}")
    };
    // The log is among them from PostgreSQL 18 on.
    let [sessions, log] = ["object = 'relation' AND backend_type = 'client backend'", "object = 'wal'"];
    [
        sum("client_backend.writes", "writes", sessions),
        sum("wal.writes", "writes", log),
        sum("wal.fsyncs", "fsyncs", log),
    ]
    .join(" UNION ALL ")
}

fn levels_questions() -> [String; 4] {
    [
        waiters_question(),
        format!("SELECT '{DEAD_ROWS}', COALESCE(SUM(n_dead_tup), 0)::text FROM pg_stat_user_tables"),
        limit_question(),
        format!(
            "SELECT '{CHECKPOINT_AGE}', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::text \
             FROM pg_control_checkpoint()"
        ),
    ]
}

/// Without the dead rows, for which each table of the database is looked at. A replica writes no log of its own.
/// Sessions are unknown to a user who may not see all of them.
fn levels_of_server() -> [String; 5] {
    [
        waiters_question(),
        limit_question(),
        format!(
            "SELECT '{CHECKPOINT_AGE}', pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() \
             ELSE pg_current_wal_insert_lsn() END, redo_lsn)::text FROM pg_control_checkpoint()"
        ),
        format!(
            "SELECT '{SESSIONS_AT_WORK}', (CASE WHEN COUNT(state) < COUNT(*) THEN NULL \
             ELSE COUNT(*) FILTER (WHERE state = 'active') END)::text FROM pg_stat_activity \
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        ),
        format!(
            "SELECT '{UPTIME}', extract(epoch FROM clock_timestamp() - pg_postmaster_start_time())::text"
        ),
    ]
}

fn limit_question() -> String {
    format!("SELECT '{LOG_LIMIT}', pg_size_bytes(current_setting('max_wal_size'))::text")
}

fn waiters_question() -> String {
    let waiters = |kind: &str| format!("COUNT(*) FILTER (WHERE wait_event_type = '{kind}')");
    format!(
        "SELECT name, value::text FROM (SELECT {} AS of_lock, {} AS of_latch, {} AS of_io, \
         COALESCE(MAX(age(backend_xmin)) FILTER (WHERE pid <> pg_backend_pid()), 0) AS snapshot \
         FROM pg_stat_activity) a, LATERAL (VALUES ('{LOCK_WAITERS}', of_lock), ('{LATCH_WAITERS}', of_latch), \
         ('{IO_WAITERS}', of_io), ('{SNAPSHOT_AGE}', snapshot::bigint)) AS levels(name, value)",
        waiters("Lock"),
        waiters("LWLock"),
        waiters("IO"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_that_a_version_lacks_are_not_asked_for() {
        let question = counters_question(Scope::Trial, |view| view != "pg_stat_checkpointer");
        assert!(
            question.contains("FROM pg_stat_wal ") && !question.contains("pg_stat_checkpointer"),
            "{question}"
        );
    }

    #[test]
    fn a_whole_server_is_asked_for_the_sums_of_its_databases_and_for_no_table() {
        let question = counters_question(Scope::Server, |_| true);
        assert!(question.contains("SUM(CASE WHEN value") && !question.contains("datname = "), "{question}");
        // A question mark would be a parameter.
        assert!(!question.contains("pg_stat_user_tables") && !question.contains('?'), "{question}");
    }
}
