//! Parameters of a throttle.

use super::Throttle;
use crate::declare;
use crate::device::{Built, Device};
use crate::layers::{LayerParameters, RATE_LIMIT, Told, take};
use crate::parameter::format_size_bytes;
use crate::rates::{Rate, Rates};
use crate::time::SECOND;

declare! {
    /// Highest rates; `None` means no limit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct Limit {
        /// Limit of operations per second.
        pub iops: Option<u64> = PerSecond "iops" in 1..=RATE_LIMIT;
        /// Limit of bytes per second.
        pub bytes_per_s: Option<u64> = Rate "rate" in 1..=RATE_LIMIT;
    }
}

declare! {
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
    pub struct ThrottleParameters {
        pub read: Limit = Group "read_";
        pub write: Limit = Group "write_";
        /// Reads and writes together.
        pub total: Limit = Group "";
        /// Depth of each bucket, as the time to fill it at its rate. At least one operation and one byte.
        pub burst_ns: u64 = Duration "burst" in 0..=1_000_000 * SECOND, default 0;
    }
}

impl From<Limit> for Rate {
    fn from(limit: Limit) -> Rate {
        Rate { bytes_per_s: limit.bytes_per_s, iops: limit.iops }
    }
}

impl LayerParameters for ThrottleParameters {
    fn rates(&self) -> Option<Rates> {
        Some(Rates { read: self.read.into(), write: self.write.into(), total: self.total.into() })
    }

    fn idle_hint(&self) -> Option<&'static str> {
        let limits = [self.read, self.write, self.total];
        let hint = "limits nothing: give `iops`, `rate`, or one of them for reads or writes";
        (limits == [Limit::default(); 3]).then_some(hint)
    }

    fn summary(&self, below: &[Told<'_>]) -> String {
        let limits =
            [("reads", self.read), ("writes", self.write), ("all", self.total)].map(|(what, limit)| {
                let iops = limit.iops.map(|iops| format!("{what} at {iops} IOPS"));
                let rate = limit.bytes_per_s.map(|rate| format!("{what} at {}/s", format_size_bytes(rate)));
                iops.into_iter().chain(rate)
            });
        let limits: Vec<String> = limits.into_iter().flatten().collect();
        format!("Throttled ({}): {}", limits.join(", "), below[0].summary)
    }

    fn build(&self, below: Vec<Box<dyn Device>>, _size_bytes: u64, _seed: u64) -> Built {
        let [below] = take(below);
        Ok(Box::new(Throttle::new(*self, below)?))
    }
}
