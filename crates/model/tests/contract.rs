//! What every device and every layer owes its driver, for random sequences of requests.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spindle_model::{
    Branch, Completion, Device, DiskParameters, Fate, FlashParameters, Instant, Limit, MICROSECOND,
    MILLISECOND, Operation, Parameters, RaidLevel, RaidParameters, Request, RequestId, SECTOR_BYTES,
    StackSpec, Stroke, ThrottleParameters, VictimChoice, WriteCache,
};

const SIZE_BYTES: u64 = 64 << 20;
/// Small, so that requests overlap.
const SPAN_SECTORS: u64 = 2_000;

fn disk(write_cache: WriteCache) -> StackSpec {
    StackSpec::Device(Parameters::Disk(DiskParameters {
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
        physical_sector_bytes: 4_096,
        cache_bytes: 128 << 10,
        read_segments: 2,
        write_cache,
        dirty_runs: 8,
        destage_candidates: 4,
        destage_watermark_percent: 50,
        destage_idle_ns: 5 * MILLISECOND,
        stroke: Stroke::Full,
    }))
}

fn flash(write_cache: WriteCache, flush_blocks_queue: bool) -> StackSpec {
    StackSpec::Device(Parameters::Flash(FlashParameters {
        capacity_bytes: 1 << 40,
        raw_bytes: (1 << 40) / 100 * 107,
        channel_count: 3,
        dies_per_channel: 2,
        mapping_unit_bytes: 4_096,
        page_bytes: 8_192,
        pages_per_program: 2,
        block_bytes: 256 << 10,
        page_read_ns: 50 * MICROSECOND,
        page_program_ns: 500 * MICROSECOND,
        block_erase_ns: 2 * MILLISECOND,
        suspend_limit: u64::from(!flush_blocks_queue),
        suspend_ns: 20 * MICROSECOND,
        channel_bytes_per_s: 100_000_000,
        link_bytes_per_s: 250_000_000,
        read_overhead_ns: 5 * MICROSECOND,
        write_overhead_ns: 5 * MICROSECOND,
        command_interval_ns: 10 * MICROSECOND,
        write_cache,
        buffer_bytes: 64 << 10,
        flush_commit_ns: MILLISECOND,
        flush_blocks_queue,
        gc_victim: VictimChoice::Greedy,
        gc_low_percent: 0,
        gc_high_percent: 25,
    }))
}

fn partition(stack: StackSpec, size_bytes: u64) -> StackSpec {
    StackSpec::Partition { offset_bytes: 1 << 20, below: Box::new(Branch { size_bytes, stack }) }
}

fn raid_1(stack: StackSpec) -> StackSpec {
    let members = vec![Branch { size_bytes: SIZE_BYTES, stack }; 2];
    StackSpec::Raid { parameters: RaidParameters::new(RaidLevel::Raid1), members }
}

/// A tenth of what the device below could do.
fn throttle(stack: StackSpec) -> StackSpec {
    let total = Limit { iops: Some(500), bytes_per_s: None };
    let below = Box::new(Branch { size_bytes: SIZE_BYTES, stack });
    StackSpec::Throttle { parameters: ThrottleParameters { total, ..ThrottleParameters::default() }, below }
}

fn every_stack() -> Vec<StackSpec> {
    let mut stacks = vec![StackSpec::Device(Parameters::Null)];
    for write_cache in [WriteCache::Off, WriteCache::Volatile, WriteCache::Protected] {
        stacks.push(disk(write_cache));
        stacks.push(flash(write_cache, true));
        stacks.push(flash(write_cache, false));
    }
    stacks.push(partition(disk(WriteCache::Volatile), 2 * SIZE_BYTES));
    stacks.push(throttle(raid_1(disk(WriteCache::Volatile))));
    stacks.push(raid_1(throttle(flash(WriteCache::Volatile, false))));
    stacks.push(partition(partition(flash(WriteCache::Volatile, true), 4 * SIZE_BYTES), 2 * SIZE_BYTES));
    stacks
}

