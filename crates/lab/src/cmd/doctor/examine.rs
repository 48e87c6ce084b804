//! Checks this machine for Spindle's requirements. Each check states its finding, or the command that helps.

use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use itertools::Itertools as _;
use serde::Serialize;

use crate::host::provenance;
use crate::server::{Kind, Program, catalog, package};
use spindle_base::child::find_program;
use spindle_base::text;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    pub name: &'static str,
    pub passed: bool,
    /// Whether every real scenario needs it.
    pub required: bool,
    /// The finding, or the consequence of its absence.
    pub detail: String,
    /// Debian package that contains it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package: Option<&'static str>,
}

/// Least memory for a small scenario: server, clients and the emulated data.
const MEMORY_BYTES: u64 = 2 << 30;
const FREE_DISK_BYTES: u64 = 10_000_000_000;

const NO_REAL_TIME: &str =
    "not allowed: the emulator can answer late while the cores are busy; run as root or grant CAP_SYS_NICE";
const NO_IO_FLUSHER: &str = "not allowed: under a memory limit of control groups version 1, an emulator can wait for its own disk, and is \
     then killed; grant CAP_SYS_RESOURCE";
const NO_RING: &str =
    "absent (needs Linux 6.14): threads serve emulated disks, which costs one more wake-up per request";

pub fn examine() -> Vec<Check> {
    let machine = vec![
        kernel(),
        memory(),
        free_disk(),
        ability("root", true, is_root(), "yes", "emulated disks need root; run with sudo"),
        device("/dev/fuse", "emulated disks are FUSE files; load the module with `modprobe fuse`"),
        device("/dev/loop-control", "emulated disks need loop devices; load the module with `modprobe loop`"),
        ability("SCHED_FIFO", false, has_real_time(), "allowed", NO_REAL_TIME),
        ability("PR_SET_IO_FLUSHER", false, spindle_mount::has_io_flusher(), "allowed", NO_IO_FLUSHER),
        ability("FUSE over io_uring", false, spindle_mount::has_ring(), "present", NO_RING),
        program("fusermount3", "fuse3", true, "mounts the emulated disk's file"),
        program("losetup", "util-linux", true, "makes block devices of emulated disks"),
        program("mkfs.xfs", "xfsprogs", true, "makes xfs file systems"),
        program("mkfs.ext4", "e2fsprogs", false, "makes ext4 file systems"),
        program("mkfs.btrfs", "btrfs-progs", false, "makes btrfs file systems"),
        program("zfs-fuse", "zfs-fuse", false, "makes ZFS pools"),
    ];
    let tools = vec![
        fetched_servers(),
        program("fio", "fio", false, "measures raw disks"),
        program("sysbench", "sysbench", false, "runs the workloads `sysbench` and `fileio`"),
        program("mariadb-slap", "mariadb-client", false, "runs the workload `mysqlslap`"),
        program("chromium", "chromium", false, "shows the report in tests"),
    ];
    [machine, servers(), tools].concat()
}

/// The reasons why an emulated disk cannot come up here; empty when it can.
pub fn emulation_blockers() -> Vec<&'static str> {
    let needs = [
        (is_root(), "it is not run as root"),
        (is_character_device("/dev/fuse"), "there is no device /dev/fuse"),
        (is_character_device("/dev/loop-control"), "there is no device /dev/loop-control"),
    ];
    needs.into_iter().filter(|(is_met, _)| !is_met).map(|(_, blocker)| blocker).collect()
}

pub fn can_run_scenarios(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.passed || !check.required)
}

