//! A controller with a battery-backed write cache (BBWC) in front of a device.
//!
//! A write takes firmware latency and the link, and is then in the controller's memory. It completes there if
//! memory has room. Room is freed as an elevator writes dirty data to the device below: upward by address
//! (C-LOOK), adjacent data together, with a bounded queue depth. Random writes are therefore faster than on
//! the device below, and a commit costs no rotation.
//!
//! Destaging starts after the host has been idle for a while. It competes with the host's reads in three
//! cases: dirty data is above a watermark, a write waits for room, or the battery is not good. In the last
//! case it continues until nothing is dirty.
//!
//! A read is served from memory if all of it is dirty, or all of it is in the optional read cache. Otherwise
//! it is served from below. With read-ahead, a read that continues an earlier read also fetches the rest of
//! its stripe, from all members of an array in parallel (`read_ahead.rs`).
//!
//! FLUSH and FUA are free while the memory counts as safe. All writes to the device below use FUA; such
//! controllers disable the drives' own caches. In write-through, a write completes when the device below has
//! it, and FLUSH waits for data that is still dirty from before.
//!
//! # Power cut
//! With a good battery, no data in memory is lost: it is on the device below before the next power-on ends.
//! Without the battery, dirty data is lost although it was acknowledged. The device below decides the fate of
//! data that was being destaged. A FLUSH that completed under a good battery gives no guarantee if the
//! battery fails before the memory is drained. Under [`CachePolicy::WriteBackAlways`], a FLUSH without a
//! battery gives no guarantee at all.
//!
//! # Divergence
//! * Read-ahead is adaptive and ends at the end of the stripe. A mode that reads whole stripes for random
//!   reads is missing.
//! * A partly dirty read goes below as a whole.
//! * One watermark, no hysteresis. Firmware also destages data by age.
//! * A learn cycle is a battery outage. Real controllers drain the memory before a learn cycle.
//! * If a device below acknowledges FUA and then loses the write, the loss is not reported.
//! * Data of a failed destage is dropped and counted. Real controllers pin it.

mod destage;
mod parameters;
mod power_cut;
mod read_ahead;
mod read_cache;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use crate::change::{Change, Changed};
use crate::device::{Counters, Device, WriteFate};
use crate::devices::transfer_ns;
use crate::layered::{Base, Layered};
use crate::layers::LayerParameters;
use crate::parameter::Invalid;
use crate::request::{Completion, Operation, Outcome, Request, SECTOR_BYTES};
use crate::requests::Slot;
use crate::rng::Rng;
use crate::time::Instant;
use crate::volatile::VolatileWrites;
use destage::Destages;
pub use parameters::{CacheParameters, CachePolicy};
use read_ahead::ReadAhead;
use read_cache::ReadCache;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The firmware has decoded the command.
    Decoded(Slot),
    /// A write's data is in the controller's memory and stays there.
    Stored(Slot),
    /// A write's data has crossed the link on its way to the device below.
    Passed(Slot),
    /// The last byte of a read is with the host.
    Delivered(Slot),
}

/// The source of the next event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Below,
    Battery,
    Event,
    Idle,
}

#[derive(Debug)]
pub struct Cache {
    parameters: CacheParameters,
    base: Base<Purpose>,
    rng: Rng,
    is_battery_good: bool,
    /// Future changes of the battery's state: time, and whether the battery is good from then on.
    battery_changes: VecDeque<(Instant, bool)>,
    destages: Destages,
    read_cache: ReadCache,
    state: State,
}

/// What a power cut ends.
#[derive(Debug, Default)]
struct State {
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    next_event_number: u64,
    firmware_free_at: Instant,
    link_free_at: Instant,
    dirty: VolatileWrites,
    waiting_for_room: VecDeque<Slot>,
    reserved_sectors: u64,
    /// FLUSHes that wait until nothing is dirty.
    waiting_for_drain: Vec<Slot>,
    read_ahead: ReadAhead,
    host_idle_since: Instant,
}

