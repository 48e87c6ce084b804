//! From what was seen in a measured window to a record: pure functions of the client's summary and the samples.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use spindle_load::runner::histogram;
use spindle_load::{Second, Summary};
use spindle_mount::{OperationStatistics, Statistics};

use crate::limiter::{self, Evidence, Symptoms};
use crate::observe::{self, BlockCounters, BlockOperation, Sample};
use crate::record::{
    Check, CpuSummary, EmulatorSummary, Headline, HostView, Latency, Measurement, PerTransaction, Series,
    TransactionSummary, Warning,
};

/// Server counters that are worth a chart: name in the record, name at the server, and whether it is a level.
const SERVER_SERIES: [(&str, &str, bool); 8] = [
    ("checkpoint_age_bytes", "Innodb_checkpoint_age", true),
    ("history_list", "Innodb_history_list_length", true),
    ("dirty_pages", "Innodb_buffer_pool_pages_dirty", true),
    ("buffer_pool_reads_per_s", "Innodb_buffer_pool_reads", false),
    ("pages_written_per_s", "Innodb_buffer_pool_pages_flushed", false),
    ("fsyncs_per_s", "Innodb_data_fsyncs", false),
    ("row_lock_waits_per_s", "Innodb_row_lock_waits", false),
    ("log_waits_per_s", "Innodb_log_waits", false),
];

/// Everything seen in one measured window.
#[derive(Debug)]
pub struct Window {
    pub summary: Summary,
    /// The client's seconds, and one sample at the end of each; [`Window::first`] is the sample at the start.
    pub seconds: Vec<(Second, Sample)>,
    pub first: Sample,
    /// At the end of the window, also when it was shorter than a second.
    pub last: Sample,
    pub cpu_count: u32,
}

