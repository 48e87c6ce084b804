//! `spindle clean`: it lists what stands on the disk, and removes what it is told to.

use std::fs;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::run_mock::{Bench, GOOD, scenario};
use crate::two_runs::announced;
use crate::wait_until;

/// A bench with a finished run and a fetched server, which is no server.
fn bench() -> Bench {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let server = bench.path("cache/servers/mysql-5.5.9/bin");
    fs::create_dir_all(&server).unwrap();
    fs::write(server.join("mysqld"), vec![1; 100_000]).unwrap();
    bench
}

/// The exit code, and everything that the command prints.
#[track_caller]
fn clean(bench: &Bench, arguments: &str, exit_code: i32) -> String {
    let mut command = bench.command(&["clean", "results"]);
    command.args(arguments.split_whitespace()).env("SPINDLE_CACHE_DIRECTORY", bench.path("cache"));
    let output = command.output().unwrap();
    let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert_eq!(output.status.code(), Some(exit_code), "{told}");
    told
}

fn count(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

/// Numbers of snapshots, of servers, and of files of results.
fn left(bench: &Bench) -> [usize; 3] {
    let results = ["records.jsonl", "report.html"].map(|name| bench.results().join(name).exists());
    let files = results.into_iter().filter(|exists| *exists).count();
    [count(&bench.results().join("snapshots")), count(&bench.path("cache/servers")), files]
}

#[test]
fn without_a_kind_it_only_lists() {
    let bench = bench();
    let told = clean(&bench, "", 0);
    for kind in ["snapshot  results/snapshots/", "server    ", "results   results\n", "in all; --snapshots"] {
        assert!(told.contains(kind), "{kind}: {told}");
    }
    let list: Vec<Value> = serde_json::from_str(&clean(&bench, "--json", 0)).unwrap();
    assert_eq!(list.len(), 4);
    assert!(list.iter().all(|found| found["size_bytes"].as_u64().unwrap() > 0), "{list:?}");
    assert_eq!(left(&bench), [2, 1, 2]);
}

#[test]
fn it_removes_the_kind_that_it_is_told() {
    let bench = bench();
    let told = clean(&bench, "--snapshots --yes", 0);
    assert!(told.contains("\nfreed "), "{told}");
    assert_eq!(left(&bench), [0, 1, 2]);
    clean(&bench, "--servers --yes", 0);
    assert_eq!(left(&bench), [0, 0, 2]);
    assert_eq!(clean(&bench, "--all --yes", 0), "nothing to remove\n");
    bench.run(&["--fresh"], 0);
    assert_eq!(left(&bench), [2, 0, 2], "the next run makes them again");
}

#[test]
fn results_go_only_when_they_are_named_and_the_users_own_files_never() {
    let bench = bench();
    clean(&bench, "--all --yes", 0);
    assert_eq!(left(&bench), [0, 0, 2]);
    let own = bench.results().join("notes.txt");
    fs::write(&own, "mine").unwrap();
    clean(&bench, "--results --yes", 0);
    assert!(own.exists());
    assert_eq!(left(&bench), [0, 0, 0]);
    fs::remove_file(own).unwrap();
    bench.run(&["--fresh"], 0);
    clean(&bench, "--results --yes", 0);
    assert!(!bench.results().exists(), "nothing is left in it");
}

#[test]
fn nothing_goes_without_a_yes_or_on_a_dry_run() {
    let bench = bench();
    let told = clean(&bench, "--all --results", 2);
    assert_eq!(
        told,
        "spindle: nobody can be asked here: add --yes to remove, or -n to list what would be removed\n"
    );
    let told = clean(&bench, "--all -n", 0);
    assert!(told.contains("would remove 2 snapshots and 1 server, "), "{told}");
    assert_eq!(left(&bench), [2, 1, 2]);
}

#[test]
fn a_directory_without_anything_is_told_as_such_and_ages_are_in_days() {
    let bench = bench();
    fs::create_dir(bench.path("other")).unwrap();
    let told = clean(&bench, "other", 0);
    assert!(told.ends_with("spindle: other has nothing of Spindle's\n"), "{told}");
    let told = clean(&bench, "--older-than 7days", 2);
    assert!(told.contains("`7days` is not a duration; write for example 7d or 12h"), "{told}");
}

#[test]
fn what_was_used_lately_stays() {
    let bench = bench();
    assert_eq!(clean(&bench, "--all --older-than 7d --yes", 0), "nothing to remove\n");
    let month = std::time::Duration::from_secs(30 * 86_400);
    let server = bench.path("cache/servers/mysql-5.5.9");
    for path in [server.clone(), server.join("bin/mysqld")] {
        let long_ago = std::time::SystemTime::now() - month;
        let times = fs::FileTimes::new().set_accessed(long_ago).set_modified(long_ago);
        fs::File::open(path).unwrap().set_times(times).unwrap();
    }
    assert!(clean(&bench, "", 0).contains("30 d ago"));
    clean(&bench, "--all --older-than 7d --yes", 0);
    assert_eq!(left(&bench), [2, 0, 2]);
}

#[test]
fn what_a_run_uses_is_kept() {
    let bench = bench();
    bench.write("test.toml", &scenario(2, GOOD, "4 s"));
    let mut command = bench.command(&["run", "test.toml", "--output", "results", "--fresh"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_until("the announcement", || announced(&bench.path("locks")) > 0);
    let told = clean(&bench, "--all --results --yes", 0);
    assert!(told.contains("kept: results: a run uses it\n"), "{told}");
    assert!(told.contains("mysql-5.5.9: `Test` (process "), "{told}");
    assert!(told.starts_with("nothing to remove\n"), "{told}");
    run.kill().unwrap();
    run.wait().unwrap();
}
