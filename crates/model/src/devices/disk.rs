//! A hard disk: one arm over rotating platters, a command queue, a volatile write-back cache.
//!
//! Service time is controller overhead + seek + rotational wait + transfer. Rotation is a phase of absolute
//! time. Missed rotations of commit loops and the gain of sequential streams follow from it. Among its oldest
//! `queue_depth` commands, the drive picks the one with the shortest positioning time (SPTF; Seltzer, Chen
//! and Ousterhout, "Disk scheduling revisited", USENIX Winter 1990). A command beyond the age limit goes
//! first.
//!
//! With the cache on, a write completes when its data has crossed the interface. The arm destages while it is
//! idle. Above a watermark, destaging competes with the host's commands. FLUSH is a non-queued command (ATA):
//! commands in flight finish, the cache drains by SPTF, later commands wait.
//!
//! If the profile gives a rate of retries, a share of the reads that reach the platter needs retries. Each
//! retry takes one rotation, until the sector passes again (C. Kozierok, "Read Error Severities and Error
//! Management Logic", pcguide.com). The further steps of firmware are not published.
//!
//! Read-ahead and destaging of an idle drive are computed on demand. They cost the simulation nothing until
//! then.
//!
//! # Divergence
//! * A read of data that is being destaged goes to the platter.
//! * Below the watermark, nearer work can delay dirty data in view indefinitely. Only FLUSH bounds the delay.
//! * Discard and write-zeroes are entries in the drive's tables: they move no arm and are durable at once.
//! * A power cut on a 512e drive has the same granularity as on any other: it does not tear neighbours in the
//!   same physical sector.
//! * After a power cut the drive is ready at once, its heads at the outer edge and its caches empty. A real
//!   drive takes several seconds to spin up; the host must add that wait.

mod cache;
mod geometry;
mod parameters;
mod read_ahead;
mod retries;
#[cfg(test)]
pub(crate) mod tests;
mod window;

use std::collections::VecDeque;

use crate::device::{Counters, Device, PowerCut};
use crate::devices::{WriteCache, transfer_ns};
use crate::request::{Completion, Operation, Request, SECTOR_BYTES};
use crate::requests::{Requests, Slot};
use crate::rng::{Rng, split_mix};
use crate::time::Instant;
use crate::volatile::{Taken, VolatileWrites};
use geometry::{Geometry, Head};
pub use parameters::{DiskParameters, ReadRetries, Stroke};
use read_ahead::{Lookup, ReadAhead};
use window::Window;

/// Separates the seed of the retry generator from the drive's other generator.
const RETRY_STREAM: u64 = 0x7265_7472_6965_7321;

/// A command that needs the arm.
#[derive(Debug)]
struct Queued {
    slot: Slot,
    /// When the command entered the drive's queue; before, it waits in the host.
    seen_at: Instant,
    /// First sector that the arm must read or write; sectors before it come from the read cache.
    start: u64,
}

/// The current work of the arm.
#[derive(Debug, Clone, Copy)]
enum Work {
    Command(Slot),
    /// Writes back `Disk::taken`.
    Destage,
}

#[derive(Debug)]
struct Motion {
    ends_at: Instant,
    work: Work,
}

/// Candidates for the next work of the arm.
#[derive(Debug, Clone, Copy)]
enum Choice {
    Queued(usize),
    Destage { index: usize, start: u64, end: u64 },
}

#[derive(Debug)]
pub struct Disk {
    parameters: DiskParameters,
    size_bytes: u64,
    geometry: Geometry,
    rng: Rng,
    requests: Requests,
    /// The drive chooses among the first `queue_depth`.
    queue: Window<Queued>,
    head: Head,
    read_ahead: ReadAhead,
    /// One sector of each dirty run.
    dirty: Window<u64>,
    seeks: u64,
    /// A separate stream, so that retries do not change the outcome of power cuts.
    retry_rng: Rng,
    /// The time of the next event, or the far future.
    next_at: Instant,
    state: State,
}

