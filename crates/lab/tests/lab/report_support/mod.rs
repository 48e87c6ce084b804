//! Synthetic records: plausible in shape, invented in every number, and labelled so. Shared by the tests of
//! the report.
pub(crate) mod browser;

use std::collections::BTreeMap;

use base64::Engine as _;
use hdrhistogram::{
    Histogram,
    serialization::{Serializer as _, V2Serializer},
};
use spindle_base::dilation::Dilation;
use spindle_lab::{
    host::provenance::Machine,
    record::*,
    report::{Records, parse},
};
use spindle_stats::random::Random;

/// One invented device.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) per_minute: f64,
    pub(crate) read_ms: f64,
    pub(crate) flush_ms: f64,
    pub(crate) bottleneck: BottleneckKind,
    /// Shares of time: read, commit, locks.
    pub(crate) shares: [f64; 3],
    pub(crate) cpu: f64,
}

pub(crate) const DISK: Shape = Shape {
    name: "hdd-7200",
    per_minute: 412.0,
    read_ms: 8.1,
    flush_ms: 9.4,
    bottleneck: BottleneckKind::ReadLatency,
    shares: [0.81, 0.13, 0.02],
    cpu: 0.06,
};
pub(crate) const FLASH: Shape = Shape {
    name: "x25-m",
    per_minute: 9240.0,
    read_ms: 0.29,
    flush_ms: 0.9,
    bottleneck: BottleneckKind::CommitLatency,
    shares: [0.31, 0.42, 0.04],
    cpu: 0.63,
};
pub(crate) const CARD: Shape = Shape {
    name: "iodrive",
    per_minute: 14310.0,
    read_ms: 0.07,
    flush_ms: 0.05,
    bottleneck: BottleneckKind::Cpu,
    shares: [0.12, 0.09, 0.07],
    cpu: 0.97,
};

/// Records as the quickstart could leave them.
pub(crate) fn quickstart() -> String {
    file(&[DISK, FLASH, CARD], 3, |trial, shape| {
        if shape.name == CARD.name {
            let busy = 0.97;
            trial.warnings.push(Warning::CpuSaturated { busy, client: 0.21, own: None });
            if trial.trial == 2 {
                trial.warnings.push(Warning::Late { p99_us: 212.0, share: 0.034 });
            }
        }
    })
}

pub(crate) fn records(text: &str) -> Records {
    parse(text, "synthetic.jsonl").expect("synthetic records are well formed")
}

/// A records file; `edit` sees every trial before it is written.
pub(crate) fn file(shapes: &[Shape], trial_count: u32, edit: impl Fn(&mut Trial, &Shape)) -> String {
    file_of(shapes, trial_count, 60, edit)
}

/// As [`file`], with windows of so many seconds.
pub(crate) fn file_of(
    shapes: &[Shape],
    trial_count: u32,
    seconds: usize,
    edit: impl Fn(&mut Trial, &Shape),
) -> String {
    let mut lines = vec![Line::Header(header(shapes, trial_count))];
    for block in 1..=trial_count {
        // Trials of a block share the state of the machine.
        let machine = 1.0 + 0.02 * Random::new(u64::from(block) + 77).normal();
        for (index, shape) in shapes.iter().enumerate() {
            let mut trial = trial(shape, block, machine, u64::from(block) * 100 + index as u64, seconds);
            edit(&mut trial, shape);
            lines.push(Line::Trial(trial));
        }
    }
    lines.iter().map(|line| serde_json::to_string(line).expect("a line") + "\n").collect()
}

pub(crate) fn fail(trial: &mut Trial, error: &str) {
    trial.error = Some(error.to_owned());
    trial.measurement = None;
    trial.warnings.clear();
}

