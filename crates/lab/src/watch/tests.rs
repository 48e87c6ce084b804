//! The format of the state, what a run writes into it, and how a follower reads it.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use insta::assert_snapshot;
use spindle_base::dilation::Dilation;
use spindle_base::proc::{CpuTimes, thread_cpu};
use spindle_load::Second;
use spindle_mount::{OperationStatistics, Statistics};

use super::follow::{Followed, News, choose, parse};
use super::line::{last_words, line};
use super::*;
use crate::host::other_runs::RunHead;
use crate::observe::{MachineSample, Sample};
use crate::record::{Bottleneck, BottleneckKind, FileClass, NextStep, Series, StorageSeries};
use crate::server::{endpoint, telemetry_of};
use crate::stack::layout::Layout;
use crate::volume::sample::{BlockCounters, MountSample};

/// The time of the example.
pub(super) const NOW_MS: u64 = 1_000_034_000;

/// `count` values around `mean`, which rise and fall.
fn wave(count: usize, mean: f64) -> Vec<f64> {
    let value = |index: usize| mean * (1.0 + 0.4 * (index as f64 / 9.0).sin() + 0.1 * (index as f64).cos());
    (0..count).map(|index| crate::report::rounded(value(index))).collect()
}

fn storage(files: &str, stack: &str, seconds: usize, iops: f64, ms: f64) -> StorageState {
    StorageState {
        files: files.to_owned(),
        stack: stack.to_owned(),
        series: StorageSeries {
            read_iops: wave(seconds, iops),
            write_iops: wave(seconds, iops / 2.0),
            flushes_per_s: wave(seconds, iops / 10.0),
            read_mb_per_s: wave(seconds, iops * 0.0164),
            write_mb_per_s: wave(seconds, iops * 0.0082),
            queue_depth: wave(seconds, 3.2),
            read_latency_ms: wave(seconds, ms),
            write_latency_ms: wave(seconds, ms / 3.0),
            flush_latency_ms: wave(seconds, ms * 2.0),
        },
    }
}

/// A trial in its window, after a warm-up.
pub(super) fn example(seconds: usize) -> State {
    let trial = TrialState {
        title: "hdd/mariadb, trial 2".to_owned(),
        dilation: Dilation::NONE,
        cpu_count: 4,
        phase: Phase { name: "measure".to_owned(), begun_at_ms: NOW_MS - 34_000, planned_s: Some(60.0), is_bound: false },
        series: Series {
            transactions_per_s: wave(seconds + 5, 184.0),
            p50_ms: wave(seconds + 5, 12.0),
            p95_ms: wave(seconds + 5, 45.0),
            p99_ms: wave(seconds + 5, 88.0),
            cpu_busy: wave(seconds, 0.3),
            machine: BTreeMap::new(),
            server: BTreeMap::from([
                ("checkpoint_age_bytes".to_owned(), wave(seconds, 45e6)),
                ("dirty_pages".to_owned(), wave(seconds, 1200.0)),
                ("fsyncs_per_s".to_owned(), wave(seconds, 31.0)),
            ]),
            ..Series::default()
        },
        storage: vec![storage("data", "hdd", seconds, 120.0, 8.1), storage("redo", "ssd", seconds, 40.0, 0.2)],
        cpu: Some(CpuShares { busy: 0.31, server: 0.18, client: 0.04, emulator: 0.03 }),
        bottleneck: Some(Bottleneck {
            kind: BottleneckKind::ReadLatency,
            shares: BTreeMap::from([("read".to_owned(), 0.78)]),
            reason: "78 % of the terminals' time went into 4080 reads of 8.10 ms each from `hdd`; the 4 cores were \
                     31 % busy."
                .to_owned(),
            next: Some(NextStep {
                sentence: "Storage that reads at once can give at most 4.5 times.".to_owned(),
                at_most: Some(4.5),
            }),
            evidence: None,
        }),
        events: Vec::new(),
    };
    State {
        version: VERSION,
        changed_at_ms: NOW_MS,
        title: "Would an SSD help this database?".to_owned(),
        report: "/home/a/spindle-results/quick-1/report.html".into(),
        standing: Standing {
            trials_done: 4,
            trials_total: 12,
            left_s: 730.0,
            activity: "hdd/mariadb, trial 2: measure".to_owned(),
            last_result: Some(
                "ssd/mariadb, trial 1: 4711 new-order transactions per minute, limited by CPU".to_owned(),
            ),
        },
        trial: Some(trial),
        is_over: false,
    }
}

