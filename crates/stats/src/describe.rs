//! Mean, variance, quantiles.

/// Arithmetic mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Unbiased sample variance (divisor n - 1), in two passes with the correction term of Chan, Golub and
/// LeVeque, "Algorithms for Computing the Sample Variance", The American Statistician 37 (1983), eq. 1.7;
/// `None` below two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let count = values.len() as f64;
    let centre = mean(values)?;
    let (mut squares, mut rest) = (0.0, 0.0);
    for value in values {
        let difference = value - centre;
        squares += difference * difference;
        rest += difference;
    }
    Some((squares - rest * rest / count) / (count - 1.0))
}

/// Square root of [`variance`].
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    variance(values).map(f64::sqrt)
}

/// Quantile of type 7 in Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American
/// Statistician 50 (1996): linear between order statistics, the default of R and NumPy. `None` for no values
/// or a NaN among them.
///
/// # Panics
/// If `probability` is not within 0 to 1.
pub fn quantile(values: &[f64], probability: f64) -> Option<f64> {
    assert!((0.0..=1.0).contains(&probability), "a quantile is between 0 and 1, not {probability}");
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let position = probability * (sorted.len() - 1) as f64;
    let below = position.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + (position - below as f64) * (sorted[above] - sorted[below]))
}

/// Values above a quantile from which it is an estimate rather than an accident. The number of values above
/// the true quantile is binomial: of ten it varies by a third (one standard deviation).
const ABOVE_QUANTILE: f64 = 10.0;

/// The fewest values of which a quantile is given: p50 of 20, p99 of 1,000.
///
/// # Panics
/// If `probability` is not at least 0 and below 1.
pub fn fewest_for_quantile(probability: f64) -> u64 {
    assert!((0.0..1.0).contains(&probability), "a quantile is below 1, not {probability}");
    // Less the rounding error of 1 - p.
    (ABOVE_QUANTILE / (1.0 - probability) - 1e-6).ceil() as u64
}

/// Half the width of the 95 % interval of a rate, as a share of it, from a Poisson count of events (normal
/// approximation: Johnson, Kemp and Kotz, Univariate Discrete Distributions, 4.7).
pub fn error_of_count(count: u64) -> f64 {
    1.96 / (count as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_needs_ten_values_above_it() {
        let fewest = [0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999].map(fewest_for_quantile);
        assert_eq!(fewest, [20, 40, 100, 200, 1_000, 2_000, 10_000, 100_000]);
    }

    #[test]
    fn a_hundred_events_give_a_rate_within_a_fifth() {
        let percent = [1, 50, 100, 10_000].map(|count| (error_of_count(count) * 100.0).round());
        assert_eq!(percent, [196.0, 28.0, 20.0, 2.0]);
    }

    fn close(actual: Option<f64>, expected: f64) {
        let actual = actual.expect("a value");
        assert!((actual - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{actual} is not {expected}");
    }

    #[test]
    fn variance_divides_by_one_less_than_the_count() {
        close(variance(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 32.0 / 7.0);
    }

    #[test]
    fn variance_survives_a_large_offset() {
        close(variance(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]), 30.0);
    }

    #[test]
    fn one_value_has_a_mean_but_no_variance() {
        close(mean(&[3.0]), 3.0);
        assert_eq!(variance(&[3.0]), None);
        assert_eq!(mean(&[]), None);
    }

    // R: quantile(c(15, 20, 35, 40, 50), p, type = 7)
    #[test]
    fn quantiles_agree_with_r() {
        let values = [40.0, 15.0, 50.0, 20.0, 35.0];
        close(quantile(&values, 0.05), 16.0);
        close(quantile(&values, 0.4), 29.0);
        close(quantile(&values, 0.5), 35.0);
        close(quantile(&values, 1.0), 50.0);
    }

    #[test]
    fn a_quantile_of_nothing_or_of_nan_is_none() {
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[1.0, f64::NAN], 0.5), None);
    }
}
