//! Student's t distribution, computed from the incomplete beta function.

/// Natural logarithm of the gamma function for x > 0: Lanczos' approximation with the coefficients of
/// Numerical Recipes, 2nd edition, section 6.1 (relative error below 2e-10).
fn ln_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 6] = [
        76.180_091_729_471_46,
        -86.505_320_329_416_77,
        24.014_098_240_830_91,
        -1.231_739_572_450_155,
        0.120_865_097_386_617_9e-2,
        -0.539_523_938_495_3e-5,
    ];
    let shifted = x + 5.5;
    let mut series = 1.000_000_000_190_015;
    for (index, coefficient) in COEFFICIENTS.iter().enumerate() {
        series += coefficient / (x + 1.0 + index as f64);
    }
    (x + 0.5) * shifted.ln() - shifted + (2.506_628_274_631_000_5 * series / x).ln()
}

/// Continued fraction of the incomplete beta function, DLMF 8.17.22 (<https://dlmf.nist.gov/8.17.E22>), by
/// the modified Lentz method (Thompson and Barnett 1986).
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for step in 1..=10_000 {
        let m = f64::from(step);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for coefficient in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + coefficient * d);
            c = away_from_zero(1.0 + coefficient / c);
            change = c * d;
            fraction *= change;
        }
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// Regularised incomplete beta function I_x(a, b), DLMF 8.17.2; the symmetry 8.17.4 keeps the fraction
/// convergent.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * beta_fraction(a, b, x) / a
    } else {
        1.0 - front * beta_fraction(b, a, 1.0 - x) / b
    }
}

/// Probability that a t variable is below `t`: Abramowitz and Stegun 26.7.1 with 26.5.27.
pub fn student_t_below(t: f64, degrees_of_freedom: f64) -> f64 {
    let x = degrees_of_freedom / (degrees_of_freedom + t * t);
    let tail = 0.5 * incomplete_beta(degrees_of_freedom / 2.0, 0.5, x);
    if t > 0.0 { 1.0 - tail } else { tail }
}

/// The `t` below which a t variable lies with `probability`; `degrees_of_freedom` may be fractional (Welch).
///
/// # Panics
/// If `probability` is not strictly between 0 and 1, or `degrees_of_freedom` is not positive.
pub fn student_t_quantile(probability: f64, degrees_of_freedom: f64) -> f64 {
    assert!(probability > 0.0 && probability < 1.0, "a probability is between 0 and 1, not {probability}");
    assert!(degrees_of_freedom > 0.0, "degrees of freedom are positive, not {degrees_of_freedom}");
    if probability < 0.5 {
        return -student_t_quantile(1.0 - probability, degrees_of_freedom);
    }
    // Bisection suffices: the function is monotonic, and a report needs a handful of quantiles.
    let mut high = 1.0;
    while student_t_below(high, degrees_of_freedom) < probability && high < 1e12 {
        high *= 2.0;
    }
    let mut low = 0.0;
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            // No number lies between them.
            break;
        }
        if student_t_below(middle, degrees_of_freedom) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;

    // NIST/SEMATECH e-Handbook of Statistical Methods, 1.3.6.7.2, three decimals.
    #[test]
    fn quantiles_agree_with_the_printed_table() {
        for (degrees, at_095, at_0975, at_0995) in [
            (1.0, 6.314, 12.706, 63.657),
            (2.0, 2.920, 4.303, 9.925),
            (3.0, 2.353, 3.182, 5.841),
            (4.0, 2.132, 2.776, 4.604),
            (5.0, 2.015, 2.571, 4.032),
            (9.0, 1.833, 2.262, 3.250),
            (30.0, 1.697, 2.042, 2.750),
            (100.0, 1.660, 1.984, 2.626),
        ] {
            for (probability, expected) in [(0.95, at_095), (0.975, at_0975), (0.995, at_0995)] {
                let actual = student_t_quantile(probability, degrees);
                assert!(
                    (actual - expected).abs() < 6e-4,
                    "t({probability}, {degrees}) = {actual}, not {expected}"
                );
            }
        }
    }

    #[test]
    fn one_degree_of_freedom_is_the_cauchy_distribution() {
        for t in [-30.0, -1.0, 0.0, 0.5, 12.0] {
            let cauchy = 0.5 + f64::atan(t) / std::f64::consts::PI;
            assert!((student_t_below(t, 1.0) - cauchy).abs() < 1e-9);
        }
    }

    #[test]
    fn quantiles_are_symmetric_and_approach_the_normal() {
        assert!((student_t_quantile(0.025, 7.5) + student_t_quantile(0.975, 7.5)).abs() < 1e-9);
        assert!((student_t_quantile(0.975, 1e6) - 1.959_966).abs() < 1e-4);
    }
}
