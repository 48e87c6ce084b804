//! What an SLC write cache does, as claims.

use super::{Flash, ftl_tests};
use crate::closed_loop::{ClosedLoop, Driver};
use crate::device::Device;
use crate::devices::{DeviceParameters, FlashParameters, SlcParameters};
use crate::layers::Ageing;
use crate::request::{Operation, Request, RequestId};
use crate::time::{MICROSECOND, SECOND};
use crate::virtual_time::VirtualTime;

const MEBIBYTE: u64 = 1 << 20;
const SIZE_BYTES: u64 = 256 * MEBIBYTE;
const STEP_BYTES: u64 = 64 << 10;
const QUEUE_DEPTH: u64 = 8;
/// Four dies with programs of 8 KiB: 20 us of channel and 2 ms, or 200 us in SLC mode.
const SLC_MB_PER_S: f64 = 4.0 * 8_192.0 / 220.48;
const NATIVE_MB_PER_S: f64 = 4.0 * 8_192.0 / 2_020.48;

fn slc() -> SlcParameters {
    SlcParameters {
        cell_bits: 3,
        static_bytes: 8 * MEBIBYTE,
        dynamic_bytes: 0,
        dynamic_full_percent: 0,
        dynamic_gone_percent: 0,
        page_program_ns: 200 * MICROSECOND,
        page_read_ns: 20 * MICROSECOND,
    }
}

/// 256 MiB with 28 % of spare NAND.
fn parameters(slc: SlcParameters) -> FlashParameters {
    FlashParameters {
        pages_per_program: 2,
        page_program_ns: 2_000 * MICROSECOND,
        slc: Some(slc),
        ..ftl_tests::parameters(SIZE_BYTES, 28, 512 << 10)
    }
}

fn drive(slc: SlcParameters) -> VirtualTime<Flash> {
    let parameters = parameters(slc);
    parameters.validate().unwrap();
    VirtualTime::new(Flash::new(parameters, SIZE_BYTES, 1))
}

fn request(id: u64, operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(id), operation, offset_bytes, size_bytes, force_unit_access: false }
}

/// MB/s of a sequential write.
fn write(driver: &mut VirtualTime<Flash>, from_bytes: u64, bytes: u64) -> f64 {
    let begin = driver.now();
    let count = bytes / STEP_BYTES;
    for index in 0..count + QUEUE_DEPTH {
        if index >= QUEUE_DEPTH {
            driver.wait().expect("a write completes");
        }
        if index < count {
            let offset_bytes = from_bytes + index * STEP_BYTES;
            driver.submit(request(index, Operation::Write, offset_bytes, STEP_BYTES));
        }
    }
    bytes as f64 * 1e3 / (driver.now() - begin) as f64
}

fn flush(driver: &mut VirtualTime<Flash>) {
    driver.submit(request(u64::MAX, Operation::Flush, 0, 0));
    driver.wait();
}

/// Host data written until the rate falls below a third of the cache's, in units of `STEP_BYTES`.
fn cache_bytes(driver: &mut VirtualTime<Flash>, from_bytes: u64) -> u64 {
    let mut written_bytes = 0;
    while write(driver, from_bytes + written_bytes, 4 * STEP_BYTES) > SLC_MB_PER_S / 3.0 {
        written_bytes += 4 * STEP_BYTES;
    }
    written_bytes
}

fn check_rate(rate: f64, expect: f64) {
    assert!((rate / expect - 1.0).abs() < 0.1, "{rate} MB/s against {expect}");
}

