//! Raw I/O figures of a stack in virtual time: what its model says before any database runs on it.
//!
//! Deterministic, without root and done in seconds, so there is always a first answer.

use spindle_model::{ClosedLoop, Measured, Operation, Order, SECOND, VirtualTime};

use crate::profile_file::StackSpec;

const MEBIBYTE: u64 = 1 << 20;
/// Enough requests for a mean within about a percent, few enough for seconds.
const REQUEST_COUNT: u64 = 20_000;
/// In model time; a disk does about ten thousand reads in it.
const TIME_LIMIT_NS: u64 = 120 * SECOND;
/// Writes run this long before they are counted, so that a cache or buffer that was empty does not flatter them.
const FILL_NS: u64 = 20 * SECOND;

#[derive(Debug, Clone, PartialEq)]
pub struct RawFigures {
    pub stack: String,
    pub summary: String,
    pub seed: u64,
    pub rows: Vec<RawRow>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RawRow {
    /// For example `random read`.
    pub workload: &'static str,
    pub size_bytes: u64,
    pub queue_depth: u64,
    /// Requests of the workload a second; a write and its flush are one.
    pub per_second: f64,
    pub bytes_per_s: f64,
    /// A write's latency includes that of its flush, when there is one.
    pub latency_ns_mean: f64,
    pub latency_ns_p50: u64,
    pub latency_ns_p99: u64,
}

/// Each row runs on a device of its own, fresh from power-on.
pub fn measure(stack: &StackSpec, seed: u64) -> RawFigures {
    let mut rows = Vec::new();
    for size_bytes in [4_096, 16_384] {
        for (workload, read_percent) in [("random read", 100), ("random write", 0)] {
            for queue_depth in [1, 4, 32] {
                let workload_loop =
                    ClosedLoop { read_percent, size_bytes, queue_depth, ..ClosedLoop::default() };
                rows.extend(row(stack, seed, workload, workload_loop));
            }
        }
    }
    for (workload, read_percent) in [("sequential read", 100), ("sequential write", 0)] {
        let stream = ClosedLoop {
            read_percent,
            size_bytes: MEBIBYTE,
            // One at a time would measure the host's turn-around, not the medium.
            queue_depth: 4,
            order: Order::Sequential,
            request_count: REQUEST_COUNT / 4,
            ..ClosedLoop::default()
        };
        rows.extend(row(stack, seed, workload, stream));
    }
    let commits =
        ClosedLoop { read_percent: 0, size_bytes: 16_384, flush_after_write: true, ..ClosedLoop::default() };
    rows.extend(row(stack, seed, "write and flush", commits));
    RawFigures { stack: stack.head().name.clone(), summary: stack.summary().to_owned(), seed, rows }
}

/// `None` when the stack is too small for one request.
fn row(stack: &StackSpec, seed: u64, workload: &'static str, shape: ClosedLoop) -> Option<RawRow> {
    if stack.size_bytes() < shape.size_bytes {
        return None;
    }
    let request_count = if shape.order == Order::Random { REQUEST_COUNT } else { shape.request_count };
    let shape = ClosedLoop {
        span_bytes: stack.size_bytes(),
        request_count,
        time_limit_ns: TIME_LIMIT_NS,
        seed,
        ..shape
    };
    let mut driver = VirtualTime::new(stack.build(seed));
    if shape.read_percent == 0 && !shape.flush_after_write {
        ClosedLoop { time_limit_ns: FILL_NS, seed: seed ^ 1, ..shape.clone() }.run(&mut driver);
    }
    let measured = shape.run(&mut driver);
    Some(summarise(workload, &shape, &measured))
}

fn summarise(workload: &'static str, shape: &ClosedLoop, measured: &Measured) -> RawRow {
    let operation = if shape.read_percent == 100 { Operation::Read } else { Operation::Write };
    let mut latencies_ns: Vec<u64> = match shape.flush_after_write {
        // One client: a write and the flush after it are neighbours.
        true => {
            measured.samples.chunks_exact(2).map(|pair| pair[0].latency_ns + pair[1].latency_ns).collect()
        }
        false => measured.latencies_ns(operation).collect(),
    };
    latencies_ns.sort_unstable();
    let count = latencies_ns.len();
    let quantile = |share: f64| {
        let rank = ((count as f64 * share).ceil() as usize).clamp(1, count.max(1));
        latencies_ns.get(rank - 1).copied().unwrap_or(0)
    };
    let per_second = count as f64 * 1e9 / measured.elapsed_ns.max(1) as f64;
    RawRow {
        workload,
        size_bytes: shape.size_bytes,
        queue_depth: shape.queue_depth,
        per_second,
        bytes_per_s: per_second * shape.size_bytes as f64,
        latency_ns_mean: latencies_ns.iter().sum::<u64>() as f64 / count.max(1) as f64,
        latency_ns_p50: quantile(0.5),
        latency_ns_p99: quantile(0.99),
    }
}

#[cfg(test)]
mod disks;

#[cfg(test)]
mod published;

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(profile: &str) -> RawFigures {
        measure(&StackSpec::of_name(profile, None, "none").unwrap(), 1)
    }

    fn find<'a>(figures: &'a RawFigures, workload: &str, size_bytes: u64, queue_depth: u64) -> &'a RawRow {
        let is_it = |row: &&RawRow| {
            row.workload == workload && row.size_bytes == size_bytes && row.queue_depth == queue_depth
        };
        figures.rows.iter().find(is_it).unwrap()
    }

    #[test]
    fn the_test_device_answers_in_exactly_its_time() {
        let figures = figures("flash-285us-4ch");
        let read = find(&figures, "random read", 16_384, 1);
        assert_eq!((read.latency_ns_mean, read.latency_ns_p99), (285_000.0, 285_000));
        let saturated = find(&figures, "random read", 16_384, 32).per_second;
        // Random pages leave a channel without work now and then, so not all of four servers' rate.
        let share = saturated / (4.0 / 285e-6);
        assert!((0.9..1.0).contains(&share), "{share}");
    }

    #[test]
    fn a_disk_commits_less_than_once_per_rotation_and_flash_does_not_rotate() {
        let rate = |profile| find(&figures(profile), "write and flush", 16_384, 1).per_second;
        assert!(rate("hdd-7200") < 120.0);
        assert!(rate("iodrive-160") > 10.0 * rate("x25m-80"));
    }

    #[test]
    fn the_null_device_takes_no_time() {
        assert!(figures("null").rows.iter().all(|row| row.latency_ns_p99 == 0));
    }

    #[test]
    fn one_seed_gives_one_answer() {
        assert_eq!(figures("x25m-80"), figures("x25m-80"));
    }
}
