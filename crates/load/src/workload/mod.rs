//! What every workload is made of: the traits that it implements, and the tools that several of them share.
//!
//! Belongs here: [`Declared`] (what a workload says before anything runs), [`Workload`] and [`Client`] (what
//! it does), bounds of options, loading, retries, checks. Must not know any single workload, nor when and how
//! often clients are called.

mod bounds;
mod check;
mod client;
mod declared;
pub(crate) mod loading;
pub(crate) mod retrying;

use std::fmt::Debug;

use anyhow::Result;

pub use bounds::Count;
pub(crate) use bounds::{Counted, RATE_MAX, TERMINALS_MAX, counts, whole_number};
pub use check::Check;
pub(crate) use check::Violations;
pub use client::{Client, Failure, Outcome};
pub use declared::{Complaint, Data, Declared, Facts, Target};
pub use loading::{OnProgress, Progress};

use crate::foreign::Tool;
use crate::protocol::{Endpoint, KindSummary, Metric};

/// A workload whose parameters are known to be right.
pub trait Workload: Debug + Send + Sync {
    /// Names of the transaction kinds, in the order of their index.
    fn kinds(&self) -> &'static [&'static str];

    /// How many clients run at once.
    fn terminals(&self) -> u32;

    /// Transactions per second of the open loop; `None`: closed loop.
    fn rate_per_s(&self) -> Option<u32> {
        None
    }

    /// Whether terminals pause between transactions: open loop, keying and think times.
    fn pauses(&self) -> bool {
        self.rate_per_s().is_some()
    }

    /// For each kind whether every transaction of it ends with something durable, so that it waits for
    /// storage; empty where nobody looked.
    fn durable_kinds(&self) -> Vec<bool> {
        Vec::new()
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

    /// The figure by which cells are compared.
    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric;
}

/// Names of kinds that are only known once the parameters are. They live as long as the process, which runs
/// one workload.
pub(crate) fn kept_for_good(names: impl Iterator<Item = String>) -> &'static [&'static str] {
    let names = names.map(|name| &*Box::leak(name.into_boxed_str()));
    Vec::leak(names.collect())
}
