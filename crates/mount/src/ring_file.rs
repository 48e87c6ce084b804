//! The disk file, served over a [`Ring`]. One thread takes requests, asks the model, waits for the model's
//! next event, and answers. This saves one wake-up and two system calls per request, compared with fuser's
//! threads and a timer thread.
//!
//! fuser still mounts, negotiates, and takes the few messages that never come through a ring (FORGET,
//! INTERRUPT).

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex};

use anyhow::Context;
use fuser::{Errno, Filesystem, InitFlags, KernelConfig};
use rustix::fs::{FlockOperation, flock};
use spindle_model::{Operation, Outcome};

use crate::driver::{Driver, Due};
use crate::file::{
    FILE, FILE_NAME, FOREVER, OPEN_FLAGS, REQUEST_BYTES_MAX, ROOT, configure, readable_bytes,
    store_fallocate, store_write,
};
use crate::realtime::{self, Allowance};
use crate::ring::{self, Ring, Slot, Waker, u32_at, u64_at};
use crate::store::Store;

/// Opcodes of `include/uapi/linux/fuse.h`.
mod opcode {
    pub(super) const LOOKUP: u32 = 1;
    pub(super) const GETATTR: u32 = 3;
    pub(super) const OPEN: u32 = 14;
    pub(super) const READ: u32 = 15;
    pub(super) const WRITE: u32 = 16;
    pub(super) const STATFS: u32 = 17;
    pub(super) const RELEASE: u32 = 18;
    pub(super) const FSYNC: u32 = 20;
    pub(super) const OPENDIR: u32 = 27;
    pub(super) const RELEASEDIR: u32 = 29;
    pub(super) const FALLOCATE: u32 = 43;
}

const PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

/// Permission to use the ring, switched on until it is dropped.
///
/// The module's parameter decides which features a mount may negotiate. It is restored once the mount is
/// done. The lock prevents two emulators that come up at once from switching it off for each other.
#[derive(Debug)]
pub(crate) struct Permission {
    file: File,
    was: String,
}

impl Permission {
    /// `None` if the kernel has no such ring or refuses it.
    pub(crate) fn obtain() -> Option<Permission> {
        let mut file = OpenOptions::new().read(true).write(true).open(PARAMETER).ok()?;
        if !ring::is_possible() {
            return None;
        }
        flock(&file, FlockOperation::LockExclusive).ok()?;
        let mut was = String::new();
        file.read_to_string(&mut was).ok()?;
        file.write_all(b"Y").ok()?;
        Some(Permission { file, was })
    }
}

impl Drop for Permission {
    fn drop(&mut self) {
        // The lock goes with the file; a parameter that could be set can be set back.
        let _ = self.file.rewind().and_then(|()| self.file.write_all(self.was.as_bytes()));
    }
}

/// Whether this machine can serve a disk over a ring.
pub fn has_ring() -> bool {
    Path::new(PARAMETER).exists() && ring::is_possible()
}

/// The file system as fuser sees it.
#[derive(Debug)]
pub(crate) struct RingFile;

impl Filesystem for RingFile {
    fn init(&mut self, _request: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        configure(config, InitFlags::FUSE_OVER_IO_URING)
    }
}

/// The data for answering one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RingAnswer {
    slot: Slot,
    operation: Operation,
    offset_bytes: u64,
    size_bytes: u64,
}

/// Due answers from other threads.
#[derive(Debug, Clone)]
pub(crate) struct Inbox {
    answers: Arc<Mutex<Vec<(RingAnswer, Outcome)>>>,
    waker: Waker,
}

impl Inbox {
    pub(crate) fn new() -> io::Result<Inbox> {
        Ok(Inbox { answers: Arc::default(), waker: Waker::new()? })
    }

    pub(crate) fn put(&self, answer: RingAnswer, outcome: Outcome) {
        self.answers.lock().expect("no thread panics while it holds the lock").push((answer, outcome));
        self.waker.wake();
    }
}

/// Answers requests until the file system is unmounted.
#[derive(Debug)]
pub(crate) struct RingServer {
    pub(crate) store: Arc<Store>,
    pub(crate) driver: Arc<Driver<RingAnswer>>,
    pub(crate) inbox: Inbox,
}

