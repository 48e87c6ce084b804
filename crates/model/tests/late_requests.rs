//! A late read was sent before it came. Every layer passes the time on, so that a flash drive below begins
//! with the read when it was sent.

mod common;

use spindle_model::{
    Branch, CacheParameters, CachePolicy, Completion, Device, FaultParameters, Instant, IntentLogParameters,
    Limit, MICROSECOND, MILLISECOND, Operation, PartitionParameters, Promotion, Protocol, RaidLevel,
    RaidParameters, ReplicatedParameters, Request, RequestId, SECOND, SsdCacheParameters, StackSpec,
    Survivor, ThrottleParameters, WriteCache, WritePolicy,
};

const SIZE_BYTES: u64 = 64 << 20;
const PAGE_BYTES: u64 = 4_096;

/// A read of a page: when it was sent, and how much later it came.
#[derive(Debug, Clone, Copy)]
struct Read {
    page: u64,
    sent_us: u64,
    late_us: u64,
}

fn read(page: u64, sent_us: u64, late_us: u64) -> Read {
    Read { page, sent_us, late_us }
}

fn flash() -> Branch {
    branch(StackSpec::Device(common::flash(WriteCache::Protected)))
}

fn branch(stack: StackSpec) -> Branch {
    Branch { size_bytes: stack.most_bytes().unwrap_or(SIZE_BYTES).min(SIZE_BYTES), stack }
}

fn raid(level: RaidLevel, host_latency_ns: u64, missing: &[usize]) -> StackSpec {
    let parameters =
        RaidParameters { host_latency_ns, missing_members: missing.to_vec(), ..RaidParameters::new(level) };
    StackSpec::layer(parameters, vec![flash(); 4])
}

fn controller(below: Branch) -> StackSpec {
    let parameters = CacheParameters::new(CachePolicy::WriteBack, 1 << 20);
    StackSpec::layer(parameters, [below])
}

fn throttle(below: Branch) -> StackSpec {
    StackSpec::layer(ThrottleParameters::default(), [below])
}

fn replicated(protocol: Protocol) -> StackSpec {
    let parameters = ReplicatedParameters {
        protocol,
        bytes_per_s: 100_000_000,
        round_trip_ns: 200 * MICROSECOND,
        jitter_ns: 0,
        send_buffer_bytes: 1 << 20,
        outages: Vec::new(),
        congestions: Vec::new(),
        timeout_ns: SECOND,
        resync_bytes_per_s: 10_000_000,
        active_extents: 0,
        extent_bytes: 4 << 20,
        survivor: Survivor::Local,
    };
    StackSpec::layer(parameters, [flash(), flash()])
}

fn ssd_cache(write_policy: WritePolicy, promotion: Promotion) -> StackSpec {
    let parameters = SsdCacheParameters {
        block_bytes: 16 << 10,
        cache_bytes: Some(1 << 20),
        write_policy,
        promotion,
        sequential_cutoff_bytes: 0,
        writeback_percent: 10,
        writeback_bytes_per_s: 1 << 20,
        dirty_limit_percent: 70,
        keeps_clean_blocks: true,
    };
    StackSpec::layer(parameters, [flash(), flash()])
}

fn intent_log() -> StackSpec {
    let parameters = IntentLogParameters {
        log_bytes: Some(1 << 20),
        record_header_bytes: 192,
        log_block_bytes: 4 << 10,
        memory_ns: 5 * MICROSECOND,
        group_interval_ns: SECOND,
        group_bytes: 1 << 20,
        dirty_limit_bytes: 4 << 20,
        pool_queue_depth: 10,
    };
    StackSpec::layer(parameters, [flash(), flash()])
}

fn every_layer() -> Vec<(&'static str, StackSpec)> {
    let fault = FaultParameters::default();
    let limit = ThrottleParameters {
        read: Limit { iops: Some(200_000), bytes_per_s: None },
        ..ThrottleParameters::default()
    };
    let deep = controller(branch(raid(RaidLevel::Raid0, 0, &[])));
    vec![
        ("partition", StackSpec::layer(PartitionParameters { offset_bytes: 0 }, [flash()])),
        ("fault", StackSpec::layer(fault, [flash()])),
        ("throttle", throttle(flash())),
        ("throttle that is not reached", StackSpec::layer(limit, [flash()])),
        ("replicated A", replicated(Protocol::A)),
        ("replicated C", replicated(Protocol::C)),
        ("write-back", ssd_cache(WritePolicy::Back, Promotion::Never)),
        ("write-around", ssd_cache(WritePolicy::Around, Promotion::Always)),
        ("intent log", intent_log()),
        ("controller", controller(flash())),
        ("raid 0", raid(RaidLevel::Raid0, 0, &[])),
        ("raid 5", raid(RaidLevel::Raid5, 0, &[])),
        ("raid 6", raid(RaidLevel::Raid6, 0, &[])),
        ("raid 5 without a member", raid(RaidLevel::Raid5, 0, &[0])),
        ("raid 0 of a slow host", raid(RaidLevel::Raid0, 30 * MICROSECOND, &[])),
        ("raid 0 behind a controller behind a throttle", throttle(branch(deep))),
    ]
}

