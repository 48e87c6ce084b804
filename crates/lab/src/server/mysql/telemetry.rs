//! Counters of InnoDB, MyRocks and the server above them, and the settings that determine which logs and
//! replicas a commit waits for.

pub(super) mod production;

use std::collections::BTreeMap;

use super::paging;
use crate::record::{FileClass, WaitPoint};
use crate::server::settings::Settings;
use crate::server::telemetry::{
    Chart, Counters, Durability, Line, Paging, Readings, Rounds, SemiSync, Telemetry,
};

const BUFFER_POOL_READS: &str = "Innodb_buffer_pool_reads";

pub(super) const HISTORY_LIST: &str = "Innodb_history_list_length";
pub(super) const CHECKPOINT_AGE: &str = "Innodb_checkpoint_age";
pub(super) const LOG_CAPACITIES: [&str; 2] =
    ["Innodb_checkpoint_max_age", "Innodb_redo_log_capacity_resized"];
/// Of no server; the monitor makes it from the sizes of the files.
pub(super) const LOG_FILES: &str = "innodb_log_files_bytes";
pub(super) const OLD_PAGES: &str = "Innodb_buffer_pool_pages_old";
const DATA_FSYNCS: &str = "Innodb_data_fsyncs";

const CHARTS: [Chart; 9] = [
    Chart {
        title: "Checkpoint age and log capacity",
        lines: &[
            Line::backlog("checkpoint_age_bytes", &[CHECKPOINT_AGE]),
            Line::level("log_capacity_bytes", &[LOG_CAPACITIES[0], LOG_CAPACITIES[1], LOG_FILES]),
        ],
    },
    Chart { title: "History list length", lines: &[Line::level("history_list", &[HISTORY_LIST])] },
    Chart {
        title: "Pages in the buffer pool",
        lines: &[
            Line::backlog("dirty_pages", &["Innodb_buffer_pool_pages_dirty"]),
            Line::level("old_pages", &[OLD_PAGES]),
        ],
    },
    Chart {
        title: "Pages flushed",
        lines: &[Line::rate("pages_written_per_s", &["Innodb_buffer_pool_pages_flushed"])],
    },
    Chart {
        title: "Buffer pool hit rate",
        lines: &[Line::hits(
            "buffer_pool_hit_share",
            BUFFER_POOL_READS,
            &["Innodb_buffer_pool_read_requests"],
        )],
    },
    Chart {
        title: "Pages read in the foreground",
        lines: &[Line::rate("buffer_pool_reads_per_s", &[BUFFER_POOL_READS])],
    },
    Chart {
        title: "Fsyncs",
        lines: &[
            Line::rate("fsyncs_per_s", &[DATA_FSYNCS]),
            Line::rate("log_fsyncs_per_s", &["Innodb_os_log_fsyncs"]),
        ],
    },
    Chart {
        title: "Waits for space in the log buffer",
        lines: &[Line::rate("log_waits_per_s", &["Innodb_log_waits"])],
    },
    Chart {
        title: "Waits for row locks",
        lines: &[Line::rate("row_lock_waits_per_s", &["Innodb_row_lock_waits"])],
    },
];

pub(super) const REDO: &str = "innodb_flush_log_at_trx_commit";
/// Its values with which each commit waits for a FLUSH. In MariaDB, 3 also flushes when a group is prepared.
pub(super) const FLUSHED: [&str; 2] = ["1", "3"];
const WAIT_POINT: &str = "rpl_semi_sync_master_wait_point";
const FLUSH_METHOD: &str = "innodb_flush_method";
/// From MariaDB 11.0 on, in place of the flush method.
const BUFFERING: &str = "innodb_data_file_buffering";

/// Statements that change rows. Each is a transaction of its own unless the client began one.
const CHANGES: [&str; 9] = [
    "Com_insert",
    "Com_insert_select",
    "Com_replace",
    "Com_replace_select",
    "Com_update",
    "Com_update_multi",
    "Com_delete",
    "Com_delete_multi",
    "Com_load",
];
/// Statements that always commit, even inside the client's transaction.
const DEFINITIONS: [&str; 6] = [
    "Com_truncate",
    "Com_create_table",
    "Com_drop_table",
    "Com_alter_table",
    "Com_create_index",
    "Com_drop_index",
];
/// MariaDB gives a transaction with changes one number at its start and one at its commit; a read-only
/// transaction gets none.
const TRANSACTION_NUMBERS: &str = "Innodb_max_trx_id";
/// Rounds of the master thread, with and without work.
pub(super) const MASTER_LOOPS: [&str; 2] =
    ["Innodb_master_thread_active_loops", "Innodb_master_thread_idle_loops"];
