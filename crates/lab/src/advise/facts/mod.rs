//! The facts of a twin from one measured cell.
//!
//! Nothing here knows the storage that is to be predicted: each figure is a count of the measured window divided
//! by its transactions, a setting of the server, or a place of the trace.

mod places;
mod transactions;
mod writing;

use std::sync::Arc;

use anyhow::Result;
use spindle_twin::{Access, Ahead, Arrivals, Facts, Reading};

use super::prediction::Storage;
use super::source::Source;
use crate::record::FileClass;

/// The measured database as a twin knows it. Its locks are added by
/// [`super::calibration::with_locks`]. `today` is the storage that was measured, if it is known.
///
/// # Errors
/// The record lacks what the twin needs.
pub fn facts(source: &Source<'_>, today: Option<&Storage>) -> Result<Facts> {
    let places = places::places(source);
    let requests = Requests::of(source, places.ahead.clone());
    let kinds = transactions::kinds(source, requests.foreground, places.filled_bytes);
    let writers: f64 = kinds.iter().filter(|kind| kind.log_bytes > 0.0).map(|kind| kind.weight).sum();
    Ok(Facts {
        arrivals: arrivals(source),
        kinds,
        core_count: source.cpu_count,
        background_cores: source.measurement.cpu.sampling_s.unwrap_or(0.0) / source.measurement.duration_s,
        reading: Reading {
            mount: source.mount_of(FileClass::Data),
            page_bytes: source.paging.page_bytes,
            ahead: requests.ahead,
        },
        commit: writing::commit(source, &places),
        flushing: writing::flushing(source, today, &places, writers, terminals(source)),
        locks: None,
        hot_file: None,
        places: places.data,
    })
}

fn arrivals(source: &Source<'_>) -> Arrivals {
    let terminals = terminals(source);
    if source.is_closed_loop {
        Arrivals::Closed { terminals }
    } else {
        Arrivals::Open { per_second: source.per_second(), connections: (4 * terminals).max(64) }
    }
}

fn terminals(source: &Source<'_>) -> u64 {
    let measurement = source.measurement;
    // Little's law, for records without evidence.
    let at_work = measurement.latency.mean_ms / 1e3 * source.per_second();
    let terminals = measurement
        .bottleneck
        .evidence
        .as_ref()
        .map_or(at_work.round() as u64, |evidence| u64::from(evidence.terminals));
    terminals.max(1)
}

/// Reads of the data's device.
#[derive(Debug, Clone, PartialEq)]
struct Requests {
    /// For each transaction, on which it waits.
    foreground: f64,
    ahead: Ahead,
}

impl Requests {
    /// `traced` is the read-ahead of a block trace, for a server that does not tell which reads were waited for.
    fn of(source: &Source<'_>, traced: Option<Arc<[Vec<Access>]>>) -> Requests {
        let (reads, bytes) = source.device_reads();
        let transactions = source.transactions();
        if let Some(ahead) = traced {
            let ahead = Ahead::Traced(ahead);
            return Requests { foreground: reads / transactions * ahead.waited_share(), ahead };
        }
        let foreground = source.waited_reads().unwrap_or(reads).min(reads);
        let ahead = reads - foreground;
        let page_bytes = source.paging.page_bytes as f64;
        let ahead_bytes = (bytes - page_bytes * foreground).max(0.0);
        let pages = if ahead > 0.0 { (ahead_bytes / ahead / page_bytes).max(1.0) } else { 1.0 };
        Requests {
            foreground: foreground / transactions,
            ahead: Ahead::Counted { requests: ahead / transactions, pages },
        }
    }
}
