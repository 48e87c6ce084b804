//! A real PostgreSQL under the real load process: loading, running, verifying, dying.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files.

use std::fs;
use std::path::Path;

use crate::oltp_scripts::{check_every_script, check_the_tool};
use crate::server_support::*;
use crate::workloads::check_every_workload;
use crate::{PATIENCE, in_check_all, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use spindle_lab::record::FileClass;

/// Index of the kind in [`tpcc::KINDS`].
const DELIVERY: usize = 3;

static BED: Bed = Bed::new(
    "postgresql",
    &[
        ("shared_buffers", "64MB"),
        ("max_wal_size", "128MB"),
        ("synchronous_commit", "off"),
        ("deadlock_timeout", "3s"),
    ],
);

#[test]
fn a_loaded_database_runs_and_stays_consistent_over_a_restart() {
    let Some(mut server) = in_check_all(|| BED.loaded()) else { return };
    let counters = [
        "pg_stat_database.blks_read",
        "pg_stat_database.blks_hit",
        "pg_stat_database.deadlocks",
        "pg_stat_wal.wal_sync",
        "lock_waiters",
        "checkpoint_age_bytes",
    ];
    let counted = server.check_restarts("pg_stat_database.xact_commit", &counters);
    let log_bytes =
        counted.after["pg_stat_wal.wal_bytes"] - counted.before.get("pg_stat_wal.wal_bytes").unwrap_or(&0.0);
    assert!(log_bytes > transactions(&counted.summary) as f64, "{log_bytes}");
}

#[test]
fn a_cache_for_all_data_is_filled_and_a_smaller_one_is_left() {
    let Some(mut server) = in_check_all(|| BED.loaded_with(&[("shared_buffers", "512MB")])) else { return };
    const SESSIONS: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE backend_type = 'client backend'";
    server.check_fills_its_cache("pg_stat_database.blks_read", 8_192.0, SESSIONS);
    BED.loaded().unwrap().check_leaves_its_cache("pg_stat_database.blks_read");
}

#[test]
fn every_oltp_script_runs_and_its_database_is_verified() {
    let Some(server) = in_check_all(|| BED.empty()) else { return };
    check_every_script(&server.endpoint());
    check_the_tool(&server.endpoint());
}

#[test]
fn every_other_workload_runs_and_its_database_is_verified() {
    let Some(server) = in_check_all(|| BED.empty()) else { return };
    check_every_workload(&server.endpoint(), &[]);
}

#[test]
fn the_preset_of_tpcc_mysql_has_its_foreign_keys_and_stays_consistent() {
    let Some(server) = in_check_all(|| BED.empty()) else { return };
    server.check_preset_of_tpcc_mysql("public");
}

#[test]
fn every_planted_violation_is_caught() {
    let Some(server) = in_check_all(|| BED.loaded()) else { return };
    server.check_every_planted_violation();
}

#[test]
fn a_server_that_dies_under_load_ends_the_load_at_once() {
    let Some(mut server) = BED.loaded() else { return };
    server.check_death_under_load("postgres");
}

#[test]
fn a_transaction_that_loses_a_deadlock_is_tried_again() {
    let Some(mut server) = in_check_all(|| BED.loaded()) else { return };
    // The session that looks for a deadlock first is rolled back.
    let lock_all_customers = [
        "SET deadlock_timeout = '1h'",
        "BEGIN",
        "SELECT COUNT(*) FROM (SELECT 1 FROM customer FOR UPDATE) locked",
    ];
    let retried = server.check_retries(&lock_all_customers, "lock_waiters", |_, opponent| {
        // Payment holds its warehouse while it waits for its customer, Delivery its new orders.
        for table in ["warehouse", "new_orders"] {
            let lock = format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} FOR UPDATE) locked");
            opponent.execute(&lock).unwrap();
        }
    });
    // The terminal may lose again: it can lock its row again before the opponent, which waits, is awake.
    let deadlocks = server.counters().unwrap()["pg_stat_database.deadlocks"];
    assert!(deadlocks >= 1.0);
    assert_eq!(retried as f64, deadlocks);
}

#[test]
fn a_transaction_that_meets_a_newer_row_is_tried_again() {
    let newer_rows_fail = [("default_transaction_isolation", "repeatable read")];
    let Some(server) = in_check_all(|| BED.loaded_with(&newer_rows_fail)) else { return };
    server.check_newer_rows();
}

