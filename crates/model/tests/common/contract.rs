//! The contract of every device and layer with its driver: random requests, a driver that checks while it
//! polls, and the fates that a power cut may leave.

use std::collections::BTreeMap;
use std::fmt::Debug;

use proptest::prelude::*;
use spindle_model::{
    Completion, Counters, Device, Fate, Instant, Operation, Outcome, Request, RequestId, SECTOR_BYTES,
    WriteFate,
};

/// Small, so that requests overlap.
const SPAN_SECTORS: u64 = 2_000;

/// A request and the pause before it, in nanoseconds.
pub(crate) type Step = (u64, Request);

/// Up to `most - 1` requests. `flush_weight` is the weight of FLUSH; reads have five and writes eight.
pub(crate) fn steps(flush_weight: u32, most: usize) -> impl Strategy<Value = Vec<Step>> {
    let operation = prop_oneof![
        5 => Just(Operation::Read),
        8 => Just(Operation::Write),
        flush_weight => Just(Operation::Flush),
        1 => Just(Operation::Discard),
        1 => Just(Operation::WriteZeroes),
    ];
    let pause_ns = prop_oneof![3 => Just(0), 2 => 0..200_000_u64, 1 => 0..50_000_000_u64];
    let size_sectors = prop_oneof![4 => 1..40_u64, 1 => 1..600_u64];
    let step = (pause_ns, operation, 0..SPAN_SECTORS, size_sectors, any::<bool>());
    prop::collection::vec(step, 1..most).prop_map(|steps| {
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

/// Polls up to `until` as a driver does, and checks the guarantees that a driver relies on.
pub(crate) fn drain(device: &mut dyn Device, now: &mut Instant, until: Instant, done: &mut Vec<Completion>) {
    while let Some(at) = device.poll_at().filter(|&at| at <= until) {
        *now = at.max(*now);
        while let Some(completion) = device.poll(*now) {
            assert!(completion.at <= *now, "{completion:?} is in the future of {now:?}");
            done.push(completion);
        }
        assert!(device.poll_at().is_none_or(|at| at > *now), "poll_at is not after {now:?}");
    }
    *now = until;
}

/// As [`drain`], without a stop at each event.
fn drain_at_once(device: &mut dyn Device, now: &mut Instant, until: Instant, done: &mut Vec<Completion>) {
    while let Some(completion) = device.poll_until(*now, until) {
        *now = completion.at.max(*now);
        done.push(completion);
    }
    *now = until;
}

/// The longest time that a request was on its way.
pub(crate) type Lateness = u64;

const IN_TIME: Lateness = 0;
const LATE: Lateness = 300_000;

/// All in time, or some late.
pub(crate) fn lateness() -> impl Strategy<Value = Lateness> {
    prop_oneof![Just(IN_TIME), Just(LATE)]
}

fn submit(device: &mut dyn Device, now: Instant, request: Request, lateness: Lateness) {
    let late_ns = match lateness {
        IN_TIME => 0,
        most_ns => request.id.0 * 7_919_993 % most_ns,
    };
    let sent = Instant(now.0.saturating_sub(late_ns));
    let taken_at = device.submit_late(sent, now, request);
    assert!(
        sent <= taken_at && taken_at <= now,
        "{request:?} sent {sent:?}, taken {taken_at:?}, now {now:?}"
    );
}

/// All completions, and the counters of the device, which is idle afterwards. Late requests may complete
/// before others that were collected earlier.
fn history(
    device: &mut dyn Device,
    steps: &[Step],
    lateness: Lateness,
    drain: impl Fn(&mut dyn Device, &mut Instant, Instant, &mut Vec<Completion>),
) -> (Vec<Completion>, Counters) {
    let mut now = Instant::ZERO;
    let mut done = Vec::new();
    for &(pause_ns, request) in steps {
        let until = now + pause_ns;
        drain(device, &mut now, until, &mut done);
        submit(device, now, request, lateness);
    }
    drain(device, &mut now, Instant::FAR_FUTURE, &mut done);
    let counters = device.counters();
    assert_eq!((counters.queue_depth, counters.volatile_bytes), (0, 0), "{counters:?}");
    (done, counters)
}

/// Every request completes exactly once, punctual ones in order, and one seed gives one history, with each way to poll. `build`
/// makes the same device each time. Returns the history of punctual requests.
pub(crate) fn check_histories(
    build: impl Fn() -> Box<dyn Device>,
    steps: &[Step],
    stack: &dyn Debug,
) -> Result<(Vec<Completion>, Counters), TestCaseError> {
    let check = |lateness| -> Result<(Vec<Completion>, Counters), TestCaseError> {
        let once = || history(&mut *build(), steps, lateness, drain);
        let found = once();
        let mut ids: Vec<u64> = found.0.iter().map(|completion| completion.id.0).collect();
        ids.sort_unstable();
        prop_assert_eq!(ids, (0..steps.len() as u64).collect::<Vec<_>>(), "{:?}", stack);
        prop_assert_eq!(&found, &once(), "{:?}", stack);
        let at_once = history(&mut *build(), steps, lateness, drain_at_once);
        prop_assert_eq!(&found, &at_once, "{:?}", stack);
        Ok(found)
    };
    check(LATE)?;
    let (done, counters) = check(IN_TIME)?;
    prop_assert!(done.is_sorted_by_key(|completion| completion.at), "{:?}: out of order", stack);
    Ok((done, counters))
}

/// What a device promises of a completed write when the power fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Promise {
    /// It is durable.
    Everything,
    /// It is durable after FLUSH or with FUA.
    Flushed,
    Nothing,
}

/// A run that a power cut ended.
pub(crate) struct Aftermath {
    pub(crate) now: Instant,
    /// Completed before the cut.
    pub(crate) done: Vec<Completion>,
    /// The device's own count just before the cut.
    pub(crate) volatile_bytes: u64,
    pub(crate) writes: Vec<WriteFate>,
    /// For each flush, the requests that were complete when it was submitted.
    covered: BTreeMap<RequestId, Vec<RequestId>>,
}

/// Submits everything and cuts the power. Nothing is left in the device.
pub(crate) fn run_until_cut(
    device: &mut dyn Device,
    steps: &[Step],
    lateness: Lateness,
    cut_after_ns: u64,
) -> Aftermath {
    let mut now = Instant::ZERO;
    let mut done = Vec::new();
    let mut covered: BTreeMap<RequestId, Vec<RequestId>> = BTreeMap::new();
    for &(pause_ns, request) in steps {
        let until = now + pause_ns;
        drain(device, &mut now, until, &mut done);
        if request.operation == Operation::Flush {
            covered.insert(request.id, done.iter().map(|completion| completion.id).collect());
        }
        submit(device, now, request, lateness);
    }
    let until = now + cut_after_ns;
    drain(device, &mut now, until, &mut done);
    let volatile_bytes = device.counters().volatile_bytes;
    let writes = device.power_cut(now).writes;
    let counters = device.counters();
    assert_eq!((counters.queue_depth, counters.volatile_bytes), (0, 0), "{counters:?}");
    Aftermath { now, done, volatile_bytes, writes, covered }
}

impl Aftermath {
    /// The requests that a completed flush covers, forced writes, and with [`Promise::Everything`] every
    /// completed request.
    fn durable(&self, promise: Promise, steps: &[Step]) -> Vec<RequestId> {
        let mut durable = Vec::new();
        if promise == Promise::Nothing {
            return durable;
        }
        for completion in self.done.iter().filter(|completion| completion.outcome == Outcome::Success) {
            durable.extend(self.covered.get(&completion.id).into_iter().flatten());
            let is_forced = steps[completion.id.0 as usize].1.force_unit_access;
            if is_forced || promise == Promise::Everything {
                durable.push(completion.id);
            }
        }
        durable
    }

    /// The fates are of parts of the requests, in order. No request among them was promised to be durable.
    pub(crate) fn check_fates(
        &self,
        promise: Promise,
        steps: &[Step],
        stack: &dyn Debug,
    ) -> Result<(), TestCaseError> {
        let durable = self.durable(promise, steps);
        let mut parts: BTreeMap<RequestId, Vec<(u64, u64)>> = BTreeMap::new();
        for write in &self.writes {
            let request = steps[write.id.0 as usize].1;
            prop_assert_eq!(request.operation, Operation::Write);
            prop_assert!(write.size_bytes > 0 && write.offset_bytes >= request.offset_bytes);
            prop_assert!(write.offset_bytes + write.size_bytes <= request.end_bytes());
            prop_assert!(!durable.contains(&write.id), "{:?} was durable under {:?}", write, stack);
            let was_told = self.done.iter().any(|completion| completion.id == write.id);
            prop_assert_eq!(write.acknowledged, was_told, "{:?}: {:?}", stack, write);
            if let Fate::Torn { kept_bytes } = write.fate {
                prop_assert!(kept_bytes > 0 && kept_bytes < write.size_bytes);
                prop_assert!(kept_bytes.is_multiple_of(SECTOR_BYTES));
            }
            let part = (write.offset_bytes, write.offset_bytes + write.size_bytes);
            parts.entry(write.id).or_default().push(part);
        }
        let is_sorted = self.writes.is_sorted_by_key(|write| write.id);
        prop_assert!(is_sorted, "{:?}: not in the order of submission", stack);
        for (id, mut parts) in parts {
            parts.sort_unstable();
            let are_apart = parts.windows(2).all(|pair| pair[0].1 <= pair[1].0);
            prop_assert!(are_apart, "{:?}: {:?} in overlapping parts", stack, id);
        }
        Ok(())
    }

    /// After power-on the device works again, and completes only later requests.
    pub(crate) fn check_power_on(
        &mut self,
        device: &mut dyn Device,
        steps: &[Step],
    ) -> Result<Vec<Completion>, TestCaseError> {
        let again = Request { id: RequestId(1_000_000), ..steps[0].1 };
        device.submit(self.now, again);
        let mut after = Vec::new();
        drain(device, &mut self.now, Instant::FAR_FUTURE, &mut after);
        prop_assert_eq!(after.iter().map(|done| done.id.0).collect::<Vec<_>>(), [1_000_000]);
        Ok(after)
    }
}
