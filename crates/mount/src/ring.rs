//! FUSE over io_uring (Linux 6.14; Documentation/filesystems/fuse-io-uring.rst). Requests arrive in memory
//! shared by the kernel and this process. One system call submits any number of answers and waits for the
//! next request.
//!
//! The kernel keeps one queue per possible core, and a request goes to the queue of its core. This ring holds
//! the slots of all queues, because one thread serves the disk.
//!
//! Constants and layouts are those of `include/uapi/linux/fuse.h`, version 7.42.

#![expect(unsafe_code, reason = "memory shared with the kernel, and a field that io-uring has no setter for")]

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use memmap2::{MmapOptions, MmapRaw};

/// `FUSE_IO_URING_CMD_REGISTER` and `FUSE_IO_URING_CMD_COMMIT_AND_FETCH`.
const REGISTER: u32 = 1;
const COMMIT_AND_FETCH: u32 = 2;
/// `struct fuse_uring_req_header`: 128 bytes for the common header, 128 for the operation's, 32 for the
/// slot's.
const IN_OUT_BYTES: usize = 128;
const OPERATION_BYTES: usize = 128;
const SLOT_AT: usize = IN_OUT_BYTES + OPERATION_BYTES;
const COMMIT_ID_AT: usize = SLOT_AT + 8;
const PAYLOAD_SIZE_AT: usize = SLOT_AT + 16;
const HEADER_BYTES: usize = SLOT_AT + 32;
/// Distance of one slot's header from its payload, which is aligned to pages.
const PAYLOAD_AT: usize = 4096;
/// As deep as the loop driver's own queue, so that the ring never limits it: all its requests may come from
/// one core.
const SLOTS_PER_QUEUE: usize = 128;
/// Submission entries; answers beyond this number take a second system call.
const SUBMISSIONS: u32 = 256;
/// User data of the read that waits for [`Waker::wake`].
const WAKE: u64 = u64::MAX;

/// The number of a slot, which holds one request at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot(u32);

/// A request in its slot.
#[derive(Debug)]
pub(crate) struct Arrived<'a> {
    /// `FUSE_READ` and so on.
    pub(crate) opcode: u32,
    pub(crate) inode: u64,
    /// The operation's own header, such as `struct fuse_read_in`.
    pub(crate) header: &'a [u8],
    /// The data after the header: a name, or data to write.
    pub(crate) payload: &'a [u8],
}

/// Makes [`Ring::wait`] return, from any thread.
#[derive(Debug, Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    pub(crate) fn new() -> io::Result<Waker> {
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        Ok(Waker(Arc::new(rustix::event::eventfd(0, flags)?)))
    }

    pub(crate) fn wake(&self) {
        // Fails only if the counter is full, and then the ring is awake.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

pub(crate) struct Ring {
    io: IoUring<squeue::Entry128, cqueue::Entry>,
    fuse: OwnedFd,
    waker: Waker,
    woken: Box<[u8; 8]>,
    memory: Memory,
    payload_bytes: usize,
    queue_of: Vec<u16>,
    /// Whether each slot holds an uncommitted request. Only then is its memory ours.
    holds_request: Vec<bool>,
    /// Number of slots that the kernel still uses; an unmount gives them up.
    live: usize,
    /// Requests that arrived during registration.
    early: Vec<Slot>,
    pace: Pace,
}

/// Tracks the gaps between answers and the requests that follow them.
///
/// A sleeping core takes several microseconds to wake, above all in a virtual machine. So an idle ring
/// busy-polls for the next request for up to [`Pace::SOON`] before it sleeps, but only after [`Pace::STEADY`]
/// requests in a row came within that time. Then one sender waits for each answer, and a core is idle
/// meanwhile. Senders with longer gaps, or with several requests in flight, cause no busy polling.
#[derive(Debug, Default)]
struct Pace {
    /// Requests in a row that came soon, counted up to [`Pace::STEADY`].
    came_soon: u32,
}

impl Pace {
    const SOON: Duration = Duration::from_micros(20);
    const STEADY: u32 = 4;

    fn is_steady(&self) -> bool {
        self.came_soon == Pace::STEADY
    }

    fn note(&mut self, came_after: Duration) {
        self.came_soon = if came_after < Pace::SOON { Pace::STEADY.min(self.came_soon + 1) } else { 0 };
    }
}

/// Whether this kernel supports such a ring and permits it to us.
pub(crate) fn is_possible() -> bool {
    build(SUBMISSIONS).is_ok()
}

fn build(completions: u32) -> io::Result<IoUring<squeue::Entry128, cqueue::Entry>> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_cqsize(completions.max(2 * SUBMISSIONS))
        .build(SUBMISSIONS)
}

