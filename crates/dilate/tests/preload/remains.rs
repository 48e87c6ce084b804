//! What remains of a wait is told in dilated time, and zero and endless times stay what they are.

use std::ptr::null_mut;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use libc::{CLOCK_MONOTONIC, EINTR, SIGALRM, c_int, timespec};

use crate::child::Probe;
use crate::files::{polled, timeval};
use crate::library::now_ns;
use crate::timers::{in_microseconds, once, timer};
use crate::waits::zeroed;

unsafe extern "C" {
    fn setitimer(kind: c_int, new: *const libc::itimerval, old: *mut libc::itimerval) -> c_int;
    fn getitimer(kind: c_int, now: *mut libc::itimerval) -> c_int;
    fn thrd_sleep(time: *const timespec, remaining: *mut timespec) -> c_int;
}

const LONG: timespec = timespec { tv_sec: 100, tv_nsec: 0 };

/// A signal to this thread after 20 ms, which interrupts it and does nothing else.
fn interrupt() {
    extern "C" fn nothing(_: c_int) {}
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = nothing as extern "C" fn(c_int) as usize;
        libc::sigaction(SIGALRM, &raw const action, null_mut());
        let thread = libc::pthread_self();
        std::thread::spawn(move || {
            libc::usleep(20_000);
            libc::pthread_kill(thread, SIGALRM);
        });
    }
}

/// 100 seconds or a moment less: neither 25 nor 400.
fn nearly_all(time: timespec) {
    assert!((95..=100).contains(&time.tv_sec), "{} s", time.tv_sec);
}

fn interrupted(sleep: impl FnOnce(*const timespec, *mut timespec) -> c_int, expect: c_int) {
    let mut remaining = zeroed();
    interrupt();
    assert_eq!(sleep(&LONG, &raw mut remaining), expect);
    nearly_all(remaining);
}

fn select() {
    let mut timeout = libc::timeval { tv_sec: 100, tv_usec: 0 };
    interrupt();
    let result = unsafe { libc::select(0, null_mut(), null_mut(), null_mut(), &raw mut timeout) };
    assert_eq!(result, -1);
    nearly_all(timespec { tv_sec: timeout.tv_sec, tv_nsec: 0 });
}

fn timers() {
    let long = libc::timeval { tv_sec: 100, tv_usec: 0 };
    let new = libc::itimerval { it_interval: long, it_value: long };
    unsafe {
        let mut told: libc::itimerval = zeroed();
        assert_eq!(setitimer(0, &new, null_mut()), 0);
        assert_eq!(getitimer(0, &raw mut told), 0);
        nearly_all(timespec { tv_sec: told.it_value.tv_sec, tv_nsec: 0 });
        assert_eq!(told.it_interval.tv_sec, 100);
        assert_eq!(setitimer(0, &in_microseconds(0), &raw mut told), 0);
        nearly_all(timespec { tv_sec: told.it_value.tv_sec, tv_nsec: 0 });
        assert_eq!(libc::alarm(100), 0);
        assert_eq!(libc::alarm(0), 100, "rounded to seconds, as libc does");
        let timer = timer(CLOCK_MONOTONIC);
        let mut told = zeroed();
        assert_eq!(libc::timer_settime(timer, 0, &once(LONG), null_mut()), 0);
        assert_eq!(libc::timer_gettime(timer, &raw mut told), 0);
        nearly_all(told.it_value);
        assert_eq!(libc::timer_settime(timer, 0, &once(zeroed()), &raw mut told), 0);
        nearly_all(told.it_value);
        let file = libc::timerfd_create(CLOCK_MONOTONIC, 0);
        assert_eq!(libc::timerfd_settime(file, 0, &once(LONG), null_mut()), 0);
        assert_eq!(libc::timerfd_gettime(file, &raw mut told), 0);
        nearly_all(told.it_value);
        assert_eq!(libc::timerfd_settime(file, 0, &once(zeroed()), &raw mut told), 0);
        nearly_all(told.it_value);
    }
}

