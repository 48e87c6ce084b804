//! The contract of every layer with its driver, over every kind of device, for random sequences of requests.

mod common;

use std::fmt;

use common::contract::{Promise, check_histories, lateness, run_until_cut, steps};
use common::{device, disk, flash};
use proptest::prelude::*;
use spindle_model::{
    Congestion, Device, Dying, Fault, FaultParameters, IntentLog, IntentLogParameters, LatencyQuantiles,
    Limit, MICROSECOND, MILLISECOND, Operation, Outage, Promotion, Protocol, ReadErrors, Replicated,
    ReplicatedParameters, SECOND, Spikes, SsdCache, SsdCacheParameters, Stalls, Stuck, Survivor, Throttle,
    ThrottleParameters, Volume, VolumeParameters, WriteCache, WritePolicy,
};

const SIZE_BYTES: u64 = 64 << 20;

fn volume(seed: u64) -> Box<dyn Device> {
    let latency = LatencyQuantiles {
        minimum_ns: 200_000,
        median_ns: 500_000,
        p99_ns: 2 * MILLISECOND,
        p999_ns: 20 * MILLISECOND,
    };
    let parameters = VolumeParameters {
        capacity_bytes: 100 << 30,
        iops_per_gib: 3,
        iops_minimum: 100,
        iops_maximum: 16_000,
        burst_iops: 3_000,
        burst_credits: 50,
        bytes_per_s: 128 << 20,
        burst_bytes_per_s: 0,
        burst_credit_bytes: 0,
        initial_credit_percent: 100,
        window_ns: MILLISECOND,
        operation_bytes: 256 << 10,
        merges_sequential: true,
        link_bytes_per_s: 500_000_000,
        read_latency: latency,
        write_latency: latency,
        flush_ns: 200_000,
    };
    Box::new(Volume::new(parameters, SIZE_BYTES, seed).expect("a valid volume"))
}

fn throttle(below: Box<dyn Device>) -> Box<dyn Device> {
    let parameters = ThrottleParameters {
        read: Limit { iops: Some(2_000), bytes_per_s: None },
        write: Limit { iops: None, bytes_per_s: Some(20_000_000) },
        total: Limit { iops: Some(2_500), bytes_per_s: Some(30_000_000) },
        burst_ns: 10 * MILLISECOND,
    };
    Box::new(Throttle::new(parameters, below).expect("a valid throttle"))
}

fn fault(lying: bool, seed: u64, below: Box<dyn Device>) -> Box<dyn Device> {
    let parameters = FaultParameters {
        spikes: Some(Spikes { per_million: 100_000, extra_ns: 30 * MILLISECOND }),
        stalls: Some(Stalls { period_ns: 50 * MILLISECOND, duration_ns: 10 * MILLISECOND }),
        stuck: Some(Stuck { after_requests: 5, duration_ns: Some(SECOND) }),
        read_errors: ReadErrors {
            ranges: vec![(4_096, 8_192)],
            per_million: 50_000,
            recovery_ns: 7 * MILLISECOND,
        },
        dying: Some(Dying { starts_at_ns: 1, extra_ns_per_s: 1_000, extra_ns_per_read: 100 }),
        lying_flush_ns: lying.then_some(100),
    };
    Box::new(Fault::new(parameters, seed, below).expect("valid faults"))
}

/// With a link that is too slow for the load and slower for a while.
fn link(protocol: Protocol, survivor: Survivor, outages: Vec<Outage>) -> ReplicatedParameters {
    ReplicatedParameters {
        protocol,
        bytes_per_s: 20_000_000,
        round_trip_ns: 300_000,
        jitter_ns: 200_000,
        send_buffer_bytes: 128 << 10,
        outages,
        congestions: vec![Congestion {
            starts_at_ns: 5 * MILLISECOND,
            duration_ns: 100 * MILLISECOND,
            bytes_per_s: 5_000_000,
        }],
        timeout_ns: 20 * MILLISECOND,
        resync_bytes_per_s: 2_000_000,
        active_extents: 0,
        extent_bytes: 4 << 20,
        survivor,
    }
}