/// The purpose of a request to the device below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    Host(Slot),
    /// Index among the destages; for [`Purpose::ReadAhead`], index among the fetches.
    Destage(usize),
    ReadAhead(usize),
}

impl Cache {
    /// A controller in front of a device; the seed determines the outcome of power cuts.
    pub fn new(parameters: CacheParameters, below: Box<dyn Device>, seed: u64) -> Result<Cache, Invalid> {
        parameters.validate()?;
        let battery_changes = [(parameters.battery_out_at_ns, false), (parameters.battery_back_at_ns, true)]
            .into_iter()
            .filter_map(|(at_ns, is_good)| at_ns.map(|at_ns| (Instant(at_ns), is_good)))
            .collect();
        Ok(Cache {
            read_cache: ReadCache::new(parameters.read_cache_bytes),
            destages: Destages::default(),
            state: State::default(),
            parameters,
            base: Base::over(below),
            rng: Rng::new(seed),
            is_battery_good: true,
            battery_changes,
        })
    }

    /// Sets the battery's state at `now`; later changes from the parameters still take place.
    pub fn set_battery(&mut self, now: Instant, is_good: bool) {
        self.advance(now);
        self.turn_battery(now, is_good);
        self.advance(now);
    }

    fn turn_battery(&mut self, now: Instant, is_good: bool) {
        self.is_battery_good = is_good;
        self.dispatch(now);
    }

    /// The device below, for its counters.
    pub fn below(&self) -> &dyn Device {
        self.base.below[0].device()
    }

    /// Acknowledged bytes whose destage failed.
    pub fn failed_destage_bytes(&self) -> u64 {
        self.destages.failed_bytes
    }

    /// Whether writes complete in memory.
    fn is_write_back(&self) -> bool {
        match self.parameters.policy {
            CachePolicy::WriteThrough => false,
            CachePolicy::WriteBack => self.is_battery_good,
            CachePolicy::WriteBackAlways => true,
        }
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.state.events.push(Reverse((at, self.state.next_event_number, event)));
        self.state.next_event_number += 1;
    }

    fn next_source(&self) -> Option<(Instant, Source)> {
        let below = self.base.below[0].poll_at().map(|at| (at, Source::Below));
        let battery = self.battery_changes.front().map(|&(at, _)| (at, Source::Battery));
        let event = self.state.events.peek().map(|Reverse((at, ..))| (*at, Source::Event));
        let idle = self.idle_destage_at().map(|at| (at, Source::Idle));
        [below, battery, event, idle].into_iter().flatten().min()
    }

    fn handle_event(&mut self, at: Instant) {
        let Some(Reverse((_, _, event))) = self.state.events.pop() else { return };
        match event {
            Event::Decoded(slot) => self.start_command(at, slot),
            Event::Stored(slot) => self.store(at, slot),
            Event::Passed(slot) => self.pass_below(at, slot),
            Event::Delivered(slot) => self.finish(at, slot),
        }
    }

    fn start_command(&mut self, at: Instant, slot: Slot) {
        let request = self.base.requests.get(slot).request;
        match request.operation {
            Operation::Flush => self.state.waiting_for_drain.push(slot),
            Operation::Discard | Operation::WriteZeroes => self.pass_below(at, slot),
            Operation::Write if self.is_write_back() && request.size_bytes <= self.parameters.cache_bytes => {
                self.state.waiting_for_room.push_back(slot);
            }
            Operation::Write => {
                let passed_at = self.cross_link(at, request.size_bytes);
                self.schedule(passed_at, Event::Passed(slot));
            }
            Operation::Read => self.start_read(at, slot),
        }
    }

