//! Where the database reads and writes: as traced, or spread over the data's part of the disk.

use spindle_twin::trace::{Classified, classify};
use spindle_twin::{Access, Places, Region, Stream};

use crate::advise::source::Source;
use crate::record::FileClass;

/// The places on all mounts.
#[derive(Debug)]
pub(super) struct MountPlaces {
    pub(super) data: Places,
    /// Of the reads of the data's mount; `None` without a trace.
    pub(super) read_ahead_share: Option<f64>,
    /// Of each mount.
    logs: Vec<Region>,
    doublewrites: Vec<Region>,
}

/// A log whose size is not known, and the doublewrite buffer: two blocks of 64 pages.
const LOG_BYTES: u64 = 96 << 20;
const DOUBLEWRITE_BYTES: u64 = 2 << 20;
/// XFS puts the directories of a file system into different allocation groups, of which a new one has four: the
/// files beside the data's directory begin in the first, and the data in the second.
const GROUPS: u64 = 4;

impl MountPlaces {
    pub(super) fn log_of(&self, mount: usize) -> Region {
        self.logs[mount]
    }

    pub(super) fn doublewrite_of(&self, mount: usize) -> Region {
        self.doublewrites[mount]
    }
}

pub(super) fn places(source: &Source<'_>) -> MountPlaces {
    let found: Vec<Option<Classified>> =
        source.traces.iter().map(|trace| trace.as_ref().map(|trace| classify(&trace.requests))).collect();
    let data_mount = source.mount_of(FileClass::Data);
    let of_data = found.get(data_mount).and_then(Option::as_ref);
    let of_trace = |choose: fn(&Classified) -> &Vec<Access>| {
        let accesses = of_data.map(choose)?;
        (!accesses.is_empty()).then(|| Stream::Recorded(accesses.as_slice().into()))
    };
    let size = |mount: usize| source.cell.mounts[mount].stack.size_bytes;
    let page_bytes = source.paging.page_bytes;
    let spread = Stream::Uniform { region: data_region(source, size(data_mount)), size_bytes: page_bytes };
    let region = |mount: usize, choose: fn(&Classified) -> Option<Region>, default: Region| {
        found[mount].as_ref().and_then(choose).map_or(default, |region| Region {
            offset_bytes: region.offset_bytes,
            size_bytes: region.size_bytes.next_multiple_of(4_096),
        })
    };
    let log_bytes = |mount: usize| LOG_BYTES.min(size(mount) / 8);
    let mounts = 0..source.cell.mounts.len();
    MountPlaces {
        read_ahead_share: of_data.map(|found| found.reads_ahead as f64 / found.reads.len().max(1) as f64),
        data: Places {
            reads: of_trace(|found| &found.reads).unwrap_or_else(|| spread.clone()),
            writes: of_trace(|found| &found.page_writes).unwrap_or(spread),
        },
        logs: mounts
            .clone()
            .map(|mount| {
                region(
                    mount,
                    |found| found.log,
                    Region { offset_bytes: 1 << 20, size_bytes: log_bytes(mount) },
                )
            })
            .collect(),
        doublewrites: mounts
            .map(|mount| {
                let offset_bytes = (1 << 20) + log_bytes(mount);
                region(
                    mount,
                    |found| found.doublewrite,
                    Region { offset_bytes, size_bytes: DOUBLEWRITE_BYTES },
                )
            })
            .collect(),
    }
}

/// The part of the disk that the data fills.
fn data_region(source: &Source<'_>, disk_bytes: u64) -> Region {
    let offset_bytes = disk_bytes / GROUPS;
    let most = disk_bytes - offset_bytes;
    let size_bytes = source.data_bytes.unwrap_or(most / 2).clamp(1 << 20, most);
    Region { offset_bytes, size_bytes: size_bytes / 4_096 * 4_096 }
}
