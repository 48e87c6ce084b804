//! The laws of each level as arithmetic, against members that take a constant time and against disks.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

mod host;
mod resync;
mod scaling;

use super::*;
use crate::closed_loop::{ClosedLoop, Driver, Order};
use crate::device::{Fate, WriteFate};
use crate::devices::disk::{Disk, tests::parameters as disk_parameters};
use crate::devices::{DiskParameters, WriteCache};
use crate::time::MILLISECOND;
use crate::virtual_time::VirtualTime;

const CHUNK: u64 = 64 << 10;
const MEMBER_BYTES: u64 = 16 * CHUNK;

/// A request to a member: member, operation, offset, size.
type Log = Arc<Mutex<Vec<(usize, Operation, u64, u64)>>>;

/// Serves every request in the same time, in parallel without limit. At a power cut, its open writes get the
/// fate that the test chose.
struct Constant {
    member: usize,
    latency_ns: u64,
    log: Log,
    requests: Requests,
    in_flight: VecDeque<(Instant, Slot)>,
    fails: bool,
    cut_fate: Fate,
}

impl Device for Constant {
    fn size_bytes(&self) -> u64 {
        MEMBER_BYTES
    }

    fn submit_late(&mut self, _sent: Instant, now: Instant, request: Request) -> Instant {
        self.log.lock().unwrap().push((
            self.member,
            request.operation,
            request.offset_bytes,
            request.size_bytes,
        ));
        let slot = self.requests.accept(now, request, MEMBER_BYTES);
        self.in_flight.push_back((now + self.latency_ns, slot));
        now
    }

    fn poll_at(&self) -> Option<Instant> {
        let in_flight = self.in_flight.front().map(|&(at, _)| at);
        self.requests.next_finished_at().into_iter().chain(in_flight).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        while let Some(&(at, slot)) = self.in_flight.front().filter(|(at, _)| *at <= now) {
            self.in_flight.pop_front();
            self.requests.finish(at, slot);
        }
        let outcome = if self.fails { Outcome::Failure } else { Outcome::Success };
        self.requests.collect(now).map(|completion| Completion { outcome, ..completion })
    }

    fn power_cut(&mut self, _now: Instant) -> PowerCut {
        let writes = self
            .requests
            .outstanding()
            .iter()
            .filter(|command| command.request.operation == Operation::Write)
            .map(|command| WriteFate {
                id: command.request.id,
                offset_bytes: command.request.offset_bytes,
                size_bytes: command.request.size_bytes,
                acknowledged: false,
                fate: self.cut_fate,
            })
            .collect();
        self.requests.reset();
        self.in_flight.clear();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        self.requests.counters
    }
}

struct Array {
    log: Log,
    driver: VirtualTime<Raid>,
    next_id: u64,
}

impl Array {
    fn new(parameters: RaidParameters, member_count: usize) -> Array {
        Array::with(parameters, member_count, |_| (false, Fate::Lost))
    }

    /// For each member: whether it fails, and the fate of its writes at a power cut.
    fn with(
        parameters: RaidParameters,
        member_count: usize,
        member: impl Fn(usize) -> (bool, Fate),
    ) -> Array {
        let log = Log::default();
        let devices = (0..member_count).map(|index| constant(index, log.clone(), member(index))).collect();
        let driver = VirtualTime::new(Raid::new(parameters, devices).unwrap());
        Array { log, driver, next_id: 0 }
    }

    fn submit(&mut self, operation: Operation, offset_bytes: u64, size_bytes: u64) {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        self.driver.submit(Request { id, operation, offset_bytes, size_bytes, force_unit_access: false });
    }

    /// The requests to members for one request of the host.
    fn requests(
        &mut self,
        operation: Operation,
        offset_bytes: u64,
        size_bytes: u64,
    ) -> Vec<(usize, Operation, u64, u64)> {
        self.log.lock().unwrap().clear();
        self.submit(operation, offset_bytes, size_bytes);
        assert_eq!(self.driver.wait().unwrap().outcome, Outcome::Success);
        self.log.lock().unwrap().clone()
    }

