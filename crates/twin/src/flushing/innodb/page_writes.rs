//! Which pages are written after each other: in the order of a recording, or with the dirty pages beside them, as
//! `buf_flush_try_neighbors` in storage/innobase/buf/buf0flu.cc has it.
//!
//! Which pages are dirty, a recording of page writes tells: as many of the next ones as there are dirty pages. A page that is
//! written beside another one is not written in its turn, unless it changes again before; how often that is, the
//! recording tells of pages that were written and stayed in the pool.
//!
//! # Divergence
//! * `innodb_flush_neighbors = 2`, and all servers before MySQL 5.6, write all dirty pages of an extent, not only those
//!   that continue each other.
//! * An extent is one of the disk, not of the file.
//! * MariaDB writes a page at the end of the LRU list alone while less than half of its free pages are left. Without this
//!   exception a recording on flash gives as many neighbours as are written on disks.
//! * Where pages were recorded with those beside them and are written without, they are written in no order, and as often.

use std::collections::BTreeSet;

use crate::draw::Draws;
use crate::facts::{Access, Places, Stream};

/// When the pages beside one are written with it: `innodb_flush_neighbors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Neighbors {
    Never,
    /// Where the kernel takes the drive for one that rotates.
    OnDisks,
    Always,
}

/// What is known of a recording of page writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recording {
    pub has_neighbors: bool,
    /// Of the pages that were written and stayed in the pool, the share that was written again before it was read.
    pub written_again: f64,
}

/// `innodb_extent_size` in pages: neighbours are looked for in one.
const EXTENT_PAGES: u64 = 64;

#[derive(Debug)]
pub(super) struct PageWrites {
    /// Number of the first write in the recording that is not known yet.
    first: u64,
    order: Order,
}

#[derive(Debug)]
enum Order {
    AsRecorded,
    WithNeighbors(Beside),
    /// Numbers of writes to come.
    Apart(Vec<u64>),
}

/// Pages of a batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) accesses: Vec<Access>,
    /// Pages that were written before their turn, and those of them that stay clean.
    pub(super) early: u64,
    pub(super) early_clean: u64,
}

impl Neighbors {
    /// Whether they are written on a drive that rotates, or on another one.
    pub fn apply(self, rotates: bool) -> bool {
        match self {
            Neighbors::Never => false,
            Neighbors::OnDisks => rotates,
            Neighbors::Always => true,
        }
    }
}

impl PageWrites {
    /// `None` where it is not known how the places were recorded, or they are no recording.
    pub(super) fn new(recording: Option<Recording>, has_neighbors: bool, first: u64) -> PageWrites {
        let order = match recording {
            Some(recording) if has_neighbors && !recording.has_neighbors => {
                Order::WithNeighbors(Beside::new(recording.written_again, first))
            }
            Some(recording) if recording.has_neighbors && !has_neighbors => Order::Apart(Vec::new()),
            _ => Order::AsRecorded,
        };
        PageWrites { first, order }
    }

    /// Places of writes that have about `pages` pages in their turn, while so many are `dirty`.
    pub(super) fn take(
        &mut self,
        pages: u64,
        dirty: u64,
        page_bytes: u64,
        places: &Places,
        draws: &mut Draws,
    ) -> Batch {
        let mut left = pages * page_bytes;
        let mut batch = Batch::default();
        if let Order::WithNeighbors(recorded) = &mut self.order {
            recorded.look_ahead(&mut self.first, dirty, &places.writes);
        }
        while left > 0 {
            let number = match &mut self.order {
                Order::AsRecorded => next(&mut self.first),
                Order::WithNeighbors(recorded) => recorded.next_turn(&mut self.first, &places.writes),
                Order::Apart(coming) => {
                    while coming.len() < (dirty as usize).max(1) {
                        coming.push(next(&mut self.first));
                    }
                    let any = usize::try_from(draws.below(coming.len() as u64)).expect("an index");
                    coming.swap_remove(any)
                }
            };
            let access = places.writes.place(number, draws.any());
            left = left.saturating_sub(access.size_bytes.max(1));
            match &mut self.order {
                Order::WithNeighbors(recorded) if access.size_bytes == page_bytes => {
                    recorded.write(access, draws, &mut batch);
                }
                _ => batch.accesses.push(access),
            }
        }
        batch
    }
}

fn next(number: &mut u64) -> u64 {
    *number += 1;
    *number - 1
}

/// The next writes of a recording by their places.
#[derive(Debug)]
struct Beside {
    written_again: f64,
    /// Number of the next turn.
    turn: u64,
    /// Place and number of each write to come, of pages that are dirty or were not long ago.
    coming: BTreeSet<(u64, u64)>,
    /// Numbers of writes that are not to come any more.
    omitted: BTreeSet<u64>,
    /// Dirty are the pages of the writes to come before this number.
    dirty_end: u64,
}

impl Beside {
    fn new(written_again: f64, turn: u64) -> Beside {
        Beside { written_again, turn, coming: BTreeSet::new(), omitted: BTreeSet::new(), dirty_end: 0 }
    }

    /// So many pages are dirty now. `first` is the first number that is not among those to come.
    fn look_ahead(&mut self, first: &mut u64, dirty: u64, writes: &Stream) {
        self.dirty_end = self.turn + dirty + self.omitted.len() as u64;
        while *first < self.dirty_end {
            self.add(first, writes);
        }
    }

    fn add(&mut self, first: &mut u64, writes: &Stream) {
        let coming = next(first);
        self.coming.insert((writes.place(coming, 0).offset_bytes, coming));
    }

