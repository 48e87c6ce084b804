//! Records that contradict themselves, and files that are not what they seem: refused, repaired or left out,
//! with a sentence, and never averaged in silence.

use std::fs;

use spindle_lab::record::Trial;
use spindle_lab::report::{self, Format, Records, parse};

use crate::report_support::{CARD, DISK, FLASH, file, quickstart};
use crate::run_mock::{Bench, GOOD, scenario};

/// The notes of a file whose trials were changed; the report has them.
#[track_caller]
fn notes(edit: impl Fn(&mut Trial, &str)) -> (Records, Vec<String>) {
    let text = file(&[DISK, FLASH, CARD], 3, |trial, shape| edit(trial, shape.name));
    let records = parse(&text, "run.jsonl").unwrap();
    let page = report::render(&records, Format::Text, false).unwrap();
    let page = page.split_whitespace().collect::<Vec<_>>().join(" ");
    for note in &records.notes {
        assert!(page.contains(note.as_str()), "{note}\nis not in\n{page}");
    }
    let notes = records.notes.clone();
    (records, notes)
}

fn is_second(trial: &Trial, name: &str) -> bool {
    name == FLASH.name && trial.trial == 2
}

#[test]
fn records_without_a_contradiction_have_no_note() {
    assert_eq!(notes(|_, _| ()).1, [""; 0]);
}

#[test]
fn a_half_written_series_is_left_out_and_the_figures_stay() {
    let (records, notes) = notes(|trial, name| {
        if is_second(trial, name) {
            trial.measurement.as_mut().unwrap().series.p95_ms.pop();
        }
    });
    let whole = parse(&quickstart(), "whole").unwrap();
    let [half, whole] = [&records, &whole].map(|records| {
        let mut trials = records.trials.iter();
        trials.find(|trial| is_second(trial, &trial.cell)).unwrap().measurement.as_ref().unwrap().clone()
    });
    let seconds = whole.series.p95_ms.len();
    let expect = format!(
        "Trial 2 of `x25-m` has series of {} and of {seconds} seconds, so its series were half written and are left \
         out. Its other figures do not depend on them.",
        seconds - 1
    );
    assert_eq!(notes, [expect]);
    assert!(half.series.transactions_per_s.is_empty() && half.mounts[0].series.read_iops.is_empty());
    assert_eq!((half.metric, half.latency), (whole.metric, whole.latency));
}

#[test]
fn a_half_written_series_of_a_mount_is_found_too() {
    let (_, notes) = notes(|trial, name| {
        if is_second(trial, name) {
            trial.measurement.as_mut().unwrap().mounts[0].series.write_iops.truncate(2);
        }
    });
    assert!(
        notes.len() == 1 && notes[0].starts_with("Trial 2 of `x25-m` has series of 2 and of "),
        "{notes:?}"
    );
}

#[test]
fn a_clock_that_was_set_back_between_trials_is_told() {
    let (_, notes) = notes(|trial, name| {
        if is_second(trial, name) {
            "1999-12-31T23:00:00Z".clone_into(&mut trial.started_at);
        }
    });
    assert_eq!(
        notes,
        ["Trial 2 of `x25-m` started at 1999-12-31T23:00:00Z, before the one that stands before it \
         (2100-01-01T00:02:00Z): the clock of the machine was set back. No figure depends on it."]
    );
}

#[test]
fn trials_of_several_versions_are_told_before_they_are_averaged() {
    let (_, notes) = notes(|trial, name| {
        if is_second(trial, name) {
            "fffffff".clone_into(&mut trial.provenance.git_revision);
            "another".clone_into(&mut trial.provenance.kernel);
        }
    });
    assert_eq!(notes.len(), 2, "{notes:?}");
    assert!(notes[0].starts_with("The trials of `x25-m` are of 2 versions of Spindle (0."), "{notes:?}");
    assert!(notes[0].contains("(0000000); 0.") && notes[0].contains("(fffffff)): a difference"), "{notes:?}");
    assert!(notes[1].contains("2 versions of the kernel (") && notes[1].contains("another"), "{notes:?}");
}

