//! Real time against virtual time: the same random reads, on the mounted disk with fio and in the model alone.
//!
//! fio measures the mounted disk, so that our own client is not judge of our own driver: one thread per request in flight, each with plain
//! reads, which is how a database reads. It runs under SCHED_FIFO, below the
//! emulator: how long *it* waits for a core is the host's matter, not the disk's.

use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use spindle_model::{ClosedLoop, Operation, VirtualTime};
use spindle_mount::{Disk, FloorCost, while_cores_are_busy};

use crate::emulated::{self, Wishes};
use crate::observe;
use crate::profile_file::StackSpec;

const QUEUE_DEPTHS: [u64; 3] = [1, 4, 32];
/// Virtual seconds cost next to nothing, and take the chance out of the reference.
const VIRTUAL_NS: u64 = 100_000_000_000;
const VIRTUAL_REQUESTS: u64 = 1_000_000;
const SEED: u64 = 1;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub queue_depth: u64,
    pub cores_busy: bool,
    /// Zero for a device that takes no time.
    pub virtual_mean_us: f64,
    pub real_mean_us: f64,
    /// Real over virtual; absent for a device that takes no time.
    pub ratio: Option<f64>,
    pub real_p50_us: f64,
    pub real_p99_us: f64,
    pub real_iops: f64,
    /// How much later than the model said the emulator answered.
    pub lateness_p50_us: f64,
    pub lateness_p99_us: f64,
}

/// # Errors
/// The disk does not come up, or fio fails.
pub fn validate(stack: &StackSpec, read_bytes: u64, seconds: u64) -> Result<Vec<Row>> {
    let wishes = Wishes {
        name: format!("validate-{}", std::process::id()),
        seed: SEED,
        mount_at: None,
        physics: true,
        snapshot: None,
        spill_directory: &std::env::temp_dir(),
        die_with_parent: true,
    };
    let program = std::env::current_exe().context("looking for our own binary")?;
    let mut disk = Disk::up(&program, &emulated::options(stack, &wishes)?)?;
    let floor = disk.statistics()?.floor;
    let words = |cost: FloorCost| {
        let (alone_us, other_us) = (cost.alone_ns as f64 / 1e3, cost.each_other_ns as f64 / 1e3);
        format!("{alone_us:.1} us alone and {other_us:.1} us more for each other request")
    };
    eprintln!(
        "seed {SEED}; floor with idle cores {}, with busy cores {}",
        words(floor.idle),
        words(floor.busy)
    );
    let mut rows = Vec::new();
    for cores_busy in [false, true] {
        for queue_depth in QUEUE_DEPTHS {
            let virtual_mean_us = in_virtual_time(stack, read_bytes, queue_depth);
            let device = disk.device.display().to_string();
            let earlier = disk.statistics()?;
            let fio = || with_fio(&device, read_bytes, queue_depth, seconds);
            let real = if cores_busy { while_cores_are_busy(fio)? } else { fio()? };
            let later = disk.statistics()?;
            let lateness =
                observe::histogram_difference(&earlier.lateness_histogram, &later.lateness_histogram)?;
            let lateness_us = |share: f64| lateness.value_at_quantile(share) as f64 / 1e3;
            let ratio = (virtual_mean_us > 0.0).then(|| real.mean_us / virtual_mean_us);
            rows.push(Row {
                queue_depth,
                cores_busy,
                virtual_mean_us,
                real_mean_us: real.mean_us,
                ratio,
                real_p50_us: real.p50_us,
                real_p99_us: real.p99_us,
                real_iops: real.iops,
                lateness_p50_us: lateness_us(0.50),
                lateness_p99_us: lateness_us(0.99),
            });
        }
    }
    disk.down()?;
    Ok(rows)
}

pub fn table(rows: &[Row]) -> String {
    let mut text = format!(
        "{:>5}  {:>5}  {:>12}  {:>12}  {:>6}  {:>10}  {:>10}  {:>8}  {:>9}  {:>9}\n",
        "depth",
        "cores",
        "virtual mean",
        "real mean",
        "ratio",
        "real p50",
        "real p99",
        "IOPS",
        "late p50",
        "late p99"
    );
    for row in rows {
        text.push_str(&format!(
            "{:>5}  {:>5}  {:>9.1} us  {:>9.1} us  {:>6}  {:>7.1} us  {:>7.1} us  {:>8.0}  {:>6.1} us  {:>6.1} us\n",
            row.queue_depth,
            if row.cores_busy { "busy" } else { "idle" },
            row.virtual_mean_us,
            row.real_mean_us,
            row.ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}")),
            row.real_p50_us,
            row.real_p99_us,
            row.real_iops,
            row.lateness_p50_us,
            row.lateness_p99_us,
        ));
    }
    text
}

fn in_virtual_time(stack: &StackSpec, read_bytes: u64, queue_depth: u64) -> f64 {
    let workload = ClosedLoop {
        size_bytes: read_bytes,
        queue_depth,
        span_bytes: stack.size_bytes(),
        request_count: VIRTUAL_REQUESTS,
        time_limit_ns: VIRTUAL_NS,
        seed: SEED,
        ..ClosedLoop::default()
    };
    workload.run(&mut VirtualTime::new(stack.build(SEED))).mean_ns(Operation::Read) / 1e3
}

struct Measured {
    mean_us: f64,
    p50_us: f64,
    p99_us: f64,
    iops: f64,
}

/// From the submission to the completion of a request, as fio sees it (`lat_ns`; percentiles are those of `clat_ns`).
fn with_fio(device: &str, read_bytes: u64, queue_depth: u64, seconds: u64) -> Result<Measured> {
    let output = Command::new("chrt")
        .args(["--fifo", "5", "fio", "--name=validate", "--ioengine=psync", "--direct=1", "--rw=randread"])
        .args([
            "--thread",
            "--group_reporting",
            "--randrepeat=0",
            "--time_based",
            "--ramp_time=1",
            "--output-format=json",
        ])
        .args([
            format!("--filename={device}"),
            format!("--bs={read_bytes}"),
            format!("--numjobs={queue_depth}"),
            format!("--runtime={seconds}"),
        ])
        .output()
        .context("running fio under chrt; `spindle doctor` says which command installs it")?;
    ensure!(output.status.success(), "fio failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).context("reading fio's output")?;
    let read = &json["jobs"][0]["read"];
    let number = |value: &serde_json::Value| value.as_f64().context("fio's output lacks a figure");
    Ok(Measured {
        mean_us: number(&read["lat_ns"]["mean"])? / 1e3,
        p50_us: number(&read["clat_ns"]["percentile"]["50.000000"])? / 1e3,
        p99_us: number(&read["clat_ns"]["percentile"]["99.000000"])? / 1e3,
        iops: number(&read["iops"])?,
    })
}
