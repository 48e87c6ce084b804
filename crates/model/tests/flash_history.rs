//! When an aged flash drive answers, to the nanosecond: what makes the model faster must not change it.
//!
//! A change that is meant to change results says so in CHANGELOG.md, and puts its numbers here.

mod common;

use spindle_model::{
    Ageing, Counters, FlashParameters, Instant, MICROSECOND, MILLISECOND, Operation, Parameters, Request,
    RequestId, Rng, SlcParameters, VictimChoice, WriteCache,
};

const SIZE_BYTES: u64 = 64 << 20;
const UNIT_BYTES: u64 = 4_096;
const REQUEST_COUNT: u64 = 40_000;
const MOST_IN_FLIGHT: u64 = 32;

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

/// FNV-1a, over numbers.
fn hash(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3)
}

/// Hash of every completion and of what power cuts left, and the drive's counters at the end.
fn history(parameters: FlashParameters) -> (u64, Counters) {
    let mut device = common::device(Parameters::Flash(parameters), SIZE_BYTES, 1);
    device.age(&Ageing { fill_percent: 100, overwrite_percent: 200, seed: 2 });
    let mut rng = Rng::new(3);
    let mut sum = 0xcbf2_9ce4_8422_2325;
    let mut now = Instant::ZERO;
    let mut in_flight = 0;
    for number in 0..REQUEST_COUNT {
        let until = now + pause_ns(&mut rng);
        while let Some(at) = device.poll_at().filter(|&at| at <= until || in_flight == MOST_IN_FLIGHT) {
            now = now.max(at);
            while let Some(completion) = device.poll(now) {
                sum = hash(hash(sum, completion.id.0), completion.at.0);
                in_flight -= 1;
            }
        }
        now = now.max(until);
        device.submit(now, request(number, &mut rng));
        in_flight += 1;
        if number % (REQUEST_COUNT / 4) == REQUEST_COUNT / 8 {
            let fates = device.power_cut(now).writes;
            sum = fates.iter().fold(sum, |sum, fate| hash(hash(sum, fate.id.0), fate.offset_bytes));
            in_flight = 0;
        }
    }
    while let Some(at) = device.poll_at() {
        now = now.max(at);
        while let Some(completion) = device.poll(now) {
            sum = hash(hash(sum, completion.id.0), completion.at.0);
        }
    }
    (sum, device.counters())
}

fn check(parameters: FlashParameters, sum: u64, moved_units: u64) {
    let (found, counters) = history(parameters);
    assert_eq!((found, counters.nand_moved_bytes / UNIT_BYTES), (sum, moved_units), "{found:#018x}");
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
    let cache_bytes = flash.capacity_bytes / SIZE_BYTES * (256 << 10);
    let slc = Some(SlcParameters {
        cell_bits: 3,
        static_bytes: cache_bytes,
        dynamic_bytes: cache_bytes,
        dynamic_full_percent: 0,
        dynamic_gone_percent: 80,
        page_program_ns: 100 * MICROSECOND,
        page_read_ns: 20 * MICROSECOND,
    });
    check(
        FlashParameters { slc, raw_bytes: flash.capacity_bytes / 100 * 130, ..flash },
        0x69ad_abfb_c983_ca5b,
        78_668,
    );
}
