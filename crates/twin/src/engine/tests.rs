//! The whole simulation on a device whose requests take a fixed time.

use spindle_model::{MICROSECOND, MILLISECOND, SECOND};

use super::steady::Steady;
use super::*;
use crate::facts::{
    Access, Ahead, Arrivals, Commit, Drives, Facts, HotFile, Kind, Locks, Mount, Places, Reading, Region,
    Stage, Stream, Window,
};
use crate::flushing::{BackgroundWriting, Flushing, Writeback};

const PAGE: u64 = 16 << 10;

/// Ten terminals; a transaction reads four pages, uses a core for 500 us, and commits.
fn facts() -> Facts {
    let region = Region { offset_bytes: 1 << 26, size_bytes: 1 << 28 };
    let stream = Stream::Uniform { region, size_bytes: PAGE };
    let log = Region { offset_bytes: 0, size_bytes: 1 << 26 };
    let kind = Kind {
        name: "order".to_owned(),
        weight: 1.0,
        reads: 4.0,
        cpu_ns: 500_000.0,
        log_bytes: 5_000.0,
        dirtied_pages: 0.0,
        takes_lock: true,
    };
    Facts {
        arrivals: Arrivals::Closed { terminals: 10 },
        kinds: vec![kind],
        core_count: 2,
        background_cores: 0.0,
        reading: Reading { mount: 0, page_bytes: PAGE, ahead: Ahead::Counted { requests: 0.0, pages: 1.0 } },
        commit: Commit {
            is_waited_for: true,
            is_grouped: true,
            stages: vec![Stage { mount: 0, region: log, block_bytes: 512 }],
        },
        flushing: Flushing::Writeback(Writeback {
            mount: 0,
            page_bytes: PAGE,
            cache_bytes: 256_000_000,
            limit_pages: 1_000,
            flushes_per_second: 0.0,
            background: BackgroundWriting { delay_ns: 200_000_000, most_pages: 0, flush_after_pages: 64 },
            background_share: 1.0,
        }),
        locks: None,
        hot_file: None,
        places: Places { reads: stream.clone(), writes: stream },
    }
}

fn run(facts: &Facts, request_ns: u64, flush_ns: u64) -> Outcome {
    let device = Box::new(Steady::new(request_ns, flush_ns));
    let drives = Drives {
        mounts: vec![Mount {
            device,
            flush_stops_the_queue: false,
            has_volatile_cache: true,
            rotates: false,
        }],
    };
    simulate(facts, drives, Window { settle_ns: SECOND, measure_ns: 20 * SECOND, enough: u64::MAX, seed: 1 })
}

#[track_caller]
fn assert_near(found: f64, wanted: f64) {
    assert!((found / wanted - 1.0).abs() < 0.05, "{found} instead of {wanted}");
}

#[test]
fn a_closed_loop_keeps_littles_law() {
    let outcome = run(&facts(), MILLISECOND, 2 * MILLISECOND);
    let mean_ns = outcome.kinds[0].latencies_ns.iter().sum::<u64>() as f64 / outcome.transactions() as f64;
    assert_near(outcome.per_second() * mean_ns / 1e9, 10.0);
}

#[test]
fn waits_add_up_to_the_terminals_time() {
    let outcome = run(&facts(), MILLISECOND, 2 * MILLISECOND);
    assert_near(outcome.waits.total_ns() as f64, 10.0 * 20e9);
}

#[test]
fn fast_storage_leaves_the_cores_as_the_limit() {
    let outcome = run(&facts(), MICROSECOND, MICROSECOND);
    assert_near(outcome.per_second(), 2.0 / 500e-6);
    assert!(outcome.cpu_busy > 0.95, "{}", outcome.cpu_busy);
}

#[test]
fn commits_of_a_round_share_its_flush() {
    let outcome = run(&facts(), MICROSECOND, 20 * MILLISECOND);
    // Ten terminals, each of which is in every second round at least.
    assert!(outcome.per_second() > 4.0 * outcome.mounts[0].flushes as f64 / 20.0);
    assert_eq!(outcome.mounts[0].flushes, outcome.log_rounds);
}

