//! The whole pipeline on the mock server: resume, failures, signals, locks. Every test runs the real binary.

use std::fs;
use std::ops::Deref;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::emulated_support::{self, kill};
use crate::{in_check_all, wait_until};
use rustix::process::{Pid, Signal};
use spindle_lab::record::{Header, Trial, Warning};
use spindle_lab::report;

/// The bench of a scenario, with a directory for the files that its run must remove.
pub(crate) struct Bench(emulated_support::Bench);

impl Deref for Bench {
    type Target = emulated_support::Bench;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Bench {
    pub(crate) fn new(scenario: &str) -> Bench {
        let bench = Bench(emulated_support::Bench::anywhere());
        fs::create_dir(bench.temporary()).unwrap();
        bench.write("test.toml", scenario);
        bench
    }

    pub(crate) fn temporary(&self) -> PathBuf {
        self.path("work")
    }

    pub(crate) fn results(&self) -> PathBuf {
        self.path("results")
    }

    /// Returns what the run says on the standard error.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str], exit_code: i32) -> String {
        self.run_scenario(arguments, &[], exit_code)
    }

    pub(crate) fn read(&self) -> (Header, Vec<Trial>) {
        let records = report::read(&self.records()).unwrap();
        (records.header, records.trials)
    }

    pub(crate) fn trials(&self) -> Vec<(String, u32)> {
        self.read().1.into_iter().map(|trial| (trial.cell, trial.trial)).collect()
    }

    /// Returns when the file has that many lines, the header included.
    #[track_caller]
    fn wait_for_lines(&self, count: usize) {
        wait_until("lines in the records", || {
            fs::read_to_string(self.records()).unwrap_or_default().lines().count() >= count
        });
    }

    #[track_caller]
    pub(crate) fn check_nothing_left(&self) {
        let left: Vec<_> =
            fs::read_dir(self.temporary()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "left behind: {left:?}");
    }
}

pub(crate) fn scenario(trials: u32, servers: &[(&str, &str)], measure: &str) -> String {
    let names: Vec<&str> = servers.iter().map(|(name, _)| *name).collect();
    let servers: String = servers
        .iter()
        .map(|(name, settings)| format!("[servers.{name}]\nkind = \"mock\"\nsettings = {{ {settings} }}\n"))
        .collect();
    format!(
        r#"
title = "Test"
question = "Does it work?"
[stacks.a]
profile = "null"
size = "1 GB"
[stacks.b]
profile = "null"
size = "2 GB"
{servers}
[workloads.mock]
kind = "mock"
terminals = 2
latency_us = 500
[matrix]
stack = ["a", "b"]
server = {names:?}
workload = ["mock"]
[run]
trials = {trials}
start = "warm-fast"
warm_up = "10 ms"
settle = "10 ms"
measure = "{measure}"
seed = 3
"#
    )
}

pub(crate) const GOOD: &[(&str, &str)] = &[("good", "")];
const BROKEN: (&str, &str) = ("broken", "fail = \"start\"");

#[test]
fn a_run_leaves_one_row_per_trial_in_blocks() {
    let bench = Bench::new(&scenario(4, GOOD, "100 ms"));
    // On a busy machine nothing may end in so short a window.
    wait_until("a transaction in every window", || {
        bench.run(&["--fresh"], 0);
        let measured = |trial: &Trial| trial.measurement.as_ref().unwrap().latency.count > 0;
        bench.read().1.iter().all(measured)
    });
    let (header, trials) = bench.read();
    assert_eq!(header.scenario.trials_per_cell, 4);
    assert_eq!(header.cells.len(), 2);
    assert_eq!(trials.len(), 8);
    for (index, block) in trials.chunks(2).enumerate() {
        let mut cells: Vec<&str> = block.iter().map(|trial| trial.cell.as_str()).collect();
        cells.sort_unstable();
        assert_eq!(cells, ["a", "b"], "block {}", index + 1);
        assert!(block.iter().all(|trial| trial.block as usize == index + 1));
        assert_eq!(block[0].provenance.seed, block[1].provenance.seed);
    }
    for trial in &trials {
        let measurement = trial.measurement.as_ref().unwrap();
        assert!(measurement.latency.count > 0 && measurement.metric.value > 0.0, "{trial:?}");
        assert!(measurement.verification.iter().all(|check| check.passed));
        assert_eq!(trial.provenance.scenario_hash, header.provenance.scenario_hash);
        for phase in ["restore", "start", "warm-up", "settle", "measure", "verify", "stop"] {
            assert!(trial.phases_s.contains_key(phase), "no {phase} in {:?}", trial.phases_s);
        }
    }
    assert!(bench.results().join("report.html").exists());
    bench.check_nothing_left();
}

