//! Checks this machine for Spindle's requirements. Each check states its finding, or the command that helps.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;

use crate::host::provenance;
use crate::server::{Kind, Program, catalog, package};
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

pub fn examine() -> Vec<Check> {
    let machine = vec![
        kernel(),
        memory(),
        free_disk(),
        root(),
        device("/dev/fuse", "emulated disks are FUSE files; load the module with `modprobe fuse`"),
        device("/dev/loop-control", "emulated disks need loop devices; load the module with `modprobe loop`"),
        real_time(),
        io_flusher(),
        ring(),
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
        program("chromium", "chromium", false, "only the tests use it, to look at the report"),
    ];
    [machine, servers(), tools].concat()
}

/// The reasons why an emulated disk cannot come up here; empty when it can.
pub fn emulation_blockers() -> Vec<&'static str> {
    let mut blockers = Vec::new();
    if !is_root() {
        blockers.push("it is not run as root");
    }
    if !is_character_device("/dev/fuse") {
        blockers.push("there is no device /dev/fuse");
    }
    if !is_character_device("/dev/loop-control") {
        blockers.push("there is no device /dev/loop-control");
    }
    blockers
}

pub fn can_run_scenarios(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.passed || !check.required)
}

/// One command that installs all missing packages; `None` when packages do not help.
pub fn install_command(checks: &[Check]) -> Option<String> {
    let mut packages: Vec<&str> =
        checks.iter().filter(|check| !check.passed).filter_map(|check| check.package).collect();
    packages.sort_unstable();
    packages.dedup();
    (!packages.is_empty()).then(|| format!("apt-get install --yes {}", packages.join(" ")))
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn kernel() -> Check {
    let detail = provenance::kernel();
    let passed = cfg!(target_os = "linux") && !detail.is_empty();
    Check { name: "kernel", passed, required: true, detail, package: None }
}

fn memory() -> Check {
    let bytes = provenance::memory_bytes();
    let passed = bytes >= MEMORY_BYTES;
    let detail = format!("{} for {} cores", text::size(bytes), provenance::cpu_count());
    let detail =
        if passed { detail } else { format!("{detail}; at least {} is needed", text::size(MEMORY_BYTES)) };
    Check { name: "memory", passed, required: true, detail, package: None }
}

/// Free space at the default place of results, snapshots and overlays.
fn free_disk() -> Check {
    let free = rustix::fs::statvfs(".").map_or(0, |status| status.f_bavail * status.f_frsize);
    let passed = free >= FREE_DISK_BYTES;
    let detail = format!("{} free in the working directory", text::size(free));
    let detail =
        if passed { detail } else { format!("{detail}; {} is comfortable", text::size(FREE_DISK_BYTES)) };
    Check { name: "free disk", passed, required: false, detail, package: None }
}

fn root() -> Check {
    let passed = is_root();
    let detail = if passed { "yes" } else { "emulated disks are mounted as root; run with sudo" };
    Check { name: "root", passed, required: true, detail: detail.to_owned(), package: None }
}

fn device(path: &'static str, without: &str) -> Check {
    let passed = is_character_device(path);
    let detail = match Path::new(path).exists() {
        _ if passed => "present".to_owned(),
        true => format!("not a character device: {without}"),
        false => without.to_owned(),
    };
    Check { name: path, passed, required: true, detail, package: None }
}

/// Checks the type as well, because writing to a missing device creates a file of its name.
fn is_character_device(path: &str) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| metadata.file_type().is_char_device())
}

/// Tries real-time scheduling, because limits, capabilities and containers all affect it.
fn real_time() -> Check {
    let allowed = Command::new("chrt")
        .args(["--fifo", "1", "true"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    let detail = if allowed {
        "allowed"
    } else {
        "not allowed, so emulated latencies can be late while the cores are busy; run as root or grant CAP_SYS_NICE"
    };
    Check { name: "SCHED_FIFO", passed: allowed, required: false, detail: detail.to_owned(), package: None }
}

fn io_flusher() -> Check {
    let passed = spindle_mount::has_io_flusher();
    let detail = if passed {
        "allowed"
    } else {
        "not allowed, so under a memory limit (control groups of version 1) an emulator can come to wait for its own disk, and is ended; \
         grant CAP_SYS_RESOURCE"
    };
    Check { name: "PR_SET_IO_FLUSHER", passed, required: false, detail: detail.to_owned(), package: None }
}

fn ring() -> Check {
    let passed = spindle_mount::has_ring();
    let detail = if passed {
        "present"
    } else {
        "absent (Linux 6.14 has it), so threads serve emulated disks, with a wake-up more per request"
    };
    Check { name: "FUSE over io_uring", passed, required: false, detail: detail.to_owned(), package: None }
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
    match found {
        Some(detail) => Check { name, passed: true, required, detail, package: None },
        None => Check { name, passed: false, required, detail: purpose.to_owned(), package },
    }
}

/// Fetched programs are started as root before they switch to another user.
fn fetched_servers() -> Check {
    let (wrong, right_count) = package::examine_cache();
    let passed = wrong.is_empty();
    let detail = match right_count {
        _ if !passed => wrong.join("; "),
        0 => "none; `spindle server list` says which there are".to_owned(),
        count => format!("{count}, which nobody else can change"),
    };
    Check { name: "fetched servers", passed, required: false, detail, package: None }
}

/// Path of a program. Administrators' programs are often outside a user's PATH.
fn found(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from))
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file())
        .map(|found| found.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(passed: bool, required: bool, package: Option<&'static str>) -> Check {
        Check { name: "x", passed, required, detail: String::new(), package }
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
