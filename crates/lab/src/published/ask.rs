//! Asks a model in virtual time for a published figure, under the conditions of the figure.
//!
//! Each figure has its own device. Disks keep their whole capacity, so that a part of the disk is the same
//! part of the stroke as in the original measurement. Flash is scaled down, because filling the map of a
//! large drive takes long. Dies, rates, buffers and the share of spare capacity stay those of the drive, and
//! the measured part shrinks with the drive.

use spindle_model::{
    Ageing, Branch, ClosedLoop, Completion, Device, Driver, Instant, Invalid, Measured, Operation as Command,
    Order, Parameters, PartitionParameters, Request, RequestId, Rng, StackSpec as Tree, Stroke, VirtualTime,
    WriteCache,
};

use super::figure::{Cache, Figure, Operation, State, Zone};
use super::unit::Sample;
use crate::bench::raw::{FILL_NS, REQUEST_COUNT, SEQUENTIAL_COUNT, TIME_LIMIT_NS, latencies_us};
use crate::stack::StackSpec;
use spindle_base::units::{format_size_bytes, parse_duration_ns, parse_size_bytes};

/// Before they are counted, writes fill at most the size of a fresh drive divided by this, so that a small
/// drive stays fresh. SLC caches are smaller than that.
const FILL_SHARE: u64 = 4;
/// Size of each flash drive that is preconditioned. It has at least [`STATE_SUPERBLOCKS`] superblocks (one
/// block of every die).
const STATE_BYTES: u64 = 4_000_000_000;
const STATE_SUPERBLOCKS: u64 = 20;
/// Overwrites of a part of a drive until it reaches a steady state. A small part of a full drive needs more,
/// because the spare space is larger than the part and is used up first.
const TURNS: u64 = 4;
const TURNS_SMALL: u64 = 8;
const FLUSH_ROUNDS: u64 = 50;
/// A whole surface is sampled in this many stretches.
const STRETCHES: u64 = 32;
const STRETCH_BYTES: u64 = 64 << 20;
/// Block size of the writes before a read in the state [`State::JustWritten`].
const WRITE_BYTES: u64 = 128 << 10;
const WRITE_DEPTH: u64 = 4;

/// The figure's quantity, in its unit, for the stack that represents the figure's profile.
///
/// # Errors
/// One sentence why this stack lacks the quantity.
pub(super) fn ask(figure: &Figure, stack: &StackSpec, seed: u64) -> Result<f64, String> {
    let value = Asked::new(figure, stack, seed)?.value(figure)?;
    let Some(other) = figure.denominator() else { return Ok(value) };
    let own = if other.profile == figure.profile { stack } else { &built_in(&other.profile)? };
    Ok(value / Asked::new(&other, own, seed)?.value(&other)?)
}

pub(super) fn built_in(profile: &str) -> Result<StackSpec, String> {
    StackSpec::of_name(profile, None, "none").map_err(|mistake| mistake.to_string())
}

/// A device in the state of a figure, and the size of the used part.
struct Asked {
    driver: VirtualTime<Box<dyn Device>>,
    span_bytes: u64,
    seed: u64,
}

impl Asked {
    fn new(figure: &Figure, stack: &StackSpec, seed: u64) -> Result<Asked, String> {
        let natural_bytes = stack.natural_bytes();
        let stack = sized(figure, stack, natural_bytes)?;
        let device_bytes = stack.size_bytes();
        let of_invalid = |invalid: Invalid| format!("{}: {}", invalid.key, invalid.problem);
        let (tree, device_bytes) = partition(figure, with_cache(stack.tree(), figure.cache)?, device_bytes);
        let device = tree.build(device_bytes, seed).map_err(of_invalid)?;
        let size_bytes = |size: &String| parse_size_bytes(size).expect("checked when the file was read");
        let used_bytes = figure.size.as_ref().map_or(natural_bytes, size_bytes);
        if used_bytes > natural_bytes {
            return Err(format!(
                "size: is {}, and the device has {}",
                format_size_bytes(used_bytes),
                format_size_bytes(natural_bytes)
            ));
        }
        let share = used_bytes as f64 / natural_bytes as f64;
        let span_bytes = ((device_bytes as f64 * share) as u64).min(device_bytes);
        if span_bytes < figure.block_bytes() {
            return Err("the device is too small for one request".to_owned());
        }
        let mut asked = Asked { driver: VirtualTime::new(device), span_bytes, seed };
        asked.bring_into(figure);
        Ok(asked)
    }

