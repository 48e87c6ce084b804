//! Real disks: FUSE, a loop device, a file system, and MariaDB on it. Every test runs the real binary.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::emulated_support::{Bench, emulator_of, is_running, kill, measured, measured_tpcc, scenario};
use crate::{in_check_all, wait_until};
use rustix::process::Signal;
use serde_json::Value;
use spindle_lab::record::BottleneckKind;

const RUN_OF_TWO_DISKS: &str = "warm_up = \"until warm\"\nsettle = \"1 s\"\nmeasure = \"8 s\"";

/// One warehouse on a hard disk and on a PCIe card, one short trial each. Half of the data fit the buffer pool: with
/// less, the disk finishes so few orders in the window that chance can leave none.
fn two_disks() -> String {
    let disks = "[stacks.hdd]\nprofile = \"hdd-7200\"\nsize = \"4 GiB\"\n\
        [stacks.card]\nprofile = \"iodrive-160\"\nsize = \"4 GiB\"\nfile_system = \"ext4\"\n";
    scenario(&[
        ("[stacks.card]\nprofile = \"iodrive-160\"\nsize = \"1 GiB\"\n", disks),
        ("stack = [\"card\"]", "stack = [\"hdd\", \"card\"]"),
        ("\"12M\"", "\"64M\""),
        ("warm_up = \"500 ms\"\nsettle = \"100 ms\"\nmeasure = \"3 s\"", RUN_OF_TWO_DISKS),
    ])
}

#[test]
fn a_whole_run_measures_verifies_reports_and_cleans_up() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", &two_disks());
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 2, "{talk}");
    let metric = |cell: &str| {
        let measurement = measured_tpcc(trials.iter().find(|trial| trial.cell == cell).unwrap());
        let emulator = measurement.mounts[0].emulator.as_ref().unwrap();
        assert!(measurement.cache_turnovers.unwrap() >= 2.5, "{talk}");
        assert!(emulator.reads > 0 && emulator.writes > 0, "{emulator:?}");
        measurement.metric.value
    };
    let ratio = metric("card") / metric("hdd");
    assert!(ratio > 2.0, "the card was only {ratio} times as fast as the disk");
    assert!(fs::metadata(bench.path("results").join("report.html")).unwrap().len() > 100_000);
    bench.assert_clean();
}

#[test]
fn commits_that_the_client_does_not_time_are_found_to_wait_for_the_disk() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let updates =
        "kind = \"oltp\"\nscript = \"update-non-index\"\ntables = 1\nrows = 1000\ndistribution = \"uniform\"";
    bench.write(
        "test.toml",
        &scenario(&[("iodrive-160", "hdd-7200"), ("kind = \"tpcc\"\nwarehouses = 1", updates)]),
    );
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    let measurement = measured(&trials[0]);
    let bottleneck = &measurement.bottleneck;
    assert_eq!(bottleneck.kind, BottleneckKind::CommitLatency, "{bottleneck:?} {talk}");
    assert!(bottleneck.reason.contains(" ms each (estimated from the server's counters)"), "{bottleneck:?}");
    // Each statement is a transaction. The server is asked a moment before and after the clients. MariaDB
    // numbers a transaction when it begins and when it commits, so a transaction under way when the server is
    // first asked counts half, one for each terminal.
    const TERMINALS: f64 = 4.0;
    let (_, commits) = bottleneck.reason.split_once("went into ").unwrap();
    let commits: f64 = commits.split_once(" commits").unwrap().0.parse().unwrap();
    let statements = measurement.latency.count as f64;
    let expected = statements - TERMINALS / 2.0..statements * 1.2 + 8.0;
    assert!(expected.contains(&commits), "{statements} statements: {bottleneck:?}");
    bench.assert_clean();
}

#[test]
fn one_command_clears_everything_of_a_killed_run() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", &two_disks());
    let mut run = bench.start_scenario();
    let log = |name: &str| {
        let entries = fs::read_dir(bench.path("run")).into_iter().flatten().flatten();
        entries.map(|entry| entry.path().join(name)).any(|path| path.exists())
    };
    wait_until("a database on the mounted disk", || log("mount/data/ibdata1"));
    run.kill().unwrap();
    run.wait().unwrap();
    bench.down("--all");
    bench.assert_clean();
}

