//! The fates of the host's writes after a power cut, derived from the fates on the members.

use std::ops::Range;

use super::host::Host;
use super::layout::Role;
use super::members::{MemberState, Members, Purpose, WriteEntry};
use super::{Raid, Stage, Task};
use crate::device::{Fate, PowerCut, WriteFate};
use crate::request::Operation;
use crate::requests::{Submitted, is_unacknowledged};
use crate::time::Instant;

/// A part of a host's write, to be sorted.
#[derive(Debug, Clone, Copy)]
struct Part {
    serial: u64,
    fate: WriteFate,
}

fn lost_bytes(write: &WriteFate) -> u64 {
    match write.fate {
        Fate::Kept => 0,
        Fate::Lost => write.size_bytes,
        Fate::Torn { kept_bytes } => write.size_bytes - kept_bytes,
    }
}

fn is_real(entry: &WriteEntry) -> bool {
    matches!(entry.purpose, Purpose::Data | Purpose::Parity)
}

fn count_real(members: &Members, group: Range<usize>) -> usize {
    group.filter(|&index| is_real(members.write(index))).count()
}

impl Raid {
    pub(super) fn cut(&mut self, now: Instant) -> PowerCut {
        let outstanding = self.requests.outstanding();
        let mut parts = Vec::new();
        self.add_unwritten(&outstanding, &mut parts);
        self.add_unsent(&mut parts);
        let cuts: Vec<Vec<WriteFate>> =
            (0..self.members.list.len()).map(|member| self.members.power_cut(now, member)).collect();
        // By recorded write: bytes lost, summed over all its pieces.
        let mut lost = Vec::new();
        for (member, cut) in cuts.iter().enumerate() {
            for write in cut {
                let Some(index) = self.members.write_index(write.id) else { continue };
                if lost.len() <= index {
                    lost.resize(index + 1, 0);
                }
                lost[index] += lost_bytes(write);
                let entry = self.members.write(index);
                match entry.purpose {
                    Purpose::Data => self.add_data(member, write, entry, &mut parts),
                    Purpose::Parity => self.add_implied(index, write, &mut parts),
                    Purpose::Implied | Purpose::Silent => {}
                }
            }
        }
        if self.layout.has_parity() {
            self.add_write_holes(&lost, &mut parts);
        }
        self.plan_resync(now);
        self.reset(now);
        parts.sort_by_key(|part| (part.serial, part.fate.offset_bytes));
        let writes = parts
            .into_iter()
            .map(|Part { fate, .. }| WriteFate {
                acknowledged: !is_unacknowledged(&outstanding, fate.id),
                ..fate
            })
            .collect();
        PowerCut { writes }
    }

    /// Adds operations that have not begun to write.
    fn add_unwritten(&self, outstanding: &[Submitted], parts: &mut Vec<Part>) {
        let mut is_free = vec![false; self.ops.len()];
        for &op in &self.free_ops {
            is_free[op] = true;
        }
        let unwritten = self.ops.iter().zip(is_free).filter(|(op, is_free)| {
            !is_free && op.stage != Stage::Last && matches!(op.task, Task::Write | Task::WriteRow)
        });
        for (op, _) in unwritten {
            let Some(slot) = op.slot else { continue };
            let request = self.requests.get(slot).request;
            if request.operation != Operation::Write || op.start_bytes == op.end_bytes {
                continue;
            }
            debug_assert!(is_unacknowledged(outstanding, request.id));
            let fate = WriteFate::lost(request.id, op.start_bytes, op.end_bytes - op.start_bytes);
            parts.push(Part { serial: op.serial, fate });
        }
    }

    /// Adds writes that the host has not sent to members. Requests still on their way have no operation yet.
    fn add_unsent(&self, parts: &mut Vec<Part>) {
        for entry in self.host.unsent.iter().map(|unsent| &unsent.entry) {
            if entry.purpose == Purpose::Data {
                let write = WriteFate::lost(entry.id, entry.offset_bytes, entry.size_bytes);
                self.add_data(entry.member as usize, &write, entry, parts);
            }
        }
        for (serial, &(_, slot)) in (self.next_serial..).zip(&self.host.entering) {
            let request = self.requests.get(slot).request;
            if request.operation == Operation::Write && request.size_bytes > 0 {
                parts.push(Part {
                    serial,
                    fate: WriteFate::lost(request.id, request.offset_bytes, request.size_bytes),
                });
            }
        }
    }

