//! A server in production: its record, made of counters alone, against the account of the clients that used it.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use spindle_lab::record::{FileClass, Measurement, RecordSource, Trial};
use spindle_lab::report;
use spindle_load::workloads::oltp::{Distribution, Script, Spec};
use spindle_load::{Endpoint, RunSpec, Summary, WorkloadSpec};
use spindle_model::{Operation, Traced};

use crate::cli::run_in;
use crate::emulated_support::Bench;
use crate::in_check_all;
use crate::server_support::*;

static MARIADB: Bed =
    Bed::new("mariadb", &[("innodb_buffer_pool_size", "64M"), ("innodb_flush_log_at_trx_commit", "2")]);
static POSTGRESQL: Bed = Bed::new("postgresql", &[("shared_buffers", "64MB"), ("synchronous_commit", "off")]);

const WINDOW: Duration = Duration::from_secs(12);
/// Of the clients' own account. The two windows are not the same to the millisecond.
const WITHIN: f64 = 0.1;
/// On a busy machine the load may change within a window.
const TRIES: u32 = 3;

/// As a user names it.
fn url(endpoint: &Endpoint) -> String {
    match endpoint {
        Endpoint::MysqlSocket { path, .. } => format!("socket:{}", path.display()),
        Endpoint::PostgresSocket { directory, .. } => format!("postgres:{}", directory.display()),
        other => panic!("{other:?}"),
    }
}

