//! How many reads another size of the buffer pool would leave, from a trace of what one size left.
//!
//! For each read, the distance is the number of different pages that entered the pool since the page's last read:
//! those that were read, and those that are written and never read in the whole trace. The server has made these,
//! for new rows and the undo log, or they never leave. A trace has only the misses of the pool: a page that is read
//! again was evicted meanwhile, for which the part of the pool that turns over had to be read once. Which of them a
//! larger pool answers goes by the server's list (`lists.rs`). Reads of pages that were not read before in the trace
//! have a distance that is known to be longer than the trace so far; the product-limit estimate counts them for that.
//!
//! Only pages of a sample are followed, chosen by a hash of their number, and their distances are scaled.
//!
//! Sources: Waldspurger et al., "Efficient MRC construction with SHARDS" (FAST 2015); Mattson et al., "Evaluation
//! techniques for storage hierarchies" (1970); Kaplan and Meier, "Nonparametric estimation from incomplete
//! observations" (1958).

use std::collections::{BTreeMap, BTreeSet};

use spindle_model::split_mix;

use super::classify::PageUse;
use super::lists::Answered;

/// Share of the reads that are left, by the number of different pages that enter the pool before a page leaves it.
#[derive(Debug, Clone, PartialEq)]
pub struct MissCurve {
    /// Distances in pages, each with the share of the reads whose distance is longer; rising distances.
    steps: Vec<(f64, f64)>,
    /// The shortest distances of the trace: what turns over in the pool.
    turnover_pages: f64,
    /// The longest distance that the trace could show.
    longest: f64,
}

/// Uses that are followed without sampling.
const FOLLOWED_MOST: usize = 1 << 20;
/// Reads of pages that were read before, below which there is no curve.
const AGAIN_LEAST: usize = 100;
/// The share of the distances that is taken for chance: single pages of the old part of the LRU list leave
/// early.
const EARLY: f64 = 0.02;

impl MissCurve {
    /// `None` if hardly any page was read twice.
    pub fn of(followed: &Followed) -> Option<MissCurve> {
        // Those of first reads rise.
        let (mut again, mut first) = (Vec::new(), Vec::new());
        for page_use in &followed.uses {
            match page_use.what {
                What::Read(Reuse::Again(distance)) => again.push(distance),
                What::Read(Reuse::First(before)) => first.push(before),
                What::Written | What::Made => {}
            }
        }
        if again.len() < AGAIN_LEAST {
            return None;
        }
        again.sort_by(f64::total_cmp);
        let turnover_pages = again[(again.len() as f64 * EARLY) as usize];
        let longest = first.last().copied().unwrap_or(turnover_pages);
        Some(MissCurve { steps: product_limit(&again, &first), turnover_pages, longest })
    }

    /// The number of different pages that entered the measured pool before a page left it.
    pub fn turnover_pages(&self) -> f64 {
        self.turnover_pages
    }

    /// Share of the reads whose distance is longer.
    fn longer(&self, distance: f64) -> f64 {
        let after = self.steps.partition_point(|(step, _)| *step <= distance);
        after.checked_sub(1).map_or(1.0, |last| self.steps[last].1)
    }

    /// Share of the reads of the trace that are left with a pool that answers these.
    pub fn left(&self, followed: &Followed, answered: &Answered) -> f64 {
        let longer_than_pool = self.longer(answered.pages);
        let left_of = |(page_use, is_answered): (&Use, &bool)| match page_use.what {
            // As many as have an even longer distance, of those with a distance as long as the trace so far. There are
            // some: this read is among them.
            What::Read(Reuse::First(before)) if before < answered.pages => {
                Some(longer_than_pool / self.longer(before))
            }
            What::Read(_) => Some(f64::from(u8::from(!is_answered))),
            What::Written | What::Made => None,
        };
        let reads = followed.uses.iter().zip(&answered.is_answered).filter_map(left_of);
        let (count, left) = reads.fold((0.0, 0.0), |(count, sum), left| (count + 1.0, sum + left));
        if count > 0.0 { left / count } else { 1.0 }
    }

    /// The largest number of pages for which the trace is long enough.
    pub fn longest_pages(&self) -> f64 {
        self.longest
    }
}

/// A read by the number of different pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reuse {
    /// That entered the pool since the page's last read.
    Again(f64),
    /// That entered before, since the trace began; the page was not among them.
    First(f64),
}

impl Reuse {
    /// For one page in so many.
    fn scaled(self, every: u64) -> Reuse {
        match self {
            Reuse::Again(distance) => Reuse::Again(distance * every as f64),
            Reuse::First(before) => Reuse::First(before * every as f64),
        }
    }
}

/// A use of a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Use {
    pub page: u64,
    pub at_ns: f64,
    pub what: What,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum What {
    Read(Reuse),
    /// A page that is read somewhere in the trace.
    Written,
    /// A page that the server has made, or that never leaves.
    Made,
}

/// The uses of the pages that are followed, in their order.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    pub(super) uses: Vec<Use>,
    /// One page in so many is followed.
    pub(super) every: u64,
}

impl Followed {
    pub fn of(uses: &[PageUse]) -> Followed {
        Followed::one_in(uses.len().div_ceil(FOLLOWED_MOST).next_power_of_two() as u64, uses)
    }

    pub(super) fn one_in(every: u64, uses: &[PageUse]) -> Followed {
        let is_followed = |page_use: &&PageUse| split_mix(page_use.page).is_multiple_of(every);
        let kept: Vec<PageUse> = uses.iter().filter(is_followed).copied().collect();
        let of_use = |(page_use, what): (&PageUse, What)| {
            let what = if let What::Read(reuse) = what { What::Read(reuse.scaled(every)) } else { what };
            Use { page: page_use.page, at_ns: page_use.at.0 as f64, what }
        };
        Followed { uses: kept.iter().zip(whats(&kept)).map(of_use).collect(), every }
    }
}

