//! Writes to rows with parity, and reconstruction of missing data.

use super::members::{Extents, OpIndex, Purpose};
use super::{Op, Raid, Stage, Task};
use crate::request::Operation;
use crate::requests::Slot;
use crate::time::Instant;

/// The method of computing the new parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// Read-modify-write: reads the old data and the old parity.
    Modify,
    /// Reconstruct-write: reads the rest of the row.
    Reconstruct,
    /// Reads every readable member, if neither of the other methods is possible.
    ReadAll,
}

/// The data that an operation writes in one row.
#[derive(Debug, Clone, Copy)]
struct RowWrite {
    row: u64,
    /// First byte of the row in the host's coordinates.
    row_start: u64,
    start: u64,
    end: u64,
    chunk_bytes: u64,
    /// Part of each parity chunk that changes, relative to the start of the chunk.
    parity: (u64, u64),
}

impl RowWrite {
    fn new(op: &Op, chunk_bytes: u64, row_bytes: u64) -> RowWrite {
        let row = op.start_bytes / row_bytes;
        let is_one_chunk = op.start_bytes / chunk_bytes == (op.end_bytes - 1) / chunk_bytes;
        let parity = if is_one_chunk {
            let chunk_start = op.start_bytes / chunk_bytes * chunk_bytes;
            (op.start_bytes - chunk_start, op.end_bytes - chunk_start)
        } else {
            (0, chunk_bytes)
        };
        RowWrite {
            row,
            row_start: row * row_bytes,
            start: op.start_bytes,
            end: op.end_bytes,
            chunk_bytes,
            parity,
        }
    }

    /// Part of a data chunk that is written, relative to the start of the chunk; empty if none is.
    fn written(&self, data_index: u64) -> (u64, u64) {
        let chunk_start = self.row_start + data_index * self.chunk_bytes;
        let start = self.start.max(chunk_start);
        let end = self.end.min(chunk_start + self.chunk_bytes).max(start);
        if start < end { (start - chunk_start, end - chunk_start) } else { (0, 0) }
    }

    /// Part of a data chunk within the parity range that is not written; empty if there is none.
    fn unwritten(&self, data_index: u64) -> (u64, u64) {
        let (low, high) = self.parity;
        let (start, end) = self.written(data_index);
        if start == end {
            (low, high)
        } else if start > low {
            // A longer write covers a chunk in part only at its start or its end, so the rest is one range.
            (low, start)
        } else {
            (end, high)
        }
    }

    fn on_member(&self, (start, end): (u64, u64)) -> (u64, u64) {
        let row_offset = self.row * self.chunk_bytes;
        (row_offset + start, row_offset + end)
    }
}

impl Raid {
    /// Splits a write into operations on one row each.
    pub(super) fn begin_rows(&mut self, now: Instant, slot: Slot, start_bytes: u64, end_bytes: u64) {
        let (chunk_bytes, row_bytes) = (self.layout.chunk_bytes, self.layout.row_bytes());
        let mut start = start_bytes;
        while start < end_bytes {
            let row_end = (start / row_bytes + 1) * row_bytes;
            let end = end_bytes.min(row_end);
            let boundary = (start / chunk_bytes + 1) * chunk_bytes;
            let crosses_once = boundary < end && end <= boundary + chunk_bytes;
            if crosses_once && start % chunk_bytes >= end - boundary {
                // The end of one chunk and the start of the next share no parity.
                self.begin_op(now, Task::WriteRow, slot, start, boundary);
                self.begin_op(now, Task::WriteRow, slot, boundary, end);
            } else {
                self.begin_op(now, Task::WriteRow, slot, start, end);
            }
            start = end;
        }
    }

    fn row_write(&self, op: &Op) -> RowWrite {
        RowWrite::new(op, self.layout.chunk_bytes, self.layout.row_bytes())
    }

    /// Part of the members whose parity the operation changes.
    pub(super) fn row_range(&self, op: &Op) -> (u64, u64) {
        let write = self.row_write(op);
        write.on_member(write.parity)
    }

    pub(super) fn run_row(&mut self, at: Instant, op: OpIndex, extents: &mut Extents) {
        let write = self.row_write(&self.ops[op]);
        self.ops[op].stage = Stage::Reading;
        let parity_end = write.on_member(write.parity).1;
        if self.members.list.iter().filter(|member| member.is_readable(parity_end)).count()
            < self.layout.data_count() as usize
        {
            self.ops[op].is_failed = true;
            return;
        }
        if self.writable_parities(&write).next().is_none() {
            return;
        }
        match self.method(&write) {
            Method::Modify => self.add_old(&write, extents),
            Method::Reconstruct => self.add_rest(&write, extents),
            Method::ReadAll => self.add_all(&write, extents),
        }
        self.send_all(at, op, Operation::Read, extents);
    }