    fn start_read(&mut self, at: Instant, slot: Slot) {
        let request = self.base.requests.get(slot).request;
        let (start, end) = self.base.requests.get(slot).sectors();
        let (start_bytes, end_bytes) = (request.offset_bytes, request.end_bytes());
        let goes_on = self.state.read_ahead.goes_on(start_bytes, end_bytes);
        if self.state.dirty.covers(start, end)
            || self.destages.holds(start, end)
            || self.read_cache.hit(start_bytes, end_bytes)
        {
            self.deliver(at, slot);
            return;
        }
        let is_on_its_way = self.state.read_ahead.joins(slot, start_bytes, end_bytes);
        if !is_on_its_way && (!goes_on || !self.fetch_stripe(at, slot)) {
            self.pass_below(at, slot);
        }
    }

    fn cross_link(&mut self, at: Instant, bytes: u64) -> Instant {
        self.state.link_free_at =
            self.state.link_free_at.max(at) + transfer_ns(bytes, self.parameters.link_bytes_per_s);
        self.state.link_free_at
    }

    fn deliver(&mut self, at: Instant, slot: Slot) {
        let delivered_at = self.cross_link(at, self.base.requests.get(slot).request.size_bytes);
        self.schedule(delivered_at, Event::Delivered(slot));
    }

    fn used_sectors(&self) -> u64 {
        self.state.dirty.volatile_sectors() + self.state.reserved_sectors
    }

    fn admit(&mut self, at: Instant) {
        while let Some(&slot) = self.state.waiting_for_room.front() {
            let request = self.base.requests.get(slot).request;
            let sectors = request.size_bytes / SECTOR_BYTES;
            if !self.is_write_back() {
                // The battery failed while the write waited.
                let passed_at = self.cross_link(at, request.size_bytes);
                self.schedule(passed_at, Event::Passed(slot));
            } else if self.used_sectors() + sectors <= self.parameters.cache_bytes / SECTOR_BYTES {
                self.state.reserved_sectors += sectors;
                let stored_at = self.cross_link(at, request.size_bytes);
                self.schedule(stored_at, Event::Stored(slot));
            } else {
                return;
            }
            self.state.waiting_for_room.pop_front();
        }
    }

    fn store(&mut self, at: Instant, slot: Slot) {
        let command = *self.base.requests.get(slot);
        let (start, end) = command.sectors();
        self.state.reserved_sectors -= end - start;
        if !self.is_write_back() {
            // The battery failed while the data crossed the link.
            self.pass_below(at, slot);
            return;
        }
        if start < end {
            self.state.dirty.insert(start, end, command.request.id, command.sequence);
        }
        self.base.requests.mark_placed(slot);
        self.finish(at, slot);
    }

    /// Passes the request itself to the device below; a write is durable there when it completes.
    fn pass_below(&mut self, at: Instant, slot: Slot) {
        let request = self.base.requests.get(slot).request;
        let force_unit_access = request.operation == Operation::Write;
        self.base.below[0].pass_on(at, Request { force_unit_access, ..request }, Purpose::Host(slot));
    }

    fn finish_passed(&mut self, at: Instant, slot: Slot, outcome: Outcome) {
        let command = *self.base.requests.get(slot);
        if outcome == Outcome::Failure {
            self.base.requests.finish_as(at, slot, outcome);
            self.state.host_idle_since = self.state.host_idle_since.max(at);
            return;
        }
        let (start, end) = command.sectors();
        let (start_bytes, end_bytes) = (command.request.offset_bytes, command.request.end_bytes());
        match command.request.operation {
            Operation::Read => {
                self.read_cache.insert(start_bytes, end_bytes);
                self.deliver(at, slot);
                return;
            }
            Operation::Write => {
                self.state.dirty.forget(start, end, command.sequence);
                self.base.requests.mark_placed(slot);
            }
            Operation::Discard | Operation::WriteZeroes => {
                self.state.dirty.forget(start, end, command.sequence);
                self.read_cache.remove(start_bytes, end_bytes);
                self.state.read_ahead.void(start_bytes, end_bytes);
            }
            Operation::Flush => {}
        }
        self.finish(at, slot);
    }

