//! Cells whose database is on several servers: each has storage of its own, and every answer is that of one server.
//! Nothing is left behind.

use crate::emulated_support::{Bench, measured};
use crate::in_check_all;
use spindle_lab::report;

/// Both star schemas, on one server and on two.
const SCENARIO: &str = r#"
title = "One server or two"
[stacks.hdd]
profile = "hdd-7200"
size = "2 GiB"
[servers.mariadb]
kind = "mariadb"
[servers.mariadb.settings]
innodb_flush_method = "O_DIRECT"
innodb_buffer_pool_size = "12M"
[workloads.flights]
kind = "ontime"
rows = 20_000
queries = ["Q1", "Q8.2", "Q9"]
[workloads.lines]
kind = "ssb"
scale_percent = 1
queries = ["Q1.1", "Q4.1"]
[matrix]
stack = ["hdd"]
server = ["mariadb"]
workload = ["flights", "lines"]
shards = [1, 2]
[run]
trials = 1
start = "cold"
measure = "once"
at_most = "2 min"
seed = 1
"#;

#[test]
fn a_database_is_spread_over_servers_with_storage_of_their_own() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", SCENARIO);
    bench.run_scenario(&[], &[], 0);
    let records = report::read(&bench.records()).unwrap();
    assert_eq!(records.trials.len(), 4);
    for trial in &records.trials {
        let measurement = measured(trial);
        // The client has compared every answer with the one that was computed from the rows.
        assert!(measurement.transactions.iter().all(|kind| kind.committed == 1), "{}", trial.cell);
        let is_sharded = trial.cell.contains("shards=2");
        let checks: Vec<&str> = measurement.verification.iter().map(|check| check.name.as_str()).collect();
        assert_eq!(checks.iter().any(|name| name.starts_with("shard 2: ")), is_sharded, "{checks:?}");
        // Two disks; each server has found as many rows as were counted for it.
        assert_eq!(trial.provenance.stack_hash.contains(" > "), is_sharded);
        let data = measurement.mounts[0].emulator.as_ref().unwrap();
        assert!(data.reads > 0, "the tables are read from the disk");
    }
    bench.assert_clean();
}