fn header(shapes: &[Shape], trial_count: u32) -> Header {
    Header {
        deviations: vec!["tpcc: Made up for a test: terminals do not think.".to_owned()],
        format: FORMAT,
        created_at: "2100-01-01T00:00:00Z".to_owned(),
        provenance: Provenance {
            spindle_version: "0.1.0".to_owned(),
            git_revision: "0000000".to_owned(),
            scenario_hash: "5ce0a910".to_owned(),
            kernel: "6.1.0-synthetic".to_owned(),
            seed: 42,
            ..Provenance::default()
        },
        scenario: ScenarioHead {
            name: "synthetic".to_owned(),
            title: "Synthetic records: what would an SSD do for this database?".to_owned(),
            question: "Every number on this page is invented, to try the report itself.\n\nWould an SSD help a MariaDB \
                       whose buffer pool holds a tenth of its data, and does a faster card than that still pay?"
                .to_owned(),
            text: "title = \"Synthetic\"\nquestion = \"\"\"<b>not markup</b> & \"quoted\" </script>\"\"\"\n".to_owned(),
            trials_per_cell: trial_count,
            until: None,
            start: StartState::WarmFast,
            seed: 42,
            experiment: None,
            published: Vec::new(),
        },
        cells: shapes
            .iter()
            .map(|shape| Cell {
                name: shape.name.to_owned(),
                label: shape.name.to_owned(),
                layout: None,
                mounts: vec![data_mount(StackHead {
                    name: shape.name.to_owned(),
                    label: String::new(),
                    part: None,
                    summary: format!("An invented device that reads 16 KiB in {} ms and flushes in {} ms.", shape.read_ms, shape.flush_ms),
                    size_bytes: 20 << 30,
                    file_system: "xfs".to_owned(),
                    mkfs_options: Vec::new(),
                    mount_options: Vec::new(),
                    real: false,
                    zfs: None,
                    assumptions: vec![format!("the queue of {} is taken to be 32 deep", shape.name)],
                })],
                server: "mariadb".to_owned(),
                workload: "tpcc-10".to_owned(),
                replication: None,
                sweep: Vec::new(),
                trials: None,
            })
            .collect(),
        machine: Machine {
            kernel: "6.1.0-synthetic".to_owned(),
            cpu_model: "Invented CPU at 2.4 GHz".to_owned(),
            cpu_count: 2,
            memory_bytes: 8 << 30,
            operating_system: "Debian GNU/Linux 12 (bookworm)".to_owned(),
            summary: None,
        },
        report_command: "spindle report synthetic.jsonl".to_owned(),
        source: None,
    }
}

fn trial(shape: &Shape, block: u32, machine: f64, seed: u64, seconds: usize) -> Trial {
    Trial {
        cell: shape.name.to_owned(),
        trial: block,
        block,
        provenance: Provenance {
            spindle_version: "0.1.0".to_owned(),
            git_revision: "0000000".to_owned(),
            scenario_hash: "5ce0a910".to_owned(),
            stack_hash: format!("{:08x}", shape.per_minute as u64 * 2_654_435_761 % 0xffff_ffff),
            kernel: "6.1.0-synthetic".to_owned(),
            server_version: "10.11.6-MariaDB".to_owned(),
            settings: BTreeMap::from([
                ("innodb_buffer_pool_size".to_owned(), "134217728".to_owned()),
                ("innodb_flush_log_at_trx_commit".to_owned(), "1".to_owned()),
                ("innodb_flush_method".to_owned(), "O_DIRECT".to_owned()),
            ]),
            memory_bytes: None,
            seed,
        },
        started_at: format!("2100-01-01T00:{:02}:00Z", block % 60),
        phases_s: BTreeMap::from([("restore".to_owned(), 0.4), ("measure".to_owned(), 60.0)]),
        error: None,
        measurement: Some(measurement(shape, machine, seed, seconds)),
        warnings: Vec::new(),
        pilot: Vec::new(),
    }
}

