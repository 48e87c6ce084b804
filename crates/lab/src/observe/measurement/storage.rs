//! The activity of each mount in a measured window: the emulator's figures, and the kernel's where there is a
//! block device.

use std::time::Duration;

use anyhow::Result;
use spindle_mount::{LayerStatistics, OperationStatistics, Statistics};

use super::{Window, ratio};
use crate::observe::{self, Sample};
use crate::record::{
    DeviceView, EmulatorSummary, FileClass, HostSeries, HostView, LayerView, MountView, OperationSeries,
    StorageSeries,
};
use crate::report::rounded;
use crate::stack::layout::Layout;
use crate::volume::sample::{BlockCounters, MountSample};

/// The mounts that `of` finds in each sample, in the order of the layout.
pub(super) fn mounts(
    window: &Window,
    layout: &Layout,
    of: impl Fn(&Sample) -> Option<&Vec<MountSample>>,
) -> Result<Vec<MountView>> {
    let of_index = |index: usize| mount(window, &|sample| of(sample)?.get(index).cloned());
    (0..layout.mounts.len()).map(of_index).collect()
}

/// The kernel's figures for the storage of a log, and the name of the storage if it differs from that of the
/// data. A log may have its own mount or, in a ZFS pool, a separate log device.
pub(super) fn log_host<'a>(
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

/// Reads of the host's disk by all emulators.
pub(super) fn major_faults(first: &Sample, last: &Sample) -> u64 {
    let faults = |sample| all_statistics(sample).map(|statistics| statistics.major_faults).sum::<u64>();
    faults(last).saturating_sub(faults(first))
}

/// Whether at least one of the emulators could wait for its own disk.
pub(super) fn io_flusher_refused(sample: &Sample) -> bool {
    all_statistics(sample).any(|statistics| statistics.io_flusher_refused)
}

fn all_statistics(sample: &Sample) -> impl Iterator<Item = &Statistics> {
    let of_replicas = sample.replicas.iter().flat_map(|replica| &replica.mounts);
    sample.mounts.iter().chain(of_replicas).filter_map(|mount| mount.statistics.as_ref())
}

fn mount(window: &Window, pick: &dyn Fn(&Sample) -> Option<MountSample>) -> Result<MountView> {
    let mut mount = view(window, pick)?;
    let names = pick(&window.first).into_iter().flat_map(|mount| mount.devices);
    for (place, (name, _)) in names.enumerate() {
        let device = |sample: &Sample| Some(pick(sample)?.devices.get(place)?.1.clone());
        let MountView { emulator, host, series, host_series, layers, .. } = view(window, device)?;
        mount.devices.push(DeviceView { name: name.to_owned(), emulator, host, series, host_series, layers });
    }
    Ok(mount)
}

/// The view of the mount or device that `pick` selects from each sample.
fn view(window: &Window, pick: impl Fn(&Sample) -> Option<MountSample>) -> Result<MountView> {
    let sample = |sample: &Sample| pick(sample).unwrap_or_default();
    let (first, last) = (sample(&window.first), sample(&window.last));
    let elapsed = window.last.at - window.first.at;
    let emulator = match (&first.statistics, &last.statistics) {
        (Some(earlier), Some(later)) => Some(emulator_summary(earlier, later)?),
        _ => None,
    };
    let layers = first.statistics.as_ref().zip(last.statistics.as_ref());
    let layers = layers.map(|(earlier, later)| layers_between(earlier, later)).unwrap_or_default();
    let host = first.block_device.zip(last.block_device);
    let host = host.map(|(earlier, later)| host_view(&Activity::of_kernel(earlier, later, elapsed)));
    let (mut series, mut host_series) = (StorageSeries::default(), HostSeries::default());
    let (mut earlier, mut earlier_at) = (first, window.first.at);
    for (_, second) in &window.seconds {
        let later = sample(second);
        let elapsed = second.at - earlier_at;
        push(&mut series, [&earlier, &later], elapsed);
        if let Some((earlier, later)) = earlier.block_device.zip(later.block_device) {
            push_host(&mut host_series, &earlier, &later, elapsed);
        }
        (earlier, earlier_at) = (later, second.at);
    }
    series.every_mut().into_iter().flatten().for_each(|value| *value = rounded(*value));
    let host_series = host_series.without_zeros();
    Ok(MountView { emulator, host, series, host_series, devices: Vec::new(), layers, trace: None })
}

/// None of a bare drive, which is the storage as a whole.
fn layers_between(earlier: &Statistics, later: &Statistics) -> Vec<LayerView> {
    let layer = |(earlier, later): (&LayerStatistics, &LayerStatistics)| LayerView {
        depth: later.depth,
        name: later.name.clone(),
        reads: later.reads.saturating_sub(earlier.reads),
        writes: later.writes.saturating_sub(earlier.writes),
        flushes: later.flushes.saturating_sub(earlier.flushes),
        discards: later.discards.saturating_sub(earlier.discards),
        read_bytes: later.read_bytes.saturating_sub(earlier.read_bytes),
        write_bytes: later.write_bytes.saturating_sub(earlier.write_bytes),
    };
    match later.layers.len() {
        0 | 1 => Vec::new(),
        _ => earlier.layers.iter().zip(&later.layers).map(layer).collect(),
    }
}

