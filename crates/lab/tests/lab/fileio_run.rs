//! Whole runs of sysbench's file I/O, which needs no database, on emulated disks.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::emulated_support::{Bench, Part, kill, measured, next_part};
use crate::{in_check_all, wait_until};
use rustix::process::{Pid, Signal};
use spindle_lab::record::BottleneckKind;

fn scenario(program: &Path, run: &str) -> String {
    format!(
        r#"
title = "Files"
question = "How fast are files?"
[stacks.x25m]
profile = "x25m-80"
size = "1 GB"
[servers.files]
kind = "files"
[workloads.random-reads]
kind = "fileio"
mode = "rndrd"
total_mib = 64
block_bytes = 16384
terminals = 4
fsync_every = 0
program = {program:?}
[workloads.durable-writes]
kind = "fileio"
mode = "rndwr"
total_mib = 64
block_bytes = 16384
terminals = 4
fsync_every = 10
program = {program:?}
[workloads.new-files]
kind = "fileio"
mode = "seqwr"
total_mib = 256
block_bytes = 4096
terminals = 4
fsync_every = 0
program = {program:?}
[matrix]
stack = ["x25m"]
server = ["files"]
workload = ["random-reads", "durable-writes", "new-files"]
[run]
trials = 1
start = "cold"
seed = 1
{run}
"#
    )
}

#[test]
fn file_requests_are_measured_by_the_tool_and_seen_by_the_drive() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", &scenario(Path::new("sysbench"), "measure = \"3 s\""));
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 3, "{talk}");
    for trial in &trials {
        let measurement = measured(trial);
        let tool = &measurement.transactions[0];
        assert!(tool.committed > 100 && tool.latency.count == tool.committed, "{tool:?}");
        assert!(measurement.cpu.client_s > 0.0, "the tool uses CPU");
        // Without the page cache, each request of the tool is one of the drive.
        let drive = measurement.mounts[0].emulator.as_ref().unwrap();
        if trial.cell.contains("random-reads") {
            let ratio = drive.reads as f64 / tool.committed as f64;
            assert!((0.98..1.05).contains(&ratio), "{} requests of the tool: {drive:?}", tool.committed);
        } else if trial.cell.contains("new-files") {
            // The files that it makes anew are shorter than its data when it ends.
            assert!(drive.writes > 100 && drive.write_bytes < 256 << 20, "{drive:?}");
        } else {
            assert!(drive.writes > 100 && drive.flushes > 100, "{drive:?}");
        }
        assert!(measurement.verification.iter().all(|check| check.passed), "{:?}", measurement.verification);
        assert_ne!(measurement.bottleneck.kind, BottleneckKind::CommitLatency);
    }
    bench.assert_clean();
}

#[test]
fn a_tool_that_dies_leaves_a_failed_row_with_its_last_words() {
    let Some(bench) = Bench::new() else { return };
    // It notes its arguments beside itself.
    let directory = bench.path("tool");
    std::fs::create_dir(&directory).unwrap();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = directory.join("dies");
    let fake = Path::new(env!("CARGO_MANIFEST_DIR")).join("../load/src/process/fake_sysbench");
    // The tool runs as a user who may not be able to reach the checkout.
    std::fs::copy(fake, &program).unwrap();
    bench.write("test.toml", &scenario(&program, "measure = \"2 s\""));
    bench.run_scenario(&[], &[], 1);
    let errors: Vec<String> = bench.trials().into_iter().filter_map(|trial| trial.error).collect();
    assert_eq!(errors.len(), 3);
    assert!(errors[0].contains("sysbench prepare ended with signal: 9 (SIGKILL): oh no"), "{errors:?}");
    bench.assert_clean();
}

#[test]
fn a_missing_tool_is_reported_before_any_work() {
    let bench = Bench::anywhere();
    bench.write("test.toml", &scenario(Path::new("/nonexistent/sysbench"), "measure = \"2 s\""));
    let talk = bench.run_scenario(&[], &[], 1);
    let expect = "/nonexistent/sysbench is not installed: it comes with the package `sysbench`, which `tools/install tools` installs";
    assert!(talk.contains(expect), "{talk}");
    assert!(!bench.records().exists());
}

#[test]
fn a_window_of_a_fraction_of_a_second_is_refused() {
    let bench = Bench::anywhere();
    bench.write("test.toml", &scenario(Path::new("sysbench"), "measure = \"1500 ms\""));
    let talk = bench.run_scenario(&[], &[], 2);
    assert!(talk.contains("run.measure: 1.5 s is not a number of whole seconds"), "{talk}");
}

#[test]
fn a_window_that_would_end_early_is_refused() {
    let bench = Bench::anywhere();
    bench.write("test.toml", &scenario(Path::new("sysbench"), "measure = \"2 s\"\nenough = 1000"));
    let talk = bench.run_scenario(&[], &[], 2);
    assert!(talk.contains("run.enough: cannot end a window of workload `"), "{talk}");
}

/// The process of the tool that works in the directory.
fn tool_process(directory: &Path) -> Option<PathBuf> {
    let processes = std::fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    processes.into_iter().find(|process| {
        let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
        let place = std::fs::read_link(process.join("cwd")).unwrap_or_default();
        name.trim() == "sysbench" && place.starts_with(directory)
    })
}

/// There is no server here whose end would end the tool.
#[test]
fn a_signal_ends_a_tool_that_fills_the_files() {
    let Some(bench) = Bench::new() else { return };
    let scenario = scenario(Path::new("sysbench"), "measure = \"3 s\"");
    // Two million writes, which take longer on any machine than is allowed below.
    let long = [
        ("total_mib = 64", "total_mib = 8192"),
        ("block_bytes = 16384", "block_bytes = 4096"),
        ("1 GB", "20 GB"),
    ];
    bench.write("test.toml", &long.iter().fold(scenario, |text, (from, to)| text.replace(from, to)));
    let mut run = bench.start_scenario();
    let loader = next_part(&run, Part::Loader, &mut Vec::new());
    std::thread::sleep(Duration::from_millis(500));
    kill(Pid::from_child(&run), Signal::TERM);
    let signalled = Instant::now();
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert!(signalled.elapsed() < Duration::from_secs(15), "{:?}", signalled.elapsed());
    assert!(rustix::process::test_kill_process(loader).is_err(), "the tool still runs");
    bench.assert_clean();
}

#[test]
fn a_signal_leaves_no_tool_behind() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", &scenario(Path::new("sysbench"), "measure = \"600 s\""));
    let mut run = bench.start_scenario();
    let directory = bench.path("");
    // The one that fills the files ends by itself.
    wait_until("a tool with threads at work", || {
        let threads =
            tool_process(&directory).and_then(|process| std::fs::read_dir(process.join("task")).ok());
        threads.is_some_and(|threads| threads.count() >= 5)
    });
    kill(Pid::from_child(&run), Signal::TERM);
    assert_eq!(run.wait().unwrap().code(), Some(130));
    assert_eq!(tool_process(&directory), None);
    bench.assert_clean();
}
