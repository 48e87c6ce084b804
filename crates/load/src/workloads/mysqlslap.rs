//! The workload `mysqlslap`: MariaDB's own client (`mariadb-slap`) with its generated statements, as a
//! foreign tool.
//!
//! A run of the tool is a number of queries, not a duration. Runs follow each other, each on a new schema,
//! until the window has passed; the last one is not cut short. The metric is queries divided by the seconds
//! that the tool counts. These include its connects and queries, but not the creation and removal of the
//! schema, which remain in the figures of storage, server and CPU. The tool counts in milliseconds and
//! reports no latency of single queries. After a failed query it still exits with success, so any output
//! besides its figures is an error.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::foreign::{Figures, Length, Program, Tool};
use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::{connect_and_create_database, describe};
use crate::workload::{
    Check, Complaint, Data, Declared, Example, Facts, OnProgress, Progress, TERMINALS_MAX, Target, Workload,
    default_number, whole_number,
};
use spindle_base::child::RunAs;
use spindle_base::histogram;

const NAME: &str = "mariadb-slap";
const SCHEMA: &str = "mysqlslap";

/// Known deviations from a native workload, besides those of all foreign tools.
const DEVIATIONS: &[&str] = &[
    "The tool's runs follow each other until the window has passed. The figures of storage, server and CPU include \
     the creation and the removal of its schema; the metric does not.",
    "The tool reports no latencies and no seconds.",
    "The run before the window is killed at its beginning; the tool does not say how long its clients wait for COMMIT.",
];

/// The generated statements. Every client repeats a list of 11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LoadType {
    /// INSERT and SELECT alternately.
    Mixed,
    /// SELECT of the whole table.
    Read,
    /// INSERT.
    Write,
    /// UPDATE of one row, or of the whole table without `autoincrement`.
    Update,
    /// SELECT of one row. Needs `autoincrement`.
    Key,
}

pub const FACTS: Facts = Facts {
    example: Example::fixed(r#"{"load_type": "mixed", "terminals": 8, "queries": 1000, "engine": "innodb"}"#),
    runs_on: &[Target::Mysql],
    ..Facts::FOREIGN
};

/// The generated statements of mysqlslap, executed by MariaDB's mariadb-slap.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Generated statements.
    #[arg(long, value_enum)]
    pub load_type: LoadType,
    /// Number of concurrent clients (`--concurrency`).
    #[serde(default = "default_number::<8, u32>")]
    #[arg(long, default_value_t = 8, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Statements of one run, in total. Clients have equal shares, rounded down (`--number-of-queries`).
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000_000_000), example = 50_000)]
    pub queries: u32,
    /// Name of the storage engine.
    #[arg(long)]
    #[schemars(example = &"innodb")]
    pub engine: String,
    /// The table has a primary key (`--auto-generate-sql-add-autoincrement`).
    #[serde(default)]
    #[arg(long)]
    pub autoincrement: bool,
    /// Program of the tool: a path, or a name that is searched in `PATH`.
    #[serde(default = "program")]
    #[arg(long, default_value = NAME)]
    pub program: PathBuf,
}

fn program() -> PathBuf {
    NAME.into()
}

impl Declared for Spec {
    fn contradiction(&self) -> Option<Complaint> {
        shares_complaint(self.queries, self.terminals)
    }

    fn data(&self) -> Option<Data> {
        Some(Data { words: "99 rows".to_owned(), bytes: 1 << 20 })
    }

    fn data_set(&self) -> String {
        "mysqlslap".to_owned()
    }

    fn deviations(&self) -> Vec<&'static str> {
        DEVIATIONS.to_vec()
    }

    fn workload(&self, run_as: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(Mysqlslap { spec: self.clone(), run_as }))
    }
}

/// Every client needs at least one query: with a share of zero the tool makes one pass over its statements.
pub(super) fn shares_complaint(queries: u32, terminals: u32) -> Option<Complaint> {
    let sentence = || format!("{queries} are fewer than the {terminals} clients that share them");
    (queries < terminals).then(|| ("queries", sentence()))
}

#[derive(Debug)]
struct Mysqlslap {
    spec: Spec,
    run_as: RunAs,
}

