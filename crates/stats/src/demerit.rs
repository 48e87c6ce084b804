//! The demerit figure: the distance between two distributions of response times.
//!
//! Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer 27 (1994): the root mean
//! square of the horizontal distance between the two cumulative distributions. With `F` and `G` their
//! quantile functions,
//!
//! ```text
//! demerit = sqrt( 1/(b - a) * integral from a to b of (F(p) - G(p))^2 dp )
//! ```
//!
//! over the probabilities `a` to `b` for which both are known: 0 to 1 for samples. DiskSim's validation
//! prints it in milliseconds and as a share of the measured mean (Bucy, Schindler, Schlosser and Ganger, "The
//! DiskSim Simulation Environment, Version 4.0", CMU-PDL-08-101, section 6). The integral here is exact.
//! Quantile functions of samples are steps, and published quantiles are joined by straight lines, so the
//! difference is a straight line in each piece.

/// A quantile function: straight lines between knots of probability and value. A step is two knots at one
/// probability.
#[derive(Debug, Clone, PartialEq)]
pub struct QuantileFunction {
    knots: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Demerit {
    /// In the unit of the values.
    pub absolute: f64,
    /// Relative to the mean of the reference within the same probabilities; `None` when that mean is zero.
    pub share_of_mean: Option<f64>,
}

impl QuantileFunction {
    /// The quantile function of samples in any order. `None` without samples, or when one is not finite.
    pub fn of_samples(samples: &[f64]) -> Option<QuantileFunction> {
        let counts: Vec<(f64, u64)> = samples.iter().map(|&sample| (sample, 1)).collect();
        QuantileFunction::of_counts(&counts)
    }

    /// The quantile function of a histogram, given as values with their counts. `None` when all counts are
    /// zero or a value is not finite.
    pub fn of_counts(counts: &[(f64, u64)]) -> Option<QuantileFunction> {
        let total: u64 = counts.iter().map(|(_, count)| count).sum();
        if total == 0 || counts.iter().any(|(value, _)| !value.is_finite()) {
            return None;
        }
        let mut sorted = counts.to_vec();
        sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
        let mut below = 0;
        let mut knots = Vec::new();
        for (value, count) in sorted.into_iter().filter(|&(_, count)| count > 0) {
            knots.push((below as f64 / total as f64, value));
            below += count;
            knots.push((below as f64 / total as f64, value));
        }
        Some(QuantileFunction { knots })
    }

    /// The quantile function through published quantiles: rising probabilities within 0 to 1, and values that
    /// do not fall. `None` for fewer than two, or if they break these rules.
    pub fn of_quantiles(quantiles: &[(f64, f64)]) -> Option<QuantileFunction> {
        let within =
            |&(probability, value): &(f64, f64)| (0.0..=1.0).contains(&probability) && value.is_finite();
        let rises = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        let sound = quantiles.len() >= 2 && quantiles.iter().all(within) && quantiles.windows(2).all(rises);
        sound.then(|| QuantileFunction { knots: quantiles.to_vec() })
    }

    /// The first and last probability for which it is known.
    pub fn range(&self) -> (f64, f64) {
        (self.knots[0].0, self.knots[self.knots.len() - 1].0)
    }

    /// The value at a probability within [`QuantileFunction::range`]; at a step, the value after it.
    pub fn value(&self, probability: f64) -> f64 {
        let after = self.knots.partition_point(|knot| knot.0 <= probability).clamp(1, self.knots.len() - 1);
        self.line(after, probability)
    }

    /// The mean within its range.
    pub fn mean(&self) -> f64 {
        let area = |pair: &[(f64, f64)]| (pair[1].0 - pair[0].0) * (pair[0].1 + pair[1].1) / 2.0;
        let (from, to) = self.range();
        self.knots.windows(2).map(area).sum::<f64>() / (to - from)
    }

