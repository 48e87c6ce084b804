use std::collections::BTreeSet;

use insta::assert_snapshot;

use super::*;
use crate::record::PublishedTag;

#[test]
fn every_study_is_read_completely() {
    let claims = studies().iter().map(|study| study.claims.len()).sum::<usize>();
    let checks = studies().iter().flat_map(Study::checks).count();
    assert_eq!((studies().len(), claims, checks), (7, 153, 208));
    let tables = studies().iter().map(|study| study.tables.len()).sum::<usize>();
    let errata = studies().iter().map(|study| study.errata.len()).sum::<usize>();
    let missing = studies().iter().map(|study| study.missing.len()).sum::<usize>();
    assert_eq!((tables, errata, missing), (56, 62, 55));
}

/// Our evaluation of a study's own rows against what its file says, as a sentence if they differ.
fn difference(study: &Study, claim: &Claim, check: &Check) -> Option<String> {
    let support = support(study, check);
    let written = match &check.form {
        Form::Ratio(ratio) => Some(ratio.ratio),
        _ => check.ground.computed,
    };
    let close = |one: f64, other: f64| (one - other).abs() <= 6e-5;
    let is_same = match support {
        None => !check.ground.verifiable && check.ground.holds.is_none() && check.ground.table.is_none(),
        Some(Support { holds, quantity }) => {
            let is_computed = written.is_none_or(|written| quantity.is_some_and(|ours| close(ours, written)));
            check.ground.verifiable && check.ground.holds == Some(holds) && is_computed
        }
    };
    (!is_same).then(|| format!("{}: {} gives {support:?}\n", claim.id, check.words()))
}

#[test]
fn the_own_data_of_every_study_give_what_its_file_says() {
    let of_study = |study: &'static Study| {
        study.checks().filter_map(|(claim, check)| difference(study, claim, check)).collect::<String>()
    };
    assert_snapshot!(studies().iter().map(of_study).collect::<String>(), @"");
    let supports: Vec<Support> = studies()
        .iter()
        .flat_map(|study| study.checks().filter_map(|(_, check)| support(study, check)))
        .collect();
    let held = supports.iter().filter(|support| support.holds).count();
    assert_eq!((supports.len(), held), (161, 140));
}

#[test]
fn names_within_a_study_lead_somewhere() {
    let mut ids = BTreeSet::new();
    for study in studies() {
        let has_setup = |id: &String| study.setups.iter().any(|setup| setup.id == *id);
        assert!(study.tables.iter().all(|table| has_setup(&table.setup)), "{}", study.slug());
        assert!(study.setups.iter().filter_map(|setup| setup.extends.as_ref()).all(has_setup));
        for claim in &study.claims {
            assert!(ids.insert(&claim.id), "{} is there twice", claim.id);
        }
        for id in study.errata.iter().flat_map(|erratum| &erratum.claims) {
            assert!(study.claims.iter().any(|claim| claim.id == *id), "{}: erratum of {id}", study.slug());
        }
        let tables: BTreeSet<&String> = study.tables.iter().map(|table| &table.id).collect();
        assert_eq!(tables.len(), study.tables.len(), "{}", study.slug());
    }
}

