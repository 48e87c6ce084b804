//! `spindle watch` beside a run on the mock server.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Command, Stdio};

use insta::assert_snapshot;
use rustix::process::{Pid, Signal};

use crate::emulated_support::kill;
use crate::run_mock::{Bench, GOOD, scenario};
use crate::two_runs::announced;
use crate::{skip, wait_until};

/// A run of two trials that goes on.
fn bench_with_run(measure: &str) -> (Bench, Child) {
    let bench = Bench::new(&scenario(1, GOOD, measure));
    let mut command = bench.command(&["run", "test.toml", "--output", "results"]);
    let run = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the run", || announced(&bench.path("locks")) == 1);
    (bench, run)
}

fn watch(bench: &Bench, arguments: &[&str]) -> Child {
    let mut command = bench.command(&[&["watch"], arguments].concat());
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn without_a_run_there_is_nothing_to_watch() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    assert_snapshot!(bench.talk(&["watch"], 2), @"spindle: no run is active on this machine; `spindle run SCENARIO` begins one");
}

#[test]
fn lines_tell_how_a_run_goes_on_and_the_last_one_where_its_report_is() {
    let (bench, run) = bench_with_run("2 s");
    let refused = bench.talk(&["watch", "another"], 2);
    assert!(
        refused.starts_with("spindle: no active run is `another`; active: `Test` (process "),
        "{refused}"
    );
    let output = watch(&bench, &["test"]).wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    let report = bench.results().join("report.html");
    assert!(report.exists(), "it is there when its path is told");
    let lines: Vec<&str> = told.lines().collect();
    assert!(lines[0].contains(" of 2 trials done, about "), "{told}");
    let [.., result, last] = lines[..] else { panic!("{told}") };
    assert!(result.starts_with("[2/2] ") && result.contains("trial 1: "), "{told}");
    assert_eq!(last, format!("report: {}", report.display()), "{told}");
    bench.finish(run, 0);
    assert_eq!(std::fs::read_dir(bench.path("locks")).unwrap().count(), 0, "nothing is left of the run");
}

#[test]
fn a_signal_ends_the_watch_and_not_the_run() {
    let (bench, run) = bench_with_run("2 s");
    let mut watching = watch(&bench, &[]);
    let mut line = String::new();
    BufReader::new(watching.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    kill(Pid::from_child(&watching), Signal::INT);
    assert!(watching.wait().unwrap().success());
    bench.finish(run, 0);
}

#[test]
fn a_run_that_is_stopped_has_no_report() {
    let (bench, run) = bench_with_run("60 s");
    let mut watching = watch(&bench, &[]);
    let mut told = BufReader::new(watching.stdout.take().unwrap());
    let (mut line, mut rest) = (String::new(), String::new());
    told.read_line(&mut line).unwrap();
    kill(Pid::from_child(&run), Signal::INT);
    told.read_to_string(&mut rest).unwrap();
    assert!(watching.wait().unwrap().success());
    assert!(rest.ends_with("the run was stopped: 0 of 2 trials are done\n"), "{line}{rest}");
    bench.finish(run, 130);
}

/// The program that gives another one a terminal.
fn program_script() -> Option<()> {
    let is_there = Command::new("script").arg("--version").output().is_ok();
    is_there.then_some(()).or_else(|| skip("no program `script`"))
}

#[test]
fn the_screen_is_given_back() {
    let Some(()) = program_script() else { return };
    let (bench, run) = bench_with_run("60 s");
    let watching = format!("stty rows 24 cols 80; TERM=xterm {} watch", env!("CARGO_BIN_EXE_spindle"));
    let leave = |by: &[u8]| {
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command", &watching, "/dev/null"]);
        command.env("SPINDLE_LOCK_DIRECTORY", bench.path("locks")).current_dir(bench.path(""));
        let mut terminal = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut shown = BufReader::new(terminal.stdout.take().unwrap());
        let mut seen = Vec::new();
        while !contains(&seen, b"leaves") {
            assert!(shown.read_until(b's', &mut seen).unwrap() > 0, "{}", String::from_utf8_lossy(&seen));
        }
        terminal.stdin.as_mut().unwrap().write_all(by).unwrap();
        shown.read_to_end(&mut seen).unwrap();
        assert!(terminal.wait().unwrap().success());
        // The alternate screen and the cursor, as xterm has them.
        for (begin, end) in [(&b"\x1b[?1049h"[..], &b"\x1b[?1049l"[..]), (b"\x1b[?25l", b"\x1b[?25h")] {
            assert!(contains(&seen, begin) && contains(&seen, end), "{}", String::from_utf8_lossy(&seen));
        }
    };
    leave(b"q");
    leave(b"\x03");
    kill(Pid::from_child(&run), Signal::INT);
    bench.finish(run, 130);
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
