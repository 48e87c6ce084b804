//! Bootstrap intervals, for statistics without a textbook interval (a p99, a ratio of medians).

use crate::{Interval, quantile, random::Random};

/// Percentile interval of `statistic`: Efron and Tibshirani, "An Introduction to the Bootstrap" (1993),
/// section 13.3. `None` below two values: resampling one value says nothing about its spread. With fewer than
/// about ten values the interval is too narrow (same book, section 14.3), so trials are compared by
/// [`crate::compare`] instead.
///
/// # Panics
/// If `confidence` is not strictly between 0 and 1, or `resample_count` is zero.
pub fn bootstrap_interval(
    values: &[f64],
    statistic: impl Fn(&[f64]) -> f64,
    confidence: f64,
    resample_count: usize,
    seed: u64,
) -> Option<Interval> {
    assert!(confidence > 0.0 && confidence < 1.0, "a confidence is between 0 and 1, not {confidence}");
    assert!(resample_count > 0, "a bootstrap needs at least one resample");
    if values.len() < 2 {
        return None;
    }
    let mut random = Random::new(seed);
    let mut resample = vec![0.0; values.len()];
    let mut estimates = Vec::with_capacity(resample_count);
    for _ in 0..resample_count {
        for slot in &mut resample {
            *slot = values[random.index_below(values.len())];
        }
        estimates.push(statistic(&resample));
    }
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: quantile(&estimates, tail)?, high: quantile(&estimates, 1.0 - tail)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(values: &[f64]) -> f64 {
        crate::mean(values).expect("values")
    }

    #[test]
    fn one_seed_gives_one_interval() {
        let values = [1.0, 2.0, 4.0, 8.0, 16.0];
        let first = bootstrap_interval(&values, mean, 0.95, 500, 3);
        assert_eq!(first, bootstrap_interval(&values, mean, 0.95, 500, 3));
        assert_ne!(first, bootstrap_interval(&values, mean, 0.95, 500, 4));
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(bootstrap_interval(&[5.0], mean, 0.95, 100, 1), None);
    }

    #[test]
    fn intervals_of_a_normal_mean_cover_it_nearly_as_often_as_they_say() {
        let covered = (0..400)
            .filter(|seed| {
                let mut random = Random::new(*seed);
                let values: Vec<f64> = (0..40).map(|_| 10.0 + random.normal()).collect();
                let interval = bootstrap_interval(&values, mean, 0.95, 400, *seed).expect("forty values");
                interval.contains(10.0)
            })
            .count();
        assert!((364..=396).contains(&covered), "{covered} of 400 intervals cover the true mean");
    }
}
