//! InnoDB's page cleaner, as MariaDB 10.11 has it: `buf_flush_page_cleaner`,
//! `page_cleaner_flush_pages_recommendation`, `af_get_pct_for_lsn` and `buf_flush_sync_for_checkpoint` in
//! storage/innobase/buf/buf0flu.cc, `log_close` in mtr/mtr0mtr.cc, `log_t::set_capacity` in log/log0log.cc.
//!
//! The cleaner works in rounds. A round writes pages of the list of dirty pages, or those at the end of the LRU
//! list, or both, and ends with a checkpoint if the oldest change moved.
//!
//! # Divergence
//! * A page is hot or cold. A hot one is used again before it gets to the end of the LRU list, so only its age
//!   has it written; of the cold ones the oldest are at the end of the LRU list.
//! * A checkpoint does not keep commits from the log while it is written.
//! * MySQL 8.0.30 and later compute the capacities of the log in another way, and take the larger of the two
//!   percentages where MariaDB takes a mean.

mod averages;
mod dirty_pages;
mod page_writes;

use super::{Phase, TICKS_PER_SECOND};
use crate::draw::Draws;
use crate::facts::{Access, Places, Region};
use averages::Averages;
use dirty_pages::{DirtyPages, take_of_list};
use page_writes::PageWrites;
pub use page_writes::{Neighbors, Recording};

/// The settings of the page cleaner, with the server's defaults for those that are not set.
#[derive(Debug, Clone, PartialEq)]
pub struct InnodbRules {
    /// `innodb_io_capacity` and `innodb_io_capacity_max`, pages a second.
    pub io_capacity: u64,
    pub io_capacity_max: u64,
    /// All files of the redo log together.
    pub log_bytes: u64,
    /// `innodb_max_dirty_pages_pct` and `innodb_max_dirty_pages_pct_lwm`.
    pub max_dirty_percent: f64,
    pub max_dirty_low_water_percent: f64,
    /// `innodb_adaptive_flushing` and `innodb_adaptive_flushing_lwm`.
    pub is_adaptive: bool,
    pub adaptive_low_water_percent: f64,
    /// `innodb_lru_scan_depth`.
    pub scan_depth: u64,
    /// `innodb_doublewrite`.
    pub has_doublewrite: bool,
    pub neighbors: Neighbors,
}

/// The rules, and what a measured cell tells of its pages.
#[derive(Debug, Clone, PartialEq)]
pub struct Innodb {
    pub rules: InnodbRules,
    /// The mount of the data.
    pub mount: usize,
    pub page_bytes: u64,
    pub buffer_pool_pages: u64,
    /// Where checkpoints are written: the redo log.
    pub log: Part,
    pub doublewrite: Part,
    /// FLUSHes at the end of a batch: one for each file in it.
    pub flushes_of_batch: f64,
    /// Share of the pages that become dirty which are hot.
    pub hot_share: f64,
    /// Dirty pages at the end of the LRU list that are written for each page that is read, while as many cold
    /// pages are dirty as the next figure says. With fewer of them, fewer at the end are dirty. Above one where
    /// pages become dirty again before they are given up.
    pub written_for_read: f64,
    pub usual_cold_pages: f64,
    /// Dirty pages at the begin of the simulation.
    pub first_hot_pages: u64,
    pub first_cold_pages: u64,
    pub first_age_bytes: f64,
    /// `None` if no page writes were recorded, or nobody knows how.
    pub recording: Option<Recording>,
}

/// A part of a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub mount: usize,
    pub region: Region,
}

/// Pages of one batch of the doublewrite buffer, which it writes at once.
const BATCH_PAGES: u64 = 128;
/// `buf_flush_lsn_scan_factor`.
const SCAN_FACTOR: u64 = 3;
/// A record of a checkpoint, and the header of the log with its place.
const CHECKPOINT_BYTES: u64 = 512;

