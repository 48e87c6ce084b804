//! The FUSE file system with one file, `disk`. The store provides its content, the model its timing.
//!
//! Requests come through fuser's threads (here), or through a ring (see [`crate::ring_file`]).
//!
//! Block operations arrive through a loop device as follows (measured, Linux 6.18): FLUSH as FSYNC; FUA as
//! WRITE and then FSYNC; DISCARD as FALLOCATE with PUNCH_HOLE; WRITE_ZEROES as FALLOCATE with ZERO_RANGE.
//!
//! # Divergence
//! The loop driver answers FLUSH and FALLOCATE synchronously in one kernel worker, so requests behind one of
//! them wait for it. A SATA drive does the same with FLUSH (it is not a queued command); an NVMe drive does
//! not.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen, ReplyWrite,
    WriteFlags,
};
use spindle_model::{Operation, Outcome};

use crate::driver::Driver;
use crate::store::Store;

/// Name of the file in the mounted directory.
pub(crate) const FILE_NAME: &str = "disk";

pub(crate) const ROOT: u64 = 1;
pub(crate) const FILE: u64 = 2;
/// Attributes never change.
pub(crate) const FOREVER: Duration = Duration::from_secs(1 << 30);
/// Largest request: the kernel's limit without a raised `fs.fuse.max_pages_limit`.
pub(crate) const REQUEST_BYTES_MAX: u32 = 1 << 20;
/// Deeper than the loop driver's own queue (128), so that the emulator never limits it.
const QUEUE_DEPTH_MAX: u16 = 1024;

/// The data for answering one request.
#[derive(Debug)]
pub(crate) enum Answer {
    Read { reply: ReplyData, offset_bytes: u64, size_bytes: usize },
    Write { reply: ReplyWrite, size_bytes: u32 },
    Empty { reply: ReplyEmpty },
}

/// Sends the answer. The data of a read is taken from the store at this moment. A failed store fails every
/// request, above all a FLUSH.
pub(crate) fn send(store: &Store, answer: Answer, outcome: Outcome) {
    let outcome = if store.failure().is_some() { Outcome::Failure } else { outcome };
    match (answer, outcome) {
        (Answer::Read { reply, offset_bytes, size_bytes }, Outcome::Success) => {
            send_data(store, reply, offset_bytes, size_bytes);
        }
        (Answer::Write { reply, size_bytes }, Outcome::Success) => reply.written(size_bytes),
        (Answer::Empty { reply }, Outcome::Success) => reply.ok(),
        (Answer::Read { reply, .. }, Outcome::Failure) => reply.error(Errno::EIO),
        (Answer::Write { reply, .. }, Outcome::Failure) => reply.error(Errno::EIO),
        (Answer::Empty { reply }, Outcome::Failure) => reply.error(Errno::EIO),
    }
}

fn send_data(store: &Store, reply: ReplyData, offset_bytes: u64, size_bytes: usize) {
    thread_local! {
        /// Grows to the largest read, so that answers allocate no memory.
        static DATA: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }
    DATA.with_borrow_mut(|data| {
        data.resize(data.len().max(size_bytes), 0);
        let data = &mut data[..size_bytes];
        match store.read(offset_bytes, data) {
            Ok(()) => reply.data(data),
            Err(error) => reply.error(error.into()),
        }
    });
}

#[derive(Debug)]
pub(crate) struct DiskFile {
    pub(crate) store: Arc<Store>,
    pub(crate) driver: Arc<Driver<Answer>>,
}

