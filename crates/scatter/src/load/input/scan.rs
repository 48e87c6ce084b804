//! One record of a file, by the rules of LOAD DATA's own reader (`READ_INFO` in `sql/sql_load.cc` of MariaDB and MySQL).
//!
//! They are not those of the `csv` crate, which passes over empty lines, ends an enclosed field at any quotation mark
//! that is not doubled, and knows escapes in enclosed fields only. A record goes on to a server as it is, so a record
//! must end here where it ends there.

use std::borrow::Cow;

use super::plain::Plain;
use crate::load::format::{Format, unescaped};

#[derive(Debug, Clone)]
pub(in crate::load) struct Scanner {
    format: Format,
    /// Bytes that may mean more than themselves.
    is_special: [bool; 256],
    /// Index of the field whose place is asked for.
    key: Option<usize>,
    plain: Option<Plain>,
}

#[derive(Debug, Clone, PartialEq)]
pub(in crate::load) enum Scan {
    Record(Scanned),
    /// The record may go on after these bytes.
    More,
    /// No further record.
    End,
}

/// Places in the scanned bytes.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::load) struct Scanned {
    /// Behind what stands before the start of the line.
    pub(in crate::load) begin: usize,
    /// Behind the terminator of the line.
    pub(in crate::load) end: usize,
    pub(in crate::load) fields: usize,
    pub(in crate::load) key: Option<Field>,
    /// `false` if the file ends in its place.
    pub(in crate::load) is_terminated: bool,
    pub(in crate::load) flaw: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::load) struct Field {
    pub(in crate::load) begin: usize,
    /// Before its terminator.
    pub(in crate::load) end: usize,
    pub(in crate::load) is_enclosed: bool,
}