    fn value(&mut self, figure: &Figure) -> Result<f64, String> {
        let sample = match figure.operation {
            Operation::Flush => self.flushes(figure),
            _ if figure.beside.is_some() => self.reads_beside_commits(figure),
            operation if operation.is_sequential() && figure.zone.is_some() => self.stretches(figure),
            _ => self.requests(figure),
        };
        figure
            .unit
            .of_sample(&sample)
            .ok_or_else(|| "no request completed in the time of the figure".to_owned())
    }

    fn workload(&self, figure: &Figure) -> ClosedLoop {
        let read_percent = match figure.operation {
            Operation::RandomRead | Operation::SequentialRead => 100,
            Operation::RandomMixed => figure.read_percent.expect("checked when the file was read"),
            _ => 0,
        };
        let is_random = !figure.operation.is_sequential() && figure.operation != Operation::Fsync;
        // A far tail needs many requests, so there is no time limit.
        let tail_count = figure.unit.tail_requests();
        let time_limit_ns = if tail_count > REQUEST_COUNT { u64::MAX } else { TIME_LIMIT_NS };
        ClosedLoop {
            read_percent,
            size_bytes: figure.block_bytes(),
            queue_depth: figure.threads,
            order: if is_random { Order::Random } else { Order::Sequential },
            span_bytes: self.span_bytes,
            flush_after_write: figure.operation == Operation::Fsync,
            request_count: if is_random { REQUEST_COUNT.max(tail_count) } else { SEQUENTIAL_COUNT },
            time_limit_ns,
            seed: self.seed,
        }
    }

    /// Fills and overwrites the device to reach the figure's state.
    fn bring_into(&mut self, figure: &Figure) {
        let Some(state) = figure.state else { return };
        let device_bytes = self.driver.device().size_bytes();
        let seed = self.seed;
        if state == State::JustWritten {
            let writing = ClosedLoop {
                read_percent: 0,
                size_bytes: WRITE_BYTES,
                order: Order::Sequential,
                queue_depth: WRITE_DEPTH,
                request_count: self.span_bytes / WRITE_BYTES,
                time_limit_ns: u64::MAX,
                ..self.workload(figure)
            };
            writing.run(&mut self.driver);
            return;
        }
        if self.span_bytes == device_bytes {
            self.driver.device_mut().set_use(Some(&Ageing {
                fill_percent: 100,
                overwrite_percent: 300,
                seed,
            }));
            return;
        }
        if state == State::Full {
            self.driver.device_mut().set_use(Some(&Ageing { fill_percent: 100, overwrite_percent: 0, seed }));
        }
        let turns = if self.span_bytes < device_bytes / 5 { TURNS_SMALL } else { TURNS };
        let overwriting = ClosedLoop {
            read_percent: 0,
            order: Order::Random,
            flush_after_write: false,
            queue_depth: 16,
            request_count: turns * self.span_bytes / figure.block_bytes(),
            time_limit_ns: u64::MAX,
            seed: seed ^ 2,
            ..self.workload(figure)
        };
        overwriting.run(&mut self.driver);
    }

