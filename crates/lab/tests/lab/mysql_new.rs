//! The MySQL of Debian's unstable suite, as `tools/install mysql` unpacks it, under the real load process.
//!
//! One small database is loaded once; each test starts its own server on its own copy of the files. What only
//! MySQL does otherwise than MariaDB is asked here; `mariadb.rs` has the rest.

use crate::is_left_to_check_all;
use std::path::PathBuf;
use std::time::Duration;

use crate::emulated_support::{Bench, scenario};
use crate::oltp_scripts::{check_mysqlslap, check_the_tool};
use crate::server_support::*;
use crate::workloads::check_every_workload;
use mysql::prelude::Queryable;
use spindle_lab::record::FileClass;
use spindle_lab::server::package::cache_directory;
use spindle_lab::server::{Running, Server, Source};
use spindle_load::sql::mysql::connect;

/// Nothing is measured, so no commit waits for the host's disk: by default each would, for the binary log.
static BED: Bed = Bed::of(
    "mysql",
    "mysqld",
    || Source::Installed,
    &[("innodb_buffer_pool_size", "64M"), ("innodb_flush_log_at_trx_commit", "2"), ("sync_binlog", "0")],
);

/// Its line `mysql_version=` is the version that these tests were written for.
const INSTALL: &str = include_str!("../../../../tools/install");

/// `None` also where the suite has another version by now, because a release of MySQL must not fail our
/// tests.
fn server() -> Option<Box<dyn Server>> {
    let server = BED.server()?;
    let pinned = INSTALL.lines().find_map(|line| line.strip_prefix("mysql_version=")).unwrap();
    let note = cache_directory().unwrap().join("mysql/package-version");
    let found = std::fs::read_to_string(note).unwrap_or_default();
    if found.trim() != pinned {
        eprintln!(
            "skipped: MySQL `{}` is here, and `{pinned}` is pinned; Debian's unstable suite has it no longer",
            found.trim()
        );
        return None;
    }
    Some(server)
}

fn orders(running: &dyn Running) -> u64 {
    connect(&running.endpoint()).unwrap().query_first("SELECT COUNT(*) FROM orders").unwrap().unwrap()
}

#[test]
fn a_loaded_database_runs_and_stays_consistent_after_a_crash() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = server() else { return };
    assert!(server.version().unwrap().starts_with("MySQL "), "{:?}", server.version());
    let directory = directory();
    let (_loaded, instance) = BED.copy_of_loaded(directory.path());
    assert!(!instance.data_directory.join("binlog.000001").exists(), "a second copy of every row");
    let mut running = start(&*server, &instance);
    check_runs_as_nobodys_user(running.process_id());
    let before = running.counters().unwrap();
    let mut client = load_process(&*running, 8);
    let summary = client.measure(Duration::from_secs(2), &mut |_| ()).unwrap();
    client.stop().unwrap();
    check_nothing_failed(&summary);
    let after = running.counters().unwrap();
    assert!(after["Com_commit"] - before["Com_commit"] >= summary.kinds[0].committed as f64);
    // What a record's series and the bottleneck look for.
    for name in [
        "Innodb_checkpoint_age",
        "Innodb_history_list_length",
        "Innodb_buffer_pool_pages_dirty",
        "Innodb_buffer_pool_reads",
        "Innodb_buffer_pool_pages_flushed",
        "Innodb_data_fsyncs",
        "Innodb_row_lock_waits",
        "Innodb_row_lock_time",
        "Innodb_log_waits",
    ] {
        assert!(after.contains_key(name), "{name}");
    }
    assert!(after["Innodb_checkpoint_age"] > 0.0, "commits are in the log before they are in the pages");
    let names = ["innodb_buffer_pool_size", "log_bin"].map(str::to_owned);
    let expect = [("innodb_buffer_pool_size", "67108864"), ("log_bin", "ON")];
    let expect = expect.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(running.settings(&names).unwrap(), expect.into());

    let orders_before = orders(&*running);
    running.crash().unwrap();
    let mut running = start(&*server, &instance);
    assert_eq!(orders(&*running), orders_before);
    assert_eq!(violations(&*running), Vec::<String>::new());
    running.stop(PATIENCE).unwrap();
}

#[test]
fn tpcc_runs_on_an_emulated_disk() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = server() else { return };
    let Some(bench) = Bench::new() else { return };
    let changes =
        [("kind = \"mariadb\"", "kind = \"mysql\""), ("\"12M\"", "\"32M\""), ("\"1 s\"", "\"3 s\"")];
    bench.write("test.toml", &scenario(&changes));
    let (trial, measurement) = bench.run_one_tpcc();
    assert_eq!(trial.provenance.server_version, server.version().unwrap());
    let series: Vec<&str> = measurement.series.server.keys().map(String::as_str).collect();
    assert!(series.contains(&"checkpoint_age_bytes") && series.contains(&"history_list"), "{series:?}");
    bench.assert_clean();
}

#[test]
fn a_server_that_dies_under_load_ends_the_load_at_once() {
    if is_left_to_check_all() {
        return;
    }
    BED.check_death_under_load();
}

#[test]
fn wrong_settings_are_refused_in_the_servers_words_before_any_work() {
    let unknown = "unknown variable 'inodb_flush_method=O_DIRECT'";
    BED.check_refused("inodb_flush_method", "O_DIRECT", true, unknown);
    BED.check_refused("query_cache_size", "1M", true, "unknown variable 'query_cache_size=1M'");
    BED.check_refused("innodb_flush_method", "O_DIRET", true, "Error while setting value 'O_DIRET'");
    let passed_over = "ignoring option '--innodb-file-per-table' due to invalid value 'perhaps'";
    BED.check_refused("innodb_file_per_table", "perhaps", true, passed_over);
    BED.check_refused("bind-address", "0.0.0.0", true, "`bind-address`");
}

#[test]
fn classes_of_files_lie_apart_while_every_workload_runs() {
    if is_left_to_check_all() {
        return;
    }
    let Some(server) = server() else { return };
    let directory = directory();
    let mut instance = BED.instance(directory.path());
    let classes =
        [FileClass::Redo, FileClass::Doublewrite, FileClass::Undo, FileClass::Binlog, FileClass::Temp];
    instance.class_directories = classes.map(|class| (class, directory.path().join(class.key()))).into();
    server.prepare(&instance).unwrap();
    let mut running = start(&*server, &instance);
    let names = |directory: PathBuf| {
        let entries = std::fs::read_dir(directory).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let files = |class: FileClass| names(directory.path().join(class.key()));
    assert_eq!(files(FileClass::Redo), ["#innodb_redo"]);
    assert!(files(FileClass::Doublewrite).contains(&"#ib_16384_0.dblwr".to_owned()));
    assert_eq!(files(FileClass::Undo), ["undo_001", "undo_002"]);
    assert!(files(FileClass::Binlog).contains(&"binlog.index".to_owned()), "{:?}", files(FileClass::Binlog));
    assert!(files(FileClass::Temp).contains(&"ibtmp1".to_owned()), "{:?}", files(FileClass::Temp));
    check_the_tool(&running.endpoint());
    check_mysqlslap(&running.endpoint());
    check_every_workload(&running.endpoint(), &["innodb", "myisam"]);
    let apart = ["#ib", "#innodb", "undo", "binlog", "ibtmp"];
    let data = names(instance.data_directory.clone());
    assert!(!data.iter().any(|name| apart.iter().any(|prefix| name.starts_with(prefix))), "{data:?}");
    running.stop(PATIENCE).unwrap();
}
