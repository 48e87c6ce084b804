//! Rebuild of a new member in the background, and the clock of the resynchronisation.
//!
//! One unit is rebuilt at a time: it is read from the members that have it and written to the new one, while
//! host writes to the same place wait. The start of the next unit follows one of two rates, depending on
//! whether the host is idle.

use super::members::{Extents, MemberState, OpIndex, Purpose};
use super::{Op, Raid, RaidParameters, Stage, Task};
use crate::change::Changed;
use crate::devices::transfer_ns;
use crate::parameter::Invalid;
use crate::request::Operation;
use crate::time::Instant;

/// Bytes of a member rebuilt at once. md resynchronises in requests of 64 KiB with 2 MiB in flight
/// (`drivers/md/raid1-10.c`, `drivers/md/raid1.c`). One request of half a MiB also keeps a disk's arm on its
/// track.
const UNIT_BYTES: u64 = 512 << 10;

#[derive(Debug, Default)]
pub(super) struct Rebuild {
    is_running: bool,
    is_unit_in_flight: bool,
    unit_started_at: Instant,
    /// Lower bound of the next unit's start, in case of slow members.
    unit_ended_at: Instant,
    /// Bytes of the previous unit; they determine the pause before the next.
    unit_bytes: u64,
    pub(super) host_idle_since: Instant,
}

impl Rebuild {
    pub(super) fn new(parameters: &RaidParameters) -> Rebuild {
        Rebuild { is_running: !parameters.rebuilding_members.is_empty(), ..Rebuild::default() }
    }

    pub(super) fn begin(&mut self, now: Instant) {
        if !self.is_running {
            self.is_running = true;
            self.unit_started_at = now;
            self.unit_bytes = 0;
        }
    }

    /// After a power cut, continues the rebuild, or begins the resynchronisation of the cut.
    pub(super) fn resume(&mut self, now: Instant, has_resync: bool) {
        self.is_running |= has_resync;
        self.is_unit_in_flight = false;
        self.unit_started_at = now;
        self.unit_bytes = 0;
        self.host_idle_since = now;
    }
}

impl Raid {
    /// A member dies, or a drive of its kind takes its place: the same one, erased. Its wear stays.
    pub(super) fn change_member(&mut self, now: Instant, member: usize, state: MemberState) -> Changed {
        let count = self.members.list.len();
        let refuse = |problem: String| Err(Invalid::new("member", problem));
        let number = member + 1;
        let Some(found) = self.members.list.get(member) else {
            return refuse(format!("{number} is not there: the array has members 1 to {count}"));
        };
        match (state, found.state) {
            (MemberState::Missing, MemberState::Missing) => refuse(format!("{number} is missing already")),
            (MemberState::Missing, _) if !self.members.can_lose(self.parameters.level, member) => {
                refuse(format!("{number} cannot die: the array would lose data"))
            }
            (MemberState::Rebuilding { .. }, MemberState::Missing) if found.device.in_flight_count() > 0 => {
                refuse(format!("{number} still has requests in flight"))
            }
            (MemberState::Rebuilding { .. }, MemberState::Missing) => {
                self.members.list[member].device.set_use(None);
                self.members.list[member].state = state;
                self.rebuild.begin(now);
                Ok(true)
            }
            (MemberState::Rebuilding { .. }, _) => {
                refuse(format!("{number} works, and only a member that died is replaced"))
            }
            _ => {
                self.members.list[member].state = state;
                Ok(true)
            }
        }
    }

    /// Start of the next unit, unless the host's load changes.
    pub(super) fn rebuild_due_at(&self) -> Option<Instant> {
        let rebuild = &self.rebuild;
        if !rebuild.is_running || rebuild.is_unit_in_flight {
            return None;
        }
        let pause = |bytes_per_s| {
            let paid_at = rebuild.unit_started_at + transfer_ns(rebuild.unit_bytes, bytes_per_s);
            paid_at.max(rebuild.unit_ended_at)
        };
        let least = self.parameters.rebuild_least_bytes_per_s;
        let busy_at = (least > 0).then(|| pause(least));
        if self.requests.working_count() > 0 {
            return busy_at;
        }
        let idle_at = pause(self.parameters.rebuild_most_bytes_per_s)
            .max(rebuild.host_idle_since + self.parameters.rebuild_idle_ns);
        Some(busy_at.map_or(idle_at, |at| at.min(idle_at)))
    }

