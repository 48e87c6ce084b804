//! A connection that queries the server's settings and counters.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;
use spindle_load::Endpoint;
use spindle_load::sql::mysql::connect;

use super::settings::size_bytes;
use super::telemetry::{MASTER_LOOPS, MysqlTelemetry};
use crate::server::connection::{self, Protocol};
use crate::server::settings::{Settings, plain_name};

pub(in crate::server) static PROTOCOL: Protocol = Protocol {
    speaks: |endpoint| matches!(endpoint, Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. }),
    connect: |endpoint| Ok(Box::new(Monitor(connect(endpoint)?))),
    telemetry: &MysqlTelemetry,
};

#[derive(Debug)]
struct Monitor(Conn);

impl Monitor {
    /// Adds levels that MariaDB and Percona Server have among their counters, by their names there. A level
    /// that the server does not report stays unknown.
    fn add_levels(&mut self, counters: &mut BTreeMap<String, f64>) {
        const HISTORY: &str = "Innodb_history_list_length";
        const AGE: &str = "Innodb_checkpoint_age";
        // MySQL before 5.6 has no such table, and a server that is not ours may not show it.
        const QUERY: &str = "SELECT COUNT FROM information_schema.INNODB_METRICS \
                             WHERE NAME = 'trx_rseg_history_len' AND STATUS = 'enabled'";
        if !counters.contains_key(HISTORY) {
            let length = self.0.query_first(QUERY).unwrap_or_default();
            counters.extend(length.map(|length: f64| (HISTORY.to_owned(), length)));
        }
        let lsn = |which: &str| counters.get(&format!("Innodb_redo_log_{which}_lsn"));
        if let (false, Some(written), Some(checkpoint)) =
            (counters.contains_key(AGE), lsn("current"), lsn("checkpoint"))
        {
            counters.insert(AGE.to_owned(), written - checkpoint);
        }
    }

    /// Adds the rounds of the master thread, which MariaDB and Percona Server have among their counters.
    fn add_master_loops(&mut self, counters: &mut BTreeMap<String, f64>) {
        if counters.contains_key(MASTER_LOOPS[0]) {
            return;
        }
        // A server that is not ours may not show it.
        let status: Option<(String, String, String)> =
            self.0.query_first("SHOW ENGINE INNODB STATUS").unwrap_or_default();
        if let Some([active, idle]) = status.and_then(|(_, _, text)| master_loops(&text)) {
            counters.extend([(MASTER_LOOPS[0].to_owned(), active), (MASTER_LOOPS[1].to_owned(), idle)]);
        }
    }

    /// All rows of a statement with a name and a value per row.
    fn pairs(&mut self, statement: &str) -> Result<Vec<(String, String)>> {
        self.0.query(statement).with_context(|| format!("asking the server: {statement}"))
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
            self.0.query_drop(&statement).with_context(|| format!("telling the server: {statement}"))?;
        }
        Ok(())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        let pairs = self.pairs("SHOW GLOBAL STATUS")?;
        let mut counters: BTreeMap<String, f64> =
            pairs.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect();
        self.add_levels(&mut counters);
        self.add_master_loops(&mut counters);
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
}
