//! A battery-backed cache compared with a disk without one, and with arithmetic.

use std::sync::{Arc, Mutex};

use super::*;
use crate::closed_loop::{ClosedLoop, Driver, Measured, Order};
use crate::device::{Fate, PowerCut};
use crate::devices::disk::{Disk, tests::parameters as disk_parameters};
use crate::devices::null::Null;
use crate::devices::{DiskParameters, WriteCache};
use crate::layers::fault::{Fault, FaultParameters, ReadErrors};
use crate::layers::raid::{Raid, RaidLevel, RaidParameters};
use crate::request::{Request, RequestId};
use crate::time::{MICROSECOND, MILLISECOND, SECOND};
use crate::virtual_time::VirtualTime;

const SIZE_BYTES: u64 = 20 << 30;

fn disk() -> Box<dyn Device> {
    let parameters = DiskParameters { write_cache: WriteCache::Off, ..disk_parameters() };
    Box::new(Disk::new(parameters, SIZE_BYTES, 1))
}

fn write_back(megabytes: u64) -> CacheParameters {
    CacheParameters::new(CachePolicy::WriteBack, megabytes << 20)
}

fn over(parameters: CacheParameters, below: Box<dyn Device>) -> VirtualTime<Cache> {
    VirtualTime::new(Cache::new(parameters, below, 1).unwrap())
}

fn request(id: u64, operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(id), operation, offset_bytes, size_bytes, force_unit_access: false }
}

/// Submits one request and waits for it. Returns its latency.
fn latency_ns(driver: &mut VirtualTime<Cache>, request: Request) -> u64 {
    let begin = driver.now();
    driver.submit(request);
    driver.wait().unwrap().at - begin
}

fn commits_per_s(driver: &mut impl Driver) -> f64 {
    let log = ClosedLoop {
        read_percent: 0,
        order: Order::Sequential,
        flush_after_write: true,
        request_count: 4_000,
        ..ClosedLoop::default()
    };
    log.run(driver).per_second(Operation::Write)
}

#[test]
fn a_commit_costs_two_commands_and_the_link() {
    let parameters = CacheParameters { link_bytes_per_s: 1 << 30, ..write_back(256) };
    let expect_ns = 2 * parameters.command_ns + transfer_ns(4_096, 1 << 30);
    let measured = commits_per_s(&mut over(parameters, disk()));
    assert!((measured * expect_ns as f64 / 1e9 - 1.0).abs() < 0.001, "{measured}");
}

#[test]
fn the_assumed_range_of_latency_brackets_the_commits_measured_on_such_controllers() {
    // Areca with 256 MB: 10,212 to 10,855 commits a second (G. Smith, PostgreSQL lists).
    let rate =
        |command_ns| commits_per_s(&mut over(CacheParameters { command_ns, ..write_back(256) }, disk()));
    let (fast, slow) = (rate(20 * MICROSECOND), rate(50 * MICROSECOND));
    assert!(slow < 10_212.0 && 10_855.0 < fast, "{slow} to {fast}");
}

#[test]
fn without_a_cache_a_commit_costs_a_rotation() {
    let through = CacheParameters::new(CachePolicy::WriteThrough, 256 << 20);
    let (cached, bare) =
        (commits_per_s(&mut over(through, disk())), commits_per_s(&mut VirtualTime::new(disk())));
    assert!((110.0..=120.0).contains(&bare), "{bare}");
    assert!((cached / bare - 1.0).abs() < 0.01, "{cached} against {bare}");
}

fn random_writes(queue_depth: u64, seconds: u64) -> ClosedLoop {
    ClosedLoop {
        read_percent: 0,
        queue_depth,
        span_bytes: SIZE_BYTES,
        request_count: u64::MAX,
        time_limit_ns: seconds * SECOND,
        ..ClosedLoop::default()
    }
}

/// Writes per second after the memory has filled.
fn steady_writes_per_s(parameters: CacheParameters) -> f64 {
    let mut driver = over(parameters, disk());
    random_writes(4, 60).run(&mut driver);
    random_writes(4, 60).run(&mut driver).per_second(Operation::Write)
}

