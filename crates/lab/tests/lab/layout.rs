//! Layouts and real disks: which file lies where and on what. Nothing is left behind.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::emulated_support::{
    Bench, SmallDisk, kill, measured_tpcc, queue_attribute, scenario as changed, tool,
};
use crate::server_support::{class_directories, directory, file_names, installed, instance, start};
use crate::{PATIENCE, in_check_all, wait_until};
use rustix::process::{Pid, Signal};
use spindle_lab::record::FileClass;
use spindle_lab::record::{Header, Trial};
use spindle_lab::report::{self, Records};
use spindle_lab::server::Instance;
use spindle_mount::real::{self, Place, RealDisk};

/// A whole run of a scenario: header and trials.
#[track_caller]
fn run(bench: &Bench, scenario: &str) -> (Header, Vec<Trial>) {
    bench.write("test.toml", scenario);
    bench.run_scenario(&[], &[], 0);
    let records = report::read(&bench.records()).unwrap();
    (records.header, records.trials)
}

/// The sentence by which a scenario is refused before any work.
#[track_caller]
fn refusal(bench: &Bench, verb: &str, scenario: &str) -> String {
    bench.write("test.toml", scenario);
    let words = bench.talk(&[verb, "test.toml"], 2);
    words.trim().strip_prefix("spindle: test.toml: ").unwrap_or(&words).to_owned()
}

/// A loop device of the test's own, for a real disk.
struct OwnDevice {
    device: String,
}

impl OwnDevice {
    fn new(bench: &Bench) -> OwnDevice {
        let file = bench.path("device");
        File::create(&file).unwrap().set_len(2 << 30).unwrap();
        let device = tool("losetup", &["--find", "--show", file.to_str().unwrap()]).trim().to_owned();
        // A drive with a volatile cache, whatever its number was used for before.
        fs::write(queue_attribute(Path::new(&device), "write_cache"), "write back").unwrap();
        OwnDevice { device }
    }
}

impl Drop for OwnDevice {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &self.device]).status();
    }
}

/// [`emulated_support::scenario`](changed) on other storage: `storage` has the stacks and layouts, `axis` is
/// their line in the matrix.
fn scenario(storage: &str, axis: &str, settings: &str) -> String {
    let settings = match settings {
        "" => "\"12M\"".to_owned(),
        _ => format!("\"12M\", {settings}"),
    };
    changed(&[
        ("\"12M\"", &settings),
        ("stack = [\"card\"]", axis),
        ("[stacks.card]\nprofile = \"iodrive-160\"\nsize = \"1 GiB\"\n", storage),
        ("settle = \"100 ms\"\nmeasure = \"3 s\"", "settle = \"1 s\"\nmeasure = \"4 s\""),
    ])
}

const STACKS: &str = r#"
[stacks.card]
profile = "iodrive-160"
size = "4 GiB"
[stacks.hdd]
profile = "hdd-7200"
size = "1 GiB"
file_system = "ext4"
mkfs_options = ["-E", "stride=16,stripe_width=64"]
"#;

#[test]
fn data_and_redo_log_are_measured_each_on_its_own_stack() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let storage = format!("{STACKS}[layouts.split]\ndata = \"card\"\nredo = \"hdd\"\n");
    let (header, trials) = run(&bench, &scenario(&storage, "layout = [\"split\"]", ""));
    let cell = &header.cells[0];
    assert_eq!((cell.name.as_str(), cell.layout.as_deref()), ("split", Some("split")));
    assert_eq!(cell.mounts[1].files, "ib_logfile0");
    assert!(trials[0].provenance.stack_hash.contains('+'), "{}", trials[0].provenance.stack_hash);

    let measurement = measured_tpcc(&trials[0]);
    let data = measurement.mounts[0].emulator.as_ref().unwrap();
    let redo = measurement.mounts[1].emulator.as_ref().unwrap();
    assert!(data.reads > 0 && data.seeks == 0, "pages are read from the card: {data:?}");
    // A commit is on the disk when a FLUSH is done, and the card needs none.
    assert!(redo.writes > 0 && redo.flushes > 0, "{redo:?}");
    assert!(redo.reads < data.reads / 10, "a log is not read: {redo:?}");
    assert!(redo.flush_latency_mean_ms > 1.0, "a disk turns: {redo:?}");
    assert_eq!(data.floor_us, redo.floor_us, "the first disk measures the floor for both");
    let seconds = measurement.series.transactions_per_s.len();
    assert_eq!(measurement.mounts[1].series.flushes_per_s.len(), seconds);
    assert!(measurement.mounts[1].host.as_ref().unwrap().writes > 0);

    let records = report::read(&bench.records()).unwrap();
    let page = report::render(&records, report::Format::Html, false).unwrap();
    for words in ["split: data on card", "split: redo on hdd", "ib_logfile0", "stride=16,stripe_width=64"] {
        assert!(page.contains(words), "{words} is not on the page");
    }
    bench.assert_clean();
}

