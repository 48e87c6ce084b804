//! Analytic workloads: every query is answered as computed from the rows, and what is wrong is found.

use spindle_load::workloads::{ontime, ssb};
use spindle_load::{Failure, Workload, WorkloadSpec};

use crate::Database;

fn flights(queries: &[&str]) -> WorkloadSpec {
    let queries = queries.iter().map(|name| (*name).to_owned()).collect();
    WorkloadSpec::Ontime(ontime::Spec {
        rows: 6_000,
        partitions: ontime::Partitions::None,
        queries,
        engine: None,
        split: None,
        shards: None,
    })
}

/// Executes the fixed work once. Returns the number of executions of each query.
fn run_once(database: &Database) -> Result<Vec<u64>, Failure> {
    let workload: Box<dyn Workload> = database.spec.build().unwrap();
    let mut client = workload.connect(&database.endpoint, 0, 1).unwrap();
    let mut counts = vec![0; workload.kinds().len()];
    while !client.is_through()? {
        counts[client.choose()] += 1;
        assert!(client.execute()?.client_cpu.is_some());
    }
    Ok(counts)
}

#[test]
fn every_query_of_the_study_is_answered_as_computed_from_the_flights() {
    let database = Database::loaded(flights(&[]));
    let unfinished = database.violations();
    assert_eq!(unfinished.len(), 1);
    assert!(
        unfinished[0].detail.contains("the window ended before a pass over all queries did: Q1, Q2"),
        "{unfinished:?}"
    );
    assert_eq!(run_once(&database).unwrap(), [1; 15]);
    database.check_failed(&[]);
    assert_eq!(database.number("SELECT COUNT(*) FROM dim_date"), 8_401);
    assert_eq!(database.number("SELECT COUNT(*) FROM dim_carrier"), 29);
    assert_eq!(database.number("SELECT COUNT(*) FROM ontime_fact"), 6_000);
    assert_eq!(database.number("SELECT COUNT(*) FROM sqlite_master WHERE name = 'ontime_staging'"), 0);
}

#[test]
fn every_query_of_the_benchmark_is_answered_as_computed_from_the_lines() {
    let spec = ssb::Spec { scale_percent: 1, queries: Vec::new(), engine: None, split: None, shards: None };
    let database = Database::loaded(WorkloadSpec::Ssb(spec));
    assert_eq!(run_once(&database).unwrap(), [1; 13]);
    database.check_failed(&[]);
}

#[test]
fn in_a_window_the_queries_are_repeated() {
    let mut database = Database::loaded(flights(&[]));
    let database = database.with(flights(&["Q9", "Q7"]));
    let counts: Vec<usize> = database.outcomes(5)[0].iter().map(|(kind, _)| *kind).collect();
    assert_eq!(counts, [0, 1, 0, 1, 0]);
    database.check_failed(&[]);
}

#[test]
fn a_wrong_answer_ends_the_work() {
    let database = Database::loaded(flights(&["Q4", "Q9"]));
    database.execute("DELETE FROM ontime_fact WHERE rowid = 6000");
    let failure = run_once(&database).unwrap_err();
    let Failure::Fatal(message) = &failure else { panic!("{failure:?}") };
    assert!(message.starts_with("Q9 was answered wrongly: 23 rows with digest"), "{message}");
    database.check_failed(&[
        "1 violations, the first: the window ended before a pass over all queries did: Q4, Q9",
        "1 violations, the first: ontime_fact has 5999 rows, not 6000",
    ]);
}

#[test]
fn what_only_one_family_of_servers_has_is_refused() {
    let WorkloadSpec::Ontime(spec) = flights(&[]) else { panic!("not ontime") };
    let spec = ontime::Spec { partitions: ontime::Partitions::Years, ..spec };
    let database = Database::empty(WorkloadSpec::Ontime(spec));
    let error = database.spec.build().unwrap().load(&database.endpoint, 1, &mut |_| Ok(())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ontime: partitions: only MariaDB and MySQL can have them here; leave it out"
    );
    let (key, words) = flights(&["Q12"]).complaint().unwrap();
    assert_eq!(key, "queries");
    assert!(words.starts_with("`Q12` is no query of this workload"), "{words}");
}
