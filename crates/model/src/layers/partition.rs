//! A layer that is a part of another device: the smallest layer to copy for a new one.
//!
//! It does no work of its own, so its counters are those of the device below.

use crate::change::{Change, Changed};
use crate::declare;
use crate::device::{Built, Counters, Device, PowerCut};
use crate::layers::{Ageing, LayerParameters, Told, take};
use crate::parameter::{Invalid, Step, format_size_bytes};
use crate::request::{Completion, Operation, Request, SECTOR_BYTES};
use crate::time::Instant;

/// Sizes are whole multiples of it, because the blocks of an emulator's store are.
const BLOCK_BYTES: u64 = 4_096;

declare! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct PartitionParameters {
        /// Start of the partition on the device below.
        pub offset_bytes: u64 = Size "offset", step Step::MultipleOf(SECTOR_BYTES), names &STARTS, default 0;
    }
}

/// Where LVM and partitioning tools put the first byte of data; the laboratory has the sources.
const STARTS: [(&str, u64); 3] = [("lvm", 1 << 20), ("lvm-before-2010", 192 << 10), ("sector-63", 63 * 512)];

impl LayerParameters for PartitionParameters {
    fn check_sizes(&self, below_bytes: &[u64]) -> Result<(), Invalid> {
        let offset_bytes = self.offset_bytes;
        if offset_bytes < below_bytes[0] {
            return Ok(());
        }
        let bound = format_size_bytes(below_bytes[0]);
        let offset = format_size_bytes(offset_bytes);
        let problem = format!("is {offset}, must be below the size of the device below, {bound}");
        Err(Invalid::new("offset", problem))
    }

    fn size_bytes(&self, below_bytes: &[u64]) -> u64 {
        below_bytes[0].saturating_sub(self.offset_bytes)
    }

    fn may_be_smaller(&self) -> bool {
        true
    }

    fn size_below_bytes(&self, size_bytes: u64, _below_count: usize) -> u64 {
        (size_bytes + self.offset_bytes).next_multiple_of(BLOCK_BYTES)
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        format!("A partition of: {}", below[0].summary)
    }

    fn build(&self, below: Vec<Box<dyn Device>>, size_bytes: u64, _seed: u64) -> Built {
        let [below] = take(below);
        Ok(Box::new(Partition::new(self.offset_bytes, size_bytes, below)))
    }
}

#[derive(Debug)]
pub struct Partition {
    offset_bytes: u64,
    size_bytes: u64,
    below: Box<dyn Device>,
}

impl Partition {
    pub(crate) fn new(offset_bytes: u64, size_bytes: u64, below: Box<dyn Device>) -> Partition {
        assert!(offset_bytes + size_bytes <= below.size_bytes(), "a partition beyond its device");
        Partition { offset_bytes, size_bytes, below }
    }
}

impl Device for Partition {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        assert!(request.end_bytes() <= self.size_bytes, "{request:?} is beyond the partition");
        let offset_bytes = match request.operation {
            Operation::Flush => 0,
            _ => request.offset_bytes + self.offset_bytes,
        };
        self.below.submit_late(sent, now, Request { offset_bytes, ..request })
    }

    fn poll_at(&self) -> Option<Instant> {
        self.below.poll_at()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.below.poll(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        let mut cut = self.below.power_cut(now);
        for write in &mut cut.writes {
            write.offset_bytes -= self.offset_bytes;
        }
        cut
    }

    fn counters(&self) -> Counters {
        self.below.counters()
    }

    fn below(&self) -> Vec<&dyn Device> {
        vec![&*self.below]
    }

    fn set_use(&mut self, ageing: Option<&Ageing>) {
        self.below.set_use(ageing);
    }

    fn change(&mut self, now: Instant, change: Change) -> Changed {
        self.below.change(now, change)
    }
}
