//! How many page writes another size of the buffer pool would leave, from a trace of what one size left.
//!
//! A page that changed is written when it leaves the pool. A larger pool still has it when it is used again, and writes once
//! what the measured one wrote each time; but again when the log has no room left for changes as old as its first.
//!
//! Pages of a sample are followed, as in `reuse.rs`.
//!
//! # Divergence
//! * A page changes where the trace has its write. It did so before, while it was in the pool.

use std::collections::BTreeMap;

use super::lists::Answered;
use super::reuse::{Followed, Reuse, Use, What};

impl Followed {
    /// Share of the writes that are left with a pool that answers these uses, if changes are written after `age_ns` of the
    /// trace at the latest. Pages that only their age has written are not counted.
    pub fn writes_left(&self, answered: &Answered, age_ns: f64) -> f64 {
        let known_from = self.known_from(answered.pages, age_ns);
        let measured = self.writes(&self.none_answered(), age_ns, known_from);
        let left = self.writes(answered, age_ns, known_from);
        if measured == 0 { 1.0 } else { left as f64 / measured as f64 }
    }

    /// The first use of which all is known that decides, at the latest half of the uses.
    fn known_from(&self, pages: f64, age_ns: f64) -> usize {
        let begin_ns = self.uses.first().map_or(0.0, |first| first.at_ns);
        let is_known = |page_use: &Use| {
            let has_seen_all = matches!(page_use.what, What::Read(Reuse::First(before)) if before > pages);
            has_seen_all || page_use.at_ns - begin_ns > age_ns
        };
        let half = self.uses.len() / 2;
        self.uses.iter().take(half).position(is_known).unwrap_or(half)
    }

    fn writes(&self, answered: &Answered, age_ns: f64, from: usize) -> usize {
        // Changed pages of the pool, with the time of the first change.
        let mut changed: BTreeMap<u64, f64> = BTreeMap::new();
        let mut writes = 0;
        for (index, Use { page, at_ns, what }) in self.uses.iter().enumerate() {
            match what {
                What::Read(_) if answered.is_answered[index] => {}
                What::Read(_) => {
                    changed.remove(page);
                }
                What::Written | What::Made => {
                    let is_in_time = |since: &f64| at_ns - since <= age_ns;
                    if !changed.get(page).is_some_and(is_in_time) {
                        changed.insert(*page, *at_ns);
                        writes += usize::from(index >= from);
                    }
                }
            }
        }
        writes
    }
}

#[cfg(test)]
mod tests {
    use spindle_model::{Instant, Rng};

    use super::super::{List, MissCurve, PageUse};
    use super::*;

    const SMALL: usize = 500;

    #[derive(Debug, Clone, Copy)]
    struct Page {
        used_at: u64,
        changed_at: Option<u64>,
    }

    /// Reads and writes of an LRU pool under skewed uses, of which a third changes the page; each takes a nanosecond. A
    /// change is written after that time at the latest.
    fn uses(pool: usize, age: u64) -> Vec<PageUse> {
        let mut rng = Rng::new(1);
        let mut pages: BTreeMap<u64, Page> = BTreeMap::new();
        let mut by_use: BTreeMap<u64, u64> = BTreeMap::new();
        let mut by_change: BTreeMap<u64, u64> = BTreeMap::new();
        let mut uses = Vec::new();
        for now in 0..200_000 {
            let mut note = |page, is_write| uses.push(PageUse { page, at: Instant(now), is_write });
            while let Some((since, page)) = by_change.first_key_value().map(|(since, page)| (*since, *page))
                && now - since > age
            {
                by_change.remove(&since);
                if let Some(old) = pages.get_mut(&page) {
                    old.changed_at = None;
                }
                note(page, true);
            }
            let page = rng.below(4_000).min(rng.below(4_000)).min(rng.below(4_000));
            let used = pages.get(&page).copied();
            match used {
                Some(used) => {
                    by_use.remove(&used.used_at);
                }
                None => {
                    if pages.len() == pool
                        && let Some((_, oldest)) = by_use.pop_first()
                        && let Some(Page { changed_at: Some(since), .. }) = pages.remove(&oldest)
                    {
                        by_change.remove(&since);
                        note(oldest, true);
                    }
                    note(page, false);
                }
            }
            let before = used.and_then(|used| used.changed_at);
            let changed_at = before.or((rng.below(3) == 0).then_some(now));
            if let (None, Some(since)) = (before, changed_at) {
                by_change.insert(since, page);
            }
            pages.insert(page, Page { used_at: now, changed_at });
            by_use.insert(now, page);
        }
        uses
    }

    fn writes(uses: &[PageUse]) -> f64 {
        uses.iter().filter(|page_use| page_use.is_write).count() as f64
    }

    #[test]
    fn a_larger_pool_leaves_as_many_writes_as_it_really_does() {
        for age in [u64::MAX, 20_000] {
            let small = uses(SMALL, age);
            let followed = Followed::of(&small);
            let measured_pages = MissCurve::of(&followed).expect("pages are read again").turnover_pages();
            for times in [2, 4] {
                let really = writes(&uses(times * SMALL, age)) / writes(&small);
                let pages = measured_pages + ((times - 1) * SMALL) as f64;
                let left = followed.writes_left(&followed.answered(&List::LastUse(pages)), age as f64);
                assert!(
                    left < 0.9 && (left / really - 1.0).abs() < 0.15,
                    "{age}, {times}: {left} instead of {really}"
                );
            }
        }
    }

    #[test]
    fn a_page_that_is_still_there_is_written_again_only_for_its_age() {
        // Seven rounds of two pages: each is read after the other one, and written.
        let rounds =
            (0..28).map(|now| PageUse { page: now / 2 % 2, at: Instant(now), is_write: now % 2 == 1 });
        let followed = Followed::of(&rounds.collect::<Vec<_>>());
        let left = |followed: &Followed, pages, age_ns| {
            followed.writes_left(&followed.answered(&List::LastUse(pages)), age_ns)
        };
        for (pages, age_ns, expect) in
            [(0.0, 100.0, 1.0), (1.0, 100.0, 0.0), (1.0, 4.0, 0.5), (1.0, 3.0, 1.0)]
        {
            assert_eq!(left(&followed, pages, age_ns), expect, "{pages} pages, {age_ns} ns");
        }
        assert_eq!(left(&Followed::of(&[]), 200.0, 1e9), 1.0);
    }
}
