//! A server that writes through the kernel's page cache, as PostgreSQL does: checkpoints and backends hand pages
//! to the kernel, which writes them in the background (mm/page-writeback.c).
//!
//! It writes in passes: when the pages that are read have pushed dirty ones to the end of the page cache, or there are many, it
//! writes all that there are, in the order of their places, so that the more there are the more of them are neighbours.
//!
//! # Divergence
//! * One pass goes over the whole disk. The kernel goes from file to file after each 4 MiB (`MIN_WRITEBACK_PAGES`).
//! * Sessions that look for room in the page cache during a pass do not wait. They do if the memory of a control group of
//!   version 1 is full: on four 15,000 rpm disks hardly any page is read then.
//! * In what order the pages of a recording changed is not known, since the kernel had sorted them.
//! * What reaches the disk for each transaction is taken from the measured cell, and so are the full-page images
//!   in the log: a checkpoint that falls into one window and not into another is not foreseen.

use std::collections::{BTreeMap, VecDeque};

use super::throttle::Throttle;
use super::{Phase, TICKS_PER_SECOND};
use crate::draw::Draws;
use crate::facts::{Access, Places, Stream};

/// What a measured cell tells of the writing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Writeback {
    /// The mount of the data.
    pub mount: usize,
    pub page_bytes: u64,
    /// What the page cache can hold.
    pub cache_bytes: u64,
    /// Dirty pages from which on the writers wait (`balance_dirty_pages`). A pass begins at the latest with half as many, as
    /// `vm.dirty_background_ratio` is half of `vm.dirty_ratio`.
    pub limit_pages: u64,
    /// FLUSHes a second besides those of commits.
    pub flushes_per_second: f64,
    pub background: BackgroundWriting,
    /// The share of what its rule allows that it does.
    pub background_share: f64,
}

/// The server's own writing by time, besides that of its sessions: PostgreSQL's background writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackgroundWriting {
    /// Between two rounds: `bgwriter_delay`.
    pub delay_ns: u64,
    /// Of a round: `bgwriter_lru_maxpages`. Zero for none.
    pub most_pages: u64,
    /// After that many the kernel is asked to write them: `bgwriter_flush_after`. Zero if it is left to the kernel.
    pub flush_after_pages: u64,
}

/// The pages that are in the page cache and not on the drive.
#[derive(Debug)]
pub(crate) struct Writer {
    facts: Writeback,
    /// Where changed pages are, one after the other, and how many there were.
    places: Stream,
    changed: u64,
    /// Sizes by places.
    dirty: BTreeMap<u64, u64>,
    /// Pages of the pass that goes on, and the end of its last request.
    left_of_pass: u64,
    cursor: u64,
    /// Since the last pass began, and by its end.
    read_bytes: u64,
    read_in_pass_bytes: u64,
    ticks_dirty: u64,
    asked: VecDeque<Access>,
    flushes: f64,
    throttle: Throttle,
    pass_read_bytes: u64,
}

/// The largest request of a loop device (`max_sectors_kb`).
const REQUEST_BYTES: u64 = 1 << 20;
/// A pass begins at the latest after that time (`vm.dirty_expire_centisecs`).
const EXPIRE_SECONDS: u64 = 30;
/// What is read between the begins of two passes, and a third of it between two, before reclaim meets a dirty page and has all of
/// them written (`shrink_inactive_list` in mm/vmscan.c): 11 to 17 MB in the block traces of eight cells of PostgreSQL whose passes
/// are short, 4 to 8 MB between long ones, with a page cache of 107 MB (256 MB of memory). A larger one has a longer list, in
/// proportion: with one of 700 MB it is 92 MB, and the dirty pages of three flash drives fell after 80 to 150 MB.
const PASS_READ_BYTES: u64 = 14_000_000;
const CACHE_OF_THESE_BYTES: u64 = 107_000_000;

/// For a page that is not dirty.
const TRIES: u64 = 8;

impl Writer {
    pub(super) fn new(facts: Writeback, places: &Places, draws: &mut Draws, throttle: Throttle) -> Writer {
        let of_these = u128::from(PASS_READ_BYTES) * u128::from(facts.cache_bytes);
        let pass_read_bytes = (of_these / u128::from(CACHE_OF_THESE_BYTES)) as u64;
        Writer {
            facts,
            places: places.writes.in_no_order(facts.page_bytes, draws),
            changed: 0,
            dirty: BTreeMap::new(),
            left_of_pass: 0,
            cursor: 0,
            read_bytes: pass_read_bytes / 2,
            read_in_pass_bytes: 0,
            ticks_dirty: 0,
            asked: VecDeque::new(),
            flushes: 0.0,
            throttle,
            pass_read_bytes,
        }
    }

