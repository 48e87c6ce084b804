//! One zfs-fuse daemon in a mount namespace of its own.
//!
//! zfs-fuse has one socket, one lock, one table of pools and one file of settings, at compiled-in paths, so a
//! machine can have one daemon only. In a private mount namespace those four directories are ours. The
//! system's own daemon is not needed and does not interfere, and every pool has its own daemon, cache (ARC)
//! and settings.

#![expect(unsafe_code, reason = "leaving a namespace has no safe wrapper in rustix")]

use std::env;
use std::fs::{self, File};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount_bind, mount_change,
    mount_remount, move_mount, open_tree, unmount,
};
use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};
use spindle_base::proc;

use super::PoolOptions;
use super::quiet::without_sync;
use crate::system::{self, mount_points, wait_until, wait_until_served};

/// Directories of the state directory, with the paths at which the daemon sees them.
pub(super) const PRIVATE: [(&str, &str); 4] =
    [("run", "/run/zfs"), ("lock", "/run/lock/zfs"), ("pools", "/var/lib/zfs"), ("settings", "/etc/zfs")];
/// Never written (`--pidfile` is ignored without a background process). It marks the daemon's command line,
/// so that it can be found.
const MARK: &str = "pid";
pub(super) const LOG_FILE: &str = "log";
pub(super) const SOCKET: &str = "run/zfs_socket";

/// Paths that must stay visible in the namespace.
const NEEDED: [&str; 9] = [
    "/bin",
    "/dev",
    "/etc/zfs",
    "/proc",
    "/run/lock/zfs",
    "/run/zfs",
    "/usr/lib",
    "/usr/sbin",
    "/var/lib/zfs",
];
const TIMEOUT: Duration = Duration::from_secs(20);
/// A tool waits for the devices behind its pool; for dead ones it would wait for ever.
const TOOL_TIMEOUT_S: u32 = 120;

/// Whether zfs-fuse and its tools are installed.
pub fn is_installed() -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let directories: Vec<PathBuf> =
        env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]).collect();
    ["zfs-fuse", "zpool", "zfs"]
        .iter()
        .all(|program| directories.iter().any(|directory| directory.join(program).is_file()))
}

/// Starts a daemon for the pool in that state directory.
///
/// # Errors
/// It is not installed, or ends at once: with its last words.
pub(super) fn start(state: &Path, options: &PoolOptions) -> Result<Child> {
    ensure!(is_installed(), "zfs-fuse is not installed: on Debian, `apt-get install zfs-fuse` installs it");
    for (ours, _) in PRIVATE {
        let directory = state.join(ours);
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    }
    let namespace = private_namespace(state)?;
    let log = File::create(state.join(LOG_FILE)).context("making the log of zfs-fuse")?;
    let mut command = entering(&format!("/proc/{}/fd/{}", std::process::id(), namespace.as_raw_fd()));
    if options.die_with_parent {
        command.args(["setpriv", "--pdeathsig", "KILL"]);
    }
    let mut daemon = without_sync(&mut command)
        .args(["zfs-fuse", "--no-daemon", "--no-kstat-mount"])
        // See "Measurements" in the header of `zfs.rs`.
        .args(["--disable-block-cache", "--zfs-prefetch-disable", "--vdev-cache-size", "0"])
        .args(["--fuse-mount-options", "default_permissions"])
        .args(["--fuse-attr-timeout", "3600", "--fuse-entry-timeout", "3600"])
        .args(["--max-arc-size", &(options.arc_bytes >> 20).to_string()])
        .arg("--pidfile")
        .arg(state.join(MARK))
        .envs(options.environment.iter().map(|(name, value)| (name, value)))
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in a terminal goes to the whole foreground process group, and the daemon must outlive the
        // unmounting.
        .process_group(0)
        .spawn()
        .context("starting zfs-fuse")?;
    // Through the namespace, because the path of a socket is limited to 107 bytes.
    let socket = format!("/proc/{}/root/run/zfs/zfs_socket", daemon.id());
    let connect = || UnixStream::connect(&socket).ok().filter(|_| state.join(SOCKET).exists());
    wait_until_served(&mut daemon, "zfs-fuse", &state.join(LOG_FILE), TIMEOUT, connect)?;
    Ok(daemon)
}

/// The daemon of that state directory, found by its command line.
pub(super) fn find(state: &Path) -> Option<u32> {
    let mark = state.join(MARK);
    proc::processes().find(|&process| proc::is_started_with(process, "zfs-fuse", &mark))
}

