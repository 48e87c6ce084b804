//! `path = "..."`: a stack that is a real disk of this machine.

use std::path::Path;

use spindle_base::Mistake;
use spindle_model::{Parameters, StackSpec as Tree};
use spindle_mount::real::{Kind, Place, block_device_bytes, kind_of};
use spindle_mount::{FileSystem, Formatting, device_under, file_system_under};

use super::Parts;
use crate::stack::table::StackTable;

/// A real disk, with the name of its file system.
pub(super) struct RealDisk {
    pub parts: Parts,
    pub file_system: String,
    pub place: Place,
}

impl RealDisk {
    fn new(what: &str, size_bytes: u64, file_system: &str, place: Place) -> RealDisk {
        let parts = Parts {
            // It is never built.
            tree: Tree::Device(Parameters::NULL),
            size_bytes,
            is_usual: false,
            summary: format!("A real disk, not emulated: {what}."),
            assumptions: Vec::new(),
            kind: "real disk".to_owned(),
            device: None,
            parameters: Vec::new(),
            unset: Vec::new(),
            below: Vec::new(),
        };
        RealDisk { parts, file_system: file_system.to_owned(), place }
    }
}

pub(super) fn resolve(path: &Path, table: &StackTable) -> Result<RealDisk, Mistake> {
    let emulated = [
        ("profile", table.profile.is_some()),
        ("layer", table.layer.is_some()),
        ("on", table.on.is_some()),
        ("size", table.size.is_some()),
    ];
    let own = table.keys.keys().next().map(String::as_str);
    if let Some(key) = emulated.iter().find(|(_, there)| *there).map(|(key, _)| *key).or(own) {
        return Err(Mistake::at(key, "belongs to an emulated stack, and this one is a real disk (`path`)"));
    }
    if !path.is_absolute() {
        return Err(Mistake::at("path", format!("`{}` must begin with /", path.display())));
    }
    match kind_of(path).map_err(|message| Mistake::at("path", message))? {
        Kind::Directory => directory(path, table),
        Kind::BlockDevice => block_device(path, table),
    }
}

fn directory(path: &Path, table: &StackTable) -> Result<RealDisk, Mistake> {
    let own = [
        ("file_system", table.file_system.is_some()),
        ("mkfs_options", table.mkfs_options.is_some()),
        ("mount_options", table.mount_options.is_some()),
        ("destroy_content", table.destroy_content.is_some()),
    ];
    if let Some((key, _)) = own.iter().find(|(_, there)| *there) {
        return Err(Mistake::at(*key, "belongs to a block device; a directory is used as it is"));
    }
    let status = rustix::fs::statvfs(path)
        .map_err(|error| Mistake::at("path", format!("{}: {error}", path.display())))?;
    let file_system = file_system_under(path).unwrap_or_else(|| "unknown".to_owned());
    let on = device_under(path).map(|device| format!(" on {}", device.display())).unwrap_or_default();
    let what = format!("the directory {} ({file_system}{on})", path.display());
    // The free space is the space that may be filled.
    let size_bytes = status.f_bavail * status.f_frsize;
    Ok(RealDisk::new(&what, size_bytes, &file_system, Place::Directory { path: path.to_owned() }))
}

fn block_device(path: &Path, table: &StackTable) -> Result<RealDisk, Mistake> {
    if table.destroy_content != Some(true) {
        let message = format!(
            "{} is a block device, and making a file system on it destroys what it holds: \
             say `destroy_content = true` if that is meant",
            path.display()
        );
        return Err(Mistake::at("path", message));
    }
    let size_bytes = block_device_bytes(path).map_err(|error| Mistake::at("path", format!("{error:#}")))?;
    let file_system = table.file_system.as_deref().and_then(FileSystem::by_name).unwrap_or(FileSystem::Xfs);
    let formatting = Formatting {
        file_system,
        mkfs_options: table.mkfs_options.clone().unwrap_or_default(),
        mount_options: table.mount_options.clone().unwrap_or_default(),
    };
    let what = format!("the block device {}", path.display());
    let place = Place::BlockDevice { path: path.to_owned(), formatting };
    Ok(RealDisk::new(&what, size_bytes, file_system.name(), place))
}