    /// The number of the next write.
    fn next_turn(&mut self, first: &mut u64, writes: &Stream) -> u64 {
        while self.omitted.remove(&self.turn) {
            self.turn += 1;
        }
        let number = next(&mut self.turn);
        while *first <= number {
            self.add(first, writes);
        }
        self.coming.remove(&(writes.place(number, 0).offset_bytes, number));
        number
    }

    /// Writes a page and the dirty ones that continue it on either side, in the order of their places.
    fn write(&mut self, access: Access, draws: &mut Draws, batch: &mut Batch) {
        let Access { offset_bytes, size_bytes } = access;
        let place = offset_bytes / size_bytes % EXTENT_PAGES;
        let mut run = vec![access];
        let below = (1..=place).map(|pages| offset_bytes - pages * size_bytes);
        let above = (1..EXTENT_PAGES - place).map(|pages| offset_bytes + pages * size_bytes);
        run.extend(self.take_dirty(below, size_bytes, draws, batch));
        run.reverse();
        run.extend(self.take_dirty(above, size_bytes, draws, batch));
        batch.early += run.len() as u64 - 1;
        batch.accesses.extend(run);
    }

    /// Of these places, those of dirty pages until the first that is none.
    fn take_dirty(
        &mut self,
        places: impl Iterator<Item = u64>,
        size_bytes: u64,
        draws: &mut Draws,
        batch: &mut Batch,
    ) -> Vec<Access> {
        let mut taken = Vec::new();
        for place in places {
            let Some(&(_, number)) = self.coming.range((place, 0)..(place, self.dirty_end)).next() else {
                break;
            };
            self.coming.remove(&(place, number));
            if draws.rounded(self.written_again) == 0 {
                self.omitted.insert(number);
                batch.early_clean += 1;
            }
            taken.push(Access { offset_bytes: place, size_bytes });
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Region;

    const PAGE: u64 = 16 << 10;

    fn places(pages: &[u64]) -> Places {
        let access = |page: &u64| Access { offset_bytes: page * PAGE, size_bytes: PAGE };
        let region = Region { offset_bytes: 0, size_bytes: 1 << 30 };
        let stream = Stream::Recorded { accesses: pages.iter().map(access).collect(), region };
        Places { reads: stream.clone(), writes: stream }
    }

    fn writes(has_neighbors: bool, recorded_with: bool, written_again: f64) -> PageWrites {
        let recording = Recording { has_neighbors: recorded_with, written_again };
        PageWrites::new(Some(recording), has_neighbors, 0)
    }

    fn pages_of(batch: &Batch) -> Vec<u64> {
        batch.accesses.iter().map(|access| access.offset_bytes / PAGE).collect()
    }

    const RECORDED: [u64; 10] = [5, 30, 6, 63, 4, 64, 8, 200, 201, 6];

    #[test]
    fn a_page_is_written_with_the_dirty_ones_beside_it() {
        let mut draws = Draws::new(1);
        let (places, mut writes) = (places(&RECORDED), writes(true, false, 0.0));
        let first = writes.take(1, 5, PAGE, &places, &mut draws);
        // 7 is clean, and 8 is beyond it.
        assert_eq!((pages_of(&first), first.early, first.early_clean), (vec![4, 5, 6], 2, 2));
        // No page of another extent; 6 and 4 are not written in their turn.
        let then = writes.take(4, 3, PAGE, &places, &mut draws);
        assert_eq!((pages_of(&then), then.early), (vec![30, 63, 64, 8], 0));
        let last = writes.take(2, 3, PAGE, &places, &mut draws);
        assert_eq!(pages_of(&last), [200, 201, 6]);
    }

    #[test]
    fn a_page_that_changes_again_is_written_in_its_turn_too() {
        let mut draws = Draws::new(1);
        let (places, mut writes) = (places(&RECORDED), writes(true, false, 1.0));
        let batch = writes.take(4, 5, PAGE, &places, &mut draws);
        assert_eq!((pages_of(&batch), batch.early, batch.early_clean), (vec![4, 5, 6, 30, 6, 63], 2, 0));
    }

    #[test]
    fn without_the_pages_beside_them_all_are_written_in_no_order() {
        let mut draws = Draws::new(1);
        let recorded: Vec<u64> = (0..1_000).collect();
        let (places, mut writes) = (places(&recorded), writes(false, true, 0.5));
        let mut pages = pages_of(&writes.take(900, 100, PAGE, &places, &mut draws));
        let continued = pages.windows(2).filter(|pair| pair[1] == pair[0] + 1).count();
        assert!(continued < 50, "{continued}");
        pages.sort_unstable();
        pages.dedup();
        assert_eq!(pages.len(), 900);
    }

    #[test]
    fn a_recording_is_kept_where_the_rule_is_the_same() {
        let mut draws = Draws::new(1);
        let places = places(&RECORDED);
        for rule in [false, true] {
            let batch = writes(rule, rule, 0.5).take(4, 5, PAGE, &places, &mut draws);
            assert_eq!(pages_of(&batch), RECORDED[..4]);
        }
        let unknown = PageWrites::new(None, true, 2).take(2, 5, PAGE, &places, &mut draws);
        assert_eq!(pages_of(&unknown), RECORDED[2..4]);
    }

    #[test]
    fn flash_needs_no_neighbors() {
        let apply = |rule: Neighbors| [rule.apply(false), rule.apply(true)];
        assert_eq!(apply(Neighbors::Never), [false, false]);
        assert_eq!(apply(Neighbors::OnDisks), [false, true]);
        assert_eq!(apply(Neighbors::Always), [true, true]);
    }
}