    /// Reads and writes that members see for one write of the host.
    fn cost(&mut self, offset_bytes: u64, size_bytes: u64) -> (usize, usize) {
        let requests = self.requests(Operation::Write, offset_bytes, size_bytes);
        let count = |wanted| requests.iter().filter(|(_, operation, ..)| *operation == wanted).count();
        (count(Operation::Read), count(Operation::Write))
    }

    fn outcome(&mut self, operation: Operation, offset_bytes: u64, size_bytes: u64) -> Outcome {
        self.submit(operation, offset_bytes, size_bytes);
        self.driver.wait().unwrap().outcome
    }
}

fn constant(member: usize, log: Log, (fails, cut_fate): (bool, Fate)) -> Box<dyn Device> {
    Box::new(Constant {
        member,
        latency_ns: MILLISECOND,
        log,
        requests: Requests::default(),
        in_flight: VecDeque::new(),
        fails,
        cut_fate,
    })
}

fn whole(level: RaidLevel) -> RaidParameters {
    RaidParameters { chunk_bytes: CHUNK, ..RaidParameters::new(level) }
}

fn missing(level: RaidLevel, members: &[usize]) -> RaidParameters {
    RaidParameters { missing_members: members.to_vec(), ..whole(level) }
}

fn check_cost(parameters: RaidParameters, members: usize, offset: u64, size: u64, expect: (usize, usize)) {
    let sentence = format!("{parameters:?} of {members}: {size} bytes at {offset}");
    assert_eq!(Array::new(parameters, members).cost(offset, size), expect, "{sentence}");
}

#[test]
fn a_small_write_to_raid_5_is_two_reads_and_two_writes() {
    check_cost(whole(RaidLevel::Raid5), 5, 0, 4_096, (2, 2));
    check_cost(whole(RaidLevel::Raid5), 8, 5 * CHUNK, 16_384, (2, 2));
}

#[test]
fn a_small_write_to_raid_6_is_three_reads_and_three_writes() {
    check_cost(whole(RaidLevel::Raid6), 8, 0, 4_096, (3, 3));
}

#[test]
fn a_whole_row_is_written_without_reads() {
    check_cost(whole(RaidLevel::Raid5), 5, 0, 4 * CHUNK, (0, 5));
    check_cost(whole(RaidLevel::Raid6), 6, 4 * CHUNK, 4 * CHUNK, (0, 6));
}

#[test]
fn the_rest_of_a_row_is_read_where_that_is_fewer_requests() {
    // Three of four chunks are written: one read instead of four.
    check_cost(whole(RaidLevel::Raid5), 5, 0, 3 * CHUNK, (1, 4));
    // With three members: the other chunk is read, instead of data and parity.
    check_cost(whole(RaidLevel::Raid5), 3, 0, 4_096, (1, 2));
    // One and a half of six chunks: two old parts and the parity, against five others.
    check_cost(whole(RaidLevel::Raid5), 7, 0, CHUNK + CHUNK / 2, (3, 3));
}

#[test]
fn a_page_across_two_chunks_costs_two_read_modify_writes() {
    check_cost(whole(RaidLevel::Raid5), 5, CHUNK - 8_192, 16_384, (4, 4));
}

#[test]
fn a_write_across_two_rows_is_two_writes() {
    check_cost(whole(RaidLevel::Raid5), 5, 4 * CHUNK - 4_096, 8_192, (4, 4));
    check_cost(whole(RaidLevel::Raid5), 5, 0, 8 * CHUNK, (0, 10));
}

#[test]
fn mirrors_write_every_copy_once() {
    check_cost(whole(RaidLevel::Raid1), 3, 4_096, 16_384, (0, 3));
    check_cost(whole(RaidLevel::Raid10), 4, 0, 4_096, (0, 2));
    // Eight chunks: four per pair, in one piece on each member.
    check_cost(whole(RaidLevel::Raid10), 4, 0, 8 * CHUNK, (0, 4));
    check_cost(whole(RaidLevel::Raid0), 4, 0, 8 * CHUNK, (0, 4));
}