#[test]
fn a_run_killed_while_it_makes_a_database_leaves_no_process() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", &two_disks());
    let mut run = bench.start_scenario();
    // A child of a script that the run starts.
    wait_until("the server that makes a database", || is_running(&bench, "--bootstrap"));
    run.kill().unwrap();
    run.wait().unwrap();
    wait_until("that server to end", || !is_running(&bench, "--bootstrap"));
    bench.down("--all");
    bench.assert_clean();
}

#[test]
fn a_killed_emulator_gives_errors_and_leaves_nothing() {
    let Some(bench) = Bench::new() else { return };
    let disk = bench.up("null", "victim", &[]);
    let mount = PathBuf::from(disk["mount"].as_str().unwrap());
    fs::write(mount.join("file"), "before").unwrap();
    let process = emulator_of(&bench.path("run").join("victim"));
    kill(process, Signal::KILL);
    let directory = Path::new("/proc").join(process.as_raw_nonzero().to_string());
    wait_until("the emulator to end", || !directory.exists());
    let written = OpenOptions::new().write(true).create(true).truncate(true).open(mount.join("after"));
    let written = written.and_then(|file| file.write_all_at(&[1; 4096], 0).and_then(|()| file.sync_all()));
    assert!(written.is_err(), "nothing can be durable on a dead disk");
    bench.down("victim");
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

    // DISCARD and WRITE_ZEROES clear a part of the pattern each; the rest stays.
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
    bench.down("raw");
    bench.assert_clean();
}

#[test]
fn a_dilated_disk_is_slower_on_the_clock_and_not_in_its_own_figures() {
    let best = if Path::new(URING_PARAMETER).exists() { "io_uring" } else { "threads" };
    check_dilated_disk(None, best);
    check_dilated_disk(Some("threads"), "threads");
}

/// A read that moves the arm of this disk takes 5 ms or more: half a rotation, and the arm's way.
fn check_dilated_disk(wish: Option<&str>, transport: &str) {
    const K: f64 = 4.0;
    let Some(bench) = in_check_all(Bench::new) else { return };
    let up =
        ["disk", "up", "hdd-7200", "--size", "1 GiB", "--file-system", "none", "--name", "slow", "--json"];
    let up = [&up[..], &["--dilation", "4"]].concat();
    let output = bench.command(&up).envs(wish.map(|wish| ("SPINDLE_FUSE", wish))).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let disk: Value = serde_json::from_slice(&output.stdout).unwrap();
    let device = fs::File::open(disk["device"].as_str().unwrap()).unwrap();
    rustix::fs::fadvise(&device, 0, None, rustix::fs::Advice::Random).unwrap();
    let statistics = || bench.json(&["disk", "status", "slow", "--json"])[0]["statistics"].clone();
    let before = statistics();
    assert_eq!((&before["dilation"], &before["transport"]), (&Value::from(K), &Value::from(transport)));
    let begun = Instant::now();
    const READS: u64 = 30;
    for index in 0..READS {
        device.read_exact_at(&mut [0; 4096], (index * 7 + 3) % READS * (32 << 20)).unwrap();
    }
    let read_ms = begun.elapsed().as_secs_f64() * 1e3 / READS as f64;
    assert!(read_ms >= K * 5.0, "{read_ms} ms on the clock");
    let after = statistics();
    assert!(after["read"]["count"].as_u64().unwrap() >= READS, "{after}");
    // One reader waits for the disk nearly all the time, on the clock as in the disk's own time.
    let sum_ms = |status: &Value| {
        status["read"]["mean_ms"].as_f64().unwrap() * status["read"]["count"].as_f64().unwrap()
    };
    let own_ms = (sum_ms(&after) - sum_ms(&before)) / READS as f64;
    let ratio = read_ms / own_ms;
    assert!((0.5 * K..1.5 * K).contains(&ratio), "{read_ms} ms on the clock, {own_ms} ms of its own time");
    drop(device);
    bench.down("slow");
    bench.assert_clean();
}

#[test]
fn a_name_or_a_mount_point_in_use_is_refused() {
    let Some(bench) = Bench::new() else { return };
    let at = bench.path("at");
    let at = at.to_str().unwrap();
    bench.up("null", "first", &["--at", at]);
    let same_name = bench.talk(&["disk", "up", "null", "--size", "1 GiB", "--name", "first"], 2);
    assert!(same_name.contains("a disk called first exists already"), "{same_name}");
    let same_place =
        bench.talk(&["disk", "up", "null", "--size", "1 GiB", "--name", "second", "--at", at], 2);
    assert!(same_place.contains("is in use: something is mounted there"), "{same_place}");
    bench.down("--all");
    bench.assert_clean();
}

