//! The records of a file with their places, in a bounded part of memory.

use std::io::{ErrorKind, Read};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use super::scan::{Field, Scan, Scanner};

const BUFFER_BYTES: usize = 1 << 20;
/// A record that is longer is a sign of an enclosure that nothing closes.
const RECORD_BYTES_MOST: usize = 64 << 20;

/// A place between two records. Places are in the order in which records are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Index of the file.
    pub file: usize,
    pub byte: u64,
    /// Number of the line that begins here, or that goes on here.
    pub line: u64,
    /// Records before this place, those of earlier files included.
    pub rows: u64,
}

impl Position {
    /// The beginning of a file.
    pub(in crate::load) fn of_file(file: usize, rows: u64) -> Position {
        Position { file, byte: 0, line: 1, rows }
    }
}

#[derive(Debug)]
pub(in crate::load) struct Record<'a> {
    /// With the terminator of the line, if it has one.
    pub(in crate::load) bytes: &'a [u8],
    pub(in crate::load) from: Position,
    pub(in crate::load) to: Position,
    pub(in crate::load) fields: usize,
    /// The text of the key's field, and whether it is enclosed.
    pub(in crate::load) key: Option<(&'a [u8], bool)>,
    pub(in crate::load) is_terminated: bool,
    pub(in crate::load) flaw: Option<&'static str>,
}

#[derive(Debug)]
pub(in crate::load) struct Records<R> {
    input: R,
    scanner: Scanner,
    buffer: Vec<u8>,
    /// What is read and not yet scanned is between these two.
    begin: usize,
    filled: usize,
    is_end: bool,
    position: Position,
    /// What lines are counted by: the last byte of their terminator.
    line_byte: u8,
}

impl<R: Read> Records<R> {
    /// `input` begins at the position.
    pub(in crate::load) fn new(
        input: R,
        scanner: Scanner,
        line_end: &[u8],
        position: Position,
    ) -> Records<R> {
        let line_byte = line_end.last().copied().unwrap_or(b'\n');
        let buffer = vec![0; BUFFER_BYTES];
        Records { input, scanner, buffer, begin: 0, filled: 0, is_end: false, position, line_byte }
    }

    /// Behind the last record.
    pub(in crate::load) fn position(&self) -> Position {
        self.position
    }

