//! What a disk does, as claims.

use super::Disk;
use crate::closed_loop::{ClosedLoop, Driver, Measured, Order};
use crate::device::{Device, Fate};
use crate::profile::{DiskParameters, Stroke, WriteCache};
use crate::request::{Operation, Request, RequestId};
use crate::time::{Instant, MICROSECOND, MILLISECOND};
use crate::virtual_time::VirtualTime;

/// A 7200 rpm SATA disk.
pub(crate) fn parameters() -> DiskParameters {
    DiskParameters {
        capacity_bytes: 1_000_000_000_000,
        rotation_per_minute: 7_200,
        seek_track_to_track_ns: MILLISECOND,
        seek_minimum_ns: MILLISECOND,
        seek_average_ns: 8_500 * MICROSECOND,
        write_settle_ns: MILLISECOND,
        outer_bytes_per_s: 150_000_000,
        inner_bytes_per_s: 75_000_000,
        zone_count: 16,
        tracks_per_cylinder: 4,
        command_overhead_ns: 100 * MICROSECOND,
        interface_bytes_per_s: 300_000_000,
        queue_depth: 32,
        age_limit_ns: 500 * MILLISECOND,
        physical_sector_bytes: 512,
        cache_bytes: 32 << 20,
        read_segments: 16,
        write_cache: WriteCache::Volatile,
        dirty_runs: 512,
        destage_candidates: 32,
        destage_watermark_percent: 50,
        destage_idle_ns: 20 * MILLISECOND,
        stroke: Stroke::Full,
    }
}

const SIZE_BYTES: u64 = 20 << 30;

fn write_through() -> DiskParameters {
    DiskParameters { write_cache: WriteCache::Off, ..parameters() }
}

fn drive(parameters: DiskParameters) -> VirtualTime<Disk> {
    parameters.validate().unwrap();
    VirtualTime::new(Disk::new(parameters, SIZE_BYTES, 1))
}

fn run(parameters: DiskParameters, workload: ClosedLoop) -> Measured {
    let span_bytes = if workload.order == Order::Random { SIZE_BYTES } else { workload.span_bytes };
    ClosedLoop { span_bytes, ..workload }.run(&mut drive(parameters))
}

fn random_read(queue_depth: u64) -> ClosedLoop {
    ClosedLoop { queue_depth, request_count: 20_000, ..ClosedLoop::default() }
}

fn random_write(request_count: u64) -> ClosedLoop {
    ClosedLoop { read_percent: 0, request_count, ..ClosedLoop::default() }
}

fn request(id: u64, operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(id), operation, offset_bytes, size_bytes, force_unit_access: false }
}

/// Commits per second of one client that writes a log, against one per rotation.
fn check_commits(parameters: DiskParameters, flush_after_write: bool, low: f64, high: f64) {
    let log = ClosedLoop { order: Order::Sequential, flush_after_write, ..random_write(2_000) };
    let commits_per_s = run(parameters, log).per_second(Operation::Write);
    assert!((low..=high).contains(&commits_per_s), "{commits_per_s}");
}

#[test]
fn a_log_with_the_cache_off_commits_once_per_rotation() {
    check_commits(write_through(), false, 115.0, 120.0);
}

#[test]
fn a_log_with_a_flush_per_write_commits_at_most_once_per_rotation() {
    check_commits(parameters(), true, 100.0, 120.0);
}

#[test]
fn a_slower_spindle_commits_less() {
    let slower = DiskParameters { rotation_per_minute: 5_400, ..write_through() };
    check_commits(slower, false, 85.0, 90.0);
}

#[test]
fn a_protected_cache_commits_at_electronic_speed() {
    let protected = DiskParameters { write_cache: WriteCache::Protected, ..parameters() };
    check_commits(protected, true, 2_000.0, 10_000.0);
}

fn check_sequential_rate(read_percent: u64, offset_bytes: u64, rate: f64) {
    let mut driver = drive(parameters());
    let count = 1_000;
    // Positions the head first; measuring starts with the stream.
    let mut submitted = 0;
    let mut last = None;
    let mut first = None;
    for _ in 0..4 {
        driver.submit(request(submitted, operation(read_percent), offset_bytes + (submitted << 20), 1 << 20));
        submitted += 1;
    }
    while let Some(completion) = driver.wait() {
        if submitted > 150 && first.is_none() {
            first = Some((submitted, completion.at));
        }
        if submitted < count {
            last = Some((submitted, completion.at));
            driver.submit(request(
                submitted,
                operation(read_percent),
                offset_bytes + (submitted << 20),
                1 << 20,
            ));
            submitted += 1;
        }
    }
    let ((from, begin), (to, end)) = (first.unwrap(), last.unwrap());
    let measured = ((to - from) << 20) as f64 / (end - begin) as f64 * 1e9;
    assert!((measured / rate - 1.0).abs() < 0.03, "{measured} against {rate}");
}

