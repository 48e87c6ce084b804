//! The MySQL of Debian's unstable suite, as `tools/install mysql` unpacks it, under the real load process.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files. These
//! tests are about the differences from MariaDB; `mariadb.rs` has the rest.

use crate::emulated_support::{Bench, scenario};
use crate::oltp_scripts::{check_mysqlslap, check_the_tool};
use crate::server_support::*;
use crate::workloads::check_every_workload;
use crate::{PATIENCE, in_check_all};
use spindle_lab::record::FileClass;
use spindle_lab::server::package::cache_directory;

/// Nothing is measured, so no commit waits for the host's disk: by default each would, for the binary log.
static BED: Bed = Bed::new(
    "mysql",
    &[("innodb_buffer_pool_size", "64M"), ("innodb_flush_log_at_trx_commit", "2"), ("sync_binlog", "0")],
);

/// Its line `mysql_version=` is the version that these tests were written for.
const INSTALL: &str = include_str!("../../../../tools/install");

/// `None` also where the suite has another version, because a release of MySQL must not fail our tests.
fn bed() -> Option<&'static Bed> {
    BED.server()?;
    let pinned = INSTALL.lines().find_map(|line| line.strip_prefix("mysql_version=")).unwrap();
    let note = cache_directory().unwrap().join("mysql/package-version");
    let found = std::fs::read_to_string(note).unwrap_or_default();
    let found = found.trim();
    if found != pinned {
        eprintln!(
            "skipped: MySQL `{found}` is here, and `{pinned}` is pinned; Debian's unstable suite has it no longer"
        );
        return None;
    }
    Some(&BED)
}

#[test]
fn a_loaded_database_runs_and_stays_consistent_over_a_restart() {
    let Some(mut server) = in_check_all(|| bed()?.loaded()) else { return };
    let binary_log = server.instance.data_directory.join("binlog.000001").metadata().unwrap();
    assert!(binary_log.len() < 1 << 20, "the load wrote a second copy of every row");
    // Those of a record's series and of the bottleneck.
    let counters = [
        "Innodb_checkpoint_age",
        "Innodb_history_list_length",
        "Innodb_buffer_pool_pages_dirty",
        "Innodb_buffer_pool_reads",
        "Innodb_buffer_pool_pages_flushed",
        "Innodb_data_fsyncs",
        "Innodb_row_lock_waits",
        "Innodb_row_lock_time",
        "Innodb_log_waits",
    ];
    let counted = server.check_restarts("Com_commit", &counters);
    let checkpoint_age = counted.after["Innodb_checkpoint_age"];
    assert!(checkpoint_age > 0.0, "commits are in the log before they are in the pages");
    server.check_settings_and_user(&[("innodb_buffer_pool_size", "67108864"), ("log_bin", "ON")]);
    server.stop(PATIENCE).unwrap();
}

#[test]
fn tpcc_runs_on_an_emulated_disk() {
    let Some((server, bench)) = in_check_all(|| Some((bed()?.server()?, Bench::new()?))) else { return };
    bench
        .write("test.toml", &scenario(&[("kind = \"mariadb\"", "kind = \"mysql\""), ("\"12M\"", "\"32M\"")]));
    let (trial, measurement) = bench.run_one_tpcc();
    let version = server.version().unwrap();
    assert!(version.starts_with("MySQL "), "{version}");
    assert_eq!(trial.provenance.server_version, version);
    let series: Vec<&str> = measurement.series.server.keys().map(String::as_str).collect();
    assert!(series.contains(&"checkpoint_age_bytes") && series.contains(&"history_list"), "{series:?}");
    bench.assert_clean();
}

#[test]
fn a_server_that_dies_under_load_ends_the_load_at_once() {
    let Some(mut server) = in_check_all(|| BED.loaded()) else { return };
    server.check_death_under_load("mysqld");
}

#[test]
fn wrong_settings_are_refused_before_any_work() {
    let unknown = "mysqld has no such setting; did you mean `innodb_flush_method`?";
    BED.check_refused("inodb_flush_method", "O_DIRECT", true, unknown);
    BED.check_refused("query_cache_size", "1M", true, "mysqld has no such setting");
    BED.check_refused("innodb_flush_method", "O_DIRET", true, "Error while setting value 'O_DIRET'");
    let passed_over = "ignoring option '--innodb-file-per-table' due to invalid value 'perhaps'";
    BED.check_refused("innodb_file_per_table", "perhaps", true, passed_over);
    BED.check_refused("bind-address", "0.0.0.0", true, "`bind-address`");
}

#[test]
fn each_class_of_file_lies_in_its_directory_while_every_workload_runs() {
    let Some(server) = in_check_all(|| bed()?.server()) else { return };
    let directory = directory();
    let mut instance = BED.instance(directory.path());
    instance.class_directories = class_directories(directory.path());
    server.prepare(&instance).unwrap();
    let mut running = start(&*server, &instance);
    let files = |class: FileClass| file_names(&directory.path().join(class.key()));
    assert_eq!(files(FileClass::Redo), ["#innodb_redo"]);
    assert!(files(FileClass::Doublewrite).contains(&"#ib_16384_0.dblwr".to_owned()));
    assert_eq!(files(FileClass::Undo), ["undo_001", "undo_002"]);
    assert!(files(FileClass::Binlog).contains(&"binlog.index".to_owned()), "{:?}", files(FileClass::Binlog));
    assert!(files(FileClass::Temp).contains(&"ibtmp1".to_owned()), "{:?}", files(FileClass::Temp));
    check_the_tool(&running.endpoint());
    check_mysqlslap(&running.endpoint());
    check_every_workload(&running.endpoint(), &["innodb", "myisam"]);
    let apart = ["#ib", "#innodb", "undo", "binlog", "ibtmp"];
    let data = files(FileClass::Data);
    assert!(!data.iter().any(|name| apart.iter().any(|prefix| name.starts_with(prefix))), "{data:?}");
    running.stop(PATIENCE).unwrap();
}
