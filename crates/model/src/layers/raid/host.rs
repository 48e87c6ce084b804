//! The host's processor time for a software array: Linux md.
//!
//! Every request takes `host_latency_ns` on its way to the members. One thread sends writes to copies, one
//! member after the other. If a member's driver works in its caller's context, each write occupies the thread
//! for `host_write_ns`. Sources: `raid1d` and `flush_pending_writes` in Linux `drivers/md/raid1.c`; S. Li,
//! "raid1/10: all write requests are dispatched in a single thread", linux-raid 2012.

use std::collections::VecDeque;

use super::Raid;
use super::members::WriteEntry;
use crate::requests::Slot;
use crate::time::Instant;

/// A write that the thread has not yet sent to its member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unsent {
    at: Instant,
    pub(super) entry: WriteEntry,
    force_unit_access: bool,
}

#[derive(Debug, Default)]
pub(super) struct Host {
    /// Requests on their way to the members, with their arrival times; oldest first.
    pub(super) entering: VecDeque<(Instant, Slot)>,
    pub(super) unsent: VecDeque<Unsent>,
    thread_free_at: Instant,
}

impl Host {
    pub(super) fn due_at(&self) -> Option<Instant> {
        let entering = self.entering.front().map(|&(at, _)| at);
        entering.into_iter().chain(self.unsent.front().map(|unsent| unsent.at)).min()
    }
}

impl Raid {
    pub(super) fn enter(&mut self, now: Instant, slot: Slot) {
        match self.parameters.host_latency_ns {
            0 => self.start_request(now, slot),
            latency_ns => {
                // A late request does not overtake earlier ones.
                let before_at = self.host.entering.back().map_or(Instant::ZERO, |&(at, _)| at);
                self.host.entering.push_back((before_at.max(now + latency_ns), slot));
            }
        }
    }

    /// Sends a write to its member as soon as the thread is free. With a zero thread time, at once.
    pub(super) fn send_by_thread(&mut self, now: Instant, entry: WriteEntry, force_unit_access: bool) {
        let at = self.host.thread_free_at.max(now);
        self.host.thread_free_at = at + self.parameters.host_write_ns;
        if at == now {
            self.send_write_now(now, entry, force_unit_access);
        } else {
            self.host.unsent.push_back(Unsent { at, entry, force_unit_access });
        }
    }

    /// Processes one item due at `at`: requests before writes.
    pub(super) fn pass_on(&mut self, at: Instant) {
        if let Some(&(due_at, slot)) = self.host.entering.front()
            && due_at <= at
        {
            self.host.entering.pop_front();
            self.start_request(at, slot);
        } else if let Some(unsent) = self.host.unsent.pop_front() {
            self.send_write_now(at, unsent.entry, unsent.force_unit_access);
        }
    }
}
