//! The kernel's counters of each block device as rows, in the columns that pt-diskstats documents, for each
//! second and for the whole window. Flushes and discards have columns of the same kind.
//!
//! A response time is per completed request, because the kernel counts the time of one request however many
//! were merged into it; pt-diskstats divides by the merged ones too. So throughput x response time is the
//! concurrency here, as Little's law has it (Little, "A Proof for the Queuing Formula: L = λW", 1961).

mod layout;
#[cfg(test)]
mod tests;

use itertools::Itertools as _;

use super::Records;
use super::view::measured;
use crate::record::{DeviceView, HostSeries, HostView, MountHead, MountView, OperationSeries};

/// A row may differ from an identity by so much, and by what the counters' units allow.
const TOLERANCE: f64 = 0.05;
/// Each of the five sums of times in a row is in whole milliseconds.
const ROUNDING_S: f64 = 0.005;
/// A clock tick of the kernel's slowest setting, in which it counts busy time.
const TICK_S: f64 = 0.010;

/// The tables of all measured trials.
#[derive(Debug, Clone)]
pub struct DiskStats {
    tables: Vec<Table>,
}

/// The devices of one trial.
#[derive(Debug, Clone)]
struct Table {
    title: String,
    /// By second, then by device. The rows of the whole window are the last.
    rows: Vec<Row>,
}

#[derive(Debug, Clone, PartialEq)]
struct Row {
    /// Since the start of the window; for the whole window its length.
    at_s: f64,
    is_window: bool,
    device: String,
    read: Operation,
    write: Operation,
    /// `None` in earlier records.
    discard: Option<Operation>,
    flush: Operation,
    /// Share of the time with a request in flight. `None` in earlier records.
    busy: Option<f64>,
    in_progress: Option<u64>,
    /// Mean number of requests in flight, by an account apart from those of the operations.
    queue_depth: f64,
    elapsed_s: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Operation {
    per_s: f64,
    bytes_mean: f64,
    bytes_per_s: f64,
    /// Share of all requests that joined another one. `None` in earlier records.
    merged: Option<f64>,
    concurrency: f64,
    response_ms: f64,
}

/// Sums of one kind of request over an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    merged: Option<u64>,
    bytes: u64,
    time_ms: f64,
}

impl DiskStats {
    pub(super) fn new(records: &Records) -> DiskStats {
        let cells = &records.header.cells;
        let tables = cells.iter().flat_map(|cell| {
            measured(records, &cell.name).into_iter().map(move |(trial, measurement)| {
                let replicas = cell.replication.iter().flat_map(|replication| &replication.replicas);
                let views = measurement.replication.iter().flat_map(|replication| &replication.replicas);
                let of_replicas = replicas.zip(views).enumerate().flat_map(|(index, (head, view))| {
                    devices(&format!("replica{}:", index + 1), &head.mounts, &view.mounts)
                });
                let devices = devices("", &cell.mounts, &measurement.mounts).into_iter().chain(of_replicas);
                let title = format!("{}, trial {}", records.header.title(&cell.name), trial.trial);
                Table { title, rows: rows(&devices.collect_vec(), measurement.duration_s) }
            })
        });
        DiskStats { tables: tables.filter(|table| !table.rows.is_empty()).collect() }
    }
}

/// A device under its name in the rows, which has no blanks.
struct Device<'a> {
    name: String,
    host: Option<&'a HostView>,
    series: &'a HostSeries,
}

fn devices<'a>(whose: &str, heads: &[MountHead], views: &'a [MountView]) -> Vec<Device<'a>> {
    let of_mount = |(head, view): (&MountHead, &'a MountView)| {
        let mount = format!("{whose}{}", head.classes.iter().map(|class| class.key()).join("+"));
        let alone = Device { name: mount.clone(), host: view.host.as_ref(), series: &view.host_series };
        let part = |device: &'a DeviceView| Device {
            name: format!("{mount}/{}", device.name),
            host: device.host.as_ref(),
            series: &device.host_series,
        };
        // The figures of a mount of several devices are those of its first.
        if view.devices.is_empty() { vec![alone] } else { view.devices.iter().map(part).collect() }
    };
    heads.iter().zip(views).flat_map(of_mount).collect()
}

