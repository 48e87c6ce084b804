//! Waits of libaio and liburing, which call the kernel themselves: so their functions are replaced.

use std::ffi::{c_int, c_long, c_uint};
use std::ptr;

use crate::next::{self, Opaque};
use crate::sleeps::errno;
use crate::system_call::number;
use crate::time::{Pointer, Timespec, longer};

fn address<T>(of: &Option<T>) -> c_long {
    of.as_ref().map_or(0, |of| (of as *const T).addr() as c_long)
}

/// libaio's functions return the error and leave `errno` alone.
fn call(
    number: c_long,
    context: Opaque,
    least: c_long,
    most: c_long,
    events: Opaque,
    rest: [c_long; 2],
) -> c_int {
    let before = errno().get();
    let [context, events] = [context, events].map(|pointer| pointer.addr() as c_long);
    let found = next::syscall(number, context, least, most, events, rest[0], rest[1]);
    if found < 0 { -errno().replace(before) } else { found as c_int }
}

/// InnoDB's native AIO waits half a second at a time.
#[unsafe(no_mangle)]
extern "C" fn io_getevents(
    context: Opaque,
    least: c_long,
    most: c_long,
    events: Opaque,
    timeout: Pointer<Timespec>,
) -> c_int {
    let timeout = longer(timeout);
    call(number::IO_GETEVENTS, context, least, most, events, [address(&timeout), 0])
}

/// `io_getevents` with other signals let through.
#[unsafe(no_mangle)]
extern "C" fn io_pgetevents(
    context: Opaque,
    least: c_long,
    most: c_long,
    events: Opaque,
    timeout: Pointer<Timespec>,
    signals: Opaque,
) -> c_int {
    /// `struct __aio_sigset`.
    #[repr(C)]
    struct Signals(Opaque, usize);
    let timeout = longer(timeout);
    let signals = Some(Signals(signals, 8));
    call(number::IO_PGETEVENTS, context, least, most, events, [address(&timeout), address(&signals)])
}

/// liburing's wait with a timeout, which there calls `io_uring_wait_cqes`: ours would be called twice.
#[unsafe(no_mangle)]
extern "C" fn io_uring_wait_cqe_timeout(ring: Opaque, result: Opaque, timeout: Pointer<Timespec>) -> c_int {
    io_uring_wait_cqes(ring, result, 1, timeout, ptr::null_mut())
}

/// liburing's wait for several.
#[unsafe(no_mangle)]
extern "C" fn io_uring_wait_cqes(
    ring: Opaque,
    result: Opaque,
    count: c_uint,
    timeout: Pointer<Timespec>,
    signals: Opaque,
) -> c_int {
    next::io_uring_wait_cqes(ring, result, count, longer(timeout).as_ref(), signals)
}

/// liburing's submission that waits too.
#[unsafe(no_mangle)]
extern "C" fn io_uring_submit_and_wait_timeout(
    ring: Opaque,
    result: Opaque,
    count: c_uint,
    timeout: Pointer<Timespec>,
    signals: Opaque,
) -> c_int {
    next::io_uring_submit_and_wait_timeout(ring, result, count, longer(timeout).as_ref(), signals)
}
