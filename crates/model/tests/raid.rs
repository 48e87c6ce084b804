//! What arrays and controllers owe their driver, over devices with and without volatile caches, for random sequences of requests.

use std::collections::BTreeMap;

use proptest::prelude::*;
use spindle_model::{
    Cache, CacheParameters, CachePolicy, Completion, Device, DiskParameters, Fate, FlashParameters, Instant,
    MICROSECOND, MILLISECOND, MemberState, Operation, Outcome, Parameters, Raid, RaidLevel, RaidParameters,
    Request, RequestId, SECTOR_BYTES, StackSpec, Stroke, VictimChoice, WriteCache,
};

const MEMBER_BYTES: u64 = 4 << 20;
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
        write_cache,
        cache_bytes: 128 << 10,
        physical_sector_bytes: 4_096,
        read_segments: 2,
        dirty_runs: 8,
        destage_candidates: 4,
        destage_watermark_percent: 50,
        destage_idle_ns: 5 * MILLISECOND,
        stroke: Stroke::Full,
    }))
}

fn flash(write_cache: WriteCache) -> StackSpec {
    StackSpec::Device(Parameters::Flash(FlashParameters {
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
        flush_blocks_queue: false,
        gc_victim: VictimChoice::Greedy,
        gc_low_percent: 0,
        gc_high_percent: 25,
    }))
}

/// A layer to build, on members of one kind.
#[derive(Debug, Clone)]
struct Stack {
    layer: Layer,
    below: StackSpec,
}

#[derive(Debug, Clone)]
enum Layer {
    Raid {
        parameters: RaidParameters,
        member_count: usize,
    },
    Cache(CacheParameters),
    /// A controller in front of an array.
    CachedRaid(CacheParameters, RaidParameters, usize),
}

/// What a completed write is worth when the power fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// It is durable.
    Everything,
    /// It is durable after FLUSH or with FUA.
    Flushed,
    Nothing,
}

fn raid(level: RaidLevel, member_count: usize, missing: &[usize], rebuilding: &[usize]) -> Layer {
    let parameters = RaidParameters {
        chunk_bytes: 8_192,
        missing_members: missing.to_vec(),
        rebuilding_members: rebuilding.to_vec(),
        rebuild_least_bytes_per_s: 100 << 10,
        rebuild_idle_ns: MILLISECOND,
        ..RaidParameters::new(level)
    };
    Layer::Raid { parameters, member_count }
}

/// Small, so that it fills, and works in the background.
fn cache(policy: CachePolicy, battery_out_at_ns: Option<u64>) -> CacheParameters {
    CacheParameters {
        read_cache_bytes: 64 << 10,
        command_interval_ns: 5 * MICROSECOND,
        destage_queue_depth: 3,
        destage_bytes: 24 << 10,
        destage_idle_ns: MILLISECOND,
        battery_out_at_ns,
        battery_back_at_ns: battery_out_at_ns.map(|at_ns| at_ns + 300 * MILLISECOND),
        ..CacheParameters::new(policy, 128 << 10)
    }
}

fn cached_raid() -> Layer {
    let Layer::Raid { parameters, member_count } = raid(RaidLevel::Raid5, 4, &[], &[]) else {
        unreachable!()
    };
    Layer::CachedRaid(cache(CachePolicy::WriteBack, None), parameters, member_count)
}

fn every_layer() -> Vec<Layer> {
    vec![
        Layer::Cache(cache(CachePolicy::WriteBack, None)),
        Layer::Cache(cache(CachePolicy::WriteThrough, None)),
        Layer::Cache(cache(CachePolicy::WriteBack, Some(50 * MILLISECOND))),
        Layer::Cache(cache(CachePolicy::WriteBackAlways, Some(0))),
        cached_raid(),
        raid(RaidLevel::Raid0, 3, &[], &[]),
        raid(RaidLevel::Raid1, 2, &[], &[]),
        raid(RaidLevel::Raid1, 3, &[0], &[2]),
        raid(RaidLevel::Raid5, 4, &[], &[]),
        raid(RaidLevel::Raid5, 4, &[1], &[]),
        raid(RaidLevel::Raid5, 3, &[], &[2]),
        raid(RaidLevel::Raid6, 5, &[], &[]),
        raid(RaidLevel::Raid6, 5, &[0, 3], &[]),
        raid(RaidLevel::Raid6, 4, &[1], &[2]),
        raid(RaidLevel::Raid10, 4, &[], &[]),
        raid(RaidLevel::Raid10, 3, &[1], &[]),
        raid(RaidLevel::Raid10, 4, &[3], &[0]),
    ]
}

fn every_stack() -> Vec<Stack> {
    let below = [
        StackSpec::Device(Parameters::Null),
        disk(WriteCache::Off),
        disk(WriteCache::Volatile),
        flash(WriteCache::Volatile),
        flash(WriteCache::Protected),
    ];
    let stack = |layer: &Layer, below: &StackSpec| Stack { layer: layer.clone(), below: below.clone() };
    every_layer().iter().flat_map(|layer| below.iter().map(move |below| stack(layer, below))).collect()
}

impl Stack {
    fn build(&self, seed: u64) -> Box<dyn Device> {
        let below =
            |index: u64| self.below.build(MEMBER_BYTES, seed.wrapping_add(index)).expect("a valid stack");
        let array = |parameters: &RaidParameters, member_count: usize| {
            let members = (0..member_count as u64).map(below).collect();
            Raid::new(parameters.clone(), members).expect("a valid array")
        };
        let cache = |parameters: &CacheParameters, below| {
            Cache::new(parameters.clone(), below, seed).expect("a valid controller")
        };
        match &self.layer {
            Layer::Raid { parameters, member_count } => Box::new(array(parameters, *member_count)),
            Layer::Cache(parameters) => Box::new(cache(parameters, below(0))),
            Layer::CachedRaid(parameters, raid, member_count) => {
                Box::new(cache(parameters, Box::new(array(raid, *member_count))))
            }
        }
    }

