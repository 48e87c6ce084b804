//! Other runs of Spindle on this machine. Two runs at once disturb each other, so each announces itself with
//! a locked file, and can wait for the others.
//!
//! The place is the same for all users and for every `$SPINDLE_RUN_DIRECTORY`, because they share the cores.
//! A file counts as long as its lock is held, and the kernel releases the lock even after `kill -9`. The
//! directory may belong to any user: a file is created anew and never opened through a link, and what another
//! user's file says is only printed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use spindle_base::{passwords, proc, text};

use super::interrupt::Interrupt;

/// Another place for the files, for tests that run beside each other.
const DIRECTORY_VARIABLE: &str = "SPINDLE_LOCK_DIRECTORY";
const DIRECTORY: &str = "/tmp/spindle-runs";
const SUFFIX: &str = ".run";
/// Of the socket over which a run says how it goes on.
const SOCKET_SUFFIX: &str = ".live";
/// Held by the waiting run that begins next.
const TURN: &str = "turn";
const POLL: Duration = Duration::from_millis(100);
/// A longer file is not one of ours.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// What a run says about itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunHead {
    pub process_id: u32,
    /// Clock ticks since boot. They tell the process from a later one with the same number.
    pub started_at_ticks: u64,
    pub title: String,
    /// Seconds of the Unix epoch.
    pub begun_at_s: u64,
    /// Name of the scenario; empty in earlier versions.
    #[serde(default)]
    pub name: String,
}

impl RunHead {
    pub fn own(title: &str, name: &str) -> RunHead {
        let process_id = std::process::id();
        RunHead {
            process_id,
            started_at_ticks: proc::started_at_ticks(process_id).unwrap_or_default(),
            title: passwords::masked(title),
            begun_at_s: now_s(),
            name: name.to_owned(),
        }
    }

    /// `` `Title` (process 12, for 3 min) ``.
    pub fn words(&self) -> String {
        let since = Duration::from_secs(now_s().saturating_sub(self.begun_at_s));
        let title = text::one_line(&self.title);
        format!("`{title}` (process {}, for {})", self.process_id, text::duration(since))
    }

    /// The place of the run's socket, beside its announcement ([`super::broadcast`]).
    pub fn socket(&self) -> PathBuf {
        directory().join(socket_name(&self.file_name()))
    }

    /// Whether the process of the run is alive.
    pub fn is_alive(&self) -> bool {
        proc::started_at_ticks(self.process_id) == Some(self.started_at_ticks)
    }

    fn file_name(&self) -> String {
        format!("{}-{}{SUFFIX}", self.process_id, self.started_at_ticks)
    }
}

/// The name of a run's socket, by that of its announcement.
fn socket_name(file_name: &str) -> String {
    format!("{}{SOCKET_SUFFIX}", file_name.trim_end_matches(SUFFIX))
}

fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The active runs of this machine.
///
/// # Errors
/// The directory of their files cannot be read.
pub fn all() -> Result<Vec<RunHead>> {
    match Place::open(&directory(), false)? {
        Some(place) => place.runs(),
        None => Ok(Vec::new()),
    }
}

fn directory() -> PathBuf {
    std::env::var_os(DIRECTORY_VARIABLE).map_or_else(|| PathBuf::from(DIRECTORY), PathBuf::from)
}

/// Our own announcement, removed when dropped.
#[derive(Debug)]
struct Announcement {
    place: Place,
    head: RunHead,
    _lock: File,
}

impl Drop for Announcement {
    fn drop(&mut self) {
        self.place.remove(&self.head.file_name());
    }
}

/// The other runs since our own began. By default it sees nobody, and is seen by nobody.
#[derive(Debug, Default)]
pub struct OtherRuns {
    announced: Option<Announcement>,
    seen: RefCell<BTreeMap<(u32, u64), RunHead>>,
    /// Those that the user knows of.
    told: RefCell<Vec<(u32, u64)>>,
}

impl OtherRuns {
    /// Announces this run.
    ///
    /// # Errors
    /// The file cannot be made.
    pub fn announce(head: RunHead) -> Result<OtherRuns> {
        let directory = directory();
        let place = Place::open(&directory, true)?
            .with_context(|| format!("{} was removed meanwhile", directory.display()))?;
        OtherRuns::announce_in(place, head)
    }

    fn announce_in(place: Place, head: RunHead) -> Result<OtherRuns> {
        let lock = place.announce(&head)?;
        Ok(OtherRuns { announced: Some(Announcement { place, head, _lock: lock }), ..OtherRuns::default() })
    }

    /// Notes the other runs. Returns those that were not there at any earlier look.
    pub fn look(&self) -> Vec<RunHead> {
        let Some(Announcement { place, head: own, .. }) = &self.announced else { return Vec::new() };
        let others = place.runs().unwrap_or_default();
        let mut new = Vec::new();
        for other in others {
            let key = (other.process_id, other.started_at_ticks);
            if key == (own.process_id, own.started_at_ticks) {
                continue;
            }
            if !self.told.borrow().contains(&key) {
                self.told.borrow_mut().push(key);
                new.push(other.clone());
            }
            self.seen.borrow_mut().insert(key, other);
        }
        new
    }

    /// The runs that were seen since the last call.
    pub fn take_seen(&self) -> Vec<RunHead> {
        self.seen.take().into_values().collect()
    }
}

/// The right of one waiting run to begin.
#[derive(Debug)]
pub struct Turn {
    _lock: OwnedFd,
}