fn measurement(shape: &Shape, machine: f64, seed: u64, seconds: usize) -> Measurement {
    let mut random = Random::new(seed);
    let per_minute = shape.per_minute * machine * (1.0 + 0.012 * random.normal());
    let all_per_s = per_minute / 0.45 / 60.0;
    let mut noisy = |level: f64, spread: f64| -> Vec<f64> {
        let mut state = 0.0;
        (0..seconds)
            .map(|_| {
                state = 0.6 * state + 0.8 * random.normal();
                (level * (1.0 + spread * state)).max(0.0)
            })
            .collect()
    };
    let reads = 9.6;
    let median_ms = 8.0 * 60_000.0 / (per_minute / 0.45);
    let mut series = Series {
        transactions_per_s: noisy(all_per_s, 0.08),
        p50_ms: noisy(median_ms, 0.05),
        p95_ms: noisy(median_ms * 2.6, 0.08),
        p99_ms: noisy(median_ms * 4.2, 0.12),
        cpu_busy: noisy(shape.cpu, 0.015).iter().map(|busy| busy.min(1.0)).collect(),
        ..Series::default()
    };
    let storage_series = StorageSeries {
        read_iops: noisy(all_per_s * reads, 0.06),
        write_iops: noisy(all_per_s * 6.2, 0.15),
        flushes_per_s: noisy(all_per_s * 0.9, 0.1),
        read_mb_per_s: noisy(all_per_s * reads * 0.016, 0.06),
        write_mb_per_s: noisy(all_per_s * 0.08, 0.15),
        queue_depth: noisy(all_per_s * reads * shape.read_ms / 1000.0 * 1.3, 0.08),
        read_latency_ms: noisy(shape.read_ms * 1.2, 0.06),
        write_latency_ms: noisy(shape.read_ms * 0.7, 0.1),
        flush_latency_ms: noisy(shape.flush_ms, 0.1),
    };
    let dirty_pages = noisy(3000.0, 0.1);
    counters(&mut series, shape, seconds, seed);
    series.server.insert("dirty_pages".to_owned(), dirty_pages);
    let kinds = [
        ("new-order", 0.45, 1.0),
        ("payment", 0.43, 0.6),
        ("order-status", 0.04, 0.4),
        ("delivery", 0.04, 2.2),
        ("stock-level", 0.04, 0.9),
    ];
    let total = all_per_s * seconds as f64;
    let mut all = spindle_base::histogram::new();
    let transactions = kinds
        .iter()
        .map(|(name, share, factor)| {
            let count = (total * share) as u64;
            let histogram = histogram(&mut random, count.max(20), median_ms * factor);
            all.add(&histogram).expect("same shape");
            TransactionSummary {
                name: (*name).to_owned(),
                committed: count,
                rolled_back: if *name == "new-order" { count / 100 } else { 0 },
                retried: count / 900,
                failed: 0,
                client_cpu_s: None,
                latency: latency(&histogram),
            }
        })
        .collect();
    let [read, commit, locks] = shape.shares;
    let requests = total * 15.8;
    let emulator = EmulatorSummary {
        scheduler: "SCHED_FIFO".to_owned(),
        transport: "io_uring".to_owned(),
        floor_us: 8.4,
        requests: requests as u64,
        lateness_p50_us: 3.1,
        lateness_p99_us: 24.0,
        lateness_max_us: 410.0,
        late_share: 0.002,
        late_time_share: 0.001,
        reads: (total * reads) as u64,
        writes: (total * 6.2) as u64,
        flushes: (total * 0.9) as u64,
        read_bytes: (total * reads * 16384.0) as u64,
        write_bytes: (total * 80_000.0) as u64,
        read_latency_mean_ms: shape.read_ms * 1.2,
        write_latency_mean_ms: shape.read_ms * 0.7,
        flush_latency_mean_ms: shape.flush_ms,
        queue_depth_mean: all_per_s * reads * shape.read_ms / 770.0,
        seeks: if shape.read_ms > 1.0 { (total * 12.0) as u64 } else { 0 },
    };
    let data = MountView { emulator: Some(emulator), series: storage_series, ..MountView::default() };
    Measurement {
        machine: None,
        duration_s: seconds as f64,
        dilation: Dilation::NONE,
        metric: Metric {
            name: "new-order transactions per minute".to_owned(),
            value: per_minute,
            lower_is_better: false,
        },
        transactions,
        latency: latency(&all),
        series,
        cache_turnovers: None,
        settling: None,
        replication: None,
        flushed_at_commit: None,
        recovery_s: None,
        mounts: vec![data],
        cpu: CpuSummary {
            busy: shape.cpu,
            server_s: shape.cpu * 80.0,
            client_s: shape.cpu * 12.0,
            emulator_s: shape.cpu * 20.0,
            sampling_s: None,
        },
        per_transaction: PerTransaction {
            reads,
            writes: 6.2,
            read_kib: 153.6,
            write_kib: 78.1,
            flushes: 0.9,
            server_cpu_us: 3100.0,
            client_cpu_us: 131.0,
            fsyncs: Some(1.12),
        },
        bottleneck: Bottleneck {
            kind: shape.bottleneck,
            shares: BTreeMap::from([
                ("read".to_owned(), read),
                ("commit".to_owned(), commit),
                ("locks".to_owned(), locks),
                ("other".to_owned(), 1.0 - read - commit - locks),
                ("cpu".to_owned(), shape.cpu),
            ]),
            reason: format!(
                "Terminals spent {:.0} % of their time in reads and {:.0} % in commits; the cores were {:.0} % busy.",
                read * 100.0,
                commit * 100.0,
                shape.cpu * 100.0
            ),
            next: None,
            evidence: None,
        },
        server_counters: BTreeMap::from([("Innodb_buffer_pool_reads".to_owned(), total * reads)]),
        verification: (1..=12)
            .map(|condition| Check {
                name: format!("TPC-C 3.3.2.{condition}"),
                passed: true,
                detail: "0 rows disagree".to_owned(),
            })
            .collect(),
        events: Vec::new(),
        parts: Vec::new(),
        production: None,
    }
}

