//! `syscall()`: how Rust's standard library, libstdc++ and many servers wait in futex(2), and how newer
//! system calls are made before libc has a function for them.
//!
//! Other numbers pass through as they are. Unlike libc's functions, the kernel writes what remains of a wait.

use std::cell::Cell;
use std::ffi::{c_int, c_long, c_uint};

use crate::dilation::{self, Clock, longer_ms};
use crate::next::{self, Opaque};
use crate::sleeps::errno;
use crate::time::{Alarm, Pointer, Time, Timespec, longer, real, remains};
use crate::{clocks, messages, sleeps, sockets, timers};

#[cfg(target_arch = "x86_64")]
#[path = "numbers_x86_64.rs"]
pub(crate) mod number;
#[cfg(target_arch = "aarch64")]
#[path = "numbers_aarch64.rs"]
pub(crate) mod number;

/// Operations of futex(2) that take a time, and the flag of its clock.
const FUTEX_WAIT: c_long = 0;
const FUTEX_LOCK_PI: c_long = 6;
const FUTEX_WAIT_BITSET: c_long = 9;
const FUTEX_WAIT_REQUEUE_PI: c_long = 11;
const FUTEX_LOCK_PI2: c_long = 13;
const FUTEX_OPERATION: c_long = 0x7f;
const FUTEX_CLOCK_REALTIME: c_long = 256;

/// Flags of io_uring_enter(2): the argument is a struct with a timeout; that is a moment.
const ENTER_EXT_ARG: c_long = 1 << 3;
const ENTER_ABS_TIMER: c_long = 1 << 5;

/// `struct io_uring_getevents_arg`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct EnterArgument {
    signals: u64,
    signals_size: u32,
    least_wait_us: u32,
    timeout: u64,
}

/// What an argument points to. The program gives a valid address or null, as the kernel demands too.
fn pointer<T>(argument: c_long) -> Pointer<'static, T> {
    let address = std::ptr::with_exposed_provenance::<Cell<T>>(argument as usize);
    // SAFETY: the type is the one that this system call has at this place.
    unsafe { address.as_ref() }
}

fn opaque(argument: c_long) -> Opaque {
    std::ptr::with_exposed_provenance_mut(argument as usize)
}

fn address<T>(of: &Option<Cell<T>>) -> c_long {
    of.as_ref().map_or(0, |of| of.as_ptr().expose_provenance() as c_long)
}

/// All six arguments are read as longs, as libc does: on both architectures a function with variable
/// arguments takes them where one with fixed arguments does.
#[unsafe(no_mangle)]
extern "C" fn syscall(
    id: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    if !dilation::is_on() {
        return next::syscall(id, a, b, c, d, e, f);
    }
    let int = |argument: c_long| argument as c_int;
    let status: c_int = match id {
        number::FUTEX => return futex(a, b, c, d, e, f),
        number::CLOCK_GETTIME => clocks::clock_gettime(int(a), pointer(b)),
        number::GETTIMEOFDAY => clocks::gettimeofday(pointer(a), opaque(b)),
        number::TIMES => return clocks::times(opaque(a)),
        number::NANOSLEEP => sleeps::nanosleep(pointer(a), pointer(b)),
        number::CLOCK_NANOSLEEP => failed(sleeps::clock_nanosleep(int(a), int(b), pointer(c), pointer(d))),
        number::GETITIMER => timers::getitimer(int(a), pointer(b)),
        number::SETITIMER => timers::setitimer(int(a), pointer(b), pointer(c)),
        number::TIMERFD_GETTIME => timers::timerfd_gettime(int(a), pointer(b)),
        number::TIMERFD_SETTIME => timers::timerfd_settime(int(a), int(b), pointer(c), pointer(d)),
        number::GETSOCKOPT => sockets::getsockopt(int(a), int(b), int(c), opaque(d), pointer(e)),
        number::SETSOCKOPT => sockets::setsockopt(int(a), int(b), int(c), opaque(d), e as u32),
        number::RECVMMSG => messages::recvmmsg(int(a), opaque(b), c as c_uint, int(d), pointer(e)),
        _ => return wait(id, [a, b, c, d, e, f]),
    };
    status.into()
}

/// The convention of libc's function turned into the one of system calls.
fn failed(error: c_int) -> c_int {
    if error == 0 {
        return 0;
    }
    errno().set(error);
    -1
}

/// The kernel's own forms of waits.
fn wait(id: c_long, mut arguments: [c_long; 6]) -> c_long {
    // At which place a timeout is, a moment with its clock, a number of milliseconds.
    match id {
        number::PPOLL => with_remains::<1_000_000_000>(id, arguments, 2),
        number::PSELECT6 => with_remains::<1_000_000_000>(id, arguments, 4),
        number::EPOLL_PWAIT2 | number::SEMTIMEDOP => with_timeout(id, arguments, 3),
        number::RT_SIGTIMEDWAIT => with_timeout(id, arguments, 2),
        number::IO_GETEVENTS | number::IO_PGETEVENTS => with_timeout(id, arguments, 4),
        number::MQ_TIMEDSEND | number::MQ_TIMEDRECEIVE => {
            with_moment(id, arguments, 4, Some(Clock::Realtime))
        }
        number::FUTEX_WAITV => with_moment(id, arguments, 3, Clock::of(arguments[4] as c_int)),
        number::FUTEX_WAIT => with_moment(id, arguments, 4, Clock::of(arguments[5] as c_int)),
        number::EPOLL_PWAIT => {
            arguments[3] = longer_ms(arguments[3] as c_int).into();
            pass(id, arguments)
        }
        number::IO_URING_ENTER if arguments[3] & ENTER_EXT_ARG != 0 => enter(arguments),
        number::TIMER_CREATE | number::TIMER_GETTIME | number::TIMER_SETTIME => timer(id, arguments),
        _ => other(id, arguments),
    }
}

