//! Numbers of system calls on x86-64 (asm/unistd_64.h).

use std::ffi::c_long;

pub(crate) const CLOCK_GETTIME: c_long = 228;
pub(crate) const GETTIMEOFDAY: c_long = 96;
pub(crate) const TIME: c_long = 201;
pub(crate) const TIMES: c_long = 100;
pub(crate) const NANOSLEEP: c_long = 35;
pub(crate) const CLOCK_NANOSLEEP: c_long = 230;
pub(crate) const POLL: c_long = 7;
pub(crate) const PPOLL: c_long = 271;
pub(crate) const SELECT: c_long = 23;
pub(crate) const PSELECT6: c_long = 270;
pub(crate) const EPOLL_WAIT: c_long = 232;
pub(crate) const EPOLL_PWAIT: c_long = 281;
pub(crate) const EPOLL_PWAIT2: c_long = 441;
pub(crate) const FUTEX: c_long = 202;
pub(crate) const FUTEX_WAITV: c_long = 449;
pub(crate) const FUTEX_WAIT: c_long = 455;
pub(crate) const ALARM: c_long = 37;
pub(crate) const GETITIMER: c_long = 36;
pub(crate) const SETITIMER: c_long = 38;
pub(crate) const TIMER_CREATE: c_long = 222;
pub(crate) const TIMER_GETTIME: c_long = 224;
pub(crate) const TIMER_SETTIME: c_long = 223;
pub(crate) const TIMERFD_GETTIME: c_long = 287;
pub(crate) const TIMERFD_SETTIME: c_long = 286;
pub(crate) const RT_SIGTIMEDWAIT: c_long = 128;
pub(crate) const SEMTIMEDOP: c_long = 220;
pub(crate) const MQ_TIMEDSEND: c_long = 242;
pub(crate) const MQ_TIMEDRECEIVE: c_long = 243;
pub(crate) const RECVMMSG: c_long = 299;
pub(crate) const GETSOCKOPT: c_long = 55;
pub(crate) const SETSOCKOPT: c_long = 54;
pub(crate) const IO_GETEVENTS: c_long = 208;
pub(crate) const IO_PGETEVENTS: c_long = 333;
pub(crate) const IO_URING_ENTER: c_long = 426;
