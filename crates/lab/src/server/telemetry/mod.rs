//! Counters and durability of servers, in terms common to all of them. The file of a family of servers
//! translates its own counters and settings; the measuring code knows only these terms.

mod paging;
pub mod production;

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::record::{FileClass, WaitPoint};
use crate::server::settings::Settings;
pub use paging::{Paging, Rules};

/// Whether the process of this title (its `/proc/PID/cmdline`) serves a client.
pub type IsSession = fn(&str) -> bool;

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

    /// Tells the processes that serve a client, of a server that has one for each.
    fn is_session(&self) -> Option<IsSession> {
        None
    }

    /// Size of the server's own cache of pages. `None` for a server without one, or whose size is not known.
    fn pool_bytes(&self, _settings: &Settings) -> Option<u64> {
        None
    }

    /// Bytes that a server has read since its start, by its own counters. `None` where they do not say.
    fn read_bytes(&self, _counters: &BTreeMap<String, f64>) -> Option<f64> {
        None
    }

    /// What the server did with pages and its log over a window, and its rules for writing them. `moved` are
    /// differences of its counters, `version` is its own text. `None` for a server without such counters.
    fn paging(&self, _moved: &BTreeMap<String, f64>, _settings: &Settings, _version: &str) -> Option<Paging> {
        None
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

/// A chart over time of lines in one unit.
#[derive(Debug, Clone, Copy)]
pub struct Chart {
    pub title: &'static str,
    pub lines: &'static [Line],
}

/// A series of a record, made from cumulative readings.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    /// Name in the record. It ends with its unit ([`crate::record::SeriesUnit`]), and the rest is its label.
    pub name: &'static str,
    /// A level of what is still to be written. While it moves, the storage's load is not steady.
    pub is_backlog: bool,
    value: Value,
}

/// Readings that a line follows from. Of several names the first that is there counts, because versions of a
/// server have different ones.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// Goes up and down; its difference over a window has no meaning.
    Level(&'static [&'static str]),
    /// Increase per second.
    Rate(&'static [&'static str]),
    /// Share of the requests that missed nothing. The requests are the sum of all their names.
    Hits { misses: &'static str, requests: &'static [&'static str] },
}

impl Line {
    pub(crate) const fn rate(name: &'static str, readings: &'static [&'static str]) -> Line {
        Line { name, is_backlog: false, value: Value::Rate(readings) }
    }

    pub(crate) const fn level(name: &'static str, readings: &'static [&'static str]) -> Line {
        Line { name, is_backlog: false, value: Value::Level(readings) }
    }

    pub(super) const fn backlog(name: &'static str, readings: &'static [&'static str]) -> Line {
        Line { name, is_backlog: true, value: Value::Level(readings) }
    }

    /// A line of which the values come from elsewhere.
    pub(crate) const fn elsewhere(name: &'static str) -> Line {
        Line::level(name, &[])
    }

    pub(super) const fn hits(
        name: &'static str,
        misses: &'static str,
        requests: &'static [&'static str],
    ) -> Line {
        Line { name, is_backlog: false, value: Value::Hits { misses, requests } }
    }

    /// The value between two samples; `None` where the readings for it are missing.
    pub fn value(&self, [earlier, later]: [&BTreeMap<String, f64>; 2], elapsed_s: f64) -> Option<f64> {
        let increase = |name: &str| {
            let now = later.get(name)?;
            Some(now - earlier.get(name).unwrap_or(now))
        };
        match self.value {
            Value::Level(names) => names.iter().find_map(|name| later.get(*name).copied()),
            Value::Rate(names) => {
                let increase = names.iter().find_map(|name| increase(name))?;
                Some(if elapsed_s > 0.0 { increase / elapsed_s } else { 0.0 })
            }
            Value::Hits { misses, requests } => {
                let misses = increase(misses)?;
                let all: f64 = requests.iter().map(|name| increase(name)).sum::<Option<f64>>()?;
                Some(if all > 0.0 { (1.0 - misses / all).clamp(0.0, 1.0) } else { 1.0 })
            }
        }
    }

    /// Readings that its values may follow from.
    pub fn readings(&self) -> Vec<&'static str> {
        match self.value {
            Value::Level(names) | Value::Rate(names) => names.to_vec(),
            Value::Hits { misses, requests } => {
                std::iter::once(misses).chain(requests.iter().copied()).collect()
            }
        }
    }

    /// Readings whose difference over a window has no meaning.
    pub fn levels(&self) -> &'static [&'static str] {
        match self.value {
            Value::Level(names) => names,
            Value::Rate(_) | Value::Hits { .. } => &[],
        }
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

    /// Sum of the differences of those that the server has; `None` if it has none of them.
    pub fn moved_of(&self, names: &[&str]) -> Option<f64> {
        names.iter().any(|name| self.has(name)).then(|| self.moved_together(names))
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
    /// Calls of fsync and the like.
    pub fsyncs: Option<f64>,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: Line, earlier: &[(&str, f64)], later: &[(&str, f64)], expect: Option<f64>) {
        let [earlier, later] = [earlier, later]
            .map(|pairs| pairs.iter().map(|(name, value)| ((*name).into(), *value)).collect());
        assert_eq!(line.value([&earlier, &later], 2.0), expect);
    }

    #[test]
    fn a_rate_is_an_increase_per_second_and_a_level_is_as_read() {
        check(Line::rate("a_per_s", &["a"]), &[("a", 4.0)], &[("a", 10.0)], Some(3.0));
        check(Line::level("a", &["a"]), &[("a", 4.0)], &[("a", 10.0)], Some(10.0));
        check(Line::rate("a_per_s", &["a"]), &[], &[("a", 10.0)], Some(0.0));
        check(Line::rate("a_per_s", &["a"]), &[], &[], None);
    }

    #[test]
    fn the_first_name_that_the_server_has_counts() {
        let line = Line::rate("a_per_s", &["new", "old"]);
        check(line, &[("old", 0.0)], &[("old", 6.0)], Some(3.0));
        check(line, &[("old", 0.0), ("new", 0.0)], &[("old", 6.0), ("new", 2.0)], Some(1.0));
    }

    #[test]
    fn hits_are_the_requests_without_misses() {
        let line = Line::hits("hit_share", "read", &["hit", "read"]);
        check(line, &[("hit", 0.0), ("read", 0.0)], &[("hit", 90.0), ("read", 10.0)], Some(0.9));
        check(line, &[("hit", 9.0), ("read", 1.0)], &[("hit", 9.0), ("read", 1.0)], Some(1.0));
        check(line, &[("read", 0.0)], &[("read", 1.0)], None);
    }
}
