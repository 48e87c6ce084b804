//! File systems on emulated disks: made and mounted as asked, and the same again from a snapshot.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::emulated_support::{Bench, queue_attribute, tool};
use crate::{in_check_all, skip};
use spindle_base::dilation::Dilation;
use spindle_lab::stack::{StackFile, StackSpec};
use spindle_lab::volume::emulated::{self, Wishes};
use spindle_mount::Disk;

/// A disk that takes no time, with further keys in its table.
fn up(bench: &Bench, table: &str, snapshot: Option<&Path>) -> Disk {
    let text = format!("[stacks.disk]\nprofile = \"null\"\nsize = \"1 GiB\"\n{table}");
    let stack = StackFile::parse("stack", &text).unwrap().resolve("stack", "disk").unwrap();
    bring_up(bench, &stack, snapshot)
}

/// Tests run beside each other.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// With the timing off.
fn bring_up(bench: &Bench, stack: &StackSpec, snapshot: Option<&Path>) -> Disk {
    let wishes = Wishes {
        name: format!("layout-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed)),
        seed: 1,
        dilation: Dilation::NONE,
        mount_at: None,
        timing: false,
        floor: None,
        snapshot,
        spill_directory: &bench.path("."),
        die_with_parent: false,
    };
    let options = emulated::options(stack, &wishes).unwrap();
    Disk::up(Path::new(env!("CARGO_BIN_EXE_spindle")), &options).unwrap()
}

fn mounted_with(disk: &Disk) -> String {
    tool(
        "findmnt",
        &["--noheadings", "--output", "FSTYPE,OPTIONS", disk.mount.as_ref().unwrap().to_str().unwrap()],
    )
}

#[test]
fn xfs_knows_the_stripes_that_it_was_made_for() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    let disk = up(bench, "mkfs_options = [\"-d\", \"su=64k,sw=4\"]\nmount_options = [\"inode64\"]", None);
    let information = tool("xfs_info", &[disk.mount.as_ref().unwrap().to_str().unwrap()]);
    // In blocks of 4 KiB.
    assert!(information.contains("sunit=16     swidth=64 blks"), "{information}");
    assert!(mounted_with(&disk).contains("inode64"), "{}", mounted_with(&disk));
    disk.down().unwrap();
}

#[test]
fn xfs_is_told_of_stripes_when_it_is_mounted() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    let disk = up(bench, "mount_options = [\"sunit=128\", \"swidth=512\"]", None);
    // In sectors.
    assert!(mounted_with(&disk).contains("sunit=128,swidth=512"), "{}", mounted_with(&disk));
    assert!(mounted_with(&disk).contains("nosuid,nodev"), "{}", mounted_with(&disk));
    disk.down().unwrap();
}

#[test]
fn ext4_knows_stripes_and_does_without_barriers() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    let table = "file_system = \"ext4\"\nmkfs_options = [\"-E\", \"stride=16,stripe_width=64\"]\nmount_options = [\"nobarrier\"]";
    let disk = up(bench, table, None);
    let information = tool("dumpe2fs", &["-h", disk.device.to_str().unwrap()]);
    let has = |name: &str, value: &str| {
        information.lines().any(|line| line.starts_with(name) && line.ends_with(&format!(" {value}")))
    };
    assert!(has("RAID stride:", "16") && has("RAID stripe width:", "64"), "{information}");
    assert!(mounted_with(&disk).contains("nobarrier"), "{}", mounted_with(&disk));
    disk.down().unwrap();
}

#[test]
fn ext4_commits_less_often_on_a_disk_that_is_dilated_later() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    let mut disk = up(bench, "file_system = \"ext4\"\nmount_options = [\"commit=7\"]", None);
    disk.set_timing(true).unwrap();
    fs::write(disk.mount.as_ref().unwrap().join("file"), "not synced").unwrap();
    for (k, commit) in [(4.0, "commit=28"), (1.0, "commit=7")] {
        let dilation = Dilation::new(k).unwrap();
        disk.set_dilation(dilation).unwrap();
        assert!(mounted_with(&disk).contains(commit), "{}", mounted_with(&disk));
        assert!(mounted_with(&disk).contains("nosuid,nodev"), "{}", mounted_with(&disk));
        assert_eq!(disk.statistics().unwrap().dilation, dilation);
    }
    disk.down().unwrap();
}

