//! Whether a load that goes on has become steady, asked again and again while it runs.
//!
//! The rule looks at the last [`LONGEST`] values, one per second, once there are [`SHORTEST`]. It holds if
//! MSER-5 cuts them in their first half ([`crate::steady`]), the line fitted to them changes by at most
//! [`TOLERANCE`] of their mean or by no more than its own noise ([`mod@crate::drift`]), and their last
//! quarter is on the level of the rest. A series whose values all lie within [`TOLERANCE`] of each other holds
//! in any case: without noise MSER-5 would find the smallest trend.
//!
//! Each part is needed. MSER-5 alone, asked every five seconds, ends every ramp of 5 minutes in its first
//! third, because one cut by chance suffices. The line alone misses a bend whose two sides balance. Neither
//! sees a step in the last 25 seconds.
//!
//! # Divergence
//! The rule says when a trend is no longer visible, not that there is none. Seconds until it holds, asked
//! every five seconds: in half and in nine of ten of 400 seeds, and the share that ends while the level of
//! two minutes later differs by more than 10 %. The ramps rise from half of the level to all of it. With 0.7,
//! neighbours correlate by so much.
//!
//! | noise, correlation | level | ramp of 60 s | ramp of 120 s | ramp of 300 s |
//! |---|---|---|---|---|
//! | 2 %, 0 | 60, 60, 0 % | 130, 160, 0 % | 210, 220, 0 % | 365, 380, 0 % |
//! | 10 %, 0 | 60, 65, 0 % | 160, 165, 0 % | 210, 220, 0 % | 365, 380, 5 % |
//! | 10 %, 0.7 | 60, 70, 0 % | 150, 165, 0 % | 195, 220, 9 % | 65, 320, 79 % |
//! | 30 %, 0.7 | 60, 70, 0 % | 70, 135, 0 % | 60, 140, 85 % | 60, 75, 100 % |
//!
//! So noise hides slow ramps. Throughput is noisy, but the levels behind it (dirty pages, checkpoint age)
//! are smooth: a settling that watches both ends when the last of them holds.

use crate::drift::{Drift, drift};
use crate::steady::{BATCH, SNIA_SLOPE, steady_from};
use crate::student::student_t_quantile;
use crate::{CONFIDENCE, mean};

/// The fewest values with an answer.
pub const SHORTEST: usize = 60;

/// Earlier values are forgotten, so that a load that has settled late is seen to have settled.
pub const LONGEST: usize = 120;

/// The largest change of a steady series, as a share of its mean: the bound that SNIA gives the line through
/// the rounds of a raw device.
pub const TOLERANCE: f64 = SNIA_SLOPE;

/// The trend of a series that is not steady: larger than the tolerance, and than its own noise.
pub fn trend(series: &[f64]) -> Option<Drift> {
    drift(series).filter(|drift| drift.exceeds(TOLERANCE))
}

/// Whether the end of a series is steady. False for a series that is too short to say.
pub fn has_settled(series: &[f64]) -> bool {
    let last = &series[series.len().saturating_sub(LONGEST)..];
    let is_steady = || steady_from(last).is_some() && trend(last).is_none() && !has_stepped(last);
    last.len() >= SHORTEST && (is_flat(last) || is_steady())
}