#[test]
fn without_the_parity_data_is_written_alone() {
    // Row 0 of five: parity on member 4.
    check_cost(missing(RaidLevel::Raid5, &[4]), 5, 0, 4_096, (0, 1));
}

#[test]
fn a_write_to_a_missing_member_reads_the_rest_and_writes_the_parity() {
    check_cost(missing(RaidLevel::Raid5, &[0]), 5, 0, 4_096, (3, 1));
}

#[test]
fn a_write_beside_a_missing_member_modifies_even_where_it_would_have_reconstructed() {
    check_cost(missing(RaidLevel::Raid5, &[1]), 3, 0, 4_096, (2, 2));
}

#[test]
fn raid_6_without_two_members_still_writes() {
    // Row 0 of six: P on 5, Q on 0, data on 1 to 4.
    check_cost(missing(RaidLevel::Raid6, &[1, 2]), 6, 0, 4_096, (4, 2));
    check_cost(missing(RaidLevel::Raid6, &[5, 0]), 6, 0, 4_096, (0, 1));
}

fn check_read(
    parameters: RaidParameters,
    members: usize,
    offset: u64,
    size: u64,
    expect: &[(usize, u64, u64)],
) {
    let requests = Array::new(parameters, members).requests(Operation::Read, offset, size);
    let places: Vec<(usize, u64, u64)> =
        requests.into_iter().map(|(member, _, offset, size)| (member, offset, size)).collect();
    assert_eq!(places, expect);
}

#[test]
fn a_read_goes_where_the_chunk_lies() {
    check_read(whole(RaidLevel::Raid0), 4, 5 * CHUNK + 512, 4_096, &[(1, CHUNK + 512, 4_096)]);
    // Row 1 of four: P on member 2, data from member 3 on.
    check_read(whole(RaidLevel::Raid5), 4, 3 * CHUNK, 4_096, &[(3, CHUNK, 4_096)]);
}

#[test]
fn a_long_read_is_one_request_per_member() {
    let expect = [(0, 0, 2 * CHUNK), (1, 0, 2 * CHUNK), (2, 0, 2 * CHUNK), (3, 0, 2 * CHUNK)];
    check_read(whole(RaidLevel::Raid0), 4, 0, 8 * CHUNK, &expect);
}

#[test]
fn a_read_from_a_missing_member_reads_all_the_others() {
    let expect = [(1, 512, 4_096), (2, 512, 4_096), (3, 512, 4_096)];
    check_read(missing(RaidLevel::Raid5, &[0]), 4, 512, 4_096, &expect);
}

#[test]
fn a_read_from_a_missing_mirror_goes_to_the_other() {
    check_read(missing(RaidLevel::Raid10, &[0]), 4, 0, 4_096, &[(1, 0, 4_096)]);
}

#[test]
fn mirrored_reads_go_to_the_idle_copy_then_to_the_nearest() {
    let mut array = Array::new(whole(RaidLevel::Raid1), 2);
    array.submit(Operation::Read, 0, 4_096);
    array.submit(Operation::Read, 8 * CHUNK, 4_096);
    let members =
        |array: &Array| array.log.lock().unwrap().iter().map(|(member, ..)| *member).collect::<Vec<_>>();
    assert_eq!(members(&array), [0, 1]);
    while array.driver.wait().is_some() {}
    array.requests(Operation::Read, 7 * CHUNK, 4_096);
    assert_eq!(members(&array), [1]);
    array.requests(Operation::Read, CHUNK, 4_096);
    assert_eq!(members(&array), [0]);
}

#[test]
fn flush_goes_to_every_member() {
    let requests = Array::new(whole(RaidLevel::Raid5), 4).requests(Operation::Flush, 0, 0);
    assert_eq!(requests.len(), 4);
    let requests = Array::new(missing(RaidLevel::Raid5, &[2]), 4).requests(Operation::Flush, 0, 0);
    assert_eq!(requests.len(), 3);
}