    fn is_expired(&self) -> bool {
        self.ticks_dirty > EXPIRE_SECONDS * TICKS_PER_SECOND
    }

    /// Whether so much was read that the page cache has dirty pages at the end of its list.
    fn is_reclaim_stuck(&self) -> bool {
        let since_end = self.read_bytes - self.read_in_pass_bytes;
        !self.dirty.is_empty()
            && self.read_bytes >= self.pass_read_bytes
            && since_end >= self.pass_read_bytes / 3
    }

    /// Pages that were read take the places of others in the page cache.
    pub(super) fn read(&mut self, bytes: u64) {
        self.read_bytes += bytes;
    }

    /// Pages that are dirty already are no more in the counts of the measured cell.
    pub(super) fn changed(&mut self, pages: u64, draws: &mut Draws) {
        let (mut left, mut tries) = (pages, pages * TRIES);
        while left > 0 && tries > 0 {
            let Access { offset_bytes, size_bytes } = self.places.place(self.changed, draws.any());
            self.changed += 1;
            left -= u64::from(self.dirty.insert(offset_bytes, size_bytes).is_none());
            tries -= 1;
        }
    }

    /// Pages that are written first: dirty ones near these places.
    pub(super) fn ask_for(&mut self, places: Vec<Access>) {
        for place in places {
            let page = self.dirty_from(place.offset_bytes);
            self.asked.extend(page);
        }
    }

    /// Takes the first dirty page from this place on.
    fn dirty_from(&mut self, offset_bytes: u64) -> Option<Access> {
        let found = self.dirty.range(offset_bytes..).next().or_else(|| self.dirty.first_key_value());
        let (offset_bytes, size_bytes) = found.map(|(offset, size)| (*offset, *size))?;
        self.dirty.remove(&offset_bytes);
        Some(Access { offset_bytes, size_bytes })
    }

    pub(super) fn is_asked(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.dirty.len() as u64 > self.facts.limit_pages
    }

    pub(super) fn tick(&mut self) {
        self.flushes += self.facts.flushes_per_second / TICKS_PER_SECOND as f64;
        self.ticks_dirty = if self.dirty.is_empty() { 0 } else { self.ticks_dirty + 1 };
    }

    pub(super) fn mount(&self) -> usize {
        self.facts.mount
    }

    pub(super) fn throttle(&mut self) -> &mut Throttle {
        &mut self.throttle
    }

    pub(super) fn next(&mut self) -> Option<Phase> {
        let mount = self.facts.mount;
        if self.flushes >= 1.0 {
            self.flushes -= 1.0;
            return Some(Phase::Flush { mount });
        }
        let access = self.asked.pop_front().or_else(|| self.next_of_pass())?;
        Some(Phase::Write { mount, access })
    }

