//! MariaDB and MySQL in production.
//!
//! Transactions. `Com_commit` and `Com_rollback` count statements, so they miss transactions of one statement
//! that commits by itself. `Handler_commit` counts each engine that takes part, the binary log among them, and
//! also the end of each statement inside a transaction (MariaDB and MySQL, sql/handler.cc): it is the number of
//! statements and commits together, which tells the two from each other in no mixture. Two other counters are
//! exact, where the server's settings keep them:
//! * the instrument `transaction` of the performance schema (on by default from MySQL 8.0 on);
//! * `trx_rw_commits`, `trx_ro_commits` and `trx_nl_ro_commits` of InnoDB's metrics, off by default. The last
//!   one counts SELECTs that are transactions of their own. Transactions that roll back are in the first two
//!   (storage/innobase/trx/trx0trx.cc).
//!
//! Elsewhere a rule decides from proportions: see [`counting`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use mysql::Conn;
use mysql::prelude::Queryable;

use super::{CHANGES, CHECKPOINT_AGE, DEFINITIONS, TRANSACTION_NUMBERS};
use crate::record::FileClass;
use crate::server::mysql::release::{Flavour, Release as Program};
use crate::server::mysql::{MARIADB, MYSQL};
use crate::server::settings::Settings;
use crate::server::telemetry::Readings;
use crate::server::telemetry::production::{Checkpoint, Counting, Place, Production, Release, weighted};

pub(in crate::server::mysql) static PRODUCTION: Production = Production {
    settings: &SETTINGS,
    identity: &IDENTITY,
    release,
    place,
    programs: &["mariadbd", "mysqld"],
    uptime: "Uptime",
    growing: &["Uptime", "Uptime_since_flush_status", "Questions"],
    // The statement that asks is at work itself.
    sessions: "Threads_running",
    own_sessions: 1.0,
    // SHOW is no transaction.
    own_transactions: 0.0,
    readings: &[
        &["Threads_running", CHECKPOINT_AGE, TRANSACTION_NUMBERS, TRANSACTION_EVENTS],
        &INNODB_COMMITS,
        &COMMITS,
        &ROLLBACKS,
        &SELECTS,
        &CHANGES,
        &DEFINITIONS,
        &WRITTEN_LSN,
        &CHECKPOINT_LSN,
    ],
    counting,
    checkpoint,
};

const SETTINGS: [&str; 50] = [
    "aria_pagecache_buffer_size",
    "binlog_format",
    "binlog_row_image",
    "default_storage_engine",
    "innodb_adaptive_flushing",
    "innodb_adaptive_flushing_lwm",
    "innodb_buffer_pool_instances",
    "innodb_buffer_pool_size",
    "innodb_change_buffering",
    "innodb_checksum_algorithm",
    "innodb_data_file_buffering",
    "innodb_data_file_write_through",
    "innodb_doublewrite",
    "innodb_flush_log_at_trx_commit",
    "innodb_flush_method",
    "innodb_flush_neighbors",
    "innodb_flush_sync",
    "innodb_flushing_avg_loops",
    "innodb_io_capacity",
    "innodb_io_capacity_max",
    "innodb_log_buffer_size",
    "innodb_log_file_buffering",
    "innodb_log_file_size",
    "innodb_log_file_write_through",
    "innodb_log_files_in_group",
    "innodb_log_write_ahead_size",
    "innodb_lru_scan_depth",
    "innodb_max_dirty_pages_pct",
    "innodb_max_dirty_pages_pct_lwm",
    "innodb_old_blocks_pct",
    "innodb_old_blocks_time",
    "innodb_page_cleaners",
    "innodb_page_size",
    "innodb_purge_threads",
    "innodb_read_ahead_threshold",
    "innodb_random_read_ahead",
    "innodb_read_io_threads",
    "innodb_redo_log_capacity",
    "innodb_thread_concurrency",
    "innodb_use_atomic_writes",
    "innodb_use_native_aio",
    "innodb_write_io_threads",
    "key_buffer_size",
    "log_bin",
    "max_connections",
    "query_cache_size",
    "rpl_semi_sync_master_enabled",
    "rpl_semi_sync_master_wait_point",
    "sync_binlog",
    "thread_handling",
];

const IDENTITY: [&str; 9] = [
    "version",
    "version_comment",
    "datadir",
    "pid_file",
    "innodb_log_group_home_dir",
    "innodb_undo_directory",
    "innodb_doublewrite_dir",
    "log_bin_basename",
    "tmpdir",
];

/// Of no server; the monitor asks the performance schema.
const TRANSACTION_EVENTS: &str = "performance_schema.transactions";
/// Of no server; the monitor asks InnoDB's metrics.
const INNODB_COMMITS: [&str; 3] =
    ["innodb_metrics.trx_rw_commits", "innodb_metrics.trx_ro_commits", "innodb_metrics.trx_nl_ro_commits"];