#[test]
fn sorting_many_writes_beats_the_disk_at_any_queue_depth() {
    let bare = |queue_depth| {
        random_writes(queue_depth, 60).run(&mut VirtualTime::new(disk())).per_second(Operation::Write)
    };
    let cached = steady_writes_per_s(write_back(256));
    let (one, many) = (bare(1), bare(32));
    println!(
        "4 KiB random writes a second: {cached:.0} behind 256 MiB, {one:.0} at QD1 and {many:.0} at QD32 without"
    );
    assert!(cached > 3.0 * one && cached > 1.3 * many, "{cached} against {one} and {many}");
}

#[test]
fn more_memory_sorts_better() {
    let (small, large) = (steady_writes_per_s(write_back(8)), steady_writes_per_s(write_back(256)));
    assert!(large > 1.2 * small, "{large} against {small}");
}

#[test]
fn a_burst_that_fits_is_taken_at_the_speed_of_memory() {
    let mut driver = over(write_back(256), disk());
    let burst = ClosedLoop { request_count: 10_000, ..random_writes(1, 60) }.run(&mut driver);
    let expect_ns = (40 * MICROSECOND + transfer_ns(4_096, 2_000_000_000)) as f64;
    assert_eq!(burst.mean_ns(Operation::Write), expect_ns);
}

#[test]
fn a_burst_that_does_not_fit_waits_for_the_disk() {
    let mut driver = over(write_back(1), disk());
    let burst = ClosedLoop { request_count: 1_000, ..random_writes(1, 60) }.run(&mut driver);
    let longest_ns = burst.latencies_ns(Operation::Write).max().unwrap();
    assert!(longest_ns > MILLISECOND, "{longest_ns}");
}

#[test]
fn an_idle_host_finds_everything_written_back() {
    let mut driver = over(write_back(256), disk());
    random_writes(1, 1).run(&mut driver);
    assert!(driver.device().state.dirty.volatile_sectors() > 0);
    assert_eq!(driver.wait(), None);
    assert_eq!(driver.device().state.dirty.volatile_sectors(), 0);
}

#[test]
fn below_the_watermark_a_busy_host_is_not_disturbed() {
    let mut driver = over(write_back(256), Box::new(Null::new(SIZE_BYTES)));
    let mixed = ClosedLoop { read_percent: 50, request_count: 20_000, ..random_writes(4, 60) };
    let measured = mixed.run(&mut driver);
    assert_eq!(driver.device().below().counters().writes, 0);
    let dirty_bytes = driver.device().state.dirty.volatile_sectors() * SECTOR_BYTES;
    assert!(
        dirty_bytes > 32 << 20 && dirty_bytes <= measured.count(Operation::Write) * 4_096,
        "{dirty_bytes}"
    );
}

#[test]
fn adjacent_writes_go_below_together_and_aligned() {
    let mut driver = over(write_back(256), Box::new(Null::new(SIZE_BYTES)));
    let log = ClosedLoop { order: Order::Sequential, request_count: 640, ..random_writes(1, 60) };
    log.run(&mut driver);
    assert_eq!(driver.wait(), None);
    let below = driver.device().below().counters();
    assert_eq!((below.writes, below.write_bytes), (10, 640 * 4_096));
}

/// A member whose state the test can inspect while it is in an array.
#[derive(Clone)]
struct Shared(Arc<Mutex<Null>>);

impl Device for Shared {
    fn size_bytes(&self) -> u64 {
        self.0.lock().unwrap().size_bytes()
    }

    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        self.0.lock().unwrap().submit_late(sent, now, request)
    }

    fn poll_at(&self) -> Option<Instant> {
        self.0.lock().unwrap().poll_at()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.0.lock().unwrap().poll(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.0.lock().unwrap().power_cut(now)
    }

    fn counters(&self) -> Counters {
        self.0.lock().unwrap().counters()
    }
}

