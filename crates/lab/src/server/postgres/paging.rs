//! Pages and log of PostgreSQL by its cumulative statistics.

use std::collections::BTreeMap;

use super::settings::{background_writing, goes_past_page_cache, pool_bytes};
use crate::server::settings::Settings;
use crate::server::telemetry::{Paging, Rules};

const PAGE_BYTES: u64 = 8 << 10;

/// `None` without the statistics of the log, which PostgreSQL has from 14 on, and past the page cache, by whose rules its
/// pages are written otherwise.
pub(super) fn paging(moved: &BTreeMap<String, f64>, settings: &Settings) -> Option<Paging> {
    if goes_past_page_cache(settings) {
        return None;
    }
    let count = |names: &[&str]| names.iter().find_map(|name| moved.get(*name).copied());
    let together = |names: &[&str]| names.iter().filter_map(|name| moved.get(*name)).sum::<f64>();
    Some(Paging {
        page_bytes: PAGE_BYTES,
        pool_pages: pool_bytes(settings) / PAGE_BYTES,
        pool_setting: "shared_buffers",
        foreground_reads: None,
        written_pages: together(&[
            "pg_stat_bgwriter.buffers_checkpoint",
            "pg_stat_checkpointer.buffers_written",
            "pg_stat_bgwriter.buffers_clean",
            "pg_stat_bgwriter.buffers_backend",
            "pg_stat_io.client_backend.writes",
        ]),
        written_for_room: together(&["pg_stat_bgwriter.buffers_backend", "pg_stat_io.client_backend.writes"]),
        written_by_time: together(&["pg_stat_bgwriter.buffers_clean"]),
        log_bytes: count(&["pg_stat_wal.wal_bytes"])?,
        log_writes: count(&["pg_stat_wal.wal_write", "pg_stat_io.wal.writes"]),
        data_syncs: 0.0,
        doublewrite_batches: 0.0,
        groups_commits: true,
        midpoint: None,
        moved_to_head: None,
        rules: Rules::PageCache(background_writing(settings)),
    })
}