/// Distances by a tree of the last uses.
fn whats(uses: &[PageUse]) -> Vec<What> {
    let read: BTreeSet<u64> =
        uses.iter().filter(|page_use| !page_use.is_write).map(|page_use| page_use.page).collect();
    let mut tree = Tree::new(uses.len());
    let mut last: BTreeMap<u64, usize> = BTreeMap::new();
    let of_use = |(now, &PageUse { page, is_write, .. }): (usize, &PageUse)| {
        if is_write && read.contains(&page) {
            return What::Written;
        }
        let reuse = match last.insert(page, now) {
            Some(before) => {
                let between = tree.until(now) - tree.until(before + 1);
                tree.add(before, -1);
                Reuse::Again(between as f64)
            }
            None => Reuse::First((last.len() - 1) as f64),
        };
        tree.add(now, 1);
        if is_write { What::Made } else { What::Read(reuse) }
    };
    uses.iter().enumerate().map(of_use).collect()
}

/// Kaplan and Meier: the share of reads whose distance is longer than each observed one.
fn product_limit(again: &[f64], first: &[f64]) -> Vec<(f64, f64)> {
    let mut steps: Vec<(f64, f64)> = Vec::new();
    let mut share = 1.0;
    let mut index = 0;
    while index < again.len() {
        let distance = again[index];
        let same = again[index..].partition_point(|other| *other <= distance);
        let still = again.len() - index + first.len() - first.partition_point(|other| *other < distance);
        share *= 1.0 - same as f64 / still as f64;
        steps.push((distance, share));
        index += same;
    }
    steps
}

/// A Fenwick tree of counts.
struct Tree {
    sums: Vec<i64>,
}

impl Tree {
    fn new(count: usize) -> Tree {
        Tree { sums: vec![0; count + 1] }
    }

    fn add(&mut self, index: usize, count: i64) {
        let mut index = index + 1;
        while index < self.sums.len() {
            self.sums[index] += count;
            index += index & index.wrapping_neg();
        }
    }

    /// Sum of the counts before an index.
    fn until(&self, index: usize) -> i64 {
        let mut index = index;
        let mut sum = 0;
        while index > 0 {
            sum += self.sums[index];
            index &= index - 1;
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use spindle_model::{Instant, Rng};

    use super::super::List;
    use super::*;

    fn read(page: u64) -> PageUse {
        PageUse { page, at: Instant(0), is_write: false }
    }

    fn write(page: u64) -> PageUse {
        PageUse { is_write: true, ..read(page) }
    }

    #[test]
    fn distances_count_different_pages() {
        let reads = [1, 2, 3, 2, 2, 1].map(read);
        let (first, again) = (Reuse::First, Reuse::Again);
        let expect = [first(0.0), first(1.0), first(2.0), again(1.0), again(0.0), again(2.0)];
        assert_eq!(whats(&reads), expect.map(What::Read));
    }

    #[test]
    fn pages_that_the_server_made_take_room() {
        let uses = [read(1), write(7), write(1), write(8), write(7), read(1)];
        let (first, again) = (What::Read(Reuse::First(0.0)), What::Read(Reuse::Again(2.0)));
        assert_eq!(whats(&uses), [first, What::Made, What::Written, What::Made, What::Made, again]);
    }

    /// What an LRU pool leaves of skewed reads, between which new pages are made, one for so many reads. A new page is
    /// written when it leaves.
    fn uses(pool: usize, reads: u64, made_every: Option<u64>) -> Vec<PageUse> {
        const NEW: u64 = 1_000_000;
        let mut rng = Rng::new(1);
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut order: BTreeMap<u64, u64> = BTreeMap::new();
        let mut left = Vec::new();
        for now in 0..reads {
            let is_new = made_every.is_some_and(|every| now % every == 0);
            let skewed = rng.below(4_000).min(rng.below(4_000)).min(rng.below(4_000));
            let page = if is_new { NEW + now } else { skewed };
            if let Some(before) = last.insert(page, now) {
                order.remove(&before);
            } else {
                left.extend((!is_new).then(|| read(page)));
                if last.len() > pool
                    && let Some((_, oldest)) = order.pop_first()
                {
                    last.remove(&oldest);
                    left.extend((oldest >= NEW).then(|| write(oldest)));
                }
            }
            order.insert(now, page);
        }
        left
    }

    fn reads(uses: &[PageUse]) -> f64 {
        uses.iter().filter(|page_use| !page_use.is_write).count() as f64
    }

    #[test]
    fn a_larger_pool_leaves_as_many_reads_as_it_really_does() {
        for made_every in [None, Some(10), Some(3)] {
            let small = uses(500, 200_000, made_every);
            for every in [1, 4] {
                let followed = Followed::one_in(every, &small);
                let curve = MissCurve::of(&followed).expect("pages are read again");
                for pool in [1_000, 2_000] {
                    let really = reads(&uses(pool, 200_000, made_every)) / reads(&small);
                    let pages = curve.turnover_pages() + (pool - 500) as f64;
                    let left = curve.left(&followed, &followed.answered(&List::LastUse(pages)));
                    let words = format!("{made_every:?}, {every}, {pool}: {left}, not {really}");
                    assert!((left / really - 1.0).abs() < 0.15, "{words}");
                }
            }
        }
    }

    #[test]
    fn pages_that_are_read_once_give_no_curve() {
        let pages: Vec<PageUse> = (0..10_000).map(read).collect();
        assert_eq!(MissCurve::of(&Followed::of(&pages)), None);
    }
}