#[test]
fn a_trial_that_stands_in_the_file_twice_counts_once() {
    let text = quickstart();
    let (_, trials) = text.split_once('\n').unwrap();
    let twice = parse(&format!("{text}{trials}"), "twice").unwrap();
    let page = report::render(&twice, Format::Md, false).unwrap();
    assert_eq!(page.matches(" is in the records twice: the last one counts (").count(), 9, "{page}");
    assert_eq!(twice.notes, [""; 0]);
    let csv = |records: &Records| report::render(records, Format::Csv, false).unwrap();
    let ratios = |records: &Records| {
        csv(records).lines().filter(|line| line.contains(",ratio")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(!ratios(&twice).is_empty());
    assert_eq!(ratios(&twice), ratios(&parse(&text, "once").unwrap()));
}

#[test]
fn two_cells_of_one_name_are_refused() {
    let text = quickstart().replace("x25-m", "iodrive");
    let refused = parse(&text, "run.jsonl").unwrap_err().to_string();
    assert_eq!(
        refused,
        "run.jsonl:1: two cells are called `iodrive`, so nobody knows whose trials are whose"
    );
}

#[test]
fn zeros_after_a_crash_are_left_out() {
    let text = quickstart() + &"\0".repeat(4096);
    let records = parse(&text, "run.jsonl").unwrap();
    assert_eq!(records.trials.len(), 9);
    assert_eq!(records.notes, ["The last line of the records is incomplete and was left out."]);
    let in_the_middle = quickstart().replacen('\n', "\n\0\0\n", 1);
    let refused = parse(&in_the_middle, "run.jsonl").unwrap_err().to_string();
    assert!(refused.starts_with("run.jsonl:2: not a record"), "{refused}");
}

#[test]
fn a_line_torn_inside_a_character_is_cut_off_and_its_trial_runs_again() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let whole = fs::read(bench.records()).unwrap();
    let end = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    // The first byte of two.
    fs::write(bench.records(), [&whole[..end + 20], &[0xC3]].concat()).unwrap();
    let page = bench.text(&["report", "results", "--format", "md"]);
    assert!(page.contains("The last line of the records is incomplete and was left out."), "{page}");
    bench.run(&[], 0);
    assert_eq!(bench.trials().len(), 2);
    assert_eq!(fs::read(bench.records()).unwrap()[..end], whole[..end]);
}

#[test]
fn a_run_does_not_go_on_in_records_of_a_later_version() {
    let bench = Bench::new(&scenario(2, GOOD, "100 ms"));
    bench.run(&[], 0);
    let later = fs::read_to_string(bench.records()).unwrap().replacen("\"format\":3", "\"format\":4", 1);
    fs::write(bench.records(), &later).unwrap();
    let refused = bench.run(&[], 2);
    let expect = "records.jsonl: format 4, but this spindle reads formats up to 3; use the spindle that wrote it, or run again";
    assert!(refused.contains(expect), "{refused}");
    assert_eq!(fs::read_to_string(bench.records()).unwrap(), later);
}

#[test]
fn two_scenarios_of_one_name_do_not_share_their_records() {
    let bench = Bench::new("");
    for (directory, measure) in [("one", "100 ms"), ("two", "101 ms")] {
        fs::create_dir(bench.path(directory)).unwrap();
        bench.write(&format!("{directory}/test.toml"), &scenario(1, GOOD, measure));
    }
    // Unless told otherwise each has a directory of its own.
    bench.text(&["run", "one/test.toml"]);
    bench.text(&["run", "two/test.toml"]);
    let runs = fs::read_dir(bench.path("spindle-results")).unwrap().map(|entry| entry.unwrap().path());
    let runs: Vec<String> = runs.map(|run| run.display().to_string()).collect();
    let [one, two] = runs.as_slice() else { panic!("{runs:?}") };
    let before = fs::read(bench.path(one).join("records.jsonl")).unwrap();
    let is_of_one = String::from_utf8_lossy(&before).contains("100 ms");
    let other = if is_of_one { "two" } else { "one" };
    let refused = bench.talk(&["run", &format!("{other}/test.toml"), "--output", one], 2);
    assert!(
        refused.contains(": holds the records of another scenario (`test`); name another directory"),
        "{refused}"
    );
    assert_eq!(fs::read(bench.path(one).join("records.jsonl")).unwrap(), before);
    let refused = bench.talk(&["compare", one, two], 2);
    assert!(refused.contains(&format!("{one} and {two} are different experiments (measure: ")), "{refused}");
}
