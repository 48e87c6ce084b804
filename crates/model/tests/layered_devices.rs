//! Layers over a disk and over a flash drive, compared with the drive alone.

mod common;

use common::{device, disk, flash};
use spindle_model::{
    ClosedLoop, Device, Driver, Fault, FaultParameters, IntentLog, IntentLogParameters, Limit, MICROSECOND,
    MILLISECOND, Measured, Operation, Promotion, Protocol, Replicated, ReplicatedParameters, Request,
    RequestId, SECOND, Spikes, SsdCache, SsdCacheParameters, Survivor, Throttle, ThrottleParameters,
    VirtualTime, WriteCache, WritePolicy,
};

const SIZE_BYTES: u64 = 1 << 30;
const BLOCK_BYTES: u64 = 16 << 10;

fn a_disk() -> Box<dyn Device> {
    device(disk(WriteCache::Volatile), SIZE_BYTES, 1)
}

fn a_flash_drive(write_cache: WriteCache) -> Box<dyn Device> {
    device(flash(write_cache), SIZE_BYTES, 1)
}

fn run(device: Box<dyn Device>, workload: &ClosedLoop) -> Measured {
    workload.run(&mut VirtualTime::new(device))
}

/// Random commits: a write, a FLUSH.
fn commits() -> ClosedLoop {
    ClosedLoop {
        read_percent: 0,
        size_bytes: BLOCK_BYTES,
        flush_after_write: true,
        request_count: 400,
        ..ClosedLoop::default()
    }
}

fn reads(span_bytes: u64) -> ClosedLoop {
    ClosedLoop { size_bytes: BLOCK_BYTES, span_bytes, request_count: 2_000, ..ClosedLoop::default() }
}

fn cache(write_policy: WritePolicy, fast: Box<dyn Device>) -> Box<dyn Device> {
    let parameters = SsdCacheParameters {
        block_bytes: BLOCK_BYTES,
        cache_bytes: Some(64 << 20),
        write_policy,
        promotion: Promotion::Always,
        sequential_cutoff_bytes: 4 << 20,
        writeback_percent: 10,
        writeback_bytes_per_s: 1 << 20,
        dirty_limit_percent: 70,
        keeps_clean_blocks: true,
    };
    Box::new(SsdCache::new(parameters, fast, a_disk()).expect("a valid SSD cache"))
}

fn intent_log() -> Box<dyn Device> {
    let parameters = IntentLogParameters {
        log_bytes: Some(256 << 20),
        record_header_bytes: 192,
        log_block_bytes: 4 << 10,
        memory_ns: 5 * MICROSECOND,
        group_interval_ns: 5 * SECOND,
        group_bytes: 64 << 20,
        dirty_limit_bytes: 256 << 20,
        pool_queue_depth: 10,
    };
    Box::new(IntentLog::new(parameters, a_flash_drive(WriteCache::Protected), a_disk()).expect("a valid log"))
}

#[test]
fn a_log_on_flash_gives_a_disk_the_commits_of_flash() {
    let alone = run(a_disk(), &commits()).per_second(Operation::Flush);
    let flash = run(a_flash_drive(WriteCache::Protected), &commits());
    let logged = run(intent_log(), &commits());
    // A rotation is 8.3 ms, and a commit takes at least one.
    assert!(alone < 120.0, "{alone}");
    let (logged_ns, flash_ns) = (logged.elapsed_ns as f64, flash.elapsed_ns as f64);
    assert!((0.9..1.2).contains(&(logged_ns / flash_ns)), "{logged_ns} {flash_ns}");
}

#[test]
fn a_warm_cache_reads_like_flash_and_a_cold_one_like_the_disk() {
    let span_bytes = 32 << 20;
    let mean_ns = |device| run(device, &reads(span_bytes)).mean_ns(Operation::Read);
    let (slow_ns, fast_ns) = (mean_ns(a_disk()), mean_ns(a_flash_drive(WriteCache::Volatile)));
    let mut cached = VirtualTime::new(cache(WritePolicy::Around, a_flash_drive(WriteCache::Volatile)));
    let cold = reads(span_bytes).run(&mut cached);
    let misses = cold.latencies_ns(Operation::Read).filter(|&latency_ns| latency_ns > MILLISECOND).count();
    // 2,048 (1 - exp(-2,000 / 2,048)) distinct blocks are expected.
    assert!((1_230..=1_330).contains(&misses), "{misses}");
    for seed in 2..6 {
        ClosedLoop { seed, ..reads(span_bytes) }.run(&mut cached);
    }
    let warm_ns = reads(span_bytes).run(&mut cached).mean_ns(Operation::Read);
    assert!(warm_ns < 1.1 * fast_ns && warm_ns < slow_ns / 10.0, "{warm_ns} {fast_ns} {slow_ns}");
}