    fn promise(&self) -> Promise {
        match (&self.layer, &self.below) {
            (Layer::Cache(cache) | Layer::CachedRaid(cache, ..), _) => match cache.policy {
                CachePolicy::WriteThrough => Promise::Everything,
                CachePolicy::WriteBack if cache.battery_out_at_ns.is_none() => Promise::Everything,
                // What was dirty when the battery failed is lost if the power fails before it is written back.
                CachePolicy::WriteBack | CachePolicy::WriteBackAlways => Promise::Nothing,
            },
            (_, StackSpec::Device(Parameters::Disk(disk))) if disk.write_cache == WriteCache::Volatile => {
                Promise::Flushed
            }
            (_, StackSpec::Device(Parameters::Flash(flash))) if flash.write_cache == WriteCache::Volatile => {
                Promise::Flushed
            }
            _ => Promise::Everything,
        }
    }
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
    prop::collection::vec(step, 1..80).prop_map(|steps| {
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
            assert_eq!(completion.outcome, Outcome::Success);
            done.push(completion);
        }
        assert!(device.poll_at().is_none_or(|at| at > *now), "poll_at is not after {now:?}");
    }
    *now = until;
}

fn history(stack: &Stack, seed: u64, steps: &[Step]) -> Vec<Completion> {
    let mut device = stack.build(seed);
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

/// What a run up to a power cut left, beside the fates.
#[derive(Default)]
struct Promised {
    /// Completed before the cut.
    acknowledged: Vec<RequestId>,
    /// Promised to be durable: by a flush, by FUA, or because the stack is write-through.
    durable: Vec<RequestId>,
}

fn run_until_cut(
    device: &mut dyn Device,
    promise: Promise,
    steps: &[Step],
    cut_after_ns: u64,
) -> (Instant, Promised) {
    let mut now = Instant::ZERO;
    let mut done = Vec::new();
    let mut covered: BTreeMap<RequestId, Vec<RequestId>> = BTreeMap::new();
    for &(pause_ns, request) in steps {
        let until = now + pause_ns;
        drain(device, &mut now, until, &mut done);
        if request.operation == Operation::Flush {
            covered.insert(request.id, done.iter().map(|completion| completion.id).collect());
        }
        device.submit(now, request);
    }
    let until = now + cut_after_ns;
    drain(device, &mut now, until, &mut done);
    let mut promised = Promised::default();
    for completion in &done {
        promised.acknowledged.push(completion.id);
        if promise == Promise::Nothing {
            continue;
        }
        promised.durable.extend(covered.get(&completion.id).into_iter().flatten());
        if steps[completion.id.0 as usize].1.force_unit_access || promise == Promise::Everything {
            promised.durable.push(completion.id);
        }
    }
    (now, promised)
}

fn check_power_cut(stack: &Stack, seed: u64, steps: &[Step], cut_after_ns: u64) -> Result<(), TestCaseError> {
    let mut device = stack.build(seed);
    let (mut now, promised) = run_until_cut(&mut *device, stack.promise(), steps, cut_after_ns);
    let cut = device.power_cut(now);
    let counters = device.counters();
    prop_assert_eq!((counters.queue_depth, counters.volatile_bytes), (0, 0));
    let mut parts: BTreeMap<RequestId, Vec<(u64, u64)>> = BTreeMap::new();
    for write in &cut.writes {
        let request = steps[write.id.0 as usize].1;
        prop_assert_eq!(request.operation, Operation::Write);
        prop_assert!(write.offset_bytes >= request.offset_bytes, "{:?} of {:?}", write, request);
        prop_assert!(write.offset_bytes + write.size_bytes <= request.end_bytes());
        prop_assert!(!promised.durable.contains(&write.id), "{:?} was durable under {:?}", write, stack);
        prop_assert_eq!(write.acknowledged, promised.acknowledged.contains(&write.id), "{:?}", write);
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

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

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

    /// Members may fail, be replaced and be cut off at any time, and still everything completes once.
    #[test]
    fn an_array_survives_a_member(steps in steps(), fail_at in 0..80_usize, replace_at in 0..80_usize, seed: u64) {
        for (level, count) in [(RaidLevel::Raid1, 2), (RaidLevel::Raid5, 3), (RaidLevel::Raid6, 5), (RaidLevel::Raid10, 4)] {
            let Layer::Raid { parameters, .. } = raid(level, count, &[], &[]) else { unreachable!() };
            let member = |index: u64| disk(WriteCache::Volatile).build(MEMBER_BYTES, seed.wrapping_add(index)).unwrap();
            let mut array = Raid::new(parameters, (0..count as u64).map(member).collect()).unwrap();
            let mut now = Instant::ZERO;
            let mut done = Vec::new();
            for (index, &(pause_ns, request)) in steps.iter().enumerate() {
                let until = now + pause_ns;
                drain(&mut array, &mut now, until, &mut done);
                if index == fail_at {
                    prop_assert!(array.fail_member(now, 1));
                }
                if index == replace_at {
                    // Refused while the member is there, or has requests in flight.
                    let _ = array.replace_member(now, 1, member(99));
                }
                array.submit(now, request);
            }
            drain(&mut array, &mut now, Instant::FAR_FUTURE, &mut done);
            prop_assert_eq!(done.len(), steps.len());
            prop_assert!(!matches!(array.member_state(1), MemberState::Rebuilding { .. }), "the rebuild ended");
        }
    }
}
