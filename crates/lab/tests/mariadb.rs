//! A real MariaDB under the real load process: loading, running, verifying, dying.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files.

#![expect(clippy::unwrap_used, reason = "the helpers of a test fail as the test does")]

mod oltp_scripts;
mod planted;
mod workloads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use oltp_scripts::check_every_script;
use planted::check_every_planted_violation;
use spindle_lab::client::ClientProcess;
use spindle_lab::server::{Instance, Refusal, Running, Server, by_kind};
use spindle_load::runner::histogram::decode;
use spindle_load::sql::mysql::connect;
use spindle_load::{RunSpec, Second, Summary, WorkloadSpec, tpcc};
use tempfile::TempDir;
use workloads::check_every_workload;

const SEED: u64 = 20_261_121;
const WAREHOUSES: u32 = 2;
const PATIENCE: Duration = Duration::from_secs(120);

/// Not in the test's own temporary directory, which only its owner may enter.
fn directory() -> TempDir {
    let directory = tempfile::Builder::new().prefix("spindle-test-").tempdir().unwrap();
    let open = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(directory.path(), open).unwrap();
    directory
}

fn server() -> Option<Box<dyn Server>> {
    let server = by_kind("mariadb").unwrap();
    if server.version().is_err() {
        assert!(std::env::var_os("CI").is_none(), "CI must have mariadbd");
        eprintln!("skipped: no mariadbd");
        return None;
    }
    Some(server)
}

