//! Block devices: the tree of disks, partitions and what is built of them, with queues and alignment.
//!
//! Sources: Linux, Documentation/ABI/stable/sysfs-block.

use std::collections::BTreeMap;
use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::raid::Raid;
use super::tree::Tree;

/// Sector size in sysfs, independent of the device's own sectors.
const SECTOR_BYTES: u64 = 512;

/// Files of a device's `queue`. A partition has the queue of its disk.
const QUEUE: [&str; 9] = [
    "scheduler",
    "nr_requests",
    "read_ahead_kb",
    "max_sectors_kb",
    "rotational",
    "write_cache",
    "wbt_lat_usec",
    "nomerges",
    "rq_affinity",
];

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq, Default)]
#[serde(default)]
pub struct BlockDevice {
    /// Kernel name: `sda1`.
    pub name: String,
    /// `disk`, `partition`, `raid`, `bcache`, `zram`; for the device mapper `lvm`, `crypt`, `multipath` or
    /// `mapped`.
    pub kind: String,
    /// The devices that it lies on, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// Maker and model as the device reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Driver of the SCSI host: it names a RAID controller, which the kernel shows as disks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub controller: Option<String>,
    pub size_bytes: u64,
    pub logical_block_bytes: u64,
    pub physical_block_bytes: u64,
    /// Chunk of an array; zero if the device names none.
    #[serde(skip_serializing_if = "is_zero")]
    pub minimum_io_bytes: u64,
    /// Stripe of an array; zero if the device names none.
    #[serde(skip_serializing_if = "is_zero")]
    pub optimal_io_bytes: u64,
    /// Start of a partition on its disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_bytes: Option<u64>,
    /// Distance to the next natural boundary, as the kernel computes it; -1 for parts that have none in
    /// common.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment_offset_bytes: Option<i64>,
    /// Settings of the queue by the kernel's names.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub queue: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raid: Option<Raid>,
}

pub(super) fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Where a partition or an array starts, against the boundaries of what lies below.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Alignment {
    Aligned,
    /// Requests on natural boundaries of the device cross those of the hardware.
    Off {
        bytes: u64,
        boundary_bytes: u64,
    },
    /// The kernel found no common boundary, or an offset.
    Kernel,
}

impl BlockDevice {
    /// `None` for a whole disk.
    pub fn alignment(&self) -> Option<Alignment> {
        if self.alignment_offset_bytes.is_some_and(|offset| offset != 0) {
            return Some(Alignment::Kernel);
        }
        let Some(start) = self.start_bytes else {
            return (!self.on.is_empty() && self.alignment_offset_bytes.is_some())
                .then_some(Alignment::Aligned);
        };
        // Some USB bridges report an optimal size that is no multiple of a block.
        let is_sound = |bytes: &u64| *bytes > 0 && bytes.is_multiple_of(self.physical_block_bytes.max(1));
        let boundaries = [self.physical_block_bytes, self.minimum_io_bytes, self.optimal_io_bytes];
        let off = boundaries.into_iter().filter(is_sound).find(|boundary| !start.is_multiple_of(*boundary));
        Some(off.map_or(Alignment::Aligned, |boundary_bytes| Alignment::Off {
            bytes: start % boundary_bytes,
            boundary_bytes,
        }))
    }
}

pub(super) struct Devices {
    pub(super) list: Vec<BlockDevice>,
    /// Names by `major:minor`.
    pub(super) numbers: BTreeMap<String, String>,
}

pub(super) fn read(tree: Tree) -> Devices {
    let mut devices = Devices { list: Vec::new(), numbers: BTreeMap::new() };
    for name in tree.names("sys/block") {
        let directory = format!("sys/block/{name}");
        let disk = disk(tree, &name, &directory);
        if disk.size_bytes == 0 || ["loop", "ram"].iter().any(|kind| is_numbered(&name, kind)) {
            continue;
        }
        let is_partition =
            |part: &String| tree.number::<u32>(&format!("{directory}/{part}/partition")).is_some();
        let partitions: Vec<String> = tree.names(&directory).into_iter().filter(is_partition).collect();
        let partitions: Vec<BlockDevice> = partitions
            .iter()
            .map(|part| partition(tree, part, &format!("{directory}/{part}"), &disk))
            .collect();
        let paths = partitions.iter().map(|part| (&part.name, format!("{directory}/{}", part.name)));
        for (name, path) in paths.chain([(&disk.name, directory.clone())]) {
            devices.numbers.extend(tree.text(&format!("{path}/dev")).map(|number| (number, name.clone())));
        }
        devices.list.push(disk);
        devices.list.extend(partitions);
    }
    devices
}

fn is_numbered(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok())
}

