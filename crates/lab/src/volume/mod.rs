//! The storage under a trial, as the runner sees it: an emulated disk, a ZFS pool of several disks, a real
//! disk, or a plain directory for the mock.

pub mod emulated;
pub mod mounts;
pub mod plain_directory;
pub mod real;
pub mod sample;
pub mod zfs_volume;

use std::fmt::Debug;
use std::path::Path;

use anyhow::{Context, Result, bail};
use spindle_model::Change;
use spindle_mount::real::Place;
use spindle_mount::trace::TraceHead;
use spindle_mount::{FileSystem, Floor, Formatting, Statistics, disk, size_refusal, zfs};

use self::emulated::{EmulatedVolume, Wishes};
use self::real::RealVolume;
use self::zfs_volume::ZfsVolume;
use crate::host::trial_time::Environment;
use crate::stack::StackSpec;
use sample::{BlockCounters, MountSample};
use spindle_base::Mistake;
use spindle_base::child::find_program;
use spindle_base::units::format_size_rounded;

/// A volume mount that is up. Dropping it takes everything down again. The defaults are those of a volume
/// that nothing emulates.
pub trait Volume: Debug {
    /// Mount point of the file system.
    fn path(&self) -> &Path;

    /// Of an emulated disk: see [`spindle_mount::DiskOptions::floor`].
    fn floor(&self) -> Option<Floor> {
        None
    }

    /// With the timing off, requests are answered at memory speed. A real disk's timing is always on.
    fn set_timing(&mut self, _on: bool) -> Result<()> {
        Ok(())
    }

    /// Writes back what the page cache holds of it. Only emulated disks do so; on others it would take their
    /// time.
    fn write_back(&mut self) -> Result<()> {
        Ok(())
    }

    /// A part of the emulated disk changes; of a pool, of the disk with its data.
    ///
    /// # Errors
    /// The disk cannot change so.
    fn change(&mut self, _change: Change) -> Result<()> {
        bail!("nothing is emulated here that could change")
    }

    /// An error if measurements on it are meaningless from now on: it lost a write, its emulator died, or its
    /// file system is full.
    fn check(&mut self) -> Result<()> {
        Ok(())
    }

    /// Cumulative since the volume came up; take differences. `None` when nothing is emulated.
    fn statistics(&mut self) -> Result<Option<Statistics>> {
        Ok(None)
    }

    /// Begins a block trace of at most that many bytes. Only an emulated disk alone keeps one.
    fn begin_trace(&mut self, _limit_bytes: u64) -> Result<()> {
        Ok(())
    }

    fn end_trace(&mut self) -> Result<()> {
        Ok(())
    }

    /// Writes the trace to a new file with an absolute path. `None` where none is kept.
    fn save_trace(&mut self, _path: &Path) -> Result<Option<TraceHead>> {
        Ok(None)
    }

    /// A sample of the volume, and of each of its devices if there are several.
    fn sample(&mut self) -> Result<MountSample> {
        Ok(MountSample {
            statistics: self.statistics().context("asking the emulated disk for its statistics")?,
            block_device: self.block_device().map(BlockCounters::read).transpose()?,
            devices: Vec::new(),
        })
    }

    /// The device whose counters the kernel keeps; `None` without one. A real one may have other users than
    /// us.
    fn block_device(&self) -> Option<&Path> {
        None
    }

    /// The processes that emulate it, for CPU accounting.
    fn process_ids(&self) -> Vec<u32> {
        Vec::new()
    }

    /// Unmounts, stores the content in `directory` (an immutable image, or a copy of the files) and takes the
    /// volume down.
    fn into_snapshot(self: Box<Self>, directory: &Path) -> Result<()>;

    /// Unmounts and discards the written data.
    fn down(self: Box<Self>) -> Result<()>;
}

