//! sql-bench: its fixed work is done with its checks, and its counts are those of sql-bench.

use std::time::{Duration, Instant};

use spindle_load::sql::Engine;
use spindle_load::workloads::sql_bench::{Spec, Test};
use spindle_load::{Declared, Endpoint, KindSummary, Workload, WorkloadSpec};

use crate::Database;

fn spec(tests: &[Test], divisor: u32) -> Spec {
    Spec { tests: tests.to_vec(), divisor, engine: None }
}

/// The time of an operation in one pass.
#[derive(Debug, Clone, Default)]
struct OperationTime {
    count: u64,
    wall: Duration,
    client_cpu: Duration,
}

/// Executes the fixed work once. Returns the time of each operation.
fn run_once(workload: &dyn Workload, endpoint: &Endpoint) -> Vec<OperationTime> {
    let mut client = workload.connect(endpoint, 0, 1).unwrap();
    let mut times = vec![OperationTime::default(); workload.kinds().len()];
    while !client.is_through().unwrap() {
        let time = &mut times[client.choose()];
        let before = Instant::now();
        let outcome = client.execute().unwrap();
        time.count += 1;
        time.wall += before.elapsed();
        time.client_cpu += outcome.client_cpu.unwrap();
    }
    times
}

#[test]
fn every_test_is_done_with_its_checks() {
    let spec = spec(&Test::ALL, 2_000);
    let database = Database::loaded(WorkloadSpec::SqlBench(spec.clone()));
    let (workload, endpoint) = (database.spec.build().unwrap(), &database.endpoint);
    assert_eq!(database.violations().len(), Test::ALL.len());
    let times = run_once(&*workload, endpoint);
    database.check_failed(&[]);
    let operations = spec.operations();
    assert_eq!(times.len(), operations.len());
    for (operation, time) in operations.iter().zip(&times) {
        assert_eq!(time.count, operation.count, "{}", operation.name);
        assert!(!time.wall.is_zero() && time.wall >= time.client_cpu / 2, "{}: {time:?}", operation.name);
    }
    let names: Vec<&str> = operations.iter().map(|operation| operation.name).collect();
    assert_eq!(names, workload.kinds());
    // Another pass begins after a finished or an unfinished one.
    let mut client = workload.connect(endpoint, 0, 1).unwrap();
    for _ in 0..500 {
        client.choose();
        client.execute().unwrap();
    }
    run_once(&*workload, endpoint);
    // Only the table of passes is left.
    assert_eq!(database.number("SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'"), 1);
}

#[test]
fn the_counts_are_those_of_sql_bench() {
    let operations = spec(&Test::ALL, 1).operations();
    let check = |name: &str, count: u64, is_storage_sensitive: bool| {
        let found = operations.iter().find(|operation| operation.name == name).unwrap();
        assert_eq!((found.count, found.is_storage_sensitive), (count, is_storage_sensitive), "{name}");
    };
    // test-alter-table, test-ATIS, test-insert, test-select and test-wisconsin insert.
    check("insert", 1_000 + 9_768 + 300_000 + 10_000 + 31_000, true);
    check("create_table", 28 + 4, true);
    check("select_simple_join", 500, false);
    check("select_join", 100, false);
    check("select_key_prefix_join", 100, false);
    check("select_distinct", 800, false);
    check("select_group", 2_800 + 111, false);
    check("drop_table", 28, true);
    check("delete_big", 1, true);
    check("wisc_benchmark", 114, false);
    check("alter_table_add", 100, true);
    check("alter_table_drop", 91, true);
    check("select_many_fields", 2_000, false);
    check("insert_many_fields", 2_000, true);
    check("connect", 10_000, false);
    check("select_1_row", 100_000, false);
    check("create_MANY_tables", 10_000, true);
    check("create_key+drop", 10_000, true);
    check("insert_duplicates", 100_000, false);
    check("select_key", 200_000, false);
    check("select_range_prefix", 5_010 + 10_000, false);
    check("min_max_on_key", 15_000 + 70_000, false);
    check("count_on_key", 100 + 50_000, false);
    check("update_with_key", 300_000, true);
    check("select_in", 1_500, false);
    check("delete_range", 12, true);
    check("insert_key", 100_000, true);
    check("drop table", 3, true);
    check("select_cache", 10_000, false);
    check("count_distinct_big", 20 + 100, false);
    check("insert_autocommit", 10_000, true);
    check("insert_commit", 10_001, false);
    check("update_rollback", 100, false);
    assert_eq!(operations.len(), 98);
}

