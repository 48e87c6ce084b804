//! A real PostgreSQL under the real load process: loading, running, verifying, dying.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files.

use crate::is_left_to_check_all;
use std::fs;
use std::path::Path;
use std::time::Duration;

use crate::oltp_scripts::{check_every_script, check_the_tool};
use crate::server_support::*;
use crate::workloads::check_every_workload;
use rustix::process::{Pid, Signal, kill_process};
use spindle_lab::record::FileClass;
use spindle_lab::server::Running;
use spindle_load::Second;
use spindle_load::sql::{Session, connect};

/// Index of the kind in [`tpcc::KINDS`].
const DELIVERY: usize = 3;

static BED: Bed = Bed::new(
    "postgresql",
    "postgres",
    &[
        ("shared_buffers", "64MB"),
        ("max_wal_size", "128MB"),
        ("synchronous_commit", "off"),
        ("deadlock_timeout", "3s"),
    ],
);

fn count(session: &mut dyn Session, query: &str) -> u64 {
    let statement = session.prepare(query).unwrap();
    session.first::<(u64,)>(statement, &[]).unwrap().unwrap().0
}

#[test]
fn a_loaded_database_runs_and_stays_consistent_over_a_restart() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    assert_eq!(violations(&*running), Vec::<String>::new());

    let before = running.counters().unwrap();
    let mut client = load_process(&*running, 8);
    client.watch(Duration::from_secs(1), &mut |_| ()).unwrap();
    let summary = client.measure(Duration::from_secs(4), &mut |_| ()).unwrap();
    client.stop().unwrap();
    check_nothing_failed(&summary);
    assert!(summary.kinds.iter().all(|kind| kind.committed > 0), "{:?}", summary.kinds);
    let commit_wait_s = summary.commit_wait_s.unwrap();
    assert!(commit_wait_s > 0.0 && commit_wait_s < summary.terminal_time_s);
    let after = running.counters().unwrap();
    let difference = |name: &str| after[name] - before.get(name).copied().unwrap_or(0.0);
    let total: u64 = summary.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum();
    assert!(difference("pg_stat_database.xact_commit") >= summary.kinds[0].committed as f64);
    assert!(difference("pg_stat_wal.wal_bytes") > total as f64);
    for name in [
        "pg_stat_database.blks_read",
        "pg_stat_database.blks_hit",
        "pg_stat_database.deadlocks",
        "pg_stat_wal.wal_sync",
        "lock_waiters",
        "checkpoint_age_bytes",
    ] {
        assert!(after.contains_key(name), "{name}: {after:?}");
    }
    assert_eq!(violations(&*running), Vec::<String>::new());

    let orders = |running: &dyn Running| {
        count(&mut *connect(&running.endpoint()).unwrap(), "SELECT COUNT(*) FROM orders")
    };
    let orders_before = orders(&*running);
    assert!(orders_before >= u64::from(WAREHOUSES) * 30_000 + summary.kinds[0].committed);
    running.stop(PATIENCE).unwrap();
    let mut running = start(&*server, &instance);
    assert_eq!(orders(&*running), orders_before);

    running.crash().unwrap();
    let running = start(&*server, &instance);
    assert_eq!(orders(&*running), orders_before);
    assert_eq!(violations(&*running), Vec::<String>::new());
}

#[test]
fn the_oltp_scripts_run_and_leave_what_they_should() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let instance = BED.instance(directory.path());
    server.prepare(&instance).unwrap();
    let running = start(&*server, &instance);
    check_every_script(&running.endpoint());
    check_the_tool(&running.endpoint());
}

#[test]
fn the_other_workloads_run_and_leave_what_they_should() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let instance = BED.instance(directory.path());
    server.prepare(&instance).unwrap();
    let running = start(&*server, &instance);
    check_every_workload(&running.endpoint(), &[]);
}

#[test]
fn the_preset_of_tpcc_mysql_has_its_foreign_keys_and_stays_consistent() {
    if is_left_to_check_all() {
        return;
    }
    BED.check_preset_of_tpcc_mysql("public");
}

#[test]
fn every_planted_violation_is_caught() {
    if is_left_to_check_all() {
        return;
    }
    BED.check_every_planted_violation();
}

#[test]
fn a_server_that_dies_under_load_ends_the_load_at_once() {
    BED.check_death_under_load();
}

#[test]
fn a_transaction_that_loses_a_deadlock_is_tried_again() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    let mut opponent = connect(&running.endpoint()).unwrap();
    // Whoever looks for a deadlock first loses it.
    opponent.execute("SET deadlock_timeout = '1h'").unwrap();
    opponent.execute("BEGIN").unwrap();
    opponent.execute("SELECT COUNT(*) FROM (SELECT 1 FROM customer FOR UPDATE) locked").unwrap();

    let mut client = load_process(&*running, 1);
    wait_until("the terminal to wait for a lock", || running.counters().unwrap()["lock_waiters"] == 1.0);
    // Payment holds its warehouse while it waits for its customer, Delivery its new orders.
    for table in ["warehouse", "new_orders"] {
        opponent.execute(&format!("SELECT COUNT(*) FROM (SELECT 1 FROM {table} FOR UPDATE) locked")).unwrap();
    }
    let mut give_way = |_: &Second| opponent.rollback().unwrap();
    let summary = client.measure(Duration::from_secs(3), &mut give_way).unwrap();
    client.stop().unwrap();

    let deadlocks = running.counters().unwrap()["pg_stat_database.deadlocks"];
    // It may lose again: who is rolled back can have its row again before who waited for it is awake.
    assert!(deadlocks >= 1.0);
    assert_eq!(retried(&summary) as f64, deadlocks, "{:?}", summary.kinds);
    check_nothing_failed(&summary);
    assert_eq!(violations(&*running), Vec::<String>::new());
}

