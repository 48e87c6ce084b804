//! What the arm could do next, oldest first: the scheduler looks at the first so many, the others wait behind them.
//!
//! Those in view are kept sorted by cylinder, too. The nearest of them is looked for outwards from the head, and further out than
//! the arm could travel in the time of the best one so far nobody needs to look: of 32 that is a handful.

use std::collections::VecDeque;

use super::geometry::{Geometry, Head, Target};

/// Index of one in view, as long as it is there.
pub(super) type Entry = usize;

/// In place of an entry where there is none.
const NONE: Entry = Entry::MAX;

#[derive(Debug)]
struct InView<T> {
    target: Target,
    item: T,
    /// Lower for older ones.
    number: i64,
    older: Entry,
    newer: Entry,
}

#[derive(Debug)]
pub(super) struct Window<T> {
    size: usize,
    /// By how much a write's seek may be longer than that of another to the same cylinder; zero if all are writes.
    settle_ns: u32,
    in_view: Vec<InView<T>>,
    /// Entries that hold nothing.
    free: Vec<Entry>,
    /// Those in view, sorted.
    by_cylinder: Vec<(Target, Entry)>,
    oldest: Entry,
    newest: Entry,
    beyond: VecDeque<(Target, T)>,
}

/// Where the head is, and when.
struct From<'a> {
    geometry: &'a Geometry,
    phase_ns: u32,
    head: Head,
}

/// What the head reaches soonest of what has been looked at.
struct Nearest {
    /// In one number, so that the lower one is found without a branch.
    time_and_place: u64,
    /// Something else was as near as the nearest until then.
    is_tied: bool,
}

impl Nearest {
    fn positioning_ns(&self) -> u32 {
        (self.time_and_place >> 32) as u32
    }

    /// Returns false if nothing further out can be nearer.
    #[inline(always)]
    fn improve(&mut self, from: &From, settle_ns: u32, target: &Target, place: u64) -> bool {
        let &From { geometry, phase_ns, head } = from;
        let seek = geometry.seek(head, target);
        let settle_ns = if target.is_write() { settle_ns } else { 0 };
        if seek.seek_ns > settle_ns.saturating_add(self.positioning_ns()) {
            // Another on the head's cylinder may be on its very track.
            return target.cylinder == head.cylinder;
        }
        let positioning_ns = geometry.arrival_ns(phase_ns, seek, target);
        self.is_tied |= positioning_ns == self.positioning_ns();
        self.time_and_place = self.time_and_place.min(u64::from(positioning_ns) << 32 | place);
        true
    }
}

