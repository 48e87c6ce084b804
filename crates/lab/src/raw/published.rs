//! The model's raw figures beside those that were published for such drives: datasheets and raw measurements, no databases.
//!
//! Many of these figures gave a parameter its value (latencies, sequential rates, highest rates of commands), so meeting them shows only
//! that the structure can. What no parameter was chosen for: random writes to used drives, and rates at other sizes and depths.

use spindle_model::{Ageing, ClosedLoop, Operation, Order, SECOND, VirtualTime};

use crate::profile_file::StackSpec;

/// Small, so that a used state is reached in a moment; dies, rates and over-provisioning are the drive's at any size.
const SIZE: &str = "4 GB";
const SIZE_BYTES: u64 = 4_000_000_000;
const KIB: u64 = 1_024;

#[derive(Debug, Clone, Copy)]
enum State {
    Fresh,
    /// Filled, then overwritten in this share of it (in thousandths) until that no longer changes anything.
    Full {
        span_permille: u64,
    },
    /// Filled to this share only, and overwritten there.
    Part {
        permille: u64,
    },
}

use Operation::{Flush, Read, Write};
use State::{Fresh, Full, Part};

struct Published {
    profile: &'static str,
    state: State,
    /// A flush stands for a write and a flush after it.
    operation: Operation,
    order: Order,
    size_bytes: u64,
    queue_depth: u64,
    per_second: f64,
    source: &'static str,
}

const RANDOM: Order = Order::Random;
const SEQUENTIAL: Order = Order::Sequential;
const MEGABYTE: f64 = 1e6 / 1_048_576.0;
const PER_16K: f64 = 64.0;

#[expect(clippy::too_many_arguments, reason = "a row of a table")]
const fn row(
    profile: &'static str,
    state: State,
    operation: Operation,
    order: Order,
    kib: u64,
    queue_depth: u64,
    per_second: f64,
    source: &'static str,
) -> Published {
    Published { profile, state, operation, order, size_bytes: kib * KIB, queue_depth, per_second, source }
}