/// The series that a record keeps by name, and their charts.
fn counters(series: &mut Series, shape: &Shape, seconds: usize, seed: u64) {
    let mut random = Random::new(!seed);
    let mut noisy = |level: f64, spread: f64| -> Vec<f64> {
        (0..seconds).map(|_| (level * (1.0 + spread * random.normal())).max(0.0)).collect()
    };
    let charts = [
        ("Checkpoint age and log capacity", vec![("checkpoint_age_bytes", 4e7), ("log_capacity_bytes", 8e7)]),
        ("History list length", vec![("history_list", 400.0)]),
        ("Pages in the buffer pool", vec![("dirty_pages", 3000.0), ("old_pages", 2000.0)]),
        ("Pages flushed", vec![("pages_written_per_s", 900.0)]),
        ("Buffer pool hit rate", vec![("buffer_pool_hit_share", 0.97)]),
        ("Pages read in the foreground", vec![("buffer_pool_reads_per_s", 2300.0)]),
        ("Fsyncs", vec![("fsyncs_per_s", 130.0)]),
        ("Waits for space in the log buffer", vec![("log_waits_per_s", 0.0)]),
        ("Waits for row locks", vec![("row_lock_waits_per_s", 9.0)]),
    ];
    for (title, lines) in charts {
        let names = lines.iter().map(|(name, _)| (*name).to_owned()).collect();
        series.charts.push(ChartHead { title: title.to_owned(), lines: names });
        for (name, level) in lines {
            let values = noisy(level, 0.02).into_iter();
            let most = if name.ends_with("_share") { 1.0 } else { f64::INFINITY };
            series.server.insert(name.to_owned(), values.map(|value| value.min(most)).collect());
        }
    }
    for chart in spindle_lab::observe::machine::CHARTS {
        let names: Vec<String> = chart.lines.iter().map(|line| line.name.to_owned()).collect();
        for name in &names {
            let level = if name.ends_with("_bytes") { 2e9 } else { shape.cpu * 0.4 };
            series.machine.insert(name.clone(), noisy(level, 0.1));
        }
        series.charts.push(ChartHead { title: chart.title.to_owned(), lines: names });
    }
}

fn histogram(random: &mut Random, count: u64, median_ms: f64) -> Histogram<u64> {
    let mut histogram = spindle_base::histogram::new();
    for _ in 0..count.min(4000) {
        let value_us = median_ms * 1000.0 * (0.55 * random.normal()).exp();
        histogram.record_n(value_us.max(1.0) as u64, count.div_ceil(4000)).expect("in range");
    }
    histogram
}

fn latency(histogram: &Histogram<u64>) -> Latency {
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(histogram, &mut bytes).expect("serializes into memory");
    let at = |quantile: f64| histogram.value_at_quantile(quantile) as f64 / 1000.0;
    Latency {
        count: histogram.len(),
        mean_ms: histogram.mean() / 1000.0,
        p50_ms: at(0.5),
        p95_ms: at(0.95),
        p99_ms: at(0.99),
        p999_ms: at(0.999),
        max_ms: histogram.max() as f64 / 1000.0,
        histogram: base64::engine::general_purpose::STANDARD.encode(bytes),
    }
}

/// Fixed work that was done once: its metric is a time, and the clients' CPU is known.
pub(crate) fn list() -> String {
    file(&[DISK, FLASH, CARD], 3, |trial, _| {
        let measurement = trial.measurement.as_mut().expect("measured");
        let metric = &mut measurement.metric;
        (metric.name, metric.value) = ("seconds for the fixed work".to_owned(), 1e6 / metric.value);
        metric.lower_is_better = true;
        let operations = &mut measurement.transactions;
        let names = ["insert_duplicates", "order_by_big_key_prefix", "update_of_primary_key_many_keys"];
        for (operation, name) in operations.iter_mut().zip(names) {
            (operation.name, operation.client_cpu_s) = (name.to_owned(), Some(1.5));
        }
    })
}

