//! A cloud volume: a provisioned rate, burst credits, and a network link.
//!
//! Requests wait in FIFO order until their operations and bytes are within the rates. A request then crosses
//! the link and takes a latency drawn from a distribution with a tail. Requests overlap in that latency, so
//! they may complete out of order. A request counts one operation per accounting unit (Amazon EBS: 256 KiB on
//! SSD volumes). Above the baseline rate, each operation takes one credit, and credits arrive at the baseline
//! rate (EBS `gp2`, Azure's credit-based bursting): a full bucket of C credits lasts C / (burst - baseline).
//!
//! Every write is durable when it completes, so FLUSH is only a round trip.
//!
//! Sources: Amazon EBS User Guide, "Amazon EBS General Purpose SSD volumes", "Amazon EBS I/O characteristics
//! and monitoring"; Azure documentation, "Managed disk bursting".
//!
//! # Divergence
//! * The link's rate is the only limit of the virtual machine.
//! * FLUSH, discard and write-zeroes count no operations and no bytes: no provider documents their count
//!   [assumption].
//! * The place and the window of a rate's enforcement are not published: the window is a parameter.
//! * No first-touch penalty of volumes restored from snapshots.

mod latency;
mod parameters;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

pub use parameters::{LatencyQuantiles, VolumeParameters};

use crate::device::{Fate, WriteFate};
use crate::devices::{DeviceParameters, transfer_ns};
use crate::layered::{Base, Layered};
use crate::parameter::{Invalid, Kind, within};
use crate::request::{Operation, Request, SECTOR_BYTES};
use crate::requests::{Slot, Submitted};
use crate::rng::Rng;
use crate::time::{Instant, SECOND};
use crate::token_bucket::TokenBucket;
use latency::Sampler;

const GIBIBYTE: u64 = 1 << 30;

/// A baseline rate, and a higher rate while credits last.
#[derive(Debug)]
struct BurstRate {
    /// Enforces the highest rate.
    peak: TokenBucket,
    credits: Option<TokenBucket>,
}

impl BurstRate {
    fn new(
        baseline_per_s: u64,
        burst_per_s: u64,
        most_credits: u64,
        parameters: &VolumeParameters,
    ) -> BurstRate {
        let bursts = most_credits > 0 && burst_per_s > baseline_per_s;
        let peak_per_s = if bursts { burst_per_s } else { baseline_per_s };
        let depth = u128::from(peak_per_s) * u128::from(parameters.window_ns) / u128::from(SECOND);
        let credits = bursts.then(|| {
            let mut credits = TokenBucket::new(baseline_per_s, most_credits);
            credits.fill_to_percent(parameters.initial_credit_percent);
            credits
        });
        BurstRate { peak: TokenBucket::new(peak_per_s, (depth as u64).max(1)), credits }
    }

    fn earliest(&self, now: Instant, tokens: u64) -> Instant {
        let now = self.peak.earliest(now, tokens);
        self.credits.as_ref().map_or(now, |credits| credits.earliest(now, tokens))
    }

    fn take(&mut self, now: Instant, tokens: u64) {
        self.peak.take(now, tokens);
        if let Some(credits) = &mut self.credits {
            credits.take(now, tokens);
        }
    }
}

/// The previous request, for merging sequential requests.
#[derive(Debug, Clone, Copy)]
struct Previous {
    operation: Operation,
    end_bytes: u64,
    /// Bytes counted in its last operation.
    counted_bytes: u64,
    done_at: Instant,
}

#[derive(Debug)]
pub struct Volume {
    parameters: VolumeParameters,
    base: Base<()>,
    rng: Rng,
    /// Requests not yet within the rates, with their arrival times; FIFO.
    waiting: VecDeque<(Slot, Instant)>,
    operations: BurstRate,
    bytes: BurstRate,
    read_latency: Sampler,
    write_latency: Sampler,
    link_free_at: Instant,
    previous: Option<Previous>,
}

impl Volume {
    /// # Errors
    /// Parameters rejected by [`VolumeParameters::validate`], and a size that is zero, not a multiple of the
    /// sector, or above the capacity.
    pub fn new(parameters: VolumeParameters, size_bytes: u64, seed: u64) -> Result<Volume, Invalid> {
        parameters.validate()?;
        within("size", size_bytes, SECTOR_BYTES, parameters.capacity_bytes, Kind::Size)?;
        if !size_bytes.is_multiple_of(SECTOR_BYTES) {
            let problem = format!("is {size_bytes} B, must be a multiple of {SECTOR_BYTES} B");
            return Err(Invalid::new("size", problem));
        }
        let operations = BurstRate::new(
            parameters.baseline_iops(),
            parameters.burst_iops,
            parameters.burst_credits,
            &parameters,
        );
        let bytes = BurstRate::new(
            parameters.bytes_per_s,
            parameters.burst_bytes_per_s,
            parameters.burst_credit_bytes,
            &parameters,
        );
        Ok(Volume {
            base: Base::new(size_bytes, []),
            rng: Rng::new(seed),
            waiting: VecDeque::new(),
            operations,
            bytes,
            read_latency: Sampler::new(parameters.read_latency),
            write_latency: Sampler::new(parameters.write_latency),
            link_free_at: Instant::ZERO,
            previous: None,
            parameters,
        })
    }

