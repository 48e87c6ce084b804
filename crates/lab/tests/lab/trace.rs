//! `spindle run --trace`: the block traces that a run keeps beside its records.

use std::fs;

use spindle_lab::record::Trial;
use spindle_model::Operation;
use spindle_mount::trace::{self, Trace};

use crate::emulated_support::{Bench, measured_tpcc, scenario};
use crate::in_check_all;
use crate::run_mock::{self, GOOD};

/// One warehouse in SQLite. Every commit is a write and a flush, because the drive has a volatile cache.
fn sqlite() -> String {
    let settings = "settings = { journal_mode = \"WAL\", synchronous = \"FULL\", cache_size = \"-8192\" }";
    scenario(&[
        ("iodrive-160", "x25m-80"),
        ("kind = \"mariadb\"", "kind = \"sqlite\""),
        ("settings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"12M\" }", settings),
    ])
}

/// Trace and samples begin and end a moment apart. A request counts in the trace when it arrives and in the
/// record when it is answered, so those in flight make a difference too.
#[track_caller]
fn check_near(what: &str, traced: u64, recorded: u64, slack: u64) {
    let most = slack + recorded / 20;
    assert!(traced.abs_diff(recorded) <= most, "{what}: {traced} in the trace, {recorded} in the record");
}

/// Compares the trace of a trial's only mount with what the emulator counted.
#[track_caller]
fn check_trace(trial: &Trial, trace: &Trace) {
    let measurement = measured_tpcc(trial);
    let mount = &measurement.mounts[0];
    let (view, emulator) = (mount.trace.as_ref().unwrap(), mount.emulator.as_ref().unwrap());
    assert_eq!((view.is_complete, trace.is_complete), (true, true));
    assert_eq!(view.requests, trace.requests.len() as u64);
    assert_eq!(trace.disk_size_bytes, 1 << 30);
    let of = |wanted: Operation| {
        let requests = trace.requests.iter().filter(|request| request.operation == wanted);
        requests.fold((0, 0), |(count, bytes), request| (count + 1, bytes + request.size_bytes))
    };
    let (reads, read_bytes) = of(Operation::Read);
    let (writes, write_bytes) = of(Operation::Write);
    let (flushes, _) = of(Operation::Flush);
    assert!(emulator.writes > 10 && emulator.flushes > 10, "{emulator:?}");
    check_near("reads", reads, emulator.reads, 128);
    check_near("writes", writes, emulator.writes, 128);
    check_near("flushes", flushes, emulator.flushes, 16);
    check_near("bytes read", read_bytes, emulator.read_bytes, 4 << 20);
    check_near("bytes written", write_bytes, emulator.write_bytes, 4 << 20);
    assert!(trace.requests.is_sorted_by_key(|request| request.at));
    let (window_s, trace_s) = (measurement.duration_s, trace.duration_ns as f64 / 1e9);
    assert!((trace_s - window_s).abs() < 2.0, "{trace_s} s of a window of {window_s} s");
    assert!((view.duration_s - trace_s).abs() < 1e-6);
}

#[test]
fn a_trace_has_the_requests_that_the_record_counts_and_changes_no_hash() {
    let Some(bench) = in_check_all(Bench::new) else { return };
    bench.write("test.toml", &sqlite());
    let talk = bench.run_scenario(&["--trace"], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), 1, "{talk}");
    let file = &measured_tpcc(&trials[0]).mounts[0].trace.as_ref().unwrap().file;
    assert_eq!(file, "traces/card,1,data.trace");
    check_trace(&trials[0], &trace::read(&bench.path("results").join(file)).unwrap());
    bench.assert_clean();

    // Without the option the run has nothing left to do.
    let before = fs::read(bench.records()).unwrap();
    bench.run_scenario(&[], &[], 0);
    assert_eq!(fs::read(bench.records()).unwrap(), before);
    bench.write("test.toml", &sqlite().replace("trials = 1", "trials = 2"));
    bench.run_scenario(&[], &[], 0);
    let traced: Vec<bool> =
        bench.trials().iter().map(|trial| measured_tpcc(trial).mounts[0].trace.is_some()).collect();
    assert_eq!(traced, [true, false]);
    let talk = bench.run_scenario(&["--trace"], &[], 0);
    assert!(talk.contains("1 trial was recorded without a block trace, and --trace adds none"), "{talk}");

    bench.text(&["clean", "results", "--results", "--yes"]);
    assert!(!bench.path("results").exists(), "the trace goes with the records");
}

#[test]
fn storage_that_is_not_emulated_is_refused() {
    let bench = run_mock::Bench::new(&run_mock::scenario(1, GOOD, "100 ms"));
    let said = bench.run(&["--trace"], 2);
    assert_eq!(
        said,
        "spindle: --trace: only requests to emulated disks are traced, and this scenario has none: \
         the server `good` has directories in place of disks\n"
    );
    assert!(!bench.records().exists());
}