#[test]
fn a_file_that_is_not_read_completely_is_refused() {
    let (_, text) = FILES.iter().find(|(name, _)| name.starts_with("x25m")).unwrap();
    let check = |from: &str, to: &str, expect: &str| {
        assert!(text.contains(from), "{from}");
        let refused = Study::parse(&text.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(refused.contains(expect), "{refused}");
    };
    check(
        "schema = \"published-figures/1\"",
        "schema = \"published-figures/2\"",
        "schema: is `published-figures/2`, must be `published-figures/1`",
    );
    check("relation = \"about\"", "relation = \"roughly\"", "`roughly` is not known");
    check("stated = 4.5\n", "stated = 4.5\nguessed = 4\n", "guessed");
    check("stated = 4.5\n", "", "stated");
    check("kind = \"ratio\"\n", "kind = \"ratio\"\nmood = 1\n", "mood: unknown key");
    check("value = 396", "figure = 396", "table tpcc-peak, row 1, value: is missing");
    check("value = 396", "value = 396, colour = 1", "table tpcc-peak, row 1, colour: unknown key");
}

#[test]
fn a_study_and_a_claim_are_found_by_name() {
    let named = find("x-01").unwrap();
    assert_eq!((named.study.slug(), named.claim.unwrap().id.as_str()), ("x25m-2009-tpcc-mysql", "X-01"));
    assert!(find("thesis-2012-ssd-mysql").unwrap().claim.is_none());
    let check = |name: &str, expect: &str| assert_eq!(find(name).unwrap_err().to_string(), expect);
    check(
        "thesis-2012-ssd-mysq",
        "there is no published study or claim `thesis-2012-ssd-mysq`; did you mean `thesis-2012-ssd-mysql`?",
    );
    check(
        "throughput",
        "there is no published study or claim `throughput`; `spindle published list` has the studies",
    );
}

fn tag(lines: &str) -> PublishedTag {
    toml::from_str(lines).unwrap()
}

const TAG: &str = "study = \"x25m-2009-tpcc-mysql\"\ntable = \"tpcc-peak\"\nrow = { scenario = \"hdd\" }\n";

#[track_caller]
fn check_refused(from: &str, to: &str, expect: &str) {
    assert!(TAG.contains(from), "{from}");
    assert_eq!(check_row(&tag(&TAG.replacen(from, to, 1))).unwrap_err().to_string(), expect);
}

#[test]
fn a_row_that_no_study_has_is_refused_with_the_nearest() {
    assert!(check_row(&tag(TAG)).is_ok());
    assert!(check_row(&tag(&format!("{TAG}column = \"connections\""))).is_ok());
    check_refused(
        "x25m-2009-tpcc-mysql",
        "x25m-2009-tpc-mysql",
        "study: there is no published study `x25m-2009-tpc-mysql`; did you mean `x25m-2009-tpcc-mysql`?",
    );
    check_refused(
        "tpcc-peak",
        "tpc-peak",
        "table: study `x25m-2009-tpcc-mysql` has no table `tpc-peak`; did you mean `tpcc-peak`?",
    );
    check_refused(
        "\"hdd\"",
        "\"x25m-cache-of\"",
        "row.scenario: table `tpcc-peak` has no row with scenario `x25m-cache-of`; did you mean `x25m-cache-off`?",
    );
    check_refused(
        "scenario =",
        "scenari =",
        "row.scenari: table `tpcc-peak` has no dimension `scenari`; did you mean `scenario`?",
    );
    check_refused(
        "scenario = \"hdd\"",
        "",
        "row.scenario: is missing; table `tpcc-peak` has `hdd`, `x25m-cache-off`, `x25m-cache-on`",
    );
    check_refused(
        "row =",
        "column = \"connection\"\nrow =",
        "column: table `tpcc-peak` has no numbers in column `connection`; did you mean `connections`?",
    );
    let apart = "study = \"matsunobu-2010-ssd-deployment\"\ntable = \"dbt2-storage\"\n\
                 row = { storage = \"intel-x25e\", buffer_pool_gb = 30 }";
    assert_eq!(
        check_row(&tag(apart)).unwrap_err().to_string(),
        "row: table `dbt2-storage` has no row with buffer_pool_gb = 30, storage = intel-x25e together"
    );
}

#[test]
fn a_row_is_of_one_cell() {
    let check = |tags: &[PublishedTag], cells: &[&[&str]], expect: &str| {
        let cells: Vec<Vec<String>> =
            cells.iter().map(|cells| cells.iter().map(|name| (*name).to_owned()).collect()).collect();
        assert_eq!(check_cells(tags, &cells).unwrap_err().to_string(), expect);
    };
    let one = tag(TAG);
    check(
        std::slice::from_ref(&one),
        &[&[]],
        "published[0]: no cell of the matrix has this `stack`, `server` and `workload`",
    );
    check(
        std::slice::from_ref(&one),
        &[&["hdd", "ssd"]],
        "published[0]: a row is of one cell, and `hdd` and `ssd` fit; name its `stack`, `server` or `workload`, or the axis `best_over`",
    );
    check(
        &[one.clone(), one.clone()],
        &[&["hdd"], &["ssd"]],
        "published[1]: published[0] names the same row",
    );
    assert!(check_cells(&[one], &[vec!["hdd".to_owned()]]).is_ok());
}
