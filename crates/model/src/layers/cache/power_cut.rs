//! The effect of a power cut on the host's writes.

use super::{Cache, State};
use crate::children::id_of_host;
use crate::device::{Fate, WriteFate};
use crate::request::{RequestId, SECTOR_BYTES};
use crate::time::Instant;
use crate::volatile::Taken;

impl Cache {
    pub(super) fn cut_all(&mut self, now: Instant) -> Vec<WriteFate> {
        let outstanding = self.base.requests.outstanding();
        let ids = outstanding.iter().map(|submitted| id_of_host(submitted.request.id));
        let passed: Vec<RequestId> = ids.filter(|&id| self.base.below[0].is_in_flight(id)).collect();
        let below = self.base.below[0].power_cut(now);
        if self.is_battery_good {
            // Memory keeps the data, including data that was being destaged.
            self.state.dirty.reset();
            self.destages.reset();
        }
        let taken: Vec<Taken> =
            self.destages.list.iter().flatten().flat_map(|destage| destage.taken.iter().copied()).collect();
        let all = self.state.dirty.power_cut(&taken, &outstanding, &mut self.rng);
        // Dirty data without destages in flight. A write missing here was being destaged.
        let mut resident =
            self.state.dirty.power_cut(&[], &outstanding, &mut self.rng).into_iter().peekable();
        let mut writes = Vec::new();
        for part in all {
            let key = |part: &WriteFate| (part.id, part.offset_bytes, part.size_bytes);
            if resident.next_if(|next| key(next) == key(&part)).is_none() {
                self.add_destaged(&part, &below, &mut writes);
            } else if passed.contains(&id_of_host(part.id)) {
                add_parts(&part, id_of_host(part.id), &below, &mut writes);
            } else {
                writes.push(WriteFate { fate: Fate::Lost, ..part });
            }
        }
        self.reset(now);
        writes
    }

    /// A part that was being destaged has the fate of the write that carried it.
    fn add_destaged(&self, part: &WriteFate, below: &[WriteFate], writes: &mut Vec<WriteFate>) {
        let sector = part.offset_bytes / SECTOR_BYTES;
        let destages = self.destages.list.iter().flatten();
        for destage in destages.filter(|destage| (destage.start..destage.end).contains(&sector)) {
            add_parts(part, destage.id, below, writes);
        }
    }

    /// Sets the state after power-on; totals and the battery stay.
    fn reset(&mut self, now: Instant) {
        self.state =
            State { firmware_free_at: now, link_free_at: now, host_idle_since: now, ..State::default() };
        self.destages.reset();
        self.read_cache.reset();
    }
}

/// The fate of one write at the device below, cut to a part of it. Without a fate from below, the part is
/// durable.
fn add_parts(part: &WriteFate, id: RequestId, below: &[WriteFate], writes: &mut Vec<WriteFate>) {
    let part_end = part.offset_bytes + part.size_bytes;
    for write in below.iter().filter(|write| write.id == id) {
        let start = write.offset_bytes.max(part.offset_bytes);
        let end = (write.offset_bytes + write.size_bytes).min(part_end);
        if start < end {
            let fate = write.fate.of_part(start - write.offset_bytes, end - start);
            writes.push(WriteFate { offset_bytes: start, size_bytes: end - start, fate, ..*part });
        }
    }
}
