//! Devices to put layers over, and the contract of every device with its driver.

#![allow(dead_code, clippy::allow_attributes, reason = "no test uses all of it")]

pub(crate) mod contract;
pub(crate) mod history;

use spindle_model::{
    Device, DiskParameters, FlashParameters, MICROSECOND, MILLISECOND, Parameters, ReadRetries,
    SlcParameters, StackSpec, Stroke, VictimChoice, WriteCache,
};

/// A small 7200 rpm disk.
pub(crate) fn disk(write_cache: WriteCache) -> Parameters {
    Parameters::Disk(DiskParameters {
        capacity_bytes: 1 << 40,
        rotation_per_minute: 7_200,
        seek_track_to_track_ns: MILLISECOND,
        seek_minimum_ns: MILLISECOND,
        seek_average_ns: 8 * MILLISECOND,
        write_settle_ns: MILLISECOND,
        outer_bytes_per_s: 150_000_000,
        inner_bytes_per_s: 75_000_000,
        zone_count: 4,
        tracks_per_cylinder: 2,
        command_overhead_ns: 100 * MICROSECOND,
        interface_bytes_per_s: 300_000_000,
        queue_depth: 4,
        age_limit_ns: 50 * MILLISECOND,
        write_cache,
        cache_bytes: 128 << 10,
        physical_sector_bytes: 4_096,
        read_segments: 2,
        dirty_runs: 8,
        destage_candidates: 4,
        destage_watermark_percent: 50,
        destage_idle_ns: 5 * MILLISECOND,
        read_retries: Some(ReadRetries { per_million: 100_000, mean_rotations: 2 }),
        stroke: Stroke::Full,
    })
}

/// A small flash drive: six dies.
pub(crate) fn flash(write_cache: WriteCache) -> Parameters {
    Parameters::Flash(FlashParameters {
        capacity_bytes: 1 << 40,
        raw_bytes: (1 << 40) / 100 * 107,
        channel_count: 3,
        dies_per_channel: 2,
        mapping_unit_bytes: 4_096,
        page_bytes: 4_096,
        pages_per_program: 2,
        block_bytes: 256 << 10,
        page_read_ns: 50 * MICROSECOND,
        page_program_ns: 500 * MICROSECOND,
        block_erase_ns: 2 * MILLISECOND,
        suspend_limit: 0,
        suspend_ns: 0,
        channel_bytes_per_s: 100_000_000,
        link_bytes_per_s: 250_000_000,
        read_overhead_ns: 5 * MICROSECOND,
        write_overhead_ns: 5 * MICROSECOND,
        command_interval_ns: 10 * MICROSECOND,
        write_cache,
        buffer_bytes: 64 << 10,
        flush_commit_ns: MILLISECOND,
        flush_blocks_queue: true,
        gc_victim: VictimChoice::Greedy,
        gc_low_percent: 0,
        gc_high_percent: 25,
        slc: None,
    })
}

/// The SLC cache of a drive that is emulated at `size_bytes`: `emulated_bytes` at any fill, and as much again
/// while the drive is empty.
pub(crate) fn slc(flash: &FlashParameters, size_bytes: u64, emulated_bytes: u64) -> SlcParameters {
    let cache_bytes = flash.capacity_bytes / size_bytes * emulated_bytes;
    SlcParameters {
        cell_bits: 3,
        static_bytes: cache_bytes,
        dynamic_bytes: cache_bytes,
        dynamic_full_percent: 0,
        dynamic_gone_percent: 80,
        page_program_ns: 100 * MICROSECOND,
        page_read_ns: 20 * MICROSECOND,
    }
}

pub(crate) fn device(parameters: Parameters, size_bytes: u64, seed: u64) -> Box<dyn Device> {
    StackSpec::Device(parameters).build(size_bytes, seed).expect("valid parameters")
}
