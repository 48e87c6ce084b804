use crate::profile::{DiskParameters, Stroke, WriteCache};
use crate::time::{MICROSECOND, MILLISECOND};

/// A 7200 rpm SATA disk.
pub(crate) fn parameters() -> DiskParameters {
    DiskParameters {
        capacity_bytes: 1_000_000_000_000,
        rotation_per_minute: 7_200,
        seek_track_to_track_ns: MILLISECOND,
        seek_average_ns: 8_500 * MICROSECOND,
        write_settle_ns: MILLISECOND,
        outer_bytes_per_s: 150_000_000,
        inner_bytes_per_s: 75_000_000,
        zone_count: 16,
        tracks_per_cylinder: 4,
        command_overhead_ns: 100 * MICROSECOND,
        interface_bytes_per_s: 300_000_000,
        queue_depth: 32,
        age_limit_ns: 500 * MILLISECOND,
        write_cache: WriteCache::Volatile,
        cache_bytes: 32 << 20,
        destage_watermark_percent: 50,
        destage_idle_ns: 20 * MILLISECOND,
        stroke: Stroke::Full,
    }
}