#[test]
fn a_window_with_enough_transactions_ends_with_its_second_after_the_shortest_time() {
    let enough = "enough = 100\nat_least = \"2 s\"\nseed = 3";
    let bench = Bench::new(&scenario(1, GOOD, "10 min").replace("seed = 3", enough));
    bench.run(&[], 0);
    for trial in bench.read().1 {
        let measurement = trial.measurement.unwrap();
        assert!(measurement.latency.count >= 100, "{}", measurement.latency.count);
        assert!((1.9..60.0).contains(&measurement.duration_s), "{} s", measurement.duration_s);
    }
}

#[test]
fn a_settling_ends_when_the_load_is_steady_and_a_trial_that_never_is_says_so() {
    // The rule needs a minute.
    let Some(servers) = in_check_all(|| Some([GOOD[0], ("filling", "backlog = \"grows\"")])) else { return };
    let text = scenario(1, &servers, "1 s")
        .replace("settle = \"10 ms\"", "settle = \"until steady\"\nsettle_at_most = \"80 s\"")
        // A busy machine serves them too, so that the load is level.
        .replace("latency_us = 500", "latency_us = 500\nrate = 200")
        .replace("[\"a\", \"b\"]", "[\"a\"]");
    let bench = Bench::new(&text);
    bench.run(&[], 0);
    for trial in bench.read().1 {
        let settling = trial.measurement.unwrap().settling.unwrap();
        let names: Vec<&str> = settling.series.keys().map(String::as_str).collect();
        let moving: Vec<&Warning> =
            trial.warnings.iter().filter(|warning| warning.is_of_steadiness()).collect();
        if trial.cell == "a/good" {
            assert_eq!(names, ["transactions_per_s", "written_kib_per_transaction"]);
            assert!((59.0..80.0).contains(&settling.needed_s), "{settling:?}");
            assert!(settling.is_steady && moving.is_empty(), "{moving:?}");
        } else {
            assert_eq!(names, ["backlog", "transactions_per_s", "written_kib_per_transaction"]);
            assert_eq!((settling.needed_s, settling.is_steady), (80.0, false));
            let [Warning::NotSteady { never_settled: Some(never), .. }] = moving[..] else {
                panic!("{:?}", trial.warnings)
            };
            assert!(never.moving.contains(&"backlog".to_owned()), "{never:?}");
        }
        let seconds = settling.series["transactions_per_s"].len();
        assert!((59..=81).contains(&seconds), "{seconds} s");
    }
    let output = bench.command(&["report", "results", "--format", "csv"]).output().unwrap();
    let csv = String::from_utf8(output.stdout).unwrap();
    assert!(csv.contains(",settled,,0,backlog") && csv.contains(",settled,,1,"), "{csv}");
    let marked: Vec<&str> = csv.lines().filter(|line| line.contains(",result,")).collect();
    assert!(
        marked.iter().all(|line| line.ends_with(",not steady") == line.contains("a/filling")),
        "{marked:?}"
    );
}

