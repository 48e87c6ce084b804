//! A bench with emulated disks of its own, for tests that run the real binary.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use rustix::fs::{FallocateFlags, fallocate};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use spindle_lab::cmd::doctor::examine;
use spindle_lab::record::records_file;
use spindle_lab::record::{Measurement, Trial};
use spindle_lab::report;
use tempfile::TempDir;

use crate::server_support::directory;
use crate::{skip, wait_until};

/// A directory of its own for the disks' state, so that tests do not see each other's or the user's.
pub(crate) struct Bench {
    directory: TempDir,
    /// The database that [`Bench::with_loaded_database`] linked.
    loaded: Option<Arc<TempDir>>,
}

impl Bench {
    /// Where disks can be emulated.
    pub(crate) fn new() -> Option<Bench> {
        let blockers = examine::emulation_blockers();
        if !blockers.is_empty() {
            return skip(&blockers.join(" and "));
        }
        Some(Bench::anywhere())
    }

    /// For tests that need no emulated disk.
    pub(crate) fn anywhere() -> Bench {
        Bench { directory: directory(), loaded: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// Runs have their work directory on the bench's `work` if that exists.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let work = Some(self.path("work")).filter(|work| work.exists());
        let mut command = Command::new(env!("CARGO_BIN_EXE_spindle"));
        command
            .args(arguments)
            .current_dir(self.directory.path())
            .env("SPINDLE_RUN_DIRECTORY", self.path("run"))
            // Tests beside each other disturb each other, and their records need not say so.
            .env("SPINDLE_LOCK_DIRECTORY", self.path("locks"))
            .env("SPINDLE_KEEP_DISTURBED", "true")
            .env("TMPDIR", work.as_deref().unwrap_or(self.directory.path()))
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs `test.toml`; returns what it said on the standard error.
    #[track_caller]
    pub(crate) fn run_scenario(&self, more: &[&str], environment: &[(&str, &str)], exit_code: i32) -> String {
        let mut command = self.command(&["run", "test.toml", "--output", "results"]);
        let output = command.args(more).envs(environment.iter().copied()).output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit_code), "{talk}");
        talk
    }

    pub(crate) fn start_scenario(&self) -> Child {
        let mut command = self.command(&["run", "test.toml", "--output", "results"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Waits for the end of a run; returns what it said on the standard error.
    #[track_caller]
    pub(crate) fn finish(&self, run: Child, exit_code: i32) -> String {
        let output = run.wait_with_output().unwrap();
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit_code), "{talk}");
        talk
    }

    /// What a command says on the standard error, with this exit code.
    #[track_caller]
    pub(crate) fn talk(&self, arguments: &[&str], exit_code: i32) -> String {
        let output = self.run(arguments);
        let talk = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(exit_code), "{talk}");
        talk
    }

    /// Brings up a disk of 1 GiB.
    pub(crate) fn up(&self, profile: &str, name: &str, more: &[&str]) -> Value {
        let up = ["disk", "up", profile, "--size", "1 GiB", "--name", name, "--json"];
        self.json(&[&up, more].concat())
    }

    /// Takes a disk, or with `--all` every disk, down.
    #[track_caller]
    pub(crate) fn down(&self, name: &str) {
        self.talk(&["disk", "down", name], 0);
    }

