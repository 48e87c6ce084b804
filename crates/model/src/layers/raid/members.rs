//! The devices of an array, their requests in flight, and the records of writes.

use std::collections::VecDeque;
use std::ops::Range;

use super::RaidLevel;
use crate::children::{Child, id_of_own, own_number, request};
use crate::device::{Device, WriteFate};
use crate::request::{Completion, Operation, Request, RequestId};
use crate::time::Instant;

/// Index of an operation in its array.
pub(super) type OpIndex = usize;

/// Limit on recorded writes. A record maps a member's fate at a power cut to the host's request. The limit
/// exceeds the sectors of a volatile cache of 256 MiB and takes 20 MiB of memory.
const REMEMBERED_WRITES: usize = 1 << 19;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberState {
    /// All of its content is valid.
    InSync,
    /// The member is absent: no reads, no writes.
    Missing,
    /// The member takes writes; its content below `valid_bytes` is valid.
    Rebuilding { valid_bytes: u64 },
}

#[derive(Debug)]
pub(super) struct Member {
    pub(super) device: Child<Sent>,
    pub(super) state: MemberState,
    /// End of the last request sent: the approximate position of a disk's arm.
    last_end_bytes: u64,
}

impl Member {
    pub(super) fn new(device: Box<dyn Device>) -> Member {
        Member { device: Child::new(device), state: MemberState::InSync, last_end_bytes: 0 }
    }

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

    /// Cost of a read, lower is better: requests in flight, then distance.
    pub(super) fn distance(&self, offset_bytes: u64) -> (usize, u64) {
        (self.device.in_flight_count(), self.last_end_bytes.abs_diff(offset_bytes))
    }
}

/// The purpose of a write to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Data,
    Parity,
    /// Data of a missing member: it exists only through the parity written with it. No request was sent.
    Implied,
    /// A write without a fate for the host.
    Silent,
}

/// A write to a member, recorded beyond its completion.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteEntry {
    pub(super) id: RequestId,
    /// The number in its id at the member, set by [`Members::remember`].
    pub(super) number: u64,
    /// Number of the operation in the array, in the order of the host's submissions.
    pub(super) serial: u64,
    pub(super) op: OpIndex,
    pub(super) offset_bytes: u64,
    pub(super) size_bytes: u64,
    pub(super) member: u32,
    pub(super) purpose: Purpose,
    pub(super) is_done: bool,
}

/// The purpose of a request to a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) op: OpIndex,
    /// Index of a write among all writes ever recorded.
    write: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Members {
    pub(super) list: Vec<Member>,
    /// Number of the next request to any member.
    next_number: u64,
    /// Ordered by number.
    writes: VecDeque<WriteEntry>,
    /// Number of records dropped.
    forgotten_count: u64,
}

impl Members {
    pub(super) fn new(devices: Vec<Box<dyn Device>>) -> Members {
        let list = devices.into_iter().map(Member::new).collect();
        Members { list, next_number: 0, writes: VecDeque::new(), forgotten_count: 0 }
    }

    /// The member with the next event, and its time; the lowest index on a tie.
    pub(super) fn next(&self) -> Option<(Instant, usize)> {
        let next = |(index, member): (usize, &Member)| Some((member.device.poll_at()?, index));
        self.list.iter().enumerate().filter_map(next).min()
    }

    pub(super) fn poll(&mut self, at: Instant, member: usize) -> Option<(OpIndex, Completion)> {
        let (sent, completion) = self.list[member].device.poll(at)?;
        if let Some(write) = sent.write {
            self.writes[(write - self.forgotten_count) as usize].is_done = true;
        }
        Some((sent.op, completion))
    }

    /// Returns the delay of [`Child::pass_on`].
    fn send(&mut self, at: Instant, member: usize, request: Request, sent: Sent) -> u64 {
        let target = &mut self.list[member];
        if request.operation != Operation::Flush {
            target.last_end_bytes = request.end_bytes();
        }
        target.device.send(at, request, sent)
    }

