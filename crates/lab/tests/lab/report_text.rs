//! What the report says about records of every shape, as text; and which files it refuses.

use std::path::Path;

use crate::report_support::*;
use spindle_lab::record::{DeviceView, Warning};
use spindle_lab::report::format::number;
use spindle_lab::report::{self, Format, View, parse};

fn render(records: &str, format: Format) -> String {
    report::render(&crate::report_support::records(records), format, false).expect("a report")
}

fn shape(name: &str) -> String {
    shapes().into_iter().find(|(other, _)| *other == name).expect("a shape of that name").1
}

fn verdict(records: &str) -> String {
    View::new(&crate::report_support::records(records)).verdict.sentence
}

#[test]
fn the_terminal_table_of_the_quickstart() {
    insta::assert_snapshot!(render(&quickstart(), Format::Text));
}

#[test]
fn the_markdown_of_the_quickstart() {
    insta::assert_snapshot!(render(&quickstart(), Format::Md));
}

#[test]
fn the_records_of_the_repository_say_what_their_reports_say() {
    let records = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records");
    let mut count = 0;
    for entry in std::fs::read_dir(records).unwrap().flatten().filter(|entry| entry.path().is_dir()) {
        let read = report::read(&entry.path().join("records.jsonl")).unwrap();
        let kept = std::fs::read_to_string(entry.path().join("report.md")).unwrap();
        let printed = report::render(&read, Format::Md, false).unwrap();
        assert!(printed == kept, "print {}/report.md again", entry.path().display());
        count += 1;
    }
    assert!(count >= 5, "{count}");
}

#[test]
fn the_csv_of_failed_trials() {
    insta::assert_snapshot!(render(&shape("failed-trials"), Format::Csv));
}

#[test]
fn the_terminal_table_of_failed_trials() {
    insta::assert_snapshot!(render(&shape("failed-trials"), Format::Text));
}

#[test]
fn every_shape_fits_a_hundred_columns_and_has_no_colour() {
    for (name, records) in shapes() {
        let text = render(&records, Format::Text);
        for line in text.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
        assert!(!text.contains('\x1b'), "{name}");
    }
}

#[test]
fn colour_adds_nothing_to_the_text() {
    let records = crate::report_support::records(&quickstart());
    let coloured = report::render(&records, Format::Text, true).expect("a report");
    assert!(coloured.contains("\x1b[1m"));
    assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), render(&quickstart(), Format::Text));
}

#[test]
fn the_report_is_a_pure_function_of_the_records() {
    for format in [Format::Html, Format::Md, Format::Csv, Format::Json, Format::Text] {
        assert_eq!(render(&quickstart(), format), render(&quickstart(), format));
    }
}

#[test]
fn json_says_what_the_table_says() {
    let json: serde_json::Value = serde_json::from_str(&render(&quickstart(), Format::Json)).expect("JSON");
    assert_eq!(json["baseline"], "hdd-7200");
    assert_eq!(json["cells"][1]["ratio"]["verdict"], "faster");
    assert_eq!(json["cells"][0]["trials"].as_array().map(Vec::len), Some(3));
}

