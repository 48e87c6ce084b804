//! What a flash drive does, as claims.

use super::Flash;
use crate::closed_loop::{ClosedLoop, Driver, Measured};
use crate::device::{Device, Fate};
use crate::devices::{DeviceParameters, FlashParameters, VictimChoice, WriteCache};
use crate::request::{Operation, Request, RequestId, SECTOR_BYTES};
use crate::time::{Instant, MICROSECOND};
use crate::virtual_time::VirtualTime;

const SIZE_BYTES: u64 = 1 << 30;
const PAGE_BYTES: u64 = 4_096;

/// Four channels with two dies each; a read costs 5 + 50 + 40 + 16 us, a program 40 + 500 us.
fn parameters() -> FlashParameters {
    FlashParameters {
        capacity_bytes: SIZE_BYTES,
        raw_bytes: SIZE_BYTES / 4 * 5,
        channel_count: 4,
        dies_per_channel: 2,
        mapping_unit_bytes: PAGE_BYTES,
        page_bytes: PAGE_BYTES,
        pages_per_program: 1,
        block_bytes: 64 * PAGE_BYTES,
        page_read_ns: 50 * MICROSECOND,
        page_program_ns: 500 * MICROSECOND,
        block_erase_ns: 2_000 * MICROSECOND,
        suspend_limit: 0,
        suspend_ns: 20 * MICROSECOND,
        channel_bytes_per_s: 102_400_000,
        link_bytes_per_s: 256_000_000,
        read_overhead_ns: 5 * MICROSECOND,
        write_overhead_ns: 5 * MICROSECOND,
        command_interval_ns: 0,
        write_cache: WriteCache::Volatile,
        buffer_bytes: 256 * PAGE_BYTES,
        flush_commit_ns: 1_000 * MICROSECOND,
        flush_blocks_queue: true,
        gc_victim: VictimChoice::Greedy,
        gc_low_percent: 0,
        gc_high_percent: 25,
        slc: None,
    }
}

fn drive(parameters: FlashParameters) -> VirtualTime<Flash> {
    parameters.validate().unwrap();
    VirtualTime::new(Flash::new(parameters, SIZE_BYTES, 1))
}

fn random(read_percent: u64, queue_depth: u64) -> ClosedLoop {
    ClosedLoop { read_percent, queue_depth, request_count: 20_000, ..ClosedLoop::default() }
}

fn run(parameters: FlashParameters, workload: ClosedLoop) -> Measured {
    workload.run(&mut drive(parameters))
}

fn request(id: u64, operation: Operation, page: u64, page_count: u64) -> Request {
    let (offset_bytes, size_bytes) = (page * PAGE_BYTES, page_count * PAGE_BYTES);
    Request { id: RequestId(id), operation, offset_bytes, size_bytes, force_unit_access: false }
}

#[test]
fn a_read_costs_firmware_array_channel_and_link() {
    let measured = run(parameters(), random(100, 1));
    assert!(measured.latencies_ns(Operation::Read).all(|latency_ns| latency_ns == 111 * MICROSECOND));
}

#[test]
fn reads_scale_with_queue_depth_up_to_the_dies() {
    let fast_link = FlashParameters { link_bytes_per_s: 100_000_000_000, ..parameters() };
    let rate = |queue_depth| run(fast_link.clone(), random(100, queue_depth)).per_second(Operation::Read);
    let rates = [1, 4, 32, 256].map(rate);
    assert!(rates[1] > 2.5 * rates[0], "{rates:?}");
    assert!(rates[2] > 1.5 * rates[1], "{rates:?}");
    // Eight dies at 90 us each, or four channels at 40 us: the dies are the limit.
    assert!(rates[3] < 8.0 / 90e-6 && rates[3] > 0.85 * 8.0 / 90e-6, "{rates:?}");
}

