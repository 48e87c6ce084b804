//! Whole runs of PostgreSQL on emulated disks.

use crate::emulated_support::{Bench, scenario};
use crate::in_check_all;
use crate::server_support::get;
use spindle_lab::record::Measurement;

const SETTINGS: &str = "settings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\" }";
const LAYOUT: &str = "[stacks.log]
profile = \"x25m-80\"
size = \"1 GiB\"
[layouts.apart]
data = \"card\"
redo = \"log\"
[servers.mariadb]";

fn postgres(settings: &str, layout: &str) -> String {
    scenario(&[
        ("[servers.mariadb]", layout),
        ("kind = \"mariadb\"", "kind = \"postgresql\""),
        (SETTINGS, &format!("settings = {{ {settings} }}")),
        ("stack = [\"card\"]", "layout = [\"apart\"]"),
    ])
}

#[test]
fn commits_of_postgresql_reach_the_disk_of_its_log_and_the_database_is_verified() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", &postgres("shared_buffers = \"16MB\", max_wal_size = \"96MB\"", LAYOUT));
    let (trial, measurement) = bench.run_one_tpcc();
    assert!(measurement.cpu.server_s > 0.0, "{:?}", measurement.cpu);
    // Every commit is an fsync of the write-ahead log, and that drive has a volatile cache.
    let log = &measurement.mounts[1];
    assert!(log.emulator.as_ref().unwrap().flushes > 10, "{log:?}");
    assert!(measurement.server_counters["pg_stat_wal.wal_sync"] > 10.0, "{:?}", measurement.server_counters);
    for series in ["checkpoint_age_bytes", "lock_waiters"] {
        assert!(measurement.series.server.contains_key(series), "{:?}", measurement.series.server);
    }
    assert!(has_dead_rows(&measurement), "{:?}", measurement.series.server["dead_rows"]);
    assert!(trial.provenance.server_version.starts_with("PostgreSQL "), "{:?}", trial.provenance);
    assert_eq!(trial.provenance.settings["shared_buffers"], "16MB");
    bench.assert_clean();
}

/// Of the workload's tables, which each update leaves.
fn has_dead_rows(measurement: &Measurement) -> bool {
    measurement.series.server["dead_rows"].iter().any(|rows| *rows > 0.0)
}

#[test]
fn a_fetched_postgresql_reads_past_the_page_cache() {
    let Some([bench, other]) = in_check_all(|| Some([Bench::new()?, Bench::new()?])) else { return };
    get("postgresql-18");
    let reads = |bench: &Bench, version: &str, direct: &str| {
        let settings = format!("shared_buffers = \"16MB\", max_wal_size = \"96MB\"{direct}");
        let text = postgres(&settings, LAYOUT).replace("\"postgresql\"", &format!("\"postgresql\"{version}"));
        // Long enough that even a slow machine has read every page once: from then on only a server that reads
        // past the page cache still reads the disk.
        let text = text.replace("500 ms", "5 s");
        bench.write("test.toml", &text);
        let (trial, measurement) = bench.run_one_tpcc();
        assert!(has_dead_rows(&measurement), "{:?}", measurement.series.server["dead_rows"]);
        bench.assert_clean();
        (trial.provenance.server_version, measurement.per_transaction.reads)
    };
    let (version, direct) = reads(&bench, "\nversion = \"18\"", ", debug_io_direct = \"data\"");
    let (_, cached) = reads(&other, "", "");
    assert!(version.starts_with("PostgreSQL 18."), "{version}");
    assert!(direct > 2.0 * cached, "{direct} {cached}");
}

#[track_caller]
fn check_refused(settings: &str, layout: &str, expect: &str) {
    let bench = Bench::anywhere();
    bench.write("test.toml", &postgres(settings, layout));
    let talk = bench.run_scenario(&[], &[], 2);
    assert!(talk.contains(expect), "{talk}");
    assert!(!bench.records().exists());
}

#[test]
fn classes_of_files_that_postgresql_lacks_are_refused() {
    let size = "max_wal_size = \"96MB\"";
    let with = |class: &str| LAYOUT.replace("redo", class);
    check_refused(
        size,
        &with("doublewrite"),
        "layouts.apart.doublewrite: server `mariadb` has no doublewrite buffer",
    );
    check_refused(size, &with("undo"), "layouts.apart.undo: server `mariadb` has no undo logs");
    check_refused(size, &with("binlog"), "layouts.apart.binlog: server `mariadb` has no binary log");
    check_refused(size, &with("temp"), "layouts.apart.temp: server `mariadb` keeps its temporary files");
}

#[test]
fn a_log_that_would_fill_its_disk_is_refused() {
    check_refused(
        "max_wal_size = \"4GB\"",
        LAYOUT,
        "stacks.log.size: 1.1 GB is too small for the class `redo`",
    );
    // The server's own choice is 1 GB.
    check_refused("", LAYOUT, "stacks.log.size: 1.1 GB is too small for the class `redo`");
}

#[test]
fn a_wrong_setting_is_refused_before_anything_is_loaded() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", &postgres("max_wal_size = \"96MB\", wal_level = \"minimal\"", LAYOUT));
    let talk = bench.run_scenario(&[], &[], 2);
    assert!(talk.contains("servers.mariadb.settings: the server refuses them: WAL streaming"), "{talk}");
    bench.write("test.toml", &postgres("max_wal_size = \"96MB\", work_mem = \"12M\"", LAYOUT));
    let talk = bench.run_scenario(&[], &[], 2);
    assert!(talk.contains("servers.mariadb.settings: the server refuses them: invalid value"), "{talk}");
    // A size that is read here is refused before the server is asked.
    bench.write("test.toml", &postgres("max_wal_size = \"96MB\", shared_buffers = \"12M\"", LAYOUT));
    let talk = bench.run_scenario(&[], &[], 2);
    assert!(talk.contains("servers.mariadb.settings.shared_buffers: `12M` is not a size"), "{talk}");
    assert!(!bench.records().exists());
}
