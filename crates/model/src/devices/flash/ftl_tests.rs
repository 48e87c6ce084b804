//! The translation layer's properties, as claims: write amplification agrees with theory, and free space
//! never runs out.

use proptest::prelude::*;

use super::Flash;
use super::ftl::Ftl;
use super::geometry::Unit;
use super::map::Location;
use crate::closed_loop::{ClosedLoop, Driver, Order};
use crate::device::Device;
use crate::devices::{FlashParameters, SlcParameters, VictimChoice, WriteCache};
use crate::layers::Ageing;
use crate::request::{Operation, Request, RequestId};
use crate::rng::Rng;
use crate::time::{MICROSECOND, MILLISECOND, SECOND};
use crate::virtual_time::VirtualTime;

const UNIT_BYTES: u64 = 4_096;

pub(super) fn parameters(
    size_bytes: u64,
    over_provisioning_percent: u64,
    block_bytes: u64,
) -> FlashParameters {
    FlashParameters {
        capacity_bytes: size_bytes,
        raw_bytes: size_bytes / 100 * (100 + over_provisioning_percent),
        channel_count: 2,
        dies_per_channel: 2,
        mapping_unit_bytes: UNIT_BYTES,
        page_bytes: UNIT_BYTES,
        pages_per_program: 2,
        block_bytes,
        page_read_ns: 50 * MICROSECOND,
        page_program_ns: 500 * MICROSECOND,
        block_erase_ns: 2_000 * MICROSECOND,
        suspend_limit: 0,
        suspend_ns: 0,
        channel_bytes_per_s: 400_000_000,
        link_bytes_per_s: 600_000_000,
        read_overhead_ns: 5 * MICROSECOND,
        write_overhead_ns: 5 * MICROSECOND,
        command_interval_ns: 0,
        write_cache: WriteCache::Volatile,
        buffer_bytes: 64 * UNIT_BYTES,
        flush_commit_ns: 0,
        flush_blocks_queue: true,
        gc_victim: VictimChoice::Greedy,
        gc_low_percent: 0,
        gc_high_percent: 25,
        slc: None,
    }
}

/// W0 of a number from -1/e to 0, by Newton's method.
fn lambert_w(x: f64) -> f64 {
    let mut w = -0.5;
    for _ in 0..100 {
        let error = w * f64::exp(w) - x;
        w -= error / (f64::exp(w) * (w + 1.0));
    }
    w
}

/// Greedy collection under uniform random overwrites of a full drive (Luojie and Kurkoski, arXiv 1110.4245),
/// for over-provisioning `p`: the limit of large superblocks.
fn write_amplification_in_theory(p: f64) -> f64 {
    let ratio = 1.0 + p;
    ratio / (ratio + lambert_w(-ratio * f64::exp(-ratio)))
}

/// Units programmed per unit written over one turn, after three turns to settle.
fn write_amplification(parameters: &FlashParameters) -> f64 {
    let mut ftl = Ftl::new(parameters, parameters.capacity_bytes);
    let unit_count = u64::from(ftl.geometry.unit_count);
    let mut rng = Rng::new(7);
    for unit in 0..unit_count {
        ftl.write_at_once(unit as Unit);
    }
    for _ in 0..3 * unit_count {
        ftl.write_at_once(rng.below(unit_count) as Unit);
    }
    let before = ftl.counters;
    for _ in 0..unit_count {
        ftl.write_at_once(rng.below(unit_count) as Unit);
    }
    let moved_units = ftl.counters.moved_units - before.moved_units;
    1.0 + moved_units as f64 / unit_count as f64
}

#[test]
fn the_closed_form_has_its_published_values() {
    for (p, published) in [(0.07, 7.82), (0.10, 5.68), (0.28, 2.48), (0.50, 1.72), (1.0, 1.26)] {
        let theory = write_amplification_in_theory(p);
        assert!((theory / published - 1.0).abs() < 0.01, "{p}: {theory} against {published}");
    }
}

