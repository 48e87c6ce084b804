//! What the time is.

use std::ffi::{c_int, c_long};

use crate::dilation::{self, Clock};
use crate::next::{self, Opaque};
use crate::time::{Pointer, Timespec, Timeval};

const REALTIME: c_int = 0;
const REALTIME_COARSE: c_int = 5;
/// `TIME_UTC` of C11 and `TIME_MONOTONIC` of C23.
const UTC: c_int = 1;
const MONOTONIC: c_int = 2;

#[inline]
fn tell(clock: Option<Clock>, now: Pointer<Timespec>) {
    if let (Some(clock), Some(now)) = (clock, now)
        && dilation::is_on()
    {
        let real = now.get();
        let real = real.seconds.wrapping_mul(1_000_000_000).wrapping_add(real.fraction);
        now.set(Timespec::at(dilation::dilated(clock, real)));
    }
}

/// The clock of nearly every program; clocks of processors, threads and devices keep their time.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn clock_gettime(clock: c_int, now: Pointer<Timespec>) -> c_int {
    let status = next::clock_gettime(clock, now);
    if status == 0 {
        tell(Clock::of(clock), now);
    }
    status
}

fn read(clock: c_int) -> Timespec {
    let now = Default::default();
    clock_gettime(clock, Some(&now));
    now.get()
}

/// From the nanoseconds of `clock_gettime`, so that the two never contradict each other.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn gettimeofday(now: Pointer<Timeval>, zone: Opaque) -> c_int {
    if !dilation::is_on() || !zone.is_null() {
        let status = next::gettimeofday(now, zone);
        if status != 0 || !dilation::is_on() {
            return status;
        }
    }
    if let Some(now) = now {
        let time = read(REALTIME);
        now.set(Timeval { seconds: time.seconds, fraction: time.fraction / 1_000 });
    }
    0
}

/// Another name of `gettimeofday` in glibc.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __gettimeofday(now: Pointer<Timeval>, zone: Opaque) -> c_int {
    gettimeofday(now, zone)
}

/// From the coarse clock, as in glibc.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn time(now: Pointer<i64>) -> i64 {
    if !dilation::is_on() {
        return next::time(now);
    }
    let seconds = read(REALTIME_COARSE).seconds;
    if let Some(now) = now {
        now.set(seconds);
    }
    seconds
}

/// `struct timeb`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct TimeOfDay {
    seconds: i64,
    milliseconds: u16,
    zone: i16,
    daylight_saving: i16,
}

/// Only programs from before glibc 2.31 call it. The zone is zero, as in glibc.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn ftime(now: Pointer<TimeOfDay>) -> c_int {
    let time = read(REALTIME);
    if let Some(now) = now {
        let milliseconds = (time.fraction / 1_000_000) as u16;
        now.set(TimeOfDay { seconds: time.seconds, milliseconds, zone: 0, daylight_saving: 0 });
    }
    0
}

/// C11's clock.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn timespec_get(now: Pointer<Timespec>, base: c_int) -> c_int {
    let told = next::timespec_get(now, base);
    if told == base {
        let clock = match base {
            UTC => Some(Clock::Realtime),
            MONOTONIC => Some(Clock::Monotonic),
            _ => None,
        };
        tell(clock, now);
    }
    told
}

/// The ticks since the boot are a clock; the times of the processor stay real. All processes count from the
/// same zero without an origin.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn times(processor: Opaque) -> c_long {
    dilation::shorter(next::times(processor))
}