/// Reads and writes of the five members of a RAID 5 while 640 sequential writes of 4 KiB are destaged.
fn member_requests(destage_bytes: u64) -> (u64, u64) {
    let members: Vec<Shared> = (0..5).map(|_| Shared(Arc::new(Mutex::new(Null::new(1 << 30))))).collect();
    let devices = members.iter().map(|member| Box::new(member.clone()) as Box<dyn Device>).collect();
    let array = Raid::new(RaidParameters::new(RaidLevel::Raid5), devices).unwrap();
    let mut driver = over(CacheParameters { destage_bytes, ..write_back(256) }, Box::new(array));
    let log = ClosedLoop { order: Order::Sequential, request_count: 640, ..random_writes(1, 60) };
    log.run(&mut driver);
    assert_eq!(driver.wait(), None);
    let counters = members.iter().map(|member| member.counters());
    counters.fold((0, 0), |(reads, writes), member| (reads + member.reads, writes + member.writes))
}

#[test]
fn whole_rows_reach_raid_5_without_reads() {
    // Four data members of 64 KiB: ten rows.
    assert_eq!(member_requests(256 << 10), (0, 50));
    // One chunk per destage: old data and parity are read.
    assert_eq!(member_requests(64 << 10), (80, 80));
}

#[test]
fn dirty_data_is_read_from_memory() {
    let mut driver = over(write_back(256), disk());
    latency_ns(&mut driver, request(1, Operation::Write, 1 << 30, 16_384));
    let hit_ns = latency_ns(&mut driver, request(2, Operation::Read, (1 << 30) + 4_096, 4_096));
    assert_eq!(hit_ns, 40 * MICROSECOND + transfer_ns(4_096, 2_000_000_000));
    assert!(latency_ns(&mut driver, request(3, Operation::Read, 2 << 30, 4_096)) > MILLISECOND);
}

#[test]
fn the_read_cache_keeps_what_was_read() {
    let mut driver = over(CacheParameters { read_cache_bytes: 1 << 20, ..write_back(256) }, disk());
    let read = request(1, Operation::Read, 1 << 30, 16_384);
    assert!(latency_ns(&mut driver, read) > MILLISECOND);
    assert!(latency_ns(&mut driver, read) < MILLISECOND);
    latency_ns(&mut driver, request(2, Operation::Discard, 1 << 30, 16_384));
    assert!(latency_ns(&mut driver, read) > MILLISECOND);
}

const STRIPE_BYTES: u64 = 64 << 10;

fn read_ahead() -> CacheParameters {
    CacheParameters { read_cache_bytes: 1 << 20, read_ahead_bytes: STRIPE_BYTES, ..write_back(256) }
}

fn reads(order: Order, queue_depth: u64, request_count: u64) -> ClosedLoop {
    ClosedLoop { read_percent: 100, order, request_count, ..random_writes(queue_depth, 60) }
}

/// Number and bytes of the requests to the device below for 64 reads of 4 KiB.
fn reads_below(order: Order, queue_depth: u64) -> (u64, u64) {
    let mut driver = over(read_ahead(), disk());
    reads(order, queue_depth, 64).run(&mut driver);
    let below = driver.device().below().counters();
    (below.reads, below.read_bytes)
}

#[test]
fn a_reader_that_goes_on_brings_the_rest_of_each_stripe() {
    // The first read, the rest of its stripe, and three stripes more; with others under way they wait for it.
    assert_eq!(reads_below(Order::Sequential, 1), (5, 64 * 4_096));
    assert_eq!(reads_below(Order::Sequential, 4), (5, 64 * 4_096));
    assert_eq!(reads_below(Order::Random, 4), (64, 64 * 4_096));
}

#[test]
fn a_reader_whose_reads_cross_stripes_brings_each_stripe_once() {
    let mut driver = over(read_ahead(), disk());
    let first_bytes = 63 * 512;
    for id in 0..64 {
        latency_ns(&mut driver, request(id, Operation::Read, first_bytes + id * 4_096, 4_096));
    }
    // The first read, the rest of its stripe, and four stripes more.
    let below = driver.device().below().counters();
    assert_eq!((below.reads, first_bytes + below.read_bytes), (6, 5 * STRIPE_BYTES));
}