const COMMITS: [&str; 2] = ["Com_commit", "Com_xa_commit"];
const ROLLBACKS: [&str; 2] = ["Com_rollback", "Com_xa_rollback"];
/// The query cache answers without a SELECT that is counted.
const SELECTS: [&str; 2] = ["Com_select", "Qcache_hits"];

/// Bytes of log written, and of log up to the checkpoint, by MariaDB's names and by those of MySQL from 8.0.30
/// on. The monitor takes those of earlier servers from InnoDB's report.
pub(in crate::server::mysql) const WRITTEN_LSN: [&str; 2] =
    ["Innodb_lsn_current", "Innodb_redo_log_current_lsn"];
pub(in crate::server::mysql) const CHECKPOINT_LSN: [&str; 2] =
    ["Innodb_lsn_last_checkpoint", "Innodb_redo_log_checkpoint_lsn"];

/// More SELECTs in one transaction than clients usually have: TPC-C's mean is 16, that of sysbench's
/// `oltp_read_only` 14.
const SELECTS_OF_A_TRANSACTION: f64 = 30.0;
/// So many more are surely of clients that do not say COMMIT.
const SURELY: f64 = 2.0;
/// So few SELECTs beside them do not matter that may be inside the transactions.
const HARDLY: f64 = 20.0;
/// Share of transactions with changes in those that say COMMIT or ROLLBACK, above which others are among them.
const AMONG_OTHERS: f64 = 1.1;

/// A question for counts of transactions that the server keeps only if its settings say so. `None` if it keeps
/// none, or does not show them to us.
pub(in crate::server::mysql) fn transactions_question(connection: &mut Conn) -> Option<String> {
    let mut count = |rows: &str| -> u64 {
        let found = connection.query_first(format!("SELECT COUNT(*) FROM {rows}"));
        found.ok().flatten().unwrap_or(0)
    };
    let instrument = "performance_schema.setup_instruments WHERE NAME = 'transaction' AND ENABLED = 'YES'";
    if count(instrument) == 1 {
        return Some(format!(
            "SELECT '{TRANSACTION_EVENTS}', COUNT_STAR FROM \
             performance_schema.events_transactions_summary_global_by_event_name WHERE EVENT_NAME = 'transaction'"
        ));
    }
    let names = INNODB_COMMITS.map(|name| format!("'{}'", name.trim_start_matches("innodb_metrics.")));
    let names = names.join(", ");
    // MySQL has one of these columns, MariaDB the other.
    ["STATUS = 'enabled'", "ENABLED"].into_iter().find_map(|is_on| {
        let rows = format!("information_schema.INNODB_METRICS WHERE NAME IN ({names}) AND {is_on}");
        let is_complete = count(&rows) == INNODB_COMMITS.len() as u64;
        is_complete.then(|| format!("SELECT CONCAT('innodb_metrics.', NAME), COUNT FROM {rows}"))
    })
}

fn release(settings: &Settings) -> Release {
    let of = |name: &str| settings.get(name).map_or("", String::as_str);
    let version = of("version").trim_end_matches("-log");
    let parsed = Program::parse(&format!("Ver {version} ({})", of("version_comment")));
    let is_mariadb = parsed.as_ref().is_some_and(|program| program.flavour == Flavour::MariaDb);
    Release {
        kind: if is_mariadb { MARIADB.name } else { MYSQL.name },
        version: parsed.map_or_else(|| version.to_owned(), |program| program.to_string()),
    }
}

fn place(settings: &Settings) -> Place {
    let path = |name: &str| settings.get(name).filter(|value| !value.is_empty()).map(Path::new);
    let data_directory = path("datadir");
    let absolute = |path: &Path| data_directory.map_or_else(|| path.to_owned(), |data| data.join(path));
    let directory = |class: FileClass, name: &str| path(name).map(|path| (class, absolute(path)));
    let binlog =
        path("log_bin_basename").and_then(Path::parent).map(|path| (FileClass::Binlog, absolute(path)));
    // The server uses several in turn.
    let temp = settings.get("tmpdir").and_then(|list| list.split(':').next()).filter(|path| !path.is_empty());
    let apart = [
        directory(FileClass::Redo, "innodb_log_group_home_dir"),
        directory(FileClass::Undo, "innodb_undo_directory"),
        directory(FileClass::Doublewrite, "innodb_doublewrite_dir"),
        binlog,
        temp.map(|path| (FileClass::Temp, absolute(Path::new(path)))),
    ];
    Place {
        pid_file: path("pid_file").map(absolute),
        data_directory: data_directory.map(PathBuf::from),
        apart: apart.into_iter().flatten().collect(),
    }
}