#[test]
fn without_a_number_of_trials_a_run_ends_when_it_knows_its_ratio() {
    let text = scenario(1, GOOD, "100 ms").replace("trials = 1", "until = \"100 %\"");
    let bench = Bench::new(&text);
    let said = bench.run(&[], 0);
    assert!(said.contains("until each ratio is known to within 100 %, at most 40 min in all"), "{said}");
    let (header, trials) = bench.read();
    // A busy machine may need more blocks, and always whole ones.
    assert!(trials.len() >= 10 && trials.len() % 2 == 0, "{} trials", trials.len());
    assert_eq!(header.scenario.until.unwrap().half_width, 1.0);
    let before = fs::read(bench.records()).unwrap();
    let said = bench.run(&[], 0);
    assert!(said.contains("nothing left to run"), "{said}");
    assert_eq!(fs::read(bench.records()).unwrap(), before);
}

#[test]
fn one_cell_under_two_names_shows_what_the_method_invents() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&["--a-a"], 0);
    let mut cells: Vec<String> = bench.trials().into_iter().map(|(cell, _)| cell).collect();
    cells.sort_unstable();
    assert_eq!(cells, ["a", "a/again"]);
    let (header, _) = bench.read();
    assert_eq!(header.cells[0].mounts, header.cells[1].mounts);
    let refused = bench.run(&[], 2);
    assert!(refused.contains("holds the records of another scenario"), "{refused}");
}

#[test]
fn a_second_run_has_nothing_to_do() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let before = fs::read(bench.records()).unwrap();
    bench.run(&[], 0);
    assert_eq!(fs::read(bench.records()).unwrap(), before);
}

#[test]
fn a_longer_run_keeps_what_the_shorter_one_found() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let (_, before) = bench.read();
    bench.write("test.toml", &scenario(2, GOOD, "100 ms"));
    bench.run(&[], 0);
    let (header, after) = bench.read();
    assert_eq!((header.scenario.trials_per_cell, after.len()), (2, 4));
    assert_eq!(after[..2], before);
}

#[test]
fn a_torn_last_line_is_cut_off_and_its_trial_runs_again() {
    let bench = Bench::new(&scenario(2, GOOD, "100 ms"));
    bench.run(&[], 0);
    let text = fs::read_to_string(bench.records()).unwrap();
    let (_, before) = bench.read();
    fs::write(bench.records(), &text[..text.len() - 100]).unwrap();
    bench.run(&[], 0);
    let (_, after) = bench.read();
    assert_eq!(after.len(), 4);
    assert_eq!(after[..3], before[..3]);
    assert_eq!((&after[3].cell, after[3].trial), (&before[3].cell, before[3].trial));
}

#[test]
fn a_resumed_run_does_not_load_again() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let snapshots = bench.results().join("snapshots");
    let listing = || -> Vec<_> {
        let entry = |entry: fs::DirEntry| (entry.file_name(), entry.metadata().unwrap().ino());
        let mut all: Vec<_> = fs::read_dir(&snapshots).unwrap().map(|found| entry(found.unwrap())).collect();
        all.sort();
        all
    };
    let before = listing();
    assert_eq!(before.len(), 2, "one for each size of disk");
    bench.run(&["--fresh"], 0);
    assert_eq!(listing(), before);
}

#[test]
fn a_failing_trial_becomes_a_row_and_the_others_go_on() {
    let bench = Bench::new(&scenario(1, &[GOOD[0], BROKEN], "100 ms"));
    let stderr = bench.run(&[], 0);
    assert!(stderr.contains("2 of 4 trials failed"), "{stderr}");
    let (_, trials) = bench.read();
    assert_eq!(trials.len(), 4);
    for trial in &trials {
        let expect = trial
            .cell
            .ends_with("/broken")
            .then_some("starting the server: the mock server was told to fail");
        assert_eq!(trial.error.as_deref(), expect, "{}", trial.cell);
        assert_eq!(trial.measurement.is_none(), expect.is_some());
    }
    bench.check_nothing_left();
}

