//! Trials in dilated time: what takes k times longer, what the figures say, and what is refused.

use std::time::{Duration, Instant};

use spindle_base::dilation::Dilation;
use spindle_lab::host::provenance::cpu_count;
use spindle_lab::host::trial_time::TrialTime;
use spindle_lab::record::ReplicationMode;
use spindle_lab::record::{PilotStep, Trial};
use spindle_lab::report::View;
use spindle_lab::report::compare::{Side, between};
use spindle_lab::report::verdict::WITHIN;
use spindle_lab::scenario::{Bounds, Scenario};
use spindle_lab::server::replication::{Access, ReplicationSpec};
use spindle_lab::server::{Instance, Running, Server, Trust};
use spindle_load::sql::{self, Session};

use crate::report_support::{DISK, FLASH, Shape, file, records};
use crate::run_mock::{Bench, GOOD, scenario};
use crate::server_support::{directory, installed, instance, start};
use crate::{PATIENCE, in_check_all, wait_until};

const K: f64 = 4.0;

fn dilated(scenario: &str, key: &str) -> String {
    scenario.replace("seed = 3", &format!("{key}\nseed = 3"))
}

#[test]
fn a_dilated_trial_takes_k_times_longer_and_tells_its_own_time() {
    let bench = Bench::new(&dilated(&scenario(1, GOOD, "300 ms"), "dilation = 4"));
    let talk = bench.run(&[], 0);
    let (header, trials) = bench.read();
    assert_eq!(header.scenario.experiment.unwrap().run["dilation"], 4.0);
    for trial in trials {
        let measurement = trial.measurement.expect(&talk);
        assert_eq!(measurement.dilation.factor(), K);
        assert!((0.3..0.9).contains(&measurement.duration_s), "{}", measurement.duration_s);
        let real_s = trial.phases_s["measure"];
        assert!(real_s >= 0.3 * K, "{real_s}");
        // Two clients, each with transactions of 0.25 to 0.75 ms of its own time.
        assert!(measurement.latency.mean_ms < 1.5, "{} ms", measurement.latency.mean_ms);
    }
}

#[test]
fn time_can_pass_faster_than_it_does() {
    let bench = Bench::new(&dilated(&scenario(1, GOOD, "3 s"), "dilation = 0.5"));
    let talk = bench.run(&[], 0);
    for trial in bench.read().1 {
        let measurement = trial.measurement.expect(&talk);
        let real_s = trial.phases_s["measure"];
        assert!(real_s >= 1.5, "{real_s} s for three");
        // Whatever the end of the window takes is in both.
        assert!(measurement.duration_s > 1.5 * real_s, "{} s in {real_s} s", measurement.duration_s);
    }
}

#[test]
fn the_cores_of_a_server_dilate_its_own_trials() {
    let own = cpu_count();
    let axis = format!("[matrix]\ncores = [{own}, {}]\n", 2 * own);
    let bench = Bench::new(&scenario(1, GOOD, "300 ms").replace("[matrix]\n", &axis));
    let talk = bench.run(&[], 0);
    let (header, trials) = bench.read();
    assert_eq!(trials.len(), 4, "{talk}");
    for trial in trials {
        let cell = header.cells.iter().find(|cell| cell.name == trial.cell).unwrap();
        let cores = cell.sweep[0].number.unwrap();
        assert_eq!(trial.measurement.expect(&talk).dilation.factor(), cores / f64::from(own));
    }
}

#[test]
fn a_pilot_leaves_idle_cores_in_real_time() {
    let bench =
        Bench::new(&dilated(&scenario(1, GOOD, "300 ms"), "dilation = \"as needed\"\ndilation_at_most = 2"));
    let talk = bench.run(&[], 0);
    let (_, trials) = bench.read();
    for trial in trials {
        let first = trial.pilot.first().expect(&talk);
        assert_eq!(first.dilation, Dilation::NONE, "{talk}");
        assert!(trial.measurement.unwrap().dilation.factor() <= 2.0, "{talk}");
    }
}

#[track_caller]
fn check_refused(scenario: &str, expect: &str) {
    let bounds = Bounds { memory_bytes: 8 << 30, trust: Trust::ReadOnly };
    let mistake = Scenario::parse("test", scenario, &bounds).unwrap_err();
    assert_eq!(mistake.to_string(), expect);
}