fn disk(tree: Tree, name: &str, directory: &str) -> BlockDevice {
    let of = |file: &str| tree.text(&format!("{directory}/{file}"));
    let bytes = |file: &str| tree.number(&format!("{directory}/queue/{file}")).unwrap_or(0);
    let on = tree.names(&format!("{directory}/slaves"));
    let setting = |file: &str| Some((file.to_owned(), tree.choice(&format!("{directory}/queue/{file}"))?));
    // An NVMe or virtual disk has no maker's file.
    let model = [of("device/vendor").filter(|vendor| !vendor.starts_with("0x")), of("device/model")];
    let model = model.into_iter().flatten().collect::<Vec<_>>().join(" ");
    BlockDevice {
        name: name.to_owned(),
        kind: kind(name, of("dm/uuid").as_deref(), of("md/level").is_some()),
        // The kernel computes the offset of a stack from all of its parts.
        alignment_offset_bytes: tree.number(&format!("{directory}/alignment_offset")),
        on,
        model: (!model.is_empty()).then_some(model),
        controller: controller(tree, directory),
        size_bytes: tree.number::<u64>(&format!("{directory}/size")).unwrap_or(0) * SECTOR_BYTES,
        logical_block_bytes: bytes("logical_block_size"),
        physical_block_bytes: bytes("physical_block_size"),
        minimum_io_bytes: bytes("minimum_io_size"),
        optimal_io_bytes: bytes("optimal_io_size"),
        start_bytes: None,
        queue: QUEUE.into_iter().filter_map(setting).collect(),
        raid: Raid::read(tree, &format!("{directory}/md")),
    }
}

fn partition(tree: Tree, name: &str, directory: &str, disk: &BlockDevice) -> BlockDevice {
    let number = |file: &str| tree.number::<u64>(&format!("{directory}/{file}"));
    BlockDevice {
        name: name.to_owned(),
        kind: "partition".to_owned(),
        on: vec![disk.name.clone()],
        size_bytes: number("size").unwrap_or(0) * SECTOR_BYTES,
        start_bytes: number("start").map(|sectors| sectors * SECTOR_BYTES),
        alignment_offset_bytes: tree.number(&format!("{directory}/alignment_offset")),
        model: None,
        controller: None,
        queue: BTreeMap::new(),
        raid: None,
        ..disk.clone()
    }
}

/// The device mapper's UUID begins with the program that made the device; the rest of it is not read.
fn kind(name: &str, mapper: Option<&str>, is_array: bool) -> String {
    const MAPPERS: [(&str, &str); 3] = [("LVM-", "lvm"), ("CRYPT-", "crypt"), ("mpath-", "multipath")];
    let by_name =
        || ["bcache", "zram"].into_iter().find(|prefix| is_numbered(name, prefix)).unwrap_or("disk");
    let kind = match mapper {
        _ if is_array => "raid",
        Some(uuid) => {
            MAPPERS.iter().find(|(prefix, _)| uuid.starts_with(prefix)).map_or("mapped", |(_, kind)| kind)
        }
        None if is_numbered(name, "dm-") => "mapped",
        None => by_name(),
    };
    kind.to_owned()
}

/// The path of a SCSI disk in sysfs has its host.
fn controller(tree: Tree, directory: &str) -> Option<String> {
    let path = fs::canonicalize(tree.0.join(directory)).ok()?;
    let host = path.iter().filter_map(|name| name.to_str()).find(|name| is_numbered(name, "host"))?;
    tree.text(&format!("sys/class/scsi_host/{host}/proc_name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignment_is_against_block_chunk_and_stripe() {
        let check = |start: u64, minimum: u64, optimal: u64, expect: Option<(u64, u64)>| {
            let device = BlockDevice {
                start_bytes: Some(start),
                physical_block_bytes: 4096,
                minimum_io_bytes: minimum,
                optimal_io_bytes: optimal,
                ..BlockDevice::default()
            };
            let expect = expect.map_or(Alignment::Aligned, |(bytes, boundary_bytes)| Alignment::Off {
                bytes,
                boundary_bytes,
            });
            assert_eq!(device.alignment(), Some(expect));
        };
        check(1 << 20, 4096, 0, None);
        // The old DOS layout: sector 63.
        check(63 * 512, 4096, 0, Some((3584, 4096)));
        check(1 << 20, 65_536, 3 * 65_536, Some((65_536, 3 * 65_536)));
        // A USB bridge's optimal size is no boundary.
        check(1 << 20, 4096, 33_553_920, None);
    }

    #[test]
    fn the_kernel_has_the_last_word_about_a_stack() {
        let check = |offset: Option<i64>, on: &[&str], expect: Option<Alignment>| {
            let on = on.iter().map(|name| (*name).to_owned()).collect();
            let device = BlockDevice { alignment_offset_bytes: offset, on, ..BlockDevice::default() };
            assert_eq!(device.alignment(), expect);
        };
        check(Some(0), &[], None);
        check(Some(0), &["sda1", "sdb1"], Some(Alignment::Aligned));
        check(Some(-1), &["sda1", "sdb1"], Some(Alignment::Kernel));
        check(None, &["sda1"], None);
    }

    #[test]
    fn a_device_is_known_by_its_maker() {
        let check = |name: &str, mapper: Option<&str>, is_array: bool, expect: &str| {
            assert_eq!(kind(name, mapper, is_array), expect);
        };
        check("sda", None, false, "disk");
        check("nvme0n1", None, false, "disk");
        check("md127", None, true, "raid");
        check("dm-0", Some("LVM-0123"), false, "lvm");
        check("dm-1", Some("CRYPT-LUKS2-0123-name"), false, "crypt");
        check("dm-2", None, false, "mapped");
        check("bcache0", None, false, "bcache");
    }
}