/// An axis of values: key and part, whether it is memory, and for each value its number and the throughput of
/// the disk and of the SSD.
pub(crate) struct Axis<'a> {
    pub(crate) key: &'a str,
    pub(crate) part: SweptPart,
    pub(crate) is_memory: bool,
    pub(crate) points: &'a [(&'a str, f64, f64, f64)],
}

/// Records of a sweep, with a disk and an SSD.
pub(crate) fn sweep(axis: &Axis<'_>, trial_count: u32) -> String {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let shapes: Vec<Shape> = axis
        .points
        .iter()
        .flat_map(|(value, _, disk, flash)| {
            let name = |device: &str| leak(format!("{device}/{}={value}", axis.key));
            let disk = Shape { name: name("hdd"), per_minute: *disk, ..DISK };
            [disk, Shape { name: name("x25m"), per_minute: *flash, ..FLASH }]
        })
        .collect();
    with_header(&file(&shapes, trial_count, |_, _| {}), |header| {
        for (index, cell) in header.cells.iter_mut().enumerate() {
            let (value, number, ..) = axis.points[index / 2];
            let (stack, label) = [("hdd", "7200 rpm disk"), ("x25m", "Intel X25-M")][index % 2];
            let value = SweptValue {
                key: axis.key.to_owned(),
                part: axis.part,
                value: value.to_owned(),
                number: Some(number),
                is_memory: axis.is_memory,
            };
            cell.label = format!("{label}, {}", value.assignment());
            stack.clone_into(&mut cell.mounts[0].stack.name);
            label.clone_into(&mut cell.mounts[0].stack.label);
            let name = if axis.part == SweptPart::Workload { &mut cell.workload } else { &mut cell.server };
            *name += &format!("/{}", value.assignment());
            cell.sweep = vec![value];
        }
    })
}

/// Six numbers of terminals: the disk is full with four, the SSD with sixteen.
pub(crate) fn terminals() -> String {
    let points = [
        ("1", 1.0, 380.0, 400.0),
        ("2", 2.0, 640.0, 790.0),
        ("4", 4.0, 1180.0, 1560.0),
        ("8", 8.0, 1210.0, 3000.0),
        ("16", 16.0, 1200.0, 5600.0),
        ("32", 32.0, 1010.0, 5650.0),
    ];
    let part = SweptPart::Workload;
    sweep(&Axis { key: "terminals", part, is_memory: false, points: &points }, 3)
}

/// Three tests on two storages.
pub(crate) fn tests() -> String {
    let leak = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let shape = |test: &str, shape: Shape, per_minute: f64| {
        let name = leak(format!("{}/{test}", shape.name));
        Shape { name, per_minute, ..shape }
    };
    let shapes = [
        shape("insert", DISK, 400.0),
        shape("insert", FLASH, 1100.0),
        shape("scan", DISK, 900.0),
        shape("scan", FLASH, 903.0),
        shape("select", DISK, 700.0),
        shape("select", FLASH, 500.0),
    ];
    with_header(&file(&shapes, 3, |_, _| {}), |header| {
        for cell in &mut header.cells {
            let (stack, test) = cell.name.split_once('/').expect("a test");
            let (stack, test) = (stack.to_owned(), test.to_owned());
            cell.label = format!("{stack}, {test}");
            cell.mounts[0].stack.name = stack;
            cell.workload = test;
        }
    })
}

