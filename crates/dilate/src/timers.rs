//! Timers that send a signal, start a thread or make a file readable.

use std::cell::Cell;
use std::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicI32, AtomicUsize};

use crate::dilation::{self, Clock};
use crate::next::{self, Opaque};
use crate::sleeps::UNTIL;
use crate::time::{Alarm, Pointer, Timespec, Timeval};

/// `ITIMER_REAL`. The two others count the processor's time, which is real.
const REAL: c_int = 0;

/// PostgreSQL's timeouts (`statement_timeout`, `lock_timeout`, `deadlock_timeout`).
#[unsafe(no_mangle)]
pub(crate) extern "C" fn setitimer(
    kind: c_int,
    new: Pointer<Alarm<Timeval>>,
    old: Pointer<Alarm<Timeval>>,
) -> c_int {
    if kind != REAL {
        return next::setitimer(kind, new, old);
    }
    let own = new.map(|new| Cell::new(new.get().longer()));
    let status = next::setitimer(kind, own.as_ref(), old);
    told(status, old)
}

/// What remains is told in dilated time.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn getitimer(kind: c_int, now: Pointer<Alarm<Timeval>>) -> c_int {
    let status = next::getitimer(kind, now);
    if kind == REAL { told(status, now) } else { status }
}

/// Converts what the kernel told, if it did.
fn told<const PER_SECOND: i64>(status: c_int, real: Pointer<Alarm<crate::time::Time<PER_SECOND>>>) -> c_int {
    if let Some(real) = real
        && status == 0
    {
        real.set(real.get().shorter());
    }
    status
}

/// One shot of `ITIMER_REAL`, and what remained of the one before.
fn shoot_after(value: Timeval, interval: Timeval) -> Timeval {
    let old = Cell::default();
    setitimer(REAL, Some(&Cell::new(Alarm { interval, value })), Some(&old));
    old.get().value
}

/// Whole seconds, also when k is not: so it becomes an interval timer. What remained is rounded to seconds as
/// in libc, and never to zero.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn alarm(seconds: c_uint) -> c_uint {
    let old = shoot_after(Timeval { seconds: seconds.into(), fraction: 0 }, Timeval::default());
    let is_next = old.fraction >= 500_000 || (old.seconds == 0 && old.fraction > 0);
    old.seconds as c_uint + c_uint::from(is_next)
}

/// As `alarm`, in microseconds and repeated.
#[unsafe(no_mangle)]
extern "C" fn ualarm(value: c_uint, interval: c_uint) -> c_uint {
    let [value, interval] = [value, interval].map(|time| Timeval::at(i64::from(time) * 1_000));
    let old = shoot_after(value, interval);
    (old.seconds * 1_000_000 + old.fraction) as c_uint
}

/// POSIX timers of other clocks than CLOCK_REALTIME and CLOCK_MONOTONIC: those of processors are real, and
/// nothing tells a timer's clock later. A free place has 0; a timer has its number plus 1.
static TIMERS: [(AtomicUsize, AtomicI32); 64] = [const { (AtomicUsize::new(0), AtomicI32::new(0)) }; 64];

/// Notes or forgets the clock of a new timer. Without a free place the timer counts as one of the usual
/// clocks.
pub(crate) fn note(timer: usize, clock: c_int) {
    let key = timer.wrapping_add(1);
    // The number may have been another timer's, which has ended.
    for (place, _) in &TIMERS {
        _ = place.compare_exchange(key, 0, Relaxed, Relaxed);
    }
    if matches!(Clock::of(clock), Some(Clock::Realtime | Clock::Monotonic)) {
        return;
    }
    for (place, its_clock) in &TIMERS {
        if place.compare_exchange(0, key, Relaxed, Relaxed).is_ok() {
            its_clock.store(clock, Relaxed);
            return;
        }
    }
}

/// Whether a timer counts dilated time.
pub(crate) fn is_dilated(timer: usize) -> bool {
    let key = timer.wrapping_add(1);
    let noted = TIMERS.iter().find(|(place, _)| place.load(Relaxed) == key);
    noted.is_none_or(|(_, clock)| Clock::of(clock.load(Relaxed)).is_some())
}

/// A new setting of a timer. A moment of CLOCK_REALTIME is far from one of the clocks that count from the
/// boot.
pub(crate) fn settings(flags: c_int, new: Pointer<Alarm<Timespec>>) -> Option<Cell<Alarm<Timespec>>> {
    let settings = new?.get();
    let value = if flags & UNTIL == 0 {
        settings.value.longer()
    } else {
        settings.value.real(Clock::of_moment(settings.value))
    };
    Some(Cell::new(Alarm { interval: settings.interval.longer(), value }))
}

/// Passed on; only the clock is noted.
#[unsafe(no_mangle)]
extern "C" fn timer_create(clock: c_int, event: Opaque, timer: Pointer<usize>) -> c_int {
    let status = next::timer_create(clock, event, timer);
    if let Some(timer) = timer
        && status == 0
        && dilation::is_on()
    {
        note(timer.get(), clock);
    }
    status
}

/// MySQL's `max_execution_time`.
#[unsafe(no_mangle)]
extern "C" fn timer_settime(
    timer: usize,
    flags: c_int,
    new: Pointer<Alarm<Timespec>>,
    old: Pointer<Alarm<Timespec>>,
) -> c_int {
    if !is_dilated(timer) {
        return next::timer_settime(timer, flags, new, old);
    }
    let status = next::timer_settime(timer, flags, settings(flags, new).as_ref(), old);
    told(status, old)
}

/// What remains is told in dilated time.
#[unsafe(no_mangle)]
extern "C" fn timer_gettime(timer: usize, now: Pointer<Alarm<Timespec>>) -> c_int {
    let status = next::timer_gettime(timer, now);
    if is_dilated(timer) { told(status, now) } else { status }
}

/// Timers of event loops. A file has none of the processors' clocks.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn timerfd_settime(
    file: c_int,
    flags: c_int,
    new: Pointer<Alarm<Timespec>>,
    old: Pointer<Alarm<Timespec>>,
) -> c_int {
    let status = next::timerfd_settime(file, flags, settings(flags, new).as_ref(), old);
    told(status, old)
}

/// What remains is told in dilated time.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn timerfd_gettime(file: c_int, now: Pointer<Alarm<Timespec>>) -> c_int {
    let status = next::timerfd_gettime(file, now);
    told(status, now)
}