#[test]
fn discard_reaches_whole_rows_only() {
    let mut array = Array::new(whole(RaidLevel::Raid5), 5);
    let requests = array.requests(Operation::Discard, CHUNK, 12 * CHUNK);
    // Chunks 1 to 12: rows 1 and 2 are whole.
    assert_eq!(requests.len(), 5);
    assert!(requests.iter().all(|&(_, _, offset, size)| (offset, size) == (CHUNK, 2 * CHUNK)));
    assert_eq!(array.requests(Operation::Discard, 0, CHUNK), []);
}

#[test]
fn zeroes_in_a_part_of_a_row_are_a_write() {
    let mut array = Array::new(whole(RaidLevel::Raid5), 5);
    let requests = array.requests(Operation::WriteZeroes, 3 * CHUNK, 5 * CHUNK);
    let count = |wanted| requests.iter().filter(|(_, operation, ..)| *operation == wanted).count();
    assert_eq!((count(Operation::WriteZeroes), count(Operation::Read), count(Operation::Write)), (5, 2, 2));
}

#[test]
fn writes_to_the_same_parity_follow_one_another() {
    let mut array = Array::new(whole(RaidLevel::Raid5), 5);
    // The same place within two chunks of a row, and another place.
    array.submit(Operation::Write, 0, 4_096);
    array.submit(Operation::Write, CHUNK, 4_096);
    array.submit(Operation::Write, 2 * CHUNK + 8_192, 4_096);
    let mut done_ms = || array.driver.wait().map(|done| (done.id.0, done.at.0 / MILLISECOND)).unwrap();
    assert_eq!([done_ms(), done_ms(), done_ms()], [(0, 2), (2, 2), (1, 4)]);
}

#[test]
fn a_member_that_fails_is_dropped_and_the_read_is_served() {
    let mut array = Array::with(whole(RaidLevel::Raid5), 4, |member| (member == 1, Fate::Lost));
    assert_eq!(array.outcome(Operation::Read, CHUNK, 4_096), Outcome::Success);
    assert_eq!(array.driver.device().member_state(1), MemberState::Missing);
    assert_eq!(array.outcome(Operation::Write, CHUNK, 4_096), Outcome::Success);
}

#[test]
fn a_failure_without_redundancy_reaches_the_host() {
    let mut array = Array::with(whole(RaidLevel::Raid0), 2, |member| (member == 1, Fate::Lost));
    assert_eq!(array.outcome(Operation::Read, CHUNK, 4_096), Outcome::Failure);
    assert_eq!(array.outcome(Operation::Read, 0, 4_096), Outcome::Success);
    let mut array = Array::with(missing(RaidLevel::Raid5, &[0]), 4, |member| (member == 1, Fate::Lost));
    assert_eq!(array.outcome(Operation::Read, CHUNK, 4_096), Outcome::Failure);
}

#[test]
fn a_member_can_fail_only_while_the_others_have_its_data() {
    let mut array = Array::new(whole(RaidLevel::Raid10), 4);
    let raid = array.driver.device_mut();
    assert!(raid.fail_member(Instant::ZERO, 0));
    assert!(!raid.fail_member(Instant::ZERO, 1), "its mirror is gone");
    assert!(raid.fail_member(Instant::ZERO, 2));
}

fn rebuilding(level: RaidLevel) -> RaidParameters {
    RaidParameters {
        rebuilding_members: vec![1],
        rebuild_least_bytes_per_s: 1 << 20,
        rebuild_most_bytes_per_s: 64 << 20,
        ..whole(level)
    }
}

