//! A layer that replicates writes to a peer over a network, like DRBD.
//!
//! A write goes to the local device and, through a send buffer and a link, to the peer. It completes when it
//! is on the local device and one more condition holds:
//! * protocol A: it is in the send buffer,
//! * protocol B: the peer has received it,
//! * protocol C: the peer's device has completed it.
//!
//! A full send buffer delays writes under every protocol. Reads are local. A FLUSH waits for the local device
//! alone. The peer is told to flush after the writes before it, without a wait. Linux does the same
//! (`drivers/block/drbd/drbd_req.c`: an empty flush starts a new epoch, P_BARRIER on the wire). FUA goes to
//! both sides.
//!
//! A link that is down longer than the timeout disconnects: waiting writes complete, and data missing on the
//! peer is out of sync. When the link is back, the peer gets this data at a limited rate, while new writes
//! are replicated as before.
//!
//! With an activity log, a write to an extent that was not written lately waits until the local device has a note of
//! it: `activity.rs`. The log is at the end of the local device.
//!
//! Sources: DRBD User's Guide, "Replication modes" and "The Activity Log"; `drbd_req.c` as above; `drbd_actlog.c`
//! (a note is a write of 4 KiB with FUA, the log a ring of 32 KiB, one note at a time).
//!
//! # Divergence
//! * A power cut affects this machine, never the peer. A parameter names the machine on which the host
//!   continues. Both sides are equal again afterwards, at no cost: the resync of the active extents after a crash is
//!   not modelled.
//! * A note begins without a FLUSH, and has the extents of one write. DRBD 8.3 writes 512 bytes; from 8.4 on the
//!   extents of several waiting writes share a note.
//! * A write to an active extent waits behind those that wait for a note. In DRBD it passes those of other processes
//!   (`lru_cache.c`, `lc_get`), unless no extent can be replaced. The fates after a power cut are told in the order of
//!   submission, which the device below would no longer know.
//! * An extent is in use until the local device has the write, also where the peer does not have it yet.
//! * Out-of-sync data is tracked by the sector, not by bits of 4 KiB.
//! * A congested link blocks. DRBD's optional "pull ahead" (dirty bits instead of data) and the disconnect of
//!   a slow peer (`ko-count`) are missing.
//! * A disconnect comes one timeout after the link went down, even if no message was in flight then.
//! * A link that a change breaks loses its connection, however soon it is restored.
//! * Resync data does not count in the send buffer. A discard that the peer missed is not repeated.

mod activity;
mod link;
mod parameters;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

pub use parameters::{Congestion, Outage, Protocol, ReplicatedParameters, Survivor};

use crate::change::{Change, Changed};
use crate::children::request;
use crate::device::{Counters, Device, Fate, WriteFate};
use crate::devices::transfer_ns;
use crate::layered::{Base, Layered};
use crate::layers::LayerParameters;
use crate::parameter::Invalid;
use crate::request::{Completion, Operation, Outcome, Request, SECTOR_BYTES};
use crate::requests::{Slot, Submitted};
use crate::rng::Rng;
use crate::time::Instant;
use crate::volatile::VolatileWrites;
use activity::ActivityLog;
use link::Link;

/// Longest piece of a resync.
const RESYNC_SECTORS: u64 = 256;

/// Sizes of a note in the activity log, and of the log.
const NOTE_BYTES: u64 = 4_096;
const LOG_BYTES: u64 = 32 << 10;

/// Sectors missing on the peer when the copy was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Piece {
    start: u64,
    end: u64,
    before_sequence: u64,
}

#[derive(Debug, Clone, Copy)]
enum Message {
    Replicate { request: Request, sequence: u64 },
    Barrier,
    Resync(Piece),
}

