//! The output of `spindle load`: tables, and one JSON object for other programs, whose keys are in
//! docs/load.md. Histograms are internal and are left out.

use std::collections::BTreeMap;

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;
use spindle_base::histogram;
use spindle_load::{Check, KindSummary, Metric, Summary, Workload, WorkloadSpec};

/// The whole output.
#[derive(Debug, Serialize)]
pub(super) struct Output {
    workload: &'static str,
    seed: u64,
    /// `None` without a measurement.
    summary: Option<Window>,
    verification: Vec<Check>,
    /// Deviations of the workload from its specification.
    deviations: Vec<&'static str>,
    /// Omitted parts, with the reasons.
    skipped: Vec<String>,
}

/// The measured window.
#[derive(Debug, Serialize)]
struct Window {
    metric: Metric,
    duration_s: f64,
    transactions_per_s: f64,
    terminals: u32,
    kinds: Vec<Kind>,
    commit_wait_s: Option<f64>,
    terminal_time_s: f64,
    client_cpu_s: f64,
    errors: BTreeMap<String, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behind_s: Option<f64>,
}

/// One kind of transaction. Unknown latencies are `None`.
#[derive(Debug, Serialize)]
struct Kind {
    name: String,
    committed: u64,
    rolled_back: u64,
    retried: u64,
    failed: u64,
    mean_ms: Option<f64>,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
    /// Sum of the latencies.
    total_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_cpu_s: Option<f64>,
    /// Whether every transaction ends with a durable write; `None` when unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    is_durable: Option<bool>,
}

impl Output {
    pub(super) fn new(
        spec: &WorkloadSpec,
        workload: &dyn Workload,
        seed: u64,
        summary: Option<Summary>,
        verification: Vec<Check>,
    ) -> Result<Output> {
        Ok(Output {
            workload: spec.kind(),
            seed,
            summary: summary.map(|summary| Window::new(summary, &workload.durable_kinds())).transpose()?,
            verification,
            deviations: spec.deviations(),
            skipped: spec.skipped(),
        })
    }

    pub(super) fn failed_checks(&self) -> usize {
        self.verification.iter().filter(|check| !check.passed).count()
    }

    /// The output as tables and sentences.
    pub(super) fn text(&self) -> String {
        let mut text = match &self.summary {
            Some(window) if window.metric.lower_is_better => window.operations(),
            Some(window) => window.table(),
            None => String::new(),
        };
        for skipped in &self.skipped {
            text.push_str(&format!("skipped: {skipped}\n"));
        }
        for Check { name, passed, detail } in &self.verification {
            let verdict = if *passed { "ok    " } else { "FAILED" };
            text.push_str(&spindle_base::text::one_line(&format!("{verdict}  {name}: {detail}")));
            text.push('\n');
        }
        text
    }
}

impl Kind {
    fn new(kind: KindSummary, is_durable: Option<bool>) -> Result<Kind> {
        let latencies = histogram::decode(&kind.histogram)?;
        let known = |latency_ms: &dyn Fn(&Histogram<u64>) -> f64| {
            (!latencies.is_empty()).then(|| latency_ms(&latencies) / 1000.0)
        };
        let quantile = |share: f64| known(&|latencies| latencies.value_at_quantile(share) as f64);
        Ok(Kind {
            name: kind.name,
            committed: kind.committed,
            rolled_back: kind.rolled_back,
            retried: kind.retried,
            failed: kind.failed,
            mean_ms: known(&Histogram::mean),
            p50_ms: quantile(0.50),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            max_ms: known(&|latencies| latencies.max() as f64),
            total_s: known(&|latencies| latencies.mean() * latencies.len() as f64 / 1000.0),
            client_cpu_s: kind.client_cpu_s,
            is_durable,
        })
    }
}

impl Window {
    fn new(summary: Summary, durable_kinds: &[bool]) -> Result<Window> {
        let kinds = summary.kinds.into_iter().enumerate();
        let kinds = kinds.map(|(index, kind)| Kind::new(kind, durable_kinds.get(index).copied()));
        let mut window = Window {
            metric: summary.metric,
            duration_s: summary.duration_s,
            transactions_per_s: 0.0,
            terminals: summary.worker_threads,
            kinds: kinds.collect::<Result<_>>()?,
            commit_wait_s: summary.commit_wait_s,
            terminal_time_s: summary.terminal_time_s,
            client_cpu_s: summary.client_cpu_s,
            errors: summary.errors,
            behind_s: summary.behind_s,
        };
        window.transactions_per_s = window.ended() as f64 / window.duration_s;
        Ok(window)
    }

    fn ended(&self) -> u64 {
        self.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum()
    }

