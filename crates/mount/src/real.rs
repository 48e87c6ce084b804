//! A real disk as a volume: a directory of our own on an existing file system, or a block device with a new
//! file system.
//!
//! Each step that must be undone is recorded under the run directory (`real/NAME`) before it is taken. A lock
//! tells whether the process that uses the disk is alive. As for emulated disks, [`down`] thus works after a
//! crash of any part.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use spindle_base::dilation::Dilation;

use crate::file_system::Formatting;
use crate::run_directory::{REAL, run_directory, state_directory};
use crate::system::{device_under, is_mount_point, names_in, remove_ours, unmount};

/// The location of a real disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// An existing directory. Files go to our own directory in it, which is removed afterwards.
    Directory { path: PathBuf },
    /// A block device. Everything on it is destroyed.
    BlockDevice {
        path: PathBuf,
        #[serde(flatten)]
        formatting: Formatting,
    },
}

const PLACE_FILE: &str = "real.json";
const LOCK_FILE: &str = "lock";

/// A real disk in use. Dropping it removes our files.
#[derive(Debug)]
pub struct RealDisk {
    name: String,
    path: PathBuf,
    device: Option<PathBuf>,
    lock: Option<File>,
}

impl RealDisk {
    /// # Errors
    /// The name is in use, the device is in use, an option reaches beyond it, or a tool fails: an error that
    /// names the step.
    pub fn up(name: &str, place: &Place) -> Result<RealDisk> {
        if let Place::BlockDevice { formatting, .. } = place {
            formatting.check()?;
        }
        let state = state(name)?;
        if state.exists() {
            bail!("a real disk called {name} is in use already: `spindle disk down --all` takes it down");
        }
        fs::create_dir_all(&state).with_context(|| {
            format!("making {} ($SPINDLE_RUN_DIRECTORY names another place for it)", state.display())
        })?;
        let lock = File::create(state.join(LOCK_FILE)).context("making a lock")?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .context("locking the real disk")?;
        fs::write(state.join(PLACE_FILE), serde_json::to_vec(place)?).context("noting the real disk")?;
        // From here on, dropping `disk` undoes the steps taken.
        let mut disk = RealDisk {
            name: name.to_owned(),
            path: root(name, &state, place),
            device: None,
            lock: Some(lock),
        };
        disk.put_there(place)?;
        disk.device = device_under(&disk.path);
        Ok(disk)
    }

    fn put_there(&self, place: &Place) -> Result<()> {
        match place {
            Place::Directory { .. } => {
                fs::create_dir(&self.path).with_context(|| format!("making {}", self.path.display()))
            }
            Place::BlockDevice { path, formatting } => {
                ensure!(rustix::process::geteuid().is_root(), "a block device needs root (mkfs and mount)");
                check_unused(path)?;
                formatting.make(path)?;
                formatting.mount(path, &self.path, Dilation::NONE)
            }
        }
    }

    /// The directory for files.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The block device under it, which others may use as well; `None` if there is none, as under tmpfs.
    pub fn device(&self) -> Option<&Path> {
        self.device.as_deref()
    }

    /// # Errors
    /// The file system is in use.
    pub fn down(mut self) -> Result<()> {
        self.lock = None;
        down(&self.name)
    }
}

impl Drop for RealDisk {
    fn drop(&mut self) {
        let Some(lock) = self.lock.take() else { return };
        drop(lock);
        if let Err(error) = down(&self.name) {
            eprintln!("spindle: cleaning up on the real disk {}: {error:#}", self.name);
        }
    }
}

fn directory() -> PathBuf {
    run_directory().join(REAL)
}

fn state(name: &str) -> Result<PathBuf> {
    // Checks the rules for names.
    state_directory(name)?;
    Ok(directory().join(name))
}

fn root(name: &str, state: &Path, place: &Place) -> PathBuf {
    match place {
        Place::Directory { path } => path.join(format!("spindle-{name}")),
        Place::BlockDevice { .. } => state.join("mount"),
    }
}