#[derive(Debug)]
pub(crate) struct Cleaner {
    facts: Innodb,
    /// See [`InnodbRules::age_limits`].
    async_age: f64,
    full_age: f64,
    hot: DirtyPages,
    cold: DirtyPages,
    /// The part of a hot page that the pages dirtied until now make up beyond whole ones.
    hot_rest: f64,
    /// Dirty pages at the end of the LRU list that reads have come across.
    owed: f64,
    /// End of the log at the last checkpoint's oldest change.
    checkpoint: f64,
    /// All changes before this are to be written without delay; zero if none.
    limit: f64,
    ticks_since_round: u64,
    round: Option<Round>,
    batch: Option<Batch>,
    writes: PageWrites,
    averages: Averages,
}

/// What is left of a round.
#[derive(Debug)]
struct Round {
    /// Pages of the list of dirty pages, while their first change is before the limit.
    of_list: u64,
    before: f64,
    of_lru: u64,
    is_checkpointed: bool,
}

#[derive(Debug, Default)]
struct Batch {
    pages: u64,
    /// Those of them that were at the end of the LRU list.
    of_lru: u64,
    /// Of a batch that is a checkpoint.
    checkpoint: Option<f64>,
    /// What is left, the next phase last.
    phases: Vec<Phase>,
}

impl InnodbRules {
    /// Bytes of the log after which a change is written for its age at the latest.
    pub fn oldest_change_bytes(&self, page_bytes: u64) -> f64 {
        self.age_limits(page_bytes).0
    }

    /// Ages of the checkpoint from which on the cleaner writes as fast as it may, and from which on transactions
    /// wait.
    fn age_limits(&self, page_bytes: u64) -> (f64, f64) {
        let capacity = 0.9 * self.log_bytes as f64;
        let margin = 0.9 * (capacity - (48 * page_bytes) as f64).max(capacity / 2.0);
        (margin * 7.0 / 8.0, margin)
    }

    /// The age from which on changes are written for their age.
    fn low_water_age(&self) -> f64 {
        self.adaptive_low_water_percent / 100.0 * 0.9 * self.log_bytes as f64
    }

    /// `af_get_pct_for_lsn`: the share of `innodb_io_capacity` that an age asks for, in percent.
    fn percent_for_age(&self, age: f64, async_age: f64) -> f64 {
        if age < self.low_water_age() {
            return 0.0;
        }
        let factor = (age * 100.0 / async_age).floor();
        let capacities = (self.io_capacity_max / self.io_capacity.max(1)) as f64;
        (capacities * factor * factor.sqrt() / 7.5).floor()
    }
}

impl Cleaner {
    /// `rotates`: whether the kernel takes the data's drive for one that does.
    pub(super) fn new(facts: Innodb, first_write: u64, rotates: bool) -> Cleaner {
        let (async_age, full_age) = facts.rules.age_limits(facts.page_bytes);
        let hot = DirtyPages::spread(facts.first_hot_pages, facts.first_age_bytes);
        let cold = DirtyPages::spread(facts.first_cold_pages, facts.first_age_bytes);
        Cleaner {
            async_age,
            full_age,
            hot,
            cold,
            hot_rest: 0.0,
            owed: 0.0,
            checkpoint: -facts.first_age_bytes,
            limit: 0.0,
            ticks_since_round: 0,
            round: None,
            batch: None,
            writes: PageWrites::new(facts.recording, facts.rules.neighbors.apply(rotates), first_write),
            averages: Averages::default(),
            facts,
        }
    }

    /// The oldest change that is not in its page on the disk.
    fn oldest(&self) -> Option<f64> {
        [self.hot.oldest(), self.cold.oldest()].into_iter().flatten().min_by(f64::total_cmp)
    }

    fn dirty_count(&self) -> u64 {
        self.hot.count + self.cold.count
    }

    pub(super) fn changed(&mut self, log_end: f64, pages: u64) {
        self.hot_rest += pages as f64 * self.facts.hot_share;
        let hot = (self.hot_rest as u64).min(pages);
        self.hot_rest -= hot as f64;
        self.hot.push(log_end, hot);
        self.cold.push(log_end, pages - hot);
        self.look_at_age(log_end);
    }

