//! Real time against virtual time: the same random reads with fio on the mounted disk, and in the model
//! alone.
//!
//! fio measures the mounted disk, so that the judge is independent of the emulator. It has one thread per
//! request in flight, each with plain reads, as a database reads. It runs under SCHED_FIFO, at a lower
//! priority than the emulator: the time that fio waits for a core belongs to the host and not to the disk.
//!
//! Under dilation, fio's own clock stays real, and its times are divided by k.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use spindle_base::dilation::Dilation;
use spindle_model::{ClosedLoop, Operation, VirtualTime};
use spindle_mount::{Disk, FileSystem, FloorCost, bare_tail, while_cores_are_busy};
use spindle_stats::{QuantileFunction, demerit, demerit_within};

use crate::bench::fio::{self, Job};
use crate::bench::{Access, Place, Question, real};
use crate::host::interrupt::Interrupt;
use crate::observe;
use crate::stack::StackSpec;

const HEADER: &str = "depth  cores  virtual mean     real mean   ratio            demerit        up to p99.9    real p50  virtual p99    real p99   ratio  host alone      IOPS   late p50   late p99\n";
const QUEUE_DEPTHS: [u64; 3] = [1, 4, 32];
/// Virtual seconds cost almost nothing. A long run removes the noise from the virtual side.
const VIRTUAL_NS: u64 = 100_000_000_000;
const VIRTUAL_REQUESTS: u64 = 1_000_000;
const SEED: u64 = 1;
/// The distribution is compared a second time up to this probability.
const TAIL: f64 = 0.999;
const BARE_TIME: Duration = Duration::from_secs(1);
const RAMP: Duration = Duration::from_secs(1);

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
    pub virtual_p99_us: f64,
    pub real_p99_us: f64,
    /// Real over virtual; absent for a device that takes no time.
    pub ratio_p99: Option<f64>,
    /// How much later than the mean the slowest of a hundred answers arrives on this host without any
    /// storage: see [`spindle_mount::bare_tail`]. Only for one request at a time.
    pub bare_tail_us: Option<f64>,
    pub real_iops: f64,
    /// Distance of the real distribution of latencies from the virtual one (Ruemmler and Wilkes). fio's bins
    /// are 1.6 % wide.
    pub demerit_us: Option<f64>,
    /// As a share of the virtual mean; absent for a device that takes no time.
    pub demerit_share: Option<f64>,
    /// The same without the slowest thousandth, which a single stall of the host can dominate.
    pub demerit_p999_us: Option<f64>,
    pub demerit_p999_share: Option<f64>,
    /// Lateness of the emulator's answers against the model.
    pub lateness_p50_us: f64,
    pub lateness_p99_us: f64,
}

/// Arguments of [`validate`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    pub read_bytes: u64,
    /// Seconds per row, in dilated time.
    pub seconds: u64,
    pub dilation: Dilation,
}

/// # Errors
/// The disk does not come up, or fio fails.
pub fn validate(stack: &StackSpec, options: Options, interrupt: &Interrupt) -> Result<Vec<Row>> {
    let mut disk = real::up(stack, FileSystem::None, SEED, options.dilation)?;
    let floor = disk.statistics()?.floor;
    let words = |cost: FloorCost| {
        let (alone_us, other_us) = (cost.alone_ns as f64 / 1e3, cost.each_other_ns as f64 / 1e3);
        format!("{alone_us:.1} us alone and {other_us:.1} us more for each other request")
    };
    let (idle, busy) = (words(floor.idle), words(floor.busy));
    eprintln!("seed {SEED}; floor with idle cores {idle}, with busy cores {busy}");
    if !options.dilation.is_none() {
        eprintln!("dilation {}: all figures are in dilated time", options.dilation);
    }
    let mut rows = Vec::new();
    for cores_busy in [false, true] {
        for queue_depth in QUEUE_DEPTHS {
            rows.push(row(&mut disk, stack, options, (queue_depth, cores_busy), interrupt)?);
        }
    }
    disk.down()?;
    Ok(rows)
}

