//! The tests that drive the program and the library from outside, in one binary: it is linked once, and a
//! slow test runs beside those of other files.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

mod adapter;
mod advise;
mod bad_input;
mod bottleneck_cells;
mod bottlenecks;
mod clean;
mod cli;
mod cpu_affinity;
mod dilation;
mod disk_bench;
mod disk_list;
mod disk_profile;
mod emulated;
mod emulated_support;
mod events;
mod failures;
mod file_systems;
mod fileio_run;
mod hostile_results;
mod hostile_server;
mod hostile_storage;
mod hostile_text;
mod killed_runs;
mod layout;
mod mariadb;
mod mistakes;
mod mysql_new;
mod mysql_old;
mod new;
mod observe;
mod oltp_scripts;
mod passwords;
mod plan;
mod planted;
mod postgres;
mod postgres_run;
mod published;
mod query;
mod query_load;
mod query_serve;
mod query_serve_programs;
mod query_shards;
mod query_statements;
mod query_support;
mod query_writes;
mod records_data;
mod replication;
mod report_compare;
mod report_html;
mod report_size;
mod report_support;
mod report_sweep;
mod report_text;
mod report_verdict;
mod run_mock;
mod sampling;
mod serve_support;
mod server_memory;
mod server_support;
mod shards_run;
mod sqlite_run;
mod stuck_storage;
mod study;
mod trace;
mod two_runs;
mod watch;
mod workloads;
mod zfs;
mod zfs_run;

use std::time::{Duration, Instant};

/// No measurement depends on it: it only keeps a test from waiting for ever.
const PATIENCE: Duration = Duration::from_secs(120);

#[track_caller]
fn wait_until(event: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "waited too long for {event}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends a test that cannot run here. CI must be able to run all tests.
#[track_caller]
fn skip<T>(reason: &str) -> Option<T> {
    assert!(std::env::var_os("CI").is_none(), "CI must run this test: {reason}");
    eprintln!("skipped: {reason}");
    None
}

/// What a slow test begins with. `./check` leaves slow tests to `./check all`, and CI leaves none.
fn in_check_all<T>(make: impl FnOnce() -> Option<T>) -> Option<T> {
    let is_quick = std::env::var_os("SPINDLE_CHECK").is_some_and(|check| check == "quick");
    if is_quick && std::env::var_os("CI").is_none() {
        return skip("slow; `./check all` runs it");
    }
    make()
}