    /// Runs a burst, or measures after caches and buffers have filled.
    fn requests(&mut self, figure: &Figure) -> Sample {
        let workload = self.workload(figure);
        let block_bytes = workload.size_bytes;
        if let Some(burst) = &figure.burst {
            let time_limit_ns = parse_duration_ns(burst).expect("checked when the file was read");
            let burst = ClosedLoop { request_count: u64::MAX, time_limit_ns, ..workload };
            return sample(figure, &burst.run(&mut self.driver), block_bytes);
        }
        if matches!(
            figure.operation,
            Operation::RandomWrite | Operation::SequentialWrite | Operation::RandomMixed
        ) {
            let request_count = match figure.state {
                None => self.driver.device().size_bytes() / FILL_SHARE / block_bytes,
                Some(_) => u64::MAX,
            };
            ClosedLoop { request_count, time_limit_ns: FILL_NS, seed: self.seed ^ 1, ..workload.clone() }
                .run(&mut self.driver);
        }
        sample(figure, &workload.run(&mut self.driver), block_bytes)
    }

    /// Measures FLUSHes alone, each after scattered writes.
    fn flushes(&mut self, figure: &Figure) -> Sample {
        let writes = figure.writes.expect("checked when the file was read");
        let scattered = ClosedLoop { request_count: writes, ..self.workload(figure) };
        let mut sample =
            Sample { block_bytes: figure.block_bytes(), latencies_us: Vec::new(), elapsed_ns: 0 };
        for round in 0..FLUSH_ROUNDS {
            ClosedLoop { seed: self.seed + round, ..scattered.clone() }.run(&mut self.driver);
            let begin = self.driver.now();
            self.driver.submit(request(writes, Command::Flush, 0, 0));
            let Some(completion) = self.driver.wait() else { return sample };
            sample.latencies_us.push((completion.at - begin) as f64 / 1e3);
            sample.elapsed_ns += completion.at - begin;
        }
        sample
    }

    /// Measures random reads while one further client writes and flushes without a pause.
    fn reads_beside_commits(&mut self, figure: &Figure) -> Sample {
        let block_bytes = figure.block_bytes();
        let places = self.span_bytes / block_bytes;
        let mut rng = Rng::new(self.seed);
        let mut in_flight: Vec<(Request, Instant)> = Vec::new();
        let mut submitted = 0;
        let mut submit = |driver: &mut VirtualTime<_>, in_flight: &mut Vec<_>, operation| {
            let request = match operation {
                Command::Flush => request(submitted, operation, 0, 0),
                _ => request(submitted, operation, rng.below(places) * block_bytes, block_bytes),
            };
            submitted += 1;
            in_flight.push((request, driver.now()));
            driver.submit(request);
        };
        for _ in 0..figure.threads {
            submit(&mut self.driver, &mut in_flight, Command::Read);
        }
        submit(&mut self.driver, &mut in_flight, Command::Write);
        let mut latencies_us = Vec::new();
        let begin = self.driver.now();
        while (latencies_us.len() as u64) < REQUEST_COUNT && self.driver.now() - begin < TIME_LIMIT_NS {
            let Some(completion) = self.driver.wait() else { break };
            let index = in_flight.iter().position(|(request, _)| request.id == completion.id);
            let (request, submitted_at) = in_flight.swap_remove(index.expect("a request completes once"));
            let next = match request.operation {
                Command::Write => Command::Flush,
                Command::Flush => Command::Write,
                _ => {
                    latencies_us.push((completion.at - submitted_at) as f64 / 1e3);
                    Command::Read
                }
            };
            submit(&mut self.driver, &mut in_flight, next);
        }
        Sample { block_bytes, latencies_us, elapsed_ns: self.driver.now() - begin }
    }