/// Number of cores that this kernel supports at most; it keeps a queue for each.
fn possible_cores() -> io::Result<u16> {
    let path = "/sys/devices/system/cpu/possible";
    let text = fs::read_to_string(path)?;
    let last = text.trim().rsplit(['-', ',']).next().and_then(|last| last.parse::<u16>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::other(format!("{path} says {text:?}")))
}

impl Ring {
    /// Call it on the thread that will use the ring. `payload_bytes` is the size of the largest read or
    /// write.
    ///
    /// # Errors
    /// The kernel refuses the ring, or any of its slots.
    pub(crate) fn register(fuse: OwnedFd, waker: Waker, payload_bytes: usize) -> io::Result<Ring> {
        let queues = possible_cores()?;
        let queue_of: Vec<u16> =
            (0..queues).flat_map(|queue| std::iter::repeat_n(queue, SLOTS_PER_QUEUE)).collect();
        let memory = Memory::new(queue_of.len() * (PAYLOAD_AT + payload_bytes))?;
        let io = build(queue_of.len() as u32 + 1)?;
        let live = queue_of.len();
        let mut ring = Ring {
            io,
            fuse,
            waker,
            woken: Box::new([0; 8]),
            memory,
            payload_bytes,
            holds_request: vec![false; queue_of.len()],
            queue_of,
            live,
            early: Vec::new(),
            pace: Pace::default(),
        };
        for slot in 0..ring.queue_of.len() as u32 {
            ring.offer(Slot(slot))?;
        }
        // A refused slot completes at once, an accepted one when a request comes.
        let mut early = Vec::new();
        ring.collect(&mut early)?;
        if ring.live < ring.queue_of.len() {
            return Err(io::Error::other("the file system went away while the FUSE ring was registered"));
        }
        ring.early = early;
        ring.listen()?;
        ring.io.submit()?;
        Ok(ring)
    }

    /// Gives the kernel a slot's memory.
    fn offer(&mut self, slot: Slot) -> io::Result<()> {
        let header = self.memory.at(self.start(slot));
        let payload = self.memory.at(self.start(slot) + PAYLOAD_AT);
        let vectors = [
            libc::iovec { iov_base: header.cast(), iov_len: HEADER_BYTES },
            libc::iovec { iov_base: payload.cast(), iov_len: self.payload_bytes },
        ];
        let mut entry = opcode::UringCmd80::new(types::Fd(self.fuse.as_raw_fd()), REGISTER)
            .cmd(self.command(slot, 0))
            .addr(Some(vectors.as_ptr() as u64))
            .build()
            .user_data(slot.0.into());
        // SAFETY: `Entry128` is the kernel's `struct io_uring_sqe` (repr(C), 128 bytes), whose `len` is a u32
        // at byte 24; `entry` is ours.
        unsafe { ptr::from_mut(&mut entry).cast::<u32>().add(6).write(vectors.len() as u32) };
        self.push(entry)?;
        // The kernel copies the vectors before this returns.
        self.io.submit().map(drop)
    }

    fn listen(&mut self) -> io::Result<()> {
        let fd = types::Fd(self.waker.0.as_raw_fd());
        let read = opcode::Read::new(fd, self.woken.as_mut_ptr(), self.woken.len() as u32);
        self.push(read.build().user_data(WAKE).into())
    }

    fn push(&mut self, entry: squeue::Entry128) -> io::Result<()> {
        if self.io.submission().is_full() {
            self.io.submit()?;
        }
        // SAFETY: an entry points to the vectors of `offer`, which submits before it returns; to `woken` and
        // to the ring's memory, which `Ring` drops after `io`, and with it the kernel's use of them.
        unsafe { self.io.submission().push(&entry) }.map_err(io::Error::other)
    }

    /// `struct fuse_uring_cmd_req`: flags, commit id, queue.
    fn command(&self, slot: Slot, commit_id: u64) -> [u8; 80] {
        let mut command = [0; 80];
        command[8..16].copy_from_slice(&commit_id.to_ne_bytes());
        command[16..18].copy_from_slice(&self.queue_of[slot.0 as usize].to_ne_bytes());
        command
    }

