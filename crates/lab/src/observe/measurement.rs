//! From what was seen in a measured window to a record: pure functions of the client's summary and the samples.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use hdrhistogram::Histogram;
use spindle_base::histogram;
use spindle_load::{Second, Summary};

use crate::observe::Sample;
use crate::observe::bottleneck::{self, Evidence, RedoEvidence, Symptoms};
use crate::record::FileClass;
use crate::record::{
    Check, CpuSummary, EmulatorSummary, HostView, Latency, Measurement, Metric, MountView, PerTransaction,
    Series, TransactionSummary, Warning,
};
use crate::stack::layout::Layout;

/// Server counters that are worth a chart: name in the record, name at the server, and whether it is a level.
const SERVER_SERIES: [(&str, &str, bool); 14] = [
    ("checkpoint_age_bytes", "Innodb_checkpoint_age", true),
    ("history_list", "Innodb_history_list_length", true),
    ("dirty_pages", "Innodb_buffer_pool_pages_dirty", true),
    ("buffer_pool_reads_per_s", "Innodb_buffer_pool_reads", false),
    ("pages_written_per_s", "Innodb_buffer_pool_pages_flushed", false),
    ("fsyncs_per_s", "Innodb_data_fsyncs", false),
    ("row_lock_waits_per_s", "Innodb_row_lock_waits", false),
    ("log_waits_per_s", "Innodb_log_waits", false),
    ("checkpoint_age_bytes", "checkpoint_age_bytes", true),
    (LOCK_WAITERS, LOCK_WAITERS, true),
    ("buffer_pool_reads_per_s", "pg_stat_database.blks_read", false),
    ("checkpoint_pages_written_per_s", "pg_stat_bgwriter.buffers_checkpoint", false),
    ("checkpoint_pages_written_per_s", "pg_stat_checkpointer.buffers_written", false),
    ("log_fsyncs_per_s", "pg_stat_wal.wal_sync", false),
];
/// How many sessions wait for a lock, where the server does not sum the time that they wait.
const LOCK_WAITERS: &str = "lock_waiters";
/// Reads of pages that the buffer pool did not have; a server has one of them.
const BUFFER_POOL_READS: [&str; 2] = ["Innodb_buffer_pool_reads", "pg_stat_database.blks_read"];