/// Bytes read from InnoDB's files.
const DATA_READ: &str = "Innodb_data_read";
/// The separate log of MyRocks.
const ROCKSDB_LOG: &str = "Rocksdb_wal_bytes";

#[derive(Debug)]
pub(super) struct MysqlTelemetry;

impl Telemetry for MysqlTelemetry {
    fn charts(&self) -> &'static [Chart] {
        &CHARTS
    }

    fn counters(&self, readings: &Readings<'_>) -> Counters {
        let groups = readings.moved("Binlog_group_commits");
        Counters {
            foreground_reads: Some(readings.moved(BUFFER_POOL_READS)),
            commits: commits(readings),
            // Milliseconds.
            lock_wait_s: Some(readings.moved("Innodb_row_lock_time") / 1e3),
            commits_per_group: (groups > 0.0).then(|| readings.moved("Binlog_commits") / groups),
            semi_sync: semi_sync(readings),
            // Those of the log are among them.
            fsyncs: readings.moved_of(&[DATA_FSYNCS]),
            background: readings.has(MASTER_LOOPS[0]).then(|| Rounds {
                who: "InnoDB's master thread",
                count: readings.moved_together(&MASTER_LOOPS),
                period_s: 1.0,
            }),
        }
    }

    fn commit_settings(&self) -> &'static [&'static str] {
        &[REDO, "log_bin", "sync_binlog", WAIT_POINT, FLUSH_METHOD, BUFFERING]
    }

    fn pool_bytes(&self, settings: &Settings) -> Option<u64> {
        Some(paging::pool_bytes(settings))
    }

    fn read_bytes(&self, counters: &BTreeMap<String, f64>) -> Option<f64> {
        counters.get(DATA_READ).copied()
    }

    fn paging(&self, moved: &BTreeMap<String, f64>, settings: &Settings, version: &str) -> Option<Paging> {
        paging::paging(moved, settings, version)
    }

    fn durability(&self, settings: &Settings) -> Durability {
        let is_one_of = |name: &str, words: &[&str]| {
            settings.get(name).is_some_and(|value| words.contains(&&*value.to_ascii_lowercase()))
        };
        let redo = is_one_of(REDO, &FLUSHED).then_some(FileClass::Redo);
        let has_binlog = is_one_of("log_bin", &["on", "1"]) && is_one_of("sync_binlog", &["1"]);
        let logs = redo.into_iter().chain(has_binlog.then_some(FileClass::Binlog));
        Durability {
            flushed_logs: settings.contains_key(REDO).then(|| logs.collect()),
            wait_point: settings.get(WAIT_POINT).map(|_| match is_one_of(WAIT_POINT, &["after_sync"]) {
                true => WaitPoint::AfterSync,
                false => WaitPoint::AfterCommit,
            }),
            uses_page_cache: match settings.get(BUFFERING) {
                Some(_) => is_one_of(BUFFERING, &["on", "1"]),
                None => settings.get(FLUSH_METHOD).is_some_and(|method| !method.contains("O_DIRECT")),
            },
        }
    }
}

fn commits(readings: &Readings<'_>) -> Option<f64> {
    if readings.moved(ROCKSDB_LOG) > 0.0 {
        return None;
    }
    if readings.has(TRANSACTION_NUMBERS) {
        return Some(readings.moved(TRANSACTION_NUMBERS) / 2.0);
    }
    // A client that ends transactions has begun them, and statements in them do not commit.
    let changes = readings.moved_together(&CHANGES);
    let is_explicit = readings.moved_together(&["Com_commit", "Com_rollback"]) > 0.0;
    let changing = if is_explicit { changes.min(readings.moved("Com_commit")) } else { changes };
    Some(changing + readings.moved_together(&DEFINITIONS))
}

/// `None` without a commit that waited.
fn semi_sync(readings: &Readings<'_>) -> Option<SemiSync> {
    let moved = |name: &str| readings.moved(&format!("Rpl_semi_sync_master_{name}")).max(0.0);
    let found = SemiSync {
        acknowledged: moved("yes_tx"),
        unacknowledged: moved("no_tx"),
        waits: moved("tx_waits"),
        // Microseconds.
        wait_s: moved("tx_wait_time") / 1e6,
    };
    (found != SemiSync::default()).then_some(found)
}