/// Down three times, twice for longer than the timeout.
fn outages() -> Vec<Outage> {
    let outage = |starts_at_ms: u64, duration_ms: u64| Outage {
        starts_at_ns: starts_at_ms * MILLISECOND,
        duration_ns: duration_ms * MILLISECOND,
    };
    vec![outage(20, 10), outage(60, 40), outage(400, 100)]
}

fn replicated(parameters: ReplicatedParameters, seed: u64, local: Box<dyn Device>) -> Box<dyn Device> {
    let peer = device(flash(WriteCache::Volatile), SIZE_BYTES, seed ^ 1);
    Box::new(Replicated::new(parameters, seed, local, peer).expect("a valid replicated device"))
}

/// A cache smaller than the span, drained all the time, so that everything happens.
fn ssd_cache(write_policy: WritePolicy, fast: Box<dyn Device>, slow: Box<dyn Device>) -> Box<dyn Device> {
    let parameters = SsdCacheParameters {
        block_bytes: 16 << 10,
        cache_bytes: Some(512 << 10),
        write_policy,
        promotion: Promotion::AtRate { bytes_per_s: 4 << 20 },
        sequential_cutoff_bytes: 256 << 10,
        writeback_percent: 10,
        writeback_bytes_per_s: 4 << 20,
        dirty_limit_percent: 70,
        keeps_clean_blocks: true,
    };
    Box::new(SsdCache::new(parameters, fast, slow).expect("a valid SSD cache"))
}

/// A log that fills up, and groups that close early.
fn intent_log(fast: Box<dyn Device>, slow: Box<dyn Device>) -> Box<dyn Device> {
    let parameters = IntentLogParameters {
        log_bytes: Some(1 << 20),
        record_header_bytes: 192,
        log_block_bytes: 4 << 10,
        memory_ns: MICROSECOND,
        group_interval_ns: 30 * MILLISECOND,
        group_bytes: 768 << 10,
        dirty_limit_bytes: 1 << 20,
        pool_queue_depth: 10,
    };
    Box::new(IntentLog::new(parameters, fast, slow).expect("a valid log"))
}

/// A stack under test, and its promises.
struct Stack {
    name: &'static str,
    build: Box<dyn Fn(u64) -> Box<dyn Device>>,
    /// Every completed write is durable.
    is_write_through: bool,
    /// Writes may be lost that a FLUSH or FUA covered.
    lies: bool,
    /// Its volatile bytes are data of the host alone, so a power cut must name all of them.
    counts_host_data: bool,
}

fn stack(name: &'static str, build: impl Fn(u64) -> Box<dyn Device> + 'static) -> Stack {
    Stack { name, build: Box::new(build), is_write_through: false, lies: false, counts_host_data: true }
}