#[test]
fn a_test_that_the_engine_lacks_is_skipped_with_the_reason() {
    let with_engine = |tests: &[Test]| Spec { engine: Some(Engine::Myisam), ..spec(tests, 1_000) };
    let some = with_engine(&[Test::Connect, Test::Transactions]);
    assert_eq!(some.skipped(), ["transactions: MyISAM has no transactions"]);
    assert!(some.operations().iter().all(|operation| !operation.name.contains("commit")));
    let (key, complaint) = WorkloadSpec::SqlBench(with_engine(&[Test::Transactions])).complaint().unwrap();
    assert_eq!(
        (key.as_str(), complaint.as_str()),
        ("tests", "no test is left: transactions: MyISAM has no transactions")
    );
    let database = Database::empty(WorkloadSpec::SqlBench(with_engine(&[Test::Connect])));
    let workload = database.spec.build().unwrap();
    let error = workload.load(&database.endpoint, 1, &mut |_| Ok(())).unwrap_err().to_string();
    assert!(error.contains("only MariaDB and MySQL have storage engines"), "{error}");
}

#[test]
fn fixed_work_ends_when_its_table_has_other_rows_than_expected() {
    let database = Database::loaded(WorkloadSpec::SqlBench(spec(&[Test::Transactions], 1_000)));
    let mut client = database.spec.build().unwrap().connect(&database.endpoint, 0, 1).unwrap();
    // Ten rows and their COMMIT. The check of them comes before the next operation.
    for _ in 0..11 {
        client.choose();
        client.execute().unwrap();
    }
    database.execute("DELETE FROM bench1 WHERE id = 0");
    client.choose();
    let failure = client.execute().unwrap_err();
    assert!(format!("{failure:?}").contains("SELECT COUNT(*) FROM bench1 answers 9, not 10"), "{failure:?}");
}

#[test]
fn fixed_work_ends_when_a_query_returns_other_rows_than_expected() {
    let database = Database::loaded(WorkloadSpec::SqlBench(spec(&[Test::Atis], 10_000)));
    let workload = database.spec.build().unwrap();
    let mut client = workload.connect(&database.endpoint, 0, 1).unwrap();
    while workload.kinds()[client.choose()] != "select_simple_join" {
        client.execute().unwrap();
    }
    client.execute().unwrap();
    database.execute("DELETE FROM city WHERE state_code = 'AB'");
    client.choose();
    let failure = client.execute().unwrap_err();
    assert!(format!("{failure:?}").contains("returns 10 rows, not 11"), "{failure:?}");
}

#[test]
fn the_figure_is_passes_per_hour_once_every_operation_was_seen() {
    let workload = WorkloadSpec::SqlBench(spec(&[Test::BigTables], 1_000)).build().unwrap();
    let nothing: Vec<KindSummary> = workload
        .kinds()
        .iter()
        .map(|name| KindSummary { name: (*name).to_owned(), ..KindSummary::default() })
        .collect();
    let metric = workload.metric(&nothing, 1.0);
    assert_eq!((metric.name.as_str(), metric.value), ("operations per second of an unfinished pass", 0.0));
    let mut histogram = spindle_base::histogram::new();
    histogram.record(1_000).unwrap();
    let seen: Vec<KindSummary> = nothing
        .into_iter()
        .map(|kind| KindSummary {
            committed: 1,
            histogram: spindle_base::histogram::encode(&histogram),
            ..kind
        })
        .collect();
    // Two operations of two executions each, a millisecond long.
    let metric = workload.metric(&seen, 1.0);
    assert_eq!(metric.name, "passes per hour");
    assert!((metric.value - 3600.0 / 0.004).abs() < 1.0, "{}", metric.value);
}
