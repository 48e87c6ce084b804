//! A real PostgreSQL under the real load process: loading, running, verifying, dying.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod oltp_scripts;
mod planted;
mod workloads;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use oltp_scripts::check_every_script;
use planted::check_every_planted_violation;
use rustix::process::{Pid, Signal, kill_process};
use spindle_lab::client::ClientProcess;
use spindle_lab::layout::FileClass;
use spindle_lab::server::{Instance, Refusal, Running, Server, by_kind};
use spindle_load::sql::{Session, connect};
use spindle_load::{RunSpec, Second, Summary, WorkloadSpec, tpcc};
use tempfile::TempDir;
use workloads::check_every_workload;

const SEED: u64 = 20_261_121;
const WAREHOUSES: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(120);
/// Index of the kind in [`tpcc::KINDS`].
const DELIVERY: usize = 3;

/// Not in the test's own temporary directory, which only its owner may enter.
fn directory() -> TempDir {
    let directory = tempfile::Builder::new().prefix("spindle-test-").tempdir().unwrap();
    let open = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    fs::set_permissions(directory.path(), open).unwrap();
    directory
}

fn server() -> Option<Box<dyn Server>> {
    let server = by_kind("postgresql").unwrap();
    if server.version().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI must have postgres");
        eprintln!("skipped: no postgres");
        return None;
    }
    Some(server)
}

fn instance(directory: &Path) -> Instance {
    let settings = [
        ("shared_buffers", "64MB"),
        ("max_wal_size", "128MB"),
        ("synchronous_commit", "off"),
        ("deadlock_timeout", "3s"),
    ];
    Instance {
        data_directory: directory.join("data"),
        class_directories: BTreeMap::new(),
        runtime_directory: directory.join("runtime"),
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
    }
}

fn start(server: &dyn Server, instance: &Instance) -> Box<dyn Running> {
    let mut running = server.start(instance).unwrap();
    running.wait_ready(PATIENCE).unwrap();
    running
}

fn workload(terminals: u32) -> WorkloadSpec {
    WorkloadSpec::Tpcc(tpcc::Spec { warehouses: WAREHOUSES, terminals })
}

/// The loaded and cleanly stopped database that the tests copy. The last test that holds it removes it.
fn loaded() -> Arc<TempDir> {
    static LOADED: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
    let mut shared = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(loaded) = shared.upgrade() {
        return loaded;
    }
    eprintln!("seed {SEED}");
    let loaded = Arc::new(directory());
    let server = server().unwrap();
    let mut instance = instance(loaded.path());
    instance.settings = server.load_settings(&instance.settings);
    assert_eq!(instance.settings["max_wal_size"], "128MB", "it shapes the files");
    server.prepare(&instance).unwrap();
    let mut running = start(&*server, &instance);
    let mut last = None;
    let load = workload(1).build().unwrap();
    load.load(&running.endpoint(), SEED, &mut |progress| last = Some(progress)).unwrap();
    let last = last.unwrap();
    assert_eq!(last.rows_done, last.rows_total);
    running.stop(PATIENCE).unwrap();
    *shared = Arc::downgrade(&loaded);
    loaded
}