/// 16 KiB, one at a time, on two mirrored pairs.
fn sequential_reads_per_s(read_ahead_bytes: u64) -> f64 {
    let member = |seed| -> Box<dyn Device> { Box::new(Disk::new(disk_parameters(), SIZE_BYTES, seed)) };
    let array = Raid::new(RaidParameters::new(RaidLevel::Raid10), (0..4).map(member).collect()).unwrap();
    let parameters = CacheParameters { read_cache_bytes: 1 << 20, read_ahead_bytes, ..write_back(256) };
    let load = ClosedLoop { size_bytes: 16_384, ..reads(Order::Sequential, 1, 4_000) };
    load.run(&mut over(parameters, Box::new(array))).per_second(Operation::Read)
}

#[test]
fn one_reader_has_all_members_of_an_array_work_for_it() {
    let (without, with) = (sequential_reads_per_s(0), sequential_reads_per_s(128 << 10));
    println!(
        "16 KiB sequential reads a second on RAID 10 of 4: {without:.0} without, {with:.0} with read-ahead"
    );
    assert!(with > 1.5 * without, "{with} against {without}");
}

#[test]
fn what_is_fetched_and_cannot_be_read_is_asked_for_as_it_was() {
    let read_errors = ReadErrors { ranges: vec![(32 << 10, 4_096)], ..ReadErrors::default() };
    let parameters = FaultParameters { read_errors, ..FaultParameters::default() };
    let below = Fault::new(parameters, 1, Box::new(Null::new(SIZE_BYTES))).unwrap();
    let mut driver = over(read_ahead(), Box::new(below));
    let mut outcome = |id| {
        driver.submit(request(id, Operation::Read, id * 4_096, 4_096));
        driver.wait().unwrap().outcome
    };
    let outcomes: Vec<Outcome> = (0..16).map(&mut outcome).collect();
    let failed: Vec<usize> = (0..16).filter(|&index| outcomes[index] == Outcome::Failure).collect();
    assert_eq!(failed, [8]);
}

#[test]
fn what_is_discarded_on_its_way_is_not_kept() {
    let mut driver = over(read_ahead(), disk());
    latency_ns(&mut driver, request(1, Operation::Read, 0, 4_096));
    driver.submit(request(2, Operation::Read, 4_096, 4_096));
    driver.sleep(50 * MICROSECOND);
    driver.submit(request(3, Operation::Discard, 8_192, 4_096));
    while driver.wait().is_some() {}
    let before = driver.device().below().counters().reads;
    latency_ns(&mut driver, request(4, Operation::Read, 8_192, 4_096));
    assert_eq!(driver.device().below().counters().reads, before + 1);
}

#[test]
fn a_power_cut_takes_what_was_being_fetched() {
    let mut driver = over(read_ahead(), disk());
    latency_ns(&mut driver, request(1, Operation::Read, 0, 4_096));
    driver.submit(request(2, Operation::Read, 4_096, 4_096));
    driver.sleep(50 * MICROSECOND);
    let now = driver.now();
    assert_eq!(driver.device_mut().power_cut(now).writes, []);
    assert!(latency_ns(&mut driver, request(3, Operation::Read, 8_192, 4_096)) > 50 * MICROSECOND);
    assert_eq!(driver.device().counters().queue_depth, 0);
}

fn commit_latencies_ns(driver: &mut VirtualTime<Cache>, seconds: u64) -> Measured {
    let log = ClosedLoop { order: Order::Sequential, span_bytes: 1 << 30, ..random_writes(1, seconds) };
    log.run(driver)
}

#[test]
fn a_battery_that_fails_leaves_the_speed_of_the_disk_and_one_that_returns_ends_that() {
    let parameters = CacheParameters {
        battery_out_at_ns: Some(10 * SECOND),
        battery_back_at_ns: Some(20 * SECOND),
        ..write_back(256)
    };
    let mut driver = over(parameters, disk());
    let mut rate = |seconds| commit_latencies_ns(&mut driver, seconds).per_second(Operation::Write);
    assert!(rate(9) > 10_000.0);
    // The outage begins here, and what is dirty drains first.
    rate(6);
    let during = rate(4);
    assert!((100.0..=120.0).contains(&during), "{during}");
    rate(2);
    assert!(rate(1) > 10_000.0);
}

