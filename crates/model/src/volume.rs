//! A cloud volume: a rate that was bought, credits for bursts, and a network between.
//!
//! A request waits, first in first out, until its operations and its bytes are within the rates; then it crosses the
//! link and takes a latency drawn from a distribution with a tail. Requests overlap in that latency, so they may
//! complete out of order. An operation counts once per accounting unit (Amazon EBS: 256 KiB on SSD volumes). Above the
//! baseline rate each operation takes one credit, and credits come at the baseline rate (EBS `gp2`, Azure's
//! credit-based bursting): a full bucket of C credits lasts C / (burst - baseline).
//!
//! Every write is durable when it completes, so FLUSH is a round trip and nothing else.
//!
//! Sources: Amazon EBS User Guide, "Amazon EBS General Purpose SSD volumes", "Amazon EBS I/O characteristics and
//! monitoring"; Azure documentation, "Managed disk bursting".
//!
//! # Divergence
//! * Limits of the virtual machine are only the link's rate.
//! * FLUSH, discard and write-zeroes take no operations and no bytes: no provider says what they count [assumption].
//! * Where in the service a rate is enforced, and over which window, is not published: the window is a parameter.
//! * No first-touch penalty of volumes restored from snapshots.

mod latency;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::VecDeque;

pub use latency::LatencyQuantiles;

use crate::device::{Counters, Device, Fate, PowerCut};
use crate::profile::{Invalid, at_least, transfer_ns, within};
use crate::request::{Completion, Operation, Request, SECTOR_BYTES};
use crate::requests::{Requests, Slot, Submitted};
use crate::rng::Rng;
use crate::throttle::TokenBucket;
use crate::time::{Instant, SECOND};
use latency::Sampler;

const GIBIBYTE: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeParameters {
    /// Size that is paid for; what is emulated may be smaller.
    pub capacity_bytes: u64,
    /// Baseline operations per second per GiB of capacity; zero when the rate is bought apart from the size.
    pub iops_per_gib: u64,
    /// Bounds of the baseline; equal when the rate is bought.
    pub iops_minimum: u64,
    pub iops_maximum: u64,
    /// Operations per second while there are credits.
    pub burst_iops: u64,
    /// Most credits that are kept, in operations; zero when the volume does not burst.
    pub burst_credits: u64,
    /// Baseline bytes per second.
    pub bytes_per_s: u64,
    /// Bytes per second while there are credits.
    pub burst_bytes_per_s: u64,
    /// Most credits that are kept, in bytes; zero when the rate does not burst.
    pub burst_credit_bytes: u64,
    /// Credits at power-on, of the most.
    pub initial_credit_percent: u64,
    /// Time over which the highest rate is enforced: requests that come at once pass at once within it.
    pub window_ns: u64,
    /// A request counts one operation per this many bytes.
    pub operation_bytes: u64,
    /// Whether a request that continues the one before, while that one is in flight, counts with it up to
    /// `operation_bytes`.
    pub merges_sequential: bool,
    /// Link of the virtual machine to its volumes.
    pub link_bytes_per_s: u64,
    pub read_latency: LatencyQuantiles,
    pub write_latency: LatencyQuantiles,
    /// FLUSH, discard and write-zeroes.
    pub flush_ns: u64,
}

impl VolumeParameters {
    /// Operations per second without credits.
    pub fn baseline_iops(&self) -> u64 {
        let by_size = u128::from(self.iops_per_gib) * u128::from(self.capacity_bytes) / u128::from(GIBIBYTE);
        (by_size as u64).clamp(self.iops_minimum, self.iops_maximum)
    }

    /// # Errors
    /// Names the key, as a profile file spells it, and the bound.
    pub fn validate(&self) -> Result<(), Invalid> {
        const RATE_LIMIT: u64 = 1_000_000_000_000;
        within("capacity", self.capacity_bytes, 1 << 20, 1 << 60, " bytes")?;
        within("iops_per_gib", self.iops_per_gib, 0, 1_000_000, "/s")?;
        within("iops_minimum", self.iops_minimum, 1, 1_000_000_000, "/s")?;
        within("iops_maximum", self.iops_maximum, 1, 1_000_000_000, "/s")?;
        at_least("iops_maximum", self.iops_maximum, "iops_minimum", self.iops_minimum, "/s")?;
        within("burst_iops", self.burst_iops, 0, 1_000_000_000, "/s")?;
        within("burst_credits", self.burst_credits, 0, RATE_LIMIT, "")?;
        within("rate", self.bytes_per_s, SECTOR_BYTES, RATE_LIMIT, " bytes/s")?;
        within("burst_rate", self.burst_bytes_per_s, 0, RATE_LIMIT, " bytes/s")?;
        within("burst_credit_bytes", self.burst_credit_bytes, 0, 1 << 60, " bytes")?;
        within("initial_credit", self.initial_credit_percent, 0, 100, " %")?;
        within("window", self.window_ns, 0, 1_000 * SECOND, " ns")?;
        within("operation_size", self.operation_bytes, SECTOR_BYTES, 1 << 40, " bytes")?;
        within("link_rate", self.link_bytes_per_s, 1 << 20, 1_000 * RATE_LIMIT, " bytes/s")?;
        self.read_latency.validate()?;
        self.write_latency.validate()?;
        within("flush", self.flush_ns, 0, 100 * SECOND, " ns")
    }
}