    /// Measures a stream in stretches at even distances in a zone.
    fn stretches(&mut self, figure: &Figure) -> Sample {
        let workload = self.workload(figure);
        let block_bytes = workload.size_bytes;
        let zone_bytes = match figure.zone {
            Some(Zone::Inner) => self.span_bytes / 20,
            _ => self.span_bytes,
        };
        let begin = self.span_bytes - zone_bytes;
        let step = zone_bytes / STRETCHES / block_bytes * block_bytes;
        let request_count = (STRETCH_BYTES.min(step) / block_bytes).max(1);
        let mut all = Sample { block_bytes, latencies_us: Vec::new(), elapsed_ns: 0 };
        for index in 0..STRETCHES {
            let offset_bytes = begin / block_bytes * block_bytes + index * step;
            let mut shifted = Shifted { driver: &mut self.driver, offset_bytes };
            let measured = ClosedLoop { request_count, ..workload.clone() }.run(&mut shifted);
            let part = sample(figure, &measured, block_bytes);
            all.latencies_us.extend(part.latencies_us);
            all.elapsed_ns += part.elapsed_ns;
        }
        all
    }
}

fn sample(figure: &Figure, measured: &Measured, block_bytes: u64) -> Sample {
    let latencies_us = latencies_us(measured, figure.operation == Operation::Fsync);
    Sample { block_bytes, latencies_us, elapsed_ns: measured.elapsed_ns }
}

fn request(id: u64, operation: Command, offset_bytes: u64, size_bytes: u64) -> Request {
    Request { id: RequestId(id), operation, offset_bytes, size_bytes, force_unit_access: false }
}

/// Shifts requests by an offset.
struct Shifted<'a, D> {
    driver: &'a mut D,
    offset_bytes: u64,
}

impl<D: Driver> Driver for Shifted<'_, D> {
    fn now(&self) -> Instant {
        self.driver.now()
    }

    fn submit(&mut self, request: Request) {
        self.driver.submit(Request { offset_bytes: request.offset_bytes + self.offset_bytes, ..request });
    }

    fn wait(&mut self) -> Option<Completion> {
        self.driver.wait()
    }
}

/// The stack at the size for the measurement.
fn sized(figure: &Figure, stack: &StackSpec, natural_bytes: u64) -> Result<StackSpec, String> {
    let is_no_whole_disk = |parameters: &Parameters| !matches!(parameters, Parameters::Disk(disk) if disk.stroke == Stroke::Full);
    let size_bytes = match (stack.largest_drive(), figure.state) {
        _ if !stack.tree().any_device(&is_no_whole_disk) => natural_bytes,
        (Some(drive), Some(_)) => {
            let Parameters::Flash(flash) = drive.parameters else { return Ok(stack.clone()) };
            let superblock_bytes = flash.block_bytes * flash.channel_count * flash.dies_per_channel;
            let drive_bytes = STATE_BYTES.max(STATE_SUPERBLOCKS * superblock_bytes);
            drive.stack_bytes(drive_bytes.min(drive.capacity_bytes))
        }
        _ => return Ok(stack.clone()),
    };
    stack.with_size(size_bytes).map_err(|mistake| mistake.to_string())
}

fn partition(figure: &Figure, tree: Tree, size_bytes: u64) -> (Tree, u64) {
    let Some(offset) = &figure.partition_offset else { return (tree, size_bytes) };
    let offset_bytes = parse_size_bytes(offset).expect("checked when the file was read");
    let partition = PartitionParameters { offset_bytes };
    (Tree::layer(partition, [Branch { size_bytes, stack: tree }]), size_bytes.saturating_sub(offset_bytes))
}

fn with_cache(tree: &Tree, cache: Option<Cache>) -> Result<Tree, String> {
    let mut tree = tree.clone();
    let Some(cache) = cache else { return Ok(tree) };
    let write_cache = match cache {
        Cache::Off => WriteCache::Off,
        Cache::Volatile => WriteCache::Volatile,
        // A FLUSH of protected data takes no time, and a lying cache ignores FLUSH. The timing is the same.
        Cache::Protected | Cache::Lying => WriteCache::Protected,
    };
    match &mut tree {
        Tree::Device(Parameters::Disk(disk)) => disk.write_cache = write_cache,
        Tree::Device(Parameters::Flash(flash)) => flash.write_cache = write_cache,
        _ => return Err("cache: cannot be changed on a layer, or on a device without one".to_owned()),
    }
    Ok(tree)
}
