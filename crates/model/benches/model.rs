//! How many requests a second the models answer in virtual time, on one core: `cargo bench -p spindle-model`.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

use spindle_model::{
    ClosedLoop, DiskParameters, FlashParameters, MICROSECOND, MILLISECOND, Parameters, StackSpec, Stroke,
    VictimChoice, VirtualTime, WriteCache,
};

const SIZE_BYTES: u64 = 20 << 30;

fn disk() -> Parameters {
    Parameters::Disk(DiskParameters {
        capacity_bytes: 1 << 40,
        rotation_per_minute: 7_200,
        seek_track_to_track_ns: MILLISECOND,
        seek_average_ns: 8 * MILLISECOND,
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
    })
}

fn flash() -> Parameters {
    Parameters::Flash(FlashParameters {
        capacity_bytes: 1 << 40,
        raw_bytes: (1 << 40) * 5 / 4,
        channel_count: 10,
        dies_per_channel: 2,
        mapping_unit_bytes: 4_096,
        page_bytes: 4_096,
        pages_per_program: 2,
        block_bytes: 2 << 20,
        page_read_ns: 50 * MICROSECOND,
        page_program_ns: 900 * MICROSECOND,
        block_erase_ns: 3 * MILLISECOND,
        suspend_limit: 0,
        suspend_ns: 0,
        channel_bytes_per_s: 100_000_000,
        link_bytes_per_s: 250_000_000,
        read_overhead_ns: 5 * MICROSECOND,
        write_overhead_ns: 5 * MICROSECOND,
        command_interval_ns: 0,
        write_cache: WriteCache::Volatile,
        buffer_bytes: 16 << 20,
        flush_commit_ns: MILLISECOND,
        flush_blocks_queue: true,
        gc_victim: VictimChoice::Greedy,
        gc_low_percent: 0,
        gc_high_percent: 25,
    })
}

fn measure(name: &str, parameters: &Parameters, workload: &ClosedLoop) {
    let device = StackSpec::Device(parameters.clone()).build(SIZE_BYTES, 1).expect("valid parameters");
    let mut driver = VirtualTime::new(device);
    let begin = std::time::Instant::now();
    let measured = workload.run(&mut driver);
    let elapsed_s = begin.elapsed().as_secs_f64();
    let millions_per_s = measured.samples.len() as f64 / elapsed_s / 1e6;
    println!("{name:<36} {millions_per_s:6.2} M requests/s");
}

fn main() {
    let reads = ClosedLoop { span_bytes: SIZE_BYTES, request_count: 2_000_000, ..ClosedLoop::default() };
    for (name, parameters) in [("null", Parameters::Null), ("disk", disk()), ("flash", flash())] {
        for queue_depth in [1, 32] {
            let reads = ClosedLoop { queue_depth, ..reads.clone() };
            measure(&format!("{name} 4 KiB random read QD{queue_depth}"), &parameters, &reads);
        }
        let mixed = ClosedLoop { queue_depth: 32, read_percent: 50, ..reads.clone() };
        measure(&format!("{name} 4 KiB random 50 % write QD32"), &parameters, &mixed);
    }
}
