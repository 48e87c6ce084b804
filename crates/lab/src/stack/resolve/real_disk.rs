//! `path = "..."`: a stack that is a real disk of this machine.

use std::collections::BTreeMap;
use std::path::Path;

use spindle_model::{Parameters, StackSpec as Tree};
use spindle_mount::real::{Kind, Place, block_device_bytes, kind_of};
use spindle_mount::{FileSystem, Formatting, device_under, file_system_under};

use crate::record::StackHead;
use crate::stack::explained::Explained;
use crate::stack::spec::StackSpec;
use crate::stack::table::StackTable;
use spindle_base::Mistake;

pub(super) fn resolve(name: &str, table: &StackTable) -> Result<StackSpec, Mistake> {
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
    let path = Path::new(table.path.as_deref().unwrap_or_default());
    if !path.is_absolute() {
        return Err(Mistake::at("path", format!("`{}` must begin with /", path.display())));
    }
    let (head, place) = match kind_of(path).map_err(|message| Mistake::at("path", message))? {
        Kind::Directory => directory(name, path, table)?,
        Kind::BlockDevice => block_device(name, path, table)?,
    };
    Ok(StackSpec {
        explained: Explained {
            name: name.to_owned(),
            kind: "real disk".to_owned(),
            size_bytes: head.size_bytes,
            parameters: Vec::new(),
            below: Vec::new(),
        },
        head,
        label: table.label.clone().unwrap_or_else(|| name.to_owned()),
        tree: Tree::Device(Parameters::NULL),
        real: Some(place),
        pool: None,
        table: table.clone(),
        tables: BTreeMap::new(),
    })
}

fn directory(name: &str, path: &Path, table: &StackTable) -> Result<(StackHead, Place), Mistake> {
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
    let head = StackHead {
        name: name.to_owned(),
        summary: format!("A real disk, not emulated: the directory {} ({file_system}{on}).", path.display()),
        // The free space is the space that may be filled.
        size_bytes: status.f_bavail * status.f_frsize,
        file_system,
        mkfs_options: Vec::new(),
        mount_options: Vec::new(),
        real: true,
        zfs: None,
        assumptions: Vec::new(),
    };
    Ok((head, Place::Directory { path: path.to_owned() }))
}

fn block_device(name: &str, path: &Path, table: &StackTable) -> Result<(StackHead, Place), Mistake> {
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
    let head = StackHead {
        name: name.to_owned(),
        summary: format!("A real disk, not emulated: the block device {}.", path.display()),
        size_bytes,
        file_system: file_system.name().to_owned(),
        mkfs_options: formatting.mkfs_options.clone(),
        mount_options: formatting.mount_options.clone(),
        real: true,
        zfs: None,
        assumptions: Vec::new(),
    };
    Ok((head, Place::BlockDevice { path: path.to_owned(), formatting }))
}