#[test]
fn verdicts_of_every_shape() {
    let verdicts: Vec<String> = std::iter::once(("quickstart", quickstart()))
        .chain(shapes())
        .map(|(name, records)| format!("{name}: {}", verdict(&records)))
        .collect();
    insta::assert_snapshot!(verdicts.join("\n"), @r"
quickstart: iodrive is the fastest: 34.5 times hdd-7200 (95 % interval 34.1 to 35.0), and 1.53 times x25-m (95 % interval 1.47 to 1.59), the runner-up.
failed-trials: iodrive is the fastest: 34.1 times hdd-7200 (95 % interval 32.8 to 35.4), and 1.49 times x25-m (95 % interval 1.22 to 1.82), the runner-up.
single-trial: x25-m was ahead: 22.8 times hdd-7200. A cell with a single trial has no interval, so this is an observation and not a finding.
one-cell: hdd-7200 reached 413 new-order transactions per minute (95 % interval 396 to 430, 3 trials); there is no second cell to compare it with.
all-failed: No cell has a measurement. All 4 trials failed.
no-difference: No difference is shown between x25-m-again and x25-m: x25-m-again measured 1.01 times x25-m (95 % interval 0.966 to 1.05); it is 22.7 times hdd-7200 (95 % interval 21.9 to 23.6).
mock-without-emulator: x25-m is the fastest: 22.6 times hdd-7200 (95 % interval 21.7 to 23.6).
");
}

#[test]
fn a_single_trial_is_not_called_a_finding() {
    let view = View::new(&records(&shape("single-trial")));
    let ratio = view.cells[1].ratio.as_ref().expect("a ratio");
    assert_eq!((ratio.interval, ratio.verdict.as_str()), (None, "not tested"));
    assert_eq!(view.cells[1].throughput.as_ref().and_then(|throughput| throughput.interval), None);
}

#[test]
fn a_warning_of_every_trial_is_shown_once() {
    let text = file(&[DISK, FLASH], 3, |trial, _| trial.warnings.push(Warning::NoIoFlusher));
    let view = View::new(&records(&text));
    let sentence = Warning::NoIoFlusher.sentence();
    assert_eq!(view.notes.iter().filter(|note| **note == sentence).count(), 1, "{:?}", view.notes);
    assert!(view.warnings.iter().all(|warning| warning.sentence != sentence), "{:?}", view.warnings);
    assert!(!view.cells.iter().any(|cell| cell.warnings.contains(&"no I/O flusher".to_owned())));
}

#[test]
fn equal_cells_are_not_ranked() {
    let sentence = verdict(&shape("no-difference"));
    assert!(sentence.starts_with("No difference is shown between"), "{sentence}");
}

#[test]
fn cells_that_count_different_things_are_not_divided() {
    let text = file(&[DISK, FLASH], 3, |trial, shape| {
        if shape.name == FLASH.name
            && let Some(measurement) = &mut trial.measurement
        {
            measurement.metric.name = "queries per second".to_owned();
        }
    });
    let view = View::new(&records(&text));
    assert_eq!(view.cells[1].ratio, None);
    assert!(view.verdict.sentence.contains("not compared"), "{}", view.verdict.sentence);
}

#[test]
fn a_database_that_fails_its_verification_yields_no_number() {
    let view = View::new(&records(&shape("failed-trials")));
    assert_eq!(view.cells[2].trials.len(), 2);
    assert!(
        view.failures.iter().any(|failure| failure.error.starts_with("Verification failed: TPC-C 3.3.2.1"))
    );
}

#[test]
fn a_trial_that_was_run_again_counts_once_and_keeps_its_failure() {
    let text = file(&[DISK, FLASH], 2, |_, _| {});
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let failed = file(&[DISK, FLASH], 2, |trial, _| fail(trial, "The mount was busy."));
    lines.insert(1, failed.lines().nth(1).expect("a trial").to_owned());
    let view = View::new(&records(&(lines.join("\n") + "\n")));
    assert_eq!((view.cells[0].trials.len(), view.failures.len()), (2, 1));
    assert!(view.failures[0].repeated);
    assert!(!view.verdict.details.iter().any(|detail| detail.contains("failed")));
}

#[test]
fn a_run_that_stopped_early_says_so() {
    let text = file(&[DISK, FLASH], 3, |_, _| {});
    let half: Vec<&str> = text.lines().take(4).collect();
    let view = View::new(&records(&(half.join("\n") + "\n")));
    assert_eq!(
        view.notes,
        [
            "hdd-7200 has 2 trials of 3: the run stopped early.",
            "x25-m has 1 trial of 3: the run stopped early."
        ]
    );
}

#[test]
fn markup_in_records_stays_text() {
    let page = render(&shape("failed-trials"), Format::Html);
    assert!(page.contains("&lt;error.log&gt; &amp; co."));
    assert!(page.contains("&lt;b&gt;not markup"));
    assert!(!page.contains("<b>not markup"));
}

fn check_refused(text: &str, expect: &str) {
    let error = parse(text, "run.jsonl").expect_err("refused").to_string();
    assert!(error.starts_with(expect), "{error}");
}

#[test]
fn files_that_are_no_records_are_refused_with_their_line() {
    let good = quickstart();
    check_refused("", "run.jsonl: is empty");
    check_refused("hello\n", "run.jsonl:1: not a record");
    check_refused("{}\n", "run.jsonl:1: not a record");
    check_refused(
        &good.replacen("\"format\":3", "\"format\":4", 1),
        "run.jsonl: format 4, but this spindle reads formats up to 3",
    );
    check_refused(
        &good.replacen("\"cell\":\"x25-m\"", "\"cell\":\"other\"", 1),
        "run.jsonl:3: trial of cell `other`",
    );
    check_refused(&(good.clone() + "{\"line\":\"trial\"}\n"), "run.jsonl:11: not a record");
    let trial_first: Vec<&str> = good.lines().skip(1).collect();
    check_refused(&trial_first.join("\n"), "run.jsonl:1: not a record (the first line is no header)");
    let other = good.replace("5ce0a910", "another");
    check_refused(&(good + other.lines().next().expect("a header") + "\n"), "run.jsonl:11: a second header");
}

#[test]
fn a_torn_last_line_is_left_out() {
    let good = quickstart();
    let records = parse(&good[..good.len() - 100], "run.jsonl").expect("all but the last line");
    assert_eq!(records.trials.len(), 8);
    assert_eq!(records.notes.len(), 1);
}

/// The arguments as the command line gives them.
#[derive(Debug, clap::Parser)]
struct Line {
    #[command(flatten)]
    arguments: spindle_lab::cmd::report::ReportArguments,
}

#[test]
fn the_command_writes_the_page_where_it_is_told() {
    use clap::Parser as _;
    let directory = tempfile::tempdir().expect("a directory");
    let (input, output) = (directory.path().join("run.jsonl"), directory.path().join("run.html"));
    std::fs::write(&input, quickstart()).expect("written");
    let line =
        Line::parse_from(["report".as_ref(), input.as_os_str(), "--output".as_ref(), output.as_os_str()]);
    spindle_lab::cmd::report::run(&line.arguments).expect("a report");
    assert_eq!(std::fs::read_to_string(&output).expect("a page"), render(&quickstart(), Format::Html));
}

#[test]
fn a_missing_file_is_named() {
    let error = report::read("no/such/run.jsonl".as_ref()).expect_err("missing").to_string();
    assert!(error.starts_with("no/such/run.jsonl: cannot be read: "), "{error}");
}

/// Each device of a pool has a row; the pool is described once.
#[test]
fn the_devices_of_a_pool_are_told_apart() {
    let text = file(&[DISK], 2, |trial, _| {
        let measurement = trial.measurement.as_mut().unwrap();
        measurement.mounts[0].devices = ["data", "log"]
            .map(|name| DeviceView {
                name: name.to_owned(),
                emulator: measurement.mounts[0].emulator.clone(),
                ..DeviceView::default()
            })
            .to_vec();
    });
    let markdown = render(&text, Format::Md);
    for name in ["hdd-7200, all devices:", "hdd-7200, data device:", "hdd-7200, log device:"] {
        assert!(markdown.contains(name), "{name} is not in {markdown}");
    }
    let page = render(&text, Format::Html);
    assert!(page.contains("hdd-7200, log device"));
    assert_eq!(page.matches("<li><b>hdd-7200").count(), 1);
}

/// Header and first row of a table of comma-separated values, only the columns from the one named.
fn columns_from(csv: &str, first: &str) -> Vec<(String, String)> {
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned));
    let columns = lines.next().expect("names").zip(lines.next().expect("a row"));
    columns.skip_while(|(name, _)| name != first).collect()
}

