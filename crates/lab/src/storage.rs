//! The storage under a trial, as the runner sees it: the emulated disk, or a plain directory for the mock.

use std::fmt::Debug;
use std::path::Path;

use anyhow::{Context, Result};
use spindle_mount::{Statistics, disk};

use crate::emulated::{self, EmulatedVolume, Wishes};
use crate::profile_file::StackSpec;
use crate::user_error::UserError;

/// One volume mount that is up. Dropping it takes everything down again.
pub trait Volume: Debug {
    /// Where the file system is mounted.
    fn path(&self) -> &Path;

    /// With the physics off, requests are answered at memory speed.
    fn set_physics(&mut self, on: bool) -> Result<()>;

    /// An error when what is measured on it from now on means nothing: it lost a write, its emulator died, or its file system
    /// is full.
    fn check(&mut self) -> Result<()>;

    /// Cumulative since the volume came up; take differences. `None` when nothing is emulated.
    fn statistics(&mut self) -> Result<Option<Statistics>>;

    /// Whose counters the kernel keeps; `None` when it is not ours alone.
    fn block_device(&self) -> Option<&Path>;

    /// The emulator's process, for CPU accounting.
    fn process_id(&self) -> Option<u32>;

    /// Unmounts, keeps what is stored as an immutable image in `directory` and takes the volume down.
    fn into_snapshot(self: Box<Self>, directory: &Path) -> Result<()>;

    /// Unmounts and forgets what was written.
    fn down(self: Box<Self>) -> Result<()>;
}

/// What [`bring_up`] is asked for.
#[derive(Debug, Clone, Copy)]
pub struct VolumeRequest<'a> {
    pub stack: &'a StackSpec,
    /// Of the model's random choices.
    pub seed: u64,
    /// What an earlier volume of the same size and file system left with [`Volume::into_snapshot`]; otherwise a new,
    /// empty file system.
    pub snapshot: Option<&'a Path>,
    /// Of this run; for whatever the volume needs besides its store.
    pub work_directory: &'a Path,
}

/// The volume comes up with the physics off.
///
/// # Errors
/// Whatever keeps a disk from coming up, with what we were doing.
pub fn bring_up(request: &VolumeRequest<'_>) -> Result<Box<dyn Volume>> {
    let wishes = Wishes {
        name: format!("run-{}", std::process::id()),
        seed: request.seed,
        mount_at: None,
        physics: false,
        snapshot: request.snapshot,
        spill_directory: request.work_directory,
        die_with_parent: true,
    };
    Ok(Box::new(EmulatedVolume::up(request.stack, &wishes)?))
}

/// What the user can do wrong outside the scenario.
///
/// # Errors
/// An environment variable that is not what it should be.
pub fn check_environment() -> Result<(), UserError> {
    emulated::memory_budget_bytes().map(drop)
}

/// Takes down disks whose emulator is dead: those of runs that were killed.
///
/// # Errors
/// A disk that cannot be taken down, by name.
pub fn clear_leftovers() -> Result<()> {
    for name in disk::list()?.iter().filter(|name| disk::is_abandoned(name)) {
        disk::down(name).with_context(|| format!("taking down the abandoned disk {name}"))?;
    }
    Ok(())
}
