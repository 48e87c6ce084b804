//! Parameters of a cloud volume.

use super::{GIBIBYTE, Volume};
use crate::declare;
use crate::device::Built;
use crate::devices::DeviceParameters;
use crate::parameter::{Invalid, Kind, at_least};
use crate::rates::{Rate, Rates};
use crate::request::SECTOR_BYTES;
use crate::time::SECOND;

const RATE_LIMIT: u64 = 1_000_000_000_000;

declare! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct VolumeParameters {
        /// Provisioned size. The emulated size may be smaller.
        pub capacity_bytes: u64 = Size "capacity" in 1 << 20..=1 << 60, table "capacity" "Bought with {}.";
        /// Baseline operations per second per GiB of capacity. Zero if the rate is provisioned apart from the
        /// size.
        pub iops_per_gib: u64 = PerSecond "iops_per_gib" in 0..=1_000_000;
        /// Lowest baseline. Equal to the highest if the rate is provisioned.
        pub iops_minimum: u64 = PerSecond "iops_minimum" in 1..=1_000_000_000;
        /// Highest baseline.
        pub iops_maximum: u64 = PerSecond "iops_maximum" in 1..=1_000_000_000;
        /// Operations per second while credits last.
        pub burst_iops: u64 = PerSecond "burst_iops" in 0..=1_000_000_000;
        /// Most credits, in operations. Zero if the volume does not burst.
        pub burst_credits: u64 = Count "burst_credits" in 0..=RATE_LIMIT;
        /// Baseline bytes per second.
        pub bytes_per_s: u64 = Rate "rate" in SECTOR_BYTES..=RATE_LIMIT;
        /// Bytes per second while credits last.
        pub burst_bytes_per_s: u64 = Rate "burst_rate" in 0..=RATE_LIMIT;
        /// Most credits, in bytes. Zero if the rate does not burst.
        pub burst_credit_bytes: u64 = Size "burst_credit_bytes" in 0..=1 << 60;
        /// Credits at power-on, as a share of the most.
        pub initial_credit_percent: u64 = Percent "initial_credit" in 0..=100;
        /// Time over which the highest rate is enforced. A burst of requests within it passes at once.
        pub window_ns: u64 = Duration "window" in 0..=1_000 * SECOND;
        /// A request counts one operation per this many bytes.
        pub operation_bytes: u64 = Size "operation_size" in SECTOR_BYTES..=1 << 40;
        /// Whether a request that continues the previous one, while that one is in flight, counts as part of
        /// it, up to `operation_size`.
        pub merges_sequential: bool = Switch "merges_sequential";
        /// Link of the virtual machine to its volumes.
        pub link_bytes_per_s: u64 = Rate "link_rate" in 1 << 20..=1_000 * RATE_LIMIT;
        pub read_latency: LatencyQuantiles = Group "read_latency_";
        pub write_latency: LatencyQuantiles = Group "write_latency_";
        /// Time of a FLUSH, a discard or a write-zeroes.
        pub flush_ns: u64 = Duration "flush" in 0..=100 * SECOND;
    }
}

declare! {
    /// Time of one request in the service, excluding waits for a rate or for the link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct LatencyQuantiles {
        /// Shortest time of a request in the service.
        pub minimum_ns: u64 = Duration "minimum" in 0..=100 * SECOND;
        /// Its median.
        pub median_ns: u64 = Duration "median";
        /// Its 99 % quantile.
        pub p99_ns: u64 = Duration "p99";
        /// Its 99.9 % quantile.
        pub p999_ns: u64 = Duration "p999" in 0..=100 * SECOND;
    }
}

impl LatencyQuantiles {
    /// A constant latency for every request.
    pub fn constant(nanoseconds: u64) -> LatencyQuantiles {
        LatencyQuantiles {
            minimum_ns: nanoseconds,
            median_ns: nanoseconds,
            p99_ns: nanoseconds,
            p999_ns: nanoseconds,
        }
    }

    fn relations(&self, prefix: &str) -> Result<(), Invalid> {
        let quantiles = [
            ("minimum", self.minimum_ns),
            ("median", self.median_ns),
            ("p99", self.p99_ns),
            ("p999", self.p999_ns),
        ];
        quantiles.windows(2).try_for_each(|pair| {
            let (lower, higher) = (pair[0], pair[1]);
            at_least(
                format!("{prefix}{}", higher.0),
                higher.1,
                &format!("{prefix}{}", lower.0),
                lower.1,
                Kind::Duration,
            )
        })
    }
}

impl DeviceParameters for VolumeParameters {
    fn relations(&self) -> Result<(), Invalid> {
        at_least("iops_maximum", self.iops_maximum, "iops_minimum", self.iops_minimum, Kind::PerSecond)?;
        self.read_latency.relations("read_latency_")?;
        self.write_latency.relations("write_latency_")
    }

    fn capacity_bytes(&self) -> Option<u64> {
        Some(self.capacity_bytes)
    }

    /// Those of a burst, where the volume has bursts.
    fn rates(&self) -> Rates {
        let highest = |baseline: u64, burst: u64, credits: u64| {
            Some(if credits > 0 { baseline.max(burst) } else { baseline })
        };
        let bytes_per_s = highest(self.bytes_per_s, self.burst_bytes_per_s, self.burst_credit_bytes);
        let iops = highest(self.baseline_iops(), self.burst_iops, self.burst_credits);
        Rates { total: Rate { bytes_per_s, iops }, ..Rates::default() }
    }

    fn build(&self, size_bytes: u64, seed: u64) -> Built {
        Ok(Box::new(Volume::new(self.clone(), size_bytes, seed)?))
    }
}

impl VolumeParameters {
    /// Operations per second without credits.
    pub fn baseline_iops(&self) -> u64 {
        let by_size = u128::from(self.iops_per_gib) * u128::from(self.capacity_bytes) / u128::from(GIBIBYTE);
        (by_size as u64).clamp(self.iops_minimum, self.iops_maximum)
    }
}
