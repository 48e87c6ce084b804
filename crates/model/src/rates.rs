//! Highest rates that a device's parameters state, for those who look for its bottleneck.

/// `None` where the parameters state no limit. A device may be slower; it is never faster for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rates {
    pub read: Rate,
    pub write: Rate,
    /// Reads and writes together.
    pub total: Rate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    pub bytes_per_s: Option<u64>,
    pub iops: Option<u64>,
}

impl Rate {
    pub(crate) fn bytes(bytes_per_s: u64) -> Rate {
        Rate { bytes_per_s: Some(bytes_per_s), iops: None }
    }

    fn and(self, other: Rate) -> Rate {
        let lower = |left: Option<u64>, right: Option<u64>| left.into_iter().chain(right).min();
        Rate { bytes_per_s: lower(self.bytes_per_s, other.bytes_per_s), iops: lower(self.iops, other.iops) }
    }
}

impl Rates {
    /// Those of two parts that every request passes.
    pub(crate) fn and(self, other: Rates) -> Rates {
        Rates {
            read: self.read.and(other.read),
            write: self.write.and(other.write),
            total: self.total.and(other.total),
        }
    }
}