#[test]
fn a_rebuild_reads_the_others_and_fills_the_new_member() {
    for (level, reads) in
        [(RaidLevel::Raid1, 1), (RaidLevel::Raid5, 3), (RaidLevel::Raid6, 2), (RaidLevel::Raid10, 1)]
    {
        let mut array = Array::new(rebuilding(level), 4);
        assert_eq!(array.driver.wait(), None);
        let raid = array.driver.device();
        assert_eq!(raid.member_state(1), MemberState::InSync, "{level:?}");
        let log = array.log.lock().unwrap();
        let bytes = |wanted| -> u64 {
            log.iter().filter(|(_, operation, ..)| *operation == wanted).map(|(.., size)| size).sum()
        };
        assert_eq!((bytes(Operation::Read), bytes(Operation::Write)), (reads * MEMBER_BYTES, MEMBER_BYTES));
        assert!(log.iter().all(|&(member, operation, ..)| (member == 1) == (operation == Operation::Write)));
    }
}

#[test]
fn an_idle_rebuild_runs_at_its_highest_rate() {
    let parameters = RaidParameters { rebuild_idle_ns: 0, ..rebuilding(RaidLevel::Raid1) };
    let mut array = Array::new(parameters, 2);
    assert_eq!(array.driver.wait(), None);
    // 1 MiB at 64 MiB/s in two units. The second unit starts after the time of the first, and takes two
    // requests.
    assert_eq!(array.driver.now().0, transfer_of(512 << 10) + 2 * MILLISECOND);
}

#[test]
fn a_rebuild_is_no_faster_than_the_members() {
    let parameters = RaidParameters {
        rebuild_idle_ns: 0,
        rebuild_most_bytes_per_s: 4 << 30,
        ..rebuilding(RaidLevel::Raid1)
    };
    let mut array = Array::new(parameters, 2);
    assert_eq!(array.driver.wait(), None);
    // Two units of two requests, one after another.
    assert_eq!(array.driver.now().0, 4 * MILLISECOND);
}

fn transfer_of(bytes: u64) -> u64 {
    crate::devices::transfer_ns(bytes, 64 << 20)
}

#[test]
fn a_busy_host_slows_the_rebuild_to_its_lowest_rate() {
    let mut array = Array::new(rebuilding(RaidLevel::Raid1), 2);
    let reads = ClosedLoop { span_bytes: MEMBER_BYTES, request_count: 300, ..ClosedLoop::default() };
    reads.run(&mut array.driver);
    // 300 ms at 1 MiB/s: the first unit started at once, the second is due after 500 ms.
    assert_eq!(array.driver.device().member_state(1), MemberState::Rebuilding { valid_bytes: 512 << 10 });
}

#[test]
fn a_rebuilding_member_takes_writes_and_serves_only_what_is_valid() {
    let mut array = Array::new(rebuilding(RaidLevel::Raid1), 2);
    let last = MEMBER_BYTES - 4_096;
    let requests = array.requests(Operation::Write, last, 4_096);
    // In addition to those of the rebuild.
    assert!(requests.contains(&(1, Operation::Write, last, 4_096)), "{requests:?}");
    array.log.lock().unwrap().clear();
    // Two in parallel would go to two copies.
    array.submit(Operation::Read, last, 4_096);
    array.submit(Operation::Read, last, 4_096);
    array.submit(Operation::Read, 0, 4_096);
    let members: Vec<usize> = array.log.lock().unwrap().iter().map(|(member, ..)| *member).collect();
    assert_eq!(members, [0, 0, 0]);
    while array.driver.wait().is_some() {}
    assert_eq!(array.driver.device().member_state(1), MemberState::InSync);
}

#[test]
fn a_write_waits_for_the_rebuild_of_its_place() {
    for level in [RaidLevel::Raid1, RaidLevel::Raid10] {
        let mut array = Array::new(rebuilding(level), 2);
        // The first half is read for one millisecond and written for another.
        array.driver.sleep(MILLISECOND / 2);
        array.submit(Operation::Write, 0, 4_096);
        array.submit(Operation::Write, MEMBER_BYTES - 4_096, 4_096);
        let done = [array.driver.wait().unwrap(), array.driver.wait().unwrap()];
        let done = done.map(|done| (done.id.0, done.at.0));
        assert_eq!(done, [(1, MILLISECOND * 3 / 2), (0, 3 * MILLISECOND)], "{level:?}");
    }
}

