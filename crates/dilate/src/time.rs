//! C's times as Rust values, and their conversion.

use std::cell::Cell;

use crate::dilation::{self, Clock};

/// Seconds and a fraction: `struct timespec` and `struct timeval` differ in the unit of the second field.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub(crate) struct Time<const PER_SECOND: i64> {
    pub(crate) seconds: i64,
    pub(crate) fraction: i64,
}

pub(crate) type Timespec = Time<1_000_000_000>;
pub(crate) type Timeval = Time<1_000_000>;

/// `struct itimerspec` and `struct itimerval`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Alarm<T> {
    pub(crate) interval: T,
    pub(crate) value: T,
}

/// A pointer of C that may be null. Two arguments may be the same address (`nanosleep(&t, &t)`), as two
/// references to a cell may.
pub(crate) type Pointer<'a, T> = Option<&'a Cell<T>>;

const SECOND_NS: i64 = 1_000_000_000;

impl<const PER_SECOND: i64> Time<PER_SECOND> {
    const UNIT_NS: i64 = SECOND_NS / PER_SECOND;

    /// `None` for what the kernel refuses. Such a time is passed on as it is, so that the program gets its
    /// error.
    pub(crate) fn nanoseconds(self) -> Option<i64> {
        let is_valid = self.seconds >= 0 && (0..PER_SECOND).contains(&self.fraction);
        is_valid.then(|| self.seconds.saturating_mul(SECOND_NS).saturating_add(self.fraction * Self::UNIT_NS))
    }

    /// The last time that is not after so many nanoseconds, which are not negative: what a clock tells.
    #[inline]
    pub(crate) fn at(nanoseconds: i64) -> Self {
        // Unsigned, because a clock is read often, and that division is the cheaper one.
        let (nanoseconds, second) = (nanoseconds.max(0) as u64, SECOND_NS as u64);
        let fraction = (nanoseconds % second) as i64 / Self::UNIT_NS;
        Time { seconds: (nanoseconds / second) as i64, fraction }
    }

    /// The first time that is not before: for waits and for what remains of them.
    fn not_before(nanoseconds: i64) -> Self {
        Self::at(nanoseconds.saturating_add(Self::UNIT_NS - 1))
    }

    /// The real duration of this dilated one.
    pub(crate) fn longer(self) -> Self {
        self.nanoseconds().map_or(self, |own| Self::not_before(dilation::longer(own)))
    }

    /// The dilated duration of this real one.
    pub(crate) fn shorter(self) -> Self {
        self.nanoseconds().map_or(self, |own| Self::not_before(dilation::shorter(own)))
    }

    /// The real moment of this dilated one.
    pub(crate) fn real(self, clock: Clock) -> Self {
        self.nanoseconds().map_or(self, |own| Self::not_before(dilation::real(clock, own)))
    }
}

impl<const PER_SECOND: i64> Alarm<Time<PER_SECOND>> {
    pub(crate) fn longer(self) -> Self {
        Alarm { interval: self.interval.longer(), value: self.value.longer() }
    }

    pub(crate) fn shorter(self) -> Self {
        Alarm { interval: self.interval.shorter(), value: self.value.shorter() }
    }
}

/// The real duration for a function that takes one and does not change it.
pub(crate) fn longer<const PER_SECOND: i64>(
    time: Pointer<Time<PER_SECOND>>,
) -> Option<Cell<Time<PER_SECOND>>> {
    time.map(|time| Cell::new(time.get().longer()))
}

/// The real moment for a function that waits until a moment of this clock.
pub(crate) fn real(clock: Clock, time: Pointer<Timespec>) -> Option<Cell<Timespec>> {
    time.map(|time| Cell::new(time.get().real(clock)))
}

/// Writes what remains of a wait to where the program asked for it.
pub(crate) fn remains<const PER_SECOND: i64>(
    to: Pointer<Time<PER_SECOND>>,
    real: &Option<Cell<Time<PER_SECOND>>>,
) {
    if let (Some(to), Some(real)) = (to, real) {
        to.set(real.get().shorter());
    }
}
