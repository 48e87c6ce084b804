//! Every workload besides TPC-C and OLTP under the real load process, on any server.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use spindle_load::workloads::sql_bench::Test;
use spindle_load::{Endpoint, RunSpec, WorkloadSpec};

use crate::PATIENCE;
use crate::server_support::{has_metric, measure_until, ready_client};

const SEED: u64 = 20_261_122;

/// As scenarios write them; `engines` are those of the server besides its default.
pub(crate) fn check_every_workload(endpoint: &Endpoint, engines: &[&str]) {
    let mut workloads = vec![
        json!({"kind": "wide-tables", "mode": "insert", "tables": 3, "rows": 2_000}),
        json!({"kind": "wide-tables", "mode": "select", "tables": 3, "rows": 2_000, "range": "narrow"}),
        json!({"kind": "insert-growth", "rows": 5_000, "batch": 100, "step_rows": 5_000, "steps": 4}),
        json!({"kind": "bulk", "rows": 2_000}),
        json!({"kind": "bulk", "rows": 2_000, "method": "insert", "batch": 300}),
        json!({"kind": "scan", "rows": 5_000}),
        json!({"kind": "fsync-loop"}),
        json!({"kind": "slap", "load_type": "mixed", "queries": 60}),
        json!({"kind": "slap", "load_type": "update", "autoincrement": true, "int_columns": 2, "char_columns": 2}),
        json!({"kind": "custom", "file": "../../workloads/accounts.sql", "parameters": {"accounts": 5_000}}),
    ];
    workloads.push(json!({"kind": "sql-bench", "tests": Test::ALL, "divisor": 10_000}));
    workloads.push(json!({"kind": "ontime", "rows": 5_000}));
    workloads.push(json!({"kind": "ssb", "scale_percent": 1}));
    if !engines.is_empty() {
        workloads
            .push(json!({"kind": "ontime", "rows": 2_000, "partitions": "years", "queries": ["Q9", "Q8.0"]}));
        workloads.push(json!({"kind": "ontime", "rows": 40_000, "partitions": "years", "split": 2}));
        workloads.push(json!({"kind": "ssb", "scale_percent": 1, "split": 2}));
    }
    for engine in engines {
        workloads.push(json!({"kind": "insert-growth", "rows": 5_000, "batch": 100, "engine": engine}));
    }
    for workload in workloads {
        check(endpoint, workload);
    }
}

fn check(endpoint: &Endpoint, mut workload: Value) {
    let is_fixed_work = ["sql-bench", "ontime", "ssb"].iter().any(|kind| workload["kind"] == *kind);
    if !is_fixed_work {
        workload["terminals"] = 3.into();
    }
    let words = workload.to_string();
    let mut workload: WorkloadSpec = serde_json::from_value(workload).unwrap();
    workload.read_files(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    let spec = RunSpec { once: is_fixed_work, ..RunSpec::new(endpoint.clone(), workload, SEED) };
    let workload = spec.workload.build().unwrap();
    workload.load(endpoint, SEED, &mut |_| Ok(())).unwrap();
    let mut client = ready_client(&spec);
    // Fixed work ends by itself.
    let window = if is_fixed_work { PATIENCE } else { Duration::from_millis(400) };
    let (summary, _) = measure_until(&mut client, window, has_metric).unwrap();
    client.stop().unwrap();
    assert_eq!(summary.errors, BTreeMap::new(), "{words}");
    assert!(summary.metric.value > 0.0, "{words}");
    assert_eq!(summary.metric.lower_is_better, is_fixed_work, "{words}");
    let checks = workload.verify(endpoint).unwrap();
    assert!(!checks.is_empty() && checks.iter().all(|check| check.passed), "{words}: {checks:?}");
}