impl RingServer {
    /// Call it on the thread that will call [`RingServer::run`].
    ///
    /// # Errors
    /// The kernel refuses the ring, or any of its slots.
    pub(crate) fn register(fuse: OwnedFd, inbox: &Inbox) -> anyhow::Result<Ring> {
        Ring::register(fuse, inbox.waker.clone(), REQUEST_BYTES_MAX as usize)
            .context("registering the FUSE ring")
    }

    /// # Errors
    /// The kernel refuses an answer.
    pub(crate) fn run(self, ring: Ring) -> anyhow::Result<()> {
        let RingServer { store, driver, inbox } = self;
        realtime::set_timer_slack();
        let mut allowance = None;
        if realtime::set_fifo(realtime::ANSWERING) {
            driver.set_scheduler("SCHED_FIFO");
            allowance = Some(Allowance::new(realtime::ANSWERING));
        }
        let mut turn = Turn { ring, store, driver, due: Vec::new() };
        let mut arrived = Vec::new();
        loop {
            if !turn.ring.wait(turn.driver.next_due(), &mut arrived).context("waiting for the FUSE ring")? {
                return Ok(());
            }
            if let Some(allowance) = &mut allowance {
                allowance.look();
            }
            for slot in arrived.drain(..) {
                turn.take(slot)?;
            }
            turn.driver.take_due(&mut turn.due);
            turn.answer_due()?;
            let waiting =
                std::mem::take(&mut *inbox.answers.lock().expect("no thread panics while it holds the lock"));
            for (answer, outcome) in waiting {
                turn.send(answer, outcome)?;
            }
        }
    }
}

/// The next step for a request.
enum Next {
    /// The number of bytes.
    Answer(usize),
    Submit {
        operation: Operation,
        offset_bytes: u64,
        size_bytes: u64,
    },
}

struct Turn {
    ring: Ring,
    store: Arc<Store>,
    driver: Arc<Driver<RingAnswer>>,
    due: Vec<Due<RingAnswer>>,
}

impl Turn {
    /// Answers a request at once, or gives it to the model.
    fn take(&mut self, slot: Slot) -> io::Result<()> {
        match self.look_at(slot) {
            Err(error) => self.ring.commit(slot, Err(error.into())),
            Ok(Next::Answer(size_bytes)) => self.ring.commit(slot, Ok(size_bytes)),
            Ok(Next::Submit { operation, offset_bytes, size_bytes }) => {
                let answer = RingAnswer { slot, operation, offset_bytes, size_bytes };
                self.driver.accept(operation, offset_bytes, size_bytes, answer, &mut self.due);
                Ok(())
            }
        }
    }

    fn look_at(&mut self, slot: Slot) -> Result<Next, Errno> {
        let request = self.ring.request(slot);
        let header = request.header;
        let next = match request.opcode {
            opcode::READ => {
                let offset_bytes = u64_at(header, 8);
                match readable_bytes(&self.store, offset_bytes, u32_at(header, 16)) {
                    0 => Next::Answer(0),
                    size_bytes => Next::Submit { operation: Operation::Read, offset_bytes, size_bytes },
                }
            }
            opcode::WRITE => {
                let (offset_bytes, size_bytes) = (u64_at(header, 8), request.payload.len() as u64);
                store_write(&self.store, offset_bytes, request.payload)?;
                Next::Submit { operation: Operation::Write, offset_bytes, size_bytes }
            }
            opcode::FSYNC => Next::Submit { operation: Operation::Flush, offset_bytes: 0, size_bytes: 0 },
            opcode::FALLOCATE => {
                let (offset_bytes, size_bytes) = (u64_at(header, 8), u64_at(header, 16));
                let mode = u32_at(header, 24) as i32;
                let operation = store_fallocate(&self.store, offset_bytes, size_bytes, mode)?;
                Next::Submit { operation, offset_bytes, size_bytes }
            }
            opcode::LOOKUP if request.inode != ROOT || name(request.payload) != FILE_NAME.as_bytes() => {
                return Err(Errno::ENOENT);
            }
            opcode::LOOKUP => Next::Answer(self.entry(slot)),
            opcode::GETATTR => Next::Answer(self.attributes(slot, request.inode)),
            opcode::OPEN => Next::Answer(self.opened(slot, OPEN_FLAGS.bits())),
            opcode::OPENDIR => Next::Answer(self.opened(slot, 0)),
            opcode::STATFS => Next::Answer(self.statfs(slot)),
            opcode::RELEASE | opcode::RELEASEDIR => Next::Answer(0),
            // FLUSH, which close(2) sends, succeeds and is not sent again.
            _ => return Err(Errno::ENOSYS),
        };
        Ok(next)
    }

