//! The quick way through a record that has single bytes as terminators, and neither enclosed fields nor escapes: most
//! records are such. It searches many bytes at a time.

use memchr::{memchr, memchr_iter, memchr2};

use super::scan::{Field, Scanned};
use crate::load::format::Format;

#[derive(Debug, Clone)]
pub(super) struct Plain {
    field_end: u8,
    line_end: u8,
    /// The enclosure and the escape, or one of them twice.
    odd: Option<(u8, u8)>,
}

impl Plain {
    /// `None` if no record of the format can be read in this way.
    pub(super) fn of(format: &Format) -> Option<Plain> {
        let ([field_end], [line_end]) = (format.field_end.as_slice(), format.line_end.as_slice()) else {
            return None;
        };
        let odd = match (format.enclosure, format.escape) {
            (Some(enclosure), Some(escape)) => Some((enclosure, escape)),
            (Some(one), None) | (None, Some(one)) => Some((one, one)),
            (None, None) => None,
        };
        let plain = Plain { field_end: *field_end, line_end: *line_end, odd };
        format.line_start.is_empty().then_some(plain)
    }

    /// The record at the beginning of these bytes, with the place of field `key`. `None` if it is not known to be of
    /// this kind, or to end within them.
    pub(super) fn scan(&self, bytes: &[u8], key: Option<usize>) -> Option<Scanned> {
        let length = memchr(self.line_end, bytes)?;
        let line = &bytes[..length];
        if self.odd.is_some_and(|(one, other)| memchr2(one, other, line).is_some()) {
            return None;
        }
        Some(Scanned {
            begin: 0,
            end: length + 1,
            fields: memchr_iter(self.field_end, line).count() + 1,
            key: key.and_then(|index| self.field(line, index)),
            is_terminated: true,
            flaw: None,
        })
    }

    fn field(&self, line: &[u8], index: usize) -> Option<Field> {
        let mut ends = memchr_iter(self.field_end, line);
        let begin = match index.checked_sub(1) {
            None => 0,
            Some(before) => ends.nth(before)? + 1,
        };
        Some(Field { begin, end: ends.next().unwrap_or(line.len()), is_enclosed: false })
    }
}
