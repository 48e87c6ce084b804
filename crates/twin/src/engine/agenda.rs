//! What happens when, in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use spindle_model::Instant;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The burst of a terminal is over.
    Burst(usize),
    Arrival,
    /// Time passes for the flusher.
    Tick,
    /// A log that nobody waits for is written once a second.
    LogTimer,
    /// A round of the server's background writer.
    Background,
}

/// Events by their time. Of those at one time the first scheduled comes first.
#[derive(Debug)]
pub(super) struct Agenda {
    pub(super) now: Instant,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    count: u64,
}

impl Agenda {
    pub(super) fn new() -> Agenda {
        Agenda { now: Instant::ZERO, events: BinaryHeap::new(), count: 0 }
    }

    pub(super) fn schedule(&mut self, after_ns: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((self.now + after_ns, self.count, event)));
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        self.events.pop().map(|Reverse((.., event))| event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_at_one_time_come_in_the_order_in_which_they_were_scheduled() {
        let mut agenda = Agenda::new();
        for (after_ns, event) in [(5, Event::Tick), (3, Event::Burst(7)), (3, Event::Arrival)] {
            agenda.schedule(after_ns, event);
        }
        assert_eq!(agenda.next_at(), Some(Instant(3)));
        let events: Vec<Event> = std::iter::from_fn(|| agenda.pop()).collect();
        assert_eq!(events, [Event::Burst(7), Event::Arrival, Event::Tick]);
    }
}
