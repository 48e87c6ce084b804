//! Records of the host's writes that one device of an SSD cache may still lose, by the id at that device.
//!
//! A record is removed after a FLUSH that covers it, or when the device holds no volatile data.

use std::collections::{BTreeMap, VecDeque};

use crate::children::Child;
use crate::device::{Fate, WriteFate};
use crate::request::{RequestId, SECTOR_BYTES};

use super::map::{Sectors, pieces, sectors_between};

/// Number of records above which a check of the device's volatile data is worthwhile.
const MANY: usize = 4_096;

/// Part of a host's write that went to the device as one request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) id: RequestId,
    pub(super) sequence: u64,
    /// First sector in the host's coordinates.
    pub(super) start: u64,
    /// First sector on the device.
    pub(super) device_start: u64,
    /// Its block, and the sectors of the block whose valid copy is on the device. `None`: all sectors, in any
    /// number of blocks.
    pub(super) alive: Option<(u64, Sectors)>,
}

#[derive(Debug, Default)]
pub(super) struct Records {
    by_id: BTreeMap<RequestId, Record>,
    /// Records of each block.
    by_block: BTreeMap<u64, Vec<RequestId>>,
    /// Completed records that may not be durable, in order of completion.
    pub(super) completed: VecDeque<RequestId>,
    settled_count: u64,
}

impl Records {
    pub(super) fn insert(&mut self, device_id: RequestId, record: Record) {
        if let Some((block, _)) = record.alive {
            self.by_block.entry(block).or_default().push(device_id);
        }
        self.by_id.insert(device_id, record);
    }

    pub(super) fn complete(&mut self, device_id: RequestId) {
        self.completed.push_back(device_id);
    }

    /// The mark of a FLUSH submitted now, for [`Records::settle`].
    pub(super) fn mark(&self) -> u64 {
        self.settled_count + self.completed.len() as u64
    }

    /// Removes records completed before the mark; they are durable.
    pub(super) fn settle(&mut self, mark: u64) {
        while self.settled_count < mark
            && let Some(device_id) = self.completed.pop_front()
        {
            self.settled_count += 1;
            self.remove(device_id);
        }
    }

    /// Removes all completed records if there are many and the device holds no volatile data.
    pub(super) fn settle_if_many<P>(&mut self, device: &Child<P>) {
        if self.completed.len() >= MANY && device.counters().volatile_bytes == 0 {
            self.settle(self.mark());
        }
    }

    fn remove(&mut self, device_id: RequestId) {
        let Some(Record { alive: Some((block, _)), .. }) = self.by_id.remove(&device_id) else { return };
        if let Some(ids) = self.by_block.get_mut(&block) {
            ids.retain(|&id| id != device_id);
            if ids.is_empty() {
                self.by_block.remove(&block);
            }
        }
    }

    /// Removes sectors that are durable elsewhere or gone.
    pub(super) fn forget(&mut self, block: u64, sectors: Sectors) {
        let Some(ids) = self.by_block.get_mut(&block) else { return };
        ids.retain(|id| {
            let Some(Record { alive: Some((_, alive)), .. }) = self.by_id.get_mut(id) else { return false };
            *alive &= !sectors;
            let stays = *alive != 0;
            if !stays {
                self.by_id.remove(id);
            }
            stays
        });
        if ids.is_empty() {
            self.by_block.remove(&block);
        }
    }

    /// Translates a fate of the device into the host's view, with the submission number. `block_sectors` is
    /// the size of a block.
    pub(super) fn in_host_terms(&self, write: &WriteFate, block_sectors: u64) -> Vec<(u64, WriteFate)> {
        let Some(record) = self.by_id.get(&write.id) else { return Vec::new() };
        let start = write.offset_bytes / SECTOR_BYTES - record.device_start + record.start;
        let end = start + write.size_bytes / SECTOR_BYTES;
        let part = |start: u64, end: u64, fate: Fate| {
            let (offset_bytes, size_bytes) = (start * SECTOR_BYTES, (end - start) * SECTOR_BYTES);
            (record.sequence, WriteFate { id: record.id, offset_bytes, size_bytes, fate, ..*write })
        };
        let Some((block, alive)) = record.alive else { return vec![part(start, end, write.fate)] };
        let base = block * block_sectors;
        pieces(alive & sectors_between(start - base, end - base))
            .map(|(low, high)| {
                let (low, high) = (base + low, base + high);
                let fate = write.fate.of_part((low - start) * SECTOR_BYTES, (high - low) * SECTOR_BYTES);
                part(low, high, fate)
            })
            .collect()
    }

    pub(super) fn clear(&mut self) {
        *self = Records::default();
    }
}
