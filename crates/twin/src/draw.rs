//! Random draws of a simulation, from one seed.

use spindle_model::Rng;

#[derive(Debug)]
pub(crate) struct Draws {
    rng: Rng,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws { rng: Rng::new(seed) }
    }

    pub(crate) fn any(&mut self) -> u64 {
        self.rng.next_u64()
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.rng.below(bound)
    }

    /// Uniform in 0..1.
    fn uniform(&mut self) -> f64 {
        (self.rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// An exponential time with this mean.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.uniform()).ln()
    }

    /// A whole number with this mean that is its neighbour above or below.
    pub(crate) fn rounded(&mut self, mean: f64) -> u64 {
        let floor = mean.max(0.0).floor();
        floor as u64 + u64::from(self.uniform() < mean - floor)
    }

    /// A Poisson number. Above a mean of 30 the normal distribution takes its place.
    pub(crate) fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 30.0 {
            let normal =
                (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos();
            return (mean + mean.sqrt() * normal).round().max(0.0) as u64;
        }
        // Knuth, The Art of Computer Programming, volume 2, 3.4.1.
        let limit = (-mean).exp();
        let mut product = self.uniform();
        let mut count = 0;
        while product > limit {
            product *= self.uniform();
            count += 1;
        }
        count
    }

    /// An index, each as likely as its weight.
    pub(crate) fn weighted(&mut self, weights: &[f64]) -> usize {
        let mut left = self.uniform() * weights.iter().sum::<f64>();
        let found = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        found.unwrap_or(weights.len() - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(draw: impl Fn(&mut Draws) -> f64) -> f64 {
        let mut draws = Draws::new(1);
        (0..20_000).map(|_| draw(&mut draws)).sum::<f64>() / 20_000.0
    }

    #[test]
    fn draws_have_their_means() {
        for wanted in [0.3, 4.2, 29.0, 80.0] {
            let means =
                [mean(|draws| draws.poisson(wanted) as f64), mean(|draws| draws.rounded(wanted) as f64)];
            assert!(means.iter().all(|found| (found - wanted).abs() < 0.03 * wanted + 0.02), "{means:?}");
            assert!((mean(|draws| draws.exponential(wanted)) - wanted).abs() < 0.03 * wanted);
        }
    }

    #[test]
    fn a_weighted_draw_follows_its_weights() {
        let share = mean(|draws| draws.weighted(&[1.0, 3.0]) as f64);
        assert!((share - 0.75).abs() < 0.02, "{share}");
    }
}
