//! A whole run in which something breaks: a full disk, a server that dies, a signal at a bad time. The trial
//! becomes a failed row with one clear sentence, the next trials go on, finished records stay, and nothing is
//! left behind.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::Child;
use std::time::{Duration, Instant};

use crate::emulated_support::{
    Bench, Part, SCENARIO, SmallDisk, check_failed, fill, kill, measured, next_part, part, scenario,
};
use crate::{in_check_all, wait_until};
use rustix::process::{Pid, Signal};
use spindle_lab::record::records_file::FILE_NAME;

/// With one more setting of the server.
fn with_setting(setting: &str) -> String {
    scenario(&[("settings = { ", &format!("settings = {{ {setting}, "))])
}

const HOST_FULL: &str = "the host could not keep data written to the emulated disk";

#[test]
fn a_host_disk_that_fills_up_while_loading_fails_the_trial() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", &scenario(&[("size = ", "file_system = \"ext4\"\nsize = ")]));
    let work = SmallDisk::mount(bench.path("work"), 32 << 20);
    let talk = bench.run_scenario(&[], &[("SPINDLE_OVERLAY_MEMORY", "32 MiB")], 1);
    assert!(work.unmount().is_empty());
    let trials = bench.trials();
    assert_eq!(trials.len(), 1, "{talk}");
    check_failed(
        &trials[0],
        &format!("loading the database: {HOST_FULL} (up to 32 MiB in memory, the rest in a file in"),
    );
    assert!(trials[0].error.as_ref().unwrap().ends_with("No space left on device (os error 28)"), "{talk}");
    assert_eq!(
        fs::read_dir(bench.path("results/snapshots")).unwrap().count(),
        0,
        "a part of a database is kept"
    );
    bench.assert_clean();
}

#[test]
fn a_disk_that_lost_a_write_answers_with_errors_only() {
    let Some(bench) = Bench::new() else { return };
    let work = SmallDisk::mount(bench.path("work"), 4 << 20);
    let mut up = bench.command(&["disk", "up", "null", "--size", "1 GiB", "--file-system", "none", "--json"]);
    let output = up.env("SPINDLE_OVERLAY_MEMORY", "1 MiB").output().unwrap();
    let disk: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let device = OpenOptions::new().read(true).write(true).open(disk["device"].as_str().unwrap()).unwrap();
    device.write_all_at(&[1; 4096], 0).unwrap();
    device.sync_all().unwrap();
    let lost = device.write_all_at(&vec![2; 8 << 20], 1 << 20).and_then(|()| device.sync_all());
    assert!(lost.is_err(), "8 MiB went into 5 MiB");
    // A page that the kernel has not cached, a write to where there is room, and a FLUSH.
    assert!(device.read_at(&mut [0; 4096], 512 << 20).is_err());
    assert!(device.write_all_at(&[3; 4096], 0).and_then(|()| device.sync_all()).is_err());
    let status = bench.run(&["disk", "status"]);
    let status = String::from_utf8(status.stdout).unwrap();
    assert!(status.contains(&format!("dead: {HOST_FULL} (up to 1 MiB in memory")), "{status}");
    drop(device);
    bench.down("--all");
    assert!(work.unmount().is_empty());
    bench.assert_clean();
}

#[test]
fn a_host_disk_that_fills_up_in_a_trial_fails_that_trial_only() {
    let Some(bench) = in_check_all(Bench::with_a_finished_trial) else { return };
    let before = bench.trials();
    bench.write("test.toml", &scenario(&[("trials = 1", "trials = 2")]));
    let work = SmallDisk::mount(bench.path("work"), 8 << 20);
    let talk = bench.run_scenario(&[], &[("SPINDLE_OVERLAY_MEMORY", "1 MiB")], 0);
    assert!(talk.contains("1 of 2 trials failed"), "{talk}");
    assert!(work.unmount().is_empty());
    let trials = bench.trials();
    assert_eq!((trials.len(), &trials[..1]), (2, &before[..]));
    check_failed(&trials[1], HOST_FULL);
    bench.assert_clean();

    bench.run_scenario(&["--retry-failed"], &[], 0);
    let trials = bench.trials();
    assert_eq!((trials.len(), &trials[..1]), (2, &before[..]));
    measured(&trials[1]);
}

#[test]
fn an_overlay_memory_that_is_not_a_size_is_refused_before_any_work() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", SCENARIO);
    let talk = bench.run_scenario(&[], &[("SPINDLE_OVERLAY_MEMORY", "much")], 2);
    assert!(
        talk.starts_with("spindle: the environment variable SPINDLE_OVERLAY_MEMORY: `much` is not a size"),
        "{talk}"
    );
    assert!(!bench.path("results").exists());
}

