//! A figure with its uncertainty, and what two figures give together.

use serde::Serialize;
use spindle_stats::{CONFIDENCE, Interval, Sample, compare, mean, mean_interval, narrowing, paired};

use crate::report::Range;

/// The figure of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Figure {
    /// As a study prints it, without an interval.
    Printed(f64),
    /// One value a trial. Trials of one block ran next to each other.
    Measured(Vec<Sample>),
}

/// A value, with its 95 % interval if there are enough trials. A printed value is its own interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    pub value: f64,
    pub interval: Option<Range>,
    /// Of each figure; `None` for a printed value.
    #[serde(skip)]
    pub(super) trials: Option<usize>,
    /// The interval is of the logarithm.
    #[serde(skip)]
    is_ratio: bool,
}

impl Figure {
    /// `None` without a trial.
    pub fn estimate(&self) -> Option<Estimate> {
        match self {
            Figure::Printed(value) => Some(Estimate::exact(*value)),
            Figure::Measured(samples) => {
                let values: Vec<f64> = samples.iter().map(|sample| sample.value).collect();
                let estimate = Estimate::new(mean(&values)?, mean_interval(&values, CONFIDENCE));
                Some(Estimate { trials: Some(values.len()), ..estimate })
            }
        }
    }

    /// This figure divided by another. `None` if one of them has a value that is not above zero.
    pub fn over(&self, other: &Figure) -> Option<Estimate> {
        match (self, other) {
            (Figure::Printed(value), Figure::Printed(other)) => {
                (*other != 0.0).then(|| Estimate::exact(value / other))
            }
            (Figure::Measured(samples), Figure::Measured(others)) => {
                let comparison = compare(others, samples, CONFIDENCE)?;
                let trials = Some(samples.len().min(others.len()));
                Some(Estimate {
                    trials,
                    is_ratio: true,
                    ..Estimate::new(comparison.ratio, comparison.interval)
                })
            }
            _ => None,
        }
    }

    /// This figure less another.
    pub fn less(&self, other: &Figure) -> Option<Estimate> {
        match (self, other) {
            (Figure::Printed(value), Figure::Printed(other)) => Some(Estimate::exact(value - other)),
            (Figure::Measured(samples), Figure::Measured(others)) => match paired(samples, others) {
                Some(pairs) => {
                    let differences: Vec<f64> = pairs.iter().map(|(one, other)| one - other).collect();
                    let estimate =
                        Estimate::new(mean(&differences)?, mean_interval(&differences, CONFIDENCE));
                    Some(Estimate { trials: Some(pairs.len()), ..estimate })
                }
                None => recovered(self.estimate()?, other.estimate()?),
            },
            _ => None,
        }
    }
}

impl Estimate {
    fn exact(value: f64) -> Estimate {
        Estimate { interval: Some(Range { low: value, high: value }), ..Estimate::new(value, None) }
    }

    pub(super) fn new(value: f64, interval: Option<Interval>) -> Estimate {
        let range = |interval: Interval| Range { low: interval.low, high: interval.high };
        Estimate { value, interval: interval.map(range), trials: None, is_ratio: false }
    }

    /// As it would be after so many trials, two or more, of the same value and spread. `None` if its own have no spread.
    pub(super) fn after(self, trials: usize) -> Option<Estimate> {
        let Range { low, high } = self.interval?;
        let factor = narrowing(self.trials.filter(|own| *own >= 2)?, trials, CONFIDENCE);
        let value = self.value;
        let end = |end: f64| match self.is_ratio {
            true => value * (end / value).powf(factor),
            false => value + (end - value) * factor,
        };
        Some(Estimate {
            interval: Some(Range { low: end(low), high: end(high) }),
            trials: Some(trials),
            ..self
        })
    }

    /// One divided by it; every value is above zero.
    pub(super) fn inverse(self) -> Estimate {
        let inverse = |range: Range| Range { low: 1.0 / range.high, high: 1.0 / range.low };
        Estimate { value: 1.0 / self.value, interval: self.interval.map(inverse), ..self }
    }

    pub(super) fn negative(self) -> Estimate {
        let negative = |range: Range| Range { low: -range.high, high: -range.low };
        Estimate { value: -self.value, interval: self.interval.map(negative), ..self }
    }
}