#[test]
fn failed_trials_run_again_only_when_asked() {
    let bench = Bench::new(&scenario(1, &[GOOD[0], BROKEN], "100 ms"));
    bench.run(&[], 0);
    let (_, before) = bench.read();
    bench.run(&[], 0);
    assert_eq!(bench.read().1, before);
    bench.run(&["--retry-failed"], 0);
    let (_, after) = bench.read();
    let good = |trials: &[Trial]| -> Vec<Trial> {
        trials.iter().filter(|trial| trial.error.is_none()).cloned().collect()
    };
    assert_eq!((after.len(), good(&after)), (4, good(&before)));
    // A row is written at the end of its trial, so the trials that ran again are the last.
    assert!(after[2..].iter().all(|trial| trial.error.is_some()), "{after:?}");
}

#[test]
fn a_run_in_which_everything_failed_is_a_failure() {
    let bench = Bench::new(&scenario(1, &[BROKEN], "100 ms"));
    bench.run(&[], 1);
    assert_eq!(bench.read().1.len(), 2);
}

#[track_caller]
fn check_interruption(stop: &[Signal]) {
    let bench = Bench::new(&scenario(2, GOOD, "1 s"));
    let child = bench.start_scenario();
    bench.wait_for_lines(2);
    stop.iter().for_each(|stop| kill(Pid::from_child(&child), *stop));
    let stderr = bench.finish(child, 130);
    assert!(stderr.contains("of 4 trials are done and kept; the same command goes on"), "{stderr}");
    bench.check_nothing_left();
    let (_, before) = bench.read();
    assert!((1..4).contains(&before.len()), "{} trials", before.len());
    assert!(before.iter().all(|trial| trial.error.is_none()), "an interruption is no failure: {before:?}");
    bench.run(&[], 0);
    let (_, after) = bench.read();
    assert_eq!(after[..before.len()], before);
    assert_eq!(after.len(), 4);
}

#[test]
fn ctrl_c_takes_everything_down_and_keeps_finished_trials() {
    check_interruption(&[Signal::INT]);
}

#[test]
fn sigterm_is_like_ctrl_c() {
    check_interruption(&[Signal::TERM]);
}

#[test]
fn signals_at_once_are_one_wish() {
    // Not the same one twice: the kernel may join these.
    check_interruption(&[Signal::INT, Signal::TERM]);
}

#[test]
fn after_kill_9_the_next_run_cleans_up_and_goes_on() {
    let bench = Bench::new(&scenario(2, GOOD, "1 s"));
    let mut child = bench.start_scenario();
    bench.wait_for_lines(2);
    child.kill().unwrap();
    child.wait().unwrap();
    let before = bench.trials();
    bench.run(&[], 0);
    let after = bench.trials();
    assert_eq!((after.len(), &after[..before.len()]), (4, &before[..]));
    bench.check_nothing_left();
}

#[test]
fn two_runs_do_not_share_a_directory() {
    let bench = Bench::new(&scenario(1, GOOD, "2 s"));
    let mut child = bench.start_scenario();
    bench.wait_for_lines(1);
    let stderr = bench.run(&[], 2);
    assert!(stderr.contains("--output results: another spindle is running there"), "{stderr}");
    assert!(child.wait().unwrap().success());
    assert_eq!(bench.trials().len(), 2);
}

