//! Model time: nanoseconds since the device was powered on.
//!
//! The model never reads a clock. A driver passes the time in: the virtual-time driver jumps from event to
//! event, the real-time driver maps a monotonic clock onto it.

use std::ops::{Add, Sub};

pub const NANOSECOND: u64 = 1;
pub const MICROSECOND: u64 = 1_000;
pub const MILLISECOND: u64 = 1_000_000;
pub const SECOND: u64 = 1_000_000_000;

/// A moment in model time, in nanoseconds since power-on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub u64);

impl Instant {
    pub const ZERO: Instant = Instant(0);
    /// Later than any event: 584 years after power-on.
    pub const FAR_FUTURE: Instant = Instant(u64::MAX);

    /// Nanoseconds from `earlier` to `self`, or zero if `earlier` is later.
    pub fn since_ns(self, earlier: Instant) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// `instant + nanoseconds`.
impl Add<u64> for Instant {
    type Output = Instant;

    fn add(self, nanoseconds: u64) -> Instant {
        Instant(self.0.saturating_add(nanoseconds))
    }
}

/// `later - earlier`, in nanoseconds, saturating at zero.
impl Sub<Instant> for Instant {
    type Output = u64;

    fn sub(self, earlier: Instant) -> u64 {
        self.since_ns(earlier)
    }
}
