//! An array of devices: RAID 0, 1, 5, 6 and 10.
//!
//! A request of the host becomes one or more *operations*. An operation sends requests to members and ends
//! when the last of them ends. The array adds no time except the host's, if configured (`host.rs`):
//! controller overhead and bus are in `throttle` and `cache`.
//!
//! * Striping and mirroring: each member gets its part of a request in as few pieces as possible. A mirrored
//!   read goes to the copy with fewest requests in flight, then to the one whose last request was nearest. A
//!   write goes to all copies.
//! * RAID 5 and 6: a write is divided into rows. A full-row write needs no reads. Otherwise the array reads
//!   the old data and parity (read-modify-write) or the data that is not written (reconstruct-write),
//!   whichever needs fewer requests, on a tie the latter, as Linux md does (`drivers/md/raid5.c`,
//!   `handle_stripe_dirtying`). Writes to the same part of a row are serialised.
//! * FLUSH goes to all members. Discard reaches whole rows only. Zeroes for a part of a row are a write.
//! * A member that fails a request is dropped if the array has its data elsewhere, and the read is retried.
//!   Otherwise the host sees the failure.
//! * A missing member: reads are reconstructed from the others, writes omit it. A rebuilding member gets
//!   writes at once and serves reads below the position of the rebuild. The rebuild has a highest rate for an
//!   idle host and a guaranteed lowest rate (md's `sync_speed_max` and `sync_speed_min`). The same rates
//!   apply to the resynchronisation after a power cut, if configured (`resync.rs`).
//!
//! # The write hole
//! A power cut can separate a row's data from its parity, because each member keeps or loses its own writes.
//! The effect appears in three places:
//! * In the fates. Parts of one write on different members have different fates. A write to a missing member
//!   exists only through the parity. If the parity update carried no other data, the write has the fate of
//!   the parity; else it is `Lost` unless all was kept. Of mirrored copies, the first valid one counts; a
//!   resynchronisation copies that one.
//! * [`Raid::write_hole_rows`] counts rows in which the members' writes of one operation had different fates.
//!   A parity that a later write replaced in a member's cache counts as lost, so the count is an upper bound.
//! * [`Raid::damaged`]: ranges of the host that were durable and can no longer be reconstructed, because
//!   their member was missing. No fate names them, because they belong to no open write.
//!
//! # Divergence
//! * No stripe cache: neighbouring writes are not gathered into whole rows. A `cache` layer above does that.
//! * Members that are equal disks turn in phase, so a mirrored write does not wait for the later of two
//!   rotations.
//! * A resynchronisation reads the data to compare. Correction of the few rows that differ costs nothing.
//!   Reads meanwhile go to any copy; md reads the first.
//! * A failed read drops its member at once; md first rewrites the sector.
//! * A degraded read, and a discard, do not wait for a write to the same row.
//! * Records of a write are dropped after half a million later writes. If a member still has the write in a
//!   volatile cache, its loss is not reported.

mod copies;
mod host;
mod layout;
mod locks;
mod members;
mod parameters;
mod parity;
mod power_cut;
mod rebuild;
mod resync;
#[cfg(test)]
mod tests;

use crate::change::{Change, Changed};
use crate::device::{Counters, Device, PowerCut};
use crate::layered::change_first;
use crate::layers::Ageing;
use crate::parameter::{Invalid, format_size_bytes};
use crate::request::{Completion, Operation, Outcome, Request, RequestId};
use crate::requests::{Requests, Slot, put};
use crate::time::Instant;
use host::Host;
use layout::Layout;
pub use members::MemberState;
use members::{Extents, Member, Members, OpIndex, Purpose, WriteEntry};
pub use parameters::{RaidLevel, RaidParameters};
use rebuild::Rebuild;
pub use resync::Resync;
use resync::Unsynced;