fn operation(read_percent: u64) -> Operation {
    if read_percent == 100 { Operation::Read } else { Operation::Write }
}

#[test]
fn a_queued_sequential_read_runs_at_the_rate_of_the_outer_zone() {
    check_sequential_rate(100, 0, 150e6);
}

#[test]
fn a_queued_sequential_read_runs_at_the_rate_of_the_inner_zone() {
    check_sequential_rate(100, SIZE_BYTES - (1_000 << 20), 75e6);
}

#[test]
fn a_sequential_write_runs_at_the_rate_of_the_zone_once_the_cache_is_full() {
    check_sequential_rate(0, 0, 150e6);
}

#[test]
fn a_random_read_costs_overhead_a_mean_seek_and_half_a_rotation() {
    let mean_ns = run(parameters(), random_read(1)).mean_ns(Operation::Read);
    let expected_ns = 100_000.0 + 8_500_000.0 + 60e9 / 7_200.0 / 2.0;
    assert!((mean_ns / expected_ns - 1.0).abs() < 0.02, "{mean_ns} against {expected_ns}");
}

#[test]
fn a_short_stroke_seeks_less() {
    let short = DiskParameters { stroke: Stroke::Short, ..parameters() };
    let short_ns = run(short, random_read(1)).mean_ns(Operation::Read);
    let full_ns = run(parameters(), random_read(1)).mean_ns(Operation::Read);
    assert!(short_ns < 0.7 * full_ns, "{short_ns} against {full_ns}");
}

#[test]
fn choosing_among_queued_reads_beats_one_at_a_time() {
    let rate = |queue_depth| run(parameters(), random_read(queue_depth)).per_second(Operation::Read);
    let (one, many) = (rate(1), rate(32));
    assert!(many > 1.5 * one, "{many} against {one}");
}

#[test]
fn a_deeper_queue_than_the_drives_own_gains_nothing() {
    let rate = |queue_depth| run(parameters(), random_read(queue_depth)).per_second(Operation::Read);
    let (own, deeper) = (rate(32), rate(128));
    assert!((deeper / own - 1.0).abs() < 0.05, "{deeper} against {own}");
}

/// The longest read among a crowd that always offers a nearer one.
fn longest_read_ns(age_limit_ns: u64) -> u64 {
    let disk = DiskParameters { age_limit_ns, ..parameters() };
    run(disk, random_read(32)).latencies_ns(Operation::Read).max().unwrap()
}

#[test]
fn the_age_limit_bounds_the_wait() {
    let bounded_ns = longest_read_ns(500 * MILLISECOND);
    let unbounded_ns = longest_read_ns(1_000_000 * MILLISECOND);
    // Those that reach the limit together are served one after another, oldest first.
    assert!(bounded_ns < 900 * MILLISECOND, "{bounded_ns}");
    assert!(unbounded_ns > bounded_ns, "{unbounded_ns} against {bounded_ns}");
}

#[test]
fn a_cached_write_needs_no_arm() {
    let longest_ns = run(parameters(), random_write(400)).latencies_ns(Operation::Write).max().unwrap();
    assert!(longest_ns < MILLISECOND, "{longest_ns}");
}

#[test]
fn a_full_cache_slows_writes_to_the_arm() {
    let measured = run(parameters(), ClosedLoop { queue_depth: 32, ..random_write(30_000) });
    let tail = &measured.samples[20_000..];
    let mean_ns = tail.iter().map(|sample| sample.latency_ns).sum::<u64>() / tail.len() as u64;
    assert!(mean_ns / 32 > MILLISECOND, "{mean_ns}");
}

#[test]
fn flush_drains_the_volatile_cache() {
    let mut driver = drive(parameters());
    random_write(100).run(&mut driver);
    assert!(driver.device().counters().volatile_bytes > 0);
    driver.submit(request(1_000, Operation::Flush, 0, 0));
    let flushed = driver.wait().unwrap();
    assert_eq!(driver.device().counters().volatile_bytes, 0);
    assert!(flushed.at.0 > 100 * MILLISECOND, "a hundred scattered writes took {}", flushed.at.0);
}