#[test]
fn a_disk_hides_the_content_of_a_directory_only_when_asked() {
    let Some(bench) = Bench::new() else { return };
    let file = bench.path("at/letter");
    fs::create_dir(bench.path("at")).unwrap();
    fs::write(&file, "text").unwrap();
    let at = bench.path("at");
    let up = ["disk", "up", "null", "--size", "1 GiB", "--name", "over", "--at", at.to_str().unwrap()];
    let words = bench.talk(&up, 2);
    assert!(words.contains("holds one entry, which the disk would hide"), "{words}");
    bench.text(&[&up[..], &["--over"]].concat());
    assert!(!file.exists());
    bench.down("over");
    assert_eq!(fs::read_to_string(&file).unwrap(), "text");
    bench.assert_clean();
}

#[test]
fn the_requests_of_mkfs_are_not_in_the_statistics() {
    let Some(bench) = Bench::new() else { return };
    let disk = bench.up("null", "fresh", &[]);
    let count = || {
        let statistics = &bench.json(&["disk", "status", "fresh", "--json"])[0]["statistics"];
        let of = |operation: &str| statistics[operation]["count"].as_u64().unwrap();
        ["read", "write", "discard"].map(of).iter().sum::<u64>()
    };
    // A mounted file system may write its log.
    assert!(count() < 10, "{}", count());
    let mut file = fs::File::create(Path::new(disk["mount"].as_str().unwrap()).join("file")).unwrap();
    std::io::Write::write_all(&mut file, &[1; 1 << 20]).unwrap();
    file.sync_all().unwrap();
    drop(file);
    assert!(count() > 0);
    bench.down("fresh");
    bench.assert_clean();
}

#[test]
fn a_file_system_in_use_is_not_taken_down() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let disk = bench.up("null", "busy", &[]);
    let file = fs::File::create(Path::new(disk["mount"].as_str().unwrap()).join("open")).unwrap();
    let words = bench.talk(&["disk", "down", "busy"], 1);
    let user = format!("({}), then try again", std::process::id());
    assert!(words.contains("is in use: end the processes ") && words.contains(&user), "{words}");
    drop(file);
    let words = bench.talk(&["disk", "down", "busy"], 0);
    assert_eq!(words, format!("busy is down; it was mounted on {}\n", disk["mount"].as_str().unwrap()));
    bench.assert_clean();
}

#[test]
fn a_disk_ages_without_a_write_and_forgets_when_erased() {
    let Some(bench) = Bench::new() else { return };
    let disk = bench.up("x25m-80", "ssd", &["--file-system", "none"]);
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
    assert_eq!(found, [0; 4096], "the drive is empty");
    drop(device);
    bench.down("ssd");
    bench.assert_clean();
}

#[test]
fn a_mounted_disk_is_not_erased() {
    let Some(bench) = Bench::new() else { return };
    bench.up("null", "busy", &[]);
    let words = bench.talk(&["disk", "secure-erase", "busy"], 2);
    assert!(words.contains("is mounted at"), "{words}");
    bench.down("busy");
    bench.assert_clean();
}

/// One of each kind of layer, over FUSE and a loop device.
#[test]
fn stacks_of_layers_keep_what_is_written_on_them() {
    for name in ["raid5-4x-x25e-controller", "iodrive-160-raid1x2", "drbd-c-10g", "barracuda-logged-cached"] {
        let Some(bench) = in_check_all(Bench::new) else { return };
        let disk = bench.up(name, "stack", &[]);
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
        let status = bench.json(&["disk", "status", "--json"]);
        let layers = status[0]["statistics"]["layers"].as_array().unwrap();
        let written = |layer: &Value| layer["write_bytes"].as_u64().unwrap() >= pattern.len() as u64;
        assert!(layers.len() > 1 && written(&layers[0]), "{name}: {layers:?}");
        if name == "iodrive-160-raid1x2" {
            let members =
                layers.iter().filter(|layer| layer["name"] == "flash 1" || layer["name"] == "flash 2");
            assert_eq!(members.filter(|member| written(member)).count(), 2, "{layers:?}");
        }
        bench.down("stack");
        bench.assert_clean();
    }
}
