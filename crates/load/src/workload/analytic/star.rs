//! The workload over a star schema: its tables are loaded, and its queries are the kinds of transactions.

use std::fmt::Debug;

use anyhow::Result;

use super::Query;
use super::answers;
use super::client::Analyst;
use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::connect;
use crate::workload::{Check, Client, OnProgress, Workload};
use spindle_base::histogram;

/// The tables of an analytic workload.
pub(crate) trait Star: Debug + Send + Sync {
    /// Creates and fills the tables, and stores what must be found there ([`super::store`]).
    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()>;
}

/// One client that executes queries over these tables.
#[derive(Debug)]
pub(crate) struct Analytic<Tables> {
    tables: Tables,
    queries: Vec<Query>,
    kinds: &'static [&'static str],
    /// Connections over which queries are split.
    split: Option<u32>,
}

impl<Tables: Star> Analytic<Tables> {
    /// The names of the queries are kept for the life of the process, which runs one workload.
    pub(crate) fn new(tables: Tables, queries: Vec<Query>, split: Option<u32>) -> Analytic<Tables> {
        let kinds: Vec<&'static str> = queries.iter().map(|query| query.name).collect();
        Analytic { tables, queries, kinds: Vec::leak(kinds), split }
    }
}

impl<Tables: Star> Workload for Analytic<Tables> {
    fn kinds(&self) -> &'static [&'static str] {
        self.kinds
    }

    fn terminals(&self) -> u32 {
        1
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        self.tables.load(endpoint, seed, progress)
    }

    fn connect(&self, endpoint: &Endpoint, _: u32, _: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(Analyst::connect(endpoint, self.queries.clone(), self.split)?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let passes = answers::check_passes(&mut *session, &self.queries)?;
        Ok(vec![passes, answers::check_rows(&mut *session)?])
    }

    /// Passes over the queries per hour, from the mean time of each. Queries per second if the window did not
    /// include all of them.
    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        let pass_s = kinds.iter().map(|kind| {
            let latencies = histogram::decode(&kind.histogram).ok()?;
            (!latencies.is_empty()).then(|| latencies.mean() / 1e6)
        });
        match pass_s.sum::<Option<f64>>() {
            Some(pass_s) if pass_s > 0.0 => Metric::rate("passes per hour", 3600.0 / pass_s),
            _ => Metric::committed_per_s("queries per second of an unfinished pass", kinds, duration_s),
        }
    }
}
