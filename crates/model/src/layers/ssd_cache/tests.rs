//! The benefit of a fast device in front of a slow one, as arithmetic.

use super::*;
use crate::closed_loop::{ClosedLoop, Driver};
use crate::devices::volume::tests::constant;
use crate::disk;
use crate::request::RequestId;
use crate::time::{MICROSECOND, MILLISECOND, SECOND};
use crate::virtual_time::VirtualTime;

pub(crate) const KIB: u64 = 1 << 10;
pub(crate) const MIB: u64 = 1 << 20;
pub(crate) const SIZE_BYTES: u64 = 1 << 30;
pub(crate) const FAST_NS: u64 = 100 * MICROSECOND;
pub(crate) const SLOW_NS: u64 = 5 * MILLISECOND;

/// 1,024 blocks of 16 KiB.
fn parameters(write_policy: WritePolicy) -> SsdCacheParameters {
    SsdCacheParameters {
        block_bytes: 16 * KIB,
        cache_bytes: Some(16 * MIB),
        write_policy,
        promotion: Promotion::Always,
        sequential_cutoff_bytes: 0,
        writeback_percent: 10,
        writeback_bytes_per_s: MIB,
        dirty_limit_percent: 70,
        keeps_clean_blocks: true,
    }
}

fn ssd_cache(parameters: SsdCacheParameters) -> VirtualTime<SsdCache> {
    let (fast, slow) = (constant(64 * MIB, FAST_NS), constant(SIZE_BYTES, SLOW_NS));
    VirtualTime::new(SsdCache::new(parameters, fast, slow).unwrap())
}

pub(crate) fn request(operation: Operation, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(7), operation, offset_bytes, size_bytes, force_unit_access: false }
}

pub(crate) fn latency_ns<D: Device>(
    driver: &mut VirtualTime<D>,
    operation: Operation,
    offset_bytes: u64,
    size_bytes: u64,
) -> u64 {
    let begin = driver.now();
    driver.submit(request(operation, offset_bytes, size_bytes));
    driver.wait().unwrap().at - begin
}

fn read_ns(driver: &mut VirtualTime<SsdCache>, block: u64) -> u64 {
    latency_ns(driver, Operation::Read, block * 16 * KIB, 16 * KIB)
}

fn write_ns(driver: &mut VirtualTime<SsdCache>, block: u64) -> u64 {
    latency_ns(driver, Operation::Write, block * 16 * KIB, 16 * KIB)
}

/// Lets background work continue.
pub(crate) fn settle<D: Device>(driver: &mut VirtualTime<D>, nanoseconds: u64) {
    let until = driver.now() + nanoseconds;
    while let Some(at) = driver.device().poll_at().filter(|&at| at <= until) {
        assert_eq!(driver.device_mut().poll(at), None);
    }
    driver.sleep(nanoseconds);
}

#[test]
fn the_second_read_comes_from_the_fast_device() {
    let mut driver = ssd_cache(parameters(WritePolicy::Around));
    assert_eq!(read_ns(&mut driver, 3), SLOW_NS);
    settle(&mut driver, FAST_NS);
    assert_eq!(read_ns(&mut driver, 3), FAST_NS);
}

#[test]
fn without_promotion_reads_stay_slow() {
    let mut driver =
        ssd_cache(SsdCacheParameters { promotion: Promotion::Never, ..parameters(WritePolicy::Around) });
    for _ in 0..3 {
        assert_eq!(read_ns(&mut driver, 3), SLOW_NS);
        settle(&mut driver, SECOND);
    }
}

#[test]
fn promotion_at_a_rate_takes_a_seconds_worth_and_what_comes_after() {
    let promotion = Promotion::AtRate { bytes_per_s: 2 * MIB };
    let mut driver = ssd_cache(SsdCacheParameters { promotion, ..parameters(WritePolicy::Around) });
    // A burst of 128 blocks. 200 reads of 5 ms take one second, which allows 128 more.
    for block in 0..400 {
        read_ns(&mut driver, block);
    }
    settle(&mut driver, FAST_NS);
    let valid = (0..400).filter(|&block| driver.device().map.find(block).is_some()).count();
    // All blocks of the first second, then 128 a second.
    assert!((382..=386).contains(&valid), "{valid}");
}

