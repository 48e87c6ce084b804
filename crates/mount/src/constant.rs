//! A device with the same delay for every request, whatever its queue depth. The floor is measured against
//! it.

use std::collections::VecDeque;

use spindle_model::{Completion, Counters, Device, Instant, Outcome, PowerCut, Request};

#[derive(Debug, Clone)]
pub(crate) struct Constant {
    pub(crate) size_bytes: u64,
    pub(crate) delay_ns: u64,
    /// In the order of submission, which is also the order of completion.
    pub(crate) waiting: VecDeque<Completion>,
}

impl Device for Constant {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_late(&mut self, _sent: Instant, now: Instant, request: Request) -> Instant {
        let at = now + self.delay_ns;
        self.waiting.push_back(Completion { id: request.id, at, outcome: Outcome::Success });
        now
    }

    fn poll_at(&self) -> Option<Instant> {
        self.waiting.front().map(|first| first.at)
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        let is_due = self.waiting.front().is_some_and(|first| first.at <= now);
        is_due.then(|| self.waiting.pop_front())?
    }

    fn power_cut(&mut self, _now: Instant) -> PowerCut {
        self.waiting.clear();
        PowerCut::default()
    }

    fn counters(&self) -> Counters {
        Counters { queue_depth: self.waiting.len() as u64, ..Counters::default() }
    }
}
