//! A latency distribution from a few quantiles, as published by cloud providers and benchmarks.
//!
//! Between the median and the 99 % quantile, and between the 99 % and the 99.9 % quantile, the logarithm of
//! the latency is linear in the normal quantile. Each piece is therefore a lognormal distribution. The tail
//! continues with the slope of the last piece and ends at about the 99.99 % quantile. Below the median, the
//! distribution is uniform, starting at the minimum.
//!
//! The table is computed with square roots and products only, which round identically on every machine. One
//! seed therefore gives one history everywhere.

use super::LatencyQuantiles;
use crate::rng::Rng;

/// Share of a normal distribution beyond `k / 8` of its 99 % quantile (2.32635 standard deviations).
const TAIL_TO_P99: [f64; 9] = [
    0.5,
    0.385_604_634_5,
    0.280_422_461_4,
    0.191_500_430_3,
    0.122_379_469_3,
    0.072_977_669_4,
    0.040_513_248_3,
    0.020_897_560_9,
    0.01,
];
/// Share beyond `k / 4` of the way from the 99 % to the 99.9 % quantile (3.09023 standard deviations). The
/// last value is a further 13/16 of that way.
const TAIL_TO_P999: [f64; 6] =
    [0.01, 0.005_912_585_8, 0.003_381_544_0, 0.001_870_215_8, 0.001, 0.000_103_266_6];

#[derive(Debug, Clone)]
pub(super) struct Sampler {
    /// Share of requests that take longer, in units of 2^-64, and the latency. The share decreases.
    points: Vec<(u64, u64)>,
}

impl Sampler {
    pub(super) fn new(quantiles: LatencyQuantiles) -> Sampler {
        let share = |tail: f64| (tail * 2_f64.powi(64)) as u64;
        let mut points = vec![(u64::MAX, quantiles.minimum_ns)];
        let body = geometric(quantiles.median_ns, quantiles.p99_ns, 8);
        points.extend(TAIL_TO_P99.iter().map(|&tail| share(tail)).zip(body));
        let mut tail = geometric(quantiles.p99_ns, quantiles.p999_ns, 16);
        let last = tail[13] as f64 / tail[0].max(1) as f64 * quantiles.p999_ns as f64;
        tail = vec![tail[0], tail[4], tail[8], tail[12], tail[16], last as u64];
        points.extend(TAIL_TO_P999.iter().map(|&tail| share(tail)).zip(tail).skip(1));
        points.push((0, last as u64));
        Sampler { points }
    }

    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        let drawn = rng.next_u64();
        let next = self.points.iter().position(|&(share, _)| share <= drawn).unwrap_or(self.points.len() - 1);
        let (low_share, slow_ns) = self.points[next];
        let (high_share, fast_ns) = self.points[next.saturating_sub(1)];
        let part = u128::from(high_share - drawn);
        let whole = u128::from(high_share - low_share).max(1);
        fast_ns + (u128::from(slow_ns - fast_ns) * part / whole) as u64
    }
}

/// Values from `from` to `to` in `steps` equal factors; `steps` is a power of two.
fn geometric(from: u64, to: u64, steps: usize) -> Vec<u64> {
    let mut factor = to as f64 / from.max(1) as f64;
    for _ in 0..steps.trailing_zeros() {
        factor = factor.sqrt();
    }
    let mut values = vec![from];
    let mut value = from.max(1) as f64;
    for _ in 1..steps {
        value *= factor;
        values.push((value as u64).clamp(from, to));
    }
    values.push(to);
    values
}