#[test]
fn each_class_of_file_lies_in_its_directory() {
    let Some(server) = installed("mariadb") else { return };
    let directory = directory();
    let mut instance = instance(directory.path(), &[("innodb_undo_tablespaces", "3"), ("log_bin", "ON")]);
    instance.class_directories = class_directories(directory.path());
    // As a data set is made: without a binary log.
    let loading = Instance { settings: server.load_settings(&instance.settings), ..instance.clone() };
    server.prepare(&loading).unwrap();
    let mut running = start(&*server, &instance);
    let files = |class: FileClass| file_names(&directory.path().join(class.key()));
    assert_eq!(files(FileClass::Redo), ["ib_logfile0"]);
    assert_eq!(files(FileClass::Doublewrite), ["ibdata1"]);
    assert_eq!(files(FileClass::Undo), ["undo001", "undo002", "undo003"]);
    assert_eq!(files(FileClass::Binlog), ["binlog.000001", "binlog.index"]);
    assert_eq!(files(FileClass::Temp), ["ibtmp1"]);
    let data = files(FileClass::Data);
    let elsewhere = ["ib_logfile", "ibdata", "undo0", "binlog", "ibtmp"];
    let strays: Vec<_> = data.iter().filter(|name| elsewhere.iter().any(|e| name.starts_with(e))).collect();
    assert!(strays.is_empty(), "{strays:?}");
    running.stop(PATIENCE).unwrap();
}

/// On the mock server: a snapshot per mount, each restored for each trial.
#[test]
fn every_mount_of_a_layout_starts_from_its_own_snapshot() {
    let bench = Bench::anywhere();
    let text = r#"
title = "Test"
question = "Does it work?"
[stacks.a]
profile = "null"
[stacks.b]
profile = "null"
[layouts.plain]
data = "a"
[layouts.split]
data = "a"
redo = "b"
binlog = "b"
[servers.mock]
kind = "mock"
[workloads.mock]
kind = "mock"
terminals = 2
latency_us = 500
[matrix]
layout = ["plain", "split"]
server = ["mock"]
workload = ["mock"]
[run]
trials = 2
start = "warm-fast"
warm_up = "10 ms"
measure = "100 ms"
seed = 1
"#;
    let (header, trials) = run(&bench, text);
    // The mock server does not start when one of its directories is empty.
    let errors: Vec<_> = trials.iter().filter_map(|trial| trial.error.as_deref()).collect();
    assert_eq!((trials.len(), errors), (4, vec![]));
    assert_eq!(header.cells[1].mounts[1].classes, [FileClass::Redo, FileClass::Binlog]);
    let snapshots: Vec<_> = fs::read_dir(bench.path("results/snapshots")).unwrap().flatten().collect();
    assert_eq!(snapshots.len(), 2, "one per shape of layout");
    // The same run again does nothing.
    assert_eq!(run(&bench, text).1, trials);
}

