//! How many reads another size of the buffer pool would leave, from a trace of the reads that one size left.
//!
//! For each read, the distance is the number of different pages that were read since the page's last read. A
//! trace has only the misses of the pool: a page that is read again was evicted meanwhile, for which the part
//! of the pool that turns over had to be read once. How many pages are read before one leaves a larger pool depends
//! on the server's list; in a plain LRU list, n pages more with n pages more. Reads of pages that were not read
//! before in the trace have a distance that is known to be longer than the trace so far; the product-limit estimate
//! counts them for that.
//!
//! Only pages of a sample are followed, chosen by a hash of their number, and their distances are scaled.
//!
//! Sources: Waldspurger et al., "Efficient MRC construction with SHARDS" (FAST 2015); Mattson et al., "Evaluation
//! techniques for storage hierarchies" (1970); Kaplan and Meier, "Nonparametric estimation from incomplete
//! observations" (1958).

use std::collections::BTreeMap;

use spindle_model::split_mix;

/// Share of the reads that are left, by the number of different pages that are read before a page leaves the pool.
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
    /// The curve of these page numbers, in the order in which they were read. `None` if hardly any was read
    /// twice.
    pub fn of(pages: &[u64]) -> Option<MissCurve> {
        let (followed, every) = followed(pages, |page| *page);
        // Those of first reads rise.
        let (mut again, mut first) = (Vec::new(), Vec::new());
        for reuse in reuses(&followed) {
            match reuse.scaled(every) {
                Reuse::Again(distance) => again.push(distance),
                Reuse::First(before) => first.push(before),
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

    /// The number of different pages that were read in the measured pool before a page left it.
    pub fn turnover_pages(&self) -> f64 {
        self.turnover_pages
    }

    /// Share of the reads that a pool leaves in which so many different pages are read before a page leaves it.
    pub fn left(&self, pages: f64) -> f64 {
        let longer = |distance: f64| {
            let after = self.steps.partition_point(|(step, _)| *step <= distance);
            after.checked_sub(1).map_or(1.0, |last| self.steps[last].1)
        };
        // What lies below the turnover is chance, and belongs to the pool as it is.
        longer(pages.max(self.turnover_pages)) / longer(self.turnover_pages)
    }

    /// The largest number of pages for which the trace is long enough.
    pub fn longest_pages(&self) -> f64 {
        self.longest
    }
}

/// A read by the number of different pages.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Reuse {
    /// That were read since the page's last read.
    Again(f64),
    /// That were read before, since the trace began; the page was not among them.
    First(f64),
}

impl Reuse {
    /// For one page in so many.
    pub(super) fn scaled(self, every: u64) -> Reuse {
        match self {
            Reuse::Again(distance) => Reuse::Again(distance * every as f64),
            Reuse::First(before) => Reuse::First(before * every as f64),
        }
    }
}

/// The uses of the pages that are followed, which are one in so many.
pub(super) fn followed<Use: Copy>(uses: &[Use], page: impl Fn(&Use) -> u64) -> (Vec<Use>, u64) {
    let every = uses.len().div_ceil(FOLLOWED_MOST).next_power_of_two() as u64;
    let kept = uses.iter().filter(|page_use| split_mix(page(page_use)).is_multiple_of(every));
    (kept.copied().collect(), every)
}

/// Of each read, by a tree of the last reads.
pub(super) fn reuses(pages: &[u64]) -> Vec<Reuse> {
    let mut tree = Tree::new(pages.len());
    let mut last: BTreeMap<u64, usize> = BTreeMap::new();
    let of_read = |(now, page): (usize, &u64)| {
        let reuse = match last.insert(*page, now) {
            Some(before) => {
                let between = tree.until(now) - tree.until(before + 1);
                tree.add(before, -1);
                Reuse::Again(between as f64)
            }
            None => Reuse::First((last.len() - 1) as f64),
        };
        tree.add(now, 1);
        reuse
    };
    pages.iter().enumerate().map(of_read).collect()
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
    use spindle_model::Rng;

    use super::*;

    #[test]
    fn distances_count_different_pages() {
        let (first, again) = (Reuse::First, Reuse::Again);
        let expect = [first(0.0), first(1.0), first(2.0), again(1.0), again(0.0), again(2.0)];
        assert_eq!(reuses(&[1, 2, 3, 2, 2, 1]), expect);
    }

    /// Misses of an LRU pool under skewed reads.
    fn misses(pool: usize, reads: u64) -> Vec<u64> {
        let mut rng = Rng::new(1);
        let mut last: BTreeMap<u64, u64> = BTreeMap::new();
        let mut order: BTreeMap<u64, u64> = BTreeMap::new();
        let mut missed = Vec::new();
        for now in 0..reads {
            let page = rng.below(4_000).min(rng.below(4_000)).min(rng.below(4_000));
            if let Some(before) = last.insert(page, now) {
                order.remove(&before);
            } else {
                missed.push(page);
                if last.len() > pool
                    && let Some((_, oldest)) = order.pop_first()
                {
                    last.remove(&oldest);
                }
            }
            order.insert(now, page);
        }
        missed
    }

    #[test]
    fn a_larger_pool_leaves_as_many_reads_as_it_really_does() {
        let small = misses(500, 200_000);
        let curve = MissCurve::of(&small).expect("pages are read again");
        for pool in [1_000, 2_000] {
            let really = misses(pool, 200_000).len() as f64 / small.len() as f64;
            let left = curve.left(curve.turnover_pages() + (pool - 500) as f64);
            assert!((left / really - 1.0).abs() < 0.15, "{pool}: {left} instead of {really}");
        }
    }

    #[test]
    fn pages_that_are_read_once_give_no_curve() {
        let pages: Vec<u64> = (0..10_000).collect();
        assert_eq!(MissCurve::of(&pages), None);
    }

    #[test]
    fn the_same_pool_leaves_all_reads() {
        let curve = MissCurve::of(&misses(500, 50_000)).expect("pages are read again");
        assert_eq!(curve.left(curve.turnover_pages()), 1.0);
    }
}