impl Message {
    fn bytes(&self) -> u64 {
        match self {
            Message::Replicate { request, .. } if request.operation == Operation::Write => request.size_bytes,
            Message::Replicate { .. } | Message::Barrier => 0,
            Message::Resync(piece) => (piece.end - piece.start) * SECTOR_BYTES,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The peer's acknowledgement of receipt of these bytes has arrived.
    Released(u64),
    /// The oldest message in transit has reached the peer.
    Arrived,
    /// The peer's acknowledgement of a write has arrived.
    Acknowledged { sequence: u64 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinkEvent {
    TimedOut,
    Back,
}

/// Indices of the devices below.
const LOCAL: usize = 0;
const PEER: usize = 1;

/// The purpose of a request to a device below.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Host(Slot),
    ResyncRead {
        piece: Piece,
        epoch: u64,
    },
    PeerWrite {
        sequence: u64,
        epoch: u64,
    },
    /// A barrier or a resync of the peer, in the background.
    Background,
    /// The note that a write waits for.
    Note(Slot),
}

#[derive(Debug)]
pub struct Replicated {
    parameters: ReplicatedParameters,
    base: Base<Purpose>,
    rng: Rng,
    link: Link,
    /// Link events that disconnect and connect, in order.
    timetable: VecDeque<(Instant, LinkEvent)>,
    is_connected: bool,
    /// Number of the connection. Events of an older connection are void.
    epoch: u64,
    events: BinaryHeap<Reverse<(Instant, u64, Event)>>,
    next_event_number: u64,
    /// Messages that wait for room in the send buffer.
    unsent: VecDeque<Message>,
    buffered_bytes: u64,
    in_transit: VecDeque<Message>,
    last_arrival_at: Instant,
    /// Writes whose network part is open, by submission number.
    awaiting: BTreeMap<u64, Slot>,
    out_of_sync: VolatileWrites,
    resync_at: Option<Instant>,
    /// Ranges out of sync at the reconnect and not read since, in sectors.
    to_resync: VecDeque<(u64, u64)>,
    activity: Option<ActivityLog>,
    /// Writes that wait for a note, in the order of their arrival.
    unnoted: VecDeque<Slot>,
    is_noting: bool,
    note_count: u64,
}

impl Replicated {
    /// # Errors
    /// Parameters rejected by [`ReplicatedParameters::validate`].
    pub fn new(
        parameters: ReplicatedParameters,
        seed: u64,
        local: Box<dyn Device>,
        peer: Box<dyn Device>,
    ) -> Result<Replicated, Invalid> {
        parameters.validate()?;
        let link = Link::new(parameters.bytes_per_s, &parameters.outages, &parameters.congestions);
        let outages = link.outages().into_iter();
        let timetable = outages
            .filter(|&(start, end)| end - start > parameters.timeout_ns)
            .flat_map(|(start, end)| {
                let timed_out = (start + parameters.timeout_ns, LinkEvent::TimedOut);
                [timed_out, (end + parameters.round_trip_ns, LinkEvent::Back)]
            })
            .collect();
        let size_bytes = parameters.size_bytes(&[local.size_bytes(), peer.size_bytes()]);
        let activity = (parameters.active_extents > 0)
            .then(|| ActivityLog::new(parameters.active_extents, parameters.extent_bytes));
        Ok(Replicated {
            base: Base::new(size_bytes, [local, peer]),
            rng: Rng::new(seed),
            link,
            timetable,
            is_connected: true,
            epoch: 0,
            events: BinaryHeap::new(),
            next_event_number: 0,
            unsent: VecDeque::new(),
            buffered_bytes: 0,
            in_transit: VecDeque::new(),
            last_arrival_at: Instant::ZERO,
            awaiting: BTreeMap::new(),
            out_of_sync: VolatileWrites::default(),
            resync_at: None,
            to_resync: VecDeque::new(),
            activity,
            unnoted: VecDeque::new(),
            is_noting: false,
            note_count: 0,
            parameters,
        })
    }

    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Bytes that the peer gets only by a resync.
    pub fn out_of_sync_bytes(&self) -> u64 {
        self.out_of_sync.dirty_sectors * SECTOR_BYTES
    }

    fn schedule(&mut self, at: Instant, event: Event) {
        self.events.push(Reverse((at, self.next_event_number, event)));
        self.next_event_number += 1;
    }

    fn handle(&mut self, at: Instant, event: Event) {
        match event {
            Event::Released(bytes) => {
                self.buffered_bytes -= bytes;
                self.fill_buffer(at);
            }
            Event::Acknowledged { sequence } => self.finish_network_part(at, sequence),
            Event::Arrived => self.arrive(at),
        }
    }

    fn arrive(&mut self, at: Instant) {
        let epoch = self.epoch;
        match self.in_transit.pop_front() {
            Some(Message::Replicate { request, sequence }) => {
                let (start, end) = request.sectors();
                self.out_of_sync.forget(start, end, sequence + 1);
                self.base.below[PEER].submit_late(at, request, Purpose::PeerWrite { sequence, epoch });
                if self.parameters.protocol == Protocol::B {
                    self.acknowledge(at, sequence);
                }
            }
            Some(Message::Resync(Piece { start, end, before_sequence })) => {
                self.out_of_sync.forget(start, end, before_sequence);
                let (offset_bytes, size_bytes) = (start * SECTOR_BYTES, (end - start) * SECTOR_BYTES);
                let write = request(Operation::Write, offset_bytes, size_bytes);
                self.base.below[PEER].submit(at, write, Purpose::Background);
            }
            Some(Message::Barrier) => self.base.below[PEER].flush(at, Purpose::Background),
            None => {}
        }
    }

    fn jitter_ns(&mut self) -> u64 {
        match self.parameters.jitter_ns {
            0 => 0,
            jitter_ns => self.rng.below(jitter_ns + 1),
        }
    }

    /// Sends the peer's acknowledgement. It is too small to wait for the link's rate.
    fn acknowledge(&mut self, at: Instant, sequence: u64) {
        let jitter_ns = self.jitter_ns();
        let back_at = self.link.up_at(at) + self.parameters.round_trip_ns.div_ceil(2) + jitter_ns;
        self.schedule(back_at, Event::Acknowledged { sequence });
    }

    fn finish_network_part(&mut self, at: Instant, sequence: u64) {
        if let Some(slot) = self.awaiting.remove(&sequence) {
            self.base.requests.finish_part(at, slot, Outcome::Success);
        }
    }

    fn fill_buffer(&mut self, at: Instant) {
        while let Some(&message) = self.unsent.front() {
            let bytes = message.bytes();
            // A write larger than the buffer uses it alone.
            if self.buffered_bytes > 0 && self.buffered_bytes + bytes > self.parameters.send_buffer_bytes {
                return;
            }
            self.unsent.pop_front();
            self.buffered_bytes += bytes;
            let sent_at = self.send(at, message);
            let half_way_ns = self.parameters.round_trip_ns / 2;
            let released_at = self.link.up_at(sent_at + half_way_ns) + half_way_ns;
            self.schedule(released_at, Event::Released(bytes));
            if let Message::Replicate { sequence, .. } = message
                && self.parameters.protocol == Protocol::A
            {
                self.finish_network_part(at, sequence);
            }
        }
    }

    /// Puts the message on the link. Returns the time when its last byte is on the wire.
    fn send(&mut self, at: Instant, message: Message) -> Instant {
        let sent_at = self.link.send(at, message.bytes());
        let jitter_ns = self.jitter_ns();
        let arrival_at = sent_at + self.parameters.round_trip_ns / 2 + jitter_ns;
        self.last_arrival_at = self.last_arrival_at.max(arrival_at);
        self.in_transit.push_back(message);
        self.schedule(self.last_arrival_at, Event::Arrived);
        sent_at
    }

    /// Discards the state of the connection.
    fn drop_connection(&mut self, at: Instant) {
        self.epoch += 1;
        self.events.clear();
        self.link.clear(at);
        self.last_arrival_at = at;
        self.buffered_bytes = 0;
        self.resync_at = None;
        self.to_resync.clear();
    }

    fn disconnect(&mut self, at: Instant) {
        self.is_connected = false;
        self.drop_connection(at);
        let carried = std::mem::take(&mut self.in_transit).into_iter();
        for message in carried.chain(std::mem::take(&mut self.unsent)) {
            if let Message::Replicate { request, sequence } = message {
                self.miss(&request, sequence);
            }
        }
        for slot in std::mem::take(&mut self.awaiting).into_values() {
            self.base.requests.finish_part(at, slot, Outcome::Success);
        }
    }

    /// Records a request that the peer does not get.
    fn miss(&mut self, request: &Request, sequence: u64) {
        let (start, end) = request.sectors();
        if request.operation == Operation::Write && start < end {
            self.out_of_sync.insert(start, end, request.id, sequence);
        }
    }

    /// Breaks the link until it is restored. Only what is on the wire already arrives.
    fn break_link(&mut self, at: Instant) {
        self.link.clear(at);
        self.link.set_rate(at, 0);
        let on_the_wire_until = at + self.parameters.round_trip_ns.div_ceil(2) + self.parameters.jitter_ns;
        self.events.retain(|Reverse((due_at, ..))| *due_at <= on_the_wire_until);
        self.timetable.clear();
        self.timetable.push_back((at + self.parameters.timeout_ns, LinkEvent::TimedOut));
    }

    /// Restores the link with a new connection, whether the old one has timed out or not.
    fn restore_link(&mut self, at: Instant) {
        if self.is_connected {
            self.disconnect(at);
        }
        self.link.set_rate(at, self.parameters.bytes_per_s);
        self.timetable.clear();
        self.timetable.push_back((at + self.parameters.round_trip_ns, LinkEvent::Back));
    }

    fn connect(&mut self, at: Instant) {
        self.is_connected = true;
        self.to_resync = self.out_of_sync.runs();
        self.resync_at = Some(at);
    }

    /// Reads the next piece that the peer lacks and schedules the one after it by the resync rate.
    fn resync(&mut self, at: Instant) {
        self.resync_at = None;
        while let Some((start, run_end)) = self.to_resync.pop_front() {
            let end = run_end.min(start + RESYNC_SECTORS);
            if end < run_end {
                self.to_resync.push_front((end, run_end));
            }
            if !self.out_of_sync.touches(start, end) {
                continue;
            }
            let piece = Piece { start, end, before_sequence: self.base.requests.next_sequence };
            let size_bytes = (end - start) * SECTOR_BYTES;
            let read = request(Operation::Read, start * SECTOR_BYTES, size_bytes);
            self.base.below[LOCAL].submit(at, read, Purpose::ResyncRead { piece, epoch: self.epoch });
            self.resync_at = Some(at + transfer_ns(size_bytes, self.parameters.resync_bytes_per_s).max(1));
            return;
        }
    }

    /// Sends a request to both sides.
    fn replicate(&mut self, at: Instant, slot: Slot) {
        let Submitted { request, sequence, .. } = *self.base.requests.get(slot);
        match request.operation {
            Operation::Read => {}
            Operation::Flush if self.is_connected => self.unsent.push_back(Message::Barrier),
            Operation::Flush => {}
            _ if self.is_connected => {
                self.base.requests.expect_parts(slot, 1);
                self.awaiting.insert(sequence, slot);
                self.unsent.push_back(Message::Replicate { request, sequence });
            }
            _ => self.miss(&request, sequence),
        }
        self.fill_buffer(at);
        self.base.pass_on(at, LOCAL, slot, request, Purpose::Host(slot));
    }

    /// The activity log, and the request, if that is one for which extents must be active.
    fn activity_of(&mut self, slot: Slot) -> Option<(&mut ActivityLog, Request)> {
        let request = self.base.requests.get(slot).request;
        let is_write = !matches!(request.operation, Operation::Read | Operation::Flush);
        Some((self.activity.as_mut().filter(|_| is_write)?, request))
    }

    /// Whether the request may go on.
    fn enters(&mut self, slot: Slot) -> bool {
        self.activity_of(slot).is_none_or(|(activity, request)| activity.enter(&request))
    }

    /// Writes the note that the oldest waiting write needs, if none is being written and there is room.
    fn note_next(&mut self, at: Instant) {
        let (Some(activity), Some(&slot), false) = (&mut self.activity, self.unnoted.front(), self.is_noting)
        else {
            return;
        };
        if !activity.make_room(&self.base.requests.get(slot).request) {
            return;
        }
        self.is_noting = true;
        let place = self.base.below[LOCAL].device().size_bytes() - LOG_BYTES;
        let offset_bytes = place + self.note_count * NOTE_BYTES % LOG_BYTES;
        self.note_count += 1;
        let note = Request { force_unit_access: true, ..request(Operation::Write, offset_bytes, NOTE_BYTES) };
        let (_, lost_ns) = self.base.below[LOCAL].submit_late(at, note, Purpose::Note(slot));
        self.base.requests.note_lost(slot, lost_ns);
    }

    /// The note of this write is on the device: it goes on, and so do those behind it whose extents are active.
    fn noted(&mut self, at: Instant, slot: Slot) {
        self.is_noting = false;
        let request = self.base.requests.get(slot).request;
        self.activity.as_mut().expect("it has written a note").note(&request);
        while let Some(&slot) = self.unnoted.front()
            && self.enters(slot)
        {
            self.unnoted.pop_front();
            self.replicate(at, slot);
        }
        self.note_next(at);
    }

    /// The local device has completed a request of the host.
    fn leave(&mut self, at: Instant, slot: Slot) {
        if let Some((activity, request)) = self.activity_of(slot) {
            activity.leave(&request);
            self.note_next(at);
        }
    }

    /// Fates if the host continues on the peer: all data missing there is lost.
    fn fates_on_peer(&mut self) -> Vec<WriteFate> {
        let mut writes = self.out_of_sync.power_cut(&[], &[], &mut self.rng);
        for message in self.in_transit.iter().chain(&self.unsent) {
            if let Message::Replicate { request, .. } = message
                && request.operation == Operation::Write
            {
                writes.push(WriteFate::lost(request.id, request.offset_bytes, request.size_bytes));
            }
        }
        for write in &mut writes {
            write.acknowledged = !self.base.requests.is_outstanding(write.id);
            write.fate = Fate::Lost;
        }
        writes
    }
}

impl Layered for Replicated {
    type Purpose = Purpose;

    fn base(&self) -> &Base<Purpose> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<Purpose> {
        &mut self.base
    }

    fn begin(&mut self, _now: Instant, slot: Slot) {
        let arrived_at = self.base.requests.get(slot).arrived_at;
        self.base.requests.expect_parts(slot, 1);
        let is_behind = !self.unnoted.is_empty() && self.activity_of(slot).is_some();
        if !is_behind && self.enters(slot) {
            self.replicate(arrived_at, slot);
        } else {
            self.unnoted.push_back(slot);
            self.note_next(arrived_at);
        }
    }

    fn complete(&mut self, _at: Instant, purpose: Purpose, Completion { at, outcome, .. }: Completion) {
        match purpose {
            Purpose::Host(slot) => {
                self.leave(at, slot);
                self.base.requests.finish_part(at, slot, outcome);
            }
            Purpose::Note(slot) => self.noted(at, slot),
            Purpose::ResyncRead { piece, epoch } if epoch == self.epoch => {
                self.send(at, Message::Resync(piece));
            }
            Purpose::PeerWrite { sequence, epoch }
                if epoch == self.epoch && self.parameters.protocol == Protocol::C =>
            {
                self.acknowledge(at, sequence);
            }
            Purpose::ResyncRead { .. } | Purpose::PeerWrite { .. } | Purpose::Background => {}
        }
    }

    fn change_own(&mut self, now: Instant, change: Change) -> Changed {
        let Change::Link { is_up } = change else { return Ok(false) };
        match (is_up, self.link.is_up(now)) {
            (false, false) => return Err(Invalid::new("link", "is broken already")),
            (true, true) => return Err(Invalid::new("link", "is up already")),
            (false, true) => self.break_link(now),
            (true, false) => self.restore_link(now),
        }
        Ok(true)
    }

    fn own_event_at(&self) -> Option<Instant> {
        let event_at = self.events.peek().map(|Reverse((at, ..))| *at);
        let link_at = self.timetable.front().map(|&(at, _)| at);
        [event_at, link_at, self.resync_at].into_iter().flatten().min()
    }

    fn step(&mut self, at: Instant) {
        self.poll_below(at);
        while let Some(&Reverse((due_at, _, event))) = self.events.peek()
            && due_at <= at
        {
            self.events.pop();
            self.handle(at, event);
        }
        while let Some(&(due_at, event)) = self.timetable.front()
            && due_at <= at
        {
            self.timetable.pop_front();
            match event {
                LinkEvent::TimedOut => self.disconnect(at),
                LinkEvent::Back => self.connect(at),
            }
        }
        if self.resync_at.is_some_and(|due_at| due_at <= at) {
            self.resync(at);
        }
    }

    fn cut(&mut self, now: Instant) -> Vec<WriteFate> {
        let local = self.base.cut_below(now);
        let writes = match self.parameters.survivor {
            Survivor::Local => local,
            Survivor::Peer => self.fates_on_peer(),
        };
        let waiting = std::mem::take(&mut self.unnoted).into_iter().map(|slot| self.base.requests.get(slot));
        let waiting = waiting.filter(|submitted| submitted.request.operation == Operation::Write);
        let unnoted: Vec<WriteFate> = waiting.map(|submitted| submitted.unacknowledged(Fate::Lost)).collect();
        self.is_noting = false;
        self.activity.iter_mut().for_each(ActivityLog::stop);
        self.drop_connection(now);
        self.unsent.clear();
        self.in_transit.clear();
        self.awaiting.clear();
        self.out_of_sync.reset();
        writes.into_iter().chain(unnoted).collect()
    }

    /// Counters of the local device; the peer is another machine.
    fn totals(&self) -> Counters {
        self.base.requests.counters.over([self.base.below[LOCAL].counters()])
    }
}
