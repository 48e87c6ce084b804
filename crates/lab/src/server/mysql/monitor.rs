//! A connection that queries the server's settings and counters.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use spindle_load::Endpoint;
use spindle_load::sql::mysql::connect;

use super::cache;
use super::settings::size_bytes;
use super::telemetry::production::{self, CHECKPOINT_LSN, WRITTEN_LSN};
use super::telemetry::{
    CHECKPOINT_AGE, HISTORY_LIST, LOG_CAPACITIES, LOG_FILES, MASTER_LOOPS, MysqlTelemetry, OLD_PAGES,
};
use crate::server::connection::{self, Protocol, Scope};
use crate::server::settings::{Settings, plain_name};

pub(in crate::server) static PROTOCOL: Protocol = Protocol {
    speaks: |endpoint| matches!(endpoint, Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. }),
    connect: |endpoint, scope| Ok(Box::new(Monitor::connect(endpoint, scope)?)),
    fill_cache: cache::fill,
    telemetry: &MysqlTelemetry,
    production: &production::PRODUCTION,
};

#[derive(Debug)]
struct Monitor {
    connection: Conn,
    /// Size of the redo log's files; asked for once, where the server does not count it.
    log_files_bytes: Option<Option<f64>>,
    scope: Scope,
    /// The question for counts of transactions beside those of `SHOW GLOBAL STATUS`.
    transactions: Option<String>,
}

impl Monitor {
    fn connect(endpoint: &Endpoint, scope: Scope) -> Result<Monitor> {
        let mut connection = connect(endpoint)?;
        let transactions = match scope {
            Scope::Trial => None,
            Scope::Server => production::transactions_question(&mut connection),
        };
        Ok(Monitor { connection, log_files_bytes: None, scope, transactions })
    }

    /// Adds what [`production`] needs and the server has not told yet.
    fn add_for_production(&mut self, counters: &mut BTreeMap<String, f64>) -> Result<()> {
        if let Some(question) = &self.transactions {
            let rows: Vec<(String, f64)> =
                self.connection.query(question).context("asking the server for its transactions")?;
            counters.extend(rows);
        }
        self.add_checkpoint(counters);
        if !WRITTEN_LSN.iter().any(|name| counters.contains_key(*name))
            && let Some(report) = self.report()
        {
            let positions = [
                (WRITTEN_LSN[0], number_behind(&report, "Log sequence number")),
                (CHECKPOINT_LSN[0], number_behind(&report, "Last checkpoint at")),
                (CHECKPOINT_AGE, checkpoint_age(&report)),
            ];
            let known = positions.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            counters.extend(known);
        }
        Ok(())
    }

    /// Adds what MariaDB and Percona Server have among their counters, by the names there. What the server
    /// does not report stays unknown.
    fn add_missing(&mut self, counters: &mut BTreeMap<String, f64>) {
        if !counters.contains_key(HISTORY_LIST) {
            let question = format!(
                "SELECT '{HISTORY_LIST}', COUNT FROM information_schema.INNODB_METRICS \
                 WHERE NAME = 'trx_rseg_history_len' AND STATUS = 'enabled' UNION ALL \
                 SELECT '{OLD_PAGES}', SUM(OLD_DATABASE_PAGES) FROM information_schema.INNODB_BUFFER_POOL_STATS"
            );
            // MySQL before 5.6 has no such tables, and a server that is not ours may not show them.
            let rows: Vec<(String, f64)> = self.connection.query(question).unwrap_or_default();
            counters.extend(rows);
        }
        self.add_checkpoint(counters);
    }

    fn add_checkpoint(&mut self, counters: &mut BTreeMap<String, f64>) {
        let lsn = |which: &str| counters.get(&format!("Innodb_redo_log_{which}_lsn"));
        if let (false, Some(written), Some(checkpoint)) =
            (counters.contains_key(CHECKPOINT_AGE), lsn("current"), lsn("checkpoint"))
        {
            counters.insert(CHECKPOINT_AGE.to_owned(), written - checkpoint);
        }
        if !LOG_CAPACITIES.iter().any(|name| counters.contains_key(*name)) {
            let bytes = *self.log_files_bytes.get_or_insert_with(|| {
                let product = "SELECT @@innodb_log_file_size * @@innodb_log_files_in_group";
                self.connection.query_first(product).unwrap_or_default()
            });
            counters.extend(bytes.map(|bytes| (LOG_FILES.to_owned(), bytes)));
        }
    }

    /// Adds the rounds of the master thread, which MariaDB and Percona Server have among their counters, and
    /// the age of the checkpoint if it is still missing.
    fn add_from_report(&mut self, counters: &mut BTreeMap<String, f64>) {
        if counters.contains_key(MASTER_LOOPS[0]) {
            return;
        }
        let Some(report) = self.report() else { return };
        if let Some([active, idle]) = master_loops(&report) {
            counters.extend([(MASTER_LOOPS[0].to_owned(), active), (MASTER_LOOPS[1].to_owned(), idle)]);
        }
        if let (false, Some(age)) = (counters.contains_key(CHECKPOINT_AGE), checkpoint_age(&report)) {
            counters.insert(CHECKPOINT_AGE.to_owned(), age);
        }
        // MySQL 5.5 has no tables of metrics.
        for (name, head) in [(HISTORY_LIST, "History list length"), (OLD_PAGES, "Old database pages")] {
            if let (false, Some(value)) = (counters.contains_key(name), number_behind(&report, head)) {
                counters.insert(name.to_owned(), value);
            }
        }
    }