#[test]
fn what_cannot_be_dilated_is_refused_with_the_reason() {
    let good = scenario(1, GOOD, "300 ms");
    for (key, expect) in [
        ("dilation = 0.2", "run.dilation: 0.2 is out of range; it can be 0.25 to 64"),
        ("dilation = 65", "run.dilation: 65 is out of range; it can be 0.25 to 64"),
        ("dilation = \"fast\"", "run.dilation: `\"fast\"` must be a number without quotes, or \"as needed\""),
        (
            "dilation = 2\ncores = 8",
            "run.cores: means a dilation too; leave out either `cores` or `dilation`",
        ),
        (
            "dilation_at_most = 8",
            "run.dilation_at_most: has no meaning unless dilation = \"as needed\"; leave it out",
        ),
        (
            "dilation = \"as needed\"\ndilation_at_most = 0.2",
            "run.dilation_at_most: 0.2 is out of range; it can be 1 to 64",
        ),
        (
            "dilation = \"as needed\"\ndilation_at_most = 0.5",
            "run.dilation_at_most: 0.5 is out of range; it can be 1 to 64",
        ),
    ] {
        check_refused(&dilated(&good, key), expect);
    }
    let own = cpu_count();
    let (least, most) = (own.div_ceil(4), 64 * own);
    let cores = most + 1;
    let expect = format!("run.cores: {cores} is out of range; with {own} cores it can be {least} to {most}");
    check_refused(&dilated(&good, &format!("cores = {cores}")), &expect);
    for (server, expect) in [
        (
            "kind = \"running\"\nurl = \"mysql://u@127.0.0.1/d\"",
            "servers.s.url: is of a server that runs already, whose clock cannot be dilated; leave `dilation` out",
        ),
        ("kind = \"mariadb\"", "stacks.a: is real storage, which cannot be dilated; leave `dilation` out"),
    ] {
        let scenario = format!(
            "title = \"t\"\n[stacks.a]\npath = \"/tmp\"\n[servers.s]\n{server}\n[workloads.w]\nkind = \"tpcc\"\n\
             warehouses = 1\n[matrix]\nstack = [\"a\"]\nserver = [\"s\"]\nworkload = [\"w\"]\n\
             [run]\ntrials = 1\nmeasure = \"1 s\"\ndilation = 2\n"
        );
        check_refused(&scenario, expect);
    }
}

/// An instance with an empty database, in dilated time.
fn dilated_instance(server: &dyn Server, settings: &[(&str, &str)], k: f64) -> (Instance, tempfile::TempDir) {
    let directory = directory();
    let mut instance = instance(directory.path(), settings);
    server.prepare(&instance).unwrap();
    let time = TrialTime::start(Dilation::new(k).unwrap(), directory.path()).unwrap();
    instance.environment = time.environment();
    (instance, directory)
}

/// A server with an empty database in dilated time.
fn dilated_server(
    kind: &str,
    settings: &[(&str, &str)],
    k: f64,
) -> Option<(Box<dyn Running>, tempfile::TempDir)> {
    let server = installed(kind)?;
    let (instance, directory) = dilated_instance(&*server, settings, k);
    Some((start(&*server, &instance), directory))
}

fn connect(running: &dyn Running) -> Box<dyn Session> {
    sql::connect_and_create_database(&running.endpoint()).unwrap()
}

/// The work ends after this many seconds of the server's time, in real time.
#[track_caller]
fn check_takes(what: &str, seconds: f64, work: impl FnOnce()) {
    let began = Instant::now();
    work();
    let real = began.elapsed();
    let least = Duration::from_secs_f64(seconds * K);
    // A busy machine wakes late.
    assert!(real >= least && real < 2 * least, "{what}: {real:?} instead of {least:?}");
}

