//! `spindle disk up`: an emulated disk, or a ZFS pool on several disks, that stays up.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde::Serialize;
use spindle_mount::Disk;

use super::dilation::DilationArguments;
use super::set::Set;
use crate::cmd::output::print_answer;
use crate::host::trial_time::TrialTime;
use crate::stack::{PoolSpec, StackSpec};
use crate::volume;
use crate::volume::emulated::{self, Wishes};
use crate::volume::zfs_volume::ZfsVolume;
use spindle_base::Mistake;

#[derive(Debug, Args)]
pub(super) struct UpArguments {
    /// A built-in profile, a ready-made stack (`stacks/*.toml`), or the path of a profile (TOML).
    profile: String,
    /// Size of the disk, for example `20G` (20 GiB) or `20GB` [default: 20 GB, or the drive's capacity]. The
    /// arm of a hard disk moves over this size only, so give the size that will be filled.
    #[arg(long)]
    size: Option<String>,
    /// Mount point: an empty directory, or one that is then made [default: a directory of its own].
    #[arg(long, value_name = "DIRECTORY")]
    at: Option<PathBuf>,
    /// Also mount over a directory that is not empty. Its content is hidden until the disk is down.
    #[arg(long, requires = "at")]
    over: bool,
    /// `xfs`, `ext4`, `btrfs`, `zfs`, or `none` for a raw block device [default: `xfs`, or `zfs` if the stack
    /// is a pool].
    #[arg(long, value_name = "TYPE")]
    file_system: Option<String>,
    #[command(flatten)]
    set: Set,
    /// Name of the disk [default: the profile's name].
    #[arg(long)]
    name: Option<String>,
    /// Seed of the model's random choices.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    dilation: DilationArguments,
    /// Print one JSON object: device, mount, socket. For a pool, device and socket are those of the data.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Answer<'a> {
    device: &'a PathBuf,
    mount: Option<&'a PathBuf>,
    socket: &'a PathBuf,
}

/// # Errors
/// A mistake in the arguments, or the disk does not come up.
pub(super) fn run(arguments: &UpArguments) -> Result<()> {
    let dilation = arguments.dilation.dilation()?;
    let file_system = match &arguments.file_system {
        Some(asked) => asked,
        None => StackSpec::usual_file_system(&arguments.profile),
    };
    let (size, set) = (arguments.size.as_deref(), arguments.set.table());
    let stack = StackSpec::of_name_with(&arguments.profile, size, file_system, &set)?;
    let profile_name = PathBuf::from(&arguments.profile);
    let stem = profile_name.file_stem().map_or_else(|| "disk".into(), |stem| stem.to_string_lossy());
    let wishes = Wishes {
        name: arguments.name.clone().unwrap_or_else(|| stem.into_owned()),
        seed: arguments.seed,
        dilation,
        mount_at: arguments.at.clone(),
        timing: true,
        floor: None,
        snapshot: None,
        spill_directory: &std::env::temp_dir(),
        die_with_parent: false,
    };
    if let Some(at) = arguments.at.as_deref().filter(|_| !arguments.over) {
        refuse_content(at)?;
    }
    if let Some((key, complaint)) = volume::complaint(&stack, wishes.spill_directory)? {
        bail!(Mistake::of_flag(&key.replace('_', "-"), complaint));
    }
    if let Some(pool) = stack.pool() {
        return pool_up(arguments, &stack, pool, &wishes);
    }
    let program = std::env::current_exe().context("looking for our own binary")?;
    let disk = Disk::up(&program, &emulated::options(&stack, &wishes)?)?;
    tell(arguments, &stack, &disk.name, &disk, disk.mount.as_ref())?;
    disk.leave_up();
    Ok(())
}

/// # Errors
/// The directory holds something that the mount would hide.
fn refuse_content(at: &Path) -> Result<(), Mistake> {
    // A directory that is missing is made later, and another mount is refused later.
    let count = std::fs::read_dir(at).map_or(0, Iterator::count);
    let entries = if count == 1 { "one entry".to_owned() } else { format!("{count} entries") };
    match count {
        0 => Ok(()),
        _ => Err(Mistake::of_flag(
            "at",
            format!(
                "{} holds {entries}, which the disk would hide: name an empty directory, or add `--over` to \
                 mount over them",
                at.display()
            ),
        )),
    }
}

fn pool_up(arguments: &UpArguments, stack: &StackSpec, pool: &PoolSpec, wishes: &Wishes<'_>) -> Result<()> {
    if arguments.at.is_some() {
        bail!(Mistake::new("--at: a ZFS pool is mounted on a directory of its own"));
    }
    // zfs-fuse has loaded what it needs when the pool is up.
    let directory = tempfile::tempdir().context("making a directory for the preload library")?;
    let time = TrialTime::start(wishes.dilation, directory.path())?;
    let volume = ZfsVolume::up(stack, pool, wishes, 1, &time.environment())?;
    tell(arguments, stack, &wishes.name, volume.data(), Some(volume.mount()))?;
    volume.leave_up();
    Ok(())
}

fn tell(
    arguments: &UpArguments,
    stack: &StackSpec,
    name: &str,
    disk: &Disk,
    mount: Option<&PathBuf>,
) -> Result<()> {
    let answer = Answer { device: &disk.device, mount, socket: &disk.socket };
    print_answer(arguments.json, &answer, || {
        let on = mount.map_or_else(String::new, |mount| format!(" on {}", mount.display()));
        format!("{}{on}: {}\n", disk.device.display(), stack.head().summary)
    })?;
    if !arguments.json {
        eprintln!("`spindle disk down {name}` takes it down again");
    }
    Ok(())
}
