//! The traits that every workload implements, and the tools that several of them share.
//!
//! Belongs here: [`Declared`] (declarations before a run), [`Workload`] and [`Client`] (behaviour), bounds of
//! options, loading, retries, checks, and what all lists of timed queries share ([`analytic`]). Must not know
//! any single workload, nor the timing and the number of client calls.

pub mod analytic;
mod bounds;
mod check;
mod client;
mod declared;
pub(crate) mod loading;
pub(crate) mod retrying;

use std::fmt::Debug;

use anyhow::{Result, bail};

pub(crate) use bounds::{RATE_MAX, TERMINALS_MAX, default_number, whole_number};
pub use check::Check;
pub(crate) use check::Violations;
pub use client::{Client, Failure, Outcome};
pub use declared::{Complaint, Data, Declared, Example, Facts, Target};
pub use loading::{OnProgress, Progress};

use crate::foreign::Tool;
use crate::protocol::{Endpoint, KindSummary, Metric};

/// A workload with checked parameters.
pub trait Workload: Debug + Send + Sync {
    /// Names of the transaction kinds, in the order of their index.
    fn kinds(&self) -> &'static [&'static str];

    /// The number of concurrent clients.
    fn terminals(&self) -> u32;

    /// Open loop: transactions per second. `None`: closed loop.
    fn rate_per_s(&self) -> Option<u32> {
        None
    }

    /// Whether further terminals can be connected than [`Workload::terminals`], with numbers above theirs.
    fn takes_more_terminals(&self) -> bool {
        false
    }

    /// True if terminals pause between transactions: open loop, keying and think times.
    fn pauses(&self) -> bool {
        self.rate_per_s().is_some()
    }

    /// For each kind: true if every transaction ends with a durable write, so that it waits for storage.
    /// Empty if this is not declared.
    fn durable_kinds(&self) -> Vec<bool> {
        Vec::new()
    }

    /// Creates the database and fills it. Equal seeds give equal rows.
    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()>;

    /// The foreign tool, if the workload has one. Then `connect` is not called.
    fn tool(&self) -> Option<&dyn Tool> {
        None
    }

    /// Connects one client; `terminal` counts from zero.
    fn connect(&self, _endpoint: &Endpoint, _terminal: u32, _seed: u64) -> Result<Box<dyn Client>> {
        bail!("the clients of this workload are a foreign tool's")
    }

    /// Checks that the database is consistent. Clients must have stopped.
    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>>;

    /// As [`Workload::load`], for one of the servers of [`Declared::shards`]; `shard` counts from zero.
    fn load_shard(
        &self,
        endpoint: &Endpoint,
        _shard: u32,
        seed: u64,
        progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        self.load(endpoint, seed, progress)
    }

    /// As [`Workload::connect`], to all servers of [`Declared::shards`], in their order.
    fn connect_to_shards(&self, endpoints: &[Endpoint], terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        self.connect(&endpoints[0], terminal, seed)
    }

    /// As [`Workload::verify`], for one of the servers of [`Declared::shards`].
    fn verify_shard(&self, endpoint: &Endpoint, _shard: u32) -> Result<Vec<Check>> {
        self.verify(endpoint)
    }

    /// The figure by which the cells of a workload are compared.
    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric;
}

/// Leaks the names of kinds that depend on parameters. The process runs one workload, so the leak is bounded.
pub(crate) fn kept_for_good(names: impl Iterator<Item = String>) -> &'static [&'static str] {
    let names = names.map(|name| &*Box::leak(name.into_boxed_str()));
    Vec::leak(names.collect())
}
