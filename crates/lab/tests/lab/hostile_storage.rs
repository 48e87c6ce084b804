//! Storage that is against us: options that reach for other files, disks in use, emulators that stand still,
//! images that change under their reader. Always one clear sentence, and nothing is hurt or left behind.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;

use spindle_base::dilation::Dilation;
use spindle_lab::stack::StackFile;
use spindle_lab::volume::emulated::{self, Wishes};
use spindle_mount::Disk;

use crate::emulated_support::{Bench, scenario};
use crate::skip;

/// The stack of the scenario with these lines more.
fn with_lines(lines: &str) -> String {
    scenario(&[("size = ", &format!("{lines}\nsize = "))])
}

#[track_caller]
fn check_refused(lines: &str, expect: &str) {
    let Some(bench) = Bench::new() else { return };
    let victim = bench.write("victim", "not ours");
    bench.write("test.toml", &with_lines(&lines.replace("VICTIM", victim.to_str().unwrap())));
    let talk = bench.run_scenario(&[], &[], 2);
    let expect = format!("spindle: test.toml: stacks.card.{expect}");
    assert!(talk.starts_with(&expect), "{talk}");
    let planned = bench.run(&["plan", "test.toml"]);
    assert_eq!((planned.status.code(), String::from_utf8(planned.stderr).unwrap()), (Some(2), talk));
    assert_eq!(fs::read_to_string(victim).unwrap(), "not ours");
    assert!(!bench.path("results").exists(), "work was begun");
    bench.assert_clean();
}

#[test]
fn an_option_that_names_another_file_is_refused_before_it_is_tried() {
    check_refused(
        r#"mkfs_options = ["-d", "name=VICTIM,file"]"#,
        "mkfs_options: `name` is not among the options of mkfs.xfs -d that can be given",
    );
    check_refused(
        "file_system = \"ext4\"\nmkfs_options = [\"-z\", \"VICTIM\"]",
        "mkfs_options: `-z` is not among the options of mkfs.ext4 that can be given",
    );
    check_refused(
        r#"mount_options = ["suid,dev"]"#,
        "mount_options: `suid` is not among the options of mount -t xfs that can be given",
    );
}

#[test]
fn a_disk_larger_than_can_be_emulated_is_refused_before_any_work() {
    let Some(bench) = Bench::new() else { return };
    let too_large = "a disk of 109951162777600 bytes is too large: at most 16 TiB can be emulated\n";
    let output = bench.run(&["disk", "up", "null", "--size", "100 TiB"]);
    let talk = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), talk), (Some(2), format!("spindle: --size: {too_large}")));
    let card = "profile = \"iodrive-160\"\nsize = \"1 GiB\"";
    bench.write("test.toml", &scenario(&[(card, "profile = \"null\"\nsize = \"100 TiB\"")]));
    let talk = bench.run_scenario(&[], &[], 2);
    assert_eq!(talk, format!("spindle: test.toml: stacks.card.size: {too_large}"));
    bench.assert_clean();
}

/// A user who may write to the snapshots shortens one. The disk gives errors, and its emulator says why.
#[test]
fn a_shortened_base_image_gives_errors_and_its_emulator_lives() {
    let Some(bench) = Bench::new() else { return };
    let file = StackFile::parse(
        "stack",
        "[stacks.disk]\nprofile = \"null\"\nsize = \"64 MiB\"\nfile_system = \"none\"\n",
    );
    let stack = file.unwrap().resolve("stack", "disk").unwrap();
    let snapshot = bench.path("snapshot");
    let (program, directory) = (Path::new(env!("CARGO_BIN_EXE_spindle")), bench.path("."));
    let up = |snapshot: Option<&Path>| {
        let name = format!("shortened-{}", std::process::id());
        let wishes = Wishes {
            name,
            seed: 1,
            dilation: Dilation::NONE,
            mount_at: None,
            timing: false,
            floor: None,
            snapshot,
            spill_directory: &directory,
            die_with_parent: false,
        };
        Disk::up(program, &emulated::options(&stack, &wishes).unwrap()).unwrap()
    };
    let mut disk = up(None);
    let device = OpenOptions::new().write(true).open(&disk.device).unwrap();
    device.write_all_at(&vec![1; 64 << 20], 0).and_then(|()| device.sync_all()).unwrap();
    drop(device);
    disk.snapshot(&snapshot).unwrap();
    disk.down().unwrap();

    let mut disk = up(Some(&snapshot));
    OpenOptions::new().write(true).open(snapshot.join("image")).unwrap().set_len(4096).unwrap();
    let device = fs::File::open(&disk.device).unwrap();
    assert!(device.read_exact_at(&mut [0; 4096], 32 << 20).is_err());
    let words = disk.statistics().unwrap_err().to_string();
    assert!(words.ends_with("the file is shorter than it was when the disk came up"), "{words}");
    drop(device);
    disk.down().unwrap();
}

/// A limit on the emulator's address space that everything fits into but the ring, which has 128 slots of 1
/// MiB for each core that there could be: half of that beside what it needs without one.
#[test]
fn threads_serve_the_disk_when_the_ring_is_refused() {
    let Some(bench) = Bench::new() else { return };
    if !spindle_mount::has_ring() {
        skip::<()>("no FUSE over io_uring");
        return;
    }
    let run_directory = bench.path("run");
    let up = |command: &mut Command| {
        command.args(["disk", "up", "null", "--size", "64 MiB", "--file-system", "none"]);
        // Otherwise glibc reserves 64 MiB more whenever two threads happen to allocate at once.
        command.env("MALLOC_ARENA_MAX", "1");
        command.env("SPINDLE_RUN_DIRECTORY", &run_directory).current_dir(bench.path("")).output().unwrap()
    };
    let spindle = env!("CARGO_BIN_EXE_spindle");
    let output = up(Command::new(spindle).env("SPINDLE_FUSE", "threads"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let number = |text: &str| text.split_ascii_whitespace().next().unwrap().parse::<u64>().unwrap();
    let process = number(&fs::read_to_string(bench.path("run/null/pid")).unwrap());
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let without_kib = status.lines().find_map(|line| line.strip_prefix("VmPeak:")).map(number).unwrap();
    bench.down("null");
    let possible = fs::read_to_string("/sys/devices/system/cpu/possible").unwrap();
    let cores = 1 + possible.trim().rsplit(['-', ',']).next().unwrap().parse::<u64>().unwrap();
    let limit = (without_kib << 10) + cores * (64 << 20);
    let output = up(Command::new("prlimit").arg(format!("--as={limit}")).arg(spindle));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let status = bench.json(&["disk", "status", "--json"]);
    assert_eq!(status[0]["statistics"]["transport"], "threads", "{status}");
    let log = fs::read_to_string(bench.path("run/null/log")).unwrap();
    let reason = "registering the FUSE ring: Cannot allocate memory (os error 12); threads serve instead\n";
    assert_eq!(log, reason);
    bench.down("null");
    bench.assert_clean();
}
