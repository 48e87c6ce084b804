//! Storage activity of a cell over the measured window, as seen by the emulator and by the kernel.

use serde::{Deserialize, Serialize};

/// Activity of one mount over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct MountView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSummary>,
    /// The kernel's view of the same storage; `None` without a block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    pub series: StorageSeries,
    /// The devices of the mount if there are several, the data's first. Then `emulator` is their sum, and
    /// `host` is the first of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceView>,
}

/// Activity of one of a mount's devices over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
pub struct DeviceView {
    /// `data`, `log` or `cache` of a ZFS pool.
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<EmulatorSummary>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostView>,
    pub series: StorageSeries,
}

/// One value per second of the measured window, as in [`super::Series`].
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
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

/// The emulator's report about itself over the measured window.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
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
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Default)]
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
