//! `spindle compare`: within a file, between cells, between files.

use crate::emulated_support;
use crate::report_support::*;
use crate::run_mock::{Bench, GOOD, scenario};
use spindle_base::Mistake;
use spindle_lab::report::compare::{Comparisons, Format, Side, sides};
use spindle_lab::report::verdict::WITHIN;

fn side(records: &str, cell: Option<&str>) -> Side {
    Side::new("run.jsonl", crate::report_support::records(records), cell).expect("such a cell")
}

fn between(left: &Side, right: &Side) -> Result<Comparisons, Mistake> {
    spindle_lab::report::compare::between(left, right, false, WITHIN)
}

fn within(side: &Side) -> Result<Comparisons, Mistake> {
    spindle_lab::report::compare::within(side, WITHIN)
}

fn text(comparisons: &Comparisons) -> String {
    comparisons.text()
}

#[test]
fn every_cell_is_compared_to_the_first() {
    let comparisons = within(&side(&quickstart(), None)).expect("three cells");
    insta::assert_snapshot!(text(&comparisons), @r"
x25-m to hdd-7200: better, ratio 22.6 (21.7 to 23.6): the whole interval lies above 1; 9,334 to 413
  new-order transactions per minute, 3 trials each, paired by block
iodrive to hdd-7200: better, ratio at least 34.5 (34.1 to 35.0): the whole interval lies above 1;
  the cores limited the iodrive (97 % busy in 3 of 3 trials), so the true difference may be larger;
  14,256 to 413 new-order transactions per minute, 3 trials each, paired by block
note: iodrive has warnings: CPU saturated, late; `spindle report run.jsonl --format text` explains
  them
");
}

#[test]
fn two_cells_of_one_run_are_paired() {
    let comparisons = between(&side(&quickstart(), Some("x25-m")), &side(&quickstart(), Some("iodrive")))
        .expect("both exist");
    insta::assert_snapshot!(text(&comparisons), @r"
iodrive to x25-m: better, ratio at least 1.53 (1.47 to 1.59): the whole interval lies above 1; the
  cores limited the iodrive (97 % busy in 3 of 3 trials), so the true difference may be larger;
  14,256 to 9,334 new-order transactions per minute, 3 trials each, paired by block
note: iodrive has warnings: CPU saturated, late; `spindle report run.jsonl --format text` explains
  them
");
}

#[test]
fn two_runs_are_not_paired_and_their_differences_are_named() {
    let later =
        quickstart().replace("2100-01-01T00:00:00Z", "2100-01-02T00:00:00Z").replace("10.11.6", "11.4.2");
    let comparisons = between(&side(&quickstart(), None), &side(&later, None)).expect("cells in common");
    insta::assert_snapshot!(text(&comparisons), @r"
    hdd-7200 (run.jsonl) to hdd-7200 (run.jsonl): not known yet, ratio 1.00 (0.964 to 1.04): the
      interval lies within 5 % of 1, but so few trials can agree by chance; about 3 more trials of each
      would decide (`trials = 6`); 413 to 413 new-order transactions per minute, 3 trials each, Welch,
      unpaired
    x25-m (run.jsonl) to x25-m (run.jsonl): not known yet, ratio 1.00 (0.935 to 1.07): the interval
      contains 1 and reaches beyond 5 %; about 6 more trials of each would decide (`trials = 9`); 9,334
      to 9,334 new-order transactions per minute, 3 trials each, Welch, unpaired
    iodrive (run.jsonl) to iodrive (run.jsonl): not known yet, ratio 1.00 (0.953 to 1.05): the interval
      lies within 5 % of 1, but so few trials can agree by chance; about 4 more trials of each would
      decide (`trials = 7`); 14,256 to 14,256 new-order transactions per minute, 3 trials each, Welch,
      unpaired
    note: iodrive has warnings: CPU saturated, late; `spindle report run.jsonl --format text` explains
      them
    note: server differs: 10.11.6-MariaDB | 11.4.2-MariaDB
    ");
}

#[test]
fn a_cell_is_not_compared_with_itself() {
    let all = side(&quickstart(), None);
    let comparisons = between(&all, &side(&quickstart(), Some("x25-m"))).expect("two other cells");
    let baselines: Vec<&str> = comparisons.pairs.iter().map(|pair| pair.baseline.cell.as_str()).collect();
    assert_eq!(baselines, ["hdd-7200", "iodrive"]);
    let same = side(&quickstart(), Some("x25-m"));
    insta::assert_snapshot!(between(&same, &same).expect_err("one cell"), @"run.jsonl:x25-m: is on both sides; name two cells, or two runs");
}

#[test]
fn the_cells_of_a_run_are_compared_within_their_workload() {
    let pairs = |cell: Option<&str>| -> Vec<[String; 2]> {
        let comparisons = within(&side(&tests(), cell)).expect("several cells");
        comparisons
            .pairs
            .iter()
            .map(|pair| [&pair.baseline, &pair.candidate].map(|name| name.cell.clone()))
            .collect()
    };
    let of = |test: &str| [format!("hdd-7200/{test}"), format!("x25-m/{test}")];
    assert_eq!(pairs(None), ["insert", "scan", "select"].map(of));
    let with_named = pairs(Some("x25-m/scan"));
    assert_eq!(with_named.len(), 5);
    assert!(with_named.iter().all(|[baseline, _]| baseline == "x25-m/scan"), "{with_named:?}");
}

#[test]
fn a_cell_without_a_measurement_has_a_reason_instead_of_a_ratio() {
    let records = file(&[DISK, FLASH], 2, |trial, shape| {
        if shape.name == FLASH.name {
            fail(trial, "The server died.");
        }
    });
    let comparisons = within(&side(&records, None)).expect("two cells");
    insta::assert_snapshot!(text(&comparisons), @r"x25-m to hdd-7200: not comparable: x25-m has no measurement");
}

#[test]
fn one_trial_has_no_verdict() {
    let records = file(&[DISK, FLASH], 1, |_, _| {});
    let comparisons = within(&side(&records, None)).expect("two cells");
    insta::assert_snapshot!(text(&comparisons), @r"
x25-m to hdd-7200: not known yet, ratio 22.8 (no interval): one trial is too few for a verdict: set
  `trials = 3` or more and run again; finished trials are kept; 9,312 to 409 new-order transactions
  per minute, 1 trial each, ratio only
");
}

#[test]
fn a_mistake_is_answered_with_the_choices() {
    let unknown =
        Side::new("run.jsonl", crate::report_support::records(&quickstart()), Some("ssd")).expect_err("none");
    insta::assert_snapshot!(unknown, @r"run.jsonl: has no cell `ssd`; its cells are `hdd-7200`, `x25-m` and `iodrive`");
    let single = within(&side(&file(&[DISK], 2, |_, _| {}), None)).expect_err("one cell");
    insta::assert_snapshot!(single, @r"run.jsonl: has one cell only; name a second file or cell to compare it with");
    let apart =
        between(&side(&file(&[DISK], 2, |_, _| {}), None), &side(&file(&[FLASH], 2, |_, _| {}), None));
    insta::assert_snapshot!(apart.expect_err("nothing in common"), @r"run.jsonl and run.jsonl have no cell of the same name; name them as run.jsonl:CELL and run.jsonl:CELL");
}

#[test]
fn two_trials_have_no_verdict_unless_they_agree() {
    let records = file(&[DISK, FLASH], 2, |trial, shape| {
        if let Some(measurement) = trial.measurement.as_mut().filter(|_| shape.name == FLASH.name) {
            measurement.metric.value *= f64::from(trial.trial * trial.trial);
        }
    });
    let comparisons = within(&side(&records, None)).expect("two cells");
    insta::assert_snapshot!(text(&comparisons), @r"
x25-m to hdd-7200: not known yet, ratio 44.9 (0.00800 to 252,424): two trials are too few for a
  verdict: set `trials = 3` or more and run again; finished trials are kept; 22,791 to 409 new-order
  transactions per minute, 2 trials each, paired by block
");
}

/// The records with this scenario, whose hash is another.
fn of_scenario(hash: &str, scenario: &str) -> String {
    let text = serde_json::to_string(scenario).expect("a text");
    let (start, rest) =
        quickstart().split_once("\"text\":").map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a header");
    let (_, end) = rest.split_once(",\"trials_per_cell\"").expect("a header");
    format!("{start}\"text\":{text},\"trials_per_cell\"{end}").replace("5ce0a910", hash)
}

const SCENARIO: &str = r#"
[servers.mariadb]
kind = "mariadb"
settings = { innodb_buffer_pool_size = "96M", innodb_flush_log_at_trx_commit = 1, log_bin = true }
[workloads.tpcc-10]
kind = "tpcc"
warehouses = 10
terminals = 8
[run]
trials = 3
start = "warm"
warm_up = "8 s"
measure = "30 s"
seed = 1
"#;

#[track_caller]
fn compare_scenarios(replace: &[(&str, &str)]) -> Result<Comparisons, Mistake> {
    let other = replace.iter().fold(SCENARIO.to_owned(), |text, (from, to)| {
        assert!(text.contains(from), "{from}");
        text.replace(from, to)
    });
    let sides = [of_scenario("aaaa", SCENARIO), of_scenario("bbbb", &other)];
    let [left, right] = sides.map(|records| side(&records, Some("x25-m")));
    between(&left, &right)
}

#[test]
fn cells_of_different_experiments_are_refused() {
    let refused = |replace: &[(&str, &str)]| compare_scenarios(replace).expect_err("other experiments");
    insta::assert_snapshot!(refused(&[("warehouses = 10", "warehouses = 2"), ("30 s", "5 s")]), @r"run.jsonl:x25-m and run.jsonl:x25-m are different experiments (warehouses: 10 against 2; measure: 30 s against 5 s), so a ratio would not be the storage's; --anyway compares them");
    insta::assert_snapshot!(refused(&[("96M", "1G"), ("log_bin = true", "sync_binlog = 1")]), @r"run.jsonl:x25-m and run.jsonl:x25-m are different experiments (innodb_buffer_pool_size: 96M against 1G; log_bin: ON against not set; sync_binlog: not set against 1), so a ratio would not be the storage's; --anyway compares them");
    insta::assert_snapshot!(refused(&[("\"mariadb\"\nsettings", "\"postgres\"\nsettings")]), @r"run.jsonl:x25-m and run.jsonl:x25-m are different experiments (server: mariadb against postgres), so a ratio would not be the storage's; --anyway compares them");
}

#[test]
fn other_spellings_prose_and_more_trials_are_the_same_experiment() {
    let replace =
        [("96M", "96 MiB"), ("30 s", "0.5 min"), ("trials = 3", "trials = 9"), ("seed = 1", "seed = 2")];
    let comparisons = compare_scenarios(&replace).expect("the same experiment");
    assert!(comparisons.experiment.is_empty() && comparisons.pairs.len() == 1, "{comparisons:?}");
}

#[test]
fn a_comparison_of_different_experiments_says_so() {
    let other = of_scenario("bbbb", &SCENARIO.replace("warehouses = 10", "warehouses = 2"));
    let sides = [of_scenario("aaaa", SCENARIO), other].map(|records| side(&records, Some("x25-m")));
    let comparisons =
        spindle_lab::report::compare::between(&sides[0], &sides[1], true, WITHIN).expect("allowed");
    insta::assert_snapshot!(text(&comparisons), @r"
    x25-m (run.jsonl) to x25-m (run.jsonl): not known yet, ratio 1.00 (0.935 to 1.07): the interval
      contains 1 and reaches beyond 5 %; about 6 more trials of each would decide (`trials = 9`); 9,334
      to 9,334 new-order transactions per minute, 3 trials each, Welch, unpaired
    note: different experiments: warehouses: 10 against 2
    note: scenario hash differs: aaaa | bbbb
    ");
    let csv = comparisons.lay_out(Format::Csv).expect("a table");
    let notes = "different experiments: warehouses: 10 against 2; scenario hash differs: aaaa | bbbb";
    assert!(csv.trim_end().ends_with(notes), "{csv}");
    let table = comparisons.lay_out(Format::Md).expect("a table");
    assert!(table.contains("| x25-m (run.jsonl) | x25-m (run.jsonl) |"), "{table}");
}

#[test]
fn cells_that_differ_in_two_axes_are_compared_with_a_note() {
    let mut records = crate::report_support::records(&quickstart());
    records.header.cells[1].server = "postgres".to_owned();
    let comparisons =
        within(&Side::new("run.jsonl", records, None).expect("no cell is named")).expect("three cells");
    insta::assert_snapshot!(text(&comparisons), @r"
x25-m to hdd-7200: better, ratio 22.6 (21.7 to 23.6): the whole interval lies above 1; 9,334 to 413
  new-order transactions per minute, 3 trials each, paired by block
iodrive to hdd-7200: better, ratio at least 34.5 (34.1 to 35.0): the whole interval lies above 1;
  the cores limited the iodrive (97 % busy in 3 of 3 trials), so the true difference may be larger;
  14,256 to 413 new-order transactions per minute, 3 trials each, paired by block
note: hdd-7200 and x25-m differ in storage (`hdd-7200`, `x25-m`) and in server (`mariadb`,
  `postgres`): the ratio is of all of it together
note: iodrive has warnings: CPU saturated, late; `spindle report run.jsonl --format text` explains
  them
");
}

#[test]
fn a_comparison_is_a_table_for_documents_and_programs() {
    let comparisons = between(&side(&quickstart(), Some("x25-m")), &side(&quickstart(), Some("iodrive")))
        .expect("both exist");
    insta::assert_snapshot!(comparisons.lay_out(Format::Md).expect("a table"), @r"
| cell | baseline | metric | cell's mean | baseline's mean | ratio | 95 % interval | verdict | reason | trials |
|---|---|---|--:|--:|--:|---|---|---|--:|
| iodrive | x25-m | new-order transactions per minute | 14,256 | 9,334 | at least 1.53 | 1.47 to 1.59 | better | the whole interval lies above 1; the cores limited the iodrive (97 % busy in 3 of 3 trials), so the true difference may be larger | 3 |

* iodrive has warnings: CPU saturated, late; \`spindle report run.jsonl --format text\` explains them
");
    insta::assert_snapshot!(comparisons.lay_out(Format::Csv).expect("a table"), @r#"
baseline_file,baseline,baseline_label,baseline_trials,baseline_mean,candidate_file,candidate,candidate_label,candidate_trials,candidate_mean,metric,ratio,interval_low,interval_high,confidence,verdict,reason,bound,within,more_trials,method,notes
run.jsonl,x25-m,x25-m,3,9333.82905908545,run.jsonl,iodrive,iodrive,3,14256.398580525107,new-order transactions per minute,1.5276074036402096,1.4692603180351247,1.5882715615549585,0.95,better,"the whole interval lies above 1; the cores limited the iodrive (97 % busy in 3 of 3 trials), so the true difference may be larger",at least,0.05,,paired by block,"iodrive has warnings: CPU saturated, late; `spindle report run.jsonl --format text` explains them"
"#);
}

#[test]
fn a_run_is_named_by_its_directory_and_a_cell_by_its_label_or_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut records = quickstart();
    records = records.replacen("\"label\":\"x25-m\"", "\"label\":\"Intel X25-M\"", 1);
    std::fs::write(directory.path().join("records.jsonl"), records).expect("a file");
    let run = directory.path().display().to_string();
    let check = |baseline: &str, candidate: Option<&str>, expect: &str| {
        let told = match sides(&baseline.replace("RUN", &run), candidate) {
            Ok((left, Some(right))) => between(&left, &right).expect("one run").text(),
            Ok((left, None)) => within(&left).expect("three cells").text(),
            Err(mistake) => mistake.to_string().replace(&run, "RUN"),
        };
        assert!(told.starts_with(expect), "{told}");
    };
    check("RUN", None, "Intel X25-M to hdd-7200: better, ratio");
    check("RUN/records.jsonl:iodrive", Some("intel x25-m"), "Intel X25-M to iodrive: ");
    check("RUN:hdd-7200", Some("iodrive"), "iodrive to hdd-7200: better, ratio at least");
    check("RUN:hdd-7200", Some("x25-n"), "RUN: has no cell `x25-n`; did you mean `x25-m`?");
    check("RUN:hdd-7200", Some("gone.jsonl"), "gone.jsonl: does not exist");
}

#[test]
fn runs_that_differ_in_their_storage_are_compared_and_those_of_other_workloads_are_not() {
    let bench = Bench::new(&scenario(1, GOOD, "100 ms"));
    bench.run(&[], 0);
    let other = |output: &str, from: &str, to: &str| {
        let text = scenario(1, GOOD, "100 ms");
        assert!(text.contains(from), "{from}");
        bench.write("other.toml", &text.replace(from, to));
        assert!(
            emulated_support::Bench::run(&bench, &["run", "other.toml", "--output", output]).status.success()
        );
    };
    other("sizes", "size = \"2 GB\"", "size = \"3 GB\"");
    let told = bench.text(&["compare", "results", "sizes"]);
    assert!(told.starts_with("a (sizes) to a (results): not known yet, ratio "), "{told}");
    other("latency", "latency_us = 500", "latency_us = 900");
    let told = bench.talk(&["compare", "results", "latency"], 2);
    assert!(told.contains("(latency_us: 500 against 900)"), "{told}");
}