    /// InnoDB's report. A server that is not ours may not show it.
    fn report(&mut self) -> Option<String> {
        let status: Option<(String, String, String)> =
            self.connection.query_first("SHOW ENGINE INNODB STATUS").unwrap_or_default();
        status.map(|(_, _, report)| report)
    }

    /// All rows of a statement with a name and a value per row.
    fn pairs(&mut self, statement: &str) -> Result<Vec<(String, String)>> {
        self.connection.query(statement).with_context(|| format!("asking the server: {statement}"))
    }
}

impl connection::Monitor for Monitor {
    fn settings(&mut self, names: &[String]) -> Result<Settings> {
        let all: Settings = self.pairs("SHOW GLOBAL VARIABLES")?.into_iter().collect();
        let known = names.iter().filter_map(|name| Some((name.clone(), all.get(&plain_name(name))?.clone())));
        Ok(known.collect())
    }

    fn set(&mut self, settings: &Settings) -> Result<()> {
        for (name, value) in settings {
            let statement = format!("SET GLOBAL {} = {}", plain_name(name), written(value));
            self.connection
                .query_drop(&statement)
                .with_context(|| format!("telling the server: {statement}"))?;
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        let pairs = self.pairs("SHOW GLOBAL STATUS")?;
        let mut counters: BTreeMap<String, f64> =
            pairs.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect();
        match self.scope {
            Scope::Trial => {
                self.add_missing(&mut counters);
                self.add_from_report(&mut counters);
            }
            Scope::Server => self.add_for_production(&mut counters)?,
        }
        Ok(counters)
    }
}

/// The value as a statement has it: in an option, unlike there, a size may have a suffix.
fn written(value: &str) -> String {
    match size_bytes(value) {
        Some(bytes) => bytes.to_string(),
        None if value.parse::<f64>().is_ok_and(f64::is_finite) => value.to_owned(),
        None => format!("'{}'", value.replace('\\', "\\\\").replace('\'', "''")),
    }
}

/// Loops of the master thread, with and without work, in InnoDB's report.
fn master_loops(report: &str) -> Option<[f64; 2]> {
    let (_, loops) = report.split_once("srv_master_thread loops: ")?;
    let count = |name: &str| {
        let (before, _) = loops.lines().next()?.split_once(name)?;
        before.split_whitespace().next_back()?.parse().ok()
    };
    // MySQL 5.5 counts the loops of a second, whether with work or without.
    count(" srv_active")
        .zip(count(" srv_idle"))
        .map(<[f64; 2]>::from)
        .or_else(|| Some([count(" 1_second")?, 0.0]))
}

/// Bytes of log since the last checkpoint, in InnoDB's report.
fn checkpoint_age(report: &str) -> Option<f64> {
    Some(number_behind(report, "Log sequence number")? - number_behind(report, "Last checkpoint at")?)
}

/// The number of the first line that begins so.
fn number_behind(report: &str, head: &str) -> Option<f64> {
    let line = report.lines().find_map(|line| line.strip_prefix(head))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_written_as_a_statement_has_it() {
        let check = |value: &str, expect: &str| assert_eq!(written(value), expect);
        check("2000", "2000");
        check("64M", "67108864");
        check("0.5", "0.5");
        check("OFF", "'OFF'");
        check("a'b\\", "'a''b\\\\'");
    }

    #[test]
    fn the_loops_of_the_master_thread_are_in_the_report_of_every_version() {
        let of = |line: &str| {
            master_loops(&format!(
                "BACKGROUND THREAD\n-----------------\n{line}\nsrv_master_thread log flush: 3\n"
            ))
        };
        assert_eq!(
            of("srv_master_thread loops: 12 srv_active, 0 srv_shutdown, 345 srv_idle"),
            Some([12.0, 345.0])
        );
        let old = "srv_master_thread loops: 7 1_second, 7 sleeps, 0 10_second, 1 background, 1 flush";
        assert_eq!(of(old), Some([7.0, 0.0]));
        assert_eq!(of("nothing of this kind"), None);
    }

    #[test]
    fn the_age_of_the_checkpoint_is_in_the_report() {
        let report = "---\nLOG\n---\nLog sequence number 8204028\nLog flushed up to   8203000\nLast checkpoint at  8200000\n";
        assert_eq!(checkpoint_age(report), Some(4028.0));
        assert_eq!(checkpoint_age("LOG\n"), None);
        let report = "History list length 43\nOld database pages     855816\n";
        assert_eq!(number_behind(report, "History list length"), Some(43.0));
        assert_eq!(number_behind(report, "Old database pages"), Some(855_816.0));
    }
}
