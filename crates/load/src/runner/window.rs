//! Turns samples into seconds and summaries.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use rustix::time::{ClockId, clock_gettime};

use super::terminal::{CommitWait, Samples, count_error};
use crate::protocol::{KindSummary, Metric, Part, Second, Summary};
use crate::sql::waits;
use crate::workload::Workload;
use spindle_base::histogram;

/// One measured window.
#[derive(Debug)]
pub(super) struct Window {
    pub(super) began: Instant,
    pub(super) duration: Duration,
    cpu_at_start: Duration,
    kinds: Tally,
    commit_wait: CommitWait,
    lock_wait_at_start: Duration,
    busy: Duration,
    errors: BTreeMap<String, u64>,
    /// The parts that have ended.
    parts: Vec<Part>,
    /// Of the present part, once one has ended.
    since: Option<(Instant, Tally)>,
    /// At work since then.
    terminals: (Instant, u32),
    /// Of all terminals at work, until then.
    terminal_time: Duration,
}

/// The transactions of a time, by their kinds.
#[derive(Debug, Clone)]
struct Tally(Vec<(KindSummary, Histogram<u64>)>);

impl Tally {
    fn new(workload: &dyn Workload) -> Tally {
        let kinds = workload.kinds().iter().map(|name| {
            (KindSummary { name: (*name).to_owned(), ..KindSummary::default() }, histogram::new())
        });
        Tally(kinds.collect())
    }

    fn add(&mut self, samples: &Samples) {
        for sample in &samples.ended {
            let (summary, histogram) = &mut self.0[usize::from(sample.kind)];
            if sample.rolled_back {
                summary.rolled_back += 1;
            } else {
                summary.committed += 1;
            }
            summary.retried += u64::from(sample.retries);
            histogram.saturating_record(sample.latency_us);
        }
        for kind in &samples.failed {
            self.0[usize::from(*kind)].0.failed += 1;
        }
        for (kind, cpu) in &samples.client_cpu {
            *self.0[usize::from(*kind)].0.client_cpu_s.get_or_insert(0.0) += cpu.as_secs_f64();
        }
    }

    /// Of a part of the window that took this long.
    fn part(self, workload: &dyn Workload, duration: Duration) -> Part {
        let duration_s = duration.as_secs_f64();
        let mut all = histogram::new();
        for (_, latencies) in &self.0 {
            all.add(latencies).expect("all histograms are made alike");
        }
        let kinds: Vec<KindSummary> = self.0.into_iter().map(|(summary, _)| summary).collect();
        Part { duration_s, metric: workload.metric(&kinds, duration_s), histogram: histogram::encode(&all) }
    }

    fn into_kinds(self) -> Vec<KindSummary> {
        let encoded = |(summary, latencies): (KindSummary, Histogram<u64>)| KindSummary {
            histogram: histogram::encode(&latencies),
            ..summary
        };
        self.0.into_iter().map(encoded).collect()
    }
}

impl Window {
    pub(super) fn new(workload: &dyn Workload, began: Instant, duration: Duration, terminals: u32) -> Window {
        Window {
            began,
            duration,
            cpu_at_start: process_cpu(),
            kinds: Tally::new(workload),
            commit_wait: CommitWait::default(),
            lock_wait_at_start: waits::lock_wait().unwrap_or_default(),
            busy: Duration::ZERO,
            errors: BTreeMap::new(),
            parts: Vec::new(),
            since: None,
            terminals: (began, terminals),
            terminal_time: Duration::ZERO,
        }
    }

    pub(super) fn ends_at(&self) -> Instant {
        self.began + self.duration
    }

    pub(super) fn add(&mut self, samples: &Samples) {
        self.kinds.add(samples);
        if let Some((_, since)) = &mut self.since {
            since.add(samples);
        }
        self.commit_wait.add(samples.commit_wait.0);
        self.busy += samples.busy;
        for (message, count) in &samples.errors {
            count_error(&mut self.errors, message.clone(), *count);
        }
    }

    /// Another number of terminals is at work from `now` on.
    pub(super) fn set_terminals(&mut self, now: Instant, terminals: u32) {
        let (since, count) = std::mem::replace(&mut self.terminals, (now, terminals));
        self.terminal_time += now.duration_since(since) * count;
    }

    /// Ends the present part at `now`, when the last samples were taken.
    pub(super) fn end_part(&mut self, workload: &dyn Workload, now: Instant) {
        let (began, tally) = self.since.take().unwrap_or_else(|| (self.began, self.kinds.clone()));
        self.parts.push(tally.part(workload, now.duration_since(began)));
        self.since = Some((now, Tally::new(workload)));
    }

    /// `now` is the time at which the last samples were taken: the true end of the window.
    pub(super) fn summary(mut self, workload: &dyn Workload, now: Instant) -> Summary {
        if self.since.is_some() {
            self.end_part(workload, now);
        }
        let duration_s = now.duration_since(self.began).as_secs_f64();
        self.set_terminals(now, 0);
        let kinds = self.kinds.into_kinds();
        let all_s = self.terminal_time.as_secs_f64();
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
            parts: self.parts,
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
        self.kinds.0.iter().map(|(kind, _)| kind.committed + kind.rolled_back).sum()
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
