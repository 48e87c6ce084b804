use std::io::{BufReader, PipeWriter, Write, pipe};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use super::*;
use crate::protocol::{Command, Summary};
use crate::workloads::mock;
use spindle_base::histogram;

/// A load process in a thread: its input, its events, and its result.
pub(super) struct Load {
    pub(super) commands: PipeWriter,
    events: std::io::Lines<BufReader<std::io::PipeReader>>,
    pub(super) process: JoinHandle<Result<()>>,
}

pub(super) fn start(endpoint: Endpoint, workload: WorkloadSpec) -> Load {
    start_spec(RunSpec::new(endpoint, workload, 1))
}

fn start_spec(spec: RunSpec) -> Load {
    let (command_reader, commands) = pipe().unwrap();
    let (event_reader, events) = pipe().unwrap();
    let process = std::thread::spawn(move || serve(Ok(spec), BufReader::new(command_reader), events));
    Load { commands, events: BufReader::new(event_reader).lines(), process }
}

fn mock(terminals: u32, latency_us: u64) -> WorkloadSpec {
    WorkloadSpec::Mock(mock::Spec { terminals, latency_us, rate: None })
}

impl Load {
    pub(super) fn event(&mut self) -> Event {
        serde_json::from_str(&self.events.next().unwrap().unwrap()).unwrap()
    }

    pub(super) fn tell(&mut self, command: &Command) {
        writeln!(self.commands, "{}", serde_json::to_string(command).unwrap()).unwrap();
    }

    pub(super) fn summary(&mut self) -> Summary {
        loop {
            if let Event::Summary(summary) = self.event() {
                return summary;
            }
        }
    }
}

#[test]
fn a_window_holds_what_ended_inside_it() {
    let mut load = start(Endpoint::Mock, mock(3, 2_000));
    assert_eq!(load.event(), Event::Ready);
    load.tell(&Command::Measure { duration_s: 0.3 });
    let first = load.summary();
    load.tell(&Command::Measure { duration_s: 0.3 });
    let second = load.summary();
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();

    for summary in [first, second] {
        let kind = &summary.kinds[0];
        let latencies = histogram::decode(&kind.histogram).unwrap();
        assert_eq!(latencies.len(), kind.committed + kind.rolled_back);
        assert!(summary.duration_s >= 0.3);
        assert!((summary.terminal_time_s - summary.duration_s * 3.0).abs() < 1e-6, "JSON rounds");
        // Three terminals cannot be busy for longer than three windows.
        assert!(latencies.mean() * kind.committed as f64 / 1e6 <= summary.terminal_time_s + 3.0 * 0.1);
        assert!(latencies.min() >= 1_000, "half of the mean is the shortest");
        let commit_wait_s = summary.commit_wait_s.unwrap();
        assert!(commit_wait_s > 0.0 && commit_wait_s < summary.terminal_time_s);
        assert!((summary.metric.value - kind.committed as f64 / summary.duration_s).abs() < 1e-9);
    }
}

#[test]
fn a_window_can_be_ended_early_and_the_next_has_its_full_length() {
    let mut load = start(Endpoint::Mock, mock(1, 1_000));
    assert_eq!(load.event(), Event::Ready);
    load.tell(&Command::Measure { duration_s: 600.0 });
    load.tell(&Command::EndWindow);
    let early = load.summary();
    // Nothing is under way.
    load.tell(&Command::EndWindow);
    load.tell(&Command::Measure { duration_s: 0.3 });
    let whole = load.summary();
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();
    assert!(
        early.duration_s < 300.0 && whole.duration_s >= 0.3,
        "{} s, {} s",
        early.duration_s,
        whole.duration_s
    );
}

#[test]
fn the_parts_of_a_window_add_up_to_it_and_a_new_rate_is_seen_in_its_part() {
    let workload = WorkloadSpec::Mock(mock::Spec { terminals: 2, latency_us: 200, rate: Some(200) });
    let mut load = start(Endpoint::Mock, workload);
    assert_eq!(load.event(), Event::Ready);
    load.tell(&Command::Measure { duration_s: 2.0 });
    let mut seconds = Vec::new();
    let summary = loop {
        match load.event() {
            Event::Second(second) if second.measured => {
                seconds.push(second.transactions);
                if seconds.len() == 1 {
                    load.tell(&Command::EndPart);
                    load.tell(&Command::SetLoad { times: 4.0 });
                }
            }
            Event::Summary(summary) => break summary,
            _ => {}
        }
    };
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();
    let [before, after] = summary.parts.as_slice() else { panic!("{} parts", summary.parts.len()) };
    let counts = [before, after].map(|part| histogram::decode(&part.histogram).unwrap().len());
    assert_eq!(counts.iter().sum::<u64>(), summary.kinds[0].committed);
    assert!((before.duration_s + after.duration_s - summary.duration_s).abs() < 1e-6);
    // A Poisson process has 200 and 800 starts, give or take five deviations.
    assert!((120..290).contains(&counts[0]) && (600..1_000).contains(&counts[1]), "{counts:?}");
    assert!(seconds.iter().sum::<u64>() * 10 >= summary.kinds[0].committed * 9, "{seconds:?}");
}

