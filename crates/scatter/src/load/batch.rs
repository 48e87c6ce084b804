//! Rows of one shard that are loaded in one transaction.

use std::ops::Range;

use super::input::{Position, Record};

/// A batch ends before it is larger, however few its rows are.
pub(super) const BATCH_BYTES_MOST: usize = 32 << 20;

#[derive(Debug, Default)]
pub(super) struct Batch {
    /// The records as the files have them, each with the terminator of a line.
    pub(super) bytes: Vec<u8>,
    pub(super) rows: Vec<Row>,
    /// Behind the last record.
    pub(super) to: Position,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Row {
    /// Of its bytes in the batch.
    end: usize,
    /// Index of its file, and its line there.
    pub(super) file: usize,
    pub(super) line: u64,
}

impl Batch {
    /// An empty one with room for as much.
    pub(super) fn like(other: &Batch) -> Batch {
        let bytes = Vec::with_capacity(other.bytes.len() + other.bytes.len() / 8);
        Batch { bytes, rows: Vec::with_capacity(other.rows.len()), to: Position::default() }
    }

    pub(super) fn push(&mut self, record: &Record<'_>, line_end: &[u8]) {
        self.bytes.extend_from_slice(record.bytes);
        if !record.is_terminated {
            self.bytes.extend_from_slice(line_end);
        }
        self.rows.push(Row { end: self.bytes.len(), file: record.from.file, line: record.from.line });
        self.to = record.to;
    }

    pub(super) fn is_full(&self, rows_most: usize) -> bool {
        self.rows.len() >= rows_most || self.bytes.len() >= BATCH_BYTES_MOST
    }

    /// The bytes of these rows.
    pub(super) fn bytes_of(&self, rows: &Range<usize>) -> Range<usize> {
        let end = |count: usize| count.checked_sub(1).map_or(0, |index| self.rows[index].end);
        end(rows.start)..end(rows.end)
    }
}
