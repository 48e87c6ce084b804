//! Decides when a load has settled: from throughput, and from what the storage still has to do.
//!
//! Watched are the throughput; the server's backlogs ([`Line::is_backlog`]: dirty pages, checkpoint age);
//! the bytes that all mounts were written per transaction; and of each mount of flash its write amplification.
//! The rule ([`spindle_stats::settling`]) must hold for all of them at one look.
//!
//! [`Line::is_backlog`]: crate::server::telemetry::Line::is_backlog

use std::collections::BTreeMap;
use std::time::Duration;

use spindle_load::Second;
use spindle_stats::settling::{LONGEST, SHORTEST, TOLERANCE, has_settled};

use super::Sample;
use crate::record::Settling;
use crate::server::telemetry::Telemetry;
use crate::stack::layout::Layout;
use crate::volume::sample::MountSample;

/// Seconds between looks. More of them would only find more cuts by chance.
const LOOK_EVERY: usize = 5;

/// A settling that goes on.
#[derive(Debug)]
pub struct Watch<'a> {
    layout: &'a Layout,
    telemetry: &'static dyn Telemetry,
    series: BTreeMap<String, Vec<f64>>,
    seconds: usize,
    moving: Vec<String>,
    is_steady: bool,
}

impl Watch<'_> {
    pub fn begin<'a>(layout: &'a Layout, telemetry: &'static dyn Telemetry) -> Watch<'a> {
        Watch { layout, telemetry, series: BTreeMap::new(), seconds: 0, moving: Vec::new(), is_steady: false }
    }

    /// Adds a second, with the samples at its start and its end. Returns whether the load has settled.
    pub fn second(&mut self, second: &Second, [earlier, sample]: [&Sample; 2]) -> bool {
        if self.is_steady {
            return true;
        }
        self.push("transactions_per_s", second.transactions as f64);
        let lines = self.telemetry.charts().iter().flat_map(|chart| chart.lines);
        for line in lines.filter(|line| line.is_backlog) {
            if let Some(level) = line.value([&earlier.counters, &sample.counters], 1.0) {
                self.push(line.name, level);
            }
        }
        let pairs = || earlier.mounts.iter().map(Written::by).zip(sample.mounts.iter().map(Written::by));
        let written: u64 = pairs().map(|(earlier, later)| later.bytes.saturating_sub(earlier.bytes)).sum();
        self.push("written_kib_per_transaction", written as f64 / 1024.0 / second.transactions.max(1) as f64);
        for (index, (earlier, later)) in pairs().enumerate().filter(|(_, (_, later))| later.nand_bytes > 0) {
            let name = self.amplification_name(index);
            let host_bytes = later.bytes.saturating_sub(earlier.bytes);
            let nand_bytes = later.nand_bytes.saturating_sub(earlier.nand_bytes);
            // A second without a write says nothing new.
            let before = self.series.get(&name).and_then(|values| values.last()).copied();
            let value =
                if host_bytes > 0 { nand_bytes as f64 / host_bytes as f64 } else { before.unwrap_or(1.0) };
            self.push(&name, value);
        }
        self.seconds += 1;
        if self.seconds % LOOK_EVERY == 0 {
            self.look();
        }
        self.is_steady
    }

    fn push(&mut self, name: &str, value: f64) {
        self.series.entry(name.to_owned()).or_default().push(value);
    }

    fn amplification_name(&self, index: usize) -> String {
        let name = "write_amplification";
        match self.layout.mounts.as_slice() {
            [_] => name.to_owned(),
            mounts => {
                let classes: Vec<&str> = mounts[index].classes.iter().map(|class| class.key()).collect();
                format!("{name} of {}", classes.join("+"))
            }
        }
    }

    fn look(&mut self) {
        let moving = self.series.iter().filter(|(_, values)| !has_settled(values));
        let moving: Vec<String> = moving.map(|(name, _)| name.clone()).collect();
        self.is_steady = moving.is_empty();
        // Before there are enough seconds, nothing is known of any of them.
        if !self.is_steady && self.seconds >= SHORTEST {
            self.moving = moving;
        }
    }

    pub fn end(self, needed: Duration, at_most: Duration) -> Settling {
        let rule = format!(
            "MSER-5 cut in the first half, change of at most {:.0} % or within the noise, last quarter on the level of the \
             rest: over the last {SHORTEST} to {LONGEST} s of each series",
            TOLERANCE * 100.0
        );
        Settling {
            rule,
            is_steady: self.is_steady,
            needed_s: needed.as_secs_f64(),
            at_most_s: at_most.as_secs_f64(),
            last_to_settle: self.moving,
            series: self.series,
        }
    }
}

/// What a mount was written so far, and what its flash programmed.
#[derive(Debug, Clone, Copy, Default)]
struct Written {
    bytes: u64,
    nand_bytes: u64,
}

impl Written {
    fn by(mount: &MountSample) -> Written {
        match (&mount.statistics, &mount.block_device) {
            (Some(emulated), _) => {
                Written { bytes: emulated.write.bytes, nand_bytes: emulated.nand_write_bytes }
            }
            (None, Some(real)) => Written { bytes: real.write.bytes, nand_bytes: 0 },
            (None, None) => Written::default(),
        }
    }
}
