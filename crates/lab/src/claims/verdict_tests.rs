use std::collections::BTreeSet;

use insta::assert_snapshot;
use spindle_stats::Sample;

use super::super::studies;
use super::*;
use crate::claims::{Figure, Place};
use crate::record::{spelling, words};

fn study(name: &str) -> &'static Study {
    studies().iter().find(|study| study.slug().starts_with(name)).unwrap()
}

fn measured(values: &[f64]) -> Figure {
    let sample = |(block, value): (u32, &f64)| Sample { block, value: *value };
    Figure::Measured((1..).zip(values).map(sample).collect())
}

/// Values of the trials by a member of the row, such as its scenario; other rows are in no run.
fn of_members(figures: &[(&str, &[f64])]) -> impl Fn(&Place) -> Result<Figure, String> {
    move |place: &Place| {
        let marks: Vec<String> = place.row.values().map(Mark::to_string).collect();
        let found = figures.iter().find(|(name, _)| marks.iter().any(|mark| mark == name));
        found.map(|(_, values)| measured(values)).ok_or_else(|| format!("no run has {}", place.words()))
    }
}

/// The verdict of each check of a claim, with its reason.
fn told(name: &str, claim: &str, lookup: Lookup) -> String {
    let outcomes = outcomes(study(name), lookup);
    let outcome = outcomes.iter().find(|outcome| outcome.id == claim).unwrap();
    let check = |outcome: &CheckOutcome| format!("; {}: {}", words(&outcome.verdict), outcome.reason);
    let checks: String = outcome.checks.iter().map(check).collect();
    format!("{} ({} tested){checks}", words(&outcome.verdict), outcome.tested)
}

const FAST: &[f64] = &[1780.0, 1800.0, 1790.0];
const SLOW: &[f64] = &[395.0, 401.0, 399.0];

#[test]
fn a_reproduction_that_repeats_a_study_confirms_what_its_data_support() {
    let mut exceptions = BTreeSet::new();
    let mut count = 0;
    for study in studies() {
        // The machine of each block is a little faster or slower, the same for all rows.
        let lookup = |place: &Place| -> Result<Figure, String> {
            let value = study.figure(place)?.estimate().ok_or("none")?.value;
            Ok(measured(&[value, value * 1.001, value * 0.999]))
        };
        for claim in outcomes(study, &lookup) {
            let of_study = claim.checks.iter().filter(|check| !check.is_ours);
            for check in of_study.filter(|check| check.own_data.is_some()) {
                let of_rows = check.verdict_of_rows.unwrap_or(check.verdict);
                let is_supported = check.own_data.is_some_and(|own| own.holds);
                count += 1;
                if (is_supported || check.verdict_of_rows.is_some()) && of_rows != Verdict::Confirmed {
                    exceptions.insert(format!("{} {}", claim.id, words(&of_rows)));
                }
            }
        }
    }
    // 80 % of the processor against a bound of 80 %.
    assert_eq!(exceptions.into_iter().collect::<Vec<_>>(), ["X-05 not decided"]);
    assert_eq!(count, 161);
}

#[test]
fn json_has_the_verdict_of_every_check_of_every_claim_and_the_value_of_a_tested_one() {
    let (mut claims, mut checks, mut values) = (0, 0, 0);
    for study in studies() {
        let lookup = |place: &Place| -> Result<Figure, String> {
            let value = study.figure(place)?.estimate().ok_or("none")?.value;
            Ok(measured(&[value, value * 1.001, value * 0.999]))
        };
        for claim in outcomes(study, &lookup) {
            let json = serde_json::to_value(&claim).unwrap();
            claims += 1;
            for check in json["checks"].as_array().unwrap() {
                checks += usize::from(check.get("is_ours").is_none());
                let verdict = check["verdict"].as_str().unwrap();
                values += usize::from(check["measured"]["value"].is_number());
                // A check without one value has words in its place.
                let is_said = check["measured"].is_object() || !check["reason"].as_str().unwrap().is_empty();
                assert!(is_said && !verdict.is_empty(), "{}: {check}", claim.id);
            }
        }
    }
    assert_eq!((claims, checks), (153, 208));
    assert!(values > 100, "{values}");
}

#[test]
fn a_ratio_needs_both_rows_and_two_trials() {
    let check = |figures: &[(&str, &[f64])], expect: &str| {
        assert_eq!(told("x25m", "X-01", &of_members(figures)), expect);
    };
    check(&[("x25m-cache-off", FAST), ("hdd", SLOW)], "confirmed (1 tested); confirmed: ");
    check(&[("x25m-cache-off", SLOW), ("hdd", FAST)], "contradicted (1 tested); contradicted: ");
    check(
        &[("x25m-cache-off", &FAST[..1]), ("hdd", &SLOW[..1])],
        "not decided (1 tested); not decided: one trial has no interval",
    );
    check(
        &[("x25m-cache-off", FAST)],
        "not testable (0 tested); not testable: no run has tpcc-peak (scenario = hdd)",
    );
    check(
        &[("x25m-cache-off", FAST), ("hdd", &[0.0, 0.0])],
        "not testable (0 tested); not testable: one of the figures is zero or has no trial",
    );
}

