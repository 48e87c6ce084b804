//! What the report says about records of every shape, as text; and which files it refuses.

use std::path::Path;

use crate::report_support::*;
use spindle_lab::record::{DeviceView, LayerView, ParameterHead, PartHead, Trial, Warning};
use spindle_lab::report::format::number;
use spindle_lab::report::verdict::Word;
use spindle_lab::report::{self, Format, View, parse};

fn render(records: &str, format: Format) -> String {
    report::render(&crate::report_support::records(records), format, false).expect("a report")
}

fn shape(name: &str) -> String {
    shapes().into_iter().find(|(other, _)| *other == name).expect("a shape of that name").1
}

fn verdict(records: &str) -> String {
    View::new(&crate::report_support::records(records)).verdict.sentences.join("\n")
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

/// A page of docs/results, and the report of its records.
fn page_and_report(name: &str) -> [String; 2] {
    let results = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
    let records = report::read(&results.join(format!("{name}.jsonl"))).unwrap();
    let page = std::fs::read_to_string(results.join(format!("{name}.md"))).unwrap();
    [page, report::render(&records, Format::Md, false).unwrap()]
}

/// The rate of a cell with its interval, as pages have it, and the cells of the row.
fn row_of<'a>(report: &'a str, title: &str) -> (String, Vec<&'a str>) {
    let beginning = format!("| {title} | ");
    let row = report.lines().find_map(|line| line.strip_prefix(&beginning)).expect(title);
    let row: Vec<&str> = row.split(" | ").collect();
    (format!("{} ({})", row[0], row[1]), row)
}

#[test]
fn the_page_of_file_locks_has_what_its_records_say() {
    let [page, report] = page_and_report("file-locks");
    for (cell, name) in [("xfs", "XFS"), ("ext4", "ext4")] {
        let (rate, row) = row_of(&report, cell);
        let row = format!("| {name} | {rate} | {} ms |", row[4]);
        assert!(page.contains(&row), "{row}");
    }
    assert!(report.contains("on average for 66 % of the terminals' time"), "{report}");
    assert!(report.contains("ratio at least 1.33 (1.31 to 1.35)"), "{report}");
}

#[test]
fn the_page_of_the_activity_log_has_what_its_records_say() {
    let [page, report] = page_and_report("activity-log");
    let alone = "ioDrive, log files on disks";
    let drbd = "ioDrive and disks, DRBD B over 10 Gb/s";
    let logged = "ioDrive and disks, DRBD B over 10 Gb/s, activity log";
    for pool in ["50", "100"] {
        let rate = |title: &str| row_of(&report, &format!("{title}, innodb_buffer_pool_size={pool}M")).0;
        let row = format!("| {pool} MB | {} | {} | {} |", rate(alone), rate(drbd), rate(logged));
        assert!(page.contains(&row), "{row}");
        let inside = format!("Inside {logged}, innodb_buffer_pool_size={pool}M: data on ");
        let layers = report.lines().skip_while(|line| !line.starts_with(&inside));
        let writes: Vec<&str> =
            layers.skip(4).take(2).map(|line| line.split(" | ").nth(2).unwrap()).collect();
        let words =
            format!("{} writes a second of the host with {pool} MB are {} of the card", writes[0], writes[1]);
        assert!(page.contains(&words), "{words}");
    }
}

#[test]
fn a_limit_of_the_servers_memory_is_told_with_its_cells() {
    let limited = file(&[DISK, FLASH], 3, |trial, shape| {
        trial.provenance.memory_bytes = (shape.name == DISK.name).then_some(256_000_000);
    });
    let told = "memory of the server: hdd-7200: 256 MB; x25-m: no limit";
    assert!(render(&limited, Format::Md).contains(told));
    assert!(!render(&quickstart(), Format::Md).contains("memory of the server"));
}

