//! The functions that ours take the place of: those of libc that come next in the order of the libraries.
//!
//! Looked up once at the start. A function that is called before, by another library's start, is looked up
//! then; a lookup that succeeds neither allocates nor locks anything that a memory allocator would.

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::AtomicPtr;
use std::sync::atomic::Ordering::Relaxed;

use crate::time::{Alarm, Pointer, Timespec, Timeval};

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
    fn write(file: c_int, bytes: *const c_void, length: usize) -> isize;
    fn _exit(status: c_int) -> !;
}

const RTLD_NEXT: *mut c_void = ptr::without_provenance_mut(usize::MAX);

/// On x86-64 these names have an older function too, with other types, which a lookup by name alone finds.
#[cfg(target_arch = "x86_64")]
const NOT_OLDER: [(&CStr, &CStr); 4] = [
    (c"pthread_cond_timedwait", c"GLIBC_2.3.2"),
    (c"timer_create", c"GLIBC_2.3.3"),
    (c"timer_gettime", c"GLIBC_2.3.3"),
    (c"timer_settime", c"GLIBC_2.3.3"),
];
#[cfg(not(target_arch = "x86_64"))]
const NOT_OLDER: [(&CStr, &CStr); 0] = [];

#[derive(Debug)]
struct Next {
    name: &'static CStr,
    address: AtomicPtr<c_void>,
}

impl Next {
    const fn new(name: &'static CStr) -> Next {
        Next { name, address: AtomicPtr::new(ptr::null_mut()) }
    }

    #[inline]
    fn address(&self) -> *mut c_void {
        let address = self.address.load(Relaxed);
        if address.is_null() { self.find_or_give_up() } else { address }
    }

    #[cold]
    fn find_or_give_up(&self) -> *mut c_void {
        let address = self.find();
        if address.is_null() {
            give_up(
                c"the time dilation library finds no function of this name in the program's libraries",
                self.name,
            );
        }
        address
    }

    fn find(&self) -> *mut c_void {
        let version = NOT_OLDER.iter().find(|(name, _)| *name == self.name).map(|(_, version)| version);
        // SAFETY: both texts end with zero.
        let address = unsafe {
            match version {
                Some(version) => dlvsym(RTLD_NEXT, self.name.as_ptr(), version.as_ptr()),
                None => dlsym(RTLD_NEXT, self.name.as_ptr()),
            }
        };
        self.address.store(address, Relaxed);
        address
    }
}

/// Declares functions of C, each with its place for the address, and if named a list of the places.
macro_rules! functions {
    (@list; $($name:ident)*) => {};
    (@list $list:ident; $($name:ident)*) => {
        static $list: &[&Next] = &[$(&addresses::$name),*];
    };
    ($(in $list:ident;)? $(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) -> $result:ty;)*) => {
        #[expect(non_upper_case_globals, reason = "named as the functions are")]
        mod addresses {
            use super::Next;
            $(pub(super) static $name: Next = {
                let name = concat!(stringify!($name), "\0");
                match std::ffi::CStr::from_bytes_with_nul(name.as_bytes()) {
                    Ok(name) => Next::new(name),
                    Err(_) => unreachable!(),
                }
            };)*
        }

        functions!(@list $($list)?; $($name)*);

        $(#[inline]
        pub(crate) fn $name($($argument: $kind),*) -> $result {
            type Function = unsafe extern "C" fn($($kind),*) -> $result;
            // SAFETY: libc's function of this name has this type. The arguments are those that the program
            // gave to our function of the same name, or times that outlive the call.
            unsafe { mem::transmute::<*mut c_void, Function>(addresses::$name.address())($($argument),*) }
        })*
    };
}

/// Arguments that are passed on as they are.
pub(crate) type Opaque = *mut c_void;

