//! `spindle disk down`: takes disks, pools and the rest of real ones down, and says what they were.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use spindle_base::text::causes;
use spindle_mount::{disk, real, zfs};

use crate::host::control_group;
use crate::run;
use crate::volume::zfs_volume;

#[derive(Debug, Clone, Copy)]
enum Kind {
    Pool,
    Disk,
    Real,
}

impl Kind {
    /// Pools stand on disks.
    const IN_ORDER: [Kind; 3] = [Kind::Pool, Kind::Disk, Kind::Real];

    fn names(self) -> Result<Vec<String>> {
        match self {
            Kind::Pool => zfs::list(),
            Kind::Disk => disk::list(),
            Kind::Real => real::list(),
        }
    }

    fn mount_of(self, name: &str) -> Option<PathBuf> {
        match self {
            Kind::Pool => zfs::mount_of(name).ok(),
            Kind::Disk => disk::inspect(name).ok()?.2,
            Kind::Real => None,
        }
    }

    fn down(self, name: &str) -> Result<()> {
        // Afterwards the system's tables no longer have the mount.
        let mount = self.mount_of(name);
        match self {
            Kind::Pool => zfs::down(name)?,
            Kind::Disk => disk::down(name)?,
            Kind::Real => real::down(name)?,
        }
        let was = mount.map_or_else(String::new, |at| format!("; it was mounted on {}", at.display()));
        eprintln!("{name} is down{was}");
        Ok(())
    }
}

/// Takes a disk down, or a pool before its disks.
///
/// # Errors
/// There is none of that name, or it is in use.
pub(super) fn one(name: &str) -> Result<()> {
    if !zfs::list()?.iter().any(|pool| pool == name) {
        return Kind::Disk.down(name);
    }
    Kind::Pool.down(name)?;
    let devices = disk::list()?.into_iter().filter(|disk| zfs_volume::is_device_of(disk, name));
    devices.into_iter().try_for_each(|disk| Kind::Disk.down(&disk))
}

/// Takes everything down. It continues after a disk that cannot be taken down, and fails at the end.
///
/// # Errors
/// One of them is in use.
pub(super) fn all() -> Result<()> {
    let mut all = Vec::new();
    for kind in Kind::IN_ORDER {
        all.extend(kind.names()?.into_iter().map(|name| (kind, name)));
    }
    let mut failed = Vec::new();
    for (kind, name) in &all {
        if let Err(error) = kind.down(name) {
            eprintln!("spindle: {name}: {}", causes(&error));
            failed.push(name.as_str());
        }
    }
    run::clear_work_directories();
    control_group::clear_leftovers(Path::new("/"));
    if all.is_empty() {
        eprintln!("no disk is up");
    }
    ensure!(failed.is_empty(), "still up: {}", failed.join(", "));
    Ok(())
}
