//! The disk's read cache: after a host's read, an idle arm continues to read.
//!
//! The cache is divided into segments. Each segment is a circular buffer that holds one run of sectors: the
//! sectors read and those that follow (Seagate, Cheetah 15K.7 SAS Product Manual, section 4.5). A new run
//! replaces one that was not used recently.
//!
//! Read-ahead needs no events. A stream is a place and a start time; its progress is computed on demand.
//!
//! # Divergence
//! * The drive reads nothing before the first requested sector, even if the head reaches the track earlier.
//! * A write removes the data that it overlaps. A stream that another command ended does not resume after it.
//! * The segments take no room from the write cache. All have the same size.

use super::geometry::{Geometry, Head};
use crate::devices::DiskParameters;
use crate::request::SECTOR_BYTES;
use crate::time::Instant;

/// Sectors `start..start + count`.
#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    start: u64,
    count: u64,
}

impl Segment {
    fn end(&self) -> u64 {
        self.start + self.count
    }

    /// Keeps the last `most` sectors up to `end`. `end` is not before the segment's present end.
    fn extend(&mut self, end: u64, most: u64) {
        self.start = self.start.max(end.saturating_sub(most));
        self.count = end - self.start;
    }
}

/// Read-ahead from a sector that passes the head at `begin`, which may be in the future.
#[derive(Debug)]
struct Stream {
    segment: usize,
    begin: Instant,
    sector: u64,
    limit: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    Hit,
    /// The read continues on the platter at this sector.
    Miss(u64),
}

#[derive(Debug)]
pub(super) struct ReadAhead {
    segments: Vec<Segment>,
    /// Used since the hand last passed: the second-chance rule approximates LRU without sorting.
    is_used: Vec<bool>,
    hand: usize,
    segment_sectors: u64,
    device_sectors: u64,
    stream: Option<Stream>,
    /// The segment filled by the last read of the host.
    last: usize,
    /// Nothing was read since power-on; writes then skip the lookup.
    is_empty: bool,
}

impl ReadAhead {
    pub(super) fn new(parameters: &DiskParameters, size_bytes: u64) -> ReadAhead {
        let count = parameters.read_segments;
        ReadAhead {
            segments: vec![Segment::default(); count as usize],
            is_used: vec![false; count as usize],
            hand: 0,
            segment_sectors: parameters.cache_bytes / SECTOR_BYTES / count.max(1),
            device_sectors: size_bytes / SECTOR_BYTES,
            stream: None,
            last: 0,
            is_empty: true,
        }
    }

    /// The segment that holds the sector or ends directly before it.
    fn find(&self, sector: u64) -> Option<usize> {
        let mut found = usize::MAX;
        // Without an early exit, the loop has no branch to mispredict.
        for (index, segment) in self.segments.iter().enumerate() {
            found = if sector.wrapping_sub(segment.start) <= segment.count { index } else { found };
        }
        (found != usize::MAX).then_some(found)
    }

    /// Stores a read of the host that was answered from the platter.
    pub(super) fn remember(&mut self, start: u64, end: u64) {
        if self.segments.is_empty() {
            return;
        }
        let index = self.find(start).unwrap_or_else(|| self.make_room(start));
        let segment = &mut self.segments[index];
        segment.extend(segment.end().max(end), self.segment_sectors);
        self.is_used[index] = true;
        self.is_empty = false;
        self.last = index;
    }

    fn make_room(&mut self, start: u64) -> usize {
        loop {
            self.hand = if self.hand + 1 < self.segments.len() { self.hand + 1 } else { 0 };
            if !std::mem::take(&mut self.is_used[self.hand]) {
                self.segments[self.hand] = Segment { start, count: 0 };
                return self.hand;
            }
        }
    }

    /// Starts read-ahead after a read of the host that ended at `end`: the arm is idle and the head stays on
    /// its track.
    pub(super) fn begin(&mut self, at: Instant, end: u64) {
        let Some(segment) = self.segments.get(self.last) else { return };
        let limit = (end + self.segment_sectors).min(self.device_sectors);
        if segment.end() == end && end < limit {
            self.stream = Some(Stream { segment: self.last, begin: at, sector: end, limit });
        }
    }

    /// Updates the progress of the stream. Returns the position of the head.
    fn catch_up(&mut self, geometry: &Geometry, at: Instant) -> Option<Head> {
        let stream = self.stream.as_ref()?;
        let (passed, head) = geometry.passed(stream.begin, stream.sector, stream.limit, at);
        let segment = &mut self.segments[stream.segment];
        segment.extend(segment.end().max(passed), self.segment_sectors);
        Some(head)
    }

    /// Ends the stream because the arm is needed elsewhere. Returns the position of the head, if there was a
    /// stream.
    pub(super) fn stop(&mut self, geometry: &Geometry, at: Instant) -> Option<Head> {
        let head = self.catch_up(geometry, at);
        self.stream = None;
        head
    }

    /// Looks up a read of the host in the segments. On a partial hit, the rest starts where they end.
    pub(super) fn look_up(&mut self, geometry: &Geometry, at: Instant, start: u64, end: u64) -> Lookup {
        let is_near = |stream: &Stream| start < stream.limit && stream.sector < end;
        if self.stream.as_ref().is_some_and(is_near) {
            self.catch_up(geometry, at);
        }
        let Some(index) = self.find(start) else { return Lookup::Miss(start) };
        let held_to = self.segments[index].end();
        self.is_used[index] = true;
        if held_to < end {
            return Lookup::Miss(held_to);
        }
        self.go_on(geometry, at, index, end);
        Lookup::Hit
    }

    /// Lets the stream continue, because the host has consumed the sectors up to `end`.
    fn go_on(&mut self, geometry: &Geometry, at: Instant, index: usize, end: u64) {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.segment == index) else { return };
        let limit = (end + self.segment_sectors).min(self.device_sectors);
        let (passed, head) = geometry.passed(stream.begin, stream.sector, stream.limit, at);
        let segment = &mut self.segments[index];
        segment.extend(segment.end().max(passed), self.segment_sectors);
        if passed == stream.limit && passed < limit {
            // The stream had stopped, so it waits for the next sector to pass.
            let target = geometry.locate(passed, false);
            let positioning_ns = geometry.positioning_ns(geometry.phase_ns(at), head, &target);
            stream.begin = at + u64::from(positioning_ns);
            stream.sector = passed;
        }
        stream.limit = stream.limit.max(limit);
    }

    /// Drops outdated data in the range. Returns the position of the head if that ends a stream.
    pub(super) fn forget(&mut self, geometry: &Geometry, at: Instant, start: u64, end: u64) -> Option<Head> {
        if self.is_empty {
            return None;
        }
        let mut head = None;
        let is_hit = |stream: &Stream| self.segments[stream.segment].start < end && start < stream.limit;
        if self.stream.as_ref().is_some_and(is_hit) {
            head = self.stop(geometry, at);
        }
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end() {
                segment.count = 0;
            }
        }
        head
    }

    pub(super) fn reset(&mut self) {
        self.segments.fill(Segment::default());
        self.is_empty = true;
        self.stream = None;
    }
}
