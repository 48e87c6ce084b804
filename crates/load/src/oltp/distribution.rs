//! Which rows are asked for: the distributions of sysbench 1.0.20 (`src/sb_rand.c`) with its default parameters.
//!
//! The tool's own default is `special`, in which one percent of the rows gets three quarters of the requests, so that a database larger
//! than memory still seems to fit. A workload therefore names its distribution.

use serde::{Deserialize, Serialize};

use crate::random::Random;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Distribution {
    /// Every row alike.
    Uniform,
    /// The mean of twelve uniform numbers: rows in the middle are asked for most.
    Gaussian,
    /// A quarter as `gaussian`, the rest uniform over the one percent of the rows in the middle.
    Special,
    /// Four fifths of the requests to the first fifth of the rows, and so on within that fifth.
    Pareto,
}

/// `--rand-spec-iter`.
const ITERATIONS: u32 = 12;
/// `--rand-spec-pct`: share of the rows that is special.
const SPECIAL_ROWS: f64 = 0.01;
/// `--rand-spec-res`: share of the requests that go to them.
const SPECIAL_REQUESTS: f64 = 0.75;
/// `--rand-pareto-h`.
const PARETO_H: f64 = 0.2;

impl Distribution {
    /// From 1 to `count`.
    pub(super) fn draw(self, random: &mut Random, count: u32) -> u32 {
        let rows = f64::from(count);
        let offset = match self {
            Distribution::Uniform => return random.between(1, count),
            Distribution::Gaussian => mean(random) * rows,
            Distribution::Special => special(random, rows - 1.0),
            Distribution::Pareto => rows * random.unit().powf(PARETO_H.ln() / (1.0 - PARETO_H).ln()),
        };
        1 + (offset as u32).min(count - 1)
    }
}

fn mean(random: &mut Random) -> f64 {
    (0..ITERATIONS).map(|_| random.unit()).sum::<f64>() / f64::from(ITERATIONS)
}

/// `span` is the distance between the first row and the last. The number that decides between the two parts also draws from
/// the special rows, as it does in the tool, so that these begin a quarter of the way into their range.
fn special(random: &mut Random, span: f64) -> f64 {
    let unit = random.unit();
    if unit < 1.0 - SPECIAL_REQUESTS {
        return mean(random) * span;
    }
    let width = span * SPECIAL_ROWS;
    unit * (width + 1.0) + span / 2.0 - width / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u32 = 10_000;
    const DRAWS: usize = 200_000;

    /// Share of the draws that fall into these rows.
    fn share(distribution: Distribution, rows: std::ops::RangeInclusive<u32>) -> f64 {
        let mut random = Random::seeded(&[7]);
        let drawn = (0..DRAWS).map(|_| distribution.draw(&mut random, ROWS));
        drawn
            .inspect(|row| assert!((1..=ROWS).contains(row), "{row}"))
            .filter(|row| rows.contains(row))
            .count() as f64
            / DRAWS as f64
    }

    #[track_caller]
    fn check(distribution: Distribution, rows: std::ops::RangeInclusive<u32>, expected: f64) {
        let found = share(distribution, rows);
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
    fn a_table_of_one_row_is_enough() {
        use Distribution::{Gaussian, Pareto, Special, Uniform};
        let mut random = Random::seeded(&[1]);
        for distribution in [Uniform, Gaussian, Special, Pareto] {
            assert!((0..100).all(|_| distribution.draw(&mut random, 1) == 1), "{distribution:?}");
        }
    }
}