#[test]
fn a_long_write_is_fast_until_the_cache_is_full_and_again_after_a_pause() {
    let mut driver = drive(slc());
    // The buffer takes the first quarter of a mebibyte.
    write(&mut driver, 0, MEBIBYTE / 4);
    check_rate(write(&mut driver, MEBIBYTE, 7 * MEBIBYTE), SLC_MB_PER_S);
    write(&mut driver, 8 * MEBIBYTE, MEBIBYTE);
    check_rate(write(&mut driver, 9 * MEBIBYTE, 8 * MEBIBYTE), NATIVE_MB_PER_S);
    assert_eq!(driver.device().counters().nand_moved_bytes, 0, "nothing is folded under way");
    driver.sleep(10 * SECOND);
    write(&mut driver, 20 * MEBIBYTE, MEBIBYTE / 4);
    check_rate(write(&mut driver, 21 * MEBIBYTE, 7 * MEBIBYTE), SLC_MB_PER_S);
    let moved_bytes = driver.device().counters().nand_moved_bytes;
    assert!((7 * MEBIBYTE..=9 * MEBIBYTE).contains(&moved_bytes), "{moved_bytes} bytes were folded");
    write(&mut driver, 28 * MEBIBYTE, MEBIBYTE);
    check_rate(write(&mut driver, 29 * MEBIBYTE, 4 * MEBIBYTE), NATIVE_MB_PER_S);
    driver.device().ftl.check();
}

#[test]
fn folding_is_write_amplification() {
    let mut driver = drive(slc());
    write(&mut driver, 0, 6 * MEBIBYTE);
    flush(&mut driver);
    driver.sleep(10 * SECOND);
    flush(&mut driver);
    let counters = driver.device().counters();
    let amplification = counters.nand_write_bytes as f64 / counters.write_bytes as f64;
    // All but the superblock that is open is folded.
    assert!((1.9..2.05).contains(&amplification), "{amplification}");
}

#[test]
fn the_cliff_is_at_the_size_of_the_cache() {
    for mebibytes in [2, 4, 12] {
        let measured =
            cache_bytes(&mut drive(SlcParameters { static_bytes: mebibytes * MEBIBYTE, ..slc() }), 0);
        let expect = mebibytes * MEBIBYTE;
        assert!(measured.abs_diff(expect) <= MEBIBYTE / 2, "{measured} against {expect}");
    }
}

#[test]
fn a_full_drive_has_its_static_cache_after_a_pause() {
    let mut driver = drive(slc());
    driver.device_mut().set_use(Some(&Ageing { fill_percent: 100, overwrite_percent: 200, seed: 1 }));
    let used = write(&mut driver, 0, MEBIBYTE);
    assert!(used < NATIVE_MB_PER_S, "{used}");
    driver.sleep(60 * SECOND);
    let measured = cache_bytes(&mut driver, 0);
    assert!(measured.abs_diff(8 * MEBIBYTE) <= MEBIBYTE, "{measured}");
    driver.device().ftl.check();
}

#[test]
fn random_writes_within_the_cache_run_at_its_speed() {
    let writes = ClosedLoop {
        read_percent: 0,
        queue_depth: 32,
        span_bytes: SIZE_BYTES,
        request_count: 7 * MEBIBYTE / 4_096,
        ..ClosedLoop::default()
    };
    let mut driver = drive(slc());
    let mut mb_per_s = |seed| {
        let writes = ClosedLoop { seed, ..writes.clone() };
        writes.run(&mut driver).per_second(Operation::Write) * 4_096.0 / 1e6
    };
    check_rate(mb_per_s(1), SLC_MB_PER_S);
    mb_per_s(2);
    check_rate(mb_per_s(3), NATIVE_MB_PER_S);
}

#[test]
fn what_is_overwritten_makes_room_in_the_cache() {
    let mut driver = drive(slc());
    for _ in 0..10 {
        let rate = write(&mut driver, 0, 4 * MEBIBYTE);
        // Less than the full rate, because emptied superblocks are erased.
        assert!(rate > SLC_MB_PER_S / 2.0, "{rate} MB/s");
    }
    assert_eq!(driver.device().counters().nand_moved_bytes, 0);
}

/// The size of a dynamic cache of 12 MiB that is whole up to a fill of 20 % and gone at 80 %.
fn dynamic_bytes(fill_percent: u64) -> u64 {
    let (dynamic_full_percent, dynamic_gone_percent) = (20, 80);
    let (static_bytes, dynamic_bytes) = (MEBIBYTE, 12 * MEBIBYTE);
    let slc =
        SlcParameters { static_bytes, dynamic_bytes, dynamic_full_percent, dynamic_gone_percent, ..slc() };
    let mut driver = drive(slc);
    driver.device_mut().set_use(Some(&Ageing { fill_percent, overwrite_percent: 0, seed: 1 }));
    flush(&mut driver);
    driver.sleep(100 * SECOND);
    // Outside the filled part, so that no data is overwritten.
    cache_bytes(&mut driver, SIZE_BYTES / 100 * (fill_percent + 1) / STEP_BYTES * STEP_BYTES) - static_bytes
}