/// The measurement without its verification.
pub fn measurement(window: &Window, verification: Vec<Check>) -> Result<(Measurement, Vec<Warning>)> {
    let summary = &window.summary;
    let mut all = histogram::new();
    let mut transactions = Vec::new();
    for kind in &summary.kinds {
        let latencies =
            histogram::decode(&kind.histogram).with_context(|| format!("latencies of `{}`", kind.name))?;
        all.add(&latencies).context("adding latencies up")?;
        transactions.push(TransactionSummary {
            name: kind.name.clone(),
            committed: kind.committed,
            rolled_back: kind.rolled_back,
            retried: kind.retried,
            failed: kind.failed,
            latency: latency(&latencies, kind.histogram.clone()),
        });
    }
    let ended: u64 = summary.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum();
    let failed: u64 = summary.kinds.iter().map(|kind| kind.failed).sum();

    let (first, last) = (&window.first, &window.last);
    let emulator = match (&first.statistics, &last.statistics) {
        (Some(earlier), Some(later)) => Some(emulator_summary(earlier, later)?),
        _ => None,
    };
    let cpu = CpuSummary {
        busy: last.cpu.busy_since(first.cpu),
        server_s: last.server_cpu_s - first.server_cpu_s,
        client_s: summary.client_cpu_s,
        emulator_s: last.emulator_cpu_s - first.emulator_cpu_s,
    };
    let host = first.block_device.zip(last.block_device).map(|(earlier, later)| host_view(earlier, later));
    let server_counters = counter_differences(first, last);
    let counter = |name: &str| server_counters.get(name).copied().unwrap_or(0.0);
    let evidence = Evidence {
        cpu_busy: cpu.busy,
        cpu_own: ratio(
            cpu.server_s + cpu.client_s + cpu.emulator_s,
            summary.duration_s * f64::from(window.cpu_count),
        ),
        cpu_count: window.cpu_count,
        client_share: ratio(summary.client_cpu_s, summary.duration_s * f64::from(summary.worker_threads)),
        terminal_time_s: summary.terminal_time_s,
        commit_wait_s: summary.commit_wait_s,
        foreground_reads: counter("Innodb_buffer_pool_reads"),
        read_latency_mean_ms: host.as_ref().map_or(0.0, |host| host.read_latency_mean_ms),
        lock_wait_s: counter("Innodb_row_lock_time") / 1e3,
        // Comes with devices that state their bandwidth.
        bandwidth_share: None,
    };
    let series = series(window);
    let symptoms = Symptoms {
        scheduler: emulator.as_ref().map(|emulator| emulator.scheduler.clone()),
        requests: emulator.as_ref().map_or(0, |emulator| emulator.requests),
        late_share: emulator.as_ref().map_or(0.0, |emulator| emulator.late_time_share),
        lateness_p99_us: emulator.as_ref().map_or(0.0, |emulator| emulator.lateness_p99_us),
        major_faults: match (&first.statistics, &last.statistics) {
            (Some(earlier), Some(later)) => later.major_faults.saturating_sub(earlier.major_faults),
            _ => 0,
        },
        transactions: ended,
        failed_transactions: failed,
        transactions_per_s: series.transactions_per_s.clone(),
    };
    let warnings = limiter::warnings(&evidence, &symptoms);
    let measurement = Measurement {
        duration_s: summary.duration_s,
        headline: Headline { name: summary.headline_name.clone(), value: summary.headline_value },
        transactions,
        latency: latency(&all, histogram::encode(&all)),
        series,
        per_transaction: per_transaction(ended, emulator.as_ref(), &cpu),
        emulator,
        host,
        cpu,
        limiter: limiter::verdict(&evidence),
        server_counters,
        verification,
    };
    Ok((measurement, warnings))
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

fn latency(microseconds: &Histogram<u64>, histogram: String) -> Latency {
    let quantile_ms = |share: f64| microseconds.value_at_quantile(share) as f64 / 1e3;
    Latency {
        count: microseconds.len(),
        mean_ms: if microseconds.is_empty() { 0.0 } else { microseconds.mean() / 1e3 },
        p50_ms: quantile_ms(0.50),
        p95_ms: quantile_ms(0.95),
        p99_ms: quantile_ms(0.99),
        p999_ms: quantile_ms(0.999),
        max_ms: microseconds.max() as f64 / 1e3,
        histogram,
    }
}

fn difference(earlier: &OperationStatistics, later: &OperationStatistics) -> OperationStatistics {
    OperationStatistics {
        count: later.count.saturating_sub(earlier.count),
        bytes: later.bytes.saturating_sub(earlier.bytes),
        latency_ns: later.latency_ns.saturating_sub(earlier.latency_ns),
    }
}

fn mean_ms(operations: &OperationStatistics) -> f64 {
    ratio(operations.latency_ns as f64 / 1e6, operations.count as f64)
}

fn emulator_summary(earlier: &Statistics, later: &Statistics) -> Result<EmulatorSummary> {
    let read = difference(&earlier.read, &later.read);
    let write = difference(&earlier.write, &later.write);
    let flush = difference(&earlier.flush, &later.flush);
    let discard = difference(&earlier.discard, &later.discard);
    let requests = read.count + write.count + flush.count + discard.count;
    let lateness = observe::histogram_difference(&earlier.lateness_histogram, &later.lateness_histogram)?;
    let lateness_us = |share: f64| lateness.value_at_quantile(share) as f64 / 1e3;
    Ok(EmulatorSummary {
        scheduler: later.scheduler.clone(),
        transport: later.transport.clone(),
        floor_us: later.floor.idle.alone_ns as f64 / 1e3,
        requests,
        lateness_p50_us: lateness_us(0.50),
        lateness_p99_us: lateness_us(0.99),
        lateness_max_us: lateness_us(1.0),
        late_time_share: ratio(
            later.late_ns.saturating_sub(earlier.late_ns) as f64,
            later.queue_time_ns.saturating_sub(earlier.queue_time_ns) as f64,
        ),
        late_share: ratio(later.late_requests.saturating_sub(earlier.late_requests) as f64, requests as f64),
        reads: read.count,
        writes: write.count,
        flushes: flush.count,
        read_bytes: read.bytes,
        write_bytes: write.bytes,
        read_latency_mean_ms: mean_ms(&read),
        write_latency_mean_ms: mean_ms(&write),
        flush_latency_mean_ms: mean_ms(&flush),
        queue_depth_mean: ratio(
            later.queue_time_ns.saturating_sub(earlier.queue_time_ns) as f64,
            later.uptime_ns.saturating_sub(earlier.uptime_ns) as f64,
        ),
        seeks: later.seeks.saturating_sub(earlier.seeks),
    })
}

fn host_view(earlier: BlockCounters, later: BlockCounters) -> HostView {
    let mean_ms = |earlier: BlockOperation, later: BlockOperation| {
        ratio((later.milliseconds - earlier.milliseconds) as f64, (later.count - earlier.count) as f64)
    };
    HostView {
        reads: later.read.count - earlier.read.count,
        writes: later.write.count - earlier.write.count,
        flushes: later.flush.count - earlier.flush.count,
        read_latency_mean_ms: mean_ms(earlier.read, later.read),
        write_latency_mean_ms: mean_ms(earlier.write, later.write),
        flush_latency_mean_ms: mean_ms(earlier.flush, later.flush),
    }
}

/// Counters that moved. Levels are in the series, where they mean something.
fn counter_differences(first: &Sample, last: &Sample) -> BTreeMap<String, f64> {
    let is_level = |name: &str| SERVER_SERIES.iter().any(|(_, known, level)| *known == name && *level);
    last.counters
        .iter()
        .filter(|(name, _)| !is_level(name))
        .map(|(name, value)| (name.clone(), value - first.counters.get(name).copied().unwrap_or(0.0)))
        .filter(|(_, difference)| *difference != 0.0)
        .collect()
}

fn per_transaction(ended: u64, emulator: Option<&EmulatorSummary>, cpu: &CpuSummary) -> PerTransaction {
    let per = |amount: f64| ratio(amount, ended as f64);
    let of = |amount: fn(&EmulatorSummary) -> u64| per(emulator.map_or(0, amount) as f64);
    PerTransaction {
        reads: of(|emulator| emulator.reads),
        writes: of(|emulator| emulator.writes),
        read_kib: of(|emulator| emulator.read_bytes) / 1024.0,
        write_kib: of(|emulator| emulator.write_bytes) / 1024.0,
        flushes: of(|emulator| emulator.flushes),
        server_cpu_us: per(cpu.server_s * 1e6),
        client_cpu_us: per(cpu.client_s * 1e6),
    }
}

fn series(window: &Window) -> Series {
    let mut series = Series::default();
    let mut earlier = &window.first;
    for (second, sample) in &window.seconds {
        let elapsed_s = sample.at.duration_since(earlier.at).as_secs_f64();
        series.transactions_per_s.push(second.transactions as f64);
        series.p50_ms.push(second.p50_ms);
        series.p95_ms.push(second.p95_ms);
        series.p99_ms.push(second.p99_ms);
        series.cpu_busy.push(sample.cpu.busy_since(earlier.cpu));
        let none = Statistics::default();
        let (from, to) =
            (earlier.statistics.as_ref().unwrap_or(&none), sample.statistics.as_ref().unwrap_or(&none));
        let read = difference(&from.read, &to.read);
        let write = difference(&from.write, &to.write);
        let flush = difference(&from.flush, &to.flush);
        series.read_iops.push(ratio(read.count as f64, elapsed_s));
        series.write_iops.push(ratio(write.count as f64, elapsed_s));
        series.flushes_per_s.push(ratio(flush.count as f64, elapsed_s));
        series.read_mb_per_s.push(ratio(read.bytes as f64 / 1e6, elapsed_s));
        series.write_mb_per_s.push(ratio(write.bytes as f64 / 1e6, elapsed_s));
        let queue_time_ns = to.queue_time_ns.saturating_sub(from.queue_time_ns);
        let uptime_ns = to.uptime_ns.saturating_sub(from.uptime_ns);
        series.queue_depth.push(ratio(queue_time_ns as f64, uptime_ns as f64));
        series.read_latency_ms.push(mean_ms(&read));
        series.write_latency_ms.push(mean_ms(&write));
        series.flush_latency_ms.push(mean_ms(&flush));
        for (name, counter, level) in SERVER_SERIES {
            let Some(now) = sample.counters.get(counter) else { continue };
            let before = earlier.counters.get(counter).copied().unwrap_or(*now);
            let value = if level { *now } else { ratio(now - before, elapsed_s) };
            series.server.entry(name.to_owned()).or_default().push(value);
        }
        earlier = sample;
    }
    // A counter that the server did not give every time would shift against the others.
    let length = series.transactions_per_s.len();
    series.server.retain(|_, values| values.len() == length);
    series
}

#[cfg(test)]
mod tests;
