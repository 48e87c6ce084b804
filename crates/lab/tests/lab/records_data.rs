//! Records are data for others: every line is of the published schema, and the examples of the documentation,
//! in pandas and DuckDB, have the report's figures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use spindle_lab::record::{Line, Trial, Warning};
use spindle_lab::report::{self, Format};
use spindle_lab::server::package::cache_directory;

use crate::report_support::{CARD, DISK, FLASH, Shape, file};
use crate::run_mock::{Bench, GOOD, scenario};
use crate::{in_check_all, skip};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// Python with pandas, DuckDB and jsonschema, as `tools/install test` makes it.
fn python() -> Option<PathBuf> {
    let python = cache_directory().unwrap().join("examples/bin/python");
    if python.exists() { Some(python) } else { skip("no Python for the examples: run `tools/install test`") }
}

/// What a script says, and whether it succeeded.
fn run(python: &Path, directory: &Path, arguments: &[&str]) -> (String, bool) {
    let output = Command::new(python).args(arguments).current_dir(directory).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (String::from_utf8(said).unwrap(), output.status.success())
}

/// The files of `records/`, as `--format records` prints them.
fn committed(bench: &Bench) -> Vec<PathBuf> {
    let runs = fs::read_dir(repository("records")).unwrap().map(|entry| entry.unwrap().path());
    let files = runs.filter(|run| run.is_dir()).map(|run| {
        let records = report::read(&run).unwrap();
        let text = report::render(&records, Format::Records, false).unwrap();
        bench.write(&format!("{}.jsonl", run.file_name().unwrap().to_str().unwrap()), &text)
    });
    files.collect()
}

/// Records in which one trial was repeated and counts, and another one was repeated and does not.
fn repeated(bench: &Bench) -> PathBuf {
    let other = Warning::OtherRun { title: "The other".to_owned() };
    let is = |trial: &Trial, shape: &Shape, number| trial.trial == number && trial.cell == shape.name;
    let disturb = |trial: &mut Trial, _: &Shape| {
        if is(trial, &FLASH, 2) || is(trial, &CARD, 3) {
            trial.warnings.push(other.clone());
        }
    };
    let mut text = file(&[DISK, FLASH, CARD], 3, disturb);
    let lines: Vec<Line> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in lines {
        let Line::Trial(mut trial) = line else { continue };
        if is(&trial, &FLASH, 2) || is(&trial, &CARD, 3) {
            trial.measurement.as_mut().unwrap().metric.value *= 1.5;
            if is(&trial, &CARD, 3) {
                trial.warnings.clear();
            }
            text += &(serde_json::to_string(&Line::Trial(trial)).unwrap() + "\n");
        }
    }
    bench.write("repeated.jsonl", &text)
}

/// Files whose ratios the examples must have.
fn files(bench: &Bench) -> Vec<PathBuf> {
    let mut files = committed(bench);
    files.push(repeated(bench));
    files
}

/// Holds files against the schema.
fn validate(python: &Path, bench: &Bench, options: &[&str], files: &[PathBuf]) -> (String, bool) {
    let [script, schema] = ["docs/examples/validate.py", "docs/records.schema.json"].map(repository);
    let mut arguments = [&[script.to_str().unwrap()], options, &[schema.to_str().unwrap()]].concat();
    arguments.extend(files.iter().map(|file| file.to_str().unwrap()));
    run(python, &bench.path(""), &arguments)
}

/// A bench whose run has finished, with a failed trial among the others.
fn finished() -> Bench {
    let bench = Bench::new(&scenario(2, &[GOOD[0], ("broken", "fail = \"start\"")], "1 s"));
    bench.run(&[], 0);
    bench
}

#[test]
fn every_line_of_every_record_is_of_the_schema() {
    let Some(python) = in_check_all(python) else { return };
    let bench = finished();
    let mut files = committed(&bench);
    assert!(files.len() >= 5, "{files:?}");
    files.push(bench.records());
    assert_eq!(validate(&python, &bench, &["--closed"], &files), (String::new(), true));
}

#[test]
fn a_line_that_is_not_of_the_schema_is_named() {
    let Some(python) = in_check_all(python) else { return };
    let bench = finished();
    let text = fs::read_to_string(bench.records()).unwrap();
    let check = |options: &[&str], line: usize, plant: fn(&mut Value), expect: &str| {
        let mut lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        plant(&mut lines[line]);
        let planted = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
        let (said, is_good) = validate(&python, &bench, options, &[bench.write("planted.jsonl", &planted)]);
        assert!(!is_good && said.contains(&format!("planted.jsonl:{}:", line + 1)), "{said}");
        assert!(said.contains(expect) && said.lines().count() == 1, "{said}");
    };
    check(&[], 0, |header| header["cells"][0]["mounts"] = json!("none"), "cells/0/mounts");
    check(&[], 1, |trial| trial["trial"] = json!("one"), "'one' is not of type 'integer'");
    check(&["--closed"], 2, |trial| trial["of_nobody"] = json!(1), "of_nobody");
    check(&[], 3, |trial| _ = trial.as_object_mut().unwrap().remove("phases_s"), "phases_s");
}

