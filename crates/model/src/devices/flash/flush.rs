//! FLUSH: a non-queued one first waits for the commands before it, then each for what the buffer has.

use super::{Event, Flash};
use crate::devices::WriteCache;
use crate::requests::Slot;
use crate::time::Instant;

/// A FLUSH waits until the entries numbered below `mark` are durable. `left` counts those that are not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Waiter {
    slot: Slot,
    pub(super) mark: u64,
    pub(super) left: u64,
}

impl Flash {
    pub(super) fn start_flush(&mut self, at: Instant, slot: Slot) {
        if !self.parameters.flush_blocks_queue {
            self.wait_for_drain(at, slot);
        } else if self.state.reads_sent_at > at {
            self.schedule(self.state.reads_sent_at, Event::Decoded(slot));
        } else {
            self.state.flush_ready = true;
        }
    }

    /// Starts the non-queued FLUSH when the commands before it are done.
    pub(super) fn begin_drain_if_quiet(&mut self, at: Instant) {
        if self.state.flush_ready
            && self.requests.working_count() == 0
            && let Some(slot) = self.requests.flush
        {
            self.state.flush_ready = false;
            self.wait_for_drain(at, slot);
        }
    }

    fn wait_for_drain(&mut self, at: Instant, slot: Slot) {
        let is_protected = self.parameters.write_cache == WriteCache::Protected;
        let left = if is_protected { 0 } else { self.state.buffer.undurable_count() };
        let mark = self.state.buffer.next_number;
        self.state.flush_waiters.push(Waiter { slot, mark, left });
        self.state.durable_waiters += 1;
        if left > 0 {
            self.state.force_mark = mark;
            self.pump(at);
        }
        self.release_drained(at);
    }

    pub(super) fn release_drained(&mut self, at: Instant) {
        for index in (0..self.state.flush_waiters.len()).rev() {
            let Waiter { slot, left, .. } = self.state.flush_waiters[index];
            if left == 0 {
                self.state.flush_waiters.remove(index);
                self.state.durable_waiters -= 1;
                self.schedule(at + self.parameters.flush_commit_ns, Event::Done(slot));
            }
        }
    }
}