    fn next_rebuild(&self) -> Option<(usize, u64)> {
        self.members.list.iter().enumerate().find_map(|(index, member)| match member.state {
            MemberState::Rebuilding { valid_bytes } => Some((index, valid_bytes)),
            MemberState::InSync | MemberState::Missing => None,
        })
    }

    pub(super) fn start_rebuild(&mut self, at: Instant) {
        let all = self.layout.member_bytes;
        let rebuild = self.next_rebuild().map(|(member, start)| (Task::Rebuild { member }, start, all));
        let resync = || self.unsynced.next().map(|(start, end)| (Task::Resync, start, end));
        let Some((task, start, end)) = rebuild.or_else(resync) else {
            self.rebuild.is_running = false;
            return;
        };
        let end = end.min(start + UNIT_BYTES);
        self.rebuild.is_unit_in_flight = true;
        self.rebuild.unit_started_at = at;
        self.rebuild.unit_bytes = end - start;
        let op = self.new_op(task, None, start, end);
        self.lock_and_run(at, op);
    }

    pub(super) fn run_rebuild(&mut self, at: Instant, op: OpIndex, member: usize, extents: &mut Extents) {
        let (start, end) = (self.ops[op].start_bytes, self.ops[op].end_bytes);
        self.ops[op].stage = Stage::Reading;
        let is_possible = if self.layout.has_parity() {
            self.add_reconstruction(member, (start, end), extents)
        } else {
            self.add_other_copies(member, start, end, extents)
        };
        self.ops[op].is_failed |= !is_possible;
        if is_possible {
            self.send_all(at, op, Operation::Read, extents);
        }
    }

    fn add_other_copies(&self, member: usize, start: u64, end: u64, extents: &mut Extents) -> bool {
        use super::layout::Role;
        let mut is_possible = true;
        for piece in self.layout.pieces(start, end) {
            let Role::Data { offset_bytes, .. } = self.layout.role(member, piece.start_bytes) else {
                continue;
            };
            let size = piece.end_bytes - piece.start_bytes;
            match self.best_copy(offset_bytes, size, Some(member), extents) {
                Some(copy) => {
                    let place = self.layout.place(offset_bytes, copy as u64);
                    extents.add((place.member, place.offset_bytes, place.offset_bytes + size));
                }
                None => is_possible = false,
            }
        }
        is_possible
    }

    pub(super) fn write_rebuilt(&mut self, at: Instant, op: OpIndex, member: usize) {
        let (start, end) = (self.ops[op].start_bytes, self.ops[op].end_bytes);
        if self.members.list[member].is_writable() {
            self.send_write(at, op, Purpose::Silent, (member, start, end));
        }
    }

    pub(super) fn finish_rebuild(&mut self, at: Instant, member: usize, op: &Op) {
        self.rebuild.is_unit_in_flight = false;
        if op.is_failed {
            // Its sources are gone, so the rebuild ends.
            self.rebuild.is_running = false;
            return;
        }
        let state = &mut self.members.list[member].state;
        // The member may have been dropped and replaced.
        if *state == (MemberState::Rebuilding { valid_bytes: op.start_bytes }) {
            *state = if op.end_bytes == self.layout.member_bytes {
                MemberState::InSync
            } else {
                MemberState::Rebuilding { valid_bytes: op.end_bytes }
            };
        }
        self.end_unit(at);
    }

    pub(super) fn end_unit(&mut self, at: Instant) {
        self.rebuild.unit_ended_at = at;
        self.rebuild.is_unit_in_flight = false;
        self.rebuild.is_running = self.next_rebuild().is_some() || self.unsynced.next().is_some();
    }
}
