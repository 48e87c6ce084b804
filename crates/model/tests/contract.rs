//! The contract of every device with its driver, for random sequences of requests.

mod common;

use common::contract::{Promise, check_histories, lateness, run_until_cut, steps};
use proptest::prelude::*;
use spindle_model::{
    Branch, Device, FlashParameters, Instant, Limit, MICROSECOND, Operation, Parameters, PartitionParameters,
    RaidLevel, RaidParameters, Request, RequestId, StackSpec, ThrottleParameters, WriteCache,
};

const SIZE_BYTES: u64 = 64 << 20;
fn disk(write_cache: WriteCache) -> StackSpec {
    StackSpec::Device(common::disk(write_cache))
}

/// With larger pages than mapping units, and programs that a read may suspend where FLUSH is a command like
/// others.
fn flash(write_cache: WriteCache, flush_blocks_queue: bool) -> StackSpec {
    let Parameters::Flash(flash) = common::flash(write_cache) else { unreachable!("a flash drive") };
    let (suspend_limit, suspend_ns) = (u64::from(!flush_blocks_queue), 20 * MICROSECOND);
    let page_bytes = 8_192;
    StackSpec::Device(Parameters::Flash(FlashParameters {
        page_bytes,
        suspend_limit,
        suspend_ns,
        flush_blocks_queue,
        ..flash
    }))
}

/// With an SLC write cache that a handful of large writes fills: 96 KiB of the emulated size, and as much
/// again while it is empty.
fn flash_with_slc(write_cache: WriteCache) -> StackSpec {
    let Parameters::Flash(flash) = common::flash(write_cache) else { unreachable!("a flash drive") };
    let slc = Some(common::slc(&flash, SIZE_BYTES, 96 << 10));
    StackSpec::Device(Parameters::Flash(FlashParameters { slc, ..flash }))
}

fn partition(stack: StackSpec, size_bytes: u64) -> StackSpec {
    StackSpec::layer(PartitionParameters { offset_bytes: 1 << 20 }, [Branch { size_bytes, stack }])
}

fn raid_1(stack: StackSpec) -> StackSpec {
    let members = vec![Branch { size_bytes: SIZE_BYTES, stack }; 2];
    StackSpec::layer(RaidParameters::new(RaidLevel::Raid1), members)
}

/// A tenth of the rate of the device below.
fn throttle(stack: StackSpec) -> StackSpec {
    let total = Limit { iops: Some(500), bytes_per_s: None };
    let below = Branch { size_bytes: SIZE_BYTES, stack };
    StackSpec::layer(ThrottleParameters { total, ..ThrottleParameters::default() }, [below])
}

fn every_stack() -> Vec<StackSpec> {
    let mut stacks = vec![StackSpec::Device(Parameters::NULL)];
    for write_cache in [WriteCache::Off, WriteCache::Volatile, WriteCache::Protected] {
        stacks.push(disk(write_cache));
        stacks.push(flash(write_cache, true));
        stacks.push(flash(write_cache, false));
        stacks.push(flash_with_slc(write_cache));
    }
    stacks.push(partition(disk(WriteCache::Volatile), 2 * SIZE_BYTES));
    stacks.push(throttle(raid_1(disk(WriteCache::Volatile))));
    stacks.push(raid_1(throttle(flash(WriteCache::Volatile, false))));
    stacks.push(partition(partition(flash(WriteCache::Volatile, true), 4 * SIZE_BYTES), 2 * SIZE_BYTES));
    stacks
}

fn build(stack: &StackSpec, seed: u64) -> Box<dyn Device> {
    stack.build(SIZE_BYTES, seed).expect("a valid stack")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_request_completes_exactly_once_and_one_seed_gives_one_history(steps in steps(1, 120), seed: u64) {
        for stack in every_stack() {
            check_histories(|| build(&stack, seed), &steps, &stack)?;
        }
    }

    #[test]
    fn a_power_cut_spares_what_was_promised(steps in steps(1, 120), lateness in lateness(), cut_after_ns in 0..100_000_000_u64, seed: u64) {
        for stack in every_stack() {
            let mut device = build(&stack, seed);
            let mut aftermath = run_until_cut(&mut *device, &steps, lateness, cut_after_ns);
            prop_assert_eq!(device.poll_at(), None);
            let promise = if stack.has_volatile_cache() { Promise::Flushed } else { Promise::Everything };
            aftermath.check_fates(promise, &steps, &stack)?;
            aftermath.check_power_on(&mut *device, &steps)?;
        }
    }
}

#[test]
fn an_impossible_stack_gives_the_reason() {
    let sentence = |stack: StackSpec, size_bytes: u64| stack.build(size_bytes, 1).err().unwrap().to_string();
    assert_eq!(
        sentence(StackSpec::Device(Parameters::NULL), 1_000),
        "`size` is 1000 B, must be a multiple of 512 B above zero"
    );
    assert_eq!(
        sentence(partition(StackSpec::Device(Parameters::NULL), 2 * SIZE_BYTES), 2 * SIZE_BYTES),
        "`size` is 128 MiB, must be at most what the stack below has room for, 127 MiB"
    );
    assert_eq!(
        sentence(disk(WriteCache::Off), 1 << 41),
        "`size` is 2 TiB, must be at most the drive's capacity, 1 TiB"
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
