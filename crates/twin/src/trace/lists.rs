//! Which reads of a trace a larger pool answers, by the server's rule for the page that leaves.
//!
//! InnoDB's list is followed page by page. That of a smaller pool cannot be, because a trace lacks the uses that the pool
//! answered: those of a larger pool's pages that matter are further apart than the time that a page must be there before
//! it stays, and most of these missed the smaller pool.
//!
//! Of sampled pages a list is as much shorter (Waldspurger et al., "Cache modeling and optimization using miniature
//! simulations", USENIX ATC 2017).
//!
//! # Divergence
//! * A page of the part that stays goes to its head with each use; InnoDB moves none of its first quarter
//!   (buf_page_peek_if_young).
//! * A larger pool's server is faster, and time passes as in the trace.

use std::collections::BTreeMap;

use super::reuse::{Followed, Reuse, Use, What};

/// How a server's list finds the page that leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum List {
    /// The one whose last use is longest ago; so many different pages enter before it leaves.
    LastUse(f64),
    Midpoint(MidpointList),
}

impl List {
    /// As many different pages as were used since the last use of a page that leaves, or about as many.
    pub fn pages(&self) -> f64 {
        match self {
            List::LastUse(pages) => *pages,
            List::Midpoint(list) => list.pages,
        }
    }
}

/// InnoDB's rule for a page that was read: it enters the list of pages at the midpoint, before the older part, and is
/// moved to its head when it is used again, but not within a time after its first use; a page that the server makes
/// enters at the head (buf_LRU_add_block and buf_page_make_young_if_needed in storage/innobase/buf).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Midpoint {
    /// Of the list: `innodb_old_blocks_pct` in a hundred.
    pub older_share: f64,
    /// `innodb_old_blocks_time`.
    pub not_within_s: f64,
}

/// InnoDB's list in a pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MidpointList {
    pub rule: Midpoint,
    /// Of the list; the pool has other pages too.
    pub pages: f64,
    /// Those among them that are used so often that they never leave, and are not in the trace.
    pub never_leave: f64,
}

impl MidpointList {
    /// Pages of the part that stays.
    pub fn staying_pages(&self) -> f64 {
        self.pages * (1.0 - self.rule.older_share)
    }
}

/// The uses that a pool answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// Of each use that is followed; never the first of a page.
    pub(super) is_answered: Vec<bool>,
    /// [`List::pages`].
    pub(super) pages: f64,
}

impl Followed {
    /// With a pool that has this list.
    pub fn answered(&self, list: &List) -> Answered {
        let is_answered = match list {
            List::LastUse(pages) => self.uses.iter().map(|page_use| is_within(page_use, *pages)).collect(),
            List::Midpoint(list) => {
                let mut pages = Pages::of(list, self.every as f64);
                self.uses.iter().map(|page_use| pages.answers(page_use)).collect()
            }
        };
        Answered { is_answered, pages: list.pages() }
    }

    /// With the pool whose misses these are.
    pub(super) fn none_answered(&self) -> Answered {
        Answered { is_answered: vec![false; self.uses.len()], pages: 0.0 }
    }
}

fn is_within(page_use: &Use, pages: f64) -> bool {
    matches!(page_use.what, What::Read(Reuse::Again(distance)) if distance <= pages)
}

/// A page of the list.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Places of the list in order: a higher one is nearer to the head of its part.
    order: u64,
    is_older: bool,
    /// When its first use was; long ago for a page that has been in the other part.
    since_ns: f64,
}

/// The pages of a list that the trace has.
#[derive(Debug)]
struct Pages {
    not_within_ns: f64,
    /// At most, and of the part that stays.
    all: usize,
    staying: usize,
    places: BTreeMap<u64, Place>,
    /// Pages of the two parts by their order.
    young: BTreeMap<u64, u64>,
    older: BTreeMap<u64, u64>,
    next_order: u64,
}

impl Pages {
    /// One in so many is followed.
    fn of(list: &MidpointList, every: f64) -> Pages {
        Pages {
            not_within_ns: list.rule.not_within_s * 1e9,
            all: ((list.pages - list.never_leave) / every) as usize,
            staying: ((list.staying_pages() - list.never_leave) / every) as usize,
            places: BTreeMap::new(),
            young: BTreeMap::new(),
            older: BTreeMap::new(),
            next_order: 0,
        }
    }

    /// Whether it is a read of a page that is there. The list is then as after it.
    fn answers(&mut self, page_use: &Use) -> bool {
        let Use { page, at_ns, what } = *page_use;
        if what == What::Written {
            return false;
        }
        let place = self.places.get(&page).copied();
        match place {
            Some(Place { order, is_older: false, .. }) => {
                self.young.remove(&order);
                self.put(page, false, at_ns);
            }
            Some(Place { order, since_ns, .. }) => {
                if at_ns - since_ns >= self.not_within_ns {
                    self.older.remove(&order);
                    self.put(page, false, at_ns);
                }
            }
            None => self.put(page, what != What::Made, at_ns),
        }
        self.make_room();
        place.is_some() && what != What::Made
    }

