use std::path::{Path, PathBuf};
use std::time::Instant;

use tempfile::TempDir;

use super::tests::{Load, start};
use crate::WorkloadSpec;
use crate::protocol::{Command, Endpoint, Event};
use crate::workloads::mysqlslap::{self, LoadType};
use crate::workloads::oltp::{Distribution, Script};
use crate::workloads::sysbench::Spec;
use spindle_base::histogram;

fn workload(program: PathBuf) -> WorkloadSpec {
    WorkloadSpec::Sysbench(Spec {
        script: Script::PointSelect,
        tables: 1,
        rows: 10,
        distribution: Distribution::Uniform,
        terminals: 2,
        autocommit: false,
        program,
    })
}

fn slap(program: PathBuf) -> WorkloadSpec {
    let (load_type, engine) = (LoadType::Mixed, "innodb".to_owned());
    let spec =
        mysqlslap::Spec { load_type, terminals: 4, queries: 100, engine, autoincrement: false, program };
    WorkloadSpec::Mysqlslap(spec)
}

/// A load whose tool misbehaves as `name` says. The caller keeps the directory.
fn load(name: &str) -> (TempDir, Load) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join(name);
    let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/process/fake_sysbench");
    std::os::unix::fs::symlink(fake, &program).unwrap();
    let endpoint = Endpoint::MysqlSocket {
        path: "/nonexistent".into(),
        user: "root".into(),
        database: "spindle".into(),
    };
    (directory, start(endpoint, if name.starts_with("slap") { slap(program) } else { workload(program) }))
}

#[test]
fn what_a_tool_prints_becomes_the_events_of_a_workload() {
    let (directory, mut load) = load("good");
    assert_eq!(load.event(), Event::Ready);
    let Event::Second(unmeasured) = load.event() else { panic!("no second before the window") };
    assert!(!unmeasured.measured && unmeasured.transactions == 7);
    load.tell(&Command::Measure { duration_s: 2.0 });
    let Event::Second(second) = load.event() else { panic!("no second in the window") };
    assert!(second.measured && second.at_s > 0.0);
    assert_eq!((second.transactions, second.p50_ms, second.p95_ms), (3, None, Some(0.2)));
    let summary = load.summary();
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();

    assert_eq!((summary.duration_s, summary.metric.value), (2.0, 2.0));
    assert_eq!((summary.terminal_time_s, summary.commit_wait_s), (4.0, None));
    assert!(summary.client_cpu_s > 0.0, "the tool's own");
    let kind = &summary.kinds[0];
    assert_eq!((kind.name.as_str(), kind.committed, kind.retried), ("point-select", 4, 1));
    let latencies = histogram::decode(&kind.histogram).unwrap();
    assert_eq!((latencies.count_at(100), latencies.count_at(200)), (3, 1));
    let arguments = std::fs::read_to_string(directory.path().join("good.arguments")).unwrap();
    for wanted in ["oltp_point_select", "--rand-type=uniform", "--time=2", "--threads=2", "--table-size=10"] {
        assert!(arguments.contains(wanted), "{wanted} in {arguments}");
    }
}

#[test]
fn a_measurement_that_comes_at_once_finds_an_untouched_database() {
    let (_directory, mut load) = load("good");
    load.tell(&Command::Measure { duration_s: 2.0 });
    assert_eq!(load.event(), Event::Ready);
    let Event::Second(second) = load.event() else { panic!("no second") };
    assert!(second.measured);
}

#[track_caller]
fn check_fatal(name: &str, expect: &str) {
    let (_directory, mut load) = load(name);
    load.tell(&Command::Measure { duration_s: 2.0 });
    check_ends(load, expect);
}

#[track_caller]
fn check_ends(mut load: Load, expect: &str) {
    loop {
        match load.event() {
            Event::Ready | Event::Second(_) => {}
            Event::Summary(summary) => panic!("a number: {summary:?}"),
            Event::Fatal { message } => {
                assert!(message.contains(expect), "{message}");
                break;
            }
        }
    }
    assert!(load.process.join().unwrap().is_err());
}

#[test]
fn a_tool_that_complains_gives_no_number_although_it_ends_well() {
    check_fatal("complains", "ended with exit status: 0: FATAL: the table is crashed");
}

#[test]
fn a_tool_that_fails_is_quoted() {
    check_fatal("fails", "ended with exit status: 1: FATAL: no connection / FATAL: giving up");
    check_fatal("dies", "ended with signal: 9 (SIGKILL): oh no");
}

#[test]
fn a_tool_that_prints_something_else_gives_no_number() {
    check_fatal("garbage", "sysbench wrote \"thds: 2 tps: many\", without a number after \"tps:\"");
    check_fatal("silent", "printed no measurement (its last words: it said nothing)");
    check_fatal("shortened", "total number of events:              4): no \"total time:\"");
    check_fatal("contradicts", "5 events, and 4 in the histogram");
}

#[test]
fn runs_that_are_so_much_work_follow_each_other_until_the_window_has_passed() {
    let (_directory, mut load) = load("slap-good");
    load.tell(&Command::Measure { duration_s: 1.0 });
    let began = Instant::now();
    let summary = load.summary();
    let elapsed_s = began.elapsed().as_secs_f64();
    let queries = summary.kinds[0].committed;
    assert!(elapsed_s >= 0.9 && queries >= 200 && queries.is_multiple_of(100), "{elapsed_s}: {summary:?}");
    // A hundred queries in a quarter of a second.
    assert_eq!((summary.metric.value, summary.metric.name.as_str()), (400.0, "queries per second"));
    assert!(histogram::decode(&summary.kinds[0].histogram).unwrap().is_empty());
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();
}

#[test]
fn a_client_that_exits_well_after_an_error_gives_no_number() {
    check_fatal(
        "slap-fails",
        "ended with exit status: 0: mariadb-slap: Cannot run query SELECT 1 ERROR : No",
    );
}

#[test]
fn figures_that_mean_nothing_are_refused() {
    check_fatal("slap-quick", "more queries are needed");
    check_fatal("slap-others", "are no figures");
}

#[test]
fn a_tool_that_ends_before_it_was_asked_to_is_fatal() {
    let (_directory, load) = load("ends-early");
    check_ends(load, "ended by itself before it was asked to");
}

#[test]
fn a_part_of_a_second_cannot_be_measured() {
    let (_directory, mut load) = load("good");
    load.tell(&Command::Measure { duration_s: 0.5 });
    check_ends(load, "cannot measure for 0.5 seconds: the tool knows whole seconds only");
}

#[test]
fn a_missing_tool_names_its_package() {
    let load = start(Endpoint::Mock, workload("/nonexistent/sysbench".into()));
    check_ends(
        load,
        "/nonexistent/sysbench is not installed: it comes with the package `sysbench`, which `tools/install tools` installs",
    );
}

#[test]
fn the_end_of_the_input_kills_the_tool() {
    let (_directory, mut load) = load("good");
    assert_eq!(load.event(), Event::Ready);
    let Event::Second(_) = load.event() else { panic!("no second") };
    let closed_at = Instant::now();
    drop(load.commands);
    load.process.join().unwrap().unwrap();
    assert!(closed_at.elapsed().as_secs() < 60, "it did not wait for the tool");
}
