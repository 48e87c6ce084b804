//! The performance of a cloud volume, as arithmetic.

use super::*;
use crate::closed_loop::{ClosedLoop, Driver, Measured, Order};
use crate::device::Device;
use crate::request::RequestId;
use crate::time::{MICROSECOND, MILLISECOND};
use crate::virtual_time::VirtualTime;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A provisioned rate, no bursts, constant latency, an unlimited link.
fn plain() -> VolumeParameters {
    VolumeParameters {
        capacity_bytes: 100 * GIBIBYTE,
        iops_per_gib: 0,
        iops_minimum: 3_000,
        iops_maximum: 3_000,
        burst_iops: 0,
        burst_credits: 0,
        bytes_per_s: 125 * MIB,
        burst_bytes_per_s: 0,
        burst_credit_bytes: 0,
        initial_credit_percent: 100,
        window_ns: 0,
        operation_bytes: 256 * KIB,
        merges_sequential: false,
        link_bytes_per_s: 1_000_000_000_000_000,
        read_latency: LatencyQuantiles::constant(MILLISECOND),
        write_latency: LatencyQuantiles::constant(MILLISECOND),
        flush_ns: 200 * MICROSECOND,
    }
}

/// A device that takes this long for everything, for any number of requests at once.
pub(crate) fn constant(size_bytes: u64, nanoseconds: u64) -> Box<dyn Device> {
    let parameters = VolumeParameters {
        capacity_bytes: size_bytes,
        iops_minimum: 1_000_000_000,
        iops_maximum: 1_000_000_000,
        bytes_per_s: 1_000_000_000_000,
        window_ns: SECOND,
        operation_bytes: 1 << 30,
        read_latency: LatencyQuantiles::constant(nanoseconds),
        write_latency: LatencyQuantiles::constant(nanoseconds),
        flush_ns: nanoseconds,
        ..plain()
    };
    Box::new(Volume::new(parameters, size_bytes, 1).unwrap())
}

/// Amazon EBS gp2: 3 operations/s per GiB, 100 to 16,000; bursts of 3,000, but from a hundredth of the 5.4
/// million credits, so that the tests are short.
fn gp2(gib: u64) -> VolumeParameters {
    VolumeParameters {
        capacity_bytes: gib * GIBIBYTE,
        iops_per_gib: 3,
        iops_minimum: 100,
        iops_maximum: 16_000,
        burst_iops: 3_000,
        burst_credits: 54_000,
        bytes_per_s: 250 * MIB,
        ..plain()
    }
}

fn volume(parameters: VolumeParameters) -> VirtualTime<Volume> {
    VirtualTime::new(Volume::new(parameters, GIBIBYTE, 1).unwrap())
}

fn run(parameters: VolumeParameters, workload: ClosedLoop) -> Measured {
    workload.run(&mut volume(parameters))
}

fn load(size_bytes: u64, queue_depth: u64, request_count: u64) -> ClosedLoop {
    ClosedLoop { size_bytes, queue_depth, request_count, ..ClosedLoop::default() }
}

#[test]
fn alone_a_request_takes_its_latency() {
    let measured = run(plain(), load(16 * KIB, 1, 100));
    assert!(measured.latencies_ns(Operation::Read).all(|latency_ns| latency_ns == MILLISECOND));
}

#[test]
fn the_bought_rate_is_given_and_no_more() {
    let measured = run(plain(), load(4 * KIB, 64, 30_001));
    assert_eq!(measured.elapsed_ns, 10 * SECOND + MILLISECOND);
}

#[test]
fn the_throughput_cap_bounds_large_requests() {
    let measured = run(plain(), load(256 * KIB, 16, 5_001));
    // 500 a second: far below 3,000. The first one is paid for by the second.
    let expected_ns = 5_000 * 256 * KIB * SECOND / (125 * MIB) + MILLISECOND;
    assert!(measured.elapsed_ns.abs_diff(expected_ns) < 10, "{} {expected_ns}", measured.elapsed_ns);
}

#[test]
fn a_request_counts_once_per_unit() {
    let parameters = VolumeParameters { bytes_per_s: 1 << 39, ..plain() };
    let measured = run(parameters, load(MIB, 16, 3_001));
    // Four operations each: 750 a second.
    assert!(measured.elapsed_ns.abs_diff(4 * SECOND + MILLISECOND) < 10, "{}", measured.elapsed_ns);
}

