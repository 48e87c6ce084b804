//! Waits for other threads. Every lock is held, no condition is signalled, and the thread does not end.

use std::ptr::null_mut;

use libc::{CLOCK_MONOTONIC, CLOCK_REALTIME, ETIMEDOUT, c_int, c_void, clockid_t, timespec};

use crate::child::Probe;
use crate::waits::{MILLISECONDS, moment, wait, zeroed};

type Mutex = libc::pthread_mutex_t;
type Condition = libc::pthread_cond_t;
type Lock = libc::pthread_rwlock_t;
type Until = *const timespec;

unsafe extern "C" {
    fn pthread_cond_clockwait(at: *mut Condition, with: *mut Mutex, clock: clockid_t, until: Until) -> c_int;
    fn pthread_mutex_clocklock(mutex: *mut Mutex, clock: clockid_t, until: Until) -> c_int;
    fn pthread_rwlock_timedrdlock(lock: *mut Lock, until: Until) -> c_int;
    fn pthread_rwlock_timedwrlock(lock: *mut Lock, until: Until) -> c_int;
    fn pthread_rwlock_clockrdlock(lock: *mut Lock, clock: clockid_t, until: Until) -> c_int;
    fn pthread_rwlock_clockwrlock(lock: *mut Lock, clock: clockid_t, until: Until) -> c_int;
    fn pthread_timedjoin_np(thread: libc::pthread_t, result: *mut *mut c_void, until: Until) -> c_int;
    fn pthread_clockjoin_np(
        thread: libc::pthread_t,
        result: *mut *mut c_void,
        clock: clockid_t,
        until: Until,
    ) -> c_int;
    fn sem_clockwait(semaphore: *mut libc::sem_t, clock: clockid_t, until: Until) -> c_int;
    fn mtx_init(mutex: *mut [u64; 8], kind: c_int) -> c_int;
    fn mtx_lock(mutex: *mut [u64; 8]) -> c_int;
    fn mtx_timedlock(mutex: *mut [u64; 8], until: Until) -> c_int;
    fn cnd_init(condition: *mut [u64; 8]) -> c_int;
    fn cnd_timedwait(condition: *mut [u64; 8], mutex: *mut [u64; 8], until: Until) -> c_int;
}

/// `thrd_timedout` and `mtx_timed` of C11 in glibc.
const C11_TIMEOUT: i64 = 4;
const C11_TIMED: c_int = 2;

fn locked() -> Mutex {
    let mut mutex = libc::PTHREAD_MUTEX_INITIALIZER;
    assert_eq!(unsafe { libc::pthread_mutex_lock(&raw mut mutex) }, 0);
    mutex
}

fn condition(clock: Option<clockid_t>) {
    let (mut condition, mut mutex) = (libc::PTHREAD_COND_INITIALIZER, locked());
    if let Some(clock) = clock {
        let mut attributes = zeroed();
        unsafe {
            libc::pthread_condattr_init(&raw mut attributes);
            libc::pthread_condattr_setclock(&raw mut attributes, clock);
            libc::pthread_cond_init(&raw mut condition, &raw const attributes);
        }
    }
    let until = moment(clock.unwrap_or(CLOCK_REALTIME));
    wait(ETIMEDOUT.into(), || {
        unsafe { libc::pthread_cond_timedwait(&raw mut condition, &raw mut mutex, &until) }.into()
    });
}

fn clockwait(clock: clockid_t) {
    let (mut condition, mut mutex) = (libc::PTHREAD_COND_INITIALIZER, locked());
    wait(ETIMEDOUT.into(), || {
        unsafe { pthread_cond_clockwait(&raw mut condition, &raw mut mutex, clock, &moment(clock)) }.into()
    });
}

fn rwlock(call: impl FnOnce(*mut Lock) -> c_int + Send) {
    let mut lock = libc::PTHREAD_RWLOCK_INITIALIZER;
    assert_eq!(unsafe { libc::pthread_rwlock_wrlock(&raw mut lock) }, 0);
    let lock = (&raw mut lock).expose_provenance();
    // Whoever holds a lock and asks for it again is refused at once.
    std::thread::scope(|scope| {
        scope.spawn(|| {
            wait(ETIMEDOUT.into(), || call(std::ptr::with_exposed_provenance_mut(lock)).into());
        });
    });
}

fn semaphore(call: impl FnOnce(*mut libc::sem_t) -> c_int) {
    let mut semaphore = zeroed();
    assert_eq!(unsafe { libc::sem_init(&raw mut semaphore, 0, 0) }, 0);
    wait(-1, || call(&raw mut semaphore).into());
}

