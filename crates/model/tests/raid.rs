//! The contract of arrays and controllers with their driver, over devices with and without volatile caches,
//! for random sequences of requests.

mod common;

use common::contract::{Promise, Step, check_histories, drain, lateness, run_until_cut, steps};
use proptest::prelude::*;
use spindle_model::{
    Cache, CacheParameters, CachePolicy, Completion, Device, FlashParameters, Instant, MICROSECOND,
    MILLISECOND, MemberState, Operation, Outcome, Parameters, Raid, RaidLevel, RaidParameters, Request,
    Resync, StackSpec, WriteCache,
};

const MEMBER_BYTES: u64 = 4 << 20;

fn disk(write_cache: WriteCache) -> StackSpec {
    StackSpec::Device(common::disk(write_cache))
}

fn flash(write_cache: WriteCache) -> StackSpec {
    let Parameters::Flash(flash) = common::flash(write_cache) else { unreachable!("a flash drive") };
    StackSpec::Device(Parameters::Flash(FlashParameters { flush_blocks_queue: false, ..flash }))
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

fn resyncing(level: RaidLevel, member_count: usize, missing: &[usize], resync: Resync) -> Layer {
    let Layer::Raid { parameters, .. } = raid(level, member_count, missing, &[]) else { unreachable!() };
    Layer::Raid { parameters: RaidParameters { resync, ..parameters }, member_count }
}

/// Where the host takes time for every request and sends writes by one thread.
fn hosted(level: RaidLevel, member_count: usize, missing: &[usize], rebuilding: &[usize]) -> Layer {
    let Layer::Raid { parameters, .. } = raid(level, member_count, missing, rebuilding) else {
        unreachable!()
    };
    let parameters =
        RaidParameters { host_latency_ns: 300 * MICROSECOND, host_write_ns: 700 * MICROSECOND, ..parameters };
    Layer::Raid { parameters, member_count }
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
        hosted(RaidLevel::Raid1, 3, &[0], &[2]),
        hosted(RaidLevel::Raid10, 4, &[], &[]),
        hosted(RaidLevel::Raid10, 3, &[1], &[]),
        resyncing(RaidLevel::Raid1, 3, &[0], Resync::Whole),
        resyncing(RaidLevel::Raid5, 4, &[], Resync::Bitmap { region_bytes: 16_384 }),
        resyncing(RaidLevel::Raid6, 5, &[1], Resync::Whole),
        resyncing(RaidLevel::Raid10, 3, &[], Resync::Bitmap { region_bytes: 65_536 }),
    ]
}

