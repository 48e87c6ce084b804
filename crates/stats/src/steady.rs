//! From where on a series is steady.
//!
//! For the figures of a window, one per second: MSER-5. White, "An effective truncation heuristic for bias
//! reduction in simulation output", Simulation 69 (1997), cuts a series where the rest has the smallest
//! standard error of its mean; White, Cobb and Spratt, "A comparison of five steady-state truncation
//! heuristics for simulation", Winter Simulation Conference 2000, take means of five values. Hoad, Robinson
//! and Davies, "Automating warm-up length estimation", Journal of the Operational Research Society 61 (2010),
//! leave out cuts among the last five means, which are small by accident, and call a cut in the second half
//! invalid: the series is too short to tell.
//!
//! For the rounds of a raw device: the rule of SNIA, "Solid State Storage Performance Test Specification",
//! version 2.0.2, definition of steady state.
//!
//! # Divergence
//! Level noise is not always called steady: of series of 60, 120 and 300 seconds the cut is invalid in 10 %,
//! 12 % and 3 % (2000 seeds; 11 %, 16 % and 5 % if neighbours correlate by 0.7). A valid cut drops nothing in
//! more than half of them and at most 32 seconds in nine of ten. An invalid cut is no proof of a trend.
//!
//! MSER-5 cannot tell a stall from a warm-up. A stall in the first half is cut off with all before it; after
//! a single deep stall in the second half nothing is called steady.

use crate::mean;

/// Values per mean: the 5 of MSER-5.
pub(crate) const BATCH: usize = 5;

/// The fewest means behind a cut.
const FEWEST_BATCHES_KEPT: usize = 5;

/// Rounds of SNIA's measurement window.
pub const SNIA_ROUNDS: usize = 5;

/// The largest difference of two rounds of the window, as a share of their mean.
const SNIA_RANGE: f64 = 0.20;

/// The largest change of the fitted line from the first to the last round, as a share of the mean.
pub(crate) const SNIA_SLOPE: f64 = 0.10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Truncation {
    /// Values to drop from the series' start.
    pub dropped: usize,
    /// Whether the cut lies in the first half. A later cut says that the series is too short: no part of it
    /// is known to be steady.
    pub is_valid: bool,
}

/// The cut of MSER-5. `None` for fewer than 50 values, of which the first half has no room for a cut that is
/// not among the last five means, and for a value that is not finite. Values beyond the last full five are
/// ignored.
pub fn mser5(series: &[f64]) -> Option<Truncation> {
    if series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let means: Vec<f64> = series.chunks_exact(BATCH).filter_map(mean).collect();
    if means.len() < 2 * FEWEST_BATCHES_KEPT {
        return None;
    }
    let mut best = (0, f64::INFINITY);
    for cut in 0..=means.len() - FEWEST_BATCHES_KEPT {
        let error = squared_standard_error(&means[cut..]);
        if error < best.1 {
            best = (cut, error);
        }
    }
    Some(Truncation { dropped: best.0 * BATCH, is_valid: best.0 <= means.len() / 2 })
}

/// White's statistic: the squares around the mean, divided by the squared count. Rounding errors of equal
/// values count as zero.
fn squared_standard_error(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let centre = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - centre).powi(2)).sum();
    if squares <= f64::EPSILON * count * centre * centre { 0.0 } else { squares / (count * count) }
}

/// The index from which a series is steady by MSER-5. `None` if it is too short, or no cut is valid.
pub fn steady_from(series: &[f64]) -> Option<usize> {
    mser5(series).filter(|cut| cut.is_valid).map(|cut| cut.dropped)
}

/// The index of the first round of the first five that are steady by SNIA's rule: their range is at most 20 %
/// of their mean, and the line fitted to them changes by at most 10 % of the mean. `None` if no five are.
pub fn snia_steady_from(rounds: &[f64]) -> Option<usize> {
    rounds.windows(SNIA_ROUNDS).position(is_snia_steady)
}