/// The kernel's default for an SSD is 2 ms. A kernel without this throttle has no such attribute.
#[test]
fn the_page_cache_is_held_back_in_dilated_time() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    let mut disk = up(bench, "", None);
    let throttle = queue_attribute(&disk.device, "wbt_lat_usec");
    for (k, us) in [(1.0, "2000\n"), (4.0, "8000\n")] {
        disk.set_dilation(Dilation::new(k).unwrap()).unwrap();
        if throttle.exists() {
            assert_eq!(fs::read_to_string(&throttle).unwrap(), us, "dilation {k}");
        }
    }
    disk.down().unwrap();
}

/// Another mount namespace has a copy of our mount. While the copy is there, unmounting ours writes nothing
/// back.
#[test]
fn a_snapshot_has_what_another_mount_namespace_kept_from_being_written() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    let snapshot = bench.path("shared");
    let mut disk = up(bench, "", None);
    let mut other = Command::new("unshare");
    let mut other =
        other.args(["--mount", "sh", "-c", "echo; sleep 1"]).stdout(Stdio::piped()).spawn().unwrap();
    BufReader::new(other.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    fs::write(disk.mount.as_ref().unwrap().join("file"), "not synced").unwrap();
    disk.snapshot(&snapshot).unwrap();
    disk.down().unwrap();
    other.wait().unwrap();
    let disk = up(bench, "", Some(&snapshot));
    assert_eq!(fs::read_to_string(disk.mount.as_ref().unwrap().join("file")).unwrap(), "not synced");
    disk.down().unwrap();
}

/// The iodrive needs no FLUSH, and the kernel is told so. The next user of its loop device may need one.
#[test]
fn loop_devices_are_given_back_as_they_were() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    let file =
        StackFile::parse("stack", "[stacks.disk]\nprofile = \"iodrive-160\"\nsize = \"1 GiB\"\n").unwrap();
    let disk = bring_up(bench, &file.resolve("stack", "disk").unwrap(), None);
    let write_cache = queue_attribute(&disk.device, "write_cache");
    assert_eq!(fs::read_to_string(&write_cache).unwrap(), "write through\n");
    disk.down().unwrap();
    let after = fs::read_to_string(&write_cache).unwrap();
    let taken_again = write_cache.parent().unwrap().with_file_name("loop").exists();
    assert!(taken_again || after == "write back\n", "{after}");
}

/// Linux 6.17 and later read 2.5 MiB ahead of a rotating drive, and so of the next user of its loop device.
#[test]
fn the_page_cache_reads_as_far_ahead_of_all_drives() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    for profile in ["hdd-7200", "870evo"] {
        let text = format!("[stacks.disk]\nprofile = \"{profile}\"\nsize = \"1 GiB\"\n");
        let file = StackFile::parse("stack", &text).unwrap();
        let mut disk = bring_up(bench, &file.resolve("stack", "disk").unwrap(), None);
        disk.set_dilation(Dilation::new(2.0).unwrap()).unwrap();
        let read_ahead = fs::read_to_string(queue_attribute(&disk.device, "read_ahead_kb")).unwrap();
        assert_eq!(read_ahead, "128\n", "{profile}");
        disk.down().unwrap();
    }
}

#[test]
fn btrfs_starts_from_one_snapshot_again_and_again() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let bench = &bench;
    if Command::new("mkfs.btrfs").arg("--version").output().is_err() {
        skip::<()>("no mkfs.btrfs");
        return;
    }
    let table = "file_system = \"btrfs\"";
    let snapshot = bench.path("snapshot");
    let file = |disk: &Disk| disk.mount.as_ref().unwrap().join("table");
    let mut disk = up(bench, table, None);
    assert!(mounted_with(&disk).starts_with("btrfs"), "{}", mounted_with(&disk));
    fs::write(file(&disk), "loaded").unwrap();
    disk.snapshot(&snapshot).unwrap();
    disk.down().unwrap();
    for _ in 0..2 {
        // The second time, the kernel has already seen a later state of the same file system.
        let disk = up(bench, table, Some(&snapshot));
        assert_eq!(fs::read_to_string(file(&disk)).unwrap(), "loaded");
        for change in 0..5 {
            fs::write(file(&disk), format!("changed {change}")).unwrap();
            tool("sync", &["--file-system", file(&disk).to_str().unwrap()]);
        }
        disk.down().unwrap();
    }
}