impl Turn {
    /// Returns when no other run is active, and no other run that waits is before us. `meanwhile` gets the
    /// runs that are waited for.
    ///
    /// # Errors
    /// The lock cannot be taken, or the user asked to stop.
    pub fn wait(interrupt: &Interrupt, meanwhile: &mut dyn FnMut(&[RunHead])) -> Result<Turn> {
        let directory = directory();
        let place = Place::open(&directory, true)?
            .with_context(|| format!("{} was removed meanwhile", directory.display()))?;
        let lock = place.turn()?;
        let mut is_ours = false;
        loop {
            is_ours = is_ours || is_locked(&lock, FlockOperation::NonBlockingLockExclusive)?;
            let others = place.runs()?;
            if is_ours && others.is_empty() {
                return Ok(Turn { _lock: lock });
            }
            meanwhile(&others);
            interrupt.sleep(POLL)?;
        }
    }
}

/// `false` if another process holds the lock.
fn is_locked(file: &impl std::os::fd::AsFd, how: FlockOperation) -> Result<bool> {
    match flock(file, how) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(error) => Err(error).context("locking the file of a run"),
    }
}

/// The directory of the files, held open.
#[derive(Debug)]
struct Place {
    path: PathBuf,
    directory: OwnedFd,
}

impl Place {
    /// Opens the directory, which is made if missing and `make`. `None` if it is missing.
    fn open(path: &Path, make: bool) -> Result<Option<Place>> {
        if make && fs::create_dir(path).is_ok() {
            // Every user may add files and remove his own, as in /tmp.
            fs::set_permissions(path, fs::Permissions::from_mode(0o1777))
                .with_context(|| format!("opening {} to all users", path.display()))?;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(directory) => Ok(Some(Place { path: path.to_owned(), directory })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error).with_context(|| format!("opening {}", path.display())),
        }
    }

    /// The file is locked before it has its name, so nobody takes it for that of a killed run.
    fn announce(&self, head: &RunHead) -> Result<File> {
        let making = || format!("making a file in {}", self.path.display());
        let name = head.file_name();
        let draft = format!("{name}.new");
        self.remove(&draft);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &draft, flags, Mode::from_raw_mode(0o644))
            .with_context(making)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).with_context(making)?;
        let mut file = File::from(file);
        file.write_all(&serde_json::to_vec(head)?).with_context(making)?;
        rustix::fs::renameat(&self.directory, &draft, &self.directory, &name).with_context(making)?;
        Ok(file)
    }

    /// The file of the turn. Another user may have made it, and then it cannot be opened for writing.
    fn turn(&self) -> Result<OwnedFd> {
        let opening = || format!("opening {}", self.path.join(TURN).display());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let make = flags | OFlags::CREATE | OFlags::EXCL;
        match rustix::fs::openat(&self.directory, TURN, make, Mode::from_raw_mode(0o644)) {
            Err(Errno::EXIST) => {
                rustix::fs::openat(&self.directory, TURN, flags, Mode::empty()).with_context(opening)
            }
            made => made.with_context(opening),
        }
    }

    /// The runs whose locks are held. Files of killed runs are removed.
    fn runs(&self) -> Result<Vec<RunHead>> {
        let reading = || format!("reading {}", self.path.display());
        let mut runs = Vec::new();
        for entry in rustix::fs::Dir::read_from(&self.directory).with_context(reading)? {
            let entry = entry.with_context(reading)?;
            let Some(name) = entry.file_name().to_str().ok().filter(|name| name.ends_with(SUFFIX)) else {
                continue;
            };
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let Ok(file) = rustix::fs::openat(&self.directory, name, flags, Mode::empty()) else { continue };
            if is_locked(&file, FlockOperation::NonBlockingLockShared).unwrap_or(true) {
                self.remove(name);
                self.remove(&socket_name(name));
                continue;
            }
            let mut content = String::new();
            let read = File::from(file).take(FILE_BYTES_MAX).read_to_string(&mut content);
            runs.extend(read.ok().and_then(|_| serde_json::from_str(&content).ok()));
        }
        Ok(runs)
    }

    /// Another user's file stays.
    fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(number: u32) -> RunHead {
        RunHead { process_id: number, title: format!("Run {number}"), ..RunHead::own("", "") }
    }

    fn place(directory: &Path) -> Place {
        Place::open(directory, true).unwrap().unwrap()
    }

    fn other_runs(directory: &Path, number: u32) -> OtherRuns {
        OtherRuns::announce_in(place(directory), head(number)).unwrap()
    }

    fn numbers(runs: Vec<RunHead>) -> Vec<u32> {
        runs.into_iter().map(|run| run.process_id).collect()
    }

    #[test]
    fn two_runs_see_each_other_and_nobody_sees_himself() {
        let directory = tempfile::tempdir().unwrap();
        let first = other_runs(directory.path(), 1);
        assert!(first.look().is_empty());
        let second = other_runs(directory.path(), 2);
        assert_eq!([numbers(first.look()), numbers(second.look())], [[2], [1]]);
        assert!(first.look().is_empty(), "it is known already");
        drop(second);
        assert_eq!(numbers(first.take_seen()), [2], "it was there since the last call");
        assert!(first.look().is_empty() && first.take_seen().is_empty());
    }

    #[test]
    fn the_file_of_a_killed_run_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path());
        drop(place.announce(&head(1)).unwrap());
        fs::write(directory.path().join(socket_name(&head(1).file_name())), "").unwrap();
        assert!(place.runs().unwrap().is_empty());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_no_run_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let place = place(directory.path());
        fs::write(directory.path().join("other"), "text").unwrap();
        std::os::unix::fs::symlink("other", directory.path().join("link.run")).unwrap();
        assert!(place.runs().unwrap().is_empty());
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }
}
