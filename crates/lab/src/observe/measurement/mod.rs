//! Turns the samples of a measured window into a record, by pure functions of the client's summary and the
//! samples. The server interprets its own counters ([`Telemetry`]). This module contains no name of a counter
//! or a setting.

mod commits;
mod devices;
mod evidence;
mod machine;
mod replicas;
mod series;
mod storage;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use hdrhistogram::Histogram;
use spindle_base::dilation::Dilation;
use spindle_base::histogram;
use spindle_load::{Part, Second, Summary};
use spindle_model::Rates;

use crate::observe::machine::SAMPLING;
use crate::observe::{Sample, bottleneck};
use crate::record::{
    Bottleneck, Check, CpuSummary, EmulatorSummary, EventView, HostView, Latency, Measurement, MountView,
    PartView, PerTransaction, Settling, TransactionSummary, Warning,
};
use crate::server::telemetry::{Durability, Readings, Rounds, Telemetry};
use crate::stack::layout::Layout;
pub use replicas::ReplicaFacts;
pub use series::{push as push_second, push_of_clients};
pub use storage::push as push_storage;

/// All data of one measured window.
#[derive(Debug)]
pub struct Window {
    pub summary: Summary,
    /// The client's seconds, each with the sample at its end; [`Window::first`] is the sample at the start.
    pub seconds: Vec<(Second, Sample)>,
    pub first: Sample,
    /// Sample at the end of the window, also when the window was shorter than a second.
    pub last: Sample,
    /// [`Measurement::cache_turnovers`].
    pub cache_turnovers: Option<f64>,
    /// What the settling before the window found; `None` if it had a fixed time.
    pub settling: Option<Settling>,
    /// From the start of a server that was killed behind the window to its first answer.
    pub recovery_s: Option<f64>,
    /// Describes the mounts of the samples.
    pub layout: Layout,
    /// In the order of the samples' replicas.
    pub replicas: Vec<ReplicaFacts>,
    /// Interprets the samples' counters.
    pub telemetry: &'static dyn Telemetry,
    pub durability: Durability,
    /// Those that the parameters of the emulated devices state, in the order of the layout; empty if unknown.
    pub rates: Vec<Rates>,
    /// [`crate::record::MachineActivity::timer_tail_us`].
    pub timer_tail_us: Option<f64>,
    /// [`crate::record::MachineActivity::core_work_us`].
    pub core_work_us: Option<f64>,
    pub cpu_count: u32,
    /// Of the times above, which are all dilated.
    pub dilation: Dilation,
    /// Each is the end of a part of the summary, or happened together with another.
    pub events: Vec<EventView>,
}

impl Window {
    /// `moved` are the changes of the counters over the whole window.
    fn readings<'a>(&'a self, moved: &'a BTreeMap<String, f64>) -> Readings<'a> {
        let samples = self.seconds.iter().map(|(_, sample)| sample).chain([&self.last]);
        Readings {
            moved,
            looks: samples.map(|sample| &sample.counters).collect(),
            duration_s: self.summary.duration_s,
        }
    }

    /// Number of transactions that committed or rolled back as intended.
    fn ended(&self) -> u64 {
        self.summary.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum()
    }
}

/// The measurement, with the given verification, and its warnings.
pub fn measurement(window: &Window, verification: Vec<Check>) -> Result<(Measurement, Vec<Warning>)> {
    let summary = &window.summary;
    let (transactions, all) = transactions(summary)?;
    let mounts = storage::mounts(window, &window.layout, |sample| Some(&sample.mounts))?;
    let cpu = cpu(window);
    let server_counters = moved(window);
    let counters = window.telemetry.counters(&window.readings(&server_counters));
    if let Some(rounds) = counters.background.filter(|_| !window.dilation.is_none()) {
        check_rhythm(&rounds, summary.duration_s)?;
    }
    let replication = replicas::view(window, counters.semi_sync)?;
    let evidence = evidence::evidence(window, &cpu, &counters, &mounts);
    let per_transaction = per_transaction(window.ended(), &mounts, &cpu, counters.fsyncs);
    let series = series::series(window);
    let of_replicas =
        replication.iter().flat_map(|replication| &replication.replicas).flat_map(|replica| &replica.mounts);
    let emulators: Vec<&EmulatorSummary> = mounts.iter().chain(of_replicas).flat_map(emulators).collect();
    let symptoms = evidence::symptoms(window, &series, &emulators);
    let mut warnings = bottleneck::warnings(&evidence, &symptoms);
    let machine = machine::activity(window);
    warnings.extend(Warning::of_cache(window.cache_turnovers, evidence.foreground_reads, window.ended()));
    warnings.extend(Warning::of_host(machine.cpu_steal, machine.timer_tail_us));
    if window.durability.uses_page_cache && !window.dilation.is_none() {
        warnings.push(Warning::WritebackInRealTime);
    }
    warnings.extend(
        replication.iter().flat_map(|replication| replicas::warnings(replication, summary.duration_s)),
    );
    let measurement = Measurement {
        duration_s: summary.duration_s,
        dilation: window.dilation,
        metric: summary.metric.clone(),
        transactions,
        latency: all,
        series,
        cache_turnovers: window.cache_turnovers,
        settling: window.settling.clone(),
        recovery_s: window.recovery_s,
        per_transaction,
        mounts,
        cpu,
        machine: Some(machine),
        bottleneck: bottleneck::verdict(&evidence),
        replication,
        flushed_at_commit: window.durability.flushed_logs.clone(),
        server_counters,
        verification,
        events: window.events.clone(),
        parts: parts(summary)?,
        production: None,
    };
    Ok((measurement, warnings))
}

