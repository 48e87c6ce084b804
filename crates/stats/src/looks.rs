//! Intervals that keep their promise although somebody looked at them to decide when to stop.
//!
//! A run that goes on until its interval is narrow stops at a lucky moment: when the trials happen to agree.
//! Student's interval at that moment holds less often than it promises (Chow and Robbins, "On the asymptotic
//! theory of fixed-width sequential confidence intervals for the mean", Annals of Mathematical Statistics 36
//! (1965); Starr, "The performance of a sequential procedure for the fixed-width interval estimation of the
//! mean", the same, 37 (1966)). Two things correct this:
//!
//! * at least [`FEWEST_PAIRS`] pairs of trials before the first look;
//! * a quantile of Student's t for [`WIDENED_CONFIDENCE`] instead of the 95 % that are promised.
//!
//! The width depends on the spread of the trials alone, and not on where their mean lies. A rule that also
//! looks at the mean ("stop when a difference is shown") needs more: a confidence sequence, which holds at
//! all looks at once with its confidence. [`sequence`] is that of a normal mean with unknown variance, mixed
//! over a normal effect in standard deviations: Lai, "On confidence sequences", Annals of Statistics 4
//! (1976); the closed form is the Bayes factor of Gönen, Johnson, Lu and Westfall, "The Bayesian two-sample t
//! test", The American Statistician 59 (2005), which is a test martingale by Pérez-Ortiz, Lardy, de Heide and
//! Grünwald, "E-statistics, group invariance and anytime-valid testing", Annals of Statistics 52 (2024).
//!
//! All values are logarithms of ratios; a spread is the standard deviation of the log ratios of pairs.

use crate::equivalence::Aim;
use crate::student::student_t_quantile;

/// Pairs of trials before the first look.
pub const FEWEST_PAIRS: u32 = 5;

/// More pairs than this are never predicted.
pub const MOST_PAIRS: u32 = 10_000;

/// The confidence whose quantile makes an interval of 95 % at the stop. Found by simulation: see
/// [`crate::precision`].
pub const WIDENED_CONFIDENCE: f64 = 0.98;

/// The confidence of the sequence. What is missing to 1 and what the widened interval misses are together the
/// 5 % that may be wrong.
pub const SEQUENCE_CONFIDENCE: f64 = 0.98;

/// Variance of the effect, in standard deviations of a pair, over which the sequence is mixed. It decides at
/// how many pairs the sequence is narrowest relative to Student's interval; 10 is good for 5 to 20.
const SEQUENCE_EFFECT_VARIANCE: f64 = 10.0;

/// One look calls two cells that differ by twice the margin the same with at most this probability.
const FALSE_SAMENESS: f64 = 1e-4;

/// The factor, at least 1, by which an interval of this confidence is widened on the log scale before it shows that
/// two cells are the same. From about 20 pairs on it is 1.
///
/// An interval of half-width h = t s lies within a margin m only if its centre is at most m - h away from 1. If the
/// truth is 2 m away, the centre then missed it by m + h or more, which is at least 2 t standard errors. Few trials
/// agree by chance too often for that: five pairs at 97 % would do so in 0.14 % of all looks.
pub(crate) fn sameness_factor(confidence: f64, degrees_of_freedom: f64) -> f64 {
    let t = student_t_quantile(0.5 + confidence / 2.0, degrees_of_freedom);
    (student_t_quantile(1.0 - FALSE_SAMENESS, degrees_of_freedom) / (2.0 * t)).max(1.0)
}

/// When and how wide a rule looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rule {
    pub(crate) fewest_pairs: u32,
    pub(crate) confidence: f64,
}

pub(crate) const RULE: Rule = Rule { fewest_pairs: FEWEST_PAIRS, confidence: WIDENED_CONFIDENCE };

impl Rule {
    /// Half-width of the interval of a mean log ratio. `None` below two pairs.
    pub(crate) fn half_width(&self, pair_count: u32, spread: f64) -> Option<f64> {
        let degrees_of_freedom = f64::from(pair_count.checked_sub(1).filter(|degrees| *degrees > 0)?);
        let t = student_t_quantile(0.5 + self.confidence / 2.0, degrees_of_freedom);
        Some(t * spread / f64::from(pair_count).sqrt())
    }

    /// [`sameness_factor`] of the interval of so many pairs; 1 without an interval.
    pub(crate) fn sameness_factor(&self, pair_count: u32) -> f64 {
        let degrees_of_freedom = pair_count.checked_sub(1).filter(|degrees| *degrees > 0);
        degrees_of_freedom.map_or(1.0, |degrees| sameness_factor(self.confidence, f64::from(degrees)))
    }

    /// The fewest pairs whose interval is at most this wide to either side. `None` if it takes more than
    /// [`MOST_PAIRS`].
    pub(crate) fn pairs_for(&self, spread: f64, half_width: f64) -> Option<u32> {
        fewest(self.fewest_pairs, |count| {
            self.half_width(count, spread).is_some_and(|width| width <= half_width)
        })
    }

