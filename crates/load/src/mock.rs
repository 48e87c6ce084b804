//! The smallest workload: no server, known answers; tests everything above it in milliseconds.

use std::time::Duration;

use anyhow::Result;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary};
use crate::workload::{
    Check, Client, Count, Failure, Headline, OnProgress, Outcome, Progress, TERMINALS_MAX, Workload,
};
use spindle_base::random::Random;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    pub terminals: u32,
    /// Mean time of one transaction.
    pub latency_us: u64,
    /// Transactions per second of the open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<u32>,
}

impl Spec {
    pub(crate) fn counts(&self) -> Vec<Count> {
        let terminals = Count::new("terminals", self.terminals, TERMINALS_MAX);
        std::iter::once(terminals).chain(Count::rate(self.rate)).collect()
    }
}

#[derive(Debug)]
pub struct Mock {
    spec: Spec,
}

impl Mock {
    /// Its counts must be in range.
    pub(crate) fn new(spec: Spec) -> Mock {
        Mock { spec }
    }
}

impl Workload for Mock {
    fn kinds(&self) -> &'static [&'static str] {
        &["mock"]
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    fn pauses(&self) -> bool {
        self.spec.rate.is_some()
    }

    fn load(&self, _: &Endpoint, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        progress(Progress { rows_done: 1, rows_total: 1 })
    }

    fn connect(&self, _: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        let random = Random::seeded(&[seed, u64::from(terminal)]);
        Ok(Box::new(MockClient { mean_us: self.spec.latency_us, random, latency: Duration::ZERO }))
    }

    fn verify(&self, _: &Endpoint) -> Result<Vec<Check>> {
        Ok(vec![Check { name: "mock".to_owned(), passed: true, detail: "nothing is stored".to_owned() }])
    }

    fn headline(&self, kinds: &[KindSummary], duration_s: f64) -> Headline {
        let committed: u64 = kinds.iter().map(|kind| kind.committed).sum();
        Headline { name: "transactions per second", value: committed as f64 / duration_s }
    }
}

#[derive(Debug)]
struct MockClient {
    mean_us: u64,
    random: Random,
    latency: Duration,
}

impl Client for MockClient {
    fn choose(&mut self) -> usize {
        // Uniform between half and one and a half of the mean.
        let latency_us = self.mean_us as f64 * (0.5 + self.random.unit());
        self.latency = Duration::from_nanos((latency_us * 1000.0) as u64);
        0
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        std::thread::sleep(self.latency);
        Ok(Outcome { commit_wait: Some(self.latency / 2), ..Outcome::default() })
    }
}