#[test]
fn sequential_requests_in_flight_count_together() {
    let parameters = VolumeParameters { merges_sequential: true, bytes_per_s: 1 << 39, ..plain() };
    let sequential = ClosedLoop { order: Order::Sequential, ..load(32 * KIB, 64, 24_000) };
    let merged = run(parameters.clone(), sequential.clone()).per_second(Operation::Read);
    assert!((merged / 24_000.0 - 1.0).abs() < 0.01, "{merged}: eight to an operation");
    let random = run(parameters.clone(), load(32 * KIB, 64, 24_000)).per_second(Operation::Read);
    assert!((random / 3_000.0 - 1.0).abs() < 0.01, "{random}");
    // One at a time, so there is no request to merge with.
    let alone = run(parameters, ClosedLoop { queue_depth: 1, ..sequential }).per_second(Operation::Read);
    assert!((alone / 1_000.0 - 1.0).abs() < 0.01, "{alone}");
}

#[test]
fn the_baseline_follows_the_size_within_its_bounds() {
    let baselines = [10, 33, 34, 100, 1_000, 5_334, 16_000].map(|gib| gp2(gib).baseline_iops());
    assert_eq!(baselines, [100, 100, 102, 300, 3_000, 16_000, 16_000]);
}

#[test]
fn credits_last_for_their_number_over_burst_less_baseline() {
    // 100 GiB: 54,000 / (3,000 - 300) = 20 s at 3,000, then 300 a second.
    let mut driver = volume(gp2(100));
    let burst = load(4 * KIB, 64, 60_000).run(&mut driver);
    assert!(burst.elapsed_ns.abs_diff(20 * SECOND) < SECOND / 10, "{}", burst.elapsed_ns);
    let after = load(4 * KIB, 64, 30_000).run(&mut driver);
    assert!(after.elapsed_ns.abs_diff(100 * SECOND) < SECOND / 10, "{}", after.elapsed_ns);
    assert!(driver.device().credits(driver.now()).unwrap() < 100);
}

#[test]
fn credits_come_back_at_the_baseline_rate() {
    let mut driver = volume(VolumeParameters { initial_credit_percent: 0, ..gp2(100) });
    driver.sleep(60 * SECOND);
    assert_eq!(driver.device().credits(driver.now()), Some(60 * 300));
    // 18,000 credits last 18,000 / 2,700 s at 3,000.
    let burst = load(4 * KIB, 64, 20_000).run(&mut driver);
    assert!(burst.elapsed_ns.abs_diff(20_000 * SECOND / 3_000) < SECOND / 100, "{}", burst.elapsed_ns);
}

#[test]
fn a_volume_whose_baseline_is_above_the_burst_has_no_credits() {
    let mut driver = volume(gp2(2_000));
    let measured = load(4 * KIB, 64, 60_001).run(&mut driver);
    assert_eq!(driver.device().credits(driver.now()), None);
    let expected_ns = 10 * SECOND + MILLISECOND;
    assert!(measured.elapsed_ns.abs_diff(expected_ns) < 10, "{}", measured.elapsed_ns);
}

#[test]
fn throughput_bursts_from_credits_of_its_own() {
    // As an Azure P10: 100 MB/s, bursts of 170 MB/s, but for 18 s instead of 30 minutes.
    let parameters = VolumeParameters {
        bytes_per_s: 100_000_000,
        burst_bytes_per_s: 170_000_000,
        burst_credit_bytes: 70_000_000 * 18,
        ..plain()
    };
    let mut driver = volume(parameters);
    let burst = load(250 * KIB, 16, 170_000_000 * 18 / (250 * KIB)).run(&mut driver);
    assert!(burst.elapsed_ns.abs_diff(18 * SECOND) < SECOND / 50, "{}", burst.elapsed_ns);
    let after = load(250 * KIB, 16, 100_000_000 * 10 / (250 * KIB)).run(&mut driver);
    assert!(after.elapsed_ns.abs_diff(10 * SECOND) < SECOND / 50, "{}", after.elapsed_ns);
}

#[test]
fn within_the_window_requests_pass_at_once() {
    let parameters = VolumeParameters { window_ns: SECOND, ..plain() };
    let measured = run(parameters, load(4 * KIB, 3_000, 3_000));
    assert_eq!(measured.elapsed_ns, MILLISECOND);
}