/// What a power cut ends.
#[derive(Debug, Default)]
struct State {
    /// Commands in the controller, with the time at which the controller finishes them.
    controller: VecDeque<(Instant, Slot)>,
    controller_free_at: Instant,
    /// Data crossing the interface to or from the cache.
    interface: VecDeque<(Instant, Slot)>,
    interface_free_at: Instant,
    /// Writes that wait for room in the cache, and the room reserved for writes on the interface.
    waiting_for_room: VecDeque<Slot>,
    reserved_sectors: u64,
    reserved_runs: u64,
    arm: Option<Motion>,
    /// When the arm last finished a command of the host.
    host_idle_since: Instant,
    flush_ready: bool,
    cache: VolatileWrites,
    /// Pieces being written from the cache to the platter.
    taken: Vec<Taken>,
}

impl Disk {
    /// The parameters are valid and the size is within the capacity: see [`crate::StackSpec::build`].
    pub(crate) fn new(parameters: DiskParameters, size_bytes: u64, seed: u64) -> Disk {
        let mut geometry = Geometry::new(&parameters, size_bytes);
        geometry.turn(split_mix(seed));
        Disk {
            size_bytes,
            head: geometry.head_at_rest(),
            geometry,
            rng: Rng::new(seed),
            requests: Requests::default(),
            queue: Window::new(parameters.queue_depth),
            read_ahead: ReadAhead::new(&parameters, size_bytes),
            dirty: Window::new(parameters.destage_candidates),
            seeks: 0,
            retry_rng: Rng::new(split_mix(seed) ^ RETRY_STREAM),
            next_at: Instant::FAR_FUTURE,
            state: State::default(),
            parameters,
        }
    }

