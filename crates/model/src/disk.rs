//! A hard disk: one arm over rotating platters, a command queue, a volatile write-back cache.
//!
//! Service time is controller overhead + seek + rotational wait + transfer. Rotation is a phase of absolute time, so
//! missed rotations of commit loops and the gain of sequential streams come for free. The drive picks among its oldest
//! `queue_depth` commands the one whose first sector it can reach soonest (SPTF, Seltzer, Chen and Ousterhout, "Disk
//! scheduling revisited", USENIX Winter 1990), unless one has waited longer than the age limit.
//!
//! With the cache on, a write completes when its data has crossed the interface. The arm writes back while it is idle, or,
//! above a watermark, in competition with the host's commands. FLUSH is a non-queued command (ATA): what is in flight
//! finishes, the cache drains by SPTF, later commands wait.
//!
//! # Divergence
//! * No read-ahead and no track cache yet: sequential reads reach the media rate only when the next one is
//!   already queued; one at a time they lose a rotation each.
//! * The cache holds any number of scattered writes and sorts all of them, so it writes back faster than a drive whose
//!   firmware keeps a small number of segments: `hdd-7200` does about 420 random 4 KiB writes a second where a
//!   measured ST2000DM006 does 124, and a FLUSH after 100 of them takes a third of that drive's time.
//! * A read of what is being written back at that moment goes to the platter.
//! * Below the watermark the oldest dirty data can wait as long as there is nearer work; only FLUSH bounds it.
//! * Discard and write-zeroes are notes in the drive's tables: they move no arm and are durable at once.

mod cache;
mod geometry;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

use crate::commands::{Commands, Slot};
use crate::device::{Counters, Device, PowerCut};
use crate::profile::{DiskParameters, WriteCache, transfer_ns};
use crate::request::{Completion, Operation, Request, SECTOR_BYTES};
use crate::rng::Rng;
use crate::time::Instant;
use crate::volatile::{Taken, VolatileWrites};
use geometry::{Geometry, Head, Target};

/// A command that needs the arm.
#[derive(Debug)]
struct Queued {
    slot: Slot,
    /// When it came among the commands that the drive sees; before, it waits in the host.
    seen_at: Instant,
    target: Target,
    is_write: bool,
}

/// What the arm is doing.
#[derive(Debug)]
enum Work {
    Command(Slot),
    Destage(Vec<Taken>),
}

#[derive(Debug)]
struct Motion {
    ends_at: Instant,
    work: Work,
    end_sector: u64,
}

/// What the arm could do next.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Queued(usize),
    Destage { start: u64, end: u64 },
}

#[derive(Debug)]
pub struct Disk {
    parameters: DiskParameters,
    size_bytes: u64,
    geometry: Geometry,
    rng: Rng,
    commands: Commands,
    /// In the controller, by the time at which it has dealt with them.
    controller: VecDeque<(Instant, Slot)>,
    controller_free_at: Instant,
    /// Data crossing the interface to or from the cache.
    interface: VecDeque<(Instant, Slot)>,
    interface_free_at: Instant,
    /// Writes that wait for room in the cache.
    waiting_for_room: VecDeque<Slot>,
    reserved_sectors: u64,
    /// Oldest first; the drive sees the first `queue_depth`.
    queue: VecDeque<Queued>,
    arm: Option<Motion>,
    head: Head,
    head_sector: u64,
    /// When the arm last finished a command of the host.
    host_idle_since: Instant,
    flush_ready: bool,
    cache: VolatileWrites,
    runs: Vec<(u64, u64)>,
    seeks: u64,
}

impl Disk {
    /// The parameters are valid and the size is within the capacity: see [`crate::StackSpec::build`].
    pub(crate) fn new(parameters: DiskParameters, size_bytes: u64, seed: u64) -> Disk {
        let geometry = Geometry::new(&parameters, size_bytes);
        Disk {
            size_bytes,
            head: geometry.head_at_rest(),
            geometry,
            rng: Rng::new(seed),
            commands: Commands::default(),
            controller: VecDeque::new(),
            controller_free_at: Instant::ZERO,
            interface: VecDeque::new(),
            interface_free_at: Instant::ZERO,
            waiting_for_room: VecDeque::new(),
            reserved_sectors: 0,
            queue: VecDeque::new(),
            arm: None,
            head_sector: 0,
            host_idle_since: Instant::ZERO,
            flush_ready: false,
            cache: VolatileWrites::default(),
            runs: Vec::new(),
            seeks: 0,
            parameters,
        }
    }