#[test]
fn a_cache_of_half_the_span_hits_half_of_the_time() {
    let mut driver = ssd_cache(parameters(WritePolicy::Around));
    let workload = ClosedLoop {
        size_bytes: 16 * KIB,
        span_bytes: 32 * MIB,
        request_count: 10_000,
        ..ClosedLoop::default()
    };
    workload.run(&mut driver);
    let measured = workload.run(&mut driver);
    let hits = measured.latencies_ns(Operation::Read).filter(|&latency_ns| latency_ns == FAST_NS).count();
    // 5,000 expected, with a standard deviation of 50 and a little for fills in flight.
    assert!((4_850..=5_150).contains(&hits), "{hits}");
}

#[test]
fn write_back_completes_on_the_fast_device_and_flushes_both() {
    let mut driver = ssd_cache(parameters(WritePolicy::Back));
    assert_eq!(write_ns(&mut driver, 3), FAST_NS);
    assert_eq!(driver.device().dirty_bytes(), 16 * KIB);
    assert_eq!(read_ns(&mut driver, 3), FAST_NS);
    assert_eq!(driver.device().fast_records.completed.len(), 1);
    assert_eq!(latency_ns(&mut driver, Operation::Flush, 0, 0), SLOW_NS);
    assert_eq!(driver.device().fast_records.completed.len(), 0);
    assert_eq!(driver.device().base.below[SLOW].counters().writes, 0);
}

#[test]
fn a_flush_of_write_back_waits_for_the_fast_device_too() {
    let (fast, slow) = (constant(64 * MIB, SLOW_NS), constant(SIZE_BYTES, FAST_NS));
    let mut driver = VirtualTime::new(SsdCache::new(parameters(WritePolicy::Back), fast, slow).unwrap());
    assert_eq!(latency_ns(&mut driver, Operation::Flush, 0, 0), SLOW_NS);
}

#[test]
fn write_through_completes_on_the_slow_device_and_is_cached() {
    let mut driver = ssd_cache(parameters(WritePolicy::Through));
    assert_eq!(write_ns(&mut driver, 3), SLOW_NS);
    assert_eq!(read_ns(&mut driver, 3), FAST_NS);
    assert_eq!(driver.device().dirty_bytes(), 0);
}

#[test]
fn write_around_completes_on_the_slow_device_and_drops_the_copy() {
    let mut driver = ssd_cache(parameters(WritePolicy::Around));
    read_ns(&mut driver, 3);
    settle(&mut driver, FAST_NS);
    assert_eq!(write_ns(&mut driver, 3), SLOW_NS);
    assert_eq!(read_ns(&mut driver, 3), SLOW_NS);
}

#[test]
fn part_of_a_block_is_written_without_reading_the_rest() {
    let mut driver = ssd_cache(parameters(WritePolicy::Back));
    assert_eq!(latency_ns(&mut driver, Operation::Write, 4 * KIB, 4 * KIB), FAST_NS);
    assert_eq!(latency_ns(&mut driver, Operation::Read, 4 * KIB, 4 * KIB), FAST_NS);
    // The slow device serves the parts before and after it: two reads in parallel.
    let before = driver.device().base.below[SLOW].counters().reads;
    assert_eq!(latency_ns(&mut driver, Operation::Read, 0, 16 * KIB), SLOW_NS);
    assert_eq!(driver.device().base.below[SLOW].counters().reads - before, 2);
    settle(&mut driver, FAST_NS);
    assert_eq!(latency_ns(&mut driver, Operation::Read, 0, 16 * KIB), FAST_NS);
}

#[test]
fn a_long_stream_bypasses_the_cache() {
    let cutoff = SsdCacheParameters { sequential_cutoff_bytes: MIB, ..parameters(WritePolicy::Back) };
    let mut driver = ssd_cache(cutoff);
    write_ns(&mut driver, 90);
    let latencies: Vec<u64> = (0..100).map(|block| write_ns(&mut driver, block)).collect();
    // 63 blocks are less than a mebibyte. Dirty blocks are written in place.
    let is_fast = |block: usize| block < 63 || block == 90;
    for (block, &latency_ns) in latencies.iter().enumerate() {
        assert_eq!(latency_ns, if is_fast(block) { FAST_NS } else { SLOW_NS }, "block {block}");
    }
    // Another place is another stream.
    assert_eq!(write_ns(&mut driver, 5_000), FAST_NS);
}

#[test]
fn above_the_limit_writes_go_to_the_slow_device() {
    let no_drain = SsdCacheParameters { writeback_percent: 70, ..parameters(WritePolicy::Back) };
    let mut driver = ssd_cache(no_drain);
    let fast = (0..1_000).filter(|&number| write_ns(&mut driver, number * 3) == FAST_NS).count();
    assert_eq!(fast, 1_024 * 70 / 100);
}

