//! How many requests a second the models answer in virtual time, on one core: `cargo bench -p spindle-model
//! -- disk`.
//!
//! The workload's own cost is in it: `null` shows how much that is.

use spindle_model::{
    Ageing, Branch, CacheParameters, CachePolicy, ClosedLoop, DiskParameters, FaultParameters,
    FlashParameters, IntentLogParameters, Limit, MICROSECOND, MILLISECOND, Parameters, PartitionParameters,
    Promotion, Protocol, RaidLevel, RaidParameters, ReplicatedParameters, Spikes, SsdCacheParameters,
    StackSpec, Stroke, Survivor, ThrottleParameters, VictimChoice, VirtualTime, WriteCache, WritePolicy,
};

const SIZE_BYTES: u64 = 20 << 30;
const RUNS: usize = 5;

fn disk() -> Parameters {
    Parameters::Disk(DiskParameters {
        capacity_bytes: 1 << 40,
        rotation_per_minute: 7_200,
        seek_track_to_track_ns: MILLISECOND,
        seek_minimum_ns: MILLISECOND,
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
        physical_sector_bytes: 512,
        cache_bytes: 32 << 20,
        read_segments: 16,
        write_cache: WriteCache::Volatile,
        dirty_runs: 512,
        destage_candidates: 32,
        destage_watermark_percent: 50,
        destage_idle_ns: 20 * MILLISECOND,
        read_retries: None,
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
        slc: None,
    })
}

fn null() -> Branch {
    Branch { size_bytes: SIZE_BYTES, stack: StackSpec::Device(Parameters::NULL) }
}

fn raid(level: RaidLevel) -> StackSpec {
    StackSpec::layer(RaidParameters::new(level), vec![null(); 4])
}

fn layers() -> [(&'static str, StackSpec); 11] {
    let limit = Limit { iops: Some(1_000_000), bytes_per_s: Some(1_000_000_000_000) };
    let throttle = ThrottleParameters { read: limit, write: limit, total: limit, burst_ns: 0 };
    let spikes = Some(Spikes { per_million: 1_000, extra_ns: MILLISECOND });
    let fault = FaultParameters { spikes, ..FaultParameters::default() };
    let replicated = ReplicatedParameters {
        protocol: Protocol::C,
        bytes_per_s: 1_000_000_000,
        round_trip_ns: 100 * MICROSECOND,
        jitter_ns: 10 * MICROSECOND,
        send_buffer_bytes: 1 << 20,
        outages: Vec::new(),
        congestions: Vec::new(),
        timeout_ns: 1_000 * MILLISECOND,
        resync_bytes_per_s: 100_000_000,
        active_extents: 0,
        extent_bytes: 4 << 20,
        survivor: Survivor::Local,
    };
    let ssd_cache = SsdCacheParameters {
        block_bytes: 16 << 10,
        cache_bytes: Some(1 << 30),
        write_policy: WritePolicy::Back,
        promotion: Promotion::Always,
        sequential_cutoff_bytes: 4 << 20,
        writeback_percent: 10,
        writeback_bytes_per_s: 1_000_000_000_000,
        dirty_limit_percent: 70,
        keeps_clean_blocks: true,
    };
    let intent_log = IntentLogParameters {
        log_bytes: Some(1 << 30),
        record_header_bytes: 192,
        log_block_bytes: 4 << 10,
        memory_ns: MICROSECOND,
        group_interval_ns: 5_000 * MILLISECOND,
        group_bytes: 64 << 20,
        dirty_limit_bytes: 256 << 20,
        pool_queue_depth: 10,
    };
    let cache = CacheParameters::new(CachePolicy::WriteBack, 64 << 20);
    [
        ("partition", StackSpec::layer(PartitionParameters { offset_bytes: 0 }, [null()])),
        ("raid1", raid(RaidLevel::Raid1)),
        ("raid10", raid(RaidLevel::Raid10)),
        ("raid5", raid(RaidLevel::Raid5)),
        ("raid6", raid(RaidLevel::Raid6)),
        ("cache", StackSpec::layer(cache, [null()])),
        ("throttle", StackSpec::layer(throttle, [null()])),
        ("fault", StackSpec::layer(fault, [null()])),
        ("replicated", StackSpec::layer(replicated, [null(), null()])),
        ("SSD cache", StackSpec::layer(ssd_cache, [null(), null()])),
        ("intent log", StackSpec::layer(intent_log, [null(), null()])),
    ]
}

/// Time that this thread has had a core, in seconds: others may be at work on the machine.
fn core_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let on_core_ns = text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok());
    on_core_ns.expect("nanoseconds on a core") / 1e9
}

