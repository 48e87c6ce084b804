//! Meaning of PostgreSQL's cumulative statistics, and the settings that determine which logs a commit waits
//! for.

use crate::record::FileClass;
use crate::server::settings::Settings;
use crate::server::telemetry::{Chart, Counters, Durability, Readings, Telemetry};

/// Number of sessions that wait for a lock. The server does not sum their waiting time.
pub(super) const LOCK_WAITERS: &str = "lock_waiters";
pub(super) const CHECKPOINT_AGE: &str = "checkpoint_age_bytes";
const BLOCKS_READ: &str = "pg_stat_database.blks_read";

const CHARTS: [Chart; 6] = [
    Chart::backlog(CHECKPOINT_AGE, CHECKPOINT_AGE),
    Chart::level(LOCK_WAITERS, LOCK_WAITERS),
    Chart::rate("buffer_pool_reads_per_s", BLOCKS_READ),
    // Up to PostgreSQL 16, then from 17 on.
    Chart::rate("checkpoint_pages_written_per_s", "pg_stat_bgwriter.buffers_checkpoint"),
    Chart::rate("checkpoint_pages_written_per_s", "pg_stat_checkpointer.buffers_written"),
    Chart::rate("log_fsyncs_per_s", "pg_stat_wal.wal_sync"),
];

const COMMITS: &str = "pg_stat_database.xact_commit";
/// Counts of rows: a transaction with changes changes at least one.
const CHANGES: [&str; 3] =
    ["pg_stat_database.tup_inserted", "pg_stat_database.tup_updated", "pg_stat_database.tup_deleted"];

#[derive(Debug)]
pub(super) struct PostgresTelemetry;

impl Telemetry for PostgresTelemetry {
    fn charts(&self) -> &'static [Chart] {
        &CHARTS
    }

    fn counters(&self, readings: &Readings<'_>) -> Counters {
        Counters {
            foreground_reads: Some(readings.moved(BLOCKS_READ)),
            // The server's count of commits includes read-only transactions.
            commits: Some(readings.moved(COMMITS).min(readings.moved_together(&CHANGES))),
            // An estimate: the mean number of waiters times the duration.
            lock_wait_s: Some(readings.mean(LOCK_WAITERS) * readings.duration_s),
            commits_per_group: None,
            semi_sync: None,
            // Timed checkpoints are too rare: one in minutes.
            background: None,
        }
    }

    fn commit_settings(&self) -> &'static [&'static str] {
        &["fsync", "synchronous_commit"]
    }

    fn durability(&self, settings: &Settings) -> Durability {
        let is_off = |name: &str| settings.get(name).map(|value| value.eq_ignore_ascii_case("off"));
        let logs = |is_off: bool| if is_off { Vec::new() } else { vec![FileClass::Redo] };
        let settings = is_off("fsync").zip(is_off("synchronous_commit"));
        Durability {
            flushed_logs: settings.map(|(fsync, commit)| logs(fsync || commit)),
            wait_point: None,
            uses_page_cache: true,
        }
    }
}