#[test]
fn the_csv_of_failed_trials() {
    let csv = render(&shape("failed-trials"), Format::Csv);
    let column = |line: &str| line.split(',').skip(12).collect::<Vec<_>>().join(",");
    let of_trial = |line: &&str| line.contains(",hdd-7200,mariadb,10.11.6-MariaDB,tpcc-10,1,");
    let head = csv.lines().take(2).collect::<Vec<_>>().join("\n");
    let first =
        csv.lines().filter(of_trial).map(column).filter(|line| !line.starts_with(['p', 'o', 'd', 's']));
    let failed = csv.lines().filter(|line| line.contains(",,,trial_failed,,1,"));
    insta::assert_snapshot!(
        [head, first.collect::<Vec<_>>().join("\n"), failed.collect::<Vec<_>>().join("\n")].join("\n\n")
    );
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
    for format in [Format::Html, Format::Md, Format::Csv, Format::Json, Format::Text, Format::Diskstats] {
        assert_eq!(render(&quickstart(), format), render(&quickstart(), format));
    }
}

#[test]
fn json_says_what_the_table_says() {
    let json: serde_json::Value = serde_json::from_str(&render(&quickstart(), Format::Json)).expect("JSON");
    assert_eq!(json["baseline"], "hdd-7200");
    assert_eq!(json["cells"][1]["verdict"]["word"], "better");
    assert_eq!(json["cells"][0]["trials"].as_array().map(Vec::len), Some(3));
}

