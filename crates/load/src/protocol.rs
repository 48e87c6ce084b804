//! What passes between the load process and whoever started it.
//!
//! The load generator is a process of its own, so that it can be pinned, killed and accounted for alone. It
//! gets a [`crate::RunSpec`] and then one [`Command`] per line on its standard input, and writes one
//! [`Event`] per line on its standard output. Its terminals run from `Ready` until `Stop`; a measured window
//! is a part of that time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How to reach a server.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "protocol", rename_all = "kebab-case")]
pub enum Endpoint {
    /// MySQL protocol over a unix socket.
    MysqlSocket { path: PathBuf, user: String, database: String },
    /// MySQL protocol over TCP.
    MysqlTcp { host: String, port: u16, user: String, password: String, database: String },
    /// PostgreSQL's protocol over a unix socket, whose name in its directory has the port.
    PostgresSocket { directory: PathBuf, port: u16, user: String, database: String },
    /// PostgreSQL's protocol over TCP, without TLS.
    PostgresTcp { host: String, port: u16, user: String, password: String, database: String },
    /// A database file, with these pragmas; the clients' own process works on it.
    Sqlite {
        path: PathBuf,
        #[serde(default)]
        pragmas: BTreeMap<String, String>,
    },
    /// No database: a directory for files.
    Directory { path: PathBuf },
    /// No server: the mock workload answers itself.
    Mock,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// Clears the histograms and measures for this long, fixed work at most for this long; `Event::Summary`
    /// ends it.
    Measure { duration_s: f64 },
    /// Ends the terminals after their current transaction and exits.
    Stop,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// All terminals are connected and have begun.
    Ready,
    /// Every second, measured or not.
    Second(Second),
    Summary(Summary),
    /// The load cannot go on; the process exits non-zero after this.
    Fatal {
        message: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Second {
    /// Seconds since `Ready`.
    pub at_s: f64,
    pub transactions: u64,
    /// Not every foreign tool says them.
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Part of a measured window.
    pub measured: bool,
}

/// The measured window. Latencies are histograms of microseconds with three digits (HDR V2, base64).
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Summary {
    pub duration_s: f64,
    pub metric: Metric,
    pub kinds: Vec<KindSummary>,
    /// Time that terminals spent waiting for COMMIT, summed over terminals. `None` where some committed
    /// within a statement, or a foreign tool does not say it.
    pub commit_wait_s: Option<f64>,
    /// Terminals times duration, or where terminals pause between transactions, the time that they waited for
    /// answers: what the shares of waiting are shares of.
    pub terminal_time_s: f64,
    /// User and system CPU in the window, of this process or of the foreign tool.
    pub client_cpu_s: f64,
    pub worker_threads: u32,
    /// The last error of each kind of failure, for the record's `error` or a reader.
    pub errors: BTreeMap<String, u64>,
    /// Open loop: how long the first transaction of the queue waits for a terminal, at the end of the window.
    /// It grows as long as the server does less than it is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_s: Option<f64>,
}

/// The figure by which a workload's cells are compared.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Metric {
    pub name: String,
    pub value: f64,
    /// The figure is a time.
    pub lower_is_better: bool,
}

impl Metric {
    /// Higher is better.
    pub fn rate(name: &str, value: f64) -> Metric {
        Metric { name: name.to_owned(), value, lower_is_better: false }
    }

    /// Committed transactions of all kinds per second.
    pub(crate) fn committed_per_s(name: &str, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::rate(name, committed(kinds) as f64 / duration_s)
    }
}

/// Of all kinds together.
pub(crate) fn committed(kinds: &[KindSummary]) -> u64 {
    kinds.iter().map(|kind| kind.committed).sum()
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct KindSummary {
    pub name: String,
    pub committed: u64,
    pub rolled_back: u64,
    /// Attempts of the transactions above that the server refused (deadlock, lock wait timeout, newer row).
    pub retried: u64,
    pub failed: u64,
    /// User and system CPU of the clients in these transactions; only some workloads say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_s: Option<f64>,
    pub histogram: String,
}
