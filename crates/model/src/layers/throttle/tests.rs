//! The rates of a throttle, as arithmetic.

use super::*;
use crate::closed_loop::{ClosedLoop, Driver, Measured};
use crate::devices::null::Null;
use crate::request::{Request, RequestId};
use crate::virtual_time::VirtualTime;

const MIB: u64 = 1 << 20;

fn throttled(parameters: ThrottleParameters) -> VirtualTime<Throttle> {
    VirtualTime::new(Throttle::new(parameters, Box::new(Null::new(1 << 30))).unwrap())
}

fn run(parameters: ThrottleParameters, workload: ClosedLoop) -> Measured {
    workload.run(&mut throttled(parameters))
}

fn load(read_percent: u64, size_bytes: u64) -> ClosedLoop {
    ClosedLoop { read_percent, size_bytes, queue_depth: 8, request_count: 10_000, ..ClosedLoop::default() }
}

fn iops(iops: u64) -> Limit {
    Limit { iops: Some(iops), bytes_per_s: None }
}

fn rate(bytes_per_s: u64) -> Limit {
    Limit { iops: None, bytes_per_s: Some(bytes_per_s) }
}

fn request(id: u64, operation: Operation) -> Request {
    Request {
        id: RequestId(id),
        operation,
        offset_bytes: 0,
        size_bytes: if operation == Operation::Flush { 0 } else { 4_096 },
        force_unit_access: false,
    }
}

#[test]
fn without_limits_nothing_waits() {
    assert_eq!(run(ThrottleParameters::default(), load(50, 4_096)).elapsed_ns, 0);
}

#[test]
fn ten_thousand_operations_at_a_thousand_a_second_take_ten_seconds() {
    let limited = ThrottleParameters { total: iops(1_000), ..ThrottleParameters::default() };
    // The first one finds a token: 9,999 intervals.
    assert_eq!(run(limited, load(50, 4_096)).elapsed_ns, 9_999 * SECOND / 1_000);
}

#[test]
fn bytes_are_limited_whatever_their_pieces() {
    let limited = ThrottleParameters { total: rate(100 * MIB), ..ThrottleParameters::default() };
    for size_bytes in [4_096, 65_536, MIB] {
        let workload = ClosedLoop { request_count: 1_000, ..load(50, size_bytes) };
        let measured = run(limited, workload);
        // The last request is paid for by the request that does not follow.
        let paid_ns = 999 * size_bytes * SECOND / (100 * MIB);
        assert!(measured.elapsed_ns.abs_diff(paid_ns) <= 20, "{size_bytes}: {}", measured.elapsed_ns);
    }
}

#[test]
fn a_burst_is_as_deep_as_its_time() {
    let limited =
        ThrottleParameters { total: iops(1_000), burst_ns: 2 * SECOND, ..ThrottleParameters::default() };
    assert_eq!(run(limited, load(100, 4_096)).elapsed_ns, (10_000 - 2_000) * SECOND / 1_000);
}

#[test]
fn each_direction_has_its_own_limit() {
    let limited = ThrottleParameters { read: iops(1_000), write: iops(250), ..ThrottleParameters::default() };
    let mut driver = throttled(limited);
    for id in 0..200 {
        driver.submit(request(id, if id < 100 { Operation::Read } else { Operation::Write }));
    }
    let done: Vec<_> = std::iter::from_fn(|| driver.wait()).collect();
    let last = |reads: bool| done.iter().rfind(|done| (done.id.0 < 100) == reads).unwrap().at.0;
    assert_eq!((last(true), last(false)), (99 * SECOND / 1_000, 99 * SECOND / 250));
}

#[test]
fn waiting_writes_do_not_hold_up_reads_nor_a_flush() {
    let mut driver = throttled(ThrottleParameters { write: iops(1), ..ThrottleParameters::default() });
    let operations = [Operation::Write, Operation::Write, Operation::Read, Operation::Flush];
    for (id, operation) in (0..).zip(operations) {
        driver.submit(request(id, operation));
    }
    let done: Vec<_> = std::iter::from_fn(|| driver.wait()).map(|done| (done.id.0, done.at.0)).collect();
    assert_eq!(done, [(0, 0), (2, 0), (3, 0), (1, SECOND)]);
}

#[test]
fn what_waits_in_the_layer_is_lost_when_the_power_fails() {
    let mut driver = throttled(ThrottleParameters { write: iops(1), ..ThrottleParameters::default() });
    for id in 0..3 {
        driver.submit(request(id, Operation::Write));
    }
    let cut = driver.device_mut().power_cut(Instant::ZERO);
    let fates: Vec<_> = cut.writes.iter().map(|write| (write.id.0, write.fate)).collect();
    assert_eq!(fates, [(1, Fate::Lost), (2, Fate::Lost)]);
}

#[test]
fn a_limit_of_nothing_is_refused() {
    let refused = ThrottleParameters { read: iops(0), ..ThrottleParameters::default() };
    assert_eq!(
        refused.validate().unwrap_err().to_string(),
        "`read_iops` is 0/s, must be 1/s to 1000000000000/s"
    );
}