#[test]
fn the_link_bounds_all_reads_together() {
    let slow_link = FlashParameters { link_bytes_per_s: 40_960_000, ..parameters() };
    let rate = run(slow_link, random(100, 64)).per_second(Operation::Read);
    assert!((rate / 10_000.0 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn the_command_interval_bounds_the_rate_and_not_the_latency() {
    let slow_firmware = FlashParameters { command_interval_ns: 100 * MICROSECOND, ..parameters() };
    let alone = run(slow_firmware.clone(), random(100, 1)).mean_ns(Operation::Read);
    assert_eq!(alone, 111_000.0);
    let rate = run(slow_firmware, random(100, 64)).per_second(Operation::Read);
    assert!((rate / 10_000.0 - 1.0).abs() < 0.01, "{rate}");
}

#[test]
fn a_buffered_write_does_not_wait_for_a_program() {
    let mut driver = drive(parameters());
    driver.submit(request(1, Operation::Write, 7, 1));
    assert_eq!(driver.wait().unwrap().at.0, 21 * MICROSECOND);
}

#[test]
fn a_full_buffer_slows_writes_to_the_rate_of_the_dies() {
    let measured = run(parameters(), random(0, 32));
    let expected = 8.0 / 540e-6;
    let rate = measured.per_second(Operation::Write);
    assert!((rate / expected - 1.0).abs() < 0.05, "{rate} against {expected}");
}

/// Longest read that arrives while `write_pages` wait to be programmed.
fn read_behind_programs_us(write_pages: u64) -> u64 {
    let mut driver = drive(parameters());
    driver.submit(request(1, Operation::Write, 1_000, write_pages));
    let written = driver.wait().unwrap();
    for page in 0..8 {
        driver.submit(request(10 + page, Operation::Read, page, 1));
    }
    let latest = (0..8).map(|_| driver.wait().unwrap().at).max().unwrap();
    (latest - written.at) / MICROSECOND
}

#[test]
fn a_read_overtakes_queued_programs() {
    let behind_many_us = read_behind_programs_us(200);
    // One program in progress, the channel's other program and transfers, then the read itself; not 25
    // programs.
    assert!(behind_many_us < 2 * 580 + 300, "{behind_many_us}");
    assert!(behind_many_us > 400, "a read must wait for what its die is doing: {behind_many_us}");
}

#[test]
fn a_steady_stream_of_reads_cannot_starve_a_full_buffer() {
    let measured = run(parameters(), ClosedLoop { queue_depth: 64, ..random(50, 64) });
    let longest_us = measured.latencies_ns(Operation::Write).max().unwrap() / MICROSECOND;
    assert!(longest_us < 200_000, "{longest_us}");
}

#[test]
fn rewriting_a_waiting_page_costs_one_program() {
    let mut driver = drive(parameters());
    driver.submit(request(1, Operation::Write, 100, 100));
    for id in 2..50 {
        driver.submit(request(id, Operation::Write, 199, 1));
    }
    while driver.wait().is_some() {}
    assert!(driver.device().counters().nand_write_bytes <= 102 * PAGE_BYTES);
}

#[test]
fn a_read_of_buffered_data_needs_no_die() {
    let mut driver = drive(parameters());
    driver.submit(request(1, Operation::Write, 100, 100));
    let written = driver.wait().unwrap();
    driver.submit(request(2, Operation::Read, 199, 1));
    assert_eq!(driver.wait().unwrap().at - written.at, 21 * MICROSECOND);
}

/// Time of a flush behind 64 buffered pages.
fn flush_us(parameters: FlashParameters) -> u64 {
    let mut driver = drive(parameters);
    driver.submit(request(1, Operation::Write, 0, 64));
    let written = driver.wait().unwrap();
    driver.submit(request(2, Operation::Flush, 0, 0));
    let flushed = driver.wait().unwrap();
    assert_eq!(driver.device().counters().volatile_bytes, 0);
    (flushed.at - written.at) / MICROSECOND
}

#[test]
fn flush_drains_the_buffer_and_writes_the_map() {
    assert!(flush_us(parameters()) > 64 / 8 * 500 + 1_000);
}

#[test]
fn flush_drains_the_buffer_without_blocking_the_queue_too() {
    assert!(flush_us(FlashParameters { flush_blocks_queue: false, ..parameters() }) > 64 / 8 * 500 + 1_000);
}

#[test]
fn flush_of_a_protected_buffer_drains_nothing() {
    assert!(flush_us(FlashParameters { write_cache: WriteCache::Protected, ..parameters() }) <= 1_005);
}

/// Order of completion of a flush and a read submitted behind it.
fn check_flush_order(flush_blocks_queue: bool, expect: [u64; 2]) {
    let mut driver = drive(FlashParameters { flush_blocks_queue, ..parameters() });
    driver.submit(request(1, Operation::Write, 0, 64));
    driver.wait();
    driver.submit(request(2, Operation::Flush, 0, 0));
    driver.submit(request(3, Operation::Read, 1_000, 1));
    assert_eq!([driver.wait(), driver.wait()].map(|done| done.unwrap().id.0), expect);
}

#[test]
fn a_non_queued_flush_holds_back_later_commands() {
    check_flush_order(true, [2, 3]);
}

#[test]
fn a_non_queued_flush_waits_for_a_read_that_crosses_the_link() {
    // A page takes 80 us on the link.
    let mut driver = drive(FlashParameters { link_bytes_per_s: 51_200_000, ..parameters() });
    driver.submit(Request { force_unit_access: true, ..request(1, Operation::Write, 0, 1) });
    driver.sleep(500 * MICROSECOND);
    driver.submit(request(2, Operation::Read, 1_001, 1));
    driver.sleep(130 * MICROSECOND);
    driver.submit(request(3, Operation::Flush, 0, 0));
    let done_us = [driver.wait(), driver.wait(), driver.wait()].map(|done| done.unwrap().at.0 / MICROSECOND);
    assert_eq!(done_us, [85 + 540, 500 + 175, 675 + 1_000]);
}

#[test]
fn a_queued_flush_lets_reads_pass() {
    check_flush_order(false, [3, 2]);
}

#[test]
fn a_forced_write_waits_for_its_program() {
    let mut driver = drive(parameters());
    driver.submit(Request { force_unit_access: true, ..request(1, Operation::Write, 0, 1) });
    assert_eq!(driver.wait().unwrap().at.0, (21 + 540) * MICROSECOND);
    let now = driver.now();
    assert_eq!(driver.device_mut().power_cut(now).writes, []);
}

/// Forced writes of whole sectors, then discards. Earlier writes make all of them wait for a die. Each
/// completes once.
fn check_discarded_while_waiting(writes: &[(u64, u64)], discards: &[(u64, u64)]) {
    const BEFORE: u64 = 64;
    let mut driver = drive(parameters());
    for page in 0..BEFORE {
        driver.submit(Request { force_unit_access: true, ..request(page, Operation::Write, 100 + page, 1) });
    }
    let mut count = BEFORE;
    let mut submit = |driver: &mut VirtualTime<Flash>, operation, (start, end): (u64, u64)| {
        let (offset_bytes, size_bytes) = (start * SECTOR_BYTES, (end - start) * SECTOR_BYTES);
        let force_unit_access = operation == Operation::Write;
        driver.submit(Request {
            offset_bytes,
            size_bytes,
            force_unit_access,
            ..request(count, operation, 0, 0)
        });
        count += 1;
    };
    writes.iter().for_each(|&range| submit(&mut driver, Operation::Write, range));
    // All are in the buffer, at 16 us each. Five eighths of the first ones have a die.
    driver.sleep(1_200 * MICROSECOND);
    discards.iter().for_each(|&range| submit(&mut driver, Operation::Discard, range));
    let mut ids: Vec<u64> = std::iter::from_fn(|| driver.wait()).map(|completion| completion.id.0).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..count).collect::<Vec<u64>>());
}

#[test]
fn a_discard_inside_a_waiting_write_does_not_complete_it_early() {
    check_discarded_while_waiting(&[(0, 16)], &[(2, 3)]);
}

#[test]
fn a_write_of_which_a_discard_leaves_nothing_completes() {
    check_discarded_while_waiting(&[(0, 2), (4, 8)], &[(0, 2)]);
    check_discarded_while_waiting(&[(0, 2), (4, 8)], &[(0, 8)]);
    check_discarded_while_waiting(&[(0, 2), (4, 8)], &[(4, 8)]);
}

#[test]
fn with_the_cache_off_every_write_waits_for_its_program() {
    let measured = run(FlashParameters { write_cache: WriteCache::Off, ..parameters() }, random(0, 1));
    assert!(measured.latencies_ns(Operation::Write).all(|latency_ns| latency_ns == 561 * MICROSECOND));
}

/// Whether acknowledged writes are damaged after random writes, an optional flush, and a cut.
fn check_cut(write_cache: WriteCache, flush: bool, expect_damage: bool) {
    let mut driver = drive(FlashParameters { write_cache, ..parameters() });
    random(0, 16).run(&mut driver);
    if flush {
        driver.submit(request(1_000_000, Operation::Flush, 0, 0));
        driver.wait();
    }
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    let damaged = cut.writes.iter().filter(|write| write.acknowledged && write.fate != Fate::Kept).count();
    assert_eq!(damaged > 0, expect_damage, "{cut:?}");
    assert_eq!(driver.device().poll_at(), None);
}

#[test]
fn what_was_not_flushed_may_be_lost() {
    check_cut(WriteCache::Volatile, false, true);
}

#[test]
fn what_was_flushed_survives_a_power_cut() {
    check_cut(WriteCache::Volatile, true, false);
}

#[test]
fn write_through_loses_nothing_acknowledged() {
    check_cut(WriteCache::Off, false, false);
}

#[test]
fn a_protected_buffer_loses_nothing_acknowledged() {
    check_cut(WriteCache::Protected, false, false);
}

/// Reads of some pages at some microseconds, each submitted later than it was sent by this delay. Returns the
/// completion time of each in microseconds.
fn late_reads_done_us(reads: &[(u64, u64, u64)]) -> Vec<u64> {
    let mut flash = Flash::new(parameters(), SIZE_BYTES, 1);
    let mut done_us = vec![0; reads.len()];
    let mut collect_until = |flash: &mut Flash, until_us: u64| {
        while let Some(at) = flash.poll_at().filter(|at| at.0 <= until_us * MICROSECOND) {
            while let Some(completion) = flash.poll(at) {
                done_us[completion.id.0 as usize] = completion.at.0 / MICROSECOND;
            }
        }
    };
    for (index, &(page, sent_us, late_us)) in reads.iter().enumerate() {
        collect_until(&mut flash, sent_us + late_us);
        let [sent, now] = [sent_us, sent_us + late_us].map(|us| Instant(us * MICROSECOND));
        let from = flash.submit_late(sent, now, request(index as u64, Operation::Read, page, 1));
        assert_eq!(from, sent);
    }
    collect_until(&mut flash, 1_000_000);
    done_us
}

#[test]
fn a_late_read_of_an_idle_die_is_done_as_if_it_had_come_in_time() {
    let in_time = late_reads_done_us(&[(0, 0, 0), (1, 40, 0)]);
    assert_eq!(in_time, [111, 151]);
    // Late by less and by more than the duration of the read.
    assert_eq!(late_reads_done_us(&[(0, 0, 0), (1, 40, 30)]), in_time);
    assert_eq!(late_reads_done_us(&[(0, 0, 0), (1, 40, 200)]), in_time);
}

#[test]
fn a_late_read_waits_for_what_its_die_was_doing() {
    let in_time = late_reads_done_us(&[(0, 0, 0), (0, 40, 0)]);
    // The die is free once the first is read out, at 95 us.
    assert_eq!(in_time, [111, 95 + 50 + 40 + 16]);
    assert_eq!(late_reads_done_us(&[(0, 0, 0), (0, 40, 30)]), in_time);
    assert_eq!(late_reads_done_us(&[(0, 0, 0), (0, 40, 70)]), in_time);
}

#[test]
fn late_requests_complete_once_too() {
    let mut flash = Flash::new(parameters(), SIZE_BYTES, 1);
    let mut rng = crate::rng::Rng::new(1);
    let (mut now, mut done) = (Instant::ZERO, Vec::new());
    let operations = [Operation::Read, Operation::Write, Operation::Flush, Operation::Discard];
    for id in 0..5_000 {
        let until = now + rng.below(300) * MICROSECOND;
        while let Some(at) = flash.poll_at().filter(|&at| at <= until) {
            now = now.max(at);
            while let Some(completion) = flash.poll(now) {
                done.push(completion.id.0);
            }
        }
        now = until;
        let operation = operations[rng.below(20).saturating_sub(16) as usize];
        let operation = if rng.below(2) == 0 { operation } else { Operation::Write };
        let sent = Instant(now.0.saturating_sub(rng.below(100) * MICROSECOND));
        let place = if operation == Operation::Flush { (0, 0) } else { (rng.below(200), 1 + rng.below(4)) };
        flash.submit_late(sent, now, request(id, operation, place.0, place.1));
    }
    while let Some(at) = flash.poll_at() {
        now = now.max(at);
        while let Some(completion) = flash.poll(now) {
            done.push(completion.id.0);
        }
    }
    done.sort_unstable();
    assert_eq!(done, (0..5_000).collect::<Vec<_>>());
    assert_eq!((flash.counters().queue_depth, flash.counters().volatile_bytes), (0, 0));
}
