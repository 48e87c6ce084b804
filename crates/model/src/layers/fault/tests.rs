//! How a device misbehaves, as claims.

use super::*;
use crate::closed_loop::{ClosedLoop, Driver};
use crate::devices::null::Null;
use crate::disk;
use crate::time::MILLISECOND;
use crate::virtual_time::VirtualTime;

fn faulty(parameters: FaultParameters) -> VirtualTime<Fault> {
    VirtualTime::new(Fault::new(parameters, 1, Box::new(Null::new(1 << 30))).unwrap())
}

fn none() -> FaultParameters {
    FaultParameters::default()
}

fn request(id: u64, operation: Operation, offset_bytes: u64) -> Request {
    let size_bytes = if operation == Operation::Flush { 0 } else { 4_096 };
    Request { id: RequestId(id), operation, offset_bytes, size_bytes, force_unit_access: false }
}

fn read(driver: &mut VirtualTime<Fault>, id: u64, offset_bytes: u64) -> Completion {
    driver.submit(request(id, Operation::Read, offset_bytes));
    driver.wait().unwrap()
}

#[test]
fn without_faults_nothing_changes() {
    let measured = ClosedLoop::default().run(&mut faulty(none()));
    assert_eq!(measured.elapsed_ns, 0);
}

#[test]
fn spikes_strike_their_share() {
    let spikes = Some(Spikes { per_million: 10_000, extra_ns: MILLISECOND });
    let workload = ClosedLoop { request_count: 100_000, ..ClosedLoop::default() };
    let measured = workload.run(&mut faulty(FaultParameters { spikes, ..none() }));
    let struck =
        measured.latencies_ns(Operation::Read).filter(|&latency_ns| latency_ns == MILLISECOND).count();
    // A thousand expected, with a standard deviation of 31.5.
    assert!((905..=1_095).contains(&struck), "{struck}");
    assert_eq!(measured.elapsed_ns, struck as u64 * MILLISECOND);
}

#[test]
fn a_stall_holds_everything_until_it_ends() {
    let stalls = Some(Stalls { period_ns: 1_000, duration_ns: 100 });
    let mut driver = faulty(FaultParameters { stalls, ..none() });
    let mut completed_at = |sleep_ns, id| {
        driver.sleep(sleep_ns);
        read(&mut driver, id, 0).at.0
    };
    assert_eq!(completed_at(0, 0), 0);
    assert_eq!(completed_at(999, 1), 999);
    assert_eq!(completed_at(1, 2), 1_100);
    assert_eq!(completed_at(0, 3), 1_100);
    assert_eq!(completed_at(930, 4), 2_100);
}

#[test]
fn one_request_is_stuck_and_the_others_pass() {
    let stuck = Some(Stuck { after_requests: 1, duration_ns: Some(30 * SECOND) });
    let mut driver = faulty(FaultParameters { stuck, ..none() });
    for id in 0..3 {
        driver.submit(request(id, Operation::Read, 0));
    }
    let done: Vec<_> = std::iter::from_fn(|| driver.wait()).map(|done| (done.id.0, done.at.0)).collect();
    assert_eq!(done, [(0, 0), (2, 0), (1, 30 * SECOND)]);
}

#[test]
fn stuck_for_good_ends_with_a_reset() {
    let stuck = Some(Stuck { after_requests: 0, duration_ns: None });
    let mut driver = faulty(FaultParameters { stuck, ..none() });
    driver.submit(request(7, Operation::Read, 0));
    assert_eq!(driver.wait(), None);
    assert_eq!(driver.device().counters().queue_depth, 1);
    driver.sleep(SECOND);
    assert_eq!(driver.device_mut().reset(Instant(SECOND)), Some(RequestId(7)));
    let at = Instant(SECOND);
    assert_eq!(driver.wait(), Some(Completion { id: RequestId(7), at, outcome: Outcome::Failure }));
    assert_eq!(driver.device_mut().reset(at), None);
}

