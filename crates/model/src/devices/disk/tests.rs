//! What a disk does, as claims.

use super::Disk;
use crate::closed_loop::{ClosedLoop, Driver, Measured, Order};
use crate::device::{Device, Fate};
use crate::devices::{DeviceParameters, DiskParameters, ReadRetries, Stroke, WriteCache};
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
        read_retries: None,
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
    // Requests that reach the age limit together are served one after another, oldest first.
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

/// Throughput in MB/s of a client that reads 64 KiB pieces in order, with a pause after each.
fn sequential_read_rate(parameters: DiskParameters, think_ns: u64) -> f64 {
    const PIECE_BYTES: u64 = 64 << 10;
    let mut driver = drive(parameters);
    let count = 2_000;
    for number in 0..count {
        driver.submit(request(number, Operation::Read, number * PIECE_BYTES, PIECE_BYTES));
        driver.wait().unwrap();
        driver.sleep(think_ns);
    }
    (count * PIECE_BYTES) as f64 * 1e3 / driver.now().0 as f64
}

fn check_sequential_read(think_ns: u64, megabytes_per_s: f64) {
    let rate = sequential_read_rate(parameters(), think_ns);
    assert!((rate / megabytes_per_s - 1.0).abs() < 0.03, "{rate} against {megabytes_per_s}");
}

#[test]
fn one_sequential_reader_gets_the_rate_of_the_medium() {
    check_sequential_read(0, 150.0);
}

#[test]
fn a_reader_may_think_while_the_head_reads_on() {
    // 64 KiB pass in 437 us, of which command and interface take 318.
    check_sequential_read(100 * MICROSECOND, 150.0);
}

#[test]
fn a_slow_reader_finds_everything_read() {
    let piece_ns = 2_000_000.0 + 100_000.0 + 65_536.0 / 0.3;
    check_sequential_read(2 * MILLISECOND, 65_536e3 / piece_ns);
}

#[test]
fn without_read_ahead_one_reader_loses_a_rotation_each_time() {
    let rate = sequential_read_rate(DiskParameters { read_segments: 0, ..parameters() }, 0);
    assert!(rate < 15.0, "{rate}");
}

#[test]
fn several_streams_keep_a_segment_each() {
    let mut driver = drive(parameters());
    let mut hits = 0;
    for round in 0..100 {
        for stream in 0..8 {
            driver.submit(request(
                round * 8 + stream,
                Operation::Read,
                (stream << 30) + round * 4_096,
                4_096,
            ));
            let begin = driver.now();
            hits += u64::from(driver.wait().unwrap().at - begin < MILLISECOND);
            // The head reads ahead before the next stream moves it away.
            driver.sleep(10 * MILLISECOND);
        }
    }
    assert!(hits > 750, "{hits}");
}

/// Latency of a read after another one and a pause.
fn second_read_ns(first_bytes: u64, pause_ns: u64, second_bytes: u64) -> u64 {
    let mut driver = drive(parameters());
    driver.submit(request(1, Operation::Read, first_bytes, 4_096));
    driver.wait();
    driver.sleep(pause_ns);
    let begin = driver.now();
    driver.submit(request(2, Operation::Read, second_bytes, 4_096));
    driver.wait().unwrap().at - begin
}

#[test]
fn a_hit_costs_the_command_and_the_interface() {
    let hit_ns = 100 * MICROSECOND + 4_096 * 1_000 / 300;
    for (pause_ns, second_bytes) in [(0, 1 << 30), (20 * MILLISECOND, (1 << 30) + 65_536)] {
        assert_eq!(second_read_ns(1 << 30, pause_ns, second_bytes), hit_ns);
    }
}

#[test]
fn the_head_reads_no_further_than_a_segment() {
    // 32 MiB in 16 segments.
    let within_ns = second_read_ns(1 << 30, 1_000 * MILLISECOND, (1 << 30) + (2 << 20) - 4_096);
    let beyond_ns = second_read_ns(1 << 30, 1_000 * MILLISECOND, (1 << 30) + (2 << 20) + 4_096);
    assert!(within_ns < MILLISECOND && beyond_ns > MILLISECOND, "{within_ns} {beyond_ns}");
}

#[test]
fn reading_on_delays_nobody() {
    let with = run(parameters(), random_read(1));
    let without = run(DiskParameters { read_segments: 0, ..parameters() }, random_read(1));
    let ratio = with.mean_ns(Operation::Read) / without.mean_ns(Operation::Read);
    assert!((0.99..1.01).contains(&ratio), "{ratio}");
}