fn every_stack() -> Vec<Stack> {
    let volatile_disk = |seed| device(disk(WriteCache::Volatile), SIZE_BYTES, seed);
    let volatile_flash = |seed| device(flash(WriteCache::Volatile), SIZE_BYTES, seed);
    let local = |protocol| link(protocol, Survivor::Local, outages());
    let peer = |protocol| link(protocol, Survivor::Peer, Vec::new());
    // Fewer than the writes are spread over.
    let logged = |of_link| ReplicatedParameters { active_extents: 3, extent_bytes: 64 << 10, ..of_link };
    vec![
        Stack { is_write_through: true, ..stack("volume", volume) },
        Stack { is_write_through: true, ..stack("throttled volume", |seed| throttle(volume(seed))) },
        stack("throttled disk", move |seed| throttle(volatile_disk(seed))),
        stack("throttled flash", move |seed| throttle(volatile_flash(seed))),
        stack("faulty disk", move |seed| fault(false, seed, volatile_disk(seed))),
        stack("faulty throttled flash", move |seed| fault(false, seed, throttle(volatile_flash(seed)))),
        stack("replicated A", move |seed| replicated(local(Protocol::A), seed, volatile_disk(seed))),
        stack("replicated B", move |seed| replicated(local(Protocol::B), seed, volatile_flash(seed))),
        stack("replicated C", move |seed| replicated(local(Protocol::C), seed, volatile_disk(seed))),
        // A note that is on its way counts too.
        Stack {
            counts_host_data: false,
            ..stack("replicated B with an activity log", move |seed| {
                replicated(logged(local(Protocol::B)), seed, volatile_flash(seed))
            })
        },
        // The peer keeps its power, whatever is volatile on this side.
        Stack {
            is_write_through: true,
            counts_host_data: false,
            ..stack("fail-over B", move |seed| replicated(peer(Protocol::B), seed, volatile_disk(seed)))
        },
        Stack {
            is_write_through: true,
            counts_host_data: false,
            ..stack("fail-over C", move |seed| replicated(peer(Protocol::C), seed, volatile_disk(seed)))
        },
        // What is acknowledged while the link is down is not on the peer.
        Stack {
            lies: true,
            counts_host_data: false,
            ..stack("fail-over C, link down", move |seed| {
                replicated(link(Protocol::C, Survivor::Peer, outages()), seed, volatile_disk(seed))
            })
        },
        // Copies on their way in and out of a cache are volatile too, and no loss.
        Stack {
            counts_host_data: false,
            ..stack("write-back", move |seed| {
                ssd_cache(WritePolicy::Back, volatile_flash(seed), volatile_disk(seed))
            })
        },
        // The other way round, the fast device is the last to finish a FLUSH.
        Stack {
            counts_host_data: false,
            ..stack("write-back to a disk", move |seed| {
                ssd_cache(WritePolicy::Back, volatile_disk(seed), volatile_flash(seed))
            })
        },
        Stack {
            is_write_through: true,
            ..stack("write-back, nothing volatile", move |seed| {
                let fast = device(flash(WriteCache::Protected), SIZE_BYTES, seed);
                ssd_cache(WritePolicy::Back, fast, device(disk(WriteCache::Off), SIZE_BYTES, seed))
            })
        },
        stack("write-through", move |seed| {
            let fast = device(flash(WriteCache::Protected), SIZE_BYTES, seed);
            ssd_cache(WritePolicy::Through, fast, volatile_disk(seed))
        }),
        stack("write-around", move |seed| {
            let fast = device(flash(WriteCache::Protected), SIZE_BYTES, seed);
            ssd_cache(WritePolicy::Around, fast, volatile_disk(seed))
        }),
        // A write to the log may be of data that a group has made durable meanwhile.
        Stack {
            counts_host_data: false,
            ..stack("intent log", move |seed| intent_log(volatile_flash(seed), volatile_disk(seed)))
        },
        Stack {
            counts_host_data: false,
            ..stack("intent log on a disk", move |seed| intent_log(volatile_disk(seed), volatile_flash(seed)))
        },
        Stack {
            counts_host_data: false,
            ..stack("intent log before a cache", move |seed| {
                let pool = ssd_cache(WritePolicy::Around, volatile_flash(seed), volatile_disk(seed));
                intent_log(throttle(volatile_flash(seed ^ 1)), pool)
            })
        },
        Stack {
            counts_host_data: false,
            ..stack("replicated write-back", move |seed| {
                let local = ssd_cache(WritePolicy::Back, volatile_flash(seed), volatile_disk(seed));
                replicated(link(Protocol::C, Survivor::Local, outages()), seed, local)
            })
        },
        Stack { lies: true, ..stack("lying disk", move |seed| fault(true, seed, volatile_disk(seed))) },
    ]
}