/// The counters of transactions. Exact ones count if there are any. Elsewhere:
/// * Changes. A MariaDB numbers the transactions with changes. If there are more of them than COMMITs and
///   ROLLBACKs, all of them count, and otherwise the COMMITs. Without the numbers, a client that says COMMIT
///   says it for all of its changes.
/// * SELECTs count as transactions of their own if there are more of them for each COMMIT than transactions
///   have. Where that is not clear, the bounds say so.
fn counting(readings: &Readings<'_>) -> Counting {
    let rolled_back = weighted(&ROLLBACKS, 1.0);
    let exact = |counters: &[&'static str], words| {
        let committed = [weighted(counters, 1.0), weighted(&ROLLBACKS, -1.0)].concat();
        Counting { committed, rolled_back: weighted(&ROLLBACKS, 1.0), words, open: None }
    };
    if readings.has(TRANSACTION_EVENTS) {
        return exact(&[TRANSACTION_EVENTS], "the performance schema");
    }
    if INNODB_COMMITS.iter().all(|name| readings.has(name)) {
        return exact(&INNODB_COMMITS, "InnoDB's metrics of commits");
    }
    let ends = readings.moved_together(&COMMITS) + readings.moved_together(&ROLLBACKS);
    let selects = readings.moved_together(&SELECTS);
    let selects_are_apart = selects > SURELY * SELECTS_OF_A_TRANSACTION * ends;
    let numbered = readings.has(TRANSACTION_NUMBERS);
    let changes_are_apart = match numbered {
        true => readings.moved(TRANSACTION_NUMBERS) / 2.0 > AMONG_OTHERS * ends,
        false => ends == 0.0,
    };
    let mut committed = match (changes_are_apart, numbered) {
        // Those that were rolled back have numbers too.
        (true, true) => [weighted(&[TRANSACTION_NUMBERS], 0.5), weighted(&ROLLBACKS, -1.0)].concat(),
        (true, false) => [weighted(&CHANGES, 1.0), weighted(&DEFINITIONS, 1.0)].concat(),
        (false, _) => weighted(&COMMITS, 1.0),
    };
    let words = match (changes_are_apart, selects_are_apart) {
        (false, false) => "COMMIT and ROLLBACK",
        (true, false) => "the numbers of transactions with changes",
        (false, true) => "COMMIT, ROLLBACK and SELECT",
        (true, true) => "changes and SELECTs, each a transaction of its own",
    };
    let without =
        Counting { committed: committed.clone(), rolled_back: rolled_back.clone(), words, open: None };
    let least = without.committed(readings.moved) + without.rolled_back(readings.moved);
    let is_open = match selects_are_apart {
        true => selects < HARDLY * SELECTS_OF_A_TRANSACTION * ends,
        false => selects > SELECTS_OF_A_TRANSACTION * ends,
    };
    if selects_are_apart {
        committed.extend(weighted(&SELECTS, 1.0));
    }
    Counting { committed, rolled_back, words, open: is_open.then_some([least, least + selects]) }
}