/// What is behind a field, and where the next one begins.
enum End {
    Field(usize),
    Line(usize),
    File,
    /// The file ends where a field cannot.
    Flaw(&'static str),
    More,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Match {
    Yes,
    No,
    /// The bytes end too early to tell.
    Perhaps,
}

impl Scanner {
    pub(in crate::load) fn new(format: &Format, key: Option<usize>) -> Scanner {
        let mut is_special = [false; 256];
        let ends = [format.field_end[0], format.line_end[0]];
        for byte in ends.into_iter().chain(format.enclosure).chain(format.escape) {
            is_special[usize::from(byte)] = true;
        }
        Scanner { format: format.clone(), is_special, key, plain: Plain::of(format) }
    }

    /// The record at the beginning of these bytes. `is_end`: the file ends with them.
    pub(in crate::load) fn scan(&self, bytes: &[u8], is_end: bool) -> Scan {
        match self.plain.as_ref().and_then(|plain| plain.scan(bytes, self.key)) {
            Some(record) => Scan::Record(record),
            None => self.scan_fields(bytes, is_end),
        }
    }

    /// As [`Self::scan`], byte by byte.
    fn scan_fields(&self, bytes: &[u8], is_end: bool) -> Scan {
        let Some(begin) = self.line_start(bytes) else { return if is_end { Scan::End } else { Scan::More } };
        let fields_begin = begin + self.format.line_start.len();
        if bytes.len() == fields_begin {
            return if is_end { Scan::End } else { Scan::More };
        }
        let mut record =
            Scanned { begin, end: bytes.len(), fields: 0, key: None, is_terminated: false, flaw: None };
        let mut at = fields_begin;
        loop {
            // A file that ends behind the terminator of a field has no further field for LOAD DATA.
            if at == bytes.len() {
                return if is_end { Scan::Record(record) } else { Scan::More };
            }
            let (field, end) = self.field(bytes, at, is_end);
            if matches!(end, End::More) {
                return Scan::More;
            }
            if self.key == Some(record.fields) {
                record.key = Some(field);
            }
            record.fields += 1;
            match end {
                End::Field(next) => at = next,
                End::Line(next) => {
                    return Scan::Record(Scanned { end: next, is_terminated: true, ..record });
                }
                End::Flaw(words) => return Scan::Record(Scanned { flaw: Some(words), ..record }),
                End::File | End::More => return Scan::Record(record),
            }
        }
    }

    /// Where the first line begins, with its start; lines without one are no records.
    fn line_start(&self, bytes: &[u8]) -> Option<usize> {
        match self.format.line_start.as_slice() {
            [] => Some(0),
            start => bytes.windows(start.len()).position(|window| window == start),
        }
    }

    fn field(&self, bytes: &[u8], begin: usize, is_end: bool) -> (Field, End) {
        let quote = self.format.enclosure.filter(|quote| bytes[begin] == *quote);
        let field = |end: usize, is_enclosed: bool| Field { begin, end, is_enclosed };
        let mut at = begin + usize::from(quote.is_some());
        loop {
            while at < bytes.len() && !self.is_special[usize::from(bytes[at])] {
                at += 1;
            }
            let Some(byte) = bytes.get(at).copied() else {
                return (field(at, false), end_of_file(quote, is_end));
            };
            let next = bytes.get(at + 1).copied();
            if self.format.escape == Some(byte) {
                match next {
                    None => {
                        return (field(at, false), if is_end { End::Flaw(OPEN_ESCAPE) } else { End::More });
                    }
                    // An escape that encloses as well escapes only itself.
                    Some(next) if self.format.escape != self.format.enclosure || next == byte => {
                        at += 2;
                        continue;
                    }
                    Some(_) => {}
                }
            }
            match quote {
                Some(quote) if byte == quote => match next {
                    None if is_end => return (field(at + 1, true), End::File),
                    None => return (field(at, false), End::More),
                    Some(next) if next == quote => at += 2,
                    Some(_) => match self.terminator(bytes, at + 1, is_end) {
                        Some(end) => return (field(at + 1, true), end),
                        // A quotation mark in the middle is itself.
                        None => at += 1,
                    },
                },
                Some(_) => at += 1,
                None => match self.terminator(bytes, at, is_end) {
                    Some(end) => return (field(at, false), end),
                    None => at += 1,
                },
            }
        }
    }

    fn terminator(&self, bytes: &[u8], at: usize, is_end: bool) -> Option<End> {
        let (line_end, field_end) = (&self.format.line_end, &self.format.field_end);
        match matches(bytes, at, line_end, is_end) {
            Match::Yes => return Some(End::Line(at + line_end.len())),
            Match::Perhaps => return Some(End::More),
            Match::No => {}
        }
        match matches(bytes, at, field_end, is_end) {
            Match::Yes => Some(End::Field(at + field_end.len())),
            Match::Perhaps => Some(End::More),
            Match::No => None,
        }
    }

    /// Where the line that begins these bytes ends, as IGNORE n LINES reads it: without regard to enclosed fields.
    /// `None` if the bytes do not have its end.
    pub(in crate::load) fn ignored_line(&self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            if self.format.escape == Some(bytes[at]) {
                at += 2;
                continue;
            }
            if matches(bytes, at, &self.format.line_end, true) == Match::Yes {
                return Some(at + self.format.line_end.len());
            }
            at += 1;
        }
        None
    }

    /// What a field stands for, `None` for NULL. `text` is the field as the file has it.
    pub(in crate::load) fn value<'a>(&self, text: &'a [u8], is_enclosed: bool) -> Option<Cow<'a, [u8]>> {
        let text = if is_enclosed { &text[1..text.len() - 1] } else { text };
        let quote = self.format.enclosure.filter(|_| is_enclosed);
        let has_escapes = text.iter().any(|byte| self.format.escape == Some(*byte) || quote == Some(*byte));
        let mut has_null = false;
        let value = match has_escapes {
            false => Cow::Borrowed(text),
            true => Cow::Owned(self.decoded(text, quote, &mut has_null)),
        };
        let is_word = !is_enclosed && self.format.enclosure.is_some() && *value == *b"NULL";
        let is_null = is_word || (has_null && value.len() == 1);
        (!is_null).then_some(value)
    }

    fn decoded(&self, text: &[u8], quote: Option<u8>, has_null: &mut bool) -> Vec<u8> {
        let mut value = Vec::with_capacity(text.len());
        let mut rest = text.iter().copied().peekable();
        while let Some(byte) = rest.next() {
            let next = rest.peek().copied();
            let escapes = self.format.escape == Some(byte)
                && (self.format.escape != self.format.enclosure || next == Some(byte));
            match next {
                Some(next) if escapes => {
                    *has_null |= next == b'N';
                    value.push(unescaped(next));
                    rest.next();
                }
                Some(next) if quote == Some(byte) && next == byte => {
                    value.push(byte);
                    rest.next();
                }
                _ => value.push(byte),
            }
        }
        value
    }
}

const OPEN_ESCAPE: &str = "the file ends within an escape";
const OPEN_FIELD: &str = "the file ends within an enclosed field";

fn end_of_file(quote: Option<u8>, is_end: bool) -> End {
    match (is_end, quote) {
        (false, _) => End::More,
        (true, None) => End::File,
        (true, Some(_)) => End::Flaw(OPEN_FIELD),
    }
}

fn matches(bytes: &[u8], at: usize, terminator: &[u8], is_end: bool) -> Match {
    let rest = &bytes[at..];
    if rest.starts_with(terminator) {
        return Match::Yes;
    }
    if !is_end && rest.len() < terminator.len() && terminator.starts_with(rest) {
        Match::Perhaps
    } else {
        Match::No
    }
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
