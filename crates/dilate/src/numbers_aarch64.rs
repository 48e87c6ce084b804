//! Numbers of system calls on aarch64 (asm-generic/unistd.h).

use std::ffi::c_long;

pub(crate) const CLOCK_GETTIME: c_long = 113;
pub(crate) const GETTIMEOFDAY: c_long = 169;
pub(crate) const TIMES: c_long = 153;
pub(crate) const NANOSLEEP: c_long = 101;
pub(crate) const CLOCK_NANOSLEEP: c_long = 115;
pub(crate) const PPOLL: c_long = 73;
pub(crate) const PSELECT6: c_long = 72;
pub(crate) const EPOLL_PWAIT: c_long = 22;
pub(crate) const EPOLL_PWAIT2: c_long = 441;
pub(crate) const FUTEX: c_long = 98;
pub(crate) const FUTEX_WAITV: c_long = 449;
pub(crate) const FUTEX_WAIT: c_long = 455;
pub(crate) const GETITIMER: c_long = 102;
pub(crate) const SETITIMER: c_long = 103;
pub(crate) const TIMER_CREATE: c_long = 107;
pub(crate) const TIMER_GETTIME: c_long = 108;
pub(crate) const TIMER_SETTIME: c_long = 110;
pub(crate) const TIMERFD_GETTIME: c_long = 87;
pub(crate) const TIMERFD_SETTIME: c_long = 86;
pub(crate) const RT_SIGTIMEDWAIT: c_long = 137;
pub(crate) const SEMTIMEDOP: c_long = 192;
pub(crate) const MQ_TIMEDSEND: c_long = 182;
pub(crate) const MQ_TIMEDRECEIVE: c_long = 183;
pub(crate) const RECVMMSG: c_long = 243;
pub(crate) const GETSOCKOPT: c_long = 209;
pub(crate) const SETSOCKOPT: c_long = 208;
pub(crate) const IO_GETEVENTS: c_long = 4;
pub(crate) const IO_PGETEVENTS: c_long = 292;
pub(crate) const IO_URING_ENTER: c_long = 426;