/// The kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Read,
    /// Writes every copy.
    Write,
    /// Writes a part of one row of an array with parity.
    WriteRow,
    Flush,
    /// Discard or write-zeroes on whole rows or copies.
    Erase,
    Rebuild {
        member: usize,
    },
    /// Makes copies and parity agree after a power cut.
    Resync,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Waiting behind another operation on the same part of the members.
    Waiting,
    Reading,
    /// Writing, or the only step of an operation without reads.
    Last,
}

#[derive(Debug, Clone, Copy)]
struct Op {
    task: Task,
    stage: Stage,
    serial: u64,
    /// The host's request; none for a rebuild or a resynchronisation.
    slot: Option<Slot>,
    /// In the host's coordinates. Member's coordinates for a rebuild, a resynchronisation or an erasure of
    /// rows.
    start_bytes: u64,
    end_bytes: u64,
    /// Locked part of the members.
    lock: (u64, u64),
    /// Requests to members that have not completed.
    waiting_for: u32,
    /// Latest completion time of its requests so far.
    done_at: Instant,
    is_failed: bool,
    /// A member was dropped; the operation must read again from the others.
    is_to_repeat: bool,
}

#[derive(Debug)]
pub struct Raid {
    parameters: RaidParameters,
    layout: Layout,
    requests: Requests,
    members: Members,
    ops: Vec<Op>,
    free_ops: Vec<OpIndex>,
    next_serial: u64,
    /// Operations that hold a lock.
    active: Vec<OpIndex>,
    /// Operations that wait for a lock, oldest first.
    waiting: Vec<OpIndex>,
    extents: Extents,
    host: Host,
    rebuild: Rebuild,
    unsynced: Unsynced,
    write_hole_rows: u64,
    damaged: Vec<(u64, u64)>,
}

impl Raid {
    /// An array of these members. Space beyond the smallest member is not used. The content of missing and of
    /// rebuilding members is void.
    pub fn new(parameters: RaidParameters, members: Vec<Box<dyn Device>>) -> Result<Raid, Invalid> {
        parameters.validate(members.len())?;
        let smallest_bytes = members.iter().map(|member| member.size_bytes()).min().unwrap_or(0);
        let layout = Layout::new(parameters.level, members.len(), parameters.chunk_bytes, smallest_bytes);
        if layout.size_bytes == 0 {
            let problem = format!(
                "has {}, must be at least `chunk`, {}",
                format_size_bytes(smallest_bytes),
                format_size_bytes(parameters.chunk_bytes)
            );
            return Err(Invalid::new("members", problem));
        }
        let mut members = Members::new(members);
        for &member in &parameters.missing_members {
            members.list[member].state = MemberState::Missing;
        }
        for &member in &parameters.rebuilding_members {
            members.list[member].state = MemberState::Rebuilding { valid_bytes: 0 };
        }
        Ok(Raid {
            rebuild: Rebuild::new(&parameters),
            parameters,
            layout,
            requests: Requests::default(),
            members,
            ops: Vec::new(),
            free_ops: Vec::new(),
            next_serial: 0,
            active: Vec::new(),
            waiting: Vec::new(),
            extents: Extents::default(),
            host: Host::default(),
            unsynced: Unsynced::default(),
            write_hole_rows: 0,
            damaged: Vec::new(),
        })
    }

    /// Rows whose data and parity may differ after a power cut, since the array was built.
    pub fn write_hole_rows(&self) -> u64 {
        self.write_hole_rows
    }

    /// Offset and size of durable data that became impossible to reconstruct after power cuts, in the host's
    /// bytes.
    pub fn damaged(&self) -> &[(u64, u64)] {
        &self.damaged
    }

    /// Counters of each member, by index.
    pub fn member_counters(&self) -> Vec<Counters> {
        self.members.list.iter().map(|member| member.device.counters()).collect()
    }

    pub fn member_state(&self, member: usize) -> MemberState {
        self.members.list[member].state
    }

    /// Removes the member at `now`, if the array has all its data without it. Returns whether it did.
    pub fn fail_member(&mut self, now: Instant, member: usize) -> bool {
        self.advance(now);
        let can_lose = self.members.can_lose(self.parameters.level, member);
        if can_lose {
            self.members.list[member].state = MemberState::Missing;
            self.advance(now);
        }
        can_lose
    }