/// Brings the volume up. `mount_count` volumes share the machine's memory. The environment puts a program that serves a
/// file system into the time of the disks.
///
/// # Errors
/// Any failure to bring up a disk, with the failed step.
fn bring_up(
    stack: &StackSpec,
    wishes: &Wishes<'_>,
    mount_count: u64,
    environment: &Environment,
) -> Result<Box<dyn Volume>> {
    if let Some(place) = stack.real() {
        return Ok(Box::new(RealVolume::up(&wishes.name, place, wishes.snapshot)?));
    }
    match stack.pool() {
        Some(pool) => Ok(Box::new(ZfsVolume::up(stack, pool, wishes, mount_count, environment)?)),
        None => Ok(Box::new(EmulatedVolume::up(stack, wishes, mount_count)?)),
    }
}

/// The reason why a stack cannot be used, with the key at fault: a block device in use, a size that no
/// emulated disk can have, or an option for mkfs or mount that reaches beyond the disk or is unknown. Options
/// are tried on a sparse file in `directory`.
///
/// # Errors
/// The attempt could not be made.
pub fn complaint(stack: &StackSpec, directory: &Path) -> Result<Option<(&'static str, String)>> {
    if let Some(Place::BlockDevice { path, .. }) = stack.real()
        && let Err(error) = spindle_mount::real::check_unused(path)
    {
        return Ok(Some(("path", format!("{error:#}"))));
    }
    if stack.pool().is_some() && !zfs::is_installed() {
        let words =
            "`zfs` needs zfs-fuse, which is not installed: on Debian, `apt-get install zfs-fuse` does it";
        return Ok(Some(("file_system", words.to_owned())));
    }
    let is_directory = matches!(stack.real(), Some(Place::Directory { .. }));
    if let Some(words) = format_refusal(stack) {
        return Ok(Some(("size", words)));
    }
    match stack.formatting().filter(|_| !is_directory) {
        Some(Formatting { file_system, .. })
            if file_system != FileSystem::None && find_program(mkfs(file_system)).is_none() =>
        {
            let words = format!(
                "needs {}, which is not installed; `spindle doctor` says what installs it",
                mkfs(file_system)
            );
            Ok(Some(("file_system", words)))
        }
        Some(formatting) => formatting.complaint(stack.head().size_bytes, directory),
        None => Ok(None),
    }
}

/// The reason why an emulated disk is too small for its file system, if it is.
fn format_refusal(stack: &StackSpec) -> Option<String> {
    let file_system = stack.formatting().filter(|_| stack.real().is_none())?.file_system;
    let (size_bytes, least_bytes) = (stack.size_bytes(), file_system.least_bytes());
    (size_bytes < least_bytes).then(|| {
        let [size, least] = [size_bytes, least_bytes].map(format_size_rounded);
        format!("{size} is too small: {} needs at least {least}", file_system.name())
    })
}

fn mkfs(file_system: FileSystem) -> String {
    format!("mkfs.{}", file_system.name())
}

/// The part of [`complaint`] that needs no attempt: a size that no disk can have, or an option for mkfs or
/// mount that reaches beyond the disk; with its key.
pub fn refusal(stack: &StackSpec) -> Option<(&'static str, String)> {
    let head = stack.head();
    if let Some(words) = size_refusal(head.size_bytes).filter(|_| !head.real) {
        return Some(("size", words));
    }
    stack.formatting()?.refusal()
}

/// Checks the user's environment outside the scenario.
///
/// # Errors
/// An environment variable with an invalid value.
pub fn check_environment() -> Result<(), Mistake> {
    emulated::memory_budget_bytes().map(drop)
}

/// Takes down the remains of killed runs: pools and disks whose process is dead, and real disks.
///
/// # Errors
/// A pool or disk that cannot be taken down, by name.
pub fn clear_leftovers() -> Result<()> {
    zfs::clear_leftovers()?;
    for name in disk::list()?.iter().filter(|name| disk::is_abandoned(name)) {
        disk::down(name).with_context(|| format!("taking down the abandoned disk {name}"))?;
    }
    for name in spindle_mount::real::list()?.iter().filter(|name| spindle_mount::real::is_abandoned(name)) {
        spindle_mount::real::down(name)
            .with_context(|| format!("cleaning up on the abandoned real disk {name}"))?;
    }
    Ok(())
}
