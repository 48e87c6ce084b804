//! The clock of a program whose processor is to look k times as fast: a library for `LD_PRELOAD`.
//!
//! Every time that the program asks for, and every time that it waits, passes through here. A clock tells
//! origin + (real - origin) / k, a wait of t takes k * t, and a deadline is mapped back to the real clock. A
//! wait without end stays without end, and zero stays zero. Work on the processor is not touched, so that in
//! the program's own seconds the processor does k times as much.
//!
//! The starter gives k and the origin, one moment for all processes of a trial, in one environment variable:
//! `SPINDLE_DILATION="<k> <origin on CLOCK_MONOTONIC in ns> <origin on CLOCK_REALTIME in ns>"`. At the origin
//! both times are equal. Without the variable, or with k = 1, every call passes through. A variable that
//! cannot be read ends the program: it would run in real time, and its figures would be wrong by k.
//!
//! `SPINDLE_DILATION_MARK` proves that a program is dilated: see `mark.rs`.
//!
//! # What keeps real time
//! * CPU clocks, `getrusage` and the limits of CPU time, because the processor is what is not dilated.
//! * The processor's own counter (`rdtsc`, `cntvct_el0`): no library can divide it. A server that calibrates
//!   it against a clock at its start, as the performance schema of MySQL and MariaDB does, calibrates it
//!   against the dilated clock, and so its figures are right.
//! * Times that the kernel writes or reports by other ways: files (`stat`, `utimensat` with `UTIME_NOW`),
//!   `/proc`, `sysinfo`, packets, TCP's own timers (`TCP_USER_TIMEOUT`, keep-alive), System V objects.
//! * Waits inside libc itself, such as the name resolver's, and the date in `syslog`.
//! * `IORING_OP_TIMEOUT` in an io_uring that the program fills itself.
//! * Programs that the dynamic linker does not start or that bypass libc: static ones, those with more rights
//!   than their user (set-user-ID, file capabilities: the linker drops `LD_PRELOAD`), and those that make
//!   system calls themselves (Go, parts of rustix and of liburing).
//!
//! # What it costs
//! A few nanoseconds a call: k and the origins are constant from the start, so that there is no shared state
//! to lock and nothing to allocate. Calls are safe in signal handlers and after fork(2).
//!
//! x86-64 and aarch64, glibc. Both have a 64-bit `time_t`, and so no second set of names
//! (`__clock_gettime64`) as 32-bit systems do. The crate has no dependencies: `rustc` alone compiles this
//! file.

#![expect(unsafe_code, reason = "a library that takes the place of C functions")]

mod aio;
mod arithmetic;
mod clocks;
mod dilation;
mod mark;
mod messages;
mod next;
mod sleeps;
mod sockets;
mod system_call;
mod threads;
mod time;
mod timers;
mod waits;

/// The loader calls this before the program's `main`. Functions that are called still earlier, by another
/// library's start, find what they need for themselves.
extern "C" fn start() {
    next::find_all();
    dilation::factor();
    threads::learn_clock_bit();
    mark::write();
}

#[used]
// SAFETY: the loader calls each address in this section once, in one thread, with libc ready.
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;
