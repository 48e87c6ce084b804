//! A read-only memory mapping of our own file. A read from it is one copy without a system call.

#![expect(unsafe_code, reason = "copying out of a memory map")]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr;

use memmap2::{Advice, MmapOptions, MmapRaw};

/// No reference to the memory is handed out, because it changes when the file is written. Bytes are copied
/// out, or pages are populated.
#[derive(Debug)]
pub(crate) struct Mapping(MmapRaw);

impl Mapping {
    /// Maps the first `size` bytes. Before [`Mapping::copy_to`] the caller must prevent others from
    /// shortening the file: a page beyond the file's end ends the process (SIGBUS).
    pub(crate) fn new(file: &File, size: usize) -> io::Result<Mapping> {
        MmapOptions::new().len(size).map_raw_read_only(file).map(Mapping)
    }

    /// Copies the bytes from `offset` on. If the file is written at the same time, the copy is a mixture of
    /// old and new data, as on a disk that is read while it is written.
    pub(crate) fn copy_to(&self, offset: usize, into: &mut [u8]) {
        self.check(offset, into.len());
        // SAFETY: inside the map, which lives as long as `self`; `into` is outside it, because nobody has a
        // reference into the map. A byte that is written meanwhile is written by the kernel, through the
        // file, and has the old value or the new one; both are valid.
        unsafe { ptr::copy_nonoverlapping(self.0.as_ptr().add(offset), into.as_mut_ptr(), into.len()) }
    }

    /// Brings these bytes into memory, from the host's disk if necessary. A shortened file causes an error,
    /// not a signal (EFAULT, madvise(2)).
    pub(crate) fn populate(&self, range: Range<usize>) -> io::Result<()> {
        self.check(range.start, range.len());
        self.0.advise_range(Advice::PopulateRead, range.start, range.len())
    }

    fn check(&self, offset: usize, size: usize) {
        assert!(offset.checked_add(size).is_some_and(|end| end <= self.0.len()), "outside the map");
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