/// A request and the pause before it, in nanoseconds.
type Step = (u64, Request);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let operation = prop_oneof![
        5 => Just(Operation::Read),
        8 => Just(Operation::Write),
        1 => Just(Operation::Flush),
        1 => Just(Operation::Discard),
        1 => Just(Operation::WriteZeroes),
    ];
    let pause_ns = prop_oneof![3 => Just(0), 2 => 0..200_000_u64, 1 => 0..50_000_000_u64];
    let size_sectors = prop_oneof![4 => 1..40_u64, 1 => 1..600_u64];
    let step = (pause_ns, operation, 0..SPAN_SECTORS, size_sectors, any::<bool>());
    prop::collection::vec(step, 1..120).prop_map(|steps| {
        steps
            .into_iter()
            .enumerate()
            .map(|(index, (pause_ns, operation, offset_sectors, size_sectors, force_unit_access))| {
                let is_flush = operation == Operation::Flush;
                let request = Request {
                    id: RequestId(index as u64),
                    operation,
                    offset_bytes: if is_flush { 0 } else { offset_sectors * SECTOR_BYTES },
                    size_bytes: if is_flush { 0 } else { size_sectors * SECTOR_BYTES },
                    force_unit_access: force_unit_access && operation == Operation::Write,
                };
                (pause_ns, request)
            })
            .collect()
    })
}

/// Polls up to `until` as a driver would, checking what every driver relies on.
fn drain(device: &mut dyn Device, now: &mut Instant, until: Instant, done: &mut Vec<Completion>) {
    while let Some(at) = device.poll_at().filter(|&at| at <= until) {
        *now = at.max(*now);
        while let Some(completion) = device.poll(*now) {
            assert!(completion.at <= *now, "{completion:?} is in the future of {now:?}");
            assert!(done.last().is_none_or(|last| last.at <= completion.at), "completions out of order");
            done.push(completion);
        }
        assert!(device.poll_at().is_none_or(|at| at > *now), "poll_at is not after {now:?}");
    }
    *now = until;
}

fn history(stack: &StackSpec, seed: u64, steps: &[Step]) -> Vec<Completion> {
    let mut device = stack.build(SIZE_BYTES, seed).expect("a valid stack");
    let mut now = Instant::ZERO;
    let mut done = Vec::new();
    for &(pause_ns, request) in steps {
        let until = now + pause_ns;
        drain(&mut *device, &mut now, until, &mut done);
        device.submit(now, request);
    }
    drain(&mut *device, &mut now, Instant::FAR_FUTURE, &mut done);
    let counters = device.counters();
    assert_eq!((counters.queue_depth, counters.volatile_bytes), (0, 0), "{counters:?}");
    done
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_completes_exactly_once_and_in_order(steps in steps(), seed: u64) {
        for stack in every_stack() {
            let done = history(&stack, seed, &steps);
            let mut ids: Vec<u64> = done.iter().map(|completion| completion.id.0).collect();
            ids.sort_unstable();
            prop_assert_eq!(ids, (0..steps.len() as u64).collect::<Vec<_>>(), "{:?}", stack);
        }
    }

    #[test]
    fn one_seed_gives_one_history(steps in steps(), seed: u64) {
        for stack in every_stack() {
            prop_assert_eq!(history(&stack, seed, &steps), history(&stack, seed, &steps), "{:?}", stack);
        }
    }

    #[test]
    fn a_power_cut_spares_what_was_promised(steps in steps(), cut_after_ns in 0..100_000_000_u64, seed: u64) {
        for stack in every_stack() {
            check_power_cut(&stack, seed, &steps, cut_after_ns)?;
        }
    }
}

