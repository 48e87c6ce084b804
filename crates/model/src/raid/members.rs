//! The devices of an array, their requests in flight, and the memory of who wrote what.

use std::collections::VecDeque;
use std::ops::Range;

use super::RaidLevel;
use crate::device::{Device, PowerCut};
use crate::request::{Completion, Operation, Request, RequestId};
use crate::time::Instant;

/// Index of an operation in its array.
pub(super) type OpIndex = usize;

/// Writes to members that are remembered, so that what a member says of a write at a power cut finds its host
/// request. More than a volatile cache of 256 MiB holds in sectors; 20 MiB of memory.
const REMEMBERED_WRITES: usize = 1 << 19;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// Everything on it is valid.
    InSync,
    /// It is not there: nothing is read or written.
    Missing,
    /// Writes reach it; what lies below `valid_bytes` is valid.
    Rebuilding { valid_bytes: u64 },
}

pub(super) struct Member {
    pub(super) device: Box<dyn Device>,
    pub(super) state: MemberState,
    /// End of the request that was sent last: about where a disk's arm is.
    last_end_bytes: u64,
    outstanding_count: u64,
}

impl Member {
    pub(super) fn is_writable(&self) -> bool {
        self.state != MemberState::Missing
    }

    pub(super) fn is_readable(&self, end_bytes: u64) -> bool {
        match self.state {
            MemberState::InSync => true,
            MemberState::Missing => false,
            MemberState::Rebuilding { valid_bytes } => end_bytes <= valid_bytes,
        }
    }

    /// Smaller is better to read from: fewer requests in flight, then nearer.
    pub(super) fn distance(&self, offset_bytes: u64) -> (u64, u64) {
        (self.outstanding_count, self.last_end_bytes.abs_diff(offset_bytes))
    }
}

/// What a write to a member was for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Data,
    Parity,
    /// Data whose member is not there: it exists only through the parity written with it. No request was
    /// sent.
    Implied,
    /// Nothing that a host would ask about.
    Silent,
}

/// A write to a member, remembered beyond its completion.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteEntry {
    pub(super) id: RequestId,
    /// Number of the operation in the array: orders writes as the host submitted them.
    pub(super) serial: u64,
    pub(super) op: OpIndex,
    pub(super) offset_bytes: u64,
    pub(super) size_bytes: u64,
    pub(super) member: u32,
    pub(super) purpose: Purpose,
    pub(super) is_done: bool,
}

/// What an identifier on a member stands for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Target {
    Write(u64),
    Other(OpIndex),
}

/// Low bit of an identifier: set for writes, which are remembered by number.
pub(super) fn target(id: RequestId) -> Target {
    if id.0 & 1 == 1 { Target::Write(id.0 >> 1) } else { Target::Other((id.0 >> 32) as OpIndex) }
}

pub(super) struct Members {
    pub(super) list: Vec<Member>,
    next_at: Vec<Instant>,
    writes: VecDeque<WriteEntry>,
    /// Number of the first remembered write.
    first_write: u64,
}

impl Members {
    pub(super) fn new(devices: Vec<Box<dyn Device>>) -> Members {
        let list: Vec<Member> = devices
            .into_iter()
            .map(|device| Member {
                device,
                state: MemberState::InSync,
                last_end_bytes: 0,
                outstanding_count: 0,
            })
            .collect();
        let next_at = vec![Instant::FAR_FUTURE; list.len()];
        Members { list, next_at, writes: VecDeque::new(), first_write: 0 }
    }

    pub(super) fn replace(&mut self, member: usize, device: Box<dyn Device>) {
        self.list[member] =
            Member { device, state: MemberState::InSync, last_end_bytes: 0, outstanding_count: 0 };
        self.refresh(member);
    }

    fn refresh(&mut self, member: usize) {
        self.next_at[member] = self.list[member].device.poll_at().unwrap_or(Instant::FAR_FUTURE);
    }

    /// The member where something happens next, and when; the lowest index of several.
    pub(super) fn next(&self) -> Option<(Instant, usize)> {
        let mut next: Option<(Instant, usize)> = None;
        for (member, &at) in self.next_at.iter().enumerate() {
            if at < next.map_or(Instant::FAR_FUTURE, |(earliest, _)| earliest) {
                next = Some((at, member));
            }
        }
        next
    }

    pub(super) fn poll(&mut self, at: Instant, member: usize) -> Option<Completion> {
        let completion = self.list[member].device.poll(at);
        match completion {
            Some(_) => self.list[member].outstanding_count -= 1,
            None => self.refresh(member),
        }
        completion
    }

    fn send(&mut self, at: Instant, member: usize, request: Request) {
        let target = &mut self.list[member];
        target.outstanding_count += 1;
        if request.operation != Operation::Flush {
            target.last_end_bytes = request.end_bytes();
        }
        target.device.submit(at, request);
        self.refresh(member);
    }