/// Rates in requests a second; sequential ones of 1 MiB.
const PUBLISHED: &[Published] = &[
    row("x25m-80", Fresh, Read, RANDOM, 4, 32, 35_000.0, "Intel sheet"),
    row("x25m-80", Fresh, Read, RANDOM, 4, 1, 1e6 / 65.0, "AnandTech 2829, 65 us"),
    row("x25m-80", Fresh, Write, RANDOM, 4, 1, 1e6 / 85.0, "AnandTech 2829, 85 us, buffered"),
    row(
        "x25m-80",
        Full { span_permille: 100 },
        Write,
        RANDOM,
        4,
        32,
        6_600.0,
        "Intel sheet; 8 GB of a full drive is assumed",
    ),
    row("x25m-80", Fresh, Read, SEQUENTIAL, 1_024, 4, 250.0 * MEGABYTE, "Intel sheet"),
    row("x25m-80", Fresh, Write, SEQUENTIAL, 1_024, 4, 70.0 * MEGABYTE, "Intel sheet"),
    row("x25e-32", Fresh, Read, RANDOM, 4, 32, 35_000.0, "Intel sheet"),
    row("x25e-32", Fresh, Read, RANDOM, 4, 1, 1e6 / 75.0, "75 us, unverified"),
    row("x25e-32", Fresh, Read, RANDOM, 16, 1, 3_508.0, "Matsunobu 2010, slide 7"),
    row("x25e-32", Fresh, Read, RANDOM, 16, 100, 14_538.0, "Matsunobu 2010, slide 7"),
    row(
        "x25e-32",
        Full { span_permille: 1_000 },
        Write,
        RANDOM,
        4,
        32,
        3_300.0,
        "Intel sheet; the whole span is assumed",
    ),
    row("x25e-32", Fresh, Read, SEQUENTIAL, 1_024, 4, 250.0 * MEGABYTE, "Intel sheet"),
    row("x25e-32", Fresh, Write, SEQUENTIAL, 1_024, 4, 170.0 * MEGABYTE, "Intel sheet"),
    row("iodrive-160", Fresh, Read, RANDOM, 16, 1, 8_545.0, "Percona 2009-12-08, 140 MB/s"),
    row("iodrive-160", Fresh, Read, RANDOM, 16, 1, 10_526.0, "Matsunobu 2010, slide 7"),
    row("iodrive-160", Fresh, Read, RANDOM, 16, 1, 12_765.0, "Percona 2010-03-24"),
    row("iodrive-160", Fresh, Read, RANDOM, 16, 4, 27_222.0, "Percona 2009-12-08, 446 MB/s"),
    row("iodrive-160", Fresh, Read, RANDOM, 16, 32, 42_725.0, "Percona 2009-12-08, 700 MB/s"),
    row("iodrive-160", Fresh, Read, RANDOM, 16, 100, 41_379.0, "Matsunobu 2010, slide 7"),
    row("iodrive-160", Fresh, Write, RANDOM, 16, 1, 14_358.0, "Percona 2010-03-24"),
    row("iodrive-160", Fresh, Write, RANDOM, 16, 16, 32_447.0, "Percona 2010-03-24"),
    row("iodrive-160", Fresh, Write, SEQUENTIAL, 1_024, 4, 600.0 * MEGABYTE, "Percona 2009-12-08"),
    // Per card, half of the Duo's; 120 GB are 111.8 GiB.
    row(
        "iodrive-160",
        Part { permille: 447 },
        Write,
        RANDOM,
        16,
        16,
        466.8 * PER_16K,
        "Percona 2010-07-17, 100 GiB",
    ),
    row(
        "iodrive-160",
        Part { permille: 671 },
        Write,
        RANDOM,
        16,
        16,
        306.7 * PER_16K,
        "Percona 2010-07-17, 150 GiB",
    ),
    row(
        "iodrive-160",
        Part { permille: 894 },
        Write,
        RANDOM,
        16,
        16,
        177.2 * PER_16K,
        "Percona 2010-07-17, 200 GiB",
    ),
    row("intel320-160", Fresh, Read, RANDOM, 4, 32, 39_000.0, "AnandTech 4244"),
    row("intel320-160", Fresh, Read, RANDOM, 4, 1, 1e6 / 75.0, "Intel specification, 75 us"),
    row("intel320-160", Fresh, Write, RANDOM, 4, 1, 1e6 / 90.0, "Intel specification, 90 us"),
    row(
        "intel320-160",
        Full { span_permille: 50 },
        Write,
        RANDOM,
        4,
        32,
        21_000.0,
        "remembered, unverified; 8 GB is assumed",
    ),
    row("intel320-160", Fresh, Read, SEQUENTIAL, 1_024, 4, 270.0 * MEGABYTE, "Intel specification"),
    row("intel320-160", Fresh, Write, SEQUENTIAL, 1_024, 4, 165.0 * MEGABYTE, "remembered, unverified"),
    row(
        "intel320-160",
        Full { span_permille: 67 },
        Write,
        RANDOM,
        16,
        16,
        100.0 * PER_16K,
        "ssdperformanceblog 2011, 10 GiB",
    ),
    row(
        "intel320-160",
        Full { span_permille: 470 },
        Write,
        RANDOM,
        16,
        16,
        40.0 * PER_16K,
        "the same, 70 GiB",
    ),
    row(
        "intel320-160",
        Full { span_permille: 671 },
        Write,
        RANDOM,
        16,
        16,
        30.0 * PER_16K,
        "the same, 100 GiB",
    ),
    row(
        "intel320-160",
        Full { span_permille: 805 },
        Write,
        RANDOM,
        16,
        16,
        20.0 * PER_16K,
        "the same, 120 GiB",
    ),
    row(
        "intel320-160",
        Full { span_permille: 940 },
        Write,
        RANDOM,
        16,
        16,
        15.0 * PER_16K,
        "the same, 140 GiB",
    ),
    row("agility3-60", Fresh, Read, RANDOM, 4, 1, 5_993.0, "CrystalDiskMark"),
    row("agility3-60", Fresh, Read, RANDOM, 4, 32, 10_000.0, "OCZ sheet"),
    row("agility3-60", Fresh, Write, RANDOM, 4, 1, 13_515.0, "CrystalDiskMark"),
    row("agility3-60", Fresh, Write, RANDOM, 4, 32, 20_075.0, "CrystalDiskMark"),
    row("agility3-60", Fresh, Write, RANDOM, 4, 32, 50_000.0, "OCZ sheet, compressible"),
    row("agility3-60", Fresh, Read, SEQUENTIAL, 1_024, 4, 205.0 * MEGABYTE, "CrystalDiskMark"),
    row("agility3-60", Fresh, Write, SEQUENTIAL, 1_024, 4, 105.0 * MEGABYTE, "CrystalDiskMark"),
    row("850evo-250", Fresh, Read, RANDOM, 4, 1, 1e6 / 88.7, "ublk-disksim, 88.7 us"),
    row("850evo-250", Fresh, Read, RANDOM, 4, 32, 98_400.0, "ublk-disksim"),
    row("850evo-250", Fresh, Flush, RANDOM, 4, 1, 317.5, "ublk-disksim, write and fsync"),
    row("pm883-960", Fresh, Flush, RANDOM, 4, 1, 15_500.0, "Ceph lists, write and fsync"),
    row("970pro-512", Fresh, Read, RANDOM, 4, 128, 370_000.0, "Samsung sheet"),
    row("970pro-512", Fresh, Write, RANDOM, 4, 128, 500_000.0, "Samsung sheet"),
    row("970pro-512", Fresh, Read, SEQUENTIAL, 1_024, 4, 3_500.0 * MEGABYTE, "Samsung sheet"),
    row("970pro-512", Fresh, Write, SEQUENTIAL, 1_024, 4, 2_300.0 * MEGABYTE, "Samsung sheet"),
];