    /// The next page of the pass, with its neighbours.
    fn next_of_pass(&mut self) -> Option<Access> {
        if self.left_of_pass == 0 {
            let dirty_pages = self.dirty.len() as u64;
            if dirty_pages < self.facts.limit_pages / 2 && !self.is_expired() && !self.is_reclaim_stuck() {
                return None;
            }
            self.ticks_dirty = 0;
            self.read_bytes = 0;
            self.left_of_pass = dirty_pages;
        }
        // Others ask for pages of the pass too.
        self.left_of_pass = self.left_of_pass.min(self.dirty.len() as u64);
        self.read_in_pass_bytes = self.read_bytes;
        let mut request = self.dirty_from(self.cursor)?;
        self.left_of_pass -= 1;
        while self.left_of_pass > 0 && request.size_bytes < REQUEST_BYTES {
            self.cursor = request.offset_bytes + request.size_bytes;
            let Some(size_bytes) = self.dirty.remove(&self.cursor) else { break };
            request.size_bytes += size_bytes;
            self.left_of_pass -= 1;
        }
        self.cursor = request.offset_bytes + request.size_bytes;
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Region;

    const PAGE: u64 = 8_192;

    /// Of a page cache that takes as many pages, in a file of 100.
    fn writer(limit_pages: u64, draws: &mut Draws) -> Writer {
        let background = BackgroundWriting { delay_ns: 1, most_pages: 0, flush_after_pages: 0 };
        let facts = Writeback {
            mount: 0,
            page_bytes: PAGE,
            cache_bytes: CACHE_OF_THESE_BYTES,
            limit_pages,
            flushes_per_second: 0.0,
            background,
            background_share: 1.0,
        };
        let region = Region { offset_bytes: 0, size_bytes: 100 * PAGE };
        let whole = Access { offset_bytes: 0, size_bytes: 100 * PAGE };
        let stream = Stream::Recorded { accesses: [whole].into(), region };
        let places = Places { reads: stream.clone(), writes: stream };
        Writer::new(facts, &places, draws, Throttle::new(false, true))
    }

    fn written(writer: &mut Writer) -> Vec<Access> {
        let accesses = std::iter::from_fn(|| writer.next()).map(|phase| match phase {
            Phase::Write { access, .. } => access,
            other => panic!("{other:?}, which nobody asked for"),
        });
        accesses.collect()
    }

    #[test]
    fn a_pass_writes_all_dirty_pages_in_the_order_of_their_places() {
        let mut draws = Draws::new(7);
        let mut writer = writer(100, &mut draws);
        writer.changed(49, &mut draws);
        assert_eq!(written(&mut writer), [], "too few for a pass");
        writer.changed(1, &mut draws);
        let accesses = written(&mut writer);
        assert!(accesses.is_sorted_by_key(|access| access.offset_bytes));
        assert_eq!(accesses.iter().map(|access| access.size_bytes / PAGE).sum::<u64>(), 50);
        let has_gap = |pair: &[Access]| pair[0].offset_bytes + pair[0].size_bytes < pair[1].offset_bytes;
        assert!(accesses.windows(2).all(has_gap), "neighbours are one request: {accesses:?}");
        // The other half of the file.
        writer.changed(50, &mut draws);
        assert_eq!(written(&mut writer).iter().map(|access| access.size_bytes / PAGE).sum::<u64>(), 50);
    }

    #[test]
    fn a_page_that_changes_again_is_written_once_and_old_pages_are_written_too() {
        let mut draws = Draws::new(7);
        let mut writer = writer(1_000, &mut draws);
        writer.changed(100, &mut draws);
        assert_eq!(writer.dirty.len(), 100, "all pages, some of them several times");
        for _ in 0..=EXPIRE_SECONDS * TICKS_PER_SECOND {
            assert_eq!(written(&mut writer), []);
            writer.tick();
        }
        assert_eq!(written(&mut writer), [Access { offset_bytes: 0, size_bytes: 100 * PAGE }]);
    }

    #[test]
    fn a_pass_begins_when_much_was_read() {
        let mut draws = Draws::new(7);
        let mut writer = writer(1_000, &mut draws);
        let begins = |writer: &mut Writer, bytes: u64| {
            writer.read(bytes);
            !written(writer).is_empty()
        };
        writer.changed(10, &mut draws);
        let half = PASS_READ_BYTES / 2;
        assert!(!begins(&mut writer, half - 1) && begins(&mut writer, 1), "it begins between two passes");
        assert!(!begins(&mut writer, 2 * half), "nothing is dirty");
        // A long pass, during which much was read.
        writer.changed(10, &mut draws);
        assert!(writer.next().is_some());
        writer.read(2 * half);
        written(&mut writer);
        writer.changed(10, &mut draws);
        assert!(!begins(&mut writer, PASS_READ_BYTES / 3 - 1) && begins(&mut writer, 1));

        let large = Writeback { cache_bytes: 10 * CACHE_OF_THESE_BYTES, ..writer.facts };
        let places = Places { reads: writer.places.clone(), writes: writer.places.clone() };
        let mut writer = Writer::new(large, &places, &mut draws, Throttle::new(false, true));
        writer.changed(10, &mut draws);
        assert!(!begins(&mut writer, 5 * PASS_READ_BYTES - 1) && begins(&mut writer, 1), "of a larger cache");
    }

    #[test]
    fn writers_wait_for_a_full_page_cache_and_pages_that_are_asked_for_come_first() {
        let mut draws = Draws::new(7);
        let mut writer = writer(20, &mut draws);
        writer.changed(21, &mut draws);
        assert!(writer.is_full());
        writer.ask_for(vec![Access { offset_bytes: 99 * PAGE, size_bytes: PAGE }; 2]);
        assert!(!writer.is_full() && writer.is_asked());
        let asked: Vec<Access> = writer.asked.iter().copied().collect();
        assert_eq!(written(&mut writer)[..2], asked);
        assert!(!writer.is_asked());
    }
}