#[test]
fn a_real_directory_is_given_back_as_it_was() {
    let bench = Bench::anywhere();
    let disk = bench.path("disk");
    fs::create_dir(&disk).unwrap();
    fs::write(disk.join("precious"), "mine").unwrap();
    let text = format!(
        "title = \"Test\"\nquestion = \"\"\n[stacks.mine]\npath = {disk:?}\n[servers.mock]\nkind = \"mock\"\n\
         [workloads.mock]\nkind = \"mock\"\nterminals = 2\nlatency_us = 500\n\
         [matrix]\nstack = [\"mine\"]\nserver = [\"mock\"]\nworkload = [\"mock\"]\n\
         [run]\ntrials = 2\nstart = \"cold\"\nmeasure = \"100 ms\"\nseed = 1\n"
    );
    let (header, trials) = run(&bench, &text);
    assert!(
        header.cells[0].data().real && header.cells[0].data().summary.contains("A real disk, not emulated")
    );
    assert!(trials.iter().all(|trial| trial.error.is_none()), "{trials:?}");
    let names: Vec<_> = fs::read_dir(&disk).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["precious"]);
    bench.assert_clean();
}

#[track_caller]
fn check_refused(storage: &str, axis: &str, settings: &str, expect: &str) {
    assert_eq!(refusal(&Bench::anywhere(), "plan", &scenario(storage, axis, settings)), expect);
}

#[test]
fn an_impossible_layout_is_refused() {
    let layout = |lines: &str| format!("{STACKS}[layouts.split]\n{lines}\n");
    let axis = "layout = [\"split\"]";
    check_refused(
        &layout("data = \"card\"\nredo = \"hd\""),
        axis,
        "",
        "layouts.split.redo: `hd` is not defined under [stacks]; did you mean `hdd`?",
    );
    check_refused(
        &layout("data = \"card\"\nred = \"hdd\""),
        axis,
        "",
        "layouts.split.red: unknown key; did you mean `redo`?",
    );
    check_refused(
        &layout("redo = \"hdd\""),
        axis,
        "",
        "layouts.split.data: is missing; for example `data = \"hdd\"`",
    );
    check_refused(
        &layout("data = \"card\"\nundo = \"hdd\""),
        axis,
        "",
        "layouts.split.undo: server `mariadb` keeps its undo logs inside the system tablespace unless \
         `innodb_undo_tablespaces` is at least 2: set it among the server's settings",
    );
    check_refused(
        &layout("data = \"card\"\nbinlog = \"hdd\""),
        axis,
        "",
        "layouts.split.binlog: server `mariadb` writes no binary log: turn it on with `log_bin = true` among the \
         server's settings",
    );
    // The log counts on the stack where it lies, not on that of the data.
    check_refused(
        &layout("data = \"card\"\nredo = \"hdd\""),
        axis,
        "innodb_log_file_size = \"3G\"",
        "stacks.hdd.size: 1.1 GB is too small for the class `redo` of layout `split`, which needs about 3.7 GB; leave `size` out",
    );
    check_refused(
        &layout("data = \"card\""),
        "layout = [\"split\"]\nstack = [\"hdd\"]",
        "",
        "matrix.layout: cannot be there together with `stack`: name one of the two",
    );
    check_refused(
        STACKS,
        "layout = [\"split\"]",
        "",
        "matrix.layout: `split` is not defined under [layouts]",
    );
    check_refused(STACKS, "", "", "matrix.stack: is missing; name stacks, or layouts with `layout = [...]`");
}

#[test]
fn two_parts_of_one_drive_are_refused_as_two_drives() {
    let parts = "[stacks.a]\nlayer = \"partition\"\non = \"card\"\nsize = \"1 GiB\"\n\
                 [stacks.b]\nlayer = \"partition\"\non = \"card\"\noffset = \"1 GiB\"\n\
                 [layouts.split]\ndata = \"b\"\nredo = \"a\"\n";
    check_refused(
        &format!("{STACKS}{parts}"),
        "layout = [\"split\"]",
        "",
        "layouts.split.redo: `a` and `b` are parts of one drive, which two mounts cannot share yet: \
         put both classes on one stack",
    );
}