    /// Puts a new device in place of a missing member and starts the rebuild. Refused while the old one is in
    /// use, or if the new one is too small.
    pub fn replace_member(
        &mut self,
        now: Instant,
        member: usize,
        device: Box<dyn Device>,
    ) -> Result<(), Invalid> {
        self.advance(now);
        let state = self.members.list[member].state;
        if state != MemberState::Missing || self.members.list[member].device.in_flight_count() > 0 {
            return Err(Invalid::new("member", format!("{member} is still in use")));
        }
        if device.size_bytes() < self.layout.member_bytes {
            let problem = format!(
                "has {}, must have at least {}",
                format_size_bytes(device.size_bytes()),
                format_size_bytes(self.layout.member_bytes)
            );
            return Err(Invalid::new("member", problem));
        }
        self.members.list[member] = Member::new(device);
        self.members.list[member].state = MemberState::Rebuilding { valid_bytes: 0 };
        self.rebuild.begin(now);
        self.advance(now);
        Ok(())
    }

    fn next_event_at(&self) -> Option<Instant> {
        let member_at = self.members.next().map(|(at, _)| at);
        member_at.into_iter().chain(self.host.due_at()).chain(self.rebuild_due_at()).min()
    }

    fn advance(&mut self, now: Instant) {
        loop {
            let next_member = self.members.next().filter(|&(at, _)| at <= now);
            let rebuild_at = self.rebuild_due_at().filter(|&at| at <= now);
            if let Some(at) = self.host.due_at().filter(|&at| at <= now)
                && next_member.is_none_or(|(member_at, _)| at < member_at)
                && rebuild_at.is_none_or(|due_at| at <= due_at)
            {
                self.pass_on(at);
                continue;
            }
            match (next_member, rebuild_at) {
                (Some((at, member)), rebuild_at) if rebuild_at.is_none_or(|due_at| at <= due_at) => {
                    while let Some((op, completion)) = self.members.poll(at, member) {
                        self.finish_member_request(member, op, completion);
                    }
                }
                (_, Some(due_at)) => self.start_rebuild(due_at),
                (_, None) => return,
            }
        }
    }

    fn start_request(&mut self, now: Instant, slot: Slot) {
        let request = self.requests.get(slot).request;
        let (start, end) = (request.offset_bytes, request.end_bytes());
        // Holds the request open until all its operations have begun.
        self.requests.expect_parts(slot, 1);
        match request.operation {
            Operation::Flush => self.begin_op(now, Task::Flush, slot, 0, 0),
            Operation::Read => self.begin_op(now, Task::Read, slot, start, end),
            Operation::Write if self.layout.has_parity() => self.begin_rows(now, slot, start, end),
            Operation::Write => self.begin_op(now, Task::Write, slot, start, end),
            Operation::Discard | Operation::WriteZeroes => self.begin_erase(now, slot, start, end),
        }
        self.finish_op_of(now, slot, false);
    }

    fn begin_erase(&mut self, now: Instant, slot: Slot, start: u64, end: u64) {
        if !self.layout.has_parity() {
            self.begin_op(now, Task::Erase, slot, start, end);
            return;
        }
        let row_bytes = self.layout.row_bytes();
        let (first_row, end_row) = (start.div_ceil(row_bytes), end / row_bytes);
        let (head_end, tail_start) = if first_row < end_row {
            let chunk_bytes = self.layout.chunk_bytes;
            self.begin_op(now, Task::Erase, slot, first_row * chunk_bytes, end_row * chunk_bytes);
            (first_row * row_bytes, end_row * row_bytes)
        } else {
            (end, end)
        };
        if self.requests.get(slot).request.operation == Operation::WriteZeroes {
            self.begin_rows(now, slot, start, head_end);
            self.begin_rows(now, slot, tail_start, end);
        }
    }

