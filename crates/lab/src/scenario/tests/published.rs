//! Cells that reproduce published rows.

use super::*;

const HDD: &str = "[[published]]\nstudy = \"x25m-2009-tpcc-mysql\"\ntable = \"tpcc-peak\"\nrow = { scenario = \"hdd\" }\nstack = \"hdd\"\n";

#[test]
fn published_rows_are_in_the_record_and_leave_the_hash() {
    let other = HDD
        .replace("\"hdd\"", "\"x25m-cache-off\"")
        .replace("stack = \"x25m-cache-off\"", "stack = \"iodrive\"");
    let tagged = parsed(&format!("{GOOD}{HDD}{other}"));
    assert_eq!(tagged.hash(), parsed(GOOD).hash());
    let head = serde_json::to_value(tagged.head()).unwrap();
    let expect = serde_json::json!([
        {"study": "x25m-2009-tpcc-mysql", "table": "tpcc-peak", "row": {"scenario": "hdd"}, "stack": "hdd"},
        {"study": "x25m-2009-tpcc-mysql", "table": "tpcc-peak", "row": {"scenario": "x25m-cache-off"}, "stack": "iodrive"},
    ]);
    assert_eq!(head["published"], expect);
    assert!(serde_json::to_value(parsed(GOOD).head()).unwrap().get("published").is_none());
}

#[test]
fn a_cell_may_stand_for_another_column_by_another_figure() {
    let text = format!("{GOOD}{HDD}column = \"connections\"\nfigure = \"latency_p95_ms\"\n");
    let tag = &parsed(&text).published[0];
    assert_eq!((tag.column.as_deref(), tag.figure.0.as_str()), (Some("connections"), "latency_p95_ms"));
}

#[test]
fn a_published_row_that_is_not_there_is_refused() {
    let check = |from: &str, to: &str, expect: &str| {
        assert!(HDD.contains(from), "{from:?}");
        let text = format!("{GOOD}{}", HDD.replacen(from, to, 1));
        assert_eq!(Scenario::parse("test", &text, &BOUNDS).unwrap_err().to_string(), expect);
    };
    check(
        "tpcc-mysql",
        "tpcc-mysq",
        "published[0].study: there is no published study `x25m-2009-tpcc-mysq`; did you mean `x25m-2009-tpcc-mysql`?",
    );
    check(
        "\"hdd\"",
        "\"hd\"",
        "published[0].row.scenario: table `tpcc-peak` has no row with scenario `hd`; did you mean `hdd`?",
    );
    check(
        "stack = \"hdd\"",
        "stack = \"iodriv\"",
        "published[0].stack: the matrix has no `iodriv`; did you mean `iodrive`?",
    );
    check(
        "stack = \"hdd\"",
        "",
        "published[0]: a row is of one cell, and `hdd` and `iodrive` fit; name its `stack`, `server` or `workload`, or the axis `best_over`",
    );
    check(
        "table = \"tpcc-peak\"\n",
        "",
        "published[0].table: is missing; for example `table = \"tpcc-peak\"`",
    );
    check(
        "row = { scenario = \"hdd\" }\n",
        "",
        "published[0].row: is missing; for example `row = { scenario = \"hdd\" }`",
    );
    check(
        "[[published]]",
        "[published]",
        "published: must be a list of tables; write `[[published]]` above each",
    );
    check(
        "stack = \"hdd\"",
        "stack = \"hdd\"\nfigure = \"metrik\"",
        "published[0].figure: `metrik` is not known; did you mean `metric`?; docs/records.md lists the figures of a trial",
    );
}
