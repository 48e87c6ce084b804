//! The types of transactions: their reads, processor time and log, in proportion to their measured latencies.

use spindle_twin::Kind;

use crate::advise::source::Source;
use crate::record::{FileClass, TransactionSummary};
use crate::server::telemetry::Rules;

/// `reads` are those of a transaction on which it waits. New files of the log were filled with `filled_bytes`, which a server that
/// has run for long does not do: it takes its old ones.
pub(super) fn kinds(source: &Source<'_>, reads: f64, filled_bytes: f64) -> Vec<Kind> {
    let measurement = source.measurement;
    let ended: Vec<&TransactionSummary> =
        measurement.transactions.iter().filter(|kind| kind.latency.count > 0).collect();
    let whole = [one_type(source)];
    let parts: Vec<Part> =
        if ended.is_empty() { whole.to_vec() } else { ended.iter().map(|kind| part(source, kind)).collect() };
    let weights: f64 = parts.iter().map(|part| part.weight).sum();
    let mean_work = parts.iter().map(|part| part.weight * part.work_ms).sum::<f64>() / weights;
    let share = |part: &Part| if mean_work > 0.0 { part.work_ms / mean_work } else { 1.0 };
    // What is written is shared by those that write.
    let writers: f64 = parts.iter().filter(|part| part.writes).map(|part| part.weight * share(part)).sum();
    let of_writer = weights / source.transactions() / writers.max(f64::MIN_POSITIVE);
    let log_bytes = source.paging.log_bytes * of_writer;
    let dirtied = dirtied_pages(source, filled_bytes) * of_writer;
    let cpu_ns = cpu_ns(source);
    parts
        .into_iter()
        .map(|part| {
            let share = share(&part);
            Kind {
                name: part.name,
                weight: part.weight,
                reads: reads * share,
                cpu_ns: cpu_ns * share,
                log_bytes: if part.writes { log_bytes * share } else { 0.0 },
                dirtied_pages: if part.writes { dirtied * share } else { 0.0 },
                takes_lock: part.writes,
            }
        })
        .collect()
}

#[derive(Debug, Clone)]
struct Part {
    name: String,
    weight: f64,
    /// Mean latency without the wait for the commit.
    work_ms: f64,
    writes: bool,
}

/// All transactions as one type, for a server in production.
fn one_type(source: &Source<'_>) -> Part {
    Part {
        name: "transaction".to_owned(),
        weight: source.transactions(),
        work_ms: 1.0,
        writes: source.paging.log_bytes > 0.0,
    }
}

fn part(source: &Source<'_>, kind: &TransactionSummary) -> Part {
    let writes = !source.read_only_types.contains(&kind.name.as_str()) && source.paging.log_bytes > 0.0;
    let evidence = source.measurement.bottleneck.evidence.as_ref();
    let wait_ms = evidence.and_then(|evidence| evidence.commits).map_or(0.0, |commits| commits.wait_ms);
    let latency_ms = kind.latency.mean_ms;
    Part {
        name: kind.name.clone(),
        weight: kind.latency.count as f64,
        // The wait is an estimate, and a transaction has some work of its own.
        work_ms: if writes { (latency_ms - wait_ms).max(0.1 * latency_ms) } else { latency_ms },
        writes,
    }
}

/// Pages that became dirty: those that were written, and those that are dirty at the end and were not before. A page that
/// the server writes again before the kernel has written it reaches the device once, so behind the page cache the device
/// counts. The server's own count also stands still while its checkpointer waits for the device, which adds up what the
/// sessions wrote (`AbsorbSyncRequests`).
fn dirtied_pages(source: &Source<'_>, filled_bytes: f64) -> f64 {
    let grown = |series: Option<(f64, f64)>| series.map_or(0.0, |(first, last)| last - first);
    let by_server = source.paging.written_pages + grown(source.series("dirty_pages"));
    let dirtied = match source.paging.rules {
        Rules::Innodb(_) => by_server,
        Rules::PageCache(_) => pages_on_device(source).map_or(by_server, |pages| {
            let grown_bytes = grown(source.machine_series("dirty_bytes"));
            pages + (grown_bytes - filled_bytes) / source.paging.page_bytes as f64
        }),
    };
    dirtied.max(0.0)
}

