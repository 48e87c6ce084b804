//! Disjoint ranges of sectors, in order: a B+ tree of two levels.
//!
//! A lookup is two branch-free binary searches, and neighbours are adjacent in memory. A `BTreeMap` took
//! several times as long for the few hundred pieces of a disk's cache. With millions of pieces, one insertion
//! in a few dozen moves a part of the upper level. That still costs less than the cache misses.

/// Largest number of pieces in a chunk of the lower level.
const CHUNK_SIZE: usize = 32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) write: super::WriteIndex,
}

/// The position of a piece, or of its insertion.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    chunk: usize,
    index: usize,
}

#[derive(Debug, Default)]
pub(super) struct Pieces {
    /// The start of each chunk's first piece.
    firsts: Vec<u64>,
    /// No chunk is empty.
    chunks: Vec<Vec<Piece>>,
}

impl Pieces {
    /// Position of the first piece that starts at `start` or later.
    #[inline]
    pub(super) fn position_of(&self, start: u64) -> Position {
        // The piece is in the last chunk that begins before `start`, or directly after it.
        let chunk = self.firsts.partition_point(|&first| first < start).saturating_sub(1);
        let index = match self.chunks.get(chunk) {
            Some(pieces) => pieces.partition_point(|piece| piece.start < start),
            None => 0,
        };
        Position { chunk, index }
    }

    #[inline]
    fn at(&self, position: Position) -> Option<&Piece> {
        self.chunks.get(position.chunk)?.get(position.index)
    }

    /// The last piece before the position.
    #[inline]
    pub(super) fn before(&self, position: Position) -> Option<Piece> {
        if position.index > 0 {
            return self.chunks[position.chunk].get(position.index - 1).copied();
        }
        self.chunks[..position.chunk].last()?.last().copied()
    }

    /// Pieces that start at `start` or later.
    pub(super) fn from(&self, start: u64) -> impl Iterator<Item = Piece> {
        self.after(self.position_of(start))
    }

    pub(super) fn after(&self, position: Position) -> impl Iterator<Item = Piece> {
        let Position { chunk, index } = position;
        let (this, later) = match self.chunks.get(chunk..) {
            Some([this, later @ ..]) => (&this[index..], later),
            _ => (&[][..], &[][..]),
        };
        this.iter().chain(later.iter().flatten()).copied()
    }

    /// Pieces that start before `start`, the last one first.
    pub(super) fn below(&self, start: u64) -> impl Iterator<Item = Piece> {
        self.back_from(self.position_of(start))
    }

    pub(super) fn back_from(&self, position: Position) -> impl Iterator<Item = Piece> {
        let Position { chunk, index } = position;
        let this = self.chunks.get(chunk).map_or(&[][..], |pieces| &pieces[..index]);
        let earlier = &self.chunks[..chunk.min(self.chunks.len())];
        this.iter().rev().chain(earlier.iter().rev().flat_map(|pieces| pieces.iter().rev())).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Piece> {
        self.chunks.iter().flatten().copied()
    }

    pub(super) fn insert(&mut self, piece: Piece) {
        self.insert_at(self.position_of(piece.start), piece);
    }

    /// Inserts at a position from [`Pieces::position_of`].
    pub(super) fn insert_at(&mut self, position: Position, piece: Piece) {
        let Position { mut chunk, mut index } = position;
        if self.chunks.is_empty() {
            self.chunks.push(Vec::with_capacity(CHUNK_SIZE));
            self.firsts.push(piece.start);
        }
        if self.chunks[chunk].len() == CHUNK_SIZE {
            self.split(chunk);
            if index > CHUNK_SIZE / 2 {
                (chunk, index) = (chunk + 1, index - CHUNK_SIZE / 2);
            }
        }
        self.chunks[chunk].insert(index, piece);
        if index == 0 {
            self.firsts[chunk] = piece.start;
        }
    }

    #[cold]
    fn split(&mut self, chunk: usize) {
        let mut upper = Vec::with_capacity(CHUNK_SIZE);
        upper.extend(self.chunks[chunk].drain(CHUNK_SIZE / 2..));
        self.firsts.insert(chunk + 1, upper[0].start);
        self.chunks.insert(chunk + 1, upper);
    }

    /// Removes and returns the piece that starts at `start`, if it satisfies `is_wanted`.
    pub(super) fn take(&mut self, start: u64, is_wanted: impl FnOnce(&Piece) -> bool) -> Option<Piece> {
        let mut position = self.position_of(start);
        if self.chunks.get(position.chunk).is_some_and(|pieces| position.index == pieces.len()) {
            position = Position { chunk: position.chunk + 1, index: 0 };
        }
        let piece = *self.at(position).filter(|piece| piece.start == start && is_wanted(piece))?;
        let pieces = &mut self.chunks[position.chunk];
        pieces.remove(position.index);
        match pieces.first() {
            Some(first) => self.firsts[position.chunk] = first.start,
            None => {
                self.chunks.remove(position.chunk);
                self.firsts.remove(position.chunk);
            }
        }
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::btree_map::{BTreeMap, Entry};

    use super::*;
    use crate::rng::Rng;

    /// Compares with a map that is known to be correct.
    fn check(places: u64, remove_percent: u64, steps: u64) {
        let mut rng = Rng::new(places);
        let (mut pieces, mut map) = (Pieces::default(), BTreeMap::new());
        for step in 0..steps {
            let start = rng.below(places) * 2;
            if rng.below(100) < remove_percent {
                assert_eq!(pieces.take(start, |_| true), map.remove(&start));
                assert_eq!(pieces.take(start, |_| true), None);
            } else if let Entry::Vacant(vacant) = map.entry(start) {
                let piece = Piece { start, end: start + 1 + rng.below(2), write: step as usize };
                pieces.insert(piece);
                vacant.insert(piece);
                assert_eq!(pieces.take(start, |_| false), None);
            }
            let from = rng.below(2 * places + 2);
            assert_eq!(
                pieces.before(pieces.position_of(from)),
                map.range(..from).next_back().map(|(_, &piece)| piece)
            );
            assert!(pieces.from(from).take(50).eq(map.range(from..).take(50).map(|(_, &piece)| piece)));
            assert!(
                pieces.below(from).take(50).eq(map.range(..from).rev().take(50).map(|(_, &piece)| piece))
            );
        }
        assert!(pieces.iter().eq(map.into_values()));
    }

    #[test]
    fn a_few_pieces_that_come_and_go() {
        check(8, 50, 2_000);
    }

    #[test]
    fn as_many_as_several_chunks_hold() {
        check(500, 40, 5_000);
    }

    #[test]
    fn chunks_that_split_and_empty() {
        check(5_000, 10, 5_000);
        check(200, 60, 5_000);
    }
}