#[test]
fn a_replaced_member_is_rebuilt() {
    let mut array = Array::new(whole(RaidLevel::Raid5), 4);
    let log = array.log.clone();
    let raid = array.driver.device_mut();
    assert!(raid.replace_member(Instant::ZERO, 2, constant(2, log.clone(), (false, Fate::Lost))).is_err());
    assert!(raid.fail_member(Instant::ZERO, 2));
    raid.replace_member(Instant::ZERO, 2, constant(2, log, (false, Fate::Lost))).unwrap();
    assert_eq!(raid.member_state(2), MemberState::Rebuilding { valid_bytes: 0 });
    assert_eq!(array.driver.wait(), None);
    assert_eq!(array.driver.device().member_state(2), MemberState::InSync);
}

/// Cuts the power during one write of 16 KiB at 0. Returns fate, torn rows and damaged ranges.
fn cut_in_write(parameters: RaidParameters, kept_members: &[usize]) -> (Vec<Fate>, u64, Vec<(u64, u64)>) {
    let mut array = Array::with(parameters, 5, |member| {
        (false, if kept_members.contains(&member) { Fate::Kept } else { Fate::Lost })
    });
    array.submit(Operation::Write, 0, 16_384);
    // The reads take one millisecond, the writes another.
    let now = Instant(3 * MILLISECOND / 2);
    let cut = array.driver.device_mut().power_cut(now);
    let raid = array.driver.device();
    let fates = cut.writes.iter().map(|write| write.fate).collect();
    (fates, raid.write_hole_rows(), raid.damaged().to_vec())
}

#[test]
fn data_without_its_parity_is_a_write_hole() {
    // Row 0 of five: data on members 0 to 3, parity on 4.
    assert_eq!(cut_in_write(whole(RaidLevel::Raid5), &[0, 4]), (vec![Fate::Kept], 0, vec![]));
    assert_eq!(cut_in_write(whole(RaidLevel::Raid5), &[]), (vec![Fate::Lost], 0, vec![]));
    assert_eq!(cut_in_write(whole(RaidLevel::Raid5), &[0]), (vec![Fate::Kept], 1, vec![]));
    assert_eq!(cut_in_write(whole(RaidLevel::Raid5), &[4]), (vec![Fate::Lost], 1, vec![]));
}

#[test]
fn the_write_hole_of_a_degraded_array_damages_what_was_durable() {
    let (fates, rows, damaged) = cut_in_write(missing(RaidLevel::Raid5, &[2]), &[0]);
    assert_eq!((fates, rows, damaged), (vec![Fate::Kept], 1, vec![(2 * CHUNK, 16_384)]));
    let (_, _, damaged) = cut_in_write(missing(RaidLevel::Raid5, &[2]), &[0, 4]);
    assert_eq!(damaged, []);
}

#[test]
fn a_write_to_a_missing_member_fares_as_its_parity() {
    assert_eq!(cut_in_write(missing(RaidLevel::Raid5, &[0]), &[4]), (vec![Fate::Kept], 0, vec![]));
    assert_eq!(cut_in_write(missing(RaidLevel::Raid5, &[0]), &[]), (vec![Fate::Lost], 0, vec![]));
}

#[test]
fn a_write_that_has_only_read_so_far_is_lost() {
    let mut array = Array::with(whole(RaidLevel::Raid5), 5, |_| (false, Fate::Kept));
    array.submit(Operation::Write, 4 * CHUNK, 8_192);
    let cut = array.driver.device_mut().power_cut(Instant(MILLISECOND / 2));
    assert_eq!(cut.writes.len(), 1);
    let write = cut.writes[0];
    assert_eq!((write.offset_bytes, write.size_bytes, write.fate), (4 * CHUNK, 8_192, Fate::Lost));
}