impl Workload for Mysqlslap {
    fn kinds(&self) -> &'static [&'static str] {
        match self.spec.load_type {
            LoadType::Mixed => &["mixed"],
            LoadType::Read => &["read"],
            LoadType::Write => &["write"],
            LoadType::Update => &["update"],
            LoadType::Key => &["key"],
        }
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    /// Creates no table: every run of the tool makes its own.
    fn load(&self, endpoint: &Endpoint, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        connect_and_create_database(endpoint)?;
        progress(Progress { rows_done: 1, rows_total: 1 })
    }

    fn tool(&self) -> Option<&dyn Tool> {
        Some(self)
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect_and_create_database(endpoint)?;
        let text = format!("SELECT COUNT(*) FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = '{SCHEMA}'");
        let count = session.prepare(&text).context("looking for the tool's schema")?;
        let found = session.first(count, &[]).context("looking for the tool's schema")?;
        let passed = found == Some((0_u64,));
        let detail = if passed { "it is" } else { "it is still there" };
        Ok(vec![Check { name: "the schema is dropped".to_owned(), passed, detail: detail.to_owned() }])
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::committed_per_s("queries per second", kinds, duration_s)
    }
}

impl Tool for Mysqlslap {
    fn program(&self) -> Program<'_> {
        // Any line besides the figures.
        let is_complaint = |line: &str| !line.trim().is_empty() && line.split(',').count() != 7;
        let (path, run_as) = (&self.spec.program, self.run_as);
        Program { name: NAME, package: "mariadb-client", path, run_as, is_complaint }
    }

    fn repeats(&self) -> bool {
        true
    }

    fn command(&self, endpoint: &Endpoint, _: u64, _: Length) -> Result<Command> {
        let Spec { terminals, queries, .. } = self.spec;
        let mut command = Command::new(&self.spec.program);
        command.args(["--no-defaults", "--auto-generate-sql", "--csv", "--iterations=1"]);
        command.args([
            format!("--auto-generate-sql-load-type={}", self.kinds()[0]),
            format!("--concurrency={terminals}"),
            format!("--number-of-queries={queries}"),
            format!("--engine={}", self.spec.engine),
            format!("--create-schema={SCHEMA}"),
        ]);
        if self.spec.autoincrement {
            command.arg("--auto-generate-sql-add-autoincrement");
        }
        match endpoint {
            Endpoint::MysqlSocket { path, user, .. } => {
                command.args([format!("--socket={}", path.display()), format!("--user={user}")]);
            }
            Endpoint::MysqlTcp { host, port, user, password, .. } => {
                command.args([format!("--host={host}"), format!("--port={port}"), format!("--user={user}")]);
                command.args(["--protocol=tcp"]).env("MYSQL_PWD", password);
            }
            _ => bail!("mariadb-slap cannot reach {}", describe(endpoint)),
        }
        Ok(command)
    }

    /// The figures of all runs, one line each: engine, load type, mean, minimum and maximum seconds (all
    /// equal, for one run), clients, queries per client.
    fn figures(&self, output: &[String]) -> Result<Figures> {
        let mut duration = Duration::ZERO;
        let mut queries = 0;
        for line in output.iter().filter(|line| !line.trim().is_empty()) {
            let run = || {
                let fields: Vec<&str> = line.split(',').collect();
                let [_, load_type, mean_s, _, _, clients, queries_each] = fields[..] else { return None };
                let clients: u64 = clients.trim().parse().ok()?;
                let is_ours = load_type == self.kinds()[0] && clients == u64::from(self.spec.terminals);
                let seconds = Duration::try_from_secs_f64(mean_s.trim().parse().ok()?).ok()?;
                is_ours.then_some((seconds, clients * queries_each.trim().parse::<u64>().ok()?))
            };
            let (seconds, count) = run().with_context(|| format!("{line:?} are no figures"))?;
            ensure!(
                !seconds.is_zero(),
                "a run of less than a millisecond cannot be timed: more queries are needed"
            );
            duration += seconds;
            queries += count;
        }
        ensure!(!duration.is_zero() && queries > 0, "no figures");
        let kind = KindSummary {
            name: self.kinds()[0].to_owned(),
            committed: queries,
            histogram: histogram::encode(&histogram::new()),
            ..KindSummary::default()
        };
        Ok((duration, kind))
    }
}
