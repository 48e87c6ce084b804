//! The system's tools and tables: running a command, mounts and loop devices.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use rustix::fs::{Mode, OFlags};
use rustix::mount::UnmountFlags;
use rustix::process::{Pid, Signal, kill_process};

use crate::users::users_of;

/// Interval between checks of a wait.
const POLL: Duration = Duration::from_millis(5);
/// Number of lines of a log in an error.
const LOG_LINES: usize = 10;

/// Runs a tool and returns its standard output, trimmed.
///
/// # Errors
/// The tool is missing or fails, with its last words.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = output(program, arguments)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let words = stderr.trim().replace('\n', "; ");
        bail!("`{program} {}` failed ({}): {words}", arguments.join(" "), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The reason why a tool fails: the first line of its stderr, prefixed with `speaker`, the tool or the
/// program that it runs. `None` if it succeeds.
///
/// # Errors
/// The tool is missing.
pub(crate) fn last_words(speaker: &str, program: &str, arguments: &[String]) -> Result<Option<String>> {
    let output = output(program, arguments)?;
    if output.status.success() {
        return Ok(None);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = stderr.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or("it failed without a message");
    let names_itself = line.starts_with(&format!("{speaker}: "));
    Ok(Some(if names_itself { line.to_owned() } else { format!("{speaker}: {line}") }))
}

fn output(program: &str, arguments: &[impl AsRef<OsStr>]) -> Result<Output> {
    match Command::new(program).args(arguments).env("LC_ALL", "C").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("{program} is not installed; `spindle doctor` says which command installs it")
        }
        output => output.with_context(|| format!("running {program}")),
    }
}

/// Polls until the condition holds; false if it does not within the time.
pub(crate) fn wait_until(patience: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    let started = Instant::now();
    while !is_so() {
        if started.elapsed() > patience {
            return false;
        }
        sleep(POLL);
    }
    true
}

/// Polls a child that was just started until `connect` has a result.
///
/// # Errors
/// The child ends, or does not serve in time.
pub(crate) fn wait_until_served<T>(
    child: &mut Child,
    name: &str,
    log: &Path,
    patience: Duration,
    connect: impl Fn() -> Option<T>,
) -> Result<T> {
    let started = Instant::now();
    loop {
        if let Some(served) = connect() {
            return Ok(served);
        }
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for {name}"))? {
            return Err(death(name, status, log));
        }
        let patience_s = patience.as_secs();
        ensure!(
            started.elapsed() <= patience,
            "{name} did not come up within {patience_s} s{}",
            log_end(log)
        );
        sleep(POLL);
    }
}

/// The end of a process that should go on, with the last lines of its log.
pub(crate) fn death(name: &str, status: ExitStatus, log: &Path) -> anyhow::Error {
    anyhow!("{name} ended ({status}){}", log_end(log))
}

fn log_end(log: &Path) -> String {
    let log = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(LOG_LINES)..].join("; ");
    if last.is_empty() { last } else { format!(": {last}") }
}

/// Kills a process, which may have ended already.
pub(crate) fn kill(process: u32) {
    if let Some(id) = Pid::from_raw(process as i32) {
        let _ = kill_process(id, Signal::KILL);
    }
}

/// The names that `pick` finds in the entries of a directory, which may be missing; in alphabetical order.
///
/// # Errors
/// The directory cannot be read.
pub(crate) fn names_in(
    directory: &Path,
    pick: impl Fn(&Path, &str) -> Option<String>,
) -> Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.with_context(|| format!("reading {}", directory.display()))?,
    };
    let name = |entry: DirEntry| pick(&entry.path(), entry.file_name().to_str()?);
    let mut names: Vec<String> = entries.flatten().filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// Removes a directory with these files and directories of ours in it. Not `remove_dir_all`: if a directory
