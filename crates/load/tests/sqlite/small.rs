//! The workloads besides TPC-C, OLTP and sql-bench.

use std::path::Path;

use spindle_load::{Failure, WorkloadSpec};

use crate::{Database, TERMINALS};

/// As a scenario writes it, with two terminals.
fn spec(json: &str) -> WorkloadSpec {
    let mut spec: serde_json::Value = serde_json::from_str(json).unwrap();
    spec["terminals"] = TERMINALS.into();
    let mut spec: WorkloadSpec = serde_json::from_value(spec).unwrap();
    spec.read_files(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    spec
}

fn loaded(json: &str) -> Database {
    Database::loaded(spec(json))
}

#[test]
fn wide_tables_are_filled_and_read() {
    let insert = loaded(r#"{"kind": "wide-tables", "mode": "insert", "tables": 2, "rows": 505}"#);
    insert.check_failed(&[]);
    assert_eq!(insert.run(30), [60]);
    let rows = insert.number("SELECT (SELECT COUNT(*) FROM tbl_200) + (SELECT COUNT(*) FROM tbl_201)");
    assert_eq!(rows, 2 * 505 + 60);
    insert.check_failed(&[]);

    let select = loaded(r#"{"kind": "wide-tables", "mode": "select", "tables": 2, "rows": 505}"#);
    assert_eq!(select.run(30), [60]);
    select.check_failed(&[]);
    select.execute("UPDATE tbl_201 SET col9 = 0 WHERE id = 1");
    select.execute("UPDATE tbl_200 SET col15 = 'short' WHERE id = 1 AND seq = 1");
    select.execute("DELETE FROM tbl_200 WHERE id = 51");
    select.check_failed(&[
        "1 violations, the first: tbl_200 has 500 rows, 505 were loaded",
        "1 violations, the first: 1 rows of tbl_200 have texts of another length",
        "1 violations, the first: row 0 of tbl_201 is not found by the other index",
    ]);
}

#[test]
fn a_narrow_range_asks_for_a_tenth_of_the_rows() {
    let json = r#"{"kind": "wide-tables", "mode": "select", "tables": 1, "rows": 500, "range": "narrow"}"#;
    let database = loaded(json);
    database.execute("DELETE FROM tbl_200 WHERE id > 5");
    assert_eq!(database.run(50), [100]);
    database.execute("DELETE FROM tbl_200");
    let message = "a row of tbl_200 is not found by the primary key".to_owned();
    assert_eq!(database.failure(), Failure::Transaction(message));
}

#[test]
fn a_growing_table_passes_through_its_steps() {
    let json =
        r#"{"kind": "insert-growth", "rows": 250, "batch": 10, "indexes": 2, "step_rows": 200, "steps": 3}"#;
    let database = loaded(json);
    database.check_failed(&[]);
    let kinds = database.run(20);
    assert_eq!(database.number("SELECT COUNT(*) FROM growth"), 250 + 400);
    // 150 rows to the first boundary and 200 to the second. Both terminals may see the last rows before a
    // boundary.
    assert!((15..=16).contains(&kinds[0]) && (4..=6).contains(&kinds[2]), "{kinds:?}");
    database.check_failed(&[]);
    // Another run goes on where this one ended.
    assert_eq!(database.run(1), [0, 0, 2]);
    database.execute("DELETE FROM growth WHERE id = 300");
    database.check_failed(&["1 violations, the first: 669 rows: 250 were loaded, and 10 come at a time"]);
}

#[test]
fn sqlite_refuses_storage_engines() {
    let database = Database::empty(spec(r#"{"kind": "insert-growth", "rows": 10, "engine": "myisam"}"#));
    let workload = database.spec.build().unwrap();
    let error = workload.load(&database.endpoint, 1, &mut |_| Ok(())).unwrap_err();
    assert_eq!(
        error.to_string(),
        "insert-growth: engine: only MariaDB and MySQL have storage engines; leave it out"
    );
}

#[test]
fn a_load_ends_when_the_receiver_of_its_progress_returns_an_error() {
    const ROWS: i64 = 5_000_000;
    let database = Database::empty(spec(&format!(r#"{{"kind": "insert-growth", "rows": {ROWS}}}"#)));
    let workload = database.spec.build().unwrap();
    let error = workload.load(&database.endpoint, 1, &mut |_| Err(anyhow::anyhow!("enough"))).unwrap_err();
    assert_eq!(error.to_string(), "enough");
    let rows = database.number("SELECT COUNT(*) FROM growth");
    assert!(rows < ROWS, "{rows}");
}

#[test]
fn bulk_loads_leave_all_rows_or_none() {
    for method in ["insert", "load-data"] {
        let json = format!(r#"{{"kind": "bulk", "rows": 120, "batch": 50, "method": "{method}"}}"#);
        let database = loaded(&json);
        database.check_failed(&[]);
        assert_eq!(database.run(5), [6, 4], "{method}");
        assert_eq!(database.number("SELECT COUNT(*) FROM bulk1"), 120);
        database.check_failed(&[]);
        database.execute("DELETE FROM bulk0 WHERE id = 1");
        database.check_failed(&["1 violations, the first: bulk0 has 119 rows; all are 120"]);
    }
}

#[test]
fn a_scan_that_misses_a_row_fails() {
    let database = loaded(r#"{"kind": "scan", "rows": 1000}"#);
    assert_eq!(database.run(3), [6]);
    database.check_failed(&[]);
    database.execute("DELETE FROM scanned WHERE id = 1000");
    let message = "a scan found rows and sum (999, 499500), not (1000, 500500)".to_owned();
    assert_eq!(database.failure(), Failure::Transaction(message));
    database.check_failed(&["1 violations, the first: rows and sum are (999, 499500), not (1000, 500500)"]);
}

#[test]
fn slap_makes_its_table_anew_for_each_round() {
    let mixed = loaded(r#"{"kind": "slap", "load_type": "mixed"}"#);
    mixed.check_failed(&[]);
    // Two clients walk twice through six inserts and five selects.
    assert_eq!(mixed.run(22), [24, 20]);
    assert_eq!(mixed.number("SELECT COUNT(*) FROM t1"), 99 + 2 * 6);
    mixed.check_failed(&[]);
    mixed.execute("UPDATE t1 SET charcol1 = 'short' WHERE intcol1 = (SELECT MAX(intcol1) FROM t1)");
    mixed.execute("INSERT INTO t1 SELECT * FROM t1");
    assert_eq!(mixed.violations().len(), 2);

    let update = loaded(r#"{"kind": "slap", "load_type": "update", "autoincrement": true, "queries": 60}"#);
    let before = update.number("SELECT SUM(intcol1) FROM t1");
    assert_eq!(update.run(30), [60]);
    assert_ne!(update.number("SELECT SUM(intcol1) FROM t1"), before);
    update.check_failed(&[]);
}

#[test]
fn every_client_of_the_fsync_loop_changes_its_own_row() {
    let database = loaded(r#"{"kind": "fsync-loop"}"#);
    database.check_failed(&["1 violations, the first: 0 of 2 clients committed"]);
    assert_eq!(database.run(10), [20]);
    assert_eq!(database.number("SELECT COUNT(*) FROM commits WHERE n = 10"), 2);
    database.check_failed(&[]);
    database.execute("UPDATE commits SET n = 3 WHERE id = 77");
    database.check_failed(&["1 violations, the first: 9999 rows of 10000 are whole"]);
}

const ACCOUNTS: &str =
    r#"{"kind": "custom", "file": "../../workloads/accounts.sql", "parameters": {"accounts": 200}}"#;

#[test]
fn the_example_of_a_workload_file_runs_and_is_checked() {
    let database = loaded(ACCOUNTS);
    assert_eq!(database.spec.build().unwrap().kinds(), ["transfer", "look"]);
    database.check_failed(&[]);
    let kinds = database.run(60);
    assert_eq!(kinds.iter().sum::<usize>(), 120);
    assert!(kinds[0] > kinds[1] && kinds[1] > 0, "{kinds:?}");
    assert_eq!(database.number("SELECT COUNT(*) FROM transfer"), kinds[0] as i64);
    database.check_failed(&[]);
    database.execute("UPDATE account SET balance = balance + 1 WHERE id = 1");
    assert_eq!(database.violations().len(), 1);
    database.execute("DROP TABLE transfer");
    let error = database.spec.build().unwrap().connect(&database.endpoint, 0, 1).unwrap_err();
    assert!(format!("{error:#}").contains("workloads/accounts.sql, line "), "{error:#}");
}

#[test]
fn other_content_is_another_data_set() {
    let one = spec(ACCOUNTS);
    let WorkloadSpec::Custom(mut custom) = one.clone() else { panic!("a workload file") };
    custom.text.push('\n');
    assert_ne!(WorkloadSpec::Custom(custom.clone()).data_set(), one.data_set());
    custom.text.push_str("\\transaction odd 0\n");
    let (key, complaint) = WorkloadSpec::Custom(custom).complaint().unwrap();
    assert_eq!(key, "file");
    assert!(complaint.starts_with("../../workloads/accounts.sql, line "), "{complaint}");
    assert!(complaint.ends_with(": the weight 0 is out of range; it can be 1 to 1000000"), "{complaint}");
}
