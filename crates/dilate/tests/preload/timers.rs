//! Timers: a signal, or a file that becomes readable.

use std::ptr::null_mut;

use libc::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, SIGALRM, c_int, c_long, clockid_t, itimerspec, timespec,
};

use crate::child::Probe;
use crate::waits::{MILLISECONDS, moment, span, wait, zeroed};

const MICROSECONDS: u32 = MILLISECONDS as u32 * 1_000;

pub(crate) fn in_microseconds(microseconds: i64) -> libc::itimerval {
    let zero = libc::timeval { tv_sec: 0, tv_usec: 0 };
    libc::itimerval { it_interval: zero, it_value: libc::timeval { tv_sec: 0, tv_usec: microseconds } }
}

/// Blocks the signal in this thread and all that it starts; the harness' own thread does not take it either.
fn blocked() -> libc::sigset_t {
    let mut signals = zeroed();
    unsafe {
        libc::sigemptyset(&raw mut signals);
        libc::sigaddset(&raw mut signals, SIGALRM);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const signals, null_mut());
    }
    signals
}

/// From the setting of a timer to its signal.
fn signal(set: impl FnOnce()) {
    // The signal goes to the thread that does not block it, so that the whole process has to: a child of
    // ours.
    unsafe {
        let child = libc::fork();
        if child == 0 {
            let signals = blocked();
            wait(SIGALRM.into(), || {
                set();
                let mut found = 0;
                libc::sigwait(&raw const signals, &raw mut found);
                found.into()
            });
            libc::_exit(0);
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        assert_eq!(status, 0);
    }
}

/// A new timer that sends SIGALRM.
pub(crate) fn timer(clock: clockid_t) -> libc::timer_t {
    let mut timer = null_mut();
    let mut event: libc::sigevent = zeroed();
    (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_SIGNAL, SIGALRM);
    assert_eq!(unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) }, 0);
    timer
}

pub(crate) fn once(value: timespec) -> itimerspec {
    itimerspec { it_interval: timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value }
}

fn timer_until(clock: clockid_t) {
    signal(|| unsafe {
        let new = once(moment(clock));
        assert_eq!(libc::timer_settime(timer(clock), libc::TIMER_ABSTIME, &new, null_mut()), 0);
    });
}

fn file(clock: clockid_t, flags: c_int, value: timespec) {
    let mut expirations = 0_u64;
    unsafe {
        let file = libc::timerfd_create(clock, 0);
        wait(8, || {
            assert_eq!(libc::timerfd_settime(file, flags, &once(value), null_mut()), 0);
            libc::read(file, (&raw mut expirations).cast(), 8) as i64
        });
    }
    assert_eq!(expirations, 1);
}

fn file_until(clock: clockid_t) {
    file(clock, libc::TFD_TIMER_ABSTIME, moment(clock));
}

unsafe extern "C" {
    fn setitimer(kind: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int;
    fn ualarm(value: u32, interval: u32) -> u32;
}

fn syscall_alarm(seconds: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    return unsafe { libc::syscall(libc::SYS_alarm, seconds) } as u32;
    #[cfg(not(target_arch = "x86_64"))]
    return unsafe { libc::alarm(seconds) };
}

fn zero(status: c_long) {
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

fn syscall_timer() {
    let (mut timer, new): (c_int, _) = (0, once(span()));
    unsafe {
        zero(libc::syscall(libc::SYS_timer_create, CLOCK_MONOTONIC, 0, &raw mut timer));
        zero(libc::syscall(libc::SYS_timer_settime, timer, 0, &raw const new, 0));
    }
}

// SAFETY, for all: objects on the stack that outlive the call, and null where it is allowed. After fork(2),
// the child calls functions that need none of the parent's locks, but for printing, which no other thread
// does.
pub(crate) const WAITS: &[Probe] = &[
    ("setitimer", || {
        signal(|| zero(unsafe { setitimer(0, &in_microseconds(MICROSECONDS.into()), null_mut()) }.into()));
    }),
    ("syscall setitimer", || {
        signal(|| {
            let new = in_microseconds(MICROSECONDS.into());
            zero(unsafe { libc::syscall(libc::SYS_setitimer, 0, &raw const new, 0) });
        });
    }),
    ("one second of alarm", || signal(|| assert_eq!(unsafe { libc::alarm(1) }, 0))),
    ("one second of syscall alarm", || signal(|| assert_eq!(syscall_alarm(1), 0))),
    ("ualarm", || signal(|| assert_eq!(unsafe { ualarm(MICROSECONDS, 0) }, 0))),
    ("timer_settime", || {
        signal(|| unsafe {
            zero(libc::timer_settime(timer(CLOCK_MONOTONIC), 0, &once(span()), null_mut()).into());
        });
    }),
    ("timer_settime until realtime", || timer_until(CLOCK_REALTIME)),
    ("timer_settime until monotonic", || timer_until(CLOCK_MONOTONIC)),
    ("syscall timer_settime", || signal(syscall_timer)),
    ("timerfd_settime", || file(CLOCK_MONOTONIC, 0, span())),
    ("timerfd_settime until realtime", || file_until(CLOCK_REALTIME)),
    ("timerfd_settime until monotonic", || file_until(CLOCK_MONOTONIC)),
    ("timerfd_settime until boottime", || file_until(CLOCK_BOOTTIME)),
    ("syscall timerfd_settime", || unsafe {
        let file = libc::timerfd_create(CLOCK_MONOTONIC, 0);
        let (new, mut expirations) = (once(span()), 0_u64);
        wait(8, || {
            zero(libc::syscall(libc::SYS_timerfd_settime, file, 0, &raw const new, 0));
            libc::read(file, (&raw mut expirations).cast(), 8) as i64
        });
    }),
];