    /// `log_close`: a change that finds the checkpoint too old asks for all pages changed until now.
    fn look_at_age(&mut self, log_end: f64) {
        if log_end - self.checkpoint > self.async_age {
            self.limit = log_end;
        }
    }

    pub(super) fn takes_page(&mut self) -> bool {
        if self.owed >= self.facts.rules.scan_depth as f64 {
            return false;
        }
        let dirty_share =
            (self.cold.count as f64 - self.owed).max(0.0) / self.facts.usual_cold_pages.max(1.0);
        let written_for_read = self.facts.written_for_read;
        self.owed += (written_for_read * dirty_share).min(written_for_read.max(1.0));
        true
    }

    pub(super) fn is_full(&self, log_end: f64) -> bool {
        log_end - self.checkpoint > self.full_age
    }

    pub(super) fn tick(&mut self) {
        self.ticks_since_round += 1;
        self.averages.ticks += 1;
    }

    pub(super) fn next(&mut self, log_end: f64, places: &Places, draws: &mut Draws) -> Option<Phase> {
        loop {
            if let Some(batch) = &mut self.batch {
                if let Some(phase) = batch.phases.pop() {
                    return Some(phase);
                }
                self.end_batch();
            }
            if self.round.is_none() {
                self.round = Some(self.next_round(log_end)?);
                self.ticks_since_round = 0;
            }
            self.batch = self.next_batch(log_end, places, draws);
            if self.batch.is_none() {
                self.round = None;
            }
        }
    }

    fn end_batch(&mut self) {
        if let Some(batch) = self.batch.take() {
            self.averages.written_pages += batch.pages;
            self.owed = (self.owed - batch.of_lru as f64).max(0.0);
            if let Some(checkpoint) = batch.checkpoint {
                self.checkpoint = checkpoint;
            }
        }
    }

    /// What `buf_flush_page_cleaner` does next; `None` if it waits.
    fn next_round(&mut self, log_end: f64) -> Option<Round> {
        self.look_at_age(log_end);
        let oldest = self.oldest().unwrap_or(log_end);
        if oldest >= self.limit {
            self.limit = 0.0;
        }
        self.owed = self.owed.min(self.cold.count as f64);
        let most = self.facts.rules.io_capacity_max;
        let of_lru = (self.owed as u64).min(most);
        let is_due = self.ticks_since_round >= TICKS_PER_SECOND;
        let round = |of_list, before, of_lru| Some(Round { of_list, before, of_lru, is_checkpointed: false });
        if self.limit > 0.0 {
            let is_signalled = log_end - self.checkpoint > self.async_age;
            return if is_signalled || is_due { round(most, self.limit, of_lru) } else { None };
        }
        // The cleaner is woken when half of the free pages are used, and does nothing else then.
        let half = (self.facts.rules.scan_depth as f64 / 2.0 * self.facts.written_for_read).max(1.0);
        if self.owed >= half {
            return round(0, 0.0, of_lru);
        }
        if !is_due {
            return None;
        }
        let of_list = self.recommended(log_end, log_end - oldest);
        round(of_list, f64::INFINITY, if of_list > 0 { of_lru } else { 0 })
    }

    /// `page_cleaner_flush_pages_recommendation`: pages of the list to write in a round.
    fn recommended(&mut self, log_end: f64, age: f64) -> u64 {
        let dirty = self.dirty_count();
        let dirty_percent = 100.0 * dirty as f64 / self.facts.buffer_pool_pages.max(1) as f64;
        let rules = &self.facts.rules;
        let low_water = rules.max_dirty_low_water_percent;
        let limit = if low_water > 0.0 { low_water } else { rules.max_dirty_percent };
        if dirty_percent < limit && age < rules.low_water_age() {
            return 0;
        }
        if !rules.is_adaptive {
            return rules.io_capacity;
        }
        let percent_for_age = rules.percent_for_age(age, self.async_age);
        if percent_for_age == 0.0 {
            self.averages.begin_period(log_end);
            let wanted = (dirty_percent / rules.max_dirty_percent * rules.io_capacity as f64) as u64;
            return if wanted < dirty {
                rules.io_capacity.min(dirty)
            } else {
                dirty.min(rules.io_capacity_max)
            };
        }
        self.averages.count_round(log_end);
        let ratio = if low_water == 0.0 {
            1.0
        } else {
            (percent_for_age / 100.0).max(dirty_percent / rules.max_dirty_percent)
        };
        let end = log_end - age + self.averages.log_rate * SCAN_FACTOR as f64;
        let for_log = (self.hot.before(end) + self.cold.before(end)).min(rules.io_capacity_max) / SCAN_FACTOR;
        let pages = rules.io_capacity as f64 * ratio + self.averages.page_rate + for_log.max(1) as f64;
        ((pages / 3.0) as u64).min(rules.io_capacity_max)
    }

