//! PostgreSQL in production. Its statistics count the transactions of every database, those of one statement
//! too. Up to PostgreSQL 16 checkpoints are counted in `pg_stat_bgwriter`, from 17 on in `pg_stat_checkpointer`,
//! and from 18 on those that were skipped are not (`num_done`).

use std::collections::BTreeMap;
use std::path::Path;

use super::CHECKPOINT_AGE;
use crate::record::FileClass;
use crate::server::postgres::KIND;
use crate::server::postgres::settings::DIRECT;
use crate::server::settings::Settings;
use crate::server::telemetry::Readings;
use crate::server::telemetry::production::{Checkpoint, Counting, Place, Production, Release};

pub(in crate::server::postgres) static PRODUCTION: Production = Production {
    settings: &SETTINGS,
    identity: &["server_version", "data_directory"],
    release,
    place,
    programs: &["postgres"],
    uptime: UPTIME,
    growing: &[UPTIME, COMMITS],
    sessions: SESSIONS_AT_WORK,
    own_sessions: 0.0,
    own_transactions: 1.0,
    readings: &[&[UPTIME, SESSIONS_AT_WORK, CHECKPOINT_AGE, COMMITS, ROLLBACKS], &CHECKPOINTS],
    counting,
    checkpoint,
};

const SETTINGS: [&str; 42] = [
    "autovacuum",
    "autovacuum_naptime",
    "backend_flush_after",
    "bgwriter_delay",
    "bgwriter_flush_after",
    "bgwriter_lru_maxpages",
    "bgwriter_lru_multiplier",
    "block_size",
    "checkpoint_completion_target",
    "checkpoint_flush_after",
    "checkpoint_timeout",
    "commit_delay",
    "commit_siblings",
    "data_checksums",
    DIRECT,
    "effective_cache_size",
    "effective_io_concurrency",
    "fsync",
    "full_page_writes",
    "huge_pages",
    "io_method",
    "io_workers",
    "maintenance_io_concurrency",
    "maintenance_work_mem",
    "max_connections",
    "max_wal_size",
    "min_wal_size",
    "random_page_cost",
    "shared_buffers",
    "synchronous_commit",
    "temp_buffers",
    "wal_block_size",
    "wal_buffers",
    "wal_compression",
    "wal_init_zero",
    "wal_level",
    "wal_recycle",
    "wal_segment_size",
    "wal_sync_method",
    "wal_writer_delay",
    "wal_writer_flush_after",
    "work_mem",
];

/// Both are made by the monitor.
pub(in crate::server::postgres) const UPTIME: &str = "server_uptime_s";
pub(in crate::server::postgres) const SESSIONS_AT_WORK: &str = "sessions_at_work";

const COMMITS: &str = "pg_stat_database.xact_commit";
const ROLLBACKS: &str = "pg_stat_database.xact_rollback";
const CHECKPOINTS: [&str; 5] = [
    "pg_stat_checkpointer.num_done",
    "pg_stat_checkpointer.num_timed",
    "pg_stat_checkpointer.num_requested",
    "pg_stat_bgwriter.checkpoints_timed",
    "pg_stat_bgwriter.checkpoints_req",
];

fn release(settings: &Settings) -> Release {
    let version = settings.get("server_version").map_or("", String::as_str);
    Release { kind: KIND.name, version: format!("PostgreSQL {version}").trim_end().to_owned() }
}

/// Only a superuser or a member of `pg_read_all_settings` may ask for the directory.
fn place(settings: &Settings) -> Place {
    let Some(data) = settings.get("data_directory").map(Path::new) else { return Place::default() };
    Place {
        pid_file: Some(data.join("postmaster.pid")),
        data_directory: Some(data.to_owned()),
        // A link, where the log lies elsewhere.
        apart: vec![(FileClass::Redo, data.join("pg_wal"))],
    }
}

fn counting(_: &Readings<'_>) -> Counting {
    Counting {
        committed: vec![(COMMITS, 1.0)],
        rolled_back: vec![(ROLLBACKS, 1.0)],
        words: "pg_stat_database",
        open: None,
    }
}

fn checkpoint(readings: &BTreeMap<String, f64>) -> Option<Checkpoint> {
    let sum = |names: &[&str]| names.iter().map(|name| readings.get(*name).copied()).sum::<Option<f64>>();
    let count = sum(&CHECKPOINTS[..1]).or_else(|| sum(&CHECKPOINTS[1..3])).or_else(|| sum(&CHECKPOINTS[3..]));
    count.map(Checkpoint::Counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_are_counted_where_the_version_has_them() {
        let check = |readings: &[(&str, f64)], expect: Option<f64>| {
            let readings = readings.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
            assert_eq!(checkpoint(&readings), expect.map(Checkpoint::Counted));
        };
        let of_15 = [("pg_stat_bgwriter.checkpoints_timed", 3.0), ("pg_stat_bgwriter.checkpoints_req", 2.0)];
        let of_17 = [("pg_stat_checkpointer.num_timed", 4.0), ("pg_stat_checkpointer.num_requested", 1.0)];
        check(&of_15, Some(5.0));
        check(&of_17, Some(5.0));
        check(&[&of_17[..], &[("pg_stat_checkpointer.num_done", 2.0)]].concat(), Some(2.0));
        check(&of_15[..1], None);
    }

    #[test]
    fn the_log_may_lie_apart_and_the_directory_may_be_hidden() {
        let settings = |pairs: &[(&str, &str)]| -> Settings {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        assert_eq!(place(&settings(&[])), Place::default());
        let place = place(&settings(&[("data_directory", "/d")]));
        assert_eq!(place.pid_file.unwrap(), Path::new("/d/postmaster.pid"));
        assert_eq!(place.apart, [(FileClass::Redo, "/d/pg_wal".into())]);
        let version = settings(&[("server_version", "15.18 (Debian 15.18-0+deb12u1)")]);
        assert_eq!(release(&version).version, "PostgreSQL 15.18 (Debian 15.18-0+deb12u1)");
    }
}