fn row(
    disk: &mut Disk,
    stack: &StackSpec,
    options: Options,
    (queue_depth, cores_busy): (u64, bool),
    interrupt: &Interrupt,
) -> Result<Row> {
    let model = in_virtual_time(stack, options.read_bytes, queue_depth);
    let device = disk.device.clone();
    let earlier = disk.statistics()?;
    let job = job(&device, stack, options, queue_depth);
    let fio = || fio::run(&job, interrupt);
    let real = if cores_busy { while_cores_are_busy(fio)? } else { fio()? };
    let later = disk.statistics()?;
    let bare_tail =
        (queue_depth == 1).then(|| host_alone(&model, options.dilation, cores_busy)).transpose()?;
    let lateness = observe::histogram_difference(&earlier.lateness_histogram, &later.lateness_histogram)?;
    let lateness_us = |share: f64| lateness.value_at_quantile(share) as f64 / 1e3;
    let measured = real.distribution().context("fio's output lacks the latencies")?;
    let distance = demerit(&model, &measured);
    let distance_p999 = demerit_within(&model, &measured, 0.0, TAIL);
    let real = real.row;
    let (virtual_mean_us, virtual_p99_us) = (model.mean(), model.value(0.99));
    let real_p99_us = real.latency_us_p99.context("fio's output lacks the 99 % quantile")?;
    Ok(Row {
        queue_depth,
        cores_busy,
        virtual_mean_us,
        real_mean_us: real.latency_us_mean,
        ratio: ratio(real.latency_us_mean, virtual_mean_us),
        real_p50_us: real.latency_us_p50.context("fio's output lacks the median")?,
        virtual_p99_us,
        real_p99_us,
        ratio_p99: ratio(real_p99_us, virtual_p99_us),
        bare_tail_us: bare_tail.map(|tail| tail.as_secs_f64() * 1e6),
        real_iops: real.per_second,
        demerit_us: distance.map(|distance| distance.absolute),
        demerit_share: distance.and_then(|distance| distance.share_of_mean),
        demerit_p999_us: distance_p999.map(|distance| distance.absolute),
        demerit_p999_share: distance_p999.and_then(|distance| distance.share_of_mean),
        lateness_p50_us: lateness_us(0.50),
        lateness_p99_us: lateness_us(0.99),
    })
}

fn job<'a>(device: &'a Path, stack: &StackSpec, options: Options, queue_depth: u64) -> Job<'a> {
    let Options { read_bytes, seconds, dilation } = options;
    let (place, access) = (Place::Raw, Access::RandomRead);
    Job {
        path: device,
        question: Question { place, access, block_bytes: read_bytes, iodepth: queue_depth },
        offset_bytes: 0,
        span_bytes: stack.size_bytes() / read_bytes * read_bytes,
        dilation,
        seconds,
        ramp: RAMP,
        direct: true,
        seed: SEED,
        real_time: true,
    }
}

/// What this host alone adds to answers after the model's mean, in dilated time.
fn host_alone(model: &QuantileFunction, dilation: Dilation, cores_busy: bool) -> Result<Duration> {
    let mean = dilation.real(Duration::from_nanos((model.mean() * 1e3) as u64));
    let bare = || bare_tail(mean, dilation.real(BARE_TIME));
    let tail = if cores_busy { while_cores_are_busy(bare) } else { bare() };
    Ok(dilation.dilated(tail.context("measuring the host alone")?))
}

/// `None` when the model takes no time.
fn ratio(real_us: f64, virtual_us: f64) -> Option<f64> {
    (virtual_us > 0.0).then(|| real_us / virtual_us)
}

pub fn table(rows: &[Row]) -> String {
    let mut text = HEADER.to_owned();
    for row in rows {
        text.push_str(&format!(
            "{:>5}  {:>5}  {:>9.1} us  {:>9.1} us  {:>6}  {:>17}  {:>17}  {:>7.1} us  {:>8.1} us  {:>7.1} us  {:>6}  {:>10}  {:>8.0}  {:>6.1} us  {:>6.1} us\n",
            row.queue_depth,
            if row.cores_busy { "busy" } else { "idle" },
            row.virtual_mean_us,
            row.real_mean_us,
            ratio_words(row.ratio),
            demerit_words(row.demerit_us, row.demerit_share),
            demerit_words(row.demerit_p999_us, row.demerit_p999_share),
            row.real_p50_us,
            row.virtual_p99_us,
            row.real_p99_us,
            ratio_words(row.ratio_p99),
            row.bare_tail_us.map_or("-".to_owned(), |tail_us| format!("+{tail_us:.1} us")),
            row.real_iops,
            row.lateness_p50_us,
            row.lateness_p99_us,
        ));
    }
    text
}

fn ratio_words(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}"))
}

fn demerit_words(absolute_us: Option<f64>, share: Option<f64>) -> String {
    match (absolute_us, share) {
        (Some(us), Some(share)) => format!("{us:.1} us, {:.1} %", share * 100.0),
        (Some(us), None) => format!("{us:.1} us"),
        _ => "-".to_owned(),
    }
}

/// Distribution of the model's latencies, in microseconds.
fn in_virtual_time(stack: &StackSpec, read_bytes: u64, queue_depth: u64) -> QuantileFunction {
    let workload = ClosedLoop {
        size_bytes: read_bytes,
        queue_depth,
        span_bytes: stack.size_bytes(),
        request_count: VIRTUAL_REQUESTS,
        time_limit_ns: VIRTUAL_NS,
        seed: SEED,
        ..ClosedLoop::default()
    };
    let measured = workload.run(&mut VirtualTime::new(stack.build(SEED)));
    let latencies_us: Vec<f64> =
        measured.latencies_ns(Operation::Read).map(|latency_ns| latency_ns as f64 / 1e3).collect();
    QuantileFunction::of_samples(&latencies_us).expect("a closed loop completes requests")
}