#[test]
fn the_link_adds_the_time_of_the_bytes() {
    let parameters = VolumeParameters { link_bytes_per_s: 100 * MIB, ..plain() };
    let measured = run(parameters, load(64 * KIB, 1, 10));
    let expected_ns = MILLISECOND + 64 * KIB * SECOND / (100 * MIB);
    assert!(measured.latencies_ns(Operation::Read).all(|latency_ns| latency_ns == expected_ns));
}

#[test]
fn the_distribution_has_the_quantiles_it_was_given() {
    let quantiles =
        LatencyQuantiles { minimum_ns: 300_000, median_ns: 600_000, p99_ns: 1_500_000, p999_ns: 9_000_000 };
    let sampler = Sampler::new(quantiles);
    let mut rng = Rng::new(5);
    let mut drawn: Vec<u64> = (0..1_000_000).map(|_| sampler.draw(&mut rng)).collect();
    drawn.sort_unstable();
    assert!(drawn[0] >= quantiles.minimum_ns);
    let checks = [(500_000, 600_000), (990_000, 1_500_000), (999_000, 9_000_000)];
    for (rank, expected_ns) in checks {
        // The number of draws beyond a quantile has a standard error of its square root. The slack is three
        // standard errors.
        let beyond = 1_000_000.0 - rank as f64;
        let slack = (3.0 * (beyond * rank as f64 / 1e6).sqrt()) as usize;
        let (low, high) = (drawn[rank - slack], drawn[rank + slack]);
        assert!(low <= expected_ns && expected_ns <= high, "{rank}: {low} to {high}");
    }
    // A lognormal's quartile: median times (p99 / median) to the power 0.6745 / 2.3263; the table is linear
    // between its points.
    let quartile = 600_000.0 * 2.5_f64.powf(0.674_49 / 2.326_35);
    assert!((drawn[750_000] as f64 / quartile - 1.0).abs() < 0.01, "{} {quartile}", drawn[750_000]);
}

#[test]
fn a_flush_is_a_round_trip_and_nothing_acknowledged_is_lost() {
    let mut driver = volume(plain());
    let request = |id, operation, size_bytes| Request {
        id: RequestId(id),
        operation,
        offset_bytes: 0,
        size_bytes,
        force_unit_access: false,
    };
    driver.submit(request(1, Operation::Flush, 0));
    assert_eq!(driver.wait().unwrap().at.0, 200 * MICROSECOND);
    driver.submit(request(2, Operation::Write, 4_096));
    driver.wait().unwrap();
    driver.submit(request(3, Operation::Write, 4_096));
    let now = driver.now();
    let cut = driver.device_mut().power_cut(now);
    assert_eq!(cut.writes.iter().map(|write| write.id.0).collect::<Vec<_>>(), [3]);
}

#[test]
fn what_waited_when_the_power_failed_costs_nothing_afterwards() {
    let mut driver = volume(plain());
    for id in 0..30_000 {
        driver.submit(Request {
            id: RequestId(id),
            operation: Operation::Write,
            offset_bytes: 0,
            size_bytes: 4_096,
            force_unit_access: false,
        });
    }
    let now = Instant(SECOND);
    let cut = driver.device_mut().power_cut(now);
    driver.sleep(SECOND);
    let lost = cut.writes.iter().filter(|write| write.fate == Fate::Lost).count();
    // Ten seconds' worth was submitted and 3,001 started, three of them in the last millisecond.
    assert!((26_999..=27_002).contains(&lost), "{lost}");
    let measured = load(4 * KIB, 1, 1).run(&mut driver);
    assert!(measured.elapsed_ns <= MILLISECOND + SECOND / 3_000 + 1, "{}", measured.elapsed_ns);
}

#[test]
fn what_no_volume_can_have_is_refused() {
    let tail_below = LatencyQuantiles { p99_ns: 1, ..LatencyQuantiles::constant(10) };
    let sentence = |parameters: VolumeParameters| parameters.validate().unwrap_err().to_string();
    assert_eq!(
        sentence(VolumeParameters { read_latency: tail_below, ..plain() }),
        "`read_latency_p99` is 1 ns, must be at least `read_latency_median`, 10 ns"
    );
    assert_eq!(
        sentence(VolumeParameters { iops_minimum: 4_000, ..plain() }),
        "`iops_maximum` is 3000/s, must be at least `iops_minimum`, 4000/s"
    );
}
