//! What is known of a server that its own clients use: what counts its transactions, where its files lie, and
//! how far its checkpoint is. Nothing of it changes the server.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Readings;
use crate::record::FileClass;
use crate::server::settings::Settings;

/// The facts of a family of servers.
#[derive(Debug)]
pub struct Production {
    /// Settings that decide what it reads, writes and flushes. They go into a record, so none of them is a
    /// name that somebody chose.
    pub settings: &'static [&'static str],
    /// Settings for `release` and `place`, which go into no record.
    pub identity: &'static [&'static str],
    /// Kind and version from the settings, as a run of the same server records them.
    pub release: fn(&Settings) -> Release,
    pub place: fn(&Settings) -> Place,
    /// Names of its process (proc(5), `comm`).
    pub programs: &'static [&'static str],
    /// Reading with its age in seconds.
    pub uptime: &'static str,
    /// Readings that grow until it is started again or somebody resets its counters.
    pub growing: &'static [&'static str],
    /// Reading with the number of sessions at work, and how many of them are ours.
    pub sessions: &'static str,
    pub own_sessions: f64,
    /// Transactions that a sample is to the server.
    pub own_transactions: f64,
    /// Readings for the fields below, in addition to those of its charts.
    pub readings: &'static [&'static [&'static str]],
    pub counting: fn(&Readings<'_>) -> Counting,
    /// `None` if it does not show its checkpoints to us.
    pub checkpoint: fn(&BTreeMap<String, f64>) -> Option<Checkpoint>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// Name of the kind in a scenario.
    pub kind: &'static str,
    pub version: String,
}

/// Where a server's files are on its machine, as far as it tells.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Place {
    pub data_directory: Option<PathBuf>,
    /// File with the number of its process in the first line.
    pub pid_file: Option<PathBuf>,
    /// Directories of classes of files that may lie apart from the data.
    pub apart: Vec<(FileClass, PathBuf)>,
}

/// Which counters count transactions.
#[derive(Debug, Clone, PartialEq)]
pub struct Counting {
    /// Counters with their weights; the sum is the number of transactions.
    pub committed: Vec<(&'static str, f64)>,
    pub rolled_back: Vec<(&'static str, f64)>,
    /// For a sentence: "counted by ...".
    pub words: &'static str,
    /// The fewest and the most transactions of the window, if the counters leave that open.
    pub open: Option<[f64; 2]>,
}

impl Counting {
    /// The number of committed transactions, from the differences of the counters.
    pub fn committed(&self, moved: &BTreeMap<String, f64>) -> f64 {
        sum(&self.committed, moved)
    }

    pub fn rolled_back(&self, moved: &BTreeMap<String, f64>) -> f64 {
        sum(&self.rolled_back, moved)
    }
}

/// All of these counters with the same weight.
pub(in crate::server) fn weighted(names: &[&'static str], weight: f64) -> Vec<(&'static str, f64)> {
    names.iter().map(|name| (*name, weight)).collect()
}

fn sum(terms: &[(&'static str, f64)], moved: &BTreeMap<String, f64>) -> f64 {
    let moved = |name: &str| moved.get(name).copied().unwrap_or(0.0);
    terms.iter().map(|(name, weight)| weight * moved(name)).sum::<f64>().max(0.0)
}

/// How far a server's checkpoint is at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Checkpoint {
    /// It moves on while pages are written. Bytes of log since the server was made: all of them, and those of
    /// which the pages are on the storage.
    Moving { written_bytes: f64, checkpoint_bytes: f64 },
    /// Checkpoints follow each other; this is their number.
    Counted(f64),
}
