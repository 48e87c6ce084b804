//! Where a server in production is: its process, and the block devices of its files, as far as this machine
//! tells. Everything is only read, and nothing needs root.

use std::fs;
use std::net::{ToSocketAddrs as _, UdpSocket};
use std::path::{Path, PathBuf};

use anyhow::Result;
use spindle_base::proc;
use spindle_load::Endpoint;
use spindle_mount::unescape;

use crate::record::FileClass;
use crate::server::telemetry::production::{Place, Production};
use crate::stack::layout::Layout;
use crate::volume::sample::BlockCounters;

/// Longest time from the start of a server's process to that of its own clock.
const START_S: f64 = 10.0;
/// Sector size in sysfs, independent of the device's own sectors.
const SECTOR_BYTES: u64 = 512;
/// Name of a storage that was not found.
const UNKNOWN: &str = "unknown";

/// What this machine tells of a server.
#[derive(Debug)]
pub(super) struct Host {
    /// Otherwise nothing below is known.
    pub is_local: bool,
    pub process_id: Option<u32>,
    /// Mounts stand for devices.
    pub layout: Layout,
    /// In the order of the layout; empty if unknown.
    pub devices: Vec<Device>,
}

/// A block device that holds files of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    /// Kernel name: `sda1`.
    pub name: String,
    pub file_system: String,
    pub size_bytes: u64,
}

/// What the user said of the server.
#[derive(Debug, Clone, Default)]
pub struct Given {
    pub process_id: Option<u32>,
    /// Kernel name of the data's device.
    pub device: Option<String>,
}

impl Host {
    pub(super) fn find(
        endpoint: &Endpoint,
        place: &Place,
        production: &Production,
        uptime_s: Option<f64>,
        given: &Given,
    ) -> Host {
        let is_local = is_local(endpoint) || given.process_id.is_some() || given.device.is_some();
        if !is_local {
            let layout = Layout::plain(UNKNOWN, UNKNOWN);
            return Host { is_local, process_id: None, layout, devices: Vec::new() };
        }
        let process_id = given.process_id.or_else(|| process(place, production.programs, uptime_s));
        let devices = devices(place, process_id, given.device.as_deref());
        let (layout, devices) = laid_out(&devices);
        Host { is_local, process_id, layout, devices }
    }
}

