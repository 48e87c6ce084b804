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
        if self.seconds.is_multiple_of(LOOK_EVERY) {
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
#[derive(Debug, Clone, Copy)]
struct Written {
    bytes: u64,
    nand_bytes: u64,
}

impl Written {
    fn by(mount: &MountSample) -> Written {
        let nand_bytes = mount.statistics.as_ref().map_or(0, |emulated| emulated.nand_write_bytes);
        Written { bytes: mount.writes().bytes, nand_bytes }
    }
}

#[cfg(test)]
mod tests {
    use spindle_base::proc::CpuTimes;
    use spindle_mount::{OperationStatistics, Statistics};

    use super::*;
    use crate::observe::MachineSample;
    use crate::server::{endpoint, telemetry_of};

    /// At the end of a second in which 2 MiB were written to the disk, and as often to its flash as
    /// `amplification` says.
    fn sample(second: u64, dirty_pages: f64, amplification: u64) -> Sample {
        let bytes = second << 21;
        let statistics = Statistics {
            write: OperationStatistics { count: second, bytes, latency_ns: 0 },
            nand_write_bytes: bytes * amplification,
            ..Statistics::default()
        };
        let dirty = ("Innodb_buffer_pool_pages_dirty".to_owned(), dirty_pages);
        let history = ("Innodb_history_list_length".to_owned(), 5.0 * second as f64);
        Sample {
            at: Duration::from_secs(second),
            cpu: CpuTimes { busy: second, total: 2 * second, ..CpuTimes::default() },
            machine: MachineSample::default(),
            server_cpu_s: 0.0,
            server_threads: Vec::new(),
            emulator_cpu_s: 0.0,
            mounts: vec![MountSample { statistics: Some(statistics), ..MountSample::default() }],
            counters: BTreeMap::from([dirty, history]),
            readings: BTreeMap::new(),
            binlog_bytes: None,
            replicas: Vec::new(),
        }
    }

    /// The settling of a MariaDB whose dirty pages are these at the end of each second.
    fn settling(dirty_pages: fn(u64) -> f64, amplification: u64) -> Settling {
        let layout = Layout::plain("disk", "disk");
        let telemetry = telemetry_of(&endpoint::parse("mysql://root@localhost:3306/test").unwrap()).unwrap();
        let mut watch = Watch::begin(&layout, telemetry);
        let take = |second: u64| sample(second, dirty_pages(second), amplification);
        let load = Second { transactions: 512, ..Second::default() };
        let last = (1..=300).find(|second| watch.second(&load, [&take(second - 1), &take(*second)]));
        watch.end(Duration::from_secs(last.unwrap_or(300)), Duration::from_secs(300))
    }

    #[track_caller]
    fn check(found: &Settling, needed_s: f64, last_to_settle: &[&str]) {
        assert_eq!((found.needed_s, found.is_steady), (needed_s, needed_s < 300.0));
        assert_eq!(found.last_to_settle, last_to_settle);
    }

    #[test]
    fn a_level_load_settles_with_the_first_look_that_can_tell() {
        let found = settling(|_| 900.0, 0);
        check(&found, 60.0, &[]);
        let names: Vec<&str> = found.series.keys().map(String::as_str).collect();
        assert_eq!(names, ["dirty_pages", "transactions_per_s", "written_kib_per_transaction"]);
        assert_eq!(found.series["written_kib_per_transaction"], [4.0; 60]);
    }

    #[test]
    fn level_throughput_waits_for_the_dirty_pages() {
        check(&settling(|second| 100.0 + 10.0 * second.min(100) as f64, 0), 170.0, &["dirty_pages"]);
        check(&settling(|second| 10.0 * second as f64, 0), 300.0, &["dirty_pages"]);
    }

    #[test]
    fn flash_has_its_write_amplification_watched() {
        assert_eq!(settling(|_| 900.0, 3).series["write_amplification"], [3.0; 60]);
    }
}