#[test]
fn a_write_ends_the_life_of_what_was_read() {
    let mut driver = drive(write_through());
    let mut take_ns = |id, operation| {
        let begin = driver.now();
        driver.submit(request(id, operation, 1 << 30, 4_096));
        driver.wait().unwrap().at - begin
    };
    take_ns(1, Operation::Read);
    assert!(take_ns(2, Operation::Read) < MILLISECOND);
    take_ns(3, Operation::Write);
    assert!(take_ns(4, Operation::Read) > MILLISECOND);
    assert!(take_ns(5, Operation::Read) < MILLISECOND);
}

/// Extra rotations of a single forced write, compared with an aligned one at the same place.
fn check_extra_rotations(physical_sector_bytes: u64, offset_bytes: u64, size_bytes: u64, expect: u64) {
    let write_ns = |physical_sector_bytes| {
        let mut driver = drive(DiskParameters { physical_sector_bytes, ..write_through() });
        driver.submit(request(1, Operation::Write, offset_bytes, size_bytes));
        driver.wait().unwrap().at.0
    };
    let rotation_ns = 60_000_000_000 / 7_200;
    assert_eq!(write_ns(physical_sector_bytes) - write_ns(512), expect * rotation_ns);
}

#[test]
fn an_aligned_write_on_a_512e_disk_costs_nothing_more() {
    check_extra_rotations(4_096, 1 << 30, 4_096, 0);
}

#[test]
fn a_part_of_a_physical_sector_costs_a_rotation() {
    check_extra_rotations(4_096, 1 << 30, 512, 1);
}

#[test]
fn a_misaligned_write_costs_a_rotation() {
    check_extra_rotations(4_096, (1 << 30) + 512, 4_096, 1);
}

#[test]
fn a_misaligned_write_of_several_tracks_costs_as_many_rotations() {
    check_extra_rotations(4_096, 512, 3 << 20, 3);
}

#[test]
fn a_disk_with_512_byte_sectors_reads_nothing_first() {
    check_extra_rotations(512, (1 << 30) + 512, 512, 0);
}

#[test]
fn joined_in_the_cache_small_writes_need_no_reading() {
    let elapsed_ns = |physical_sector_bytes| {
        let mut driver = drive(DiskParameters { physical_sector_bytes, ..parameters() });
        for number in 0..8 {
            driver.submit(request(number, Operation::Write, (1 << 30) + number * 512, 512));
            driver.wait();
        }
        driver.submit(request(8, Operation::Flush, 0, 0));
        driver.wait().unwrap().at.0
    };
    assert_eq!(elapsed_ns(4_096), elapsed_ns(512));
}

/// Mean latency of a FLUSH after this many scattered writes, in milliseconds.
fn flush_ms(parameters: &DiskParameters, writes: u64) -> f64 {
    let mut driver = drive(parameters.clone());
    let rounds = 40;
    let mut total_ns = 0;
    for seed in 0..rounds {
        ClosedLoop { span_bytes: SIZE_BYTES, seed, ..random_write(writes) }.run(&mut driver);
        let begin = driver.now();
        driver.submit(request(1_000, Operation::Flush, 0, 0));
        total_ns += driver.wait().unwrap().at - begin;
    }
    total_ns as f64 / rounds as f64 / 1e6
}

#[test]
fn a_flush_costs_the_same_for_each_write_beyond_those_in_view() {
    let [few, more, most] = [32, 128, 224].map(|writes| flush_ms(&parameters(), writes));
    let (first, second) = ((more - few) / 96.0, (most - more) / 96.0);
    assert!((second / first - 1.0).abs() < 0.1, "{first} and {second} ms for each write");
}

#[test]
fn fewer_candidates_make_a_flush_dearer() {
    let flush = |destage_candidates| flush_ms(&DiskParameters { destage_candidates, ..parameters() }, 64);
    let (in_order, few, many) = (flush(1), flush(4), flush(64));
    assert!(in_order > 1.2 * few && few > 1.3 * many, "{in_order} {few} {many}");
    // One after the other, each costs a write's mean seek and half a rotation.
    let expected = 64.0 * (9.5 + 30_000.0 / 7_200.0);
    assert!((in_order / expected - 1.0).abs() < 0.05, "{in_order} against {expected}");
}

#[test]
fn slow_short_seeks_take_the_gain_of_sorting() {
    let gain = |seek_minimum_ns| {
        let disk = DiskParameters { seek_minimum_ns, age_limit_ns: 5_000 * MILLISECOND, ..parameters() };
        let rate = |depth| run(disk.clone(), random_read(depth)).per_second(Operation::Read);
        rate(32) / rate(1)
    };
    let (quick, slow) = (gain(MILLISECOND), gain(6 * MILLISECOND));
    assert!(quick > 2.2 && slow < 1.8, "{quick} {slow}");
}

#[test]
fn the_cache_holds_so_many_scattered_writes() {
    let disk = DiskParameters { dirty_runs: 100, ..parameters() };
    let measured = run(disk, random_write(1_000));
    let quick = measured.samples.iter().filter(|sample| sample.latency_ns < MILLISECOND).count();
    assert!((95..150).contains(&quick), "{quick}");
}

