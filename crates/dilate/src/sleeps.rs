//! Waits for nothing but time.

use std::cell::Cell;
use std::ffi::{c_int, c_uint};

use crate::dilation::{self, Clock};
use crate::next;
use crate::time::{Pointer, Timespec, longer, real, remains};

/// `TIMER_ABSTIME`.
pub(crate) const UNTIL: c_int = 1;
const INTERRUPTED: c_int = 4;

unsafe extern "C" {
    #[link_name = "__errno_location"]
    pub(crate) safe fn errno<'a>() -> &'a Cell<c_int>;
}

/// What remains after a signal is told in dilated time, so that a program that sleeps it too sleeps as long
/// as it meant to.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn nanosleep(time: Pointer<Timespec>, remaining: Pointer<Timespec>) -> c_int {
    let left = Some(Cell::default());
    let status = next::nanosleep(longer(time).as_ref(), left.as_ref());
    if status != 0 && errno().get() == INTERRUPTED {
        remains(remaining, &left);
    }
    status
}

/// Another name of `nanosleep` in glibc.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn __nanosleep(time: Pointer<Timespec>, remaining: Pointer<Timespec>) -> c_int {
    nanosleep(time, remaining)
}

/// Until a moment, or for a duration; on the clock of a processor, both are real.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn clock_nanosleep(
    id: c_int,
    flags: c_int,
    time: Pointer<Timespec>,
    remaining: Pointer<Timespec>,
) -> c_int {
    let Some(clock) = Clock::of(id) else { return next::clock_nanosleep(id, flags, time, remaining) };
    if flags & UNTIL != 0 {
        return next::clock_nanosleep(id, flags, real(clock, time).as_ref(), None);
    }
    let left = Some(Cell::default());
    let error = next::clock_nanosleep(id, flags, longer(time).as_ref(), left.as_ref());
    if error == INTERRUPTED {
        remains(remaining, &left);
    }
    error
}

/// C11's sleep, which tells an interruption by -1.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn thrd_sleep(time: Pointer<Timespec>, remaining: Pointer<Timespec>) -> c_int {
    let left = Some(Cell::default());
    let status = next::thrd_sleep(longer(time).as_ref(), left.as_ref());
    if status == -1 {
        remains(remaining, &left);
    }
    status
}

/// glibc's own calls `nanosleep` inside libc, where ours is not seen. It tells whole seconds that remain.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn sleep(seconds: c_uint) -> c_uint {
    let time = Cell::new(Timespec { seconds: seconds.into(), fraction: 0 });
    let status = nanosleep(Some(&time), Some(&time));
    if status == 0 { 0 } else { time.get().seconds as c_uint }
}

/// glibc's own calls `nanosleep` inside libc, where ours is not seen.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn usleep(microseconds: c_uint) -> c_int {
    let time = Cell::new(Timespec::at(dilation::longer(i64::from(microseconds) * 1_000)));
    next::nanosleep(Some(&time), None)
}