    /// Credits left, in operations; `None` if the volume does not burst.
    pub fn credits(&self, now: Instant) -> Option<u64> {
        self.operations.credits.as_ref().map(|credits| credits.tokens(now))
    }

    /// Time at which the oldest waiting request is within the rates.
    fn next_start_at(&self) -> Option<Instant> {
        let &(slot, arrived_at) = self.waiting.front()?;
        let request = self.base.requests.get(slot).request;
        let (operations, _) = self.count_operations(arrived_at, request);
        let operations_at = self.operations.earliest(self.base.now, operations);
        Some(operations_at.max(self.bytes.earliest(self.base.now, request.size_bytes)))
    }

    fn start(&mut self, slot: Slot, arrived_at: Instant) {
        let request = self.base.requests.get(slot).request;
        let (operations, counted_bytes) = self.count_operations(arrived_at, request);
        self.operations.take(self.base.now, operations);
        self.bytes.take(self.base.now, request.size_bytes);
        self.link_free_at = self.link_free_at.max(self.base.now)
            + transfer_ns(request.size_bytes, self.parameters.link_bytes_per_s);
        let latency = match request.operation {
            Operation::Read => &self.read_latency,
            _ => &self.write_latency,
        };
        let done_at = self.link_free_at + latency.draw(&mut self.rng);
        let (operation, end_bytes) = (request.operation, request.end_bytes());
        self.previous = Some(Previous { operation, end_bytes, counted_bytes, done_at });
        self.base.requests.finish(done_at, slot);
    }

    /// The operations that the request counts, and the bytes in the last of them.
    fn count_operations(&self, arrived_at: Instant, request: Request) -> (u64, u64) {
        let unit = self.parameters.operation_bytes;
        let mergeable = self.previous.filter(|previous| {
            self.parameters.merges_sequential
                && previous.operation == request.operation
                && previous.end_bytes == request.offset_bytes
                && previous.done_at > arrived_at
        });
        let begun = mergeable.map_or(0, |previous| previous.counted_bytes);
        let bytes = begun + request.size_bytes;
        let already = begun.div_ceil(unit);
        (bytes.div_ceil(unit).max(1) - already, bytes - (bytes.div_ceil(unit).max(1) - 1) * unit)
    }

    fn fate(&mut self, write: &Submitted, now: Instant) -> Fate {
        let is_waiting =
            |&(slot, _): &(Slot, Instant)| self.base.requests.get(slot).sequence == write.sequence;
        if self.waiting.iter().any(is_waiting) {
            return Fate::Lost;
        }
        if write.done_at <= now {
            return Fate::Kept;
        }
        let (start, end) = write.sectors();
        let sectors = end - start;
        match self.rng.below(3) {
            0 => Fate::Lost,
            1 if sectors > 1 => Fate::Torn { kept_bytes: (1 + self.rng.below(sectors - 1)) * SECTOR_BYTES },
            _ => Fate::Kept,
        }
    }
}

impl Layered for Volume {
    type Purpose = ();

    fn base(&self) -> &Base<()> {
        &self.base
    }

    fn base_mut(&mut self) -> &mut Base<()> {
        &mut self.base
    }

    fn arrives_at(&self, _sent: Instant, now: Instant, _request: &Request) -> Instant {
        now
    }

    fn begin(&mut self, now: Instant, slot: Slot) {
        match self.base.requests.get(slot).request.operation {
            Operation::Read | Operation::Write => self.waiting.push_back((slot, now)),
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => {
                self.base.requests.finish(now + self.parameters.flush_ns, slot);
            }
        }
    }

    fn own_event_at(&self) -> Option<Instant> {
        self.next_start_at()
    }

    fn step(&mut self, at: Instant) {
        let Some((slot, arrived_at)) = self.waiting.pop_front() else { return };
        self.base.now = self.base.now.max(at);
        self.start(slot, arrived_at);
    }

    /// The machine loses its power, but the service does not. Requests that reached the service are either
    /// durable or absent. A request in transit may be torn.
    fn cut(&mut self, now: Instant) -> Vec<WriteFate> {
        let mut writes = Vec::new();
        for submitted in self.base.requests.outstanding() {
            if submitted.request.operation == Operation::Write {
                writes.push(submitted.unacknowledged(self.fate(&submitted, now)));
            }
        }
        self.waiting.clear();
        self.link_free_at = now;
        self.previous = None;
        writes
    }
}
