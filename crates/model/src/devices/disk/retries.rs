//! The number of extra rotations until a read succeeds.

use crate::devices::ReadRetries;
use crate::rng::Rng;

const MILLION: u64 = 1_000_000;

impl ReadRetries {
    /// Extra rotations of a read: mostly zero, otherwise geometrically distributed. A separate function keeps
    /// it out of the path of drives without retries.
    #[cold]
    pub(super) fn draw_rotations(&self, rng: &mut Rng) -> u64 {
        if rng.below(MILLION) >= self.per_million {
            return 0;
        }
        let mut rotations = 1;
        while rng.below(self.mean_rotations) > 0 {
            rotations += 1;
        }
        rotations
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_and_mean_are_those_of_the_parameters() {
        let retries = ReadRetries { per_million: 50_000, mean_rotations: 5 };
        let mut rng = Rng::new(1);
        let draws: Vec<u64> = (0..200_000).map(|_| retries.draw_rotations(&mut rng)).collect();
        let slow = draws.iter().filter(|&&rotations| rotations > 0).count() as f64;
        let mean = draws.iter().sum::<u64>() as f64 / slow;
        // Three standard errors: 10,000 +- 98 of them, and a mean of 5 +- 0.045.
        assert!((slow - 10_000.0).abs() < 300.0, "{slow}");
        assert!((mean - 5.0).abs() < 0.14, "{mean}");
    }
}
