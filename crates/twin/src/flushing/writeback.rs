//! A server that writes through the kernel's page cache, as PostgreSQL does: checkpoints and backends hand pages
//! to the kernel, which writes them in the background (mm/page-writeback.c).
//!
//! # Divergence
//! What reaches the disk for each transaction is taken from the measured cell, and so are the full-page images
//! in the log: a checkpoint that falls into one window and not into another is not foreseen.

use std::collections::VecDeque;

use super::{Phase, TICKS_PER_SECOND};
use crate::draw::Draws;
use crate::facts::{Access, Places};

/// What a measured cell tells of the writing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Writeback {
    /// The mount of the data.
    pub mount: usize,
    pub page_bytes: u64,
    /// Requests under way together: the next one follows when one of them is done.
    pub depth: u64,
    /// Dirty pages from which on the writers wait (`balance_dirty_pages`).
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
    owed_bytes: u64,
    /// Since the last batch began.
    ticks_owed: u64,
    /// Requests of the batch that goes on.
    batch: VecDeque<Access>,
    flushes: f64,
    write_number: u64,
}

/// The kernel writes changed pages in turns of so many bytes of a file (`MIN_WRITEBACK_PAGES` in fs/fs-writeback.c), which
/// are sorted by their places.
const BATCH_BYTES: u64 = 4 << 20;
/// The largest request of a loop device (`max_sectors_kb`).
const REQUEST_BYTES: u64 = 1 << 20;
/// And at the latest after that time (`vm.dirty_expire_centisecs`).
const EXPIRE_SECONDS: u64 = 30;

impl Writer {
    pub(super) fn new(facts: Writeback, first_write: u64) -> Writer {
        Writer {
            facts,
            owed_bytes: 0,
            ticks_owed: 0,
            batch: VecDeque::new(),
            flushes: 0.0,
            write_number: first_write,
        }
    }

    pub(super) fn changed(&mut self, pages: u64) {
        self.owed_bytes += pages * self.facts.page_bytes;
    }

    /// Somebody else sends a page to the drive.
    pub(super) fn written_elsewhere(&mut self) {
        self.owed_bytes = self.owed_bytes.saturating_sub(self.facts.page_bytes);
    }

    pub(super) fn is_full(&self) -> bool {
        self.owed_bytes > self.facts.limit_pages * self.facts.page_bytes
    }

    pub(super) fn tick(&mut self) {
        self.flushes += self.facts.flushes_per_second / TICKS_PER_SECOND as f64;
        self.ticks_owed = if self.owed_bytes > 0 { self.ticks_owed + 1 } else { 0 };
    }

    /// Whether it can have one more request under way.
    pub(super) fn sends_beside(&self, under_way: u64) -> bool {
        under_way < self.facts.depth
    }

    pub(super) fn next(&mut self, places: &Places, draws: &mut Draws) -> Option<Phase> {
        if self.flushes >= 1.0 {
            self.flushes -= 1.0;
            return Some(Phase::Flush { mount: self.facts.mount });
        }
        let is_expired = self.ticks_owed > EXPIRE_SECONDS * TICKS_PER_SECOND;
        if self.batch.is_empty() && (self.owed_bytes >= BATCH_BYTES || is_expired) {
            let bytes = self.owed_bytes.min(BATCH_BYTES);
            self.begin_batch(bytes, places, draws);
        }
        let access = self.batch.pop_front()?;
        Some(Phase::Write { mount: self.facts.mount, accesses: vec![access] })
    }

    /// Neighbours become one request, and a page that is there twice is written once.
    fn begin_batch(&mut self, bytes: u64, places: &Places, draws: &mut Draws) {
        self.ticks_owed = 0;
        let mut accesses = Vec::new();
        let mut gathered = 0;
        while gathered < bytes {
            let access = places.writes.place(self.write_number, draws.any());
            self.write_number += 1;
            gathered += access.size_bytes.max(1);
            accesses.push(access);
        }
        self.owed_bytes = self.owed_bytes.saturating_sub(gathered);
        accesses.sort_by_key(|access| access.offset_bytes);
        for access in accesses {
            let end = access.offset_bytes + access.size_bytes;
            match self.batch.back_mut() {
                Some(last)
                    if access.offset_bytes <= last.offset_bytes + last.size_bytes
                        && end <= last.offset_bytes + REQUEST_BYTES =>
                {
                    last.size_bytes = last.size_bytes.max(end - last.offset_bytes);
                }
                _ => self.batch.push_back(access),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Region, Stream};

    const PAGE: u64 = 8_192;

    fn writer() -> Writer {
        let background = BackgroundWriting { delay_ns: 1, most_pages: 0, flush_after_pages: 0 };
        let facts = Writeback {
            mount: 0,
            page_bytes: PAGE,
            depth: 2,
            limit_pages: 2_000,
            flushes_per_second: 0.0,
            background,
            background_share: 1.0,
        };
        Writer::new(facts, 0)
    }

    #[test]
    fn a_turn_is_sorted_and_has_neighbours_in_one_request() {
        // Pages 3, 2, 1, 0, then 7, 6, 5, 4, and so on up to 383, and the first 128 once more: three requests of 128 pages.
        let place = |number: u64| Access {
            offset_bytes: (number / 4 * 4 + 3 - number % 4) % 384 * PAGE,
            size_bytes: PAGE,
        };
        let region = Region { offset_bytes: 0, size_bytes: 384 * PAGE };
        let stream = Stream::Recorded { accesses: (0..512).map(place).collect(), region };
        let places = Places { reads: stream.clone(), writes: stream };
        let (mut writer, mut draws) = (writer(), Draws::new(7));
        writer.changed(511);
        assert_eq!(writer.next(&places, &mut draws), None, "less than a turn");
        writer.changed(1);
        for request in 0..3 {
            let access = Access { offset_bytes: request << 20, size_bytes: 1 << 20 };
            let phase = Phase::Write { mount: 0, accesses: vec![access] };
            assert_eq!(writer.next(&places, &mut draws), Some(phase));
        }
        assert_eq!(writer.next(&places, &mut draws), None);
        assert!(writer.sends_beside(1) && !writer.sends_beside(2));
    }

    #[test]
    fn writers_wait_for_a_full_page_cache_and_not_for_what_another_wrote() {
        let mut writer = writer();
        writer.changed(2_001);
        assert!(writer.is_full());
        writer.written_elsewhere();
        assert!(!writer.is_full());
    }
}
