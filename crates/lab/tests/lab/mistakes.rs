//! Typical mistakes of a first hour, and the sentence for each: a key, a unit or a quote is wrong, a name is
//! half remembered, a limit is not known. Each is refused before any work, with exit code 2.

use std::path::Path;
use std::process::Command;

use insta::assert_snapshot;

const SCENARIO: &str = r#"
title = "Disk or SSD?"
[stacks.hdd]
profile = "hdd-7200"
size = "2 GB"
[stacks.ssd]
profile = "x25m-80"
size = "2 GB"
[servers.mariadb]
kind = "mariadb"
settings = { innodb_buffer_pool_size = "96M" }
[workloads.tpcc]
kind = "tpcc"
warehouses = 5
terminals = 8
[matrix]
stack = ["hdd", "ssd"]
server = ["mariadb"]
workload = ["tpcc"]
[run]
trials = 3
start = "warm"
warm_up = "10 s"
measure = "30 s"
"#;

/// Standard error and exit code of a command in the directory of `my.toml`.
fn told(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_spindle"))
        .args(arguments)
        .current_dir(directory)
        .env("COLUMNS", "100")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    let first = error.trim_end().lines().take(4).collect::<Vec<_>>().join("\n  ");
    format!("  {first}\n  [exit code {}]\n", output.status.code().unwrap())
}

/// The scenario with one text replaced by another.
fn in_scenario(changes: &[(&str, &str)]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut all = String::new();
    for (from, to) in changes {
        assert!(SCENARIO.contains(from), "{from:?} is not in the scenario");
        std::fs::write(directory.path().join("my.toml"), SCENARIO.replacen(from, to, 1)).unwrap();
        let change = |text: &str| text.trim().replace('\n', "; ");
        all.push_str(&format!(
            "{} -> {}\n{}",
            change(from),
            change(to),
            told(directory.path(), &["run", "my.toml"])
        ));
        let entries = std::fs::read_dir(directory.path()).unwrap().count();
        assert_eq!(entries, 1, "{to:?}: the run has begun its work");
    }
    all
}

#[test]
fn mistakes_of_form() {
    let changes = [
        ("measure = ", "mesure = "),
        ("measure = \"30 s\"\n", ""),
        ("[run]\ntrials = 3\nstart = \"warm\"\nwarm_up = \"10 s\"\nmeasure = \"30 s\"\n", ""),
        ("kind = \"tpcc\"", "kind = tpcc"),
        ("size = \"2 GB\"", "size = 2 GB"),
        ("[\"hdd\", \"ssd\"]", "[hdd, ssd]"),
        ("[\"hdd\", \"ssd\"]", "\"hdd\""),
        ("trials = 3", "trials = \"3\""),
        ("measure = \"30 s\"", "measure = 30"),
        ("measure = \"30 s\"", "measure = \"30 sec\""),
        ("size = \"2 GB\"", "size = \"2 gigs\""),
        ("trials = 3\nstart = \"warm\"", "trails = 3\nstart = \"hot\""),
        ("[stacks.ssd]", "[stacks.hdd]"),
        ("[matrix]", "[matrix"),
    ];
    assert_snapshot!(in_scenario(&changes));
}

#[test]
fn mistakes_of_names() {
    let changes = [
        ("profile = \"x25m-80\"", "profile = \"gp3\""),
        ("profile = \"x25m-80\"", "profile = \"x25m\""),
        ("profile = \"x25m-80\"", "profile = \"samsung\""),
        ("profile = \"x25m-80\"", "profile = \"x25m-80\"\nflush_comit = \"20 ms\""),
        ("kind = \"mariadb\"", "kind = \"postgres\""),
        ("innodb_buffer_pool_size", "innodb_bufer_pool_size"),
        ("warehouses = 5", "rows = 5"),
        ("kind = \"tpcc\"", "kind = \"tpc-c\""),
        ("[\"hdd\", \"ssd\"]", "[\"hdd\", \"sdd\"]"),
        ("workload = [\"tpcc\"]", "workload = [\"oltp\"]"),
    ];
    assert_snapshot!(in_scenario(&changes));
}

#[test]
fn mistakes_of_limits() {
    let changes = [
        ("trials = 3", "trials = 0"),
        ("terminals = 8", "terminals = 100000"),
        ("measure = \"30 s\"", "measure = \"30 ms\""),
        ("size = \"2 GB\"", "size = \"200 MB\""),
        ("size = \"2 GB\"", "size = \"2 TB\""),
        ("\"96M\"", "\"96 megs\""),
        ("profile = \"x25m-80\"", "profile = \"x25m-80\"\nflush_commit = 20"),
        ("start = \"warm\"", "start = \"cold\""),
        ("start = \"warm\"", "start = \"warm\"\nsettle = \"5 s\""),
        ("kind = \"mariadb\"", "kind = \"mysql\"\nversion = \"5.4\""),
    ];
    assert_snapshot!(in_scenario(&changes));
}

#[test]
fn mistakes_on_the_command_line() {
    let directory = tempfile::tempdir().unwrap();
    let lines = [
        "run",
        "run your.toml",
        "rn my.toml",
        "disk up gp3",
        "disk bench hdd-720 --virtual",
        "disk up hdd-7200 --size 20",
        "disk down no-such-disk",
        "compare no-such-file:hdd ssd",
        "load tpcc --terminals 8",
        "load tpcc --server mysql:/nowhere --terminals 0",
    ];
    let told = |line: &&str| {
        format!("spindle {line}\n{}", told(directory.path(), &line.split(' ').collect::<Vec<_>>()))
    };
    assert_snapshot!(lines.iter().map(told).collect::<String>());
}
