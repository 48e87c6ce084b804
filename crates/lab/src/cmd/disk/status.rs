//! `spindle disk status`: the disks that are up, and their activity.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use spindle_base::histogram;
use spindle_base::units::format_size_bytes;
use spindle_mount::{OperationStatistics, Statistics, disk, zfs};

use super::{print, print_json};
use crate::volume::zfs_volume;

#[derive(Debug, Serialize)]
struct DiskStatus {
    name: String,
    device: Option<PathBuf>,
    /// Mount point of the disk, or of its ZFS pool.
    mount: Option<PathBuf>,
    size_bytes: u64,
    /// Absent when the disk is dead.
    statistics: Option<Activity>,
    /// Error that the disk died of.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

pub(super) fn status(only: Option<&str>, json: bool) -> Result<()> {
    let names = match only {
        Some(name) => vec![name.to_owned()],
        None => disk::list()?,
    };
    let pools = zfs::list()?;
    let mut disks = Vec::new();
    for name in names {
        let (options, device, mount) = disk::inspect(&name)?;
        let (statistics, error) = match disk::connect(&name)
            .and_then(|mut client| client.statistics())
            .and_then(|all| Activity::of(&all))
        {
            Ok(statistics) => (Some(statistics), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        let of_pool = |pool: &&String| zfs_volume::is_device_of(&name, pool);
        let mount = mount.or(pools.iter().find(of_pool).map(|pool| zfs::mount_of(pool)).transpose()?);
        let size_bytes = options.serve.size_bytes;
        disks.push(DiskStatus { name, device, mount, size_bytes, statistics, error });
    }
    if json {
        return print_json(&disks);
    }
    if disks.is_empty() {
        eprintln!("no disk is up");
    }
    disks.iter().try_for_each(|disk| print(&sentence(disk)))
}

fn sentence(disk: &DiskStatus) -> String {
    let place =
        |path: &Option<PathBuf>| path.as_ref().map_or("-".to_owned(), |path| path.display().to_string());
    let head = format!(
        "{}  {}  {}  {}",
        disk.name,
        format_size_bytes(disk.size_bytes),
        place(&disk.device),
        place(&disk.mount)
    );
    let Some(statistics) = &disk.statistics else {
        let error = disk.error.as_deref().unwrap_or("no answer");
        return format!("{head}  dead: {error}; `spindle disk down {}` clears it\n", disk.name);
    };
    let timing = if statistics.timing { "timing on" } else { "timing off" };
    let mut text = format!("{head}  {timing}, {}, {}\n", statistics.scheduler, statistics.transport);
    for (name, operation) in [
        ("reads", statistics.read),
        ("writes", statistics.write),
        ("flushes", statistics.flush),
        ("discards", statistics.discard),
    ] {
        if operation.count > 0 {
            text.push_str(&format!("    {} {name}, mean {:.3} ms\n", operation.count, operation.mean_ms));
        }
    }
    if statistics.nand_write_bytes > 0 {
        text.push_str(&format!(
            "    {} programmed into NAND, {} of it moved by garbage collection; {} erases, {} of the most worn\n",
            format_size_bytes(statistics.nand_write_bytes),
            format_size_bytes(statistics.nand_moved_bytes),
            statistics.erases,
            statistics.most_erases
        ));
    }
    text
}

/// Activity since the disk came up.
#[derive(Debug, Serialize)]
struct Activity {
    uptime_s: f64,
    /// Whether the model's timing applies. Without it, requests are answered at memory speed.
    timing: bool,
    /// `SCHED_FIFO` or `SCHED_OTHER`.
    scheduler: String,
    /// `io_uring` or `threads`.
    transport: String,
    io_flusher_refused: bool,
    /// Subtracted from every service time while the cores are idle.
    floor_ms: f64,
    read: Operations,
    write: Operations,
    flush: Operations,
    discard: Operations,
    /// Requests in the device now.
    queue_depth: u64,
    queue_depth_mean: f64,
    seeks: u64,
    nand_write_bytes: u64,
    /// Part of the bytes written to NAND, moved by garbage collection.
    nand_moved_bytes: u64,
    erases: u64,
    most_erases: u64,
    late_requests: u64,
    /// Lateness of answers against the model.
    lateness_p50_ms: f64,
    lateness_p99_ms: f64,
    lateness_max_ms: f64,
    /// Reads of the host's disk for which the emulator had to wait.
    major_faults: u64,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Operations {
    count: u64,
    bytes: u64,
    mean_ms: f64,
}

impl From<OperationStatistics> for Operations {
    fn from(all: OperationStatistics) -> Operations {
        let mean_ms = all.latency_ns as f64 / all.count.max(1) as f64 / 1e6;
        Operations { count: all.count, bytes: all.bytes, mean_ms }
    }
}

impl Activity {
    /// # Errors
    /// The emulator is of another version.
    fn of(all: &Statistics) -> Result<Activity> {
        let lateness = histogram::decode(&all.lateness_histogram)?;
        let lateness_ms = |share: f64| lateness.value_at_quantile(share) as f64 / 1e6;
        Ok(Activity {
            uptime_s: all.uptime_ns as f64 / 1e9,
            timing: all.timing,
            scheduler: all.scheduler.clone(),
            transport: all.transport.clone(),
            io_flusher_refused: all.io_flusher_refused,
            floor_ms: all.floor.idle.alone_ns as f64 / 1e6,
            read: all.read.into(),
            write: all.write.into(),
            flush: all.flush.into(),
            discard: all.discard.into(),
            queue_depth: all.queue_depth,
            queue_depth_mean: all.queue_time_ns as f64 / all.uptime_ns.max(1) as f64,
            seeks: all.seeks,
            nand_write_bytes: all.nand_write_bytes,
            nand_moved_bytes: all.nand_moved_bytes,
            erases: all.erases,
            most_erases: all.most_erases,
            late_requests: all.late_requests,
            lateness_p50_ms: lateness_ms(0.50),
            lateness_p99_ms: lateness_ms(0.99),
            lateness_max_ms: lateness_ms(1.0),
            major_faults: all.major_faults,
        })
    }
}
