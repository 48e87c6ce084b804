//! Waits for files.

use std::ffi::c_int;

use crate::dilation::longer_ms;
use crate::next::{self, Opaque};
use crate::time::{Pointer, Timespec, Timeval, longer, remains};

/// The wait of most network servers and clients.
#[unsafe(no_mangle)]
extern "C" fn poll(files: Opaque, count: u64, timeout: c_int) -> c_int {
    next::poll(files, count, longer_ms(timeout))
}

/// Another name of `poll` in glibc.
#[unsafe(no_mangle)]
extern "C" fn __poll(files: Opaque, count: u64, timeout: c_int) -> c_int {
    poll(files, count, timeout)
}

/// What `poll` is called with `_FORTIFY_SOURCE`, as distributions build.
#[unsafe(no_mangle)]
extern "C" fn __poll_chk(files: Opaque, count: u64, timeout: c_int, size: usize) -> c_int {
    next::__poll_chk(files, count, longer_ms(timeout), size)
}

/// glibc's does not tell what remains.
#[unsafe(no_mangle)]
extern "C" fn ppoll(files: Opaque, count: u64, timeout: Pointer<Timespec>, signals: Opaque) -> c_int {
    next::ppoll(files, count, longer(timeout).as_ref(), signals)
}

/// What `ppoll` is called with `_FORTIFY_SOURCE`.
#[unsafe(no_mangle)]
extern "C" fn __ppoll_chk(
    files: Opaque,
    count: u64,
    timeout: Pointer<Timespec>,
    signals: Opaque,
    size: usize,
) -> c_int {
    next::__ppoll_chk(files, count, longer(timeout).as_ref(), signals, size)
}

/// Linux writes what remains into the timeout, and programs rely on it.
#[unsafe(no_mangle)]
extern "C" fn select(
    count: c_int,
    read: Opaque,
    write: Opaque,
    except: Opaque,
    timeout: Pointer<Timeval>,
) -> c_int {
    let own = longer(timeout);
    let ready = next::select(count, read, write, except, own.as_ref());
    remains(timeout, &own);
    ready
}

/// Another name of `select` in glibc.
#[unsafe(no_mangle)]
extern "C" fn __select(
    count: c_int,
    read: Opaque,
    write: Opaque,
    except: Opaque,
    timeout: Pointer<Timeval>,
) -> c_int {
    select(count, read, write, except, timeout)
}

/// glibc's does not tell what remains.
#[unsafe(no_mangle)]
extern "C" fn pselect(
    count: c_int,
    read: Opaque,
    write: Opaque,
    except: Opaque,
    timeout: Pointer<Timespec>,
    signals: Opaque,
) -> c_int {
    next::pselect(count, read, write, except, longer(timeout).as_ref(), signals)
}

/// The wait of PostgreSQL's processes and of MariaDB's thread pool.
#[unsafe(no_mangle)]
extern "C" fn epoll_wait(epoll: c_int, events: Opaque, most: c_int, timeout: c_int) -> c_int {
    next::epoll_wait(epoll, events, most, longer_ms(timeout))
}

/// `epoll_wait` with other signals let through.
#[unsafe(no_mangle)]
extern "C" fn epoll_pwait(
    epoll: c_int,
    events: Opaque,
    most: c_int,
    timeout: c_int,
    signals: Opaque,
) -> c_int {
    next::epoll_pwait(epoll, events, most, longer_ms(timeout), signals)
}

/// `epoll_pwait` in nanoseconds.
#[unsafe(no_mangle)]
extern "C" fn epoll_pwait2(
    epoll: c_int,
    events: Opaque,
    most: c_int,
    timeout: Pointer<Timespec>,
    signals: Opaque,
) -> c_int {
    next::epoll_pwait2(epoll, events, most, longer(timeout).as_ref(), signals)
}
