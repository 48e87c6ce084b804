//! Waits by `syscall()`, and those of libaio and liburing.

use std::ptr::null_mut;

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, c_long, timespec};

use crate::child::Probe;
use crate::files::{epoll, polled, timeval};
use crate::waits::{MILLISECONDS, moment, span, wait, zeroed};

const FUTEX_WAIT: c_long = 0;
const FUTEX_LOCK_PI: c_long = 6;
const FUTEX_WAIT_BITSET: c_long = 9;
const FUTEX_PRIVATE: c_long = 128;
const FUTEX_CLOCK_REALTIME: c_long = 256;
const ALL_BITS: c_long = u32::MAX as c_long;

/// A wait on a word that nobody changes.
fn futex(operation: c_long, time: timespec) {
    let word = 0_u32;
    wait(-1, || unsafe {
        let operation = operation | FUTEX_PRIVATE;
        libc::syscall(libc::SYS_futex, &raw const word, operation, 0_i64, &raw const time, 0_i64, ALL_BITS)
    });
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ETIMEDOUT));
}

/// A word that belongs to a thread which keeps it.
fn futex_lock_pi() {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        sender.send(unsafe { libc::syscall(libc::SYS_gettid) }).unwrap();
        unsafe { libc::pause() };
    });
    let word = receiver.recv().unwrap() as u32;
    let until = moment(CLOCK_REALTIME);
    wait(-1, || unsafe {
        libc::syscall(libc::SYS_futex, &raw const word, FUTEX_LOCK_PI, 0_i64, &raw const until)
    });
}

fn futex_waitv(clock: libc::clockid_t) {
    #[repr(C)]
    struct Waiter(u64, u64, u32, u32);
    let word = 0_u32;
    let waiter = Waiter(0, (&raw const word).addr() as u64, 2 | 128, 0);
    let until = moment(clock);
    let waiter = &raw const waiter;
    wait(-1, || unsafe {
        libc::syscall(libc::SYS_futex_waitv, waiter, 1_i64, 0_i64, &raw const until, c_long::from(clock))
    });
}

/// A context of asynchronous I/O in which nothing is asked for.
fn aio() -> c_long {
    let mut context: c_long = 0;
    assert_eq!(unsafe { libc::syscall(libc::SYS_io_setup, 1, &raw mut context) }, 0);
    context
}

fn io_getevents(number: c_long) {
    let (mut event, context, timeout) = ([0_u64; 4], aio(), span());
    wait(0, || unsafe {
        libc::syscall(number, context, 1_i64, 1_i64, event.as_mut_ptr(), &raw const timeout, 0_i64)
    });
}

type GetEvents =
    unsafe extern "C" fn(c_long, c_long, c_long, *mut u64, *const timespec, *const libc::sigset_t) -> i32;

/// A library's function, or `None` on a machine without that library.
fn function(library: &std::ffi::CStr, name: &std::ffi::CStr) -> Option<usize> {
    unsafe {
        libc::dlopen(library.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL);
        let address = libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr());
        (!address.is_null()).then(|| address.expose_provenance())
    }
}

/// For a machine without the library whose function it is: a wait that is right.
fn skip() {
    wait(0, || unsafe { libc::nanosleep(&span(), null_mut()) }.into());
}

fn libaio(name: &std::ffi::CStr) {
    let Some(address) = function(c"libaio.so.1", name) else { return skip() };
    let call: GetEvents = unsafe { std::mem::transmute(address) };
    let (mut event, context) = ([0_u64; 4], aio());
    wait(0, || unsafe { call(context, 1, 1, event.as_mut_ptr(), &span(), std::ptr::null()) }.into());
}

/// A ring with nothing in it, or `None` where the kernel has none for us.
fn uring() -> Option<c_long> {
    let mut parameters = [0_u32; 30];
    let ring = unsafe { libc::syscall(libc::SYS_io_uring_setup, 1_i64, parameters.as_mut_ptr()) };
    (ring >= 0).then_some(ring)
}

fn io_uring_enter(flags: c_long, time: timespec) {
    const GETEVENTS: c_long = 1;
    const EXT_ARG: c_long = 8;
    let Some(ring) = uring() else { return skip() };
    let argument = [0_u64, 0, (&raw const time).addr() as u64];
    let flags = GETEVENTS | EXT_ARG | flags;
    wait(-1, || unsafe {
        libc::syscall(libc::SYS_io_uring_enter, ring, 0_i64, 1_i64, flags, argument.as_ptr(), 24_i64)
    });
    assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::ETIME));
}

/// liburing's ring fits into this.
fn liburing(name: &std::ffi::CStr, call: impl FnOnce(usize, *mut u64, *mut u64) -> i32) {
    let mut ring = [0_u64; 64];
    let mut result = 0_u64;
    let (Some(_), Some(init), Some(address)) =
        (uring(), function(c"liburing.so.2", c"io_uring_queue_init"), function(c"liburing.so.2", name))
    else {
        return skip();
    };
    let init: unsafe extern "C" fn(u32, *mut u64, u32) -> i32 = unsafe { std::mem::transmute(init) };
    assert_eq!(unsafe { init(4, ring.as_mut_ptr(), 0) }, 0);
    wait((-libc::ETIME).into(), || call(address, ring.as_mut_ptr(), &raw mut result).into());
}

type WaitOne = unsafe extern "C" fn(*mut u64, *mut u64, *const timespec) -> i32;
type WaitSeveral = unsafe extern "C" fn(*mut u64, *mut u64, u32, *const timespec, *const u64) -> i32;