    fn method(&self, write: &RowWrite) -> Method {
        let is_readable =
            |member: usize, end: u64| self.members.list[member].is_readable(write.on_member((0, end)).1);
        let mut modify = Some(0);
        let mut reconstruct = Some(0);
        for index in 0..self.layout.data_count() {
            let member = self.layout.data_member(write.row, index);
            for (range, reads) in
                [(write.written(index), &mut modify), (write.unwritten(index), &mut reconstruct)]
            {
                if range.0 < range.1 {
                    *reads = reads.filter(|_| is_readable(member, range.1)).map(|count| count + 1);
                }
            }
        }
        for index in 0..self.layout.parity_count() {
            let member = self.layout.parity_member(write.row, index);
            if self.members.list[member].is_writable() {
                modify = modify.filter(|_| is_readable(member, write.parity.1)).map(|count| count + 1);
            }
        }
        match (modify, reconstruct) {
            (Some(modify), Some(reconstruct)) if modify < reconstruct => Method::Modify,
            (_, Some(_)) => Method::Reconstruct,
            (Some(_), None) => Method::Modify,
            (None, None) => Method::ReadAll,
        }
    }

    fn writable_parities(&self, write: &RowWrite) -> impl Iterator<Item = usize> + use<'_> {
        let row = write.row;
        (0..self.layout.parity_count())
            .map(move |index| self.layout.parity_member(row, index))
            .filter(|&member| self.members.list[member].is_writable())
    }

    fn add_old(&self, write: &RowWrite, extents: &mut Extents) {
        for index in 0..self.layout.data_count() {
            let (start, end) = write.on_member(write.written(index));
            if start < end {
                extents.add((self.layout.data_member(write.row, index), start, end));
            }
        }
        let (start, end) = write.on_member(write.parity);
        for member in self.writable_parities(write) {
            extents.add((member, start, end));
        }
    }

    fn add_rest(&self, write: &RowWrite, extents: &mut Extents) {
        for index in 0..self.layout.data_count() {
            let (start, end) = write.on_member(write.unwritten(index));
            if start < end {
                extents.add((self.layout.data_member(write.row, index), start, end));
            }
        }
    }

    fn add_all(&self, write: &RowWrite, extents: &mut Extents) {
        let (start, end) = write.on_member(write.parity);
        let readable = self.members.list.iter().enumerate().filter(|(_, member)| member.is_readable(end));
        for (member, _) in readable.take(self.layout.data_count() as usize) {
            extents.add((member, start, end));
        }
    }

    /// Writes the data and the parity after the reads.
    pub(super) fn write_row(&mut self, at: Instant, op: OpIndex) {
        let write = self.row_write(&self.ops[op]);
        for index in 0..self.layout.data_count() {
            let (start, end) = write.on_member(write.written(index));
            if start == end {
                continue;
            }
            let member = self.layout.data_member(write.row, index);
            let is_valid = self.members.list[member].is_readable(end);
            if self.members.list[member].is_writable() {
                // Beyond the position of the rebuild, the parity determines the content.
                let purpose = if is_valid { Purpose::Data } else { Purpose::Silent };
                self.send_write(at, op, purpose, (member, start, end));
            }
            if !is_valid {
                self.send_write(at, op, Purpose::Implied, (member, start, end));
            }
        }
        let (start, end) = write.on_member(write.parity);
        for index in 0..self.layout.parity_count() {
            let member = self.layout.parity_member(write.row, index);
            if self.members.list[member].is_writable() {
                let is_valid = self.members.list[member].is_readable(end);
                let purpose = if is_valid { Purpose::Parity } else { Purpose::Silent };
                self.send_write(at, op, purpose, (member, start, end));
            }
        }
    }

    /// Adds the sources of an unreadable member's range: as many other members as a row has data chunks,
    /// first data, then P, then Q. Returns whether there are enough.
    pub(super) fn add_reconstruction(
        &self,
        lost_member: usize,
        (start, end): (u64, u64),
        extents: &mut Extents,
    ) -> bool {
        let row = start / self.layout.chunk_bytes;
        let data = (0..self.layout.data_count()).map(|index| self.layout.data_member(row, index));
        let parity = (0..self.layout.parity_count()).map(|index| self.layout.parity_member(row, index));
        let mut found = 0;
        for member in data.chain(parity) {
            if found < self.layout.data_count()
                && member != lost_member
                && self.members.list[member].is_readable(end)
            {
                extents.add((member, start, end));
                found += 1;
            }
        }
        found == self.layout.data_count()
    }
}