fn observe(directory: &Path, endpoint: &Endpoint, more: &[&str]) -> Child {
    let window = format!("{}s", WINDOW.as_secs());
    Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(["observe", "--server", &url(endpoint), "--for", &window])
        .args(more)
        .current_dir(directory)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[track_caller]
fn recorded(directory: &Path, output: &Output) -> Trial {
    let talk = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{talk}");
    let records = report::read(&directory.join("observed.jsonl")).unwrap();
    assert_eq!(records.header.source, Some(RecordSource::Production));
    assert!(String::from_utf8_lossy(&output.stdout).contains("record: observed.jsonl"), "{talk}");
    records.trials[0].clone()
}

/// The clients' account, and the record of the same time.
fn both(server: &OwnServer, workload: WorkloadSpec, more: &[&str]) -> (Summary, Trial) {
    let directory = tempfile::tempdir().unwrap();
    let mut client = ready_client(&RunSpec::new(server.endpoint(), workload, SEED));
    client.watch(Duration::from_secs(1), &mut |_| ()).unwrap();
    let observer = observe(directory.path(), &server.endpoint(), more);
    let summary = client.measure(WINDOW, &mut |_| ()).unwrap();
    let trial = recorded(directory.path(), &observer.wait_with_output().unwrap());
    client.stop().unwrap();
    (summary, trial)
}

/// Observes until the record agrees with the clients about the rate.
#[track_caller]
fn check_rate(server: &OwnServer, workload: &WorkloadSpec, more: &[&str]) -> Trial {
    let mut told = Vec::new();
    for _ in 0..TRIES {
        let (summary, trial) = both(server, workload.clone(), more);
        let by_clients = transactions(&summary) as f64 / summary.duration_s;
        let observed = measured(&trial).metric.value;
        told.push((by_clients, observed));
        if (observed / by_clients - 1.0).abs() <= WITHIN {
            return trial;
        }
    }
    panic!("by the clients, and as observed: {told:?}");
}

fn measured(trial: &Trial) -> &Measurement {
    trial.measurement.as_ref().unwrap()
}

/// What every record has whose server is on this machine.
#[track_caller]
fn check_whole(trial: &Trial, counted_by: &str) {
    let measurement = measured(trial);
    let production = measurement.production.as_ref().unwrap();
    assert_eq!(production.counted_by, counted_by);
    assert!(production.sessions_at_work.unwrap() > 0.0, "{production:?}");
    assert!(measurement.latency.is_unknown() && measurement.transactions[0].latency.is_unknown());
    assert!(measurement.cpu.server_s > 0.0 && measurement.cpu.busy > 0.0, "{:?}", measurement.cpu);
    let seconds = measurement.series.transactions_per_s.len();
    assert_eq!(seconds as u64, WINDOW.as_secs());
    let mean = spindle_stats::mean(&measurement.series.transactions_per_s).unwrap();
    assert!((mean / measurement.metric.value - 1.0).abs() < 0.05, "{mean}");
    let sampling_s = measurement.cpu.sampling_s.unwrap();
    println!("{counted_by}: {:.2} % of a core for sampling", sampling_s / measurement.duration_s * 100.0);
}

#[test]
fn what_mariadb_does_under_tpcc_is_recorded_as_its_clients_count_it() {
    let Some(server) = in_check_all(|| MARIADB.loaded()) else { return };
    let trial = check_rate(&server, &workload(4), &[]);
    check_whole(&trial, "COMMIT and ROLLBACK");
    let measurement = measured(&trial);
    assert_eq!(trial.cell, "production/mariadb");
    assert!(trial.provenance.server_version.contains("MariaDB"), "{:?}", trial.provenance);
    assert_eq!(trial.provenance.settings["innodb_buffer_pool_size"], "67108864");
    assert!(!trial.provenance.settings.contains_key("datadir"), "{:?}", trial.provenance.settings);
    assert_eq!(measurement.flushed_at_commit, Some(Vec::<FileClass>::new()));
    assert!(measurement.server_counters["Innodb_lsn_current"] > 0.0, "{:?}", measurement.server_counters);
    assert!(measurement.production.as_ref().unwrap().has_whole_checkpoint.is_some());
}

#[test]
fn selects_that_are_transactions_of_their_own_are_counted() {
    let select = WorkloadSpec::Oltp(Spec {
        script: Script::PointSelect,
        tables: 1,
        rows: 5_000,
        distribution: Distribution::Uniform,
        rand_zipfian_exp: None,
        terminals: 2,
        autocommit: true,
        point_selects: 10,
        range_size: 100,
        rate: None,
    });
    let exactly = [("innodb_monitor_enable", "module_trx")];
    let changes_and_selects = "changes and SELECTs, each a transaction of its own";
    let beside_commits = "COMMIT, ROLLBACK and SELECT";
    for (settings, counted_by) in [
        (&exactly[..], &["InnoDB's metrics of commits"][..]),
        (&[][..], &[changes_and_selects, beside_commits][..]),
    ] {
        let Some(server) = in_check_all(|| MARIADB.loaded_with(settings)) else { return };
        select.build().unwrap().load(&server.endpoint(), SEED, &mut |_| Ok(())).unwrap();
        let trial = check_rate(&server, &select, &[]);
        let found = &measured(&trial).production.as_ref().unwrap().counted_by;
        assert!(counted_by.contains(&found.as_str()), "{found}");
    }
}

#[test]
fn what_postgresql_does_under_tpcc_is_recorded_as_its_clients_count_it() {
    let Some(server) = in_check_all(|| POSTGRESQL.loaded()) else { return };
    // Other servers of the tests have the same name and age.
    let process = server.process_id().to_string();
    let trial = check_rate(&server, &workload(4), &["--pid", &process, "--quiet"]);
    check_whole(&trial, "pg_stat_database");
    let measurement = measured(&trial);
    assert_eq!(trial.cell, "production/postgresql");
    assert!(trial.provenance.server_version.starts_with("PostgreSQL "), "{:?}", trial.provenance);
    assert_eq!(trial.provenance.settings["shared_buffers"], "64MB");
    assert_eq!(measurement.flushed_at_commit, Some(Vec::<FileClass>::new()));
    assert!(measurement.server_counters["pg_stat_wal.wal_bytes"] > 0.0, "{:?}", measurement.server_counters);
}

/// Requests that a disk's emulator has answered: reads, writes, flushes.
fn answered(bench: &Bench) -> [f64; 3] {
    let statistics = &bench.json(&["disk", "status", "traced", "--json"])[0]["statistics"];
    ["read", "write", "flush"].map(|operation| statistics[operation]["count"].as_f64().unwrap())
}

/// A server on an emulated disk, whose emulator counts what the kernel's own events must tell.
#[test]
fn a_block_trace_has_the_requests_that_reach_the_disk() {
    if !Path::new("/sys/kernel/tracing").exists() {
        return check_refused("--trace loop0", "spindle: --trace: this kernel has no tracing");
    }
    let Some(bench) = in_check_all(Bench::new) else { return };
    let Some(mariadb) = MARIADB.server() else { return };
    let disk = bench.up("x25m-80", "traced", &[]);
    let text = |key: &str| disk[key].as_str().unwrap().to_owned();
    let settings = [
        ("innodb_flush_method", "O_DIRECT"),
        ("innodb_buffer_pool_size", "8M"),
        ("innodb_log_file_size", "16M"),
        ("innodb_flush_log_at_trx_commit", "1"),
    ];
    let server = OwnServer::empty_in(directory_in(Path::new(&text("mount"))), mariadb, &settings);
    let changes: WorkloadSpec = serde_json::from_str(
        r#"{"kind": "oltp", "script": "update-non-index", "tables": 1, "rows": 100000,
            "distribution": "uniform", "terminals": 2}"#,
    )
    .unwrap();
    changes.build().unwrap().load(&server.endpoint(), SEED, &mut |_| Ok(())).unwrap();
    let mut client = ready_client(&RunSpec::new(server.endpoint(), changes, SEED));
    client.watch(Duration::from_secs(2), &mut |_| ()).unwrap();

    let device = text("device").replace("/dev/", "");
    let directory = tempfile::tempdir().unwrap();
    let (before, begun) = (answered(&bench), Instant::now());
    let observer = observe(directory.path(), &server.endpoint(), &["--trace", &device]);
    client.measure(WINDOW, &mut |_| ()).unwrap();
    let (after, counted_s) = (answered(&bench), begun.elapsed().as_secs_f64());
    let trial = recorded(directory.path(), &observer.wait_with_output().unwrap());
    client.stop().unwrap();
    drop(server);
    bench.down("traced");
    bench.assert_clean();

    let sampled = measured(&trial).production.as_ref().unwrap().trace.as_ref().unwrap();
    assert_eq!((&sampled.device, sampled.trace.file.as_str()), (&device, "observed.trace"));
    assert_eq!((sampled.lost_count, sampled.trace.is_complete), (0, true));
    let trace = spindle_mount::trace::read(&directory.path().join(&sampled.trace.file)).unwrap();
    assert_eq!(trace.disk_size_bytes, 1 << 30);
    let traced_s = trace.duration_ns as f64 / 1e9;
    for (index, operation) in [Operation::Read, Operation::Write, Operation::Flush].into_iter().enumerate() {
        let is_it = |request: &&Traced| request.operation == operation;
        let traced_per_s = trace.requests.iter().filter(is_it).count() as f64 / traced_s;
        let counted_per_s = (after[index] - before[index]) / counted_s;
        let ratio = traced_per_s / counted_per_s;
        assert!(
            counted_per_s > 20.0 && (ratio - 1.0).abs() < 0.2,
            "{operation:?}: {traced_per_s} a second in the trace, {counted_per_s} of the emulator"
        );
    }
}

