//! Where the database reads and writes: as traced, or spread over the data's part of the disk.

use std::sync::Arc;

use spindle_twin::trace::{Classified, classify};
use spindle_twin::{Access, Places, Region, Stream};

use crate::advise::source::Source;
use crate::record::FileClass;

/// The places on all mounts.
#[derive(Debug)]
pub(super) struct MountPlaces {
    pub(super) data: Places,
    /// The kernel's behind each read of the data, as traced; `None` without a trace, and for a server that counts the
    /// reads that it waits for.
    pub(super) ahead: Option<Arc<[Vec<Access>]>>,
    /// What new files of the log were filled with on the data's mount in the window, as traced; zero without a trace.
    pub(super) filled_bytes: f64,
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
    let region = of_data.and_then(|found| Region::around(found.reads.iter().chain(&found.page_writes)));
    let recorded = |accesses: Vec<Access>| {
        let accesses: Arc<[Access]> = Some(accesses).filter(|all| !all.is_empty())?.into();
        Some(Stream::Recorded { accesses, region: region? })
    };
    let (reads, ahead) = match of_data {
        Some(found) if source.paging.foreground_reads.is_none() => {
            let share = source.waited_reads().map(|waited| waited / source.device_reads().0);
            let (waited, ahead) = found.waited_reads(share);
            (recorded(waited), (!ahead.is_empty()).then(|| ahead.into()))
        }
        found => (found.and_then(|found| recorded(found.reads.clone())), None),
    };
    let writes = of_data.and_then(|found| recorded(found.page_writes.clone()));
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
        ahead,
        filled_bytes: of_data
            .map_or(0.0, |found| found.filled_bytes as f64 / traced_share(source, data_mount)),
        data: Places { reads: reads.unwrap_or_else(|| spread.clone()), writes: writes.unwrap_or(spread) },
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

/// Of the window, the part that the mount's trace has.
fn traced_share(source: &Source<'_>, mount: usize) -> f64 {
    let traced_s = source.traces[mount].as_ref().map_or(0.0, |trace| trace.duration_ns as f64 / 1e9);
    let share = traced_s / source.measurement.duration_s;
    if share > 0.0 { share.min(1.0) } else { 1.0 }
}

/// The part of the disk that the data fills.
fn data_region(source: &Source<'_>, disk_bytes: u64) -> Region {
    let offset_bytes = disk_bytes / GROUPS;
    let most = disk_bytes - offset_bytes;
    let size_bytes = source.data_bytes.unwrap_or(most / 2).clamp(1 << 20, most);
    Region { offset_bytes, size_bytes: size_bytes / 4_096 * 4_096 }
}