/// The kind of the path, or a sentence why it cannot be a real disk.
pub fn kind_of(path: &Path) -> Result<Kind, String> {
    match fs::metadata(path).map(|metadata| metadata.file_type()) {
        Ok(found) if found.is_dir() => Ok(Kind::Directory),
        Ok(found) if found.is_block_device() => Ok(Kind::BlockDevice),
        Ok(_) => Err(format!("{} is neither a directory nor a block device", path.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(format!("{} does not exist", path.display()))
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Directory,
    BlockDevice,
}

/// Size of a block device in bytes.
///
/// # Errors
/// It cannot be opened.
pub fn block_device_bytes(path: &Path) -> Result<u64> {
    use std::io::{Seek, SeekFrom};
    let mut device = File::open(path).with_context(|| format!("opening {}", path.display()))?;
    device.seek(SeekFrom::End(0)).with_context(|| format!("looking for the end of {}", path.display()))
}

/// Checks that a block device is not mounted, swapped to or part of another device. The kernel refuses to
/// open such a device exclusively.
///
/// # Errors
/// It is in one of these uses, or cannot be opened at all.
pub fn check_unused(path: &Path) -> Result<()> {
    let exclusive = rustix::fs::OFlags::EXCL.bits() as i32;
    match OpenOptions::new().read(true).write(true).custom_flags(exclusive).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::BUSY.raw_os_error()) => {
            bail!(
                "{} is in use (mounted, or part of another device): nothing was written to it",
                path.display()
            )
        }
        Err(error) => Err(error).with_context(|| format!("opening {}", path.display())),
    }
}

/// Names of the real disks that are in use, or were when their process was killed.
///
/// # Errors
/// The run directory cannot be read.
pub fn list() -> Result<Vec<String>> {
    names_in(&directory(), |_, name| Some(name.to_owned()))
}

/// Whether the process that used it is gone.
pub fn is_abandoned(name: &str) -> bool {
    let Ok(state) = state(name) else { return false };
    match File::open(state.join(LOCK_FILE)) {
        Ok(lock) => rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok(),
        Err(_) => true,
    }
}

/// Unmounts a block device, removes our directory, and removes the record of the real disk, whatever its
/// state.
///
/// # Errors
/// A run uses it, or its file system is in use.
pub fn down(name: &str) -> Result<()> {
    let state = state(name)?;
    ensure!(is_abandoned(name), "a run uses the real disk {name}: end that run first");
    // Without this file no step was taken yet.
    if let Ok(text) = fs::read(state.join(PLACE_FILE)) {
        let place: Place =
            serde_json::from_slice(&text).with_context(|| format!("reading the state of {name}"))?;
        let root = root(name, &state, &place);
        match &place {
            Place::Directory { .. } => remove(&root)?,
            Place::BlockDevice { path, formatting } => {
                if is_mount_point(&root) {
                    unmount(&root)?;
                }
                formatting.forget(path);
            }
        }
    }
    remove_ours(&state, [PLACE_FILE, LOCK_FILE, "mount"])?;
    // It stays while it has other entries.
    let _ = fs::remove_dir(directory());
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Writes a directory's new files back and drops them from the page cache, so that they are read from the
/// disk again.
///
/// # Errors
/// A file cannot be read or written back.
pub fn write_back_and_forget(directory: &Path) -> Result<()> {
    let handle = File::open(directory).with_context(|| format!("opening {}", directory.display()))?;
    rustix::fs::syncfs(&handle).with_context(|| format!("writing back {}", directory.display()))?;
    forget_below(directory)
}

fn forget_below(directory: &Path) -> Result<()> {
    for entry in fs::read_dir(directory).with_context(|| format!("reading {}", directory.display()))? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        if metadata.is_dir() {
            forget_below(&entry.path())?;
        } else if metadata.is_file() && metadata.size() > 0 {
            let file =
                File::open(entry.path()).with_context(|| format!("opening {}", entry.path().display()))?;
            // Advice only: a file system that ignores it (tmpfs) loses nothing.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format_options::FileSystem;
    use spindle_base::Mistake;

    #[test]
    fn an_option_that_reaches_beyond_a_block_device_is_refused_before_the_device_is_touched() {
        let place = Place::BlockDevice {
            path: "/nonexistent".into(),
            formatting: Formatting {
                file_system: FileSystem::Btrfs,
                mkfs_options: vec!["/dev/loop0".to_owned()],
                mount_options: Vec::new(),
            },
        };
        let refused = RealDisk::up("options", &place).unwrap_err();
        assert!(refused.is::<Mistake>(), "{refused:#}");
        assert!(refused.to_string().starts_with("mkfs_options: `/dev/loop0` is not an option of mkfs.btrfs"));
        assert!(!state("options").unwrap().exists());
    }
}
