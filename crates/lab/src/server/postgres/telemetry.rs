//! Meaning of PostgreSQL's cumulative statistics, and the settings that determine which logs a commit waits
//! for.

pub(super) mod production;

use std::collections::BTreeMap;

use super::paging;
use super::settings::{DIRECT, goes_past_page_cache, pool_bytes};
use crate::record::FileClass;
use crate::server::settings::Settings;
use crate::server::telemetry::{Chart, Counters, Durability, IsSession, Line, Paging, Readings, Telemetry};

/// Number of sessions that wait for a lock. The server does not sum their waiting time.
pub(super) const LOCK_WAITERS: &str = "lock_waiters";
pub(super) const IO_WAITERS: &str = "io_waiters";
pub(super) const LATCH_WAITERS: &str = "latch_waiters";
pub(super) const CHECKPOINT_AGE: &str = "checkpoint_age_bytes";
pub(super) const LOG_LIMIT: &str = "max_wal_size_bytes";
pub(super) const DEAD_ROWS: &str = "dead_rows";
/// Transactions that began since the oldest snapshot in use.
pub(super) const SNAPSHOT_AGE: &str = "oldest_snapshot_transactions";
const BLOCKS_READ: &str = "pg_stat_database.blks_read";
/// Up to PostgreSQL 17, then from 18 on.
const LOG_FSYNCS: [&str; 2] = ["pg_stat_wal.wal_sync", "pg_stat_io.wal.fsyncs"];

const CHARTS: [Chart; 8] = [
    Chart {
        title: "Write-ahead log since the last checkpoint, and max_wal_size",
        lines: &[Line::backlog(CHECKPOINT_AGE, &[CHECKPOINT_AGE]), Line::level(LOG_LIMIT, &[LOG_LIMIT])],
    },
    Chart { title: "Dead rows", lines: &[Line::level(DEAD_ROWS, &[DEAD_ROWS])] },
    Chart { title: "Age of the oldest snapshot", lines: &[Line::level(SNAPSHOT_AGE, &[SNAPSHOT_AGE])] },
    Chart {
        title: "Buffers written",
        lines: &[
            // Up to PostgreSQL 16, then from 17 on.
            Line::rate(
                "checkpoint_pages_written_per_s",
                &["pg_stat_bgwriter.buffers_checkpoint", "pg_stat_checkpointer.buffers_written"],
            ),
            Line::rate("background_pages_written_per_s", &["pg_stat_bgwriter.buffers_clean"]),
            Line::rate(
                "session_pages_written_per_s",
                &["pg_stat_bgwriter.buffers_backend", "pg_stat_io.client_backend.writes"],
            ),
        ],
    },
    Chart {
        title: "Buffer hit rate",
        lines: &[Line::hits(
            "buffer_pool_hit_share",
            BLOCKS_READ,
            &[BLOCKS_READ, "pg_stat_database.blks_hit"],
        )],
    },
    Chart { title: "Blocks read", lines: &[Line::rate("buffer_pool_reads_per_s", &[BLOCKS_READ])] },
    Chart {
        title: "Write-ahead log",
        lines: &[
            Line::rate("log_writes_per_s", &["pg_stat_wal.wal_write", "pg_stat_io.wal.writes"]),
            Line::rate("log_fsyncs_per_s", &LOG_FSYNCS),
        ],
    },
    Chart {
        title: "Waiting sessions",
        lines: &[
            Line::level(LOCK_WAITERS, &[LOCK_WAITERS]),
            Line::level(LATCH_WAITERS, &[LATCH_WAITERS]),
            Line::level(IO_WAITERS, &[IO_WAITERS]),
        ],
    },
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
            // Of the log alone: data files are synced by checkpoints.
            fsyncs: readings.moved_of(&LOG_FSYNCS),
            // Timed checkpoints are too rare: one in minutes.
            background: None,
        }
    }

    fn commit_settings(&self) -> &'static [&'static str] {
        &["fsync", "synchronous_commit", DIRECT]
    }

    fn is_session(&self) -> Option<IsSession> {
        Some(is_session)
    }

    fn pool_bytes(&self, settings: &Settings) -> Option<u64> {
        Some(pool_bytes(settings))
    }

    fn paging(&self, moved: &BTreeMap<String, f64>, settings: &Settings, _version: &str) -> Option<Paging> {
        paging::paging(moved, settings)
    }

    fn durability(&self, settings: &Settings) -> Durability {
        let is_off = |name: &str| settings.get(name).map(|value| value.eq_ignore_ascii_case("off"));
        let logs = |is_off: bool| if is_off { Vec::new() } else { vec![FileClass::Redo] };
        let are_off = is_off("fsync").zip(is_off("synchronous_commit"));
        Durability {
            flushed_logs: are_off.map(|(fsync, commit)| logs(fsync || commit)),
            wait_point: None,
            uses_page_cache: !goes_past_page_cache(settings),
        }
    }
}

/// A title as of `init_ps_display` in src/backend/utils/misc/ps_status.c: "postgres: USER DATABASE HOST(PORT) activity" or
/// "[local]" in place of the host, behind the name of the cluster if it has one. Others, as a parallel worker's, have
/// no host; that of a server of a replica has one.
fn is_session(title: &str) -> bool {
    let Some(title) = title.strip_prefix("postgres: ") else { return false };
    let mut words = title.split_whitespace().skip_while(|word| word.ends_with(':'));
    let (user, host) = (words.next(), words.nth(1));
    user != Some("walsender") && host.is_some_and(|host| host == "[local]" || host.ends_with(')'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_told_by_their_titles() {
        for title in [
            "postgres: app shop [local] INSERT",
            "postgres: 15/main: app shop 10.0.0.7(51234) idle in transaction",
            "postgres: app shop ::1(51234)",
        ] {
            assert!(is_session(title), "{title}");
        }
        for title in [
            "postgres: background writer",
            "postgres: 15/main: autovacuum worker shop",
            "postgres: parallel worker for PID 17",
            "postgres: walsender copy 10.0.0.8(50000) streaming 0/1A2B3C",
            "postgres: io worker 0",
            "/usr/lib/postgresql/15/bin/postgres -D data",
        ] {
            assert!(!is_session(title), "{title}");
        }
    }
}