fn check_columns(csv: &str, first: &str, expect: &[(&str, &str)]) {
    let expect: Vec<_> =
        expect.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(columns_from(csv, first), expect, "{csv}");
}

#[test]
fn the_clients_cpu_of_each_operation_is_in_every_format() {
    let view = View::new(&records(&list()));
    let first = view.cells[0].transactions[0].client_cpu_us.expect("known");
    assert!(render(&list(), Format::Html).contains(&format!("<td class=\"n\">{}</td>", number(first))));
    assert!(render(&list(), Format::Json).contains(&format!("\"client_cpu_us\": {first}")));
    let csv = render(&list(), Format::Csv);
    let (operations, of_first): (Vec<_>, Vec<_>) =
        columns_from(&csv, "client_cpu_us_insert_duplicates").into_iter().unzip();
    assert_eq!(operations.len(), 3, "{operations:?}");
    let trial = &records(&list()).trials[0].measurement.clone().expect("measured").transactions[0];
    assert_eq!(of_first[0], (1.5e6 / trial.latency.count as f64).to_string());
    let markdown = render(&list(), Format::Md);
    let (_, table) = markdown.split_once("## Client CPU per operation\n\n").expect("a table");
    insta::assert_snapshot!(table.lines().take(5).collect::<Vec<_>>().join("\n"));
    // Without such figures there is no column for them.
    assert!(!render(&quickstart(), Format::Md).contains("Client CPU per operation"));
    assert!(!render(&quickstart(), Format::Csv).contains("client_cpu_us_new"));
}

