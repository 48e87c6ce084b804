//! The facts of a twin from one measured cell.
//!
//! Nothing here knows the storage that is to be predicted: each figure is a count of the measured window divided
//! by its transactions, a setting of the server, or a place of the trace.

mod places;
mod transactions;
mod writing;

use anyhow::Result;
use spindle_twin::{Arrivals, Facts, Reading};

use super::source::Source;
use crate::record::FileClass;

/// The measured database as a twin knows it. Its locks are added by
/// [`super::calibration::with_locks`].
///
/// # Errors
/// The record lacks what the twin needs.
pub fn facts(source: &Source<'_>) -> Result<Facts> {
    let places = places::places(source);
    let requests = Requests::of(source, places.read_ahead_share);
    let kinds = transactions::kinds(source, &requests);
    let writers: f64 = kinds.iter().filter(|kind| kind.log_bytes > 0.0).map(|kind| kind.weight).sum();
    Ok(Facts {
        arrivals: arrivals(source),
        kinds,
        core_count: source.cpu_count,
        background_cores: source.measurement.cpu.sampling_s.unwrap_or(0.0) / source.measurement.duration_s,
        reading: Reading {
            mount: source.mount_of(FileClass::Data),
            ahead_requests: requests.ahead,
            ahead_pages: requests.ahead_pages,
            page_bytes: source.paging.page_bytes,
        },
        commit: writing::commit(source, &places),
        flushing: writing::flushing(source, &places, writers),
        locks: None,
        hot_file: None,
        places: places.data,
    })
}

fn arrivals(source: &Source<'_>) -> Arrivals {
    let measurement = source.measurement;
    // Little's law, for records without evidence.
    let at_work = measurement.latency.mean_ms / 1e3 * source.per_second();
    let terminals = measurement
        .bottleneck
        .evidence
        .as_ref()
        .map_or(at_work.round() as u64, |evidence| u64::from(evidence.terminals));
    let terminals = terminals.max(1);
    if source.is_closed_loop {
        Arrivals::Closed { terminals }
    } else {
        Arrivals::Open { per_second: source.per_second(), connections: (4 * terminals).max(64) }
    }
}

/// Reads of the data's device for each transaction.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Requests {
    /// On which a transaction waits.
    foreground: f64,
    ahead: f64,
    /// Pages of a request of read-ahead.
    ahead_pages: f64,
}

impl Requests {
    /// `ahead_share` is that of a block trace, for a server that does not tell which reads were waited for.
    fn of(source: &Source<'_>, ahead_share: Option<f64>) -> Requests {
        let mount = &source.measurement.mounts[source.mount_of(FileClass::Data)];
        let (reads, bytes) = match (&mount.emulator, &mount.host) {
            (Some(emulator), _) => (emulator.reads, emulator.read_bytes),
            (None, Some(host)) => (host.reads, host.read_bytes),
            (None, None) => (0, 0),
        };
        let reads = reads as f64;
        let transactions = source.transactions();
        let ahead_share = ahead_share.filter(|_| source.paging.foreground_reads.is_none());
        let foreground =
            source.paging.foreground_reads.unwrap_or(reads * (1.0 - ahead_share.unwrap_or(0.0))).min(reads);
        let ahead = reads - foreground;
        let page_bytes = source.paging.page_bytes as f64;
        // Of a trace, both kinds are drawn from the same reads, so that their sizes are alike.
        let waited_bytes = ahead_share.map_or(page_bytes, |_| bytes as f64 / reads.max(1.0)) * foreground;
        let ahead_bytes = (bytes as f64 - waited_bytes).max(0.0);
        Requests {
            foreground: foreground / transactions,
            ahead: ahead / transactions,
            ahead_pages: if ahead > 0.0 { (ahead_bytes / ahead / page_bytes).max(1.0) } else { 1.0 },
        }
    }
}
