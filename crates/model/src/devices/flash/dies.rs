//! The NAND side: the work of each die, and its scheduling.

use std::collections::VecDeque;

use super::buffer::Batch;
use super::geometry::{Superblock, Unit};
use super::map::Location;
use super::{Event, Flash};
use crate::devices::transfer_ns;
use crate::request::SECTOR_BYTES;
use crate::requests::Slot;
use crate::time::Instant;

/// The part of one NAND page that a read needs.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageRead {
    slot: Slot,
    /// At most a page.
    bytes: u32,
    is_slc: bool,
}

/// Work of a die with lower priority than reads.
#[derive(Debug, Clone, Copy)]
pub(super) enum Job {
    Program(Batch),
    /// Reads `page_count` pages of a victim, then programs their valid units.
    Move {
        unit_count: u32,
        page_count: u32,
    },
    Erase(Superblock),
}

#[derive(Debug, Default)]
enum Work {
    #[default]
    Idle,
    Reading(PageRead),
    Busy(Job),
}

#[derive(Debug, Default)]
pub(super) struct Die {
    reads: VecDeque<PageRead>,
    pub(super) jobs: VecDeque<Job>,
    work: Work,
    /// End of its last operation.
    idle_from: Instant,
    /// Time at which the running job leaves the channel; then its end.
    array_from: Instant,
    ends_at: Instant,
    /// A job suspended for reads, and its remaining time.
    suspended: Option<(Job, u64)>,
    suspensions: u64,
    /// The last operation was a read. If programs are urgent, the next turn is theirs.
    has_just_read: bool,
}

/// The source of the pages of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Buffer,
    Page { page: u32, die: usize, is_slc: bool },
}

impl Flash {
    pub(super) fn start_read(&mut self, at: Instant, slot: Slot) {
        let request = self.requests.get(slot).request;
        // Held until every page is requested, because a page may be answered at once.
        self.state.pending[slot] = 1;
        let mut run: Option<(Source, u64)> = None;
        for unit in self.units(slot) {
            let unit_start = u64::from(unit) * self.ftl.geometry.unit_bytes;
            let start = unit_start.max(request.offset_bytes);
            let end = (unit_start + self.ftl.geometry.unit_bytes).min(request.end_bytes());
            let source = self.source(unit, start / SECTOR_BYTES, end / SECTOR_BYTES);
            match &mut run {
                Some((last, bytes)) if *last == source => *bytes += end - start,
                _ => {
                    if let Some((source, bytes)) = run {
                        self.read_from(at, slot, source, bytes);
                    }
                    run = Some((source, end - start));
                }
            }
        }
        if let Some((source, bytes)) = run {
            self.read_from(at, slot, source, bytes);
        }
        self.state.pending[slot] -= 1;
        if self.state.pending[slot] == 0 {
            let sent_at = if request.size_bytes == 0 { at } else { self.state.link_free_at.max(at) };
            self.finish_read(sent_at, slot);
        }
    }

    fn source(&self, unit: Unit, start: u64, end: u64) -> Source {
        let geometry = &self.ftl.geometry;
        match self.ftl.locate(unit) {
            Location::Buffered(index)
                if self.state.buffer.covers(index, self.first_sector(unit), start, end) =>
            {
                Source::Buffer
            }
            Location::Nand(address) => {
                let is_slc = self.ftl.is_slc(address);
                Source::Page { page: geometry.page_of(address), die: geometry.die_of(address), is_slc }
            }
            // The die is chosen as if the unit had been written in order.
            Location::Unmapped | Location::Buffered(_) => {
                let die = unit / geometry.units_per_program % geometry.die_count;
                Source::Page { page: unit / geometry.units_per_page, die: die as usize, is_slc: false }
            }
        }
    }

    fn read_from(&mut self, at: Instant, slot: Slot, source: Source, bytes: u64) {
        match source {
            // The caller completes the request.
            Source::Buffer => {
                self.cross_link(at, bytes);
            }
            Source::Page { die, is_slc, .. } => {
                self.state.pending[slot] += 1;
                self.dies[die].reads.push_back(PageRead { slot, bytes: bytes as u32, is_slc });
                match self.dies[die].work {
                    Work::Idle => self.give_work(at, die),
                    Work::Busy(job) => self.suspend(at, die, job),
                    Work::Reading(_) => {}
                }
            }
        }
    }

    /// Suspends a program or erase for a read, if the drive supports it and the limit of suspensions allows
    /// it.
    fn suspend(&mut self, at: Instant, die: usize, job: Job) {
        let resume_and_suspend_ns = self.parameters.suspend_ns;
        let chip = &mut self.dies[die];
        let is_in_array = chip.array_from <= at && at < chip.ends_at;
        if !is_in_array || chip.suspensions >= self.parameters.suspend_limit {
            return;
        }
        chip.suspensions += 1;
        chip.suspended = Some((job, chip.ends_at - at));
        chip.work = Work::Idle;
        chip.ends_at = Instant::FAR_FUTURE;
        chip.has_just_read = false;
        self.give_read(at + resume_and_suspend_ns, die);
    }

    fn cross_channel(&mut self, at: Instant, die: usize, bytes: u64) -> Instant {
        let channel = die % self.channel_free_at.len();
        let free_at = &mut self.channel_free_at[channel];
        *free_at = (*free_at).max(at) + transfer_ns(bytes, self.parameters.channel_bytes_per_s);
        *free_at
    }

