//! How many requests a second the models answer in virtual time, on one core: `cargo bench -p spindle-model`, with
//! `-- NAME` for those whose name contains it.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

use spindle_model::{
    ClosedLoop, Device, DiskParameters, Fault, FaultParameters, FlashParameters, IntentLog,
    IntentLogParameters, LatencyQuantiles, Limit, MICROSECOND, MILLISECOND, Mirror, MirrorParameters,
    Parameters, Promotion, Protocol, Spikes, StackSpec, Stroke, Survivor, Throttle, ThrottleParameters, Tier,
    TierParameters, VirtualTime, Volume, VolumeParameters, WriteCache, WritePolicy,
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
        channel_count: 10,
        dies_per_channel: 2,
        page_bytes: 4_096,
        page_read_ns: 50 * MICROSECOND,
        page_program_ns: 900 * MICROSECOND,
        channel_bytes_per_s: 100_000_000,
        link_bytes_per_s: 250_000_000,
        read_overhead_ns: 5 * MICROSECOND,
        write_overhead_ns: 5 * MICROSECOND,
        command_interval_ns: 0,
        write_cache: WriteCache::Volatile,
        buffer_bytes: 16 << 20,
        flush_commit_ns: MILLISECOND,
        flush_blocks_queue: true,
        write_amplification_permille: 1_000,
    })
}

/// Every layer over devices that take no time, so that what is measured is the layer's own work.
fn layers() -> Vec<(&'static str, Box<dyn Device>)> {
    let null = || device(&Parameters::Null);
    let volume = VolumeParameters {
        capacity_bytes: 1 << 40,
        iops_per_gib: 3,
        iops_minimum: 100,
        iops_maximum: 16_000,
        burst_iops: 3_000,
        burst_credits: 5_400_000,
        bytes_per_s: 250 << 20,
        burst_bytes_per_s: 0,
        burst_credit_bytes: 0,
        initial_credit_percent: 100,
        window_ns: 0,
        operation_bytes: 256 << 10,
        merges_sequential: true,
        link_bytes_per_s: 1_000_000_000,
        read_latency: LatencyQuantiles::constant(MILLISECOND),
        write_latency: LatencyQuantiles::constant(MILLISECOND),
        flush_ns: MILLISECOND,
    };
    let limit = Limit { iops: Some(1_000_000), bytes_per_s: Some(1 << 39) };
    let throttle = ThrottleParameters { read: limit, write: limit, total: limit, burst_ns: 0 };
    let spikes = Some(Spikes { per_million: 1_000, extra_ns: MILLISECOND });
    let fault = FaultParameters { spikes, ..FaultParameters::default() };
    let mirror = MirrorParameters {
        protocol: Protocol::C,
        bytes_per_s: 1_000_000_000,
        round_trip_ns: 100 * MICROSECOND,
        jitter_ns: 10 * MICROSECOND,
        send_buffer_bytes: 1 << 20,
        outages: Vec::new(),
        congestions: Vec::new(),
        timeout_ns: 1_000 * MILLISECOND,
        resync_bytes_per_s: 100_000_000,
        survivor: Survivor::Local,
    };
    let tier = TierParameters {
        block_bytes: 16 << 10,
        cache_bytes: 1 << 30,
        write_policy: WritePolicy::Back,
        promotion: Promotion::Always,
        sequential_cutoff_bytes: 4 << 20,
        writeback_percent: 10,
        writeback_bytes_per_s: 1 << 39,
        dirty_limit_percent: 70,
        keeps_clean_blocks: true,
    };
    let intent_log = IntentLogParameters {
        log_bytes: 1 << 30,
        record_header_bytes: 192,
        log_block_bytes: 4 << 10,
        memory_ns: MICROSECOND,
        group_interval_ns: 5_000 * MILLISECOND,
        group_bytes: 64 << 20,
        dirty_limit_bytes: 256 << 20,
        pool_queue_depth: 10,
    };
    vec![
        ("volume", Box::new(Volume::new(volume, SIZE_BYTES, 1).expect("valid"))),
        ("throttle", Box::new(Throttle::new(throttle, null()).expect("valid"))),
        ("fault", Box::new(Fault::new(fault, 1, null()).expect("valid"))),
        ("mirror", Box::new(Mirror::new(mirror, 1, null(), null()).expect("valid"))),
        ("tier", Box::new(Tier::new(tier, null(), null()).expect("valid"))),
        ("intent log", Box::new(IntentLog::new(intent_log, null(), null()).expect("valid"))),
    ]
}

fn device(parameters: &Parameters) -> Box<dyn Device> {
    StackSpec::Device(parameters.clone()).build(SIZE_BYTES, 1).expect("valid parameters")
}

fn measure(name: &str, device: Box<dyn Device>, workload: &ClosedLoop) {
    if !std::env::args().skip(1).all(|word| word.starts_with("--") || name.contains(&word)) {
        return;
    }
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
            measure(&format!("{name} 4 KiB random read QD{queue_depth}"), device(&parameters), &reads);
        }
        let mixed = ClosedLoop { queue_depth: 32, read_percent: 50, ..reads.clone() };
        measure(&format!("{name} 4 KiB random 50 % write QD32"), device(&parameters), &mixed);
    }
    for (name, layer) in layers() {
        let mixed = ClosedLoop { queue_depth: 32, read_percent: 50, ..reads.clone() };
        measure(&format!("{name} 4 KiB random 50 % write QD32"), layer, &mixed);
    }
}
