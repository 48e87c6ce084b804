//! Seeded randomness: xoshiro256++ (Blackman and Vigna, 2019), seeded through SplitMix64.
//!
//! Our own code of twenty lines: a crate's generator may change between versions, and one seed must always
//! give the same database.

#[derive(Debug, Clone)]
pub struct Random {
    state: [u64; 4],
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

impl Random {
    /// An independent stream for each list of numbers, such as (seed, table, warehouse).
    pub fn seeded(numbers: &[u64]) -> Random {
        let mut state = 0;
        for number in numbers {
            state = split_mix(&mut state) ^ number;
        }
        Random { state: std::array::from_fn(|_| split_mix(&mut state)) }
    }

    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = &mut self.state;
        let result = s0.wrapping_add(*s3).rotate_left(23).wrapping_add(*s0);
        let shifted = *s1 << 17;
        *s2 ^= *s0;
        *s3 ^= *s1;
        *s1 ^= *s2;
        *s0 ^= *s3;
        *s2 ^= shifted;
        *s3 = s3.rotate_left(45);
        result
    }

    /// Uniform, both bounds included.
    pub fn between(&mut self, low: u32, high: u32) -> u32 {
        let span = u128::from(high - low) + 1;
        // Multiply-shift (Lemire 2019) without the rejection step: the bias is below 2^-32 for 32-bit spans.
        low + ((u128::from(self.next_u64()) * span) >> 64) as u32
    }

    /// True with a probability of `count` percent.
    pub fn percent(&mut self, count: u32) -> bool {
        self.between(1, 100) <= count
    }

    /// Letters `a` to `z`, which do not compress well.
    pub fn letters(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(b'a' + self.between(0, 25) as u8)).collect()
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Fisher-Yates shuffle.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.between(0, last as u32) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_gives_one_history() {
        let draw = |seed| {
            let mut random = Random::seeded(&[seed, 1]);
            (0..8).map(|_| random.next_u64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn both_bounds_are_drawn_and_nothing_outside() {
        let mut random = Random::seeded(&[1]);
        let mut seen = [0; 11];
        for _ in 0..11_000 {
            seen[random.between(5, 15) as usize - 5] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
    }

    #[test]
    fn a_shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::seeded(&[3]).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
