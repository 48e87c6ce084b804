//! The file systems that keep data, with the options of their mounts.

use std::collections::BTreeMap;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spindle_mount::unescape;

use super::tree::Tree;

/// Directories whose names no user chose. What lies deeper is shown as `...`.
const USUAL: [&str; 18] = [
    "/",
    "/boot",
    "/boot/efi",
    "/data",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/run",
    "/srv",
    "/tmp",
    "/usr",
    "/var",
    "/var/lib",
    "/var/lib/mysql",
    "/var/lib/postgresql",
    "/var/log",
    "/var/tmp",
];

/// File systems without a block device of their own that keep data nevertheless.
const WITHOUT_DEVICE: [&str; 11] =
    ["9p", "btrfs", "ceph", "cifs", "fuse.glusterfs", "lustre", "nfs", "nfs4", "overlay", "virtiofs", "zfs"];

/// Options whose value is a word of the file system's own. Values of other options may be names or addresses
/// and are left out, unless they are numbers.
const WORDS: [&str; 12] = [
    "data",
    "errors",
    "compress",
    "compress-force",
    "space_cache",
    "discard",
    "atgc",
    "fsync_mode",
    "jqfmt",
    "alloc_mode",
    "proto",
    "cache",
];

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct FileSystem {
    /// The directory, or the usual one above it: `/home/...`.
    pub at: String,
    pub kind: String,
    /// Kernel name of the block device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    pub options: Vec<String>,
}

/// `numbers` are the names of block devices by `major:minor`. Of several mounts of one file system, the
/// shortest counts: in a container single files are mounts too.
pub(super) fn read(tree: Tree, numbers: &BTreeMap<String, String>) -> Vec<FileSystem> {
    let table = tree.text("proc/self/mountinfo").unwrap_or_default();
    let mut found: Vec<(usize, FileSystem)> = Vec::new();
    for (length, file_system) in table.lines().filter_map(|line| parse(line, numbers)) {
        let is_same = |(_, other): &(usize, FileSystem)| {
            (&other.kind, &other.device) == (&file_system.kind, &file_system.device)
        };
        match found.iter_mut().find(|other| is_same(other)) {
            Some(other) if length < other.0 => *other = (length, file_system),
            Some(_) => {}
            None => found.push((length, file_system)),
        }
    }
    found.into_iter().map(|(_, file_system)| file_system).collect()
}

/// A line of mountinfo (proc(5)), with the length of its mount point.
fn parse(line: &str, numbers: &BTreeMap<String, String>) -> Option<(usize, FileSystem)> {
    let (mount, super_block) = line.split_once(" - ")?;
    let mount: Vec<&str> = mount.split(' ').collect();
    let (number, at, options) = (mount.get(2)?, unescape(mount.get(4)?), mount.get(5)?);
    let mut super_block = super_block.split(' ');
    let (kind, source, more) = (super_block.next()?, unescape(super_block.next()?), super_block.next()?);
    // btrfs has device numbers of its own, but its source names a device.
    let by_source = || numbers.values().find(|name| Path::new("/dev").join(name) == Path::new(&source));
    let device = numbers.get(*number).or_else(by_source).cloned();
    (device.is_some() || WITHOUT_DEVICE.contains(&kind)).then(|| {
        (
            at.len(),
            FileSystem {
                at: without_names(&at),
                kind: kind.to_owned(),
                device,
                options: kept(options, more),
            },
        )
    })
}

fn without_names(at: &str) -> String {
    let above =
        USUAL.into_iter().filter(|usual| Path::new(at).starts_with(usual)).max_by_key(|usual| usual.len());
    match above.unwrap_or("/") {
        exact if exact == at => at.to_owned(),
        "/" => "/...".to_owned(),
        usual => format!("{usual}/..."),
    }
}

/// The options of the mount and then those of the file system. A mount may be read-only where the file system
/// is not.
fn kept(of_mount: &str, of_super_block: &str) -> Vec<String> {
    let is_kept = |option: &&str| match option.split_once('=') {
        None => true,
        Some((key, _)) if WORDS.contains(&key) => true,
        Some((_, value)) => {
            let digits = value.trim_end_matches(['k', 'K', 'm', 'M', 'g', 'G']);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
    };
    let mut options: Vec<String> = Vec::new();
    for option in of_mount.split(',').chain(of_super_block.split(',')).filter(is_kept) {
        let is_told = options.iter().any(|known| known == option);
        let is_access = ["rw", "ro"].contains(&option) && !options.is_empty();
        if !is_told && !is_access {
            options.push(option.to_owned());
        }
    }
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_point_keeps_no_name_that_a_user_chose() {
        let check = |at: &str, expect: &str| assert_eq!(without_names(at), expect);
        check("/", "/");
        check("/var/lib/mysql", "/var/lib/mysql");
        check("/var/lib/mysql-of-acme", "/var/lib/...");
        check("/home/alice", "/home/...");
        check("/acme", "/...");
    }

    #[test]
    fn options_keep_numbers_and_words_and_no_names_or_addresses() {
        let check =
            |of_mount: &str, more: &str, expect: &str| assert_eq!(kept(of_mount, more).join(","), expect);
        check("rw,noatime", "rw,errors=remount-ro,data=ordered", "rw,noatime,errors=remount-ro,data=ordered");
        check("ro,relatime", "rw,logbsize=32k,sunit=128", "ro,relatime,logbsize=32k,sunit=128");
        check("rw", "rw,vers=4,username=alice,addr=10.0.0.1,uid=1000", "rw,vers=4,uid=1000");
        check("rw", "rw,lowerdir=/a:/b,subvol=/@alice,size=4G", "rw,size=4G");
    }
}