#[test]
fn fates_are_in_the_hosts_bytes() {
    let mut array = Array::with(whole(RaidLevel::Raid0), 2, |member| {
        (false, if member == 0 { Fate::Torn { kept_bytes: CHUNK + 4_096 } } else { Fate::Lost })
    });
    array.submit(Operation::Write, 0, 4 * CHUNK);
    let cut = array.driver.device_mut().power_cut(Instant::ZERO);
    let parts: Vec<(u64, u64, Fate)> = cut
        .writes
        .iter()
        .map(|write| (write.offset_bytes / CHUNK, write.size_bytes / CHUNK, write.fate))
        .collect();
    assert_eq!(
        parts,
        [
            (0, 1, Fate::Kept),
            (1, 1, Fate::Lost),
            (2, 1, Fate::Torn { kept_bytes: 4_096 }),
            (3, 1, Fate::Lost)
        ]
    );
}

#[test]
fn of_mirrored_copies_the_first_valid_one_counts() {
    let fates = |parameters: RaidParameters| {
        let mut array =
            Array::with(parameters, 2, |member| (false, if member == 0 { Fate::Kept } else { Fate::Lost }));
        array.submit(Operation::Write, 0, 4_096);
        let cut = array.driver.device_mut().power_cut(Instant::ZERO);
        cut.writes.iter().map(|write| write.fate).collect::<Vec<_>>()
    };
    assert_eq!(fates(whole(RaidLevel::Raid1)), [Fate::Kept]);
    assert_eq!(fates(missing(RaidLevel::Raid1, &[0])), [Fate::Lost]);
}

#[test]
fn a_member_that_dies_at_a_moment_is_rebuilt_once_it_is_replaced() {
    let mut array = Array::new(whole(RaidLevel::Raid5), 4);
    let raid = array.driver.device_mut();
    let mut turn = |change| raid.change(Instant::ZERO, change).map_err(|refused| refused.to_string());
    let refuse = |words: &str| Err(words.to_owned());
    assert_eq!(
        turn(Change::MemberIsReplaced(2)),
        refuse("`member` 3 works, and only a member that died is replaced")
    );
    assert_eq!(turn(Change::MemberFails(4)), refuse("`member` 5 is not there: the array has members 1 to 4"));
    assert_eq!(turn(Change::MemberFails(2)), Ok(true));
    assert_eq!(turn(Change::MemberFails(2)), refuse("`member` 3 is missing already"));
    assert_eq!(turn(Change::MemberFails(0)), refuse("`member` 1 cannot die: the array would lose data"));
    assert_eq!(turn(Change::MemberIsReplaced(2)), Ok(true));
    assert_eq!(raid.member_state(2), MemberState::Rebuilding { valid_bytes: 0 });
    assert_eq!(array.driver.wait(), None);
    assert_eq!(array.driver.device().member_state(2), MemberState::InSync);
}

#[test]
fn a_change_reaches_the_first_part_that_has_such_a_thing() {
    let parameters = RaidParameters { level: RaidLevel::Raid1, ..whole(RaidLevel::Raid1) };
    let cached = |_| -> Box<dyn Device> {
        let cache = crate::layers::CacheParameters::new(crate::layers::CachePolicy::WriteBack, 1 << 20);
        let disk = Disk::new(disk_parameters(), 1 << 30, 1);
        Box::new(crate::layers::cache::Cache::new(cache, Box::new(disk), 1).unwrap())
    };
    let mut raid = Raid::new(parameters, (0..2).map(cached).collect()).unwrap();
    let battery = Change::Battery { is_good: false };
    assert_eq!(raid.change(Instant::ZERO, battery), Ok(true));
    let words = raid.change(Instant::ZERO, battery).unwrap_err().to_string();
    assert_eq!(words, "`battery` is bad already", "the first member's again");
    assert_eq!(raid.change(Instant::ZERO, Change::Link { is_up: false }), Ok(false));
}
