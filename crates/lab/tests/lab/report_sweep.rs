//! What the report says about swept values and about tables of tests, from invented records.

use crate::report_support::{Axis, records, sweep, terminals, tests, with_header};
use spindle_lab::record::SweptPart;
use spindle_lab::report::{self, Format, View};

fn render(text: &str, format: Format) -> String {
    report::render(&records(text), format, false).expect("a report")
}

fn sentences(text: &str) -> Vec<String> {
    View::new(&records(text)).sweeps.into_iter().flat_map(|sweep| sweep.sentences).collect()
}

/// A sweep of a setting that reserves memory.
fn memory(points: &[(&str, f64, f64, f64)]) -> String {
    let key = "innodb_buffer_pool_size";
    sweep(&Axis { key, part: SweptPart::Server, is_memory: true, points }, 4)
}

const MIB: f64 = 1_048_576.0;

#[test]
fn the_markdown_of_a_sweep() {
    insta::assert_snapshot!(render(&terminals(), Format::Md));
}

#[test]
fn the_terminal_table_of_a_sweep() {
    insta::assert_snapshot!(render(&terminals(), Format::Text));
}

#[test]
fn the_sentences_of_a_load_axis() {
    let sentences = sentences(&terminals());
    assert_eq!(sentences.len(), 3, "{sentences:#?}");
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn a_load_axis_tells_from_where_on_a_storage_does_not_keep_up() {
    let points = [("1", 1.0, 400.0, 402.0), ("2", 2.0, 640.0, 790.0), ("4", 4.0, 1180.0, 1560.0)];
    let part = SweptPart::Workload;
    let text = sweep(&Axis { key: "terminals", part, is_memory: false, points: &points }, 3);
    let told = sentences(&text).pop().expect("a sentence about the pair");
    let expect = "From 2 terminals on, the 7200 rpm disk no longer keeps up with the Intel X25-M: ";
    assert!(
        told.starts_with(expect) && told.ends_with("; with 1 terminal, no difference is shown."),
        "{told}"
    );
}

#[test]
fn a_memory_axis_tells_how_much_of_it_an_ssd_replaces() {
    let sentences = sentences(&memory(&[
        ("64M", 64.0 * MIB, 400.0, 1500.0),
        ("128M", 128.0 * MIB, 700.0, 2600.0),
        ("256M", 256.0 * MIB, 1300.0, 3800.0),
        ("512M", 512.0 * MIB, 2400.0, 4100.0),
        ("1024M", 1024.0 * MIB, 4100.0, 4150.0),
    ]));
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn memory_that_does_not_suffice_is_told_as_such() {
    let sentences =
        sentences(&memory(&[("64M", 64.0 * MIB, 400.0, 4000.0), ("128M", 128.0 * MIB, 700.0, 5000.0)]));
    insta::assert_snapshot!(sentences.join("\n"));
}

#[test]
fn curves_that_cross_are_told_with_the_place_and_its_interval() {
    let points = [
        ("1", 1.0, 800.0, 400.0),
        ("4", 4.0, 1000.0, 800.0),
        ("16", 16.0, 1200.0, 1600.0),
        ("64", 64.0, 1250.0, 3200.0),
    ];
    let part = SweptPart::Workload;
    let text = sweep(&Axis { key: "terminals", part, is_memory: false, points: &points }, 4);
    insta::assert_snapshot!(sentences(&text).join("\n"));
}

#[test]
fn a_ratio_without_a_verdict_is_told_with_the_cell_that_it_is_to() {
    let points = [("1", 1.0, 400.0, 4000.0), ("2", 2.0, 410.0, 4100.0)];
    let part = SweptPart::Workload;
    let text = sweep(&Axis { key: "terminals", part, is_memory: false, points: &points }, 1);
    let details = View::new(&records(&text)).verdict.details;
    let compared: Vec<(&str, &str)> =
        details.iter().filter_map(|line| line.split_once(" compared with ")).collect();
    assert_eq!(compared.len(), 2, "{details:#?}");
    for (peak, baseline) in compared {
        const FIRST: &str = "“7200 rpm disk, terminals=1”";
        assert!(peak != FIRST && baseline.starts_with(FIRST), "{details:#?}");
    }
}

#[test]
fn an_axis_of_words_has_curves_without_a_knee() {
    let text = with_header(&terminals(), |header| {
        for cell in &mut header.cells {
            cell.sweep[0].number = None;
        }
    });
    let view = View::new(&records(&text));
    assert!(!view.sweeps[0].is_numeric && view.sweeps[0].pairs.is_empty());
    assert!(view.sweeps[0].curves.iter().all(|curve| curve.knee.is_none()));
    assert!(!render(&text, Format::Md).contains("knee"));
}

#[test]
fn the_page_draws_the_curves_and_has_their_table() {
    let page = render(&terminals(), Format::Html);
    for part in ["id=\"chart-sweep-0\"", "<h2>By terminals</h2>", "do not cross in this range", "<b>peak</b>"]
    {
        assert!(page.contains(part), "{part}");
    }
    assert!(!render(&crate::report_support::quickstart(), Format::Html).contains("chart-sweep-"));
}

#[test]
fn several_tests_are_a_table_with_the_change_by_storage() {
    let page = render(&tests(), Format::Md);
    let start = page.find("## Tests by storage").expect("the table");
    let table = page[start..].split("\n## ").next().unwrap_or_default();
    insta::assert_snapshot!(table);
    assert!(render(&tests(), Format::Html).contains("<h2>Tests by storage</h2>"));
}
