//! The workload over a star schema: its tables are loaded, and its queries are the kinds of transactions.

use std::fmt::Debug;

use anyhow::Result;

use super::Query;
use super::answers;
use super::client::Analyst;
use super::split::{Over, Shard};
use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::connect;
use crate::workload::{Check, Client, OnProgress, Workload};
use spindle_base::histogram;
use spindle_scatter::mapping::Mapping;

/// The tables of an analytic workload.
pub(crate) trait Star: Debug + Send + Sync {
    /// By which column its fact table is spread over several servers.
    fn mapping(&self) -> Mapping;

    /// Creates and fills the tables of one server, and stores what must be found there ([`super::store`]); the first
    /// one has the answers.
    fn load(&self, endpoint: &Endpoint, shard: Shard, seed: u64, progress: &mut OnProgress<'_>)
    -> Result<()>;
}

/// One client that executes queries over these tables.
#[derive(Debug)]
pub(crate) struct Analytic<Tables> {
    tables: Tables,
    queries: Vec<Query>,
    kinds: &'static [&'static str],
    over: Over,
}

impl<Tables: Star> Analytic<Tables> {
    /// The names of the queries are kept for the life of the process, which runs one workload.
    pub(crate) fn new(tables: Tables, queries: Vec<Query>, over: Over) -> Analytic<Tables> {
        let kinds: Vec<&'static str> = queries.iter().map(|query| query.name).collect();
        Analytic { tables, queries, kinds: Vec::leak(kinds), over }
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
        self.load_shard(endpoint, 0, seed, progress)
    }

    fn load_shard(
        &self,
        endpoint: &Endpoint,
        shard: u32,
        seed: u64,
        progress: &mut OnProgress<'_>,
    ) -> Result<()> {
        let shard = Shard { index: shard, count: self.over.shards };
        self.tables.load(endpoint, shard, seed, progress)
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        self.connect_to_shards(std::slice::from_ref(endpoint), terminal, seed)
    }

    fn connect_to_shards(&self, endpoints: &[Endpoint], _: u32, _: u64) -> Result<Box<dyn Client>> {
        let queries = self.queries.clone();
        Ok(Box::new(Analyst::connect(endpoints, queries, self.over, self.tables.mapping())?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        self.verify_shard(endpoint, 0)
    }

    fn verify_shard(&self, endpoint: &Endpoint, shard: u32) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let rows = answers::check_rows(&mut *session)?;
        // The client tells the first server of its passes.
        let passes = (shard == 0).then(|| answers::check_passes(&mut *session, &self.queries)).transpose()?;
        Ok(passes.into_iter().chain([rows]).collect())
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
