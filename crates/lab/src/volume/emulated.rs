//! The emulated disk under a trial: a stack of the scenario, served by its own process.

use std::fs::File;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use spindle_model::{Change, Device, Place};
use spindle_mount::trace::TraceHead;
use spindle_mount::{
    Disk, DiskOptions, Floor, Formatting, LayerName, ServeOptions, Statistics, device_under, disk,
    size_refusal, state_directory, zfs,
};

use crate::host::provenance;
use crate::stack::{StackSpec, served_device};
use crate::volume::Volume;
use crate::volume::zfs_volume::is_device_of;
use spindle_base::Mistake;
use spindle_base::dilation::Dilation;
use spindle_base::units;

/// Options of a disk besides its stack.
#[derive(Debug, Clone, PartialEq)]
pub struct Wishes<'a> {
    /// Unique among the mounts that are up together.
    pub name: String,
    pub seed: u64,
    pub dilation: Dilation,
    pub mount_at: Option<PathBuf>,
    pub timing: bool,
    /// See [`DiskOptions::floor`].
    pub floor: Option<Floor>,
    /// The output of [`Volume::into_snapshot`] of an earlier volume with the same size and file system;
    /// `None` for a new, empty file system.
    pub snapshot: Option<&'a Path>,
    /// For written data that exceeds the memory.
    pub spill_directory: &'a Path,
    pub die_with_parent: bool,
}

/// Written data beyond this share of the machine's memory goes to a file.
const MEMORY_SHARE: u64 = 2;
const MEMORY_VARIABLE: &str = "SPINDLE_OVERLAY_MEMORY";

/// Maximum growth of a database file in one step (InnoDB: four extents of 1 MiB). With less free space the
/// next growth fails.
const GROWTH_BYTES: u64 = 4 << 20;

/// Memory limit of the data written to a disk: `$SPINDLE_OVERLAY_MEMORY`, or half of the machine's.
///
/// # Errors
/// The variable is not a size.
pub fn memory_budget_bytes() -> Result<u64, Mistake> {
    match std::env::var(MEMORY_VARIABLE) {
        Ok(text) => units::parse_size_bytes(&text).map_err(|problem| {
            Mistake::new(format!("the environment variable {MEMORY_VARIABLE}: {problem}"))
        }),
        Err(_) => Ok(provenance::memory_bytes() / MEMORY_SHARE),
    }
}

/// # Errors
/// A name that is not valid for a directory, a size that no disk can have; see also [`memory_budget_bytes`].
pub fn options(stack: &StackSpec, wishes: &Wishes<'_>) -> Result<DiskOptions> {
    if let Some(words) = size_refusal(stack.size_bytes()) {
        return Err(Mistake::new(format!("--size: {words}")).into());
    }
    // ZFS uses the raw device.
    let formatting = match stack.pool() {
        Some(_) => Formatting::default(),
        None => stack.formatting().context("an unknown file system")?,
    };
    Ok(DiskOptions {
        name: wishes.name.clone(),
        stack: stack.to_served(),
        seed: wishes.seed,
        rotational: stack.tree().rotates(),
        volatile_cache: stack.tree().has_volatile_cache(),
        formatting,
        mount_at: wishes.mount_at.clone(),
        timing: wishes.timing,
        floor: wishes.floor,
        serve: ServeOptions {
            state_directory: state_directory(&wishes.name)?,
            size_bytes: stack.size_bytes(),
            dilation: wishes.dilation,
            base: wishes.snapshot.map(Path::to_owned),
            memory_budget_bytes: memory_budget_bytes()?,
            spill_directory: wishes.spill_directory.to_owned(),
            // With io_uring, a task that waits for this disk could not be freed while the ring waits for it
            // too: the kernel would need the ring's own lock.
            over_io_uring: std::env::var_os("SPINDLE_FUSE").is_none_or(|way| way != "threads")
                && !provenance::emulators_can_wait_for_themselves(),
            layers: layers(stack),
            die_with_parent: wishes.die_with_parent,
        },
    })
}

fn layers(stack: &StackSpec) -> Vec<LayerName> {
    let places = stack.tree().outline().into_iter();
    places.map(|Place { depth, name }| LayerName { depth, name }).collect()
}