    fn finish(&mut self, at: Instant, slot: Slot) {
        self.base.requests.finish(at, slot);
        self.state.host_idle_since = self.state.host_idle_since.max(at);
    }

    /// Starts the work that is possible at `at`.
    fn dispatch(&mut self, at: Instant) {
        self.admit(at);
        self.destage(at);
        let is_promise_kept = self.is_write_back() || self.state.dirty.volatile_sectors() == 0;
        if is_promise_kept && !self.state.waiting_for_drain.is_empty() {
            let mut waiting = std::mem::take(&mut self.state.waiting_for_drain);
            for slot in waiting.drain(..) {
                self.finish(at.max(self.base.requests.get(slot).arrived_at), slot);
            }
            self.state.waiting_for_drain = waiting;
        }
    }
}

impl Layered for Cache {
    type Purpose = Purpose;

    fn base(&self) -> &Base<Purpose> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<Purpose> {
        &mut self.base
    }

    fn arrives_at(&self, sent: Instant, now: Instant, request: &Request) -> Instant {
        request.begins_at(sent, now)
    }

    fn begin(&mut self, _now: Instant, slot: Slot) {
        self.destages.is_idle_run = false;
        let start = self.state.firmware_free_at.max(self.base.requests.get(slot).arrived_at);
        self.state.firmware_free_at = start + self.parameters.command_interval_ns;
        self.schedule(start + self.parameters.command_ns, Event::Decoded(slot));
    }

    fn complete(&mut self, _at: Instant, purpose: Purpose, Completion { at, outcome, .. }: Completion) {
        match purpose {
            Purpose::Host(slot) => self.finish_passed(at, slot, outcome),
            Purpose::Destage(index) => self.finish_destage(index, outcome),
            Purpose::ReadAhead(index) => self.finish_fetch(at, index, outcome),
        }
    }

    /// A battery change is an event only if it affects work in progress.
    fn wakes_at(&self) -> Option<Instant> {
        let is_battery_idle =
            self.base.requests.working_count() == 0 && self.state.dirty.volatile_sectors() == 0;
        match self.next_source() {
            Some((_, Source::Battery)) if is_battery_idle => self.base.below[0].poll_at(),
            next => next.map(|(at, _)| at),
        }
    }

    fn advance(&mut self, now: Instant) {
        while let Some((at, source)) = self.next_source().filter(|&(at, _)| at <= now) {
            match source {
                Source::Below => self.poll_below(at),
                Source::Battery => {
                    if let Some((_, is_good)) = self.battery_changes.pop_front() {
                        self.is_battery_good = is_good;
                    }
                }
                Source::Event => self.handle_event(at),
                Source::Idle => self.destages.is_idle_run = true,
            }
            self.dispatch(at);
        }
    }

    fn change_own(&mut self, now: Instant, change: Change) -> Changed {
        let Change::Battery { is_good } = change else { return Ok(false) };
        if self.parameters.policy == CachePolicy::WriteThrough {
            return Err(Invalid::new(
                "policy",
                "is `write-through`, to which the battery makes no difference",
            ));
        }
        if self.is_battery_good == is_good {
            let state = if is_good { "good" } else { "bad" };
            return Err(Invalid::new("battery", format!("is {state} already")));
        }
        self.turn_battery(now, is_good);
        Ok(true)
    }

    fn cut(&mut self, now: Instant) -> Vec<WriteFate> {
        self.cut_all(now)
    }

    fn totals(&self) -> Counters {
        let is_volatile = !self.is_battery_good;
        let volatile_bytes = if is_volatile { self.state.dirty.volatile_sectors() * SECTOR_BYTES } else { 0 };
        Counters { volatile_bytes, ..self.base.requests.counters }.over([self.base.below[0].counters()])
    }
}