/// Keep the first value for as long as the test runs.
fn copy_of_loaded(directory: &Path) -> (Arc<TempDir>, Instance) {
    let loaded = loaded();
    let instance = instance(directory);
    let copied = Command::new("cp")
        .args(["-a", "--reflink=auto"])
        .arg(loaded.path().join("data"))
        .arg(&instance.data_directory)
        .status()
        .unwrap();
    assert!(copied.success());
    (loaded, instance)
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn load_process(running: &dyn Running, terminals: u32) -> ClientProcess {
    let spec = RunSpec { endpoint: running.endpoint(), workload: workload(terminals), seed: SEED };
    let mut client = ClientProcess::spawn(Path::new(env!("CARGO_BIN_EXE_spindle")), &spec).unwrap();
    client.wait_ready(PATIENCE).unwrap();
    client
}

fn violations(running: &dyn Running) -> Vec<String> {
    planted::violations(&*workload(1).build().unwrap(), &running.endpoint())
}

fn check_nothing_failed(summary: &Summary) {
    assert_eq!(summary.errors, BTreeMap::new());
    assert!(summary.kinds.iter().all(|kind| kind.failed == 0), "{:?}", summary.kinds);
}

fn retried(summary: &Summary) -> u64 {
    summary.kinds.iter().map(|kind| kind.retried).sum()
}

fn count(session: &mut dyn Session, query: &str) -> u64 {
    let statement = session.prepare(query).unwrap();
    session.first::<(u64,)>(statement, &[]).unwrap().unwrap().0
}

#[test]
fn a_loaded_database_runs_and_stays_consistent_over_a_restart() {
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    assert_eq!(violations(&*running), Vec::<String>::new());

    let before = running.counters().unwrap();
    let mut client = load_process(&*running, 8);
    client.watch(Duration::from_secs(1), &mut |_| ()).unwrap();
    let summary = client.measure(Duration::from_secs(4), &mut |_| ()).unwrap();
    client.stop().unwrap();
    check_nothing_failed(&summary);
    assert!(summary.kinds.iter().all(|kind| kind.committed > 0), "{:?}", summary.kinds);
    assert!(summary.commit_wait_s > 0.0 && summary.commit_wait_s < summary.terminal_time_s);
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
    let Some(server) = server() else { return };
    let directory = directory();
    let instance = instance(directory.path());
    server.prepare(&instance).unwrap();
    let running = start(&*server, &instance);
    check_every_script(&running.endpoint());
}

#[test]
fn the_other_workloads_run_and_leave_what_they_should() {
    let Some(server) = server() else { return };
    let directory = directory();
    let instance = instance(directory.path());
    server.prepare(&instance).unwrap();
    let running = start(&*server, &instance);
    check_every_workload(&running.endpoint(), &[]);
}

#[test]
fn every_planted_violation_is_caught() {
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let running = start(&*server, &instance);
    check_every_planted_violation(&*workload(1).build().unwrap(), &running.endpoint());
}

#[test]
fn a_server_that_dies_under_load_ends_the_load_at_once() {
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    let mut client = load_process(&*running, 4);
    client.watch(Duration::from_millis(500), &mut |_| ()).unwrap();
    running.crash().unwrap();
    let killed_at = Instant::now();
    let error = client.measure(Duration::from_secs(60), &mut |_| ()).unwrap_err();
    assert!(format!("{error:#}").contains("the load cannot go on"), "{error:#}");
    assert!(killed_at.elapsed() < Duration::from_secs(60), "it did not wait for the end of the window");
    let error = format!("{:#}", running.counters().unwrap_err());
    assert!(error.contains("postgres died"), "{error}");
}

#[test]
fn a_transaction_that_loses_a_deadlock_is_tried_again() {
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
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
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, mut instance) = copy_of_loaded(directory.path());
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
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
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
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    let names: Vec<String> = instance.settings.keys().cloned().collect();
    assert_eq!(running.settings(&names).unwrap(), instance.settings);
    let own = ["listen_addresses", "restart_after_crash"].map(str::to_owned);
    assert_eq!(running.settings(&own).unwrap().into_values().collect::<Vec<_>>(), ["", "off"]);

    let status = fs::read_to_string(format!("/proc/{}/status", running.process_id())).unwrap();
    assert!(status.starts_with("Name:\tpostgres\n"), "{status}");
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    let user: u32 = user.split_whitespace().next().unwrap().parse().unwrap();
    if rustix::process::geteuid().is_root() {
        assert!((61_184..=65_519).contains(&user), "{user}");
        let accounts = fs::read_to_string("/etc/passwd").unwrap();
        let id = user.to_string();
        assert!(accounts.lines().all(|line| line.split(':').nth(2) != Some(id.as_str())));
    }
}

#[test]
fn the_log_lies_where_it_is_wanted_wherever_that_is_by_now() {
    let Some(server) = server() else { return };
    let directory = directory();
    let mut instance = instance(directory.path());
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

/// Starts with one more setting; the sentence must name it.
#[track_caller]
fn check_refused(name: &str, value: &str, before_any_work: bool, expect: &str) {
    let Some(server) = server() else { return };
    let directory = directory();
    let mut instance = instance(directory.path());
    if !before_any_work {
        server.prepare(&instance).unwrap();
    }
    instance.settings.insert(name.to_owned(), value.to_owned());
    let error = match server.start(&instance) {
        Err(error) => error,
        Ok(mut running) => running.wait_ready(PATIENCE).unwrap_err(),
    };
    assert!(format!("{error:#}").contains(expect), "{error:#}");
    assert_eq!(error.downcast_ref::<Refusal>().is_some(), before_any_work, "{error:#}");
    assert_eq!(instance.data_directory.exists(), !before_any_work);
}

#[test]
fn an_unknown_setting_is_refused_in_the_servers_words() {
    check_refused("shard_buffers", "64MB", true, "unrecognized configuration parameter \"shard_buffers\"");
}

#[test]
fn a_wrong_value_is_refused_in_the_servers_words_and_with_its_hint() {
    let expect =
        "invalid value for parameter \"wal_sync_method\": \"fast\" | Available values: fsync, fdatasync";
    check_refused("wal_sync_method", "fast", true, expect);
}

#[test]
fn settings_that_do_not_go_together_are_refused_in_the_servers_words() {
    check_refused("wal_level", "minimal", true, "requires wal_level \"replica\" or \"logical\"");
}

#[test]
fn buffers_larger_than_memory_are_refused_before_the_start() {
    check_refused("shared_buffers", "7TB", true, "larger than this machine's memory");
}

#[test]
fn a_setting_that_would_make_the_server_public_is_refused() {
    check_refused("Listen_Addresses", "*", true, "`Listen_Addresses`: the server is private");
}

#[test]
fn what_only_a_start_can_tell_is_told_in_the_last_words_of_the_log() {
    check_refused(
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
    let Some(server) = server().filter(|_| rustix::process::geteuid().is_root()) else { return };
    let directory = directory();
    let mut instance = instance(directory.path());
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
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let running = start(&*server, &instance);
    let mut session = connect(&running.endpoint()).unwrap();
    session.execute("SELECT 1").unwrap();
    assert!(processes(directory.path()) > 5, "{}", processes(directory.path()));
    drop(running);
    assert_eq!(processes(directory.path()), 0);
    assert!(session.execute("SELECT 1").is_err());
}