    /// Has a fast path, because a driver calls more often than events occur.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.next_at <= now {
            self.handle_events(now);
        }
    }

    #[inline(never)]
    fn handle_events(&mut self, now: Instant) {
        while self.next_at <= now {
            let at = self.next_at;
            // Ties are handled in this order.
            if self.state.arm.as_ref().is_some_and(|motion| motion.ends_at == at) {
                self.finish_motion(at);
            } else if self.state.interface.front().is_some_and(|&(due, _)| due == at) {
                self.finish_interface_transfer(at);
            } else if self.state.controller.front().is_some_and(|&(due, _)| due == at) {
                self.leave_controller(at);
            }
            self.dispatch(at);
            self.next_at = self.next_event_at();
        }
    }

    fn next_event_at(&self) -> Instant {
        let far = Instant::FAR_FUTURE;
        let arm_at = match &self.state.arm {
            Some(motion) => motion.ends_at,
            None => self.idle_destage_at().unwrap_or(far),
        };
        let controller_at = self.state.controller.front().map_or(far, |&(at, _)| at);
        let interface_at = self.state.interface.front().map_or(far, |&(at, _)| at);
        arm_at.min(controller_at).min(interface_at)
    }

    /// The controller processes commands one after another.
    fn enter_controller(&mut self, now: Instant, slot: Slot) {
        let is_flush = self.requests.get(slot).request.operation == Operation::Flush;
        if self.requests.hold(slot, is_flush) {
            return;
        }
        self.state.controller_free_at =
            self.state.controller_free_at.max(now) + self.parameters.command_overhead_ns;
        self.state.controller.push_back((self.state.controller_free_at, slot));
    }

    fn leave_controller(&mut self, at: Instant) {
        let Some((_, slot)) = self.state.controller.pop_front() else { return };
        let command = self.requests.get(slot);
        let (sequence, request) = (command.sequence, command.request);
        let (start, end) = command.sectors();
        match request.operation {
            Operation::Flush => self.state.flush_ready = true,
            Operation::Read if self.state.cache.covers(start, end) => self.cross_interface(at, slot),
            Operation::Read => match self.read_ahead.look_up(&self.geometry, at, start, end) {
                Lookup::Hit => self.cross_interface(at, slot),
                Lookup::Miss(start) => self.enqueue(at, slot, start, false),
            },
            Operation::Write | Operation::Discard | Operation::WriteZeroes => {
                if let Some(head) = self.read_ahead.forget(&self.geometry, at, start, end) {
                    self.head = head;
                }
                if request.operation != Operation::Write {
                    self.forget(start, end, sequence);
                    self.requests.finish(at, slot);
                } else if self.is_cached(&request) {
                    self.state.waiting_for_room.push_back(slot);
                } else {
                    self.enqueue(at, slot, start, true);
                }
            }
        }
    }

    fn enqueue(&mut self, at: Instant, slot: Slot, start: u64, is_write: bool) {
        let target = self.geometry.locate(start, is_write);
        self.queue.push(target, Queued { slot, seen_at: at, start });
    }

    fn finish_motion(&mut self, at: Instant) {
        let Some(motion) = self.state.arm.take() else { return };
        match motion.work {
            Work::Destage => {
                self.state.cache.settle(&self.state.taken);
                self.state.taken.clear();
            }
            Work::Command(slot) => {
                let command = *self.requests.get(slot);
                let (start, end) = command.sectors();
                if command.request.operation == Operation::Write {
                    self.forget(start, end, command.sequence);
                    self.requests.mark_placed(slot);
                } else {
                    self.read_ahead.remember(start, end);
                    if self.queue.is_empty() {
                        self.read_ahead.begin(at, end);
                    }
                }
                self.state.host_idle_since = at;
                self.requests.finish(at, slot);
            }
        }
    }

    /// Starts the work that is possible at `at`.
    fn dispatch(&mut self, at: Instant) {
        self.admit_to_cache(at);
        if self.state.flush_ready && self.requests.working_count() == 0 {
            let must_drain = self.parameters.write_cache == WriteCache::Volatile;
            if !must_drain || self.state.cache.volatile_sectors() == 0 {
                self.finish_flush(at);
            }
        }
        if self.state.arm.is_none() {
            let destage_is_due = self.destage_is_due(at);
            if destage_is_due || !self.queue.is_empty() {
                if let Some(head) = self.read_ahead.stop(&self.geometry, at) {
                    self.head = head;
                }
                self.start(at, destage_is_due);
            }
        }
    }

    fn finish_flush(&mut self, at: Instant) {
        self.state.flush_ready = false;
        if let Some(slot) = self.requests.flush {
            let held_count = self.requests.release();
            self.requests.finish(at, slot);
            for _ in 0..held_count {
                if let Some(slot) = self.requests.take_held() {
                    self.enter_controller(at, slot);
                }
            }
        }
    }

    /// The command or destage that the arm can reach soonest, unless a command is beyond the age limit.
    fn choose(&mut self, at: Instant, phase_ns: u32, destage_is_due: bool) -> Option<Choice> {
        let oldest_at = self.queue.oldest().map(|queued| queued.seen_at);
        let waiter_at = self.state.waiting_for_room.front().map(|&slot| self.requests.get(slot).arrived_at);
        let is_aged = |since: Instant| at - since > self.parameters.age_limit_ns;
        if let Some(seen_at) = oldest_at.filter(|&seen_at| is_aged(seen_at))
            && waiter_at.is_none_or(|waiter_at| seen_at <= waiter_at)
        {
            return Some(Choice::Queued(0));
        }
        let only_destage = waiter_at.is_some_and(is_aged) && !self.state.cache.is_clean();
        let queued = match only_destage {
            true => None,
            false => self.queue.nearest(&self.geometry, phase_ns, self.head),
        };
        let destage = if destage_is_due { self.nearest_destage(phase_ns) } else { None };
        match (queued, destage) {
            (Some((_, queued_ns)), Some((choice, destage_ns))) if destage_ns < queued_ns => Some(choice),
            (Some((index, _)), _) => Some(Choice::Queued(index)),
            (None, destage) => destage.map(|(choice, _)| choice),
        }
    }

    fn start(&mut self, at: Instant, destage_is_due: bool) {
        let phase_ns = self.geometry.phase_ns(at);
        let (start, end, is_write, work) = match self.choose(at, phase_ns, destage_is_due) {
            None => return,
            Some(Choice::Queued(index)) => {
                let (queued, newly_seen) = self.queue.remove(index);
                if let Some(newly_seen) = newly_seen {
                    newly_seen.seen_at = at;
                }
                let command = self.requests.get(queued.slot);
                let is_write = command.request.operation == Operation::Write;
                (queued.start, command.sectors().1, is_write, Work::Command(queued.slot))
            }
            Some(Choice::Destage { index, start, end }) => {
                self.take_run(index, start, end);
                (start, end, true, Work::Destage)
            }
        };
        let place = self.geometry.place(start);
        let target = self.geometry.target(&place, is_write);
        self.seeks += u64::from(self.geometry.is_seek(self.head, &target));
        let positioning_ns = self.geometry.positioning_ns(phase_ns, self.head, &target);
        let begin = at + u64::from(positioning_ns);
        let (mut ends_at, head) = self.geometry.transfer(begin, place, start..end);
        if is_write && !self.is_aligned(start, end) {
            // Read-modify-write: the write starts when the first sector passes again.
            ends_at = ends_at + (ends_at - begin).next_multiple_of(self.geometry.rotation_ns());
        }
        if !is_write && let Some(retries) = self.parameters.read_retries {
            ends_at = ends_at + retries.draw_rotations(&mut self.retry_rng) * self.geometry.rotation_ns();
        }
        self.head = head;
        self.state.arm = Some(Motion { ends_at, work });
    }

    fn is_aligned(&self, start: u64, end: u64) -> bool {
        let sectors = self.parameters.physical_sector_bytes / SECTOR_BYTES;
        start.is_multiple_of(sectors) && end.is_multiple_of(sectors)
    }

    fn interface_ns(&self, slot: Slot) -> u64 {
        transfer_ns(self.requests.get(slot).request.size_bytes, self.parameters.interface_bytes_per_s)
    }
}

