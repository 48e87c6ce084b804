//! The one trait that every device and every layer implements.
//!
//! A device is a state machine without a clock (the shape of quinn-proto's `Connection`): a driver submits
//! requests, asks when something will happen next, and collects completions when that moment has come. Layers
//! are devices that hold devices, so a stack is a tree of values that one driver drives.

pub use crate::ageing::Ageing;
use crate::request::{Completion, Operation, Request, RequestId};
use crate::time::Instant;

/// A running model of one drive, or of a layer above drives.
///
/// Contract, on which every driver and layer relies:
/// * `now` never goes backwards from one call to the next.
/// * `submit(now, ..)` first lets everything happen that was due at or before `now`.
/// * `poll(now)` gives completions with `at <= now`, ordered by `at`, ties by submission number, and `None`
///   when there is none left; internal events that are due happen then too.
/// * `poll_at()` is the time of the next internal event or completion, `None` when the device is idle and
///   stays so until the next `submit`.
/// * Every submitted request completes exactly once, unless a power cut takes it.
pub trait Device: Send {
    /// Usable size, a multiple of [`crate::SECTOR_BYTES`].
    fn size_bytes(&self) -> u64;

    fn submit(&mut self, now: Instant, request: Request) {
        self.submit_late(now, now, request);
    }

    /// As [`Device::submit`], of a request that is on its way since `sent`, which may be before what the
    /// device has done already. That stays as it was, but a part that has been idle begins with the request
    /// at its own time. So a completion may be due before others that were collected. A layer passes `sent`
    /// on, later by the time that the request spent in the layer. Returns when the device took the request to
    /// have come: `now` where it makes no use of `sent`.
    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant;

    fn poll_at(&self) -> Option<Instant>;

    fn poll(&mut self, now: Instant) -> Option<Completion>;

    /// The power fails at `now`. Requests in flight are never completed; the returned fates tell, for every
    /// write that was not durable, what the medium holds afterwards. The device is then as after power-on,
    /// with an empty queue.
    fn power_cut(&mut self, now: Instant) -> PowerCut;

    /// What the device did since it was built.
    fn counters(&self) -> Counters;

    /// Brings the device to the state that such use leaves it in, in no time and with no data written. Only
    /// while nothing is submitted. A device without a memory of its use ignores it.
    fn age(&mut self, _ageing: &Ageing) {}

    /// The device forgets where everything was, as ATA SECURITY ERASE UNIT or NVMe Format make it do; its
    /// wear stays. Only while nothing is submitted.
    fn secure_erase(&mut self) {}
}

/// What is left of a write that was not yet durable when the power failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It reached the medium whole.
    Kept,
    /// Nothing of it reached the medium.
    Lost,
    /// The first `kept_bytes` reached the medium, the rest did not; a multiple of the sector.
    Torn { kept_bytes: u64 },
}

impl Fate {
    /// The fate of a part of a write, from the fate of the whole.
    pub(crate) fn of_part(self, skipped_bytes: u64, size_bytes: u64) -> Fate {
        match self {
            Fate::Torn { kept_bytes } if kept_bytes >= skipped_bytes + size_bytes => Fate::Kept,
            Fate::Torn { kept_bytes } if kept_bytes <= skipped_bytes => Fate::Lost,
            Fate::Torn { kept_bytes } => Fate::Torn { kept_bytes: kept_bytes - skipped_bytes },
            Fate::Kept | Fate::Lost => self,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteFate {
    pub id: RequestId,
    /// Part of the original request: an older write that a newer one covers in part appears in pieces.
    pub offset_bytes: u64,
    pub size_bytes: u64,
    /// Whether the host had been told that the write was done.
    pub acknowledged: bool,
    pub fate: Fate,
}

/// Fates of all writes that were not durable, in the order in which they were submitted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerCut {
    pub writes: Vec<WriteFate>,
}

/// Totals since the device was built. A layer adds its own work, not that of the devices below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    pub reads: u64,
    pub writes: u64,
    pub flushes: u64,
    pub discards: u64,
    pub read_bytes: u64,
    pub write_bytes: u64,
    /// Head movements to another cylinder (disks only).
    pub seeks: u64,
    /// Requests submitted and not yet completed, now.
    pub queue_depth: u64,
    /// Bytes acknowledged and not yet durable, now.
    pub volatile_bytes: u64,
    /// Bytes programmed into NAND, garbage collection included (flash only).
    pub nand_write_bytes: u64,
    /// The part of it that garbage collection moved (flash only).
    pub nand_moved_bytes: u64,
    /// Superblocks erased, ageing included (flash only).
    pub erases: u64,
    /// Erases of the superblock that has most of them: its wear (flash only).
    pub most_erases: u64,
}

impl Counters {
    /// One more request of the host is done.
    pub(crate) fn add(&mut self, request: &Request) {
        match request.operation {
            Operation::Read => {
                self.reads += 1;
                self.read_bytes += request.size_bytes;
            }
            Operation::Write => {
                self.writes += 1;
                self.write_bytes += request.size_bytes;
            }
            Operation::Flush => self.flushes += 1,
            Operation::Discard | Operation::WriteZeroes => self.discards += 1,
        }
    }

    /// With what a layer cannot count itself taken from the devices below it; the wear is that of the most
    /// worn.
    pub(crate) fn over(self, below: impl IntoIterator<Item = Counters>) -> Counters {
        below.into_iter().fold(self, |sum, one| Counters {
            seeks: sum.seeks + one.seeks,
            volatile_bytes: sum.volatile_bytes + one.volatile_bytes,
            nand_write_bytes: sum.nand_write_bytes + one.nand_write_bytes,
            nand_moved_bytes: sum.nand_moved_bytes + one.nand_moved_bytes,
            erases: sum.erases + one.erases,
            most_erases: sum.most_erases.max(one.most_erases),
            ..sum
        })
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn size_bytes(&self) -> u64 {
        (**self).size_bytes()
    }

    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant {
        (**self).submit_late(sent, now, request)
    }

    fn poll_at(&self) -> Option<Instant> {
        (**self).poll_at()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        (**self).poll(now)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        (**self).power_cut(now)
    }

    fn counters(&self) -> Counters {
        (**self).counters()
    }

    fn age(&mut self, ageing: &Ageing) {
        (**self).age(ageing);
    }

    fn secure_erase(&mut self) {
        (**self).secure_erase();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_torn_write_is_kept_torn_or_lost() {
        let torn = Fate::Torn { kept_bytes: 1_024 };
        assert_eq!(torn.of_part(0, 1_024), Fate::Kept);
        assert_eq!(torn.of_part(512, 1_024), Fate::Torn { kept_bytes: 512 });
        assert_eq!(torn.of_part(1_024, 512), Fate::Lost);
        assert_eq!(Fate::Kept.of_part(1_024, 512), Fate::Kept);
    }
}