#[test]
fn the_background_writer_drains_at_its_rate_down_to_its_share() {
    let mut driver = ssd_cache(parameters(WritePolicy::Back));
    for block in 0..600 {
        write_ns(&mut driver, block * 3);
    }
    // 102 blocks are a tenth. The writes took 60 ms, and 64 blocks a second are drained.
    settle(&mut driver, 3 * SECOND);
    let dirty = driver.device().dirty_bytes() / (16 * KIB);
    let expected = 600.0 - 64.0 * 3.06;
    assert!((dirty as f64 - expected).abs() <= 65.0, "{dirty}: a group is clean when its flush is done");
    settle(&mut driver, 20 * SECOND);
    assert_eq!(driver.device().dirty_bytes(), 102 * 16 * KIB);
    let counters = driver.device().base.below[SLOW].counters();
    assert_eq!(counters.writes, 498);
    assert!((8..=9).contains(&counters.flushes), "{counters:?}");
}

#[test]
fn dirty_data_outlives_a_power_cut_and_a_forgetful_map_starts_cold() {
    for keeps_clean_blocks in [true, false] {
        let mut driver =
            ssd_cache(SsdCacheParameters { keeps_clean_blocks, ..parameters(WritePolicy::Back) });
        write_ns(&mut driver, 1);
        read_ns(&mut driver, 2);
        settle(&mut driver, FAST_NS);
        let now = driver.now();
        assert_eq!(driver.device_mut().power_cut(now).writes, []);
        assert_eq!(read_ns(&mut driver, 1), FAST_NS);
        assert_eq!(read_ns(&mut driver, 2), if keeps_clean_blocks { FAST_NS } else { SLOW_NS });
    }
}

#[test]
fn a_discard_forgets_what_is_dirty() {
    let mut driver = ssd_cache(parameters(WritePolicy::Back));
    write_ns(&mut driver, 1);
    assert_eq!(latency_ns(&mut driver, Operation::Discard, 0, 64 * KIB), SLOW_NS);
    assert_eq!(driver.device().dirty_bytes(), 0);
    assert_eq!(read_ns(&mut driver, 1), SLOW_NS);
}

#[test]
fn what_no_ssd_cache_can_be_is_refused() {
    let sentence = |parameters| {
        let (fast, slow) = (constant(64 * MIB, 1), constant(SIZE_BYTES, 1));
        SsdCache::new(parameters, fast, slow).unwrap_err().to_string()
    };
    let valid = parameters(WritePolicy::Back);
    assert_eq!(
        sentence(SsdCacheParameters { cache_bytes: Some(65 * MIB), ..valid }),
        "`cache` is 65 MiB, must be 16 KiB to 64 MiB"
    );
    assert_eq!(
        sentence(SsdCacheParameters { block_bytes: 12 * KIB, ..valid }),
        "`block` is 12 KiB, must be a power of two, 512 B to 64 KiB"
    );
    assert_eq!(
        sentence(SsdCacheParameters { dirty_limit_percent: 5, ..valid }),
        "`dirty_limit` is 5 %, must be at least `writeback`, 10 %"
    );
}

#[test]
fn a_drain_that_the_slow_device_may_lose_is_still_dirty() {
    let mut lost = 0;
    for seed in 0..60 {
        let drains = SsdCacheParameters { writeback_bytes_per_s: 64 * MIB, ..parameters(WritePolicy::Back) };
        let slow = Box::new(disk::Disk::new(disk::tests::parameters(), SIZE_BYTES, seed));
        let mut driver = VirtualTime::new(SsdCache::new(drains, constant(64 * MIB, FAST_NS), slow).unwrap());
        let workload = ClosedLoop {
            read_percent: 0,
            size_bytes: 16 * KIB,
            queue_depth: 4,
            span_bytes: 24 * MIB,
            request_count: 150 + 10 * seed,
            seed,
            ..ClosedLoop::default()
        };
        workload.run(&mut driver);
        settle(&mut driver, seed * 10 * MILLISECOND);
        let now = driver.now();
        let cache = driver.device_mut();
        for write in cache.base.below[SLOW].power_cut(now) {
            if cache.slow_records.in_host_terms(&write, 32).is_empty() {
                let start = write.offset_bytes / SECTOR_BYTES;
                for part in cache.block_parts(start, start + write.size_bytes / SECTOR_BYTES) {
                    let dirty = cache.map.find(part.block).map_or(0, |index| cache.map.get(index).dirty);
                    assert_eq!(part.sectors & !dirty, 0, "seed {seed}: {write:?} is on neither device");
                }
                lost += 1;
            }
        }
    }
    assert!(lost > 100, "{lost}: nothing was tested");
}
