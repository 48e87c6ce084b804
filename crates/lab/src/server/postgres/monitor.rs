//! A connection that queries the server's settings and counters.

use std::collections::BTreeMap;

use anyhow::Result;
use spindle_load::Endpoint;
use spindle_load::sql::{Session, Statement, connect};

use super::DATABASE;
use super::telemetry::{
    CHECKPOINT_AGE, DEAD_ROWS, IO_WAITERS, LATCH_WAITERS, LOCK_WAITERS, LOG_LIMIT, PostgresTelemetry,
    SNAPSHOT_AGE,
};
use crate::server::connection::{self, Protocol};
use crate::server::settings::Settings;

pub(in crate::server) static PROTOCOL: Protocol = Protocol {
    speaks: |endpoint| matches!(endpoint, Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. }),
    connect: |endpoint| Ok(Box::new(Monitor::connect(endpoint)?)),
    telemetry: &PostgresTelemetry,
};

/// A connection, and the query of [`connection::Monitor::counters`].
#[derive(Debug)]
struct Monitor {
    session: Box<dyn Session>,
    counters: Statement,
}

impl Monitor {
    fn connect(endpoint: &Endpoint) -> Result<Monitor> {
        let mut session = connect(endpoint)?;
        let statement = session.prepare("SELECT viewname FROM pg_views WHERE schemaname = 'pg_catalog'")?;
        let views: Vec<(Vec<u8>,)> = session.rows(statement, &[])?;
        let has = |view: &str| views.iter().any(|(name,)| name == view.as_bytes());
        let counters = session.prepare(&counters_question(has))?;
        Ok(Monitor { session, counters })
    }
}

impl connection::Monitor for Monitor {
    fn settings(&mut self, names: &[String]) -> Result<Settings> {
        // NULL for an unknown setting.
        let current = self.session.prepare("SELECT current_setting(?, true)")?;
        let mut known = BTreeMap::new();
        for name in names {
            let value: Option<(Option<Vec<u8>>,)> =
                self.session.first(current, spindle_load::values![name.as_str()])?;
            if let Some((Some(value),)) = value {
                known.insert(name.clone(), String::from_utf8_lossy(&value).into_owned());
            }
        }
        Ok(known)
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
fn counters_question(has_view: impl Fn(&str) -> bool) -> String {
    const VIEWS: [&str; 4] = ["pg_stat_database", "pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal"];
    let views = VIEWS.iter().filter(|view| has_view(view)).map(|view| {
        let of_the_database =
            if *view == VIEWS[0] { format!(" WHERE datname = '{DATABASE}'") } else { String::new() };
        format!(
            "SELECT '{view}.' || key, value FROM (SELECT to_jsonb(v) - 'numbackends' AS all_columns FROM {view} v{of_the_database}) w, \
             jsonb_each_text(all_columns)"
        )
    });
    let io = has_view("pg_stat_io").then(io_question);
    views.chain(io).chain(levels_questions()).collect::<Vec<_>>().join(" UNION ALL ")
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
    let waiters = |kind: &str| format!("COUNT(*) FILTER (WHERE wait_event_type = '{kind}')");
    [
        format!(
            "SELECT name, value::text FROM (SELECT {} AS of_lock, {} AS of_latch, {} AS of_io, \
             COALESCE(MAX(age(backend_xmin)) FILTER (WHERE pid <> pg_backend_pid()), 0) AS snapshot \
             FROM pg_stat_activity) a, LATERAL (VALUES ('{LOCK_WAITERS}', of_lock), ('{LATCH_WAITERS}', of_latch), \
             ('{IO_WAITERS}', of_io), ('{SNAPSHOT_AGE}', snapshot::bigint)) AS levels(name, value)",
            waiters("Lock"),
            waiters("LWLock"),
            waiters("IO"),
        ),
        format!("SELECT '{DEAD_ROWS}', COALESCE(SUM(n_dead_tup), 0)::text FROM pg_stat_user_tables"),
        format!("SELECT '{LOG_LIMIT}', pg_size_bytes(current_setting('max_wal_size'))::text"),
        format!(
            "SELECT '{CHECKPOINT_AGE}', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::text \
             FROM pg_control_checkpoint()"
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_that_a_version_lacks_are_not_asked_for() {
        let question = counters_question(|view| view != "pg_stat_checkpointer");
        assert!(
            question.contains("FROM pg_stat_wal ") && !question.contains("pg_stat_checkpointer"),
            "{question}"
        );
    }
}
