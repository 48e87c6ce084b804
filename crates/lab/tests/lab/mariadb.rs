//! A real MariaDB under the real load process: loading, running, verifying, dying.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files.

use std::process::Command;
use std::time::Duration;

use crate::in_check_all;
use crate::oltp_scripts::{check_every_script, check_mysqlslap, check_the_tool};
use crate::server_support::*;
use crate::wait_until;
use crate::workloads::check_every_workload;
use mysql::prelude::Queryable;
use spindle_base::histogram::decode;
use spindle_lab::server::Running;
use spindle_load::sql::mysql::connect;
use spindle_load::workloads::tpcc;
use spindle_load::{RunSpec, WorkloadSpec};

static BED: Bed = Bed::new(
    "mariadb",
    &[
        ("innodb_buffer_pool_size", "64M"),
        ("innodb_log_file_size", "64M"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("innodb_lock_wait_timeout", "7"),
    ],
);

#[test]
fn a_loaded_database_runs_and_stays_consistent_over_a_restart() {
    let Some(mut server) = BED.loaded() else { return };
    let counters = [
        "Innodb_buffer_pool_reads",
        "Innodb_buffer_pool_pages_dirty",
        "Innodb_row_lock_time",
        "Innodb_history_list_length",
        "Innodb_checkpoint_age",
        "Innodb_data_reads",
        "Innodb_data_writes",
        "Innodb_data_fsyncs",
    ];
    server.check_restarts("Com_commit", &counters);
}

#[test]
fn a_cache_for_all_data_is_filled_and_a_smaller_one_is_left() {
    let Some(mut server) = in_check_all(|| BED.loaded_with(&[("innodb_buffer_pool_size", "512M")])) else {
        return;
    };
    const SESSIONS: &str = "SELECT COUNT(*) FROM information_schema.processlist WHERE host <> ''";
    server.check_fills_its_cache("Innodb_pages_read", 16_384.0, SESSIONS);
    BED.loaded().unwrap().check_leaves_its_cache("Innodb_pages_read");
}

#[test]
fn every_oltp_script_runs_and_its_database_is_verified() {
    let Some(server) = in_check_all(|| BED.empty()) else { return };
    check_every_script(&server.endpoint());
    check_the_tool(&server.endpoint());
    check_mysqlslap(&server.endpoint());
    crate::passwords::check(&server.endpoint());
}

#[test]
fn every_other_workload_runs_and_its_database_is_verified() {
    let Some(server) = in_check_all(|| BED.empty()) else { return };
    check_every_workload(&server.endpoint(), &["innodb", "myisam"]);
}

#[test]
fn the_preset_of_tpcc_mysql_has_its_foreign_keys_and_stays_consistent() {
    let Some(server) = in_check_all(|| BED.empty()) else { return };
    server.check_preset_of_tpcc_mysql("spindle");
}

#[test]
fn every_planted_violation_is_caught() {
    let Some(server) = in_check_all(|| BED.loaded()) else { return };
    server.check_every_planted_violation();
}

#[test]
fn a_server_that_dies_under_load_ends_the_load_at_once() {
    let Some(mut server) = BED.loaded() else { return };
    server.check_death_under_load("mariadbd");
}

#[test]
fn the_open_loop_counts_every_transaction_that_waited_for_a_stopped_server() {
    const PER_S: u32 = 40;
    const STILL: Duration = Duration::from_secs(5);
    let Some(server) = in_check_all(|| BED.loaded()) else { return };
    let WorkloadSpec::Tpcc(closed) = workload(4) else { panic!("not TPC-C") };
    let open = WorkloadSpec::Tpcc(tpcc::Spec { rate: Some(PER_S), ..closed });
    let mut client = ready_client(&RunSpec::new(server.endpoint(), open, SEED));
    let server_id = server.process_id().to_string();
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
    // A closed loop would have four, one for each terminal. In the open loop, 40 a second were due in the
    // four seconds that ended a second before the server went on.
    let due = 4.0 * f64::from(PER_S);
    assert!(long as f64 > due - 5.0 * due.sqrt(), "{long} of {due}");
    assert!(longest_us as f64 > 0.9 * STILL.as_micros() as f64, "{longest_us} us");
}

/// Transactions that the server has rolled back, by its own counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Losses {
    deadlocks: u64,
    timeouts: u64,
}

impl Losses {
    fn of(server: &dyn Running) -> Losses {
        let mut monitor = connect(&server.endpoint()).unwrap();
        let mut count = |name: &str| -> u64 {
            let query = format!(
                "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME = '{name}' AND ENABLED"
            );
            monitor.query_first(query).unwrap().unwrap()
        };
        Losses { deadlocks: count("lock_deadlocks"), timeouts: count("lock_timeouts") }
    }
}

const LOCK_ALL_CUSTOMERS: [&str; 2] =
    ["BEGIN", "SELECT COUNT(c_data) FROM customer FORCE INDEX (PRIMARY) FOR UPDATE"];
const WAITING: &str = "Innodb_row_lock_current_waits";

#[test]
fn a_transaction_that_loses_a_deadlock_is_tried_again() {
    let wait_long = [("innodb_lock_wait_timeout", "60")];
    let Some(mut server) = in_check_all(|| BED.loaded_with(&wait_long)) else { return };
    let one = Losses { deadlocks: 1, timeouts: 0 };
    let retried = server.check_retries(&LOCK_ALL_CUSTOMERS, WAITING, |server, opponent| {
        // Payment holds its warehouse while it waits for its customer, Delivery its new orders. The server
        // rolls back the transaction with fewer locks, and the opponent holds sixty thousand.
        for table in ["warehouse", "new_orders"] {
            opponent.read(&format!("SELECT COUNT(*) FROM {table} FOR UPDATE")).unwrap();
        }
        assert_eq!(Losses::of(server), one);
    });
    assert_eq!((retried, Losses::of(&*server)), (1, one));
}

#[test]
fn a_transaction_that_waits_too_long_for_a_lock_is_tried_again() {
    let Some(mut server) = BED.loaded_with(&[("innodb_lock_wait_timeout", "1")]) else { return };
    // The server undoes the statement alone. The retry must not repeat the statements before it.
    let retried = server.check_retries(&LOCK_ALL_CUSTOMERS, WAITING, |server, _| {
        wait_until("a lock wait that timed out", || Losses::of(server).timeouts > 0);
    });
    assert_eq!(Losses::of(&*server), Losses { deadlocks: 0, timeouts: retried });
}

#[test]
fn a_transaction_that_meets_a_newer_row_is_tried_again() {
    let newer_rows_fail = [("innodb_snapshot_isolation", "ON")];
    let Some(server) = in_check_all(|| BED.loaded_with(&newer_rows_fail)) else { return };
    server.check_newer_rows();
}

#[test]
fn the_server_reports_the_users_settings_and_runs_as_a_user_without_an_account() {
    let Some(mut server) = in_check_all(|| BED.loaded()) else { return };
    server.check_settings_and_user(&[
        ("innodb_buffer_pool_size", "67108864"),
        ("innodb_flush_log_at_trx_commit", "2"),
        ("innodb_lock_wait_timeout", "7"),
        ("innodb_log_file_size", "67108864"),
    ]);
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_that_there_is() {
    BED.check_refused(
        "inodb_flush_method",
        "O_DIRECT",
        true,
        "mariadbd has no such setting; did you mean `innodb_flush_method`?",
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
fn a_dropped_server_has_ended() {
    let Some(server) = in_check_all(|| BED.loaded()) else { return };
    server.check_dropped(1);
}
