//! The one trait that every device and every layer implements.
//!
//! A device is a state machine without a clock, in the shape of quinn-proto's `Connection`. A driver submits
//! requests, asks for the time of the next event, and collects completions at that time. Layers are devices
//! that hold devices. A stack is therefore a tree of values under one driver.

use std::fmt;

use crate::change::{Change, Changed};
use crate::declare;
use crate::parameter::Invalid;
use crate::request::{Completion, Operation, Request, RequestId};
use crate::time::Instant;

/// A device that was built, or the parameter that prevents it.
pub type Built = Result<Box<dyn Device>, Invalid>;

/// A running model of one drive, or of a layer above drives.
///
/// Contract between drivers, layers and devices:
/// * `now` never decreases from one call to the next.
/// * `submit(now, ..)` first processes all events due at or before `now`.
/// * `poll(now)` returns completions with `at <= now`, ordered by `at`, ties by submission number, and `None`
///   when none is left. It also processes the internal events that are due.
/// * `poll_at()` is the time of the next internal event or completion. It is `None` if the device is idle
///   until the next `submit`.
/// * Every submitted request completes exactly once, unless a power cut discards it.
pub trait Device: Send {
    /// Usable size, a multiple of [`crate::SECTOR_BYTES`].
    fn size_bytes(&self) -> u64;

    fn submit(&mut self, now: Instant, request: Request) {
        self.submit_late(now, now, request);
    }

    /// As [`Device::submit`], for a request that was sent at `sent`. `sent` may be before events that the
    /// device has already processed. These events stay as they are, but an idle part of the device starts on
    /// the request at the request's own time. A completion may therefore be due before others that were
    /// already collected. A layer passes `sent` on, plus the time that the request spent in the layer.
    /// Returns the arrival time that the device used: `now` if it ignores `sent`.
    fn submit_late(&mut self, sent: Instant, now: Instant, request: Request) -> Instant;

    fn poll_at(&self) -> Option<Instant>;

    fn poll(&mut self, now: Instant) -> Option<Completion>;

    /// The next completion from `now` until `limit`, with all events before it: [`Device::poll`] at one event after the other,
    /// without a call through a table for each. The time is that of the completion, if `now` is not later.
    fn poll_until(&mut self, now: Instant, limit: Instant) -> Option<Completion> {
        while let Some(at) = self.poll_at().filter(|at| *at <= limit) {
            let completion = self.poll(at.max(now));
            if completion.is_some() {
                return completion;
            }
        }
        None
    }

    /// The power fails at `now`. Requests in flight never complete. The returned fates state the content of
    /// the medium for every write that was not durable. The device is then as after power-on, with an empty
    /// queue.
    fn power_cut(&mut self, now: Instant) -> PowerCut;

    /// Totals since the device was built.
    fn counters(&self) -> Counters;

    /// The devices below a layer, in the order of its stacks; none below a drive.
    fn below(&self) -> Vec<&dyn Device> {
        Vec::new()
    }

    /// Sets the state that results from this prior use, in zero time and without data. `None` clears the
    /// device's mapping, like ATA SECURITY ERASE UNIT or NVMe Format; wear stays. Allowed only while no
    /// request is in flight. A device without such state ignores it.
    fn set_use(&mut self, _ageing: Option<&Ageing>) {}

    /// A part of it changes at `now`, with requests in flight or without: see [`mod@crate::change`].
    fn change(&mut self, _now: Instant, _change: Change) -> Changed {
        Ok(false)
    }
}

declare! {
    /// Prior use of a drive: filled from its start, then overwritten at random.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Ageing {
        /// Share of the device that holds data.
        pub fill_percent: u64 = Percent "fill" in 0..=100, default 100;
        /// Bytes overwritten within that share, in percent of the whole device. At 300, a full drive is
        /// overwritten three times, and uniform overwrites reach a steady state.
        pub overwrite_percent: u64 = Percent "overwrite" in 0..=10_000, default 300;
        /// Seed of the overwritten places.
        pub seed: u64 = Count "seed", default 1;
    }
}

/// The state of a write that was not durable when the power failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// All of it reached the medium.
    Kept,
    /// Nothing of it reached the medium.
    Lost,
    /// The first `kept_bytes`, a multiple of the sector, reached the medium. The rest did not.
    Torn { kept_bytes: u64 },
}

impl Fate {
    /// The fate of a part of a write, derived from the fate of the whole.
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
    /// Part of the original request. A write that a newer one partly covers appears in pieces.
    pub offset_bytes: u64,
    pub size_bytes: u64,
    /// Whether the host had received the completion.
    pub acknowledged: bool,
    pub fate: Fate,
}

impl WriteFate {
    /// A write that was not acknowledged and did not reach the medium.
    pub(crate) fn lost(id: RequestId, offset_bytes: u64, size_bytes: u64) -> WriteFate {
        WriteFate { id, offset_bytes, size_bytes, acknowledged: false, fate: Fate::Lost }
    }
}

/// Fates of all writes that were not durable, in order of submission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerCut {
    pub writes: Vec<WriteFate>,
}

/// Totals since the device was built. A layer counts its own work and excludes the devices below it.
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
    /// Requests in flight, now.
    pub queue_depth: u64,
    /// Bytes acknowledged and not yet durable, now.
    pub volatile_bytes: u64,
    /// Bytes programmed into NAND, garbage collection included (flash only).
    pub nand_write_bytes: u64,
    /// The part of `nand_write_bytes` that garbage collection moved (flash only).
    pub nand_moved_bytes: u64,
    /// Superblocks erased, ageing included (flash only).
    pub erases: u64,
    /// Erases of the most worn superblock (flash only).
    pub most_erases: u64,
}

impl Counters {
    /// Counts one completed request of the host.
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

    /// Adds the counters that only the devices below have. The wear is the maximum of the devices below.
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

impl fmt::Debug for dyn Device {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "a device of {} bytes", self.size_bytes())
    }
}

impl Device for Box<dyn Device> {
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

    fn poll_until(&mut self, now: Instant, limit: Instant) -> Option<Completion> {
        (**self).poll_until(now, limit)
    }

    fn power_cut(&mut self, now: Instant) -> PowerCut {
        (**self).power_cut(now)
    }

    fn counters(&self) -> Counters {
        (**self).counters()
    }

    fn below(&self) -> Vec<&dyn Device> {
        (**self).below()
    }

    fn set_use(&mut self, ageing: Option<&Ageing>) {
        (**self).set_use(ageing);
    }

    fn change(&mut self, now: Instant, change: Change) -> Changed {
        (**self).change(now, change)
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
