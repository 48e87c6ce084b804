//! InnoDB's page cleaner, as MariaDB 10.11 has it: `buf_flush_page_cleaner`,
//! `page_cleaner_flush_pages_recommendation` and `af_get_pct_for_lsn` in storage/innobase/buf/buf0flu.cc,
//! `log_t::set_capacity` in log/log0log.cc, the two slots of the doublewrite buffer in buf/buf0dblwr.cc.
//!
//! # Divergence
//! * The list of dirty pages is in the order of their first changes, and pages that leave at the end of the
//!   LRU list are taken from its begin: a page that was read, changed and not used again gets there first.
//! * MySQL 8.0.30 and later compute the capacities of the log in another way, and take the larger of the two
//!   percentages where MariaDB takes a mean.

use std::collections::VecDeque;

use super::{Phase, page_writes};
use crate::draw::Draws;
use crate::facts::{Access, Places, Region};

/// Settings of the server, and what a measured cell tells of its pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Innodb {
    /// The mount of the data.
    pub mount: usize,
    pub page_bytes: u64,
    /// `innodb_io_capacity` and `innodb_io_capacity_max`, pages a second.
    pub io_capacity: u64,
    pub io_capacity_max: u64,
    /// All files of the redo log together.
    pub log_bytes: u64,
    pub buffer_pool_pages: u64,
    /// `innodb_max_dirty_pages_pct` and `innodb_max_dirty_pages_pct_lwm`.
    pub max_dirty_percent: f64,
    pub max_dirty_low_water_percent: f64,
    /// `innodb_adaptive_flushing` and `innodb_adaptive_flushing_lwm`.
    pub is_adaptive: bool,
    pub adaptive_low_water_percent: f64,
    /// `innodb_lru_scan_depth`.
    pub scan_depth: u64,
    pub doublewrite: Doublewrite,
    /// FLUSHes at the end of a batch: one for each file in it.
    pub flushes_of_batch: f64,
    /// Dirty pages at the end of the LRU list that are written for each page that is read, while as many pages
    /// are dirty as the next figure says. With fewer dirty pages, fewer of those at the end are dirty.
    pub written_for_read: f64,
    pub usual_dirty_pages: f64,
    /// At the begin of the simulation.
    pub first_dirty_pages: u64,
    pub first_age_bytes: f64,
}

/// The doublewrite buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Doublewrite {
    pub is_on: bool,
    pub mount: usize,
    pub region: Region,
}

/// Pages of one batch of the doublewrite buffer, and of each of its writes.
const BATCH_PAGES: u64 = 128;
const BLOCK_PAGES: u64 = 64;
/// `innodb_flushing_avg_loops`.
const AVERAGE_LOOPS: u64 = 30;

#[derive(Debug)]
pub(crate) struct Cleaner {
    facts: Innodb,
    /// End of the log at the first change, and number of pages; the oldest first.
    dirty: VecDeque<(f64, u64)>,
    dirty_count: u64,
    /// Pages of the list of dirty pages that may still be written in this second.
    quota: u64,
    /// Dirty pages at the end of the LRU list that are owed for pages read.
    owed: f64,
    batch: Option<Batch>,
    write_number: u64,
    averages: Averages,
}

#[derive(Debug)]
struct Batch {
    pages: u64,
    is_of_lru: bool,
    /// What is left, the next phase last.
    phases: Vec<Phase>,
}

/// Means over the last rounds of the cleaner.
#[derive(Debug, Default)]
struct Averages {
    loops: u64,
    written_pages: u64,
    first_log_end: f64,
    page_rate: f64,
    log_rate: f64,
}

impl Innodb {
    /// Ages from which on the cleaner writes as fast as it may, and from which on transactions wait.
    fn age_limits(&self) -> (f64, f64) {
        let capacity = 0.9 * self.log_bytes as f64;
        let margin = 0.9 * (capacity - (48 * self.page_bytes) as f64).max(capacity / 2.0);
        (margin * 7.0 / 8.0, margin)
    }

    /// `af_get_pct_for_lsn`: the share of `innodb_io_capacity` that an age asks for, in percent.
    fn percent_for_age(&self, age: f64) -> f64 {
        let (async_age, _) = self.age_limits();
        if !self.is_adaptive || age < self.adaptive_low_water_percent / 100.0 * 0.9 * self.log_bytes as f64 {
            return 0.0;
        }
        let factor = (age * 100.0 / async_age).floor();
        let capacities = (self.io_capacity_max / self.io_capacity.max(1)) as f64;
        capacities * factor * factor.sqrt() / 7.5
    }
}

impl Cleaner {
    pub(super) fn new(facts: Innodb) -> Cleaner {
        // The pages that are dirty at the begin are spread evenly over the age.
        let steps = 100.min(facts.first_dirty_pages);
        let dirty: VecDeque<_> = (0..steps)
            .map(|step| {
                let pages =
                    facts.first_dirty_pages * (step + 1) / steps - facts.first_dirty_pages * step / steps;
                (facts.first_age_bytes * (step as f64 / steps as f64 - 1.0), pages)
            })
            .collect();
        Cleaner {
            dirty_count: facts.first_dirty_pages,
            facts,
            dirty,
            quota: 0,
            owed: 0.0,
            batch: None,
            write_number: 0,
            averages: Averages::default(),
        }
    }