#[test]
fn a_real_disk_that_cannot_be_used_is_refused() {
    let real = |lines: &str| format!("[stacks.mine]\n{lines}\n");
    let axis = "stack = [\"mine\"]";
    check_refused(
        &real("path = \"/no/such/place\""),
        axis,
        "",
        "stacks.mine.path: /no/such/place does not exist",
    );
    check_refused(
        &real("path = \"/dev/null\""),
        axis,
        "",
        "stacks.mine.path: /dev/null is neither a directory nor a block device",
    );
    check_refused(&real("path = \"here\""), axis, "", "stacks.mine.path: `here` must begin with /");
    check_refused(
        &real("path = \"/tmp\"\nsize = \"1 GB\""),
        axis,
        "",
        "stacks.mine.size: belongs to an emulated stack, and this one is a real disk (`path`)",
    );
    check_refused(
        &real("path = \"/tmp\"\nmount_options = [\"nobarrier\"]"),
        axis,
        "",
        "stacks.mine.mount_options: belongs to a block device; a directory is used as it is",
    );
    let Some(bench) = Bench::new() else { return };
    let own = OwnDevice::new(&bench);
    check_refused(
        &real(&format!("path = \"{}\"", own.device)),
        axis,
        "",
        &format!(
            "stacks.mine.path: {} is a block device, and making a file system on it destroys what it holds: \
             say `destroy_content = true` if that is meant",
            own.device
        ),
    );
}

#[test]
fn unknown_options_are_refused_in_the_words_of_mkfs_and_mount() {
    let Some(bench) = Bench::new() else { return };
    let words = |lines: &str| {
        let storage = format!("[stacks.hdd]\nprofile = \"hdd-7200\"\nsize = \"2 GB\"\n{lines}\n");
        refusal(&bench, "run", &scenario(&storage, "stack = [\"hdd\"]", ""))
    };
    let xfs = words("mkfs_options = [\"-d\", \"su=63\"]");
    assert!(xfs.starts_with("stacks.hdd.mkfs_options: mkfs.xfs: "), "{xfs}");
    let ext4 = words("file_system = \"ext4\"\nmkfs_options = [\"-E\", \"stride=some\"]");
    assert!(ext4.starts_with("stacks.hdd.mkfs_options: mkfs.ext4: Invalid stride parameter: some"), "{ext4}");
    // Gone from xfs since Linux 4.19.
    let mount = words("mount_options = [\"nobarrier\"]");
    assert!(
        mount.starts_with("stacks.hdd.mount_options: mount: ") && mount.contains("bad option"),
        "{mount}"
    );
    assert!(!bench.path("spindle-results").exists(), "the run has begun its work");
    bench.assert_clean();
}

#[test]
fn real_disks_are_measured_as_emulated_ones_are() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let own = OwnDevice::new(&bench);
    let memory = bench.path("memory");
    let tmpfs = SmallDisk::mount(memory.clone(), 1500 << 20);
    let storage = format!(
        "[stacks.memory]\npath = {:?}\n[stacks.device]\npath = {:?}\ndestroy_content = true\nfile_system = \"ext4\"\n",
        memory, own.device
    );
    let settings = "innodb_log_file_size = \"64M\"";
    let text = scenario(&storage, "stack = [\"memory\", \"device\"]", settings).replace("O_DIRECT", "fsync");
    let (header, trials) = run(&bench, &text);
    assert!(header.cells.iter().all(|cell| cell.data().real), "{:?}", header.cells);
    assert_eq!(header.cells[0].data().file_system, "tmpfs");
    let of = |cell: &str| measured_tpcc(trials.iter().find(|trial| trial.cell == cell).unwrap());
    assert_eq!(
        (&of("memory").mounts[0].emulator, &of("memory").mounts[0].host),
        (&None, &None),
        "memory is not a device"
    );
    let device = of("device");
    assert_eq!(device.mounts[0].emulator, None);
    let host = device.mounts[0].host.as_ref().unwrap();
    assert!(host.writes > 0 && host.write_bytes > 0 && host.flushes > 0, "{host:?}");
    assert!(device.mounts[0].series.write_iops.iter().sum::<f64>() > 0.0);
    assert!(device.per_transaction.writes > 0.0, "{:?}", device.per_transaction);
    assert_eq!(tmpfs.unmount(), Vec::<PathBuf>::new(), "the directory is as it was");
    drop(own);
    bench.assert_clean();
}