/// Pages of the data that the device was sent; `None` where it was not watched. A write of the log begins within a page
/// and ends within one, and has both.
fn pages_on_device(source: &Source<'_>) -> Option<f64> {
    let page_bytes = source.paging.page_bytes as f64;
    let log_bytes = source.paging.log_bytes + page_bytes * source.paging.log_writes?;
    let with_log = source.mount_of(FileClass::Data) == source.mount_of(FileClass::Redo);
    let bytes = source.device_writes()? - if with_log { log_bytes } else { 0.0 };
    Some(bytes.max(0.0) / page_bytes)
}

/// Processor time of a transaction, of server and clients. The emulator's own is none that other storage would
/// need. All of the busy time where the server's process is not known.
fn cpu_ns(source: &Source<'_>) -> f64 {
    let cpu = &source.measurement.cpu;
    let own_s = cpu.server_s + cpu.client_s;
    let busy_s = cpu.busy * source.cpu_count as f64 * source.measurement.duration_s;
    let used_s = if cpu.server_s > 0.0 { own_s } else { busy_s };
    used_s / source.transactions() * 1e9
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::advise::facts::facts;
    use crate::advise::source::scenario_of;
    use crate::record::input;

    #[test]
    fn what_is_written_is_shared_by_the_types_that_write() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records/quickstart");
        let records = input::read(&directory).unwrap();
        let scenario = scenario_of(&records).unwrap();
        let cell = &records.header.cells[0];
        let source = Source::of_cell(&records, Some(&scenario), cell, &directory).unwrap();
        let kinds = kinds(&source, 1.0, 0.0);
        let weights: f64 = kinds.iter().map(|kind| kind.weight).sum();
        let mean = |figure: fn(&Kind) -> f64| {
            kinds.iter().map(|kind| kind.weight * figure(kind)).sum::<f64>() / weights
        };
        let check = |found: f64, counted: f64| {
            let expect = counted / source.transactions();
            assert!((found / expect - 1.0).abs() < 1e-9, "{found} instead of {expect}");
        };
        // Stock-level reads the most of all and writes nothing.
        assert!(kinds.iter().any(|kind| kind.log_bytes == 0.0));
        check(mean(|kind| kind.log_bytes), source.paging.log_bytes);
        check(mean(|kind| kind.dirtied_pages), dirtied_pages(&source, 0.0));
    }

    #[test]
    fn a_transaction_makes_as_many_pages_dirty_on_any_storage() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/twin/postgresql-1g");
        let records = input::read(&directory).unwrap();
        let scenario = scenario_of(&records).unwrap();
        // One window begins with 67 MB of dirty pages and ends with 17 MB, in another new log files are filled with 319 MB.
        let of_cell = |cell| {
            let source = Source::of_cell(&records, Some(&scenario), cell, &directory).unwrap();
            facts(&source, None).unwrap().mean(|kind| kind.dirtied_pages)
        };
        let pages: Vec<f64> = records.header.cells.iter().map(of_cell).collect();
        let most = pages.iter().copied().fold(0.0, f64::max);
        assert_eq!(pages.len(), 6);
        assert!(pages.iter().all(|pages| most / pages < 1.2), "{pages:?}");
    }

    #[test]
    fn new_log_files_count_for_the_window_where_a_trace_ends_early() {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/twin/postgresql-1g");
        let records = input::read(&directory).unwrap();
        let scenario = scenario_of(&records).unwrap();
        // It fills new files through its whole window.
        let cell = records.header.cells.iter().find(|cell| cell.name == "ebs-gp3").unwrap();
        let mut source = Source::of_cell(&records, Some(&scenario), cell, &directory).unwrap();
        let pages = |source: &Source<'_>| facts(source, None).unwrap().mean(|kind| kind.dirtied_pages);
        let whole = pages(&source);
        let trace = source.traces[0].as_mut().unwrap();
        trace.duration_ns /= 2;
        trace.requests.retain(|request| request.at.0 < trace.duration_ns);
        let half = pages(&source);
        assert!((half / whole - 1.0).abs() < 0.1, "{half} instead of {whole}");
    }
}
