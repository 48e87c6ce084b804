//! Deterioration under hours of random writes, and recovery after a pause, in virtual time.
//!
//! Published for flash (Matsunobu 2010, slide 15): writes start at the fastest rate, fall towards the slowest
//! once every block must be erased before it is written, and recover after a long pause. The amount of
//! writing until then depends on the drive's size. A run that uses up its budget early reports so.

use serde::{Deserialize, Serialize};
use spindle_model::{ClosedLoop, Device, Driver as _, Operation, SECOND, VirtualTime};
use spindle_stats::snia_steady_from;
use spindle_stats::steady::SNIA_ROUNDS;

const UNIT_BYTES: u64 = 16 << 10;
const IODEPTHS: u64 = 16;
/// Points on the curve before the pause.
const POINT_COUNT: u64 = 60;
/// Points after the pause.
const RECOVERY_COUNT: u64 = 6;
pub const HOUR_NS: u64 = 3_600 * SECOND;

/// Limits of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub duration_ns: u64,
    /// Most writes to simulate. It bounds the real time of the run.
    pub requests: u64,
    /// Length of the pause.
    pub idle_ns: u64,
}

impl Limits {
    pub const QUICK: Limits = Limits { duration_ns: 3 * HOUR_NS, requests: 1_500_000, idle_ns: HOUR_NS };
    /// Matsunobu's curves (slide 36) cover eight hours.
    pub const FULL: Limits = Limits { duration_ns: 8 * HOUR_NS, requests: 60_000_000, idle_ns: HOUR_NS };
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deterioration {
    #[serde(alias = "unit_bytes")]
    pub block_bytes: u64,
    #[serde(alias = "threads")]
    pub iodepth: u64,
    pub points: Vec<Point>,
    /// The first points after the pause, on the same axes.
    pub recovery: Vec<Point>,
    pub idle_s: f64,
    /// The budget of requests was used up before the time was over.
    pub cut_short: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Time since the first write, at the end of this point's interval.
    pub at_s: f64,
    pub written_bytes: u64,
    pub per_second: f64,
}

impl Deterioration {
    pub fn fastest_per_s(&self) -> f64 {
        self.points.iter().map(|point| point.per_second).fold(0.0, f64::max)
    }

    pub fn slowest_per_s(&self) -> f64 {
        self.points.iter().map(|point| point.per_second).fold(f64::INFINITY, f64::min)
    }

    /// From which point to the end of the writes each five are steady by SNIA's rule; `None` if the last five
    /// are not. The first five of a fresh drive may be as level, before its garbage collection begins.
    pub fn steady_from(&self) -> Option<&Point> {
        let rates: Vec<f64> = self.points.iter().map(|point| point.per_second).collect();
        let is_steady = |rounds: &[f64]| snia_steady_from(rounds) == Some(0);
        let steady = rates.windows(SNIA_ROUNDS).rev().take_while(|rounds| is_steady(rounds)).count();
        (steady > 0).then(|| &self.points[rates.len() - SNIA_ROUNDS + 1 - steady])
    }

    /// The rate right after the pause.
    pub fn recovered_per_s(&self) -> f64 {
        self.recovery.first().map_or(0.0, |point| point.per_second)
    }
}

/// Random writes on a fresh device, a pause, and writes again. `None` for a device that takes no time or is
/// too small.
pub fn measure(device: Box<dyn Device>, seed: u64, limits: Limits) -> Option<Deterioration> {
    let span_bytes = device.size_bytes();
    if span_bytes < UNIT_BYTES {
        return None;
    }
    let mut driver = VirtualTime::new(device);
    let mut written_bytes = 0;
    let started_at = driver.now();
    let mut point = |driver: &mut VirtualTime<Box<dyn Device>>, number: u64| {
        let window = ClosedLoop {
            read_percent: 0,
            size_bytes: UNIT_BYTES,
            queue_depth: IODEPTHS,
            span_bytes,
            request_count: limits.requests / POINT_COUNT,
            time_limit_ns: limits.duration_ns / POINT_COUNT,
            seed: seed.wrapping_add(number),
            ..ClosedLoop::default()
        };
        let measured = window.run(driver);
        written_bytes += measured.count(Operation::Write) * UNIT_BYTES;
        let at_s = (driver.now() - started_at) as f64 / 1e9;
        (measured.elapsed_ns > 0).then_some(Point {
            at_s,
            written_bytes,
            per_second: measured.per_second(Operation::Write),
        })
    };
    let points: Option<Vec<Point>> = (0..POINT_COUNT).map(|number| point(&mut driver, number)).collect();
    let points = points?;
    driver.sleep(limits.idle_ns);
    let recovery: Option<Vec<Point>> =
        (POINT_COUNT..POINT_COUNT + RECOVERY_COUNT).map(|number| point(&mut driver, number)).collect();
    // Each point drains its last requests, so the total time falls slightly short of the limit.
    let cut_short = points.last().is_some_and(|last| last.at_s * 1e9 < 0.99 * limits.duration_ns as f64);
    Some(Deterioration {
        block_bytes: UNIT_BYTES,
        iodepth: IODEPTHS,
        points,
        recovery: recovery?,
        idle_s: limits.idle_ns as f64 / 1e9,
        cut_short,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackSpec;

    fn check(profile: &str, limits: Limits) -> Option<Deterioration> {
        measure(StackSpec::of_name(profile, Some("1 GiB"), "none").unwrap().build(1), 1, limits)
    }

    #[test]
    fn a_disk_does_not_deteriorate() {
        let limits = Limits { duration_ns: HOUR_NS / 4, requests: 1_000_000, idle_ns: HOUR_NS };
        let curve = check("hdd-7200", limits).unwrap();
        assert!(!curve.cut_short);
        let (first, last) = (&curve.points[1], curve.points.last().unwrap());
        assert!((last.per_second / first.per_second - 1.0).abs() < 0.1, "{first:?} {last:?}");
        assert!(curve.recovery[0].at_s > last.at_s + curve.idle_s);
    }

    #[test]
    fn a_budget_that_ends_first_is_admitted() {
        let limits = Limits { duration_ns: HOUR_NS, requests: 60_000, idle_ns: HOUR_NS };
        let curve = check("x25m-80", limits).unwrap();
        assert!(curve.cut_short);
        assert_eq!(curve.points.last().unwrap().written_bytes, 60_000 * UNIT_BYTES);
    }

    #[test]
    fn the_steady_end_of_a_curve_is_not_its_level_beginning() {
        let check = |rates: &[f64], expect: Option<f64>| {
            let point = |(index, rate): (usize, &f64)| Point {
                at_s: index as f64,
                written_bytes: 0,
                per_second: *rate,
            };
            let curve = Deterioration {
                block_bytes: UNIT_BYTES,
                iodepth: IODEPTHS,
                points: rates.iter().enumerate().map(point).collect(),
                recovery: Vec::new(),
                idle_s: 0.0,
                cut_short: false,
            };
            assert_eq!(curve.steady_from().map(|point| point.at_s), expect, "{rates:?}");
        };
        check(&[100.0; 8], Some(0.0));
        check(&[100.0, 100.0, 100.0, 100.0, 100.0, 60.0, 40.0, 31.0, 30.0, 30.0, 30.0, 30.0], Some(7.0));
        check(&[100.0, 100.0, 100.0, 100.0, 100.0, 90.0, 70.0, 50.0], None);
        check(&[100.0; 4], None);
    }

    #[test]
    fn a_device_that_takes_no_time_has_no_curve() {
        assert_eq!(check("null", Limits { duration_ns: HOUR_NS, requests: 600, idle_ns: 0 }), None);
    }
}
