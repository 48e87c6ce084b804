//! Detects a trend in the measured window.
//!
//! Fits a straight line through one value per second and reports its distance from level. Seconds of a
//! database are not independent (a checkpoint slows many in a row), so the line's uncertainty is computed
//! from the effective sample size instead of the series' length.
//!
//! # Divergence
//! One straight line does not see a dip in the middle, and periods longer than the window look like a trend.

use crate::{CONFIDENCE, mean, student::student_t_quantile};

/// A shorter series, in seconds, cannot tell a trend from noise.
pub(crate) const FEWEST_VALUES: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Drift {
    /// Change of the fitted line from the first to the last value, as a share of the mean; negative when
    /// falling.
    pub relative: f64,
    /// Half-width of the 95 % interval of `relative`.
    pub relative_noise: f64,
}

impl Drift {
    /// Whether the series changed by more than `tolerance` (0.05: 5 % of the mean) and by more than its own
    /// noise.
    pub fn exceeds(&self, tolerance: f64) -> bool {
        self.relative.abs() > tolerance && self.relative.abs() > self.relative_noise
    }
}

/// Least-squares trend with the standard error of Santer et al., "Statistical significance of trends and
/// trend differences in layer-average atmospheric temperature time series", JGR Atmospheres 105 (2000), eq.
/// 3-6: the residuals' lag-1 autocorrelation r replaces n by n (1 - r) / (1 + r). Short series underestimate
/// r, so the bias (1 + 4 r) / n of Kendall, Biometrika 41 (1954), is added back. `None` for short, empty or
/// non-finite series, and for a mean that is not positive.
pub fn drift(series: &[f64]) -> Option<Drift> {
    if series.len() < FEWEST_VALUES || series.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let level = mean(series)?;
    if level <= 0.0 {
        return None;
    }
    let count = series.len() as f64;
    let middle = (count - 1.0) / 2.0;
    let offsets = || (0..series.len()).map(|index| index as f64 - middle);
    let spread: f64 = offsets().map(|offset| offset * offset).sum();
    let slope = offsets().zip(series).map(|(offset, value)| offset * (value - level)).sum::<f64>() / spread;
    let residuals: Vec<f64> =
        offsets().zip(series).map(|(offset, value)| value - level - slope * offset).collect();
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let scale = (count - 1.0) / level;
    if squares <= f64::EPSILON * level * level {
        return Some(Drift { relative: slope * scale, relative_noise: 0.0 });
    }
    let lagged: f64 = residuals.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let correlation = corrected_correlation(lagged / squares, count);
    // A fitted line leaves a degree of freedom from three values on.
    let worth = (count * (1.0 - correlation) / (1.0 + correlation)).max(3.0);
    let standard_error = (squares / (worth - 2.0) / spread).sqrt();
    let t = student_t_quantile(0.5 + CONFIDENCE / 2.0, worth - 2.0);
    Some(Drift { relative: slope * scale, relative_noise: t * standard_error * scale })
}

/// Lag-1 autocorrelation of a series from that of its residuals, with the bias of a short series added back
/// (Kendall, as above).
pub(crate) fn corrected_correlation(raw: f64, count: f64) -> f64 {
    (raw + (1.0 + 4.0 * raw) / count).clamp(0.0, 0.95)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Noise of 10 % whose neighbours correlate by `correlation`, around a line that changes by `trend` of
    /// its mean.
    fn series(seed: u64, length: usize, correlation: f64, trend: f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        let mut noise = random.normal();
        (0..length)
            .map(|index| {
                noise = correlation * noise + (1.0 - correlation * correlation).sqrt() * random.normal();
                let line = trend * (index as f64 / (length - 1) as f64 - 0.5);
                1000.0 * (1.0 + line + 0.1 * noise)
            })
            .collect()
    }

    fn share_found(length: usize, correlation: f64, trend: f64) -> f64 {
        let found = (0..1000).filter(|seed| {
            let drift = drift(&series(*seed, length, correlation, trend)).expect("long enough");
            drift.exceeds(0.0)
        });
        found.count() as f64 / 1000.0
    }

    #[test]
    fn level_noise_has_no_drift() {
        for (length, correlation) in [(30, 0.0), (60, 0.0), (60, 0.5), (120, 0.7), (300, 0.8)] {
            let share = share_found(length, correlation, 0.0);
            assert!(share < 0.08, "{length} s, correlation {correlation}: {share} false trends");
        }
    }

    #[test]
    fn a_trend_is_found_through_the_noise() {
        for (length, correlation, trend) in [(60, 0.0, 0.25), (120, 0.5, 0.3), (300, 0.7, -0.3)] {
            let share = share_found(length, correlation, trend);
            assert!(share > 0.9, "{length} s, correlation {correlation}, trend {trend}: found {share}");
        }
    }

    #[test]
    fn an_exact_line_is_measured_exactly() {
        let line: Vec<f64> = (0..=100).map(|second| 950.0 + f64::from(second)).collect();
        let drift = drift(&line).expect("long enough");
        assert!((drift.relative - 0.1).abs() < 1e-9 && drift.relative_noise < 1e-6);
        assert!(drift.exceeds(0.05) && !drift.exceeds(0.2));
    }

    #[test]
    fn short_empty_and_idle_series_have_no_answer() {
        assert_eq!(drift(&[]), None);
        assert_eq!(drift(&[1.0; 7]), None);
        assert_eq!(drift(&[0.0; 60]), None);
        assert_eq!(drift(&[f64::NAN; 60]), None);
    }
}