#[test]
fn a_record_of_todays_format_is_printed_as_it_was_written() {
    let bench = finished();
    let printed = bench.text(&["report", "results", "--format", "records"]);
    assert_eq!(printed, fs::read_to_string(bench.records()).unwrap());
}

/// Ratios to the baseline by the report's CSV.
fn ratios(records: &Path) -> BTreeMap<String, f64> {
    let csv = report::render(&report::read(records).unwrap(), Format::Csv, false).unwrap();
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows = reader.deserialize().map(|row| row.unwrap());
    let ratio = |row: BTreeMap<String, String>| {
        (row["metric"] == "ratio").then(|| (row["cell"].clone(), row["value"].parse().unwrap()))
    };
    rows.filter_map(ratio).collect()
}

#[track_caller]
fn check_same(found: &BTreeMap<String, f64>, expect: &BTreeMap<String, f64>, digits: f64) {
    assert_eq!(found.keys().collect::<Vec<_>>(), expect.keys().collect::<Vec<_>>());
    for (cell, ratio) in expect {
        assert!((found[cell] / ratio - 1.0).abs() < digits, "{cell}: {} for {ratio}", found[cell]);
    }
}

#[test]
fn the_example_in_pandas_has_the_reports_ratios() {
    let Some(python) = in_check_all(python) else { return };
    let bench = Bench::new("");
    for file in files(&bench) {
        let script = repository("docs/examples/ratio.py");
        let (said, is_good) =
            run(&python, &bench.path(""), &[script.to_str().unwrap(), file.to_str().unwrap()]);
        assert!(is_good, "{said}");
        let rows = said.lines().skip(2).map(|line| line.split_whitespace().collect::<Vec<_>>());
        let found = rows.map(|row| (row[0].to_owned(), row[2].parse().unwrap())).collect();
        // pandas prints six decimals.
        check_same(&found, &ratios(&file), 1e-4);
    }
}

#[test]
fn the_example_in_duckdb_has_the_reports_ratios() {
    let Some(python) = in_check_all(python) else { return };
    let bench = Bench::new("");
    let script = repository("docs/examples/ratio.sql");
    let print =
        "import duckdb, json, sys; print(json.dumps(duckdb.sql(open(sys.argv[1]).read()).fetchall()))";
    for file in files(&bench) {
        fs::copy(&file, bench.path("records.jsonl")).unwrap();
        let (said, is_good) = run(&python, &bench.path(""), &["-c", print, script.to_str().unwrap()]);
        assert!(is_good, "{said}");
        let rows: Vec<(String, u32, f64)> = serde_json::from_str(&said).unwrap();
        let found = rows.into_iter().map(|(cell, _, ratio)| (cell, ratio)).collect();
        check_same(&found, &ratios(&file), 1e-9);
    }
}

/// The blocks of code of a page in Markdown: language and text.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced.filter_map(|block| block.split_once('\n')).collect()
}

/// Without spaces at the ends of lines, which pandas prints and an editor removes.
fn trimmed(text: &str) -> String {
    text.trim().lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

#[test]
fn the_examples_on_the_page_run_and_print_what_it_shows() {
    let Some(python) = in_check_all(python) else { return };
    let bench = Bench::new("");
    let quickstart = report::read(&repository("records/quickstart")).unwrap();
    bench.write("figures.csv", &report::render(&quickstart, Format::Csv, false).unwrap());
    bench.write("records.jsonl", &report::render(&quickstart, Format::Records, false).unwrap());
    let page = fs::read_to_string(repository("docs/records.md")).unwrap();
    let query = "import duckdb, sys; [print(each.fetchall()) for each in map(duckdb.execute, sys.argv[1].split(';')[:-1])]";
    let ratio = fs::read_to_string(repository("docs/examples/ratio.py")).unwrap();
    let mut printed = trimmed(&run(&python, &bench.path(""), &["-c", &ratio, "records.jsonl"]).0);
    let (mut examples, mut shown) = (0, Vec::new());
    for (language, text) in blocks(&page) {
        let (said, is_good) = match language {
            "python" => run(&python, &bench.path(""), &["-c", text]),
            "sql" => run(&python, &bench.path(""), &["-c", query, text]),
            _ => {
                shown.push(trimmed(text));
                continue;
            }
        };
        assert!(is_good && !said.is_empty(), "{text}\n{said}");
        printed.push_str(&trimmed(&said));
        examples += 1;
    }
    assert_eq!((examples, shown.len()), (4, 2));
    for table in shown {
        assert!(printed.contains(&table), "{table}is not what the examples print:\n{printed}");
    }
}

/// The files of records below a directory.
fn records_below(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let of_entry = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => records_below(&path),
        Some(extension) if extension == "jsonl" => vec![path],
        _ => Vec::new(),
    };
    entries.flat_map(of_entry).collect()
}

#[test]
fn committed_records_name_no_place_on_the_machine_that_made_them() {
    let directories = ["records", "studies", "docs/results"];
    let files: Vec<PathBuf> = directories.iter().flat_map(|name| records_below(&repository(name))).collect();
    assert!(files.len() > 30, "{files:?}");
    for file in files {
        let command = report::read(&file).unwrap().header.report_command;
        assert!(!command.contains(" /"), "{}: {command}", file.display());
    }
}
