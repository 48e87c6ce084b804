//! Waits for files that never become ready, and for messages that never come.

use std::ptr::{null, null_mut};

use libc::{CLOCK_REALTIME, c_int, c_long, pollfd, timespec, timeval};

use crate::child::Probe;
use crate::waits::{MILLISECONDS, moment, span, wait, zeroed};

unsafe extern "C" {
    fn aio_suspend64(requests: *const *const libc::aiocb, count: c_int, timeout: *const timespec) -> c_int;
    fn __poll(files: *mut pollfd, count: u64, timeout: c_int) -> c_int;
    fn __poll_chk(files: *mut pollfd, count: u64, timeout: c_int, size: usize) -> c_int;
    fn __ppoll_chk(
        files: *mut pollfd,
        count: u64,
        timeout: *const timespec,
        signals: *const libc::sigset_t,
        size: usize,
    ) -> c_int;
    fn __select(count: c_int, read: *mut u8, write: *mut u8, except: *mut u8, timeout: *mut timeval)
    -> c_int;
}

const TIMEOUT: c_int = MILLISECONDS as c_int;

pub(crate) fn timeval() -> timeval {
    timeval { tv_sec: 0, tv_usec: MILLISECONDS * 1_000 }
}

/// Two ends of a pipe that nobody writes to.
pub(crate) fn pipe() -> [c_int; 2] {
    let mut ends = [0; 2];
    assert_eq!(unsafe { libc::pipe(ends.as_mut_ptr()) }, 0);
    ends
}

pub(crate) fn polled() -> pollfd {
    pollfd { fd: pipe()[0], events: libc::POLLIN, revents: 0 }
}

pub(crate) fn epoll() -> c_int {
    unsafe { libc::epoll_create1(0) }
}

/// A socket that keeps a timeout, and a read or write of it that gives up.
fn socket(option: c_int) {
    let mut ends = [0; 2];
    unsafe {
        assert_eq!(libc::socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, ends.as_mut_ptr()), 0);
        let size = size_of::<timeval>() as u32;
        let value = timeval();
        assert_eq!(libc::setsockopt(ends[0], libc::SOL_SOCKET, option, (&raw const value).cast(), size), 0);
        let mut bytes = vec![0_u8; 1 << 20];
        if option == libc::SO_RCVTIMEO {
            wait(-1, || libc::read(ends[0], bytes.as_mut_ptr().cast(), 1) as i64);
        } else {
            // First as much as there is room for.
            while libc::send(ends[0], bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) > 0 {}
            wait(-1, || libc::send(ends[0], bytes.as_ptr().cast(), 1, 0) as i64);
        }
    }
}

fn semaphore_set() -> c_int {
    unsafe { libc::semget(libc::IPC_PRIVATE, 1, 0o600) }
}

fn semtimedop(call: impl FnOnce(c_int, *mut libc::sembuf) -> c_long) {
    let set = semaphore_set();
    let mut operation = libc::sembuf { sem_num: 0, sem_op: -1, sem_flg: 0 };
    wait(-1, || call(set, &raw mut operation));
    unsafe { libc::semctl(set, 0, libc::IPC_RMID) };
}

/// A queue of one message.
fn queue(name: &str) -> c_int {
    let name = std::ffi::CString::new(format!("/spindle-{name}-{}", std::process::id())).unwrap();
    let mut attributes: libc::mq_attr = zeroed();
    (attributes.mq_maxmsg, attributes.mq_msgsize) = (1, 8);
    unsafe {
        let queue = libc::mq_open(name.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600, &raw mut attributes);
        assert!(queue >= 0, "{}", std::io::Error::last_os_error());
        libc::mq_unlink(name.as_ptr());
        queue
    }
}

fn aio_suspend(suspend: unsafe extern "C" fn(*const *const libc::aiocb, c_int, *const timespec) -> c_int) {
    let mut byte = 0_u8;
    let mut request: libc::aiocb = zeroed();
    (request.aio_fildes, request.aio_nbytes, request.aio_buf) = (pipe()[0], 1, (&raw mut byte).cast());
    unsafe {
        assert_eq!(libc::aio_read(&raw mut request), 0);
        let list = [&raw const request];
        wait(-1, || suspend(list.as_ptr(), 1, &span()).into());
        // The reading thread has our memory: leave before it comes back.
        libc::_exit(0);
    }
}