#[test]
fn a_run_goes_on_with_the_processor_that_it_began_with() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let (header, _) = bench.read();
    let text = fs::read_to_string(bench.records()).unwrap();
    let other = "\"cpu_model\":\"Cyrix 486DX2\"";
    let text = text.replacen(&format!("\"cpu_model\":{:?}", header.machine.cpu_model), other, 1);
    fs::write(bench.records(), &text).unwrap();
    bench.write("test.toml", &scenario(2, GOOD, "100 ms"));
    let stderr = bench.run(&[], 2);
    assert!(
        stderr.contains("--output results: its trials are of another processor (Cyrix 486DX2, "),
        "{stderr}"
    );
    // Nothing is left to run: another title is no reason to forget which machine it was.
    bench.write("test.toml", &scenario(1, GOOD, "100 ms").replacen("title = \"", "title = \"Again: ", 1));
    bench.run(&[], 0);
    let (header, trials) = bench.read();
    assert_eq!((header.machine.cpu_model.as_str(), trials.len()), ("Cyrix 486DX2", 2));
    assert!(header.scenario.title.starts_with("Again: "), "{}", header.scenario.title);
}

#[test]
fn records_of_another_scenario_are_refused() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    bench.write("test.toml", &scenario(1, GOOD, "101 ms"));
    let before = fs::read(bench.records()).unwrap();
    let stderr = bench.run(&[], 2);
    assert!(stderr.contains("--output results: holds the records of another scenario"), "{stderr}");
    assert_eq!(fs::read(bench.records()).unwrap(), before);
    bench.run(&["--fresh"], 0);
    assert_ne!(fs::read(bench.records()).unwrap(), before);
}

#[test]
fn a_damaged_records_file_is_not_overwritten() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let text = fs::read_to_string(bench.records()).unwrap();
    let damaged = text.replacen("\"trial\":", "\"trail\":", 1);
    fs::write(bench.records(), &damaged).unwrap();
    let stderr = bench.run(&[], 2);
    assert!(stderr.contains("records.jsonl:2: not a record"), "{stderr}");
    assert_eq!(fs::read_to_string(bench.records()).unwrap(), damaged);
}

#[test]
fn the_mock_scenario_of_the_repository_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/mock.toml");
    let bench = Bench::new(&fs::read_to_string(path).unwrap());
    let stdout = bench.text(&["run", "test.toml", "--output", "results"]);
    let (_, trials) = bench.read();
    assert_eq!(trials.len(), 4);
    for trial in trials {
        let series = trial.measurement.unwrap().series;
        assert!(!series.transactions_per_s.is_empty(), "a window longer than a second has seconds");
    }
    assert!(stdout.contains("report: results/report.html"), "{stdout}");
}

/// Every scenario of the repository, its layouts as they are, with the mock in the database's place.
#[test]
fn the_scenarios_of_the_repository_run_on_the_mock() {
    let Some(()) = in_check_all(|| Some(())) else { return };
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut count = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mut scenario: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        for (section, mock) in [
            ("servers", "kind = \"mock\""),
            ("workloads", "kind = \"mock\"\nterminals = 2\nlatency_us = 500"),
        ] {
            for (_, table) in scenario[section].as_table_mut().unwrap() {
                *table = toml::from_str(mock).unwrap();
            }
        }
        scenario["run"] =
            toml::from_str("trials = 1\nstart = \"cold\"\nmeasure = \"100 ms\"\nseed = 1").unwrap();
        // So short a window has no room for them.
        scenario.remove("events");
        for (_, layout) in
            scenario.get_mut("layouts").and_then(toml::Value::as_table_mut).into_iter().flatten()
        {
            // The mock has no doublewrite buffer.
            layout.as_table_mut().unwrap().retain(|class, _| class != "doublewrite");
        }
        let axes = scenario["matrix"].as_table().unwrap().values();
        let cells: usize = axes.map(|axis| axis.as_array().unwrap().len()).product();
        let bench = Bench::new(&scenario.to_string());
        bench.run(&[], 0);
        let (_, trials) = bench.read();
        assert_eq!(trials.len(), cells, "{}", path.display());
        for trial in trials {
            assert!(trial.measurement.is_some(), "{}: {:?}", path.display(), trial.error);
        }
        count += 1;
    }
    assert!(count >= 5, "{count} scenarios");
}