#[test]
fn an_idle_drive_writes_back_by_itself() {
    let mut driver = drive(parameters());
    random_write(100).run(&mut driver);
    driver.sleep(10_000 * MILLISECOND);
    assert_eq!(driver.wait(), None);
    assert_eq!(driver.device().counters().volatile_bytes, 0);
}

#[test]
fn commands_behind_a_flush_wait_for_it() {
    let mut driver = drive(parameters());
    random_write(20).run(&mut driver);
    driver.submit(request(100, Operation::Flush, 0, 0));
    driver.submit(request(101, Operation::Read, 0, 4_096));
    assert_eq!([driver.wait(), driver.wait()].map(|done| done.unwrap().id.0), [100, 101]);
}

#[test]
fn a_flush_waits_for_the_commands_before_it() {
    let mut driver = drive(parameters());
    driver.submit(request(1, Operation::Read, 1 << 30, 4_096));
    driver.submit(request(2, Operation::Flush, 0, 0));
    assert_eq!([driver.wait(), driver.wait()].map(|done| done.unwrap().id.0), [1, 2]);
}

#[test]
fn a_read_of_cached_data_needs_no_arm() {
    let mut driver = drive(parameters());
    driver.submit(request(1, Operation::Write, 1 << 30, 16_384));
    let written = driver.wait().unwrap();
    driver.submit(request(2, Operation::Read, (1 << 30) + 4_096, 4_096));
    assert!(driver.wait().unwrap().at - written.at < MILLISECOND);
}

#[test]
fn a_forced_write_waits_for_the_platter() {
    let mut driver = drive(parameters());
    driver.submit(Request { force_unit_access: true, ..request(1, Operation::Write, 1 << 30, 4_096) });
    assert!(driver.wait().unwrap().at.0 > MILLISECOND);
    assert_eq!(driver.device_mut().power_cut(Instant(u64::MAX / 2)).writes, []);
}

/// Ids of lost or torn writes after `count` scattered writes, an optional flush, and a cut.
fn check_cut(parameters: DiskParameters, flush: bool, expect_damage: bool) {
    let mut driver = drive(parameters);
    random_write(100).run(&mut driver);
    if flush {
        driver.submit(request(1_000, Operation::Flush, 0, 0));
        driver.wait();
    }
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    let damaged = cut.writes.iter().filter(|write| write.acknowledged && write.fate != Fate::Kept).count();
    assert_eq!(damaged > 0, expect_damage, "{cut:?}");
}

#[test]
fn what_was_not_flushed_may_be_lost() {
    check_cut(parameters(), false, true);
}

#[test]
fn what_was_flushed_survives_a_power_cut() {
    check_cut(parameters(), true, false);
}

#[test]
fn write_through_loses_nothing_acknowledged() {
    check_cut(write_through(), false, false);
}

#[test]
fn a_protected_cache_loses_nothing_acknowledged() {
    check_cut(DiskParameters { write_cache: WriteCache::Protected, ..parameters() }, false, false);
}

/// Not a check: measured drives beside the model, for the reader of `cargo test -- --nocapture`. The published ones are of an
/// ST2000DM006 (ublk-disksim README), whose datasheet promises less than it measures.
#[test]
fn figures_beside_a_measured_drive() {
    let one = run(parameters(), random_read(1));
    let many = run(parameters(), random_read(32));
    println!("4 KiB random read QD1:  {:.2} ms  (ST2000DM006 17.2-17.8)", one.mean_ns(Operation::Read) / 1e6);
    println!("4 KiB random read QD32: {:.0} IOPS (ST2000DM006 94)", many.per_second(Operation::Read));
    for count in [10, 100] {
        let mut driver = drive(parameters());
        random_write(count).run(&mut driver);
        let begin = driver.now();
        driver.submit(request(1_000, Operation::Flush, 0, 0));
        let flush_ms = (driver.wait().unwrap().at - begin) as f64 / 1e6;
        println!(
            "FLUSH after {count} scattered writes: {flush_ms:.0} ms (ST2000DM006 {:.0})",
            28.0 + 9.4 * count as f64
        );
        assert!(flush_ms > 0.0);
    }
}
