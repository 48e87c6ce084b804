//! Turns samples into seconds and summaries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use super::terminal::{CommitWait, Samples, count_error};
use crate::protocol::{KindSummary, Metric, Second, Summary};
use crate::sql::waits;
use crate::workload::Workload;
use spindle_base::histogram;

/// One measured window.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) began: Instant,
    pub(super) duration: Duration,
    cpu_at_start: Duration,
    kinds: Vec<(KindSummary, Histogram<u64>)>,
    commit_wait: CommitWait,
    lock_wait_at_start: Duration,
    busy: Duration,
    errors: BTreeMap<String, u64>,
}

impl Window {
    pub(super) fn new(workload: &dyn Workload, began: Instant, duration: Duration) -> Window {
        let kinds = workload.kinds().iter().map(|name| {
            (KindSummary { name: (*name).to_owned(), ..KindSummary::default() }, histogram::new())
        });
        Window {
            began,
            duration,
            cpu_at_start: process_cpu(),
            kinds: kinds.collect(),
            commit_wait: CommitWait::default(),
            lock_wait_at_start: waits::lock_wait().unwrap_or_default(),
            busy: Duration::ZERO,
            errors: BTreeMap::new(),
        }
    }

    pub(super) fn ends_at(&self) -> Instant {
        self.began + self.duration
    }

    pub(super) fn add(&mut self, samples: &Samples) {
        for sample in &samples.ended {
            let (summary, histogram) = &mut self.kinds[usize::from(sample.kind)];
            if sample.rolled_back {
                summary.rolled_back += 1;
            } else {
                summary.committed += 1;
            }
            summary.retried += u64::from(sample.retries);
            histogram.saturating_record(sample.latency_us);
        }
        for kind in &samples.failed {
            self.kinds[usize::from(*kind)].0.failed += 1;
        }
        for (kind, cpu) in &samples.client_cpu {
            *self.kinds[usize::from(*kind)].0.client_cpu_s.get_or_insert(0.0) += cpu.as_secs_f64();
        }
        self.commit_wait.add(samples.commit_wait.0);
        self.busy += samples.busy;
        for (message, count) in &samples.errors {
            count_error(&mut self.errors, message.clone(), *count);
        }
    }

    /// `now` is the time at which the last samples were taken: the true end of the window.
    pub(super) fn summary(self, workload: &dyn Workload, now: Instant) -> Summary {
        let duration_s = now.duration_since(self.began).as_secs_f64();
        let kinds: Vec<KindSummary> = self
            .kinds
            .into_iter()
            .map(|(summary, histogram)| KindSummary { histogram: histogram::encode(&histogram), ..summary })
            .collect();
        let all_s = f64::from(workload.terminals()) * duration_s;
        let busy_s = self.busy.as_secs_f64();
        let terminal_time_s = if workload.pauses() { busy_s.min(all_s) } else { all_s };
        let lock_wait = waits::lock_wait().map(|wait| wait.saturating_sub(self.lock_wait_at_start));
        Summary {
            duration_s,
            metric: workload.metric(&kinds, duration_s),
            kinds,
            commit_wait_s: self.commit_wait.0.map(|wait| wait.as_secs_f64()),
            lock_wait_s: lock_wait.map(|wait| wait.as_secs_f64().min(terminal_time_s)),
            terminal_time_s,
            client_cpu_s: process_cpu().saturating_sub(self.cpu_at_start).as_secs_f64(),
            worker_threads: workload.terminals(),
            errors: self.errors,
            behind_s: None,
        }
    }

    /// The summary of finished fixed work. With one client the metric is the time in its operations, without
    /// the time between them.
    pub(super) fn summary_of_fixed_work(self, workload: &dyn Workload, now: Instant) -> Summary {
        let busy_s = self.busy.as_secs_f64();
        let summary = self.summary(workload, now);
        let seconds = if workload.terminals() == 1 { busy_s } else { summary.duration_s };
        let metric =
            Metric { name: "seconds for the fixed work".to_owned(), value: seconds, lower_is_better: true };
        Summary { metric, ..summary }
    }

    /// Transactions that have ended.
    pub(super) fn count(&self) -> u64 {
        self.kinds.iter().map(|(kind, _)| kind.committed + kind.rolled_back).sum()
    }
}

pub(super) fn second(samples: &Samples, at: Duration, measured: bool) -> Second {
    let mut latencies_us: Vec<u64> = samples.ended.iter().map(|sample| sample.latency_us).collect();
    latencies_us.sort_unstable();
    let quantile_ms = |share: f64| {
        let index = (share * latencies_us.len() as f64).ceil() as usize;
        Some(latencies_us.get(index.saturating_sub(1)).map_or(0.0, |latency| *latency as f64 / 1000.0))
    };
    Second {
        at_s: at.as_secs_f64(),
        transactions: samples.ended.len() as u64,
        p50_ms: quantile_ms(0.50),
        p95_ms: quantile_ms(0.95),
        p99_ms: quantile_ms(0.99),
        measured,
    }
}

/// User and system CPU time of this process.
fn process_cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
