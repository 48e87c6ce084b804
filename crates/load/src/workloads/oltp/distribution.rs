//! Distributions of the requested rows: those of sysbench 1.0.20 (`src/sb_rand.c`) with its default
//! parameters.
//!
//! The tool's default is `special`: one percent of the rows gets three quarters of the requests, so that a
//! database larger than memory still seems to fit. A workload therefore names its distribution.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use spindle_base::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// All rows equally often.
    Uniform,
    /// The mean of twelve uniform numbers: mostly rows in the middle.
    Gaussian,
    /// A quarter of the requests as `gaussian`, the rest uniform over the middle 1 % of the rows.
    Special,
    /// 80 % of the requests for the first 20 % of the rows, and the same again within these.
    Pareto,
    /// Row k with a frequency of 1 / k^exponent. In the tool since version 1.1.
    Zipfian,
}

/// `--rand-spec-iter`.
const ITERATIONS: u32 = 12;
/// `--rand-spec-pct`: the fraction of the rows that is special.
const SPECIAL_ROWS: f64 = 0.01;
/// `--rand-spec-res`: the fraction of the requests that go to special rows.
const SPECIAL_REQUESTS: f64 = 0.75;
/// `--rand-pareto-h`.
const PARETO_H: f64 = 0.2;
/// `--rand-zipfian-exp`.
pub(crate) const ZIPFIAN_EXP: f64 = 0.8;

impl Distribution {
    /// The name in scenarios and in the tool.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Distribution::Uniform => "uniform",
            Distribution::Gaussian => "gaussian",
            Distribution::Special => "special",
            Distribution::Pareto => "pareto",
            Distribution::Zipfian => "zipfian",
        }
    }
}

/// Draws row numbers from 1 to the row count.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    distribution: Distribution,
    count: u32,
    zipfian: Zipfian,
}

impl Rows {
    pub(super) fn new(distribution: Distribution, count: u32, zipfian_exp: f64) -> Rows {
        Rows { distribution, count, zipfian: Zipfian::new(count, zipfian_exp) }
    }

    pub(super) fn draw(&self, random: &mut Random) -> u32 {
        let rows = f64::from(self.count);
        let offset = match self.distribution {
            Distribution::Uniform => return random.between(1, self.count),
            Distribution::Zipfian => return self.zipfian.draw(random),
            Distribution::Gaussian => mean(random) * rows,
            Distribution::Special => special(random, rows - 1.0),
            Distribution::Pareto => rows * random.unit().powf(PARETO_H.ln() / (1.0 - PARETO_H).ln()),
        };
        1 + (offset as u32).min(self.count - 1)
    }
}

fn mean(random: &mut Random) -> f64 {
    (0..ITERATIONS).map(|_| random.unit()).sum::<f64>() / f64::from(ITERATIONS)
}

/// `span` is the distance between the first row and the last. As in the tool, one random number both chooses
/// between the two parts and picks the special row. So the special rows begin a quarter of the way into their
/// range.
fn special(random: &mut Random, span: f64) -> f64 {
    let unit = random.unit();
    if unit < 1.0 - SPECIAL_REQUESTS {
        return mean(random) * span;
    }
    let width = span * SPECIAL_ROWS;
    unit * (width + 1.0) + span / 2.0 - width / 2.0
}

/// Rejection-inversion (Hörmann and Derflinger, ACM Transactions on Modeling and Computer Simulation 6,
/// 1996). A point under the hat x^-exponent is drawn by the inverse of the hat's integral. Its nearest whole
/// number is accepted unless the point lies above that number's bar.
#[derive(Debug, Clone, Copy)]
struct Zipfian {
    count: u32,
    exponent: f64,
    /// Integral of the hat up to the start of the first bar, and up to the end of the last bar.
    first: f64,
    last: f64,
    /// Points at most this far to the left of their number are accepted without a look at the bar.
    sure: f64,
}

impl Zipfian {
    fn new(count: u32, exponent: f64) -> Zipfian {
        let mut zipfian = Zipfian { count, exponent, first: 0.0, last: 0.0, sure: 0.0 };
        zipfian.first = zipfian.integral(1.5) - 1.0;
        zipfian.last = zipfian.integral(f64::from(count) + 0.5);
        zipfian.sure = 2.0 - zipfian.inverse(zipfian.integral(2.5) - zipfian.hat(2.0));
        zipfian
    }

