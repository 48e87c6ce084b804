//! Real replicas of a real MariaDB on emulated disks: what is measured, and what is reported when one fails.
//! Nothing is left behind.

use std::path::PathBuf;
use std::process::Child;
use std::time::Duration;

use crate::emulated_support::{Bench, Part, kill, measured, next_part};
use crate::{in_check_all, wait_until};
use mysql::Conn;
use mysql::prelude::Queryable;
use rustix::process::{Pid, Signal};
use spindle_lab::record::{ReplicationMode, ReplicationView, Warning};
use spindle_lab::report::{self, Records};
use spindle_load::Endpoint;
use spindle_load::sql::mysql::connect;

/// Commits of one row, by servers with and without replicas.
fn scenario(servers: &str, matrix: &str, trials: u32, measure: &str) -> String {
    format!(
        r#"
title = "A short run"
question = "Does the replica have what the primary has?"
[stacks.card]
profile = "iodrive-160"
size = "1 GiB"
[stacks.hdd]
profile = "hdd-7200"
size = "1 GiB"
{servers}
[workloads.commits]
kind = "fsync-loop"
terminals = 4
[matrix]
stack = ["card"]
server = {matrix}
workload = ["commits"]
[run]
trials = {trials}
start = "warm-fast"
warm_up = "500 ms"
settle = "100 ms"
measure = "{measure}"
seed = 1
"#
    )
}

/// A server table with the lines of its replication.
fn server(name: &str, replication: &str) -> String {
    let head = match replication {
        "" => String::new(),
        _ => format!("[servers.{name}.replication]\n"),
    };
    format!(
        "[servers.{name}]\nkind = \"mariadb\"\nsettings = {{ innodb_flush_method = \"O_DIRECT\", \
         innodb_buffer_pool_size = \"12M\" }}\n{head}{replication}\n"
    )
}

#[test]
fn replicas_are_measured_and_end_with_what_the_primary_has() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let servers = [
        server("alone", ""),
        // This replica applies one commit per revolution; its clients commit in groups on a card.
        server("async", "mode = \"async\"\nreplicas = [\"hdd\"]\ncatch_up = \"500 ms\""),
        server(
            "semi-sync",
            "mode = \"semi-sync\"\nreplicas = [\"card\", \"card\"]\nwait_point = \"after-sync\"\n\
             settings = { sync_relay_log = 1 }",
        ),
    ];
    let text = scenario(&servers.concat(), r#"["alone", "async", "semi-sync"]"#, 1, "3 s");
    bench.write("test.toml", &text);
    let plan = String::from_utf8(bench.run(&["plan", "test.toml"]).stdout).unwrap();
    assert!(plan.contains("async replica 1: ") && plan.contains("semi-sync replica 2: "), "{plan}");
    bench.run_scenario(&[], &[], 0);
    bench.assert_clean();
    let snapshots = std::fs::read_dir(bench.path("results/snapshots")).unwrap().count();
    assert_eq!(snapshots, 1, "one load serves primaries and replicas");

    let Records { header, trials, .. } = report::read(&bench.records()).unwrap();
    let trial = |cell: &str| trials.iter().find(|trial| trial.cell == format!("card/{cell}")).unwrap();
    let replication = |cell: &str| -> ReplicationView {
        let measurement = measured(trial(cell));
        let replication = measurement.replication.clone().unwrap();
        let names: Vec<&str> = measurement.verification.iter().map(|check| check.name.as_str()).collect();
        for replica in &replication.replicas {
            for check in ["every row was changed as a whole", "every table is the primary's"] {
                assert!(names.contains(&format!("{}: {check}", replica.name).as_str()), "{names:?}");
            }
            assert_eq!(replica.series.behind_bytes.len(), measurement.series.transactions_per_s.len());
            let disk = replica.mounts[0].emulator.as_ref().unwrap();
            assert!(disk.writes > 0 && replica.server_cpu_s > 0.0, "{replica:?}");
        }
        replication
    };
    assert_eq!(measured(trial("alone")).replication, None);

    let asynchronous = replication("async");
    assert_eq!((asynchronous.semi_sync, asynchronous.replicas.len()), (None, 1));
    let behind = &asynchronous.replicas[0];
    assert_eq!((behind.name.as_str(), behind.catch_up_s), ("replica 1 (hdd)", None));
    let behind_bytes = behind.behind_bytes_last.unwrap();
    assert!(behind_bytes > 0 && behind_bytes > behind.behind_bytes_first.unwrap(), "{behind:?}");
    let told = Warning::ReplicaBehind { replica: behind.name.clone(), catch_up_s: None, waited_s: 0.5 };
    assert!(trial("async").warnings.contains(&told), "{:?}", trial("async").warnings);
    assert_eq!(trial("async").provenance.settings["binlog_format"], "ROW");

    let semi = replication("semi-sync");
    let commits = measured(trial("semi-sync")).latency.count;
    let acknowledgements = semi.semi_sync.unwrap();
    assert!(acknowledgements.acknowledged + 100 > commits, "{acknowledgements:?} of {commits}");
    assert!(acknowledgements.wait_mean_ms > 0.0, "{acknowledgements:?}");
    assert_eq!(acknowledgements.unacknowledged, 0);
    assert!(semi.replicas.iter().all(|replica| replica.catch_up_s.is_some()), "{semi:?}");
    assert_eq!(semi.replicas[1].settings["sync_relay_log"], "1");
    assert_eq!(trial("semi-sync").provenance.settings["rpl_semi_sync_master_wait_point"], "AFTER_SYNC");
    let head = header.cells.iter().find(|cell| cell.name == "card/semi-sync").unwrap();
    assert_eq!(head.replication.as_ref().unwrap().mode, ReplicationMode::SemiSync);

    let records = report::read(&bench.records()).unwrap();
    for format in [report::Format::Html, report::Format::Md, report::Format::Text] {
        let page = report::render(&records, format, false).unwrap();
        assert!(page.contains("replica 2 (card)"), "{page}");
    }
    let page = report::render(&records, report::Format::Html, false).unwrap();
    assert!(page.contains("card, async, replica 1: on hdd"), "the replica's disk is not on the page");
}