#[test]
fn an_idle_server_gives_no_record_and_ctrl_c_ends_a_window_that_is_too_short() {
    let Some(server) = in_check_all(|| MARIADB.empty()) else { return };
    let directory = tempfile::tempdir().unwrap();
    let talk = |output: &Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let idle = observe(directory.path(), &server.endpoint(), &["--quiet"]).wait_with_output().unwrap();
    assert_eq!(idle.status.code(), Some(2), "{}", talk(&idle));
    assert!(talk(&idle).starts_with("spindle: the server was idle: "), "{}", talk(&idle));

    let observer = observe(directory.path(), &server.endpoint(), &[]);
    std::thread::sleep(Duration::from_secs(3));
    kill_process(Pid::from_raw(observer.id() as i32).unwrap(), Signal::INT).unwrap();
    let ended = observer.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", talk(&ended));
    assert!(talk(&ended).contains("spindle: interrupted; nothing was recorded: "), "{}", talk(&ended));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_server_that_is_started_again_gives_no_record() {
    let Some(mut server) = in_check_all(|| MARIADB.empty()) else { return };
    let directory = tempfile::tempdir().unwrap();
    let observer = observe(directory.path(), &server.endpoint(), &["--quiet"]);
    std::thread::sleep(Duration::from_secs(4));
    server.stop(crate::PATIENCE).unwrap();
    server.start_again();
    let ended = observer.wait_with_output().unwrap();
    let talk = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(1), "{talk}");
    assert!(talk.contains("was started again or its counters were reset"), "{talk}");
    assert!(!directory.path().join("observed.jsonl").exists());
}

/// Bad input gives exit code 2 and one sentence, and no work is done.
#[track_caller]
fn check_refused(options: &str, expect: &str) {
    let directory = tempfile::tempdir().unwrap();
    let server = if options.contains("--server") { "" } else { " --server socket:/nowhere" };
    let line = format!("observe {options}{server}");
    let told = run_in(directory.path(), &line.split_whitespace().collect::<Vec<_>>());
    let sentence = told.strip_prefix("exit code 2\n--- stderr\n").unwrap_or_else(|| panic!("{line}: {told}"));
    assert!(sentence.starts_with(expect), "{line}: {told}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "{line}");
}

#[test]
fn what_cannot_be_observed_is_refused_before_any_work() {
    check_refused(
        "--server http://here",
        "error: invalid value 'http://here' for '--server <URL>': write `socket:/path`",
    );
    check_refused(
        "--server sqlite:/nowhere",
        "error: invalid value 'sqlite:/nowhere' for '--server <URL>': is no server with counters",
    );
    check_refused("--for 5s", "spindle: --for: 5 s is too short; a window has 10 s at least\n");
    check_refused("--for 1min --every 10s", "spindle: --every: 10 s leaves fewer than 10 samples");
    check_refused("--for -5s", "error: invalid value '-5s' for '--for <DURATION>': `-5s` is not a duration");
    check_refused("--output nowhere/x.jsonl", "spindle: --output: nowhere is not a directory\n");
    check_refused("--pid 4294967294", "spindle: --pid: there is no process 4294967294\n");
    check_refused("--device nodisk", "spindle: --device: `nodisk` is not a block device of this machine\n");
    // Whoever is not root hears of that.
    check_refused("--trace nodisk", "spindle: --trace: ");
}