/// Zero where the system does not say.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn wanted(name: &str) -> bool {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    wanted.is_none_or(|wanted| name.contains(&wanted))
}

/// Runs it when its name contains what was given on the command line.
fn measure(name: &str, stack: &StackSpec, workload: &ClosedLoop, ageing: Option<Ageing>) {
    if !wanted(name) {
        return;
    }
    let mut best_s = f64::INFINITY;
    let mut count = 0;
    // The fastest of some runs: a core that is shared with another thread can only be slower.
    for _ in 0..RUNS {
        let size_bytes = stack.most_bytes().unwrap_or(u64::MAX).min(workload.span_bytes);
        let mut device = stack.build(size_bytes, 1).expect("a valid stack");
        if let Some(ageing) = ageing {
            device.set_use(Some(&ageing));
        }
        let mut driver = VirtualTime::new(device);
        let begin_s = core_s();
        count = workload.run(&mut driver).samples.len();
        best_s = best_s.min(core_s() - begin_s);
    }
    println!("{name:<42} {:6.2} M requests/s", count as f64 / best_s / 1e6);
}

fn main() {
    for (name, parameters, span_bytes) in [
        ("null", Parameters::NULL, SIZE_BYTES),
        ("disk", disk(), SIZE_BYTES),
        // Its seek table does not fit the first level of a processor's cache.
        ("disk of 1 TiB", disk(), 1 << 40),
        ("flash", flash(), SIZE_BYTES),
    ] {
        let reads = ClosedLoop { span_bytes, request_count: 500_000, ..ClosedLoop::default() };
        let stack = StackSpec::Device(parameters);
        for (kind, read_percent) in [("read", 100), ("write", 0), ("50 % write", 50)] {
            for queue_depth in [1, 32] {
                let workload = ClosedLoop { queue_depth, read_percent, ..reads.clone() };
                measure(&format!("{name} 4 KiB random {kind} QD{queue_depth}"), &stack, &workload, None);
            }
        }
    }
    let mixed = ClosedLoop {
        span_bytes: SIZE_BYTES,
        request_count: 500_000,
        queue_depth: 32,
        read_percent: 50,
        ..ClosedLoop::default()
    };
    let aged = Some(Ageing { fill_percent: 100, overwrite_percent: 200, seed: 1 });
    let flash_stack = StackSpec::Device(flash());
    for (kind, read_percent) in [("read", 100), ("50 % write", 50)] {
        let workload = ClosedLoop { read_percent, ..mixed.clone() };
        measure(&format!("flash, aged, 4 KiB random {kind} QD32"), &flash_stack, &workload, aged);
    }
    // Over devices that take no time, so that what is measured is the layer's own work.
    for (name, stack) in layers() {
        measure(&format!("{name} over null, 4 KiB random 50 % write QD32"), &stack, &mixed, None);
    }
    // A drive of 40 million units: what its map and everything else take of memory.
    if wanted("flash 160 GB, memory") {
        let mut device = StackSpec::Device(flash()).build(160_000_000_000, 1).expect("valid parameters");
        let before_kib = resident_kib();
        device.set_use(Some(&Ageing { fill_percent: 100, overwrite_percent: 60, seed: 1 }));
        println!("{:<42} {} MB", "flash 160 GB, memory", (resident_kib() - before_kib) * 1_024 / 1_000_000);
    }
}