fn checkpoint(readings: &BTreeMap<String, f64>) -> Option<Checkpoint> {
    let first = |names: &[&str]| names.iter().find_map(|name| readings.get(*name).copied());
    let (written_bytes, checkpoint_bytes) = (first(&WRITTEN_LSN)?, first(&CHECKPOINT_LSN)?);
    Some(Checkpoint::Moving { written_bytes, checkpoint_bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    type Pairs<'a> = &'a [(&'a str, f64)];

    fn map(pairs: Pairs<'_>) -> BTreeMap<String, f64> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
    }

    fn counted(moved: Pairs<'_>) -> Counting {
        let moved = map(moved);
        counting(&Readings { moved: &moved, looks: vec![&moved], duration_s: 10.0 })
    }

    /// Committed and rolled back transactions.
    #[track_caller]
    fn check(moved: Pairs<'_>, expect: (f64, f64), open: Option<[f64; 2]>) {
        let counting = counted(moved);
        let moved = map(moved);
        assert_eq!((counting.committed(&moved), counting.rolled_back(&moved)), expect, "{counting:?}");
        assert_eq!(counting.open, open, "{counting:?}");
    }

    const EXACT: (&str, f64) = (TRANSACTION_EVENTS, 120.0);

    #[test]
    fn an_exact_counter_counts_whatever_the_clients_say() {
        check(&[EXACT, ("Com_commit", 3.0), ("Com_select", 9_000.0)], (120.0, 0.0), None);
        check(&[EXACT, ("Com_rollback", 20.0)], (100.0, 20.0), None);
        let metrics = [(INNODB_COMMITS[0], 10.0), (INNODB_COMMITS[1], 20.0), (INNODB_COMMITS[2], 70.0)];
        check(&metrics, (100.0, 0.0), None);
    }

    #[test]
    fn clients_that_say_commit_are_counted_by_it() {
        // TPC-C: one new order in a hundred rolls back, and 8 % of all transactions change nothing.
        let tpcc = [
            ("Com_commit", 995.0),
            ("Com_rollback", 5.0),
            ("Com_select", 16_000.0),
            ("Com_insert", 9_000.0),
            ("Com_update", 8_000.0),
        ];
        check(&tpcc, (995.0, 5.0), None);
        let numbered = [&tpcc[..], &[(TRANSACTION_NUMBERS, 1_850.0)]].concat();
        check(&numbered, (995.0, 5.0), None);
    }

    #[test]
    fn statements_that_commit_by_themselves_are_transactions() {
        check(&[("Com_select", 900.0)], (900.0, 0.0), None);
        check(&[("Com_select", 900.0), ("Com_insert", 50.0), ("Com_truncate", 1.0)], (951.0, 0.0), None);
        let numbered = [("Com_select", 900.0), ("Com_insert", 60.0), (TRANSACTION_NUMBERS, 100.0)];
        check(&numbered, (950.0, 0.0), None);
        // A monitor says COMMIT now and then.
        check(&[("Com_select", 90_000.0), ("Com_commit", 2.0)], (90_002.0, 0.0), None);
    }

    #[test]
    fn changes_beside_those_that_say_commit_are_counted_where_the_server_numbers_them() {
        let mixed = [("Com_commit", 100.0), ("Com_insert", 900.0), (TRANSACTION_NUMBERS, 800.0)];
        check(&mixed, (400.0, 0.0), None);
        check(&mixed[..2], (100.0, 0.0), None);
    }

    #[test]
    fn bounds_say_where_selects_may_be_inside_or_outside() {
        check(&[("Com_commit", 100.0), ("Com_select", 3_000.0)], (100.0, 0.0), None);
        check(&[("Com_commit", 100.0), ("Com_select", 4_000.0)], (100.0, 0.0), Some([100.0, 4_100.0]));
        check(&[("Com_commit", 100.0), ("Com_select", 9_000.0)], (9_100.0, 0.0), Some([100.0, 9_100.0]));
        check(&[("Com_commit", 100.0), ("Com_select", 90_000.0)], (90_100.0, 0.0), None);
    }

    #[test]
    fn a_server_says_what_it_is_as_a_run_would() {
        let check = |version: &str, comment: &str, kind: &'static str, expect: &str| {
            let settings = [("version", version), ("version_comment", comment)];
            let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            assert_eq!(release(&settings), Release { kind, version: expect.to_owned() });
        };
        check("10.11.6-MariaDB-0+deb12u1-log", "Debian 12", "mariadb", "10.11.6-MariaDB-0+deb12u1");
        check("8.0.36", "MySQL Community Server - GPL", "mysql", "MySQL 8.0.36");
        check("8.0.35-27", "Percona Server (GPL), Release 27", "mysql", "Percona Server 8.0.35-27");
        check("odd", "", "mysql", "odd");
    }

    #[test]
    fn paths_of_a_server_are_relative_to_its_data() {
        let settings = [
            ("datadir", "/var/lib/mysql/"),
            ("pid_file", "db.pid"),
            ("innodb_log_group_home_dir", "./"),
            ("log_bin_basename", "/logs/mysql-bin"),
            ("innodb_doublewrite_dir", ""),
            ("tmpdir", "/tmp:/var/tmp"),
        ];
        let place = place(&settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into());
        assert_eq!(place.pid_file.unwrap(), Path::new("/var/lib/mysql/db.pid"));
        let apart: Vec<(FileClass, &Path)> =
            place.apart.iter().map(|(class, path)| (*class, path.as_path())).collect();
        let expect = [
            (FileClass::Redo, Path::new("/var/lib/mysql/./")),
            (FileClass::Binlog, Path::new("/logs")),
            (FileClass::Temp, Path::new("/tmp")),
        ];
        assert_eq!(apart, expect);
    }

    #[test]
    fn the_checkpoint_is_where_either_server_says() {
        let moving =
            |written_bytes, checkpoint_bytes| Some(Checkpoint::Moving { written_bytes, checkpoint_bytes });
        let check = |readings: Pairs<'_>, expect| assert_eq!(checkpoint(&map(readings)), expect);
        check(&[("Innodb_lsn_current", 9.0), ("Innodb_lsn_last_checkpoint", 4.0)], moving(9.0, 4.0));
        check(
            &[("Innodb_redo_log_current_lsn", 9.0), ("Innodb_redo_log_checkpoint_lsn", 5.0)],
            moving(9.0, 5.0),
        );
        check(&[("Innodb_lsn_current", 9.0)], None);
    }
}