fn rows(devices: &[Device], duration_s: f64) -> Vec<Row> {
    let seconds = devices.iter().map(|device| device.series.elapsed_s.len()).max().unwrap_or(0);
    let in_second = |second| devices.iter().filter_map(move |device| of_seconds(device, second, second + 1));
    let of_window = devices.iter().filter_map(|device| match device.series.is_empty() {
        true => {
            device.host.filter(|_| duration_s > 0.0).map(|host| of_summary(&device.name, host, duration_s))
        }
        false => of_seconds(device, 0, device.series.elapsed_s.len()),
    });
    (0..seconds).flat_map(in_second).chain(of_window.map(|row| Row { is_window: true, ..row })).collect()
}

/// The seconds from one on and before another. `None` if no time passed.
fn of_seconds(device: &Device, from: usize, to: usize) -> Option<Row> {
    let series = device.series;
    let elapsed_s = sum(&series.elapsed_s, from, to);
    let until_s = sum(&series.elapsed_s, 0, to);
    let sums = |operation: &OperationSeries| Sums {
        count: sum(&operation.count, from, to),
        merged: Some(sum(&operation.merged, from, to)),
        bytes: sum(&operation.bytes, from, to),
        time_ms: sum(&operation.time_ms, from, to),
    };
    let operation = |series: &OperationSeries| Operation::new(sums(series), elapsed_s);
    (elapsed_s > 0.0 && to <= series.elapsed_s.len()).then(|| Row {
        at_s: until_s,
        is_window: false,
        device: device.name.clone(),
        read: operation(&series.read),
        write: operation(&series.write),
        discard: Some(operation(&series.discard)),
        flush: operation(&series.flush),
        busy: Some(sum(&series.busy_ms, from, to) / 1e3 / elapsed_s),
        in_progress: Some(series.in_flight.get(to - 1).copied().unwrap_or(0)),
        queue_depth: sum(&series.queue_ms, from, to) / 1e3 / elapsed_s,
        elapsed_s,
    })
}

/// Vectors of zeros are empty.
fn sum<T: Copy + std::iter::Sum<T>>(values: &[T], from: usize, to: usize) -> T {
    values.iter().skip(from).take(to - from).copied().sum()
}

/// Earlier records have the window alone.
fn of_summary(name: &str, host: &HostView, duration_s: f64) -> Row {
    let operation = |count: u64, bytes: u64, mean_ms: f64| {
        Operation::new(Sums { count, merged: None, bytes, time_ms: count as f64 * mean_ms }, duration_s)
    };
    Row {
        at_s: duration_s,
        is_window: true,
        device: name.to_owned(),
        read: operation(host.reads, host.read_bytes, host.read_latency_mean_ms),
        write: operation(host.writes, host.write_bytes, host.write_latency_mean_ms),
        discard: None,
        flush: operation(host.flushes, 0, host.flush_latency_mean_ms),
        busy: None,
        in_progress: None,
        queue_depth: host.queue_depth_mean,
        elapsed_s: duration_s,
    }
}

impl Operation {
    fn new(sums: Sums, elapsed_s: f64) -> Operation {
        let Sums { count, merged, bytes, time_ms } = sums;
        let ratio = |amount: f64, of: u64| if of == 0 { 0.0 } else { amount / of as f64 };
        Operation {
            per_s: count as f64 / elapsed_s,
            bytes_mean: ratio(bytes as f64, count),
            bytes_per_s: bytes as f64 / elapsed_s,
            merged: merged.map(|merged| ratio(merged as f64, merged + count)),
            concurrency: time_ms / 1e3 / elapsed_s,
            response_ms: ratio(time_ms, count),
        }
    }
}

impl Row {
    /// Throughput x response time of all operations: the concurrency that they have by Little's law.
    fn concurrency_by_operations(&self) -> f64 {
        let operations = [Some(self.read), Some(self.write), self.discard, Some(self.flush)];
        operations.into_iter().flatten().map(|one| one.per_s * one.response_ms / 1e3).sum()
    }

    /// The kernel's own account of requests in flight differs from throughput x response time. A record of
    /// earlier versions may have no such account.
    fn violates_concurrency(&self) -> bool {
        let product = self.concurrency_by_operations();
        let slack = TOLERANCE * self.queue_depth.max(product) + ROUNDING_S / self.elapsed_s;
        let is_told = self.busy.is_some() || self.queue_depth > 0.0;
        is_told && (self.queue_depth - product).abs() > slack
    }

    /// A device cannot be busy for a larger share of the time than its mean number of requests in flight, nor
    /// for more than all of it.
    fn violates_busy(&self) -> bool {
        let most = self.concurrency_by_operations().min(1.0);
        self.busy.is_some_and(|busy| busy > most * (1.0 + TOLERANCE) + TICK_S / self.elapsed_s)
    }
}