/// Two replicas. The lag of the second was never measured, and it did not catch up.
pub(crate) fn replicated() -> String {
    let seconds = |value: Option<f64>| vec![value, value.map(|value| value + 2.0)];
    let replica = |name: &str, measurement: &Measurement, behind_s: Option<f64>| ReplicaView {
        name: name.to_owned(),
        behind_bytes_first: Some(0),
        behind_bytes_last: behind_s.map(|_| 2_500_000),
        catch_up_s: behind_s.map(|_| 2.5),
        catch_up_limit_s: 60.0,
        server_cpu_s: 3.0,
        settings: BTreeMap::new(),
        mounts: vec![MountView { emulator: measurement.mounts[0].emulator.clone(), ..MountView::default() }],
        series: ReplicaSeries { behind_bytes: vec![None, None], behind_s: seconds(behind_s) },
    };
    let measured = file(&[DISK, FLASH], 2, |trial, _| {
        let measurement = trial.measurement.as_mut().expect("measured");
        measurement.replication = Some(ReplicationView {
            binlog_bytes: 50_000_000,
            semi_sync: Some(SemiSyncView { acknowledged: 1000, unacknowledged: 3, wait_mean_ms: 2.0 }),
            replicas: vec![
                replica("replica 1 (x25-m)", measurement, Some(1.0)),
                replica("replica 2 (hdd-7200)", measurement, None),
            ],
        });
    });
    with_header(&measured, |header| {
        for cell in &mut header.cells {
            let replica =
                |layout: &str| ReplicaHead { layout: layout.to_owned(), mounts: cell.mounts.clone() };
            cell.replication = Some(ReplicationHead {
                mode: ReplicationMode::SemiSync,
                wait_point: None,
                timeout_s: None,
                replicas: vec![replica("x25-m"), replica("hdd-7200")],
            });
        }
    })
}

/// Names as long as they can be, with no place to break them.
pub(crate) fn long_names() -> String {
    let [one, other] =
        ["one_name_of_forty_letters_without_a_blank", "and_another_that_is_quite_as_long_as_that"];
    let shapes = [Shape { name: one, ..DISK }, Shape { name: other, ..FLASH }];
    with_header(&file(&shapes, 2, |trial, _| trial.warnings.push(Warning::NoRealTime)), |header| {
        header.scenario.name = "a_scenario_".repeat(6);
    })
}

/// Labels of several lines, and shares that add up to more than the time.
pub(crate) fn long_labels() -> String {
    let records = file(&[DISK, FLASH, CARD], 2, |trial, shape| {
        if let (true, Some(measurement)) = (shape.name == DISK.name, &mut trial.measurement) {
            measurement.bottleneck.shares.insert("commit".to_owned(), 0.6);
        }
    });
    with_header(&records, |header| {
        let labels = [
            "RAID 10, battery live",
            "RAID 10 of four drives with 15,000 rpm, battery dead since the start",
            "data on the Fusion-io ioDrive, redo log and doublewrite buffer on RAID 10, battery live",
        ];
        for (cell, label) in header.cells.iter_mut().zip(labels) {
            label.clone_into(&mut cell.label);
        }
    })
}

pub(crate) fn with_header(records: &str, edit: impl FnOnce(&mut Header)) -> String {
    let (header, trials) = records.split_once('\n').expect("lines");
    let Line::Header(mut header) = serde_json::from_str(header).expect("a header") else {
        panic!("no header")
    };
    edit(&mut header);
    serde_json::to_string(&Line::Header(header)).expect("a line") + "\n" + trials
}

fn data_mount(stack: StackHead) -> MountHead {
    MountHead { classes: vec![FileClass::Data], files: String::new(), stack }
}

/// Records of every awkward shape, by name.
pub(crate) fn shapes() -> Vec<(&'static str, String)> {
    vec![
        (
            "failed-trials",
            file(&[DISK, FLASH, CARD], 3, |trial, shape| {
                if shape.name == FLASH.name && trial.trial == 2 {
                    fail(trial, "The server died while loading: exit code 1, see <error.log> & co.");
                }
                if shape.name == CARD.name
                    && trial.trial == 3
                    && let Some(measurement) = &mut trial.measurement
                {
                    measurement.verification[0].passed = false;
                    measurement.verification[0].detail = "3 rows disagree".to_owned();
                }
            }),
        ),
        ("sweep", terminals()),
        ("single-trial", file(&[DISK, FLASH], 1, |_, _| {})),
        ("one-cell", file(&[DISK], 3, |_, _| {})),
        (
            "all-failed",
            file(&[DISK, FLASH], 2, |trial, _| fail(trial, "mkfs.xfs failed: no space left on device.")),
        ),
        ("no-difference", file(&[FLASH, Shape { name: "x25-m-again", ..FLASH }, DISK], 3, |_, _| {})),
        (
            "mock-without-emulator",
            file(&[DISK, FLASH], 3, |trial, _| {
                if let Some(measurement) = &mut trial.measurement {
                    measurement.mounts[0].emulator = None;
                    measurement.verification.clear();
                    measurement.mounts[0].series.flush_latency_ms.clear();
                }
            }),
        ),
    ]
}