/// Whether the server's address is one of this machine. A tunnel or a container looks so too; then its process
/// is not found.
fn is_local(endpoint: &Endpoint) -> bool {
    let (Endpoint::MysqlTcp { host, port, .. } | Endpoint::PostgresTcp { host, port, .. }) = endpoint else {
        return true;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // The kernel gives a socket no address that belongs to another machine.
    let is_ours = |ip: std::net::IpAddr| UdpSocket::bind((ip, 0)).is_ok();
    (host, *port).to_socket_addrs().is_ok_and(|mut found| found.any(|address| is_ours(address.ip())))
}

/// The process: the one in the server's file, or else the only one of its name and age.
fn process(place: &Place, programs: &[&str], uptime_s: Option<f64>) -> Option<u32> {
    let has_name = |id: u32| proc::name(id).is_some_and(|name| programs.contains(&name.as_str()));
    let is_it = |id: &u32| has_name(*id) && uptime_s.is_none_or(|uptime_s| is_of_age(*id, uptime_s));
    let told = place.pid_file.as_deref().and_then(first_number).filter(&is_it);
    if told.is_some() {
        return told;
    }
    // PostgreSQL's other processes are children of the first.
    let is_first = |id: &u32| !parent(*id).is_some_and(has_name);
    let found: Vec<u32> = proc::processes().filter(|id| is_it(id) && is_first(id)).collect();
    match found.as_slice() {
        [only] => Some(*only),
        _ => None,
    }
}

fn first_number(file: &Path) -> Option<u32> {
    fs::read_to_string(file).ok()?.lines().next()?.trim().parse().ok()
}

fn is_of_age(process: u32, uptime_s: f64) -> bool {
    proc::age_s(process).is_some_and(|age_s| (age_s - uptime_s).abs() <= START_S)
}

fn parent(process: u32) -> Option<u32> {
    proc::field(&proc::thread_status(process, process), "PPid", ':')?.parse().ok()
}

/// The devices of the classes of files, the data's first. Empty if the data's is unknown.
fn devices(place: &Place, process_id: Option<u32>, given: Option<&str>) -> Vec<(FileClass, Device)> {
    let table = MountTable::of(process_id);
    let of = |path: &Path| table.device_under(path);
    let data = place.data_directory.as_deref().and_then(of);
    let data = match given {
        Some(name) => {
            let is_same = data.as_ref().is_some_and(|found| found.name == name);
            let file_system = data.filter(|_| is_same).map(|found| found.file_system);
            Some(Device::new(name, file_system.as_deref().unwrap_or(UNKNOWN)))
        }
        None => data,
    };
    let Some(data) = data else { return Vec::new() };
    let apart = place.apart.iter().filter_map(|(class, path)| Some((*class, of(path)?)));
    std::iter::once((FileClass::Data, data)).chain(apart).collect()
}

/// The layout with a mount per device, and its devices.
fn laid_out(devices: &[(FileClass, Device)]) -> (Layout, Vec<Device>) {
    let [(_, data), apart @ ..] = devices else { return (Layout::plain(UNKNOWN, UNKNOWN), Vec::new()) };
    let apart: Vec<(FileClass, &str)> = apart
        .iter()
        .filter(|(_, device)| device.name != data.name)
        .map(|(class, device)| (*class, device.name.as_str()))
        .collect();
    let layout = Layout::new("production", "", &data.name, &apart);
    let of_mount = |stack: &str| devices.iter().map(|(_, device)| device).find(|device| device.name == stack);
    let in_order = layout.mounts.iter().filter_map(|mount| of_mount(&mount.stack).cloned()).collect();
    (layout, in_order)
}

impl Device {
    fn new(name: &str, file_system: &str) -> Device {
        let sectors = number_in(&sysfs(name).join("size")).unwrap_or(0);
        Device {
            name: name.to_owned(),
            file_system: file_system.to_owned(),
            size_bytes: sectors * SECTOR_BYTES,
        }
    }

    /// The kernel's counters. A FLUSH is of a whole disk: a partition has those of its disk (Linux,
    /// block/blk-flush.c, `blk_account_io_flush`).
    pub(super) fn counters(&self) -> Result<BlockCounters> {
        let counters = BlockCounters::read(Path::new(&self.name))?;
        Ok(match disk_of(&self.name) {
            Some(disk) => BlockCounters { flush: BlockCounters::read(Path::new(&disk))?.flush, ..counters },
            None => counters,
        })
    }
}

pub(super) fn sysfs(name: &str) -> PathBuf {
    Path::new("/sys/class/block").join(name)
}

pub(super) fn number_in(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// The disk of a partition. `None` for any other device.
pub(super) fn disk_of(name: &str) -> Option<String> {
    let directory = sysfs(name);
    if !directory.join("partition").exists() {
        return None;
    }
    let disk = fs::canonicalize(directory).ok()?;
    Some(disk.parent()?.file_name()?.to_str()?.to_owned())
}

/// The kernel name of a block device, which the user may name in any form: `sda`, `/dev/sda`,
/// `/dev/disk/by-id/...`.
///
/// # Errors
/// The end of a sentence: there is no such device.
pub fn device_name(text: &str) -> Result<String, String> {
    let path = fs::canonicalize(Path::new("/dev").join(text)).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str()).filter(|name| sysfs(name).exists());
    name.map(str::to_owned).ok_or_else(|| format!("`{text}` is not a block device of this machine"))
}

/// The mounts that a process sees (proc(5), /proc/PID/mountinfo).
struct MountTable {
    text: String,
    /// Whether paths of the process are paths of ours.
    is_ours: bool,
}

/// Of a mount table.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    at: PathBuf,
    /// `8:1`.
    number: String,
    file_system: String,
    source: PathBuf,
}

impl MountTable {
    /// Our own for an unknown process.
    fn of(process_id: Option<u32>) -> MountTable {
        let read = |of: &str| fs::read_to_string(format!("/proc/{of}/mountinfo")).unwrap_or_default();
        let ours = read("self");
        let theirs = process_id.map(|id| read(&id.to_string())).filter(|text| !text.is_empty());
        match theirs {
            Some(text) => MountTable { is_ours: text == ours, text },
            None => MountTable { text: ours, is_ours: true },
        }
    }

