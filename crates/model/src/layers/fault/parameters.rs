//! Parameters of the faults.

use super::Fault;
use crate::declare;
use crate::device::{Built, Device};
use crate::layers::{LayerParameters, Told, take};
use crate::parameter::{Invalid, Kind, format_duration_ns, optional_group, within};
use crate::time::SECOND;

pub(super) const MILLION: u64 = 1_000_000;
const LONG_NS: u64 = 1_000_000 * SECOND;

declare! {
    /// Some requests take longer.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Spikes {
        /// Number of slow requests in a million.
        pub per_million: u64 = Count "spikes_per_million" in 1..=MILLION;
        /// Extra time of a slow request.
        pub extra_ns: u64 = Duration "spike" in 1..=LONG_NS;
    }
}

declare! {
    /// All completions stop periodically: at each multiple of the period, except at zero.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Stalls {
        /// Time from the start of one stall to the start of the next.
        pub period_ns: u64 = Duration "stall_period" in 2..=LONG_NS;
        /// Duration of a stall. No request completes meanwhile.
        pub duration_ns: u64 = Duration "stall" in 1..=LONG_NS;
    }
}

declare! {
    /// One request that is stuck.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Stuck {
        /// Number of requests submitted before the stuck one.
        pub after_requests: u64 = Count "stuck_after";
        /// Extra time of the stuck request. The default is until a power cut.
        pub duration_ns: Option<u64> = Duration "stuck_for" in 1..=LONG_NS;
    }
}

declare! {
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct ReadErrors {
        /// Unreadable ranges, as offset and size in bytes. A read that touches one fails.
        pub ranges: Vec<(u64, u64)> = List "read_error_ranges";
        /// Number of reads in a million that fail at any place.
        pub per_million: u64 = Count "read_errors_per_million" in 0..=MILLION, default 0;
        /// Recovery time of the drive before a read fails.
        pub recovery_ns: u64 = Duration "read_error_recovery" in 0..=LONG_NS, default 0;
    }
}

declare! {
    /// A drive that slows down: each request takes the accrued extra time.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Dying {
        /// Start of the slowdown, in model time.
        pub starts_at_ns: u64 = Duration "dying_after", default 0;
        /// Growth of the extra time per second of model time.
        pub extra_ns_per_s: u64 = Duration "dying_per_second" in 0..=SECOND, default 0;
        /// Growth of the extra time per completed read.
        pub extra_ns_per_read: u64 = Duration "dying_per_read" in 0..=SECOND, default 0;
    }
}

optional_group!(Spikes);
optional_group!(Stalls);
optional_group!(Stuck);
optional_group!(Dying);

declare! {
    /// The faults to inject; none by default.
    #[derive(Debug, Clone, PartialEq, Eq, Default)]
    pub struct FaultParameters {
        pub spikes: Option<Spikes> = Group "";
        pub stalls: Option<Stalls> = Group "";
        pub stuck: Option<Stuck> = Group "";
        pub read_errors: ReadErrors = Group "";
        pub dying: Option<Dying> = Group "";
        /// Time of a FLUSH that is not passed on. FUA is stripped from writes.
        pub lying_flush_ns: Option<u64> = Duration "lying_flush" in 0..=LONG_NS;
    }
}

impl LayerParameters for FaultParameters {
    fn relations(&self) -> Result<(), Invalid> {
        if let Some(Stalls { period_ns, duration_ns }) = self.stalls {
            within("stall", duration_ns, 1, period_ns - 1, Kind::Duration)?;
        }
        match self.read_errors.ranges.iter().any(|&(_, size_bytes)| size_bytes == 0) {
            true => Err(Invalid::new("read_error_ranges", "have a size of 0 bytes, must have 1 or more")),
            false => Ok(()),
        }
    }

    /// The layer must receive the FLUSH that it lies about.
    fn has_volatile_cache(&self, below_has: bool) -> bool {
        below_has || self.lying_flush_ns.is_some()
    }

    fn idle_hint(&self) -> Option<&'static str> {
        let hint = "has no fault: give `spike`, `stall`, `stuck_after`, `lying_flush` or another";
        (*self == FaultParameters::default()).then_some(hint)
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        format!("Faulty ({}): {}", self.told().join(", "), below[0].summary)
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, seed: u64) -> Built {
        let [below] = take(below);
        Ok(Box::new(Fault::new(self.clone(), seed, below)?))
    }
}

impl FaultParameters {
    /// A short description of each fault.
    fn told(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if let Some(Spikes { per_million, extra_ns }) = self.spikes {
            let extra = format_duration_ns(extra_ns);
            faults.push(format!("{per_million} in a million requests take {extra} longer"));
        }
        if let Some(Stalls { period_ns, duration_ns }) = self.stalls {
            let (period, duration) = (format_duration_ns(period_ns), format_duration_ns(duration_ns));
            faults.push(format!("stands still for {duration} every {period}"));
        }
        if let Some(Stuck { after_requests, .. }) = self.stuck {
            faults.push(format!("request {after_requests} gets stuck"));
        }
        if self.read_errors != ReadErrors::default() {
            faults.push("some reads fail".to_owned());
        }
        if self.dying.is_some() {
            faults.push("becomes slower and slower".to_owned());
        }
        if self.lying_flush_ns.is_some() {
            faults.push("lies about FLUSH".to_owned());
        }
        faults
    }
}