    /// The next batch of the round, at last its checkpoint; `None` if it is over.
    fn next_batch(&mut self, log_end: f64, places: &Places, draws: &mut Draws) -> Option<Batch> {
        let most = if self.facts.rules.has_doublewrite { BATCH_PAGES } else { u64::MAX };
        let oldest = self.oldest().unwrap_or(log_end);
        let dirty = self.dirty_count();
        let round = self.round.as_mut()?;
        let (mut pages, mut of_lru) = (0, 0);
        if round.of_list > 0 {
            pages = take_of_list(&mut self.hot, &mut self.cold, round.of_list.min(most), round.before);
            round.of_list = if pages == 0 { 0 } else { round.of_list - pages };
        }
        if pages == 0 && round.of_lru > 0 {
            of_lru = self.cold.take(round.of_lru.min(most));
            pages = of_lru;
            round.of_lru = if pages == 0 { 0 } else { round.of_lru - pages };
        }
        if pages > 0 {
            let written = self.writes.take(pages, dirty, self.facts.page_bytes, places, draws);
            self.cold.take(written.early_clean);
            let pages = pages + written.early;
            let phases = self.facts.phases(pages, &written.accesses, draws);
            return Some(Batch { pages, of_lru, checkpoint: None, phases });
        }
        (!round.is_checkpointed && oldest > self.checkpoint).then(|| {
            round.is_checkpointed = true;
            Batch { checkpoint: Some(oldest), phases: self.facts.checkpoint_phases(), ..Batch::default() }
        })
    }
}

impl Innodb {
    /// The phases of page writes, the first last.
    fn phases(&self, pages: u64, accesses: &[Access], draws: &mut Draws) -> Vec<Phase> {
        let batches = if self.rules.has_doublewrite { pages.div_ceil(BATCH_PAGES) } else { 1 };
        let of_batch = accesses.len().div_ceil(batches as usize);
        let mut phases = Vec::new();
        for accesses in accesses.chunks(of_batch) {
            if self.rules.has_doublewrite {
                let Part { mount, region } = self.doublewrite;
                let size_bytes = accesses.iter().map(|access| access.size_bytes).sum();
                let access = Access { offset_bytes: region.offset_bytes, size_bytes };
                phases.push(Phase::Write { mount, access });
                phases.push(Phase::Flush { mount });
            }
            phases.push(Phase::Batch { mount: self.mount, accesses: accesses.to_vec() });
            let flushes = draws.rounded(self.flushes_of_batch);
            phases.extend((0..flushes).map(|_| Phase::Flush { mount: self.mount }));
        }
        phases.reverse();
        phases
    }

    /// A checkpoint: its record and the header of the log, each written and flushed.
    fn checkpoint_phases(&self) -> Vec<Phase> {
        let Part { mount, region } = self.log;
        let access = Access { offset_bytes: region.offset_bytes, size_bytes: CHECKPOINT_BYTES };
        let write = || Phase::Write { mount, access };
        vec![Phase::Flush { mount }, write(), Phase::Flush { mount }, write()]
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
        let part = Part { mount: 0, region };
        Innodb {
            rules: InnodbRules {
                io_capacity: 200,
                io_capacity_max: 2_000,
                log_bytes: 96 << 20,
                max_dirty_percent: 90.0,
                max_dirty_low_water_percent: 0.0,
                is_adaptive: true,
                adaptive_low_water_percent: 10.0,
                scan_depth: 1_536,
                has_doublewrite: true,
                neighbors: Neighbors::OnDisks,
            },
            mount: 0,
            page_bytes: 16 << 10,
            buffer_pool_pages: 8_192,
            log: part,
            doublewrite: part,
            flushes_of_batch: 1.0,
            hot_share: 0.5,
            written_for_read: 0.5,
            usual_cold_pages: 2_000.0,
            first_hot_pages: 0,
            first_cold_pages: 0,
            first_age_bytes: 0.0,
            recording: None,
        }
    }

