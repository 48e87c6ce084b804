//! Whole runs of SQLite, which has no server, on emulated disks.

mod emulated_support;

use emulated_support::{Bench, scenario};

#[test]
fn commits_of_sqlite_reach_the_disk_and_the_database_is_verified() {
    let Some(bench) = Bench::new() else { return };
    let settings = "settings = { journal_mode = \"WAL\", synchronous = \"FULL\", cache_size = \"-8192\" }";
    let text = scenario(&[
        ("iodrive-160", "x25m-80"),
        ("kind = \"mariadb\"", "kind = \"sqlite\""),
        ("settings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\" }", settings),
    ]);
    bench.write("test.toml", &text);
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 1, "{talk}");
    let measurement = trials[0].measurement.as_ref().unwrap_or_else(|| panic!("{:?}", trials[0].error));
    assert!(measurement.verification.len() >= 12, "{:?}", measurement.verification);
    assert!(measurement.verification.iter().all(|check| check.passed), "{:?}", measurement.verification);
    assert!(measurement.headline.value > 0.0, "{:?}", measurement.headline);
    // Every commit is an fsync of the write-ahead log, and the drive has a volatile cache.
    assert!(measurement.emulator.as_ref().unwrap().flushes > 10, "{:?}", measurement.emulator);
}