#[test]
fn further_terminals_of_the_closed_loop_begin_when_the_load_grows() {
    let spec = RunSpec { terminals_most: Some(6), ..RunSpec::new(Endpoint::Mock, mock(2, 2_000), 1) };
    let mut load = start_spec(spec);
    assert_eq!(load.event(), Event::Ready);
    load.tell(&Command::Measure { duration_s: 2.0 });
    let summary = loop {
        match load.event() {
            Event::Second(second) if second.measured => {
                load.tell(&Command::EndPart);
                load.tell(&Command::SetLoad { times: 3.0 });
            }
            Event::Summary(summary) => break summary,
            _ => {}
        }
    };
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();
    let ratio = summary.parts[1].metric.value / summary.parts[0].metric.value;
    assert!((2.0..4.0).contains(&ratio), "{ratio}");
    let terminal_time_s = 2.0 * summary.parts[0].duration_s + 6.0 * summary.parts[1].duration_s;
    assert!((summary.terminal_time_s - terminal_time_s).abs() < 0.5, "{}", summary.terminal_time_s);
}

#[test]
fn the_seconds_of_a_window_add_up_to_its_summary() {
    let mut load = start(Endpoint::Mock, mock(2, 1_000));
    assert_eq!(load.event(), Event::Ready);
    load.tell(&Command::Measure { duration_s: 2.0 });
    let mut transactions = 0;
    let summary = loop {
        match load.event() {
            Event::Second(second) if second.measured => transactions += second.transactions,
            Event::Summary(summary) => break summary,
            _ => {}
        }
    };
    // The window and its second second end at the same time, so their order is undefined.
    assert!(transactions > 0 && transactions <= summary.kinds[0].committed);
    drop(load.commands);
    load.process.join().unwrap().unwrap();
}

/// One terminal with a mean latency of 1 ms at this rate, in two windows of a second.
fn open_loop(per_s: u32) -> [Summary; 2] {
    let workload = WorkloadSpec::Mock(mock::Spec { terminals: 1, latency_us: 1_000, rate: Some(per_s) });
    let mut load = start(Endpoint::Mock, workload);
    assert_eq!(load.event(), Event::Ready);
    let summaries = [(); 2].map(|()| {
        load.tell(&Command::Measure { duration_s: 1.0 });
        load.summary()
    });
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();
    summaries
}

fn mean_ms(summary: &Summary) -> f64 {
    histogram::decode(&summary.kinds[0].histogram).unwrap().mean() / 1e3
}

#[test]
fn above_capacity_the_latency_of_the_open_loop_grows_with_the_queue() {
    let [first, second] = open_loop(4_000);
    // At most a fourth is done, so most of each second is added to the queue.
    assert!(first.behind_s.unwrap() > 0.5 && second.behind_s.unwrap() > 1.0, "{second:?}");
    assert!(mean_ms(&first) > 200.0 && mean_ms(&second) > mean_ms(&first) + 300.0, "{second:?}");
    assert!(second.terminal_time_s <= second.duration_s);
}

#[test]
fn below_capacity_the_open_loop_keeps_its_rate() {
    let [_, summary] = open_loop(50);
    let done = summary.kinds[0].committed as f64 / summary.duration_s;
    assert!((done - 50.0).abs() < 5.0 * 50.0_f64.sqrt(), "five standard deviations: {done}");
    // Idle time of the terminal is not waiting time.
    assert!(summary.terminal_time_s < 0.9 * summary.duration_s, "{summary:?}");
}

#[test]
fn the_end_of_the_input_is_a_stop() {
    let mut load = start(Endpoint::Mock, mock(2, 100));
    assert_eq!(load.event(), Event::Ready);
    drop(load.commands);
    load.process.join().unwrap().unwrap();
}

const SQL_BENCH: &str = r#"{"kind": "sql-bench", "tests": ["transactions", "big-tables"], "divisor": 100}"#;

/// Fixed work on SQLite, loaded and ready.
fn list(directory: &tempfile::TempDir, workload: &str) -> (WorkloadSpec, Load) {
    let endpoint = Endpoint::Sqlite {
        path: directory.path().join("database"),
        pragmas: [("synchronous".to_owned(), "OFF".to_owned())].into(),
    };
    let workload: WorkloadSpec = serde_json::from_str(workload).unwrap();
    workload.build().unwrap().load(&endpoint, 1, &mut |_| Ok(())).unwrap();
    let mut load = start_spec(RunSpec { once: true, ..RunSpec::new(endpoint, workload.clone(), 1) });
    assert_eq!(load.event(), Event::Ready);
    (workload, load)
}

