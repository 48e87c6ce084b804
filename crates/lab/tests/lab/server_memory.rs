//! The limit of a server's memory, with a real PostgreSQL in a real control group.

use std::fs;
use std::path::{Path, PathBuf};

use crate::emulated_support::{Bench, check_failed, measured};
use crate::{in_check_all, skip, wait_until};

const SETTINGS: &str =
    "settings = { shared_buffers = \"16MB\", max_wal_size = \"96MB\", max_parallel_workers_per_gather = 0 }";

/// PostgreSQL with a limit of its memory, and without one. A transaction reads the whole table, which is twice
/// as large as the limit.
const SCENARIO: &str = r#"
title = "A small page cache"
[stacks.card]
profile = "iodrive-160"
size = "2 GiB"
[servers.small]
kind = "postgresql"
memory = "100 MB"
SETTINGS
[servers.large]
kind = "postgresql"
SETTINGS
[workloads.scan]
kind = "custom"
file = "work.sql"
terminals = 1
[matrix]
stack = ["card"]
server = ["small", "large"]
workload = ["scan"]
[run]
trials = 1
start = "warm-fast"
warm_up = "10 s"
settle = "100 ms"
measure = "8 s"
"#;

/// 230 MB of pages.
const TABLE: &str = r"
\load
DROP TABLE IF EXISTS page;
CREATE TABLE page (id INTEGER NOT NULL PRIMARY KEY, content VARCHAR(1000) NOT NULL);
\rows page 200000 = sequence(1), string(1000)
\transaction scan 1
SELECT COUNT(*) FROM page WHERE content = 'none';
\check every page is there
SELECT COUNT(*) = 200000 FROM page;
";

/// A query that builds a text of 400 MB.
const GREEDY: &str = r"
\load
DROP TABLE IF EXISTS page;
CREATE TABLE page (id INTEGER NOT NULL PRIMARY KEY);
\rows page 10 = sequence(1)
\transaction greed 1
SELECT LENGTH(STRING_AGG(REPEAT('x', 1000), '')) FROM GENERATE_SERIES(1, 400000);
\check every page is there
SELECT COUNT(*) = 10 FROM page;
";

/// A bench with the scenario of these servers, where memory can be limited.
fn bench(servers: &str, work: &str) -> Option<Bench> {
    let bench = Bench::new()?;
    let scenario = SCENARIO.replace("SETTINGS", SETTINGS).replace("\"small\", \"large\"", servers);
    bench.write("test.toml", &scenario);
    bench.write("work.sql", work);
    let output = bench.run(&["plan", "test.toml"]);
    let talk = String::from_utf8(output.stderr).unwrap();
    if talk.contains("memory: cannot be limited here") {
        return skip(&talk);
    }
    assert!(output.status.success(), "{talk}");
    Some(bench)
}

/// The control groups of a run, wherever they are.
fn groups(run: u32) -> Vec<PathBuf> {
    fn below(directory: &Path, prefix: &str, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
                found.push(entry.path());
            }
            below(&entry.path(), prefix, found);
        }
    }
    let mut found = Vec::new();
    below(Path::new("/sys/fs/cgroup"), &format!("spindle-memory-{run}-"), &mut found);
    found
}

#[test]
fn a_table_larger_than_the_limit_is_read_from_the_disk_again() {
    let Some(bench) = in_check_all(|| bench("\"small\", \"large\"", TABLE)) else { return };
    let run = bench.start_scenario();
    let id = run.id();
    bench.finish(run, 0);
    let trials = bench.trials();
    let of = |server: &str| {
        let trial = trials.iter().find(|trial| trial.cell.contains(server)).unwrap();
        let measurement = measured(trial);
        let emulator = measurement.mounts[0].emulator.as_ref().unwrap();
        (emulator.read_bytes, trial.provenance.memory_bytes, measurement.cache_turnovers)
    };
    let ((small_bytes, limit, turnovers), (large_bytes, no_limit, no_turnovers)) = (of("small"), of("large"));
    assert!(turnovers.unwrap() > 1.0, "each scan of the warm-up reads the table: {turnovers:?}");
    assert_eq!(no_turnovers, None, "without a limit, nobody knows what the page cache holds");
    assert_eq!((limit, no_limit), (Some(100_000_000), None));
    // A scan that ends in the window has read most of the table, whatever it found in memory.
    assert!(small_bytes > 100_000_000, "{small_bytes} of the table were read again");
    assert!(large_bytes < small_bytes / 4, "{large_bytes} and {small_bytes}");
    assert_eq!(groups(id), Vec::<PathBuf>::new());
    bench.assert_clean();
}

#[test]
fn a_server_that_needs_more_than_the_limit_fails_its_trial_and_the_limit_is_named() {
    let Some(bench) = in_check_all(|| bench("\"small\"", GREEDY)) else { return };
    let run = bench.start_scenario();
    let id = run.id();
    bench.finish(run, 1);
    let words = "the kernel killed a process of the server, which needed more memory than `memory` = \"100 MB\" \
                 allows";
    check_failed(&bench.trials()[0], words);
    assert_eq!(groups(id), Vec::<PathBuf>::new());
    bench.assert_clean();
}

#[test]
fn the_group_of_a_killed_run_is_removed() {
    let small = GREEDY.replace("400000", "10");
    let Some(bench) = in_check_all(|| bench("\"small\"", &small)) else { return };
    let mut run = bench.start_scenario();
    let id = run.id();
    let has_processes = |group: &PathBuf| {
        fs::read_to_string(group.join("cgroup.procs")).is_ok_and(|processes| !processes.is_empty())
    };
    wait_until("the server to be in its group", || groups(id).iter().any(has_processes));
    run.kill().unwrap();
    run.wait().unwrap();
    bench.down("--all");
    assert_eq!(groups(id), Vec::<PathBuf>::new());
    bench.assert_clean();
}
