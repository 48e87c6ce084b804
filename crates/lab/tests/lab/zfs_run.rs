//! Whole runs on a ZFS pool of emulated disks: measured and verified. A killed run leaves nothing.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::emulated_support::{Bench, Part, kill, part, scenario};
use crate::{in_check_all, skip, wait_until};
use rustix::process::{Pid, Signal};
use spindle_lab::record::{EmulatorSummary, Measurement};
use spindle_mount::zfs;

/// One warehouse on a pool with log and cache, as short as can be.
fn on_a_pool() -> String {
    let pool = "[stacks.pool]\nprofile = \"iodrive-160\"\nsize = \"1 GiB\"\nfile_system = \"zfs\"\nrecordsize = \"16 KiB\"\n\
        arc = \"16 MiB\"\nlog = \"small\"\ncache = \"small\"\n[stacks.small]\nprofile = \"x25m-80\"\nsize = \"128 MiB\"\n";
    scenario(&[
        ("[stacks.card]\nprofile = \"iodrive-160\"\nsize = \"1 GiB\"\n", pool),
        ("\"O_DIRECT\"", "\"fsync\", innodb_use_native_aio = 0"),
        ("stack = [\"card\"]", "stack = [\"pool\"]"),
    ])
}

/// Where there is ZFS on emulated disks.
pub(crate) fn with_zfs() -> Option<Bench> {
    let bench = Bench::new()?;
    if !zfs::is_installed() {
        return skip("zfs-fuse is not installed");
    }
    bench.write("test.toml", &on_a_pool());
    Some(bench)
}

/// Kills the run as soon as there is load on its pool, whose directory is returned.
fn kill_in_a_trial(run: &mut Child, bench: &Bench) -> PathBuf {
    let pool = bench.path("run").join(format!(".zfs-run-{}", run.id()));
    wait_until("the load on a pool", || part(run, Part::Client).is_some());
    assert!(pool.join("mount/data/ibdata1").exists());
    kill(Pid::from_child(run), Signal::KILL);
    run.wait().unwrap();
    pool
}

/// One test for all claims, because a load through zfs-fuse takes long.
#[test]
fn a_database_on_a_pool_is_measured_and_verified_and_killed_runs_leave_nothing() {
    let Some(bench) = in_check_all(with_zfs) else { return };
    let start = || {
        let mut command = bench.command(&["run", "test.toml", "--output", "results"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    };
    let pool = kill_in_a_trial(&mut start(), &bench);
    bench.down("--all");
    assert!(!fs::exists(&pool).unwrap());
    bench.assert_clean();

    let pool = kill_in_a_trial(&mut start(), &bench);
    // The next run clears what is left.
    let (_, measurement) = bench.run_one_tpcc();
    assert!(!fs::exists(&pool).unwrap());
    bench.assert_clean();
    check_devices(&measurement);
}

fn check_devices(measurement: &Measurement) {
    let (emulators, data) =
        (measurement.mounts[0].emulator.as_ref().unwrap(), measurement.mounts[0].host.as_ref().unwrap());
    // Commits go to the log, whose flushes count in the sum but not on the data disk.
    assert!(emulators.flushes > data.flushes, "{emulators:?} {data:?}");
    assert!(emulators.writes > data.writes, "{emulators:?} {data:?}");
    let names: Vec<&str> = measurement.mounts[0].devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["data", "log", "cache"]);
    let each: Vec<&EmulatorSummary> =
        measurement.mounts[0].devices.iter().map(|device| device.emulator.as_ref().unwrap()).collect();
    assert_eq!(each.iter().map(|device| device.writes).sum::<u64>(), emulators.writes);
    assert!(each[1].writes > 0 && each[1].flushes > 0, "{each:?}");
    assert_eq!(measurement.mounts[0].devices[0].host.as_ref(), Some(data));
    assert!(measurement.cpu.emulator_s > 0.0, "{:?}", measurement.cpu);
}

#[test]
fn without_zfs_fuse_the_refusal_names_the_key_and_the_command_that_installs_it() {
    let Some(bench) = with_zfs() else { return };
    // In a mount namespace of its own, where /dev/null hides the program.
    let hide = r#"mount --bind /dev/null "$(PATH="$PATH:/usr/sbin:/sbin" command -v zfs-fuse)" && exec "$0" run test.toml --output results"#;
    let plain = bench.command(&[]);
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", hide]).arg(plain.get_program());
    command.current_dir(plain.get_current_dir().unwrap());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{talk}");
    assert!(talk.contains("stacks.pool.file_system: `zfs` needs zfs-fuse"), "{talk}");
    assert!(talk.contains("apt-get install zfs-fuse"), "{talk}");
    assert!(!bench.records().exists());
    bench.assert_clean();
}
