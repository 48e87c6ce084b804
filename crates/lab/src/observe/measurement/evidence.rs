//! The figures behind a verdict, and the symptoms behind warnings.

use std::collections::BTreeMap;

use super::{Window, commits, devices, ratio, replicas, storage};
use crate::observe::bottleneck::Symptoms;
use crate::observe::waits::{FILE_LOCK_WAITERS, READ_WAITERS};
use crate::record::{
    BusyThread, CpuSummary, EmulatorSummary, Evidence, FileClass, HostView, MountView, NeverSettled,
    RedoEvidence, Series, ThreadEvidence,
};
use crate::server::telemetry::{Counters, Engine};
use crate::stack::layout::Layout;

/// `mounts` are in the order of the layout, with the data's first.
pub(super) fn evidence(
    window: &Window,
    cpu: &CpuSummary,
    counters: &Counters,
    mounts: &[MountView],
) -> Evidence {
    let summary = &window.summary;
    let reads = reads(&window.layout, &mounts[0]);
    let of_cores = |cpu_s: f64, cores: u32| ratio(cpu_s, summary.duration_s * f64::from(cores));
    let own_s = cpu.server_s + cpu.client_s + cpu.emulator_s + replicas::cpu_s(window);
    let engine = window.telemetry.engine();
    let device_reads = reads.count as f64;
    Evidence {
        duration_s: summary.duration_s,
        terminals: summary.worker_threads,
        cpu_busy: cpu.busy,
        cpu_own: of_cores(own_s, window.cpu_count),
        cpu_programs: of_cores(cpu.server_s + cpu.client_s, window.cpu_count),
        // Counters without a process are those of a server that ran already.
        is_server_cpu_unknown: engine == Engine::Process
            && cpu.server_s == 0.0
            && !window.last.counters.is_empty(),
        cpu_count: window.cpu_count,
        // The machine's cores limit any number of threads.
        client_share: of_cores(summary.client_cpu_s, summary.worker_threads.min(window.cpu_count)),
        client_cpu: of_cores(summary.client_cpu_s, window.cpu_count),
        is_client_the_database: engine == Engine::InClients,
        threads: threads(window, engine),
        terminal_time_s: summary.terminal_time_s,
        commit_wait_s: summary.commit_wait_s,
        commits: commits::estimate(window, counters, mounts),
        acknowledgement_wait_s: commits::acknowledgement_wait_s(window, counters),
        foreground_reads: match (engine, counters.foreground_reads) {
            // Reads from the page cache cause no wait.
            (Engine::Process, counted) => counted.unwrap_or(0.0).min(device_reads),
            (Engine::InClients | Engine::Files, _) => device_reads,
        },
        read_latency_mean_ms: reads.latency_mean_ms,
        read_place: reads.place,
        read_wait_s: wait_s(window, READ_WAITERS),
        redo: redo_evidence(&window.layout, mounts),
        lock_wait_s: counters.lock_wait_s.unwrap_or(0.0),
        file_lock_wait_s: wait_s(window, FILE_LOCK_WAITERS),
        writer_wait_s: summary.lock_wait_s,
        storage: devices::storage(window, mounts),
        rate: devices::rate(window, mounts),
    }
}

/// The mean number of waiting threads times the duration.
fn wait_s(window: &Window, waiters: &str) -> Option<f64> {
    let waiters = window.seconds.iter().filter_map(|(_, sample)| sample.readings.get(waiters).copied());
    let mean = spindle_stats::mean(&waiters.collect::<Vec<f64>>())?;
    Some(mean * window.summary.duration_s)
}

/// CPU time of the server's busiest threads over the window. A thread that has ended is not counted.
fn threads(window: &Window, engine: Engine) -> Option<ThreadEvidence> {
    if engine != Engine::Process {
        return Some(ThreadEvidence::default());
    }
    let before: BTreeMap<u32, f64> =
        window.first.server_threads.iter().map(|thread| (thread.id, thread.cpu_s)).collect();
    let mut spent: Vec<(f64, &str)> = window
        .last
        .server_threads
        .iter()
        .map(|thread| {
            let earlier = before.get(&thread.id).copied().unwrap_or(0.0);
            ((thread.cpu_s - earlier).max(0.0), thread.name.as_str())
        })
        .collect();
    spent.sort_by(|left, right| right.0.total_cmp(&left.0));
    let (busiest_s, name) = *spent.first()?;
    Some(ThreadEvidence {
        busiest_s: spent
            .iter()
            .take(window.summary.worker_threads as usize)
            .map(|(spent_s, _)| spent_s)
            .sum(),
        busiest: Some(BusyThread {
            name: name.to_owned(),
            share: ratio(busiest_s, window.summary.duration_s).min(1.0),
        }),
    })
}

/// `emulators` include those of the replicas.
pub(super) fn symptoms(window: &Window, series: &Series, emulators: &[&EmulatorSummary]) -> Symptoms {
    // The emulator with the largest late share. A single late emulator is enough to distort latencies.
    let latest = emulators.iter().max_by(|a, b| a.late_time_share.total_cmp(&b.late_time_share));
    // Operations of a list differ in speed, and events change it, so a trend is expected.
    let has_trend = window.summary.metric.lower_is_better || !window.events.is_empty();
    Symptoms {
        scheduler: latest.map(|emulator| emulator.scheduler.clone()),
        requests: emulators.iter().map(|emulator| emulator.requests).sum(),
        late_share: latest.map_or(0.0, |emulator| emulator.late_time_share),
        lateness_p99_us: latest.map_or(0.0, |emulator| emulator.lateness_p99_us),
        major_faults: storage::major_faults(&window.first, &window.last),
        io_flusher_refused: storage::io_flusher_refused(&window.last),
        transactions: window.ended(),
        failed_transactions: window.summary.kinds.iter().map(|kind| kind.failed).sum(),
        behind_s: window.summary.behind_s.unwrap_or(0.0),
        transactions_per_s: if has_trend { Vec::new() } else { series.transactions_per_s.clone() },
        never_settled: window.settling.as_ref().and_then(NeverSettled::of),
    }
}

/// Page reads, as the kernel saw them.
#[derive(Debug, Default)]
struct Reads {
    count: u64,
    latency_mean_ms: f64,
    /// Name of the devices, when the layout has others.
    place: Option<String>,
}

/// Pages are read from the storage of the data, in a ZFS pool also from its cache device.
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

fn redo_evidence(layout: &Layout, mounts: &[MountView]) -> Option<RedoEvidence> {
    let (host, place) = storage::log_host(layout, mounts, FileClass::Redo)?;
    Some(RedoEvidence {
        place: place?,
        write_latency_mean_ms: host.write_latency_mean_ms,
        flush_latency_mean_ms: (host.flushes > 0).then_some(host.flush_latency_mean_ms),
    })
}
