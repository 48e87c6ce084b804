//! A real MariaDB under the real load process: loading, running, verifying, dying.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files.

use crate::is_left_to_check_all;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::oltp_scripts::{check_every_script, check_mysqlslap, check_the_tool};
use crate::server_support::*;
use crate::workloads::check_every_workload;
use mysql::prelude::Queryable;
use spindle_base::histogram::decode;
use spindle_lab::run::client::ClientProcess;
use spindle_lab::server::Running;
use spindle_load::sql::mysql::connect;
use spindle_load::workloads::tpcc;
use spindle_load::{RunSpec, Second, Summary, WorkloadSpec};

static BED: Bed = Bed::new(
    "mariadb",
    "mariadbd",
    &[
        ("innodb_buffer_pool_size", "64M"),
        ("innodb_log_file_size", "64M"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("innodb_lock_wait_timeout", "7"),
    ],
);

fn check_summary(summary: &Summary) {
    check_nothing_failed(summary);
    assert!(summary.kinds.iter().all(|kind| kind.committed > 0), "{:?}", summary.kinds);
    assert!(summary.metric.value > 0.0);
    assert!(summary.client_cpu_s > 0.0);
    let commit_wait_s = summary.commit_wait_s.unwrap();
    assert!(commit_wait_s > 0.0 && commit_wait_s < summary.terminal_time_s);
}

#[test]
fn a_loaded_database_runs_and_stays_consistent_over_a_restart() {
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
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
    check_mysqlslap(&running.endpoint());
    crate::passwords::check(&running.endpoint());
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
    check_every_workload(&running.endpoint(), &["innodb", "myisam"]);
}

#[test]
fn the_preset_of_tpcc_mysql_has_its_foreign_keys_and_stays_consistent() {
    if is_left_to_check_all() {
        return;
    }
    BED.check_preset_of_tpcc_mysql("spindle");
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
fn a_server_that_stands_still_is_seen_by_all_that_it_kept_waiting() {
    const PER_S: u32 = 40;
    const STILL: Duration = Duration::from_secs(5);
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    let running = start(&*server, &instance);
    let WorkloadSpec::Tpcc(closed) = workload(4) else { panic!("not TPC-C") };
    let open = WorkloadSpec::Tpcc(tpcc::Spec { rate: Some(PER_S), ..closed });
    let spec = RunSpec::new(running.endpoint(), open, SEED);
    let mut client = ClientProcess::spawn(Path::new(env!("CARGO_BIN_EXE_spindle")), &spec).unwrap();
    client.wait_ready(PATIENCE).unwrap();
    let server_id = running.process_id().to_string();
    let signal = |name: &str| {
        let told = Command::new("kill").args([name, &server_id]).status().unwrap();
        assert!(told.success());
    };
    let summary = std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(500));
            signal("-STOP");
            std::thread::sleep(STILL);
            signal("-CONT");
        });
        client.measure(STILL + Duration::from_secs(3), &mut |_| ()).unwrap()
    });
    client.stop().unwrap();
    check_nothing_failed(&summary);
    let (mut long, mut longest_us) = (0, 0);
    for kind in &summary.kinds {
        let latencies = decode(&kind.histogram).unwrap();
        longest_us = longest_us.max(latencies.max());
        long += latencies
            .iter_recorded()
            .filter(|value| value.value_iterated_to() > 1_000_000)
            .map(|value| value.count_at_value())
            .sum::<u64>();
    }
    // A closed loop would have seen four, one for each terminal; due were 40 a second in the four seconds
    // that were a second before the end.
    let due = 4.0 * f64::from(PER_S);
    assert!(long as f64 > due - 5.0 * due.sqrt(), "{long} of {due}");
    assert!(longest_us as f64 > 0.9 * STILL.as_micros() as f64, "{longest_us} us");
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

/// One terminal against an opponent that has all customers locked. `provoke` is called when the terminal
/// waits for one of them, with locks of its own behind it, and returns when it lost at least once; the
/// opponent gives way in the measured window.
fn check_retries(
    lock_wait_timeout: &str,
    provoke: impl FnOnce(&mut mysql::Conn, &mut mysql::Conn),
) -> Losses {
    let server = BED.server().unwrap();
    let directory = directory();
    let (_loaded, mut instance) = BED.copy_of_loaded(directory.path());
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
    if is_left_to_check_all() {
        return;
    }
    if BED.server().is_none() {
        return;
    }
    let losses = check_retries("60", |monitor, opponent| {
        // Payment holds its warehouse while it waits for its customer, Delivery its new orders. Who holds
        // fewer locks is rolled back, and the opponent holds sixty thousand.
        for table in ["warehouse", "new_orders"] {
            opponent.query_drop(format!("SELECT COUNT(*) FROM {table} FOR UPDATE")).unwrap();
        }
        assert_eq!(Losses::so_far(monitor), Losses { deadlocks: 1, timeouts: 0 });
    });
    assert_eq!(losses, Losses { deadlocks: 1, timeouts: 0 });
}

#[test]
fn a_transaction_that_waits_too_long_for_a_lock_is_tried_again() {
    if BED.server().is_none() {
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
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
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
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
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

    check_runs_as_nobodys_user(running.process_id());
}

#[test]
fn an_unknown_setting_is_refused_in_the_servers_words() {
    BED.check_refused(
        "inodb_flush_method",
        "O_DIRECT",
        true,
        "unknown variable 'inodb_flush_method=O_DIRECT'",
    );
}

#[test]
fn a_wrong_value_is_refused_in_the_servers_words() {
    BED.check_refused("innodb_flush_method", "O_DIRET", true, "Error while setting value 'O_DIRET'");
}

#[test]
fn a_buffer_pool_larger_than_memory_is_refused_before_the_start() {
    BED.check_refused("innodb_buffer_pool_size", "64T", true, "larger than this machine's memory");
}

#[test]
fn a_setting_that_would_make_the_server_public_is_refused() {
    BED.check_refused("bind-address", "0.0.0.0", true, "`bind-address`");
}

#[test]
fn a_server_dropped_is_a_server_gone() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = BED.server() else { return };
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    let running = start(&*server, &instance);
    let process = PathBuf::from(format!("/proc/{}", running.process_id()));
    assert!(process.exists());
    drop(running);
    assert!(!process.exists());
}