fn instance(directory: &Path) -> Instance {
    let settings = [
        ("innodb_buffer_pool_size", "64M"),
        ("innodb_log_file_size", "64M"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("innodb_lock_wait_timeout", "7"),
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
    let instance = instance(loaded.path());
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

fn check_summary(summary: &Summary) {
    check_nothing_failed(summary);
    assert!(summary.kinds.iter().all(|kind| kind.committed > 0), "{:?}", summary.kinds);
    assert!(summary.headline_value > 0.0);
    assert!(summary.client_cpu_s > 0.0);
    assert!(summary.commit_wait_s > 0.0 && summary.commit_wait_s < summary.terminal_time_s);
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
    assert_ne!(client.process_id(), std::process::id());
    let mut seconds = 0;
    client.watch(Duration::from_secs(2), &mut |second| seconds += u32::from(!second.measured)).unwrap();
    let mut measured = 0;
    let summary =
        client.measure(Duration::from_secs(4), &mut |second| measured += second.transactions).unwrap();
    client.stop().unwrap();
    assert!(seconds >= 1);
    check_summary(&summary);
    let total: u64 = summary.kinds.iter().map(|kind| kind.committed + kind.rolled_back).sum();
    assert!(measured > 0 && measured <= total);
    let after = running.counters().unwrap();
    assert!(after["Com_commit"] - before["Com_commit"] >= summary.kinds[0].committed as f64);
    for name in [
        "Innodb_buffer_pool_reads",
        "Innodb_buffer_pool_pages_dirty",
        "Innodb_row_lock_time",
        "Innodb_history_list_length",
        "Innodb_checkpoint_age",
        "Innodb_data_reads",
        "Innodb_data_writes",
        "Innodb_data_fsyncs",
    ] {
        assert!(after.contains_key(name), "{name}");
    }
    assert_eq!(violations(&*running), Vec::<String>::new());

    let orders = |running: &dyn Running| -> u64 {
        connect(&running.endpoint()).unwrap().query_first("SELECT COUNT(*) FROM orders").unwrap().unwrap()
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
    check_every_workload(&running.endpoint(), &["innodb", "myisam"]);
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
    assert!(error.contains("mariadbd died"), "{error}");
}

/// What the server made transactions lose, as it counts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Losses {
    deadlocks: u64,
    timeouts: u64,
}

impl Losses {
    fn so_far(monitor: &mut mysql::Conn) -> Losses {
        let mut count = |name: &str| -> u64 {
            let query = format!(
                "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = '{name}' AND ENABLED"
            );
            monitor.query_first(query).unwrap().unwrap()
        };
        Losses { deadlocks: count("lock_deadlocks"), timeouts: count("lock_timeouts") }
    }
}

/// One terminal against an opponent that has all customers locked. `provoke` is called when the terminal waits for one of them, with
/// locks of its own behind it, and returns when it lost at least once; the opponent gives way in the measured window.
fn check_retries(
    lock_wait_timeout: &str,
    provoke: impl FnOnce(&mut mysql::Conn, &mut mysql::Conn),
) -> Losses {
    let server = server().unwrap();
    let directory = directory();
    let (_loaded, mut instance) = copy_of_loaded(directory.path());
    instance.settings.insert("innodb_lock_wait_timeout".to_owned(), lock_wait_timeout.to_owned());
    let running = start(&*server, &instance);
    let mut monitor = connect(&running.endpoint()).unwrap();
    let mut opponent = connect(&running.endpoint()).unwrap();
    opponent.query_drop("BEGIN").unwrap();
    opponent.query_drop("SELECT COUNT(c_data) FROM customer FORCE INDEX (PRIMARY) FOR UPDATE").unwrap();

    let mut client = load_process(&*running, 1);
    wait_until("the terminal to wait for a lock", || {
        let waits = "SHOW GLOBAL STATUS LIKE 'Innodb_row_lock_current_waits'";
        monitor.query_first::<(String, u64), _>(waits).unwrap().unwrap().1 == 1
    });
    provoke(&mut monitor, &mut opponent);
    let mut give_way = |_: &Second| opponent.query_drop("ROLLBACK").unwrap();
    let summary = client.measure(Duration::from_secs(3), &mut give_way).unwrap();
    client.stop().unwrap();

    let losses = Losses::so_far(&mut monitor);
    let retried: u64 = summary.kinds.iter().map(|kind| kind.retried).sum();
    assert_eq!(retried, losses.deadlocks + losses.timeouts, "{losses:?}: {:?}", summary.kinds);
    check_nothing_failed(&summary);
    let longest_us = summary.kinds.iter().map(|kind| decode(&kind.histogram).unwrap().max()).max().unwrap();
    assert!(longest_us >= 1_000_000, "{longest_us} us: attempts that were lost belong to the latency");
    assert_eq!(violations(&*running), Vec::<String>::new());
    losses
}

#[test]
fn a_transaction_that_loses_a_deadlock_is_tried_again() {
    if server().is_none() {
        return;
    }
    let losses = check_retries("60", |monitor, opponent| {
        // Payment holds its warehouse while it waits for its customer, Delivery its new orders. Who holds fewer locks is rolled
        // back, and the opponent holds sixty thousand.
        for table in ["warehouse", "new_orders"] {
            opponent.query_drop(format!("SELECT COUNT(*) FROM {table} FOR UPDATE")).unwrap();
        }
        assert_eq!(Losses::so_far(monitor), Losses { deadlocks: 1, timeouts: 0 });
    });
    assert_eq!(losses, Losses { deadlocks: 1, timeouts: 0 });
}

#[test]
fn a_transaction_that_waits_too_long_for_a_lock_is_tried_again() {
    if server().is_none() {
        return;
    }
    // The server undoes the statement only; what the transaction did before must not be done twice.
    let losses = check_retries("1", |monitor, _| {
        wait_until("a lock wait that timed out", || Losses::so_far(monitor).timeouts > 0);
    });
    assert_eq!(losses.deadlocks, 0);
}

#[test]
fn a_transaction_that_meets_a_newer_row_is_tried_again() {
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let running = start(&*server, &instance);
    connect(&running.endpoint()).unwrap().query_drop("SET GLOBAL innodb_snapshot_isolation = ON").unwrap();
    let mut client = load_process(&*running, 8);
    let summary = client.measure(Duration::from_secs(3), &mut |_| ()).unwrap();
    client.stop().unwrap();
    check_nothing_failed(&summary);
    let retried: u64 = summary.kinds.iter().map(|kind| kind.retried).sum();
    assert!(retried > 0, "{:?}", summary.kinds);
    assert_eq!(violations(&*running), Vec::<String>::new());
}

#[test]
fn the_server_reports_the_users_settings_and_runs_as_nobodys_user() {
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let mut running = start(&*server, &instance);
    let names: Vec<String> = instance.settings.keys().cloned().collect();
    let reported = running.settings(&names).unwrap();
    let expect = [
        ("innodb_buffer_pool_size", "67108864"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("innodb_lock_wait_timeout", "7"),
        ("innodb_log_file_size", "67108864"),
    ];
    assert_eq!(reported, expect.map(|(name, value)| (name.to_owned(), value.to_owned())).into());

    let status = std::fs::read_to_string(format!("/proc/{}/status", running.process_id())).unwrap();
    let user = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    let user: u32 = user.split_whitespace().next().unwrap().parse().unwrap();
    if rustix::process::geteuid().is_root() {
        assert!((61_184..=65_519).contains(&user), "{user}");
        let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
        let id = user.to_string();
        assert!(accounts.lines().all(|line| line.split(':').nth(2) != Some(id.as_str())));
    }
}

/// Starts with one more setting; the sentence must name it.
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
    check_refused("inodb_flush_method", "O_DIRECT", true, "unknown variable 'inodb_flush_method=O_DIRECT'");
}

#[test]
fn a_wrong_value_is_refused_in_the_servers_words() {
    check_refused("innodb_flush_method", "O_DIRET", true, "Error while setting value 'O_DIRET'");
}

#[test]
fn a_buffer_pool_larger_than_memory_is_refused_before_the_start() {
    check_refused("innodb_buffer_pool_size", "64T", true, "larger than this machine's memory");
}

#[test]
fn a_setting_that_would_make_the_server_public_is_refused() {
    check_refused("bind-address", "0.0.0.0", true, "`bind-address`");
}

#[test]
fn a_server_dropped_is_a_server_gone() {
    let Some(server) = server() else { return };
    let directory = directory();
    let (_loaded, instance) = copy_of_loaded(directory.path());
    let running = start(&*server, &instance);
    let process = PathBuf::from(format!("/proc/{}", running.process_id()));
    assert!(process.exists());
    drop(running);
    assert!(!process.exists());
}