#[test]
fn a_transaction_that_meets_a_newer_row_is_tried_again() {
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, mut instance) = BED.copy_of_loaded(directory.path());
    instance.settings.insert("default_transaction_isolation".to_owned(), "repeatable read".to_owned());
    let running = start(&*server, &instance);
    let mut client = load_process(&*running, 8);
    let summary = client.measure(Duration::from_secs(3), &mut |_| ()).unwrap();
    client.stop().unwrap();
    check_nothing_failed(&summary);
    assert!(retried(&summary) > 0, "{:?}", summary.kinds);
    assert_eq!(violations(&*running), Vec::<String>::new());
}

#[test]
fn a_delivery_that_waited_for_another_delivers_what_the_other_left() {
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    let mut other = connect(&running.endpoint()).unwrap();
    let new_orders = "SELECT COUNT(*) FROM new_orders";
    let before = count(&mut *other, new_orders);
    other.execute("BEGIN").unwrap();
    // The oldest of each district, as a delivery takes it.
    other.execute("DELETE FROM new_orders WHERE no_o_id = 2101").unwrap();
    let mut client = workload(1).build().unwrap().connect(&running.endpoint(), 0, SEED).unwrap();
    while client.choose() != DELIVERY {}
    std::thread::scope(|scope| {
        let delivery = scope.spawn(|| client.execute().unwrap());
        wait_until("the delivery to wait", || running.counters().unwrap()["lock_waiters"] == 1.0);
        other.execute("COMMIT").unwrap();
        assert_eq!(delivery.join().unwrap().retries, 0);
    });
    let districts = 10 * u64::from(WAREHOUSES);
    assert_eq!(count(&mut *other, new_orders), before - districts - 10);
}

#[test]
fn the_server_reports_the_users_settings_and_runs_as_nobodys_user() {
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    let names: Vec<String> = instance.settings.keys().cloned().collect();
    assert_eq!(running.settings(&names).unwrap(), instance.settings);
    let own = ["listen_addresses", "restart_after_crash"].map(str::to_owned);
    assert_eq!(running.settings(&own).unwrap().into_values().collect::<Vec<_>>(), ["", "off"]);

    let status = fs::read_to_string(format!("/proc/{}/status", running.process_id())).unwrap();
    assert!(status.starts_with("Name:\tpostgres\n"), "{status}");
    check_runs_as_nobodys_user(running.process_id());
}

#[test]
fn the_log_lies_where_it_is_wanted_wherever_that_is_by_now() {
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
fn an_unknown_setting_is_refused_in_the_servers_words() {
    BED.check_refused(
        "shard_buffers",
        "64MB",
        true,
        "unrecognized configuration parameter \"shard_buffers\"",
    );
}

#[test]
fn a_wrong_value_is_refused_in_the_servers_words_and_with_its_hint() {
    let expect =
        "invalid value for parameter \"wal_sync_method\": \"fast\" | Available values: fsync, fdatasync";
    BED.check_refused("wal_sync_method", "fast", true, expect);
}

#[test]
fn settings_that_do_not_go_together_are_refused_in_the_servers_words() {
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
fn what_only_a_start_can_tell_is_told_in_the_last_words_of_the_log() {
    BED.check_refused(
        "shared_preload_libraries",
        "no_such_library",
        false,
        "could not access file \"no_such_library\"",
    );
}

/// Processes that are at work in a directory.
fn processes(directory: &Path) -> usize {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let places = all.filter_map(|entry| fs::read_link(entry.path().join("cwd")).ok());
    places.filter(|place| place.starts_with(directory)).count()
}

#[test]
fn a_server_ends_with_who_started_it() {
    let Some(server) = BED.server().filter(|_| rustix::process::geteuid().is_root()) else { return };
    let directory = directory();
    let mut instance = BED.instance(directory.path());
    instance.settings.clear();
    server.prepare(&instance).unwrap();
    let mut running = start(&*server, &instance);
    let status = fs::read_to_string(format!("/proc/{}/status", running.process_id())).unwrap();
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t")).unwrap().parse().unwrap();
    assert_ne!(parent, std::process::id() as i32);
    // As the kernel does when we are gone.
    kill_process(Pid::from_raw(parent).unwrap(), Signal::KILL).unwrap();
    wait_until("the server to be gone", || processes(directory.path()) == 0);
    let error = format!("{:#}", running.check_alive(PATIENCE).unwrap_err());
    assert!(error.contains("postgres died (signal: 9 (SIGKILL))"), "{error}");
}

#[test]
fn a_server_dropped_is_a_server_gone_with_all_its_processes() {
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    let running = start(&*server, &instance);
    let mut session = connect(&running.endpoint()).unwrap();
    session.execute("SELECT 1").unwrap();
    assert!(processes(directory.path()) > 5, "{}", processes(directory.path()));
    drop(running);
    assert_eq!(processes(directory.path()), 0);
    assert!(session.execute("SELECT 1").is_err());
}