/// Builds the model of a disk that [`options`] described.
///
/// # Errors
/// The description is not ours.
pub fn device(options: &DiskOptions) -> Result<Box<dyn Device>> {
    served_device(&options.stack, options.serve.size_bytes, options.seed)
}

/// The dilation of the emulated disk that is, or is under, a block device, file or directory; `None` if none
/// is. The kernel shows it as an ordinary device.
///
/// # Errors
/// The disk's emulator is dead.
pub fn dilation_under(path: &Path) -> Result<Option<Dilation>> {
    let is_block_device = std::fs::metadata(path).is_ok_and(|found| found.file_type().is_block_device());
    let device = if is_block_device { Some(path.to_owned()) } else { device_under(path) };
    let pools = zfs::list()?;
    let pool = pools.iter().find(|pool| zfs::mount_of(pool).is_ok_and(|mount| path.starts_with(mount)));
    for name in disk::list()? {
        let is_under = device.is_some() && disk::inspect(&name).is_ok_and(|(_, own, _)| own == device);
        if is_under || pool.is_some_and(|pool| is_device_of(&name, pool)) {
            return Ok(Some(disk::connect(&name)?.statistics()?.dilation));
        }
    }
    Ok(None)
}

/// # Errors
/// The file system on an emulated disk is full.
pub(crate) fn check_room(path: &Path) -> Result<()> {
    let Ok(status) = rustix::fs::statvfs(path) else { return Ok(()) };
    let free_bytes = status.f_bavail * status.f_frsize;
    ensure!(
        free_bytes >= GROWTH_BYTES,
        "the file system on the emulated disk is full ({} MiB of {} MiB are free): raise the `size` of the stack",
        free_bytes >> 20,
        (status.f_blocks * status.f_frsize) >> 20
    );
    Ok(())
}

#[derive(Debug)]
pub struct EmulatedVolume {
    disk: Disk,
    path: PathBuf,
}

impl EmulatedVolume {
    /// `mount_count` volumes share the memory for written data.
    ///
    /// # Errors
    /// Any failure to bring up the disk, with the failed step.
    pub fn up(stack: &StackSpec, wishes: &Wishes<'_>, mount_count: u64) -> Result<EmulatedVolume> {
        let program = std::env::current_exe().context("looking for our own binary")?;
        let mut options = options(stack, wishes)?;
        options.serve.memory_budget_bytes /= mount_count.max(1);
        let disk = Disk::up(&program, &options)?;
        let path = disk.mount.clone().context("a database needs a file system, and this stack has none")?;
        Ok(EmulatedVolume { disk, path })
    }
}

impl Volume for EmulatedVolume {
    fn path(&self) -> &Path {
        &self.path
    }

    fn floor(&self) -> Option<Floor> {
        Some(self.disk.floor)
    }

    fn set_timing(&mut self, on: bool) -> Result<()> {
        self.disk.set_timing(on)
    }

    fn change(&mut self, change: Change) -> Result<()> {
        self.disk.change(change)
    }

    fn begin_trace(&mut self, limit_bytes: u64) -> Result<()> {
        self.disk.begin_trace(limit_bytes)
    }

    fn end_trace(&mut self) -> Result<()> {
        self.disk.end_trace()
    }

    fn save_trace(&mut self, path: &Path) -> Result<Option<TraceHead>> {
        self.disk.save_trace(path).map(Some)
    }

    fn write_back(&mut self) -> Result<()> {
        let writing_back = || format!("writing back the page cache of {}", self.path.display());
        let directory = File::open(&self.path).with_context(writing_back)?;
        rustix::fs::syncfs(directory).with_context(writing_back)
    }

    fn check(&mut self) -> Result<()> {
        self.statistics()?;
        check_room(&self.path)
    }

    fn statistics(&mut self) -> Result<Option<Statistics>> {
        self.disk.statistics().map(Some)
    }

    fn block_device(&self) -> Option<&Path> {
        Some(&self.disk.device)
    }

    fn process_ids(&self) -> Vec<u32> {
        vec![self.disk.process_id]
    }

    fn into_snapshot(mut self: Box<Self>, directory: &Path) -> Result<()> {
        self.disk.snapshot(directory)?;
        self.disk.down()
    }

    fn down(self: Box<Self>) -> Result<()> {
        self.disk.down()
    }
}
