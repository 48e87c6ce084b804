//! The system's tools and tables: running a command, mounts and loop devices.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{Mode, OFlags};

/// Runs a tool and returns its standard output, trimmed.
///
/// # Errors
/// The tool is missing or fails, with its last words.
pub(crate) fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let output = match Command::new(program).args(arguments).env("LC_ALL", "C").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("{program} is not installed; `spindle doctor` says which command installs it")
        }
        output => output.with_context(|| format!("running {program}"))?,
    };
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
    let output = match Command::new(program).args(arguments).env("LC_ALL", "C").output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            bail!("{program} is not installed; `spindle doctor` says which command installs it")
        }
        output => output.with_context(|| format!("running {program}"))?,
    };
    if output.status.success() {
        return Ok(None);
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let line = stderr.lines().map(str::trim).find(|line| !line.is_empty());
    let line = line.unwrap_or("it failed without a word");
    let names_itself = line.starts_with(&format!("{speaker}: "));
    Ok(Some(if names_itself { line.to_owned() } else { format!("{speaker}: {line}") }))
}

/// Loop devices whose backing file is `file`, even if the file system under it is dead.
pub(crate) fn loops_of(file: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/sys/block") else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let device = Path::new("/dev").join(entry.file_name());
        if file_of_loop(&device).is_some_and(|backing| backing == file) {
            found.push(device);
        }
    }
    found.sort();
    found
}

/// The backing file of a loop device, if it has one, even if the file system under it is dead.
pub(crate) fn file_of_loop(device: &Path) -> Option<PathBuf> {
    let attribute = Path::new("/sys/block").join(device.file_name()?).join("loop/backing_file");
    let file = fs::read_to_string(attribute).ok()?;
    Some(file.trim_end_matches('\n').trim_end_matches(" (deleted)").into())
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
        match rustix::mount::unmount(at, rustix::mount::UnmountFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::BUSY) if started.elapsed() < Duration::from_secs(5) => {
                sleep(Duration::from_millis(50));
            }
            Err(rustix::io::Errno::BUSY) => {
                bail!(
                    "{} is in use: end the processes that have files open there, then try again",
                    at.display()
                )
            }
            Err(error) => return Err(error).with_context(|| format!("unmounting {}", at.display())),
        }
    }
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
