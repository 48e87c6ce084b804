//! Real disks: FUSE, a loop device, a file system, and MariaDB on it. Every test runs the real binary.

use crate::is_left_to_check_all;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::emulated_support::{Bench, emulator_of, is_running, scenario, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spindle_lab::record::BottleneckKind;
use spindle_lab::record::records_file;
use spindle_lab::report;

/// One warehouse on a hard disk and on a PCIe card, one short trial each.
const SCENARIO: &str = r#"
title = "A short run"
question = "Does everything work together?"
[stacks.hdd]
profile = "hdd-7200"
size = "4 GiB"
[stacks.card]
profile = "iodrive-160"
size = "4 GiB"
file_system = "ext4"
[servers.mariadb]
kind = "mariadb"
settings = { innodb_flush_method = "O_DIRECT", innodb_buffer_pool_size = "12M", innodb_flush_log_at_trx_commit = 1 }
[workloads.tpcc]
kind = "tpcc"
warehouses = 1
terminals = 4
[matrix]
stack = ["hdd", "card"]
server = ["mariadb"]
workload = ["tpcc"]
[run]
trials = 1
start = "warm-fast"
warm_up = "1 s"
settle = "1 s"
measure = "4 s"
seed = 1
"#;

#[test]
fn a_whole_run_measures_verifies_reports_and_cleans_up() {
    let Some(bench) = Bench::new() else { return };
    fs::write(bench.path("short.toml"), SCENARIO).unwrap();
    let output = bench.run(&["run", "short.toml", "--output", "results"]);
    let talk = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{talk}");
    let trials = report::read(&bench.path("results").join(records_file::FILE_NAME)).unwrap().trials;
    assert_eq!(trials.len(), 2, "{talk}");
    let metric = |cell: &str| {
        let trial = trials.iter().find(|trial| trial.cell == cell).unwrap();
        let measurement = trial.measurement.as_ref().unwrap_or_else(|| panic!("{:?}", trial.error));
        assert!(measurement.verification.len() >= 12, "{:?}", measurement.verification);
        assert!(measurement.verification.iter().all(|check| check.passed), "{:?}", measurement.verification);
        let emulator = measurement.mounts[0].emulator.as_ref().unwrap();
        assert!(emulator.reads > 0 && emulator.writes > 0, "{emulator:?}");
        measurement.metric.value
    };
    let ratio = metric("card") / metric("hdd");
    assert!(ratio > 2.0, "the card did only {ratio} times what the disk did");
    assert!(fs::metadata(bench.path("results").join("report.html")).unwrap().len() > 100_000);
    bench.assert_clean();
}

#[test]
fn a_disk_is_waited_for_by_commits_that_nobody_times() {
    if is_left_to_check_all() {
        return;
    }
    let Some(bench) = Bench::new() else { return };
    let updates =
        "kind = \"oltp\"\nscript = \"update-non-index\"\ntables = 1\nrows = 1000\ndistribution = \"uniform\"";
    bench.write(
        "test.toml",
        &scenario(&[
            ("iodrive-160", "hdd-7200"),
            ("kind = \"tpcc\"\nwarehouses = 1", updates),
            ("measure = \"1 s\"", "measure = \"3 s\""),
        ]),
    );
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    let measurement = trials[0].measurement.as_ref().unwrap_or_else(|| panic!("{:?}", trials[0].error));
    let bottleneck = &measurement.bottleneck;
    assert_eq!(bottleneck.kind, BottleneckKind::CommitLatency, "{bottleneck:?} {talk}");
    assert!(bottleneck.reason.contains(" ms each (estimated from the server's counters)"), "{bottleneck:?}");
    // Each statement is a transaction of its own; the server is asked a moment before and after the clients.
    // MariaDB numbers a transaction when it begins and when it commits, so each terminal's, under way at the
    // first look, counts half.
    const TERMINALS: f64 = 4.0;
    let (_, commits) = bottleneck.reason.split_once("went into ").unwrap();
    let commits: f64 = commits.split_once(" commits").unwrap().0.parse().unwrap();
    let statements = measurement.latency.count as f64;
    let expected = statements - TERMINALS / 2.0..statements * 1.2 + 8.0;
    assert!(expected.contains(&commits), "{statements} statements: {bottleneck:?}");
    bench.assert_clean();
}

#[test]
fn what_a_killed_run_leaves_is_cleared_by_one_command() {
    let Some(bench) = Bench::new() else { return };
    fs::write(bench.path("short.toml"), SCENARIO).unwrap();
    let mut run = bench
        .command(&["run", "short.toml", "--output", "results"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let log = |name: &str| {
        let entries = fs::read_dir(bench.path("run")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join(name)).any(|path| path.exists())
    };
    wait_until("a database on the mounted disk", || log("mount/data/ibdata1"));
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::KILL).unwrap();
    run.wait().unwrap();
    let output = bench.run(&["disk", "down", "--all"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    bench.assert_clean();
}

#[test]
fn a_run_killed_while_it_makes_a_database_leaves_no_process() {
    let Some(bench) = Bench::new() else { return };
    fs::write(bench.path("short.toml"), SCENARIO).unwrap();
    let mut command = bench.command(&["run", "short.toml", "--output", "results"]);
    let mut run = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // A grandchild's child: what makes a database is a script.
    wait_until("the server that makes a database", || is_running(&bench, "--bootstrap"));
    kill_process(Pid::from_raw(run.id() as i32).unwrap(), Signal::KILL).unwrap();
    run.wait().unwrap();
    wait_until("that server to end", || !is_running(&bench, "--bootstrap"));
    assert!(bench.run(&["disk", "down", "--all"]).status.success());
    bench.assert_clean();
}

#[test]
fn killing_the_emulator_gives_errors_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let disk = bench.json(&["disk", "up", "null", "--size", "1 GiB", "--name", "victim", "--json"]);
    let mount = PathBuf::from(disk["mount"].as_str().unwrap());
    fs::write(mount.join("file"), "before").unwrap();
    let process = emulator_of(&bench.path("run").join("victim"));
    kill_process(process, Signal::KILL).unwrap();
    let directory = Path::new("/proc").join(process.as_raw_nonzero().to_string());
    wait_until("the emulator to end", || !directory.exists());
    let written = OpenOptions::new().write(true).create(true).truncate(true).open(mount.join("after"));
    let written = written.and_then(|file| file.write_all_at(&[1; 4096], 0).and_then(|()| file.sync_all()));
    assert!(written.is_err(), "nothing can be durable on a dead disk");
    assert!(bench.run(&["disk", "down", "victim"]).status.success());
    bench.assert_clean();
}

/// Whether this kernel has FUSE over io_uring; its parameter is left as it was.
const URING_PARAMETER: &str = "/sys/module/fuse/parameters/enable_uring";

#[test]
fn a_raw_disk_keeps_what_is_written_on_it() {
    let parameter = fs::read_to_string(URING_PARAMETER);
    let best = if parameter.is_ok() { "io_uring" } else { "threads" };
    check_raw_disk(None, best);
    check_raw_disk(Some("threads"), "threads");
    assert_eq!(fs::read_to_string(URING_PARAMETER).ok(), parameter.ok());
}

fn check_raw_disk(wish: Option<&str>, transport: &str) {
    let Some(bench) = Bench::new() else { return };
    let arguments =
        ["disk", "up", "x25m-80", "--size", "1 GiB", "--file-system", "none", "--name", "raw", "--json"];
    let output = bench.command(&arguments).envs(wish.map(|wish| ("SPINDLE_FUSE", wish))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let disk: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(disk["mount"], Value::Null);
    let device = OpenOptions::new().read(true).write(true).open(disk["device"].as_str().unwrap()).unwrap();
    let pattern: Vec<u8> = (0..1_000_000_u32).map(|index| (index / 97) as u8).collect();
    device.write_all_at(&pattern, 123_456_789).unwrap();
    device.sync_all().unwrap();
    let mut found = vec![0; pattern.len()];
    device.read_exact_at(&mut found, 123_456_789).unwrap();
    assert!(found == pattern);

    // DISCARD and WRITE_ZEROES, each on a part of what was written; the rest stays.
    let (discarded, zeroed) = (123_457_536_u64, 123_600_896_u64);
    for (offset, options) in [(discarded, vec![]), (zeroed, vec!["--zeroout"])] {
        let range = [format!("--offset={offset}"), "--length=65536".to_owned()];
        let status = Command::new("blkdiscard")
            .args(options)
            .args(range)
            .arg(disk["device"].as_str().unwrap())
            .status();
        assert!(status.unwrap().success());
        let at = (offset - 123_456_789) as usize;
        let mut expected = pattern.clone();
        expected[at..at + 65536].fill(0);
        device.read_exact_at(&mut found[at..at + 65536], offset).unwrap();
        assert!(found[at..at + 65536] == expected[at..at + 65536], "not zeros at {offset}");
        device.read_exact_at(&mut found[..at], 123_456_789).unwrap();
        assert!(found[at - 512..at] == pattern[at - 512..at], "too much was cleared before {offset}");
    }
    drop(device);
    let status = bench.json(&["disk", "status", "--json"]);
    let statistics = &status[0]["statistics"];
    assert_eq!(statistics["transport"], transport);
    assert!(statistics["write"]["bytes"].as_u64().unwrap() >= 1_000_000, "{statistics}");
    assert!(statistics["flush"]["count"].as_u64().unwrap() >= 1, "{statistics}");
    assert!(statistics["discard"]["count"].as_u64().unwrap() >= 2, "{statistics}");
    assert!(bench.run(&["disk", "down", "raw"]).status.success());
    bench.assert_clean();
}

#[test]
fn a_name_or_a_mount_point_in_use_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let at = bench.path("at");
    let at = at.to_str().unwrap();
    bench.json(&["disk", "up", "null", "--size", "1 GiB", "--name", "first", "--at", at, "--json"]);
    let words = |arguments: &[&str]| {
        let output = bench.run(arguments);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let same_name = words(&["disk", "up", "null", "--size", "1 GiB", "--name", "first"]);
    assert!(same_name.contains("a disk called first exists already"), "{same_name}");
    let same_place = words(&["disk", "up", "null", "--size", "1 GiB", "--name", "second", "--at", at]);
    assert!(same_place.contains("is in use: something is mounted there"), "{same_place}");
    assert!(bench.run(&["disk", "down", "--all"]).status.success());
    bench.assert_clean();
}

#[test]
fn busy_file_system_is_not_pulled_away() {
    let Some(bench) = Bench::new() else { return };
    let disk = bench.json(&["disk", "up", "null", "--size", "1 GiB", "--name", "busy", "--json"]);
    let file = fs::File::create(Path::new(disk["mount"].as_str().unwrap()).join("open")).unwrap();
    let output = bench.run(&["disk", "down", "busy"]);
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("is in use: end the processes"), "{words}");
    drop(file);
    assert!(bench.run(&["disk", "down", "busy"]).status.success());
    bench.assert_clean();
}

#[test]
fn a_disk_ages_without_a_write_and_forgets_when_erased() {
    let Some(bench) = Bench::new() else { return };
    let up = ["disk", "up", "x25m-80", "--size", "1 GiB", "--file-system", "none", "--name", "ssd", "--json"];
    let disk = bench.json(&up);
    let device = OpenOptions::new().read(true).write(true).open(disk["device"].as_str().unwrap()).unwrap();
    device.write_all_at(&[7; 4096], 0).unwrap();
    device.sync_all().unwrap();
    let statistics = || bench.json(&["disk", "status", "--json"])[0]["statistics"].clone();
    let before = statistics();

    assert!(bench.run(&["disk", "age", "ssd"]).status.success());
    let aged = statistics();
    assert_eq!(aged["write"], before["write"], "nothing is written");
    assert!(aged["erases"].as_u64().unwrap() > before["erases"].as_u64().unwrap(), "{aged}");
    let mut found = [0; 4096];
    device.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, [7; 4096], "the content stays");

    assert!(bench.run(&["disk", "secure-erase", "ssd"]).status.success());
    // Past the kernel's cache.
    rustix::fs::fadvise(&device, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    device.read_exact_at(&mut found, 0).unwrap();
    assert_eq!(found, [0; 4096], "nothing is left");
    drop(device);
    assert!(bench.run(&["disk", "down", "ssd"]).status.success());
    bench.assert_clean();
}

#[test]
fn a_mounted_disk_is_not_erased() {
    let Some(bench) = Bench::new() else { return };
    bench.json(&["disk", "up", "null", "--size", "1 GiB", "--name", "busy", "--json"]);
    let output = bench.run(&["disk", "secure-erase", "busy"]);
    assert!(!output.status.success());
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.contains("is mounted at"), "{words}");
    assert!(bench.run(&["disk", "down", "busy"]).status.success());
    bench.assert_clean();
}

/// One of each kind of layer, over FUSE and a loop device.
#[test]
fn stacks_of_layers_keep_what_is_written_on_them() {
    if is_left_to_check_all() {
        return;
    }
    for name in ["raid5-4x-x25e-controller", "iodrive-160-raid1x2", "drbd-c-10g", "barracuda-logged-cached"] {
        let Some(bench) = Bench::new() else { return };
        let disk = bench.json(&["disk", "up", name, "--size", "1 GiB", "--name", "stack", "--json"]);
        let path = Path::new(disk["mount"].as_str().unwrap()).join("file");
        let pattern: Vec<u8> = (0..3_000_000_u32).map(|index| (index / 89) as u8).collect();
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all_at(&pattern, 0).unwrap();
        file.sync_all().unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
        let mut found = vec![0; pattern.len()];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found == pattern, "{name}");
        drop(file);
        assert!(bench.run(&["disk", "down", "stack"]).status.success());
        bench.assert_clean();
    }
}