#[test]
fn greedy_write_amplification_meets_the_closed_form() {
    println!("over-provisioning  model  theory  ratio");
    for percent in [7, 10, 15, 20, 28, 40, 50, 75, 100] {
        let model = write_amplification(&parameters(1 << 30, percent, 1 << 20));
        let theory = write_amplification_in_theory(percent as f64 / 100.0);
        println!("{percent:>16}%  {model:5.2}  {theory:6.2}  {:5.3}", model / theory);
        assert!((model / theory - 1.0).abs() < 0.05, "{percent} %: {model} against {theory}");
    }
}

#[test]
fn over_provisioning_does_not_depend_on_the_emulated_size() {
    let drive = parameters(64 << 30, 20, 2 << 20);
    let small = |size_bytes| {
        let ftl = Ftl::new(&drive, size_bytes);
        let spare = u64::from(ftl.geometry.superblock_count) * u64::from(ftl.geometry.units_per_superblock);
        spare as f64 / f64::from(ftl.geometry.unit_count)
    };
    for size_bytes in [256 << 20, 1 << 30, 20 << 30, 64 << 30] {
        assert!((small(size_bytes) / 1.2 - 1.0).abs() < 0.02, "{}", small(size_bytes));
    }
}

#[test]
fn sequential_overwrites_are_not_amplified() {
    let parameters = parameters(64 << 20, 7, 64 << 10);
    let mut ftl = Ftl::new(&parameters, parameters.capacity_bytes);
    for _ in 0..5 {
        for unit in 0..ftl.geometry.unit_count {
            ftl.write_at_once(unit);
        }
    }
    assert!(ftl.counters.moved_units * 200 < ftl.counters.host_units, "{:?}", ftl.counters);
}

/// A tenth of the units gets nine tenths of the writes.
fn skewed_write_amplification(gc_victim: VictimChoice) -> f64 {
    let parameters = FlashParameters { gc_victim, ..parameters(128 << 20, 15, 128 << 10) };
    let mut ftl = Ftl::new(&parameters, parameters.capacity_bytes);
    let unit_count = u64::from(ftl.geometry.unit_count);
    let mut rng = Rng::new(3);
    for unit in 0..unit_count {
        ftl.write_at_once(unit as Unit);
    }
    for _ in 0..8 * unit_count {
        let span = if rng.below(10) < 9 { unit_count / 10 } else { unit_count };
        ftl.write_at_once(rng.below(span) as Unit);
    }
    (ftl.counters.host_units + ftl.counters.moved_units) as f64 / ftl.counters.host_units as f64
}

#[test]
fn cost_benefit_moves_less_than_greedy_when_writes_are_skewed() {
    let rates = [VictimChoice::Greedy, VictimChoice::CostBenefit].map(skewed_write_amplification);
    assert!(rates[1] < 0.9 * rates[0], "{rates:?}");
}

#[test]
fn a_full_drive_fits_into_two_hundred_megabytes() {
    // 160 GB in units of 4 KiB. The map is the only thing that grows with the units; the lists of a group and
    // of the next one hold at most as many units as their superblocks do.
    let mut drive = parameters(160_000_000_000, 28, 2 << 20);
    (drive.channel_count, drive.dies_per_channel) = (12, 3);
    let geometry = super::geometry::Geometry::new(&drive, drive.capacity_bytes);
    let map_bytes = 4 * u64::from(geometry.unit_count);
    let groups = 2 * u64::from(geometry.superblock_count).div_ceil(16).min(96) + 1;
    // Vectors grow by doubling.
    let list_bytes = 2 * 4 * groups * u64::from(geometry.units_per_superblock);
    let table_bytes = 32 * u64::from(geometry.superblock_count);
    let total = map_bytes + list_bytes + table_bytes;
    assert!(total <= 200_000_000, "{map_bytes} + {list_bytes} + {table_bytes}");
}

