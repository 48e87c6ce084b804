//! What a workload is, and what its clients do.

use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Result, bail};

use crate::foreign::Tool;
use crate::protocol::{Endpoint, KindSummary, WorkloadSpec};
use crate::sql::Engine;
use spindle_base::child::RunAs;

/// Each is a thread and a connection.
pub(crate) const TERMINALS_MAX: u64 = 10_000;
/// Transactions per second; more than any server on one machine answers.
const RATE_MAX: u64 = 1_000_000;

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub rows_done: u64,
    pub rows_total: u64,
}

/// Told now and then how far a load is. Its error ends the load, which returns it.
pub type OnProgress<'a> = dyn FnMut(Progress) -> Result<()> + 'a;

/// One verification of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub passed: bool,
    pub detail: String,
}

/// The figure of merit; higher is better.
#[derive(Debug, Clone, PartialEq)]
pub struct Headline {
    pub name: &'static str,
    pub value: f64,
}

pub trait Workload: Debug + Send + Sync {
    /// Names of the transaction kinds, in the order of their index.
    fn kinds(&self) -> &'static [&'static str];

    /// How many clients run at once.
    fn terminals(&self) -> u32;

    /// Whether terminals pause between transactions: open loop, keying and think times.
    fn pauses(&self) -> bool {
        false
    }

    /// Makes the database and fills it. The same seed makes the same rows.
    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()>;

    /// The program that is the clients; then nobody calls `connect`.
    fn tool(&self) -> Option<&dyn Tool> {
        None
    }

    /// Connects one client; `terminal` counts from zero.
    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>>;

    /// Checks that the database is consistent. No client may be running.
    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>>;

    fn headline(&self, kinds: &[KindSummary], duration_s: f64) -> Headline;
}

/// One terminal. The runner calls `choose`, notes the time, and calls `execute`.
pub trait Client: Debug + Send {
    /// Draws the next transaction and its input; its index in [`Workload::kinds`].
    fn choose(&mut self) -> usize;

    /// Executes what was chosen, with its retries.
    fn execute(&mut self) -> Result<Outcome, Failure>;

    /// Of a list that is gone through once: whether nothing is left to choose. What is not timed is done here.
    fn is_through(&mut self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// In the closed loop: between the choice and its execution.
    fn pause_before(&mut self) -> Duration {
        Duration::ZERO
    }

    /// In the closed loop: between the answer and the next choice.
    fn pause_after(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// A transaction that ended as the workload intends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rolled back because the workload says so.
    pub rolled_back: bool,
    /// Attempts that the server refused (deadlock, lock wait timeout) before the one that ended.
    pub retries: u32,
    /// Time spent waiting for COMMIT, zero where nothing was written; `None` for one that committed within a statement, which has no stopwatch of its
    /// own.
    pub commit_wait: Option<Duration>,
    /// User and system CPU of the client, where it looks at it.
    pub client_cpu: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// This transaction failed; the next may succeed.
    Transaction(String),
    /// The server is gone, or will refuse everything.
    Fatal(String),
}

/// A parameter that counts something: at least 1, at most `most`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// As scenarios name it.
    pub key: &'static str,
    pub value: u64,
    pub most: u64,
}

impl Count {
    pub(crate) fn new(key: &'static str, value: impl Into<u64>, most: u64) -> Count {
        Count { key, value: value.into(), most }
    }

    pub(crate) fn rate(per_s: Option<u32>) -> Option<Count> {
        per_s.map(|per_s| Count::new("rate", per_s, RATE_MAX))
    }

    pub fn is_in_range(&self) -> bool {
        (1..=self.most).contains(&self.value)
    }

    /// Why it is not in range, without its key.
    pub fn complaint(&self) -> String {
        format!("{} is out of range; it can be 1 to {}", self.value, self.most)
    }
}

/// Names of kinds that are only known once the parameters are. They live as long as the process, which runs one workload.
pub(crate) fn kept_for_good(names: impl Iterator<Item = String>) -> &'static [&'static str] {
    let names = names.map(|name| &*Box::leak(name.into_boxed_str()));
    Vec::leak(names.collect())
}