#[test]
fn a_snapshot_that_does_not_fit_fails_the_trial_and_is_removed() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", SCENARIO);
    let results = SmallDisk::mount(bench.path("results"), 64 << 20);
    let talk = bench.run_scenario(&[], &[], 1);
    let trials = bench.trials();
    assert_eq!(trials.len(), 1, "{talk}");
    check_failed(&trials[0], "loading the database: keeping the loaded database as a snapshot: ");
    assert!(trials[0].error.as_ref().unwrap().ends_with("No space left on device (os error 28)"), "{talk}");
    assert_eq!(fs::read_dir(bench.path("results/snapshots")).unwrap().count(), 0);
    results.unmount();
    bench.assert_clean();
}

#[test]
fn records_that_cannot_be_written_end_the_run_and_stay_as_they_are() {
    let Some(bench) = in_check_all(Bench::with_a_finished_trial) else { return };
    let before = bench.trials();
    let results = bench.path("results");
    fs::rename(&results, bench.path("kept")).unwrap();
    let small = SmallDisk::mount(results.clone(), 1 << 20);
    fs::copy(bench.path("kept").join(FILE_NAME), bench.records()).unwrap();
    fs::create_dir(results.join("snapshots")).unwrap();
    rustix::mount::mount_bind(bench.path("kept/snapshots"), results.join("snapshots")).unwrap();
    bench.write("test.toml", &scenario(&[("trials = 1", "trials = 2")]));
    let run = bench.start_scenario();
    next_part(&run, Part::Client, &mut Vec::new());
    let ballast = fill(&results);
    let talk = bench.finish(run, 1);
    assert!(
        talk.contains("spindle: writing a record to results/records.jsonl: No space left on device"),
        "{talk}"
    );
    assert_eq!(bench.trials(), before);

    fs::remove_file(ballast).unwrap();
    bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!((trials.len(), &trials[..1]), (2, &before[..]));
    measured(&trials[1]);
    rustix::mount::unmount(results.join("snapshots"), rustix::mount::UnmountFlags::empty()).unwrap();
    small.unmount();
    bench.assert_clean();
}

#[test]
fn a_disk_too_small_for_its_redo_log_is_refused_before_any_work() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", &with_setting("innodb_log_file_size = \"1G\""));
    let talk = bench.run_scenario(&[], &[], 2);
    assert!(talk.contains("stacks.card.size: 1.1 GB is too small for workload `tpcc`"), "{talk}");
    assert!(!bench.path("results").exists());
}

#[test]
fn an_emulated_disk_too_small_for_its_database_fails_the_trial() {
    let Some(bench) = Bench::new() else { return };
    bench.write("test.toml", &with_setting("innodb_data_file_path = \"ibdata1:1G\""));
    bench.run_scenario(&[], &[], 1);
    let trials = bench.trials();
    assert_eq!(trials.len(), 1);
    // The server gives the room back, so only its own words name the reason.
    check_failed(&trials[0], "loading the database: making a database in ");
    assert!(
        trials[0].error.as_ref().unwrap().contains("Probably out of disk space"),
        "{:?}",
        trials[0].error
    );
    bench.assert_clean();
}

#[test]
fn an_emulated_disk_that_fills_up_in_a_trial_fails_that_trial_only() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    bench.write("test.toml", &scenario(&[("trials = 1", "trials = 2")]));
    let run = bench.start_scenario();
    next_part(&run, Part::Client, &mut Vec::new());
    fill(&bench.path(&format!("run/run-{}/mount", run.id())));
    bench.finish(run, 0);
    let trials = bench.trials();
    check_failed(&trials[0], "the file system on the emulated disk is full (0 MiB of");
    measured(&trials[1]);
    bench.assert_clean();
}

#[test]
fn a_server_that_dies_while_loading_fails_the_trials_that_need_that_database() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    let other = "[stacks.other]\nprofile = \"null\"\nsize = \"900 MiB\"\n[servers.mariadb]";
    let both = scenario(&[("[servers.mariadb]", other), ("[\"card\"]", "[\"other\", \"card\"]")]);
    bench.write("test.toml", &both);
    let run = bench.start_scenario();
    let mount = bench.path(&format!("run/run-{}/mount", run.id()));
    // A trial has its tables from the start. A load makes them, and rows follow the last table.
    let is_loading = || bench.work_directory(&run).is_some_and(|work| work.join("load/pid").exists());
    wait_until("the tables of a load", || is_loading() && mount.join("data/spindle/stock.ibd").exists());
    kill(part(&run, Part::Server).unwrap(), Signal::KILL);
    bench.finish(run, 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    for trial in &trials {
        match trial.cell.as_str() {
            "other" => check_failed(trial, "loading the database: mariadbd died (signal: 9 (SIGKILL))"),
            _ => _ = measured(trial),
        }
    }
    bench.assert_clean();
}

