//! Verdicts of pairs: the word, its reason, and the exit code for a program that decides.

use serde_json::json;

use crate::cli::run_in;
use crate::report_support::*;
use spindle_lab::record::{ExperimentHead, FileClass, Trial, Warning};
use spindle_lab::report::compare::{Side, within};
use spindle_lab::report::verdict::{Bound, Verdict, Word};

/// The second cell compared with the first.
fn verdict_within(records: &str, margin: f64) -> Verdict {
    let side = Side::new("run.jsonl", crate::report_support::records(records), None).unwrap();
    within(&side, margin).unwrap().pairs[0].verdict.clone()
}

fn verdict(records: &str) -> Verdict {
    verdict_within(records, 0.05)
}

/// Changes the trials of cells by their index.
fn pair(edit: impl Fn(&mut Trial, bool)) -> String {
    file(&[DISK, FLASH], 3, |trial, shape| edit(trial, shape.name == FLASH.name))
}

/// Each trial of the candidate is so many times as good as that of the baseline.
fn with_ratios(ratios: [f64; 3]) -> String {
    pair(|trial, is_candidate| {
        let value = if is_candidate { 1000.0 * ratios[trial.trial as usize - 1] } else { 1000.0 };
        trial.measurement.as_mut().unwrap().metric.value = value;
    })
}

/// The same storage under two servers of the experiment.
fn with_servers(records: &str, servers: [serde_json::Value; 2]) -> String {
    with_header(records, |header| {
        let names = ["one", "other"];
        let mounts = header.cells[0].mounts.clone();
        for (cell, name) in header.cells.iter_mut().zip(names) {
            name.clone_into(&mut cell.server);
            cell.mounts.clone_from(&mounts);
        }
        header.scenario.experiment = Some(ExperimentHead {
            servers: names.map(str::to_owned).into_iter().zip(servers).collect(),
            workloads: [("tpcc-10".to_owned(), json!({"kind": "tpcc"}))].into(),
            run: json!({}),
        });
    })
}

fn settings(kind: &str, flush: u32) -> serde_json::Value {
    json!({"kind": kind, "settings": {"innodb_flush_log_at_trx_commit": flush}})
}

#[test]
fn an_interval_decides_by_the_margin() {
    let check = |ratios, margin, word: Word| {
        let found = verdict_within(&with_ratios(ratios), margin);
        assert_eq!(found.word, word, "{found:?}");
    };
    check([1.20, 1.21, 1.22], 0.05, Word::Better);
    check([0.80, 0.81, 0.82], 0.05, Word::Worse);
    check([1.010, 1.012, 1.011], 0.05, Word::Same);
    check([1.010, 1.012, 1.011], 0.01, Word::Better);
    // Within the margin, but three trials agree like this by chance too often.
    check([1.010, 1.015, 1.012], 0.05, Word::NotKnown);
    check([0.7, 1.0, 1.4], 0.05, Word::NotKnown);
}

#[test]
fn what_is_not_known_yet_says_what_it_would_take() {
    let found = verdict(&with_ratios([0.95, 1.08, 1.12]));
    insta::assert_snapshot!(found.reason, @r"the interval contains 1 and reaches beyond 5 %; about 13 more trials of each would decide (`trials = 16`)");
    assert_eq!(found.more_trials, Some(13));
    let one = verdict(&file(&[DISK, FLASH], 1, |_, _| {}));
    assert_eq!((one.word, one.more_trials), (Word::NotKnown, Some(2)));
    let wild = verdict(&with_ratios([0.001, 1.0, 1000.0]));
    insta::assert_snapshot!(wild.takes.unwrap(), @"no number of trials in reason would decide: lengthen the window, or widen the margin");
}

#[test]
fn not_worse_is_known_before_the_word_is() {
    let found = verdict(&with_ratios([1.01, 1.03, 1.06]));
    assert_eq!((found.word, found.not_worse), (Word::NotKnown, Some(true)), "{found:?}");
}

fn saturated(trial: &mut Trial) {
    trial.warnings.push(Warning::CpuSaturated { busy: 0.97, client: 0.2, own: Some(0.9) });
}

#[test]
fn saturated_cores_of_the_better_side_make_the_ratio_a_lower_bound() {
    let found = verdict(&pair(|trial, is_candidate| {
        if is_candidate {
            saturated(trial);
        }
    }));
    assert_eq!((found.word, found.bound), (Word::Better, Some(Bound::AtLeast)));
    insta::assert_snapshot!(found.reason, @"the whole interval lies above 1; the cores limited the x25-m (97 % busy in 3 of 3 trials), so the true difference may be larger");
}

#[test]
fn saturated_cores_of_the_worse_side_or_of_both_hide_the_answer() {
    let check = |of_candidate: bool, of_baseline: bool| {
        let found = verdict(&pair(|trial, is_candidate| {
            if (is_candidate && of_candidate) || (!is_candidate && of_baseline) {
                saturated(trial);
            }
        }));
        assert_eq!((found.word, found.not_worse), (Word::NotComparable, None));
        found.reason
    };
    insta::assert_snapshot!(check(false, true), @"the cores limited the hdd-7200 (97 % busy in 3 of 3 trials), so the true figure of the hdd-7200 may be higher");
    insta::assert_snapshot!(check(true, true), @"the cores limited the hdd-7200 (97 % busy in 3 of 3 trials) and the cores limited the x25-m (97 % busy in 3 of 3 trials), so the ratio is not the storage's");
}

