//! Storage activity of a cell over the measured window, as seen by the emulator and by the kernel.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod identities;

/// Activity of one mount over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct MountView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSummary>,
    /// The kernel's view of the same storage; `None` without a block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    pub series: StorageSeries,
    /// The kernel's counters second by second; empty in earlier records.
    #[serde(default, skip_serializing_if = "HostSeries::is_empty")]
    pub host_series: HostSeries,
    /// The devices of the mount if there are several, the data's first. Then `emulator` is their sum, and
    /// `host` is the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceView>,
    /// The layers and devices of the emulated stack, a layer before what is below it; empty for a bare drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerView>,
    /// `None` unless `spindle run --trace` kept it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceView>,
}

/// A file with the requests that an emulated disk received in the measured window: its block trace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct TraceView {
    /// From the directory of the records: `traces/hdd,1,data.trace`.
    pub file: String,
    pub requests: u64,
    /// In dilated time. Of an incomplete trace: up to the first request that is missing.
    pub duration_s: f64,
    /// False if the memory for it was full before the window ended.
    pub is_complete: bool,
}

/// The requests that one layer or device of an emulated stack completed in the measured window. What is below a
/// layer has its own: a hit in a cache never arrives there, and a small write to RAID 5 arrives as several.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct LayerView {
    /// Layers above it.
    pub depth: u32,
    /// Its kind; with its number in an array, or with the key of its layer's table: `disk 2`, `flash (log)`.
    pub name: String,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
}

/// Activity of one of a mount's devices over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct DeviceView {
    /// `data`, `log` or `cache` of a ZFS pool.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    pub series: StorageSeries,
    #[serde(default, skip_serializing_if = "HostSeries::is_empty")]
    pub host_series: HostSeries,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub layers: Vec<LayerView>,
}

/// One value per second of the measured window, as in [`super::Series`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct StorageSeries {
    pub read_iops: Vec<f64>,
    pub write_iops: Vec<f64>,
    pub flushes_per_s: Vec<f64>,
    pub read_mb_per_s: Vec<f64>,
    pub write_mb_per_s: Vec<f64>,
    /// Mean number of requests inside the emulated device.
    pub queue_depth: Vec<f64>,
    /// Mean over the second, as the emulated device answered; zero without a read.
    pub read_latency_ms: Vec<f64>,
    pub write_latency_ms: Vec<f64>,
    pub flush_latency_ms: Vec<f64>,
}

impl StorageSeries {
    pub fn every_mut(&mut self) -> [&mut Vec<f64>; 9] {
        let StorageSeries {
            read_iops,
            write_iops,
            flushes_per_s,
            read_mb_per_s,
            write_mb_per_s,
            queue_depth,
            read_latency_ms,
            write_latency_ms,
            flush_latency_ms,
        } = self;
        [
            read_iops,
            write_iops,
            flushes_per_s,
            read_mb_per_s,
            write_mb_per_s,
            queue_depth,
            read_latency_ms,
            write_latency_ms,
            flush_latency_ms,
        ]
    }
}

/// The emulator's report about itself over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct EmulatorSummary {
    /// `SCHED_FIFO`, or `SCHED_OTHER` where real time was refused.
    pub scheduler: String,
    /// Path of requests to the emulator: `io_uring`, or `threads` on kernels without FUSE over io_uring.
    #[serde(default)]
    pub transport: String,
    /// Subtracted from every service time.
    pub floor_us: f64,
    pub requests: u64,
    pub lateness_p50_us: f64,
    pub lateness_p99_us: f64,
    pub lateness_max_us: f64,
    /// Share of requests answered later than 5 % of their service time.
    pub late_share: f64,
    /// Share of all request time that is due to the emulator's lateness beyond the floor.
    #[serde(default)]
    pub late_time_share: f64,
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    pub read_latency_mean_ms: f64,
    pub write_latency_mean_ms: f64,
    pub flush_latency_mean_ms: f64,
    pub queue_depth_mean: f64,
    pub seeks: u64,
}

/// From the block device's own counters (Linux, Documentation/block/stat.rst). They include waits in the
/// kernel, for example behind a FLUSH, which the emulator does not see.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct HostView {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub read_latency_mean_ms: f64,
    pub write_latency_mean_ms: f64,
    pub flush_latency_mean_ms: f64,
    #[serde(default)]
    pub read_bytes: u64,
    #[serde(default)]
    pub write_bytes: u64,
    /// Mean number of requests between their creation and their completion.
    #[serde(default)]
    pub queue_depth_mean: f64,
}

/// What the kernel's counters of a block device (`/proc/diskstats`) moved by in each second of the measured
/// window. A vector is left out if all of its values are zero.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
#[serde(default)]
pub struct HostSeries {
    /// Time from sample to sample.
    pub elapsed_s: Vec<f64>,
    pub read: OperationSeries,
    pub write: OperationSeries,
    pub discard: OperationSeries,
    pub flush: OperationSeries,
    /// Requests in flight when the second ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_flight: Vec<u64>,
    /// Time with a request in flight. Newer kernels count whole clock ticks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub busy_ms: Vec<f64>,
    /// Sum of the times of all requests, by the kernel's own account.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue_ms: Vec<f64>,
}

/// One kind of request in [`HostSeries`].
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
#[serde(default)]
pub struct OperationSeries {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub count: Vec<u64>,
    /// Requests that joined a neighbour; they are not in the count.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub bytes: Vec<u64>,
    /// Sum of the times from a request's creation to its completion.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub time_ms: Vec<f64>,
}

impl HostSeries {
    pub fn is_empty(&self) -> bool {
        self.elapsed_s.is_empty()
    }

    /// Leaves out vectors of zeros.
    pub(crate) fn without_zeros(mut self) -> HostSeries {
        fn clear<T: PartialEq + Default>(values: &mut Vec<T>) {
            if values.iter().all(|value| *value == T::default()) {
                values.clear();
            }
        }
        let HostSeries { read, write, discard, flush, in_flight, busy_ms, queue_ms, .. } = &mut self;
        for OperationSeries { count, merged, bytes, time_ms } in [read, write, discard, flush] {
            [count, merged, bytes].into_iter().for_each(clear);
            clear(time_ms);
        }
        clear(in_flight);
        [busy_ms, queue_ms].into_iter().for_each(clear);
        self
    }
}