    fn take_number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number - 1
    }

    /// Sends a request without a fate at a power cut. Returns the delay of [`Child::pass_on`].
    pub(super) fn send_other(
        &mut self,
        at: Instant,
        operation: Operation,
        op: OpIndex,
        (member, start_bytes, end_bytes): Extent,
    ) -> u64 {
        let id = id_of_own(self.take_number());
        let request = Request { id, ..request(operation, start_bytes, end_bytes - start_bytes) };
        self.send(at, member, request, Sent { op, write: None })
    }

    pub(super) fn send_write(&mut self, at: Instant, entry: WriteEntry, force_unit_access: bool) -> u64 {
        let write = Some(self.remember(entry));
        let id = id_of_own(self.next_number - 1);
        let data = request(Operation::Write, entry.offset_bytes, entry.size_bytes);
        let request = Request { id, force_unit_access, ..data };
        self.send(at, entry.member as usize, request, Sent { op: entry.op, write })
    }

    /// Records the write and numbers it. Returns its index among all writes ever recorded.
    pub(super) fn remember(&mut self, entry: WriteEntry) -> u64 {
        while self.writes.len() >= REMEMBERED_WRITES && self.writes[0].is_done {
            self.writes.pop_front();
            self.forgotten_count += 1;
        }
        let number = self.take_number();
        self.writes.push_back(WriteEntry { number, ..entry });
        self.forgotten_count + self.writes.len() as u64 - 1
    }

    pub(super) fn power_cut(&mut self, now: Instant, member: usize) -> Vec<WriteFate> {
        self.list[member].device.power_cut(now)
    }

    /// Index, among the recorded writes, of the request with this id; `None` if its record was dropped.
    pub(super) fn write_index(&self, id: RequestId) -> Option<usize> {
        let number = own_number(id)?;
        self.writes.binary_search_by_key(&number, |entry| entry.number).ok()
    }

    pub(super) fn write(&self, index: usize) -> &WriteEntry {
        &self.writes[index]
    }

    /// The writes of the same operation; they were sent together.
    pub(super) fn group(&self, index: usize) -> Range<usize> {
        let serial = self.writes[index].serial;
        let start =
            (0..index).rev().find(|&other| self.writes[other].serial != serial).map_or(0, |other| other + 1);
        let end = (index..self.writes.len()).find(|&other| self.writes[other].serial != serial);
        start..end.unwrap_or(self.writes.len())
    }

    /// Drops all records; after a power cut no write is open.
    pub(super) fn forget_writes(&mut self) {
        self.forgotten_count += self.writes.len() as u64;
        self.writes.clear();
    }

    /// Whether the array still has all its data without the member.
    pub(super) fn can_lose(&self, level: RaidLevel, member: usize) -> bool {
        survives(level, self.list.len(), |index| {
            index != member && self.list[index].state == MemberState::InSync
        })
    }
}

/// Whether an array has all its data if only these members are whole.
pub(super) fn survives(level: RaidLevel, member_count: usize, is_whole: impl Fn(usize) -> bool) -> bool {
    let whole_count = (0..member_count).filter(|&member| is_whole(member)).count();
    let pair_has_one = |first: usize| is_whole(first) || is_whole((first + 1) % member_count);
    match level {
        RaidLevel::Raid0 => whole_count == member_count,
        RaidLevel::Raid1 => whole_count > 0,
        RaidLevel::Raid5 | RaidLevel::Raid6 => whole_count + level.parity_count() as usize >= member_count,
        // With an odd number of members, each member shares chunks with both neighbours.
        RaidLevel::Raid10 if member_count.is_multiple_of(2) => (0..member_count).step_by(2).all(pair_has_one),
        RaidLevel::Raid10 => (0..member_count).all(pair_has_one),
    }
}

/// A range of a member: index, first byte, end.
pub(super) type Extent = (usize, u64, u64);

/// Collects ranges per member and joins adjacent ones, so that a contiguous part becomes one request.
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

    /// Whether the range continues one on this member.
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
