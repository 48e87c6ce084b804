//! Writes in a device's volatile memory, tracked one by one.
//!
//! A map of disjoint dirty pieces, each with its write. A newer write replaces older ones in the overlap.
//! Replaced data is remembered until the newer data is durable, because a power cut before then loses both:
//! the older data never left the cache.
//!
//! Units are sectors of [`SECTOR_BYTES`].

mod pieces;

use std::collections::VecDeque;

use crate::device::{Fate, WriteFate};
use crate::request::{Operation, Request, RequestId, SECTOR_BYTES};
use crate::requests::{Submitted, is_unacknowledged, put};
use crate::rng::Rng;
use pieces::{Piece, Pieces};

type WriteIndex = usize;

/// A part of a write that is not durable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) id: RequestId,
    pub(crate) sequence: u64,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The fate of this part is drawn. Otherwise a newer write has replaced it, and it is lost.
    pub(crate) is_drawn: bool,
}

#[derive(Debug)]
struct Write {
    id: RequestId,
    sequence: u64,
    /// Sectors neither durable nor replaced.
    remaining: u64,
    replaced: Vec<Part>,
}

/// A dirty piece on its way to the medium: no longer in the map, not yet durable.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Taken {
    start: u64,
    end: u64,
    write: WriteIndex,
}

#[derive(Debug, Default)]
pub(crate) struct VolatileWrites {
    pieces: Pieces,
    writes: Vec<Write>,
    free: Vec<WriteIndex>,
    /// Sectors in the map.
    pub(crate) dirty_sectors: u64,
    /// Sectors taken and not settled.
    taken_sectors: u64,
}

impl VolatileWrites {
    /// Sectors that a power cut may lose.
    pub(crate) fn volatile_sectors(&self) -> u64 {
        self.dirty_sectors + self.taken_sectors
    }

    pub(crate) fn is_clean(&self) -> bool {
        self.dirty_sectors == 0
    }

    /// Inserts a write. Returns whether it is isolated: it neither overlaps a dirty piece nor continues one.
    pub(crate) fn insert(&mut self, start: u64, end: u64, id: RequestId, sequence: u64) -> bool {
        let position = self.pieces.position_of(end + 1);
        let neighbour = self.pieces.before(position);
        let is_apart = neighbour.is_none_or(|piece| piece.end < start.max(1));
        let replaced = if is_apart { Vec::new() } else { self.replace(start, end) };
        let write = Write { id, sequence, remaining: end - start, replaced };
        let index = put(&mut self.writes, &mut self.free, write);
        self.dirty_sectors += end - start;
        let piece = Piece { start, end, write: index };
        if is_apart {
            self.pieces.insert_at(position, piece);
        } else {
            self.pieces.insert(piece);
        }
        is_apart
    }

    /// Removes the pieces that a newer write to the range replaces.
    fn replace(&mut self, start: u64, end: u64) -> Vec<Part> {
        let mut replaced = Vec::new();
        let mut cut = Vec::new();
        self.cut_out(start, end, u64::MAX, &mut cut);
        for piece in cut {
            self.dirty_sectors -= piece.end - piece.start;
            let write = &mut self.writes[piece.write];
            replaced.push(write.part(piece.start, piece.end, false));
            let mut outside = Vec::new();
            for part in write.replaced.drain(..) {
                split(part, start, end, &mut replaced, &mut outside);
            }
            write.replaced = outside;
            write.remaining -= piece.end - piece.start;
            if write.remaining == 0 {
                replaced.append(&mut write.replaced);
                self.free.push(piece.write);
            }
        }
        replaced
    }

    /// Moves the dirty pieces of the range from the map to `taken`, to be made durable.
    /// [`VolatileWrites::settle`] follows.
    pub(crate) fn take(&mut self, start: u64, end: u64, taken: &mut Vec<Taken>) {
        taken.clear();
        self.cut_out(start, end, u64::MAX, taken);
        let sectors: u64 = taken.iter().map(|piece| piece.end - piece.start).sum();
        self.dirty_sectors -= sectors;
        self.taken_sectors += sectors;
    }