fn join(call: impl FnOnce(libc::pthread_t) -> c_int) {
    extern "C" fn sleep(_: *mut c_void) -> *mut c_void {
        loop {
            unsafe { libc::pause() };
        }
    }
    let mut thread = zeroed();
    assert_eq!(unsafe { libc::pthread_create(&raw mut thread, std::ptr::null(), sleep, null_mut()) }, 0);
    wait(ETIMEDOUT.into(), || call(thread).into());
}

fn c11(is_condition: bool) {
    let (mut mutex, mut condition) = ([0; 8], [0; 8]);
    unsafe {
        assert_eq!(mtx_init(&raw mut mutex, C11_TIMED), 0);
        assert_eq!(mtx_lock(&raw mut mutex), 0);
        assert_eq!(cnd_init(&raw mut condition), 0);
        let until = moment(CLOCK_REALTIME);
        wait(C11_TIMEOUT, || match is_condition {
            true => cnd_timedwait(&raw mut condition, &raw mut mutex, &until).into(),
            false => mtx_timedlock(&raw mut mutex, &until).into(),
        });
    }
}

fn join_on(clock: clockid_t) {
    join(|thread| unsafe { pthread_clockjoin_np(thread, null_mut(), clock, &moment(clock)) });
}

/// A thread that is cancelled in a wait unwinds through the library.
fn cancelled() {
    extern "C" fn sleep(_: *mut c_void) -> *mut c_void {
        let hour = timespec { tv_sec: 3_600, tv_nsec: 0 };
        unsafe { libc::nanosleep(&hour, null_mut()) };
        null_mut()
    }
    let (mut thread, mut result) = (zeroed(), null_mut());
    unsafe {
        libc::pthread_create(&raw mut thread, std::ptr::null(), sleep, null_mut());
        wait(0, || {
            libc::usleep(MILLISECONDS as u32 * 1_000);
            libc::pthread_cancel(thread);
            libc::pthread_join(thread, &raw mut result).into()
        });
    }
    assert_eq!(result.addr(), usize::MAX, "PTHREAD_CANCELED");
}

// SAFETY, for all: objects on the stack that outlive the call, and null where it is allowed.
pub(crate) const WAITS: &[Probe] = &[
    ("pthread_cond_timedwait", || condition(None)),
    ("pthread_cond_timedwait realtime", || condition(Some(CLOCK_REALTIME))),
    ("pthread_cond_timedwait monotonic", || condition(Some(CLOCK_MONOTONIC))),
    ("pthread_cond_clockwait realtime", || clockwait(CLOCK_REALTIME)),
    ("pthread_cond_clockwait monotonic", || clockwait(CLOCK_MONOTONIC)),
    ("cnd_timedwait", || c11(true)),
    ("mtx_timedlock", || c11(false)),
    ("pthread_mutex_timedlock", || {
        let mut mutex = locked();
        wait(ETIMEDOUT.into(), || {
            unsafe { libc::pthread_mutex_timedlock(&raw mut mutex, &moment(CLOCK_REALTIME)) }.into()
        });
    }),
    ("pthread_mutex_clocklock", || {
        let mut mutex = locked();
        wait(ETIMEDOUT.into(), || {
            let until = moment(CLOCK_MONOTONIC);
            unsafe { pthread_mutex_clocklock(&raw mut mutex, CLOCK_MONOTONIC, &until) }.into()
        });
    }),
    ("pthread_rwlock_timedrdlock", || {
        rwlock(|lock| unsafe { pthread_rwlock_timedrdlock(lock, &moment(CLOCK_REALTIME)) });
    }),
    ("pthread_rwlock_timedwrlock", || {
        rwlock(|lock| unsafe { pthread_rwlock_timedwrlock(lock, &moment(CLOCK_REALTIME)) });
    }),
    ("pthread_rwlock_clockrdlock", || {
        rwlock(|lock| unsafe { pthread_rwlock_clockrdlock(lock, CLOCK_MONOTONIC, &moment(CLOCK_MONOTONIC)) });
    }),
    ("pthread_rwlock_clockwrlock", || {
        rwlock(|lock| unsafe { pthread_rwlock_clockwrlock(lock, CLOCK_MONOTONIC, &moment(CLOCK_MONOTONIC)) });
    }),
    ("sem_timedwait", || {
        semaphore(|semaphore| unsafe { libc::sem_timedwait(semaphore, &moment(CLOCK_REALTIME)) });
    }),
    ("sem_clockwait", || {
        semaphore(|semaphore| unsafe { sem_clockwait(semaphore, CLOCK_MONOTONIC, &moment(CLOCK_MONOTONIC)) });
    }),
    ("pthread_timedjoin_np", || {
        join(|thread| unsafe { pthread_timedjoin_np(thread, null_mut(), &moment(CLOCK_REALTIME)) });
    }),
    ("pthread_clockjoin_np", || join_on(CLOCK_MONOTONIC)),
    ("pthread_cancel", cancelled),
];
