//! Compares the throughput of two cells.
//!
//! Throughput is compared as a ratio, and the arithmetic is done on logarithms: machine noise is
//! multiplicative, and a ratio and its inverse get the same verdict. Trials of one block ran next to each
//! other and share the machine's state, so they are compared pair by pair. If a trial is missing, the pairing
//! is lost and Welch's interval is used.

use crate::equivalence::Aim;
use crate::looks::{Rule, sameness_factor};
use crate::{mean, student::student_t_quantile, variance};

/// A closed interval: both ends belong to it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    pub low: f64,
    pub high: f64,
}

impl Interval {
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// One trial's figure of merit; higher is better.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    pub block: u32,
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Faster,
    Slower,
    /// The interval contains 1. This is a result rather than a failure: the trials do not tell the two apart.
    NoDifferenceShown,
    /// Too few trials for an interval: no claim in either direction.
    NotTested,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Interval of the mean log ratio within blocks.
    Paired,
    /// Welch's interval of the difference of mean logs.
    Welch,
    /// A ratio without an interval.
    RatioOnly,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// Candidate divided by baseline.
    pub ratio: f64,
    /// `None` when there are too few trials to estimate the spread.
    pub interval: Option<Interval>,
    /// How much wider the interval is where it is to show that two cells are the same; at least 1.
    pub sameness_factor: f64,
    pub verdict: Verdict,
    pub method: Method,
}

/// Compares `candidate` to `baseline`. `None` when either has no trial, or a value that is not positive and
/// finite.
///
/// # Panics
/// If `confidence` is not strictly between 0 and 1.
pub fn compare(baseline: &[Sample], candidate: &[Sample], confidence: f64) -> Option<Comparison> {
    assert!(confidence > 0.0 && confidence < 1.0, "a confidence is between 0 and 1, not {confidence}");
    let usable = |samples: &[Sample]| {
        !samples.is_empty() && samples.iter().all(|sample| sample.value > 0.0 && sample.value.is_finite())
    };
    if !usable(baseline) || !usable(candidate) {
        return None;
    }
    if let Some(pairs) = paired(baseline, candidate)
        && pairs.len() >= 2
    {
        return Some(comparison(paired_estimate(&log_ratios(&pairs), confidence)?, Method::Paired));
    }
    let (baseline, candidate) = (logarithms(baseline), logarithms(candidate));
    match welch_estimate(&baseline, &candidate, confidence) {
        Some(estimate) => Some(comparison(estimate, Method::Welch)),
        None => Some(Comparison {
            ratio: (mean(&candidate)? - mean(&baseline)?).exp(),
            interval: None,
            sameness_factor: 1.0,
            verdict: Verdict::NotTested,
            method: Method::RatioOnly,
        }),
    }
}

/// Further trials of each cell until the interval of their ratio reaches the aim with this half-width, as a share of
/// the ratio, predicted from the spread so far. Trials that are not paired are predicted with the degrees of freedom of
/// pairs, which is the careful side. `None` without a spread, or if no number of trials that is tried suffices.
pub fn more_trials(
    baseline: &[Sample],
    candidate: &[Sample],
    confidence: f64,
    aim: Aim,
    half_width: f64,
) -> Option<u32> {
    let rule = Rule { fewest_pairs: 2, confidence };
    let (fewest, spread) = match paired(baseline, candidate) {
        Some(pairs) => (pairs.len(), variance(&log_ratios(&pairs))?.sqrt()),
        None => {
            let spread = (variance(&logarithms(baseline))? + variance(&logarithms(candidate))?).sqrt();
            (baseline.len().min(candidate.len()), spread)
        }
    };
    let needed = rule.pairs_to(aim, spread, half_width.ln_1p())?;
    Some(needed.saturating_sub(u32::try_from(fewest).ok()?).max(1))
}

/// Interval of the mean of a few values: Student, Biometrika 6 (1908). `None` below two values.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let estimate = paired_estimate(values, confidence)?;
    Some(Interval { low: estimate.centre - estimate.half_width, high: estimate.centre + estimate.half_width })
}