fn wait_several(address: usize, ring: *mut u64, result: *mut u64) -> i32 {
    unsafe {
        let call: WaitSeveral = std::mem::transmute(address);
        call(ring, result, 1, &span(), std::ptr::null())
    }
}

fn wait_one(address: usize, ring: *mut u64, result: *mut u64) -> i32 {
    unsafe {
        let call: WaitOne = std::mem::transmute(address);
        call(ring, result, &span())
    }
}

fn clock_nanosleep() {
    let time = span();
    wait(0, || unsafe {
        libc::syscall(libc::SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &raw const time, 0_i64)
    });
}

fn pselect6() {
    let mut time = span();
    wait(0, || unsafe {
        libc::syscall(libc::SYS_pselect6, 0_i64, 0_i64, 0_i64, 0_i64, &raw mut time, 0_i64)
    });
    assert_eq!((time.tv_sec, time.tv_nsec), (0, 0), "the kernel tells what remains");
}

fn ppoll() {
    let (mut file, mut time) = (polled(), span());
    wait(0, || unsafe { libc::syscall(libc::SYS_ppoll, &raw mut file, 1_i64, &raw mut time, 0_i64, 8_i64) });
}

#[cfg(target_arch = "x86_64")]
fn older(number: c_long) {
    let (mut file, mut time, mut event) = (polled(), timeval(), zeroed::<libc::epoll_event>());
    wait(0, || unsafe {
        match number {
            libc::SYS_poll => libc::syscall(number, &raw mut file, 1_i64, MILLISECONDS),
            libc::SYS_select => libc::syscall(number, 0_i64, 0_i64, 0_i64, 0_i64, &raw mut time),
            _ => libc::syscall(number, epoll(), &raw mut event, 1_i64, MILLISECONDS),
        }
    });
}

#[cfg(not(target_arch = "x86_64"))]
fn older(_: c_long) {
    _ = (timeval(), zeroed::<libc::epoll_event>());
    skip();
}

fn epoll_pwait(number: c_long, timeout: c_long) {
    let mut event = zeroed::<libc::epoll_event>();
    wait(0, || unsafe { libc::syscall(number, epoll(), &raw mut event, 1_i64, timeout, 0_i64, 8_i64) });
}

/// The numbers of poll, select and epoll_wait on x86-64; other architectures have none.
const OLDER: [c_long; 3] = [7, 23, 232];
#[cfg(target_arch = "x86_64")]
const SYS_IO_PGETEVENTS: c_long = 333;
#[cfg(not(target_arch = "x86_64"))]
const SYS_IO_PGETEVENTS: c_long = 292;
const IO_URING_ABSOLUTE: c_long = 1 << 5;

// SAFETY, for all: objects on the stack that outlive the call, and null where it is allowed.
pub(crate) const WAITS: &[Probe] = &[
    ("syscall futex", || futex(FUTEX_WAIT, span())),
    ("syscall futex until monotonic", || futex(FUTEX_WAIT_BITSET, moment(CLOCK_MONOTONIC))),
    ("syscall futex until realtime", || {
        futex(FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, moment(CLOCK_REALTIME));
    }),
    ("syscall futex lock_pi", futex_lock_pi),
    ("syscall futex_waitv monotonic", || futex_waitv(CLOCK_MONOTONIC)),
    ("syscall futex_waitv realtime", || futex_waitv(CLOCK_REALTIME)),
    ("syscall nanosleep", || {
        let time = span();
        wait(0, || unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0_i64) });
    }),
    ("syscall clock_nanosleep", clock_nanosleep),
    ("syscall pselect6", pselect6),
    ("syscall ppoll", ppoll),
    ("syscall poll", || older(OLDER[0])),
    ("syscall select", || older(OLDER[1])),
    ("syscall epoll_wait", || older(OLDER[2])),
    ("syscall epoll_pwait", || epoll_pwait(libc::SYS_epoll_pwait, MILLISECONDS)),
    ("syscall epoll_pwait2", || {
        let time = span();
        epoll_pwait(libc::SYS_epoll_pwait2, (&raw const time).expose_provenance() as c_long);
    }),
    ("syscall rt_sigtimedwait", || {
        let (signals, time) = (0_u64, span());
        wait(-1, || unsafe {
            let none = null_mut::<u64>();
            libc::syscall(libc::SYS_rt_sigtimedwait, &raw const signals, none, &raw const time, 8_i64)
        });
    }),
    ("syscall io_getevents", || io_getevents(libc::SYS_io_getevents)),
    ("syscall io_pgetevents", || io_getevents(SYS_IO_PGETEVENTS)),
    ("libaio io_getevents", || libaio(c"io_getevents")),
    ("libaio io_pgetevents", || libaio(c"io_pgetevents")),
    ("syscall io_uring_enter", || io_uring_enter(0, span())),
    ("liburing io_uring_wait_cqe_timeout", || liburing(c"io_uring_wait_cqe_timeout", wait_one)),
    ("liburing io_uring_wait_cqes", || liburing(c"io_uring_wait_cqes", wait_several)),
    ("liburing io_uring_submit_and_wait_timeout", || {
        liburing(c"io_uring_submit_and_wait_timeout", wait_several);
    }),
    ("syscall io_uring_enter until", || io_uring_enter(IO_URING_ABSOLUTE, moment(CLOCK_MONOTONIC))),
];