#[test]
fn the_waits_of_mariadb_take_k_times_longer() {
    let Some((mut running, _directory)) =
        in_check_all(|| dilated_server("mariadb", &[("innodb_flush_log_at_trx_commit", "2")], K))
    else {
        return;
    };
    let (mut one, mut other) = (connect(&*running), connect(&*running));
    check_takes("SLEEP", 0.5, || assert_eq!(one.read("SELECT SLEEP(0.5)").unwrap(), 1));
    one.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT) ENGINE=InnoDB").unwrap();
    one.execute("INSERT INTO t VALUES (1, 1)").unwrap();
    one.execute("BEGIN").unwrap();
    one.execute("UPDATE t SET n = 2 WHERE id = 1").unwrap();
    other.execute("SET SESSION innodb_lock_wait_timeout = 1").unwrap();
    check_takes("a lock wait", 1.0, || {
        other.execute("UPDATE t SET n = 3 WHERE id = 1").unwrap_err();
    });
    one.execute("ROLLBACK").unwrap();
    // The log is flushed once in a second of the server's, however many transactions commit.
    let fsyncs = |running: &mut dyn Running| running.counters().unwrap()["Innodb_data_fsyncs"];
    let before = fsyncs(&mut *running);
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs_f64(2.0 * K) {
        one.execute("UPDATE t SET n = n + 1 WHERE id = 1").unwrap();
        // As fast as a fast core can, they would fill the log, and checkpoints would flush too.
        std::thread::sleep(Duration::from_millis(2));
    }
    let flushes = fsyncs(&mut *running) - before;
    // In real time there would be eight.
    assert!((1.0..=5.0).contains(&flushes), "{flushes} flushes in two seconds of the server's");
    let loops = |running: &mut dyn Running| {
        let counters = running.counters().unwrap();
        counters["Innodb_master_thread_active_loops"] + counters["Innodb_master_thread_idle_loops"]
    };
    let before = loops(&mut *running);
    std::thread::sleep(Duration::from_secs_f64(2.0 * K));
    let rounds = loops(&mut *running) - before;
    assert!(
        (1.0..=3.0).contains(&rounds),
        "{rounds} rounds of the master thread in two seconds of the server's"
    );
    running.stop(Duration::from_secs(120)).unwrap();
}

#[test]
fn the_waits_of_postgresql_take_k_times_longer() {
    let Some((mut running, _directory)) = in_check_all(|| dilated_server("postgresql", &[], K)) else {
        return;
    };
    let (mut one, mut other) = (connect(&*running), connect(&*running));
    check_takes("pg_sleep", 0.5, || assert_eq!(one.read("SELECT pg_sleep(0.5)").unwrap(), 1));
    // An interval timer of the kernel.
    one.execute("SET statement_timeout = '500ms'").unwrap();
    check_takes("a statement", 0.5, || drop(one.read("SELECT pg_sleep(60)").unwrap_err()));
    one.execute("SET statement_timeout = 0").unwrap();
    one.execute("CREATE TABLE t (id INT)").unwrap();
    one.execute("BEGIN").unwrap();
    one.execute("LOCK TABLE t").unwrap();
    other.execute("SET lock_timeout = '500ms'").unwrap();
    check_takes("a lock wait", 0.5, || {
        other.execute("INSERT INTO t VALUES (1)").unwrap_err();
    });
    one.execute("ROLLBACK").unwrap();
    running.stop(Duration::from_secs(120)).unwrap();
}

#[test]
fn timed_checkpoints_of_postgresql_come_k_times_later() {
    // The shortest that the server accepts.
    const TIMEOUT_S: f64 = 30.0;
    const TWICE: f64 = 2.0;
    let settings = [("checkpoint_timeout", "30s")];
    let Some((mut running, _directory)) = in_check_all(|| dilated_server("postgresql", &settings, TWICE))
    else {
        return;
    };
    let began = Instant::now();
    let timed = |running: &mut dyn Running| {
        let counters = running.counters().unwrap();
        let names = ["pg_stat_bgwriter.checkpoints_timed", "pg_stat_checkpointer.num_timed"];
        names.iter().find_map(|name| counters.get(*name).copied()).unwrap()
    };
    let before = timed(&mut *running);
    // Without work there is nothing to check.
    connect(&*running).execute("CREATE TABLE t (id INT)").unwrap();
    while timed(&mut *running) == before {
        assert!(began.elapsed() < Duration::from_secs_f64(3.0 * TIMEOUT_S * TWICE), "no timed checkpoint");
        std::thread::sleep(Duration::from_millis(200));
    }
    // The server was there for a while before we looked.
    let real = began.elapsed().as_secs_f64();
    assert!(real > (TIMEOUT_S - 5.0) * TWICE, "a timed checkpoint came after {real} s");
    running.stop(Duration::from_secs(120)).unwrap();
}