    fn places() -> Places {
        let region = Region { offset_bytes: 0, size_bytes: 1 << 30 };
        let stream = Stream::Uniform { region, size_bytes: 16 << 10 };
        Places { reads: stream.clone(), writes: stream }
    }

    fn pass_a_second(cleaner: &mut Cleaner) {
        (0..TICKS_PER_SECOND).for_each(|_| cleaner.tick());
    }

    /// Pages that the cleaner writes to their places until it waits.
    fn written(cleaner: &mut Cleaner, log_end: f64) -> usize {
        let phases = std::iter::from_fn(|| cleaner.next(log_end, &places(), &mut draws()));
        let pages = phases.map(|phase| match phase {
            Phase::Batch { accesses, .. } => {
                accesses.iter().filter(|access| access.size_bytes == 16 << 10).count()
            }
            Phase::Write { .. } | Phase::Flush { .. } => 0,
        });
        pages.sum()
    }

    #[test]
    fn a_young_log_is_left_alone_and_an_old_one_is_written_at_full_speed() {
        let mut cleaner = Cleaner::new(facts(), 0, false);
        cleaner.changed(0.0, 7_000);
        let mut after_a_second = |log_end: f64| {
            pass_a_second(&mut cleaner);
            cleaner.changed(log_end, 0);
            written(&mut cleaner, log_end)
        };
        assert_eq!(after_a_second(5e6), 0);
        assert!((67..2_000).contains(&after_a_second(40e6)));
        // Round after round, until the oldest change is young.
        assert!(after_a_second(75e6) > 5_000);
    }

    #[test]
    fn transactions_wait_while_the_log_is_full_and_go_on_after_a_checkpoint() {
        let mut cleaner = Cleaner::new(facts(), 0, false);
        cleaner.changed(0.0, 1_000);
        assert_eq!([70e6, 85e6].map(|log_end| cleaner.is_full(log_end)), [false, true]);
        cleaner.changed(85e6, 1);
        while cleaner.next(85e6, &places(), &mut draws()).is_some() {}
        assert!(!cleaner.is_full(85e6));
    }

    #[test]
    fn a_batch_goes_through_the_doublewrite_buffer_and_ends_with_a_checkpoint() {
        let mut cleaner = Cleaner::new(facts(), 0, false);
        cleaner.changed(0.0, 100);
        cleaner.changed(80e6, 0);
        let mut next = || cleaner.next(80e6, &places(), &mut draws());
        let sizes = |phase: &Option<Phase>| match phase {
            Some(Phase::Write { access, .. }) => vec![access.size_bytes],
            Some(Phase::Batch { accesses, .. }) => accesses.iter().map(|access| access.size_bytes).collect(),
            _ => vec![],
        };
        let flush = Some(Phase::Flush { mount: 0 });
        assert_eq!(sizes(&next()), [100 << 14]);
        assert_eq!(next(), flush);
        assert_eq!(sizes(&next()), [16 << 10; 100]);
        assert_eq!(next(), flush);
        for _ in 0..2 {
            assert_eq!(sizes(&next()), [CHECKPOINT_BYTES]);
            assert_eq!(next(), flush);
        }
        assert_eq!(next(), None);
    }