/// Reads that go to whichever copy is free.
fn copies() -> Vec<(&'static str, StackSpec)> {
    vec![("raid 1", raid(RaidLevel::Raid1, 0, &[])), ("raid 10", raid(RaidLevel::Raid10, 0, &[]))]
}

/// Collects the completions that are due until a moment.
fn collect_until(device: &mut dyn Device, until: Instant, done: &mut Vec<Completion>) {
    while let Some(at) = device.poll_at().filter(|&at| at <= until) {
        while let Some(completion) = device.poll(at) {
            done.push(completion);
        }
    }
}

/// When each read was done, in nanoseconds since `start`.
fn done_ns(device: &mut dyn Device, start: Instant, reads: &[Read]) -> Vec<u64> {
    let mut done = Vec::new();
    for (id, read) in (0..).zip(reads) {
        let sent = start + read.sent_us * MICROSECOND;
        let now = sent + read.late_us * MICROSECOND;
        collect_until(device, now, &mut done);
        let request = Request {
            id: RequestId(id),
            operation: Operation::Read,
            offset_bytes: read.page * PAGE_BYTES,
            size_bytes: PAGE_BYTES,
            force_unit_access: false,
        };
        assert_eq!(device.submit_late(sent, now, request), sent, "{reads:?}");
    }
    collect_until(device, Instant::FAR_FUTURE, &mut done);
    done.sort_by_key(|completion| completion.id);
    assert_eq!(done.len(), reads.len());
    done.into_iter().map(|completion| completion.at - start).collect()
}

fn fresh_done_ns(stack: &StackSpec, reads: &[Read]) -> Vec<u64> {
    let Branch { size_bytes, stack } = branch(stack.clone());
    done_ns(&mut *stack.build(size_bytes, 1).expect("a valid stack"), Instant::ZERO, reads)
}

/// Through each layer the reads are done when they are in the flash drive alone, plus the time that a layer
/// takes for any read.
fn check(layers: Vec<(&'static str, StackSpec)>, reads: &[Read]) {
    let alone = |reads: &[Read]| fresh_done_ns(&flash().stack, reads);
    let one = [read(0, 0, 0)];
    for (name, stack) in layers {
        let own_ns = fresh_done_ns(&stack, &one)[0] - alone(&one)[0];
        let expect: Vec<u64> = alone(reads).iter().map(|done_ns| done_ns + own_ns).collect();
        assert_eq!(fresh_done_ns(&stack, reads), expect, "{name}: {reads:?}");
    }
}

#[test]
fn a_late_read_through_a_layer_ends_when_it_would_without_the_layer() {
    for late_us in [0, 30, 200, 5_000] {
        let reads = [read(0, 0, 0), read(2, 40, late_us)];
        check(every_layer(), &reads);
        check(copies(), &reads);
    }
}

#[test]
fn a_late_read_through_a_layer_waits_for_its_busy_die() {
    for late_us in [0, 30, 70] {
        check(every_layer(), &[read(0, 0, 0), read(0, 40, late_us)]);
    }
}

#[test]
fn a_late_read_from_the_fast_device_ends_when_a_punctual_one_would() {
    let warm_done_ns = |late_us| {
        let stack = branch(ssd_cache(WritePolicy::Around, Promotion::Always));
        let mut device = stack.stack.build(stack.size_bytes, 1).expect("a valid stack");
        done_ns(&mut *device, Instant::ZERO, &[read(0, 0, 0), read(16, 0, 0)]);
        let slow_reads = device.counters().reads;
        let done_ns = done_ns(&mut *device, Instant(SECOND), &[read(0, 0, 0), read(16, 40, late_us)]);
        assert_eq!(device.counters().reads, slow_reads + 2);
        done_ns
    };
    let in_time = warm_done_ns(0);
    assert!(in_time.iter().all(|&done_ns| done_ns < MILLISECOND), "{in_time:?}");
    for late_us in [30, 200] {
        assert_eq!(warm_done_ns(late_us), in_time);
    }
}

#[test]
fn a_late_read_from_the_memory_of_a_layer_takes_the_time_of_that_memory() {
    let write = Request {
        id: RequestId(9),
        operation: Operation::Write,
        offset_bytes: 0,
        size_bytes: PAGE_BYTES,
        force_unit_access: false,
    };
    for stack in [intent_log(), controller(flash())] {
        let done_ns = |late_us| {
            let mut device = stack.build(SIZE_BYTES, 1).expect("a valid stack");
            device.submit(Instant::ZERO, write);
            collect_until(&mut *device, Instant(300 * MICROSECOND), &mut Vec::new());
            done_ns(&mut *device, Instant(300 * MICROSECOND), &[read(0, 0, late_us)])
        };
        assert_eq!(done_ns(100), done_ns(0));
    }
}
