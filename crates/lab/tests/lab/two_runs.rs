//! Two runs on one machine: each sees the other, or waits for it.

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal};
use spindle_lab::record::Warning;

use crate::emulated_support::{self, kill};
use crate::run_mock::{Bench, GOOD, scenario};
use crate::{in_check_all, wait_until};

fn start(bench: &Bench, locks: &Path, more: &[&str]) -> Child {
    let mut command = bench.command(&["run", "test.toml", "--output", "results"]);
    command.args(more).env("SPINDLE_LOCK_DIRECTORY", locks);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs that are announced in the directory.
pub(crate) fn announced(locks: &Path) -> usize {
    let entries = std::fs::read_dir(locks).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "run")).count()
}

/// A run that goes on, and a second bench beside it.
fn beside() -> (Bench, Child, PathBuf, Bench) {
    let first = Bench::new(&scenario(1, GOOD, "3 s").replace("\"Test\"", "\"The first\""));
    let second = Bench::new(&scenario(1, GOOD, "1 s").replace("\"Test\"", "\"The second\""));
    let locks = first.path("locks");
    let child = start(&first, &locks, &[]);
    wait_until("the first run", || announced(&locks) == 1);
    (first, child, locks, second)
}

fn is_disturbed(bench: &Bench, by: &str) -> Vec<bool> {
    let is_it = |warning: &Warning| matches!(warning, Warning::OtherRun { title } if title == by);
    emulated_support::Bench::trials(bench).iter().map(|trial| trial.warnings.iter().any(is_it)).collect()
}

#[test]
fn a_second_run_goes_on_with_a_warning_in_both_records() {
    let (first, child, locks, second) = beside();
    let talk = second.finish(start(&second, &locks, &[]), 0);
    assert!(talk.contains("warning: another run is active on this machine: `The first` (process "), "{talk}");
    let talk_of_first = first.finish(child, 0);
    assert!(talk_of_first.contains("machine: `The second` (process "), "{talk_of_first}");
    assert!(is_disturbed(&second, "The first")[0], "{talk}");
    assert!(is_disturbed(&first, "The second").contains(&true), "{talk_of_first}");
    assert_eq!(announced(&locks), 0);
    let table = first.text(&["report", "results/records.jsonl", "--format", "md"]);
    assert!(table.contains("used this machine during the measured window"), "{table}");
}

#[test]
fn a_run_that_waits_begins_after_the_other() {
    let Some(()) = in_check_all(|| Some(())) else { return };
    let (first, child, locks, second) = beside();
    let talk = second.finish(start(&second, &locks, &["--wait"]), 0);
    let lines: Vec<&str> = talk.lines().collect();
    assert!(lines[0].starts_with("waiting for `The first` (process "), "{talk}");
    assert!(lines[1].starts_with("waited "), "{talk}");
    first.finish(child, 0);
    let disturbed = [is_disturbed(&first, "The second"), is_disturbed(&second, "The first")];
    assert!(!disturbed.concat().contains(&true), "{disturbed:?}");
}

#[test]
fn ctrl_c_ends_the_wait() {
    let Some(()) = in_check_all(|| Some(())) else { return };
    let (first, child, locks, second) = beside();
    let waiting = start(&second, &locks, &["--wait"]);
    wait_until("the turn", || locks.join("turn").exists());
    kill(Pid::from_child(&waiting), Signal::INT);
    let talk = second.finish(waiting, 130);
    assert!(talk.ends_with("interrupted; no trial is done yet; the same command begins again\n"), "{talk}");
    assert!(!second.results().exists(), "no work was done");
    first.finish(child, 0);
}