    /// Sends a request that no power cut is asked about; `number` tells it from others of its operation.
    pub(super) fn send_other(
        &mut self,
        at: Instant,
        operation: Operation,
        op: OpIndex,
        number: u32,
        (member, start_bytes, end_bytes): Extent,
    ) {
        assert!(number < 1 << 31, "an operation of too many parts");
        let request = Request {
            id: RequestId((op as u64) << 32 | u64::from(number) << 1),
            operation,
            offset_bytes: start_bytes,
            size_bytes: end_bytes - start_bytes,
            force_unit_access: false,
        };
        self.send(at, member, request);
    }

    pub(super) fn send_write(&mut self, at: Instant, entry: WriteEntry, force_unit_access: bool) {
        let number = self.remember(entry);
        let request = Request {
            id: RequestId(number << 1 | 1),
            operation: Operation::Write,
            offset_bytes: entry.offset_bytes,
            size_bytes: entry.size_bytes,
            force_unit_access,
        };
        self.send(at, entry.member as usize, request);
    }

    pub(super) fn remember(&mut self, entry: WriteEntry) -> u64 {
        while self.writes.len() >= REMEMBERED_WRITES && self.writes[0].is_done {
            self.writes.pop_front();
            self.first_write += 1;
        }
        self.writes.push_back(entry);
        self.first_write + self.writes.len() as u64 - 1
    }

    /// The operation that a finished write belongs to.
    pub(super) fn finish_write(&mut self, number: u64) -> OpIndex {
        let entry = &mut self.writes[(number - self.first_write) as usize];
        entry.is_done = true;
        entry.op
    }

    pub(super) fn power_cut(&mut self, now: Instant, member: usize) -> PowerCut {
        let cut = self.list[member].device.power_cut(now);
        self.list[member].outstanding_count = 0;
        self.refresh(member);
        cut
    }

    /// Index among the remembered writes; `None` for one from too long ago.
    pub(super) fn write_index(&self, number: u64) -> Option<usize> {
        number.checked_sub(self.first_write).map(|index| index as usize)
    }

    pub(super) fn write(&self, index: usize) -> &WriteEntry {
        &self.writes[index]
    }

    /// The writes of the same operation: they were sent together.
    pub(super) fn group(&self, index: usize) -> Range<usize> {
        let serial = self.writes[index].serial;
        let start =
            (0..index).rev().find(|&other| self.writes[other].serial != serial).map_or(0, |other| other + 1);
        let end = (index..self.writes.len()).find(|&other| self.writes[other].serial != serial);
        start..end.unwrap_or(self.writes.len())
    }

    /// After a power cut nothing is in question any more.
    pub(super) fn forget_writes(&mut self) {
        self.first_write += self.writes.len() as u64;
        self.writes.clear();
    }

    pub(super) fn outstanding_count(&self, member: usize) -> u64 {
        self.list[member].outstanding_count
    }

    /// Whether the array still has all its data without the member.
    pub(super) fn can_lose(&self, level: RaidLevel, member: usize) -> bool {
        survives(level, self.list.len(), |index| {
            index != member && self.list[index].state == MemberState::InSync
        })
    }
}

/// Whether an array has all its data when only these members are whole.
pub(super) fn survives(level: RaidLevel, member_count: usize, is_whole: impl Fn(usize) -> bool) -> bool {
    let whole_count = (0..member_count).filter(|&member| is_whole(member)).count();
    let pair_has_one = |first: usize| is_whole(first) || is_whole((first + 1) % member_count);
    match level {
        RaidLevel::Raid0 => whole_count == member_count,
        RaidLevel::Raid1 => whole_count > 0,
        RaidLevel::Raid5 | RaidLevel::Raid6 => whole_count + level.parity_count() as usize >= member_count,
        // With an odd number of members each shares chunks with both its neighbours.
        RaidLevel::Raid10 if member_count.is_multiple_of(2) => (0..member_count).step_by(2).all(pair_has_one),
        RaidLevel::Raid10 => (0..member_count).all(pair_has_one),
    }
}

/// A range of a member: index, first byte, end.
pub(super) type Extent = (usize, u64, u64);

/// Collects ranges per member and joins those that touch, so that a member gets one request where its part is
/// in one piece.
#[derive(Debug, Default)]
pub(super) struct Extents {
    open: Vec<(u64, u64)>,
    closed: Vec<Extent>,
}

impl Extents {
    pub(super) fn begin(&mut self, member_count: usize) {
        self.open.clear();
        self.open.resize(member_count, (0, 0));
        self.closed.clear();
    }

    pub(super) fn add(&mut self, (member, start, end): Extent) {
        let open = &mut self.open[member];
        if open.0 == open.1 {
            *open = (start, end);
        } else if start <= open.1 && end >= open.0 {
            *open = (open.0.min(start), open.1.max(end));
        } else {
            self.closed.push((member, open.0, open.1));
            *open = (start, end);
        }
    }

    /// Whether the range goes on where one on this member ends.
    pub(super) fn continues(&self, member: usize, start_bytes: u64) -> bool {
        let (start, end) = self.open[member];
        start < end && end == start_bytes
    }

    pub(super) fn end(&mut self) -> &[Extent] {
        for (member, open) in self.open.iter_mut().enumerate() {
            if open.0 < open.1 {
                self.closed.push((member, open.0, open.1));
                *open = (0, 0);
            }
        }
        &self.closed
    }
}
