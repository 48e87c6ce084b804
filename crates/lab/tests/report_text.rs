//! The report as text: what it says about records of every shape.

mod report_support;

use report_support::*;

#[test]
fn scratch() {
    let Ok(directory) = std::env::var("SCRATCH") else { return };
    let records = records(&quickstart());
    for (format, name) in [
        (spindle_lab::report::Format::Html, "q.html"),
        (spindle_lab::report::Format::Text, "q.txt"),
        (spindle_lab::report::Format::Md, "q.md"),
        (spindle_lab::report::Format::Csv, "q.csv"),
        (spindle_lab::report::Format::Json, "q.json"),
    ] {
        std::fs::write(
            format!("{directory}/{name}"),
            spindle_lab::report::render(&records, format, false).unwrap(),
        )
        .unwrap();
    }
    std::fs::write(format!("{directory}/q.jsonl"), quickstart()).unwrap();
}