#[test]
fn a_flush_after_the_battery_failed_waits_for_what_is_dirty() {
    let mut driver = over(write_back(256), disk());
    random_writes(1, 1).run(&mut driver);
    let now = driver.now();
    driver.device_mut().set_battery(now, false);
    assert!(driver.device().counters().volatile_bytes > 0);
    assert!(latency_ns(&mut driver, request(1 << 40, Operation::Flush, 0, 0)) > SECOND);
    assert_eq!(driver.device().counters().volatile_bytes, 0);
}

/// Acknowledged writes that a power cut took after a burst and a FLUSH.
fn lost_after_flush(policy: CachePolicy, is_battery_good: bool) -> usize {
    let mut driver = over(CacheParameters { policy, ..write_back(256) }, disk());
    driver.device_mut().set_battery(Instant::ZERO, is_battery_good);
    ClosedLoop { request_count: 200, ..random_writes(4, 60) }.run(&mut driver);
    latency_ns(&mut driver, request(1 << 40, Operation::Flush, 0, 0));
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    cut.writes.iter().filter(|write| write.acknowledged && write.fate != Fate::Kept).count()
}

#[test]
fn a_flush_keeps_its_promise_except_where_the_battery_is_ignored() {
    for policy in [CachePolicy::WriteThrough, CachePolicy::WriteBack] {
        assert_eq!([true, false].map(|is_good| lost_after_flush(policy, is_good)), [0, 0], "{policy:?}");
    }
    assert_eq!(lost_after_flush(CachePolicy::WriteBackAlways, true), 0);
    assert!(lost_after_flush(CachePolicy::WriteBackAlways, false) > 100);
}

#[test]
fn dirty_data_is_lost_when_the_battery_fails_before_the_power_does() {
    let mut driver = over(write_back(256), disk());
    let measured = ClosedLoop { request_count: 2_000, ..random_writes(1, 60) }.run(&mut driver);
    let now = driver.now();
    driver.device_mut().set_battery(now, false);
    let cut = driver.device_mut().power_cut(now);
    let lost = cut.writes.iter().filter(|write| write.fate == Fate::Lost).count();
    assert_eq!(cut.writes.len() as u64, measured.count(Operation::Write));
    // Those that were being destaged may have reached the disk.
    assert!(lost >= cut.writes.len() - 32, "{lost}");
}

/// A drive whose own cache is on.
fn careless_disk() -> Box<dyn Device> {
    let parameters = DiskParameters { write_cache: WriteCache::Volatile, ..disk_parameters() };
    Box::new(Disk::new(parameters, SIZE_BYTES, 1))
}

fn check_durable_below(policy: CachePolicy) {
    let mut driver = over(CacheParameters { policy, ..write_back(256) }, careless_disk());
    ClosedLoop { request_count: 20, ..random_writes(1, 60) }.run(&mut driver);
    // A clean cache here implies that the drive's cache is clean too.
    while driver.device().state.dirty.volatile_sectors() > 0 {
        driver.sleep(MILLISECOND);
        let now = driver.now();
        driver.device_mut().advance(now);
    }
    let now = driver.now();
    assert_eq!(driver.device_mut().base.below[0].power_cut(now), [], "{policy:?}");
}

#[test]
fn what_left_the_memory_is_durable_below() {
    check_durable_below(CachePolicy::WriteBack);
    check_durable_below(CachePolicy::WriteThrough);
}

#[test]
fn newer_data_waits_until_older_data_of_the_same_place_is_written_back() {
    let mut driver = over(write_back(256), disk());
    latency_ns(&mut driver, request(1, Operation::Write, 0, 8_192));
    driver.sleep(21 * MILLISECOND);
    let now = driver.now();
    driver.device_mut().advance(now);
    assert_eq!(driver.device().below().counters().queue_depth, 1, "written back while idle");
    latency_ns(&mut driver, request(2, Operation::Write, 4_096, 8_192));
    let now = driver.now();
    driver.device_mut().set_battery(now, false);
    assert_eq!(driver.device().below().counters().queue_depth, 1);
}

