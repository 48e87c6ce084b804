//! The workload `sysbench`: the tool's own OLTP scripts. Their native counterparts are in
//! [`crate::workloads::oltp`], which also checks the tables.

use std::fmt::Display;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::foreign::sysbench::{self, output};
use crate::foreign::{self, Figures, Length, Program, Tool};
use crate::protocol::{Endpoint, KindSummary, Metric, Second};
use crate::sql::{connect_and_create_database, describe};
use crate::workload::{
    Check, Complaint, Data, Declared, Example, Facts, OnProgress, Progress, TERMINALS_MAX, Target, Workload,
    default_number, whole_number,
};
use crate::workloads::oltp::{self, Distribution, Script};
use spindle_base::child::RunAs;
use spindle_base::histogram;

/// Threads that fill tables, one table at a time each.
const LOAD_THREADS: u32 = 4;

pub const FACTS: Facts = Facts {
    example: Example::of_size(
        "rows",
        r#"{"script": "read-write", "tables": 10, "distribution": "uniform", "terminals": 16}"#,
    ),
    runs_on: &[Target::Mysql, Target::Postgres],
    ..Facts::FOREIGN
};

/// The OLTP workloads of sysbench, executed by sysbench.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Script of the tool.
    #[arg(long, value_enum, default_value_t = Script::ReadWrite)]
    pub script: Script,
    /// Number of tables.
    #[arg(long, default_value_t = 10, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000))]
    pub tables: u32,
    /// Initial rows of each table, about 240 bytes each.
    #[arg(long, default_value_t = 100_000, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rows: u32,
    /// Distribution of the requested rows. The tool's own default is `special`.
    #[arg(long, value_enum)]
    pub distribution: Distribution,
    /// Number of concurrent threads. Each has a connection.
    #[serde(default = "default_number::<8, u32>")]
    #[arg(long, default_value_t = 8, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Every statement is its own transaction (`--skip-trx`).
    #[serde(default)]
    #[arg(long)]
    pub autocommit: bool,
    /// Program of the tool: a path, or a name that is searched in `PATH`.
    #[serde(default = "sysbench::path")]
    #[arg(long, default_value = sysbench::NAME)]
    pub program: PathBuf,
}

impl Declared for Spec {
    fn contradiction(&self) -> Option<Complaint> {
        let complaint = "`zipfian` came to sysbench after version 1.0; the native workload `oltp` has it";
        (self.distribution == Distribution::Zipfian).then(|| ("distribution", complaint.to_owned()))
    }

    fn data(&self) -> Option<Data> {
        self.native().data()
    }

    /// Names the tool's rows, which differ from those of the native workload.
    fn data_set(&self) -> String {
        self.native().data_set().replacen("oltp", "sysbench", 1)
    }

    fn deviations(&self) -> Vec<&'static str> {
        foreign::DEVIATIONS.to_vec()
    }

    fn workload(&self, run_as: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(Sysbench { native: self.native(), spec: self.clone(), run_as }))
    }
}

impl Spec {
    /// The native counterpart.
    fn native(&self) -> oltp::Spec {
        oltp::Spec {
            script: self.script,
            tables: self.tables,
            rows: self.rows,
            distribution: self.distribution,
            rand_zipfian_exp: None,
            terminals: self.terminals,
            autocommit: self.autocommit,
            // The tool's defaults.
            point_selects: 10,
            range_size: 100,
            rate: None,
        }
    }

    fn script(&self) -> &'static str {
        match self.script {
            Script::ReadWrite => "oltp_read_write",
            Script::ReadOnly => "oltp_read_only",
            Script::WriteOnly => "oltp_write_only",
            Script::PointSelect => "oltp_point_select",
            Script::Insert => "oltp_insert",
            Script::UpdateIndex => "oltp_update_index",
            Script::UpdateNonIndex => "oltp_update_non_index",
            Script::Delete => "oltp_delete",
        }
    }

    /// The command without its verb.
    fn command(&self, endpoint: &Endpoint, terminals: u32, seed: u64) -> Result<Command> {
        let mut command = sysbench::command(&self.program, self.script(), terminals, seed);
        command.args([
            format!("--rand-type={}", self.distribution.name()),
            format!("--tables={}", self.tables),
            format!("--table-size={}", self.rows),
            format!("--skip-trx={}", if self.autocommit { "on" } else { "off" }),
        ]);
        connect(&mut command, endpoint)?;
        Ok(command)
    }
}