#[test]
fn a_read_of_a_bad_place_fails_after_the_recovery_time() {
    let ranges = vec![(8_192, 512)];
    let read_errors = ReadErrors { ranges, per_million: 0, recovery_ns: 7 * SECOND };
    let mut driver = faulty(FaultParameters { read_errors, ..none() });
    assert_eq!(read(&mut driver, 0, 4_096).outcome, Outcome::Success);
    let failed = read(&mut driver, 1, 8_192);
    assert_eq!((failed.outcome, failed.at.0), (Outcome::Failure, 7 * SECOND));
    driver.submit(request(2, Operation::Write, 8_192));
    assert_eq!(driver.wait().unwrap().outcome, Outcome::Success);
}

#[test]
fn reads_fail_anywhere_at_their_share() {
    let read_errors = ReadErrors { ranges: Vec::new(), per_million: 100_000, recovery_ns: 0 };
    let mut driver = faulty(FaultParameters { read_errors, ..none() });
    let failed = (0..10_000).filter(|&id| read(&mut driver, id, 0).outcome == Outcome::Failure).count();
    // A thousand expected, with a standard deviation of 30.
    assert!((910..=1_090).contains(&failed), "{failed}");
}

#[test]
fn a_dying_drive_becomes_slower_with_time_and_with_reads() {
    let dying = |extra_ns_per_s, extra_ns_per_read| {
        Some(Dying { starts_at_ns: 10 * SECOND, extra_ns_per_s, extra_ns_per_read })
    };
    let mut driver = faulty(FaultParameters { dying: dying(1_000, 0), ..none() });
    assert_eq!(read(&mut driver, 0, 0).at.0, 0);
    driver.sleep(60 * SECOND);
    assert_eq!(read(&mut driver, 1, 0).at.0, 60 * SECOND + 50_000);

    let mut driver = faulty(FaultParameters { dying: dying(0, 500), ..none() });
    driver.sleep(10 * SECOND);
    let latencies: Vec<u64> = (0..4)
        .map(|id| {
            let begin = driver.now();
            read(&mut driver, id, 0).at - begin
        })
        .collect();
    assert_eq!(latencies, [0, 500, 1_000, 1_500]);
}

#[test]
fn a_dying_drive_retries_one_request_after_another() {
    let dying = Some(Dying { starts_at_ns: 0, extra_ns_per_s: MILLISECOND, extra_ns_per_read: 0 });
    let mut driver = faulty(FaultParameters { dying, ..none() });
    driver.sleep(SECOND);
    for id in 0..3 {
        driver.submit(request(id, Operation::Read, 0));
    }
    let done: Vec<u64> = std::iter::from_fn(|| driver.wait()).map(|done| done.at.0 - SECOND).collect();
    assert_eq!(done, [MILLISECOND, 2 * MILLISECOND, 3 * MILLISECOND]);
}

/// Writes lost in a power cut, of 200 acknowledged and flushed writes.
fn flushed_and_not_kept(parameters: FaultParameters, force_unit_access: bool) -> usize {
    let disk_parameters = disk::tests::parameters();
    let below = disk::Disk::new(disk_parameters, 1 << 30, 1);
    let mut driver = VirtualTime::new(Fault::new(parameters, 1, Box::new(below)).unwrap());
    for id in 0..200 {
        let write = request(2 * id, Operation::Write, id * 4_096 * 77);
        driver.submit(Request { force_unit_access, ..write });
        driver.wait().unwrap();
        if !force_unit_access {
            driver.submit(request(2 * id + 1, Operation::Flush, 0));
            driver.wait().unwrap();
        }
    }
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    assert!(cut.writes.iter().all(|write| write.acknowledged));
    cut.writes.len()
}

#[test]
fn a_lying_flush_loses_what_it_promised_and_an_honest_one_does_not() {
    let lying = FaultParameters { lying_flush_ns: Some(0), ..none() };
    for force_unit_access in [false, true] {
        assert_eq!(flushed_and_not_kept(none(), force_unit_access), 0);
        assert!(flushed_and_not_kept(lying.clone(), force_unit_access) > 20);
    }
}
