//! Counters and durability of servers, in terms common to all of them. The file of a family of servers
//! translates its own counters and settings; the measuring code knows only these terms.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::settings::Settings;
use crate::record::{FileClass, WaitPoint};

/// The meaning of the counters and settings of a family of servers. The defaults are those of a server
/// without meaningful counters.
pub trait Telemetry: Debug + Sync {
    /// Counters that are charted.
    fn charts(&self) -> &'static [Chart] {
        &[]
    }

    /// Interprets the counters of a measured window.
    fn counters(&self, _readings: &Readings<'_>) -> Counters {
        Counters::default()
    }

    /// Names of the settings for [`Telemetry::durability`], as far as the server has them.
    fn commit_settings(&self) -> &'static [&'static str] {
        &[]
    }

    fn durability(&self, _settings: &Settings) -> Durability {
        Durability::default()
    }

    fn engine(&self) -> Engine {
        Engine::Process
    }
}

/// The threads that do the work of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Those of a process of its own.
    Process,
    /// The clients' own threads. They wait for every read of the storage.
    InClients,
    /// There is no engine: the clients are a tool that reads and writes files.
    Files,
}

/// A counter in the series of a record.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// Name in the record. Versions of a server may have different counters for one chart.
    pub name: &'static str,
    /// Name at the server.
    pub counter: &'static str,
    /// A level goes up and down; its difference over a window has no meaning.
    pub is_level: bool,
    /// A level of what is still to be written. While it moves, the storage's load is not steady.
    pub is_backlog: bool,
}

impl Chart {
    pub(super) const fn rate(name: &'static str, counter: &'static str) -> Chart {
        Chart { name, counter, is_level: false, is_backlog: false }
    }

    pub(super) const fn level(name: &'static str, counter: &'static str) -> Chart {
        Chart { name, counter, is_level: true, is_backlog: false }
    }

    pub(super) const fn backlog(name: &'static str, counter: &'static str) -> Chart {
        Chart { name, counter, is_level: true, is_backlog: true }
    }
}

/// A server's own counters over a measured window.
#[derive(Debug)]
pub struct Readings<'a> {
    /// Differences of the counters over the window.
    pub moved: &'a BTreeMap<String, f64>,
    /// Values at the end of each second, and of the window.
    pub looks: Vec<&'a BTreeMap<String, f64>>,
    pub duration_s: f64,
}

impl Readings<'_> {
    /// Difference of a counter over the window; zero if the server lacks it.
    pub fn moved(&self, name: &str) -> f64 {
        self.moved.get(name).copied().unwrap_or(0.0)
    }

    pub fn moved_together(&self, names: &[&str]) -> f64 {
        names.iter().map(|name| self.moved(name)).sum()
    }

    /// Whether the server has a counter of that name, moved or not.
    pub fn has(&self, name: &str) -> bool {
        self.looks.last().is_some_and(|last| last.contains_key(name))
    }

    /// Mean of a level; zero if the server lacks it.
    pub fn mean(&self, name: &str) -> f64 {
        let values: Vec<f64> = self.looks.iter().filter_map(|look| look.get(name).copied()).collect();
        if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
    }
}

/// A server's counts over a window; `None` for a count that it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// Reads of pages in the foreground, without read-ahead. The machine's page cache may have answered them.
    pub foreground_reads: Option<f64>,
    /// Transactions with changes, if the server's logs have all of them.
    pub commits: Option<f64>,
    /// Sum over sessions.
    pub lock_wait_s: Option<f64>,
    /// Transactions per write of the binary log.
    pub commits_per_group: Option<f64>,
    pub semi_sync: Option<SemiSync>,
    pub background: Option<Rounds>,
}

/// Rounds of a background thread that begins one in each period of the server's clock. A round that takes
/// longer than its period makes them fewer; nothing makes them more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rounds {
    pub who: &'static str,
    pub count: f64,
    pub period_s: f64,
}

/// Commits of a semi-synchronous primary.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SemiSync {
    pub acknowledged: f64,
    /// Commits that went on without an acknowledgement.
    pub unacknowledged: f64,
    /// Number of waits for a replica, and their total time.
    pub waits: f64,
    pub wait_s: f64,
}

/// The logs and replicas that a commit waits for, and what is left to the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Durability {
    /// The logs that are on their storage when the commit returns; empty if it waits for none, `None` if
    /// unknown.
    pub flushed_logs: Option<Vec<FileClass>>,
    /// Only for a semi-synchronous primary.
    pub wait_point: Option<WaitPoint>,
    /// Data files are written to the page cache, and the kernel decides when they reach the storage.
    pub uses_page_cache: bool,
}

/// Telemetry of a server without meaningful counters.
#[derive(Debug)]
pub struct Silent;

impl Telemetry for Silent {}

/// Telemetry of what has no process and no counters.
#[derive(Debug)]
pub struct Without(pub Engine);

impl Telemetry for Without {
    fn engine(&self) -> Engine {
        self.0
    }
}