/// A run in which a test interferes with its servers.
struct Run<'a> {
    bench: &'a Bench,
    process: Child,
    replicas: Vec<Pid>,
}

impl Run<'_> {
    fn connect(&self, directory: &str) -> Option<Conn> {
        let path: PathBuf = self.bench.work_directory(&self.process)?.join(directory).join("socket");
        let (user, database) = ("root".to_owned(), "spindle".to_owned());
        connect(&Endpoint::MysqlSocket { path, user, database }).ok()
    }

    /// Waits for the next trial's window, a second into it, and returns the replica's process.
    fn next_window(&mut self) -> Pid {
        let replica = next_part(&self.process, Part::Replica, &mut self.replicas);
        wait_until("the clients to commit", || {
            let Some(mut primary) = self.connect("trial") else { return false };
            let committed = primary.query_first::<u64, _>("SELECT SUM(n) FROM commits");
            committed.is_ok_and(|committed| committed.is_some_and(|committed| committed > 0))
        });
        // Warm-up and settling take 0.6 s.
        std::thread::sleep(Duration::from_millis(1600));
        replica
    }
}

#[test]
fn a_replica_that_fails_is_reported_and_a_signal_takes_all_down() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let replication = "mode = \"semi-sync\"\nreplicas = [\"card\"]\ntimeout = \"200 ms\"";
    let text = scenario(&server("semi-sync", replication), r#"["semi-sync"]"#, 3, "6 s");
    bench.write("test.toml", &text);
    let mut run = Run { bench: &bench, process: bench.start_scenario(), replicas: Vec::new() };

    let frozen = run.next_window();
    nobody_but_replicas_may_log_in_over_tcp(&run);
    kill(frozen, Signal::STOP);
    std::thread::sleep(Duration::from_secs(2));
    kill(frozen, Signal::CONT);

    run.next_window();
    run.connect("replica-1").unwrap().query_drop("DROP TABLE commits").unwrap();

    run.next_window();
    kill(Pid::from_child(&run.process), Signal::TERM);
    assert_eq!(run.process.wait().unwrap().code(), Some(130));
    bench.assert_clean();

    // The signal ended the run without waiting for the third.
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    let measurement = measured(&trials[0]);
    let acknowledgements = measurement.replication.as_ref().unwrap().semi_sync.unwrap();
    assert!(acknowledgements.unacknowledged > 0, "{acknowledgements:?}");
    let warned = |wanted: fn(&Warning) -> bool| trials[0].warnings.iter().any(wanted);
    assert!(
        warned(|warning| matches!(warning, Warning::SemiSyncFellBack { .. })),
        "{:?}",
        trials[0].warnings
    );
    assert!(warned(|warning| matches!(warning, Warning::ReplicaSilent { .. })), "{:?}", trials[0].warnings);

    let error = trials[1].error.as_ref().unwrap();
    let expect = "replica 1: it has stopped applying: ";
    assert!(error.contains(expect) && error.contains("Table 'spindle.commits' doesn't exist"), "{error}");
    assert_eq!(trials[1].measurement, None);
}

/// The port listens on the loopback address only.
fn nobody_but_replicas_may_log_in_over_tcp(run: &Run<'_>) {
    let mut primary = run.connect("trial").unwrap();
    let port: u16 = primary.query_first("SELECT @@port").unwrap().unwrap();
    let listens = |table: &str, address: &str| {
        let sockets = std::fs::read_to_string(format!("/proc/net/{table}")).unwrap();
        let local = format!("{address}:{port:04X}");
        sockets.lines().any(|line| line.split_whitespace().nth(1).is_some_and(|word| word.ends_with(&local)))
    };
    assert!(listens("tcp", "0100007F"));
    assert!(!listens("tcp", "00000000") && !listens("tcp6", ""));
    for user in ["root", "spindle_replica"] {
        let (user, database) = (user.to_owned(), "mysql".to_owned());
        let (host, password) = ("127.0.0.1".to_owned(), String::new());
        let error = connect(&Endpoint::MysqlTcp { host, port, user, password, database }).unwrap_err();
        assert!(error.to_string().contains("Access denied"), "{error}");
    }
}