    fn start(&self, slot: Slot) -> usize {
        slot.0 as usize * (PAYLOAD_AT + self.payload_bytes)
    }

    /// Submits the committed answers and waits for requests, for [`Waker::wake`] or for the timeout. The
    /// first duration is the timeout; the second is its last part, spent busy-polling. False if the file
    /// system is gone.
    ///
    /// # Errors
    /// The kernel did not take an answer.
    pub(crate) fn wait(
        &mut self,
        until: Option<(Duration, Duration)>,
        arrived: &mut Vec<Slot>,
    ) -> io::Result<bool> {
        if !self.early.is_empty() {
            arrived.append(&mut self.early);
            return Ok(true);
        }
        let begun = Instant::now();
        match until {
            None => {
                if self.pace.is_steady() {
                    self.watch(begun + Pace::SOON);
                }
                self.sleep(None)?;
                self.pace.note(begun.elapsed());
            }
            Some((timeout, lead)) => {
                if self.sleep(Some(timeout.saturating_sub(lead)))? && !lead.is_zero() {
                    self.watch(begun + timeout);
                    self.sleep(Some(Duration::ZERO))?;
                }
            }
        }
        if self.collect(arrived)? {
            self.listen()?;
        }
        Ok(self.live > 0)
    }

    /// Takes the kernel's completions; true if [`Waker::wake`] is among them.
    fn collect(&mut self, arrived: &mut Vec<Slot>) -> io::Result<bool> {
        let mut woken = false;
        for completion in self.io.completion() {
            match (completion.user_data(), -completion.result()) {
                (WAKE, _) => woken = true,
                (slot, ..=0) => {
                    self.holds_request[slot as usize] = true;
                    arrived.push(Slot(slot as u32));
                }
                // Results of the slots of an unmounted file system.
                (_, libc::ENOTCONN | libc::ECONNABORTED | libc::ECANCELED) => self.live -= 1,
                (slot, error) => {
                    let error = io::Error::from_raw_os_error(error);
                    return Err(io::Error::new(
                        error.kind(),
                        format!("slot {slot} of the FUSE ring: {error}"),
                    ));
                }
            }
        }
        Ok(woken)
    }

    /// Busy-polls until a completion arrives or the time has come.
    fn watch(&mut self, until: Instant) {
        while !self.io.submission().taskrun() && Instant::now() < until {
            std::hint::spin_loop();
        }
    }