    /// What a command prints on the standard output; it must succeed.
    #[track_caller]
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).unwrap()
    }

    pub(crate) fn records(&self) -> PathBuf {
        self.path("results").join(records_file::FILE_NAME)
    }

    pub(crate) fn trials(&self) -> Vec<Trial> {
        report::read(&self.records()).unwrap().trials
    }

    /// Runs a scenario that has one trial, of TPC-C: measured, and consistent by all conditions.
    #[track_caller]
    pub(crate) fn run_one_tpcc(&self) -> (Trial, Measurement) {
        let talk = self.run_scenario(&[], &[], 0);
        let mut trials = self.trials();
        assert_eq!(trials.len(), 1, "{talk}");
        let mut trial = trials.remove(0);
        measured_tpcc(&trial);
        let measurement = trial.measurement.take().unwrap();
        (trial, measurement)
    }

    /// Where a run keeps sockets and logs; `None` before it made it.
    pub(crate) fn work_directory(&self, run: &Child) -> Option<PathBuf> {
        let prefix = format!("spindle-run-{}-", run.id());
        let entries = fs::read_dir(self.path("")).unwrap().flatten();
        entries
            .map(|entry| entry.path())
            .find(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&prefix))
    }

    /// A bench whose run has a database that was loaded once for all tests. It is of [`SCENARIO`], whose
    /// settings may be changed as far as they do not shape the files.
    pub(crate) fn with_loaded_database() -> Option<Bench> {
        let mut bench = Bench::new()?;
        static LOADED: Mutex<Weak<TempDir>> = Mutex::new(Weak::new());
        let mut shared = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
        let loaded = shared.upgrade().unwrap_or_else(|| {
            let loader = Bench::anywhere();
            loader.write("test.toml", SCENARIO);
            loader.run_scenario(&[], &[], 0);
            loader.assert_clean();
            let loaded = Arc::new(directory());
            fs::rename(loader.path("results"), loaded.path().join("results")).unwrap();
            loaded
        });
        *shared = Arc::downgrade(&loaded);
        // A run adds what it loads itself to the directory, so it gets its own. It trusts no links but these.
        hard_link_all(&loaded.path().join("results/snapshots"), &bench.path("results/snapshots"));
        bench.loaded = Some(loaded);
        Some(bench)
    }

    /// As [`Bench::with_loaded_database`], with the records of the run that loaded it: one finished trial.
    pub(crate) fn with_a_finished_trial() -> Option<Bench> {
        let bench = Bench::with_loaded_database()?;
        let loaded = bench.loaded.as_ref().unwrap().path().join("results").join(records_file::FILE_NAME);
        fs::copy(loaded, bench.records()).unwrap();
        Some(bench)
    }

    /// Nothing of ours is mounted or attached, runs, or is left in a directory.
    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let here = self.directory.path().to_str().unwrap();
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(here), "still mounted: {mounts}");
        for entry in fs::read_dir("/sys/block").unwrap().flatten() {
            let backing = fs::read_to_string(entry.path().join("loop/backing_file")).unwrap_or_default();
            assert!(!backing.contains(here), "still attached: {backing}");
        }
        let left = |directory: &str| -> Vec<PathBuf> {
            fs::read_dir(self.path(directory))
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect()
        };
        assert_eq!(left("run"), Vec::<PathBuf>::new(), "state directories");
        let work = left("");
        assert!(!work.iter().any(|path| path.to_str().unwrap().contains("spindle-run-")), "{work:?}");
        for (process, command_line) in processes() {
            let directory = fs::read_link(format!("/proc/{process}/cwd")).unwrap_or_default();
            assert!(!command_line.contains(here), "still running: {command_line}");
            assert!(!directory.starts_with(here), "still running in {}: {command_line}", directory.display());
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A test that failed half-way must not leave its disks on the machine.
        let _ = self.run(&["disk", "down", "--all"]);
    }
}

/// Directories of its own, with the same files in them.
fn hard_link_all(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let own = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => hard_link_all(&entry.path(), &own),
            false => fs::hard_link(entry.path(), own).unwrap(),
        }
    }
}

/// One warehouse on a fast disk, as short as can be.
pub(crate) const SCENARIO: &str = r#"
title = "A short run"
question = "Is nothing left behind?"
[stacks.card]
profile = "iodrive-160"
size = "1 GiB"
[servers.mariadb]
kind = "mariadb"
settings = { innodb_flush_method = "O_DIRECT", innodb_buffer_pool_size = "12M" }
[workloads.tpcc]
kind = "tpcc"
warehouses = 1
terminals = 4
[matrix]
stack = ["card"]
server = ["mariadb"]
workload = ["tpcc"]
[run]
trials = 1
start = "warm-fast"
warm_up = "500 ms"
settle = "100 ms"
measure = "3 s"
seed = 1
"#;

/// [`SCENARIO`] with some of its texts replaced.
#[track_caller]
pub(crate) fn scenario(changes: &[(&str, &str)]) -> String {
    changes.iter().fold(SCENARIO.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from:?} is not in the scenario");
        text.replacen(from, to, 1)
    })
}

/// The measurement of a trial that was verified.
#[track_caller]
pub(crate) fn measured(trial: &Trial) -> &Measurement {
    let measurement = trial.measurement.as_ref().unwrap_or_else(|| panic!("{:?}", trial.error));
    assert!(measurement.verification.iter().all(|check| check.passed), "{:?}", measurement.verification);
    assert!(measurement.metric.value > 0.0, "{:?}", measurement.metric);
    measurement
}