    fn begin_op(&mut self, now: Instant, task: Task, slot: Slot, start_bytes: u64, end_bytes: u64) {
        let op = self.new_op(task, Some(slot), start_bytes, end_bytes);
        self.requests.expect_parts(slot, 1);
        if matches!(task, Task::Write | Task::WriteRow) {
            self.lock_and_run(now, op);
        } else {
            self.run(now, op);
        }
    }

    fn new_op(&mut self, task: Task, slot: Option<Slot>, start_bytes: u64, end_bytes: u64) -> OpIndex {
        let serial = self.next_serial;
        self.next_serial += 1;
        let op = Op {
            task,
            stage: Stage::Last,
            serial,
            slot,
            start_bytes,
            end_bytes,
            lock: (0, 0),
            waiting_for: 0,
            done_at: Instant::ZERO,
            is_failed: false,
            is_to_repeat: false,
        };
        put(&mut self.ops, &mut self.free_ops, op)
    }

    fn run(&mut self, at: Instant, op: OpIndex) {
        let mut extents = std::mem::take(&mut self.extents);
        extents.begin(self.members.list.len());
        self.ops[op].is_to_repeat = false;
        self.ops[op].stage = Stage::Last;
        self.ops[op].done_at = at;
        match self.ops[op].task {
            Task::Read => self.run_read(at, op, &mut extents),
            Task::Write => self.run_write(at, op, &mut extents),
            Task::WriteRow => self.run_row(at, op, &mut extents),
            Task::Erase => self.run_erase(at, op, &mut extents),
            Task::Rebuild { member } => self.run_rebuild(at, op, member, &mut extents),
            Task::Resync => self.run_resync(at, op, &mut extents),
            Task::Flush => {
                for member in 0..self.members.list.len() {
                    if self.members.list[member].is_writable() {
                        self.send(at, op, Operation::Flush, (member, 0, 0));
                    }
                }
            }
        }
        self.extents = extents;
        if self.ops[op].waiting_for == 0 {
            self.finish_stage(at, op);
        }
    }

    fn send(&mut self, at: Instant, op: OpIndex, operation: Operation, extent: members::Extent) {
        self.ops[op].waiting_for += 1;
        let at = self.time_to_send(at, op, extent.0);
        let lost_ns = self.members.send_other(at, operation, op, extent);
        self.note_lost(op, lost_ns);
    }

    fn send_write_now(&mut self, at: Instant, entry: WriteEntry, force_unit_access: bool) {
        let at = self.time_to_send(at, entry.op, entry.member as usize);
        let lost_ns = self.members.send_write(at, entry, force_unit_access);
        self.note_lost(entry.op, lost_ns);
    }

    /// Requests of the host may reach a member late. A rebuild begins when the member is available.
    fn time_to_send(&self, at: Instant, op: OpIndex, member: usize) -> Instant {
        if self.ops[op].slot.is_some() { at } else { self.members.list[member].device.not_late(at) }
    }

    fn note_lost(&mut self, op: OpIndex, lost_ns: u64) {
        if let Some(slot) = self.ops[op].slot {
            self.requests.note_lost(slot, lost_ns);
        }
    }

    fn send_all(&mut self, at: Instant, op: OpIndex, operation: Operation, extents: &mut Extents) {
        for &extent in extents.end() {
            self.send(at, op, operation, extent);
        }
    }

    fn send_write(
        &mut self,
        at: Instant,
        op: OpIndex,
        purpose: Purpose,
        (member, start, end): members::Extent,
    ) {
        let state = &mut self.ops[op];
        let request = state.slot.map(|slot| self.requests.get(slot).request);
        let is_write = request.is_some_and(|request| request.operation == Operation::Write);
        let entry = WriteEntry {
            id: request.map_or(RequestId(0), |request| request.id),
            number: 0,
            serial: state.serial,
            op,
            offset_bytes: start,
            size_bytes: end - start,
            member: member as u32,
            purpose: if is_write { purpose } else { Purpose::Silent },
            is_done: purpose == Purpose::Implied,
        };
        if purpose == Purpose::Implied {
            self.members.remember(entry);
            return;
        }
        state.waiting_for += 1;
        self.send_by_thread(at, entry, request.is_some_and(|request| request.force_unit_access));
    }

