//! Locks: writes to the same part of a row, and host writes at the position of a rebuild.

use super::members::OpIndex;
use super::{Op, Raid, RaidLevel, Stage, Task};
use crate::time::Instant;

impl Raid {
    /// Locks the range of an operation that writes or rebuilds data. With parity, any two overlapping
    /// operations conflict; without parity, only if one of them is a rebuild or a resynchronisation.
    pub(super) fn lock_and_run(&mut self, at: Instant, op: OpIndex) {
        self.ops[op].lock = self.lock_range(&self.ops[op]);
        let is_blocked = self.active.iter().chain(&self.waiting).any(|&other| self.conflict(op, other));
        if is_blocked {
            self.ops[op].stage = Stage::Waiting;
            self.waiting.push(op);
        } else {
            self.active.push(op);
            self.run(at, op);
        }
    }

    fn lock_range(&self, op: &Op) -> (u64, u64) {
        match op.task {
            Task::WriteRow => self.row_range(op),
            Task::Rebuild { .. } | Task::Resync => (op.start_bytes, op.end_bytes),
            _ if op.start_bytes == op.end_bytes => (0, 0),
            _ if self.parameters.level == RaidLevel::Raid1 => (op.start_bytes, op.end_bytes),
            // Copies may lie one chunk apart when the number of members is odd.
            _ => {
                let first = self.layout.place(op.start_bytes, 0).offset_bytes;
                let last = self.layout.place(op.end_bytes - 1, 0).offset_bytes;
                let chunk_bytes = self.layout.chunk_bytes;
                (first / chunk_bytes * chunk_bytes, (last / chunk_bytes + 2) * chunk_bytes)
            }
        }
    }

    fn conflict(&self, one: OpIndex, other: OpIndex) -> bool {
        let (one, other) = (&self.ops[one], &self.ops[other]);
        let is_rebuild = |op: &Op| matches!(op.task, Task::Rebuild { .. } | Task::Resync);
        (self.layout.has_parity() || is_rebuild(one) || is_rebuild(other))
            && one.lock.0 < other.lock.1
            && other.lock.0 < one.lock.1
    }

    pub(super) fn unlock(&mut self, at: Instant, op: OpIndex) {
        let Some(place) = self.active.iter().position(|&active| active == op) else { return };
        self.active.swap_remove(place);
        while let Some(place) = self.first_unblocked() {
            let op = self.waiting.remove(place);
            self.active.push(op);
            self.run(at, op);
        }
    }

    fn first_unblocked(&self) -> Option<usize> {
        (0..self.waiting.len()).find(|&place| {
            let earlier = self.active.iter().chain(&self.waiting[..place]);
            !earlier.into_iter().any(|&other| self.conflict(self.waiting[place], other))
        })
    }
}