fn every_stack() -> Vec<Stack> {
    let below = [
        StackSpec::Device(Parameters::NULL),
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
                // What was dirty when the battery failed is lost if the power fails before it is written
                // back.
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

/// Controllers that read ahead, by stripes that a few requests fill.
fn reading_ahead() -> Vec<Stack> {
    let ahead = |policy| CacheParameters { read_ahead_bytes: 16 << 10, ..cache(policy, None) };
    let Layer::Raid { parameters, .. } = raid(RaidLevel::Raid10, 4, &[], &[]) else { unreachable!() };
    let layers = [
        Layer::Cache(ahead(CachePolicy::WriteBack)),
        Layer::Cache(ahead(CachePolicy::WriteThrough)),
        Layer::CachedRaid(ahead(CachePolicy::WriteBack), parameters, 4),
    ];
    let below = [disk(WriteCache::Off), flash(WriteCache::Volatile)];
    let stack = |layer: &Layer, below: &StackSpec| Stack { layer: layer.clone(), below: below.clone() };
    layers.iter().flat_map(|layer| below.iter().map(move |below| stack(layer, below))).collect()
}

/// The same with reads of at most 8 KiB, each from where the one before ended.
fn reading_on(steps: &[Step]) -> Vec<Step> {
    let mut end_bytes = 0;
    let on = |&(pause_ns, request): &Step| {
        if request.operation != Operation::Read {
            return (pause_ns, request);
        }
        let request = Request {
            offset_bytes: end_bytes % (MEMBER_BYTES / 2),
            size_bytes: request.size_bytes.min(8_192),
            ..request
        };
        end_bytes = request.end_bytes();
        (pause_ns, request)
    };
    steps.iter().map(on).collect()
}

fn all_succeed(done: &[Completion]) -> bool {
    done.iter().all(|completion| completion.outcome == Outcome::Success)
}

/// A simpler or faster array or controller must give the same hashes. A change that is meant to change
/// results says so in CHANGELOG.md, and puts its hashes here.
#[test]
fn the_timing_of_every_array_and_controller_is_unchanged() {
    let mut stacks = every_stack();
    stacks.extend(reading_ahead());
    let sums: Vec<u64> = stacks.iter().map(|stack| common::history::of_layer(&mut *stack.build(1))).collect();
    // One number for a layer over each kind of device.
    let found: Vec<u64> =
        sums.chunks(5).map(|sums| sums.iter().fold(0_u64, |sum, one| sum.rotate_left(7) ^ one)).collect();
    let expect = [
        0x4af2_8223_cf8c_9a91,
        0x1d72_774d_2e76_7824,
        0x75cc_d5c5_dbf8_5bd9,
        0x346e_5a4d_df7c_5595,
        0xc4c7_0558_be62_d1da,
        0x8c87_b96f_f64c_0f26,
        0x111f_c381_1ccc_a2ef,
        0x4708_bc1e_9735_0e8e,
        0x57d3_dc08_e2bf_96e4,
        0x144a_a95c_329f_7c06,
        0x08dd_b113_17d5_5117,
        0x0505_04c5_4f7f_372d,
        0xc26d_1ae7_76f2_80a4,
        0x8d93_6023_17de_6744,
        0xd852_8ac9_b768_d045,
        0xf4ed_d882_61a9_0794,
        0x5852_f6ac_fb3f_d7b4,
        0xf177_3095_010d_ade7,
        0x66ee_5fbd_6ce5_a0e5,
        0xfd5d_14a3_8e55_0487,
        0x9381_b72c_f7ca_1c4f,
        0x9d57_b3d8_e148_d1c0,
        0x6ee6_67dd_2e21_5932,
        0xf23c_c44e_1dac_3a64,
        0xfea8_f874_a2fd_e4c3,
        0xe989_92b9_01e0_e611,
    ];
    assert_eq!(found, expect);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_completes_exactly_once_and_one_seed_gives_one_history(steps in steps(1, 80), seed: u64) {
        for stack in every_stack() {
            let (done, _) = check_histories(|| stack.build(seed), &steps, &stack)?;
            prop_assert!(all_succeed(&done), "{:?}", stack);
        }
    }

    #[test]
    fn a_power_cut_spares_what_was_promised(steps in steps(1, 80), lateness in lateness(), cut_after_ns in 0..100_000_000_u64, seed: u64) {
        for stack in every_stack() {
            let mut device = stack.build(seed);
            let mut aftermath = run_until_cut(&mut *device, &steps, lateness, cut_after_ns);
            prop_assert!(all_succeed(&aftermath.done), "{:?}", stack);
            aftermath.check_fates(stack.promise(), &steps, &stack)?;
            let after = aftermath.check_power_on(&mut *device, &steps)?;
            prop_assert!(all_succeed(&after), "{:?}", stack);
        }
    }

    #[test]
    fn a_controller_that_reads_ahead_keeps_the_contract(steps in steps(1, 80), lateness in lateness(), cut_after_ns in 0..20_000_000_u64, seed: u64) {
        let steps = reading_on(&steps);
        for stack in reading_ahead() {
            let (done, _) = check_histories(|| stack.build(seed), &steps, &stack)?;
            prop_assert!(all_succeed(&done), "{:?}", stack);
            let mut device = stack.build(seed);
            let mut aftermath = run_until_cut(&mut *device, &steps, lateness, cut_after_ns);
            aftermath.check_fates(stack.promise(), &steps, &stack)?;
            let after = aftermath.check_power_on(&mut *device, &steps)?;
            prop_assert!(all_succeed(&after), "{:?}", stack);
        }
    }

    /// Every request completes once, also when members fail, are replaced or are cut off.
    #[test]
    fn an_array_survives_a_member(steps in steps(1, 80), fail_at in 0..80_usize, replace_at in 0..80_usize, seed: u64) {
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
            prop_assert!(all_succeed(&done));
            prop_assert!(!matches!(array.member_state(1), MemberState::Rebuilding { .. }), "the rebuild ended");
        }
    }
}