    /// `None` where there is no block device, as under tmpfs or overlayfs.
    fn device_under(&self, path: &Path) -> Option<Device> {
        // A directory that we may not enter is taken as it is written.
        let resolved = if self.is_ours { fs::canonicalize(path).ok() } else { None };
        let mount = mount_under(&self.text, resolved.as_deref().unwrap_or(path))?;
        let numbered = fs::canonicalize(Path::new("/sys/dev/block").join(&mount.number)).ok();
        // btrfs has device numbers of its own, but its entry names a device.
        let named = || fs::canonicalize(&mount.source).ok().filter(|source| source.starts_with("/dev"));
        let device = numbered.or_else(named)?;
        let name = device.file_name()?.to_str()?;
        sysfs(name).exists().then(|| Device::new(name, &mount.file_system))
    }
}

/// The newest mount with the longest mount point above `path`.
fn mount_under(table: &str, path: &Path) -> Option<Mount> {
    let mounts = table.lines().filter_map(|line| {
        let (mount, super_block) = line.split_once(" - ")?;
        let mount: Vec<&str> = mount.split(' ').collect();
        let mut super_block = super_block.split(' ');
        Some(Mount {
            at: unescape(mount.get(4)?).into(),
            number: (*mount.get(2)?).to_owned(),
            file_system: super_block.next()?.to_owned(),
            source: unescape(super_block.next()?).into(),
        })
    });
    mounts.filter(|mount| path.starts_with(&mount.at)).max_by_key(|mount| mount.at.components().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
40 22 8:17 / /var/lib/mysql rw - xfs /dev/sdb1 rw\n\
41 22 0:45 /@db /srv/my\\040data rw - btrfs /dev/sdc rw,subvol=/@db\n\
42 22 8:33 / /var/lib/mysql rw - xfs /dev/sdd1 rw\n";

    #[test]
    fn the_newest_mount_above_a_directory_has_it() {
        let check = |path: &str, number: &str, file_system: &str| {
            let mount = mount_under(TABLE, Path::new(path)).unwrap();
            assert_eq!((mount.number.as_str(), mount.file_system.as_str()), (number, file_system), "{path}");
        };
        check("/var/lib/mysql", "8:33", "xfs");
        check("/var/lib/mysql/shop", "8:33", "xfs");
        check("/var/lib/mysql-files", "8:1", "ext4");
        check("/srv/my data/log", "0:45", "btrfs");
        assert_eq!(mount_under("", Path::new("/")), None);
    }

    #[test]
    fn devices_of_several_classes_are_mounts_with_the_datas_first() {
        let device = |name: &str| Device { name: name.into(), file_system: "xfs".into(), size_bytes: 7 };
        let (layout, devices) = laid_out(&[
            (FileClass::Data, device("sda")),
            (FileClass::Binlog, device("sdb")),
            (FileClass::Temp, device("sda")),
            (FileClass::Redo, device("sdb")),
        ]);
        let mounts: Vec<(&str, usize)> =
            layout.mounts.iter().map(|mount| (mount.stack.as_str(), mount.classes.len())).collect();
        assert_eq!(mounts, [("sda", 1), ("sdb", 2)]);
        assert_eq!(devices, [device("sda"), device("sdb")]);
        let (layout, devices) = laid_out(&[]);
        assert_eq!((layout.mounts.len(), devices.len()), (1, 0));
    }

    #[test]
    fn addresses_of_this_machine_are_told_from_others() {
        let tcp = |host: &str| Endpoint::MysqlTcp {
            host: host.to_owned(),
            port: 3306,
            user: String::new(),
            password: String::new(),
            database: String::new(),
        };
        assert!(is_local(&tcp("127.0.0.1")));
        // For documentation alone (RFC 5737).
        assert!(!is_local(&tcp("192.0.2.1")));
        assert!(is_local(&Endpoint::MysqlSocket {
            path: "/run/db".into(),
            user: String::new(),
            database: String::new()
        }));
    }

    #[test]
    fn a_device_that_is_not_there_is_told_by_its_name() {
        let told = "`no-such-device` is not a block device of this machine";
        assert_eq!(device_name("no-such-device"), Err(told.to_owned()));
        assert!(device_name("null").is_err());
    }

    #[test]
    fn a_process_of_another_age_is_not_the_server() {
        let own = std::process::id();
        let age_s = proc::age_s(own).unwrap();
        assert!(is_of_age(own, age_s) && !is_of_age(own, age_s + 2.0 * START_S));
        assert!(parent(own).is_some());
        let name = proc::name(own).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), format!("{own}\n/data\n")).unwrap();
        let place = Place { pid_file: Some(file.path().to_owned()), ..Place::default() };
        assert_eq!(process(&place, &[&name], Some(age_s)), Some(own));
        assert_eq!(process(&place, &["no-such-program"], None), None);
    }
}