/// Calls that aarch64 never had.
#[cfg(target_arch = "x86_64")]
fn other(id: c_long, mut arguments: [c_long; 6]) -> c_long {
    match id {
        number::TIME => clocks::time(pointer(arguments[0])),
        number::ALARM => timers::alarm(arguments[0] as c_uint).into(),
        number::SELECT => with_remains::<1_000_000>(id, arguments, 4),
        number::POLL => {
            arguments[2] = longer_ms(arguments[2] as c_int).into();
            pass(id, arguments)
        }
        number::EPOLL_WAIT => {
            arguments[3] = longer_ms(arguments[3] as c_int).into();
            pass(id, arguments)
        }
        _ => pass(id, arguments),
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn other(id: c_long, arguments: [c_long; 6]) -> c_long {
    pass(id, arguments)
}

fn pass(id: c_long, [a, b, c, d, e, f]: [c_long; 6]) -> c_long {
    next::syscall(id, a, b, c, d, e, f)
}

fn with_timeout(id: c_long, mut arguments: [c_long; 6], at: usize) -> c_long {
    let own = longer::<1_000_000_000>(pointer(arguments[at]));
    arguments[at] = address(&own);
    pass(id, arguments)
}

fn with_remains<const PER_SECOND: i64>(id: c_long, mut arguments: [c_long; 6], at: usize) -> c_long {
    let timeout = pointer::<Time<PER_SECOND>>(arguments[at]);
    let own = longer(timeout);
    arguments[at] = address(&own);
    let result = pass(id, arguments);
    remains(timeout, &own);
    result
}

fn with_moment(id: c_long, mut arguments: [c_long; 6], at: usize, clock: Option<Clock>) -> c_long {
    let own = clock.and_then(|clock| real(clock, pointer(arguments[at])));
    if own.is_some() {
        arguments[at] = address(&own);
    }
    pass(id, arguments)
}

/// The wait of Rust's locks and threads. In the other operations the fourth argument is a number.
fn futex(
    word: c_long,
    operation: c_long,
    value: c_long,
    time: c_long,
    other: c_long,
    bits: c_long,
) -> c_long {
    let arguments = [word, operation, value, time, other, bits];
    let named = if operation & FUTEX_CLOCK_REALTIME != 0 { Clock::Realtime } else { Clock::Monotonic };
    match operation & FUTEX_OPERATION {
        FUTEX_WAIT => with_timeout(number::FUTEX, arguments, 3),
        FUTEX_LOCK_PI => with_moment(number::FUTEX, arguments, 3, Some(Clock::Realtime)),
        FUTEX_WAIT_BITSET | FUTEX_WAIT_REQUEUE_PI | FUTEX_LOCK_PI2 => {
            with_moment(number::FUTEX, arguments, 3, Some(named))
        }
        _ => pass(number::FUTEX, arguments),
    }
}

/// A wait in io_uring, without the timeouts that are requests themselves.
fn enter(mut arguments: [c_long; 6]) -> c_long {
    let Some(given) = pointer::<EnterArgument>(arguments[4]) else {
        return pass(number::IO_URING_ENTER, arguments);
    };
    let mut own = given.get();
    let time = pointer::<Timespec>(own.timeout as c_long);
    let is_moment = arguments[3] & ENTER_ABS_TIMER != 0;
    let time = if is_moment { real(Clock::Monotonic, time) } else { longer(time) };
    own.timeout = address(&time) as u64;
    let least_wait_us = dilation::longer(own.least_wait_us.into());
    own.least_wait_us = least_wait_us.try_into().unwrap_or(u32::MAX);
    let own = Some(Cell::new(own));
    arguments[4] = address(&own);
    pass(number::IO_URING_ENTER, arguments)
}

/// POSIX timers by the kernel's number, which is also libc's for those without a thread.
fn timer(id: c_long, mut arguments: [c_long; 6]) -> c_long {
    let timer = arguments[0] as c_int as usize;
    if id == number::TIMER_CREATE {
        let status = pass(id, arguments);
        if let Some(timer) = pointer::<c_int>(arguments[2])
            && status == 0
        {
            timers::note(timer.get() as usize, arguments[0] as c_int);
        }
        return status;
    }
    if !timers::is_dilated(timer) {
        return pass(id, arguments);
    }
    let is_new = id == number::TIMER_SETTIME;
    let told = if is_new { arguments[3] } else { arguments[1] };
    let own = is_new.then(|| timers::settings(arguments[1] as c_int, pointer(arguments[2]))).flatten();
    if is_new {
        arguments[2] = address(&own);
    }
    let status = pass(id, arguments);
    if let Some(told) = pointer::<Alarm<Timespec>>(told)
        && status == 0
    {
        told.set(told.get().shorter());
    }
    status
}