impl Device for Disk {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_late(&mut self, _sent: Instant, now: Instant, request: Request) -> Instant {
        self.advance(now);
        let slot = self.requests.accept(now, request, self.size_bytes);
        self.enter_controller(now, slot);
        self.next_at = self.next_event_at();
        self.advance(now);
        now
    }

    fn poll_at(&self) -> Option<Instant> {
        let at = self.requests.next_finished_at().map_or(self.next_at, |at| at.min(self.next_at));
        (at != Instant::FAR_FUTURE).then_some(at)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.requests.collect(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let outstanding = self.requests.outstanding();
        if self.parameters.write_cache == WriteCache::Protected {
            // The capacitors save this data. Only writes that the drive had not yet taken have an open fate.
            self.state.taken.clear();
            self.state.cache.reset();
        }
        let writes = self.state.cache.power_cut(&self.state.taken, &outstanding, &mut self.rng);
        self.state = State {
            controller_free_at: now,
            interface_free_at: now,
            host_idle_since: now,
            ..State::default()
        };
        self.queue.clear();
        self.dirty.clear();
        self.head = self.geometry.head_at_rest();
        self.read_ahead.reset();
        self.requests.reset();
        self.next_at = Instant::FAR_FUTURE;
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        let volatile_bytes = match self.parameters.write_cache {
            WriteCache::Volatile => self.state.cache.volatile_sectors() * SECTOR_BYTES,
            WriteCache::Off | WriteCache::Protected => 0,
        };
        Counters { seeks: self.seeks, volatile_bytes, ..self.requests.counters }
    }
}