/// Requests a second of the model in the state of the published figure, and bytes programmed per byte written.
fn model(published: &Published) -> (f64, f64) {
    let stack = StackSpec::of_name(published.profile, Some(SIZE), "none").unwrap();
    let mut device = stack.build(1);
    let (fill_percent, span_bytes) = match published.state {
        Fresh => (0, SIZE_BYTES),
        Full { span_permille } => (100, SIZE_BYTES / 1_000 * span_permille),
        Part { permille } => (0, SIZE_BYTES / 1_000 * permille),
    };
    if fill_percent > 0 {
        device.age(&Ageing { fill_percent, overwrite_percent: 0, seed: 1 });
    }
    let mut driver = VirtualTime::new(device);
    let workload = ClosedLoop {
        read_percent: if published.operation == Read { 100 } else { 0 },
        size_bytes: published.size_bytes,
        queue_depth: published.queue_depth,
        order: published.order,
        span_bytes,
        flush_after_write: published.operation == Flush,
        request_count: 20_000,
        time_limit_ns: 60 * SECOND,
        seed: 3,
    };
    let turn = span_bytes / published.size_bytes;
    if !matches!(published.state, Fresh) {
        // A small span of a full drive takes over the spare space first, which is larger than the span.
        let turns = if span_bytes < SIZE_BYTES / 5 { 8 } else { 4 };
        let request_count = turns * turn;
        ClosedLoop { request_count, time_limit_ns: u64::MAX, seed: 2, ..workload.clone() }.run(&mut driver);
    }
    if published.operation == Write && matches!(published.state, Fresh) && published.queue_depth > 1 {
        ClosedLoop { request_count: 3_000, seed: 2, ..workload.clone() }.run(&mut driver);
    }
    // A burst at queue depth one is absorbed by the buffer; that is what was published.
    let request_count = match (published.order, published.queue_depth, published.operation) {
        (_, 1, Write) => 30,
        (Order::Sequential, ..) => 3_000,
        _ => 20_000,
    };
    let before = driver.device().counters();
    let measured = ClosedLoop { request_count, ..workload }.run(&mut driver);
    let after = driver.device().counters();
    let written = (after.write_bytes - before.write_bytes).max(1);
    let amplification = (after.nand_write_bytes - before.nand_write_bytes) as f64 / written as f64;
    (measured.per_second(if published.operation == Read { Read } else { Write }), amplification)
}

use spindle_model::Device;

/// Each miss is explained in its profile.
#[test]
fn nine_in_ten_published_figures_are_met_within_a_quarter() {
    println!("profile       workload                       published      model  ratio  amplification");
    let mut met = 0;
    for published in PUBLISHED {
        let (per_second, amplification) = model(published);
        let ratio = per_second / published.per_second;
        let is_met = (0.75..=1.25).contains(&ratio);
        met += usize::from(is_met);
        let name = format!("{:?} {:?}", published.order, published.operation);
        println!(
            "{:<13} {name:<17} {:>4}K QD{:<3} {:>11.0} {per_second:>10.0} {ratio:>6.2} {amplification:>6.2} {} {} ({:?})",
            published.profile,
            published.size_bytes / KIB,
            published.queue_depth,
            published.per_second,
            if is_met { "   " } else { "OFF" },
            published.source,
            published.state,
        );
    }
    println!("{met} of {} within 25 %", PUBLISHED.len());
    assert!(met * 10 >= PUBLISHED.len() * 9, "{met} of {}", PUBLISHED.len());
}
