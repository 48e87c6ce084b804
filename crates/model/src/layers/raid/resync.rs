//! Resynchronisation of copies and parity after a power cut, as in Linux md.
//!
//! md marks an array as active before the first write, and as clean after `safe_mode_delay` without writes,
//! 200 ms by default (Documentation/admin-guide/md.rst). An array that was active when the power failed is
//! resynchronised as a whole, or, with a write-intent bitmap, where a bit is set. Bits are cleared lazily,
//! after 5 s by default, and one stands for 64 MiB (`man 8 mdadm`, `--delay`, `--bitmap-chunk`). The
//! resynchronisation runs by the clock of the rebuild, one unit at a time, while host writes to the same
//! place wait.
//!
//! In RAID 1, a unit reads one copy and writes the others (`drivers/md/raid1.c`, `raid1_sync_request`). In
//! RAID 10 it reads all copies, with parity the whole row, and writes the differences. An array with parity
//! that lacks a member has no redundancy to compare: md starts it only with force.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::members::{Extents, MemberState, OpIndex, Purpose};
use super::{Op, Raid, RaidLevel, Stage, Task};
use crate::request::Operation;
use crate::time::{Instant, MILLISECOND, SECOND};

/// md's `safe_mode_delay`.
const ACTIVE_NS: u64 = 200 * MILLISECOND;
/// Time that a bit of the bitmap stays set after the last write.
const BIT_NS: u64 = 5 * SECOND;

/// The resynchronisation after a power cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resync {
    /// No resynchronisation.
    Never,
    /// Compares everything, if the array was active.
    Whole,
    /// Compares the regions set in a write-intent bitmap; a bit stands for `region_bytes` of each member.
    Bitmap { region_bytes: u64 },
}

/// Regions that may differ between members, and those found at the last power cut.
#[derive(Debug, Default)]
pub(super) struct Unsynced {
    last_write_at: Option<Instant>,
    /// With a bitmap: region to the time of its last write.
    regions: BTreeMap<u64, Instant>,
    /// Ranges of each member, in bytes, that are still to be resynchronised.
    ranges: VecDeque<(u64, u64)>,
}

impl Unsynced {
    /// Notes a write to this part of the members.
    pub(super) fn note(&mut self, resync: Resync, at: Instant, (start, end): (u64, u64)) {
        if resync == Resync::Never || start == end {
            return;
        }
        self.last_write_at = self.last_write_at.max(Some(at));
        if let Resync::Bitmap { region_bytes } = resync {
            let regions = start / region_bytes..end.div_ceil(region_bytes);
            self.regions.extend(regions.map(|region| (region, at)));
        }
    }

    pub(super) fn next(&self) -> Option<(u64, u64)> {
        self.ranges.front().copied()
    }

    pub(super) fn left_bytes(&self) -> u64 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    fn is_active(&self, now: Instant) -> bool {
        self.last_write_at.is_some_and(|at| at + ACTIVE_NS > now)
    }

    /// Regions whose bit is set, and regions still open from an earlier cut.
    fn set_regions(&self, now: Instant, region_bytes: u64) -> BTreeSet<u64> {
        let written = self.regions.iter().filter(|&(_, &at)| at + BIT_NS > now).map(|(&region, _)| region);
        let left =
            self.ranges.iter().flat_map(|&(start, end)| start / region_bytes..end.div_ceil(region_bytes));
        written.chain(left).collect()
    }
}

impl Raid {
    /// Bytes of each member that are still to be resynchronised after a power cut.
    pub fn resync_left_bytes(&self) -> u64 {
        self.unsynced.left_bytes()
    }

    /// Plans the resynchronisation at a power cut, including writes still in progress.
    pub(super) fn plan_resync(&mut self, now: Instant) {
        let resync = self.parameters.resync;
        for &op in self.active.iter().chain(&self.waiting) {
            if matches!(self.ops[op].task, Task::Write | Task::WriteRow) {
                self.unsynced.note(resync, now, self.ops[op].lock);
            }
        }
        let member_bytes = self.layout.member_bytes;
        match resync {
            Resync::Whole if self.unsynced.is_active(now) => {
                self.unsynced.ranges = VecDeque::from([(0, member_bytes)]);
            }
            Resync::Bitmap { region_bytes } => {
                let range =
                    |region: u64| (region * region_bytes, ((region + 1) * region_bytes).min(member_bytes));
                let regions = self.unsynced.set_regions(now, region_bytes);
                self.unsynced.ranges =
                    regions.into_iter().map(range).filter(|range| range.0 < range.1).collect();
            }
            Resync::Never | Resync::Whole => {}
        }
        self.unsynced.last_write_at = None;
        self.unsynced.regions.clear();
    }

    pub(super) fn run_resync(&mut self, at: Instant, op: OpIndex, extents: &mut Extents) {
        let (start, end) = (self.ops[op].start_bytes, self.ops[op].end_bytes);
        self.ops[op].stage = Stage::Reading;
        let is_whole = self.members.list.iter().all(|member| member.state == MemberState::InSync);
        if self.layout.has_parity() && !is_whole {
            return;
        }
        let most = if self.parameters.level == RaidLevel::Raid1 { 1 } else { usize::MAX };
        let members = self.members.list.iter().enumerate();
        members
            .filter(|(_, member)| member.is_readable(end))
            .take(most)
            .for_each(|(index, _)| extents.add((index, start, end)));
        self.send_all(at, op, Operation::Read, extents);
    }

    /// Writes the copies that were not read.
    pub(super) fn write_resynced(&mut self, at: Instant, op: OpIndex) {
        if self.parameters.level != RaidLevel::Raid1 {
            return;
        }
        let (start, end) = (self.ops[op].start_bytes, self.ops[op].end_bytes);
        let is_copy = |&member: &usize| self.members.list[member].is_readable(end);
        let copies: Vec<usize> = (0..self.members.list.len()).filter(is_copy).skip(1).collect();
        for member in copies {
            self.send_write(at, op, Purpose::Silent, (member, start, end));
        }
    }

    pub(super) fn finish_resync(&mut self, at: Instant, op: &Op) {
        if let Some(range) = self.unsynced.ranges.front_mut() {
            range.0 = op.end_bytes;
            if range.0 >= range.1 {
                self.unsynced.ranges.pop_front();
            }
        }
        self.end_unit(at);
    }
}
