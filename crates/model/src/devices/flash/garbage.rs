//! The time and the pace of garbage collection.
//!
//! Free superblocks have three levels. At or below the low watermark, collection keeps pace with the host:
//! each host program is paid for with the moves that gain the same space. A steady load therefore has a
//! steady rate instead of a stall per superblock. Between the watermarks, collection runs only after the
//! drive has been idle. At the reserve, the host waits.

use super::dies::Job;
use super::ftl::Step;
use super::geometry::Superblock;
use super::{Event, Flash};
use crate::time::{Instant, MILLISECOND};

/// A drive without commands for this time collects in the background.
const IDLE_NS: u64 = 100 * MILLISECOND;
/// Debt is counted in fractions of a unit.
const UNIT: i64 = 1 << 10;

#[derive(Debug, Default)]
pub(super) struct Collection {
    /// Moves still owed for the host's programs, in fractions of a unit.
    debt: i64,
    is_idle: bool,
    idle_timer_runs: bool,
    last_submit: Instant,
    /// Superblocks in erase, and the number of dies still erasing each.
    erasing: Vec<(Superblock, u32)>,
}

impl Flash {
    /// Whether the host must wait until collection has caught up.
    pub(super) fn is_in_debt(&self) -> bool {
        let geometry = &self.ftl.geometry;
        self.state.collection.debt >= i64::from(geometry.die_count * geometry.units_per_program) * UNIT
    }

    /// Charges the host for programmed units.
    pub(super) fn charge(&mut self, unit_count: u32) {
        if self.ftl.is_short()
            && let Some((moved, gained)) = self.ftl.price()
        {
            self.state.collection.debt += i64::from(unit_count) * i64::from(moved) * UNIT / i64::from(gained);
        }
    }

    fn wants_moves(&self) -> bool {
        let program = i64::from(self.ftl.geometry.units_per_program) * UNIT;
        self.state.collection.debt >= program
            || (!self.ftl.has_room() && self.state.buffer.waiting_count() > 0)
            || (self.state.collection.is_idle && self.ftl.has_idle_work())
    }

    /// Performs one step of collection, if it is needed and the dies have room for it. Returns whether it
    /// did.
    pub(super) fn collect(&mut self, at: Instant) -> bool {
        while let Some(superblock) = self.ftl.to_erase.pop_front() {
            self.start_erase(at, superblock);
        }
        if self.state.moves_running >= self.dies.len() || !self.wants_moves() {
            return false;
        }
        match self.ftl.collect() {
            Step::Program { die, unit_count, page_count } => {
                self.state.collection.debt -= i64::from(unit_count) * UNIT;
                self.state.moves_running += 1;
                self.queue_job(at, die, Job::Move { unit_count, page_count });
                true
            }
            Step::Emptied => true,
            Step::Stuck => {
                self.state.collection.debt = 0;
                self.state.collection.is_idle = false;
                false
            }
        }
    }

    fn start_erase(&mut self, at: Instant, superblock: Superblock) {
        let jobs = self.ftl.geometry.erase_jobs;
        self.state.collection.erasing.push((superblock, jobs));
        for program in 0..jobs {
            let die = self.ftl.geometry.die_of_program(superblock, program);
            self.queue_job(at, die, Job::Erase(superblock));
        }
    }

    pub(super) fn finish_erase_job(&mut self, superblock: Superblock) {
        let erasing = &mut self.state.collection.erasing;
        let index = erasing.iter().position(|&(other, _)| other == superblock).expect("an erase was begun");
        erasing[index].1 -= 1;
        if erasing[index].1 == 0 {
            erasing.swap_remove(index);
            self.ftl.finish_erase(superblock);
            if self.state.collection.is_idle {
                self.ftl.return_to_slc();
            }
        }
    }

    pub(super) fn note_submit(&mut self, now: Instant) {
        self.state.collection.last_submit = now;
        self.state.collection.is_idle = false;
    }

    /// Starts the idle timer of collection after the last command.
    pub(super) fn note_quiet(&mut self, at: Instant) {
        if !self.state.collection.idle_timer_runs && self.ftl.wants_idleness() {
            self.state.collection.idle_timer_runs = true;
            self.schedule(at + IDLE_NS, Event::IdleDue);
        }
    }

    pub(super) fn idle_due(&mut self, at: Instant) {
        self.state.collection.idle_timer_runs = false;
        if self.requests.working_count() > 0 {
            return;
        }
        let due_at = self.state.collection.last_submit + IDLE_NS;
        if due_at > at {
            self.state.collection.idle_timer_runs = true;
            self.schedule(due_at, Event::IdleDue);
        } else {
            self.state.collection.is_idle = true;
            self.ftl.return_to_slc();
            self.pump(at);
        }
    }

    /// Repeats interrupted erases before the drive is ready.
    pub(super) fn forget_collection(&mut self) {
        let erasing = std::mem::take(&mut self.state.collection).erasing;
        self.ftl.finish_erases_at_power_on(erasing.into_iter().map(|(superblock, _)| superblock));
    }
}
