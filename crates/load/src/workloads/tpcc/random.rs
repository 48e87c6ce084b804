//! The random values of clauses 2.1.6 and 4.3.2: NURand, last names, strings.

use spindle_base::random::Random;

/// C for C_LAST in the load (clause 2.1.6.1). It is a constant, so that a run knows it for any seed.
const LAST_NAME_C_LOAD: u32 = 157;

/// The run-time constants C of NURand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Constants {
    last_name: u32,
    customer: u32,
    item: u32,
}

impl Constants {
    pub(super) fn for_population() -> Constants {
        Constants { last_name: LAST_NAME_C_LOAD, customer: 0, item: 0 }
    }

    /// The constants of a run, equal for all terminals.
    pub(super) fn for_run(seed: u64) -> Constants {
        let mut random = Random::seeded(&[seed, 0x6e75_7261_6e64]);
        // Clause 2.1.6.1: the difference from the load's C lies in 65..=119 and is neither 96 nor 112.
        let last_name = loop {
            let candidate = random.between(0, 255);
            let delta = candidate.abs_diff(LAST_NAME_C_LOAD);
            if (65..=119).contains(&delta) && delta != 96 && delta != 112 {
                break candidate;
            }
        };
        Constants { last_name, customer: random.between(0, 1023), item: random.between(0, 8191) }
    }

    /// A number from 0 to 999.
    pub(super) fn last_name_number(&self, random: &mut Random) -> u32 {
        nurand(random, 255, self.last_name, 0, 999)
    }

    pub(super) fn customer(&self, random: &mut Random) -> u32 {
        nurand(random, 1023, self.customer, 1, super::CUSTOMERS_PER_DISTRICT)
    }

    pub(super) fn item(&self, random: &mut Random) -> u32 {
        nurand(random, 8191, self.item, 1, super::ITEMS)
    }
}

fn nurand(random: &mut Random, a: u32, c: u32, x: u32, y: u32) -> u32 {
    (((random.between(0, a) | random.between(x, y)) + c) % (y - x + 1)) + x
}

/// The last name of a number (clause 4.3.2.3).
pub(super) fn last_name(number: u32) -> String {
    const SYLLABLES: [&str; 10] =
        ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

/// Appends letters and digits. The length is uniform between the bounds.
pub(super) fn push_letters(row: &mut Vec<u8>, random: &mut Random, low: u32, high: u32) {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789AZ";
    let mut left = random.between(low, high);
    // Ten letters per draw: a load needs hundreds of millions of letters.
    while left > 0 {
        let mut bits = random.next_u64();
        for _ in 0..left.min(10) {
            row.push(LETTERS[(bits & 63) as usize]);
            bits >>= 6;
        }
        left = left.saturating_sub(10);
    }
}

pub(super) fn push_digits(row: &mut Vec<u8>, random: &mut Random, count: u32) {
    row.extend((0..count).map(|_| b'0' + random.between(0, 9) as u8));
}

/// Clause 4.3.2.7: four random digits and `11111`.
pub(super) fn push_zip(row: &mut Vec<u8>, random: &mut Random) {
    push_digits(row, random, 4);
    row.extend_from_slice(b"11111");
}

/// Appends 26 to 50 letters; in one row of ten they contain `ORIGINAL` (clauses 4.3.3.1 for I_DATA and
/// S_DATA).
pub(super) fn push_data(row: &mut Vec<u8>, random: &mut Random) {
    let start = row.len();
    push_letters(row, random, 26, 50);
    if random.percent(10) {
        let last_position = (row.len() - start - 8) as u32;
        let position = start + random.between(0, last_position) as usize;
        row[position..position + 8].copy_from_slice(b"ORIGINAL");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_names_are_three_syllables() {
        assert_eq!(last_name(371), "PRICALLYOUGHT");
        assert_eq!(last_name(0), "BARBARBAR");
        assert_eq!(last_name(999), "EINGEINGEING");
    }

    #[test]
    fn run_constants_keep_the_distance_to_the_load() {
        for seed in 0..1_000 {
            let delta = Constants::for_run(seed).last_name.abs_diff(LAST_NAME_C_LOAD);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112, "seed {seed}: {delta}");
        }
    }

    #[test]
    fn nurand_stays_inside_and_is_not_uniform() {
        let constants = Constants::for_run(1);
        let mut random = Random::seeded(&[1]);
        let mut counts = vec![0u32; super::super::ITEMS as usize + 1];
        for _ in 0..1_000_000 {
            counts[constants.item(&mut random) as usize] += 1;
        }
        assert_eq!(counts[0], 0);
        // Uniform draws would give every item about 10; the hottest tenth of NURand takes several times its
        // share.
        counts.sort_unstable_by_key(|count| std::cmp::Reverse(*count));
        let hottest: u32 = counts[..10_000].iter().sum();
        assert!(hottest > 400_000, "{hottest}");
    }

    #[test]
    fn one_row_of_ten_is_original() {
        let mut random = Random::seeded(&[1]);
        let mut found = 0;
        for _ in 0..20_000 {
            let mut row = Vec::new();
            push_data(&mut row, &mut random);
            assert!((26..=50).contains(&row.len()));
            found += u32::from(row.windows(8).any(|window| window == b"ORIGINAL"));
        }
        assert!((1_800..2_200).contains(&found), "{found}");
    }
}