/// Requests between two samples.
#[derive(Debug, Clone, Copy, Default)]
struct Activity {
    read: OperationStatistics,
    write: OperationStatistics,
    flush: OperationStatistics,
    queue_depth: f64,
}

impl Activity {
    /// From the emulator's figures, or the kernel's where nothing is emulated.
    fn between(earlier: &MountSample, later: &MountSample, elapsed: Duration) -> Activity {
        match (&earlier.statistics, &later.statistics) {
            (Some(earlier), Some(later)) => Activity::of_emulator(earlier, later),
            _ => match earlier.block_device.zip(later.block_device) {
                Some((earlier, later)) => Activity::of_kernel(earlier, later, elapsed),
                None => Activity::default(),
            },
        }
    }

    fn of_emulator(earlier: &Statistics, later: &Statistics) -> Activity {
        Activity {
            read: difference(&earlier.read, &later.read),
            write: difference(&earlier.write, &later.write),
            flush: difference(&earlier.flush, &later.flush),
            queue_depth: ratio(
                later.queue_time_ns.saturating_sub(earlier.queue_time_ns) as f64,
                later.uptime_ns.saturating_sub(earlier.uptime_ns) as f64,
            ),
        }
    }

    /// The mean queue depth by Little's law: the sum of the requests' times over the elapsed time.
    fn of_kernel(earlier: BlockCounters, later: BlockCounters, elapsed: Duration) -> Activity {
        let read = difference(&earlier.read, &later.read);
        let write = difference(&earlier.write, &later.write);
        let flush = difference(&earlier.flush, &later.flush);
        let busy_ns = read.latency_ns + write.latency_ns + flush.latency_ns;
        Activity { read, write, flush, queue_depth: ratio(busy_ns as f64, elapsed.as_nanos() as f64) }
    }
}

/// Adds the activity between two samples.
pub fn push(series: &mut StorageSeries, [earlier, later]: [&MountSample; 2], elapsed: Duration) {
    let Activity { read, write, flush, queue_depth } = &Activity::between(earlier, later, elapsed);
    let per_s = |amount: f64| ratio(amount, elapsed.as_secs_f64());
    series.read_iops.push(per_s(read.count as f64));
    series.write_iops.push(per_s(write.count as f64));
    series.flushes_per_s.push(per_s(flush.count as f64));
    series.read_mb_per_s.push(per_s(read.bytes as f64 / 1e6));
    series.write_mb_per_s.push(per_s(write.bytes as f64 / 1e6));
    series.queue_depth.push(*queue_depth);
    series.read_latency_ms.push(mean_ms(read));
    series.write_latency_ms.push(mean_ms(write));
    series.flush_latency_ms.push(mean_ms(flush));
}

fn push_host(series: &mut HostSeries, earlier: &BlockCounters, later: &BlockCounters, elapsed: Duration) {
    let ms = |earlier_ns: u64, later_ns: u64| later_ns.saturating_sub(earlier_ns) as f64 / 1e6;
    let operation = |series: &mut OperationSeries, of: fn(&BlockCounters) -> (&OperationStatistics, u64)| {
        let ((before, merged_before), (after, merged)) = (of(earlier), of(later));
        let moved = difference(before, after);
        series.count.push(moved.count);
        series.merged.push(merged.saturating_sub(merged_before));
        series.bytes.push(moved.bytes);
        series.time_ms.push(moved.latency_ns as f64 / 1e6);
    };
    operation(&mut series.read, |counters| (&counters.read, counters.reads_merged));
    operation(&mut series.write, |counters| (&counters.write, counters.writes_merged));
    operation(&mut series.discard, |counters| (&counters.discard, counters.discards_merged));
    operation(&mut series.flush, |counters| (&counters.flush, 0));
    // To the microsecond.
    series.elapsed_s.push((elapsed.as_secs_f64() * 1e6).round() / 1e6);
    series.in_flight.push(later.in_flight);
    series.busy_ms.push(ms(earlier.busy_ns, later.busy_ns));
    series.queue_ms.push(ms(earlier.queue_ns, later.queue_ns));
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
    let Activity { read, write, flush, queue_depth } = Activity::of_emulator(earlier, later);
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
        queue_depth_mean: queue_depth,
        seeks: later.seeks.saturating_sub(earlier.seeks),
    })
}

fn host_view(activity: &Activity) -> HostView {
    let Activity { read, write, flush, queue_depth } = activity;
    HostView {
        reads: read.count,
        writes: write.count,
        flushes: flush.count,
        read_latency_mean_ms: mean_ms(read),
        write_latency_mean_ms: mean_ms(write),
        flush_latency_mean_ms: mean_ms(flush),
        read_bytes: read.bytes,
        write_bytes: write.bytes,
        queue_depth_mean: *queue_depth,
    }
}