    pub(super) fn age(&self, log_end: f64) -> f64 {
        self.dirty.front().map_or(0.0, |(first, _)| log_end - first)
    }

    pub(super) fn changed(&mut self, log_end: f64, pages: u64) {
        if pages > 0 {
            self.dirty.push_back((log_end, pages));
            self.dirty_count += pages;
        }
    }

    pub(super) fn takes_page(&mut self) -> bool {
        let in_batch = self.batch.as_ref().filter(|batch| batch.is_of_lru).map_or(0, |batch| batch.pages);
        if self.owed + in_batch as f64 >= self.facts.scan_depth as f64 {
            return false;
        }
        let dirty_share = self.dirty_count as f64 / self.facts.usual_dirty_pages.max(1.0);
        self.owed += (self.facts.written_for_read * dirty_share).min(1.0);
        true
    }

    pub(super) fn is_full(&self, log_end: f64) -> bool {
        self.age(log_end) > self.facts.age_limits().1
    }

    pub(super) fn tick(&mut self, log_end: f64) {
        self.average(log_end);
        let age = self.age(log_end);
        let (async_age, max_age) = self.facts.age_limits();
        self.quota = if age > max_age {
            u64::MAX
        } else if age > async_age {
            self.facts.io_capacity_max
        } else {
            self.recommended(age)
        };
    }

    /// `page_cleaner_flush_pages_recommendation`: pages to write in the next second.
    fn recommended(&self, age: f64) -> u64 {
        let facts = &self.facts;
        let dirty_percent = 100.0 * self.dirty_count as f64 / facts.buffer_pool_pages.max(1) as f64;
        let percent_for_age = facts.percent_for_age(age);
        let low_water = facts.max_dirty_low_water_percent;
        let is_above =
            low_water > 0.0 && dirty_percent >= low_water || dirty_percent >= facts.max_dirty_percent;
        if !is_above && percent_for_age == 0.0 {
            return 0;
        }
        let ratio = if low_water == 0.0 {
            1.0
        } else {
            (percent_for_age / 100.0).max(dirty_percent / facts.max_dirty_percent)
        };
        let for_log = self.pages_before(self.averages.log_rate).min(facts.io_capacity_max);
        let pages = (facts.io_capacity as f64 * ratio + self.averages.page_rate + for_log as f64) / 3.0;
        (pages as u64).min(facts.io_capacity_max)
    }

    /// Dirty pages whose first change lies within that many bytes of the oldest one.
    fn pages_before(&self, bytes: f64) -> u64 {
        let Some((oldest, _)) = self.dirty.front() else { return 0 };
        self.dirty.iter().take_while(|(first, _)| first - oldest < bytes).map(|(_, pages)| pages).sum()
    }

    fn average(&mut self, log_end: f64) {
        let averages = &mut self.averages;
        averages.loops += 1;
        // Before the first full period the rates of what there is, so that a simulation needs no 30 s to begin.
        let loops = averages.loops as f64;
        averages.page_rate = averages.written_pages as f64 / loops;
        averages.log_rate = (log_end - averages.first_log_end) / loops;
        if averages.loops >= AVERAGE_LOOPS {
            averages.loops = 0;
            averages.written_pages = 0;
            averages.first_log_end = log_end;
        }
    }

    pub(super) fn next(&mut self, log_end: f64, places: &Places, draws: &mut Draws) -> Option<Phase> {
        if let Some(batch) = &mut self.batch {
            if let Some(phase) = batch.phases.pop() {
                return Some(phase);
            }
            self.averages.written_pages += batch.pages;
            self.batch = None;
        }
        let (pages, is_of_lru) = self.wanted(log_end)?;
        let pages = self.take_oldest(pages);
        if pages == 0 {
            self.owed = 0.0;
            return None;
        }
        if is_of_lru {
            self.owed = (self.owed - pages as f64).max(0.0);
        } else {
            self.quota -= pages;
        }
        let mut phases = self.phases(pages, places, draws);
        phases.reverse();
        let first = phases.pop();
        self.batch = Some(Batch { pages, is_of_lru, phases });
        first
    }

    /// Pages of the next batch, and whether they come from the LRU list.
    fn wanted(&self, log_end: f64) -> Option<(u64, bool)> {
        let owed = self.owed as u64;
        // The cleaner is woken when half of the free pages are used.
        let half = (self.facts.scan_depth as f64 / 2.0 * self.facts.written_for_read).max(1.0);
        if self.owed >= half {
            return Some((owed.min(BATCH_PAGES), true));
        }
        if self.quota > 0 && self.dirty_count > 0 {
            return Some((self.quota.min(BATCH_PAGES), false));
        }
        (self.is_full(log_end) && self.dirty_count > 0).then_some((BATCH_PAGES, false))
    }

