//! k and the origins of the clocks: read once from the environment, constant from then on.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicI64, AtomicU64};

use crate::time::Timespec;
use crate::{arithmetic, next};

pub(crate) const VARIABLE: &CStr = c"SPINDLE_DILATION";
const LEAST: f64 = 0.25;
const MOST: f64 = 64.0;
const FORM: &CStr = c"SPINDLE_DILATION is not \"<k from 0.25 to 64> <origin on CLOCK_MONOTONIC in ns> \
    <origin on CLOCK_REALTIME in ns>\"";

/// The clocks that are dilated. Each has its own origin, because their zeroes differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Realtime,
    Monotonic,
    Raw,
    Boottime,
    Tai,
}

impl Clock {
    /// `None` for the clocks of processors, threads and devices, which keep their time.
    pub(crate) fn of(id: c_int) -> Option<Clock> {
        match id {
            // The coarse clocks and those that wake a machine count from the same zero as the fine ones.
            0 | 5 | 8 => Some(Clock::Realtime),
            1 | 6 => Some(Clock::Monotonic),
            4 => Some(Clock::Raw),
            7 | 9 => Some(Clock::Boottime),
            11 => Some(Clock::Tai),
            _ => None,
        }
    }

    fn id(self) -> c_int {
        match self {
            Clock::Realtime => 0,
            Clock::Monotonic => 1,
            Clock::Raw => 4,
            Clock::Boottime => 7,
            Clock::Tai => 11,
        }
    }

    /// The clock that a moment belongs to, for objects that do not tell theirs. Nothing has been up for half
    /// a century, and nobody waits until a moment that passed more than a year ago.
    pub(crate) fn of_moment(moment: Timespec) -> Clock {
        const YEAR_SECONDS: i64 = 365 * 86_400;
        let origin = Timespec::at(origin(Clock::Realtime));
        if moment.seconds > origin.seconds - YEAR_SECONDS { Clock::Realtime } else { Clock::Monotonic }
    }
}

/// The bits of k; zero until the environment has been read.
static FACTOR: AtomicU64 = AtomicU64::new(0);
/// 1 / k for clocks.
static INVERSE: AtomicU64 = AtomicU64::new(0);
static ORIGINS: [AtomicI64; 5] = [const { AtomicI64::new(0) }; 5];

/// k. Inlined, because everything asks for it first.
#[inline]
pub(crate) fn factor() -> f64 {
    let bits = FACTOR.load(Acquire);
    if bits == 0 { read() } else { f64::from_bits(bits) }
}

#[inline]
pub(crate) fn is_on() -> bool {
    factor() != 1.0
}

#[inline]
fn origin(clock: Clock) -> i64 {
    ORIGINS[clock as usize].load(Relaxed)
}

pub(crate) fn longer(nanoseconds: i64) -> i64 {
    if is_on() { arithmetic::longer(factor(), nanoseconds) } else { nanoseconds }
}

pub(crate) fn shorter(nanoseconds: i64) -> i64 {
    if is_on() { arithmetic::shorter(factor(), nanoseconds) } else { nanoseconds }
}

pub(crate) fn real(clock: Clock, dilated: i64) -> i64 {
    if is_on() { arithmetic::real(factor(), origin(clock), dilated) } else { dilated }
}

/// Only if [`is_on`].
#[inline]
pub(crate) fn dilated(clock: Clock, real: i64) -> i64 {
    arithmetic::dilated(INVERSE.load(Relaxed), origin(clock), real)
}

/// Timeouts of whole milliseconds: negative is without end.
pub(crate) fn longer_ms(milliseconds: c_int) -> c_int {
    if milliseconds <= 0 || !is_on() {
        return milliseconds;
    }
    arithmetic::longer(factor(), milliseconds.into()).try_into().unwrap_or(c_int::MAX)
}

/// Two threads may both come here, and write the same.
#[cold]
fn read() -> f64 {
    let Some((factor, monotonic, realtime)) = environment() else {
        FACTOR.store(1.0_f64.to_bits(), Release);
        return 1.0;
    };
    // The other clocks differ from these two by what the machine slept, by leap seconds, or by the correction
    // of the clock. All of it is the same for all processes, or nearly so.
    let offset = |from: Clock, to: Clock| now(to).saturating_sub(now(from));
    let origins = [
        (Clock::Realtime, realtime),
        (Clock::Monotonic, monotonic),
        (Clock::Raw, monotonic.saturating_add(offset(Clock::Monotonic, Clock::Raw))),
        (Clock::Boottime, monotonic.saturating_add(offset(Clock::Monotonic, Clock::Boottime))),
        (Clock::Tai, realtime.saturating_add(offset(Clock::Realtime, Clock::Tai))),
    ];
    for (clock, origin) in origins {
        ORIGINS[clock as usize].store(origin, Relaxed);
    }
    INVERSE.store(arithmetic::inverse(factor), Relaxed);
    FACTOR.store(factor.to_bits(), Release);
    factor
}

fn now(clock: Clock) -> i64 {
    let now = Default::default();
    next::clock_gettime(clock.id(), Some(&now));
    Timespec::nanoseconds(now.get()).unwrap_or(0)
}

/// The text of a variable. It stays valid: nobody changes the environment while libraries start, and later
/// nobody asks.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        fn getenv(name: *const c_char) -> *const c_char;
    }
    // SAFETY: `name` ends with zero, and so does the value, if there is one.
    unsafe {
        let value = getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

fn environment() -> Option<(f64, i64, i64)> {
    let text = variable(VARIABLE)?;
    let dilation = text.to_str().ok().and_then(parse);
    if dilation.is_none() {
        next::give_up(FORM, text);
    }
    dilation
}

fn parse(text: &str) -> Option<(f64, i64, i64)> {
    let mut words = text.split_ascii_whitespace();
    let factor: f64 = words.next()?.parse().ok()?;
    let origins = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let is_valid = (LEAST..=MOST).contains(&factor) && origins.0 >= 0 && origins.1 >= 0;
    (is_valid && words.next().is_none()).then_some((factor, origins.0, origins.1))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn the_variable_has_k_and_two_origins() {
        assert_eq!(parse("4 12 34"), Some((4.0, 12, 34)));
        assert_eq!(parse("0.5 12 34"), Some((0.5, 12, 34)));
        assert_eq!(
            parse("2.6666666666666665 0 1790000000000000000"),
            Some((8.0 / 3.0, 0, 1_790_000_000_000_000_000))
        );
        for wrong in
            ["", "4", "4 12", "4 12 34 5", "0.2 1 1", "65 1 1", "NaN 1 1", "4 -1 1", "four 1 1", "4 1.5 1"]
        {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