/// One command that installs all missing packages; `None` when packages do not help.
pub fn install_command(checks: &[Check]) -> Option<String> {
    let packages = checks.iter().filter(|check| !check.passed).filter_map(|check| check.package);
    let packages = packages.sorted().dedup().join(" ");
    (!packages.is_empty()).then(|| format!("apt-get install --yes {packages}"))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn check(name: &'static str, required: bool, passed: bool, detail: impl Into<String>) -> Check {
    Check { name, passed, required, detail: detail.into(), package: None }
}

fn ability(name: &'static str, required: bool, passed: bool, with: &str, without: &str) -> Check {
    check(name, required, passed, if passed { with } else { without })
}

fn kernel() -> Check {
    let detail = provenance::kernel();
    check("kernel", true, cfg!(target_os = "linux") && !detail.is_empty(), detail)
}

fn memory() -> Check {
    let bytes = provenance::memory_bytes();
    let with = format!("{} for {} cores", text::size(bytes), provenance::cpu_count());
    let without = format!("{with}; at least {} is needed", text::size(MEMORY_BYTES));
    ability("memory", true, bytes >= MEMORY_BYTES, &with, &without)
}

/// Free space at the default place of results, snapshots and overlays.
fn free_disk() -> Check {
    let free = rustix::fs::statvfs(".").map_or(0, |status| status.f_bavail * status.f_frsize);
    let with = format!("{} free in the working directory", text::size(free));
    let without = format!("{with}; {} is recommended", text::size(FREE_DISK_BYTES));
    ability("free disk", false, free >= FREE_DISK_BYTES, &with, &without)
}

fn device(path: &'static str, without: &str) -> Check {
    let passed = is_character_device(path);
    let detail = match Path::new(path).exists() {
        _ if passed => "present".to_owned(),
        true => format!("not a character device: {without}"),
        false => without.to_owned(),
    };
    check(path, true, passed, detail)
}

/// Checks the type as well, because writing to a missing device creates a file of its name.
fn is_character_device(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
}

/// Tries real-time scheduling, because limits, capabilities and containers all affect it.
fn has_real_time() -> bool {
    let mut command = Command::new("chrt");
    command.args(["--fifo", "1", "true"]).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn program(name: &'static str, package: &'static str, is_required: bool, purpose: &'static str) -> Check {
    needed(Program { name, package: Some(package), is_required, purpose }, found(name))
}

/// The programs of every kind of server: the server's, with the version that it reports, and the tools that
/// it needs.
fn servers() -> Vec<Check> {
    let of_kind = |kind: &&Kind| {
        let own = kind.program.map(|program| {
            let version = catalog::by_kind(kind.name).and_then(|server| server.version().ok());
            needed(program, version)
        });
        let tools = kind.tools.iter().map(|tool| needed(*tool, found(tool.name)));
        own.into_iter().chain(tools).collect::<Vec<_>>()
    };
    catalog::KINDS.iter().flat_map(of_kind).collect()
}

fn needed(program: Program, found: Option<String>) -> Check {
    let Program { name, package, is_required: required, purpose } = program;
    let package = package.filter(|_| found.is_none());
    Check { package, ..check(name, required, found.is_some(), found.unwrap_or_else(|| purpose.to_owned())) }
}

/// Fetched programs are started as root before they switch to another user.
fn fetched_servers() -> Check {
    let (wrong, right_count) = package::examine_cache();
    let passed = wrong.is_empty();
    let detail = match right_count {
        _ if !passed => wrong.join("; "),
        0 => "none; `spindle server list` shows the available ones".to_owned(),
        count => format!("{count}, which only their owner can change"),
    };
    check("fetched servers", false, passed, detail)
}

/// Path of a program.
fn found(name: &str) -> Option<String> {
    find_program(name).map(|found| found.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(passed: bool, required: bool, package: Option<&'static str>) -> Check {
        Check { package, ..super::check("x", required, passed, "") }
    }

    #[test]
    fn each_missing_package_is_installed_once() {
        let checks = [
            check(false, true, Some("mariadb-server")),
            check(false, true, Some("fuse3")),
            check(false, true, Some("mariadb-server")),
            check(true, true, None),
        ];
        assert_eq!(install_command(&checks).unwrap(), "apt-get install --yes fuse3 mariadb-server");
        assert_eq!(install_command(&checks[3..]), None);
    }

    #[test]
    fn only_required_things_stand_in_the_way() {
        assert!(can_run_scenarios(&[check(true, true, None), check(false, false, Some("fio"))]));
        assert!(!can_run_scenarios(&[check(false, true, None)]));
    }

    #[test]
    fn a_file_in_the_place_of_a_device_is_not_one() {
        assert!(device("/dev/null", "").passed);
        assert_eq!(device("/no/such/device", "load the module").detail, "load the module");
        let file = device("/proc/self/comm", "load the module");
        assert_eq!((file.passed, file.detail.as_str()), (false, "not a character device: load the module"));
    }

    #[test]
    fn this_machine_can_be_examined() {
        let checks = examine();
        assert!(checks.iter().any(|check| check.name == "kernel" && check.passed), "{checks:?}");
        assert!(checks.iter().all(|check| !check.detail.is_empty()), "{checks:?}");
    }
}
