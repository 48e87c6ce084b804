//! The published raw figures of real hard disks beside what their profiles do in virtual time.
//!
//! A figure that is itself a parameter, or that one was fitted to, says so: it shows that the model takes it, not that it predicts.
//! Left out is what a disk alone cannot answer: figures of arrays, of controllers' caches, and of databases.

use spindle_model::{
    ClosedLoop, Device, DiskParameters, Driver, Measured, Operation, Order, Parameters, Request, RequestId,
    SECOND, StackSpec as Tree, VirtualTime, WriteCache,
};

use crate::profile_file::StackSpec;

const SEED: u64 = 1;

/// What is measured; the unit is that of the published figure.
#[derive(Debug, Clone, Copy)]
enum Figure {
    /// Milliseconds.
    ReadMean {
        size_bytes: u64,
    },
    ReadQuantile {
        permille: u64,
    },
    /// Requests a second.
    Reads {
        size_bytes: u64,
        queue_depth: u64,
    },
    /// 4 KiB, one at a time, for 30 s from an empty cache.
    RandomWrites,
    /// 8 KiB, 67 % reads, four at a time, as a ratio to another profile, the write cache of both on.
    MixedOver(&'static str),
    /// The same load with the write cache on, as a ratio to that with it off.
    MixedCacheGain,
    /// Reads of 1 KiB over reads of 16 KiB a second, the largest ratio at any queue depth.
    SmallOverLarge,
    /// MB/s over the whole platter, 1 MiB one at a time.
    Sequential {
        operation: Operation,
    },
    /// MB/s in the first or last twentieth.
    SequentialAt {
        is_inner: bool,
    },
    /// Milliseconds of a FLUSH after so many scattered 4 KiB writes.
    Flush {
        writes: u64,
    },
    /// Milliseconds more of a FLUSH for each scattered write.
    FlushSlope,
    /// Sequential 4 KiB writes a second, each followed by a FLUSH.
    Commits,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// No parameter was chosen by it.
    Predicted,
    /// A parameter was chosen by it, alone or among others.
    Fitted,
    /// It is a parameter, or a sum of some.
    Given,
}

struct Published {
    profile: &'static str,
    figure: Figure,
    value: f64,
    origin: Origin,
    source: &'static str,
}

const fn row(profile: &'static str, figure: Figure, value: f64, source: &'static str) -> Published {
    Published { profile, figure, value, origin: Origin::Predicted, source }
}

const fn fitted(profile: &'static str, figure: Figure, value: f64, source: &'static str) -> Published {
    Published { profile, figure, value, origin: Origin::Fitted, source }
}

const fn given(profile: &'static str, figure: Figure, value: f64, source: &'static str) -> Published {
    Published { profile, figure, value, origin: Origin::Given, source }
}

const UBLK: &str = "one ST2000DM006 (ublk-disksim)";
const SHEET: &str = "sheet: seek, half a rotation";

#[rustfmt::skip]
const PUBLISHED: &[Published] = {
    use Figure::*;
    const REAL: &str = "st2000dm006-measured";
    const SHEET_OF_IT: &str = "st2000dm006-datasheet";
    const fn reads(queue_depth: u64) -> Figure { Reads { size_bytes: 4_096, queue_depth } }
    &[
        fitted(REAL, ReadMean { size_bytes: 4_096 }, 17.5, UBLK),
        fitted(REAL, ReadQuantile { permille: 100 }, 10.42, UBLK),
        fitted(REAL, ReadQuantile { permille: 250 }, 14.75, UBLK),
        fitted(REAL, ReadQuantile { permille: 500 }, 17.69, UBLK),
        fitted(REAL, ReadQuantile { permille: 750 }, 20.84, UBLK),
        fitted(REAL, ReadQuantile { permille: 900 }, 23.2, UBLK),
        row(REAL, ReadQuantile { permille: 990 }, 28.4, UBLK),
        row(REAL, ReadQuantile { permille: 999 }, 103.0, UBLK),
        fitted(REAL, reads(2), 64.5, UBLK),
        fitted(REAL, reads(4), 71.2, UBLK),
        fitted(REAL, reads(8), 78.6, UBLK),
        fitted(REAL, reads(16), 86.3, UBLK),
        fitted(REAL, reads(32), 93.6, UBLK),
        fitted(REAL, Sequential { operation: Operation::Read }, 143.0, UBLK),
        row(REAL, Sequential { operation: Operation::Write }, 132.0, UBLK),
        fitted(REAL, RandomWrites, 124.0, UBLK),
        fitted(REAL, FlushSlope, 9.4, UBLK),
        fitted(REAL, Flush { writes: 8 }, 28.0 + 9.4 * 8.0, "28 + 9.4 N ms, the 28 partly of NTFS"),
        fitted(REAL, Flush { writes: 64 }, 28.0 + 9.4 * 64.0, "28 + 9.4 N ms, the 28 partly of NTFS"),
        given(SHEET_OF_IT, ReadMean { size_bytes: 4_096 }, 8.5 + 4.17, SHEET),
        fitted(SHEET_OF_IT, Sequential { operation: Operation::Read }, 156.0, "ST2000DM001, vendor's average"),
        given("hdd-7200", ReadMean { size_bytes: 4_096 }, 8.5 + 4.17, SHEET),
        given("hdd-7200", SequentialAt { is_inner: false }, 138.0, "Barracuda XT sheet"),
        row("hdd-7200", Commits, 105.0, "7200 rpm laptop (G. Smith 2010)"),
        given("barracuda-160", ReadMean { size_bytes: 4_096 }, 11.0 + 4.17, SHEET),
        fitted("barracuda-160", Sequential { operation: Operation::Read }, 62.0, "7200.10 320 GB, HD Tune (goughlui.com)"),
        row("barracuda-160", SequentialAt { is_inner: false }, 75.0, "thesis 2012: 50 to 100 MB/s"),
        given("cheetah-15k7", SequentialAt { is_inner: false }, 204.0, "manual 4.2.3"),
        given("cheetah-15k7", SequentialAt { is_inner: true }, 122.0, "manual 4.2.3"),
        row("cheetah-15k7", Reads { size_bytes: 16_384, queue_depth: 1 }, 200.0, "a 15,000 rpm SAS disk (Nordeus; Matsunobu)"),
        row("hdd-7200", MixedCacheGain, 1.265, "write cache adds 23 to 30 % (Fujitsu)"),
        row("cheetah-15k7", MixedCacheGain, 1.265, "write cache adds 23 to 30 % (Fujitsu)"),
        row("cheetah-15k7", MixedOver("hdd-7200"), 2.8, "15,000 rpm 3.5\" over 7200 rpm SATA (Fujitsu)"),
        row("sas-15k-160", Reads { size_bytes: 16_384, queue_depth: 1 }, 196.0, "Matsunobu 2010, slide 7"),
        fitted("sas-15k-160", Reads { size_bytes: 16_384, queue_depth: 100 }, 443.0, "Matsunobu 2010, slide 7"),
        row("sas-15k-160", SmallOverLarge, 1.22, "Matsunobu 2010, slide 20, four in RAID 10"),
    ]
};

struct Disk {
    driver: VirtualTime<Box<dyn Device>>,
    size_bytes: u64,
}

impl Disk {
    fn new(profile: &str) -> Disk {
        let stack = StackSpec::of_name(profile, None, "none").unwrap();
        Disk { driver: VirtualTime::new(stack.build(SEED)), size_bytes: stack.size_bytes() }
    }

