//! Read-ahead of the rest of a stripe for sequential readers.
//!
//! A controller with read-ahead reads the requested block and its whole stripe (Intel, "Configuring RAID for
//! Optimal Performance", 4.3, for LSI's controllers; IBM's ServeRAID reads "to the end of the stripe"). An
//! adaptive controller does so after two consecutive reads of neighbouring sectors, and stops when this
//! pattern ends (Dell OpenManage Server Administrator, User's Guide, "Read Policy"). The number of streams
//! that firmware can track is not published.

use std::collections::VecDeque;

use super::{Cache, Purpose};
use crate::children::request;
use crate::request::{Operation, Outcome};
use crate::requests::{Slot, first_hole};
use crate::time::Instant;

/// Streams tracked [assumption].
const READERS: usize = 32;

/// A stripe, or the rest of one, being read from the device below.
#[derive(Debug)]
struct Fetch {
    start_bytes: u64,
    end_bytes: u64,
    /// Reads of the host that the fetch answers.
    waiting: Vec<Slot>,
    /// The data was discarded meanwhile, so the fetch is not cached.
    is_void: bool,
}

#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    /// Ends of the last reads, the most recent at the back.
    ends: VecDeque<u64>,
    fetches: Vec<Option<Fetch>>,
}

impl ReadAhead {
    /// Records a read. Returns whether it continues an earlier one.
    pub(super) fn goes_on(&mut self, start_bytes: u64, end_bytes: u64) -> bool {
        let earlier = self.ends.iter().position(|&end| end == start_bytes);
        if let Some(place) = earlier {
            self.ends.remove(place);
        } else if self.ends.len() == READERS {
            self.ends.pop_front();
        }
        self.ends.push_back(end_bytes);
        earlier.is_some()
    }

    /// Adds a read to a fetch that covers all of it. Returns whether there is such a fetch.
    pub(super) fn joins(&mut self, slot: Slot, start_bytes: u64, end_bytes: u64) -> bool {
        let brings = |fetch: &&mut Fetch| fetch.start_bytes <= start_bytes && end_bytes <= fetch.end_bytes;
        let fetch = self.fetches.iter_mut().flatten().find(brings);
        fetch.map(|fetch| fetch.waiting.push(slot)).is_some()
    }

    /// Invalidates fetches of this range, because the data was discarded.
    pub(super) fn void(&mut self, start_bytes: u64, end_bytes: u64) {
        for fetch in self.fetches.iter_mut().flatten() {
            fetch.is_void |= fetch.start_bytes < end_bytes && start_bytes < fetch.end_bytes;
        }
    }
}

impl Cache {
    /// Reads from the start of the host's read to the end of its stripe, or from the start of that stripe if
    /// what is before it is there already. Returns whether it sent such a read: false if it would be no longer
    /// than the host's, or too long.
    pub(super) fn fetch_stripe(&mut self, at: Instant, slot: Slot) -> bool {
        let stripe_bytes = self.parameters.read_ahead_bytes;
        let asked = self.base.requests.get(slot).request;
        if stripe_bytes == 0 {
            return false;
        }
        let stripe_end = asked.end_bytes().next_multiple_of(stripe_bytes);
        let stripe_start = stripe_end - stripe_bytes;
        let has_begin =
            stripe_start > asked.offset_bytes && self.read_cache.hit(asked.offset_bytes, stripe_start);
        let start_bytes = if has_begin { stripe_start } else { asked.offset_bytes };
        let end_bytes = stripe_end.min(self.base.size_bytes);
        // A longer read would not fit into the read cache, and it keeps all members of the array busy anyway.
        if end_bytes == asked.end_bytes() || end_bytes - start_bytes > stripe_bytes {
            return false;
        }
        let fetch = Fetch { start_bytes, end_bytes, waiting: vec![slot], is_void: false };
        let index = first_hole(&mut self.state.read_ahead.fetches);
        self.state.read_ahead.fetches[index] = Some(fetch);
        let read = request(Operation::Read, start_bytes, end_bytes - start_bytes);
        self.base.below[0].submit_late(at, read, Purpose::ReadAhead(index));
        true
    }

    pub(super) fn finish_fetch(&mut self, at: Instant, index: usize, outcome: Outcome) {
        let Some(fetch) = self.state.read_ahead.fetches[index].take() else { return };
        if outcome == Outcome::Failure {
            // The error may be outside the range of the host's read.
            fetch.waiting.into_iter().for_each(|slot| self.pass_below(at, slot));
            return;
        }
        if !fetch.is_void {
            self.read_cache.insert(fetch.start_bytes, fetch.end_bytes);
        }
        fetch.waiting.into_iter().for_each(|slot| self.deliver(at, slot));
    }
}
