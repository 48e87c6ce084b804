//! The performance of an array of disks compared with one disk.

use super::*;

const DISK_BYTES: u64 = 20 << 30;

fn disk(write_cache: WriteCache, seed: u64) -> Box<dyn Device> {
    let parameters = DiskParameters { write_cache, ..disk_parameters() };
    Box::new(Disk::new(parameters, DISK_BYTES, seed))
}

fn array_of_disks(level: RaidLevel, count: u64) -> VirtualTime<Raid> {
    let members = (1..=count).map(|seed| disk(WriteCache::Off, seed)).collect();
    VirtualTime::new(Raid::new(whole(level), members).unwrap())
}

/// Requests per second: of one disk at a queue depth, and of an array at another.
fn rates(level: RaidLevel, count: u64, read_percent: u64, depth_one: u64, depth_array: u64) -> (f64, f64) {
    let load = |queue_depth, span_bytes| ClosedLoop {
        queue_depth,
        span_bytes,
        read_percent,
        request_count: 20_000,
        order: Order::Random,
        ..ClosedLoop::default()
    };
    let mut one = VirtualTime::new(disk(WriteCache::Off, 1));
    let mut array = array_of_disks(level, count);
    let operation = if read_percent == 100 { Operation::Read } else { Operation::Write };
    let size_bytes = array.device().size_bytes();
    (
        load(depth_one, DISK_BYTES).run(&mut one).per_second(operation),
        load(depth_array, size_bytes).run(&mut array).per_second(operation),
    )
}

fn check_scale(level: RaidLevel, count: u64, read_percent: u64, depths: (u64, u64), (low, high): (f64, f64)) {
    let (one, array) = rates(level, count, read_percent, depths.0, depths.1);
    let scale = array / one;
    println!("{level:?} of {count}, {read_percent} % reads: {array:.0} a second, {scale:.2} times one disk");
    assert!((low..high).contains(&scale), "{level:?} of {count}: {array} against {one}, {scale} times");
}

#[test]
fn striping_over_four_disks_multiplies_random_reads_by_about_four() {
    // Each disk has a quarter of the queue on average, the same as the single disk. An uneven share costs
    // some of it.
    check_scale(RaidLevel::Raid0, 4, 100, (8, 32), (3.4, 4.1));
}

#[test]
fn striping_one_request_at_a_time_gains_nothing() {
    check_scale(RaidLevel::Raid0, 4, 100, (1, 1), (0.97, 1.03));
}

#[test]
fn mirroring_doubles_random_reads() {
    // Balancing keeps both queues equal; choosing the nearer disk gains a little.
    check_scale(RaidLevel::Raid1, 2, 100, (8, 16), (1.9, 2.3));
}

#[test]
fn mirroring_does_not_speed_up_writes() {
    check_scale(RaidLevel::Raid1, 2, 0, (8, 8), (0.9, 1.001));
}

#[test]
fn a_mirrored_write_waits_for_the_later_of_two_rotations() {
    // Of two platters out of phase, the later one needs two thirds of a rotation on average; a single one
    // needs half. A seek comes on top.
    check_scale(RaidLevel::Raid1, 2, 0, (1, 1), (0.8, 0.98));
}

#[test]
fn random_writes_to_raid_5_cost_four_requests_each() {
    // Four members share four requests per write. Two of these requests find the arm near. The result is
    // between one and two disks' rate.
    let mut array = array_of_disks(RaidLevel::Raid5, 5);
    let load = ClosedLoop {
        read_percent: 0,
        queue_depth: 16,
        span_bytes: array.device().size_bytes(),
        request_count: 2_000,
        ..ClosedLoop::default()
    };
    load.run(&mut array);
    let counters = array.device().member_counters();
    let (reads, writes) =
        counters.iter().fold((0, 0), |sum, member| (sum.0 + member.reads, sum.1 + member.writes));
    assert_eq!((reads, writes), (4_000, 4_000));
}

/// Acknowledged writes to members with volatile caches that a power cut took, and rows of the write hole.
fn lost_from_volatile_members(level: RaidLevel, flush: bool) -> (usize, u64) {
    let members = (1..=4).map(|seed| disk(WriteCache::Volatile, seed)).collect();
    let mut driver = VirtualTime::new(Raid::new(whole(level), members).unwrap());
    let load = ClosedLoop { read_percent: 0, request_count: 200, ..ClosedLoop::default() };
    load.run(&mut driver);
    if flush {
        driver.submit(Request {
            id: RequestId(1_000),
            operation: Operation::Flush,
            offset_bytes: 0,
            size_bytes: 0,
            force_unit_access: false,
        });
        driver.wait();
    }
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    let lost = cut.writes.iter().filter(|write| write.acknowledged && write.fate != Fate::Kept).count();
    (lost, driver.device().write_hole_rows())
}

#[test]
fn what_members_had_not_flushed_may_be_lost_and_what_they_had_is_not() {
    for level in [RaidLevel::Raid0, RaidLevel::Raid1, RaidLevel::Raid5, RaidLevel::Raid6, RaidLevel::Raid10] {
        let (lost, rows) = lost_from_volatile_members(level, false);
        assert!(lost > 0, "{level:?}: {lost}");
        assert_eq!(rows > 0, level.parity_count() > 0, "{level:?}: {rows}");
        assert_eq!(lost_from_volatile_members(level, true), (0, 0), "{level:?}");
    }
}

/// Share of pages that become more than one request, in thousandths.
fn crossing_permille(start_bytes: u64) -> usize {
    let mut array = Array::new(whole(RaidLevel::Raid0), 4);
    let page_bytes = 16_384;
    let pages = (array.driver.device().size_bytes() - 4 * CHUNK) / page_bytes;
    let crossing = (0..pages)
        .filter(|page| array.requests(Operation::Read, start_bytes + page * page_bytes, page_bytes).len() > 1)
        .count();
    crossing * 1_000 / pages as usize
}

#[test]
fn one_page_in_four_crosses_a_chunk_when_the_partition_starts_at_sector_63() {
    assert_eq!(crossing_permille(63 * 512), 250);
    assert_eq!(crossing_permille(1 << 16), 0);
}

fn check_invalid(parameters: RaidParameters, member_count: usize, expect: &str) {
    assert_eq!(parameters.validate(member_count).unwrap_err().to_string(), expect);
}

#[test]
fn an_array_that_cannot_be_says_why() {
    check_invalid(whole(RaidLevel::Raid5), 2, "`on` has 2 members, must have 3 to 64");
    check_invalid(
        RaidParameters { chunk_bytes: 48 << 10, ..whole(RaidLevel::Raid0) },
        2,
        "`chunk` is 48 KiB, must be a power of two, 4 KiB to 1 GiB",
    );
    check_invalid(
        missing(RaidLevel::Raid5, &[0, 1]),
        4,
        "`missing_members` leave [0, 1] without valid data, which the array cannot do without",
    );
    check_invalid(missing(RaidLevel::Raid6, &[9]), 4, "`missing_members` name 9, must be below 4");
    check_invalid(
        RaidParameters { missing_members: vec![1], ..rebuilding(RaidLevel::Raid6) },
        4,
        "`missing_members` name 1, which is both missing and rebuilding",
    );
    check_invalid(
        RaidParameters { rebuild_least_bytes_per_s: 1 << 40, ..whole(RaidLevel::Raid1) },
        2,
        "`rebuild_least` is 1 TiB/s, must be at most `rebuild_most`, 200000 KiB/s",
    );
}