#[test]
fn fixed_work_ends_the_window_and_its_figure_is_the_time_of_its_operations() {
    let directory = tempfile::tempdir().unwrap();
    let (workload, mut load) = list(&directory, SQL_BENCH);
    load.tell(&Command::Measure { duration_s: 600.0 });
    let summary = load.summary();
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();

    let WorkloadSpec::SqlBench(spec) = workload else { panic!("sql-bench") };
    let done: Vec<_> = summary.kinds.iter().map(|kind| (kind.name.clone(), kind.committed)).collect();
    let listed: Vec<_> =
        spec.operations().iter().map(|operation| (operation.name.to_owned(), operation.count)).collect();
    assert_eq!(done, listed);
    assert_eq!(
        (summary.metric.name.as_str(), summary.metric.lower_is_better),
        ("seconds for the fixed work", true)
    );
    assert!(summary.metric.value > 0.0 && summary.metric.value <= summary.duration_s, "{summary:?}");
    let in_histograms_s: f64 = summary
        .kinds
        .iter()
        .map(|kind| histogram::decode(&kind.histogram).unwrap().mean() * kind.committed as f64 / 1e6)
        .sum();
    // Latencies are whole microseconds, of which each operation takes some tens.
    assert!((in_histograms_s / summary.metric.value - 1.0).abs() < 0.1, "{in_histograms_s} {summary:?}");
    // SQLite runs in the client process.
    let cpu_s: f64 = summary.kinds.iter().map(|kind| kind.client_cpu_s.unwrap()).sum();
    assert!(cpu_s > 0.0 && cpu_s <= summary.client_cpu_s, "{cpu_s} {summary:?}");
}

#[test]
fn several_clients_share_fixed_work_and_its_figure_is_the_time_of_the_last() {
    let directory = tempfile::tempdir().unwrap();
    let growth = r#"{"kind": "insert-growth", "rows": 500, "batch": 100, "step_rows": 1000, "steps": 3, "terminals": 2}"#;
    let (_, mut load) = list(&directory, growth);
    load.tell(&Command::Measure { duration_s: 600.0 });
    let summary = load.summary();
    load.tell(&Command::Stop);
    load.process.join().unwrap().unwrap();

    let statements: u64 = summary.kinds.iter().map(|kind| kind.committed).sum();
    // From 500 rows to 3,000; the other client may have had one more statement in progress.
    assert!((25..=26).contains(&statements), "{summary:?}");
    assert_eq!((summary.metric.value, summary.metric.lower_is_better), (summary.duration_s, true));
}

#[test]
fn fixed_work_that_takes_too_long_is_no_result() {
    let directory = tempfile::tempdir().unwrap();
    let (_, mut load) = list(&directory, SQL_BENCH);
    load.tell(&Command::Measure { duration_s: 0.001 });
    let Event::Fatal { message } = load.event() else { panic!("no fatal event") };
    assert!(message.starts_with("the fixed work was not done after "), "{message}");
    assert!(load.process.join().unwrap().is_err());
}

fn check_fatal(workload: WorkloadSpec, commands: &'static str, expect: &str) {
    let events = Arc::new(Mutex::new(Vec::new()));
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let spec = RunSpec::new(Endpoint::Mock, workload, 1);
    let error = serve(Ok(spec), commands.as_bytes(), Shared(events.clone())).unwrap_err();
    assert!(format!("{error:#}").contains(expect), "{error:#}");
    let text = String::from_utf8(events.lock().unwrap().clone()).unwrap();
    let last: Event = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(last, Event::Fatal { message: format!("{error:#}") });
}

#[test]
fn a_workload_without_terminals_is_refused() {
    check_fatal(mock(0, 1), "", "workload mock: terminals: 0 is out of range");
}

#[test]
fn a_line_that_is_no_command_is_refused() {
    check_fatal(mock(1, 1), "measure 5\n", "is no command");
}

#[test]
fn a_client_that_cannot_connect_is_fatal() {
    let tpcc: WorkloadSpec =
        serde_json::from_str(r#"{"kind": "tpcc", "warehouses": 1, "terminals": 1}"#).unwrap();
    let mut load = start(Endpoint::Mock, tpcc);
    let Event::Fatal { message } = load.event() else { panic!("no fatal event") };
    assert!(message.contains("no server"), "{message}");
    assert!(load.process.join().unwrap().is_err());
}

#[test]
fn the_specification_is_the_first_line() {
    let spec = RunSpec::new(Endpoint::Mock, mock(1, 100), 1);
    let line = serde_json::to_string(&spec).unwrap() + "\n";
    serve_standard(std::io::Cursor::new(line), std::io::sink()).unwrap();
    let mut events = Vec::new();
    assert!(serve_standard(std::io::Cursor::new(""), &mut events).is_err());
    let Event::Fatal { message } = serde_json::from_slice(&events).unwrap() else { panic!("no fatal event") };
    assert!(message.contains("no specification"), "{message}");
}
