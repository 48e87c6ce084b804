//! Disks that cannot be taken down in the usual way: a process has files open there, or the emulator does not
//! answer. A run goes on without them, and nobody waits for ever.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::emulated_support::{
    Bench, Part, SCENARIO, check_failed, emulator_of, kill, measured, next_part, part, scenario, tool,
};
use crate::{in_check_all, wait_until};

/// A stopped process. Dropping it kills the process, which frees those that wait for it.
struct Stopped(Pid);

impl Stopped {
    fn stop(process: Pid) -> Stopped {
        kill(process, Signal::STOP);
        Stopped(process)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // Usually it has been killed before.
        let _ = kill_process(self.0, Signal::KILL);
    }
}

/// A process that must end by itself.
#[track_caller]
fn ended(mut child: Child) -> Child {
    wait_until("a command to end by itself", || child.try_wait().unwrap().is_some());
    child
}

#[track_caller]
fn spindle(bench: &Bench, arguments: &[&str]) -> Output {
    let mut command = bench.command(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    ended(child).wait_with_output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn mount_of(bench: &Bench, run: &Child) -> PathBuf {
    bench.path(&format!("run/run-{}/mount", run.id()))
}

/// Whether a loop device still has the file of a disk that was unmounted.
fn is_attached(device: &str) -> bool {
    let device = Path::new("/sys/block").join(Path::new(device).file_name().unwrap());
    fs::read_to_string(device.join("loop/backing_file")).is_ok_and(|file| file == "/disk\n")
}

#[test]
fn a_disk_in_use_after_its_trial_fails_that_trial_only() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    bench.write("test.toml", &scenario(&[("trials = 1", "trials = 2")]));
    let run = bench.start_scenario();
    next_part(&run, Part::Client, &mut Vec::new());
    let mount = mount_of(&bench, &run);
    let device = tool("findmnt", &["-no", "SOURCE", mount.to_str().unwrap()]);
    let user = File::create(mount.join("open")).unwrap();
    bench.finish(ended(run), 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    check_failed(&trials[0], &format!("taking the storage down: {} is in use", mount.display()));
    measured(&trials[1]);
    assert!(is_attached(device.trim()), "the loop device stays with the user of the file");
    drop(user);
    wait_until("the loop device to go with its last user", || !is_attached(device.trim()));
    bench.assert_clean();
}

#[test]
fn a_disk_whose_emulator_does_not_answer_is_reported_and_taken_down() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let disk = bench.up("null", "frozen", &[]);
    let emulator = Stopped::stop(emulator_of(&bench.path("run/frozen")));
    let file = Path::new(disk["mount"].as_str().unwrap()).join("file");
    // It waits in the kernel, with the file open, for an answer that never comes.
    let writer = Command::new("dd")
        .args(["if=/dev/zero", "bs=1M", "count=4", "conv=fsync"])
        .arg(format!("of={}", file.display()))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = spindle(&bench, &["disk", "status"]);
    let words = text(&status.stdout);
    assert!(words.contains("dead: the emulator of frozen did not answer within 2 s"), "{words}");
    let timing = spindle(&bench, &["disk", "timing", "frozen", "off"]);
    assert!(text(&timing.stderr).contains("did not answer within 2 s"), "{}", text(&timing.stderr));
    let down = spindle(&bench, &["disk", "down", "--all"]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(!ended(writer).wait().unwrap().success(), "nothing can be durable on a dead disk");
    drop(emulator);
    bench.assert_clean();
}

/// Runs `spindle` without the privilege for PR_SET_IO_FLUSHER. `before` is a command that runs the rest of
/// its arguments.
fn run_unprivileged(bench: &Bench, before: &[&str], arguments: &[&str]) -> String {
    let plain = bench.command(arguments);
    let mut command = Command::new("setpriv");
    command.arg("--bounding-set=-sys_resource").args(before);
    command.arg(plain.get_program()).args(plain.get_args());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    text(&command.current_dir(bench.path("")).output().unwrap().stdout)
}

/// A control group of version 1 with little memory. Dropping it removes it.
struct SmallGroup(PathBuf);

impl SmallGroup {
    /// `None` where version 1 does not limit memory: there reclaim waits for no disk.
    fn make() -> Option<SmallGroup> {
        let group = Path::new("/sys/fs/cgroup/memory").join(format!("spindle-test-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        let group = SmallGroup(group);
        fs::write(group.0.join("memory.limit_in_bytes"), "60M").ok()?;
        Some(group)
    }

    /// Enters the group and becomes the command that follows.
    fn enter(&self) -> [String; 4] {
        let enter = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", self.0.display());
        ["sh".to_owned(), "-c".to_owned(), enter, "sh".to_owned()]
    }
}

impl Drop for SmallGroup {
    fn drop(&mut self) {
        // Its processes may need a moment to end.
        wait_until("an empty control group", || fs::remove_dir(&self.0).is_ok());
    }
}

/// Threads serve this disk. The kernel could not free the ring, because it would wait for a lock of the
/// thread that waits.
#[test]
fn an_emulator_that_waits_for_its_own_disk_is_freed_when_it_is_taken_down() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let Some(group) = SmallGroup::make() else {
        return eprintln!("no control groups of version 1 here, under which alone this happens");
    };
    let enter = group.enter();
    let enter = enter.each_ref().map(String::as_str);
    let up = ["disk", "up", "null", "--size", "1 GiB", "--file-system", "ext4", "--name", "poor"];
    run_unprivileged(&bench, &enter, &up);
    let disk = &bench.json(&["disk", "status", "--json"])[0];
    assert_eq!(disk["statistics"]["transport"], "threads", "{disk}");
    let file = Path::new(disk["mount"].as_str().unwrap()).join("file");
    // Ten times the group's memory: at some time the emulator needs memory while all of it is on its way to
    // the disk.
    let mut writer = Command::new(enter[0]);
    writer.args(&enter[1..]).args(["dd", "if=/dev/zero", "bs=1M", "count=600", "conv=fsync", "status=none"]);
    let writer = writer.arg(format!("of={}", file.display())).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_secs(5));
    let output = spindle(&bench, &["disk", "down", "poor"]);
    // A disk that did not get stuck is in use.
    let sentence = text(&output.stderr);
    assert!(output.status.success() || sentence.contains("is in use"), "{sentence}");
    ended(writer).wait().unwrap();
    if !output.status.success() {
        assert!(spindle(&bench, &["disk", "down", "poor"]).status.success());
    }
    bench.assert_clean();
}

#[test]
fn an_emulator_that_can_wait_for_its_own_disk_is_reported() {
    let Some(bench) = Bench::new() else { return };
    let unprivileged = |arguments: &[&str]| run_unprivileged(&bench, &[], arguments);
    unprivileged(&["disk", "up", "null", "--size", "1 GiB", "--name", "poor"]);
    assert_eq!(bench.json(&["disk", "status", "--json"])[0]["statistics"]["io_flusher_refused"], true);
    let doctor = unprivileged(&["doctor"]);
    let line = doctor.lines().find(|line| line.contains("PR_SET_IO_FLUSHER")).unwrap();
    assert!(line.starts_with("optional") && line.contains("grant CAP_SYS_RESOURCE"), "{line}");
    bench.down("poor");
    bench.assert_clean();
}

#[test]
fn a_pool_on_an_emulator_that_does_not_answer_is_taken_down() {
    let Some(bench) = crate::zfs_run::with_zfs() else { return };
    let up = ["disk", "up", "null", "--size", "1 GiB", "--file-system", "zfs", "--name", "pool", "--json"];
    let pool = bench.json(&up);
    let emulator = Stopped::stop(emulator_of(&bench.path("run/pool-zfs-data")));
    let file = Path::new(pool["mount"].as_str().unwrap()).join("file");
    let write = "dd if=/dev/zero bs=1M count=4 conv=fsync of=\"$0\"";
    let writer = Command::new("sh").args(["-c", write]).arg(file).stderr(Stdio::piped()).spawn().unwrap();
    let down = spindle(&bench, &["disk", "down", "--all"]);
    assert!(down.status.success(), "{}", text(&down.stderr));
    assert!(!ended(writer).wait().unwrap().success(), "nothing can be durable on a dead pool");
    drop(emulator);
    bench.assert_clean();
}

#[test]
fn an_emulator_that_does_not_answer_in_a_trial_fails_that_trial_only() {
    let Some(bench) = in_check_all(Bench::with_loaded_database) else { return };
    bench.write("test.toml", &scenario(&[("trials = 1", "trials = 2"), ("\"3 s\"", "\"5 s\"")]));
    let run = bench.start_scenario();
    next_part(&run, Part::Client, &mut Vec::new());
    // Into the measured window.
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let emulator = Stopped::stop(part(&run, Part::Emulator).unwrap());
    bench.finish(ended(run), 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 2);
    check_failed(&trials[0], "the emulator ended (signal: 9 (SIGKILL)): it did not answer and was killed");
    measured(&trials[1]);
    drop(emulator);
    bench.assert_clean();
}

#[test]
fn an_emulator_that_does_not_answer_while_loading_ends_the_load() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", SCENARIO);
    let run = bench.start_scenario();
    let mount = mount_of(&bench, &run);
    wait_until("a database on the disk", || mount.join("data/ibdata1").exists());
    let emulator = Stopped::stop(part(&run, Part::Emulator).unwrap());
    bench.finish(ended(run), 1);
    let trials = bench.trials();
    assert_eq!(trials.len(), 1);
    let ended = "the emulator ended (signal: 9 (SIGKILL)): it did not answer and was killed";
    check_failed(&trials[0], &format!("loading the database: {ended}"));
    drop(emulator);
    bench.assert_clean();
}
