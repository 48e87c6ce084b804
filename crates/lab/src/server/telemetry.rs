//! What servers count and keep durable, in words that hold for all of them. The file of a family of servers
//! translates its own counters and settings; whoever measures knows these words only.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::record::{FileClass, WaitPoint};

/// What the counters and settings of a family of servers mean.
pub trait Telemetry: Debug + Sync {
    /// Counters that are worth a chart.
    fn charts(&self) -> &'static [Chart];

    /// What a server counted in a measured window.
    fn counters(&self, readings: &Readings<'_>) -> Counters;

    /// Settings that [`Telemetry::durability`] is told, as far as the server has them.
    fn commit_settings(&self) -> &'static [&'static str];

    fn durability(&self, settings: &BTreeMap<String, String>) -> Durability;
}

/// A counter in the series of a record.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    /// In the record. Versions of a server may have different counters for one chart.
    pub name: &'static str,
    /// At the server.
    pub counter: &'static str,
    /// It goes up and down, and its difference over a window means nothing.
    pub is_level: bool,
}

impl Chart {
    pub(super) const fn rate(name: &'static str, counter: &'static str) -> Chart {
        Chart { name, counter, is_level: false }
    }

    pub(super) const fn level(name: &'static str, counter: &'static str) -> Chart {
        Chart { name, counter, is_level: true }
    }
}

/// A server's own counters over a measured window.
#[derive(Debug)]
pub struct Readings<'a> {
    /// Those that moved, and by how much.
    pub moved: &'a BTreeMap<String, f64>,
    /// At the end of each second, and of the window.
    pub looks: Vec<&'a BTreeMap<String, f64>>,
    pub duration_s: f64,
}

impl Readings<'_> {
    /// How much a counter moved; zero for one that is not there.
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

    /// Of a level; zero where it is not there.
    pub fn mean(&self, name: &str) -> f64 {
        let values: Vec<f64> = self.looks.iter().filter_map(|look| look.get(name).copied()).collect();
        if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
    }
}

/// What a server counted in a window; `None` for what it does not count.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Counters {
    /// Reads of pages that somebody waited for, without read-ahead. The machine's page cache may have
    /// answered.
    pub foreground_reads: Option<f64>,
    /// Transactions that changed something, if the server's logs have all of them.
    pub commits: Option<f64>,
    /// Summed over sessions.
    pub lock_wait_s: Option<f64>,
    /// Transactions that one write of the binary log has.
    pub commits_per_group: Option<f64>,
    pub semi_sync: Option<SemiSync>,
}

/// Commits of a semi-synchronous primary.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SemiSync {
    pub acknowledged: f64,
    /// Those that went on without.
    pub unacknowledged: f64,
    /// Waits for a replica, and their time together.
    pub waits: f64,
    pub wait_s: f64,
}

/// What a commit waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Durability {
    /// The logs that are on their storage when it returns; empty where it waits for none, `None` where that
    /// is not known.
    pub flushed_logs: Option<Vec<FileClass>>,
    /// Of a semi-synchronous primary.
    pub wait_point: Option<WaitPoint>,
}

/// Of whatever has no counters that mean anything here.
#[derive(Debug)]
pub struct Silent;

impl Telemetry for Silent {
    fn charts(&self) -> &'static [Chart] {
        &[]
    }

    fn counters(&self, _: &Readings<'_>) -> Counters {
        Counters::default()
    }

    fn commit_settings(&self) -> &'static [&'static str] {
        &[]
    }

    fn durability(&self, _: &BTreeMap<String, String>) -> Durability {
        Durability::default()
    }
}
