//! Records of made-up samples, as a report reads them.

use std::collections::BTreeMap;
use std::time::Duration;

use spindle_base::proc::{CpuTimes, Memory};
use spindle_mount::OperationStatistics;

use super::place::{Device, Host};
use super::row::{Facts, record};
use super::sampler::Samples;
use super::*;
use crate::observe::{MachineSample, Sample};
use crate::record::input::{Records, parse};
use crate::record::{FileClass, RecordSource, Warning};
use crate::report::{self, Format};
use crate::server::telemetry::production::{Checkpoint, Release};
use crate::server::{endpoint, production_of, telemetry_of};
use crate::stack::layout::Layout;
use crate::volume::sample::{BlockCounters, MountSample};

const URL: &str = "mysql://root@localhost";
const MEGABYTE: f64 = 1e6;

/// A server with so many transactions a second that say COMMIT.
fn sample(second: u64, per_s: f64) -> Sample {
    let seconds = second as f64;
    let counters = [
        ("Com_commit", per_s * seconds),
        ("Com_select", 10.0 * per_s * seconds),
        ("Uptime", 500.0 + seconds),
        ("Uptime_since_flush_status", 500.0 + seconds),
        ("Questions", 20.0 * per_s * seconds),
        ("Threads_running", 5.0),
        ("Innodb_buffer_pool_reads", 3.0 * per_s * seconds),
        ("Innodb_checkpoint_age", 2.0 * MEGABYTE),
    ];
    let operation = |count: u64, latency_us: u64| OperationStatistics {
        count: count * second,
        bytes: count * second * 16_384,
        latency_ns: count * second * latency_us * 1_000,
    };
    let block_device = BlockCounters {
        read: operation(300, 4_000),
        write: operation(100, 2_000),
        queue_ns: second * 1_400_000_000,
        busy_ns: second * 900_000_000,
        ..BlockCounters::default()
    };
    Sample {
        at: Duration::from_secs(second),
        cpu: CpuTimes { busy: 50 * second, total: 200 * second, ..CpuTimes::default() },
        machine: MachineSample {
            memory: Memory { available_bytes: 1 << 30, ..Memory::default() },
            pressure: None,
        },
        server_cpu_s: 0.2 * seconds,
        server_threads: Vec::new(),
        emulator_cpu_s: 0.0,
        mounts: vec![MountSample { block_device: Some(block_device), ..MountSample::default() }],
        counters: counters.map(|(name, value)| (name.to_owned(), value)).into(),
        readings: BTreeMap::from([("sampling_s".to_owned(), seconds / 512.0)]),
        binlog_bytes: None,
        replicas: Vec::new(),
    }
}

/// Of `seconds` seconds, whose checkpoint moves on by its age of 2 MB in five of them.
fn samples(seconds: u64, per_s: f64) -> Samples {
    let checkpoint = |second: u64| Checkpoint::Moving {
        written_bytes: (second as f64 * 0.4 + 2.0) * MEGABYTE,
        checkpoint_bytes: second as f64 * 0.4 * MEGABYTE,
    };
    Samples {
        first: sample(0, per_s),
        later: (1..=seconds).map(|second| sample(second, per_s)).collect(),
        last: sample(seconds, per_s),
        checkpoints: (0..=seconds).map(checkpoint).collect(),
        sessions: vec![4.0; seconds as usize + 1],
        is_interrupted: false,
    }
}

fn options() -> Options {
    Options {
        endpoint: endpoint::parse_to_observe(URL).unwrap(),
        duration: Duration::from_secs(60),
        every: Duration::from_secs(1),
        given: Given::default(),
        trace: None,
        output: "observed.jsonl".into(),
    }
}

fn host(is_local: bool) -> Host {
    let device = Device { name: "sda1".to_owned(), file_system: "ext4".to_owned(), size_bytes: 1 << 40 };
    let devices = if is_local { vec![device] } else { Vec::new() };
    let stack = if is_local { "sda1" } else { "unknown" };
    Host { is_local, process_id: is_local.then_some(4711), layout: Layout::plain(stack, ""), devices }
}