/// Everything seen in one measured window.
#[derive(Debug)]
pub struct Window {
    pub summary: Summary,
    /// The client's seconds, and one sample at the end of each; [`Window::first`] is the sample at the start.
    pub seconds: Vec<(Second, Sample)>,
    pub first: Sample,
    /// At the end of the window, also when it was shorter than a second.
    pub last: Sample,
    /// Says what each mount of the samples is.
    pub layout: Layout,
    /// In the order of the samples'.
    pub replicas: Vec<ReplicaFacts>,
    /// Those of [`LOG_SETTINGS`] that the server has.
    pub log_settings: BTreeMap<String, String>,
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
            client_cpu_s: kind.client_cpu_s,
            latency: latency(&latencies, kind.histogram.clone()),
        });
    }
    let ended: u64 = summary.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum();
    let failed: u64 = summary.kinds.iter().map(|kind| kind.failed).sum();

    let (first, last) = (&window.first, &window.last);
    let mounts = storage::mounts(window)?;
    let cpu = CpuSummary {
        busy: last.cpu.busy_since(first.cpu),
        server_s: last.server_cpu_s - first.server_cpu_s,
        client_s: summary.client_cpu_s,
        emulator_s: last.emulator_cpu_s - first.emulator_cpu_s,
    };
    let server_counters = counter_differences(first, last);
    let counter = |name: &str| server_counters.get(name).copied().unwrap_or(0.0);
    let reads = reads(&window.layout, &mounts[0]);
    let replication = replicas::view(window, &server_counters)?;
    // Two hundred threads have no more cores than the machine.
    let client_cores = summary.worker_threads.min(window.cpu_count);
    let evidence = Evidence {
        cpu_busy: cpu.busy,
        cpu_own: ratio(
            cpu.server_s + cpu.client_s + cpu.emulator_s + replicas::cpu_s(window),
            summary.duration_s * f64::from(window.cpu_count),
        ),
        cpu_count: window.cpu_count,
        client_share: ratio(summary.client_cpu_s, summary.duration_s * f64::from(client_cores)),
        client_cpu: ratio(summary.client_cpu_s, summary.duration_s * f64::from(window.cpu_count)),
        terminal_time_s: summary.terminal_time_s,
        commit_wait_s: summary.commit_wait_s,
        commits: commits::estimate(window, &server_counters, &mounts),
        acknowledgement_wait_s: commits::acknowledgement_wait_s(window, &server_counters),
        // What the page cache answered was not waited for.
        foreground_reads: BUFFER_POOL_READS.map(counter).iter().sum::<f64>().min(reads.count as f64),
        read_latency_mean_ms: reads.latency_mean_ms,
        read_place: reads.place,
        redo: redo_evidence(&window.layout, &mounts),
        lock_wait_s: counter("Innodb_row_lock_time") / 1e3 + sampled_lock_wait_s(window),
        // Comes with devices that state their bandwidth.
        bandwidth_share: None,
    };
    let per_transaction = per_transaction(ended, &mounts, &cpu);
    let series = series(window);
    let of_replicas =
        replication.iter().flat_map(|replication| &replication.replicas).flat_map(|replica| &replica.mounts);
    let emulators: Vec<&EmulatorSummary> = mounts.iter().chain(of_replicas).flat_map(emulators).collect();
    // The latest of the emulators: one of them is enough to spoil a latency.
    let latest = emulators.iter().max_by(|a, b| a.late_time_share.total_cmp(&b.late_time_share));
    let symptoms = Symptoms {
        scheduler: latest.map(|emulator| emulator.scheduler.clone()),
        requests: emulators.iter().map(|emulator| emulator.requests).sum(),
        late_share: latest.map_or(0.0, |emulator| emulator.late_time_share),
        lateness_p99_us: latest.map_or(0.0, |emulator| emulator.lateness_p99_us),
        major_faults: storage::major_faults(first, last),
        io_flusher_refused: storage::io_flusher_refused(last),
        transactions: ended,
        failed_transactions: failed,
        behind_s: summary.behind_s.unwrap_or(0.0),
        // A list has a trend of its own: quick operations follow slow ones.
        transactions_per_s: if summary.lower_is_better {
            Vec::new()
        } else {
            series.transactions_per_s.clone()
        },
    };
    let mut warnings = bottleneck::warnings(&evidence, &symptoms);
    warnings.extend(
        replication.iter().flat_map(|replication| replicas::warnings(replication, summary.duration_s)),
    );
    let measurement = Measurement {
        duration_s: summary.duration_s,
        metric: Metric {
            name: summary.headline_name.clone(),
            value: summary.headline_value,
            lower_is_better: summary.lower_is_better,
        },
        transactions,
        latency: latency(&all, histogram::encode(&all)),
        series,
        per_transaction,
        mounts,
        cpu,
        bottleneck: bottleneck::verdict(&evidence),
        replication,
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

/// An estimate: the mean number of waiters over the samples, times the duration. Zero where the server sums the time itself.
fn sampled_lock_wait_s(window: &Window) -> f64 {
    let samples = window.seconds.iter().map(|(_, sample)| sample).chain([&window.last]);
    let waiters: Vec<f64> = samples.filter_map(|sample| sample.counters.get(LOCK_WAITERS).copied()).collect();
    ratio(waiters.iter().sum(), waiters.len() as f64) * window.summary.duration_s
}

/// One for each device.
fn emulators(mount: &MountView) -> Vec<&EmulatorSummary> {
    match mount.devices.as_slice() {
        [] => mount.emulator.iter().collect(),
        devices => devices.iter().filter_map(|device| device.emulator.as_ref()).collect(),
    }
}

/// Reads of pages, as the kernel saw them.
#[derive(Debug, Default)]
struct Reads {
    count: u64,
    latency_mean_ms: f64,
    /// Where they went, when that is not the only place there is.
    place: Option<String>,
}

/// Pages come from where the data lies, whatever else the layout has; in a ZFS pool that is its cache device as well.
fn reads(layout: &Layout, data: &MountView) -> Reads {
    let stack = layout.stack_of(FileClass::Data);
    let devices: Vec<(&str, &HostView)> = data
        .devices
        .iter()
        .filter(|device| device.name != "log")
        .filter_map(|device| Some((device.name.as_str(), device.host.as_ref()?)))
        .collect();
    let (hosts, place): (Vec<&HostView>, _) = match devices.as_slice() {
        [] => {
            let is_apart = layout.mount_of(FileClass::Redo) > 0;
            (data.host.iter().collect(), is_apart.then(|| format!("`{stack}`")))
        }
        [(name, host)] => (vec![host], Some(format!("the {name} device of `{stack}`"))),
        several => {
            let names: Vec<&str> = several.iter().map(|(name, _)| *name).collect();
            let hosts = several.iter().map(|(_, host)| *host).collect();
            (hosts, Some(format!("the {} devices of `{stack}`", names.join(" and "))))
        }
    };
    let count = hosts.iter().map(|host| host.reads).sum();
    let total_ms: f64 = hosts.iter().map(|host| host.reads as f64 * host.read_latency_mean_ms).sum();
    Reads { count, latency_mean_ms: ratio(total_ms, count as f64), place }
}

/// What the kernel saw where a log is written, and the place in words if that is not where the data is: on a mount of its own, or, as a
/// ZFS pool has it, on a device for what must be durable at once.
fn log_host<'a>(
    layout: &Layout,
    mounts: &'a [MountView],
    log: FileClass,
) -> Option<(&'a HostView, Option<String>)> {
    let index = layout.mount_of(log);
    let (mount, stack) = (mounts.get(index)?, &layout.mounts[index].stack);
    match mount.devices.iter().find(|device| device.name == "log") {
        Some(log) => Some((log.host.as_ref()?, Some(format!("the log device of `{stack}`")))),
        None => Some((mount.host.as_ref()?, (index > 0).then(|| format!("`{stack}`")))),
    }
}