#[test]
fn a_part_that_dies_in_a_trial_fails_that_trial_only() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    bench.write("test.toml", &scenario(&[("trials = 1", "trials = 4")]));
    let run = bench.start_scenario();
    let deaths = [
        (Part::Server, "mariadbd died (signal: 9 (SIGKILL))"),
        (Part::Emulator, "the emulator ended (signal: 9 (SIGKILL))"),
        (Part::Client, "the load process ended by itself with signal: 9 (SIGKILL)"),
    ];
    let mut clients = Vec::new();
    for (victim, _) in deaths {
        next_part(&run, Part::Client, &mut clients);
        // Into the measured window.
        std::thread::sleep(Duration::from_millis(1100));
        kill(part(&run, victim).unwrap(), Signal::KILL);
    }
    bench.finish(run, 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 4);
    for (trial, (_, sentence)) in trials.iter().zip(deaths) {
        check_failed(trial, sentence);
    }
    measured(&trials[3]);
    bench.assert_clean();
}

/// As `kill` does: the run gets the signal, and its children do not.
#[track_caller]
fn check_stops_soon(bench: &Bench, run: Child) {
    kill(Pid::from_child(&run), Signal::TERM);
    let signalled = Instant::now();
    bench.finish(run, 130);
    let took = signalled.elapsed();
    // Long before the end of what it was waiting for, also on a busy machine.
    assert!(took < Duration::from_secs(60), "{took:?}");
    assert!(bench.trials().is_empty(), "an interruption is no failure");
    bench.assert_clean();
}

#[test]
fn a_signal_is_noticed_while_a_foreign_tool_fills_the_tables() {
    let Some(bench) = Bench::new() else { return };
    // Minutes of work.
    let sysbench = "kind = \"sysbench\"\nscript = \"read-write\"\ndistribution = \"uniform\"\ntables = 2\nrows = 10_000_000";
    bench.write("test.toml", &scenario(&[("kind = \"tpcc\"\nwarehouses = 1", sysbench), ("1 GiB", "8 GiB")]));
    let run = bench.start_scenario();
    let loader = next_part(&run, Part::Loader, &mut Vec::new());
    std::thread::sleep(Duration::from_millis(500));
    check_stops_soon(&bench, run);
    assert!(rustix::process::test_kill_process(loader).is_err(), "the tool is still there");
}

#[test]
fn a_signal_is_noticed_while_a_server_starts() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    let sleep = bench.write("sleep.sql", "SELECT SLEEP(600);\n");
    bench.write("test.toml", &with_setting(&format!("init_file = {sleep:?}")));
    let run = bench.start_scenario();
    next_part(&run, Part::Server, &mut Vec::new());
    std::thread::sleep(Duration::from_secs(1));
    assert!(part(&run, Part::Client).is_none(), "the server should not be ready");
    check_stops_soon(&bench, run);
}

#[test]
fn a_signal_is_noticed_while_the_database_is_verified() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    bench.write("test.toml", SCENARIO);
    let run = bench.start_scenario();
    next_part(&run, Part::Client, &mut Vec::new());
    let server = part(&run, Part::Server).unwrap();
    // The client ends before the verification begins, which a stopped server never answers.
    wait_until("the end of the client", || part(&run, Part::Client).is_none());
    kill(server, Signal::STOP);
    std::thread::sleep(Duration::from_millis(500));
    check_stops_soon(&bench, run);
}

/// Stops the server in the measured window.
fn stand_still(run: &Child) -> Pid {
    next_part(run, Part::Client, &mut Vec::new());
    std::thread::sleep(Duration::from_millis(1100));
    let server = part(run, Part::Server).unwrap();
    kill(server, Signal::STOP);
    server
}

#[test]
fn a_server_that_does_not_answer_fails_its_trial_and_is_named() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    bench.write("test.toml", &scenario(&[("trials = 1", "trials = 2")]));
    let run = bench.start_scenario();
    let server = stand_still(&run);
    let stood_still = Instant::now();
    wait_until("the server to be killed", || rustix::process::test_kill_process(server).is_err());
    assert!(stood_still.elapsed() > Duration::from_secs(20), "a short stall is no failure");
    bench.finish(run, 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    let error = trials[0].error.as_deref().unwrap();
    assert!(error.contains("mariadbd did not answer within 30 s"), "{error}");
    measured(&trials[1]);
    bench.assert_clean();
}

#[test]
fn a_signal_is_noticed_while_a_server_does_not_answer() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    bench.write("test.toml", SCENARIO);
    let run = bench.start_scenario();
    stand_still(&run);
    std::thread::sleep(Duration::from_secs(3));
    check_stops_soon(&bench, run);
}
