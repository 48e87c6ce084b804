//! The proof that a program is dilated.
//!
//! `SPINDLE_DILATION_MARK="<file descriptor> <device> <inode>"` names a pipe or a file that the program
//! inherits. Every process that loads this library writes one line there before its `main`:
//! `<process id> <k>`. A program that cannot be dilated (see the list of the crate) writes none. Device and
//! inode are those of fstat(2): a child process may have another file at that number, such as a table of a
//! database, which nobody may write a mark into.

use std::ffi::{CStr, c_int, c_void};
use std::io::{Cursor, Write};

use crate::dilation;

const VARIABLE: &CStr = c"SPINDLE_DILATION_MARK";
/// `struct stat` begins with device and inode, and has 144 bytes on x86-64 and 128 on aarch64.
const STAT_WORDS: usize = 32;

pub(crate) fn write() {
    unsafe extern "C" {
        fn fstat(file: c_int, stat: *mut [u64; STAT_WORDS]) -> c_int;
        safe fn getpid() -> c_int;
        fn write(file: c_int, bytes: *const c_void, length: usize) -> isize;
    }
    let Some((file, device, inode)) =
        dilation::variable(VARIABLE).and_then(|text| parse(text.to_str().ok()?))
    else {
        return;
    };
    let mut stat = [0; STAT_WORDS];
    // SAFETY: there is room for a `struct stat`.
    if unsafe { fstat(file, &raw mut stat) } != 0 || stat[..2] != [device, inode] {
        return;
    }
    let mut line = Cursor::new([0_u8; 64]);
    if writeln!(line, "{} {}", getpid(), dilation::factor()).is_ok() {
        // One write, so that lines of two processes do not mix. If it fails, there is no proof, as it should
        // be.
        //
        // SAFETY: the bytes that were written to the line.
        unsafe { write(file, line.get_ref().as_ptr().cast(), line.position() as usize) };
    }
}

fn parse(text: &str) -> Option<(c_int, u64, u64)> {
    let mut words = text.split_ascii_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}