/// Ends the daemon at once; unwritten data is lost.
///
/// # Errors
/// It does not end, because a device below never answers.
pub(super) fn kill(state: &Path) -> Result<()> {
    let is_gone = || find(state).map(system::kill).is_none();
    ensure!(wait_until(TIMEOUT, is_gone), "the killed zfs-fuse did not end within {} s", TIMEOUT.as_secs());
    Ok(())
}

/// End of the error of a tool without a message, such as `zpool import` with nothing to import.
pub(super) const SILENT: &str = "failed without a message";

/// Runs `zpool` or `zfs` against this daemon and returns the standard output, trimmed.
///
/// # Errors
/// The tool's last words.
pub(super) fn tool(daemon: u32, program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", &TOOL_TIMEOUT_S.to_string()]);
    let entering = entering(&format!("/proc/{daemon}/ns/mnt"));
    command.arg(entering.get_program()).args(entering.get_args()).arg(program).args(arguments);
    let output = without_sync(with_path(&mut command).env("LC_ALL", "C").stdin(Stdio::null()))
        .output()
        .with_context(|| format!("running {program}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    let action = arguments.first().copied().unwrap_or_default();
    let words = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    match output.status.code() {
        _ if !words.is_empty() => bail!("`{program} {action}` failed: {words}"),
        Some(1) => bail!("`{program} {action}` {SILENT}"),
        _ => bail!(
            "`{program} {action}` did not end within {TOOL_TIMEOUT_S} s: a device below does not answer"
        ),
    }
}

fn entering(namespace: &str) -> Command {
    let mut command = Command::new("nsenter");
    command.arg(format!("--mount={namespace}"));
    with_path(&mut command);
    command
}

/// Administrators' programs are often outside a user's PATH.
fn with_path(command: &mut Command) -> &mut Command {
    let path = env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"))
}

/// Makes the daemon's mount at `at`, in its namespace, visible at the same path in ours. A foreign pool may
/// allow devices and set-user-ID programs; here they are off.
///
/// # Errors
/// Nothing is mounted there.
pub(super) fn show_mount(daemon: u32, at: &Path) -> Result<()> {
    let namespace =
        File::open(format!("/proc/{daemon}/ns/mnt")).context("opening the namespace of zfs-fuse")?;
    let tree = in_thread(|| -> Result<OwnedFd> {
        leave(UnshareFlags::FS)?;
        move_into_link_name_space(std::os::fd::AsFd::as_fd(&namespace), Some(LinkNameSpaceType::Mount))?;
        mount_remount(at, MountFlags::BIND | MountFlags::NOSUID | MountFlags::NODEV, c"")?;
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        Ok(open_tree(CWD, at, flags)?)
    });
    tree.and_then(|tree| Ok(move_mount(&tree, "", CWD, at, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?))
        .with_context(|| format!("showing the pool at {}", at.display()))
}

/// A mount namespace in which the daemon's fixed paths are ours. It lives as long as the file, or a process
/// in it.
fn private_namespace(state: &Path) -> Result<File> {
    in_thread(|| {
        leave(UnshareFlags::NEWNS).context("making a mount namespace")?;
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
            .context("detaching the mount namespace")?;
        // A copied mount would keep its file system alive after an unmount outside, above all that of another
        // disk.
        for at in mount_points().iter().rev().filter(|at| !is_needed(at, state)) {
            // An unreachable one lies under another mount.
            let _ = unmount(at, UnmountFlags::DETACH);
        }
        for (ours, theirs) in PRIVATE {
            // Those under /run are made by the first user and stay, as after a run of the system's own
            // daemon.
            fs::create_dir_all(theirs).with_context(|| format!("making {theirs}"))?;
            mount_bind(state.join(ours), theirs).with_context(|| format!("mounting on {theirs}"))?;
        }
        File::open("/proc/thread-self/ns/mnt").context("opening the mount namespace")
    })
}

fn is_needed(at: &Path, state: &Path) -> bool {
    state.starts_with(at) || NEEDED.iter().any(|path| Path::new(path).starts_with(at))
}

/// Runs the work on its own thread, which can leave the namespaces of the process. Nothing else may run on
/// it.
fn in_thread<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    thread::scope(|scope| scope.spawn(work).join()).unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn leave(shared: UnshareFlags) -> Result<()> {
    assert!(!shared.contains(UnshareFlags::FILES));
    // SAFETY: the table of open files, which the function's safety is about, stays shared.
    Ok(unsafe { unshare_unsafe(shared) }?)
}
