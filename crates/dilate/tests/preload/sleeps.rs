//! Waits for nothing but time.

use std::ptr::null_mut;
use std::sync::{Condvar, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use libc::{CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_REALTIME, CLOCK_TAI, TIMER_ABSTIME, timespec};

use crate::child::Probe;
use crate::waits::{MILLISECONDS, begin, end, moment, span, wait};

unsafe extern "C" {
    fn __nanosleep(time: *const timespec, remaining: *mut timespec) -> i32;
    fn thrd_sleep(time: *const timespec, remaining: *mut timespec) -> i32;
}

const SPAN: Duration = Duration::from_millis(MILLISECONDS as u64);

fn until(clock: libc::clockid_t) {
    wait(0, || unsafe { libc::clock_nanosleep(clock, TIMER_ABSTIME, &moment(clock), null_mut()) }.into());
}

// SAFETY, for all: times on the stack, and null where it is allowed.
pub(crate) const WAITS: &[Probe] = &[
    ("nanosleep", || wait(0, || unsafe { libc::nanosleep(&span(), null_mut()) }.into())),
    ("__nanosleep", || wait(0, || unsafe { __nanosleep(&span(), null_mut()) }.into())),
    ("clock_nanosleep", || {
        wait(0, || unsafe { libc::clock_nanosleep(CLOCK_MONOTONIC, 0, &span(), null_mut()) }.into())
    }),
    ("clock_nanosleep until realtime", || until(CLOCK_REALTIME)),
    ("clock_nanosleep until monotonic", || until(CLOCK_MONOTONIC)),
    ("clock_nanosleep until boottime", || until(CLOCK_BOOTTIME)),
    ("clock_nanosleep until tai", || until(CLOCK_TAI)),
    ("thrd_sleep", || wait(0, || unsafe { thrd_sleep(&span(), null_mut()) }.into())),
    ("usleep", || wait(0, || unsafe { libc::usleep(MILLISECONDS as u32 * 1_000) }.into())),
    ("one second of sleep", || wait(0, || unsafe { libc::sleep(1) }.into())),
    ("Rust's thread::sleep", || {
        begin();
        thread::sleep(SPAN);
        end();
    }),
    ("Rust's thread::park_timeout", || {
        begin();
        thread::park_timeout(SPAN);
        end();
    }),
    ("Rust's Condvar::wait_timeout", || {
        let (mutex, condition) = (Mutex::new(()), Condvar::new());
        begin();
        let (_guard, result) = condition.wait_timeout(mutex.lock().unwrap(), SPAN).unwrap();
        end();
        assert!(result.timed_out());
    }),
    ("Rust's recv_timeout", || {
        let (_sender, receiver) = mpsc::channel::<()>();
        begin();
        assert!(receiver.recv_timeout(SPAN).is_err());
        end();
    }),
];