fn redo_evidence(layout: &Layout, mounts: &[MountView]) -> Option<RedoEvidence> {
    let (host, place) = log_host(layout, mounts, FileClass::Redo)?;
    Some(RedoEvidence {
        place: place?,
        write_latency_mean_ms: host.write_latency_mean_ms,
        flush_latency_mean_ms: (host.flushes > 0).then_some(host.flush_latency_mean_ms),
    })
}

/// Requests of all mounts together.
fn per_transaction(ended: u64, mounts: &[MountView], cpu: &CpuSummary) -> PerTransaction {
    let per = |amount: f64| ratio(amount, ended as f64);
    let of = |emulated: fn(&EmulatorSummary) -> u64, real: fn(&HostView) -> u64| {
        let amount = |mount: &MountView| match (&mount.emulator, &mount.host) {
            (Some(emulator), _) => emulated(emulator),
            (None, Some(host)) => real(host),
            (None, None) => 0,
        };
        per(mounts.iter().map(amount).sum::<u64>() as f64)
    };
    PerTransaction {
        reads: of(|emulator| emulator.reads, |host| host.reads),
        writes: of(|emulator| emulator.writes, |host| host.writes),
        read_kib: of(|emulator| emulator.read_bytes, |host| host.read_bytes) / 1024.0,
        write_kib: of(|emulator| emulator.write_bytes, |host| host.write_bytes) / 1024.0,
        flushes: of(|emulator| emulator.flushes, |host| host.flushes),
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
        series.p50_ms.extend(second.p50_ms);
        series.p95_ms.extend(second.p95_ms);
        series.p99_ms.extend(second.p99_ms);
        series.cpu_busy.push(sample.cpu.busy_since(earlier.cpu));
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

mod commits;
mod replicas;
mod storage;
#[cfg(test)]
mod tests;

pub use commits::LOG_SETTINGS;
pub use replicas::ReplicaFacts;