#[test]
fn a_delivery_that_waited_for_another_takes_the_next_orders() {
    let Some(mut server) = BED.loaded() else { return };
    let new_orders = "SELECT COUNT(*) FROM new_orders";
    let before = server.number(new_orders);
    let mut other = server.session();
    other.execute("BEGIN").unwrap();
    // The oldest of each district, as a delivery takes it.
    other.execute("DELETE FROM new_orders WHERE no_o_id = 2101").unwrap();
    let mut client = tpcc_workload().connect(&server.endpoint(), 0, SEED).unwrap();
    while client.choose() != DELIVERY {}
    std::thread::scope(|scope| {
        let delivery = scope.spawn(|| client.execute().unwrap());
        wait_until("the delivery to wait", || server.counters().unwrap()["lock_waiters"] == 1.0);
        other.execute("COMMIT").unwrap();
        assert_eq!(delivery.join().unwrap().retries, 0);
    });
    let districts = 10 * i64::from(WAREHOUSES);
    assert_eq!(server.number(new_orders), before - districts - 10);
}

#[test]
fn the_server_reports_the_users_settings_and_runs_as_a_user_without_an_account() {
    let Some(mut server) = BED.loaded() else { return };
    server.check_settings_and_user(&[
        ("shared_buffers", "64MB"),
        ("max_wal_size", "128MB"),
        ("synchronous_commit", "off"),
        ("deadlock_timeout", "3s"),
        ("listen_addresses", ""),
        ("restart_after_crash", "off"),
    ]);
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    assert!(status.starts_with("Name:\tpostgres\n"), "{status}");
}

#[test]
fn the_log_lies_in_the_directory_of_its_class_also_after_a_move() {
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let mut instance = BED.instance(directory.path());
    let logs = |directory: &Path| {
        let segments = fs::read_dir(directory).unwrap().flatten();
        segments.filter(|entry| entry.file_name().len() == 24).count()
    };
    for place in ["first", "second"] {
        let log_directory = directory.path().join(place);
        let earlier = instance.class_directories.insert(FileClass::Redo, log_directory.clone());
        match earlier {
            None => server.prepare(&instance).unwrap(),
            Some(earlier) => fs::rename(earlier, &log_directory).unwrap(),
        }
        let mut running = start(&*server, &instance);
        running.stop(PATIENCE).unwrap();
        assert!(logs(&log_directory) > 0, "{place}");
    }
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_that_there_is() {
    BED.check_refused(
        "shard_buffers",
        "64MB",
        true,
        "PostgreSQL has no such setting; did you mean `shared_buffers`?",
    );
}

#[test]
fn a_wrong_value_is_refused_in_the_servers_words_and_with_its_hint() {
    let expect =
        "invalid value for parameter \"wal_sync_method\": \"fast\" | Available values: fsync, fdatasync";
    BED.check_refused("wal_sync_method", "fast", true, expect);
}

#[test]
fn settings_that_contradict_each_other_are_refused_in_the_servers_words() {
    BED.check_refused("wal_level", "minimal", true, "requires wal_level \"replica\" or \"logical\"");
}

#[test]
fn buffers_larger_than_memory_are_refused_before_the_start() {
    BED.check_refused("shared_buffers", "7TB", true, "larger than this machine's memory");
}

#[test]
fn a_setting_that_would_make_the_server_public_is_refused() {
    BED.check_refused("Listen_Addresses", "*", true, "`Listen_Addresses`: the server is private");
}

#[test]
fn an_error_found_at_start_is_quoted_from_the_log() {
    BED.check_refused(
        "shared_preload_libraries",
        "no_such_library",
        false,
        "could not access file \"no_such_library\"",
    );
}

#[test]
fn a_server_ends_when_its_parent_ends() {
    let Some(mut server) = BED.empty().filter(|_| rustix::process::geteuid().is_root()) else { return };
    let status = fs::read_to_string(format!("/proc/{}/status", server.process_id())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap().parse().unwrap();
    assert_ne!(parent, std::process::id() as i32);
    // As the kernel does after the end of this process.
    kill_process(Pid::from_raw(parent).unwrap(), Signal::KILL).unwrap();
    wait_until("the server to be gone", || processes(server.path()) == 0);
    let error = format!("{:#}", server.check_alive(PATIENCE).unwrap_err());
    assert!(error.contains("postgres died (signal: 9 (SIGKILL))"), "{error}");
}

#[test]
fn a_dropped_server_has_ended_with_all_its_processes() {
    let Some(server) = BED.loaded() else { return };
    server.check_dropped(6);
}