    /// The value on the line that ends at knot `after`.
    fn line(&self, after: usize, probability: f64) -> f64 {
        let (left, right) = (self.knots[after - 1], self.knots[after]);
        match right.0 > left.0 {
            true => left.1 + (right.1 - left.1) * (probability - left.0) / (right.0 - left.0),
            false => right.1,
        }
    }

    /// The values at `low` and `high` on the piece between these probabilities. No knot may lie between them.
    fn on_piece(&self, low: f64, high: f64) -> (f64, f64) {
        let middle = (low + high) / 2.0;
        let after = self.knots.partition_point(|knot| knot.0 <= middle).clamp(1, self.knots.len() - 1);
        (self.line(after, low), self.line(after, high))
    }
}

/// Distance of `other` from `reference`; `None` when their ranges do not overlap.
pub fn demerit(reference: &QuantileFunction, other: &QuantileFunction) -> Option<Demerit> {
    demerit_within(reference, other, 0.0, 1.0)
}

/// The same over the probabilities from `low` to `high`. Distances are squared, so one stall of a host can
/// outweigh a million requests; leaving out the far tail shows the rest of the distribution.
pub fn demerit_within(
    reference: &QuantileFunction,
    other: &QuantileFunction,
    low: f64,
    high: f64,
) -> Option<Demerit> {
    let from = low.max(reference.range().0).max(other.range().0);
    let to = high.min(reference.range().1).min(other.range().1);
    if from >= to {
        return None;
    }
    let knots = reference.knots.iter().chain(&other.knots).map(|knot| knot.0);
    let mut places: Vec<f64> = knots.filter(|place| (from..=to).contains(place)).chain([from, to]).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    let (mut squares, mut sum) = (0.0, 0.0);
    for pair in places.windows(2) {
        let width = pair[1] - pair[0];
        let (left, right) = reference.on_piece(pair[0], pair[1]);
        let (other_left, other_right) = other.on_piece(pair[0], pair[1]);
        let (first, last) = (left - other_left, right - other_right);
        // The integral of the square of a straight line from `first` to `last`.
        squares += width * (first * first + first * last + last * last) / 3.0;
        sum += width * (left + right) / 2.0;
    }
    let (absolute, mean) = ((squares / (to - from)).sqrt(), sum / (to - from));
    Some(Demerit { absolute, share_of_mean: (mean > 0.0).then(|| absolute / mean) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(values: &[f64]) -> QuantileFunction {
        QuantileFunction::of_samples(values).expect("samples")
    }

    fn check(reference: &QuantileFunction, other: &QuantileFunction, absolute: f64, share: f64) {
        let found = demerit(reference, other).expect("a demerit");
        assert!((found.absolute - absolute).abs() < 1e-12, "{found:?} is not {absolute}");
        assert!((found.share_of_mean.expect("a mean") - share).abs() < 1e-12, "{found:?} is not {share}");
    }

    #[test]
    fn equal_distributions_have_none() {
        check(&samples(&[1.0, 2.0, 3.0]), &samples(&[3.0, 1.0, 2.0]), 0.0, 0.0);
    }

    #[test]
    fn a_shift_is_its_own_demerit() {
        check(&samples(&[1.0, 2.0, 3.0]), &samples(&[1.5, 2.5, 3.5]), 0.5, 0.25);
    }

    #[test]
    fn distances_are_squared_before_they_are_averaged() {
        // Distances 0, 0, 0 and 4: the square root of 16 / 4.
        check(&samples(&[1.0, 1.0, 1.0, 1.0]), &samples(&[1.0, 1.0, 1.0, 5.0]), 2.0, 2.0);
    }

    #[test]
    fn sample_sizes_may_differ() {
        // By hand: (0 - 0)^2 over 1/3, (0 - 3)^2 over 1/6, (6 - 3)^2 over 1/6, (6 - 6)^2 over 1/3: 3 in all.
        check(&samples(&[0.0, 6.0]), &samples(&[0.0, 3.0, 6.0]), 3.0_f64.sqrt(), 3.0_f64.sqrt() / 3.0);
    }

    #[test]
    fn counts_are_samples_written_shorter() {
        let counted = QuantileFunction::of_counts(&[(7.0, 1), (2.0, 3), (9.0, 0)]).expect("counts");
        assert_eq!(counted, QuantileFunction::of_counts(&[(2.0, 3), (7.0, 1)]).expect("counts"));
        check(&samples(&[2.0, 2.0, 2.0, 7.0]), &counted, 0.0, 0.0);
    }

    #[test]
    fn quantiles_are_joined_by_straight_lines() {
        // Uniform from 0 to 1 against uniform from 0 to 2: the integral of p^2 is 1/3.
        let unit = QuantileFunction::of_quantiles(&[(0.0, 0.0), (1.0, 1.0)]).expect("quantiles");
        let double =
            QuantileFunction::of_quantiles(&[(0.0, 0.0), (0.5, 1.0), (1.0, 2.0)]).expect("quantiles");
        check(&unit, &double, (1.0_f64 / 3.0).sqrt(), 2.0 * (1.0_f64 / 3.0).sqrt());
    }

    #[test]
    fn values_and_means_follow_the_lines() {
        let function = QuantileFunction::of_quantiles(&[(0.2, 1.0), (0.6, 3.0)]).expect("quantiles");
        assert_eq!((function.value(0.2), function.value(0.4), function.value(0.6)), (1.0, 2.0, 3.0));
        assert!((function.mean() - 2.0).abs() < 1e-12);
        let steps = samples(&[1.0, 2.0, 6.0]);
        assert_eq!((steps.value(0.0), steps.value(0.5), steps.value(1.0)), (1.0, 2.0, 6.0));
        assert!((steps.mean() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn only_common_probabilities_count() {
        let high = QuantileFunction::of_quantiles(&[(0.5, 10.0), (1.0, 10.0)]).expect("quantiles");
        check(&high, &samples(&[0.0, 12.0]), 2.0, 0.2);
        let low = QuantileFunction::of_quantiles(&[(0.0, 1.0), (0.5, 1.0)]).expect("quantiles");
        assert_eq!(demerit(&high, &low), None);
    }

    #[test]
    fn without_its_tail_a_distribution_can_be_right() {
        let (calm, stalled) =
            (samples(&[1.0; 10]), samples(&[1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 9.0]));
        check(&calm, &stalled, 6.4_f64.sqrt(), 6.4_f64.sqrt());
        assert_eq!(demerit_within(&calm, &stalled, 0.0, 0.9).expect("a demerit").absolute, 0.0);
    }

    #[test]
    fn many_samples_agree_with_their_quantiles() {
        let many: Vec<f64> = (0..10_000).map(|index| f64::from(index) / 10_000.0).collect();
        let line = QuantileFunction::of_quantiles(&[(0.0, 0.0), (1.0, 1.0)]).expect("quantiles");
        assert!(demerit(&line, &samples(&many)).expect("a demerit").absolute < 1e-4);
    }

    #[test]
    fn what_is_no_distribution_is_refused() {
        assert_eq!(QuantileFunction::of_samples(&[]), None);
        assert_eq!(QuantileFunction::of_samples(&[1.0, f64::NAN]), None);
        for bad in [
            &[(0.5, 1.0)][..],
            &[(0.5, 1.0), (0.5, 2.0)],
            &[(0.1, 2.0), (0.5, 1.0)],
            &[(0.0, 1.0), (1.5, 2.0)],
        ] {
            assert_eq!(QuantileFunction::of_quantiles(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_reference_of_no_time_has_no_share() {
        let found = demerit(&samples(&[0.0]), &samples(&[2.0])).expect("a demerit");
        assert_eq!((found.absolute, found.share_of_mean), (2.0, None));
    }
}