#[test]
fn of_a_write_on_its_way_through_the_device_below_decides() {
    let fate = |seed| {
        let parameters = DiskParameters { write_cache: WriteCache::Off, ..disk_parameters() };
        let below = Box::new(Disk::new(parameters, SIZE_BYTES, seed));
        let mut driver = over(CacheParameters::new(CachePolicy::WriteThrough, 1 << 20), below);
        driver.submit(request(7, Operation::Write, 1 << 30, 16_384));
        let cut = driver.device_mut().power_cut(Instant(MILLISECOND));
        let write = cut.writes[0];
        assert_eq!(
            (cut.writes.len(), write.id.0, write.offset_bytes, write.acknowledged),
            (1, 7, 1 << 30, false)
        );
        write.fate
    };
    let fates: Vec<Fate> = (0..50).map(fate).collect();
    assert!(fates.contains(&Fate::Lost) && fates.contains(&Fate::Kept), "{fates:?}");
    assert!(fates.iter().any(|fate| matches!(fate, Fate::Torn { .. })), "{fates:?}");
}

#[test]
fn an_older_write_that_was_replaced_in_memory_is_lost_with_the_newer() {
    let mut driver = over(write_back(256), disk());
    latency_ns(&mut driver, request(1, Operation::Write, 0, 8_192));
    latency_ns(&mut driver, request(2, Operation::Write, 4_096, 8_192));
    let now = driver.now();
    driver.device_mut().set_battery(now, false);
    // The disk has no data yet: both writes are in memory or on their way.
    let cut = driver.device_mut().power_cut(now);
    let ranges: Vec<(u64, u64, u64)> =
        cut.writes.iter().map(|write| (write.id.0, write.offset_bytes, write.size_bytes)).collect();
    assert_eq!(ranges, [(1, 0, 4_096), (1, 4_096, 4_096), (2, 4_096, 8_192)]);
    assert_eq!(cut.writes[1].fate, Fate::Lost);
}

fn check_invalid(parameters: CacheParameters, expect: &str) {
    assert_eq!(parameters.validate().unwrap_err().to_string(), expect);
}

#[test]
fn a_controller_that_cannot_be_says_why() {
    check_invalid(write_back(0), "`cache` is 0 B, must be 64 KiB to 1024 TiB");
    check_invalid(
        CacheParameters { destage_queue_depth: 0, ..write_back(1) },
        "`destage_queue_depth` is 0, must be 1 to 1024",
    );
    check_invalid(
        CacheParameters { destage_bytes: 5_000, ..write_back(1) },
        "`destage_size` is 5 KB, must be a multiple of 512 B",
    );
    check_invalid(
        CacheParameters { battery_back_at_ns: Some(5), ..write_back(1) },
        "`battery_back_at` is 5 ns, must be after `battery_out_at`",
    );
    check_invalid(
        CacheParameters { read_ahead_bytes: 8_192, ..write_back(1) },
        "`read_ahead` is 8 KiB, must be at most `read_cache`, 0 B, where it is kept",
    );
    check_invalid(
        CacheParameters { read_ahead_bytes: 5_000, ..write_back(1) },
        "`read_ahead` is 5 KB, must be a multiple of 4 KiB",
    );
}

#[test]
fn a_battery_that_fails_at_a_moment_leaves_the_speed_of_the_disk_until_it_is_replaced() {
    let mut driver = over(write_back(256), disk());
    let fast = commits_per_s(&mut driver);
    let turn = |driver: &mut VirtualTime<Cache>, is_good: bool| {
        let now = driver.now();
        driver.device_mut().change(now, Change::Battery { is_good })
    };
    assert_eq!(turn(&mut driver, false), Ok(true));
    let slow = commits_per_s(&mut driver);
    assert_eq!(turn(&mut driver, true), Ok(true));
    let again = commits_per_s(&mut driver);
    assert!(fast > 30.0 * slow, "{fast} and {slow}");
    assert!((again / fast - 1.0).abs() < 0.01, "{again} and {fast}");
    assert_eq!(turn(&mut driver, true).unwrap_err().to_string(), "`battery` is good already");
    assert_eq!(driver.device_mut().change(Instant::FAR_FUTURE, Change::Link { is_up: false }), Ok(false));
}
