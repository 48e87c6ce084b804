//! A network link as a timetable of rates: one message after another, no loss, with slow periods and outages.

use crate::time::{Instant, SECOND};

use super::{Congestion, Outage};

/// From this time on, the link has this rate; zero if it is down.
#[derive(Debug, Clone, Copy)]
struct Phase {
    from: Instant,
    bytes_per_s: u64,
}

#[derive(Debug)]
pub(super) struct Link {
    phases: Vec<Phase>,
    free_at: Instant,
}

impl Link {
    pub(super) fn new(bytes_per_s: u64, outages: &[Outage], congestions: &[Congestion]) -> Link {
        let outage_ends = outages.iter().map(|outage| (outage.starts_at_ns, outage.duration_ns));
        let congestion_ends =
            congestions.iter().map(|congestion| (congestion.starts_at_ns, congestion.duration_ns));
        let windows: Vec<(u64, u64)> = outage_ends
            .chain(congestion_ends)
            .map(|(start, duration)| (start, start.saturating_add(duration)))
            .collect();
        let mut times: Vec<u64> = windows.iter().flat_map(|&(start, end)| [start, end]).collect();
        times.push(0);
        times.sort_unstable();
        times.dedup();
        let rate_at = |time: u64| {
            let covers = |start: u64, duration: u64| start <= time && time - start < duration;
            if outages.iter().any(|outage| covers(outage.starts_at_ns, outage.duration_ns)) {
                return 0;
            }
            congestions
                .iter()
                .filter(|congestion| covers(congestion.starts_at_ns, congestion.duration_ns))
                .map(|congestion| congestion.bytes_per_s)
                .min()
                .map_or(bytes_per_s, |rate| rate.min(bytes_per_s))
        };
        let phases = times.into_iter().map(|time| Phase { from: Instant(time), bytes_per_s: rate_at(time) });
        let mut phases: Vec<Phase> = phases.collect();
        phases.dedup_by_key(|phase| phase.bytes_per_s);
        Link { phases, free_at: Instant::ZERO }
    }

    /// The outages, as start and end.
    pub(super) fn outages(&self) -> Vec<(Instant, Instant)> {
        let ends = self.phases.iter().skip(1).map(|phase| phase.from).chain([Instant::FAR_FUTURE]);
        let down = self.phases.iter().zip(ends).filter(|(phase, _)| phase.bytes_per_s == 0);
        down.map(|(phase, end)| (phase.from, end)).collect()
    }

    fn phase_index(&self, at: Instant) -> usize {
        self.phases.partition_point(|phase| phase.from <= at) - 1
    }

    /// The first time at or after `at` when the link is up.
    pub(super) fn up_at(&self, at: Instant) -> Instant {
        let later = &self.phases[self.phase_index(at)..];
        later
            .iter()
            .find(|phase| phase.bytes_per_s > 0)
            .map_or(Instant::FAR_FUTURE, |phase| phase.from.max(at))
    }

    /// Sends a message after earlier ones. Returns the time when its last byte is on the wire.
    pub(super) fn send(&mut self, now: Instant, bytes: u64) -> Instant {
        let mut at = self.free_at.max(now);
        // In bytes times nanoseconds per second, so that rounding happens only at the end.
        let mut left = u128::from(bytes) * u128::from(SECOND);
        for index in self.phase_index(at)..self.phases.len() {
            let rate = u128::from(self.phases[index].bytes_per_s);
            let end = self.phases.get(index + 1).map_or(Instant::FAR_FUTURE, |next| next.from);
            at = at.max(self.phases[index].from);
            let possible = rate * u128::from(end - at);
            if rate > 0 && left <= possible {
                at = at + left.div_ceil(rate) as u64;
                break;
            }
            left -= possible;
            at = end;
        }
        self.free_at = at;
        at
    }

    /// From `at` on the link has this rate, whatever was planned.
    pub(super) fn set_rate(&mut self, at: Instant, bytes_per_s: u64) {
        self.phases.retain(|phase| phase.from < at);
        self.phases.push(Phase { from: at, bytes_per_s });
    }

    pub(super) fn is_up(&self, at: Instant) -> bool {
        self.phases[self.phase_index(at)].bytes_per_s > 0
    }

    /// Drops messages not yet sent.
    pub(super) fn clear(&mut self, now: Instant) {
        self.free_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_waits_out_an_outage_and_crawls_through_a_congestion() {
        let outages = [Outage { starts_at_ns: SECOND, duration_ns: 2 * SECOND }];
        let congestions = [Congestion { starts_at_ns: 4 * SECOND, duration_ns: SECOND, bytes_per_s: 100 }];
        let mut link = Link::new(1_000, &outages, &congestions);
        assert_eq!(link.outages(), [(Instant(SECOND), Instant(3 * SECOND))]);
        // A second before the outage, a second after it, a slow second, and the rest.
        assert_eq!(link.send(Instant::ZERO, 2_600), Instant(5 * SECOND + SECOND / 2));
        assert_eq!(link.send(Instant::ZERO, 1_000), Instant(6 * SECOND + SECOND / 2));
        assert_eq!(link.up_at(Instant(2 * SECOND)), Instant(3 * SECOND));
        assert_eq!(link.up_at(Instant(4 * SECOND)), Instant(4 * SECOND));
    }
}
