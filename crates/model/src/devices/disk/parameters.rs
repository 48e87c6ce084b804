//! What a disk with an arm and platters is made of.

use super::Disk;
use crate::declare;
use crate::device::Built;
use crate::devices::{DeviceParameters, MEBIBYTE, PEBIBYTE, RATE_LIMIT, WriteCache};
use crate::parameter::{Invalid, Kind, Step, at_least, choices, format_size_bytes, optional_group, within};
use crate::rates::{Rate, Rates};
use crate::request::SECTOR_BYTES;
use crate::time::SECOND;

const CYLINDER_LIMIT: u64 = 1 << 24;

choices! {
    /// How an emulated size smaller than the drive is laid out.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Stroke {
        /// Over the whole stroke, as a database that fills its drive: seeks are as long as the datasheet's.
        Full = "full",
        /// On the outer cylinders only, as a small partition at the start of a large drive.
        Short = "short",
    }
}

declare! {
    #[derive(Debug, Clone, PartialEq)]
    pub struct DiskParameters {
        /// Size of the drive.
        pub capacity_bytes: u64 = Size "capacity" in MEBIBYTE..=PEBIBYTE / 16;
        pub rotation_per_minute: u64 = Rotation "rotation" in 1_000..=60_000;
        /// A seek to the next cylinder.
        pub seek_track_to_track_ns: u64 = Duration "seek_track_to_track" in 1_000..=SECOND / 10;
        /// Shortest seek beyond the next cylinder. Use the track-to-track time if no source gives it.
        pub seek_minimum_ns: u64 = Duration "seek_minimum";
        pub seek_average_ns: u64 = Duration "seek_average" in 1_000..=SECOND / 2;
        /// Extra time of a write's seek over a read's.
        pub write_settle_ns: u64 = Duration "write_settle" in 0..=SECOND / 10;
        /// Sustained rate of the outermost zone.
        pub outer_bytes_per_s: u64 = Rate "outer_rate" in MEBIBYTE..=10_000 * MEBIBYTE;
        /// Sustained rate of the innermost zone.
        pub inner_bytes_per_s: u64 = Rate "inner_rate" in MEBIBYTE..=10_000 * MEBIBYTE;
        pub zone_count: u64 = Count "zones" in 1..=1_000;
        /// Number of recording surfaces.
        pub tracks_per_cylinder: u64 = Count "tracks_per_cylinder" in 1..=100;
        /// Controller time per command. Commands do not overlap in it.
        pub command_overhead_ns: u64 = Duration "command_overhead" in 0..=SECOND;
        pub interface_bytes_per_s: u64 = Rate "interface_rate" in MEBIBYTE..=RATE_LIMIT;
        /// Requests among which the drive chooses.
        pub queue_depth: u64 = Count "queue_depth" in 1..=1_024;
        /// A command older than this goes first.
        pub age_limit_ns: u64 = Duration "age_limit" in 1_000_000..=1_000 * SECOND;
        /// Physical sector size. A write of a part of a sector is a read, then a write one rotation later
        /// (512e).
        pub physical_sector_bytes: u64 = Size "physical_sector", step Step::OneOf(&[512, 4_096]);
        pub cache_bytes: u64 = Size "cache" in 0..=PEBIBYTE;
        /// Number of cache segments for reads. Each holds one run: the sectors read and those that follow.
        /// Zero turns read-ahead off.
        pub read_segments: u64 = Count "read_segments" in 0..=1_024;
        pub write_cache: WriteCache = Choice "write_cache", table "write_cache" "Its write cache is set to {}.";
        /// Most runs of contiguous sectors in the write cache, whatever their size.
        pub dirty_runs: u64 = Count "dirty_runs" in 1..=1_000_000;
        /// Number of oldest dirty runs among which the drive chooses the next to write back.
        pub destage_candidates: u64 = Count "destage_candidates" in 1..=1_024;
        /// Dirty share of the cache, in bytes or in runs, above which write-back competes with the host's
        /// commands.
        pub destage_watermark_percent: u64 = Percent "destage_watermark" in 0..=100;
        /// Below the watermark, write-back starts after the arm has been idle for this long.
        pub destage_idle_ns: u64 = Duration "destage_idle" in 0..=1_000 * SECOND;
        /// None where no read needs retries.
        pub read_retries: Option<ReadRetries> = Group "";
        /// Layout of an emulated size below the drive's capacity.
        pub stroke: Stroke = Choice "stroke", default Stroke::Full,
            table "stroke" "Only its outer cylinders are used.";
    }
}

