//! A file of our own seen as memory, read-only, so that what is read from it is copied once and without a system call.

#![expect(unsafe_code, reason = "memory maps")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

/// Nobody gets a reference to the memory, because it changes when the file is written: bytes are copied out of it, or it is asked for
/// its pages.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: *const u8,
    size: usize,
}

// SAFETY: an address and a size that never change; the memory belongs to the process, not to a thread.
unsafe impl Send for Mapping {}
// SAFETY: all that can be done with it is reading, which any number of threads may do at once.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `size` bytes. Who means to call [`Mapping::copy_to`] keeps everybody from shortening the file: a page beyond the
    /// file's end ends the process (SIGBUS).
    pub(crate) fn new(file: &File, size: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh shared map at an address of the kernel's choice aliases no Rust object.
        let start = unsafe { mmap(ptr::null_mut(), size, ProtFlags::READ, MapFlags::SHARED, file, 0)? };
        Ok(Mapping { start: start.cast(), size })
    }

    /// Copies the bytes from `offset` on. Where the file is written at the same time, what arrives is a mixture of old and new, as of a
    /// disk that is read while it is written.
    pub(crate) fn copy_to(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        // SAFETY: inside the map, which lives as long as `self`; `into` is not, because nobody has a reference into it. A byte that is
        // written meanwhile is written by the kernel, through the file, and has the old value or the new one; both are valid.
        unsafe { ptr::copy_nonoverlapping(self.start.add(offset), into.as_mut_ptr(), into.len()) }
    }

    /// Brings these bytes into memory, waiting for the host's disk if it must. Where the file was shortened this is an error, not a
    /// signal (EFAULT, madvise(2)).
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        let size = range.len();
        self.check(range.start, size);
        // SAFETY: inside the map; reading pages in changes no content, and nothing is read by us.
        unsafe { madvise(self.start.add(range.start).cast_mut().cast(), size, Advice::LinuxPopulateRead)? };
        Ok(())
    }

    fn check(&self, offset: usize, size: usize) {
        assert!(offset.checked_add(size).is_some_and(|end| end <= self.size), "outside the map");
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `new` mapped; nobody has a reference into it.
        let _ = unsafe { munmap(self.start.cast_mut().cast(), self.size) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "outside the map")]
    fn an_offset_that_wraps_around_is_outside_the_map() {
        let mapping = Mapping::new(&tempfile::tempfile().unwrap(), 4096).unwrap();
        mapping.copy_to(usize::MAX, &mut [0; 2]);
    }
}