/// The freshly loaded database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// For a sentence: `10 warehouses`.
    pub words: String,
    /// About; without what a server needs anyway.
    pub bytes: u64,
}

impl WorkloadSpec {
    /// Kinds that speak SQL to any of our databases.
    pub const ON_EVERY_DATABASE: &[&str] = &[
        "tpcc",
        "oltp",
        "wide-tables",
        "insert-growth",
        "bulk",
        "scan",
        "slap",
        "fsync-loop",
        "custom",
        "sql-bench",
    ];

    /// Where the workload differs from its specification, as sentences.
    pub fn deviations(&self) -> Vec<&'static str> {
        match self {
            WorkloadSpec::Tpcc(spec) => spec.deviations(),
            WorkloadSpec::Oltp(_) => crate::oltp::DEVIATIONS.to_vec(),
            WorkloadSpec::Sysbench(_) | WorkloadSpec::Fileio(_) => crate::foreign::DEVIATIONS.to_vec(),
            WorkloadSpec::Mysqlslap(_) => crate::mysqlslap::DEVIATIONS.to_vec(),
            WorkloadSpec::WideTables(_) => crate::wide_tables::DEVIATIONS.to_vec(),
            WorkloadSpec::InsertGrowth(_) => crate::insert_growth::DEVIATIONS.to_vec(),
            WorkloadSpec::Bulk(_) => crate::bulk::DEVIATIONS.to_vec(),
            WorkloadSpec::Scan(_) => crate::scan::DEVIATIONS.to_vec(),
            WorkloadSpec::Slap(_) => crate::slap::DEVIATIONS.to_vec(),
            WorkloadSpec::FsyncLoop(_) => crate::fsync_loop::DEVIATIONS.to_vec(),
            WorkloadSpec::Custom(_) => crate::custom::DEVIATIONS.to_vec(),
            WorkloadSpec::SqlBench(_) => crate::sql_bench::DEVIATIONS.to_vec(),
            WorkloadSpec::Mock(_) => Vec::new(),
        }
    }

    /// Transactions per second of the open loop; `None`: closed loop.
    pub fn rate(&self) -> Option<u32> {
        match self {
            WorkloadSpec::Tpcc(spec) => spec.rate,
            WorkloadSpec::Oltp(spec) => spec.rate,
            WorkloadSpec::Mock(spec) => spec.rate,
            _ => None,
        }
    }

    /// How long the kit that it follows warms up unless told otherwise.
    pub fn warm_up(&self) -> Option<Duration> {
        match self {
            WorkloadSpec::Tpcc(spec) => spec.preset?.warm_up(),
            _ => None,
        }
    }

    /// What the program that is its clients says of itself; `None` when we are.
    ///
    /// # Errors
    /// It is missing.
    pub fn tool_version(&self, run_as: RunAs) -> Result<Option<String>> {
        self.build_with_tools(run_as)?.tool().map(Tool::version).transpose()
    }

    /// Work with a beginning and an end, whose clients can go through it once ([`Client::is_through`]).
    pub fn is_list(&self) -> bool {
        matches!(self, WorkloadSpec::SqlBench(_) | WorkloadSpec::InsertGrowth(_))
    }

    pub fn has_tool(&self) -> bool {
        matches!(self, WorkloadSpec::Sysbench(_) | WorkloadSpec::Fileio(_) | WorkloadSpec::Mysqlslap(_))
    }

    /// What shapes the loaded database: equal texts, equal data.
    pub fn data_set(&self) -> String {
        match self {
            WorkloadSpec::Tpcc(spec) => spec.data_set(),
            WorkloadSpec::Oltp(spec) => spec.data_set(),
            WorkloadSpec::Sysbench(spec) => spec.data_set(),
            WorkloadSpec::Fileio(spec) => spec.data_set(),
            WorkloadSpec::Mysqlslap(_) => "mysqlslap".to_owned(),
            WorkloadSpec::WideTables(spec) => {
                format!("wide-tables, {} tables of {} rows", spec.tables, spec.rows())
            }
            WorkloadSpec::InsertGrowth(spec) => spec.data_set(),
            WorkloadSpec::Bulk(spec) => format!("bulk, {} tables", spec.terminals),
            WorkloadSpec::Scan(spec) => format!("scan, {} rows", spec.rows),
            WorkloadSpec::Slap(spec) => spec.data_set(),
            WorkloadSpec::FsyncLoop(_) => "fsync-loop".to_owned(),
            WorkloadSpec::Custom(spec) => spec.data_set(),
            WorkloadSpec::SqlBench(spec) => spec.data_set(),
            WorkloadSpec::Mock(spec) => format!("{spec:?}"),
        }
    }

    /// As scenarios name it.
    pub fn kind(&self) -> &'static str {
        match self {
            WorkloadSpec::Tpcc(_) => "tpcc",
            WorkloadSpec::Oltp(_) => "oltp",
            WorkloadSpec::Sysbench(_) => "sysbench",
            WorkloadSpec::Fileio(_) => "fileio",
            WorkloadSpec::Mysqlslap(_) => "mysqlslap",
            WorkloadSpec::WideTables(_) => "wide-tables",
            WorkloadSpec::InsertGrowth(_) => "insert-growth",
            WorkloadSpec::Bulk(_) => "bulk",
            WorkloadSpec::Scan(_) => "scan",
            WorkloadSpec::Slap(_) => "slap",
            WorkloadSpec::FsyncLoop(_) => "fsync-loop",
            WorkloadSpec::Custom(_) => "custom",
            WorkloadSpec::SqlBench(_) => "sql-bench",
            WorkloadSpec::Mock(_) => "mock",
        }
    }

    pub fn counts(&self) -> Vec<Count> {
        match self {
            WorkloadSpec::Tpcc(spec) => spec.counts(),
            WorkloadSpec::Oltp(spec) => spec.counts(),
            WorkloadSpec::Sysbench(spec) => spec.counts(),
            WorkloadSpec::Fileio(spec) => spec.counts(),
            WorkloadSpec::Mysqlslap(spec) => spec.counts(),
            WorkloadSpec::WideTables(spec) => spec.counts(),
            WorkloadSpec::InsertGrowth(spec) => spec.counts(),
            WorkloadSpec::Bulk(spec) => spec.counts(),
            WorkloadSpec::Scan(spec) => spec.counts(),
            WorkloadSpec::Slap(spec) => spec.counts(),
            WorkloadSpec::FsyncLoop(spec) => spec.counts(),
            WorkloadSpec::Custom(spec) => spec.counts(),
            WorkloadSpec::SqlBench(spec) => spec.counts(),
            WorkloadSpec::Mock(spec) => spec.counts(),
        }
    }

    /// `None`: it needs no database.
    pub fn data(&self) -> Option<Data> {
        match self {
            WorkloadSpec::Tpcc(spec) => Some(spec.data()),
            WorkloadSpec::Oltp(spec) => Some(spec.data()),
            WorkloadSpec::Sysbench(spec) => Some(spec.data()),
            WorkloadSpec::Fileio(spec) => Some(spec.data()),
            WorkloadSpec::Mysqlslap(spec) => Some(spec.data()),
            WorkloadSpec::WideTables(spec) => Some(spec.data()),
            WorkloadSpec::InsertGrowth(spec) => Some(spec.data()),
            WorkloadSpec::Bulk(spec) => Some(spec.data()),
            WorkloadSpec::Scan(spec) => Some(spec.data()),
            WorkloadSpec::Slap(spec) => Some(spec.data()),
            WorkloadSpec::FsyncLoop(spec) => Some(spec.data()),
            WorkloadSpec::Custom(spec) => spec.data(),
            WorkloadSpec::SqlBench(spec) => Some(spec.data()),
            WorkloadSpec::Mock(_) => None,
        }
    }

    /// The storage engine that its tables must have; only MariaDB and MySQL have any.
    pub fn engine(&self) -> Option<Engine> {
        match self {
            WorkloadSpec::InsertGrowth(spec) => spec.engine,
            WorkloadSpec::SqlBench(spec) => spec.engine,
            WorkloadSpec::Slap(spec) => spec.engine,
            _ => None,
        }
    }

    /// What is wrong with a parameter: its key, and a sentence without it.
    pub fn complaint(&self) -> Option<(&'static str, String)> {
        if let Some(count) = self.counts().iter().find(|count| !count.is_in_range()) {
            return Some((count.key, count.complaint()));
        }
        match self {
            WorkloadSpec::Custom(spec) => spec.complaint().map(|complaint| ("file", complaint)),
            WorkloadSpec::Oltp(spec) => spec.complaint(),
            WorkloadSpec::Sysbench(spec) => spec.complaint(),
            WorkloadSpec::SqlBench(spec) => spec.complaint().map(|complaint| ("tests", complaint)),
            WorkloadSpec::Mysqlslap(spec) => spec.complaint(),
            WorkloadSpec::Slap(spec) => spec.complaint(),
            _ => None,
        }
    }

    /// The workload behind its parameters, or a sentence saying which parameter is wrong.
    pub fn build(&self) -> Result<Box<dyn Workload>> {
        self.build_with_tools(RunAs::Caller)
    }

    /// As [`WorkloadSpec::build`]; a program that is its clients runs as `run_as`.
    pub fn build_with_tools(&self, run_as: RunAs) -> Result<Box<dyn Workload>> {
        if let Some((key, complaint)) = self.complaint() {
            bail!("workload {}: {key}: {complaint}", self.kind());
        }
        Ok(match self {
            WorkloadSpec::Tpcc(spec) => Box::new(crate::tpcc::Tpcc::new(spec.clone())),
            WorkloadSpec::Oltp(spec) => Box::new(crate::oltp::Oltp::new(spec.clone())),
            WorkloadSpec::Sysbench(spec) => {
                Box::new(crate::sysbench::oltp::Sysbench::new(spec.clone(), run_as))
            }
            WorkloadSpec::Fileio(spec) => {
                Box::new(crate::sysbench::fileio::Fileio::new(spec.clone(), run_as))
            }
            WorkloadSpec::Mysqlslap(spec) => Box::new(crate::mysqlslap::Mysqlslap::new(spec.clone(), run_as)),
            WorkloadSpec::WideTables(spec) => Box::new(crate::wide_tables::WideTables::new(spec.clone())),
            WorkloadSpec::InsertGrowth(spec) => {
                Box::new(crate::insert_growth::InsertGrowth::new(spec.clone()))
            }
            WorkloadSpec::Bulk(spec) => Box::new(crate::bulk::Bulk::new(spec.clone())),
            WorkloadSpec::Scan(spec) => Box::new(crate::scan::Scan::new(spec.clone())),
            WorkloadSpec::Slap(spec) => Box::new(crate::slap::Slap::new(spec.clone())),
            WorkloadSpec::FsyncLoop(spec) => Box::new(crate::fsync_loop::FsyncLoop::new(spec.clone())),
            WorkloadSpec::Custom(spec) => Box::new(crate::custom::Custom::new(spec.clone())?),
            WorkloadSpec::SqlBench(spec) => Box::new(crate::sql_bench::SqlBench::new(spec.clone())),
            WorkloadSpec::Mock(spec) => Box::new(crate::mock::Mock::new(spec.clone())),
        })
    }
}
