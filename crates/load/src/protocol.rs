//! Messages between the load process and its parent.
//!
//! The load generator is a process of its own, so that it can be pinned, killed and accounted for alone. Its
//! standard input carries a [`crate::RunSpec`] and then one [`Command`] per line. Its standard output carries
//! one [`Event`] per line. Terminals run from `Ready` until `Stop`; a measured window is a part of that time.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How to reach a server.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "protocol", rename_all = "kebab-case")]
pub enum Endpoint {
    /// MySQL protocol over a unix socket.
    MysqlSocket { path: PathBuf, user: String, database: String },
    /// MySQL protocol over TCP.
    MysqlTcp { host: String, port: u16, user: String, password: String, database: String },
    /// PostgreSQL's protocol over a unix socket. The port is part of the socket's name in its directory.
    PostgresSocket { directory: PathBuf, port: u16, user: String, database: String },
    /// PostgreSQL's protocol over TCP, without TLS.
    PostgresTcp { host: String, port: u16, user: String, password: String, database: String },
    /// A database file with these pragmas. The client process opens it itself.
    Sqlite {
        path: PathBuf,
        #[serde(default)]
        pragmas: BTreeMap<String, String>,
    },
    /// No database: a directory for files.
    Directory { path: PathBuf },
    /// No server: the mock workload answers its own requests.
    Mock,
}

impl Endpoint {
    /// Whether a process of its own answers; otherwise the client does all the work itself.
    pub fn is_server(&self) -> bool {
        !matches!(self, Endpoint::Sqlite { .. } | Endpoint::Directory { .. } | Endpoint::Mock)
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "command", rename_all = "kebab-case")]
pub enum Command {
    /// Clears the histograms and measures for this long; `Event::Summary` ends the window. For fixed work it
    /// is the maximum duration.
    Measure { duration_s: f64 },
    /// Ends the window now, unless it has ended by itself. Foreign tools cannot.
    EndWindow,
    /// Ends the terminals after their current transaction and exits.
    Stop,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// All terminals are connected and have started.
    Ready,
    /// Sent every second, measured or not.
    Second(Second),
    Summary(Summary),
    /// The load cannot continue. The process exits with a non-zero code after this event.
    Fatal {
        message: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Second {
    /// Seconds since `Ready`.
    pub at_s: f64,
    pub transactions: u64,
    /// `None` where a foreign tool does not report the quantile.
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// The second is part of a measured window.
    pub measured: bool,
}

/// The measured window. Latencies are histograms of microseconds with three digits (HDR V2, base64).
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct Summary {
    pub duration_s: f64,
    pub metric: Metric,
    pub kinds: Vec<KindSummary>,
    /// Time that terminals waited for COMMIT, summed over terminals. `None` if a transaction committed within
    /// a statement, or if a foreign tool does not report it.
    pub commit_wait_s: Option<f64>,
    /// Time that terminals waited for locks, summed over terminals. `None` if only the server knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_wait_s: Option<f64>,
    /// The total of which waiting times are shares: terminals times duration. If terminals pause between
    /// transactions, the time that they waited for answers.
    pub terminal_time_s: f64,
    /// User and system CPU time in the window, of this process or of the foreign tool.
    pub client_cpu_s: f64,
    pub worker_threads: u32,
    /// Error messages with their counts, for the record's `error` or a reader.
    pub errors: BTreeMap<String, u64>,
    /// Open loop: how long the first queued transaction has waited for a terminal at the end of the window.
    /// It grows while the server falls behind the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind_s: Option<f64>,
}

/// The figure by which the cells of a workload are compared.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct Metric {
    /// For example `new-order transactions per minute`.
    pub name: String,
    pub value: f64,
    /// True for a time; every other metric is better when it is higher.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lower_is_better: bool,
}

impl Metric {
    /// A metric of which higher is better.
    pub fn rate(name: &str, value: f64) -> Metric {
        Metric { name: name.to_owned(), value, lower_is_better: false }
    }

    /// Committed transactions of all kinds per second.
    pub(crate) fn committed_per_s(name: &str, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::rate(name, committed(kinds) as f64 / duration_s)
    }
}

/// Committed transactions of all kinds.
pub(crate) fn committed(kinds: &[KindSummary]) -> u64 {
    kinds.iter().map(|kind| kind.committed).sum()
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct KindSummary {
    pub name: String,
    pub committed: u64,
    pub rolled_back: u64,
    /// Retries of the transactions above: attempts that the server refused (deadlock, lock wait timeout,
    /// newer row).
    pub retried: u64,
    pub failed: u64,
    /// User and system CPU time of the clients in these transactions. `None` if the workload does not report
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_s: Option<f64>,
    pub histogram: String,
}