#[test]
fn write_back_hides_the_disk_until_a_flush_asks_for_it() {
    let writes = ClosedLoop { flush_after_write: false, ..commits() };
    let fast_ns = run(a_flash_drive(WriteCache::Protected), &writes).mean_ns(Operation::Write);
    let back_ns = run(cache(WritePolicy::Back, a_flash_drive(WriteCache::Protected)), &writes)
        .mean_ns(Operation::Write);
    assert!((back_ns / fast_ns - 1.0).abs() < 0.05, "{back_ns} {fast_ns}");
}

#[test]
fn write_back_over_a_volatile_cache_loses_what_was_not_flushed() {
    let lost = |write_cache| {
        let mut driver = VirtualTime::new(cache(WritePolicy::Back, a_flash_drive(write_cache)));
        for id in 0..4 {
            driver.submit(Request {
                id: RequestId(id),
                operation: Operation::Write,
                offset_bytes: id * 5 * BLOCK_BYTES,
                size_bytes: BLOCK_BYTES,
                force_unit_access: false,
            });
        }
        while driver.wait().is_some_and(|done| done.id != RequestId(3)) {}
        let now = driver.now();
        driver.device_mut().power_cut(now).writes.len()
    };
    assert!(lost(WriteCache::Volatile) > 0);
    assert_eq!(lost(WriteCache::Protected), 0);
}

#[test]
fn protocol_c_commits_as_slowly_as_the_slower_side_and_the_wire() {
    let parameters = ReplicatedParameters {
        protocol: Protocol::C,
        bytes_per_s: 110_000_000,
        round_trip_ns: 200 * MICROSECOND,
        jitter_ns: 0,
        send_buffer_bytes: 1 << 20,
        outages: Vec::new(),
        congestions: Vec::new(),
        timeout_ns: 6 * SECOND,
        resync_bytes_per_s: 10_000_000,
        active_extents: 0,
        extent_bytes: 4 << 20,
        survivor: Survivor::Local,
    };
    let forced = |device: Box<dyn Device>| {
        let writes = ClosedLoop { flush_after_write: false, ..commits() };
        run(device, &writes).mean_ns(Operation::Write)
    };
    let write_through = || a_flash_drive(WriteCache::Off);
    let alone_ns = forced(write_through());
    let replicated = Replicated::new(parameters, 1, write_through(), write_through()).unwrap();
    let replicated_ns = forced(Box::new(replicated));
    // 16 KiB take 148.9 us on the wire.
    let expected_ns = alone_ns + 348_945.0;
    assert!((replicated_ns / expected_ns - 1.0).abs() < 0.02, "{replicated_ns} {expected_ns}");
}

#[test]
fn a_throttle_above_what_the_disk_can_do_changes_nothing() {
    let limited = |iops| {
        let total = Limit { iops: Some(iops), bytes_per_s: None };
        let parameters = ThrottleParameters { total, ..ThrottleParameters::default() };
        let workload = ClosedLoop { queue_depth: 4, ..reads(SIZE_BYTES) };
        run(Box::new(Throttle::new(parameters, a_disk()).unwrap()), &workload).per_second(Operation::Read)
    };
    let alone =
        run(a_disk(), &ClosedLoop { queue_depth: 4, ..reads(SIZE_BYTES) }).per_second(Operation::Read);
    assert_eq!(limited(1_000_000), alone);
    assert!((limited(50) / 50.0 - 1.0).abs() < 0.01);
}

#[test]
fn spikes_add_their_share_to_the_mean_of_a_flash_drive() {
    let spikes = Some(Spikes { per_million: 100_000, extra_ns: 10 * MILLISECOND });
    let parameters = FaultParameters { spikes, ..FaultParameters::default() };
    let alone_ns = run(a_flash_drive(WriteCache::Volatile), &reads(SIZE_BYTES)).mean_ns(Operation::Read);
    let spiky = Fault::new(parameters, 1, a_flash_drive(WriteCache::Volatile)).unwrap();
    let spiky_ns = run(Box::new(spiky), &reads(SIZE_BYTES)).mean_ns(Operation::Read);
    // A tenth of 10 ms; the standard error of the mean of 2,000 is 67 us.
    assert!((spiky_ns - alone_ns - 1e6).abs() < 201_000.0, "{spiky_ns} {alone_ns}");
}

#[test]
fn layers_stand_on_layers() {
    let total = Limit { iops: Some(500), bytes_per_s: None };
    let parameters = ThrottleParameters { total, ..ThrottleParameters::default() };
    let stack = Throttle::new(parameters, cache(WritePolicy::Back, intent_log())).unwrap();
    let mut driver = VirtualTime::new(stack);
    let measured = commits().run(&mut driver);
    assert_eq!(measured.count(Operation::Flush), 200);
    assert_eq!(driver.device().counters().writes, 200);
    // 200 writes at 500 a second, on any device below.
    assert!(measured.elapsed_ns >= 199 * SECOND / 500, "{}", measured.elapsed_ns);
}