/// Whether the last quarter is on another level than the rest, by more than the tolerance and, with Student's
/// t of pooled means of five, by more than the noise. MSER-5 keeps the last five means in any case, and a
/// line is far from a step, so neither sees one there.
fn has_stepped(values: &[f64]) -> bool {
    let means: Vec<f64> = values.rchunks_exact(BATCH).rev().filter_map(mean).collect();
    let (before, after) = means.split_at(means.len() - means.len() / 4);
    let (Some(level), Some(last)) = (mean(before), mean(after)) else { return false };
    let squares =
        |values: &[f64], centre: f64| values.iter().map(|value| (value - centre).powi(2)).sum::<f64>();
    let freedom = means.len() as f64 - 2.0;
    let variance = (squares(before, level) + squares(after, last)) / freedom;
    let error = (variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
    let step = (last - level).abs();
    step > TOLERANCE * level.abs() && step > student_t_quantile(0.5 + CONFIDENCE / 2.0, freedom) * error
}

/// Whether all values are close to each other.
fn is_flat(values: &[f64]) -> bool {
    let highest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = values.iter().copied().fold(f64::INFINITY, f64::min);
    highest.is_finite() && lowest >= 0.0 && highest - lowest <= TOLERANCE * lowest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// The level at a second of a ramp of this many seconds.
    fn ramp(length: usize, second: usize) -> f64 {
        if length == 0 { 100.0 } else { 50.0 + 50.0 * (second as f64 / length as f64).min(1.0) }
    }

    /// When the rule first holds, asked every five seconds.
    fn settled_at(mut value: impl FnMut(usize) -> f64) -> Option<usize> {
        let mut series = Vec::new();
        (0..900).find(|second| {
            series.push(value(*second));
            (second + 1).is_multiple_of(5) && has_settled(&series)
        })
    }

    fn check(expect: Option<usize>, value: impl FnMut(usize) -> f64) {
        assert_eq!(settled_at(value).map(|second| second + 1), expect);
    }

    #[test]
    fn a_level_series_has_settled_once_there_is_enough_of_it() {
        check(Some(60), |_| 100.0);
        check(Some(60), |_| 0.0);
        // A trend so small that it does not matter, without any noise.
        check(Some(60), |second| 1000.0 + second as f64);
    }

    #[test]
    fn a_steep_ramp_never_settles_and_a_bent_one_after_its_bend() {
        check(None, |second| second as f64);
        check(Some(220), |second| second.min(150) as f64);
    }

    #[test]
    fn a_step_is_waited_for_and_stalls_that_return_are_not() {
        check(Some(70), |second| if second < 35 { 100.0 } else { 40.0 });
        check(Some(135), |second| if second < 50 { 100.0 } else { 40.0 });
        check(Some(60), |second| if second % 20 < 5 { 20.0 } else { 100.0 });
    }

    #[test]
    fn a_series_with_a_hole_has_not_settled() {
        check(None, |_| f64::NAN);
    }

    /// The row of one ramp in the table above: seconds in half and in nine of ten of the seeds, and the
    /// share that ended too early, in percent.
    fn row(noise: f64, correlation: f64, length: usize) -> [f64; 3] {
        const SEED_COUNT: u64 = 400;
        let settled = |seed| {
            let mut random = Random::new(seed);
            let mut state = random.normal();
            settled_at(|second| {
                state = correlation * state + (1.0 - correlation * correlation).sqrt() * random.normal();
                ramp(length, second) * (1.0 + noise * state)
            })
        };
        let ends: Vec<f64> = (0..SEED_COUNT).filter_map(settled).map(|second| second as f64 + 1.0).collect();
        let is_early = |end: &&f64| {
            let level = |second: f64| ramp(length, second as usize);
            (level(**end) / level(**end + 120.0) - 1.0).abs() > 0.1
        };
        let early = ends.iter().filter(is_early).count() as f64 / SEED_COUNT as f64 * 100.0;
        let quantile = |probability| crate::quantile(&ends, probability).expect("some settle");
        [quantile(0.5), quantile(0.9), early]
    }

    #[test]
    fn the_times_of_the_table_are_as_stated() {
        for (noise, correlation, rows) in [
            (0.02, 0.0, [[60.0, 60.0, 0.0], [130.0, 160.0, 0.0], [210.0, 220.0, 0.0], [365.0, 380.0, 0.0]]),
            (0.1, 0.0, [[60.0, 65.0, 0.0], [160.0, 165.0, 0.0], [210.0, 220.0, 0.0], [365.0, 380.0, 5.0]]),
            (0.1, 0.7, [[60.0, 70.0, 0.0], [150.0, 165.0, 0.0], [195.0, 220.0, 9.0], [65.0, 320.0, 79.0]]),
            (0.3, 0.7, [[60.0, 70.0, 0.0], [70.0, 135.0, 0.0], [60.0, 140.0, 85.0], [60.0, 75.0, 100.0]]),
        ] {
            for (length, expect) in [0, 60, 120, 300].into_iter().zip(rows) {
                let found = row(noise, correlation, length);
                let is_near = found.iter().zip(expect).all(|(found, expect)| (found - expect).abs() <= 6.0);
                assert!(is_near, "noise {noise}, {correlation}, ramp of {length} s: {found:?}");
            }
        }
    }
}
