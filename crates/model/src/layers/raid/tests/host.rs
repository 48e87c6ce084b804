//! The host's time before and between the requests to members.

use super::*;
use crate::time::MICROSECOND;

const SEND_NS: u64 = 200 * MICROSECOND;

fn hosted(level: RaidLevel, host_latency_ns: u64, host_write_ns: u64) -> RaidParameters {
    RaidParameters { host_latency_ns, host_write_ns, ..whole(level) }
}

/// Completion times, in microseconds, of this many requests submitted together at time zero.
fn ends_us(parameters: RaidParameters, operation: Operation, count: u64) -> Vec<u64> {
    let mut array = Array::new(parameters, 2);
    (0..count).for_each(|index| array.submit(operation, index * 4_096, 4_096));
    (0..count).map(|_| array.driver.wait().unwrap().at.0 / MICROSECOND).collect()
}

#[test]
fn every_request_takes_the_latency_of_the_host() {
    let latency_ns = 5 * MICROSECOND;
    for operation in [Operation::Read, Operation::Write, Operation::Flush] {
        let mut array = Array::new(hosted(RaidLevel::Raid0, latency_ns, 0), 2);
        array.submit(operation, 0, if operation == Operation::Flush { 0 } else { 4_096 });
        assert_eq!(array.driver.wait().unwrap().at, Instant(MILLISECOND + latency_ns));
    }
    assert_eq!(ends_us(hosted(RaidLevel::Raid0, latency_ns, 0), Operation::Read, 3), [1_005; 3]);
}

#[test]
fn one_thread_sends_the_writes_to_one_copy_after_the_other() {
    // The second copy is sent 200 us after the first, and each further write 400 us later.
    let parameters = hosted(RaidLevel::Raid1, 0, SEND_NS);
    assert_eq!(ends_us(parameters.clone(), Operation::Write, 4), [1_200, 1_600, 2_000, 2_400]);
    assert_eq!(ends_us(parameters, Operation::Read, 4), [1_000; 4]);
}

/// Ids and fates of three mirrored writes, at a cut when members keep the writes that they have.
fn fates_at(host_latency_ns: u64, now_us: u64) -> Vec<(u64, Fate)> {
    let parameters = hosted(RaidLevel::Raid1, host_latency_ns, SEND_NS);
    let mut array = Array::with(parameters, 2, |_| (false, Fate::Kept));
    (0..3).for_each(|index| array.submit(Operation::Write, index * 4_096, 4_096));
    let cut = array.driver.device_mut().power_cut(Instant(now_us * MICROSECOND));
    assert_eq!(array.driver.device().poll_at(), None);
    cut.writes.iter().map(|write| (write.id.0, write.fate)).collect()
}

#[test]
fn a_power_cut_takes_the_writes_that_the_host_still_has() {
    // One copy of the second write is sent, none of the third.
    assert_eq!(fates_at(0, 500), [(0, Fate::Kept), (1, Fate::Kept), (2, Fate::Lost)]);
    assert_eq!(fates_at(MICROSECOND, 0), [(0, Fate::Lost), (1, Fate::Lost), (2, Fate::Lost)]);
}

#[test]
fn only_copies_have_a_thread() {
    let refused = hosted(RaidLevel::Raid0, 0, SEND_NS).validate(2).unwrap_err();
    assert_eq!(
        (refused.key.as_ref(), refused.problem.as_str()),
        ("host_write", "belongs to levels 1 and 10")
    );
}