    /// Whether this copy of the host's byte counts: the first one on a wholly valid member.
    fn is_first_valid_copy(&self, offset_bytes: u64, copy: u64) -> bool {
        let first = (0..self.layout.copy_count()).find(|&copy| {
            let member = self.layout.place(offset_bytes, copy).member;
            self.members.list[member].state == MemberState::InSync
        });
        first == Some(copy)
    }

    fn add_data(&self, member: usize, write: &WriteFate, entry: &WriteEntry, parts: &mut Vec<Part>) {
        let end = write.offset_bytes + write.size_bytes;
        for piece in self.layout.pieces(write.offset_bytes, end) {
            let size_bytes = piece.end_bytes - piece.start_bytes;
            let Role::Data { copy, offset_bytes } = self.layout.role(member, piece.start_bytes) else {
                continue;
            };
            if !self.layout.has_parity() && !self.is_first_valid_copy(offset_bytes, copy) {
                continue;
            }
            let fate = write.fate.of_part(piece.start_bytes - write.offset_bytes, size_bytes);
            let fate = WriteFate { fate, ..WriteFate::lost(entry.id, offset_bytes, size_bytes) };
            parts.push(Part { serial: entry.serial, fate });
        }
    }

    /// Adds implied data. If its parity was the only write, the parity determines the fate sector by sector.
    fn add_implied(&self, index: usize, write: &WriteFate, parts: &mut Vec<Part>) {
        let group = self.members.group(index);
        if count_real(&self.members, group.clone()) > 1 {
            return;
        }
        for entry in group.map(|index| self.members.write(index)) {
            if entry.purpose == Purpose::Implied {
                let implied = WriteFate { id: entry.id, ..*write };
                self.add_data(entry.member as usize, &implied, entry, parts);
            }
        }
    }

    /// Compares the fates of the writes of each operation.
    fn add_write_holes(&mut self, lost: &[u64], parts: &mut Vec<Part>) {
        let mut torn_rows = Vec::new();
        let mut start = 0;
        while start < lost.len() {
            let group = self.members.group(start);
            start = group.end;
            if count_real(&self.members, group.clone()) < 2 {
                continue;
            }
            let lost_bytes = |index: usize| lost.get(index).copied().unwrap_or(0);
            let real = || group.clone().filter(|&index| is_real(self.members.write(index)));
            if real().all(|index| lost_bytes(index) == 0) {
                continue;
            }
            for entry in group.clone().map(|index| self.members.write(index)) {
                if entry.purpose == Purpose::Implied {
                    let write = WriteFate::lost(entry.id, entry.offset_bytes, entry.size_bytes);
                    self.add_data(entry.member as usize, &write, entry, parts);
                }
            }
            let parity = real().find(|&index| self.members.write(index).purpose == Purpose::Parity);
            let is_all_lost = real().all(|index| lost_bytes(index) == self.members.write(index).size_bytes);
            if let Some(parity) = parity.filter(|_| !is_all_lost) {
                let parity = *self.members.write(parity);
                torn_rows.push(parity.offset_bytes / self.layout.chunk_bytes);
                self.note_damage(&parity, group);
            }
        }
        torn_rows.sort_unstable();
        torn_rows.dedup();
        self.write_hole_rows += torn_rows.len() as u64;
    }

    /// Notes the row's data on members that are not valid there: it can no longer be computed. Data written
    /// by the operation itself has a fate instead.
    fn note_damage(&mut self, parity: &WriteEntry, group: Range<usize>) {
        let row = parity.offset_bytes / self.layout.chunk_bytes;
        let (low, high) = (parity.offset_bytes, parity.offset_bytes + parity.size_bytes);
        for index in 0..self.layout.data_count() {
            let member = self.layout.data_member(row, index);
            if self.members.list[member].is_readable(high) {
                continue;
            }
            let written = group
                .clone()
                .map(|index| self.members.write(index))
                .find(|entry| entry.purpose == Purpose::Implied && entry.member as usize == member)
                .map_or((low, low), |entry| (entry.offset_bytes, entry.offset_bytes + entry.size_bytes));
            for (start, end) in [(low, written.0), (written.1, high)] {
                if let Role::Data { offset_bytes, .. } = self.layout.role(member, start)
                    && start < end
                {
                    self.damaged.push((offset_bytes, end - start));
                }
            }
        }
    }

    /// Sets the state after power-on. Totals, the members' states and the damaged ranges stay.
    fn reset(&mut self, now: Instant) {
        self.members.forget_writes();
        self.requests.reset();
        self.ops.clear();
        self.free_ops.clear();
        self.active.clear();
        self.waiting.clear();
        self.host = Host::default();
        self.rebuild.resume(now, self.unsynced.left_bytes() > 0);
    }
}
