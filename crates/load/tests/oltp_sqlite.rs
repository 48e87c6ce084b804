//! The OLTP workloads on SQLite: every script runs, and what it leaves is checked.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should panic")]

use std::collections::BTreeMap;

use spindle_load::sql::{self, FromRow};
use spindle_load::workloads::oltp::{Distribution, Script, Spec};
use spindle_load::{Endpoint, Workload, WorkloadSpec};

const EVENTS: usize = 50;

fn spec(script: Script) -> Spec {
    Spec {
        script,
        tables: 3,
        rows: 1_000,
        distribution: Distribution::Uniform,
        rand_zipfian_exp: None,
        terminals: 2,
        autocommit: false,
        point_selects: 10,
        range_size: 100,
        rate: None,
    }
}

fn build(script: Script) -> Box<dyn Workload> {
    WorkloadSpec::Oltp(spec(script)).build().unwrap()
}

struct Database {
    _directory: tempfile::TempDir,
    endpoint: Endpoint,
}

impl Database {
    fn loaded() -> Database {
        let directory = tempfile::tempdir().unwrap();
        let pragmas = [("journal_mode", "WAL"), ("synchronous", "OFF")];
        let pragmas: BTreeMap<String, String> =
            pragmas.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let endpoint = Endpoint::Sqlite { path: directory.path().join("database"), pragmas };
        let mut last = None;
        build(Script::ReadWrite)
            .load(&endpoint, 1, &mut |progress| {
                last = Some(progress);
                Ok(())
            })
            .unwrap();
        let last = last.unwrap();
        assert_eq!((last.rows_done, last.rows_total), (3_000, 3_000));
        Database { _directory: directory, endpoint }
    }

    fn first<T: FromRow>(&self, query: &str) -> T {
        let mut session = sql::connect(&self.endpoint).unwrap();
        let statement = session.prepare(query).unwrap();
        session.first(statement, &[]).unwrap().unwrap()
    }

    fn rows(&self) -> Vec<u32> {
        let count = |table| self.first::<(u32,)>(&format!("SELECT COUNT(*) FROM sbtest{table}")).0;
        (1..=3).map(count).collect()
    }

    fn failed(&self, script: Script) -> Vec<String> {
        let checks = build(script).verify(&self.endpoint).unwrap();
        checks.into_iter().filter(|check| !check.passed).map(|check| check.detail).collect()
    }

    fn run(&self, script: Script) {
        let workload = build(script);
        std::thread::scope(|scope| {
            for terminal in 0..2 {
                let workload = &workload;
                scope.spawn(move || {
                    let mut client = workload.connect(&self.endpoint, terminal, 7).unwrap();
                    for _ in 0..EVENTS {
                        assert_eq!(client.choose(), 0);
                        client.execute().unwrap();
                    }
                });
            }
        });
    }
}

#[test]
fn every_script_runs_and_leaves_what_it_should() {
    let database = Database::loaded();
    assert_eq!(database.failed(Script::ReadWrite), Vec::<String>::new());
    for script in Script::ALL {
        let (before, sum_before) = (database.rows(), database.first::<(i64,)>("SELECT SUM(k) FROM sbtest1"));
        database.run(script);
        let (after, sum_after) = (database.rows(), database.first::<(i64,)>("SELECT SUM(k) FROM sbtest1"));
        let total = |rows: &[u32]| rows.iter().sum::<u32>();
        match script {
            Script::Insert => assert_eq!(total(&after), total(&before) + 2 * EVENTS as u32),
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
            assert_eq!(database.failed(script), Vec::<String>::new(), "{script:?}");
        }
    }
}

#[test]
fn what_is_wrong_is_seen() {
    let database = Database::loaded();
    let mut session = sql::connect(&database.endpoint).unwrap();
    session.execute("DELETE FROM sbtest2 WHERE id = 500").unwrap();
    session.execute("UPDATE sbtest3 SET pad = 'short' WHERE id = 1").unwrap();
    assert_eq!(
        database.failed(Script::ReadWrite),
        [
            "1 violations, the first: sbtest2 has 999 rows, 1000 were loaded",
            "1 violations, the first: 1 rows of sbtest3 have texts of another length"
        ]
    );
    assert_eq!(database.failed(Script::Insert).len(), 2);
    assert_eq!(database.failed(Script::Delete).len(), 1);
}

#[test]
fn one_seed_gives_one_database() {
    let (one, other) = (Database::loaded(), Database::loaded());
    let text = |database: &Database| database.first::<(Vec<u8>,)>("SELECT group_concat(c) FROM sbtest2").0;
    assert_eq!(text(&one), text(&other));
}