    /// The fewest pairs that answer with this half-width, on the log scale.
    pub(crate) fn pairs_to(&self, aim: Aim, spread: f64, half_width: f64) -> Option<u32> {
        match aim {
            Aim::Difference => self.pairs_for(spread, half_width),
            Aim::Sameness => fewest(self.fewest_pairs, |count| {
                let width = self.half_width(count, spread).map(|width| width * self.sameness_factor(count));
                width.is_some_and(|width| width <= half_width)
            }),
        }
    }
}

/// Half-width on the log scale of the interval at a stop by width. `None` below two pairs.
pub fn widened(pair_count: u32, spread: f64) -> Option<f64> {
    RULE.half_width(pair_count, spread)
}

/// Half-width on the log scale of the confidence sequence. `None` where it has no bound yet, which is below
/// four pairs.
pub fn sequence(pair_count: u32, spread: f64) -> Option<f64> {
    sequence_of(1.0 - SEQUENCE_CONFIDENCE, pair_count, spread)
}

/// The set of means whose Bayes factor is below 1 / `level`. With c = 1 + n g and u = t^2 / (n - 1) the
/// factor is c^(-1/2) ((1 + u) / (1 + u / c))^(n / 2), solved for u.
fn sequence_of(level: f64, pair_count: u32, spread: f64) -> Option<f64> {
    let count = f64::from(pair_count);
    let c = 1.0 + count * SEQUENCE_EFFECT_VARIANCE;
    let threshold = (c / (level * level)).powf(1.0 / count);
    if pair_count < 2 || threshold >= c {
        return None;
    }
    let u = (threshold - 1.0) / (1.0 - threshold / c);
    Some((u * (count - 1.0) / count).sqrt() * spread)
}

/// The fewest pairs, at least [`FEWEST_PAIRS`], for a half-width of [`sequence`].
pub fn pairs_for_sequence(spread: f64, half_width: f64) -> Option<u32> {
    fewest(FEWEST_PAIRS, |count| sequence(count, spread).is_some_and(|width| width <= half_width))
}

/// The smallest count from `from` on that is enough, of a property that more never ends.
fn fewest(from: u32, is_enough: impl Fn(u32) -> bool) -> Option<u32> {
    let mut high = from;
    while !is_enough(high) {
        if high >= MOST_PAIRS {
            return None;
        }
        high = (2 * high).min(MOST_PAIRS);
    }
    let mut low = (high / 2).max(from);
    while low < high {
        let middle = low.midpoint(high);
        if is_enough(middle) { high = middle } else { low = middle + 1 }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{mean, random::Random, standard_deviation};

    #[test]
    fn the_widened_interval_is_students_at_its_confidence() {
        let t = student_t_quantile(0.99, 8.0);
        let width = widened(9, 0.3).expect("nine pairs");
        assert!((width - t * 0.1).abs() < 1e-12);
        assert_eq!(widened(1, 0.3), None);
    }

    #[test]
    fn predicted_pairs_are_the_fewest_that_suffice() {
        for (spread, half_width) in [(0.03, 0.1), (0.14, 0.1), (0.3, 0.05), (0.7, 0.02)] {
            let count = RULE.pairs_for(spread, half_width).expect("below the most");
            assert!(widened(count, spread).expect("pairs") <= half_width);
            assert!(count == FEWEST_PAIRS || widened(count - 1, spread).expect("pairs") > half_width);
        }
        assert_eq!(RULE.pairs_for(0.0, 0.1), Some(FEWEST_PAIRS));
        assert_eq!(RULE.pairs_for(1.0, 0.001), None);
    }

    #[test]
    fn the_sequence_solves_its_bayes_factor() {
        for count in [4_u32, 5, 10, 50] {
            let n = f64::from(count);
            let t = sequence(count, 1.0).expect("bounded") * n.sqrt();
            let (c, u) = (1.0 + n * SEQUENCE_EFFECT_VARIANCE, t * t / (n - 1.0));
            let factor = ((1.0 + u) / (1.0 + u / c)).powf(n / 2.0) / c.sqrt();
            assert!((factor * (1.0 - SEQUENCE_CONFIDENCE) - 1.0).abs() < 1e-9, "{count} pairs: {factor}");
            assert!(sequence(count, 1.0) > widened(count, 1.0), "{count} pairs");
        }
        assert_eq!(sequence(2, 1.0), None);
    }

    #[test]
    fn the_sequence_holds_at_all_looks_at_once() {
        const SEED_COUNT: u64 = 1000;
        let level = 0.05;
        let leaves = |seed: &u64| {
            let mut random = Random::new(*seed);
            let mut values = Vec::new();
            (1..=100).any(|count| {
                values.push(random.normal());
                let (centre, spread) = (mean(&values).expect("values"), standard_deviation(&values));
                let half_width = spread.and_then(|spread| sequence_of(level, count, spread));
                half_width.is_some_and(|half_width| centre.abs() > half_width)
            })
        };
        let share = (0..SEED_COUNT).filter(leaves).count() as f64 / SEED_COUNT as f64;
        assert!(share <= level + 3.0 * (level * (1.0 - level) / SEED_COUNT as f64).sqrt(), "{share}");
        assert!(share > 0.005, "{share}: a sequence that is never left is too wide");
    }
}
