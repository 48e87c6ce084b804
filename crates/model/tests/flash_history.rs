//! The times of the answers of an aged flash drive, to the nanosecond. A faster model must give the same
//! times.
//!
//! A change that is meant to change results says so in CHANGELOG.md, and puts its numbers here.

mod common;

use common::history::{History, Script};
use spindle_model::{
    Ageing, FlashParameters, MICROSECOND, MILLISECOND, Operation, Parameters, Request, RequestId, Rng,
    VictimChoice, WriteCache,
};

const SIZE_BYTES: u64 = 64 << 20;
const UNIT_BYTES: u64 = 4_096;
const SCRIPT: Script = Script { request_count: 40_000, most_in_flight: 32, pause_ns };

fn parameters(write_cache: WriteCache) -> FlashParameters {
    let Parameters::Flash(flash) = common::flash(write_cache) else { unreachable!("a flash drive") };
    FlashParameters { raw_bytes: flash.capacity_bytes / 100 * 120, ..flash }
}

/// Mostly reads and writes of a unit, and some of everything else.
fn request(number: u64, rng: &mut Rng) -> Request {
    let operation = match rng.below(1_000) {
        0..480 => Operation::Read,
        480..980 => Operation::Write,
        980..990 => Operation::Flush,
        990..995 => Operation::Discard,
        _ => Operation::WriteZeroes,
    };
    let (offset_bytes, size_bytes) = match rng.below(10) {
        _ if operation == Operation::Flush => (0, 0),
        0 => (rng.below(SIZE_BYTES / 512 - 600) * 512, (1 + rng.below(600)) * 512),
        1 => (rng.below(SIZE_BYTES / 512 - 16) * 512, (1 + rng.below(16)) * 512),
        _ => (rng.below(SIZE_BYTES / UNIT_BYTES) * UNIT_BYTES, UNIT_BYTES),
    };
    let force_unit_access = operation == Operation::Write && rng.below(50) == 0;
    Request { id: RequestId(number), operation, offset_bytes, size_bytes, force_unit_access }
}

fn pause_ns(rng: &mut Rng) -> u64 {
    match rng.below(4_000) {
        // Long enough for the drive to collect in the background.
        0 => 300 * MILLISECOND,
        1..1_000 => rng.below(200 * MICROSECOND),
        _ => 0,
    }
}

fn history(parameters: FlashParameters) -> History {
    let mut device = common::device(Parameters::Flash(parameters), SIZE_BYTES, 1);
    device.set_use(Some(&Ageing { fill_percent: 100, overwrite_percent: 200, seed: 2 }));
    common::history::history(&mut *device, SCRIPT, request)
}

fn check(parameters: FlashParameters, sum: u64, moved_units: u64) {
    let found = history(parameters);
    let found_units = found.counters.nand_moved_bytes / UNIT_BYTES;
    assert_eq!((found.sum, found_units), (sum, moved_units), "{:#018x}", found.sum);
}

#[test]
fn greedy_collection_behind_a_volatile_buffer() {
    check(parameters(WriteCache::Volatile), 0xc1d4_371d_74ea_296b, 116_888);
}

#[test]
fn pages_of_two_units_and_programs_that_reads_suspend() {
    let parameters = FlashParameters {
        page_bytes: 2 * UNIT_BYTES,
        suspend_limit: 2,
        suspend_ns: 20 * MICROSECOND,
        flush_blocks_queue: false,
        ..parameters(WriteCache::Protected)
    };
    check(parameters, 0x83f0_9b9c_7a7b_fdfe, 108_872);
}

#[test]
fn collection_by_cost_and_benefit_without_a_write_cache() {
    let parameters = FlashParameters {
        gc_victim: VictimChoice::CostBenefit,
        gc_low_percent: 10,
        ..parameters(WriteCache::Off)
    };
    check(parameters, 0x61b2_e858_c73a_fd11, 150_660);
}

#[test]
fn an_slc_cache_that_is_folded() {
    let flash = parameters(WriteCache::Volatile);
    let slc = Some(common::slc(&flash, SIZE_BYTES, 256 << 10));
    check(
        FlashParameters { slc, raw_bytes: flash.capacity_bytes / 100 * 130, ..flash },
        0x69ad_abfb_c983_ca5b,
        78_668,
    );
}
