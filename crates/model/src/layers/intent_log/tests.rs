//! A log on a fast device before a pool on a slow one, each of a constant time.

use super::*;
use crate::closed_loop::{ClosedLoop, Driver};
use crate::devices::volume::tests::constant;
use crate::layers::fault::{Fault, FaultParameters, Stuck};
use crate::layers::ssd_cache::tests::{FAST_NS, KIB, MIB, SIZE_BYTES, SLOW_NS, latency_ns, request, settle};
use crate::time::{MICROSECOND, MILLISECOND, SECOND};
use crate::virtual_time::VirtualTime;

fn log_parameters() -> IntentLogParameters {
    IntentLogParameters {
        log_bytes: Some(64 * MIB),
        record_header_bytes: 192,
        log_block_bytes: 4 * KIB,
        memory_ns: MICROSECOND,
        group_interval_ns: 5 * SECOND,
        group_bytes: 64 * MIB,
        dirty_limit_bytes: 256 * MIB,
        pool_queue_depth: 10,
    }
}

fn log(parameters: IntentLogParameters) -> VirtualTime<IntentLog> {
    let (fast, slow) = (constant(64 * MIB, FAST_NS), constant(SIZE_BYTES, SLOW_NS));
    VirtualTime::new(IntentLog::new(parameters, fast, slow).unwrap())
}

#[test]
fn a_commit_takes_a_write_and_a_flush_of_the_log() {
    let mut driver = log(log_parameters());
    assert_eq!(latency_ns(&mut driver, Operation::Write, 0, 16 * KIB), MICROSECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Flush, 0, 0), 2 * FAST_NS);
    // Without new data, nothing is logged.
    assert_eq!(latency_ns(&mut driver, Operation::Flush, 0, 0), MICROSECOND);
    driver.submit(Request { force_unit_access: true, ..request(Operation::Write, 0, 16 * KIB) });
    let begin = driver.now();
    assert_eq!(driver.wait().unwrap().at - begin, 2 * FAST_NS);
}

#[test]
fn a_commit_waits_for_the_log_writes_before_it() {
    // The first write to the log takes one second.
    let stuck = Some(Stuck { after_requests: 0, duration_ns: Some(SECOND) });
    let faulty = FaultParameters { stuck, ..FaultParameters::default() };
    let fast = Box::new(Fault::new(faulty, 1, constant(64 * MIB, FAST_NS)).unwrap());
    let slow = constant(SIZE_BYTES, SLOW_NS);
    let mut driver = VirtualTime::new(IntentLog::new(log_parameters(), fast, slow).unwrap());
    for (id, operation) in
        [(1, Operation::Write), (2, Operation::Flush), (3, Operation::Write), (4, Operation::Flush)]
    {
        let size_bytes = if operation == Operation::Flush { 0 } else { 16 * KIB };
        driver.submit(Request { id: RequestId(id), ..request(operation, 0, size_bytes) });
    }
    let done: Vec<_> = (0..4).filter_map(|_| driver.wait()).map(|done| (done.id.0, done.at.0)).collect();
    let logged_at = SECOND + 2 * FAST_NS;
    assert_eq!(done, [(1, MICROSECOND), (3, MICROSECOND), (2, logged_at), (4, logged_at)]);
}

#[test]
fn a_group_goes_to_the_pool_sorted_and_merged_after_its_interval() {
    let mut driver = log(log_parameters());
    for block in (0..256).rev() {
        latency_ns(&mut driver, Operation::Write, block * 16 * KIB, 16 * KIB);
    }
    settle(&mut driver, 5 * SECOND - MILLISECOND);
    assert_eq!(driver.device().counters().volatile_bytes, 4 * MIB);
    settle(&mut driver, SECOND);
    // Four mebibytes in writes of one, and a flush.
    assert_eq!((driver.device().counters().volatile_bytes, driver.device().poll_at()), (0, None));
    let now = driver.now();
    assert_eq!(driver.device_mut().power_cut(now).writes, []);
}

#[test]
fn what_is_dirty_is_read_from_memory() {
    let mut driver = log(log_parameters());
    latency_ns(&mut driver, Operation::Write, 0, 16 * KIB);
    assert_eq!(latency_ns(&mut driver, Operation::Read, 4 * KIB, 8 * KIB), MICROSECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Read, 32 * KIB, 8 * KIB), SLOW_NS);
    settle(&mut driver, 10 * SECOND);
    assert_eq!(latency_ns(&mut driver, Operation::Read, 4 * KIB, 8 * KIB), SLOW_NS);
}

#[test]
fn a_full_log_makes_a_commit_wait_for_the_group() {
    let mut driver = log(IntentLogParameters { log_bytes: Some(MIB), ..log_parameters() });
    let mut slow_commits = 0;
    for block in 0..100 {
        latency_ns(&mut driver, Operation::Write, block * 16 * KIB, 16 * KIB);
        let commit_ns = latency_ns(&mut driver, Operation::Flush, 0, 0);
        if commit_ns == 2 * SLOW_NS {
            slow_commits += 1;
        } else {
            assert_eq!(commit_ns, 2 * FAST_NS);
        }
    }
    // A record takes 20 KiB: 51 fit. The 52nd waits for the group of its writes. This repeats every 52
    // writes.
    assert_eq!(slow_commits, 1);
}

#[test]
fn too_much_dirty_data_holds_writes_up() {
    let limited = IntentLogParameters { group_bytes: MIB, dirty_limit_bytes: MIB, ..log_parameters() };
    let mut driver = log(limited);
    let workload = ClosedLoop {
        read_percent: 0,
        size_bytes: 64 * KIB,
        queue_depth: 4,
        span_bytes: SIZE_BYTES,
        request_count: 1_600,
        ..ClosedLoop::default()
    };
    let measured = workload.run(&mut driver);
    // A hundred groups of 16 random writes, ten at a time, and a flush: 15 ms each, one after another.
    let rate = 1_600.0 / (measured.elapsed_ns as f64 / 1e9);
    assert!((rate / (16.0 / 0.015) - 1.0).abs() < 0.05, "{rate}");
}

#[test]
fn a_power_cut_takes_what_was_not_logged() {
    let mut driver = log(log_parameters());
    let write = |driver: &mut VirtualTime<IntentLog>, id, block: u64| {
        driver.submit(Request { id: RequestId(id), ..request(Operation::Write, block * 16 * KIB, 16 * KIB) });
        driver.wait().unwrap();
    };
    write(&mut driver, 1, 1);
    latency_ns(&mut driver, Operation::Flush, 0, 0);
    write(&mut driver, 2, 2);
    write(&mut driver, 3, 1);
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    let fates: Vec<_> = cut.writes.iter().map(|write| (write.id.0, write.acknowledged, write.fate)).collect();
    assert_eq!(fates, [(2, true, Fate::Lost), (3, true, Fate::Lost)]);
}

#[test]
fn what_a_group_made_durable_stays_so_when_it_is_written_again_meanwhile() {
    let mut driver = log(log_parameters());
    let first = Request { id: RequestId(1), ..request(Operation::Write, 0, 16 * KIB) };
    driver.submit(first);
    driver.wait().unwrap();
    // The group is on its way to the pool.
    settle(&mut driver, 5 * SECOND + MILLISECOND);
    driver.submit(Request { id: RequestId(2), ..first });
    driver.wait().unwrap();
    settle(&mut driver, SECOND);
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    assert_eq!(cut.writes.iter().map(|write| write.id.0).collect::<Vec<_>>(), [2]);
}
