//! Wall time as model time: nanoseconds of CLOCK_MONOTONIC since the disk came up.

use rustix::time::{ClockId, Timespec, clock_gettime};
use spindle_model::{Instant, SECOND};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin_ns: u64,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { origin_ns: monotonic_ns() }
    }

    pub(crate) fn now(&self) -> Instant {
        Instant(monotonic_ns() - self.origin_ns)
    }

    /// The same moment on CLOCK_MONOTONIC, for an absolute timer.
    pub(crate) fn timespec(&self, instant: Instant) -> Timespec {
        let monotonic = self.origin_ns.saturating_add(instant.0);
        Timespec { tv_sec: (monotonic / SECOND) as i64, tv_nsec: (monotonic % SECOND) as _ }
    }
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64
}