impl<T: Copy> Window<T> {
    pub(super) fn new(size: u64, settle_ns: u64) -> Window<T> {
        let size = size as usize;
        Window {
            size,
            settle_ns: settle_ns as u32,
            in_view: Vec::with_capacity(size),
            free: Vec::with_capacity(size),
            by_cylinder: Vec::with_capacity(size),
            oldest: NONE,
            newest: NONE,
            beyond: VecDeque::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_cylinder.len() + self.beyond.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_cylinder.is_empty()
    }

    pub(super) fn oldest(&self) -> Option<(Entry, &T)> {
        self.in_view.get(self.oldest).map(|oldest| (self.oldest, &oldest.item))
    }

    pub(super) fn get(&self, entry: Entry) -> &T {
        &self.in_view[entry].item
    }

    pub(super) fn push(&mut self, target: Target, item: T) {
        if self.by_cylinder.len() < self.size {
            self.show(target, item);
        } else {
            self.beyond.push_back((target, item));
        }
    }

    /// In front of all others: what is left of something that was taken out.
    pub(super) fn push_front(&mut self, target: Target, item: T) {
        if self.by_cylinder.len() == self.size {
            let newest = &self.in_view[self.newest];
            self.beyond.push_front((newest.target, newest.item));
            self.hide(self.newest);
        }
        let number = self.in_view.get(self.oldest).map_or(0, |oldest| oldest.number - 1);
        let entry = self.enter(InView { target, item, number, older: NONE, newer: self.oldest });
        match self.in_view.get_mut(self.oldest) {
            Some(next) => next.older = entry,
            None => self.newest = entry,
        }
        self.oldest = entry;
    }

    /// Comes into view as the newest.
    fn show(&mut self, target: Target, item: T) -> Entry {
        let number = self.in_view.get(self.newest).map_or(0, |newest| newest.number + 1);
        let entry = self.enter(InView { target, item, number, older: self.newest, newer: NONE });
        match self.in_view.get_mut(self.newest) {
            Some(previous) => previous.newer = entry,
            None => self.oldest = entry,
        }
        self.newest = entry;
        entry
    }

    fn enter(&mut self, in_view: InView<T>) -> Entry {
        let target = in_view.target;
        let place = self.by_cylinder.partition_point(|(other, _)| other.cylinder < target.cylinder);
        let entry = match self.free.pop() {
            Some(entry) => {
                self.in_view[entry] = in_view;
                entry
            }
            None => {
                self.in_view.push(in_view);
                self.in_view.len() - 1
            }
        };
        self.by_cylinder.insert(place, (target, entry));
        entry
    }

    fn hide(&mut self, entry: Entry) {
        if self.by_cylinder.len() == 1 {
            self.clear_view();
            return;
        }
        let InView { target, older, newer, .. } = self.in_view[entry];
        let mut place = self.by_cylinder.partition_point(|(other, _)| other.cylinder < target.cylinder);
        while self.by_cylinder[place].1 != entry {
            place += 1;
        }
        self.by_cylinder.remove(place);
        match self.in_view.get_mut(older) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.in_view.get_mut(newer) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        self.free.push(entry);
    }

    /// Takes one out; the one that comes into view for it is returned, to be told.
    pub(super) fn remove(&mut self, entry: Entry) -> (T, Option<&mut T>) {
        let removed = self.in_view[entry].item;
        self.hide(entry);
        let Some((target, item)) = self.beyond.pop_front() else { return (removed, None) };
        let entry = self.show(target, item);
        (removed, Some(&mut self.in_view[entry].item))
    }

    pub(super) fn clear(&mut self) {
        self.clear_view();
        self.beyond.clear();
    }

    fn clear_view(&mut self) {
        self.in_view.clear();
        self.free.clear();
        self.by_cylinder.clear();
        (self.oldest, self.newest) = (NONE, NONE);
    }

    /// The one in view that the head reaches soonest, the oldest of equals, and after how many nanoseconds.
    pub(super) fn nearest(&self, geometry: &Geometry, phase_ns: u32, head: Head) -> Option<(Entry, u32)> {
        if let [(target, entry)] = self.by_cylinder.as_slice() {
            return Some((*entry, geometry.positioning_ns(phase_ns, head, target)));
        }
        let middle = self.by_cylinder.partition_point(|(target, _)| target.cylinder < head.cylinder);
        let (inwards, outwards) = self.by_cylinder.split_at(middle);
        let from = From { geometry, phase_ns, head };
        let mut best = Nearest { time_and_place: u64::MAX, is_tied: false };
        for (place, (target, _)) in (middle as u64..).zip(outwards) {
            if !best.improve(&from, self.settle_ns, target, place) {
                break;
            }
        }
        for (back, (target, _)) in (1..).zip(inwards.iter().rev()) {
            if !best.improve(&from, self.settle_ns, target, middle as u64 - back) {
                break;
            }
        }
        let &(_, entry) = self.by_cylinder.get(best.time_and_place as u32 as usize)?;
        let positioning_ns = best.positioning_ns();
        let is_equal = |target: &Target| geometry.positioning_ns(phase_ns, head, target) == positioning_ns;
        Some((if best.is_tied { self.oldest_of(is_equal).unwrap_or(entry) } else { entry }, positioning_ns))
    }

    /// Kept out of the way: hardly ever does the head reach two of them at the same nanosecond.
    #[cold]
    fn oldest_of(&self, is_wanted: impl Fn(&Target) -> bool) -> Option<Entry> {
        let wanted = self.by_cylinder.iter().filter(|(target, _)| is_wanted(target));
        wanted.map(|&(_, entry)| entry).min_by_key(|&entry| self.in_view[entry].number)
    }
}