/// The kernel looks at this timeout only after a message: the third is the first that comes after it.
fn recvmmsg() {
    let mut ends = [0; 2];
    let mut messages: [libc::mmsghdr; 5] = zeroed();
    let mut bytes = [0_u8; 5];
    let mut parts: [libc::iovec; 5] = zeroed();
    for ((message, part), byte) in messages.iter_mut().zip(&mut parts).zip(&mut bytes) {
        *part = libc::iovec { iov_base: (&raw mut *byte).cast(), iov_len: 1 };
        (message.msg_hdr.msg_iov, message.msg_hdr.msg_iovlen) = (part, 1);
    }
    unsafe {
        assert_eq!(libc::socketpair(libc::AF_UNIX, libc::SOCK_DGRAM, 0, ends.as_mut_ptr()), 0);
        let other = ends[1];
        std::thread::spawn(move || {
            for _ in 0..5 {
                libc::nanosleep(&timespec { tv_nsec: span().tv_nsec / 3 + 1_000_000, tv_sec: 0 }, null_mut());
                libc::send(other, [1_u8].as_ptr().cast(), 1, 0);
            }
        });
        let mut timeout = span();
        wait(3, || libc::recvmmsg(ends[0], messages.as_mut_ptr(), 5, 0, &raw mut timeout).into());
        assert!(timeout.tv_sec == 0 && timeout.tv_nsec <= 1_000_000, "{}", timeout.tv_nsec);
    }
}

// SAFETY, for all: objects on the stack that outlive the call, and null where it is allowed.
pub(crate) const WAITS: &[Probe] = &[
    ("poll", || wait(0, || unsafe { libc::poll(&mut polled(), 1, TIMEOUT) }.into())),
    ("__poll", || wait(0, || unsafe { __poll(&mut polled(), 1, TIMEOUT) }.into())),
    ("__poll_chk", || wait(0, || unsafe { __poll_chk(&mut polled(), 1, TIMEOUT, 8) }.into())),
    ("ppoll", || wait(0, || unsafe { libc::ppoll(&mut polled(), 1, &span(), null()) }.into())),
    ("__ppoll_chk", || wait(0, || unsafe { __ppoll_chk(&mut polled(), 1, &span(), null(), 8) }.into())),
    ("select", || {
        wait(0, || unsafe { libc::select(0, null_mut(), null_mut(), null_mut(), &mut timeval()) }.into())
    }),
    ("__select", || {
        wait(0, || unsafe { __select(0, null_mut(), null_mut(), null_mut(), &mut timeval()) }.into())
    }),
    ("pselect", || {
        wait(0, || unsafe { libc::pselect(0, null_mut(), null_mut(), null_mut(), &span(), null()) }.into())
    }),
    ("epoll_wait", || wait(0, || unsafe { libc::epoll_wait(epoll(), &mut zeroed(), 1, TIMEOUT) }.into())),
    ("epoll_pwait", || {
        wait(0, || unsafe { libc::epoll_pwait(epoll(), &mut zeroed(), 1, TIMEOUT, null()) }.into())
    }),
    ("epoll_pwait2", || {
        wait(0, || unsafe { libc::epoll_pwait2(epoll(), &mut zeroed(), 1, &span(), null()) }.into())
    }),
    ("SO_RCVTIMEO", || socket(libc::SO_RCVTIMEO)),
    ("SO_SNDTIMEO", || socket(libc::SO_SNDTIMEO)),
    ("sigtimedwait", || wait(-1, || unsafe { libc::sigtimedwait(&zeroed(), null_mut(), &span()) }.into())),
    ("semtimedop", || {
        semtimedop(|set, operation| unsafe {
            unsafe extern "C" {
                fn semtimedop(
                    set: c_int,
                    operations: *mut libc::sembuf,
                    count: usize,
                    timeout: *const timespec,
                ) -> c_int;
            }
            semtimedop(set, operation, 1, &span()).into()
        })
    }),
    ("syscall semtimedop", || {
        semtimedop(|set, operation| unsafe {
            libc::syscall(libc::SYS_semtimedop, set, operation, 1, &span())
        })
    }),
    ("mq_timedreceive", || {
        let (queue, mut bytes) = (queue("receive"), [0_i8; 8]);
        wait(-1, || unsafe {
            libc::mq_timedreceive(queue, bytes.as_mut_ptr().cast(), 8, null_mut(), &moment(CLOCK_REALTIME))
                as i64
        });
    }),
    ("mq_timedsend", || {
        let (queue, bytes) = (queue("send"), [0_i8; 8]);
        let send = |until| unsafe { libc::mq_timedsend(queue, bytes.as_ptr().cast(), 8, 0, until) };
        assert_eq!(send(&moment(CLOCK_REALTIME)), 0);
        wait(-1, || send(&moment(CLOCK_REALTIME)).into());
    }),
    ("aio_suspend", || aio_suspend(libc::aio_suspend)),
    ("aio_suspend64", || aio_suspend(aio_suspend64)),
    ("recvmmsg", recvmmsg),
];