#[test]
fn one_row_lets_one_transaction_through_at_a_time() {
    let facts = Facts { locks: Some(Locks { row_count: 1, taken_after: 0.0 }), ..facts() };
    let outcome = run(&facts, MILLISECOND, MILLISECOND);
    // Four reads, a write and a flush of a millisecond each, and the work after the row is taken.
    assert_near(outcome.per_second(), 1.0 / 6.4e-3);
    assert!(outcome.waits.lock_ns > outcome.waits.total_ns() / 2);
}

#[test]
fn writes_of_a_file_hold_its_reads_back() {
    let with = |hot_file| run(&Facts { hot_file, ..facts() }, MILLISECOND, 2 * MILLISECOND);
    let file = HotFile { share: 1.0, writes_per_read: 1.0 };
    let (free, read_only) = (with(None), with(Some(HotFile { writes_per_read: 0.0, ..file })));
    assert_near(read_only.per_second(), free.per_second());
    assert_eq!(read_only.waits.file_ns, 0);
    let written = with(Some(file));
    assert!(written.per_second() < 0.8 * free.per_second(), "{} {}", written.per_second(), free.per_second());
    assert_near(written.waits.total_ns() as f64, 10.0 * 20e9);
}

#[test]
fn pages_are_written_once_by_the_background_writer_or_the_kernel() {
    let with = |most_pages| {
        let mut facts = facts();
        facts.kinds[0].dirtied_pages = 4.0;
        if let Flushing::Writeback(writeback) = &mut facts.flushing {
            writeback.background.most_pages = most_pages;
        }
        let outcome = run(&facts, MILLISECOND, 2 * MILLISECOND);
        (outcome.mounts[0].writes - outcome.log_rounds) as f64 / outcome.transactions() as f64
    };
    let (without, with) = (with(0), with(50));
    assert!(without > 0.5 && (with / without - 1.0).abs() < 0.1, "{with} {without}");
}

#[test]
fn a_commit_waits_behind_the_write_back() {
    let commit_ns = |dirtied_pages| {
        let mut facts = facts();
        facts.kinds[0].dirtied_pages = dirtied_pages;
        let outcome = run(&facts, MILLISECOND, MICROSECOND);
        outcome.waits.commit_ns as f64 / outcome.transactions() as f64
    };
    let (without, with) = (commit_ns(0.0), commit_ns(40.0));
    assert!(with > 1.2 * without, "{with} ns beside writes, {without} ns without");
}

#[test]
fn nobody_waits_for_the_kernels_read_ahead() {
    let reads: Vec<Access> =
        (0..100).map(|page| Access { offset_bytes: page << 20, size_bytes: PAGE }).collect();
    let with = |behind: usize| {
        let after = |read: &Access| vec![Access { offset_bytes: read.offset_bytes + PAGE, ..*read }; behind];
        let ahead = Ahead::Traced(reads.iter().map(after).collect());
        let region = Region { offset_bytes: 0, size_bytes: 1 << 28 };
        let places =
            Places { reads: Stream::Recorded { accesses: reads.clone().into(), region }, ..facts().places };
        let reading = Reading { ahead, ..facts().reading };
        run(&Facts { places, reading, ..facts() }, MILLISECOND, 2 * MILLISECOND)
    };
    let (alone, ahead) = (with(0), with(3));
    assert_eq!(alone.transactions(), ahead.transactions());
    assert_near(ahead.mounts[0].reads as f64, 4.0 * alone.mounts[0].reads as f64);
}

#[test]
fn arrivals_above_the_capacity_pile_up() {
    let of = |per_second| {
        let arrivals = Arrivals::Open { per_second, connections: 10 };
        run(&Facts { arrivals, ..facts() }, MILLISECOND, 2 * MILLISECOND)
    };
    let below = of(300.0);
    assert_near(below.per_second(), 300.0);
    assert_eq!(below.backlog, 0);
    assert!(of(30_000.0).backlog > 1_000);
}

#[test]
fn one_seed_gives_one_history() {
    let once = || run(&facts(), MILLISECOND, 2 * MILLISECOND);
    assert_eq!(once(), once());
}
