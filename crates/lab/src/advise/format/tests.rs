//! The layouts of a small answer.

use super::*;
use crate::advise::answer::SelfPrediction;

fn row(name: &str, predicted: f64, total: Option<f64>, against: &[&str]) -> Row {
    let price = total.map(|total| Price {
        total,
        currency: "USD".to_owned(),
        date: "2010".to_owned(),
        source: "a shop".to_owned(),
        formula: format!("1 x {total} USD"),
        left_out: vec![],
    });
    Row {
        name: name.to_owned(),
        label: format!("the {name}"),
        predicted,
        low: 0.8 * predicted,
        high: 1.2 * predicted,
        p95_ms: Some(12.0),
        p99_ms: None,
        times_todays: predicted / 200.0,
        bottleneck: "reads",
        headroom: Some(predicted / 1_000.0 - 1.0),
        life: None,
        price_per_unit: total.map(|total| total / predicted),
        unpriced: total.is_none().then(|| format!("no price of `{name}` is known")),
        price,
        may_lose: "nothing",
        capacity_bytes: 1 << 40,
        reasons_for: vec![],
        against: against.iter().map(|words| (*words).to_owned()).collect(),
    }
}

fn answer(rows: Vec<Row>) -> Answer {
    let mut rows = rows;
    rows.sort_by(|a, b| a.compare(b));
    Answer {
        cell: "disk".to_owned(),
        why_this_cell: "the most transactions".to_owned(),
        metric: "new orders per minute".to_owned(),
        need: Some("1000 new orders a minute".to_owned()),
        years: 5,
        itself: Some(SelfPrediction { predicted: 210.0, measured: 200.0 }),
        rows,
        left_out: vec![],
        doubts: vec![],
    }
}

fn three() -> Answer {
    answer(vec![
        row("disk", 200.0, Some(60.0), &["200 of 1000"]),
        row("card", 30_000.0, None, &[]),
        row("ssd", 4_000.0, Some(225.0), &[]),
    ])
}

#[test]
fn the_cheapest_that_suffices_is_first_and_unknown_prices_are_behind_it() {
    let answer = three();
    let names: Vec<&str> = answer.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["ssd", "card", "disk"]);
    let sentence = "The cheapest storage for 1000 new orders a minute is the ssd: 225 USD (2010).";
    assert_eq!(answer.sentence(), sentence);
    assert_eq!(answer.pareto(), ["ssd", "disk"]);
}

#[test]
fn a_need_that_nothing_meets_names_the_nearest() {
    let answer =
        answer(vec![row("disk", 200.0, None, &["200 of 1000"]), row("old", 90.0, None, &["90 of 1000"])]);
    let sentence = "No storage meets 1000 new orders a minute. The nearest is the disk: 200 of 1000.";
    assert_eq!(answer.sentence(), sentence);
}

#[test]
fn a_model_that_does_not_fit_says_so_first() {
    let off = Answer { itself: Some(SelfPrediction { predicted: 300.0, measured: 200.0 }), ..three() };
    assert!(off.lay_out(Format::Text).unwrap().starts_with("The model does not fit"));
    assert!(!three().lay_out(Format::Text).unwrap().contains("does not fit"));
}

#[test]
fn every_layout_has_every_storage() {
    for format in Format::value_variants() {
        let page = three().lay_out(*format).unwrap();
        assert!(["ssd", "card", "disk"].iter().all(|name| page.contains(name)), "{format:?}: {page}");
    }
}

#[test]
fn csv_has_one_line_for_each_storage() {
    let page = three().lay_out(Format::Csv).unwrap();
    let lines: Vec<&str> = page.lines().collect();
    assert_eq!(lines.len(), 4);
    let plain =
        "1,ssd,4000.000,3200.000,4800.000,20.000,12.000,,reads,225.000,USD,2010,,1099511627776,nothing,";
    assert_eq!(lines[1], plain);
}

#[test]
fn doubts_of_the_measurement_are_repeated() {
    let doubted = Answer { doubts: vec!["No whole checkpoint.".to_owned()], ..three() };
    for format in [Format::Text, Format::Md, Format::Html] {
        let page = doubted.lay_out(format).unwrap();
        assert!(page.contains("Of the measurement: No whole checkpoint."), "{format:?}: {page}");
    }
}