// A thread that is cancelled in one of them unwinds through ours, which have no destructors. "C-unwind" would
// be the word for it, but without unwinding in Rust (`panic = abort`) it ends the process there.
functions! {
    in ALL;
    fn clock_gettime(clock: c_int, now: Pointer<Timespec>) -> c_int;
    fn gettimeofday(now: Pointer<Timeval>, zone: Opaque) -> c_int;
    fn time(now: Pointer<i64>) -> i64;
    fn timespec_get(now: Pointer<Timespec>, base: c_int) -> c_int;
    fn times(processor: Opaque) -> c_long;

    fn nanosleep(time: Pointer<Timespec>, remaining: Pointer<Timespec>) -> c_int;
    fn clock_nanosleep(
        clock: c_int,
        flags: c_int,
        time: Pointer<Timespec>,
        remaining: Pointer<Timespec>,
    ) -> c_int;
    fn thrd_sleep(time: Pointer<Timespec>, remaining: Pointer<Timespec>) -> c_int;

    fn poll(files: Opaque, count: u64, timeout: c_int) -> c_int;
    fn __poll_chk(files: Opaque, count: u64, timeout: c_int, size: usize) -> c_int;
    fn ppoll(files: Opaque, count: u64, timeout: Pointer<Timespec>, signals: Opaque) -> c_int;
    fn __ppoll_chk(
        files: Opaque,
        count: u64,
        timeout: Pointer<Timespec>,
        signals: Opaque,
        size: usize,
    ) -> c_int;
    fn select(count: c_int, read: Opaque, write: Opaque, except: Opaque, timeout: Pointer<Timeval>) -> c_int;
    fn pselect(
        count: c_int,
        read: Opaque,
        write: Opaque,
        except: Opaque,
        timeout: Pointer<Timespec>,
        signals: Opaque,
    ) -> c_int;
    fn epoll_wait(epoll: c_int, events: Opaque, most: c_int, timeout: c_int) -> c_int;
    fn epoll_pwait(epoll: c_int, events: Opaque, most: c_int, timeout: c_int, signals: Opaque) -> c_int;
    fn epoll_pwait2(
        epoll: c_int,
        events: Opaque,
        most: c_int,
        timeout: Pointer<Timespec>,
        signals: Opaque,
    ) -> c_int;

    fn pthread_cond_timedwait(condition: Opaque, mutex: Opaque, until: Pointer<Timespec>) -> c_int;
    fn pthread_cond_clockwait(
        condition: Opaque,
        mutex: Opaque,
        clock: c_int,
        until: Pointer<Timespec>,
    ) -> c_int;
    fn pthread_mutex_timedlock(mutex: Opaque, until: Pointer<Timespec>) -> c_int;
    fn pthread_mutex_clocklock(mutex: Opaque, clock: c_int, until: Pointer<Timespec>) -> c_int;
    fn pthread_rwlock_timedrdlock(lock: Opaque, until: Pointer<Timespec>) -> c_int;
    fn pthread_rwlock_timedwrlock(lock: Opaque, until: Pointer<Timespec>) -> c_int;
    fn pthread_rwlock_clockrdlock(lock: Opaque, clock: c_int, until: Pointer<Timespec>) -> c_int;
    fn pthread_rwlock_clockwrlock(lock: Opaque, clock: c_int, until: Pointer<Timespec>) -> c_int;
    fn pthread_timedjoin_np(thread: usize, result: Opaque, until: Pointer<Timespec>) -> c_int;
    fn pthread_clockjoin_np(thread: usize, result: Opaque, clock: c_int, until: Pointer<Timespec>) -> c_int;
    fn sem_timedwait(semaphore: Opaque, until: Pointer<Timespec>) -> c_int;
    fn sem_clockwait(semaphore: Opaque, clock: c_int, until: Pointer<Timespec>) -> c_int;
    fn cnd_timedwait(condition: Opaque, mutex: Opaque, until: Pointer<Timespec>) -> c_int;
    fn mtx_timedlock(mutex: Opaque, until: Pointer<Timespec>) -> c_int;

    fn getitimer(kind: c_int, now: Pointer<Alarm<Timeval>>) -> c_int;
    fn setitimer(kind: c_int, new: Pointer<Alarm<Timeval>>, old: Pointer<Alarm<Timeval>>) -> c_int;
    fn timer_create(clock: c_int, event: Opaque, timer: Pointer<usize>) -> c_int;
    fn timer_gettime(timer: usize, now: Pointer<Alarm<Timespec>>) -> c_int;
    fn timer_settime(
        timer: usize,
        flags: c_int,
        new: Pointer<Alarm<Timespec>>,
        old: Pointer<Alarm<Timespec>>,
    ) -> c_int;
    fn timerfd_gettime(file: c_int, now: Pointer<Alarm<Timespec>>) -> c_int;
    fn timerfd_settime(
        file: c_int,
        flags: c_int,
        new: Pointer<Alarm<Timespec>>,
        old: Pointer<Alarm<Timespec>>,
    ) -> c_int;

    fn sigtimedwait(signals: Opaque, found: Opaque, timeout: Pointer<Timespec>) -> c_int;
    fn semtimedop(set: c_int, operations: Opaque, count: usize, timeout: Pointer<Timespec>) -> c_int;
    fn mq_timedreceive(
        queue: c_int,
        bytes: Opaque,
        size: usize,
        priority: Opaque,
        until: Pointer<Timespec>,
    ) -> isize;
    fn mq_timedsend(
        queue: c_int,
        bytes: Opaque,
        size: usize,
        priority: c_uint,
        until: Pointer<Timespec>,
    ) -> c_int;
    fn aio_suspend(requests: Opaque, count: c_int, timeout: Pointer<Timespec>) -> c_int;
    fn recvmmsg(
        socket: c_int,
        messages: Opaque,
        count: c_uint,
        flags: c_int,
        timeout: Pointer<Timespec>,
    ) -> c_int;

    fn getsockopt(socket: c_int, level: c_int, name: c_int, value: Opaque, size: Pointer<u32>) -> c_int;
    fn setsockopt(socket: c_int, level: c_int, name: c_int, value: Opaque, size: u32) -> c_int;

    fn syscall(number: c_long, a: c_long, b: c_long, c: c_long, d: c_long, e: c_long, f: c_long) -> c_long;
}

/// liburing's are found when they are called: most programs do not load it, and a lookup that fails
/// allocates.
mod uring {
    use super::*;
    functions! {
        fn io_uring_submit_and_wait_timeout(
            ring: Opaque,
            result: Opaque,
            count: c_uint,
            timeout: Pointer<Timespec>,
            signals: Opaque,
        ) -> c_int;
        fn io_uring_wait_cqes(
            ring: Opaque,
            result: Opaque,
            count: c_uint,
            timeout: Pointer<Timespec>,
            signals: Opaque,
        ) -> c_int;
    }
}
pub(crate) use uring::{io_uring_submit_and_wait_timeout, io_uring_wait_cqes};

/// An older glibc lacks some of them. Then no program calls them, and the error is none of the program's.
pub(crate) fn find_all() {
    for next in ALL {
        next.find();
    }
    // SAFETY: takes the last error away, which the program might read as its own.
    unsafe { dlerror() };
}

/// Says why on the standard error output and ends the process at once. There is nobody to return an error to.
#[cold]
pub(crate) fn give_up(why: &CStr, what: &CStr) -> ! {
    for text in [why.to_bytes(), b": ", what.to_bytes(), b"\n"] {
        // SAFETY: the bytes of `text`.
        unsafe { write(2, text.as_ptr().cast(), text.len()) };
    }
    // SAFETY: ends the process without running anything of the program's.
    unsafe { _exit(2) }
}