/// Passes the address of the database to the tool. A password goes into the environment, because options are
/// visible to all users. The tool's client libraries read it there if no option has one. The tool's own
/// `--config-file` loses blanks.
fn connect(command: &mut Command, endpoint: &Endpoint) -> Result<()> {
    let at = |host: &dyn Display, port: &u16| vec![format!("host={host}"), format!("port={port}")];
    let (driver, mut options, user, database) = match endpoint {
        Endpoint::MysqlSocket { path, user, database } => {
            ("mysql", vec![format!("socket={}", path.display())], user, database)
        }
        Endpoint::MysqlTcp { host, port, user, password, database } => {
            command.env("MYSQL_PWD", password);
            ("mysql", at(host, port), user, database)
        }
        Endpoint::PostgresSocket { directory, port, user, database } => {
            ("pgsql", at(&directory.display(), port), user, database)
        }
        Endpoint::PostgresTcp { host, port, user, password, database } => {
            command.env("PGPASSWORD", password);
            ("pgsql", at(host, port), user, database)
        }
        Endpoint::Sqlite { .. } | Endpoint::Directory { .. } | Endpoint::Mock => {
            bail!("sysbench cannot reach {}", describe(endpoint))
        }
    };
    options.extend([format!("user={user}"), format!("db={database}")]);
    command.arg(format!("--db-driver={driver}"));
    command.args(options.iter().map(|option| format!("--{driver}-{option}")));
    Ok(())
}

#[derive(Debug)]
struct Sysbench {
    spec: Spec,
    native: oltp::Spec,
    run_as: RunAs,
}

impl Workload for Sysbench {
    fn kinds(&self) -> &'static [&'static str] {
        self.native.kinds()
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    /// Runs the tool's own `prepare`, which does not report progress.
    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let spec = &self.spec;
        let rows_total = u64::from(spec.tables) * u64::from(spec.rows);
        progress(Progress { rows_done: 0, rows_total })?;
        let mut session = connect_and_create_database(endpoint)?;
        self.native.drop_tables(&mut *session)?;
        sysbench::prepare(spec.command(endpoint, spec.tables.min(LOAD_THREADS), seed)?, self.program())?;
        self.native.finish_load(&mut *session)?;
        progress(Progress { rows_done: rows_total, rows_total })
    }

    fn tool(&self) -> Option<&dyn Tool> {
        Some(self)
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        self.native.verify(endpoint)
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        self.native.metric(kinds, duration_s)
    }
}

impl Tool for Sysbench {
    fn program(&self) -> Program<'_> {
        sysbench::program(&self.spec.program, self.run_as)
    }

    fn command(&self, endpoint: &Endpoint, seed: u64, length: Length) -> Result<Command> {
        Ok(sysbench::run(self.spec.command(endpoint, self.spec.terminals, seed)?, length))
    }

    fn second(&self, line: &str) -> Result<Option<Second>> {
        let Some(second) = output::second(line)? else { return Ok(None) };
        let transactions = output::number_after(second, "tps:")?.round() as u64;
        let p95_ms = Some(output::number_after(second, "lat (ms,95%):")?);
        Ok(Some(Second { transactions, p95_ms, ..Second::default() }))
    }

    fn figures(&self, lines: &[String]) -> Result<Figures> {
        let report = output::report(lines)?;
        let committed = output::number(lines, "transactions:")? as u64;
        ensure!(
            committed == report.event_count,
            "{} events, and {committed} transactions",
            report.event_count
        );
        let kind = KindSummary {
            name: self.kinds()[0].to_owned(),
            committed,
            retried: output::number(lines, "ignored errors:")? as u64,
            histogram: histogram::encode(&report.latencies),
            ..KindSummary::default()
        };
        Ok((report.duration, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload() -> Sysbench {
        let spec = r#"{"script":"read-write","tables":2,"rows":10,"distribution":"uniform","terminals":3}"#;
        let spec: Spec = serde_json::from_str(spec).unwrap();
        Sysbench { native: spec.native(), spec, run_as: RunAs::Caller }
    }

    #[test]
    fn a_password_is_not_among_the_arguments() {
        let check = |endpoint: Endpoint, variable: &str| {
            let command = workload().spec.command(&endpoint, 1, 1).unwrap();
            assert!(!command.get_args().any(|argument| argument.to_string_lossy().contains("p#w")));
            let variables: Vec<_> = command.get_envs().collect();
            assert_eq!(variables, [(variable.as_ref(), Some("p#w".as_ref()))]);
        };
        let words = || ["db.example", "me", "p#w", "shop"].map(str::to_owned);
        let [host, user, password, database] = words();
        check(Endpoint::MysqlTcp { host, port: 1, user, password, database }, "MYSQL_PWD");
        let [host, user, password, database] = words();
        check(Endpoint::PostgresTcp { host, port: 1, user, password, database }, "PGPASSWORD");
    }

    #[test]
    fn a_second_is_translated() {
        let workload = workload();
        let line = "[ 1s ] thds: 1 tps: 321.66 qps: 6433.20 (r/w/o: 4503.24/1286.64/643.32) lat (ms,95%): 4.10 err/s: 0.00 reconn/s: 0.00";
        let second = workload.second(line).unwrap().unwrap();
        assert_eq!((second.transactions, second.p50_ms, second.p95_ms), (322, None, Some(4.1)));
        assert!(workload.second("[ 1s ] thds: 1 tps: -").is_err());
        assert_eq!(workload.second("Threads started!").unwrap(), None);
    }
}
