//! A long run of random requests, summed up in hashes of the times of all answers. A faster model must give
//! the same hashes.

use spindle_model::{
    Counters, Device, Fate, Instant, MICROSECOND, MILLISECOND, Operation, Outcome, Request, RequestId, Rng,
    WriteFate,
};

/// How the requests are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Script {
    pub(crate) request_count: u64,
    pub(crate) most_in_flight: u64,
    /// Nanoseconds before the next request.
    pub(crate) pause_ns: fn(&mut Rng) -> u64,
}

/// The results of a run.
#[derive(Debug)]
pub(crate) struct History {
    /// Hash of every completion, and of the places of the writes that power cuts endangered.
    pub(crate) sum: u64,
    /// Hash of the fates of writes in power cuts.
    pub(crate) fates: u64,
    pub(crate) counters: Counters,
}

const SEED: u64 = 3;
const POWER_CUTS: u64 = 4;
const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, over numbers.
fn hash(hash: u64, number: u64) -> u64 {
    (hash ^ number).wrapping_mul(0x0000_0100_0000_01b3)
}

fn hash_fate(sum: u64, write: &WriteFate) -> u64 {
    let kept_bytes = match write.fate {
        Fate::Kept => write.size_bytes,
        Fate::Lost => 0,
        Fate::Torn { kept_bytes } => kept_bytes,
    };
    let numbers =
        [write.id.0, write.offset_bytes, write.size_bytes, u64::from(write.acknowledged), kept_bytes];
    numbers.into_iter().fold(sum, hash)
}

/// Collects the completions until `now`. Returns their number.
fn collect(device: &mut dyn Device, now: Instant, history: &mut History) -> u64 {
    let mut count = 0;
    while let Some(completion) = device.poll(now) {
        history.sum = hash(hash(history.sum, completion.id.0), completion.at.0);
        if completion.outcome == Outcome::Failure {
            history.sum = hash(history.sum, 1);
        }
        count += 1;
    }
    count
}

/// Submits the requests, cuts the power some times meanwhile, and waits for the rest.
pub(crate) fn history(
    device: &mut dyn Device,
    script: Script,
    mut request: impl FnMut(u64, &mut Rng) -> Request,
) -> History {
    let mut rng = Rng::new(SEED);
    let mut history = History { sum: EMPTY, fates: EMPTY, counters: Counters::default() };
    let mut now = Instant::ZERO;
    let mut in_flight = 0;
    for number in 0..script.request_count {
        let until = now + (script.pause_ns)(&mut rng);
        while let Some(at) = device.poll_at().filter(|&at| at <= until || in_flight == script.most_in_flight)
        {
            now = now.max(at);
            in_flight -= collect(device, now, &mut history);
        }
        now = now.max(until);
        device.submit(now, request(number, &mut rng));
        in_flight += 1;
        let turn = script.request_count / POWER_CUTS;
        if number % turn == turn / 2 {
            let writes = device.power_cut(now).writes;
            history.sum =
                writes.iter().fold(history.sum, |sum, write| hash(hash(sum, write.id.0), write.offset_bytes));
            history.fates = writes.iter().fold(history.fates, hash_fate);
            in_flight = 0;
        }
    }
    while let Some(at) = device.poll_at() {
        now = now.max(at);
        collect(device, now, &mut history);
    }
    history.counters = device.counters();
    history
}

/// The results of a layer under a mix of all requests on its first 2 MiB, as one hash.
pub(crate) fn of_layer(device: &mut dyn Device) -> u64 {
    let script = Script { request_count: 1_600, most_in_flight: 24, pause_ns: mixed_pause_ns };
    let History { sum, fates, counters } = history(device, script, mixed_request);
    [fates, counters.seeks, counters.nand_write_bytes].into_iter().fold(sum, hash)
}

fn mixed_pause_ns(rng: &mut Rng) -> u64 {
    match rng.below(400) {
        // Long enough for work in the background.
        0 => 100 * MILLISECOND,
        1..150 => rng.below(300 * MICROSECOND),
        _ => 0,
    }
}

fn mixed_request(number: u64, rng: &mut Rng) -> Request {
    const SPAN_SECTORS: u64 = 4_096;
    let operation = match rng.below(100) {
        0..42 => Operation::Read,
        42..92 => Operation::Write,
        92..96 => Operation::Flush,
        96..98 => Operation::Discard,
        _ => Operation::WriteZeroes,
    };
    let (offset, sectors) = match rng.below(10) {
        _ if operation == Operation::Flush => (0, 0),
        0 => (rng.below(SPAN_SECTORS - 300), 1 + rng.below(300)),
        1..4 => (rng.below(SPAN_SECTORS - 16), 1 + rng.below(16)),
        // Continues where an earlier request may have ended.
        4 => (number % 64 * 32, 32),
        _ => (rng.below(SPAN_SECTORS / 8) * 8, 8),
    };
    Request {
        id: RequestId(number),
        operation,
        offset_bytes: offset * 512,
        size_bytes: sectors * 512,
        force_unit_access: operation == Operation::Write && rng.below(20) == 0,
    }
}
