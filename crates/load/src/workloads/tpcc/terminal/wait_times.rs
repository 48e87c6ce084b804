//! Keying and think times (clauses 5.2.5.2 and 5.2.5.4): a terminal with the pace of a person.

use std::time::Duration;

use spindle_base::random::Random;

/// By the index of the kind.
const KEYING_S: [u64; 5] = [18, 3, 2, 2, 2];
const MEAN_THINK_S: [f64; 5] = [12.0, 12.0, 10.0, 5.0, 5.0];
/// Think times are truncated at this many means.
const LONGEST_MEANS: f64 = 10.0;

pub(super) fn keying(kind: usize) -> Duration {
    Duration::from_secs(KEYING_S[kind])
}

/// An exponential think time.
pub(super) fn think(kind: usize, random: &mut Random) -> Duration {
    let means = -(1.0 - random.unit()).ln();
    Duration::from_secs_f64(means.min(LONGEST_MEANS) * MEAN_THINK_S[kind])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_makes_as_many_new_orders_as_the_standard_allows() {
        let mut random = Random::seeded(&[1]);
        let think_s = |kind, random: &mut Random| {
            let all: Duration = (0..20_000).map(|_| think(kind, random)).sum();
            all.as_secs_f64() / 20_000.0
        };
        let cycle_s: f64 = [45.0, 43.0, 4.0, 4.0, 4.0]
            .iter()
            .enumerate()
            .map(|(kind, percent)| {
                percent / 100.0 * (keying(kind).as_secs_f64() + think_s(kind, &mut random))
            })
            .sum();
        // Ten terminals per warehouse; the limit of 12.86 assumes answers in zero time.
        let per_warehouse = 10.0 * 60.0 / cycle_s * 0.45;
        assert!((12.7..13.0).contains(&per_warehouse), "{per_warehouse}");
    }

    #[test]
    fn nobody_thinks_for_longer_than_ten_means() {
        let mut random = Random::seeded(&[1]);
        let longest = (0..1_000_000).map(|_| think(0, &mut random)).max().unwrap();
        assert_eq!(longest, Duration::from_secs(120));
    }
}