    /// Time of the next internal event, in the order in which ties are handled.
    fn next_event_at(&self) -> Option<Instant> {
        let arm_at = match &self.arm {
            Some(motion) => Some(motion.ends_at),
            None => self.idle_destage_at(),
        };
        let controller_at = self.controller.front().map(|&(at, _)| at);
        let interface_at = self.interface.front().map(|&(at, _)| at);
        [arm_at, interface_at, controller_at].into_iter().flatten().min()
    }

    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.next_event_at().filter(|&at| at <= now) {
            if self.arm.as_ref().is_some_and(|motion| motion.ends_at == at) {
                self.finish_motion(at);
            } else if self.interface.front().is_some_and(|&(due, _)| due == at) {
                self.finish_interface_transfer(at);
            } else if self.controller.front().is_some_and(|&(due, _)| due == at) {
                self.leave_controller(at);
            }
            self.dispatch(at);
        }
    }

    /// The controller takes commands one after another.
    fn enter_controller(&mut self, now: Instant, slot: Slot) {
        let is_flush = self.commands.get(slot).request.operation == Operation::Flush;
        if self.commands.hold(slot, is_flush) {
            return;
        }
        self.controller_free_at = self.controller_free_at.max(now) + self.parameters.command_overhead_ns;
        self.controller.push_back((self.controller_free_at, slot));
    }

    fn leave_controller(&mut self, at: Instant) {
        let Some((_, slot)) = self.controller.pop_front() else { return };
        let command = *self.commands.get(slot);
        let (start, end) = command.sectors();
        match command.request.operation {
            Operation::Flush => self.flush_ready = true,
            Operation::Discard | Operation::WriteZeroes => {
                self.cache.forget(start, end, command.sequence);
                self.commands.finish(at, slot);
            }
            Operation::Read if self.cache.covers(start, end) => self.cross_interface(at, slot),
            Operation::Write if self.is_cached(&command.request) => self.waiting_for_room.push_back(slot),
            Operation::Read | Operation::Write => {
                let is_write = command.request.operation == Operation::Write;
                self.queue.push_back(Queued {
                    slot,
                    seen_at: at,
                    target: self.geometry.locate(start),
                    is_write,
                });
            }
        }
    }

    fn finish_motion(&mut self, at: Instant) {
        let Some(motion) = self.arm.take() else { return };
        self.head_sector = motion.end_sector;
        match motion.work {
            Work::Destage(taken) => self.cache.settle(&taken),
            Work::Command(slot) => {
                let command = *self.commands.get(slot);
                if command.request.operation == Operation::Write {
                    let (start, end) = command.sectors();
                    self.cache.forget(start, end, command.sequence);
                    self.commands.mark_placed(slot);
                }
                self.host_idle_since = at;
                self.commands.finish(at, slot);
            }
        }
    }

    /// What became possible at `at` starts now.
    fn dispatch(&mut self, at: Instant) {
        self.admit_to_cache(at);
        if self.flush_ready && self.commands.working_count() == 0 {
            let must_drain = self.parameters.write_cache == WriteCache::Volatile;
            if !must_drain || self.cache.volatile_sectors() == 0 {
                self.finish_flush(at);
            }
        }
        if self.arm.is_none()
            && let Some(choice) = self.choose(at)
        {
            self.start(at, choice);
        }
    }

    fn finish_flush(&mut self, at: Instant) {
        self.flush_ready = false;
        if let Some(slot) = self.commands.flush() {
            let held = self.commands.release();
            self.commands.finish(at, slot);
            for slot in held {
                self.enter_controller(at, slot);
            }
        }
    }

    fn choose(&mut self, at: Instant) -> Option<Choice> {
        let oldest_at = self.queue.front().map(|queued| queued.seen_at);
        let waiter_at = self.waiting_for_room.front().map(|&slot| self.commands.get(slot).arrived_at);
        let is_aged = |since: Instant| at - since > self.parameters.age_limit_ns;
        let destage_is_due = self.destage_is_due(at);
        if let Some(seen_at) = oldest_at.filter(|&seen_at| is_aged(seen_at))
            && waiter_at.is_none_or(|waiter_at| seen_at <= waiter_at)
        {
            return Some(Choice::Queued(0));
        }
        let only_destage = waiter_at.is_some_and(is_aged) && !self.cache.is_clean();
        let phase_ns = self.geometry.phase_ns(at);
        let mut lowest_ns = u32::MAX;
        let mut best = None;
        if !only_destage {
            let window = self.queue.iter().take(self.parameters.queue_depth as usize);
            for (index, queued) in window.enumerate() {
                let (target, is_write) = (&queued.target, queued.is_write);
                if let Some(positioning_ns) =
                    self.geometry.positioning_below(lowest_ns, phase_ns, self.head, target, is_write)
                {
                    lowest_ns = positioning_ns;
                    best = Some(Choice::Queued(index));
                }
            }
        }
        if destage_is_due {
            best = self.best_destage_below(lowest_ns, phase_ns).or(best);
        }
        best
    }

    fn start(&mut self, at: Instant, choice: Choice) {
        let (start, end, target, is_write, work) = match choice {
            Choice::Queued(index) => {
                let Some(queued) = self.queue.remove(index) else { return };
                if let Some(newly_seen) = self.queue.get_mut(self.parameters.queue_depth as usize - 1) {
                    newly_seen.seen_at = at;
                }
                let (start, end) = self.commands.get(queued.slot).sectors();
                (start, end, queued.target, queued.is_write, Work::Command(queued.slot))
            }
            Choice::Destage { start, end } => {
                (start, end, self.geometry.locate(start), true, Work::Destage(self.cache.take(start, end)))
            }
        };
        let positioning_ns =
            self.geometry.positioning_ns(self.geometry.phase_ns(at), self.head, &target, is_write);
        self.seeks += u64::from(self.geometry.is_seek(self.head, &target));
        let (ends_at, head) = self.geometry.transfer(at + u64::from(positioning_ns), start, end);
        self.head = head;
        self.arm = Some(Motion { ends_at, work, end_sector: end });
    }

    fn interface_ns(&self, slot: Slot) -> u64 {
        transfer_ns(self.commands.get(slot).request.size_bytes, self.parameters.interface_bytes_per_s)
    }
}