    #[test]
    fn reads_wait_when_all_pages_at_the_end_of_the_lru_list_are_dirty() {
        let mut cleaner = Cleaner::new(Innodb { hot_share: 0.0, ..facts() }, 0, false);
        cleaner.changed(0.0, 8_000);
        let taken = std::iter::repeat_with(|| cleaner.takes_page()).take_while(|taken| *taken).count();
        assert_eq!(taken, 1_536);
        assert_eq!(written(&mut cleaner, 0.0), 1_536);
        assert!(cleaner.takes_page());
    }

    #[test]
    fn more_pages_than_are_read_can_be_written_for_room() {
        let mut cleaner = Cleaner::new(Innodb { hot_share: 0.0, written_for_read: 1.5, ..facts() }, 0, false);
        cleaner.changed(0.0, 4_000);
        assert!((0..800).all(|_| cleaner.takes_page()));
        assert_eq!(cleaner.owed, 1_200.0);
        assert_eq!(written(&mut cleaner, 0.0), 1_200);
    }

    #[test]
    fn pages_beside_those_for_room_are_written_and_clean_then() {
        let recorded = (0..4_000).map(|page| Access { offset_bytes: page << 14, size_bytes: 16 << 10 });
        let Places { reads, .. } = places();
        let region = Region { offset_bytes: 0, size_bytes: 1 << 30 };
        let writes = Stream::Recorded { accesses: recorded.collect(), region };
        let places = Places { reads, writes };
        let recording = Some(Recording { has_neighbors: false, written_again: 0.0 });
        let facts = Innodb { hot_share: 0.0, written_for_read: 0.01, recording, ..facts() };
        let check = |rotates: bool, expect: (usize, u64)| {
            let mut cleaner = Cleaner::new(facts.clone(), 0, rotates);
            cleaner.changed(0.0, 2_000);
            while cleaner.owed < 8.0 {
                cleaner.takes_page();
            }
            let mut batches = 0;
            while let Some(phase) = cleaner.next(0.0, &places, &mut draws()) {
                batches += usize::from(matches!(phase, Phase::Batch { accesses, .. } if accesses.len() > 1));
            }
            assert_eq!((batches, cleaner.cold.count), expect, "rotates: {rotates}");
        };
        check(false, (1, 2_000 - 8));
        // Eight extents in batches of the doublewrite buffer.
        check(true, (4, 2_000 - 8 * 64));
    }

    #[test]
    fn hot_pages_keep_their_age_while_cold_ones_make_room() {
        let mut cleaner = Cleaner::new(facts(), 0, false);
        cleaner.changed(1e6, 4_000);
        while cleaner.owed < 1_000.0 {
            cleaner.takes_page();
        }
        assert_eq!(written(&mut cleaner, 2e6), 1_000);
        assert_eq!([cleaner.hot.count, cleaner.cold.count], [2_000, 1_000]);
        assert_eq!(cleaner.oldest(), Some(1e6));
    }

    #[test]
    fn rounds_for_room_leave_no_time_for_those_for_age() {
        let written_in_ten_seconds = |rounds_of_a_second: u64| {
            let mut cleaner =
                Cleaner::new(Innodb { first_age_bytes: 40e6, first_hot_pages: 4_000, ..facts() }, 0, false);
            cleaner.cold.push(0.0, 100_000);
            for tick in 0..10 * TICKS_PER_SECOND {
                cleaner.tick();
                if tick % (TICKS_PER_SECOND / rounds_of_a_second.max(1)) == 0 && rounds_of_a_second > 0 {
                    while cleaner.owed < 384.0 {
                        cleaner.takes_page();
                    }
                }
                written(&mut cleaner, 0.0);
            }
            4_000 - cleaner.hot.count
        };
        assert!(written_in_ten_seconds(0) > 600);
        assert_eq!(written_in_ten_seconds(2), 0);
    }

    #[test]
    fn dirty_pages_of_the_begin_are_spread_over_the_age() {
        let cleaner =
            Cleaner::new(Innodb { first_hot_pages: 1_000, first_age_bytes: 1e6, ..facts() }, 0, false);
        assert_eq!(cleaner.oldest(), Some(-1e6));
        assert_eq!(cleaner.hot.before(-0.5e6), 500);
    }
}
