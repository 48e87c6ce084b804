//! Storage that is against us: options that reach for other files, disks in use, emulators that stand still, images that change under
//! their reader. Always one clear sentence, and nothing is hurt or left behind.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;

use spindle_lab::emulated::{self, Wishes};
use spindle_lab::profile_file::StackFile;
use spindle_mount::Disk;

use crate::emulated_support::{Bench, scenario};

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

/// As somebody does who may write to the snapshots: the disk gives errors, and its emulator says why and lives.
#[test]
fn a_base_image_that_is_shortened_is_an_error_on_the_disk_and_not_the_end_of_its_emulator() {
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
            mount_at: None,
            physics: false,
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
