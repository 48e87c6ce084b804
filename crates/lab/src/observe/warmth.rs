//! How often the load before the window has filled the server's cache by what it read.
//!
//! Right after its start a server reads many pages that it will keep later. How many pages it has to read until the
//! reads of a transaction are level goes by the size of its cache: a list of the last uses is the one of a long run when it has
//! been filled once, and InnoDB's, which a page enters in the middle, later ([docs/results/warm-up.md] measures it).
//!
//! [docs/results/warm-up.md]: ../../../../docs/results/warm-up.md

use std::collections::VecDeque;

use spindle_load::Second;
use spindle_mount::OperationStatistics;

use crate::record::Warning;
use crate::server::Settings;
use crate::server::telemetry::{Durability, Telemetry};
use crate::volume::sample::MountSample;

/// What a server holds of its files, with the page cache of at most `memory_bytes` if it uses that. `None` if unknown.
pub fn cache_bytes(
    telemetry: &dyn Telemetry,
    settings: &Settings,
    durability: &Durability,
    memory_bytes: Option<u64>,
) -> Option<u64> {
    if durability.uses_page_cache { memory_bytes } else { telemetry.pool_bytes(settings) }
}

/// Seconds that tell whether a load hardly reads.
const DRY_S: usize = 5;

/// The reads of a load since it began.
#[derive(Debug)]
pub struct Warmth {
    /// `None` if unknown.
    cache_bytes: Option<u64>,
    begun: OperationStatistics,
    /// The newest seconds: reads until the end of each, and its transactions.
    newest: VecDeque<(u64, u64)>,
}

impl Warmth {
    pub fn begin(cache_bytes: Option<u64>, mounts: &[MountSample]) -> Warmth {
        let begun = reads(mounts);
        Warmth { cache_bytes, begun, newest: VecDeque::from([(begun.count, 0)]) }
    }

    /// How many times the bytes that were read would fill the cache.
    pub fn turnovers(&self, mounts: &[MountSample]) -> Option<f64> {
        let bytes = reads(mounts).bytes.saturating_sub(self.begun.bytes);
        self.cache_bytes.filter(|cache| *cache > 0).map(|cache| bytes as f64 / cache as f64)
    }

    /// Adds a second, with the samples at its end. Returns whether the cache is warm: it was turned over often enough, or
    /// the load hardly reads, because its data are in memory.
    pub fn second(&mut self, second: &Second, mounts: &[MountSample]) -> bool {
        self.newest.push_back((reads(mounts).count, second.transactions));
        if self.newest.len() > DRY_S + 1 {
            self.newest.pop_front();
        }
        self.turnovers(mounts).is_some_and(|turnovers| turnovers >= Warning::TURNOVERS_ENOUGH)
            || self.is_dry()
    }

    fn is_dry(&self) -> bool {
        let [Some((earlier, _)), Some((now, _))] = [self.newest.front(), self.newest.back()] else {
            return false;
        };
        let transactions: u64 = self.newest.iter().skip(1).map(|(_, transactions)| transactions).sum();
        let read = now.saturating_sub(*earlier) as f64;
        self.newest.len() > DRY_S && read < transactions as f64 * Warning::READS_RARE
    }
}

fn reads(mounts: &[MountSample]) -> OperationStatistics {
    mounts.iter().map(MountSample::reads).fold(OperationStatistics::default(), |sum, reads| {
        OperationStatistics { count: sum.count + reads.count, bytes: sum.bytes + reads.bytes, ..sum }
    })
}

#[cfg(test)]
mod tests {
    use spindle_mount::Statistics;

    use super::*;

    const PAGE: u64 = 16 << 10;

    fn after(pages: u64) -> [MountSample; 1] {
        let read =
            OperationStatistics { count: pages, bytes: pages * PAGE, ..OperationStatistics::default() };
        let statistics = Statistics { read, ..Statistics::default() };
        [MountSample { statistics: Some(statistics), ..MountSample::default() }]
    }

    /// The second, from 1, after which a cache of 1000 pages is warm, if so many pages are read in each.
    fn warm_after(cache_bytes: Option<u64>, pages: fn(u64) -> u64) -> Option<u64> {
        let mut warmth = Warmth::begin(cache_bytes, &after(70));
        let load = Second { transactions: 100, ..Second::default() };
        let mut read = 70;
        (1..100).find(|second| {
            read += pages(*second);
            warmth.second(&load, &after(read))
        })
    }

    #[test]
    fn a_cache_is_warm_when_it_was_filled_two_and_a_half_times() {
        assert_eq!(warm_after(Some(1_000 * PAGE), |_| 250), Some(10));
        assert_eq!(Warmth::begin(Some(1_000 * PAGE), &after(70)).turnovers(&after(570)), Some(0.5));
    }

    #[test]
    fn a_load_that_hardly_reads_is_warm() {
        assert_eq!(warm_after(Some(1_000 * PAGE), |_| 4), Some(5));
        assert_eq!(warm_after(Some(1_000 * PAGE), |second| if second < 8 { 90 } else { 1 }), Some(12));
        assert_eq!(warm_after(None, |second| if second < 8 { 9_000 } else { 1 }), Some(12));
        assert_eq!(warm_after(None, |_| 6), None);
    }
}