    fn take_oldest(&mut self, pages: u64) -> u64 {
        let mut left = pages.min(self.dirty_count);
        let taken = left;
        self.dirty_count -= taken;
        while left > 0 {
            let (_, count) = self.dirty.front_mut().expect("as many pages as counted");
            let part = left.min(*count);
            *count -= part;
            left -= part;
            if *count == 0 {
                self.dirty.pop_front();
            }
        }
        taken
    }

    fn phases(&mut self, pages: u64, places: &Places, draws: &mut Draws) -> Vec<Phase> {
        let Innodb { mount, page_bytes, doublewrite, flushes_of_batch, .. } = self.facts;
        let mut phases = Vec::new();
        if doublewrite.is_on {
            let accesses = (0..pages.div_ceil(BLOCK_PAGES))
                .map(|block| Access {
                    offset_bytes: doublewrite.region.offset_bytes + block * BLOCK_PAGES * page_bytes,
                    size_bytes: (pages - block * BLOCK_PAGES).min(BLOCK_PAGES) * page_bytes,
                })
                .collect();
            phases.push(Phase::Write { mount: doublewrite.mount, accesses });
            phases.push(Phase::Flush { mount: doublewrite.mount });
        }
        let accesses = page_writes(places, &mut self.write_number, pages, page_bytes, draws);
        phases.push(Phase::Write { mount, accesses });
        phases.extend((0..draws.rounded(flushes_of_batch)).map(|_| Phase::Flush { mount }));
        phases
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Stream;

    /// No mean of these tests has a fraction, so that nothing is left to chance but places.
    fn draws() -> Draws {
        Draws::new(1)
    }

    fn facts() -> Innodb {
        let region = Region { offset_bytes: 0, size_bytes: 2 << 20 };
        Innodb {
            mount: 0,
            page_bytes: 16 << 10,
            io_capacity: 200,
            io_capacity_max: 2_000,
            log_bytes: 96 << 20,
            buffer_pool_pages: 8_192,
            max_dirty_percent: 90.0,
            max_dirty_low_water_percent: 0.0,
            is_adaptive: true,
            adaptive_low_water_percent: 10.0,
            scan_depth: 1_536,
            doublewrite: Doublewrite { is_on: true, mount: 0, region },
            flushes_of_batch: 1.0,
            written_for_read: 0.5,
            usual_dirty_pages: 4_000.0,
            first_dirty_pages: 0,
            first_age_bytes: 0.0,
        }
    }

    fn places() -> Places {
        let region = Region { offset_bytes: 0, size_bytes: 1 << 30 };
        let stream = Stream::Uniform { region, size_bytes: 16 << 10 };
        Places { reads: stream.clone(), writes: stream }
    }

    #[test]
    fn a_young_log_is_left_alone_and_an_old_one_is_written_at_full_speed() {
        let mut cleaner = Cleaner::new(facts());
        cleaner.changed(0.0, 4_000);
        let mut quota = |log_end: f64| {
            cleaner.tick(log_end);
            cleaner.quota
        };
        assert_eq!(quota(5e6), 0);
        assert!((67..2_000).contains(&quota(40e6)));
        assert_eq!(quota(75e6), 2_000);
        assert_eq!(quota(85e6), u64::MAX);
    }

    #[test]
    fn transactions_wait_while_the_log_is_full() {
        let mut cleaner = Cleaner::new(facts());
        cleaner.changed(0.0, 1);
        assert_eq!([70e6, 85e6].map(|log_end| cleaner.is_full(log_end)), [false, true]);
    }

    #[test]
    fn a_batch_goes_through_the_doublewrite_buffer() {
        let mut cleaner = Cleaner::new(facts());
        cleaner.changed(0.0, 100);
        cleaner.quota = 100;
        let mut next = || cleaner.next(0.0, &places(), &mut draws());
        let sizes = |phase: &Option<Phase>| match phase {
            Some(Phase::Write { accesses, .. }) => {
                accesses.iter().map(|access| access.size_bytes >> 14).collect()
            }
            _ => vec![],
        };
        assert_eq!(sizes(&next()), [64, 36]);
        assert_eq!(next(), Some(Phase::Flush { mount: 0 }));
        assert_eq!(sizes(&next()), [1; 100]);
        assert_eq!([next(), next()], [Some(Phase::Flush { mount: 0 }), None]);
    }

    #[test]
    fn reads_wait_when_all_pages_at_the_end_of_the_lru_list_are_dirty() {
        let mut cleaner = Cleaner::new(facts());
        cleaner.changed(0.0, 4_000);
        let taken = std::iter::repeat_with(|| cleaner.takes_page()).take_while(|taken| *taken).count();
        assert_eq!(taken, 3_072);
        assert!(cleaner.next(0.0, &places(), &mut draws()).is_some());
        assert!(!cleaner.takes_page());
    }

    #[test]
    fn dirty_pages_of_the_begin_are_spread_over_the_age() {
        let cleaner = Cleaner::new(Innodb { first_dirty_pages: 1_000, first_age_bytes: 1e6, ..facts() });
        assert_eq!(cleaner.age(0.0), 1e6);
        assert_eq!(cleaner.pages_before(0.5e6), 500);
    }
}
