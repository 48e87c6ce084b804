//! What a power cut leaves of the host's writes.

use super::read_ahead::ReadAhead;
use super::{Cache, Target};
use crate::device::{Fate, PowerCut, WriteFate};
use crate::fan_out::part_of;
use crate::request::{RequestId, SECTOR_BYTES};
use crate::time::Instant;
use crate::volatile::Taken;

impl Cache {
    pub(super) fn cut(&mut self, now: Instant) -> PowerCut {
        let outstanding = self.commands.outstanding();
        let below = self.below.power_cut(now);
        self.below_at = self.below.poll_at();
        if self.is_safe() {
            // Memory keeps it, and what was on its way to the device below is in memory still.
            self.dirty.reset();
            self.destages.reset();
        }
        let taken: Vec<Taken> =
            self.destages.list.iter().flatten().flat_map(|destage| destage.taken.iter().copied()).collect();
        let all = self.dirty.power_cut(&taken, &outstanding, &mut self.rng);
        // The same without what was on its way below: what is missing in it was.
        let mut resident = self.dirty.power_cut(&[], &outstanding, &mut self.rng).into_iter().peekable();
        let mut writes = Vec::new();
        for part in all {
            let key = |part: &WriteFate| (part.id, part.offset_bytes, part.size_bytes);
            if resident.next_if(|next| key(next) == key(&part)).is_none() {
                self.add_destaged(&part, &below, &mut writes);
            } else if let Some(passed) = self.passed_id(part.id) {
                add_parts(&part, passed, &below, &mut writes);
            } else {
                writes.push(WriteFate { fate: Fate::Lost, ..part });
            }
        }
        self.reset(now);
        PowerCut { writes }
    }

    /// The fate of what was being written back is that of the write that carried it.
    fn add_destaged(&self, part: &WriteFate, below: &PowerCut, writes: &mut Vec<WriteFate>) {
        let sector = part.offset_bytes / SECTOR_BYTES;
        for (index, destage) in self.destages.list.iter().enumerate() {
            if let Some(destage) =
                destage.as_ref().filter(|destage| (destage.start..destage.end).contains(&sector))
            {
                add_parts(part, Target::Destage { index, number: destage.number }.id(), below, writes);
            }
        }
    }

    /// The identifier on the device below of a write that was passed to it and has not completed.
    fn passed_id(&self, id: RequestId) -> Option<RequestId> {
        let mut passed = self.passed.iter().enumerate();
        passed.find_map(|(slot, number)| {
            let number = (*number)?;
            (self.commands.get(slot).request.id == id).then(|| Target::Host { slot, number }.id())
        })
    }

    /// As after power-on; totals and the battery stay.
    fn reset(&mut self, now: Instant) {
        self.commands.reset();
        self.failures.reset();
        self.events.clear();
        self.firmware_free_at = now;
        self.link_free_at = now;
        self.dirty.reset();
        self.waiting_for_room.clear();
        self.reserved_sectors = 0;
        self.waiting_for_drain.clear();
        self.destages.reset();
        self.read_cache.reset();
        self.read_ahead = ReadAhead::default();
        self.host_idle_since = now;
        self.passed.clear();
    }
}

/// What the device below says of one write, cut to a part of it; where it says nothing the part is durable.
fn add_parts(part: &WriteFate, id: RequestId, below: &PowerCut, writes: &mut Vec<WriteFate>) {
    let part_end = part.offset_bytes + part.size_bytes;
    for write in below.writes.iter().filter(|write| write.id == id) {
        let start = write.offset_bytes.max(part.offset_bytes);
        let end = (write.offset_bytes + write.size_bytes).min(part_end);
        if start < end {
            let fate = part_of(write.fate, start - write.offset_bytes, end - start);
            writes.push(WriteFate { offset_bytes: start, size_bytes: end - start, fate, ..*part });
        }
    }
}
