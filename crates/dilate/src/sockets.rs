//! Timeouts that a socket keeps: clients of MySQL give up so.

use std::cell::Cell;
use std::ffi::c_int;
use std::mem::size_of;

use crate::next::{self, Opaque};
use crate::time::{Pointer, Timeval};

/// `SOL_SOCKET`.
const SOCKET: c_int = 1;
/// `SO_RCVTIMEO` and `SO_SNDTIMEO`, and their names since Linux 5.1. TCP's timers are the network's and stay
/// real.
const TIMEOUTS: [c_int; 4] = [20, 21, 66, 67];

fn is_timeout(level: c_int, name: c_int, value: Opaque, size: u32) -> bool {
    level == SOCKET && TIMEOUTS.contains(&name) && !value.is_null() && size as usize >= size_of::<Timeval>()
}

/// Zero is without end.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn setsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: Opaque,
    size: u32,
) -> c_int {
    if !is_timeout(level, name, value, size) {
        return next::setsockopt(socket, level, name, value, size);
    }
    // SAFETY: the program gives a `struct timeval` for these names; the kernel reads one too.
    let own = unsafe { value.cast::<Timeval>().read_unaligned() }.longer();
    next::setsockopt(socket, level, name, (&raw const own).cast_mut().cast(), size_of::<Timeval>() as u32)
}

/// What the program has set.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn getsockopt(
    socket: c_int,
    level: c_int,
    name: c_int,
    value: Opaque,
    size: Pointer<u32>,
) -> c_int {
    let status = next::getsockopt(socket, level, name, value, size);
    if status == 0 && is_timeout(level, name, value, size.map_or(0, Cell::get)) {
        let time = value.cast::<Timeval>();
        // SAFETY: the kernel has just written a `struct timeval` there.
        unsafe { time.write_unaligned(time.read_unaligned().shorter()) };
    }
    status
}