    /// The next record, `None` at the end of the file.
    pub(in crate::load) fn read(&mut self) -> Result<Option<Record<'_>>> {
        let scanned = loop {
            match self.scanner.scan(&self.buffer[self.begin..self.filled], self.is_end) {
                Scan::Record(scanned) => break scanned,
                Scan::End => return Ok(None),
                Scan::More => self.fill()?,
            }
        };
        self.pass(scanned.begin);
        let from = self.position;
        let begin = self.begin;
        self.pass(scanned.end - scanned.begin);
        self.position.rows += 1;
        let bytes = &self.buffer[begin..self.begin];
        let text = |field: Field| {
            (&bytes[field.begin - scanned.begin..field.end - scanned.begin], field.is_enclosed)
        };
        Ok(Some(Record {
            bytes,
            from,
            to: self.position,
            fields: scanned.fields,
            key: scanned.key.map(text),
            is_terminated: scanned.is_terminated,
            flaw: scanned.flaw,
        }))
    }

    /// Passes over so many lines.
    pub(in crate::load) fn ignore_lines(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            loop {
                if let Some(length) = self.scanner.ignored_line(&self.buffer[self.begin..self.filled]) {
                    self.pass(length);
                    break;
                }
                if self.is_end {
                    self.pass(self.filled - self.begin);
                    return Ok(());
                }
                self.fill()?;
            }
        }
        Ok(())
    }

    /// Whether the file's first line ends as lines do on Windows. To be asked before the first record is read.
    pub(in crate::load) fn has_carriage_returns(&mut self) -> Result<bool> {
        loop {
            let shown = &self.buffer[self.begin..self.filled];
            match shown.iter().position(|byte| *byte == b'\n') {
                Some(end) => return Ok(shown[..end].ends_with(b"\r")),
                None if self.is_end || self.filled == self.buffer.len() => return Ok(false),
                None => self.fill()?,
            }
        }
    }

    fn pass(&mut self, length: usize) {
        let passed = &self.buffer[self.begin..self.begin + length];
        self.position.line += passed.iter().filter(|byte| **byte == self.line_byte).count() as u64;
        self.position.byte += length as u64;
        self.begin += length;
    }

    /// Reads on. What is not scanned yet is kept.
    fn fill(&mut self) -> Result<()> {
        if self.filled == self.buffer.len() {
            self.buffer.copy_within(self.begin.., 0);
            self.filled -= self.begin;
            self.begin = 0;
        }
        if self.filled == self.buffer.len() {
            if self.filled >= RECORD_BYTES_MOST {
                let line = self.position.line;
                bail!(
                    "the record at line {line} is longer than {} MiB; does an enclosed field end?",
                    RECORD_BYTES_MOST >> 20
                );
            }
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        loop {
            match self.input.read(&mut self.buffer[self.filled..]) {
                Ok(count) => {
                    self.filled += count;
                    self.is_end = count == 0;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).context("reading on"),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::format::Format;

    /// Gives a few bytes at a time.
    struct Drops<'a>(&'a [u8], usize);

    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = self.0.len().min(self.1).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }

    fn records<'a>(format: &Format, input: &'a [u8], drop: usize) -> Records<Drops<'a>> {
        let scanner = Scanner::new(format, Some(0));
        Records::new(Drops(input, drop), scanner, &format.line_end, Position::of_file(0, 0))
    }

    /// Line and key of each record.
    #[track_caller]
    fn check(format: &Format, text: &str, ignored: u64, expect: &[(u64, &str)]) {
        check_by(&[1, 2, 3, 1000], format, text, ignored, expect);
    }

    #[track_caller]
    fn check_by(drops: &[usize], format: &Format, text: &str, ignored: u64, expect: &[(u64, &str)]) {
        for &drop in drops {
            let mut records = records(format, text.as_bytes(), drop);
            records.ignore_lines(ignored).unwrap();
            let mut found = Vec::new();
            let mut bytes = records.position().byte;
            while let Some(record) = records.read().unwrap() {
                assert_eq!(record.to.byte - record.from.byte, record.bytes.len() as u64);
                assert!(record.from.byte >= bytes && record.from < record.to);
                bytes = record.to.byte;
                let key = record.key.map(|(text, _)| String::from_utf8(text.to_vec()).unwrap());
                found.push((record.from.line, key.unwrap()));
            }
            let found: Vec<(u64, &str)> = found.iter().map(|(line, key)| (*line, key.as_str())).collect();
            assert_eq!(found, expect, "by {drop} bytes");
            assert_eq!(records.position().rows, expect.len() as u64);
        }
    }

    #[test]
    fn a_record_has_the_number_of_its_first_line() {
        check(&Format::csv(), "a,\"1\n2\n\"\nb,3\n\nc,4", 0, &[(1, "a"), (4, "b"), (5, ""), (6, "c")]);
        check(&Format::tsv(), "a\t1\\\n2\nb\t3\n", 0, &[(1, "a"), (3, "b")]);
    }

    #[test]
    fn ignored_lines_are_counted_and_not_read() {
        check(&Format::csv(), "id,note\nid,note\na,1\n", 2, &[(3, "a")]);
        check(&Format::csv(), "id", 2, &[]);
    }

    #[test]
    fn a_record_may_be_longer_than_the_buffer() {
        let long = "x".repeat(3 * BUFFER_BYTES);
        let text = format!("a,{long}\nb,\"{long}\"\nc,1\n");
        check_by(&[1 << 18, usize::MAX], &Format::csv(), &text, 0, &[(1, "a"), (2, "b"), (3, "c")]);
    }

    #[test]
    fn a_quotation_mark_that_nothing_closes_does_not_fill_the_memory() {
        let text = format!("\"a\n{}", "b".repeat(RECORD_BYTES_MOST));
        let error = records(&Format::csv(), text.as_bytes(), usize::MAX).read().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the record at line 1 is longer than 64 MiB; does an enclosed field end?"
        );
    }

    #[test]
    fn the_ends_of_lines_of_windows_are_seen() {
        let check = |text: &str, expect: bool| {
            assert_eq!(records(&Format::csv(), text.as_bytes(), 2).has_carriage_returns().unwrap(), expect);
        };
        check("a,b\r\nc\n", true);
        check("a,b\nc\r\n", false);
        check("a,b", false);
    }
}