#[test]
fn heartbeats_of_replication_come_k_times_later() {
    let Some(server) = in_check_all(|| installed("mariadb")) else { return };
    // A heartbeat comes each half of this time in which nothing is written.
    let settings = [("log_bin", "ON"), ("slave_net_timeout", "1")];
    let (primary, _primary_directory) = dilated_instance(&*server, &settings, K);
    let (replica, _replica_directory) = dilated_instance(&*server, &settings, K);
    let replication = server.replication().unwrap();
    let spec = ReplicationSpec {
        mode: ReplicationMode::Async,
        replicas: Vec::new(),
        wait_point: None,
        timeout: None,
        catch_up: Duration::from_secs(60),
        settings: Default::default(),
        own_settings: Vec::new(),
    };
    let access = Access::new().unwrap();
    let mut running = replication.start_primary(&primary, &spec, &access).unwrap();
    running.wait_ready(PATIENCE).unwrap();
    let mut copying = replication.start_replica(&replica, &spec, 1).unwrap();
    copying.wait_ready(PATIENCE).unwrap();
    let mut set = replication.connect(&primary, &[replica], &spec, &access).unwrap();
    wait_until("replication", || set.is_running().unwrap());
    let heartbeats = |copying: &mut dyn Running| copying.counters().unwrap()["Slave_received_heartbeats"];
    wait_until("the first heartbeat", || heartbeats(&mut *copying) > 0.0);
    let before = heartbeats(&mut *copying);
    std::thread::sleep(Duration::from_secs_f64(2.0 * K));
    let beats = heartbeats(&mut *copying) - before;
    // In real time there would be sixteen.
    assert!((2.0..=6.0).contains(&beats), "{beats} heartbeats in two seconds of the servers'");
    drop(set);
    copying.stop(Duration::from_secs(120)).unwrap();
    running.stop(Duration::from_secs(120)).unwrap();
}

fn at(k: f64, trial: &mut Trial) {
    trial.measurement.as_mut().unwrap().dilation = Dilation::new(k).unwrap();
}

#[test]
fn a_report_says_at_which_dilation_each_cell_ran_and_why() {
    let of = |edit: &dyn Fn(&mut Trial, &Shape)| View::new(&records(&file(&[DISK, FLASH], 2, edit))).notes;
    assert_eq!(of(&|_, _| {}), [""; 0]);
    assert_eq!(
        of(&|trial, _| at(4.0, trial)),
        ["Time was dilated: a second in this report took 4 s, and the 2 cores looked 4 times as fast."]
    );
    let mixed = of(&|trial, shape| {
        if shape.name == FLASH.name {
            at(8.0, trial);
            let step = |k, cpu_busy, late, figure| {
                let dilation = Dilation::new(k).unwrap();
                PilotStep { dilation, cpu_busy, cpu_own: cpu_busy, late, figure }
            };
            trial.pilot = vec![step(1.0, 0.97, true, 10_140.0), step(8.0, 0.6, false, 29_100.0)];
        }
    });
    assert_eq!(
        mixed,
        [
            "Time was dilated: the hdd-7200 ran in real time; for the x25-m a second in this report took 8 s, and \
             the 2 cores looked 8 times as fast.",
            "Pilots of the x25-m: at 1 the cores were 97 % busy, and the emulator was late (10,140); at 8 the cores \
             were 60 % busy (29,100).",
        ]
    );
}

#[test]
fn cells_of_two_runs_at_different_dilations_are_not_compared_unasked() {
    let side = |text: &str| Side::new("run.jsonl", records(text), None).unwrap();
    let real = file(&[DISK, FLASH], 2, |_, _| {});
    let dilated = file(&[DISK, FLASH], 2, |trial, _| at(4.0, trial));
    let dilated = dilated.replace("2100-01-01T00:00:00Z", "2100-01-02T00:00:00Z");
    let refused = between(&side(&real), &side(&dilated), false, WITHIN).unwrap_err().to_string();
    assert!(refused.contains("are different experiments (dilation: 1 against 4)"), "{refused}");
    between(&side(&real), &side(&dilated), true, WITHIN).unwrap();
}
