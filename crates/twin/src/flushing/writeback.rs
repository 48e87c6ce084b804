//! A server that writes through the kernel's page cache, as PostgreSQL does: checkpoints and backends hand pages
//! to the kernel, which writes them in the background (mm/page-writeback.c).
//!
//! # Divergence
//! What reaches the disk for each transaction is taken from the measured cell, and so are the full-page images
//! in the log: a checkpoint that falls into one window and not into another is not foreseen.

use super::{Phase, TICKS_PER_SECOND, page_writes};
use crate::draw::Draws;
use crate::facts::Places;

/// What a measured cell tells of the writing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Writeback {
    /// The mount of the data.
    pub mount: usize,
    pub page_bytes: u64,
    /// Requests under way together.
    pub depth: u64,
    /// Dirty pages from which on the writers wait (`balance_dirty_pages`).
    pub limit_pages: u64,
    /// FLUSHes a second besides those of commits.
    pub flushes_per_second: f64,
}

#[derive(Debug)]
pub(crate) struct Writer {
    facts: Writeback,
    owed: u64,
    /// Since the last batch began.
    ticks_owed: u64,
    left_of_batch: u64,
    flushes: f64,
    write_number: u64,
}

/// The kernel writes changed pages in turns of so many bytes of a file (`MIN_WRITEBACK_PAGES` in fs/fs-writeback.c), which
/// are sorted by their places.
const BATCH_BYTES: u64 = 4 << 20;
/// And at the latest after that time (`vm.dirty_expire_centisecs`).
const EXPIRE_SECONDS: u64 = 30;

impl Writer {
    fn batch_pages(&self) -> u64 {
        (BATCH_BYTES / self.facts.page_bytes).max(1)
    }

    pub(super) fn new(facts: Writeback, first_write: u64) -> Writer {
        Writer { facts, owed: 0, ticks_owed: 0, left_of_batch: 0, flushes: 0.0, write_number: first_write }
    }

    pub(super) fn changed(&mut self, pages: u64) {
        self.owed += pages;
    }

    pub(super) fn is_full(&self) -> bool {
        self.owed > self.facts.limit_pages
    }

    pub(super) fn tick(&mut self) {
        self.flushes += self.facts.flushes_per_second / TICKS_PER_SECOND as f64;
        self.ticks_owed = if self.owed > 0 { self.ticks_owed + 1 } else { 0 };
    }

    pub(super) fn next(&mut self, places: &Places, draws: &mut Draws) -> Option<Phase> {
        if self.flushes >= 1.0 {
            self.flushes -= 1.0;
            return Some(Phase::Flush { mount: self.facts.mount });
        }
        if self.left_of_batch == 0 {
            let is_expired = self.ticks_owed > EXPIRE_SECONDS * TICKS_PER_SECOND;
            if self.owed < self.batch_pages() && !is_expired {
                return None;
            }
            self.left_of_batch = self.owed.min(self.batch_pages());
            self.ticks_owed = 0;
        }
        let pages = self.left_of_batch.min(self.facts.depth);
        self.left_of_batch -= pages;
        self.owed -= pages;
        let accesses = page_writes(places, &mut self.write_number, pages, self.facts.page_bytes, draws);
        Some(Phase::Write { mount: self.facts.mount, accesses })
    }
}