#[test]
fn cores_are_a_fair_limit_to_servers_on_the_same_storage_and_the_load_generator_never_is() {
    let records = |warning: Warning| {
        let records = pair(|trial, _| trial.warnings.push(warning.clone()));
        verdict(&with_servers(&records, [settings("mariadb", 1), settings("percona", 1)]))
    };
    let cores = records(Warning::CpuSaturated { busy: 0.97, client: 0.2, own: Some(0.9) });
    assert_eq!((cores.word, cores.bound), (Word::Better, None), "{cores:?}");
    let client = records(Warning::ClientSaturated { share: 0.9 });
    assert_eq!(client.word, Word::NotComparable, "{client:?}");
}

#[test]
fn unequal_durability_is_not_comparable_unless_it_is_the_question() {
    let records = pair(|trial, is_candidate| {
        let logs = if is_candidate { Vec::new() } else { vec![FileClass::Redo] };
        trial.measurement.as_mut().unwrap().flushed_at_commit = Some(logs);
    });
    let check = |servers| verdict(&with_servers(&records, servers));
    let other_program = check([settings("mariadb", 1), json!({"kind": "postgres"})]);
    assert_eq!(other_program.word, Word::NotComparable);
    insta::assert_snapshot!(other_program.reason, @"durability is unequal: a commit of the hdd-7200 waits for its redo log, one of the x25-m for no log");
    let asked = check([settings("mariadb", 1), settings("mariadb", 2)]);
    assert_eq!(asked.word, Word::Better, "{asked:?}");
}

#[test]
fn a_working_set_in_memory_on_one_side_only_is_not_comparable() {
    let reads = |of_candidate: f64| {
        pair(move |trial, is_candidate| {
            let reads = if is_candidate { of_candidate } else { 9.6 };
            trial.measurement.as_mut().unwrap().per_transaction.reads = reads;
        })
    };
    let found = verdict(&reads(0.01));
    assert_eq!(found.word, Word::NotComparable);
    insta::assert_snapshot!(found.reason, @"the working set is in memory on one side only: the x25-m read 0.0100 times per transaction, the hdd-7200 9.60 times");
    assert_eq!(verdict(&reads(4.0)).word, Word::Better);
    let asked = with_servers(&reads(0.01), [settings("mariadb", 1), settings("mariadb", 2)]);
    assert_eq!(verdict(&asked).word, Word::Better);
}

#[test]
fn lateness_that_could_be_the_whole_answer_hides_it() {
    let late = |share: f64| {
        pair(move |trial, is_candidate| {
            let value = if is_candidate { 1100.0 } else { 1000.0 };
            trial.measurement.as_mut().unwrap().metric.value = value + f64::from(trial.trial);
            if !is_candidate {
                trial.warnings.push(Warning::Late { p99_us: 900.0, share });
            }
        })
    };
    assert_eq!(verdict(&late(0.02)).word, Word::Better);
    let found = verdict(&late(0.12));
    assert_eq!(found.word, Word::NotComparable);
    insta::assert_snapshot!(found.reason, @"the emulator answered late for the hdd-7200 (12 % of all request time, 3 of 3 trials), and that can be the whole answer");
}

#[test]
fn a_shorter_time_is_better_and_its_bound_is_from_above() {
    let found = verdict(&pair(|trial, is_candidate| {
        let metric = &mut trial.measurement.as_mut().unwrap().metric;
        (metric.value, metric.lower_is_better) = (1e6 / metric.value, true);
        if is_candidate {
            saturated(trial);
        }
    }));
    assert_eq!((found.word, found.bound), (Word::Better, Some(Bound::AtMost)), "{found:?}");
}

#[track_caller]
fn check_exit(records: &str, options: &[&str], expect: i32) {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("run.jsonl"), records).unwrap();
    let told = run_in(directory.path(), &[&["compare", "run.jsonl:hdd-7200", "x25-m"], options].concat());
    assert!(told.starts_with(&format!("exit code {expect}\n")), "{options:?}: {told}");
}

#[test]
fn the_exit_code_says_whether_the_expectation_is_met() {
    let [better, same, open] = [[1.2, 1.21, 1.22], [1.01, 1.012, 1.011], [0.7, 1.0, 1.4]].map(with_ratios);
    check_exit(&better, &["--expect", "better"], 0);
    check_exit(&better, &["--expect", "not-worse"], 0);
    check_exit(&better, &["--expect", "worse"], 1);
    check_exit(&same, &["--expect", "same"], 0);
    check_exit(&same, &["--expect", "better"], 1);
    check_exit(&same, &["--within", "0.5 %", "--expect", "same"], 1);
    check_exit(&open, &["--expect", "not-worse"], 3);
    check_exit(&open, &[], 0);
    check_exit(&open, &["--within", "5"], 2);
    check_exit(&open, &["--within", "60 %"], 2);
}

#[test]
fn records_of_the_repository_have_an_exit_code() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let check = |pair: [&str; 2], expectation: &str, expect: i32| {
        let told = run_in(&root, &["compare", pair[0], pair[1], "--expect", expectation]);
        assert!(told.starts_with(&format!("exit code {expect}\n")), "{pair:?} {expectation}: {told}");
    };
    check(["records/quickstart:hdd", "x25m"], "better", 0);
    check(["records/quickstart:x25m", "hdd"], "not-worse", 1);
    check(["records/log-on-its-own-drive:one-disk", "log-apart"], "better", 3);
    check(["records/iodrive-data-raid10-logs:card", "logs-on-raid"], "same", 3);
}
