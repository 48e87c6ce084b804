//! `spindle disk status`: the disks that are up, and their activity.

use std::path::PathBuf;

use anyhow::Result;
use serde::Serialize;
use serde_json::{Value, json};
use spindle_base::histogram;
use spindle_base::text;
use spindle_base::units::format_size_bytes;
use spindle_mount::{LayerStatistics, OperationStatistics, Statistics, disk, zfs};

use crate::cmd::output::print_answer;
use crate::volume::zfs_volume;

#[derive(Debug, Serialize)]
struct DiskStatus {
    name: String,
    device: Option<PathBuf>,
    /// Mount point of the disk, or of its ZFS pool.
    mount: Option<PathBuf>,
    size_bytes: u64,
    /// Absent when the disk is dead.
    statistics: Option<Value>,
    #[serde(skip)]
    all: Option<Statistics>,
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
        let answer = disk::connect(&name).and_then(|mut client| client.statistics());
        let answer = answer.and_then(|all| Ok((activity(&all)?, all)));
        let error = answer.as_ref().err().map(text::causes);
        let (statistics, all) = answer.ok().unzip();
        let of_pool = |pool: &&String| zfs_volume::is_device_of(&name, pool);
        let mount = mount.or(pools.iter().find(of_pool).map(|pool| zfs::mount_of(pool)).transpose()?);
        let size_bytes = options.serve.size_bytes;
        disks.push(DiskStatus { name, device, mount, size_bytes, statistics, all, error });
    }
    if disks.is_empty() && !json {
        eprintln!("no disk is up");
    }
    print_answer(json, &disks, || disks.iter().map(sentence).collect())
}

fn sentence(disk: &DiskStatus) -> String {
    let place =
        |path: &Option<PathBuf>| path.as_ref().map_or("-".to_owned(), |path| path.display().to_string());
    let (name, size) = (&disk.name, format_size_bytes(disk.size_bytes));
    let head = format!("{name}  {size}  {}  {}", place(&disk.device), place(&disk.mount));
    let Some(all) = &disk.all else {
        let error = disk.error.as_deref().unwrap_or("no answer");
        return format!("{head}  dead: {error}; `spindle disk down {name}` clears it\n");
    };
    let timing = if all.timing { "timing on" } else { "timing off" };
    let dilation = match all.dilation.is_none() {
        true => String::new(),
        false => format!(", dilation {}", all.dilation),
    };
    let mut text = format!("{head}  {timing}{dilation}, {}, {}\n", all.scheduler, all.transport);
    let operations =
        [("reads", &all.read), ("writes", &all.write), ("flushes", &all.flush), ("discards", &all.discard)];
    for (name, operation) in operations.into_iter().filter(|(_, operation)| operation.count > 0) {
        text += &format!("    {} {name}, mean {:.3} ms\n", operation.count, mean_ms(operation));
    }
    if all.nand_write_bytes > 0 {
        text += &format!(
            "    {} programmed into NAND, {} of it moved by garbage collection; {} erases, {} of the most worn\n",
            format_size_bytes(all.nand_write_bytes),
            format_size_bytes(all.nand_moved_bytes),
            all.erases,
            all.most_erases
        );
    }
    for layer in all.layers.iter().filter(|_| all.layers.len() > 1) {
        let LayerStatistics { depth, name, reads, writes, flushes, .. } = layer;
        let indent = "  ".repeat(*depth as usize);
        text += &format!("    {indent}{name}: {reads} reads, {writes} writes, {flushes} flushes\n");
    }
    text
}

fn mean_ms(all: &OperationStatistics) -> f64 {
    all.latency_ns as f64 / all.count.max(1) as f64 / 1e6
}

/// Activity since the disk came up, as `--json` prints it. All times are in dilated time.
///
/// # Errors
/// The emulator is of another version.
fn activity(all: &Statistics) -> Result<Value> {
    let lateness = histogram::decode(&all.lateness_histogram)?;
    let lateness_ms = |share: f64| lateness.value_at_quantile(share) as f64 / 1e6;
    let operation = |all: &OperationStatistics| json!({ "count": all.count, "bytes": all.bytes, "mean_ms": mean_ms(all) });
    Ok(json!({
        "uptime_s": all.uptime_ns as f64 / 1e9,
        // Whether the model's timing applies. Without it, requests are answered at memory speed.
        "timing": all.timing,
        // A second of dilated time takes this many real seconds.
        "dilation": all.dilation,
        // `SCHED_FIFO` or `SCHED_OTHER`.
        "scheduler": all.scheduler,
        // `io_uring` or `threads`.
        "transport": all.transport,
        "io_flusher_refused": all.io_flusher_refused,
        // Subtracted from every service time while the cores are idle.
        "floor_ms": all.floor.idle.alone_ns as f64 / 1e6,
        "read": operation(&all.read),
        "write": operation(&all.write),
        "flush": operation(&all.flush),
        "discard": operation(&all.discard),
        // Requests in the device now.
        "queue_depth": all.queue_depth,
        "queue_depth_mean": all.queue_time_ns as f64 / all.uptime_ns.max(1) as f64,
        "seeks": all.seeks,
        "nand_write_bytes": all.nand_write_bytes,
        // Part of the bytes written to NAND, moved by garbage collection.
        "nand_moved_bytes": all.nand_moved_bytes,
        "erases": all.erases,
        "most_erases": all.most_erases,
        "late_requests": all.late_requests,
        // Lateness of answers against the model.
        "lateness_p50_ms": lateness_ms(0.50),
        "lateness_p99_ms": lateness_ms(0.99),
        "lateness_max_ms": lateness_ms(1.0),
        // Reads of the host's disk for which the emulator had to wait.
        "major_faults": all.major_faults,
        // Of each layer and device of the stack, since it was built.
        "layers": all.layers,
    }))
}