impl Device for Disk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit(&mut self, now: Instant, request: Request) {
        self.advance(now);
        let slot = self.commands.accept(now, request, self.size_bytes);
        self.enter_controller(now, slot);
        self.advance(now);
    }

    fn poll_at(&self) -> Option<Instant> {
        self.commands.next_finished_at().into_iter().chain(self.next_event_at()).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.commands.collect(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let outstanding = self.commands.outstanding();
        let mut taken = match self.arm.take() {
            Some(Motion { work: Work::Destage(taken), .. }) => taken,
            _ => Vec::new(),
        };
        if self.parameters.write_cache == WriteCache::Protected {
            // The capacitors write it back; only what the drive had not yet taken is open.
            taken.clear();
            self.cache.reset();
        }
        let writes = self.cache.power_cut(&taken, &outstanding, &mut self.rng);
        self.controller.clear();
        self.interface.clear();
        self.waiting_for_room.clear();
        self.queue.clear();
        self.reserved_sectors = 0;
        self.flush_ready = false;
        self.controller_free_at = now;
        self.interface_free_at = now;
        self.host_idle_since = now;
        self.cache.reset();
        self.commands.reset();
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        let volatile_bytes = match self.parameters.write_cache {
            WriteCache::Volatile => self.cache.volatile_sectors() * SECTOR_BYTES,
            WriteCache::Off | WriteCache::Protected => 0,
        };
        Counters { seeks: self.seeks, volatile_bytes, ..self.commands.counters }
    }
}
