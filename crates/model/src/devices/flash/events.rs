//! The event queue, in order of time, then of scheduling.
//!
//! An event is one number. The queue is most of the cost of a simple request, and comparing and moving 16
//! bytes is twice as fast as a tuple with an enum.

use std::collections::VecDeque;
use std::hint::select_unpredictable;

use crate::requests::Slot;
use crate::time::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// The firmware has decoded the command.
    Decoded(Slot),
    /// A page is in its die's register.
    ArrayRead(usize),
    /// A page has left its die.
    ReadOut(usize),
    JobDone(usize),
    /// A write's data is in the buffer.
    Buffered(Slot),
    /// The last byte of a read is with the host, a write is durable, or a FLUSH has written the map.
    Done(Slot),
    PartialDue,
    IdleDue,
}

const INDEX_BITS: u32 = 24;
const KIND_BITS: u32 = 3;

impl Event {
    fn pack(self) -> u64 {
        let (kind, index) = match self {
            Event::Decoded(slot) => (0, slot),
            Event::ArrayRead(die) => (1, die),
            Event::ReadOut(die) => (2, die),
            Event::JobDone(die) => (3, die),
            Event::Buffered(slot) => (4, slot),
            Event::Done(slot) => (5, slot),
            Event::PartialDue => (6, 0),
            Event::IdleDue => (7, 0),
        };
        assert!(index < 1 << INDEX_BITS, "more than {} requests in a device", 1 << INDEX_BITS);
        kind << INDEX_BITS | index as u64
    }

    fn unpack(packed: u64) -> Event {
        let index = (packed & ((1 << INDEX_BITS) - 1)) as usize;
        match packed >> INDEX_BITS & ((1 << KIND_BITS) - 1) {
            0 => Event::Decoded(index),
            1 => Event::ArrayRead(index),
            2 => Event::ReadOut(index),
            3 => Event::JobDone(index),
            4 => Event::Buffered(index),
            5 => Event::Done(index),
            6 => Event::PartialDue,
            _ => Event::IdleDue,
        }
    }
}

/// Events of one lane are mostly scheduled in order of time: they cross one link, or take a constant time.
const LANE_COUNT: usize = 5;
/// The lane of each kind. Lane 4 holds jobs and timers.
const LANES: [u8; 1 << KIND_BITS] = [0, 1, 2, 4, 3, 3, 4, 4];
/// Stands for the absence of an event; nothing happens at [`Instant::FAR_FUTURE`].
const NEVER: u128 = u128::MAX;

#[derive(Debug)]
pub(super) struct Events {
    /// Each lane is ordered. An event packs time, then number (37 bits, 137 thousand million events), then
    /// kind and argument.
    lanes: [VecDeque<u128>; LANE_COUNT],
    /// The first event of each lane.
    heads: [u128; LANE_COUNT],
    /// The minimum of `heads`.
    next: u128,
    next_number: u64,
}

impl Default for Events {
    fn default() -> Events {
        let (lanes, heads) = (Default::default(), [NEVER; LANE_COUNT]);
        Events { lanes, heads, next: NEVER, next_number: 0 }
    }
}

fn time_of(packed: u128) -> Instant {
    Instant((packed >> 64) as u64)
}

fn lane_of(packed: u128) -> usize {
    usize::from(LANES[(packed as u64 >> INDEX_BITS & ((1 << KIND_BITS) - 1)) as usize])
}

fn sooner(one: u128, other: u128) -> u128 {
    // Events of different kinds come in an order that a processor cannot predict.
    select_unpredictable(one < other, one, other)
}

/// A separate function, because few events are before one that was scheduled earlier.
#[cold]
fn insert_among(lane: &mut VecDeque<u128>, packed: u128) {
    // Its place is near the end: a search by halves, and a move of all behind it, take longer.
    let mut place = lane.len();
    lane.push_back(packed);
    while place > 0 && lane[place - 1] > packed {
        lane[place] = lane[place - 1];
        place -= 1;
    }
    lane[place] = packed;
}

impl Events {
    pub(super) fn schedule(&mut self, at: Instant, event: Event) {
        let low = self.next_number << (INDEX_BITS + KIND_BITS) | event.pack();
        self.next_number += 1;
        let packed = u128::from(at.0) << 64 | u128::from(low);
        let lane = lane_of(packed);
        self.heads[lane] = self.heads[lane].min(packed);
        self.next = self.next.min(packed);
        let lane = &mut self.lanes[lane];
        if lane.back().is_none_or(|&last| last < packed) {
            lane.push_back(packed);
        } else {
            insert_among(lane, packed);
        }
    }

    #[inline]
    pub(super) fn next_at(&self) -> Option<Instant> {
        let at = time_of(self.next);
        (at < Instant::FAR_FUTURE).then_some(at)
    }

    #[inline]
    pub(super) fn is_due(&self, now: Instant) -> bool {
        let at = time_of(self.next);
        at <= now && at < Instant::FAR_FUTURE
    }

    /// Removes the next event. Requires that one is due.
    #[inline]
    pub(super) fn pop(&mut self) -> (Instant, Event) {
        let packed = self.next;
        let lane = &mut self.lanes[lane_of(packed)];
        lane.pop_front();
        self.heads[lane_of(packed)] = lane.front().copied().unwrap_or(NEVER);
        let [decoded, in_register, read_out, linked, others] = self.heads;
        // Pairs, so that a processor compares them at the same time.
        self.next = sooner(sooner(sooner(decoded, in_register), sooner(read_out, linked)), others);
        (time_of(packed), Event::unpack(packed as u64))
    }

    pub(super) fn clear(&mut self) {
        // Ties exist only between events in the queue, so an empty queue restarts the numbers.
        *self = Events::default();
    }
}
