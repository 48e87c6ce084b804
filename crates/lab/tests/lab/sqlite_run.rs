//! Whole runs of SQLite, which has no server, on emulated disks.

use crate::emulated_support::{Bench, scenario};
use crate::in_check_all;
use spindle_lab::record::Warning;

#[test]
fn commits_of_sqlite_reach_the_disk_and_the_database_is_verified() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let settings = "settings = { journal_mode = \"WAL\", synchronous = \"FULL\", cache_size = \"-8192\" }";
    let text = scenario(&[
        ("iodrive-160", "x25m-80"),
        ("kind = \"mariadb\"", "kind = \"sqlite\""),
        ("settings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\" }", settings),
    ]);
    bench.write("test.toml", &text);
    let (trial, measurement) = bench.run_one_tpcc();
    // One warehouse of 100 MiB on 1 GiB.
    let is_nearly_empty =
        |warning: &Warning| matches!(warning, Warning::NearlyEmptyDisk { stack, .. } if stack == "card");
    assert!(trial.warnings.iter().any(is_nearly_empty), "{:?}", trial.warnings);
    // Every commit is an fsync of the write-ahead log, and the drive has a volatile cache.
    assert!(
        measurement.mounts[0].emulator.as_ref().unwrap().flushes > 10,
        "{:?}",
        measurement.mounts[0].emulator
    );
}

#[test]
fn fixed_work_ends_its_trial_and_fails_it_beyond_its_time_limit() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let lists = "[workloads.list]\nkind = \"sql-bench\"\ntests = [\"transactions\"]\ndivisor = 200\n\
        [workloads.long]\nkind = \"sql-bench\"\n[matrix]";
    let text = scenario(&[
        ("kind = \"mariadb\"", "kind = \"sqlite\""),
        (
            "settings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\" }",
            "settings = { synchronous = \"FULL\" }",
        ),
        ("[matrix]", lists),
        ("workload = [\"tpcc\"]", "workload = [\"list\", \"long\"]"),
        ("start = \"warm-fast\"\nwarm_up = \"500 ms\"\nsettle = \"100 ms\"", "start = \"cold\""),
        ("measure = \"3 s\"", "measure = \"once\"\nat_most = \"5 s\""),
        ("size = \"1 GiB\"", "size = \"2 GiB\""),
    ]);
    bench.write("test.toml", &text);
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    let find = |name: &str| {
        trials.iter().find(|trial| trial.cell == name).unwrap_or_else(|| panic!("no {name}: {talk}"))
    };
    let (list, long) = (find("card/list"), find("card/long"));
    let measurement = list.measurement.as_ref().unwrap_or_else(|| panic!("{:?}", list.error));
    let metric = &measurement.metric;
    assert!(metric.lower_is_better && metric.value > 0.0, "{metric:?}");
    assert!(metric.value <= measurement.duration_s && measurement.duration_s < 5.0, "{metric:?}");
    let commits = measurement.transactions.iter().find(|kind| kind.name == "insert_autocommit").unwrap();
    assert_eq!(commits.committed, 50);
    assert!(commits.client_cpu_s.unwrap() > 0.0 && commits.latency.mean_ms > 0.02, "{commits:?}");
    assert!(
        long.error.as_ref().unwrap().contains("the fixed work was not done after 5 s"),
        "{:?}",
        long.error
    );
}

#[test]
fn fixed_work_that_only_reads_starts_warm_after_a_pass() {
    if in_check_all(Bench::new).is_none() {
        return;
    }
    let flights = "[workloads.flights]\nkind = \"ontime\"\nrows = 20000\n[matrix]";
    let cold = scenario(&[
        ("kind = \"mariadb\"", "kind = \"sqlite\""),
        (
            "settings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\" }",
            "settings = { cache_size = \"-65536\" }",
        ),
        ("[matrix]", flights),
        ("workload = [\"tpcc\"]", "workload = [\"flights\"]"),
        ("start = \"warm-fast\"\nwarm_up = \"500 ms\"\nsettle = \"100 ms\"", "start = \"cold\""),
        ("measure = \"3 s\"", "measure = \"once\"\nat_most = \"1 min\""),
    ]);
    let reads = |start: &str| {
        let bench = Bench::anywhere();
        bench.write("test.toml", &cold.replace("start = \"cold\"", &format!("start = \"{start}\"")));
        bench.run_scenario(&[], &[], 0);
        let trials = bench.trials();
        let trial = &trials[0];
        let measurement = trial.measurement.as_ref().unwrap_or_else(|| panic!("{:?}", trial.error));
        assert_eq!(measurement.transactions.len(), 15);
        assert!(measurement.transactions.iter().all(|query| query.committed == 1), "{start}");
        assert_eq!(trial.phases_s.contains_key("pass before"), start == "warm");
        measurement.mounts[0].emulator.as_ref().unwrap().reads
    };
    let (after_cold, after_warm) = (reads("cold"), reads("warm"));
    assert!(after_warm < after_cold / 2, "{after_warm} and {after_cold} reads");
}