/// Right after the last request, when buffers are full, or later, when the slow devices are still at work.
fn cut_after_ns() -> impl Strategy<Value = u64> {
    prop_oneof![2 => 0..1_000_000_u64, 1 => 0..20_000_000_u64, 1 => 0..200_000_000_u64]
}

impl Stack {
    fn promise(&self) -> Promise {
        match (self.lies, self.is_write_through) {
            (true, _) => Promise::Nothing,
            (false, true) => Promise::Everything,
            (false, false) => Promise::Flushed,
        }
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// A simpler or faster layer must give the same hashes. A change that is meant to change results says so in
/// CHANGELOG.md, and puts its hashes here.
#[test]
fn the_timing_of_every_layer_is_unchanged() {
    let found = every_stack()
        .into_iter()
        .map(|stack| (stack.name, common::history::of_layer(&mut *(stack.build)(1))));
    let expect = [
        ("volume", 0xdd1b_4c26_b7cd_4444),
        ("throttled volume", 0x9171_c0a7_b494_0ce9),
        ("throttled disk", 0x5d49_b1a3_8221_8aaf),
        ("throttled flash", 0x850f_6ae3_5df8_7edd),
        ("faulty disk", 0x7702_43fe_4d13_9f09),
        ("faulty throttled flash", 0xe0a2_dc08_51be_ee73),
        ("replicated A", 0xad95_d9fe_dedd_dc34),
        ("replicated B", 0x72e7_9742_c6ab_48d6),
        ("replicated C", 0xd057_5c75_1510_481f),
        ("replicated B with an activity log", 0x47d1_2b7b_43fb_4054),
        ("fail-over B", 0x9ef9_1538_9971_a41d),
        ("fail-over C", 0x98a2_a4c1_be0e_27b1),
        ("fail-over C, link down", 0x33d1_4849_a16a_788c),
        ("write-back", 0x2a9c_15ee_9f8e_793b),
        ("write-back to a disk", 0xc9f5_747b_fbc3_8cf2),
        ("write-back, nothing volatile", 0x86d4_f8cd_9ff5_f433),
        ("write-through", 0x14cd_51f2_ca81_72a2),
        ("write-around", 0x3a14_17f5_bf62_7a7e),
        ("intent log", 0x97f0_b986_09ed_2b92),
        ("intent log on a disk", 0xc3a4_0090_aee1_958a),
        ("intent log before a cache", 0x60ff_8ba1_3e6c_df3b),
        ("replicated write-back", 0xb772_38ba_e182_85c5),
        ("lying disk", 0x8b2c_1b01_87cc_3a44),
    ];
    assert_eq!(found.collect::<Vec<_>>(), expect);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_completes_exactly_once_and_one_seed_gives_one_history(steps in steps(2, 120), seed: u64) {
        for stack in every_stack() {
            let (_, counters) = check_histories(|| (stack.build)(seed), &steps, &stack)?;
            let of = |operation| steps.iter().filter(|(_, request)| request.operation == operation).count() as u64;
            let sent = (of(Operation::Read), of(Operation::Write), of(Operation::Flush));
            prop_assert_eq!((counters.reads, counters.writes, counters.flushes), sent, "{:?}", stack);
        }
    }

    #[test]
    fn a_power_cut_spares_what_was_promised(steps in steps(2, 120), lateness in lateness(), cut_after_ns in cut_after_ns(), seed: u64) {
        for stack in every_stack() {
            let mut device = (stack.build)(seed);
            let mut aftermath = run_until_cut(&mut *device, &steps, lateness, cut_after_ns);
            if stack.counts_host_data {
                let named_bytes: u64 = aftermath.writes.iter().map(|write| write.size_bytes).sum();
                prop_assert!(
                    named_bytes >= aftermath.volatile_bytes,
                    "{:?}: {} of {}", stack, named_bytes, aftermath.volatile_bytes
                );
            }
            aftermath.check_fates(stack.promise(), &steps, &stack)?;
            aftermath.check_power_on(&mut *device, &steps)?;
        }
    }
}