    /// Submits, and sleeps until a completion arrives; true after a timeout.
    fn sleep(&mut self, timeout: Option<Duration>) -> io::Result<bool> {
        let slept = match timeout {
            Some(timeout) => {
                let timeout = types::Timespec::from(timeout);
                self.io.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&timeout))
            }
            None => self.io.submitter().submit_and_wait(1),
        };
        match slept.map_err(|error| (error.raw_os_error(), error)) {
            Err((Some(libc::ETIME), _)) => Ok(true),
            Ok(_) | Err((Some(libc::EINTR | libc::EBUSY), _)) => Ok(false),
            Err((_, error)) => Err(error),
        }
    }

    /// The request in a slot from [`Ring::wait`] that is not committed yet.
    pub(crate) fn request(&self, slot: Slot) -> Arrived<'_> {
        self.check_ours(slot);
        let start = self.start(slot);
        let head = self.memory.bytes(start, HEADER_BYTES);
        let payload_bytes = u32_at(head, PAYLOAD_SIZE_AT) as usize;
        Arrived {
            opcode: u32_at(head, 4),
            inode: u64_at(head, 16),
            header: &head[IN_OUT_BYTES..SLOT_AT],
            payload: self.memory.bytes(start + PAYLOAD_AT, payload_bytes.min(self.payload_bytes)),
        }
    }

    /// The buffer for the answer's data. It overwrites the payload of [`Ring::request`].
    pub(crate) fn answer(&mut self, slot: Slot) -> &mut [u8] {
        self.check_ours(slot);
        let start = self.start(slot) + PAYLOAD_AT;
        self.memory.bytes_mut(start, self.payload_bytes)
    }

    /// Answers the request. `result` is the number of bytes in [`Ring::answer`], or an error number. The
    /// answer leaves with the next [`Ring::submit`] or [`Ring::wait`].
    pub(crate) fn commit(&mut self, slot: Slot, result: Result<usize, i32>) -> io::Result<()> {
        self.check_ours(slot);
        self.holds_request[slot.0 as usize] = false;
        let start = self.start(slot);
        let head = self.memory.bytes_mut(start, HEADER_BYTES);
        let commit_id = u64_at(head, COMMIT_ID_AT);
        // `struct fuse_out_header` replaces `struct fuse_in_header`; both have `unique` at byte 8.
        let (payload_bytes, error) = match result {
            Ok(payload_bytes) => (payload_bytes as u32, 0),
            Err(error) => (0, -error),
        };
        head[0..4].copy_from_slice(&(16 + payload_bytes).to_ne_bytes());
        head[4..8].copy_from_slice(&error.to_ne_bytes());
        head[PAYLOAD_SIZE_AT..PAYLOAD_SIZE_AT + 4].copy_from_slice(&payload_bytes.to_ne_bytes());
        let entry = opcode::UringCmd80::new(types::Fd(self.fuse.as_raw_fd()), COMMIT_AND_FETCH)
            .cmd(self.command(slot, commit_id))
            .build()
            .user_data(slot.0.into());
        self.push(entry)
    }

    pub(crate) fn submit(&mut self) -> io::Result<()> {
        self.io.submit().map(drop)
    }

    fn check_ours(&self, slot: Slot) {
        assert!(self.holds_request[slot.0 as usize], "slot {} of the FUSE ring is the kernel's", slot.0);
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// Our own memory, read and written by the kernel too, with a part for each slot. Pages that no request has
/// used take no memory.
///
/// The kernel writes a slot's part only to put a request there, and only while the slot waits for one: from
/// its registration or commit until the arrival ("Documentation/filesystems/fuse-io-uring.rst"; an aborted
/// connection takes slots away and writes to none). [`Ring::holds_request`] holds the state of each slot, and
/// the ring checks it before each access. Unmapped memory is not written any more: the kernel looks up the
/// address anew for each request, and a closed ring gets none.
struct Memory(MmapRaw);

impl Memory {
    fn new(size: usize) -> io::Result<Memory> {
        MmapOptions::new().len(size).no_reserve_swap().map_anon().map(|map| Memory(map.into()))
    }

    /// A pointer for the kernel alone.
    fn at(&self, offset: usize) -> *mut u8 {
        self.check(offset, 1);
        self.0.as_mut_ptr().wrapping_add(offset)
    }

    /// Bytes of a slot that holds a request.
    fn bytes(&self, offset: usize, size: usize) -> &[u8] {
        self.check(offset, size);
        // SAFETY: inside the map, and initialised (anonymous memory is zero). The kernel does not write it
        // while the slot holds a request, and the slot cannot be committed while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().add(offset), size) }
    }

    /// As [`Memory::bytes`].
    fn bytes_mut(&mut self, offset: usize, size: usize) -> &mut [u8] {
        self.check(offset, size);
        // SAFETY: as for `bytes`; `self` is borrowed exclusively, so this is the only reference into the map.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().add(offset), size) }
    }

    fn check(&self, offset: usize, size: usize) {
        let end = offset.checked_add(size);
        assert!(end.is_some_and(|end| end <= self.0.len()), "outside the ring's memory");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_whose_slots_are_refused_is_refused_with_the_reason() {
        if !is_possible() {
            assert!(std::env::var_os("CI").is_none(), "CI must have io_uring");
            eprintln!("skipped: no io_uring");
            return;
        }
        // A regular file supports no command of a ring.
        let file = tempfile::tempfile().unwrap();
        let refused = Ring::register(file.into(), Waker::new().unwrap(), 4096).err().expect("a refusal");
        assert!(refused.to_string().starts_with("slot 0 of the FUSE ring: "), "{refused}");
    }

    #[test]
    #[should_panic(expected = "outside the ring's memory")]
    fn an_offset_that_wraps_around_is_outside_the_memory() {
        Memory::new(4096).unwrap().bytes(usize::MAX, 2);
    }

    #[test]
    fn the_ring_busy_polls_only_while_requests_arrive_soon() {
        let soon = Pace::SOON / 2;
        let mut pace = Pace::default();
        for _ in 0..Pace::STEADY {
            assert!(!pace.is_steady());
            pace.note(soon);
        }
        assert!(pace.is_steady());
        pace.note(soon);
        assert!(pace.is_steady());
        pace.note(Pace::SOON);
        assert!(!pace.is_steady());
        pace.note(soon);
        assert!(!pace.is_steady());
    }
}
