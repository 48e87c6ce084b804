//! The processes that use a mount or a device, as fuser(1) and lsof(8) find them: working directory, root,
//! program, open and mapped files, and mounts in other namespaces.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use spindle_base::proc;

use crate::system::{mount_points, unescape};

/// A process that is blocked on a disk may hold the lock of its memory, and the reader of its maps then
/// blocks too. The search is given up after this time.
const PATIENCE: Duration = Duration::from_secs(2);
/// Most processes in a sentence.
const NAMED_MOST: usize = 8;

/// Uses of a mount point or of a block device, in words: `bash (4711) and fio (4712)`; `None` if none is
/// found.
pub(crate) fn users_of(path: &Path) -> Option<String> {
    let mut found = Vec::new();
    let (sender, receiver) = channel();
    let owned = path.to_owned();
    thread::spawn(move || search(&owned, &sender));
    let deadline = Instant::now() + PATIENCE;
    while let Ok(process) = receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        found.push(format!("{} ({process})", proc::name(process).unwrap_or_else(|| "a process".to_owned())));
    }
    let below = mount_points().into_iter().filter(|at| at != path && at.starts_with(path));
    found.extend(below.map(|at| format!("the mount on {}", at.display())));
    let rest = found.len().saturating_sub(NAMED_MOST);
    found.truncate(NAMED_MOST);
    if rest > 0 {
        found.push(format!("{rest} more"));
    }
    let last = found.pop()?;
    Some(if found.is_empty() { last } else { format!("{} and {last}", found.join(", ")) })
}

/// Sends each process once. The maps come last, because reading them can block.
fn search(path: &Path, found: &Sender<u32>) {
    let (users, others): (Vec<u32>, Vec<u32>) =
        proc::processes().partition(|process| has_open(*process, path) || mounts_elsewhere(*process, path));
    let send = |process: u32| found.send(process).is_ok();
    let _ = users.into_iter().all(send);
    let _ = others.into_iter().filter(|process| has_mapped(*process, path)).all(send);
}

/// Links in `/proc` are read, and not followed: a path on a dead disk would block.
fn has_open(process: u32, path: &Path) -> bool {
    let directory = PathBuf::from(format!("/proc/{process}"));
    let files = fs::read_dir(directory.join("fd")).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut links = ["cwd", "root", "exe"].map(|name| directory.join(name)).into_iter().chain(files);
    links.any(|link| fs::read_link(link).is_ok_and(|target| target.starts_with(path)))
}

/// Whether the process has another mount namespace, in which the device is mounted.
fn mounts_elsewhere(process: u32, device: &Path) -> bool {
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/mnt")).ok();
    let (own, other) = (namespace("thread-self"), namespace(&process.to_string()));
    if other.is_none() || own == other {
        return false;
    }
    let mounts = fs::read_to_string(format!("/proc/{process}/mountinfo")).unwrap_or_default();
    let source = |line: &str| Some(unescape(line.split_once(" - ")?.1.split(' ').nth(1)?));
    mounts.lines().filter_map(source).any(|source| Path::new(&source) == device)
}

/// The sixth field of a line of `maps` is the path of the mapped file.
fn has_mapped(process: u32, path: &Path) -> bool {
    let maps = fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
    let mut files = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    files.any(|file| Path::new(file).starts_with(path))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::{Command, Stdio};

    use super::*;

    fn is_found(path: &Path, process: u32) -> bool {
        users_of(path).is_some_and(|users| users.contains(&format!("({process})")))
    }

    #[test]
    fn a_process_is_found_by_its_directory_and_by_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(directory.path()).unwrap();
        assert_eq!(users_of(&path), None);
        let inside = path.join("inside");
        fs::create_dir(&inside).unwrap();
        let sleep =
            || Command::new("sleep").arg("60").stdin(Stdio::null()).current_dir(&inside).spawn().unwrap();
        let mut child = sleep();
        assert_eq!(users_of(&path), Some(format!("sleep ({})", child.id())));
        child.kill().unwrap();
        child.wait().unwrap();
        let file = File::create(path.join("open")).unwrap();
        assert!(is_found(&path, std::process::id()));
        drop(file);
        assert!(!is_found(&path, std::process::id()));
    }

    #[test]
    fn a_process_is_found_by_a_mapped_file_that_it_has_closed() {
        let directory = tempfile::tempdir().unwrap();
        let path = fs::canonicalize(directory.path()).unwrap();
        let program = path.join("program");
        fs::copy("/bin/sleep", &program).unwrap();
        let mut child = Command::new(&program).arg("60").spawn().unwrap();
        // The process may not have begun its program yet.
        let is_found = || has_mapped(child.id(), &path) && has_open(child.id(), &path);
        assert!((0..500).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(10));
            is_found()
        }));
        assert!(!has_mapped(child.id(), &path.join("other")));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