declare! {
    /// Reads that succeed only when the sector comes round again, once or several times.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct ReadRetries {
        /// Share of the reads from the platter that need retries.
        pub per_million: u64 = Share "read_retries" in 1..=1_000_000;
        /// Mean duration of the retries of such a read, in rotations. The distribution is geometric.
        pub mean_rotations: u64 = Count "retry_rotations" in 1..=1_000;
    }
}

optional_group!(ReadRetries);

impl DeviceParameters for DiskParameters {
    fn relations(&self) -> Result<(), Invalid> {
        let average = self.seek_average_ns;
        at_least("seek_average", average, "seek_minimum", self.seek_minimum_ns, Kind::Duration)?;
        let track_to_track = self.seek_track_to_track_ns;
        at_least(
            "seek_minimum",
            self.seek_minimum_ns,
            "seek_track_to_track",
            track_to_track,
            Kind::Duration,
        )?;
        let outer = self.outer_bytes_per_s;
        at_least("outer_rate", outer, "inner_rate", self.inner_bytes_per_s, Kind::Rate)?;
        at_least("interface_rate", self.interface_bytes_per_s, "outer_rate", outer, Kind::Rate)?;
        if self.write_cache != WriteCache::Off || self.read_segments > 0 {
            within("cache", self.cache_bytes, 64 * 1_024, PEBIBYTE, Kind::Size)?;
        }
        self.validate_cylinders()
    }

    fn capacity_bytes(&self) -> Option<u64> {
        Some(self.capacity_bytes)
    }

    /// That of the outermost track.
    fn rates(&self) -> Rates {
        Rates { total: Rate::bytes(self.outer_bytes_per_s), ..Rates::default() }
    }

    fn write_cache(&self) -> WriteCache {
        self.write_cache
    }

    fn write_cache_bytes(&self) -> u64 {
        self.cache_bytes
    }

    fn build(&self, size_bytes: u64, seed: u64) -> Built {
        Ok(Box::new(Disk::new(self.clone(), size_bytes, seed)))
    }
}

impl DiskParameters {
    /// The seek table has one entry per cylinder.
    fn validate_cylinders(&self) -> Result<(), Invalid> {
        let slowest_track_bytes = sectors_per_track(self, self.zone_count - 1) * SECTOR_BYTES;
        let cylinders = self.capacity_bytes / slowest_track_bytes / self.tracks_per_cylinder;
        if cylinders <= CYLINDER_LIMIT {
            return Ok(());
        }
        let problem = format!(
            "is {}, which takes {cylinders} cylinders at these rates, must be at most {CYLINDER_LIMIT}",
            format_size_bytes(self.capacity_bytes)
        );
        Err(Invalid::new("capacity", problem))
    }
}

/// A track holds what passes at the zone's sustained rate in one rotation and one track switch.
pub(crate) fn sectors_per_track(disk: &DiskParameters, zone: u64) -> u64 {
    let rotation_ns = 60 * SECOND / disk.rotation_per_minute;
    let fall = disk.outer_bytes_per_s - disk.inner_bytes_per_s;
    let rate = disk.outer_bytes_per_s - fall * zone / (disk.zone_count - 1).max(1);
    (rate * (rotation_ns + disk.seek_track_to_track_ns)).div_ceil(SECOND * SECTOR_BYTES)
}