/// As [`measured`], with all conditions of TPC-C.
#[track_caller]
pub(crate) fn measured_tpcc(trial: &Trial) -> &Measurement {
    let measurement = measured(trial);
    assert!(measurement.verification.len() >= 12, "{:?}", measurement.verification);
    measurement
}

#[track_caller]
pub(crate) fn check_failed(trial: &Trial, begins_with: &str) {
    let error = trial.error.as_deref().unwrap_or("no error");
    assert!(error.starts_with(begins_with), "{error}");
    assert!(trial.measurement.is_none());
}

/// A file system in memory, as a small disk of the host.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    pub(crate) fn mount(at: PathBuf, size_bytes: u64) -> SmallDisk {
        fs::create_dir_all(&at).unwrap();
        let options = std::ffi::CString::new(format!("size={size_bytes},mode=755")).unwrap();
        mount("tmpfs", &at, "tmpfs", MountFlags::empty(), options.as_c_str()).unwrap();
        SmallDisk(at)
    }

    /// What a run has left on it. Nobody may have a file open there, but a process may need a moment to end.
    #[track_caller]
    pub(crate) fn unmount(self) -> Vec<PathBuf> {
        let left = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path()).collect();
        wait_until("the small disk to be left alone", || unmount(&self.0, UnmountFlags::empty()).is_ok());
        left
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Fills a file system. Returns the file that takes the room.
pub(crate) fn fill(directory: &Path) -> PathBuf {
    let path = directory.join("ballast");
    let file = fs::File::create(&path).unwrap();
    let (mut offset, mut step) = (0, 64 << 20);
    while step >= 4096 {
        match fallocate(&file, FallocateFlags::empty(), offset, step) {
            Ok(()) => offset += step,
            Err(rustix::io::Errno::NOSPC) => step /= 2,
            Err(error) => panic!("filling {}: {error}", directory.display()),
        }
    }
    path
}

/// Ids and command lines (with spaces) of all processes.
fn processes() -> impl Iterator<Item = (u32, String)> {
    fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let command_line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        Some((id, command_line.replace('\0', " ")))
    })
}

/// Whether a process of this bench has these words in its command line.
pub(crate) fn is_running(bench: &Bench, words: &str) -> bool {
    let here = bench.path("");
    let here = here.to_str().unwrap();
    processes().any(|(_, command_line)| command_line.contains(here) && command_line.contains(words))
}

/// A process that a run starts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Part {
    /// Any, where there are replicas.
    Server,
    Replica,
    Client,
    Emulator,
    /// A foreign tool that fills tables or files.
    Loader,
}

/// The process that plays a part in this run: one of its children.
pub(crate) fn part(run: &Child, part: Part) -> Option<Pid> {
    let known_by = match part {
        Part::Server => " --datadir=",
        Part::Replica => " --relay-log=",
        Part::Client => " load client",
        Part::Emulator => " disk serve ",
        Part::Loader => " prepare ",
    };
    let is_child = |id: u32| {
        let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        status.lines().any(|line| line == format!("PPid:\t{}", run.id()))
    };
    let (id, _) = processes().find(|(id, command_line)| command_line.contains(known_by) && is_child(*id))?;
    Pid::from_raw(id as i32)
}

/// Waits for a part that was not `seen` before, and adds it there.
#[track_caller]
pub(crate) fn next_part(run: &Child, wanted: Part, seen: &mut Vec<Pid>) -> Pid {
    let mut found = None;
    wait_until(&format!("the next {wanted:?}"), || {
        found = part(run, wanted).filter(|process| !seen.contains(process));
        found.is_some()
    });
    seen.extend(found);
    found.unwrap()
}

pub(crate) fn kill(process: Pid, signal: Signal) {
    kill_process(process, signal).unwrap();
}

/// What a tool prints. It must succeed.
pub(crate) fn tool(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Where the kernel says whether a block device has a volatile cache.
pub(crate) fn queue_attribute(device: &Path, attribute: &str) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap()).join("queue").join(attribute)
}

/// The emulator whose state is in this directory. Its file has the process id, then the time of its start.
pub(crate) fn emulator_of(state: &Path) -> Pid {
    let identity = fs::read_to_string(state.join("pid")).unwrap();
    let process = identity.split_whitespace().next().unwrap();
    Pid::from_raw(process.parse().unwrap()).unwrap()
}
