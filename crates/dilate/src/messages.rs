//! Waits for signals, semaphores, messages and asynchronous requests.

use std::ffi::{c_int, c_uint};

use crate::dilation::Clock;
use crate::next::{self, Opaque};
use crate::time::{Pointer, Timespec, longer, real, remains};

/// A signal, or none for so long.
#[unsafe(no_mangle)]
extern "C" fn sigtimedwait(signals: Opaque, found: Opaque, timeout: Pointer<Timespec>) -> c_int {
    next::sigtimedwait(signals, found, longer(timeout).as_ref())
}

/// System V semaphores, as PostgreSQL's processes use on some systems.
#[unsafe(no_mangle)]
extern "C" fn semtimedop(set: c_int, operations: Opaque, count: usize, timeout: Pointer<Timespec>) -> c_int {
    next::semtimedop(set, operations, count, longer(timeout).as_ref())
}

/// Message queues wait until a moment of CLOCK_REALTIME.
#[unsafe(no_mangle)]
extern "C" fn mq_timedreceive(
    queue: c_int,
    bytes: Opaque,
    size: usize,
    priority: Opaque,
    until: Pointer<Timespec>,
) -> isize {
    next::mq_timedreceive(queue, bytes, size, priority, real(Clock::Realtime, until).as_ref())
}

/// As `mq_timedreceive`, for room in the queue.
#[unsafe(no_mangle)]
extern "C" fn mq_timedsend(
    queue: c_int,
    bytes: Opaque,
    size: usize,
    priority: c_uint,
    until: Pointer<Timespec>,
) -> c_int {
    next::mq_timedsend(queue, bytes, size, priority, real(Clock::Realtime, until).as_ref())
}

/// POSIX's asynchronous requests.
#[unsafe(no_mangle)]
extern "C" fn aio_suspend(requests: Opaque, count: c_int, timeout: Pointer<Timespec>) -> c_int {
    next::aio_suspend(requests, count, longer(timeout).as_ref())
}

/// The name of `aio_suspend` with large files.
#[unsafe(no_mangle)]
extern "C" fn aio_suspend64(requests: Opaque, count: c_int, timeout: Pointer<Timespec>) -> c_int {
    aio_suspend(requests, count, timeout)
}

/// The kernel looks at this timeout only between two messages, and tells what remains.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn recvmmsg(
    socket: c_int,
    messages: Opaque,
    count: c_uint,
    flags: c_int,
    timeout: Pointer<Timespec>,
) -> c_int {
    let own = longer(timeout);
    let received = next::recvmmsg(socket, messages, count, flags, own.as_ref());
    if received >= 0 {
        remains(timeout, &own);
    }
    received
}