/// holds somebody else's mount, its content must stay.
///
/// # Errors
/// Something else is in it.
pub(crate) fn remove_ours(directory: &Path, names: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<()> {
    for path in names.into_iter().map(|name| directory.join(name)) {
        let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
    }
    let _ = fs::remove_dir(directory);
    ensure!(!directory.exists(), "{} still holds files that Spindle did not make", directory.display());
    Ok(())
}

/// Loop devices whose backing file is `file`, even if the file system under it is dead.
pub(crate) fn loops_of(file: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let devices = entries.map(|entry| Path::new("/dev").join(entry.file_name()));
    let mut found: Vec<PathBuf> =
        devices.filter(|device| file_of_loop(device).as_deref() == Some(file)).collect();
    found.sort();
    found
}

/// The backing file of a loop device, if it has one, even if the file system under it is dead.
pub(crate) fn file_of_loop(device: &Path) -> Option<PathBuf> {
    Some(backing_file(device)?.trim_end_matches(" (deleted)").into())
}

/// As [`file_of_loop`], with the kernel's remark about a file that is gone.
pub(crate) fn backing_file(device: &Path) -> Option<String> {
    let attribute = Path::new("/sys/block").join(device.file_name()?).join("loop/backing_file");
    Some(fs::read_to_string(attribute).ok()?.trim_end_matches('\n').to_owned())
}

/// Mount points of a source, the newest first.
pub(crate) fn mounts_of(source: &Path) -> Vec<PathBuf> {
    mounts().into_iter().rev().filter(|mount| mount.source == source).map(|mount| mount.at).collect()
}

/// Whether something is mounted exactly there.
pub(crate) fn is_mount_point(at: &Path) -> bool {
    mounts().iter().any(|mount| mount.at == at)
}

/// Whether a file system on the block device is mounted, in any mount namespace. Then nobody else can open it
/// exclusively (open(2), O_EXCL without O_CREAT).
pub(crate) fn is_claimed(device: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    matches!(rustix::fs::open(device, flags, Mode::empty()), Err(rustix::io::Errno::BUSY))
}

/// Unmounts. Waits for a short use to end, such as that of an ending process.
pub(crate) fn unmount(at: &Path) -> Result<()> {
    let started = Instant::now();
    loop {
        match rustix::mount::unmount(at, UnmountFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::BUSY) if started.elapsed() < Duration::from_secs(5) => {
                sleep(Duration::from_millis(50));
            }
            Err(rustix::io::Errno::BUSY) => {
                let users = users_of(at).unwrap_or_else(|| "that have files open there".to_owned());
                bail!("{} is in use: end the processes {users}, then try again", at.display())
            }
            Err(error) => return Err(error).with_context(|| format!("unmounting {}", at.display())),
        }
    }
}

/// Takes a mount away from its users, who keep their open files.
pub(crate) fn detach_mount(at: &Path) -> Result<()> {
    rustix::mount::unmount(at, UnmountFlags::DETACH).with_context(|| format!("unmounting {}", at.display()))
}

/// The block device under the file system that holds `path`; `None` if there is none, as under tmpfs.
pub fn device_under(path: &Path) -> Option<PathBuf> {
    let number = fs::metadata(path).ok()?.dev();
    let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
    if let Ok(device) = fs::canonicalize(format!("/sys/dev/block/{major}:{minor}")) {
        return Some(Path::new("/dev").join(device.file_name()?));
    }
    // btrfs has device numbers of its own, but its table entry names a device.
    let source = fs::canonicalize(mount_under(path)?.source).ok()?;
    let counted = Path::new("/sys/class/block").join(source.file_name()?).exists();
    (source.starts_with("/dev") && counted).then_some(source)
}

/// Type of the file system that holds `path`.
pub fn file_system_under(path: &Path) -> Option<String> {
    mount_under(path).map(|mount| mount.file_system)
}

/// The newest mount with the longest mount point above `path`.
fn mount_under(path: &Path) -> Option<Mount> {
    let path = fs::canonicalize(path).ok()?;
    let above = mounts().into_iter().filter(|mount| path.starts_with(&mount.at));
    above.max_by_key(|mount| mount.at.components().count())
}

struct Mount {
    at: PathBuf,
    source: PathBuf,
    file_system: String,
}

/// The mounts of the calling thread, which may have its own namespace. Format: proc(5), /proc/PID/mountinfo.
/// Field 5 is the mount point; type and source follow the separator.
fn mounts() -> Vec<Mount> {
    let Ok(text) = fs::read_to_string("/proc/thread-self/mountinfo") else { return Vec::new() };
    text.lines()
        .filter_map(|line| {
            let (left, right) = line.split_once(" - ")?;
            let at = unescape(left.split(' ').nth(4)?);
            let mut right = right.split(' ');
            let file_system = right.next()?.to_owned();
            let source = unescape(right.next()?);
            Some(Mount { at: at.into(), source: source.into(), file_system })
        })
        .collect()
}

/// Decodes a field of mountinfo, in which spaces, tabs, newlines and backslashes are octal.
pub fn unescape(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// All mount points, the oldest first.
pub(crate) fn mount_points() -> Vec<PathBuf> {
    mounts().into_iter().map(|mount| mount.at).collect()
}
