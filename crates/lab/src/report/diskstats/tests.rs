use insta::assert_snapshot;

use super::*;

/// Two seconds of 100 reads of 16 KiB and 5 ms, 50 writes of 4 KiB and 2 ms with 50 merged, a discard and 10
/// flushes of 8 ms.
fn series() -> HostSeries {
    let of = |count: u64, merged: u64, kib: u64, ms: f64| OperationSeries {
        count: vec![count; 2],
        merged: vec![merged; 2],
        bytes: vec![count * kib * 1024; 2],
        time_ms: vec![count as f64 * ms; 2],
    };
    HostSeries {
        elapsed_s: vec![1.0; 2],
        read: of(100, 0, 16, 5.0),
        write: of(50, 50, 4, 2.0),
        discard: of(1, 0, 1024, 3.0),
        flush: of(10, 0, 0, 8.0),
        in_flight: vec![0, 2],
        busy_ms: vec![600.0; 2],
        queue_ms: vec![683.0; 2],
    }
    .without_zeros()
}

fn page(name: &str, host: Option<&HostView>, series: &HostSeries) -> String {
    let device = Device { name: name.to_owned(), host, series };
    DiskStats { tables: vec![Table { title: "disk, trial 1".to_owned(), rows: rows(&[device], 2.0) }] }.page()
}

#[test]
fn rows_are_those_of_pt_diskstats_with_flush_and_discard() {
    assert_snapshot!(page("data", None, &series()), @r"
    # disk, trial 1
      #ts device  rd_s rd_avkb rd_mb_s rd_mrg rd_cnc rd_rt wr_s wr_avkb wr_mb_s wr_mrg wr_cnc wr_rt ds_s ds_avkb ds_mb_s ds_mrg ds_cnc ds_rt fl_s fl_cnc fl_rt busy in_prg mark
      1.0 data   100.0    16.0     1.6     0%   0.50  5.00 50.0     4.0     0.2    50%   0.10  2.00  1.0  1024.0     1.0     0%   0.00  3.00 10.0   0.08  8.00  60%      0
      2.0 data   100.0    16.0     1.6     0%   0.50  5.00 50.0     4.0     0.2    50%   0.10  2.00  1.0  1024.0     1.0     0%   0.00  3.00 10.0   0.08  8.00  60%      2
    {2.0} data   100.0    16.0     1.6     0%   0.50  5.00 50.0     4.0     0.2    50%   0.10  2.00  1.0  1024.0     1.0     0%   0.00  3.00 10.0   0.08  8.00  60%      2
    ");
}

#[test]
fn an_earlier_record_has_its_window_and_dashes() {
    let host = HostView {
        reads: 200,
        writes: 100,
        flushes: 20,
        read_latency_mean_ms: 5.0,
        write_latency_mean_ms: 2.0,
        flush_latency_mean_ms: 8.0,
        read_bytes: 200 << 14,
        write_bytes: 100 << 12,
        queue_depth_mean: 0.68,
    };
    assert_snapshot!(page("data/log", Some(&host), &HostSeries::default()), @r"
    # disk, trial 1
      #ts device    rd_s rd_avkb rd_mb_s rd_mrg rd_cnc rd_rt wr_s wr_avkb wr_mb_s wr_mrg wr_cnc wr_rt ds_s ds_avkb ds_mb_s ds_mrg ds_cnc ds_rt fl_s fl_cnc fl_rt busy in_prg mark
    {2.0} data/log 100.0    16.0     1.6      -   0.50  5.00 50.0     4.0     0.2      -   0.10  2.00    -       -       -      -      -     - 10.0   0.08  8.00    -      -
    ");
}

#[test]
fn a_row_that_breaks_an_identity_by_more_than_5_percent_has_a_mark() {
    let check = |queue_ms: f64, busy_ms: f64, expect: (bool, bool)| {
        let series = HostSeries { queue_ms: vec![queue_ms; 2], busy_ms: vec![busy_ms; 2], ..series() };
        let device = Device { name: "data".to_owned(), host: None, series: &series };
        for row in rows(&[device], 2.0) {
            assert_eq!((row.violates_concurrency(), row.violates_busy()), expect, "{row:?}");
        }
    };
    // Throughput x response time is 0.683.
    check(683.0, 683.0, (false, false));
    check(683.0 * 1.04, 683.0 * 1.04, (false, false));
    check(683.0 * 1.08, 600.0, (true, false));
    check(683.0 / 1.08, 600.0, (true, false));
    check(683.0, 683.0 * 1.08, (false, true));
    check(0.0, 1100.0, (true, true));
}

#[test]
fn counters_of_whole_milliseconds_break_no_identity() {
    let series = HostSeries {
        elapsed_s: vec![1.0],
        read: OperationSeries { count: vec![40], time_ms: vec![3.0], ..OperationSeries::default() },
        queue_ms: vec![5.0],
        busy_ms: vec![4.0],
        ..HostSeries::default()
    };
    let device = Device { name: "data".to_owned(), host: None, series: &series };
    assert!(rows(&[device], 1.0).iter().all(|row| !row.violates_concurrency() && !row.violates_busy()));
}

#[test]
fn marks_are_explained_below_the_table() {
    let series = HostSeries { busy_ms: vec![600.0, 1000.0], ..series() };
    let told = page("data", None, &series);
    assert_eq!(told.lines().filter(|line| line.ends_with(" b")).count(), 2, "{told}");
    assert!(told.contains("(2 of 3 rows)") && !told.contains("  c:"), "{told}");
}

#[test]
fn records_without_a_block_device_say_so() {
    assert!(DiskStats { tables: Vec::new() }.page().starts_with("No trial of these records"));
}
