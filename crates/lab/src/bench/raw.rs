//! Raw I/O figures of a stack in virtual time: the model without a database.
//!
//! They are deterministic, need no root and take seconds, so they are always available as a first answer.

use spindle_model::{ClosedLoop, Device, Measured, Order, SECOND, VirtualTime};

use crate::bench::{Access, Place, Question, Row};

/// The mean is then within about one per cent, after seconds.
pub const REQUEST_COUNT: u64 = 20_000;
pub const SEQUENTIAL_COUNT: u64 = 5_000;
/// In model time. A disk serves about ten thousand reads in it.
pub const TIME_LIMIT_NS: u64 = 120 * SECOND;
/// Writes run this long before they are counted, to fill caches and buffers. An empty cache would make the
/// writes look too fast.
pub const FILL_NS: u64 = 20 * SECOND;

/// Range and number of the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// Length of the range, from the start of the device.
    pub span_bytes: u64,
    /// Upper bound.
    pub count: u64,
}

/// Answers a question with a device fresh from power-on, over its whole size. `None` when the device is
/// smaller than one request, or when the question is about a file system.
pub fn answer(device: Box<dyn Device>, seed: u64, question: &Question) -> Option<Row> {
    let requests = Requests { span_bytes: device.size_bytes(), count: REQUEST_COUNT };
    sample(device, seed, question, requests).map(|(row, _)| row)
}

/// The answer, and the latency of each request in microseconds in order of completion.
pub fn sample(
    device: Box<dyn Device>,
    seed: u64,
    question: &Question,
    requests: Requests,
) -> Option<(Row, Vec<f64>)> {
    if question.place == Place::FileSystem || requests.span_bytes < question.block_bytes {
        return None;
    }
    Some(measure(&mut VirtualTime::new(device), seed, question, requests))
}

/// As [`sample`], on a device in its present state that is large enough.
pub fn measure(
    driver: &mut VirtualTime<Box<dyn Device>>,
    seed: u64,
    question: &Question,
    requests: Requests,
) -> (Row, Vec<f64>) {
    let shape = shape(question, requests, seed);
    if matches!(question.access, Access::RandomWrite | Access::SequentialWrite) {
        ClosedLoop { time_limit_ns: FILL_NS, seed: seed ^ 1, ..shape.clone() }.run(driver);
    }
    let measured = shape.run(driver);
    let latencies_us = latencies_us(&measured, question.access == Access::Fsync);
    (row(*question, &latencies_us, measured.elapsed_ns), latencies_us)
}

/// The closed loop that corresponds to the question.
fn shape(question: &Question, requests: Requests, seed: u64) -> ClosedLoop {
    let is_random = matches!(question.access, Access::RandomRead | Access::RandomWrite);
    ClosedLoop {
        read_percent: if question.access.is_write() { 0 } else { 100 },
        size_bytes: question.block_bytes,
        queue_depth: question.iodepth,
        order: if is_random { Order::Random } else { Order::Sequential },
        span_bytes: requests.span_bytes,
        flush_after_write: question.access == Access::Fsync,
        request_count: if is_random { requests.count } else { requests.count.min(SEQUENTIAL_COUNT) },
        time_limit_ns: TIME_LIMIT_NS,
        seed,
    }
}

fn row(question: Question, latencies_us: &[f64], elapsed_ns: u64) -> Row {
    let quantile = |probability| spindle_stats::quantile(latencies_us, probability);
    let per_second = latencies_us.len() as f64 * 1e9 / elapsed_ns.max(1) as f64;
    Row {
        question,
        per_second,
        bytes_per_s: per_second * question.block_bytes as f64,
        latency_us_mean: spindle_stats::mean(latencies_us).unwrap_or(0.0),
        latency_us_p50: quantile(0.5),
        latency_us_p99: quantile(0.99),
        latency_us_p999: quantile(0.999),
        requests: latencies_us.len() as u64,
        seconds: elapsed_ns as f64 / 1e9,
    }
}

/// The latencies of a run. A commit is a write and the next FLUSH; with one client the two are adjacent
/// samples.
pub fn latencies_us(measured: &Measured, are_commits: bool) -> Vec<f64> {
    let parts = measured.samples.chunks_exact(if are_commits { 2 } else { 1 });
    parts.map(|parts| parts.iter().map(|part| part.latency_ns).sum::<u64>() as f64 / 1e3).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackSpec;

    fn ask(profile: &str, access: Access, block_bytes: u64, iodepth: u64) -> Row {
        let stack = StackSpec::of_name(profile, None, "none").unwrap();
        let question = Question { place: Place::Raw, access, block_bytes, iodepth };
        answer(stack.build(1), 1, &question).unwrap()
    }

    #[test]
    fn the_test_device_answers_in_exactly_its_time() {
        let read = ask("flash-285us-4ch", Access::RandomRead, 16_384, 1);
        assert_eq!((read.latency_us_mean, read.latency_us_p99), (285.0, Some(285.0)));
        let saturated = ask("flash-285us-4ch", Access::RandomRead, 16_384, 32).per_second;
        // Random pages leave a channel idle now and then, so the rate is slightly below that of four servers.
        let share = saturated / (4.0 / 285e-6);
        assert!((0.9..1.0).contains(&share), "{share}");
    }

    #[test]
    fn a_disk_commits_less_than_once_per_rotation_and_flash_does_not_rotate() {
        let rate = |profile| ask(profile, Access::Fsync, 16_384, 1).per_second;
        assert!(rate("hdd-7200") < 120.0);
        assert!(rate("iodrive-160") > 10.0 * rate("x25m-80"));
    }

    #[test]
    fn a_commit_is_a_write_and_its_flush() {
        let row = ask("x25m-80", Access::Fsync, 16_384, 1);
        // One client: commits fill the whole second.
        assert!((row.per_second * row.latency_us_mean / 1e6 - 1.0).abs() < 1e-3, "{row:?}");
    }

    #[test]
    fn the_null_device_takes_no_time() {
        for access in [Access::RandomRead, Access::SequentialWrite, Access::Fsync] {
            assert_eq!(ask("null", access, 4_096, 16).latency_us_p99, Some(0.0));
        }
    }

    #[test]
    fn one_seed_gives_one_answer() {
        let ask = || ask("x25m-80", Access::RandomWrite, 4_096, 4);
        assert_eq!(ask(), ask());
    }

    #[test]
    fn what_the_model_does_not_know_is_not_answered() {
        let stack = StackSpec::of_name("null", Some("512 KiB"), "none").unwrap();
        let question =
            |place, block_bytes| Question { place, access: Access::RandomRead, block_bytes, iodepth: 1 };
        assert_eq!(answer(stack.build(1), 1, &question(Place::FileSystem, 4_096)), None);
        assert_eq!(answer(stack.build(1), 1, &question(Place::Raw, 1 << 20)), None);
    }
}