#[test]
fn a_sequential_writer_needs_one_run() {
    let disk = DiskParameters { dirty_runs: 4, ..parameters() };
    let log = ClosedLoop { order: Order::Sequential, span_bytes: 8 << 20, ..random_write(2_000) };
    let longest_ns = run(disk, log).latencies_ns(Operation::Write).max().unwrap();
    assert!(longest_ns < MILLISECOND, "{longest_ns}");
}

#[test]
fn reads_of_one_track_wait_half_a_rotation() {
    let disk = DiskParameters { read_segments: 0, ..parameters() };
    let track =
        ClosedLoop { size_bytes: 512, span_bytes: 1 << 20, request_count: 5_000, ..ClosedLoop::default() };
    let mean_ns = track.run(&mut drive(disk)).mean_ns(Operation::Read);
    let expected_ns = 100_000.0 + 30e9 / 7_200.0;
    assert!((mean_ns / expected_ns - 1.0).abs() < 0.02, "{mean_ns} against {expected_ns}");
}

#[test]
fn no_read_takes_longer_than_a_full_stroke_and_a_rotation() {
    let mut latencies_ns: Vec<u64> =
        run(parameters(), random_read(1)).latencies_ns(Operation::Read).collect();
    latencies_ns.sort_unstable();
    let full_stroke_ns = 1_000_000.0 + 15.0 / 8.0 * 7_500_000.0;
    let longest_ns = 100_000.0 + full_stroke_ns + 60e9 / 7_200.0 + 30_000.0;
    let (p99_ns, max_ns) = (latencies_ns[19_800] as f64, latencies_ns[19_999] as f64);
    assert!(max_ns <= longest_ns && p99_ns > 0.8 * longest_ns, "{p99_ns} {max_ns} {longest_ns}");
}

/// Extra time by retries of each of the same random commands, in nanoseconds.
fn retry_delays_ns(workload: &ClosedLoop) -> Vec<u64> {
    let retries = ReadRetries { per_million: 100_000, mean_rotations: 4 };
    let retrying = DiskParameters { read_retries: Some(retries), ..write_through() };
    let (with, without) = (run(retrying, workload.clone()), run(write_through(), workload.clone()));
    let pairs = with.samples.iter().zip(&without.samples);
    pairs.map(|(with, without)| with.latency_ns - without.latency_ns).collect()
}

#[test]
fn a_retry_takes_whole_rotations() {
    let delays_ns = retry_delays_ns(&random_read(1));
    assert!(delays_ns.iter().all(|delay_ns| delay_ns % (60_000_000_000 / 7_200) == 0));
    let retried = delays_ns.iter().filter(|&&delay_ns| delay_ns > 0).count();
    assert!((1_800..2_200).contains(&retried), "{retried} of 20,000");
}

#[test]
fn writes_need_no_retries() {
    assert!(retry_delays_ns(&random_write(2_000)).iter().all(|&delay_ns| delay_ns == 0));
}

#[test]
fn after_a_power_cut_the_drive_is_as_new() {
    let figures = |cut: bool| {
        let mut driver = drive(parameters());
        if cut {
            random_write(300).run(&mut driver);
            driver.submit(request(1, Operation::Read, 10 << 30, 1 << 20));
            driver.wait();
            let now = driver.now();
            driver.device_mut().power_cut(now);
            assert_eq!(driver.device().poll_at(), None);
        }
        // To the same angle of the platter.
        let rotation_ns = 60_000_000_000 / 7_200;
        driver.sleep(rotation_ns - driver.now().0 % rotation_ns);
        let begin = driver.now();
        driver.submit(request(2, Operation::Read, 10 << 30, 4_096));
        let read_ns = driver.wait().unwrap().at - begin;
        let writes = random_write(600).run(&mut driver);
        (read_ns, writes.elapsed_ns)
    };
    assert_eq!(figures(true), figures(false));
}

#[test]
fn a_discard_of_all_that_is_dirty_makes_room_in_the_cache() {
    let few_runs = DiskParameters { dirty_runs: 4, destage_watermark_percent: 100, ..parameters() };
    let mut driver = drive(few_runs);
    for id in 0..4 {
        driver.submit(request(id, Operation::Write, id << 20, 4_096));
    }
    driver.submit(request(4, Operation::Discard, 0, 4 << 20));
    driver.submit(request(5, Operation::Write, 0, 4_096));
    // Before the drive is idle enough to destage.
    let last = std::iter::from_fn(|| driver.wait()).last().unwrap();
    assert!(last.id == RequestId(5) && last.at.0 < MILLISECOND, "{last:?}");
}
