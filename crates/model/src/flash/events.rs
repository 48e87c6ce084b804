//! What will happen next, in order of time, then of scheduling.
//!
//! An event is one number, because the queue is most of what a simple request costs: comparing and moving 16 bytes is twice as fast as
//! a tuple with an enum.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::commands::Slot;
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
const KIND_BITS: u32 = 4;

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

#[derive(Debug, Default)]
pub(super) struct Events {
    /// Time, then number (36 bits, 68 thousand million events), then what happens.
    heap: BinaryHeap<Reverse<u128>>,
    next_number: u64,
}

impl Events {
    pub(super) fn schedule(&mut self, at: Instant, event: Event) {
        let low = self.next_number << (INDEX_BITS + KIND_BITS) | event.pack();
        self.heap.push(Reverse(u128::from(at.0) << 64 | u128::from(low)));
        self.next_number += 1;
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.heap.peek().map(|Reverse(packed)| Instant((packed >> 64) as u64))
    }

    /// The next event, if it is due.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<(Instant, Event)> {
        let Reverse(packed) = *self.heap.peek()?;
        let at = Instant((packed >> 64) as u64);
        if at > now {
            return None;
        }
        self.heap.pop();
        Some((at, Event::unpack(packed as u64)))
    }

    pub(super) fn clear(&mut self) {
        self.heap.clear();
        // Ties are only between events in the queue.
        self.next_number = 0;
    }
}