impl DiskFile {
    fn attributes(&self, inode: u64) -> FileAttr {
        let (kind, perm, size) = match inode {
            ROOT => (FileType::Directory, 0o700, 0),
            _ => (FileType::RegularFile, 0o600, self.store.size_bytes()),
        };
        let time = SystemTime::UNIX_EPOCH;
        FileAttr {
            ino: INodeNo(inode),
            size,
            blocks: size / 512,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: time,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

/// Number of bytes of a read that lie on the disk. At the end, FUSE wants a short answer rather than an
/// error.
pub(crate) fn readable_bytes(store: &Store, offset_bytes: u64, size_bytes: u32) -> u64 {
    u64::from(size_bytes).min(store.size_bytes().saturating_sub(offset_bytes))
}

fn check_inside(store: &Store, offset_bytes: u64, size_bytes: u64) -> Result<(), Errno> {
    let end = offset_bytes.checked_add(size_bytes);
    if end.is_some_and(|end| end <= store.size_bytes()) { Ok(()) } else { Err(Errno::ENOSPC) }
}

/// Stores the data. The model decides when the write is complete.
pub(crate) fn store_write(store: &Store, offset_bytes: u64, data: &[u8]) -> Result<(), Errno> {
    check_inside(store, offset_bytes, data.len() as u64)?;
    store.write(offset_bytes, data).map_err(|error| {
        eprintln!("writing {} bytes at {offset_bytes} to the store: {error}", data.len());
        error.into()
    })
}

/// Clears the range and returns the block operation of the mode.
pub(crate) fn store_fallocate(
    store: &Store,
    offset_bytes: u64,
    size_bytes: u64,
    mode: i32,
) -> Result<Operation, Errno> {
    let operation = if mode & libc::FALLOC_FL_PUNCH_HOLE != 0 {
        Operation::Discard
    } else if mode & libc::FALLOC_FL_ZERO_RANGE != 0 {
        Operation::WriteZeroes
    } else {
        return Err(Errno::EOPNOTSUPP);
    };
    check_inside(store, offset_bytes, size_bytes)?;
    store.clear(offset_bytes, size_bytes).map_err(|error| {
        eprintln!("clearing {size_bytes} bytes at {offset_bytes} of the store: {error}");
        Errno::from(error)
    })?;
    Ok(operation)
}

/// Sets the FUSE options common to both ways of serving.
pub(crate) fn configure(config: &mut KernelConfig, more: InitFlags) -> io::Result<()> {
    // Without asynchronous direct I/O the loop device would send one request at a time.
    config
        .add_capabilities(InitFlags::FUSE_ASYNC_DIO | InitFlags::FUSE_MAX_PAGES | more)
        .map_err(|missing| io::Error::other(format!("this kernel's FUSE lacks {missing:?}")))?;
    let refused = |nearest| io::Error::other(format!("FUSE refuses a limit; nearest is {nearest}"));
    config.set_max_write(REQUEST_BYTES_MAX).map_err(refused)?;
    config.set_max_background(QUEUE_DEPTH_MAX).map_err(|nearest| refused(nearest.into()))?;
    config.set_congestion_threshold(QUEUE_DEPTH_MAX).map_err(|nearest| refused(nearest.into()))?;
    Ok(())
}

/// Direct I/O, and parallel writes.
pub(crate) const OPEN_FLAGS: FopenFlags = FopenFlags::FOPEN_DIRECT_IO
    .union(FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES)
    .union(FopenFlags::FOPEN_NOFLUSH);

impl Filesystem for DiskFile {
    fn init(&mut self, _request: &fuser::Request, config: &mut KernelConfig) -> io::Result<()> {
        configure(config, InitFlags::empty())
    }

    fn lookup(&self, _request: &fuser::Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        if parent.0 == ROOT && name == FILE_NAME {
            reply.entry(&FOREVER, &self.attributes(FILE), Generation(0));
        } else {
            reply.error(Errno::ENOENT);
        }
    }

    fn getattr(
        &self,
        _request: &fuser::Request,
        inode: INodeNo,
        _handle: Option<FileHandle>,
        reply: ReplyAttr,
    ) {
        reply.attr(&FOREVER, &self.attributes(inode.0));
    }

    fn open(&self, _request: &fuser::Request, _inode: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), OPEN_FLAGS);
    }

    fn read(
        &self,
        _request: &fuser::Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        size: u32,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let size = readable_bytes(&self.store, offset, size);
        if size == 0 {
            return reply.data(&[]);
        }
        let answer = Answer::Read { reply, offset_bytes: offset, size_bytes: size as usize };
        self.driver.submit(Operation::Read, offset, size, answer);
    }

    fn write(
        &self,
        _request: &fuser::Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        data: &[u8],
        _write_flags: WriteFlags,
        _flags: OpenFlags,
        _lock_owner: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        if let Err(error) = store_write(&self.store, offset, data) {
            return reply.error(error);
        }
        let answer = Answer::Write { reply, size_bytes: data.len() as u32 };
        self.driver.submit(Operation::Write, offset, data.len() as u64, answer);
    }

    fn fsync(
        &self,
        _request: &fuser::Request,
        _inode: INodeNo,
        _handle: FileHandle,
        _datasync: bool,
        reply: ReplyEmpty,
    ) {
        self.driver.submit(Operation::Flush, 0, 0, Answer::Empty { reply });
    }

    fn fallocate(
        &self,
        _request: &fuser::Request,
        _inode: INodeNo,
        _handle: FileHandle,
        offset: u64,
        length: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let operation = match store_fallocate(&self.store, offset, length, mode) {
            Ok(operation) => operation,
            Err(error) => return reply.error(error),
        };
        self.driver.submit(operation, offset, length, Answer::Empty { reply });
    }
}
