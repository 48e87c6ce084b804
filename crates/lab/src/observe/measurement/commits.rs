//! How long commits waited for their logs, where the clients keep no stopwatch around COMMIT: an estimate from the server's own count of
//! commits, and from what the kernel saw the logs' storage take for a write and a FLUSH.

use std::collections::BTreeMap;

use spindle_load::Summary;

use super::{Window, log_host, ratio};
use crate::observe::bottleneck::CommitEstimate;
use crate::record::FileClass;
use crate::record::{HostView, MountView};

/// What a server is asked for, to know what a commit waits for. Each has some of them.
pub const LOG_SETTINGS: [&str; 6] = [
    "innodb_flush_log_at_trx_commit",
    "log_bin",
    "sync_binlog",
    "rpl_semi_sync_master_wait_point",
    "fsync",
    "synchronous_commit",
];

/// MySQL's statements that change rows, each a transaction of its own unless the client began one.
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
/// Statements that commit whatever the client began.
const DEFINITIONS: [&str; 6] = [
    "Com_truncate",
    "Com_create_table",
    "Com_drop_table",
    "Com_alter_table",
    "Com_create_index",
    "Com_drop_index",
];
/// MariaDB gives a transaction that changes something one number when it begins and one when it commits. Whoever only reads gets none.
const INNODB_NUMBERS: &str = "Innodb_max_trx_id";
/// MyRocks has a log of its own.
const ROCKSDB_LOG: &str = "Rocksdb_wal_bytes";
const POSTGRES_COMMITS: &str = "pg_stat_database.xact_commit";
/// Rows: a transaction that changed something changed one at least.
const POSTGRES_CHANGES: [&str; 3] =
    ["pg_stat_database.tup_inserted", "pg_stat_database.tup_updated", "pg_stat_database.tup_deleted"];

/// `None` where the server's settings or counters do not say what a commit waits for, or the kernel not what its storage does.
pub(super) fn estimate(
    window: &Window,
    counters: &BTreeMap<String, f64>,
    mounts: &[MountView],
) -> Option<CommitEstimate> {
    let logs: Vec<&HostView> = flushed_logs(&window.log_settings)?
        .into_iter()
        .map(|class| log_host(&window.layout, mounts, class).map(|(host, _)| host))
        .collect::<Option<_>>()?;
    // A write of a log serves at most one commit of each terminal.
    let most = logs.iter().map(|host| syncs(host)).fold(f64::INFINITY, f64::min)
        * f64::from(window.summary.worker_threads);
    let count = count(window, counters)?.min(most);
    Some(CommitEstimate {
        count,
        wait_ms: logs.iter().map(|host| wait_ms(host, count, &window.summary)).sum(),
    })
}

/// How often a device was told to make durable what it has; where it always is, each write is.
fn syncs(host: &HostView) -> f64 {
    (if host.flushes > 0 { host.flushes } else { host.writes }) as f64
}

/// Of a commit on one log: its own write and FLUSH, and those before it in the share of the time that the log is busy for the other terminals. Clients
/// that were answered together come back together, when the next FLUSH has just begun, so that they wait for nearly all of it.
fn wait_ms(host: &HostView, count: f64, summary: &Summary) -> f64 {
    let own_ms = host.write_latency_mean_ms + host.flush_latency_mean_ms;
    let busy = ratio(syncs(host).min(count) * own_ms / 1e3, summary.duration_s).min(1.0);
    let others = 1.0 - 1.0 / f64::from(summary.worker_threads.max(1));
    own_ms * (1.0 + busy * others)
}

/// What terminals waited for a replica's acknowledgement. At the wait point AFTER_COMMIT the server sums it over commits. At AFTER_SYNC one commit
/// waits for its group, while the others that are under way wait behind it.
pub(super) fn acknowledgement_wait_s(window: &Window, counters: &BTreeMap<String, f64>) -> f64 {
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0.0);
    let microseconds = counter("Rpl_semi_sync_master_tx_wait_time");
    let point = window.log_settings.get("rpl_semi_sync_master_wait_point");
    let waiting = match point {
        Some(point) if point.eq_ignore_ascii_case("AFTER_SYNC") => {
            let under_way = ratio(window.summary.commit_wait_s.unwrap_or(0.0), window.summary.duration_s);
            under_way.max(ratio(counter("Binlog_commits"), counter("Binlog_group_commits"))).max(1.0)
        }
        _ => 1.0,
    };
    microseconds / 1e6 * waiting
}

/// Empty where a commit does not wait for the storage.
fn flushed_logs(settings: &BTreeMap<String, String>) -> Option<Vec<FileClass>> {
    let value = |name: &str| settings.get(name).map(|value| value.to_ascii_lowercase());
    let is_one_of = |name: &str, words: &[&str]| value(name).is_some_and(|value| words.contains(&&*value));
    const REDO: &str = "innodb_flush_log_at_trx_commit";
    if settings.contains_key(REDO) {
        // 3 flushes when a group is prepared, too (MariaDB).
        let redo = is_one_of(REDO, &["1", "3"]).then_some(FileClass::Redo);
        let has_binlog = is_one_of("log_bin", &["on", "1"]) && is_one_of("sync_binlog", &["1"]);
        return Some(redo.into_iter().chain(has_binlog.then_some(FileClass::Binlog)).collect());
    }
    value("fsync").zip(value("synchronous_commit"))?;
    let is_off = is_one_of("fsync", &["off"]) || is_one_of("synchronous_commit", &["off"]);
    Some(if is_off { Vec::new() } else { vec![FileClass::Redo] })
}

/// Transactions that changed something. `None` where some of them have a log that is none of ours.
fn count(window: &Window, counters: &BTreeMap<String, f64>) -> Option<f64> {
    let counter = |name: &str| counters.get(name).copied().unwrap_or(0.0);
    let sum = |names: &[&str]| names.iter().map(|name| counter(name)).sum::<f64>();
    if counter(ROCKSDB_LOG) > 0.0 {
        return None;
    }
    if window.last.counters.contains_key(INNODB_NUMBERS) {
        return Some(counter(INNODB_NUMBERS) / 2.0);
    }
    if window.last.counters.contains_key(POSTGRES_COMMITS) {
        // Those that only read are counted with the others.
        return Some(counter(POSTGRES_COMMITS).min(sum(&POSTGRES_CHANGES)));
    }
    // Who ends transactions has begun them, and in them statements do not commit.
    let changes = sum(&CHANGES);
    let is_explicit = sum(&["Com_commit", "Com_rollback"]) > 0.0;
    let changing = if is_explicit { changes.min(counter("Com_commit")) } else { changes };
    Some(changing + sum(&DEFINITIONS))
}
