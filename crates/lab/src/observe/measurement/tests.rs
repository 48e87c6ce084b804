use std::time::Duration;

use hdrhistogram::serialization::{Serializer, V2Serializer};
use spindle_base::dilation::Dilation;
use spindle_load::{KindSummary, Metric};
use spindle_mount::{Floor, FloorCost, LayerStatistics, OperationStatistics, Statistics};

use super::*;
use crate::observe::MachineSample;
use crate::observe::waits::{FILE_LOCK_WAITERS, READ_WAITERS};
use crate::record::{BottleneckKind, FileClass, HostSeries, LayerView, OperationSeries};
use crate::server::endpoint;
use crate::server::telemetry_of;
use crate::volume::sample::{BlockCounters, MountSample};
use spindle_base::proc::{CpuTimes, Memory, Pressure};

/// Of a server that answers in this protocol.
fn protocol(url: &str) -> &'static dyn Telemetry {
    telemetry_of(&endpoint::parse(url).unwrap()).unwrap()
}

fn operations(count: u64, bytes: u64, latency_us: u64) -> OperationStatistics {
    OperationStatistics { count, bytes: count * bytes, latency_ns: count * latency_us * 1000 }
}

/// Lateness histograms are encoded by the emulator, in nanoseconds.
fn lateness(replies: u64) -> String {
    use base64::Engine;
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    histogram.record_n(20_000, replies).unwrap();
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A machine with identical seconds: 100 reads of 5 ms, 50 writes of 2 ms, 10 flushes, half busy.
fn sample(start: Duration, second: u64) -> Sample {
    Sample {
        at: start + Duration::from_secs(second),
        cpu: CpuTimes {
            busy: 100 * second,
            total: 200 * second,
            user: 60 * second,
            system: 30 * second,
            stolen: 4 * second,
            ..CpuTimes::default()
        },
        machine: MachineSample {
            pressure: Some(Pressure { io_some_us: 250_000 * second, ..Pressure::default() }),
            memory: Memory { available_bytes: (100 - second) << 20, ..Memory::default() },
        },
        server_cpu_s: 0.5 * second as f64,
        server_threads: Vec::new(),
        emulator_cpu_s: 0.1 * second as f64,
        mounts: vec![mount_sample(second, 1)],
        counters: BTreeMap::from([
            ("Innodb_buffer_pool_reads".to_owned(), 90.0 * second as f64),
            ("Innodb_history_list_length".to_owned(), 7.0),
            ("Innodb_row_lock_time".to_owned(), 10.0 * second as f64),
            ("Uptime_never_moves".to_owned(), 3.0),
        ]),
        readings: BTreeMap::from([("server_s".to_owned(), 0.5 * second as f64)]),
        binlog_bytes: None,
        replicas: Vec::new(),
    }
}

/// A mount on which `times` times as many reads arrive.
fn mount_sample(second: u64, times: u64) -> MountSample {
    MountSample {
        statistics: Some(Statistics {
            uptime_ns: (5 + second) * 1_000_000_000,
            scheduler: "SCHED_FIFO".to_owned(),
            transport: "io_uring".to_owned(),
            floor: Floor {
                idle: FloorCost { alone_ns: 8000, each_other_ns: 1000 },
                busy: FloorCost::default(),
            },
            read: operations(100 * second * times, 16384, 5000),
            write: operations(50 * second, 4096, 2000),
            flush: operations(10 * second, 0, 8000),
            queue_time_ns: 680_000_000 * second,
            seeks: 140 * second,
            late_requests: 4 * second,
            late_ns: 20_400_000 * second,
            lateness_histogram: lateness(160 * second),
            ..Statistics::default()
        }),
        block_device: Some(BlockCounters {
            read: OperationStatistics {
                count: 100 * second * times,
                bytes: 1_638_400 * second * times,
                latency_ns: 500_000_000 * second * times,
            },
            write: OperationStatistics {
                count: 50 * second,
                bytes: 204_800 * second,
                latency_ns: 100_000_000 * second,
            },
            flush: OperationStatistics { count: 10 * second, bytes: 0, latency_ns: 80_000_000 * second },
            writes_merged: 7 * second,
            in_flight: second % 2,
            busy_ns: 600_000_000 * second,
            queue_ns: 680_000_000 * second,
            ..BlockCounters::default()
        }),
        devices: Vec::new(),
    }
}

fn window(seconds: u64) -> Window {
    let start = Duration::from_secs(40);
    let mut latencies = histogram::new();
    latencies.record_n(40_000, 20 * seconds).unwrap();
    let kind = |name: &str, committed, rolled_back| KindSummary {
        name: name.to_owned(),
        committed,
        rolled_back,
        histogram: histogram::encode(&latencies),
        ..KindSummary::default()
    };
    Window {
        timer_tail_us: Some(120.0),
        core_work_us: Some(21.5),
        summary: Summary {
            duration_s: seconds as f64,
            metric: Metric::rate("transactions per second", 20.0),
            kinds: vec![kind("a", 19 * seconds, seconds), kind("b", 20 * seconds, 0)],
            commit_wait_s: Some(0.1 * seconds as f64),
            terminal_time_s: seconds as f64,
            client_cpu_s: 0.02 * seconds as f64,
            worker_threads: 1,
            ..Summary::default()
        },
        seconds: (1..=seconds)
            .map(|second| {
                (
                    Second {
                        transactions: 40,
                        p50_ms: Some(40.0),
                        p95_ms: Some(90.0),
                        p99_ms: Some(99.0),
                        ..Second::default()
                    },
                    sample(start, second),
                )
            })
            .collect(),
        first: sample(start, 0),
        last: sample(start, seconds),
        cache_turnovers: None,
        settling: None,
        recovery_s: None,
        layout: Layout::plain("disk", "disk"),
        replicas: Vec::new(),
        telemetry: protocol("mysql://root@localhost"),
        durability: Durability::default(),
        rates: Vec::new(),
        cpu_count: 2,
        dilation: Dilation::NONE,
        events: Vec::new(),
    }
}

#[test]
fn every_series_has_one_value_per_second() {
    let (measurement, _) = measurement(&window(10), Vec::new()).unwrap();
    let json = serde_json::to_value(&measurement.series).unwrap();
    let lengths = |value: &serde_json::Value| -> Vec<(String, usize)> {
        let vectors = value.as_object().unwrap().iter();
        vectors.filter_map(|(name, values)| Some((name.clone(), values.as_array()?.len()))).collect()
    };
    let all = [&json, &json["server"], &json["machine"]].map(lengths).concat();
    for (name, length) in all.into_iter().filter(|(name, _)| name != "charts") {
        assert_eq!(length, 10, "{name}");
    }
    assert_eq!(measurement.series.machine["server_cores"], vec![0.5; 10]);
    let charts = measurement.series.charts.iter().map(|chart| (chart.title.as_str(), chart.lines.join(" ")));
    assert_eq!(
        charts.collect::<Vec<_>>(),
        [
            ("History list length", "history_list".to_owned()),
            ("Pages read in the foreground", "buffer_pool_reads_per_s".to_owned()),
            ("Processor time, share of all cores", "cpu_user cpu_system cpu_iowait cpu_steal".to_owned()),
            ("Cores in use, by process", "server_cores".to_owned()),
            (
                "Time in which a task waited (PSI)",
                "pressure_cpu_some pressure_io_some pressure_memory_some".to_owned()
            ),
            ("Memory available to programs", "memory_available_bytes".to_owned()),
        ],
        "lines without readings are left out"
    );
    assert_eq!(measurement.mounts[0].series.read_iops, vec![100.0; 10]);
    assert_eq!(measurement.series.cpu_busy, vec![0.5; 10]);
    assert_eq!(measurement.series.machine["cpu_steal"], vec![0.02; 10]);
    let machine = measurement.machine.unwrap();
    assert_eq!((machine.cpu_user, machine.cpu_system, machine.cpu_steal), (0.3, 0.15, 0.02));
    assert_eq!((machine.pressure_io_some, machine.timer_tail_us), (Some(0.25), Some(120.0)));
    assert_eq!(machine.core_work_us, Some(21.5));
    assert_eq!(machine.memory_available_bytes, 90 << 20);
    assert_eq!(measurement.mounts[0].series.queue_depth, vec![0.68; 10]);
    assert_eq!(measurement.series.server["buffer_pool_reads_per_s"], vec![90.0; 10]);
    assert_eq!(measurement.series.server["history_list"], vec![7.0; 10]);
}

#[test]
fn a_client_with_more_threads_than_cores_is_saturated_when_those_are() {
    let mut window = window(10);
    window.summary.worker_threads = 200;
    window.summary.client_cpu_s = 1.7 * 10.0;
    let (measurement, warnings) = measurement(&window, Vec::new()).unwrap();
    assert!(warnings.contains(&Warning::ClientSaturated { share: 0.85 }), "{warnings:?}");
    assert_eq!(measurement.bottleneck.kind, BottleneckKind::Client);
}

#[test]
fn the_kernel_and_the_emulator_are_two_views_of_one_storage() {
    let (measurement, _) = measurement(&window(10), Vec::new()).unwrap();
    let host = measurement.mounts[0].host.clone().unwrap();
    assert_eq!((host.reads, host.writes, host.flushes), (1000, 500, 100));
    assert_eq!(
        (host.read_latency_mean_ms, host.write_latency_mean_ms, host.flush_latency_mean_ms),
        (5.0, 2.0, 8.0)
    );
    assert_eq!(measurement.mounts[0].emulator.clone().unwrap().late_time_share, 0.03);
}

#[test]
fn the_emulator_is_summed_up_over_the_window_only() {
    let (measurement, _) = measurement(&window(10), Vec::new()).unwrap();
    let emulator = measurement.mounts[0].emulator.clone().unwrap();
    assert_eq!((emulator.requests, emulator.reads, emulator.seeks), (1600, 1000, 1400));
    assert_eq!((emulator.read_latency_mean_ms, emulator.flush_latency_mean_ms), (5.0, 8.0));
    assert_eq!((emulator.late_share, emulator.floor_us, emulator.queue_depth_mean), (0.025, 8.0, 0.68));
    assert!((emulator.lateness_p99_us - 20.0).abs() < 0.1, "{}", emulator.lateness_p99_us);
}

#[test]
fn intended_rollbacks_count_as_transactions() {
    let (measurement, _) = measurement(&window(10), Vec::new()).unwrap();
    assert_eq!(measurement.latency.count, 400);
    assert_eq!(measurement.per_transaction.reads, 2.5);
    assert_eq!(measurement.per_transaction.read_kib, 40.0);
    assert_eq!(measurement.per_transaction.server_cpu_us, 12_500.0);
}

#[test]
fn foreground_reads_decide_the_verdict() {
    let (measurement, warnings) = measurement(&window(10), Vec::new()).unwrap();
    // 90 reads a second of 5 ms in one second of one terminal.
    assert!((measurement.bottleneck.shares["read"] - 0.45).abs() < 1e-9);
    assert!((measurement.bottleneck.shares["locks"] - 0.01).abs() < 1e-9);
    assert_eq!(measurement.bottleneck.kind, BottleneckKind::ReadLatency);
    assert!(matches!(warnings[..], [Warning::Late { .. }]), "{warnings:?}");
}

#[test]
fn unchanged_counters_and_levels_are_left_out() {
    let (measurement, _) = measurement(&window(10), Vec::new()).unwrap();
    let names: Vec<&str> = measurement.server_counters.keys().map(String::as_str).collect();
    assert_eq!(names, ["Innodb_buffer_pool_reads", "Innodb_row_lock_time"]);
}

/// `change` sees the mounts of every sample, with its second.
fn changed(mut window: Window, change: impl Fn(&mut Vec<MountSample>, u64)) -> Window {
    change(&mut window.first.mounts, 0);
    for (second, (_, sample)) in (1..).zip(&mut window.seconds) {
        change(&mut sample.mounts, second);
    }
    let end = window.seconds.len() as u64;
    change(&mut window.last.mounts, end);
    window
}

#[test]
fn without_storage_there_is_no_view_of_it() {
    let window = changed(window(3), |mounts, _| mounts[0] = MountSample::default());
    let (measurement, _) = measurement(&window, Vec::new()).unwrap();
    assert_eq!((&measurement.mounts[0].emulator, &measurement.mounts[0].host), (&None, &None));
    assert_eq!(measurement.mounts[0].series.read_iops, vec![0.0; 3]);
}

#[test]
fn a_real_disk_is_seen_through_the_kernel() {
    let window = changed(window(3), |mounts, _| mounts[0].statistics = None);
    let (measurement, warnings) = measurement(&window, Vec::new()).unwrap();
    assert_eq!(measurement.mounts[0].emulator, None);
    assert_eq!(measurement.mounts[0].series.read_iops, vec![100.0; 3]);
    assert_eq!(measurement.mounts[0].series.queue_depth, vec![0.68; 3]);
    assert_eq!(measurement.mounts[0].host.clone().unwrap().queue_depth_mean, 0.68);
    assert_eq!((measurement.per_transaction.reads, measurement.per_transaction.read_kib), (2.5, 40.0));
    assert_eq!(warnings, []);
}

#[test]
fn the_kernels_counters_are_kept_second_by_second_without_columns_of_zeros() {
    let (measurement, _) = measurement(&window(3), Vec::new()).unwrap();
    let series = &measurement.mounts[0].host_series;
    assert_eq!((&series.elapsed_s, &series.busy_ms), (&vec![1.0; 3], &vec![600.0; 3]));
    assert_eq!((&series.write.count, &series.write.merged), (&vec![50; 3], &vec![7; 3]));
    assert_eq!((&series.in_flight, &series.read.time_ms), (&vec![1, 0, 1], &vec![500.0; 3]));
    assert_eq!(series.discard, OperationSeries::default());
    let written = serde_json::to_string(series).unwrap();
    assert_eq!(serde_json::from_str::<HostSeries>(&written).unwrap(), *series);
    let without = serde_json::to_string(&MountView::default()).unwrap();
    assert!(!without.contains("host_series"), "{without}");
    assert_eq!(serde_json::from_str::<MountView>(&without).unwrap(), MountView::default());
}

#[test]
fn what_each_layer_of_a_stack_did_in_the_window_is_told_and_nothing_of_a_bare_drive() {
    let with_layers = |names: &[&str]| {
        let window = changed(window(10), |mounts, second| {
            let layer = |(depth, name): (u32, &&str)| LayerStatistics {
                depth,
                name: (*name).to_owned(),
                reads: 1000 + 7 * second,
                write_bytes: 512 * second,
                ..LayerStatistics::default()
            };
            mounts[0].statistics.as_mut().unwrap().layers = (0..).zip(names).map(layer).collect();
        });
        measurement(&window, Vec::new()).unwrap().0.mounts.remove(0).layers
    };
    let layers = with_layers(&["raid", "disk 1"]);
    let expect = LayerView { name: "raid".to_owned(), reads: 70, write_bytes: 5120, ..LayerView::default() };
    assert_eq!(layers, [expect.clone(), LayerView { depth: 1, name: "disk 1".to_owned(), ..expect }]);
    assert_eq!(with_layers(&["disk"]), []);
}

#[test]
fn reads_from_the_page_cache_cause_no_wait() {
    let window = changed(window(10), |mounts, second| {
        mounts[0].block_device = Some(BlockCounters {
            read: OperationStatistics {
                count: 10 * second,
                bytes: 163_840 * second,
                latency_ns: 50_000_000 * second,
            },
            ..BlockCounters::default()
        });
    });
    let (measurement, _) = measurement(&window, Vec::new()).unwrap();
    // 10 of 90 reads a second reached the device, each for 5 ms.
    assert!((measurement.bottleneck.shares["read"] - 0.05).abs() < 1e-9, "{:?}", measurement.bottleneck);
}

#[test]
fn without_a_sum_of_lock_waits_the_waiting_sessions_count() {
    let mut window = window(10);
    let Window { first, seconds, last, .. } = &mut window;
    for sample in seconds.iter_mut().map(|(_, sample)| sample).chain([first, last]) {
        let reads = sample.counters["Innodb_buffer_pool_reads"];
        sample.counters = [
            ("pg_stat_database.blks_read".to_owned(), reads),
            ("lock_waiters".to_owned(), 0.4),
            ("checkpoint_age_bytes".to_owned(), 7.0),
        ]
        .into();
    }
    window.telemetry = protocol("postgres:/run");
    let (measurement, _) = measurement(&window, Vec::new()).unwrap();
    let terminals = window.summary.terminal_time_s / window.summary.duration_s;
    assert!(
        (measurement.bottleneck.shares["locks"] - 0.4 / terminals).abs() < 1e-9,
        "{:?}",
        measurement.bottleneck
    );
    assert!(measurement.bottleneck.shares["read"] > 0.0, "{:?}", measurement.bottleneck);
    assert_eq!(measurement.series.server["checkpoint_age_bytes"], vec![7.0; 10]);
    let counters: Vec<&str> = measurement.server_counters.keys().map(String::as_str).collect();
    assert_eq!(counters, ["pg_stat_database.blks_read"], "levels are left out");
}

#[test]
fn threads_that_wait_in_the_kernel_are_counted() {
    let evidence = |window: &Window| *measurement(window, Vec::new()).unwrap().0.bottleneck.evidence.unwrap();
    let mut window = window(10);
    let earlier = evidence(&window);
    assert_eq!((earlier.file_lock_wait_s, earlier.read_wait_s), (None, None), "nobody looked");
    for (number, (_, sample)) in window.seconds.iter_mut().enumerate() {
        for (waiters, count) in [(FILE_LOCK_WAITERS, 2.0), (READ_WAITERS, 3.0)] {
            sample.readings.insert(waiters.to_owned(), if number < 5 { count } else { 0.0 });
        }
    }
    let counted = evidence(&window);
    let check = |wait_s: Option<f64>, waiters: f64| {
        let error = wait_s.unwrap() - waiters * window.summary.duration_s;
        assert!(error.abs() < 1e-9, "{wait_s:?}");
    };
    check(counted.file_lock_wait_s, 1.0);
    check(counted.read_wait_s, 1.5);
}

#[test]
fn each_mount_of_a_layout_has_its_own_view() {
    let mut window = changed(window(3), |mounts, second| mounts.push(mount_sample(second, 3)));
    window.layout = Layout::new("split", "", "disk", &[(FileClass::Redo, "card")]);
    let (measurement, _) = measurement(&window, Vec::new()).unwrap();
    let [_, redo] = &measurement.mounts[..] else { panic!("{:?}", measurement.mounts) };
    assert_eq!(measurement.mounts[0].emulator.clone().unwrap().reads, 300);
    assert_eq!(redo.emulator.as_ref().unwrap().reads, 900);
    assert_eq!(redo.series.read_iops, vec![300.0; 3]);
    assert_eq!(measurement.per_transaction.reads, 10.0, "those of both mounts");
    assert!(
        measurement.bottleneck.reason.contains("reads of 5.00 ms each from `disk`"),
        "{}",
        measurement.bottleneck.reason
    );
}

/// A pool with 100 reads a second of 5 ms from its data device and 300 of 3 ms from its cache device.
fn pool(seconds: u64) -> Window {
    changed(window(seconds), |mounts, second| {
        let mut cache = mount_sample(second, 3);
        if let Some(counters) = &mut cache.block_device {
            counters.read.latency_ns = 900_000_000 * second;
        }
        mounts[0].devices =
            vec![("data", mount_sample(second, 1)), ("log", mount_sample(second, 0)), ("cache", cache)];
    })
}

#[test]
fn each_device_of_a_pool_has_its_own_view() {
    let (measurement, _) = measurement(&pool(3), Vec::new()).unwrap();
    let reads: Vec<(&str, u64)> = measurement.mounts[0]
        .devices
        .iter()
        .map(|device| (device.name.as_str(), device.emulator.as_ref().unwrap().reads))
        .collect();
    assert_eq!(reads, [("data", 300), ("log", 0), ("cache", 900)]);
    assert_eq!(measurement.mounts[0].devices[2].series.read_iops, vec![300.0; 3]);
    assert_eq!(measurement.mounts[0].devices[2].host.as_ref().unwrap().read_latency_mean_ms, 3.0);
    assert_eq!(measurement.per_transaction.reads, 2.5, "those of the volume, once");
}

#[test]
fn reads_of_a_pool_are_waited_for_on_its_data_and_its_cache_device() {
    let (measurement, _) = measurement(&pool(10), Vec::new()).unwrap();
    // 90 reads a second; (100 of 5 ms and 300 of 3 ms) have a mean of 3.5 ms.
    assert!((measurement.bottleneck.shares["read"] - 0.315).abs() < 1e-9, "{:?}", measurement.bottleneck);
    let words = "900 reads of 3.50 ms each from the data and cache devices of `disk`";
    assert!(measurement.bottleneck.reason.contains(words), "{}", measurement.bottleneck.reason);
}

#[test]
fn commits_of_a_pool_are_waited_for_on_its_log_device() {
    let mut window = pool(10);
    window.summary.commit_wait_s = Some(6.0);
    let (measurement, _) = measurement(&window, Vec::new()).unwrap();
    let words = "COMMIT, with writes of 2.00 ms and flushes of 8.00 ms on the log device of `disk`";
    assert!(measurement.bottleneck.reason.contains(words), "{}", measurement.bottleneck.reason);
}

const INNODB: [(&str, &str); 3] =
    [("innodb_flush_log_at_trx_commit", "1"), ("log_bin", "OFF"), ("sync_binlog", "0")];
const POSTGRES: [(&str, &str); 2] = [("fsync", "on"), ("synchronous_commit", "on")];

/// Ten seconds without a stopwatch around COMMIT, on a server with these settings. `per_s` gives the increase
/// of each counter per second.
fn untimed(settings: &[(&str, &str)], per_s: &[(&str, f64)]) -> Window {
    let mut window = window(10);
    window.summary.commit_wait_s = None;
    window.summary.worker_threads = 1;
    if settings.iter().any(|(name, _)| *name == POSTGRES[0].0) {
        window.telemetry = protocol("postgres:/run");
    }
    let settings = settings.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    window.durability = window.telemetry.durability(&settings);
    let of_second =
        |second: f64| per_s.iter().map(|(name, count)| ((*name).into(), 1000.0 + count * second)).collect();
    (window.first.counters, window.last.counters) = (of_second(0.0), of_second(10.0));
    window
}

#[track_caller]
fn check_commits(window: &Window, share: Option<f64>) {
    let (measurement, _) = measurement(window, Vec::new()).unwrap();
    let found = measurement.bottleneck.shares.get("commit").copied();
    let is_near = |(found, share): (f64, f64)| (found - share).abs() < 1e-9;
    assert!(found.is_some() == share.is_some() && found.zip(share).is_none_or(is_near), "{found:?}");
}

/// A write takes 2 ms here and a FLUSH 8 ms, of which there are 10 a second.
#[test]
fn estimated_commits_wait_for_a_write_and_a_flush() {
    check_commits(&untimed(&INNODB, &[("Innodb_max_trx_id", 10.0)]), Some(0.05));
    check_commits(&untimed(&POSTGRES, &[("pg_stat_database.xact_commit", 900.0)]), Some(0.0));
    let one_of_many = [("pg_stat_database.xact_commit", 900.0), ("pg_stat_database.tup_updated", 4.0)];
    check_commits(&untimed(&POSTGRES, &one_of_many), Some(0.04));
    // A server without that number counts statements. A single statement is a transaction of its own;
    // statements inside a client's transaction do not count.
    let statements = [("Com_update", 3.0), ("Com_insert", 2.0)];
    check_commits(&untimed(&INNODB, &statements), Some(0.05));
    check_commits(&untimed(&INNODB, &[("Com_commit", 2.0), statements[0], statements[1]]), Some(0.02));
    check_commits(&untimed(&INNODB, &[("Com_commit", 9.0), statements[0], statements[1]]), Some(0.05));
}

#[test]
fn a_flush_serves_one_commit_of_each_terminal_at_most() {
    // Engines without a log of their own, such as MyISAM: one commit per FLUSH instead of a hundred commits.
    let mut window = untimed(&INNODB, &[("Com_insert", 100.0)]);
    check_commits(&window, Some(0.1));
    // Two terminals have 20 commits a second of 10 ms; the log is busy for a tenth of the time, half of it
    // for the other one.
    window.summary.worker_threads = 2;
    window.summary.terminal_time_s = 20.0;
    check_commits(&window, Some(20.0 * 0.010 * 1.05 / 2.0));
}

#[test]
fn commits_that_return_at_once_take_no_time_and_unknown_ones_are_not_zero() {
    let ids = [("Innodb_max_trx_id", 10.0)];
    check_commits(&untimed(&[("innodb_flush_log_at_trx_commit", "2"), INNODB[1]], &ids), Some(0.0));
    let rows = [("pg_stat_database.xact_commit", 9.0), ("pg_stat_database.tup_updated", 9.0)];
    let nothing_but_a_replica =
        [("Innodb_max_trx_id", 10.0), ("Rpl_semi_sync_master_tx_wait_time", 500_000.0)];
    check_commits(&untimed(&[(INNODB[0].0, "0")], &nothing_but_a_replica), Some(0.5));
    check_commits(&untimed(&[("fsync", "on"), ("synchronous_commit", "off")], &rows), Some(0.0));
    check_commits(&untimed(&[("fsync", "off"), POSTGRES[1]], &rows), Some(0.0));
    check_commits(&untimed(&[], &ids), None);
    check_commits(&untimed(&INNODB, &[ids[0], ("Rocksdb_wal_bytes", 4096.0)]), None);
    let nowhere = changed(untimed(&INNODB, &ids), |mounts, _| mounts[0] = MountSample::default());
    check_commits(&nowhere, None);
}

#[test]
fn a_synced_binary_log_is_waited_for_after_the_redo_log() {
    let settings = [INNODB[0], ("log_bin", "ON"), ("sync_binlog", "1")];
    let ids = [("Innodb_max_trx_id", 10.0)];
    check_commits(&untimed(&settings, &ids), Some(0.1));
    check_commits(&untimed(&[settings[0], settings[1], INNODB[2]], &ids), Some(0.05));
    // On a device of its own that takes 2 ms for a write and needs no FLUSH.
    let mut apart = changed(untimed(&settings, &ids), |mounts, second| {
        let mut log = mount_sample(second, 0);
        if let Some(counters) = &mut log.block_device {
            counters.flush = OperationStatistics::default();
        }
        mounts.push(log);
    });
    apart.layout = Layout::new("apart", "", "disk", &[(FileClass::Binlog, "card")]);
    check_commits(&apart, Some(0.05 + 0.01));
}

#[test]
fn all_commits_of_a_group_wait_for_its_acknowledgement() {
    let check = |point: &str, commit_wait_s: Option<f64>, group: f64, expect: &str| {
        let counters = [
            ("Innodb_max_trx_id", 10.0),
            ("Rpl_semi_sync_master_tx_wait_time", 500_000.0),
            ("Binlog_commits", 6.0),
            ("Binlog_group_commits", 6.0 / group),
        ];
        let settings = [INNODB[0], INNODB[1], INNODB[2], ("rpl_semi_sync_master_wait_point", point)];
        let mut window = untimed(&settings, &counters);
        window.summary.commit_wait_s = commit_wait_s;
        window.summary.terminal_time_s = 40.0;
        let (measurement, _) = measurement(&window, Vec::new()).unwrap();
        let reason = measurement.bottleneck.reason;
        assert!(reason.contains(&format!("{expect} of it into waiting for a replica's")), "{reason}");
    };
    // Half a second of each; ten seconds have 40 of terminals.
    check("AFTER_COMMIT", Some(20.0), 1.0, "25 %");
    // Two terminals of four are in a COMMIT at any time.
    check("AFTER_SYNC", Some(20.0), 1.0, "50 %");
    check("AFTER_SYNC", Some(20.0), 3.0, "75 %");
    // An estimate without a stopwatch: 0.5 s for the log, and 15 s for the replica.
    check("AFTER_SYNC", None, 3.0, "97 %");
}

#[test]
fn an_emulator_without_the_io_flusher_flag_is_in_the_warnings_of_a_trial() {
    let window = changed(window(10), |mounts, _| {
        mounts[0].statistics.as_mut().unwrap().io_flusher_refused = true;
    });
    let (_, warnings) = measurement(&window, Vec::new()).unwrap();
    assert!(warnings.contains(&Warning::NoIoFlusher), "{warnings:?}");
}

#[test]
fn the_warning_is_about_the_latest_device_of_a_pool() {
    let window = changed(pool(10), |mounts, second| {
        let log = mounts[0].devices[1].1.statistics.as_mut().unwrap();
        log.late_ns = 340_000_000 * second;
    });
    let (_, warnings) = measurement(&window, Vec::new()).unwrap();
    let late =
        |warning: &Warning| matches!(warning, Warning::Late { share, .. } if (*share - 0.5).abs() < 1e-9);
    assert!(warnings.iter().any(late), "{warnings:?}");
}

#[test]
fn a_background_in_real_time_fails_a_dilated_trial() {
    let of = |loops: u64, k: f64| {
        let mut window = changed(window(10), |_, _| {});
        window.telemetry = protocol("mysql://user@localhost/shop");
        window.dilation = Dilation::new(k).unwrap();
        let name = "Innodb_master_thread_idle_loops";
        let counters = [("Innodb_master_thread_active_loops", 7), (name, loops)];
        window.last.counters = counters.map(|(name, count)| (name.to_owned(), count as f64)).into();
        window.first.counters = window.last.counters.clone();
        window.first.counters.insert(name.to_owned(), 0.0);
        measurement(&window, Vec::new()).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(of(12, 4.0), Ok(()));
    // A busy disk holds the thread up.
    assert_eq!(of(3, 4.0), Ok(()));
    assert_eq!(of(40, 1.0), Ok(()));
    assert_eq!(
        of(40, 4.0).unwrap_err(),
        "the server's background does not run in dilated time: InnoDB's master thread made 40 rounds in 10.0 s of \
         the trial's time, one each 1 s; nothing of this trial counts"
    );
}