#[test]
fn a_claim_is_open_while_a_check_has_no_run() {
    let all: [(&str, &[f64]); 3] =
        [("x25m-cache-on", FAST), ("x25m-cache-off", &[900.0, 910.0, 905.0]), ("hdd", SLOW)];
    let (all, reversed) = (of_members(&all), [("x25m-cache-on", SLOW), ("hdd", FAST)]);
    let reversed = of_members(&reversed);
    let in_peak = |figures: &dyn Fn(&Place) -> Result<Figure, String>| {
        told("x25m", "X-03", &|place: &Place| match place.table.as_str() {
            "tpcc-peak" => figures(place),
            _ => Err("no run has it".to_owned()),
        })
    };
    assert_eq!(
        in_peak(&all),
        "not decided (1 tested); not testable: no run has it; confirmed: in this order"
    );
    assert!(in_peak(&reversed).starts_with("contradicted (1 tested)"));
    assert!(told("x25m", "X-03", &all).starts_with("confirmed (2 tested)"));
}

#[test]
fn an_ordering_is_shown_by_every_pair_and_refuted_by_one() {
    let middle: &[f64] = &[900.0, 910.0, 905.0];
    let check = |on: &[f64], off: &[f64], hdd: &[f64], expect: &str| {
        let figures = [("x25m-cache-on", on), ("x25m-cache-off", off), ("hdd", hdd)];
        assert_eq!(told("x25m", "X-10", &of_members(&figures)), expect);
    };
    check(FAST, middle, SLOW, "confirmed (1 tested); confirmed: in this order");
    check(
        FAST,
        SLOW,
        middle,
        "contradicted (1 tested); contradicted: x25m-cache-off and hdd: is in the other order",
    );
    check(
        FAST,
        &[1780.0, 1900.0, 1700.0],
        SLOW,
        "not decided (1 tested); not decided: x25m-cache-on and x25m-cache-off: is not decided",
    );
    let two = [("x25m-cache-on", FAST), ("hdd", SLOW)];
    assert_eq!(
        told("x25m", "X-10", &of_members(&two)),
        "not decided (1 tested); not decided: no run has write-iops (scenario = x25m-cache-off)"
    );
    let reversed = [("x25m-cache-on", SLOW), ("hdd", FAST)];
    assert!(told("x25m", "X-10", &of_members(&reversed)).starts_with("contradicted"));
    assert_eq!(
        told("x25m", "X-10", &of_members(&two[..1])),
        "not testable (0 tested); not testable: no run has write-iops (scenario = x25m-cache-off)"
    );
}

#[test]
fn a_tie_that_is_not_shown_leaves_the_direction() {
    // A time: lower is better.
    let check = |zil: &[f64], expect: &str| {
        let figures: [(&str, &[f64]); 4] = [
            ("ssd", &[20.0, 20.1, 20.2]),
            ("zil-l2arc", zil),
            ("log-on-ssd", &[30.0, 30.2, 30.1]),
            ("hdd", &[41.0, 41.3, 41.2]),
        ];
        let told = told("thesis", "T-12", &of_members(&figures));
        assert!(told.ends_with(expect), "{told}");
    };
    check(&[20.3, 20.4, 20.6], "; confirmed: in this order");
    check(&[26.0, 26.1, 26.2], "; direction only: zil-l2arc and ssd: is no tie");
    check(&[19.0, 20.9, 21.8], "; direction only: zil-l2arc and ssd: is not shown to be a tie");
}

#[test]
fn similar_members_are_all_within_the_tolerance() {
    let check = |ssd: &[f64], expect: &str| {
        let figures: [(&str, &[f64]); 2] = [("ssd", ssd), ("zil-l2arc", &[1.0, 1.001, 1.002])];
        let told = told("thesis", "T-01", &of_members(&figures));
        assert!(told.ends_with(expect), "{told}");
    };
    check(&[1.0, 1.002, 1.003], "; confirmed: no two differ");
    check(&[1.2, 1.202, 1.203], "; contradicted: ssd and zil-l2arc: differ");
    check(&[0.9, 1.1, 1.0], "; not decided: ssd and zil-l2arc: is not decided");
}