#[derive(Debug, Clone, Copy)]
enum Use {
    Random { count: u64, span_percent: u64 },
    Sequential { from_percent: u64, count: u64 },
    Trim { from_percent: u64, count: u64 },
    SecureErase,
}

fn uses() -> impl Strategy<Value = Vec<Use>> {
    let one = prop_oneof![
        4 => (1..6_000_u64, 1..101_u64)
            .prop_map(|(count, span_percent)| Use::Random { count, span_percent }),
        2 => (0..100_u64, 1..4_000_u64)
            .prop_map(|(from_percent, count)| Use::Sequential { from_percent, count }),
        2 => (0..100_u64, 1..2_000_u64).prop_map(|(from_percent, count)| Use::Trim { from_percent, count }),
        1 => Just(Use::SecureErase),
    ];
    prop::collection::vec(one, 1..12)
}

/// No SLC cache, or one of any size that fits: shares of the allowed sizes, and the fill up to which the
/// dynamic part has full size.
#[derive(Debug, Clone, Copy)]
struct Cache {
    cell_bits: u64,
    static_percent: u64,
    dynamic_percent: u64,
    dynamic_full_percent: u64,
}

fn caches() -> impl Strategy<Value = Option<Cache>> {
    let cache = (2..5_u64, 0..101_u64, 0..101_u64, 0..100_u64).prop_map(
        |(cell_bits, static_percent, dynamic_percent, dynamic_full_percent)| Cache {
            cell_bits,
            static_percent,
            dynamic_percent,
            dynamic_full_percent,
        },
    );
    prop::option::of(cache)
}

fn with_cache(flash: FlashParameters, cache: Option<Cache>) -> FlashParameters {
    let slc = cache.map(|cache| {
        let spare_bytes = (flash.raw_bytes - flash.capacity_bytes) * (100 - flash.gc_high_percent) / 100;
        let unfilled_bytes = flash.capacity_bytes * (100 - cache.dynamic_full_percent) / 100;
        SlcParameters {
            cell_bits: cache.cell_bits,
            static_bytes: spare_bytes / cache.cell_bits * cache.static_percent / 100,
            dynamic_bytes: unfilled_bytes / cache.cell_bits * cache.dynamic_percent / 100,
            dynamic_full_percent: cache.dynamic_full_percent,
            dynamic_gone_percent: 100,
            page_program_ns: flash.page_program_ns / 5,
            page_read_ns: flash.page_read_ns / 2,
        }
    });
    FlashParameters { slc, ..flash }
}