#[test]
fn each_workload_is_compared_by_itself() {
    let view = View::new(&crate::report_support::records(&tests()));
    let compared = view.cells.iter().map(|cell| {
        let baseline = cell.baseline.as_ref().map(|baseline| baseline.name.as_str());
        let ratio = cell.ratio.as_ref().map_or_else(|| "1".to_owned(), |ratio| number(ratio.ratio));
        format!("{} to {}: {ratio}", cell.name, baseline.unwrap_or("none"))
    });
    let compared: Vec<String> = compared.collect();
    insta::assert_snapshot!(compared.join("\n"), @r"
    hdd-7200/insert to hdd-7200/insert: 1
    x25-m/insert to hdd-7200/insert: 2.77
    hdd-7200/scan to hdd-7200/scan: 1
    x25-m/scan to hdd-7200/scan: 1.00
    hdd-7200/select to hdd-7200/select: 1
    x25-m/select to hdd-7200/select: 0.713
    ");
    assert_eq!(view.baseline, None);
    let text = render(&tests(), Format::Text);
    assert!(text.contains("Ratio: compared with the first of"), "{text}");
}

#[test]
fn workloads_that_count_different_things_have_answers_of_their_own() {
    let mut mixed = crate::report_support::records(&tests());
    for trial in mixed.trials.iter_mut().filter(|trial| trial.cell.ends_with("/scan")) {
        "rows per second".clone_into(&mut trial.measurement.as_mut().expect("measured").metric.name);
    }
    insta::assert_snapshot!(View::new(&mixed).verdict.sentences.join("\n"), @r"
    `insert`: The x25-m gives 2.77 times the new-order transactions of the hdd-7200.
    `scan`: The x25-m gives no more than the hdd-7200 (the same within 5 %).
    `select`: The hdd-7200 gives the most: the x25-m gives 0.713 times that.
    ");
}

#[test]
fn workloads_of_one_cell_each_are_compared_with_the_first() {
    let single = with_header(&file(&[DISK, FLASH, CARD], 3, |_, _| {}), |header| {
        for (cell, workload) in header.cells.iter_mut().zip(["direct", "split", "servers-2"]) {
            workload.clone_into(&mut cell.workload);
        }
    });
    let view = View::new(&crate::report_support::records(&single));
    assert_eq!(view.baseline.as_deref(), Some(DISK.name));
}

#[test]
fn verdicts_of_every_shape() {
    let verdicts: Vec<String> = std::iter::once(("quickstart", quickstart()))
        .chain(shapes())
        .map(|(name, records)| format!("{name}: {}", verdict(&records)))
        .collect();
    insta::assert_snapshot!(verdicts.join("\n"), @r"
    quickstart: The x25-m gives 22.6 times the new-order transactions of the hdd-7200; the iodrive gives at least 1.53 times that, but there the cores decide.
    failed-trials: The x25-m gives 22.9 times the new-order transactions of the hdd-7200; the iodrive gives 1.49 times that.
    sweep: “Intel X25-M, terminals=32” gives 4.65 times the new-order transactions of “7200 rpm disk, terminals=8”.
    single-trial: Whether the x25-m gives more than the hdd-7200 is not known yet: one trial is too few for a verdict: set `trials = 3` or more and run again; finished trials are kept.
    one-cell: The hdd-7200 reached 413 new-order transactions per minute (95 % interval 396 to 430, 3 trials). There is nothing to compare it with.
    all-failed: Nothing was measured: all 4 trials failed.
    no-difference: The x25-m gives the most: the hdd-7200 gives 0.0443 times that; whether the x25-m-again gives more than the x25-m is not known yet: about 3 more trials of each would decide (`trials = 6`).
    mock-without-emulator: The x25-m gives 22.6 times the new-order transactions of the hdd-7200.
    ");
}

#[test]
fn a_single_trial_is_not_called_a_finding() {
    let view = View::new(&records(&shape("single-trial")));
    let ratio = view.cells[1].ratio.as_ref().expect("a ratio");
    let verdict = view.cells[1].verdict.as_ref().expect("a verdict");
    assert_eq!((ratio.interval, verdict.word), (None, Word::NotKnown));
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

/// Two cells with labels, the second of them with a value of one parameter more.
fn labelled(trial_count: u32, edit: impl Fn(&mut Trial, &Shape)) -> String {
    with_header(&file(&[DISK, FLASH], trial_count, edit), |header| {
        for (cell, label) in header.cells.iter_mut().zip(["battery good", "battery, dead"]) {
            cell.label = label.to_owned();
            let mut parameters = vec![("policy", "write-back"), ("battery_out_at", "0 s")];
            parameters.truncate(if label == "battery good" { 1 } else { 2 });
            let parameter = |(key, value): (&str, &str)| ParameterHead {
                key: key.to_owned(),
                value: value.to_owned(),
                is_given: true,
            };
            cell.mounts[0].stack.part = Some(PartHead {
                name: cell.name.clone(),
                kind: "cache".to_owned(),
                parameters: parameters.into_iter().map(parameter).collect(),
                below: Vec::new(),
            });
        }
    })
}

#[test]
fn every_format_has_the_labels_and_the_parameters_that_differ() {
    let text = labelled(3, |_, _| {});
    let differs = "The storage of “battery, dead” differs from that of “battery good” only in: battery out at 0 s instead of none.";
    for format in [Format::Text, Format::Md, Format::Html] {
        let page = render(&text, format);
        let flowing = page.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flowing.contains(differs), "{format:?}: {page}");
        assert!(
            flowing
                .contains("“battery, dead” gives 22.6 times the new-order transactions of “battery good”."),
            "{page}"
        );
    }
    assert!(render(&text, Format::Html).contains("<dd>battery out at <b>0 s</b></dd>"));
    assert!(render(&text, Format::Md).contains("battery, dead is `x25-m`".replace('`', "\\`").as_str()));
    let csv = render(&text, Format::Csv);
    assert!(csv.contains("synthetic,x25-m,\"battery, dead\",x25-m,\"battery, dead\",mariadb,"), "{csv}");
}

#[test]
fn two_trials_without_a_difference_ask_for_a_third() {
    let again = Shape { name: "x25-m-again", ..FLASH };
    let text = file(&[FLASH, again], 2, |_, _| {});
    insta::assert_snapshot!(verdict(&text), @r"Whether the x25-m-again gives more than the x25-m is not known yet: two trials are too few for a verdict: set `trials = 3` or more and run again; finished trials are kept.");
    assert_eq!(View::new(&records(&text)).cells[1].verdict.as_ref().expect("a verdict").more_trials, Some(1));
    let one = file(&[DISK], 2, |_, _| {});
    insta::assert_snapshot!(verdict(&one), @"The hdd-7200 reached 409 new-order transactions per minute; two trials are too few for a verdict: set `trials = 3` or more and run again; finished trials are kept.");
}

#[test]
fn a_figure_of_few_transactions_is_marked_in_every_format() {
    let text = labelled(3, |trial, shape| {
        if let (true, Some(measurement)) = (shape.name == DISK.name, &mut trial.measurement) {
            measurement.metric.value = 5.0;
        }
    });
    for (format, mark) in [
        (Format::Text, "battery good       5.00†"),
        (Format::Md, "| battery good | 5.00† |"),
        (Format::Html, "5.00<sup title=\"from too few transactions, see the warnings\">†</sup>"),
        (Format::Csv, ",result,new-order transactions per minute,5,few transactions"),
        (Format::Json, "\"has_few_events\": true"),
    ] {
        let page = render(&text, format);
        assert!(page.contains(mark), "{format:?}: {page}");
    }
    let view = View::new(&records(&text));
    insta::assert_snapshot!(view.warnings[0].sentence, @r#"Only 5 of the transactions that the figure counts ended in the measured window of 1 min: chance alone can move it by 88 %. Set `measure = "20 min"`: at this rate about 100 end in it (20 %)."#);
    assert_eq!(view.warnings[0].trial_count, 3);
}

#[test]
fn a_quantile_of_few_transactions_is_in_no_format() {
    let text = file(&[DISK], 1, |_, _| {});
    let view = View::new(&records(&text));
    let latency = view.cells[0].latency.as_ref().expect("measured");
    assert!((200..1_000).contains(&latency.count) && latency.p99_ms.is_none(), "{latency:?}");
    let footnote = "A dash stands for a quantile of too few transactions: p99 needs 1,000 transactions.";
    for format in [Format::Text, Format::Md, Format::Html] {
        assert!(render(&text, format).contains(footnote), "{format:?}");
    }
    let csv = render(&text, Format::Csv);
    assert_eq!(
        figure(&csv, "hdd-7200", ["", "", "latency_p99_ms"]),
        format!("too few: {} of 1,000", latency.count)
    );
    assert!(figure(&csv, "hdd-7200", ["", "", "latency_p95_ms"]).parse::<f64>().is_ok());
}

#[test]
fn equal_cells_are_not_ranked() {
    let view = View::new(&records(&shape("no-difference")));
    let word = view.cells[1].verdict.as_ref().expect("a verdict").word;
    assert!(matches!(word, Word::Same | Word::NotKnown), "{word:?}");
    assert!(!view.verdict.sentences[0].contains("times the new-order transactions of the x25-m;"));
}

#[test]
fn a_bottleneck_has_the_mean_of_the_trials_and_the_figures_of_the_one_closest_to_it() {
    let text = file(&[DISK], 3, |trial, _| {
        let bottleneck = &mut trial.measurement.as_mut().expect("measured").bottleneck;
        let share = [0.66, 0.69, 0.75][trial.trial as usize - 1];
        bottleneck.shares.insert("read".to_owned(), share);
        bottleneck.reason = format!("{:.0} % went into reads.", share * 100.0);
    });
    let view = View::new(&records(&text));
    insta::assert_snapshot!(view.verdict.details[0], @"The hdd-7200 was limited by read latency in all 3 trials, on average for 70 % of the terminals' time. Trial 2: 69 % went into reads.");
}

#[test]
fn cores_that_other_programs_kept_busy_are_not_the_limit_of_the_trial() {
    let saturated = Warning::CpuSaturated { busy: 0.99, client: 0.01, own: None };
    let text = file(&[DISK], 3, |trial, _| trial.warnings.push(saturated.clone()));
    let view = View::new(&records(&text));
    assert_eq!(view.cells[0].warnings, ["other programs"]);
    insta::assert_snapshot!(view.warnings[0].sentence, @"93 % of the cores were used by other programs, 6 % by the trial itself: the figure may be lower than on an idle machine. Stop them and measure again.");
}

#[test]
fn a_device_without_flushes_has_a_dash_and_no_empty_chart() {
    let text = file(&[DISK], 2, |trial, _| {
        let mount = &mut trial.measurement.as_mut().expect("measured").mounts[0];
        let emulator = mount.emulator.as_mut().expect("emulated");
        (emulator.flushes, emulator.flush_latency_mean_ms) = (0, 0.0);
        mount.series.flush_latency_ms.fill(0.0);
    });
    let page = render(&text, Format::Html);
    assert!(
        page.contains("<figcaption>Write latency, ms") && !page.contains("<figcaption>Flush latency, ms")
    );
    let view = View::new(&records(&text));
    let activity = view.cells[0].storages[0].activity.expect("emulated");
    assert!(activity.flush_ms.is_none() && activity.write_ms.is_some(), "{activity:?}");
}

#[test]
fn names_in_commands_are_quoted_and_each_trial_has_a_line_in_the_legend() {
    let page = render(&labelled(3, |_, _| {}), Format::Html);
    assert!(page.contains("battery, dead is ‘x25-m’"));
    assert!(
        ["trial 1", "trial 2", "trial 3"].iter().all(|trial| page.contains(&format!("</svg>{trial}</li>")))
    );
}

#[test]
fn the_layers_of_a_stack_have_their_own_table() {
    let text = file(&[DISK, FLASH], 3, |trial, shape| {
        let Some(measurement) = &mut trial.measurement else { return };
        let layer = |depth, name: &str, reads_per_s: f64| LayerView {
            depth,
            name: name.to_owned(),
            reads: (reads_per_s * measurement.duration_s) as u64,
            ..LayerView::default()
        };
        let layers = vec![layer(0, "cache", 200.0), layer(1, "disk", 50.0)];
        measurement.mounts[0].layers = if shape.name == DISK.name { layers } else { Vec::new() };
    });
    let page = render(&text, Format::Md);
    let table: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("Inside ")).take(6).collect();
    insta::assert_snapshot!(table.join("\n"), @r"
    Inside hdd-7200:

    | layer | reads /s | writes /s | flushes /s | MB/s read | MB/s written |
    |---|--:|--:|--:|--:|--:|
    | cache | 200 | 0 | 0 | 0 | 0 |
    | disk | 50\.0 | 0 | 0 | 0 | 0 |
    ");
    let page = render(&text, Format::Html);
    assert_eq!(page.matches("<table class=\"layers\">").count(), 1);
}

#[test]
fn a_ratio_has_one_direction_and_none_without_a_difference() {
    // Trials as 7,799, 22,509 and 2,990 against level ones: the mean leads, the pairs of trials do not.
    let again = Shape { name: "x25-m-again", ..FLASH };
    let text = file(&[FLASH, again], 3, |trial, shape| {
        if let Some(measurement) = &mut trial.measurement {
            let wild = [7_799.0, 22_509.0, 2_990.0][trial.trial as usize - 1];
            measurement.metric.value = if shape.name == FLASH.name { wild } else { 8_550.0 };
        }
    });
    let view = View::new(&records(&text));
    insta::assert_snapshot!(view.verdict.sentences[0], @r"Whether the x25-m-again gives less than the x25-m is not known yet: about 1,156 more trials of each would decide (`trials = 1159`).");
    insta::assert_snapshot!(view.footnotes[0], @"For the x25-m-again, ratio and means point in opposite directions, because the trials differ widely: the ratio is the geometric mean of the ratios of single trials.");
    // The table divides by the first cell, and so does the sentence when that cell is the fastest.
    let fastest = verdict(&file(&[CARD, FLASH, DISK], 3, |_, _| {}));
    insta::assert_snapshot!(fastest, @r"The iodrive gives the most: the x25-m gives 0.651 times that; the hdd-7200 gives 0.0286 times that.");
    let single = verdict(&file(&[FLASH, DISK], 1, |_, _| {}));
    insta::assert_snapshot!(single, @r"Whether the hdd-7200 gives less than the x25-m is not known yet: one trial is too few for a verdict: set `trials = 3` or more and run again; finished trials are kept.");
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
    assert!(view.verdict.sentences[0].contains("not compared"), "{}", view.verdict.sentences[0]);
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
            "The hdd-7200 has 2 trials of 3: the run stopped early.",
            "The x25-m has 1 trial of 3: the run stopped early."
        ]
    );
}

#[test]
fn a_cell_with_more_trials_than_the_others_has_stopped_early_without_them() {
    let text = file(&[DISK, FLASH], 3, |_, _| {});
    let mut records = records(&text);
    records.header.cells[1].trials = Some(5);
    let view = View::new(&records);
    assert_eq!(view.notes, ["The x25-m has 3 trials of 5: the run stopped early."]);
    let trials = "The scenario sets 3 trials for each storage, and up to 5 for some cells.";
    assert_eq!(view.how_many_trials, trials);
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
    assert!(error.starts_with("no/such/run.jsonl: does not exist; "), "{error}");
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

/// The figures of one cell's first trial in a table of comma-separated values: transaction, part, metric,
/// unit, value and text.
fn figures(csv: &str, cell: &str) -> Vec<[String; 6]> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows = reader.records().map(|row| row.expect("a row"));
    let of_trial = |row: &csv::StringRecord| &row[1] == cell && &row[8] == "1";
    rows.filter(of_trial).map(|row| std::array::from_fn(|index| row[12 + index].to_owned())).collect()
}

/// The value, or else the text, of the only figure with that transaction, part and metric.
fn figure(csv: &str, cell: &str, of: [&str; 3]) -> String {
    let mut found = figures(csv, cell);
    found.retain(|row| row[..3] == of);
    assert_eq!(found.len(), 1, "{of:?}: {found:?}");
    found[0][4..].concat()
}

#[test]
fn the_clients_cpu_of_each_operation_is_in_every_format() {
    let view = View::new(&records(&list()));
    let first = view.cells[0].transactions[0].client_cpu_us.expect("known");
    assert!(render(&list(), Format::Html).contains(&format!("<td class=\"n\">{}</td>", number(first))));
    assert!(render(&list(), Format::Json).contains(&format!("\"client_cpu_us\": {first}")));
    let csv = render(&list(), Format::Csv);
    let of_first = figure(&csv, "hdd-7200", ["insert_duplicates", "", "client_cpu_per_transaction_us"]);
    let trial = &records(&list()).trials[0].measurement.clone().expect("measured").transactions[0];
    assert_eq!(of_first, (1.5e6 / trial.latency.count as f64).to_string());
    let markdown = render(&list(), Format::Md);
    let (_, table) = markdown.split_once("## Client CPU per operation\n\n").expect("a table");
    insta::assert_snapshot!(table.lines().take(5).collect::<Vec<_>>().join("\n"));
    // Without such figures there is no column for them.
    assert!(!render(&quickstart(), Format::Md).contains("Client CPU per operation"));
    assert!(!render(&quickstart(), Format::Csv).contains("client_cpu_per_transaction_us"));
}

#[test]
fn replication_lag_is_in_every_format() {
    let csv = render(&replicated(), Format::Csv);
    let metrics = ["behind_mean_s", "behind_max_s", "behind_bytes_last", "catch_up_s"];
    let of_first = metrics.map(|metric| figure(&csv, "hdd-7200", ["", "replica 1", metric]));
    assert_eq!(of_first, ["2", "3", "2500000", "2.5"]);
    let of_second: Vec<_> =
        figures(&csv, "hdd-7200").into_iter().filter(|row| row[1] == "replica 2").collect();
    assert!(of_second.iter().all(|row| !metrics.contains(&row[2].as_str())), "{of_second:?}");
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
    let word = view.cells[2].verdict.as_ref().expect("a verdict").word;
    assert_eq!((word, ratio.ratio < 0.2), (Word::Better, true), "{ratio:?}");
    let sentence = &view.verdict.sentences[0];
    assert!(sentence.starts_with("The x25-m needs 0.0"), "{sentence}");
    assert!(sentence.contains(&format!(" times the time of the {}; ", DISK.name)), "{sentence}");
    let operations = &view.cells[0].transactions;
    assert!(operations[0].client_cpu_us > Some(0.0) && operations[0].list_s > Some(0.0), "{operations:?}");
    assert_eq!(operations[3].client_cpu_us, None);

    let page = render(&records, Format::Html);
    assert!(
        page.contains("Seconds for the fixed work, lower is better.") && !page.contains("higher is better")
    );
    assert!(page.contains("client CPU µs</th><th scope=\"col\" class=\"n\">total s</th>"));
    assert!(render(&records, Format::Text).contains("storage  seconds "));
    let quickstart = render(&quickstart(), Format::Html);
    assert!(quickstart.contains("higher is better") && !quickstart.contains("total s"));
}