#[test]
fn an_open_check_says_how_many_trials_would_decide_it() {
    let needed = |claim: &str, figures: &[(&str, &[f64])]| {
        let lookup = of_members(figures);
        let outcomes = outcomes(study(if claim.starts_with('X') { "x25m" } else { "thesis" }), &lookup);
        let outcome = outcomes.into_iter().find(|outcome| outcome.id == claim).unwrap();
        let open = outcome.checks.into_iter().rfind(|check| check.verdict == Verdict::NotDecided);
        open.map(|check| check.trials_to_decide)
    };
    let two = [("x25m-cache-on", FAST), ("x25m-cache-off", &[1760.0, 1840.0, 1700.0][..]), ("hdd", SLOW)];
    let trials = needed("X-10", &two).unwrap().unwrap();
    let logarithms = [1780.0_f64 / 1760.0, 1800.0 / 1840.0, 1790.0 / 1700.0].map(f64::ln);
    let mean = logarithms.iter().sum::<f64>() / 3.0;
    let spread = spindle_stats::standard_deviation(&logarithms).unwrap();
    // About the trials of which the half-width, with a quantile near 2, is the mean.
    let about = (2.0 * spread / mean).powi(2);
    assert!((trials as f64 / about - 1.0).abs() < 0.2, "{trials}, about {about}");
    assert_eq!(needed("X-10", &two[..2]), Some(None), "a row that no run has");
    assert_eq!(
        needed("X-10", &[("x25m-cache-on", FAST), ("x25m-cache-off", &[900.0; 3]), ("hdd", SLOW)]),
        None
    );
    // Both are the same, and their mean does not leave the tolerance.
    let alike = [("ssd", &[0.9, 1.1, 1.0][..]), ("zil-l2arc", &[1.0, 1.001, 1.002])];
    assert!(needed("T-01", &alike).unwrap().unwrap() > 10);
}

#[test]
fn a_cell_of_several_checks_lacks_the_most_that_one_wants() {
    let further = |cell: &str, trials| FurtherTrials {
        file: "one".to_owned(),
        cell: cell.to_owned(),
        trials,
        trial_s: 10.0,
    };
    let joined = FurtherTrials::joined(
        [further("b", 2), further("a", 1), further("b", 5), further("c", 0)].into_iter(),
    );
    assert_eq!(joined, [further("a", 1), further("b", 5)]);
    assert_eq!(FurtherTrials::time(&joined).as_secs_f64(), 60.0);
}

#[test]
fn pairs_near_each_other_are_counted() {
    let near: &[f64] = &[1.0, 1.001, 1.002];
    let check = |apart: &[&str], unknown: &[&str], expect: &str| {
        let lookup = |place: &Place| {
            let (test, scenario) = (place.row["test"].to_string(), place.row["scenario"].to_string());
            let is = |tests: &[&str]| tests.contains(&test.as_str());
            match scenario.as_str() {
                _ if is(unknown) => Err("no run has it".to_owned()),
                "ssd" if is(apart) => Ok(measured(&[1.3, 1.31, 1.32])),
                _ => Ok(measured(near)),
            }
        };
        let claim = study("thesis").claims.iter().find(|claim| claim.id == "T-01").unwrap();
        let outcome = outcome(study("thesis"), &claim.checks[0], &lookup);
        assert_eq!(format!("{}: {}", words(&outcome.verdict), outcome.reason), expect);
    };
    check(&[], &[], "confirmed: 8 near and 0 apart of 8 measured pairs, of 5 claimed");
    check(
        &["insert"],
        &["select", "create"],
        "confirmed: 5 near and 1 apart of 6 measured pairs, of 5 claimed",
    );
    let four = ["insert", "select", "create", "connect"];
    check(&four, &[], "contradicted: 4 near and 4 apart of 8 measured pairs, of 5 claimed");
    check(&[], &four, "not decided: 4 near and 0 apart of 4 measured pairs, of 5 claimed");
}

#[test]
fn a_text_that_its_own_rows_refute_has_a_second_verdict() {
    let figures: [(&str, &[f64]); 2] =
        [("fusionio", &[10500.0, 10520.0, 10540.0]), ("hdd", &[195.0, 197.0, 196.0])];
    let outcomes = outcomes(study("matsunobu"), &of_members(&figures));
    let outcome = &outcomes.iter().find(|outcome| outcome.id == "M-02").unwrap();
    let check = &outcome.checks[0];
    let of_rows = check.verdict_of_rows.map(|verdict| spelling(&verdict));
    assert_eq!(
        (spelling(&check.verdict), of_rows.as_deref()),
        ("direction-only".to_owned(), Some("confirmed"))
    );
    assert_eq!(outcome.own_data, OwnData::No);
}

#[test]
fn the_worst_tested_check_decides_about_a_claim() {
    let figures: [(&str, &[f64]); 3] =
        [("fusionio", FAST), ("intel-x25e", SLOW), ("hdd-raid10x4", &[1.0, 1.1, 1.2])];
    let lookup = of_members(&figures);
    let outcomes = outcomes(study("matsunobu"), &lookup);
    let verdict = |id: &str| {
        let outcome = outcomes.iter().find(|outcome| outcome.id == id).unwrap();
        format!("{}, {} of {}", words(&outcome.verdict), outcome.tested, outcome.checks.len())
    };
    assert_snapshot!(["M-52", "M-09", "M-18", "M-24"].map(verdict).join("\n"), @r"
    not testable, 0 of 0
    not testable, 0 of 1
    confirmed, 3 of 3
    not testable, 0 of 5
    ");
}
