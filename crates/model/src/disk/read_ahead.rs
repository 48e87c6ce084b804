//! The disk's read cache: after a host's read the head reads on while the arm has nothing else to do.
//!
//! The cache is divided into segments, each a circular buffer that holds one run of sectors (Seagate, Cheetah 15K.7 SAS Product
//! Manual, section 4.5): what was read, and what followed. The least recently used segment makes room for a new run.
//!
//! Reading on costs no event. A stream is a place and a time; how far it has come is computed when somebody asks.
//!
//! # Divergence
//! * The drive reads nothing before the first sector asked for, even when the head reaches the track earlier.
//! * A write removes what it overlaps. A stream that another command has ended does not resume after it.
//! * The segments take no room from the write cache, and all have the same size.

use super::geometry::{Geometry, Head};
use crate::profile::DiskParameters;
use crate::request::SECTOR_BYTES;
use crate::time::Instant;

#[derive(Debug, Clone, Copy, Default)]
struct Segment {
    start: u64,
    end: u64,
    used_at: u64,
}

/// The head reads on, from a sector that passed it, or will pass it, at `begin`.
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
    /// What is still to be read starts here.
    Miss(u64),
}

#[derive(Debug)]
pub(super) struct ReadAhead {
    segments: Vec<Segment>,
    segment_sectors: u64,
    device_sectors: u64,
    stream: Option<Stream>,
    /// The segment that the last read of the host filled.
    last: usize,
    uses: u64,
}

impl ReadAhead {
    pub(super) fn new(parameters: &DiskParameters, size_bytes: u64) -> ReadAhead {
        let count = parameters.read_segments;
        ReadAhead {
            segments: vec![Segment::default(); count as usize],
            segment_sectors: parameters.cache_bytes / SECTOR_BYTES / count.max(1),
            device_sectors: size_bytes / SECTOR_BYTES,
            stream: None,
            last: 0,
            uses: 0,
        }
    }

    /// A read of the host has been answered from the platter.
    pub(super) fn remember(&mut self, start: u64, end: u64) {
        if self.segments.is_empty() {
            return;
        }
        let continued =
            self.segments.iter().position(|segment| segment.end >= start && segment.start <= start);
        let index = continued.unwrap_or_else(|| self.least_recently_used());
        let segment = &mut self.segments[index];
        if continued.is_none() {
            segment.start = start;
            segment.end = start;
        }
        segment.end = segment.end.max(end);
        self.touch(index);
        self.last = index;
    }

    fn least_recently_used(&self) -> usize {
        let oldest = self.segments.iter().enumerate().min_by_key(|(_, segment)| segment.used_at);
        oldest.map_or(0, |(index, _)| index)
    }

    fn touch(&mut self, index: usize) {
        self.uses += 1;
        let segment = &mut self.segments[index];
        segment.used_at = self.uses;
        segment.start = segment.start.max(segment.end.saturating_sub(self.segment_sectors));
    }

    /// The arm has nothing to do after a read of the host that ended at `end`: the head stays on its track.
    pub(super) fn begin(&mut self, at: Instant, end: u64) {
        let Some(segment) = self.segments.get(self.last) else { return };
        let limit = (end + self.segment_sectors).min(self.device_sectors);
        if segment.end == end && end < limit {
            self.stream = Some(Stream { segment: self.last, begin: at, sector: end, limit });
        }
    }

    /// Notes how far the stream has come; where the head is.
    pub(super) fn catch_up(&mut self, geometry: &Geometry, at: Instant) -> Option<Head> {
        let stream = self.stream.as_ref()?;
        let (passed, head) = geometry.passed(stream.begin, stream.sector, stream.limit, at);
        let segment = &mut self.segments[stream.segment];
        segment.end = segment.end.max(passed);
        segment.start = segment.start.max(segment.end.saturating_sub(self.segment_sectors));
        Some(head)
    }

    /// The arm is needed elsewhere.
    pub(super) fn stop(&mut self, geometry: &Geometry, at: Instant) -> Option<Head> {
        let head = self.catch_up(geometry, at);
        self.stream = None;
        head
    }

    /// Whether the segments hold a read of the host; a read of the rest continues where they end.
    pub(super) fn look_up(&mut self, geometry: &Geometry, at: Instant, start: u64, end: u64) -> Lookup {
        if self.stream.as_ref().is_some_and(|stream| start < stream.limit) {
            self.catch_up(geometry, at);
        }
        let holds_start = |segment: &Segment| segment.start <= start && start < segment.end;
        let Some(index) = self.segments.iter().position(holds_start) else { return Lookup::Miss(start) };
        let held_to = self.segments[index].end;
        self.touch(index);
        if held_to < end {
            return Lookup::Miss(held_to);
        }
        self.extend(geometry, at, index, end);
        Lookup::Hit
    }

    /// The host has consumed up to `end`, so that the stream may go on behind it.
    fn extend(&mut self, geometry: &Geometry, at: Instant, index: usize, end: u64) {
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.segment == index) else { return };
        let limit = (end + self.segment_sectors).min(self.device_sectors);
        let (passed, head) = geometry.passed(stream.begin, stream.sector, stream.limit, at);
        if passed == stream.limit && passed < limit {
            // It had stopped: the next sector has to come round.
            let target = geometry.locate(passed, false);
            let positioning_ns = geometry.positioning_ns(geometry.phase_ns(at), head, &target);
            stream.begin = at + u64::from(positioning_ns);
            stream.sector = passed;
        }
        stream.limit = stream.limit.max(limit);
    }

    /// What was read there is out of date; where the head is, if that ends a stream.
    pub(super) fn forget(&mut self, geometry: &Geometry, at: Instant, start: u64, end: u64) -> Option<Head> {
        let mut head = None;
        for index in 0..self.segments.len() {
            let reaches_to = match &self.stream {
                Some(stream) if stream.segment == index => stream.limit,
                _ => self.segments[index].end,
            };
            if self.segments[index].start < end && start < reaches_to {
                if self.stream.as_ref().is_some_and(|stream| stream.segment == index) {
                    head = self.stop(geometry, at);
                }
                self.segments[index] = Segment::default();
            }
        }
        head
    }

    pub(super) fn reset(&mut self) {
        self.segments.fill(Segment::default());
        self.stream = None;
    }
}