/// A baseline rate, and a higher one while there are credits.
#[derive(Debug)]
struct BurstRate {
    /// Holds the highest rate.
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

/// The request before, for counting sequential ones together.
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
    size_bytes: u64,
    rng: Rng,
    requests: Requests,
    now: Instant,
    /// Not yet within the rates, with the time of arrival; first in, first out.
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
    /// Parameters that [`VolumeParameters::validate`] refuses, and a size that is no multiple of the sector above zero
    /// or is above the capacity.
    pub fn new(parameters: VolumeParameters, size_bytes: u64, seed: u64) -> Result<Volume, Invalid> {
        parameters.validate()?;
        within("size", size_bytes, SECTOR_BYTES, parameters.capacity_bytes, " bytes")?;
        if !size_bytes.is_multiple_of(SECTOR_BYTES) {
            let problem = format!("is {size_bytes} bytes, must be a multiple of {SECTOR_BYTES}");
            return Err(Invalid { key: "size", problem });
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
            size_bytes,
            rng: Rng::new(seed),
            requests: Requests::default(),
            now: Instant::ZERO,
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

    /// Credits left for operations, in operations; `None` when the volume does not burst.
    pub fn credits(&self, now: Instant) -> Option<u64> {
        self.operations.credits.as_ref().map(|credits| credits.tokens(now))
    }

    /// When the oldest waiting request is within the rates.
    fn next_start_at(&self) -> Option<Instant> {
        let &(slot, arrived_at) = self.waiting.front()?;
        let request = self.requests.get(slot).request;
        let (operations, _) = self.count_operations(arrived_at, request);
        let operations_at = self.operations.earliest(self.now, operations);
        Some(operations_at.max(self.bytes.earliest(self.now, request.size_bytes)))
    }

    fn advance(&mut self, now: Instant) {
        while let Some(at) = self.next_start_at().filter(|&at| at <= now)
            && let Some((slot, arrived_at)) = self.waiting.pop_front()
        {
            self.now = self.now.max(at);
            self.start(slot, arrived_at);
        }
        self.now = now;
    }

    fn start(&mut self, slot: Slot, arrived_at: Instant) {
        let request = self.requests.get(slot).request;
        let (operations, counted_bytes) = self.count_operations(arrived_at, request);
        self.operations.take(self.now, operations);
        self.bytes.take(self.now, request.size_bytes);
        self.link_free_at = self.link_free_at.max(self.now)
            + transfer_ns(request.size_bytes, self.parameters.link_bytes_per_s);
        let latency = match request.operation {
            Operation::Read => &self.read_latency,
            _ => &self.write_latency,
        };
        let done_at = self.link_free_at + latency.draw(&mut self.rng);
        let (operation, end_bytes) = (request.operation, request.end_bytes());
        self.previous = Some(Previous { operation, end_bytes, counted_bytes, done_at });
        self.requests.finish(done_at, slot);
    }

    /// Operations that the request counts, and the bytes in the last of them.
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
        let is_waiting = |&(slot, _): &(Slot, Instant)| self.requests.get(slot).sequence == write.sequence;
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

impl Device for Volume {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn submit_late(&mut self, _sent: Instant, now: Instant, request: Request) -> Instant {
        self.advance(now);
        let slot = self.requests.accept(now, request, self.size_bytes);
        match request.operation {
            Operation::Read | Operation::Write => {
                self.waiting.push_back((slot, now));
                self.advance(now);
            }
            Operation::Flush | Operation::Discard | Operation::WriteZeroes => {
                self.requests.finish(now + self.parameters.flush_ns, slot);
            }
        }
        now
    }

    fn poll_at(&self) -> Option<Instant> {
        self.requests.next_finished_at().into_iter().chain(self.next_start_at()).min()
    }

    fn poll(&mut self, now: Instant) -> Option<Completion> {
        self.advance(now);
        self.requests.collect(now)
    }

    /// The machine loses its power, the service does not: what it has taken is durable or not there, but a request that
    /// was on its way may be torn.
    fn power_cut(&mut self, now: Instant) -> PowerCut {
        self.advance(now);
        let mut writes = Vec::new();
        for submitted in self.requests.outstanding() {
            if submitted.request.operation == Operation::Write {
                writes.push(submitted.unacknowledged(self.fate(&submitted, now)));
            }
        }
        self.waiting.clear();
        self.requests.reset();
        self.link_free_at = now;
        self.previous = None;
        PowerCut { writes }
    }

    fn counters(&self) -> Counters {
        self.requests.counters
    }
}