fn apply(ftl: &mut Ftl, one: Use, rng: &mut Rng) {
    let unit_count = u64::from(ftl.geometry.unit_count);
    match one {
        Use::Random { count, span_percent } => {
            let span = (unit_count * span_percent / 100).max(1);
            (0..count).for_each(|_| ftl.write_at_once(rng.below(span) as Unit));
        }
        Use::Sequential { from_percent, count } => {
            let from = unit_count * from_percent / 100;
            (0..count).for_each(|index| ftl.write_at_once(((from + index) % unit_count) as Unit));
        }
        Use::Trim { from_percent, count } => {
            let from = unit_count * from_percent / 100;
            for unit in from..(from + count).min(unit_count) {
                ftl.leave_nand(unit as Unit, Location::Unmapped);
            }
        }
        Use::SecureErase => ftl.secure_erase(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn collection_never_runs_dry(
        uses in uses(),
        fill_percent in 0..101_u64,
        over_provisioning_percent in 1..40_u64,
        is_greedy: bool,
        low_percent in 0..51_u64,
        cache in caches(),
        seed: u64,
    ) {
        let gc_victim = if is_greedy { VictimChoice::Greedy } else { VictimChoice::CostBenefit };
        let gc_high_percent = low_percent + 10;
        let parameters = FlashParameters {
            gc_victim,
            gc_low_percent: low_percent,
            gc_high_percent,
            ..parameters(16 << 20, over_provisioning_percent, 64 << 10)
        };
        let parameters = with_cache(parameters, cache);
        let mut ftl = Ftl::new(&parameters, parameters.capacity_bytes);
        let mut rng = Rng::new(seed);
        for unit in 0..u64::from(ftl.geometry.unit_count) * fill_percent / 100 {
            ftl.write_at_once(unit as Unit);
        }
        for one in uses {
            apply(&mut ftl, one, &mut rng);
            ftl.check();
        }
    }

    #[test]
    fn a_busy_drive_never_runs_dry(
        fill_percent in 0..101_u64,
        over_provisioning_percent in 1..40_u64,
        size_units in 1..20_u64,
        read_percent in 0..80_u64,
        write_cache in prop_oneof![Just(WriteCache::Off), Just(WriteCache::Volatile), Just(WriteCache::Protected)],
        trim_units in 0..3_000_u64,
        cache in caches(),
        pause_ms in 0..2_000_u64,
        seed: u64,
    ) {
        let size_bytes = 16 << 20;
        let parameters = FlashParameters {
            write_cache,
            suspend_limit: seed % 3,
            ..parameters(size_bytes, over_provisioning_percent, 64 << 10)
        };
        let parameters = with_cache(parameters, cache);
        let mut flash = Flash::new(parameters, size_bytes, seed);
        flash.set_use(Some(&Ageing { fill_percent, overwrite_percent: 50, seed }));
        let mut driver = VirtualTime::new(flash);
        let write = ClosedLoop {
            read_percent,
            size_bytes: size_units * 2_048,
            queue_depth: 8,
            span_bytes: size_bytes,
            request_count: 3_000,
            seed,
            ..ClosedLoop::default()
        };
        write.run(&mut driver);
        let trim_bytes = trim_units * UNIT_BYTES;
        driver.submit(Request {
            id: RequestId(u64::MAX),
            operation: Operation::Discard,
            offset_bytes: 0,
            size_bytes: trim_bytes,
            force_unit_access: false,
        });
        driver.wait();
        // Long enough for the cache to be folded in part.
        driver.sleep(pause_ms * MILLISECOND);
        let measured = write.run(&mut driver);
        prop_assert_eq!(measured.samples.len(), 3_000);
        let now = driver.now();
        driver.device_mut().ftl.check();
        driver.device_mut().power_cut(now);
        driver.device_mut().ftl.check();
        let stream = ClosedLoop { order: Order::Sequential, ..write };
        prop_assert_eq!(stream.run(&mut driver).samples.len(), 3_000);
        prop_assert!(driver.wait().is_none());
        driver.device_mut().ftl.check();
    }
}

/// A full drive after three turns of random overwrites.
fn aged(parameters: &FlashParameters) -> VirtualTime<Flash> {
    let mut flash = Flash::new(parameters.clone(), parameters.capacity_bytes, 1);
    flash.set_use(Some(&Ageing { fill_percent: 100, overwrite_percent: 300, seed: 5 }));
    VirtualTime::new(flash)
}

fn overwrite(parameters: &FlashParameters) -> ClosedLoop {
    ClosedLoop {
        read_percent: 0,
        queue_depth: 16,
        span_bytes: parameters.capacity_bytes,
        request_count: 60_000,
        seed: 11,
        ..ClosedLoop::default()
    }
}

#[test]
fn a_steady_drive_writes_at_the_rate_of_its_dies_over_its_amplification() {
    for percent in [10, 28, 100] {
        let parameters = parameters(256 << 20, percent, 512 << 10);
        let mut driver = aged(&parameters);
        let rate = overwrite(&parameters).run(&mut driver).per_second(Operation::Write);
        let counters = driver.device().counters();
        let amplification = counters.nand_write_bytes as f64 / counters.write_bytes as f64;
        let theory = write_amplification_in_theory(percent as f64 / 100.0);
        assert!((amplification / theory - 1.0).abs() < 0.08, "{percent} %: {amplification} against {theory}");
        // Per program of two units: moved ones cost two page reads and twice the transfer; erases the rest.
        let (transfer_us, program_us, move_us) = (20.48, 500.0, 2.0 * 50.0 + 2.0 * 20.48 + 500.0);
        let erase_us = 2_000.0 / 64.0 * amplification;
        let busy_us = (transfer_us + program_us + move_us * (amplification - 1.0) + erase_us) / 2.0;
        let expected = 4.0 * 1e6 / busy_us;
        assert!((rate / expected - 1.0).abs() < 0.1, "{percent} %: {rate} against {expected}");
    }
}

#[test]
fn a_fresh_drive_writes_faster_than_a_used_one() {
    let parameters = parameters(256 << 20, 10, 512 << 10);
    let fresh = overwrite(&parameters)
        .run(&mut VirtualTime::new(Flash::new(parameters.clone(), parameters.capacity_bytes, 1)))
        .per_second(Operation::Write);
    let used = overwrite(&parameters).run(&mut aged(&parameters)).per_second(Operation::Write);
    assert!(fresh > 4.0 * used, "{fresh} against {used}");
}

#[test]
fn trim_brings_a_used_drive_back() {
    let parameters = parameters(256 << 20, 10, 512 << 10);
    let mut driver = aged(&parameters);
    driver.submit(Request {
        id: RequestId(u64::MAX),
        operation: Operation::Discard,
        offset_bytes: 0,
        size_bytes: parameters.capacity_bytes,
        force_unit_access: false,
    });
    driver.wait();
    let before = driver.device().counters();
    overwrite(&parameters).run(&mut driver);
    let after = driver.device().counters();
    assert!(
        before.most_erases > 1 && after.most_erases >= before.most_erases,
        "a format does not reset wear"
    );
    assert_eq!(after.nand_moved_bytes, before.nand_moved_bytes);
}

#[test]
fn a_secure_erase_empties_the_map_and_keeps_the_wear() {
    let parameters = parameters(64 << 20, 10, 64 << 10);
    let mut driver = aged(&parameters);
    let before = driver.device().counters();
    driver.device_mut().set_use(None);
    assert!(driver.device().counters().erases > before.erases);
    overwrite(&parameters).run(&mut driver);
    driver.device().ftl.check();
}

#[test]
fn a_long_pause_brings_back_some_speed() {
    let parameters = FlashParameters { gc_high_percent: 50, ..parameters(256 << 20, 28, 512 << 10) };
    let burst = ClosedLoop { request_count: 3_000, ..overwrite(&parameters) };
    let mut driver = aged(&parameters);
    let used = burst.run(&mut driver).per_second(Operation::Write);
    driver.sleep(10 * SECOND);
    let rested = burst.run(&mut driver).per_second(Operation::Write);
    assert!(rested > 1.5 * used, "{rested} against {used}");
}

/// Mean latency of a lone read beside writes, in microseconds.
fn read_beside_writes_us(suspend_limit: u64) -> f64 {
    let parameters =
        FlashParameters { suspend_limit, suspend_ns: 10 * MICROSECOND, ..parameters(64 << 20, 28, 64 << 10) };
    let mut driver = VirtualTime::new(Flash::new(parameters.clone(), parameters.capacity_bytes, 1));
    let mixed = ClosedLoop { read_percent: 50, queue_depth: 2, ..overwrite(&parameters) };
    mixed.run(&mut driver).mean_ns(Operation::Read) / 1_000.0
}

#[test]
fn suspending_programs_makes_reads_beside_writes_faster() {
    let latencies = [0, 1, 8].map(read_beside_writes_us);
    assert!(latencies[1] < 0.8 * latencies[0] && latencies[2] <= latencies[1], "{latencies:?}");
}

#[test]
fn one_seed_ages_a_drive_in_one_way() {
    let parameters = parameters(64 << 20, 10, 64 << 10);
    let rate = || overwrite(&parameters).run(&mut aged(&parameters));
    assert_eq!(rate(), rate());
}