    fn table(&self) -> String {
        let mut text =
            "transaction     committed  rolled back  retried   failed   mean ms    p50 ms    p95 ms    p99 ms\n"
                .to_owned();
        for kind in &self.kinds {
            text.push_str(&format!(
                "{:14}{:>11}{:>13}{:>9}{:>9}{:>10.2}{:>10.2}{:>10.2}{:>10.2}\n",
                kind.name,
                kind.committed,
                kind.rolled_back,
                kind.retried,
                kind.failed,
                kind.mean_ms.unwrap_or(0.0),
                kind.p50_ms.unwrap_or(0.0),
                kind.p95_ms.unwrap_or(0.0),
                kind.p99_ms.unwrap_or(0.0)
            ));
        }
        text + &self.conclusion()
    }

    fn conclusion(&self) -> String {
        let rate = format!("{:.1}", self.transactions_per_s);
        let metric = format!("{:.1}", self.metric.value);
        // Skipped when the metric is the rate of transactions itself.
        let is_said = metric == rate && self.metric.name.ends_with(" per second");
        let all = if is_said { String::new() } else { format!("{rate} transactions per second; ") };
        let cpu_us = self.client_cpu_s * 1e6 / self.ended().max(1) as f64;
        let commit = self.commit_wait_s.map_or(String::new(), |seconds| {
            format!("; {:.0} % of the time in COMMIT", seconds / self.terminal_time_s * 100.0)
        });
        let name = &self.metric.name;
        let mut text = format!("{metric} {name}; {all}{cpu_us:.1} us client CPU per transaction{commit}\n");
        for (message, count) in &self.errors {
            text.push_str(&format!("{count} times: {message}\n"));
        }
        text
    }

    /// For fixed work: the time of each operation.
    fn operations(&self) -> String {
        let says_durable = self.kinds.iter().any(|kind| kind.is_durable.is_some());
        let storage = if says_durable { "  storage" } else { "" };
        let mut text =
            format!("operation                             count     seconds  client CPU s{storage}\n");
        for kind in &self.kinds {
            let mark = if kind.is_durable == Some(true) { "  *" } else { "" };
            let cpu_s = kind.client_cpu_s.map_or("-".to_owned(), |seconds| format!("{seconds:.3}"));
            let (name, seconds) = (&kind.name, kind.total_s.unwrap_or(0.0));
            text.push_str(&format!("{name:34}{:>9}{seconds:>12.3}{cpu_s:>14}{mark}\n", kind.committed));
        }
        text.push_str(&format!("{:34}{:>9}{:>12.3}\n", "all", "", self.metric.value));
        if says_durable {
            text.push_str("* each operation ends with a commit, or creates, alters or drops a table\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(metric: Metric, latencies_us: &[u64]) -> Window {
        let mut histogram = histogram::new();
        latencies_us.iter().for_each(|latency| histogram.record(*latency).unwrap());
        let kind = KindSummary {
            name: "a".to_owned(),
            committed: 50,
            histogram: histogram::encode(&histogram),
            ..Default::default()
        };
        let summary = Summary { duration_s: 10.0, metric, kinds: vec![kind], ..Summary::default() };
        Window::new(summary, &[true]).unwrap()
    }

    #[track_caller]
    fn check(metric: (&str, f64), expect: &str) {
        let text = window(Metric::rate(metric.0, metric.1), &[]).table();
        assert_eq!(text.lines().last().unwrap(), expect);
    }

    #[test]
    fn a_rate_is_said_once() {
        check(("statements per second", 5.0), "5.0 statements per second; 0.0 us client CPU per transaction");
        check(
            ("rows per second", 500.0),
            "500.0 rows per second; 5.0 transactions per second; 0.0 us client CPU per transaction",
        );
        check(
            ("orders per minute", 5.0),
            "5.0 orders per minute; 5.0 transactions per second; 0.0 us client CPU per transaction",
        );
    }

    #[test]
    fn latencies_are_milliseconds_or_unknown() {
        let latencies = |latencies_us: &[u64]| {
            let window = window(Metric::rate("x", 1.0), latencies_us);
            let kind = serde_json::to_value(&window.kinds[0]).unwrap();
            ["mean_ms", "p50_ms", "p95_ms", "p99_ms", "max_ms", "total_s"].map(|name| kind[name].as_f64())
        };
        assert_eq!(latencies(&[]), [None; 6]);
        assert_eq!(latencies(&[500, 1_500]), [1.0, 0.5, 1.5, 1.5, 1.5, 0.002].map(Some));
    }

    #[test]
    fn fixed_work_is_told_by_operation() {
        let metric = Metric { name: "seconds for the list".to_owned(), value: 0.002, lower_is_better: true };
        let text = window(metric, &[500, 1_500]).operations();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].ends_with("  storage"), "{text}");
        assert_eq!(lines[1].split_whitespace().collect::<Vec<_>>(), ["a", "50", "0.002", "-", "*"]);
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["all", "0.002"]);
    }
}