#[test]
fn the_dynamic_part_shrinks_with_the_fill() {
    for (fill_percent, mebibytes) in [(0, 12), (15, 12), (50, 6), (65, 3), (85, 0)] {
        let measured = dynamic_bytes(fill_percent);
        let expect = mebibytes * MEBIBYTE;
        assert!(measured.abs_diff(expect) <= MEBIBYTE / 2, "{fill_percent} %: {measured} against {expect}");
    }
}

#[test]
fn a_read_from_the_cache_is_faster_than_one_from_native_cells() {
    let read_us = |driver: &mut VirtualTime<Flash>| {
        let begin = driver.now();
        driver.submit(request(0, Operation::Read, 0, 4_096));
        (driver.wait().unwrap().at - begin) / MICROSECOND
    };
    let mut driver = drive(slc());
    write(&mut driver, 0, MEBIBYTE);
    flush(&mut driver);
    assert_eq!(read_us(&mut driver), 5 + 20 + 10 + 6 + 1);
    driver.sleep(10 * SECOND);
    assert_eq!(read_us(&mut driver), 5 + 50 + 10 + 6 + 1);
}

#[test]
fn a_secure_erase_empties_the_cache() {
    let mut driver = drive(slc());
    write(&mut driver, 0, 10 * MEBIBYTE);
    flush(&mut driver);
    driver.device_mut().set_use(None);
    driver.device().ftl.check();
    let measured = cache_bytes(&mut driver, 0);
    assert!(measured.abs_diff(8 * MEBIBYTE) <= MEBIBYTE / 2, "{measured}");
}

#[test]
fn what_was_flushed_to_the_cache_survives_a_power_cut_while_it_is_folded() {
    let mut driver = drive(slc());
    write(&mut driver, 0, 6 * MEBIBYTE);
    flush(&mut driver);
    driver.sleep(SECOND / 5);
    let now = driver.now();
    assert_eq!(driver.device_mut().power_cut(now).writes, []);
    let moved_bytes = driver.device().counters().nand_moved_bytes;
    assert!(0 < moved_bytes && moved_bytes < 6 * MEBIBYTE, "{moved_bytes}: not while it is folded");
    driver.device().ftl.check();
    assert_eq!(driver.device().poll_at(), None);
}

fn check_refused(change: impl Fn(&mut SlcParameters), expect: &str) {
    let mut slc = slc();
    change(&mut slc);
    assert_eq!(parameters(slc).validate().map_err(|invalid| invalid.to_string()), Err(expect.to_owned()));
}

#[test]
fn a_cache_that_does_not_fit_is_refused() {
    check_refused(
        |slc| slc.static_bytes = 32 * MEBIBYTE,
        "`slc_static` is 32 MiB, must be at most 18790450 B: one part in 3 (`cell_bits`) of the spare space that `gc_high_watermark` leaves",
    );
    check_refused(
        |slc| {
            (slc.dynamic_bytes, slc.dynamic_full_percent, slc.dynamic_gone_percent) = (64 * MEBIBYTE, 50, 80);
        },
        "`slc_dynamic` is 64 MiB, must be at most 44739233 B: one part in 3 (`cell_bits`) of the space that `slc_dynamic_full` leaves",
    );
    check_refused(
        |slc| slc.static_bytes = 0,
        "`slc_static` and `slc_dynamic` are 0 bytes, one of them must be above; leave all of these keys out for a drive \
         without an SLC cache",
    );
}

#[test]
fn a_cache_that_is_slower_than_native_cells_is_refused() {
    check_refused(
        |slc| slc.page_program_ns = 3_000_000,
        "`slc_program` is 3 ms, must be at most `page_program`, 2 ms",
    );
    check_refused(|slc| slc.page_read_ns = 60_000, "`slc_read` is 60 us, must be at most `page_read`, 50 us");
}

#[test]
fn a_cell_of_one_bit_needs_no_cache() {
    check_refused(|slc| slc.cell_bits = 1, "`cell_bits` is 1, must be 2 to 8");
}