/// How much narrower Student's interval of a mean becomes if so many trials become so many, and their spread stays.
///
/// # Panics
/// If one of the counts is below 2.
pub fn narrowing(from: usize, to: usize, confidence: f64) -> f64 {
    let half_width = |count: usize| {
        assert!(count >= 2, "{count} trials have no spread");
        let count = count as f64;
        student_t_quantile(0.5 + confidence / 2.0, count - 1.0) / count.sqrt()
    };
    half_width(to) / half_width(from)
}

/// An estimate on the log scale.
struct Estimate {
    centre: f64,
    half_width: f64,
    sameness_factor: f64,
}

fn comparison(estimate: Estimate, method: Method) -> Comparison {
    let low = (estimate.centre - estimate.half_width).exp();
    let high = (estimate.centre + estimate.half_width).exp();
    let verdict = if low > 1.0 {
        Verdict::Faster
    } else if high < 1.0 {
        Verdict::Slower
    } else {
        Verdict::NoDifferenceShown
    };
    let (ratio, sameness_factor) = (estimate.centre.exp(), estimate.sameness_factor);
    Comparison { ratio, interval: Some(Interval { low, high }), sameness_factor, verdict, method }
}

fn logarithms(samples: &[Sample]) -> Vec<f64> {
    samples.iter().map(|sample| sample.value.ln()).collect()
}

/// The values of each block, baseline first, in the order of the blocks. `None` unless every block has
/// exactly one trial of each.
pub fn paired(baseline: &[Sample], candidate: &[Sample]) -> Option<Vec<(f64, f64)>> {
    let sorted = |samples: &[Sample]| {
        let mut samples = samples.to_vec();
        samples.sort_by_key(|sample| sample.block);
        samples
    };
    let (baseline, candidate) = (sorted(baseline), sorted(candidate));
    let distinct = baseline.windows(2).all(|pair| pair[0].block < pair[1].block);
    if !distinct || baseline.len() != candidate.len() {
        return None;
    }
    let pair =
        |(one, other): (&Sample, &Sample)| (one.block == other.block).then_some((one.value, other.value));
    baseline.iter().zip(&candidate).map(pair).collect()
}

fn log_ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(baseline, candidate)| (candidate / baseline).ln()).collect()
}

/// Student's interval of a mean, here of log ratios within blocks (the paired t test): Snedecor and Cochran,
/// "Statistical Methods", 8th edition (1989), section 6.3.
fn paired_estimate(values: &[f64], confidence: f64) -> Option<Estimate> {
    let count = values.len() as f64;
    let standard_error = (variance(values)? / count).sqrt();
    let t = student_t_quantile(0.5 + confidence / 2.0, count - 1.0);
    let sameness_factor = sameness_factor(confidence, count - 1.0);
    Some(Estimate { centre: mean(values)?, half_width: t * standard_error, sameness_factor })
}

/// Welch, Biometrika 34 (1947), with the degrees of freedom of Satterthwaite, Biometrics Bulletin 2 (1946).
fn welch_estimate(baseline: &[f64], candidate: &[f64], confidence: f64) -> Option<Estimate> {
    let centre = mean(candidate)? - mean(baseline)?;
    let (m, n) = (baseline.len() as f64, candidate.len() as f64);
    let (u, v) = (variance(baseline)? / m, variance(candidate)? / n);
    if u + v == 0.0 {
        return Some(Estimate { centre, half_width: 0.0, sameness_factor: 1.0 });
    }
    let degrees_of_freedom = (u + v).powi(2) / (u * u / (m - 1.0) + v * v / (n - 1.0));
    let t = student_t_quantile(0.5 + confidence / 2.0, degrees_of_freedom);
    let sameness_factor = sameness_factor(confidence, degrees_of_freedom);
    Some(Estimate { centre, half_width: t * (u + v).sqrt(), sameness_factor })
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