    /// Marks the pieces as durable.
    pub(crate) fn settle(&mut self, taken: &[Taken]) {
        for piece in taken {
            self.taken_sectors -= piece.end - piece.start;
            let write = &mut self.writes[piece.write];
            write.remaining -= piece.end - piece.start;
            // The data that the piece replaced is obsolete, even while the rest of the piece's write is
            // volatile.
            if !write.replaced.is_empty() {
                let mut outside = Vec::new();
                for part in write.replaced.drain(..) {
                    split(part, piece.start, piece.end, &mut Vec::new(), &mut outside);
                }
                write.replaced = outside;
            }
            if write.remaining == 0 {
                write.replaced.clear();
                self.free.push(piece.write);
            }
        }
    }

    /// Drops writes older than `before_sequence` in the range: newer durable data has replaced them.
    pub(crate) fn forget(&mut self, start: u64, end: u64, before_sequence: u64) {
        let mut taken = Vec::new();
        self.cut_out(start, end, before_sequence, &mut taken);
        let sectors: u64 = taken.iter().map(|piece| piece.end - piece.start).sum();
        self.dirty_sectors -= sectors;
        self.taken_sectors += sectors;
        self.settle(&taken);
    }

    fn cut_out(&mut self, start: u64, end: u64, before_sequence: u64, taken: &mut Vec<Taken>) {
        let writes = &self.writes;
        let is_older = |piece: &Piece| writes[piece.write].sequence < before_sequence;
        // The common case.
        if let Some(piece) = self.pieces.take(start, |piece| piece.end == end && is_older(piece)) {
            taken.push(Taken { start, end, write: piece.write });
            return;
        }
        // Pieces are disjoint, so the search downwards stops at the first piece that ends before the range.
        let overlapping = self.pieces.below(end).take_while(|piece| piece.end > start);
        let mut found: Vec<Piece> = overlapping.filter(is_older).collect();
        found.reverse();
        for piece in found {
            self.pieces.take(piece.start, |_| true);
            if piece.start < start {
                self.pieces.insert(Piece { end: start, ..piece });
            }
            if piece.end > end {
                self.pieces.insert(Piece { start: end, ..piece });
            }
            taken.push(Taken { start: piece.start.max(start), end: piece.end.min(end), write: piece.write });
        }
    }

    /// Whether any sector of the range is dirty.
    pub(crate) fn touches(&self, start: u64, end: u64) -> bool {
        self.pieces.before(self.pieces.position_of(end)).is_some_and(|piece| piece.end > start)
    }

    /// Whether the whole range is dirty, so that a read needs no medium access.
    pub(crate) fn covers(&self, start: u64, end: u64) -> bool {
        let mut reached = end;
        for piece in self.pieces.below(end) {
            if piece.end < reached {
                return false;
            }
            if piece.start <= start {
                return true;
            }
            reached = piece.start;
        }
        false
    }

    pub(crate) fn first_dirty(&self) -> Option<u64> {
        self.pieces.iter().next().map(|piece| piece.start)
    }

    /// The contiguous dirty range around `sector`, at most `longest` below it and at most `longest` in all.
    /// `None` if the sector is not dirty.
    pub(crate) fn run_around(&self, sector: u64, longest: u64) -> Option<(u64, u64)> {
        let position = self.pieces.position_of(sector + 1);
        let mut below = self.pieces.back_from(position);
        let around = below.next().filter(|piece| piece.end > sector)?;
        let mut start = around.start;
        for piece in below {
            if piece.end != start || sector - start >= longest {
                break;
            }
            start = piece.start;
        }
        start = start.max(sector.saturating_sub(longest));
        let mut end = around.end;
        for piece in self.pieces.after(position) {
            if piece.start != end || end - start >= longest {
                break;
            }
            end = piece.end;
        }
        Some((start, end.min(start + longest)))
    }