    fn answer_due(&mut self) -> io::Result<()> {
        if self.due.is_empty() {
            return Ok(());
        }
        let due = std::mem::take(&mut self.due);
        for Due { payload, outcome, .. } in &due {
            self.send(*payload, *outcome)?;
        }
        self.ring.submit()?;
        self.driver.record(due.iter().map(|due| due.timing));
        self.due = due;
        self.due.clear();
        Ok(())
    }

    /// Sends the answer. The data of a read is taken from the store at this moment. A failed store fails
    /// every request, above all a FLUSH.
    fn send(&mut self, answer: RingAnswer, outcome: Outcome) -> io::Result<()> {
        let RingAnswer { slot, operation, offset_bytes, size_bytes } = answer;
        let outcome = if self.store.failure().is_some() { Outcome::Failure } else { outcome };
        let result = match (outcome, operation) {
            (Outcome::Failure, _) => Err(libc::EIO),
            (Outcome::Success, Operation::Read) => {
                let into = &mut self.ring.answer(slot)[..size_bytes as usize];
                self.store.read(offset_bytes, into).map(|()| size_bytes as usize).map_err(|_| libc::EIO)
            }
            // `struct fuse_write_out`
            (Outcome::Success, Operation::Write) => {
                Ok(self.fill(slot, |out| out.u32(size_bytes as u32).u32(0)))
            }
            (Outcome::Success, Operation::Flush | Operation::Discard | Operation::WriteZeroes) => Ok(0),
        };
        self.ring.commit(slot, result)
    }

    fn fill(&mut self, slot: Slot, write: impl FnOnce(Out) -> Out) -> usize {
        let bytes = write(Out(Vec::with_capacity(128))).0;
        self.ring.answer(slot)[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }

    /// `struct fuse_entry_out`
    fn entry(&mut self, slot: Slot) -> usize {
        let size_bytes = self.store.size_bytes();
        self.fill(slot, |out| {
            let seconds = FOREVER.as_secs();
            out.u64(FILE).u64(0).u64(seconds).u64(seconds).u32(0).u32(0).attributes(FILE, size_bytes)
        })
    }

    /// `struct fuse_attr_out`
    fn attributes(&mut self, slot: Slot, inode: u64) -> usize {
        let size_bytes = self.store.size_bytes();
        self.fill(slot, |out| out.u64(FOREVER.as_secs()).u32(0).u32(0).attributes(inode, size_bytes))
    }

    /// `struct fuse_open_out`
    fn opened(&mut self, slot: Slot, flags: u32) -> usize {
        self.fill(slot, |out| out.u64(0).u32(flags).u32(0))
    }

    /// `struct fuse_statfs_out`: blocks, free, available, files, free files; block size, name length,
    /// fragment size.
    fn statfs(&mut self, slot: Slot) -> usize {
        self.fill(slot, |out| {
            let out = (0..5).fold(out, |out, _| out.u64(0)).u32(512).u32(255).u32(512);
            (0..7).fold(out, |out, _| out.u32(0))
        })
    }
}

/// The name before the zero byte that ends it.
fn name(payload: &[u8]) -> &[u8] {
    payload.split(|&byte| byte == 0).next().unwrap_or_default()
}

/// Builds a structure of the protocol, field by field.
struct Out(Vec<u8>);

impl Out {
    fn u64(mut self, value: u64) -> Out {
        self.0.extend(value.to_ne_bytes());
        self
    }

    fn u32(mut self, value: u32) -> Out {
        self.0.extend(value.to_ne_bytes());
        self
    }

    /// `struct fuse_attr`; all times, owners and devices are zero.
    fn attributes(self, inode: u64, size_bytes: u64) -> Out {
        let (mode, size_bytes) = match inode {
            ROOT => (libc::S_IFDIR | 0o700, 0),
            _ => (libc::S_IFREG | 0o600, size_bytes),
        };
        let out = self.u64(inode).u64(size_bytes).u64(size_bytes / 512).u64(0).u64(0).u64(0);
        let out = out.u32(0).u32(0).u32(0).u32(mode).u32(1);
        // uid, gid, rdev; block size; flags
        out.u32(0).u32(0).u32(0).u32(4096).u32(0)
    }
}