fn is_snia_steady(rounds: &[f64]) -> bool {
    let Some(level) = mean(rounds).filter(|level| *level > 0.0 && level.is_finite()) else { return false };
    let highest = rounds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let lowest = rounds.iter().copied().fold(f64::INFINITY, f64::min);
    let last = rounds.len() as f64 - 1.0;
    let offsets = || (0..rounds.len()).map(|index| index as f64 - last / 2.0);
    let spread: f64 = offsets().map(|offset| offset * offset).sum();
    let slope = offsets().zip(rounds).map(|(offset, value)| offset * (value - level)).sum::<f64>() / spread;
    // Bounds that are met exactly count as met: less the rounding error.
    let allowance = 1.0 + 1e-9;
    highest - lowest <= SNIA_RANGE * level * allowance
        && (slope * last).abs() <= SNIA_SLOPE * level * allowance
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    fn series(length: usize, value: impl Fn(usize) -> f64) -> Vec<f64> {
        (0..length).map(value).collect()
    }

    /// Rises in a straight line from half to full, then stays.
    fn ramp(second: usize, length: usize) -> f64 {
        1000.0 * (0.5 + 0.5 * (second as f64 / length as f64).min(1.0))
    }

    fn check(series: &[f64], dropped: usize, is_valid: bool) {
        assert_eq!(mser5(series), Some(Truncation { dropped, is_valid }));
        assert_eq!(steady_from(series), is_valid.then_some(dropped));
    }

    #[test]
    fn a_constant_is_steady_from_its_start() {
        check(&series(120, |_| 0.1), 0, true);
        check(&series(50, |_| 0.0), 0, true);
    }

    #[test]
    fn a_ramp_is_never_steady() {
        check(&series(120, |second| ramp(second, 120)), 95, false);
    }

    #[test]
    fn a_ramp_then_flat_is_steady_from_the_bend() {
        check(&series(120, |second| ramp(second, 40)), 40, true);
    }

    #[test]
    fn a_step_is_cut_where_it_is() {
        check(&series(120, |second| if second < 30 { 50.0 } else { 100.0 }), 30, true);
        check(&series(120, |second| if second < 90 { 50.0 } else { 100.0 }), 90, false);
    }

    #[test]
    fn a_step_is_cut_through_noise() {
        for seed in 0..100 {
            let mut random = Random::new(seed);
            let noisy: Vec<f64> = (0..120)
                .map(|second| if second < 30 { 50.0 } else { 100.0 } * (1.0 + 0.05 * random.normal()))
                .collect();
            let from = mser5(&noisy).expect("long enough").dropped;
            assert!(from >= 30, "seed {seed}: cut at {from} s");
        }
    }

    #[test]
    fn stalls_that_return_are_part_of_the_steady_state() {
        check(&series(120, |second| if second % 20 >= 15 { 20.0 } else { 100.0 }), 0, true);
    }

    #[test]
    fn a_stall_at_the_start_is_cut_off_and_a_single_late_one_leaves_nothing_steady() {
        check(&series(120, |second| if second < 5 { 0.0 } else { 100.0 }), 5, true);
        check(&series(120, |second| if (85..90).contains(&second) { 0.0 } else { 100.0 }), 90, false);
    }

    /// The share of level series with a valid cut, and what the cuts drop: in half and in nine of ten of
    /// them.
    fn level_noise(length: usize, correlation: f64) -> (f64, f64, f64) {
        const SEED_COUNT: u64 = 2000;
        let cut = |seed| {
            let mut random = Random::new(seed);
            let mut noise = random.normal();
            let series: Vec<f64> = (0..length)
                .map(|_| {
                    noise = correlation * noise + (1.0 - correlation * correlation).sqrt() * random.normal();
                    100.0 + 10.0 * noise
                })
                .collect();
            steady_from(&series).map(|dropped| dropped as f64)
        };
        let dropped: Vec<f64> = (0..SEED_COUNT).filter_map(cut).collect();
        let quantile = |probability| crate::quantile(&dropped, probability).expect("valid cuts");
        (dropped.len() as f64 / SEED_COUNT as f64, quantile(0.5), quantile(0.9))
    }

    #[test]
    fn most_level_noise_is_steady_and_keeps_most_of_its_seconds() {
        for (length, correlation, expected) in [
            (60, 0.0, 0.90),
            (120, 0.0, 0.88),
            (300, 0.0, 0.97),
            (60, 0.7, 0.89),
            (120, 0.7, 0.84),
            (300, 0.7, 0.95),
        ] {
            let (valid, half, nine_of_ten) = level_noise(length, correlation);
            let words = format!("{length} s, {correlation}: {valid}, {half} s, {nine_of_ten} s");
            assert!((valid - expected).abs() < 0.01 && half < 1.0 && nine_of_ten < 33.0, "{words}");
        }
    }

    #[test]
    fn a_short_series_and_one_with_a_hole_have_no_answer() {
        assert_eq!(mser5(&[1.0; 49]), None);
        assert!(mser5(&[1.0; 50]).is_some());
        assert_eq!(mser5(&[f64::NAN; 60]), None);
    }

    #[test]
    fn snia_asks_for_five_rounds_of_small_range_and_slope() {
        let check = |rounds: &[f64], expected| assert_eq!(snia_steady_from(rounds), expected, "{rounds:?}");
        check(&[100.0; 5], Some(0));
        check(&[100.0; 4], None);
        // A range of exactly 20 % without a slope, and one above.
        check(&[90.0, 110.0, 100.0, 110.0, 90.0], Some(0));
        check(&[89.0, 110.0, 101.0, 110.0, 90.0], None);
        // A line of exactly 10 %, and one above, both within the range.
        check(&[95.0, 97.5, 100.0, 102.5, 105.0], Some(0));
        check(&[94.9, 97.5, 100.0, 102.5, 105.1], None);
        // A fresh drive: fast at first, steady from the fourth round.
        check(&[400.0, 250.0, 150.0, 104.0, 101.0, 99.0, 100.0, 98.0], Some(3));
        check(&[0.0; 5], None);
        check(&[f64::NAN; 5], None);
    }
}
