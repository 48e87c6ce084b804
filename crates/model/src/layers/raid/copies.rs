//! Requests on striped and mirrored data: reads of every level, writes and erasures of those without parity.

use super::members::{Extents, OpIndex, Purpose};
use super::{Op, Raid};
use crate::request::Operation;
use crate::time::Instant;

impl Raid {
    /// The best valid copy to read from.
    pub(super) fn best_copy(
        &self,
        start: u64,
        size: u64,
        except: Option<usize>,
        extents: &Extents,
    ) -> Option<usize> {
        let mut best = None;
        for copy in 0..self.layout.copy_count() {
            let place = self.layout.place(start, copy);
            let member = &self.members.list[place.member];
            if Some(place.member) == except || !member.is_readable(place.offset_bytes + size) {
                continue;
            }
            let (count, distance) = member.distance(place.offset_bytes);
            // A continued request stays on its copy.
            let cost = (!extents.continues(place.member, place.offset_bytes), count, distance);
            if best.is_none_or(|(lowest, _)| cost < lowest) {
                best = Some((cost, copy as usize));
            }
        }
        best.map(|(_, copy)| copy)
    }

    pub(super) fn run_read(&mut self, at: Instant, op: OpIndex, extents: &mut Extents) {
        for piece in self.layout.pieces(self.ops[op].start_bytes, self.ops[op].end_bytes) {
            let size = piece.end_bytes - piece.start_bytes;
            if let Some(copy) = self.best_copy(piece.start_bytes, size, None, extents) {
                let place = self.layout.place(piece.start_bytes, copy as u64);
                extents.add((place.member, place.offset_bytes, place.offset_bytes + size));
            } else {
                let place = self.layout.place(piece.start_bytes, 0);
                let range = (place.offset_bytes, place.offset_bytes + size);
                if !self.layout.has_parity() || !self.add_reconstruction(place.member, range, extents) {
                    self.ops[op].is_failed = true;
                    return;
                }
            }
        }
        self.send_all(at, op, Operation::Read, extents);
    }

    /// Adds every copy of the host's range on members that take writes. Returns whether each byte has a copy.
    pub(super) fn add_copies(&self, start_bytes: u64, end_bytes: u64, extents: &mut Extents) -> bool {
        let mut is_complete = true;
        for piece in self.layout.pieces(start_bytes, end_bytes) {
            let mut has_copy = false;
            for copy in 0..self.layout.copy_count() {
                let place = self.layout.place(piece.start_bytes, copy);
                if self.members.list[place.member].is_writable() {
                    let end = place.offset_bytes + piece.end_bytes - piece.start_bytes;
                    extents.add((place.member, place.offset_bytes, end));
                    has_copy = true;
                }
            }
            is_complete &= has_copy;
        }
        is_complete
    }

    pub(super) fn run_write(&mut self, at: Instant, op: OpIndex, extents: &mut Extents) {
        let (start, end) = (self.ops[op].start_bytes, self.ops[op].end_bytes);
        self.ops[op].is_failed |= !self.add_copies(start, end, extents);
        for &extent in extents.end() {
            self.send_write(at, op, Purpose::Data, extent);
        }
    }

    pub(super) fn run_erase(&mut self, at: Instant, op: OpIndex, extents: &mut Extents) {
        let Op { start_bytes, end_bytes, slot, .. } = self.ops[op];
        let Some(slot) = slot else { return };
        if self.layout.has_parity() {
            for (index, member) in self.members.list.iter().enumerate() {
                if member.is_writable() {
                    extents.add((index, start_bytes, end_bytes));
                }
            }
        } else {
            self.ops[op].is_failed |= !self.add_copies(start_bytes, end_bytes, extents);
        }
        let operation = self.requests.get(slot).request.operation;
        self.send_all(at, op, operation, extents);
    }
}