    pub(super) fn read_out(&mut self, at: Instant, die: usize) {
        if let Work::Reading(read) = self.dies[die].work {
            let out_at = self.cross_channel(at, die, u64::from(read.bytes));
            self.schedule(out_at, Event::ReadOut(die));
        }
    }

    pub(super) fn finish_read_out(&mut self, at: Instant, die: usize) {
        if let Work::Reading(read) = self.dies[die].work {
            self.dies[die].work = Work::Idle;
            self.dies[die].idle_from = at;
            self.dies[die].has_just_read = true;
            let sent_at = self.cross_link(at, u64::from(read.bytes));
            self.state.pending[read.slot] -= 1;
            if self.state.pending[read.slot] == 0 {
                self.finish_read(sent_at, read.slot);
            }
            self.give_work(at, die);
        }
    }

    /// Finishes a read whose last byte crosses the link until `sent_at`. That is an event only if something may follow
    /// it: a FLUSH that waits for earlier commands, or idleness.
    fn finish_read(&mut self, sent_at: Instant, slot: Slot) {
        if self.requests.flush.is_some() || self.requests.working_count() == 1 {
            self.schedule(sent_at, Event::Done(slot));
        } else {
            self.state.reads_sent_at = self.state.reads_sent_at.max(sent_at);
            self.requests.finish(sent_at, slot);
        }
    }

    pub(super) fn queue_job(&mut self, at: Instant, die: usize, job: Job) {
        self.dies[die].jobs.push_back(job);
        if matches!(self.dies[die].work, Work::Idle) {
            self.give_work(at, die);
        }
    }

    fn give_read(&mut self, at: Instant, die: usize) -> bool {
        let Some(read) = self.dies[die].reads.pop_front() else { return false };
        self.dies[die].work = Work::Reading(read);
        let read_ns = if read.is_slc { self.slc_ns().1 } else { self.parameters.page_read_ns };
        self.schedule(at + read_ns, Event::ArrayRead(die));
        true
    }

    /// Starts work on an idle die: reads first, unless jobs are urgent and have the next turn.
    fn give_work(&mut self, at: Instant, die: usize) {
        // A late request may ask for a time at which the die was still busy.
        let at = at.max(self.dies[die].idle_from);
        let jobs_are_urgent = !self.state.waiting_for_room.is_empty() || self.state.durable_waiters > 0;
        let chip = &self.dies[die];
        let has_job = chip.suspended.is_some() || !chip.jobs.is_empty();
        let yields = jobs_are_urgent && chip.has_just_read && has_job;
        if !yields && self.give_read(at, die) {
            return;
        }
        let chip = &mut self.dies[die];
        if let Some((job, left_ns)) = chip.suspended.take() {
            chip.work = Work::Busy(job);
            (chip.array_from, chip.ends_at) = (at, at + left_ns);
        } else if let Some(job) = chip.jobs.pop_front() {
            self.start_job(at, die, job);
        } else {
            return;
        }
        self.dies[die].has_just_read = false;
        self.schedule(self.dies[die].ends_at, Event::JobDone(die));
    }

    /// Times of a program and of a read in SLC mode.
    fn slc_ns(&self) -> (u64, u64) {
        let slc = self.parameters.slc.as_ref().expect("a drive with an SLC cache");
        (slc.page_program_ns, slc.page_read_ns)
    }

    fn start_job(&mut self, at: Instant, die: usize, job: Job) {
        let unit_bytes = self.ftl.geometry.unit_bytes;
        let (read_ns, program_ns) = (self.parameters.page_read_ns, self.parameters.page_program_ns);
        let (array_from, array_ns) = match job {
            Job::Program(batch) => {
                let program_ns = if batch.is_slc { self.slc_ns().0 } else { program_ns };
                let in_register_at = self.cross_channel(at, die, u64::from(batch.unit_count) * unit_bytes);
                (in_register_at, program_ns + if batch.reads_first { read_ns } else { 0 })
            }
            // The data leaves the die for error correction and returns.
            Job::Move { unit_count, page_count } => {
                let bytes = 2 * u64::from(unit_count) * unit_bytes;
                (self.cross_channel(at, die, bytes), u64::from(page_count) * read_ns + program_ns)
            }
            Job::Erase(_) => (at, self.ftl.geometry.erase_ns),
        };
        let chip = &mut self.dies[die];
        chip.work = Work::Busy(job);
        (chip.array_from, chip.ends_at) = (array_from, array_from + array_ns);
        chip.suspensions = 0;
    }

    pub(super) fn end_job(&mut self, at: Instant, die: usize) {
        // A suspended job ends later than this event.
        if self.dies[die].ends_at != at {
            return;
        }
        if let Work::Busy(job) = self.dies[die].work {
            self.dies[die].work = Work::Idle;
            self.dies[die].idle_from = at;
            self.dies[die].ends_at = Instant::FAR_FUTURE;
            match job {
                Job::Program(batch) => self.finish_batch(at, batch),
                Job::Move { .. } => self.state.moves_running -= 1,
                Job::Erase(superblock) => self.finish_erase_job(superblock),
            }
            self.pump(at);
            if matches!(self.dies[die].work, Work::Idle) {
                self.give_work(at, die);
            }
        }
    }

    /// Stops every die.
    pub(super) fn forget_die_work(&mut self) {
        for die in &mut self.dies {
            *die = Die::default();
        }
        self.state.moves_running = 0;
    }
}