/// The bottleneck of a window that goes on, whose last sample is the newest. Its seconds are taken from
/// `looks`, the counters of each.
pub fn bottleneck_so_far(window: &Window, looks: Vec<&BTreeMap<String, f64>>) -> Result<Bottleneck> {
    let mounts = storage::mounts(window, &window.layout, |sample| Some(&sample.mounts))?;
    let moved = moved(window);
    let duration_s = window.summary.duration_s;
    let counters = window.telemetry.counters(&Readings { moved: &moved, looks, duration_s });
    let verdict = bottleneck::verdict(&evidence::evidence(window, &cpu(window), &counters, &mounts));
    // For those who follow, the sentence is enough.
    Ok(Bottleneck { evidence: None, ..verdict })
}

/// Summary of each kind of transaction, and the latencies of all kinds together. They are unknown if those of a
/// kind are: it has no histogram then.
fn transactions(summary: &Summary) -> Result<(Vec<TransactionSummary>, Latency)> {
    let mut all = histogram::new();
    let mut transactions = Vec::new();
    for kind in &summary.kinds {
        let latencies = match kind.histogram.as_str() {
            "" => histogram::new(),
            text => histogram::decode(text).with_context(|| format!("latencies of `{}`", kind.name))?,
        };
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
    let is_unknown = summary.kinds.iter().any(|kind| kind.histogram.is_empty());
    let all = if is_unknown { Latency::default() } else { latency(&all, histogram::encode(&all)) };
    Ok((transactions, all))
}

/// The parts of the window, one after the other.
fn parts(summary: &Summary) -> Result<Vec<PartView>> {
    let mut from_s = 0.0;
    let view = |part: &Part| {
        let latencies = histogram::decode(&part.histogram).context("latencies of a part of the window")?;
        let to_s = from_s + part.duration_s;
        let latency = latency(&latencies, part.histogram.clone());
        Ok(PartView {
            from_s: std::mem::replace(&mut from_s, to_s),
            to_s,
            metric: part.metric.clone(),
            latency,
        })
    };
    summary.parts.iter().map(view).collect()
}

fn cpu(window: &Window) -> CpuSummary {
    let (first, last) = (&window.first, &window.last);
    CpuSummary {
        busy: last.cpu.busy_since(first.cpu),
        server_s: last.server_cpu_s - first.server_cpu_s,
        client_s: window.summary.client_cpu_s,
        emulator_s: last.emulator_cpu_s - first.emulator_cpu_s,
        sampling_s: spent_on(SAMPLING, first, last),
    }
}

fn spent_on(reading: &str, first: &Sample, last: &Sample) -> Option<f64> {
    Some(last.readings.get(reading)? - first.readings.get(reading)?)
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

/// Checks that a background thread of a server in dilated time has not worked to another clock.
fn check_rhythm(rounds: &Rounds, duration_s: f64) -> Result<()> {
    /// A round at each end of the window, whose samples are taken a moment before and after it.
    const AT_THE_ENDS: f64 = 2.0;
    const TOLERANCE: f64 = 0.02;
    let most = duration_s / rounds.period_s * (1.0 + TOLERANCE) + AT_THE_ENDS;
    ensure!(
        rounds.count <= most,
        "the server's background does not run in dilated time: {} made {} rounds in {duration_s:.1} s of the trial's \
         time, one each {} s; nothing of this trial counts",
        rounds.who,
        rounds.count,
        rounds.period_s
    );
    Ok(())
}

/// Change of each counter. Levels are in the series instead.
fn moved(window: &Window) -> BTreeMap<String, f64> {
    let lines = window.telemetry.charts().iter().flat_map(|chart| chart.lines);
    let levels: Vec<&str> = lines.flat_map(|line| line.levels()).copied().collect();
    let before = |name: &str| window.first.counters.get(name).copied().unwrap_or(0.0);
    let counters = window.last.counters.iter().filter(|(name, _)| !levels.contains(&name.as_str()));
    counters
        .map(|(name, value)| (name.clone(), value - before(name)))
        .filter(|(_, difference)| *difference != 0.0)
        .collect()
}

/// The emulator of each device.
fn emulators(mount: &MountView) -> Vec<&EmulatorSummary> {
    match mount.devices.as_slice() {
        [] => mount.emulator.iter().collect(),
        devices => devices.iter().filter_map(|device| device.emulator.as_ref()).collect(),
    }
}

/// Requests of all mounts per transaction.
fn per_transaction(
    ended: u64,
    mounts: &[MountView],
    cpu: &CpuSummary,
    fsyncs: Option<f64>,
) -> PerTransaction {
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
        fsyncs: fsyncs.map(per),
    }
}