    fn put(&mut self, page: u64, is_older: bool, since_ns: f64) {
        let order = self.next_order;
        self.next_order += 1;
        self.places.insert(page, Place { order, is_older, since_ns });
        let part = if is_older { &mut self.older } else { &mut self.young };
        part.insert(order, page);
    }

    fn make_room(&mut self) {
        if self.young.len() > self.staying
            && let Some((_, page)) = self.young.pop_first()
        {
            self.put(page, true, f64::NEG_INFINITY);
        }
        if self.places.len() > self.all
            && let Some((_, page)) = self.older.pop_first()
        {
            self.places.remove(&page);
        }
    }
}

#[cfg(test)]
mod tests {
    use spindle_model::{Instant, Rng};

    use super::super::{MissCurve, PageUse};
    use super::*;

    const RULE: Midpoint = Midpoint { older_share: 0.37, not_within_s: 400e-9 };

    fn uses(text: &[(u64, u64, char)]) -> Followed {
        let page_use =
            |&(at, page, what): &(u64, u64, char)| PageUse { page, at: Instant(at), is_write: what == 'w' };
        Followed::of(&text.iter().map(page_use).collect::<Vec<_>>())
    }

    fn answered(text: &[(u64, u64, char)], pages: f64, rule: Midpoint) -> Vec<bool> {
        let list = MidpointList { rule, pages, never_leave: 0.0 };
        uses(text).answered(&List::Midpoint(list)).is_answered
    }

    #[test]
    fn a_page_that_is_used_late_enough_stays() {
        let rule = Midpoint { older_share: 0.5, not_within_s: 10e-9 };
        // Two pages stay, two are older.
        let scan = |last: u64| {
            let mut text = vec![(0, 1, 'r'), (last, 1, 'r')];
            text.extend((2..9).map(|page| (last + page, page, 'r')));
            text.push((last + 20, 1, 'r'));
            *answered(&text, 4.0, rule).last().unwrap()
        };
        assert!(scan(10) && !scan(9));
    }

    #[test]
    fn a_page_that_was_made_enters_at_the_head() {
        let rule = Midpoint { older_share: 0.5, not_within_s: 10e-9 };
        let text: Vec<(u64, u64, char)> =
            [(0, 1, 'r'), (1, 7, 'w'), (2, 8, 'w'), (3, 9, 'w'), (4, 1, 'r')].into();
        // The third moves the first to the older part, from which page 1 leaves.
        assert_eq!(answered(&text, 3.0, rule), [false; 5]);
        assert_eq!(answered(&text, 4.0, rule), [false, false, false, false, true]);
    }

    /// Misses of InnoDB's list under skewed uses, one in a nanosecond, and how many pages moved out of its older part.
    fn misses(pool: usize) -> (Vec<PageUse>, usize) {
        let mut rng = Rng::new(1);
        // From head to tail, with the first use.
        let mut list: Vec<(u64, u64)> = Vec::new();
        let (mut missed, mut moved) = (Vec::new(), 0);
        for now in 0..200_000 {
            let page = rng.below(4_000).min(rng.below(4_000)).min(rng.below(4_000));
            let midpoint = list.len() - (list.len() as f64 * RULE.older_share) as usize;
            match list.iter().position(|(other, _)| *other == page) {
                Some(place) => {
                    let is_late = (now - list[place].1) as f64 >= RULE.not_within_s * 1e9;
                    if place < midpoint || is_late {
                        let used = list.remove(place);
                        list.insert(0, used);
                        moved += usize::from(place >= midpoint);
                    }
                }
                None => {
                    missed.push(PageUse { page, at: Instant(now), is_write: false });
                    list.insert(midpoint, (page, now));
                    list.truncate(pool);
                }
            }
        }
        (missed, moved)
    }

    #[test]
    fn a_larger_list_leaves_as_many_reads_as_it_really_does() {
        const POOL: usize = 500;
        let (small, moved) = misses(POOL);
        let list = MidpointList { rule: RULE, pages: POOL as f64, never_leave: 0.0 };
        let never_leave = list.staying_pages() - moved as f64;
        assert!(never_leave > 200.0, "{moved} pages moved");
        for every in [1, 4] {
            let followed = Followed::one_in(every, &small);
            let curve = MissCurve::of(&followed).expect("pages are read again");
            for times in [2, 4] {
                let really = misses(times * POOL).0.len() as f64 / small.len() as f64;
                let larger = MidpointList { pages: (times * POOL) as f64, never_leave, ..list };
                let left = curve.left(&followed, &followed.answered(&List::Midpoint(larger)));
                assert!((left / really - 1.0).abs() < 0.15, "{every}, {times}: {left} instead of {really}");
            }
            assert_eq!(curve.left(&followed, &followed.none_answered()), 1.0);
        }
    }
}