#[test]
fn replication_lag_is_in_every_format() {
    check_columns(
        &render(&replicated(), Format::Csv),
        "replica_1_name",
        &[
            ("replica_1_name", "replica 1 (x25-m)"),
            ("replica_1_behind_s_mean", "2"),
            ("replica_1_behind_s_max", "3"),
            ("replica_1_behind_mb_last", "2.5"),
            ("replica_1_catch_up_s", "2.5"),
            ("replica_2_name", "replica 2 (hdd-7200)"),
            ("replica_2_behind_s_mean", ""),
            ("replica_2_behind_s_max", ""),
            ("replica_2_behind_mb_last", ""),
            ("replica_2_catch_up_s", ""),
        ],
    );
    let page = render(&replicated(), Format::Html);
    assert!(
        page.contains("semi-sync, replica 1 (x25-m)</td><td class=\"n\">2.00</td><td class=\"n\">3.00</td>")
    );
    let expect = "hdd-7200: replica 1 (x25-m) was 2.00 s behind (at most 3.00 s), and 2.50 MB of binary log at the end of the window; it caught up in 2.50 s.";
    assert!(render(&replicated(), Format::Md).contains(&format!("- {expect}\n")));
    let unknown = "hdd-7200: replica 2 (hdd-7200) was an unknown number of s behind";
    assert!(render(&replicated(), Format::Md).contains(unknown));
}

#[test]
fn a_shorter_time_is_better() {
    let records = list();
    let view = View::new(&crate::report_support::records(&records));
    let ratio = view.cells[2].ratio.as_ref().expect("a ratio to the disk");
    assert_eq!((ratio.verdict.as_str(), ratio.ratio < 0.2), ("faster", true), "{ratio:?}");
    let sentence = &view.verdict.sentence;
    assert!(sentence.starts_with("iodrive is the fastest: 0.0"), "{sentence}");
    assert!(sentence.contains(&format!(" times the time of {} (95 % interval ", DISK.name)), "{sentence}");
    let operations = &view.cells[0].transactions;
    assert!(operations[0].client_cpu_us > Some(0.0) && operations[0].list_s > Some(0.0), "{operations:?}");
    assert_eq!(operations[3].client_cpu_us, None);

    let page = render(&records, Format::Html);
    assert!(
        page.contains("Seconds for the fixed work, lower is better.") && !page.contains("higher is better")
    );
    assert!(page.contains("client CPU µs</th><th scope=\"col\" class=\"n\">total s</th>"));
    assert!(render(&records, Format::Text).contains("    seconds "));
    let quickstart = render(&quickstart(), Format::Html);
    assert!(quickstart.contains("higher is better") && !quickstart.contains("total s"));
}
