//! Waits of threads for each other: condition variables, locks, semaphores, the end of a thread.
//!
//! All of them wait until a moment of a clock, so that each moment is mapped back to the clock it is of.

use std::ffi::{c_int, c_void};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU8, AtomicU32};

use crate::dilation::Clock;
use crate::next::{self, Opaque};
use crate::time::{Pointer, Timespec, real};

/// The byte of a condition variable that has the bit for its clock, times 256, plus that bit. Zero: unknown.
static CLOCK_BIT: AtomicU32 = AtomicU32::new(0);
const CONDITION_BYTES: usize = 48;

/// Finds the bit by which glibc marks a condition variable of CLOCK_MONOTONIC (pthread_condattr_setclock).
///
/// Its place differs between versions of glibc, so it is not written down here: two condition variables that
/// differ only in their clocks show it.
pub(crate) fn learn_clock_bit() {
    #[repr(C, align(16))]
    struct Condition([u8; CONDITION_BYTES]);
    unsafe extern "C" {
        fn pthread_condattr_init(attributes: *mut u64) -> c_int;
        fn pthread_condattr_setclock(attributes: *mut u64, clock: c_int) -> c_int;
        fn pthread_cond_init(condition: *mut c_void, attributes: *const u64) -> c_int;
    }
    let [mut realtime, mut monotonic] = [const { Condition([0; CONDITION_BYTES]) }; 2];
    let mut attributes = 0_u64;
    // SAFETY: attributes have 4 bytes, condition variables 48, on both architectures; none needs to be
    // destroyed in glibc.
    unsafe {
        pthread_condattr_init(&raw mut attributes);
        pthread_cond_init((&raw mut realtime).cast(), ptr::null());
        pthread_condattr_setclock(&raw mut attributes, 1);
        pthread_cond_init((&raw mut monotonic).cast(), &raw const attributes);
    }
    let bytes = realtime.0.iter().zip(&monotonic.0).map(|(one, other)| one ^ other);
    if let Some((at, bit)) = bytes.enumerate().find(|(_, difference)| *difference != 0) {
        CLOCK_BIT.store((at as u32) << 8 | u32::from(bit), Relaxed);
    }
}

fn clock_of(condition: Opaque, until: Pointer<Timespec>) -> Clock {
    if CLOCK_BIT.load(Relaxed) == 0 {
        learn_clock_bit();
    }
    let place = CLOCK_BIT.load(Relaxed);
    if place == 0 || condition.is_null() {
        return until.map_or(Clock::Realtime, |until| Clock::of_moment(until.get()));
    }
    // SAFETY: inside the condition variable that the program waits for; others change the byte at the same
    // time, and so it is read as one that changes.
    let byte = unsafe { &*condition.cast::<AtomicU8>().add((place >> 8) as usize) };
    if byte.load(Relaxed) & place as u8 == 0 { Clock::Realtime } else { Clock::Monotonic }
}

/// The wait behind lock timeouts, background threads and most timers of MySQL and MariaDB.
#[unsafe(no_mangle)]
extern "C" fn pthread_cond_timedwait(condition: Opaque, mutex: Opaque, until: Pointer<Timespec>) -> c_int {
    next::pthread_cond_timedwait(condition, mutex, real(clock_of(condition, until), until).as_ref())
}

/// C++'s `std::condition_variable::wait_for`, which names its clock.
#[unsafe(no_mangle)]
extern "C" fn pthread_cond_clockwait(
    condition: Opaque,
    mutex: Opaque,
    clock: c_int,
    until: Pointer<Timespec>,
) -> c_int {
    next::pthread_cond_clockwait(condition, mutex, clock, real_of(clock, until).as_ref())
}

/// C11's condition variable.
#[unsafe(no_mangle)]
extern "C" fn cnd_timedwait(condition: Opaque, mutex: Opaque, until: Pointer<Timespec>) -> c_int {
    next::cnd_timedwait(condition, mutex, real(Clock::Realtime, until).as_ref())
}

/// Libc refuses other clocks than two; then the moment does not matter.
fn real_of(clock: c_int, until: Pointer<Timespec>) -> Option<std::cell::Cell<Timespec>> {
    real(Clock::of(clock).unwrap_or(Clock::Realtime), until)
}

/// Functions that wait until a moment of CLOCK_REALTIME.
macro_rules! until_realtime {
    ($($(#[$why:meta])* fn $name:ident($($argument:ident: $kind:ty),*; until);)*) => {
        $($(#[$why])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind,)* until: Pointer<Timespec>) -> c_int {
            next::$name($($argument,)* real(Clock::Realtime, until).as_ref())
        })*
    };
}

/// Functions that wait until a moment of the clock that they are given.
macro_rules! until_clock {
    ($($(#[$why:meta])* fn $name:ident($($argument:ident: $kind:ty),*; clock, until);)*) => {
        $($(#[$why])*
        #[unsafe(no_mangle)]
        extern "C" fn $name($($argument: $kind,)* clock: c_int, until: Pointer<Timespec>) -> c_int {
            next::$name($($argument,)* clock, real_of(clock, until).as_ref())
        })*
    };
}

until_realtime! {
    /// A lock that is given up.
    fn pthread_mutex_timedlock(mutex: Opaque; until);
    /// C11's lock that is given up.
    fn mtx_timedlock(mutex: Opaque; until);
    /// A shared lock that is given up.
    fn pthread_rwlock_timedrdlock(lock: Opaque; until);
    /// An exclusive lock that is given up.
    fn pthread_rwlock_timedwrlock(lock: Opaque; until);
    /// A semaphore of POSIX, as PostgreSQL's processes use to wait for a lock.
    fn sem_timedwait(semaphore: Opaque; until);
    /// The end of a thread, as a server waits for at its shutdown.
    fn pthread_timedjoin_np(thread: usize, result: Opaque; until);
}

until_clock! {
    /// C++'s `std::timed_mutex::try_lock_for`.
    fn pthread_mutex_clocklock(mutex: Opaque; clock, until);
    /// C++'s `std::shared_timed_mutex::try_lock_shared_for`.
    fn pthread_rwlock_clockrdlock(lock: Opaque; clock, until);
    /// C++'s `std::shared_timed_mutex::try_lock_for`.
    fn pthread_rwlock_clockwrlock(lock: Opaque; clock, until);
    /// C++'s `std::counting_semaphore::try_acquire_for`.
    fn sem_clockwait(semaphore: Opaque; clock, until);
    /// The end of a thread on another clock.
    fn pthread_clockjoin_np(thread: usize, result: Opaque; clock, until);
}