fn check_power_cut(
    stack: &StackSpec,
    seed: u64,
    steps: &[Step],
    cut_after_ns: u64,
) -> Result<(), TestCaseError> {
    let mut device = stack.build(SIZE_BYTES, seed).expect("a valid stack");
    let mut now = Instant::ZERO;
    let mut done = Vec::new();
    // Ids that a completed flush covers, and forced writes.
    let mut durable: Vec<RequestId> = Vec::new();
    let mut covered: BTreeMap<RequestId, Vec<RequestId>> = BTreeMap::new();
    for &(pause_ns, request) in steps {
        let until = now + pause_ns;
        drain(&mut *device, &mut now, until, &mut done);
        if request.operation == Operation::Flush {
            covered.insert(request.id, done.iter().map(|completion| completion.id).collect());
        }
        device.submit(now, request);
    }
    let until = now + cut_after_ns;
    drain(&mut *device, &mut now, until, &mut done);
    let cut = device.power_cut(now);
    prop_assert_eq!(device.poll_at(), None);
    let counters = device.counters();
    prop_assert_eq!((counters.queue_depth, counters.volatile_bytes), (0, 0));

    for completion in &done {
        durable.extend(covered.get(&completion.id).into_iter().flatten());
        let request = steps[completion.id.0 as usize].1;
        if request.force_unit_access || !stack.has_volatile_cache() {
            durable.push(request.id);
        }
    }
    let acknowledged: Vec<RequestId> = done.iter().map(|completion| completion.id).collect();
    let mut parts: BTreeMap<RequestId, Vec<(u64, u64)>> = BTreeMap::new();
    for write in &cut.writes {
        let request = steps[write.id.0 as usize].1;
        prop_assert_eq!(request.operation, Operation::Write);
        prop_assert!(write.offset_bytes >= request.offset_bytes);
        prop_assert!(write.offset_bytes + write.size_bytes <= request.end_bytes());
        prop_assert!(!durable.contains(&write.id), "{:?} was durable under {:?}", write, stack);
        prop_assert_eq!(write.acknowledged, acknowledged.contains(&write.id), "{:?}", write);
        if let Fate::Torn { kept_bytes } = write.fate {
            prop_assert!(kept_bytes > 0 && kept_bytes < write.size_bytes);
            prop_assert!(kept_bytes.is_multiple_of(SECTOR_BYTES));
        }
        parts.entry(write.id).or_default().push((write.offset_bytes, write.offset_bytes + write.size_bytes));
    }
    prop_assert!(cut.writes.is_sorted_by_key(|write| write.id), "not in the order of submission");
    for (id, mut parts) in parts {
        parts.sort_unstable();
        prop_assert!(parts.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{:?} in overlapping parts", id);
    }
    // After power-on the device works again.
    let again = Request { id: RequestId(1_000_000), ..steps[0].1 };
    device.submit(now, again);
    let mut after = Vec::new();
    drain(&mut *device, &mut now, Instant::FAR_FUTURE, &mut after);
    prop_assert_eq!(after.len(), 1);
    Ok(())
}

#[test]
fn a_stack_that_does_not_fit_says_why() {
    let sentence = |stack: StackSpec, size_bytes: u64| stack.build(size_bytes, 1).err().unwrap().to_string();
    assert_eq!(
        sentence(StackSpec::Device(Parameters::Null), 1_000),
        "`size` is 1000 bytes, must be a multiple of 512 above zero"
    );
    assert_eq!(
        sentence(partition(StackSpec::Device(Parameters::Null), 2 * SIZE_BYTES), 2 * SIZE_BYTES),
        "`size` is 134217728 bytes, must be at most what the stack below has room for, 133169152 bytes"
    );
    assert_eq!(
        sentence(disk(WriteCache::Off), 1 << 41),
        "`size` is 2199023255552 bytes, must be at most the drive's capacity, 1099511627776 bytes"
    );
}

#[test]
fn a_partition_starts_at_its_offset() {
    let stack = partition(flash(WriteCache::Volatile, true), 2 * SIZE_BYTES);
    let mut device = stack.build(SIZE_BYTES, 1).unwrap();
    let write = Request {
        id: RequestId(1),
        operation: Operation::Write,
        offset_bytes: 8_192,
        size_bytes: 4_096,
        force_unit_access: false,
    };
    device.submit(Instant::ZERO, write);
    let cut = device.power_cut(Instant::ZERO);
    assert_eq!((cut.writes[0].offset_bytes, cut.writes[0].size_bytes), (8_192, 4_096));
}
