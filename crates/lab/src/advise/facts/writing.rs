//! The log of the commits, and how changed pages are written.

use spindle_twin::trace::{page_uses, written_again};
use spindle_twin::{
    BackgroundWriting, Commit, Flushing, Innodb, InnodbRules, Part, Recording, Stage, Writeback,
};

use super::places::MountPlaces;
use crate::advise::prediction::Storage;
use crate::advise::source::Source;
use crate::record::FileClass;
use crate::server::telemetry::Rules;

/// The share of the page cache that can be dirty before writers wait (`vm.dirty_ratio`), and as many pages at least: a small control
/// group of version 1 has the machine's limit. The measured cell did not reach it, or its throughput shows it.
const DIRTY_SHARE: f64 = 0.2;
const DIRTY_PAGES_LEAST: u64 = 16_384;
/// Memory for each session beside the server's own cache: 80 MB of the processes, 12 MB of the kernel and 7 MB of other shared
/// memory, counted in the control group of PostgreSQL 15 with 16 sessions of TPC-C.
const SESSION_BYTES: u64 = 6_200_000;

pub(super) fn commit(source: &Source<'_>, places: &MountPlaces) -> Commit {
    let logs = source.measurement.flushed_at_commit.clone();
    let logs = logs.unwrap_or_else(|| vec![FileClass::Redo]);
    let waits = !logs.is_empty();
    let classes = if waits { logs } else { vec![FileClass::Redo] };
    let is_grouped = source.paging.groups_commits;
    // Without groups the redo log is flushed to prepare a commit, and again to end it.
    let again = (!is_grouped && classes.len() > 1).then(|| classes[0]);
    let stages = classes
        .iter()
        .chain(&again)
        .map(|class| Stage {
            mount: source.mount_of(*class),
            region: places.log_of(source.mount_of(*class)),
            block_bytes: block_bytes(source),
        })
        .collect();
    Commit { is_waited_for: waits, is_grouped, stages }
}

/// The unit of the log: a sector of InnoDB's, a page of PostgreSQL's.
fn block_bytes(source: &Source<'_>) -> u64 {
    match source.paging.rules {
        Rules::Innodb(_) => 512,
        Rules::PageCache(_) => source.paging.page_bytes,
    }
}

pub(super) fn flushing(
    source: &Source<'_>,
    today: Option<&Storage>,
    places: &MountPlaces,
    writers: f64,
    sessions: u64,
) -> Flushing {
    let mount = source.mount_of(FileClass::Data);
    match &source.paging.rules {
        Rules::Innodb(rules) => Flushing::Innodb(innodb(source, today, places, rules)),
        Rules::PageCache(background) => {
            let mount_view = &source.measurement.mounts[mount];
            let flushes = mount_view.emulator.as_ref().map_or(0, |emulator| emulator.flushes) as f64;
            // Commits share flushes, so those of the log are known by their writes alone.
            let of_log = source.paging.log_writes.unwrap_or(writers).min(flushes);
            let cache_bytes = page_cache_bytes(source, sessions);
            let limit_pages = (cache_bytes as f64 * DIRTY_SHARE) as u64 / source.paging.page_bytes;
            Flushing::Writeback(Writeback {
                mount,
                page_bytes: source.paging.page_bytes,
                cache_bytes,
                limit_pages: limit_pages.max(DIRTY_PAGES_LEAST),
                flushes_per_second: (flushes - of_log) / source.measurement.duration_s,
                background: *background,
                background_share: background_share(source, background),
            })
        }
    }
}

/// What the server's memory leaves beside its own cache and its sessions, but at least a quarter of it.
fn page_cache_bytes(source: &Source<'_>, sessions: u64) -> u64 {
    let pool_bytes = source.paging.pool_pages * source.paging.page_bytes;
    let taken_bytes = pool_bytes + sessions * SESSION_BYTES;
    source.memory_bytes.saturating_sub(taken_bytes).max(source.memory_bytes / 4)
}

/// Of the pages that the background writer might have written in the measured window, by its rule, those that it wrote: it
/// waits for the lock of a file as others do.
fn background_share(source: &Source<'_>, rule: &BackgroundWriting) -> f64 {
    let rounds = source.measurement.duration_s * 1e9 / rule.delay_ns.max(1) as f64;
    let allowed = source.paging.written_pages.min(rule.most_pages as f64 * rounds);
    if allowed > 0.0 { (source.paging.written_by_time / allowed).min(1.0) } else { 1.0 }
}

fn innodb(source: &Source<'_>, today: Option<&Storage>, places: &MountPlaces, rules: &InnodbRules) -> Innodb {
    let paging = &source.paging;
    let mount = source.mount_of(FileClass::Data);
    let log_mount = source.mount_of(FileClass::Redo);
    let doublewrite_mount = source.mount_of(FileClass::Doublewrite);
    let reads = paging.foreground_reads.unwrap_or(0.0);
    let written_for_read = if reads > 0.0 { paging.written_for_room / reads } else { 0.0 };
    // As many of the pages in the pool as of those at its end are cold and dirty, if there are so many.
    let cold_pages = |dirty: f64| dirty.min(written_for_read * paging.pool_pages as f64);
    let first = |name: &str| source.series(name).map_or(0.0, |(first, _)| first);
    let first_dirty = first("dirty_pages");
    let batches = paging.doublewrite_batches;
    // One of a batch's is the doublewrite buffer's own.
    let flushes = if batches > 0.0 { (paging.data_syncs / batches - 1.0).max(1.0) } else { 1.0 };
    Innodb {
        rules: rules.clone(),
        mount,
        page_bytes: paging.page_bytes,
        buffer_pool_pages: paging.pool_pages,
        log: Part { mount: log_mount, region: places.log_of(log_mount) },
        doublewrite: Part { mount: doublewrite_mount, region: places.doublewrite_of(doublewrite_mount) },
        flushes_of_batch: flushes,
        hot_share: 1.0 - (paging.written_for_room / paging.written_pages.max(1.0)).min(1.0),
        written_for_read,
        usual_cold_pages: cold_pages(mean_of(source, "dirty_pages")),
        first_hot_pages: (first_dirty - cold_pages(first_dirty)) as u64,
        first_cold_pages: cold_pages(first_dirty) as u64,
        first_age_bytes: first("checkpoint_age_bytes"),
        recording: recording(source, today, rules),
    }
}

/// What is known of the page writes of the block trace.
fn recording(source: &Source<'_>, today: Option<&Storage>, rules: &InnodbRules) -> Option<Recording> {
    let mount = source.mount_of(FileClass::Data);
    let trace = source.traces.get(mount)?.as_ref()?;
    let stacks = &today?.stacks;
    // One storage for all files, or one for each mount.
    let stack = stacks.get(mount).or_else(|| stacks.first())?;
    Some(Recording {
        has_neighbors: rules.neighbors.apply(stack.tree().rotates()),
        written_again: written_again(&page_uses(&trace.requests, source.paging.page_bytes)),
    })
}

/// Mean of a level of the server over the window; zero if it was not sampled.
fn mean_of(source: &Source<'_>, name: &str) -> f64 {
    let values = source.measurement.series.server.get(name).map_or(&[][..], Vec::as_slice);
    spindle_stats::mean(values).unwrap_or(0.0)
}
