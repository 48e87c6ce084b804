//! The OLTP workloads.

use spindle_load::WorkloadSpec;
use spindle_load::workloads::oltp::{Distribution, Script, Spec};

use crate::{Database, TERMINALS};

const EVENTS: usize = 50;

fn spec(script: Script) -> WorkloadSpec {
    WorkloadSpec::Oltp(Spec {
        script,
        tables: 3,
        rows: 1_000,
        distribution: Distribution::Uniform,
        rand_zipfian_exp: None,
        terminals: TERMINALS,
        autocommit: false,
        point_selects: 10,
        range_size: 100,
        rate: None,
    })
}

fn loaded() -> Database {
    Database::loaded(spec(Script::ReadWrite))
}

fn rows(database: &Database) -> Vec<i64> {
    (1..=3).map(|table| database.number(&format!("SELECT COUNT(*) FROM sbtest{table}"))).collect()
}

#[test]
fn every_script_changes_what_it_should_and_passes_its_checks() {
    let mut database = loaded();
    assert_eq!(rows(&database), [1_000; 3]);
    database.check_failed(&[]);
    let state = |database: &Database| (rows(database), database.number("SELECT SUM(k) FROM sbtest1"));
    let total = |rows: &[i64]| rows.iter().sum::<i64>();
    for script in Script::ALL {
        let (before, sum_before) = state(&database);
        assert_eq!(database.with(spec(script)).run(EVENTS), [2 * EVENTS]);
        let (after, sum_after) = state(&database);
        match script {
            Script::Insert => assert_eq!(total(&after), total(&before) + 2 * EVENTS as i64),
            Script::Delete => assert!(total(&after) < total(&before), "{after:?}"),
            _ => assert_eq!(after, before, "{script:?}"),
        }
        match script {
            Script::ReadOnly | Script::PointSelect | Script::UpdateNonIndex => {
                assert_eq!(sum_after, sum_before)
            }
            _ => assert_ne!(sum_after, sum_before, "{script:?}"),
        }
        if script != Script::Delete {
            let script = if total(&after) > 3_000 { Script::Insert } else { script };
            database.with(spec(script)).check_failed(&[]);
        }
    }
}

#[test]
fn a_missing_row_and_a_short_text_are_violations() {
    let mut database = loaded();
    database.execute("DELETE FROM sbtest2 WHERE id = 500");
    database.execute("UPDATE sbtest3 SET pad = 'short' WHERE id = 1");
    database.check_failed(&[
        "1 violations, the first: sbtest2 has 999 rows, 1000 were loaded",
        "1 violations, the first: 1 rows of sbtest3 have texts of another length",
    ]);
    assert_eq!(database.with(spec(Script::Insert)).violations().len(), 2);
    assert_eq!(database.with(spec(Script::Delete)).violations().len(), 1);
}

#[test]
fn one_seed_gives_one_database() {
    let text = || loaded().first::<(Vec<u8>,)>("SELECT group_concat(c) FROM sbtest2").0;
    assert_eq!(text(), text());
}