    /// The first contiguous dirty range that starts at `sector` or later, up to `longest`.
    pub(crate) fn run_from(&self, sector: u64, longest: u64) -> Option<(u64, u64)> {
        let mut pieces = self.pieces.from(sector);
        let Piece { start, mut end, .. } = pieces.next()?;
        for piece in pieces {
            if piece.start != end || end - start >= longest {
                break;
            }
            end = piece.end;
        }
        Some((start, end.min(start + longest)))
    }

    /// All contiguous dirty ranges, in order of address.
    pub(crate) fn runs(&self) -> VecDeque<(u64, u64)> {
        let mut runs: VecDeque<(u64, u64)> = VecDeque::new();
        for piece in self.pieces.iter() {
            match runs.back_mut() {
                Some(run) if run.1 == piece.start => run.1 = piece.end,
                _ => runs.push_back((piece.start, piece.end)),
            }
        }
        runs
    }

    pub(crate) fn reset(&mut self) {
        *self = VolatileWrites::default();
    }

    /// Fates after a power cut, by submission number.
    ///
    /// The model's destage order is one of many that firmware may choose. Each volatile piece therefore draws
    /// its own fate: any subset of writes, and of the sectors within one, may survive.
    pub(crate) fn power_cut(
        &self,
        taken: &[Taken],
        outstanding: &[Submitted],
        rng: &mut Rng,
    ) -> Vec<WriteFate> {
        let dirty = self.pieces.iter().map(|piece| (piece.write, piece.start, piece.end));
        let taken = taken.iter().map(|piece| (piece.write, piece.start, piece.end));
        let volatile =
            dirty.chain(taken).map(|(write, start, end)| self.writes[write].part(start, end, true));
        let live = self.writes.iter().filter(|write| write.remaining > 0);
        let replaced = live.flat_map(|write| &write.replaced).copied();
        let unplaced = outstanding.iter().filter_map(Submitted::unplaced);
        let mut parts: Vec<Part> = volatile.chain(replaced).chain(unplaced).collect();
        parts.sort_by_key(|part| (part.sequence, part.start));
        fates(parts, outstanding, rng)
    }
}

impl Write {
    fn part(&self, start: u64, end: u64, is_drawn: bool) -> Part {
        Part { id: self.id, sequence: self.sequence, start, end, is_drawn }
    }
}

impl Submitted {
    /// The whole of a write that has no place in memory or on the medium yet.
    pub(crate) fn unplaced(&self) -> Option<Part> {
        let ((start, end), Request { id, operation, .. }) = (self.sectors(), self.request);
        let is_unplaced = operation == Operation::Write && !self.placed;
        is_unplaced.then_some(Part { id, sequence: self.sequence, start, end, is_drawn: true })
    }
}

/// Draws the fates of the parts, in their order.
pub(crate) fn fates(parts: Vec<Part>, outstanding: &[Submitted], rng: &mut Rng) -> Vec<WriteFate> {
    let fate = |part: Part| WriteFate {
        id: part.id,
        offset_bytes: part.start * SECTOR_BYTES,
        size_bytes: (part.end - part.start) * SECTOR_BYTES,
        acknowledged: !is_unacknowledged(outstanding, part.id),
        fate: if part.is_drawn { draw_fate(part.end - part.start, rng) } else { Fate::Lost },
    };
    parts.into_iter().map(fate).collect()
}

fn split(part: Part, start: u64, end: u64, inside: &mut Vec<Part>, outside: &mut Vec<Part>) {
    let (low, high) = (part.start.max(start), part.end.min(end));
    if low >= high {
        outside.push(part);
        return;
    }
    inside.push(Part { start: low, end: high, ..part });
    if part.start < low {
        outside.push(Part { end: low, ..part });
    }
    if part.end > high {
        outside.push(Part { start: high, ..part });
    }
}

fn draw_fate(sectors: u64, rng: &mut Rng) -> Fate {
    match rng.below(8) {
        0..=3 => Fate::Lost,
        4..=5 => Fate::Kept,
        _ if sectors == 1 => Fate::Kept,
        _ => Fate::Torn { kept_bytes: (1 + rng.below(sectors - 1)) * SECTOR_BYTES },
    }
}

#[cfg(test)]
mod tests;