    fn hat(&self, x: f64) -> f64 {
        x.powf(-self.exponent)
    }

    /// The hat's integral from 1 to x: (x^(1 - exponent) - 1) / (1 - exponent), or the logarithm if the
    /// exponent is 1.
    fn integral(&self, x: f64) -> f64 {
        let (rise, logarithm) = (1.0 - self.exponent, x.ln());
        let grown = rise * logarithm;
        if grown.abs() < 1e-8 { logarithm * (1.0 + grown / 2.0) } else { grown.exp_m1() / rise }
    }

    fn inverse(&self, area: f64) -> f64 {
        let rise = 1.0 - self.exponent;
        let grown = (area * rise).max(-1.0);
        if grown.abs() < 1e-8 { (area * (1.0 - grown / 2.0)).exp() } else { (grown.ln_1p() / rise).exp() }
    }

    fn draw(&self, random: &mut Random) -> u32 {
        loop {
            let area = self.last + random.unit() * (self.first - self.last);
            let x = self.inverse(area);
            let number = (x + 0.5).floor().clamp(1.0, f64::from(self.count));
            if number - x <= self.sure || area >= self.integral(number + 0.5) - self.hat(number) {
                return number as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u32 = 10_000;
    const DRAWS: usize = 200_000;

    /// Share of the draws that fall into these rows.
    fn share(distribution: Distribution, exponent: f64, rows: std::ops::RangeInclusive<u32>) -> f64 {
        let mut random = Random::seeded(&[7]);
        let all = Rows::new(distribution, ROWS, exponent);
        let drawn = (0..DRAWS).map(|_| all.draw(&mut random));
        drawn
            .inspect(|row| assert!((1..=ROWS).contains(row), "{row}"))
            .filter(|row| rows.contains(row))
            .count() as f64
            / DRAWS as f64
    }

    #[track_caller]
    fn check(distribution: Distribution, rows: std::ops::RangeInclusive<u32>, expected: f64) {
        let found = share(distribution, ZIPFIAN_EXP, rows);
        assert!((found - expected).abs() < 0.01, "{distribution:?}: {found}, not {expected}");
    }

    #[test]
    fn uniform_draws_every_row_alike() {
        check(Distribution::Uniform, 1..=1_000, 0.1);
        check(Distribution::Uniform, 9_001..=ROWS, 0.1);
    }

    #[test]
    fn gaussian_draws_the_middle() {
        // A mean of twelve has the standard deviation 1/12 of the range: 68.3 % lie within one of the middle.
        check(Distribution::Gaussian, 4_167..=5_833, 0.683);
    }

    #[test]
    fn special_draws_one_percent_of_the_rows_three_times_in_four() {
        // Besides, the gaussian quarter has 4.8 % of its draws there.
        check(Distribution::Special, 4_950..=5_051, 0.75 + 0.25 * 0.048);
    }

    #[test]
    fn pareto_draws_the_first_fifth_four_times_in_five() {
        check(Distribution::Pareto, 1..=2_000, 0.8);
        check(Distribution::Pareto, 1..=400, 0.64);
    }

    #[test]
    fn zipfian_draws_every_row_by_its_rank() {
        for exponent in [0.0, 0.5, ZIPFIAN_EXP, 1.0, 1.000_000_001, 2.0] {
            let weight = |rows: std::ops::RangeInclusive<u32>| -> f64 {
                rows.map(|row| f64::from(row).powf(-exponent)).sum()
            };
            for rows in [1..=1, 2..=2, 3..=10, 11..=100, 5_001..=ROWS] {
                let expected = weight(rows.clone()) / weight(1..=ROWS);
                let found = share(Distribution::Zipfian, exponent, rows.clone());
                // Five standard deviations of the binomial.
                let noise = 5.0 * (expected * (1.0 - expected) / DRAWS as f64).sqrt();
                assert!((found - expected).abs() <= noise, "{exponent}, {rows:?}: {found}, not {expected}");
            }
        }
    }

    #[test]
    fn a_table_of_one_row_is_enough() {
        use Distribution::{Gaussian, Pareto, Special, Uniform, Zipfian};
        let mut random = Random::seeded(&[1]);
        for distribution in [Uniform, Gaussian, Special, Pareto, Zipfian] {
            let rows = Rows::new(distribution, 1, ZIPFIAN_EXP);
            assert!((0..100).all(|_| rows.draw(&mut random) == 1), "{distribution:?}");
        }
    }
}