    fn finish_member_request(&mut self, member: usize, op: OpIndex, completion: Completion) {
        if completion.outcome == Outcome::Failure {
            let state = self.members.list[member].state;
            if state == MemberState::Missing || self.members.can_lose(self.parameters.level, member) {
                self.ops[op].is_to_repeat = true;
                self.members.list[member].state = MemberState::Missing;
            } else {
                self.ops[op].is_failed = true;
            }
        }
        let state = &mut self.ops[op];
        state.waiting_for -= 1;
        state.done_at = state.done_at.max(completion.at);
        if state.waiting_for == 0 {
            self.finish_stage(self.ops[op].done_at, op);
        }
    }

    fn finish_stage(&mut self, at: Instant, op: OpIndex) {
        let state = self.ops[op];
        let is_read = state.task == Task::Read || state.stage == Stage::Reading;
        if state.is_to_repeat && is_read && !state.is_failed {
            self.run(at, op);
        } else if state.stage == Stage::Reading && !state.is_failed {
            self.ops[op].stage = Stage::Last;
            match state.task {
                Task::Rebuild { member } => self.write_rebuilt(at, op, member),
                Task::Resync => self.write_resynced(at, op),
                _ => self.write_row(at, op),
            }
            if self.ops[op].waiting_for == 0 {
                self.finish_op(at, op);
            }
        } else {
            self.finish_op(at, op);
        }
    }

    fn finish_op(&mut self, at: Instant, op: OpIndex) {
        let state = self.ops[op];
        match state.task {
            Task::Rebuild { member } => self.finish_rebuild(at, member, &state),
            Task::Resync => self.finish_resync(at, &state),
            Task::Write | Task::WriteRow => self.unsynced.note(self.parameters.resync, at, state.lock),
            Task::Read | Task::Flush | Task::Erase => {}
        }
        self.free_ops.push(op);
        if let Some(slot) = state.slot {
            self.finish_op_of(at, slot, state.is_failed);
        }
        self.unlock(at, op);
    }

    fn finish_op_of(&mut self, at: Instant, slot: Slot, is_failed: bool) {
        let outcome = if is_failed { Outcome::Failure } else { Outcome::Success };
        self.requests.finish_part(at, slot, outcome);
        self.rebuild.host_idle_since = self.rebuild.host_idle_since.max(at);
    }
}

impl Device for Raid {
    fn size_bytes(&self) -> u64 {
        self.layout.size_bytes
    }

    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        self.advance(now);
        let slot = self.requests.accept(sent, request, self.layout.size_bytes);
        self.enter(sent, slot);
        self.advance(now);
        self.requests.get(slot).taken_at()
    }

    fn poll_at(&self) -> Option<Instant> {
        self.requests.next_finished_at().into_iter().chain(self.next_event_at()).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.requests.collect(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        self.cut(now)
    }

    fn counters(&self) -> Counters {
        self.requests.counters.over(self.member_counters())
    }

    fn below(&self) -> Vec<&dyn Device> {
        self.members.list.iter().map(|member| member.device.device()).collect()
    }

    fn set_use(&mut self, ageing: Option<&Ageing>) {
        self.members.list.iter_mut().for_each(|member| member.device.set_use(ageing));
    }

    fn change(&mut self, now: Instant, change: Change) -> Changed {
        self.advance(now);
        let is_changed = match change {
            Change::MemberFails(member) => self.change_member(now, member, MemberState::Missing)?,
            Change::MemberIsReplaced(member) => {
                self.change_member(now, member, MemberState::Rebuilding { valid_bytes: 0 })?
            }
            _ => change_first(self.members.list.iter_mut().map(|member| &mut member.device), now, change)?,
        };
        self.advance(now);
        Ok(is_changed)
    }
}
