//! What a measured cell tells of its locks: as many rows, and as large a share of one file, as give the waits that
//! were measured. The facts of transactions and pages are counted; these two are not, by any server.

use spindle_twin::{Ahead, Facts, HotFile, Locks, Waits};

use super::prediction::{Storage, predict};
use super::source::Source;
use crate::server::telemetry::Rules;

/// Share of the terminals' time below which a wait is not modelled.
const LEAST: f64 = 0.02;
/// Part of a transaction's reads before it takes its row: the first statements of TPC-C's new order and payment
/// change the district and the warehouse.
const TAKEN_AFTER: f64 = 0.2;
/// Numbers of rows that are tried. Fewer rows are waited for longer.
const ROWS: [u64; 14] = [1_024, 256, 128, 64, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1];
/// Shares of one file that are tried, in twentieths.
const TWENTIETHS: u32 = 20;

/// The facts with the locks that the measured cell waited for. `storage` is its own.
pub fn with_locks(facts: Facts, source: &Source<'_>, storage: &Storage) -> Facts {
    let facts = with_hot_file(facts, source, storage);
    let evidence = source.measurement.bottleneck.evidence.as_ref();
    let measured = evidence
        .filter(|evidence| evidence.terminal_time_s > 0.0)
        .map_or(0.0, |evidence| evidence.lock_wait_s / evidence.terminal_time_s);
    let with = |rows: u64| {
        let locks = Some(Locks { row_count: rows, taken_after: TAKEN_AFTER });
        Facts { locks, ..facts.clone() }
    };
    let share = |rows: u64| share(&with(rows), source, storage, |waits| waits.lock_ns);
    nearest(measured, &ROWS, share).map_or(facts.clone(), with)
}

/// A server that reads through the page cache waits on XFS for the lock of a file that others read.
fn with_hot_file(facts: Facts, source: &Source<'_>, storage: &Storage) -> Facts {
    let is_through_page_cache = matches!(source.paging.rules, Rules::PageCache(_));
    if !is_through_page_cache || !storage.locks_files(facts.reading.mount) {
        return facts;
    }
    let reads = facts.mean(|kind| kind.reads);
    let writes_per_read = source.paging.written_for_room / (reads * source.transactions()).max(1.0);
    let measured = file_share(source, &facts.reading.ahead);
    let with = |twentieths: u32| {
        let share = f64::from(twentieths) / f64::from(TWENTIETHS);
        Facts { hot_file: Some(HotFile { share, writes_per_read }), ..facts.clone() }
    };
    let share = |twentieths: u32| share(&with(twentieths), source, storage, |waits| waits.file_ns);
    let tried: Vec<u32> = (1..=TWENTIETHS).collect();
    nearest(measured, &tried, share).map_or(facts.clone(), with)
}

/// The terminals' time of waits for the lock of a file, as counted. In earlier records it is the time that nothing else
/// explains: the twin has no other cause for it. Where the verdict on the measured cell took all reads for such that
/// are waited for, `ahead` tells those that are not.
fn file_share(source: &Source<'_>, ahead: &Ahead) -> f64 {
    let bottleneck = &source.measurement.bottleneck;
    let evidence = bottleneck.evidence.as_ref().filter(|evidence| evidence.terminal_time_s > 0.0);
    if let Some(evidence) = evidence
        && let Some(wait_s) = evidence.file_lock_wait_s
    {
        return (wait_s / evidence.terminal_time_s).min(1.0);
    }
    let share = |name: &str| bottleneck.shares.get(name).copied().unwrap_or(0.0);
    let all_reads = evidence.map(|evidence| {
        evidence.foreground_reads * evidence.read_latency_mean_ms / 1e3 / evidence.terminal_time_s
    });
    let read = all_reads.unwrap_or(share("read")) * ahead.waited_share();
    let others: f64 = ["commit", "locks", "work", "queue", "other"].into_iter().map(share).sum();
    (1.0 - others - read).clamp(0.0, 1.0)
}

/// The share of the terminals' time that they wait so, on the measured storage.
fn share(facts: &Facts, source: &Source<'_>, storage: &Storage, wait_ns: fn(&Waits) -> u64) -> f64 {
    let waits = predict(facts, storage, source.measurement.duration_s.min(20.0), 1).waits;
    wait_ns(&waits) as f64 / waits.total_ns().max(1) as f64
}

/// Of those in the order of their shares, from the smallest on, the one whose share comes nearest to the measured one.
/// `None` for a share that is not modelled.
fn nearest<T: Copy>(measured: f64, rising: &[T], share: impl Fn(T) -> f64) -> Option<T> {
    if measured < LEAST {
        return None;
    }
    let mut between = 0..rising.len().checked_sub(1)?;
    while between.len() > 1 {
        let middle = between.start + between.len() / 2;
        if share(rising[middle]) < measured {
            between.start = middle;
        } else {
            between.end = middle;
        }
    }
    let error = |index: usize| (share(rising[index]) - measured).abs();
    let is_last = error(between.end) < error(between.start);
    Some(rising[if is_last { between.end } else { between.start }])
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn the_nearest_share_is_found_in_few_looks() {
        let looks = Cell::new(0);
        let shares: Vec<u32> = (1..=20).collect();
        let find = |measured: f64| {
            looks.set(0);
            nearest(measured, &shares, |twentieths| {
                looks.set(looks.get() + 1);
                f64::from(twentieths) / 20.0
            })
        };
        for (measured, expect) in [(0.42, 8), (0.44, 9), (0.03, 1), (1.0, 20), (0.95, 19)] {
            assert_eq!(find(measured), Some(expect), "{measured}");
            assert!(looks.get() <= 7, "{}", looks.get());
        }
        assert_eq!(find(0.01), None);
        assert_eq!(nearest(0.5, &[3], |_| 1.0), Some(3));
    }
}