#[test]
fn a_real_disk_in_use_is_not_taken_down() {
    let Some(bench) = Bench::new() else { return };
    let name = format!("layout-test-{}", std::process::id());
    let disk = RealDisk::up(&name, &Place::Directory { path: bench.path("") }).unwrap();
    let error = real::down(&name).unwrap_err().to_string();
    assert!(error.contains("a run uses the real disk"), "{error}");
    let path = disk.path().to_owned();
    assert!(path.exists(), "pulled away from a run");
    disk.down().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_device_in_use_is_not_touched() {
    let Some(bench) = Bench::new() else { return };
    let own = OwnDevice::new(&bench);
    let at = bench.path("mounted");
    fs::create_dir(&at).unwrap();
    tool("mkfs.ext4", &["-q", &own.device]);
    tool("mount", &[&own.device, at.to_str().unwrap()]);
    fs::write(at.join("precious"), "mine").unwrap();
    let storage = format!("[stacks.device]\npath = {:?}\ndestroy_content = true\n", own.device);
    let words = refusal(&bench, "run", &scenario(&storage, "stack = [\"device\"]", ""));
    assert!(words.starts_with("stacks.device.path: "), "{words}");
    assert!(words.contains("is in use (mounted, or part of another device)"), "{words}");
    assert_eq!(fs::read_to_string(at.join("precious")).unwrap(), "mine");
    tool("umount", &[at.to_str().unwrap()]);
    drop(own);
    bench.assert_clean();
}

/// A run with emulated and real mounts, stopped while it loads; returns its exit code.
fn stopped(bench: &Bench, signal: Signal) -> Option<i32> {
    let own = OwnDevice::new(bench);
    let storage = format!(
        "{STACKS}[stacks.device]\npath = {:?}\ndestroy_content = true\n\
         [layouts.split]\ndata = \"card\"\nredo = \"hdd\"\ntemp = \"device\"\n",
        own.device
    );
    bench.write("test.toml", &scenario(&storage, "layout = [\"split\"]", ""));
    let run = bench.start_scenario();
    let log = format!("run/run-{}-redo/mount/redo/ib_logfile0", run.id());
    let temporary = format!("run/real/run-{}-temp/mount/temp", run.id());
    wait_until("a redo log on its own mount", || bench.path(&log).exists());
    assert!(bench.path(&temporary).exists());
    kill(Pid::from_child(&run), signal);
    let output = run.wait_with_output().unwrap();
    eprint!("{}", String::from_utf8_lossy(&output.stderr));
    if signal == Signal::KILL {
        bench.down("--all");
    }
    output.status.code()
}

#[test]
fn one_command_clears_all_mounts_of_a_killed_run() {
    let Some(bench) = Bench::new() else { return };
    assert_eq!(stopped(&bench, Signal::KILL), None);
    bench.assert_clean();
}

#[test]
fn ctrl_c_takes_all_mounts_down() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    assert_eq!(stopped(&bench, Signal::INT), Some(130));
    bench.assert_clean();
}

#[test]
fn records_of_the_first_format_are_still_read() {
    // The first two trials of a run that is older than layouts.
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/records/format-1.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let first: BTreeMap<String, serde_json::Value> =
        serde_json::from_str(text.lines().next().unwrap()).unwrap();
    assert_eq!(first["format"], 1, "the records are of the first format");
    let Records { header, trials, .. } = report::read(&path).unwrap();
    assert_eq!(header.cells[0].layout_name(), header.cells[0].data().name);
    let records = report::read(&path).unwrap();
    assert_eq!(records.trials, trials);
    let view = report::View::new(&records);
    let activity = view.cells[0].storages[0].activity.unwrap();
    assert!(activity.reads_per_s > 0.0 && activity.queue_depth > 0.0, "{activity:?}");
}