    fn run(&mut self, workload: ClosedLoop) -> Measured {
        ClosedLoop { span_bytes: self.size_bytes, seed: SEED, ..workload }.run(&mut self.driver)
    }

    /// One request after the other from `offset_bytes` on; MB/s.
    fn stream(&mut self, operation: Operation, offset_bytes: u64, count: u64) -> f64 {
        const MEBIBYTE: u64 = 1 << 20;
        let begin = self.driver.now();
        for number in 0..count {
            self.driver.submit(Request {
                id: RequestId(number),
                operation,
                offset_bytes: offset_bytes + number * MEBIBYTE,
                size_bytes: MEBIBYTE,
                force_unit_access: false,
            });
            self.driver.wait().unwrap();
        }
        (count * MEBIBYTE) as f64 * 1e3 / (self.driver.now() - begin) as f64
    }

    /// Mean of several, in milliseconds.
    fn flush(&mut self, writes: u64) -> f64 {
        const ROUNDS: u64 = 50;
        let mut total_ns = 0;
        for round in 0..ROUNDS {
            let scattered = ClosedLoop { read_percent: 0, request_count: writes, ..ClosedLoop::default() };
            ClosedLoop { span_bytes: self.size_bytes, seed: SEED + round, ..scattered }.run(&mut self.driver);
            let begin = self.driver.now();
            let flush = Request {
                id: RequestId(0),
                operation: Operation::Flush,
                offset_bytes: 0,
                size_bytes: 0,
                force_unit_access: false,
            };
            self.driver.submit(flush);
            total_ns += self.driver.wait().unwrap().at - begin;
        }
        total_ns as f64 / ROUNDS as f64 / 1e6
    }
}

fn reads_per_s(profile: &str, size_bytes: u64, queue_depth: u64) -> f64 {
    let reads = ClosedLoop { size_bytes, queue_depth, request_count: 20_000, ..ClosedLoop::default() };
    Disk::new(profile).run(reads).per_second(Operation::Read)
}

fn mixed_per_s(profile: &str, write_cache: WriteCache) -> f64 {
    let stack = StackSpec::of_name(profile, None, "none").unwrap();
    let Tree::Device(Parameters::Disk(disk)) = stack.tree() else { panic!("{profile} is no disk") };
    let tree = Tree::Device(Parameters::Disk(DiskParameters { write_cache, ..disk.clone() }));
    let size_bytes = stack.size_bytes();
    let mut disk = Disk { driver: VirtualTime::new(tree.build(size_bytes, SEED).unwrap()), size_bytes };
    let mixed = ClosedLoop {
        read_percent: 67,
        size_bytes: 8_192,
        queue_depth: 4,
        request_count: 20_000,
        ..ClosedLoop::default()
    };
    let measured = disk.run(mixed);
    measured.per_second(Operation::Read) + measured.per_second(Operation::Write)
}

fn measure(profile: &str, figure: Figure) -> f64 {
    let mut disk = Disk::new(profile);
    let twentieth = disk.size_bytes / 20;
    match figure {
        Figure::ReadMean { size_bytes } => {
            let reads = ClosedLoop { size_bytes, request_count: 20_000, ..ClosedLoop::default() };
            disk.run(reads).mean_ns(Operation::Read) / 1e6
        }
        Figure::ReadQuantile { permille } => {
            let measured = disk.run(ClosedLoop { request_count: 20_000, ..ClosedLoop::default() });
            let mut latencies_ns: Vec<u64> = measured.latencies_ns(Operation::Read).collect();
            latencies_ns.sort_unstable();
            latencies_ns[latencies_ns.len() * permille as usize / 1_000] as f64 / 1e6
        }
        Figure::Reads { size_bytes, queue_depth } => reads_per_s(profile, size_bytes, queue_depth),
        Figure::RandomWrites => {
            let half_a_minute = ClosedLoop {
                read_percent: 0,
                request_count: u64::MAX,
                time_limit_ns: 30 * SECOND,
                ..ClosedLoop::default()
            };
            disk.run(half_a_minute).per_second(Operation::Write)
        }
        Figure::MixedOver(other) => {
            mixed_per_s(profile, WriteCache::Volatile) / mixed_per_s(other, WriteCache::Volatile)
        }
        Figure::MixedCacheGain => {
            mixed_per_s(profile, WriteCache::Volatile) / mixed_per_s(profile, WriteCache::Off)
        }
        Figure::SmallOverLarge => [1, 4, 16, 64, 200]
            .map(|depth| reads_per_s(profile, 1_024, depth) / reads_per_s(profile, 16_384, depth))
            .into_iter()
            .fold(0.0, f64::max),
        Figure::Sequential { operation } => disk.stream(operation, 0, disk.size_bytes >> 20),
        Figure::SequentialAt { is_inner } => {
            let offset_bytes = if is_inner { disk.size_bytes - twentieth } else { 0 };
            disk.stream(Operation::Read, offset_bytes >> 12 << 12, twentieth >> 20)
        }
        Figure::Flush { writes } => disk.flush(writes),
        Figure::FlushSlope => (Disk::new(profile).flush(64) - disk.flush(8)) / 56.0,
        Figure::Commits => {
            let log = ClosedLoop {
                read_percent: 0,
                order: Order::Sequential,
                flush_after_write: true,
                request_count: 4_000,
                ..ClosedLoop::default()
            };
            disk.run(log).per_second(Operation::Flush)
        }
    }
}

#[test]
fn nine_in_ten_published_figures_are_met_within_a_quarter() {
    let mut rows = Vec::new();
    println!("{:<22} {:<44} {:>9} {:>9} {:>6}", "profile", "figure", "published", "model", "ratio");
    for published in PUBLISHED {
        let model = measure(published.profile, published.figure);
        let ratio = model / published.value;
        rows.push((published.origin, (1.0 / 1.25..=1.25).contains(&ratio)));
        println!(
            "{:<22} {:<44} {:>9.2} {model:>9.2} {ratio:>6.2}  {:<9}  {}",
            published.profile,
            format!("{:?}", published.figure),
            published.value,
            format!("{:?}", published.origin),
            published.source
        );
    }
    let check = |name: &str, origins: &[Origin]| {
        let of_origin: Vec<bool> =
            rows.iter().filter(|(origin, _)| origins.contains(origin)).map(|&(_, is_met)| is_met).collect();
        let met = of_origin.iter().filter(|&&is_met| is_met).count();
        println!("{name}: {met} of {} within a quarter", of_origin.len());
        assert!(met * 10 >= of_origin.len() * 9, "{name}: {met} of {}", of_origin.len());
    };
    check("all", &[Origin::Predicted, Origin::Fitted, Origin::Given]);
    check("predicted", &[Origin::Predicted]);
}