/// A timer of a processor's clock counts what the processor does, which is not dilated.
fn processor_timer() {
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    extern "C" fn over(_: c_int) {
        IS_OVER.store(true, Relaxed);
    }
    let own = timespec { tv_sec: 0, tv_nsec: 20_000_000 };
    let timer = timer(libc::CLOCK_PROCESS_CPUTIME_ID);
    unsafe {
        let mut action: libc::sigaction = zeroed();
        action.sa_sigaction = over as extern "C" fn(c_int) as usize;
        libc::sigaction(SIGALRM, &raw const action, null_mut());
        assert_eq!(libc::timer_settime(timer, 0, &once(own), null_mut()), 0);
    }
    let start = now_ns(libc::CLOCK_PROCESS_CPUTIME_ID);
    while !IS_OVER.load(Relaxed) {
        std::hint::spin_loop();
    }
    let took = now_ns(libc::CLOCK_PROCESS_CPUTIME_ID) - start;
    assert!((15_000_000..50_000_000).contains(&took), "{took}");
}

fn socket() {
    let socket = unsafe { libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0) };
    let (mut told, mut size) = (timeval(), size_of::<libc::timeval>() as u32);
    let value = libc::timeval { tv_sec: 7, tv_usec: 0 };
    unsafe {
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            let level = libc::SOL_SOCKET;
            assert_eq!(libc::setsockopt(socket, level, option, (&raw const value).cast(), size), 0);
            assert_eq!(libc::getsockopt(socket, level, option, (&raw mut told).cast(), &raw mut size), 0);
            assert_eq!((told.tv_sec, told.tv_usec), (7, 0));
        }
    }
}

/// Zero does not wait, and what is not a time is refused as ever.
fn zero() {
    let start = now_ns(CLOCK_MONOTONIC);
    let none = timespec { tv_sec: 0, tv_nsec: 0 };
    let wrong = timespec { tv_sec: 0, tv_nsec: 1_000_000_000 };
    unsafe {
        assert_eq!(libc::poll(&mut polled(), 1, 0), 0);
        assert_eq!(libc::ppoll(&mut polled(), 1, &none, std::ptr::null()), 0);
        assert_eq!(libc::nanosleep(&none, null_mut()), 0);
        assert_eq!(libc::nanosleep(&wrong, null_mut()), -1);
        assert_eq!(std::io::Error::last_os_error().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(libc::clock_nanosleep(CLOCK_MONOTONIC, 0, &wrong, null_mut()), libc::EINVAL);
    }
    assert!(now_ns(CLOCK_MONOTONIC) - start < 100_000_000);
}

/// Without end: only the signal ends it, and the longest timeouts do not become short ones.
fn endless() {
    unsafe {
        interrupt();
        assert_eq!(libc::poll(&mut polled(), 1, -1), -1);
        interrupt();
        assert_eq!(libc::ppoll(&mut polled(), 1, std::ptr::null(), std::ptr::null()), -1);
        interrupt();
        assert_eq!(libc::poll(&mut polled(), 1, c_int::MAX), -1);
        interrupt();
        let longest = timespec { tv_sec: i64::MAX, tv_nsec: 999_999_999 };
        assert_eq!(libc::nanosleep(&longest, null_mut()), -1);
        interrupt();
        let error = libc::clock_nanosleep(CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &longest, null_mut());
        assert_eq!(error, EINTR);
    }
}

/// libc tells whole seconds; of 100 they are 99.
fn sleep() {
    interrupt();
    assert_eq!(unsafe { libc::sleep(100) }, 99);
}

// SAFETY, for all: objects on the stack that outlive the call, and null where it is allowed.
pub(crate) const CHECKS: &[Probe] = &[
    ("nanosleep remains", || interrupted(|time, left| unsafe { libc::nanosleep(time, left) }, -1)),
    ("nanosleep remains in its own argument", || {
        let mut time = LONG;
        interrupt();
        let same = &raw mut time;
        assert_eq!(unsafe { libc::nanosleep(same, same) }, -1);
        nearly_all(time);
    }),
    ("clock_nanosleep remains", || {
        interrupted(|time, left| unsafe { libc::clock_nanosleep(CLOCK_MONOTONIC, 0, time, left) }, EINTR);
    }),
    ("thrd_sleep remains", || interrupted(|time, left| unsafe { thrd_sleep(time, left) }, -1)),
    ("sleep remains", sleep),
    ("select remains", select),
    ("timers remain", timers),
    ("processor timer", processor_timer),
    ("socket timeouts told", socket),
    ("zero", zero),
    ("endless", endless),
];