/// The record as it is read back, and its text.
fn recorded(samples: Samples, host: &Host, trace: Option<SampledTrace>) -> Result<(Records, String)> {
    let (options, of_url) = (options(), endpoint::parse(URL).unwrap());
    let release = Release { kind: "mariadb", version: "10.11.6-MariaDB".to_owned() };
    let telemetry = telemetry_of(&of_url).unwrap();
    let settings = [("innodb_flush_log_at_trx_commit", "1"), ("innodb_buffer_pool_size", "134217728")];
    let settings: crate::server::Settings =
        settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let facts = Facts {
        options: &options,
        host,
        release: &release,
        production: production_of(&of_url).unwrap(),
        telemetry,
        durability: telemetry.durability(&settings),
        settings,
        trace,
        started_at: "2100-01-01T00:00:00Z".to_owned(),
    };
    let (header, trial) = record(facts, samples)?;
    let text = Records { header, trials: vec![trial], notes: Vec::new() }.text();
    let records = parse(&text, "observed.jsonl")?;
    Ok((records, text))
}

#[test]
fn counters_become_the_figures_of_a_trial() {
    let (records, text) = recorded(samples(60, 100.0), &host(true), None).unwrap();
    assert_eq!(records.header.source, Some(RecordSource::Production));
    let trial = &records.trials[0];
    assert_eq!(trial.cell, "production/mariadb");
    assert_eq!(trial.warnings, []);
    let measurement = trial.measurement.as_ref().unwrap();
    assert_eq!((measurement.metric.value, measurement.duration_s), (100.0, 60.0));
    assert_eq!(measurement.series.transactions_per_s, vec![100.0; 60]);
    assert_eq!(measurement.transactions[0].committed, 6_000);
    assert_eq!(measurement.flushed_at_commit, Some(vec![FileClass::Redo]));
    let of_one = &measurement.per_transaction;
    assert_eq!((of_one.reads, of_one.writes, of_one.server_cpu_us), (3.0, 1.0, 2_000.0));
    assert_eq!((measurement.cpu.busy, measurement.cpu.sampling_s), (0.25, Some(60.0 / 512.0)));
    let evidence = measurement.bottleneck.evidence.as_ref().unwrap();
    assert_eq!((evidence.terminals, evidence.terminal_time_s), (4, 240.0));
    let production = measurement.production.as_ref().unwrap();
    assert_eq!((production.sessions_at_work, production.transaction_at_work_ms), (Some(4.0), Some(40.0)));
    assert_eq!(production.has_whole_checkpoint, Some(true));
    assert_eq!(production.counted_by, "COMMIT and ROLLBACK");
    let host = measurement.mounts[0].host.as_ref().unwrap();
    assert_eq!((host.reads, host.read_latency_mean_ms), (18_000, 4.0));
    assert!(!measurement.server_counters.contains_key("Threads_running"));
    // Latencies are unknown, and none is made up.
    assert!(measurement.latency.is_unknown() && !text.contains("p99_ms\":0") && !text.contains("histogram"));
}

#[test]
fn a_report_of_it_is_laid_out_in_every_format() {
    let (records, _) = recorded(samples(60, 100.0), &host(true), None).unwrap();
    for format in [
        Format::Html,
        Format::Md,
        Format::Csv,
        Format::Json,
        Format::Text,
        Format::Diskstats,
        Format::Records,
    ] {
        assert!(!report::render(&records, format, false).unwrap().is_empty(), "{format:?}");
    }
    let json = report::render(&records, Format::Json, false).unwrap();
    assert!(json.contains("transactions per second") && json.contains("time no transaction"), "{json}");
    let rows = report::render(&records, Format::Csv, false).unwrap();
    assert!(!rows.contains(",latency_mean_ms,") && rows.contains("per_transaction_reads"), "{rows}");
}

