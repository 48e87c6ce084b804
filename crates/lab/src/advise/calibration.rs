//! What a measured cell tells of its locks: as many rows, and as large a share of one file, as give the waits that
//! were measured. The facts of transactions and pages are counted; these two are not, by any server.

use spindle_twin::{Facts, HotFile, Locks, Waits};

use super::prediction::{Storage, predict};
use super::source::Source;
use crate::server::telemetry::Rules;

/// Share of the terminals' time below which a wait is not modelled.
const LEAST: f64 = 0.02;
/// Part of a transaction's reads before it takes its row: the first statements of TPC-C's new order and payment
/// change the district and the warehouse.
const TAKEN_AFTER: f64 = 0.2;
/// Numbers of rows that are tried.
const ROWS: [u64; 14] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128, 256, 1_024];
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
    nearest(measured, ROWS, share).map_or(facts.clone(), with)
}

/// A server that reads through the page cache waits on XFS for the lock of a file that others read.
fn with_hot_file(facts: Facts, source: &Source<'_>, storage: &Storage) -> Facts {
    let is_through_page_cache = matches!(source.paging.rules, Rules::PageCache);
    if !is_through_page_cache || !storage.locks_files(facts.reading.mount) {
        return facts;
    }
    let weights: f64 = facts.kinds.iter().map(|kind| kind.weight).sum();
    let reads = facts.kinds.iter().map(|kind| kind.weight * kind.reads).sum::<f64>() / weights;
    let writes_per_read = source.paging.written_for_room / (reads * source.transactions()).max(1.0);
    let measured = file_share(source, reads / (reads + facts.reading.ahead_requests));
    let with = |twentieths: u32| {
        let share = f64::from(twentieths) / f64::from(TWENTIETHS);
        Facts { hot_file: Some(HotFile { share, writes_per_read }), ..facts.clone() }
    };
    let share = |twentieths: u32| share(&with(twentieths), source, storage, |waits| waits.file_ns);
    nearest(measured, 1..=TWENTIETHS, share).map_or(facts.clone(), with)
}

/// The terminals' time in which a device was at work, besides that of their own reads and commits: the twin has no
/// other cause for it than the lock of a file. `waited` is the part of the reads that they wait for, where the
/// verdict on the measured cell took all for such.
fn file_share(source: &Source<'_>, waited: f64) -> f64 {
    let bottleneck = &source.measurement.bottleneck;
    let share = |name: &str| bottleneck.shares.get(name).copied().unwrap_or(0.0);
    let all_reads =
        bottleneck.evidence.as_ref().filter(|evidence| evidence.terminal_time_s > 0.0).map(|evidence| {
            evidence.foreground_reads * evidence.read_latency_mean_ms / 1e3 / evidence.terminal_time_s
        });
    let read = all_reads.unwrap_or(share("read")) * waited;
    (share("storage") + share("read") - read).clamp(0.0, 1.0)
}

/// The share of the terminals' time that they wait so, on the measured storage.
fn share(facts: &Facts, source: &Source<'_>, storage: &Storage, wait_ns: fn(&Waits) -> u64) -> f64 {
    let waits = predict(facts, storage, source.measurement.duration_s.min(20.0), 1).waits;
    wait_ns(&waits) as f64 / waits.total_ns().max(1) as f64
}

/// The one whose share comes nearest to the measured one. `None` for a share that is not modelled.
fn nearest<T: Copy>(
    measured: f64,
    tried: impl IntoIterator<Item = T>,
    share: impl Fn(T) -> f64,
) -> Option<T> {
    let error = |one: T| ((share(one) - measured).abs(), one);
    let tried = tried.into_iter().filter(|_| measured >= LEAST);
    tried.map(error).min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, one)| one)
}
