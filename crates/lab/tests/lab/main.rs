//! The tests that drive the program and the library from outside, in one binary: it is linked once, and a
//! slow test runs beside those of other files.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

mod adapter;
mod cli;
mod disk_bench;
mod disk_profile;
mod emulated;
mod emulated_support;
mod failures;
mod file_systems;
mod fileio_run;
mod hostile_results;
mod hostile_server;
mod hostile_storage;
mod hostile_text;
mod layout;
mod mariadb;
mod mysql_new;
mod mysql_old;
mod oltp_scripts;
mod passwords;
mod planted;
mod postgres;
mod postgres_run;
mod replication;
mod report_compare;
mod report_html;
mod report_support;
mod report_text;
mod run_mock;
mod server_support;
mod sqlite_run;
mod stuck_storage;
mod workloads;
mod zfs;
mod zfs_run;

/// Whether `./check` runs, which leaves what is slow to `./check all`. CI leaves nothing.
fn is_left_to_check_all() -> bool {
    let is_left = std::env::var_os("SPINDLE_CHECK").is_some_and(|check| check == "quick")
        && std::env::var_os("CI").is_none();
    if is_left {
        eprintln!("skipped: slow; `./check all` runs it");
    }
    is_left
}
