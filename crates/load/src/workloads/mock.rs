//! The smallest workload: no server, known answers; tests everything above it in milliseconds. A new workload
//! begins as a copy of this file.

use std::time::Duration;

use anyhow::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::workload::{
    Check, Client, Data, Declared, Facts, Failure, OnProgress, Outcome, Progress, RATE_MAX, TERMINALS_MAX,
    Target, Workload, default_number, whole_number,
};
use spindle_base::child::RunAs;
use spindle_base::random::Random;

pub const FACTS: Facts = Facts { runs_on: &[Target::Mock], ..Facts::SQL };

/// Transactions without a server, with a known latency.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Number of concurrent clients.
    #[serde(default = "default_number::<8, u32>")]
    #[arg(long, default_value_t = 8, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Mean latency of a transaction, in microseconds.
    #[arg(long, default_value_t = 1_000, value_parser = whole_number::<u64>)]
    pub latency_us: u64,
    /// Open loop: transactions started per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = RATE_MAX))]
    pub rate: Option<u32>,
}

impl Declared for Spec {
    fn data(&self) -> Option<Data> {
        None
    }

    fn data_set(&self) -> String {
        format!("{self:?}")
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(self.clone()))
    }
}

impl Workload for Spec {
    fn kinds(&self) -> &'static [&'static str] {
        &["mock"]
    }

    fn terminals(&self) -> u32 {
        self.terminals
    }

    fn takes_more_terminals(&self) -> bool {
        true
    }

    fn rate_per_s(&self) -> Option<u32> {
        self.rate
    }

    fn load(&self, _: &Endpoint, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        progress(Progress { rows_done: 1, rows_total: 1 })
    }

    fn connect(&self, _: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        let random = Random::seeded(&[seed, u64::from(terminal)]);
        Ok(Box::new(MockClient { mean_us: self.latency_us, random, latency: Duration::ZERO }))
    }

    fn verify(&self, _: &Endpoint) -> Result<Vec<Check>> {
        Ok(vec![Check { name: "mock".to_owned(), passed: true, detail: "nothing is stored".to_owned() }])
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::committed_per_s("transactions per second", kinds, duration_s)
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
