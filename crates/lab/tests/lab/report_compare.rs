//! `spindle compare`: within a file, between cells, between files.

use crate::report_support::*;
use spindle_lab::report::compare::{Side, between, text, within};

fn side(records: &str, cell: Option<&str>) -> Side {
    Side {
        file: "run.jsonl".to_owned(),
        records: crate::report_support::records(records),
        cell: cell.map(str::to_owned),
    }
}

#[test]
fn every_cell_is_compared_to_the_first() {
    let comparisons = within(&side(&quickstart(), None)).expect("three cells");
    insta::assert_snapshot!(text(&comparisons), @r"
x25-m to hdd-7200: ratio 22.6 (21.7 to 23.6), faster; paired by block
iodrive to hdd-7200: ratio 34.5 (34.1 to 35.0), faster; paired by block
");
}

#[test]
fn two_cells_of_one_run_are_paired() {
    let comparisons = between(&side(&quickstart(), Some("x25-m")), &side(&quickstart(), Some("iodrive")))
        .expect("both exist");
    insta::assert_snapshot!(text(&comparisons), @r"iodrive to x25-m: ratio 1.53 (1.47 to 1.59), faster; paired by block");
}

#[test]
fn two_runs_are_not_paired_and_their_differences_are_named() {
    let later =
        quickstart().replace("2000-01-01T00:00:00Z", "2000-01-02T00:00:00Z").replace("10.11.6", "11.4.2");
    let comparisons = between(&side(&quickstart(), None), &side(&later, None)).expect("cells in common");
    insta::assert_snapshot!(text(&comparisons), @r"
hdd-7200 to hdd-7200: ratio 1.00 (0.964 to 1.04), no difference shown; Welch, unpaired
x25-m to x25-m: ratio 1.00 (0.935 to 1.07), no difference shown; Welch, unpaired
iodrive to iodrive: ratio 1.00 (0.953 to 1.05), no difference shown; Welch, unpaired
note: server differs: 10.11.6-MariaDB | 11.4.2-MariaDB
");
}

#[test]
fn a_cell_without_a_measurement_has_a_reason_instead_of_a_ratio() {
    let records = file(&[DISK, FLASH], 2, |trial, shape| {
        if shape.name == FLASH.name {
            fail(trial, "The server died.");
        }
    });
    let comparisons = within(&side(&records, None)).expect("two cells");
    insta::assert_snapshot!(text(&comparisons), @r"x25-m to hdd-7200: not compared, x25-m has no measurement");
}

#[test]
fn one_trial_has_no_verdict() {
    let records = file(&[DISK, FLASH], 1, |_, _| {});
    let comparisons = within(&side(&records, None)).expect("two cells");
    insta::assert_snapshot!(text(&comparisons), @r"
x25-m to hdd-7200: ratio 22.8 (no interval), one trial on a side, so no interval and no verdict;
  ratio only
");
}

#[test]
fn a_mistake_is_answered_with_the_choices() {
    let unknown =
        between(&side(&quickstart(), Some("ssd")), &side(&quickstart(), None)).expect_err("no such cell");
    insta::assert_snapshot!(unknown, @r"run.jsonl: has no cell `ssd`; its cells are `hdd-7200`, `x25-m` and `iodrive`");
    let single = within(&side(&file(&[DISK], 2, |_, _| {}), None)).expect_err("one cell");
    insta::assert_snapshot!(single, @r"run.jsonl: has one cell only; name a second file or cell to compare it with");
    let apart =
        between(&side(&file(&[DISK], 2, |_, _| {}), None), &side(&file(&[FLASH], 2, |_, _| {}), None));
    insta::assert_snapshot!(apart.expect_err("nothing in common"), @r"run.jsonl and run.jsonl have no cell of the same name; name them as run.jsonl:CELL and run.jsonl:CELL");
}
