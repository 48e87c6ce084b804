//! How many requests a second the models answer in virtual time, on one core: `cargo bench -p spindle-model`.
//!
//! Seconds are those that the process had a CPU for, where the system says so, because other work on the machine is no property of a model.

#![expect(clippy::disallowed_methods, clippy::disallowed_types, reason = "a benchmark reads the clock")]

use spindle_model::{
    Ageing, ClosedLoop, Device, DiskParameters, FlashParameters, MICROSECOND, MILLISECOND, Parameters,
    StackSpec, Stroke, VictimChoice, VirtualTime, WriteCache,
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

fn cpu_seconds() -> f64 {
    let schedule = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let on_cpu_ns: Option<f64> = schedule.split(' ').next().and_then(|field| field.parse().ok());
    on_cpu_ns.map_or_else(wall_seconds, |nanoseconds| nanoseconds / 1e9)
}

/// Zero where the system does not say.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn wall_seconds() -> f64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0.0, |since| since.as_secs_f64())
}

fn measure(name: &str, parameters: &Parameters, workload: &ClosedLoop, ageing: Option<Ageing>) {
    let mut device = StackSpec::Device(parameters.clone()).build(SIZE_BYTES, 1).expect("valid parameters");
    if let Some(ageing) = ageing {
        let begin = cpu_seconds();
        device.age(&ageing);
        println!("{name:<44} aged in {:.2} s", cpu_seconds() - begin);
    }
    let mut driver = VirtualTime::new(device);
    let begin = cpu_seconds();
    let measured = workload.run(&mut driver);
    let elapsed_s = cpu_seconds() - begin;
    let millions_per_s = measured.samples.len() as f64 / elapsed_s / 1e6;
    let counters = driver.device().counters();
    let amplification = match counters.nand_write_bytes {
        0 => String::new(),
        nand_write_bytes => {
            format!(", write amplification {:.2}", nand_write_bytes as f64 / counters.write_bytes as f64)
        }
    };
    println!("{name:<44} {millions_per_s:6.2} M requests/s{amplification}");
}

fn main() {
    // An argument chooses the lines whose name contains it; cargo adds `--bench`.
    let wanted = std::env::args().skip(1).find(|argument| argument != "--bench").unwrap_or_default();
    let measure = |name: &str, parameters: &Parameters, workload: &ClosedLoop, ageing| {
        if name.contains(&wanted) {
            measure(name, parameters, workload, ageing);
        }
    };
    let reads = ClosedLoop { span_bytes: SIZE_BYTES, request_count: 2_000_000, ..ClosedLoop::default() };
    let mixed = ClosedLoop { queue_depth: 32, read_percent: 50, ..reads.clone() };
    for (name, parameters) in [("null", Parameters::Null), ("disk", disk()), ("flash", flash())] {
        for queue_depth in [1, 32] {
            let reads = ClosedLoop { queue_depth, ..reads.clone() };
            measure(&format!("{name} 4 KiB random read QD{queue_depth}"), &parameters, &reads, None);
        }
        measure(&format!("{name} 4 KiB random 50 % write QD32"), &parameters, &mixed, None);
    }
    let ageing = Ageing { fill_percent: 100, overwrite_percent: 200, seed: 1 };
    measure("flash 4 KiB random 50 % write QD32, aged", &flash(), &mixed, Some(ageing));
    // A drive of 40 million units: what its map and everything else take of memory.
    if "flash 160 GB, memory".contains(&wanted) {
        let mut device = StackSpec::Device(flash()).build(160_000_000_000, 1).expect("valid parameters");
        let before_kib = resident_kib();
        device.age(&Ageing { fill_percent: 100, overwrite_percent: 60, seed: 1 });
        println!("{:<44} {} MB", "flash 160 GB, memory", (resident_kib() - before_kib) * 1_024 / 1_000_000);
    }
    let reads = ClosedLoop { queue_depth: 32, ..reads };
    measure("flash 4 KiB random read QD32, aged", &flash(), &reads, Some(ageing));
}