#[test]
fn the_format_is_kept() {
    let mut state = example(1);
    let trial = state.trial.as_mut().unwrap();
    // Their fields are those of a record.
    trial.series = Series::default();
    trial.storage.truncate(1);
    trial.storage[0].series = StorageSeries::default();
    assert_snapshot!(serde_json::to_string_pretty(&state).unwrap(), @r#"
    {
      "version": 1,
      "changed_at_ms": 1000034000,
      "title": "Would an SSD help this database?",
      "report": "/home/a/spindle-results/quick-1/report.html",
      "standing": {
        "trials_done": 4,
        "trials_total": 12,
        "left_s": 730.0,
        "activity": "hdd/mariadb, trial 2: measure",
        "last_result": "ssd/mariadb, trial 1: 4711 new-order transactions per minute, limited by CPU"
      },
      "trial": {
        "title": "hdd/mariadb, trial 2",
        "dilation": 1.0,
        "cpu_count": 4,
        "phase": {
          "name": "measure",
          "begun_at_ms": 1000000000,
          "planned_s": 60.0
        },
        "series": {
          "transactions_per_s": [],
          "p50_ms": [],
          "p95_ms": [],
          "p99_ms": [],
          "cpu_busy": [],
          "server": {}
        },
        "storage": [
          {
            "files": "data",
            "stack": "hdd",
            "series": {
              "read_iops": [],
              "write_iops": [],
              "flushes_per_s": [],
              "read_mb_per_s": [],
              "write_mb_per_s": [],
              "queue_depth": [],
              "read_latency_ms": [],
              "write_latency_ms": [],
              "flush_latency_ms": []
            }
          }
        ],
        "cpu": {
          "busy": 0.31,
          "server": 0.18,
          "client": 0.04,
          "emulator": 0.03
        },
        "bottleneck": {
          "kind": "read-latency",
          "shares": {
            "read": 0.78
          },
          "reason": "78 % of the terminals' time went into 4080 reads of 8.10 ms each from `hdd`; the 4 cores were 31 % busy.",
          "next": {
            "sentence": "Storage that reads at once can give at most 4.5 times.",
            "at_most": 4.5
          }
        }
      },
      "is_over": false
    }
    "#);
}

#[test]
fn a_state_is_one_line_for_a_log() {
    assert_snapshot!(line(&example(30), NOW_MS), @"4 of 12 trials done, about 12 min 30 s left; hdd/mariadb, trial 2: measure, 34 s of 1 min; 125 transactions/s, p99 59.6 ms; data on hdd: 107 reads/s of 7.23 ms, 53.6 writes/s of 2.41 ms, 10.7 flushes/s of 14.5 ms; redo on ssd: 35.7 reads/s of 0.179 ms, 17.9 writes/s of 0.0595 ms, 3.57 flushes/s of 0.357 ms; cores 31 % busy; bottleneck so far: read latency");
    let loading = State {
        trial: None,
        standing: Standing { activity: "loading the database, 34 %".to_owned(), ..example(1).standing },
        ..example(1)
    };
    assert_snapshot!(line(&loading, NOW_MS + 100_000), @"4 of 12 trials done, about 10 min 30 s left; loading the database, 34 %");
}

#[test]
fn the_last_event_is_told() {
    let mut state = example(5);
    let event = |at_s: f64, change: &str| EventState { at_s, change: change.to_owned() };
    state.trial.as_mut().unwrap().events = vec![event(10.0, "load × 2"), event(20.0, "card: battery fails")];
    let words = line(&state, NOW_MS);
    assert!(words.contains("; event at 20 s: card: battery fails; ") && !words.contains("load"), "{words}");
}

#[test]
fn the_time_of_a_phase_is_dilated_and_the_time_left_is_real() {
    let mut state = example(30);
    state.trial.as_mut().unwrap().dilation = Dilation::new(4.0).unwrap();
    let told = line(&state, NOW_MS + 6_000);
    let expect = "4 of 12 trials done, about 12 min 30 s left; hdd/mariadb, trial 2: measure, 10 s of 1 min in time \
                  dilated 4 times; ";
    assert!(told.starts_with(expect), "{told}");
}

#[test]
fn the_last_words_name_the_report_or_say_that_the_run_was_stopped() {
    let mut state = example(1);
    assert_snapshot!(last_words(&state, true), @r"
    [4/12] ssd/mariadb, trial 1: 4711 new-order transactions per minute, limited by CPU
    the run was stopped: 4 of 12 trials are done
    ");
    state.is_over = true;
    assert_snapshot!(last_words(&state, true), @r"
    [4/12] ssd/mariadb, trial 1: 4711 new-order transactions per minute, limited by CPU
    report: /home/a/spindle-results/quick-1/report.html
    ");
    state.standing.last_result = None;
    assert_snapshot!(last_words(&state, false), @"the run wrote no report: 4 of 12 trials are done");
}

fn head(process_id: u32, age_s: u64, name: &str, title: &str) -> RunHead {
    RunHead {
        process_id,
        started_at_ticks: 1,
        title: title.to_owned(),
        // In the future, so that its words are the same at any time.
        begun_at_s: RunHead::own("", "").begun_at_s + 1_000_000 - age_s,
        name: name.to_owned(),
    }
}

#[test]
fn a_run_is_the_newest_or_the_one_that_is_named() {
    let runs = [
        head(11, 300, "quickstart", "Would an SSD help?"),
        head(12, 60, "log", "Log on its own disk"),
        head(13, 120, "quickstart-2", "Would an SSD help again?"),
    ];
    let check = |word: Option<&str>, expect: u32| {
        assert_eq!(choose(runs.to_vec(), word).unwrap().process_id, expect, "{word:?}");
    };
    check(None, 12);
    check(Some("13"), 13);
    check(Some("quickstart"), 11);
    check(Some("quick"), 13);
    check(Some("ON ITS OWN"), 12);
    let refused = |runs: &[RunHead], word| choose(runs.to_vec(), word).unwrap_err().to_string();
    assert_snapshot!(refused(&[], None), @"no run is active on this machine; `spindle run SCENARIO` begins one");
    assert_snapshot!(refused(&[], Some("13")), @"no run is active on this machine; `spindle run SCENARIO` begins one");
    assert_snapshot!(refused(&runs[..2], Some("disc")), @"no active run is `disc`; active: `Would an SSD help?` (process 11, for 0 s), `Log on its own disk` (process 12, for 0 s)");
    assert_snapshot!(refused(&runs[..1], Some("")), @"no active run is ``; active: `Would an SSD help?` (process 11, for 0 s)");
}

#[test]
fn a_state_of_another_version_or_of_anything_else_is_refused() {
    let refused = |line: &str| spindle_base::text::causes(&parse(line.as_bytes()).unwrap_err());
    assert_snapshot!(refused(r#"{"version": 2, "whatever": []}"#), @"the run is of another version of Spindle: its state has version 2, and this program reads 1");
    assert_snapshot!(refused(r#"{"version": 1}"#), @"the run sent no state: missing field `changed_at_ms`");
    assert_snapshot!(refused("hello"), @"the run sent no JSON: expected value at line 1 column 1");
}

#[test]
fn a_state_is_read_as_it_was_written_without_what_a_terminal_would_act_upon() {
    let mut state = example(3);
    assert_eq!(parse(&serde_json::to_vec(&state).unwrap()).unwrap(), state);
    state.title = "a\u{1b}[2Jb\u{202e}c".to_owned();
    state.standing.last_result = Some("a\nb".to_owned());
    let read = parse(&serde_json::to_vec(&state).unwrap()).unwrap();
    assert_eq!(read.title, r"a\u{1b}[2Jb\u{202e}c");
    assert_eq!(read.standing.last_result.as_deref(), Some("a b"));
}

#[test]
fn a_connection_ends_with_the_run_and_within_a_line_too() {
    let news = |sent: &str| {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(sent.as_bytes()).unwrap();
        drop(ours);
        Followed::over(theirs).news(Duration::from_secs(60))
    };
    assert!(matches!(news("").unwrap(), Some(News::End)));
    assert!(matches!(news(r#"{"version": 1, "#).unwrap(), Some(News::End)));
    assert!(news("{}\n").is_err());
}

fn operations(count: u64, bytes: u64, ms: u64) -> OperationStatistics {
    OperationStatistics { count, bytes: count * bytes, latency_ns: count * ms * 1_000_000 }
}

/// Of a machine whose seconds are alike: 150 reads of 5 ms, half of two cores busy.
fn sample(second: u64, counters: usize) -> Sample {
    let (read, write) = (operations(150 * second, 16384, 5), operations(50 * second, 4096, 2));
    let block_device =
        BlockCounters { read, write, flush: operations(10 * second, 0, 8), ..BlockCounters::default() };
    let statistics = Statistics {
        uptime_ns: second * 1_000_000_000,
        read,
        write,
        flush: block_device.flush,
        queue_time_ns: second * 930_000_000,
        lateness_histogram: spindle_base::histogram::encode(&spindle_base::histogram::new()),
        ..Statistics::default()
    };
    let mount =
        MountSample { statistics: Some(statistics), block_device: Some(block_device), devices: Vec::new() };
    let known = [("Innodb_buffer_pool_reads", 150.0), ("Innodb_data_fsyncs", 10.0)];
    let known = known.map(|(name, per_s)| (name.to_owned(), per_s * second as f64));
    let others = (0..counters).map(|number| (format!("Counter_{number}"), (second * number as u64) as f64));
    Sample {
        at: Duration::from_secs(second),
        cpu: CpuTimes { busy: 100 * second, total: 200 * second, ..CpuTimes::default() },
        machine: MachineSample::default(),
        server_cpu_s: 0.25 * f64::from(crate::host::provenance::cpu_count()) * second as f64,
        server_threads: Vec::new(),
        emulator_cpu_s: 0.0,
        mounts: vec![mount.clone(), mount],
        counters: known.into_iter().chain(others).collect(),
        readings: BTreeMap::new(),
        binlog_bytes: None,
        replicas: Vec::new(),
    }
}

fn second(at_s: u64) -> Second {
    Second {
        at_s: at_s as f64,
        transactions: 120,
        p50_ms: Some(6.0),
        p95_ms: Some(7.0),
        p99_ms: Some(8.123_456),
        measured: true,
    }
}

fn layout() -> Layout {
    Layout::new("apart", "", "hdd", &[(FileClass::Redo, "ssd"), (FileClass::Binlog, "ssd")])
}

/// A window of a MySQL server with a publisher at the socket.
fn with_feed(socket: &Path, work: impl FnOnce(&Publisher, &mut WindowFeed<'_>)) {
    let publisher = Publisher::open_at(socket, State::of_run(Path::new("report.html")).unwrap()).unwrap();
    publisher.begin_trial("hdd, trial 1", Dilation::NONE, crate::host::provenance::cpu_count());
    publisher.storage("", &layout());
    publisher.enter("measure");
    publisher.plan_phase(Duration::from_secs(60));
    let mut feed = WindowFeed {
        cpu_count: crate::host::provenance::cpu_count(),
        publisher: &publisher,
        telemetry: telemetry_of(&endpoint::parse("mysql://root@localhost").unwrap()).unwrap(),
        layout: &layout(),
        load: &LoadFacts { terminals: Some(1), ..LoadFacts::default() },
        dilation: Dilation::NONE,
        client_id: 0,
        server_id: 0,
        client_cpu_s: [0.0; 2],
    };
    feed.begin();
    work(&publisher, &mut feed);
}

/// The states until one is as expected.
#[track_caller]
fn wait_for(followed: &Followed, is_expected: impl Fn(&State) -> bool) -> State {
    for _ in 0..100 {
        match followed.news(Duration::from_secs(60)).unwrap() {
            Some(News::State(state)) if is_expected(&state) => return *state,
            Some(News::State(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("no such state")
}

#[test]
fn a_window_is_published_second_by_second() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    with_feed(&socket, |publisher, feed| {
        let followed = Followed::over(UnixStream::connect(&socket).unwrap());
        wait_for(&followed, |state| state.trial.is_some());
        publisher.second_of_clients(&second(0));
        let first = sample(0, 0);
        let mut seconds = Vec::new();
        for at in 1..=7 {
            seconds.push((second(at), sample(at, 0)));
            feed.second(&first, &seconds);
        }
        let state = wait_for(&followed, |state| {
            state.trial.as_ref().is_some_and(|trial| trial.series.cpu_busy.len() == 7)
        });
        let trial = state.trial.unwrap();
        assert_eq!(trial.series.transactions_per_s, [120.0; 8], "one of them before the window");
        assert_eq!(trial.series.p99_ms, [8.123; 8]);
        assert_eq!(trial.series.server["fsyncs_per_s"], [10.0; 7]);
        let names: Vec<[&str; 2]> =
            trial.storage.iter().map(|storage| [storage.files.as_str(), &storage.stack]).collect();
        assert_eq!(names, [["data", "hdd"], ["redo+binlog", "ssd"]]);
        let StorageSeries { read_iops, read_latency_ms, queue_depth, .. } = &trial.storage[1].series;
        assert_eq!([read_iops, read_latency_ms, queue_depth], [&[150.0; 7], &[5.0; 7], &[0.93; 7]]);
        let cpu = trial.cpu.unwrap();
        assert_eq!([cpu.busy, cpu.server, cpu.emulator], [0.5, 0.25, 0.0]);
        let bottleneck = trial.bottleneck.unwrap();
        assert_eq!(bottleneck.kind, BottleneckKind::ReadLatency, "{bottleneck:?}");
        assert_eq!(bottleneck.shares["read"], 0.75, "of one terminal's time");
        publisher.end_trial();
        publisher.end();
        assert_eq!(wait_for(&followed, |state| state.is_over).trial, None);
    });
    assert!(!socket.exists());
}

#[test]
fn a_run_without_followers_computes_no_bottleneck() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    with_feed(&socket, |_, feed| {
        let seconds: Vec<_> = (1..=9).map(|at| (second(at), sample(at, 0))).collect();
        for count in 1..=seconds.len() {
            feed.second(&sample(0, 0), &seconds[..count]);
        }
        let followed = Followed::over(UnixStream::connect(&socket).unwrap());
        let trial = wait_for(&followed, |_| true).trial.unwrap();
        assert_eq!((trial.series.cpu_busy.len(), trial.bottleneck), (9, None));
    });
}

/// Otherwise a run would give its processor to the watch.
#[test]
fn publishing_costs_hardly_anything_unwatched_and_less_than_the_whole_line_watched() {
    const SECONDS: u64 = 400;
    const LINES: usize = 20;
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let first = sample(0, 500);
    let seconds: Vec<_> = (1..=SECONDS).map(|at| (second(at), sample(at, 500))).collect();
    // Of a second.
    let publish_s = |feed: &mut WindowFeed<'_>| {
        let begun = thread_cpu();
        for count in 1..=seconds.len() {
            feed.second(&first, &seconds[..count]);
        }
        (thread_cpu() - begun).as_secs_f64() / SECONDS as f64
    };
    let mut unwatched_s = 0.0;
    with_feed(&socket, |_, feed| unwatched_s = publish_s(feed));
    with_feed(&socket, |_, feed| {
        let followed = Followed::over(UnixStream::connect(&socket).unwrap());
        wait_for(&followed, |_| true);
        let watched_s = publish_s(feed);
        let state =
            wait_for(&followed, |state| state.trial.as_ref().unwrap().series.cpu_busy.len() == 300).clone();
        let begun = thread_cpu();
        let line = || serde_json::to_vec(&state).unwrap().len();
        let line_bytes = (0..LINES).map(|_| line()).max().unwrap();
        let line_s = (thread_cpu() - begun).as_secs_f64() / LINES as f64;
        let [unwatched, watched, line] = [unwatched_s, watched_s, line_s].map(|cpu_s| cpu_s * 1e3);
        eprintln!("{unwatched:.3} and {watched:.3} ms a second, {line:.3} ms for {line_bytes} bytes");
        assert!(unwatched < 0.1 * line && watched < line, "{unwatched}, {watched} and {line} ms");
    });
}