#[test]
fn a_window_without_a_whole_checkpoint_says_how_long_one_takes() {
    let (records, _) = recorded(samples(2, 100.0), &host(true), None).unwrap();
    assert_eq!(records.trials[0].warnings, [Warning::NoWholeCheckpoint { needed_s: Some(5.0) }]);
}

#[test]
fn a_server_that_was_just_started_has_a_cold_cache() {
    let check = |read_mib: u64, expect: &[Warning]| {
        let mut samples = samples(60, 100.0);
        let read_bytes = (read_mib << 20) as f64;
        samples.first.counters.insert("Innodb_data_read".to_owned(), read_bytes);
        samples.last.counters.insert("Innodb_data_read".to_owned(), read_bytes + 60.0 * 300.0 * 16_384.0);
        let (records, _) = recorded(samples, &host(true), None).unwrap();
        assert_eq!(records.trials[0].warnings, expect);
    };
    check(64, &[Warning::ServerNotWarm { turnovers: 0.5 }]);
    check(1_024, &[]);
}

#[test]
fn an_idle_server_gives_no_record() {
    let mistake = recorded(samples(60, 0.5), &host(true), None).unwrap_err();
    assert!(mistake.is::<Mistake>());
    assert_eq!(
        mistake.to_string(),
        "the server was idle: 30 transactions ended in 1 min, and nothing was recorded; observe it while its \
         clients work"
    );
}

#[test]
fn of_a_server_elsewhere_only_its_own_counters_are_recorded() {
    let samples = samples(60, 100.0);
    let bare = |sample: Sample| Sample {
        cpu: CpuTimes::default(),
        machine: MachineSample::default(),
        server_cpu_s: 0.0,
        mounts: vec![MountSample::default()],
        ..sample
    };
    let samples = Samples {
        first: bare(samples.first),
        later: samples.later.into_iter().map(bare).collect(),
        last: bare(samples.last),
        ..samples
    };
    let (records, _) = recorded(samples, &host(false), None).unwrap();
    assert_eq!(records.trials[0].warnings, [Warning::ServerElsewhere]);
    let measurement = records.trials[0].measurement.as_ref().unwrap();
    assert!(measurement.machine.is_none() && measurement.mounts[0].host.is_none());
    assert!(measurement.series.machine.is_empty() && measurement.series.cpu_busy.is_empty());
    assert!(measurement.bottleneck.evidence.as_ref().unwrap().is_server_cpu_unknown);
    assert_eq!(records.header.machine.cpu_count, 0);
    assert!(!report::render(&records, Format::Html, false).unwrap().is_empty());
}

#[test]
fn the_mount_on_a_traced_device_has_the_trace() {
    let trace = SampledTrace {
        device: "sda1".to_owned(),
        trace: TraceView { file: "observed.trace".to_owned(), requests: 7, ..TraceView::default() },
        slice_count: 3,
        lost_count: 0,
    };
    let (records, _) = recorded(samples(60, 100.0), &host(true), Some(trace.clone())).unwrap();
    let measurement = records.trials[0].measurement.as_ref().unwrap();
    assert_eq!(measurement.mounts[0].trace.as_ref(), Some(&trace.trace));
    assert_eq!(measurement.production.as_ref().unwrap().trace.as_ref(), Some(&trace));
}

#[test]
fn a_window_that_cannot_be_is_refused_with_its_bound() {
    let check = |duration_s: u64, every_ms: u64, expect: &str| {
        let refused = check_window(Duration::from_secs(duration_s), Duration::from_millis(every_ms));
        assert_eq!(refused.map_err(|mistake| mistake.to_string()), Err(expect.to_owned()));
    };
    assert_eq!(check_window(SHORTEST, Duration::from_secs(1)), Ok(()));
    check(9, 1_000, "--for: 9 s is too short; a window has 10 s at least");
    check(60, 500, "--every: 500 ms is too often for a server in production; write 1 s or more");
    check(60, 7_000, "--every: 7 s leaves fewer than 10 samples; write 6 s or less");
    check(86_400, 1_000, "--every: 1 s makes more than 21600 samples of 24 h; write 4 s or more");
}
