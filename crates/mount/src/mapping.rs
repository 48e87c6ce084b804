//! A file seen as memory, read-only, so that a reply goes from the page cache to the kernel without a copy in between.

#![expect(unsafe_code, reason = "memory maps")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

#[derive(Debug)]
pub(crate) struct Mapping {
    start: *const u8,
    size: usize,
}

// SAFETY: the map is never moved or written through, and lives until drop.
unsafe impl Send for Mapping {}
// SAFETY: as above; concurrent readers are fine.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `size` bytes; the file must be at least that long, and stay so.
    pub(crate) fn new(file: &File, size: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh shared map at an address of the kernel's choice aliases no Rust object.
        let start = unsafe { mmap(ptr::null_mut(), size, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        Ok(Mapping { start: start.cast(), size })
    }

    /// Bytes of the file. They change when the file is written at the same time, as the content of a disk under a
    /// reader does; callers only hand them to the kernel or copy them.
    pub(crate) fn bytes(&self, range: Range<usize>) -> &[u8] {
        assert!(range.start <= range.end && range.end <= self.size, "outside the map");
        // SAFETY: inside the map, which lives as long as `self`; any byte value is a valid u8.
        unsafe { std::slice::from_raw_parts(self.start.add(range.start), range.len()) }
    }

    /// Brings these bytes into memory, waiting for the host's disk if it must.
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        assert!(range.start <= range.end && range.end <= self.size, "outside the map");
        // SAFETY: inside the map; reading pages in changes no content.
        unsafe {
            madvise(self.start.add(range.start).cast_mut().cast(), range.len(), Advice::LinuxPopulateRead)?
        };
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped; no slice outlives `self`.
        let _ = unsafe { munmap(self.start.cast_mut().cast(), self.size) };
    }
}
