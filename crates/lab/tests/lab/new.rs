//! `spindle new` as its user meets it, up to a run of what it wrote.

use std::io::Write as _;
use std::process::{Output, Stdio};

use insta::assert_snapshot;
use spindle_lab::server::catalog;
use spindle_load::WorkloadSpec;

use crate::emulated_support::Bench;
use crate::in_check_all;

/// With SQLite, which every machine has, so that the answer is the same everywhere.
const GIVEN: [&str; 9] = [
    "new",
    "--server",
    "sqlite",
    "--storage",
    "hdd-7200,ebs-gp3",
    "--workload",
    "fsync-loop",
    "--precision",
    "quick",
];

/// Exit code, standard output, standard error. Neither the version nor the hash of the scenario is of
/// interest.
fn told(output: &Output) -> String {
    let [out, err] = [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
    let out = out.replace(spindle_load::sql::sqlite::version(), "VERSION");
    let out = match out.split_once("spindle-results/") {
        Some((before, after)) => {
            let (name, after) = after.split_once('/').unwrap();
            let (name, _) = name.rsplit_once('-').unwrap();
            format!("{before}spindle-results/{name}-HASH/{after}")
        }
        None => out,
    };
    format!("exit code {}\n{out}{err}", output.status.code().unwrap())
}

fn answered(bench: &Bench, arguments: &[&str], answers: &str) -> String {
    let mut command = bench.command(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(answers.as_bytes()).unwrap();
    told(&child.wait_with_output().unwrap())
}

#[test]
fn options_make_a_scenario_without_questions_and_the_next_steps_are_told() {
    let bench = Bench::anywhere();
    let said = told(&bench.run(&GIVEN));
    assert_snapshot!(said);
    let plan = bench.text(&["plan", "spindle.toml"]);
    assert!(plan.contains("6 trials in 3 shuffled blocks"), "{plan}");
}

#[test]
fn a_file_is_replaced_only_by_force() {
    let bench = Bench::anywhere();
    bench.write("spindle.toml", "mine");
    let refusal = bench.talk(&GIVEN, 2);
    assert_snapshot!(refusal, @"spindle: spindle.toml exists already; name another file, or replace it with --force
");
    assert_eq!(std::fs::read_to_string(bench.path("spindle.toml")).unwrap(), "mine");
    bench.talk(&[&GIVEN[..], &["--force"]].concat(), 0);
    bench.text(&["plan", "spindle.toml"]);
}

#[test]
fn what_is_not_given_is_assumed_and_told_without_a_terminal() {
    let bench = Bench::anywhere();
    let said = bench.talk(&["new", "my.toml", "--server", "sqlite"], 0);
    assert_snapshot!(said, @"spindle: not given, so assumed: --storage hdd-7200,ebs-gp3 --workload tpcc --data 1GiB --precision quick
");
    bench.text(&["plan", "my.toml"]);
}

#[test]
fn what_is_not_given_is_asked_by_lists() {
    let bench = Bench::anywhere();
    let given = ["new", "my.toml", "--ask", "--server", "sqlite", "--storage", "pm883-960,ebs-gp3"];
    let said = answered(&bench, &given, "2\n8 MB\nmany\n100 MB\n\n");
    assert_snapshot!(said);
    assert!(bench.path("my.toml").exists());
}

#[test]
fn a_run_accepts_every_workload_of_every_server_of_this_machine() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let here = bench.json(&["server", "list", "--json"]);
    let here = here.as_array().unwrap().iter().filter(|entry| entry["version"].is_string());
    let mut pairs = 0;
    for entry in here {
        let kind = entry["kind"].as_str().unwrap();
        let version = entry["scenario_version"].as_str();
        let server = version.map_or_else(|| kind.to_owned(), |version| format!("{kind}-{version}"));
        let runs = catalog::find(kind).unwrap().accepted_workloads();
        let has_example = |workload: &&&str| WorkloadSpec::facts_of(workload).unwrap().example.is_some();
        for workload in runs.iter().filter(has_example) {
            let given = ["--force", "--server", &server, "--workload", workload, "--precision", "quick"];
            let said = bench.text(&[&["new", "my.toml"], &given[..]].concat());
            assert!(said.contains("is written") && !said.contains("not yet"), "{said}");
            pairs += 1;
        }
    }
    // SQLite and the directory are everywhere.
    assert!(pairs >= 10, "{pairs}");
}

/// A draft with some of its texts replaced.
#[track_caller]
fn shorter(draft: &str, changes: &[(&str, &str)]) -> String {
    changes.iter().fold(draft.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in the draft: {text}");
        text.replace(from, to)
    })
}

#[test]
fn a_new_scenario_of_commits_runs_to_its_report() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.talk(&GIVEN, 0);
    let text = std::fs::read_to_string(bench.path("spindle.toml")).unwrap();
    bench.write(
        "test.toml",
        &shorter(&text, &[("trials = 3", "trials = 1"), ("\"10 s\"", "\"2 s\""), ("\"5 s\"", "\"1 s\"")]),
    );
    bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        assert!(trial.measurement.as_ref().unwrap().metric.value > 0.0, "{:?}", trial.error);
    }
    assert!(bench.path("results/report.html").exists());
    bench.assert_clean();
}

#[test]
fn a_new_scenario_of_postgresql_compares_a_disk_with_a_cloud_volume() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let given = ["--server", "postgresql", "--workload", "tpcc", "--data", "200 MB", "--precision", "quick"];
    bench.talk(&[&["new", "test.toml"], &given[..]].concat(), 0);
    let text = std::fs::read_to_string(bench.path("test.toml")).unwrap();
    let changes = [
        ("trials = 3", "trials = 2"),
        ("\"10 s\"", "\"5 s\""),
        ("\"4 s\"", "\"1 s\""),
        ("\"30 s\"", "\"5 s\""),
    ];
    bench.write("test.toml", &shorter(&text, &changes));
    bench.run_scenario(&[], &[], 0);
    let comparison = bench.text(&["compare", bench.records().to_str().unwrap()]);
    assert!(comparison.contains("ebs-gp3") && comparison.contains("hdd-7200"), "{comparison}");
    assert_eq!(bench.trials().iter().filter(|trial| trial.measurement.is_some()).count(), 4);
    bench.assert_clean();
}