/// The interval of a difference from those of its parts: Zou and Donner, Statistics in Medicine 27 (2008),
/// 1693.
fn recovered(one: Estimate, other: Estimate) -> Option<Estimate> {
    let value = one.value - other.value;
    let interval = one.interval.zip(other.interval).map(|(of_one, of_other)| Interval {
        low: value - (one.value - of_one.low).hypot(of_other.high - other.value),
        high: value + (of_one.high - one.value).hypot(other.value - of_other.low),
    });
    Some(Estimate { trials: one.trials.min(other.trials), ..Estimate::new(value, interval) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(blocks_from: u32, values: &[f64]) -> Figure {
        let sample = |(block, value): (u32, &f64)| Sample { block, value: *value };
        Figure::Measured((blocks_from..).zip(values).map(sample).collect())
    }

    #[track_caller]
    fn check(estimate: Option<Estimate>, value: f64, interval: Option<(f64, f64)>) {
        let estimate = estimate.unwrap();
        let close = |one: f64, other: f64| (one - other).abs() < 5e-3 * other.abs().max(1.0);
        let is_it = match (estimate.interval, interval) {
            (Some(range), Some((low, high))) => close(range.low, low) && close(range.high, high),
            (range, interval) => range.is_none() && interval.is_none(),
        };
        assert!(close(estimate.value, value) && is_it, "{estimate:?}");
    }

    #[test]
    fn printed_figures_are_exact() {
        let (ssd, hdd) = (Figure::Printed(1778.0), Figure::Printed(396.0));
        check(ssd.over(&hdd), 4.49, Some((4.49, 4.49)));
        check(hdd.less(&ssd), -1382.0, Some((-1382.0, -1382.0)));
        assert_eq!(ssd.over(&Figure::Printed(0.0)), None);
    }

    #[test]
    fn one_trial_has_a_value_and_no_interval() {
        check(measured(1, &[4.0]).over(&measured(1, &[2.0])), 2.0, None);
        check(measured(1, &[4.0]).less(&measured(1, &[2.0])), 2.0, None);
        check(measured(1, &[4.0]).less(&measured(9, &[2.0])), 2.0, None);
    }

    #[test]
    fn a_difference_within_blocks_is_narrower_than_one_of_two_runs() {
        let (one, other) = ([10.0, 20.0, 30.0], [9.0, 19.1, 28.9]);
        // Differences 1.0, 0.9, 1.1: mean 1, standard error 0.0577, t = 4.303.
        check(measured(1, &one).less(&measured(1, &other)), 1.0, Some((0.752, 1.248)));
        // Each mean has a half width of 24.8, so the difference has about 35.
        let apart = measured(1, &one).less(&measured(9, &other)).unwrap();
        let range = apart.interval.unwrap();
        assert!((range.high - range.low) / 2.0 > 34.0 && range.low < 0.0, "{apart:?}");
    }

    #[test]
    fn further_trials_narrow_an_interval_around_its_value() {
        let (one, other) = (measured(1, &[10.0, 20.0, 30.0]), measured(1, &[9.0, 19.1, 28.9]));
        let width = |estimate: Estimate| {
            let range = estimate.interval.unwrap();
            (range.high / estimate.value).ln() / (estimate.value / range.low).ln()
        };
        let ratio = one.over(&other).unwrap();
        let later = ratio.after(12).unwrap();
        assert!((width(later) - 1.0).abs() < 1e-9, "on the logarithm, to both sides alike: {later:?}");
        // Differences 1.0, 0.9, 1.1; t(0.975, 11) = 2.201.
        let half = 2.201 * 0.1 / 12.0_f64.sqrt();
        check(one.less(&other).unwrap().after(12), 1.0, Some((1.0 - half, 1.0 + half)));
        let range = ratio.interval.unwrap();
        check(ratio.after(3), ratio.value, Some((range.low, range.high)));
        assert_eq!(measured(1, &[4.0]).over(&measured(1, &[2.0])).unwrap().after(12), None);
        assert_eq!(Figure::Printed(1.0).estimate().unwrap().after(12), None);
    }

    #[test]
    fn the_origin_of_two_figures_is_the_same() {
        assert_eq!(measured(1, &[1.0]).over(&Figure::Printed(1.0)), None);
        assert_eq!(measured(1, &[1.0]).less(&Figure::Printed(1.0)), None);
        assert_eq!(measured(1, &[]).estimate(), None);
    }
}
