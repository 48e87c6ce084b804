use super::*;
use crate::record::{
    BusyThread, CommitEstimate, RateEvidence, RedoEvidence, StorageEvidence, ThreadEvidence, Warning,
};

/// A hundred seconds of terminals, without problems and without waits.
fn idle() -> Evidence {
    Evidence {
        cpu_busy: 0.3,
        cpu_own: 0.25,
        cpu_count: 2,
        client_share: 0.1,
        terminal_time_s: 100.0,
        commit_wait_s: Some(0.0),
        ..Evidence::default()
    }
}

#[track_caller]
fn check(evidence: &Evidence, kind: BottleneckKind, reason: &str) {
    let bottleneck = verdict(evidence);
    assert_eq!((bottleneck.kind, bottleneck.reason.as_str()), (kind, reason));
}

#[test]
fn many_slow_reads_are_read_latency() {
    let evidence = Evidence {
        foreground_reads: 8000.0,
        read_latency_mean_ms: 10.0,
        commit_wait_s: Some(12.0),
        ..idle()
    };
    let reason =
        "80 % of the terminals' time went into 8000 reads of 10.00 ms each; the 2 cores were 30 % busy.";
    check(&evidence, BottleneckKind::ReadLatency, reason);
}

#[test]
fn waiting_for_commit_is_commit_latency() {
    let evidence = Evidence {
        commit_wait_s: Some(55.0),
        foreground_reads: 2000.0,
        read_latency_mean_ms: 10.0,
        ..idle()
    };
    let reason = "55 % of the terminals' time went into COMMIT; the 2 cores were 30 % busy.";
    check(&evidence, BottleneckKind::CommitLatency, reason);
}

/// An estimate without a stopwatch.
fn untimed(count: f64, wait_ms: f64) -> Evidence {
    Evidence { commit_wait_s: None, commits: Some(CommitEstimate { count, wait_ms }), ..idle() }
}

#[test]
fn commits_without_a_stopwatch_are_marked_as_estimated() {
    let reason = "About 79 % of the terminals' time went into 10000 commits of 7.90 ms each (estimated from the server's counters); \
                  the 2 cores were 30 % busy.";
    check(&untimed(10_000.0, 7.9), BottleneckKind::CommitLatency, reason);
    assert_eq!(verdict(&untimed(10_000.0, 7.9)).shares["commit"], 0.79);
    let reason = "No single cause: reads took 0 % of the terminals' time, commits about 20 %, row locks 0 %; \
                  the 2 cores were 30 % busy.";
    check(&untimed(2_000.0, 10.0), BottleneckKind::Unknown, reason);
    let reads = Evidence { foreground_reads: 9_000.0, read_latency_mean_ms: 10.0, ..untimed(8_000.0, 10.0) };
    assert_eq!(verdict(&reads).kind, BottleneckKind::ReadLatency);
}

#[test]
fn a_stopwatch_takes_precedence_over_an_estimate() {
    let evidence = Evidence { commit_wait_s: Some(55.0), ..untimed(10_000.0, 7.9) };
    let reason = "55 % of the terminals' time went into COMMIT; the 2 cores were 30 % busy.";
    check(&evidence, BottleneckKind::CommitLatency, reason);
}

#[test]
fn the_wait_for_a_replica_is_part_of_the_commit_time() {
    let timed = Evidence { commit_wait_s: Some(60.0), acknowledgement_wait_s: 24.0, ..idle() };
    let reason = "60 % of the terminals' time went into COMMIT, 40 % of it into waiting for a replica's acknowledgement; \
                  the 2 cores were 30 % busy.";
    check(&timed, BottleneckKind::CommitLatency, reason);
    // It comes after the primary's own logs.
    let evidence = Evidence { acknowledgement_wait_s: 24.0, ..untimed(6_000.0, 6.0) };
    let reason = "About 60 % of the terminals' time went into 6000 commits of 10.00 ms each (estimated from the server's counters), \
                  40 % of it into waiting for a replica's acknowledgement; the 2 cores were 30 % busy.";
    check(&evidence, BottleneckKind::CommitLatency, reason);
}

#[test]
fn a_verdict_names_the_stack_that_was_waited_for() {
    let redo = RedoEvidence {
        place: "`hdd`".to_owned(),
        write_latency_mean_ms: 0.3,
        flush_latency_mean_ms: Some(9.25),
    };
    let commits = Evidence { commit_wait_s: Some(55.0), redo: Some(redo.clone()), ..idle() };
    let reason = "55 % of the terminals' time went into COMMIT, with writes of 0.30 ms and flushes of 9.25 ms on `hdd`; \
                  the 2 cores were 30 % busy.";
    check(&commits, BottleneckKind::CommitLatency, reason);
    let redo = Some(RedoEvidence { flush_latency_mean_ms: None, ..redo });
    let reason = "55 % of the terminals' time went into COMMIT, with writes of 0.30 ms on `hdd`; the 2 cores were 30 % busy.";
    check(&Evidence { redo: redo.clone(), ..commits }, BottleneckKind::CommitLatency, reason);
    let read_place = Some("`card`".to_owned());
    let reads = Evidence { foreground_reads: 8000.0, read_latency_mean_ms: 10.0, redo, read_place, ..idle() };
    let reason = "80 % of the terminals' time went into 8000 reads of 10.00 ms each from `card`; \
                  the 2 cores were 30 % busy.";
    check(&reads, BottleneckKind::ReadLatency, reason);
}

#[test]
fn busy_cores_hide_what_storage_does() {
    let evidence = Evidence { cpu_busy: 0.97, cpu_own: 0.9, commit_wait_s: Some(55.0), ..idle() };
    check(&evidence, BottleneckKind::Cpu, "The 2 cores were 97 % busy.");
    let on_one_core = Evidence { cpu_count: 1, ..evidence };
    check(&on_one_core, BottleneckKind::Cpu, "The core was 97 % busy.");
}

#[test]
fn cores_busy_with_other_processes_do_not_decide_the_verdict() {
    let evidence = Evidence { cpu_busy: 0.97, cpu_own: 0.1, commit_wait_s: Some(55.0), ..idle() };
    let reason = "55 % of the terminals' time went into COMMIT; \
                  the 2 cores were 97 % busy, 10 % with the trial and 87 % with other programs.";
    check(&evidence, BottleneckKind::CommitLatency, reason);
    let found = warnings(&evidence, &emulated());
    assert!(matches!(found[..], [Warning::OtherPrograms { .. }]), "{found:?}");
    insta::assert_snapshot!(found[0].sentence(), @"87 % of the cores were used by other programs, 10 % by the trial itself: the figure may be lower than on an idle machine. Stop them and measure again.");
    let both = Evidence { cpu_busy: 0.99, cpu_own: 0.55, ..idle() };
    let found = warnings(&both, &emulated());
    assert!(matches!(found[..], [Warning::CpuSaturated { .. }, Warning::OtherPrograms { .. }]), "{found:?}");
}

#[test]
fn a_server_that_ran_already_is_not_counted_among_other_programs() {
    let evidence = Evidence { cpu_busy: 0.97, cpu_own: 0.1, is_server_cpu_unknown: true, ..idle() };
    let found = warnings(&evidence, &emulated());
    assert!(matches!(found[..], [Warning::CpuSaturated { own: None, .. }]), "{found:?}");
    assert!(verdict(&evidence).reason.ends_with("; the 2 cores were 97 % busy."));
}

#[test]
fn a_busy_client_hides_everything() {
    let evidence = Evidence { client_share: 0.9, cpu_busy: 0.97, ..idle() };
    check(
        &evidence,
        BottleneckKind::Client,
        "The load generator used 90 % of the cores that its threads can use.",
    );
}

#[test]
fn a_full_channel_is_bandwidth() {
    let rate = RateEvidence { limit: 25e6, share: 0.93, ..RateEvidence::default() };
    let evidence = Evidence { rate: Some(rate.clone()), commit_wait_s: Some(40.0), ..idle() };
    let reason = "93 % of the bandwidth of 25 MB/s of the device was used.";
    check(&evidence, BottleneckKind::Bandwidth, reason);
    insta::assert_snapshot!(next(&evidence), @"A device with twice the bandwidth can give at most 2.2 times.");
    assert_eq!(verdict(&evidence).shares["bandwidth"], 0.93);
    let rate = RateEvidence { of: RateOf::Requests, limit: 500.0, place: Some("`slow`".to_owned()), ..rate };
    let evidence = Evidence { rate: Some(rate.clone()), ..evidence };
    let reason = "93 % of the 500 requests per second of `slow` was used.";
    check(&evidence, BottleneckKind::RequestRate, reason);
    insta::assert_snapshot!(next(&evidence), @"A device for twice the requests per second can give at most 2.2 times.");
    let idle_device = Evidence { rate: Some(RateEvidence { share: 0.5, ..rate }), ..evidence };
    assert_eq!(verdict(&idle_device).kind, BottleneckKind::CommitLatency);
}

fn next(evidence: &Evidence) -> String {
    let next = verdict(evidence).next.unwrap();
    assert!(next.at_most.is_none_or(|bound| bound >= 1.0), "{next:?}");
    next.sentence
}

/// The server's busiest threads, together and the first of them alone.
fn threads(busiest_s: f64, share: f64) -> Option<ThreadEvidence> {
    let busiest = Some(BusyThread { name: "mariadbd".to_owned(), share });
    Some(ThreadEvidence { busiest_s, busiest })
}

/// One terminal of a hundred seconds.
fn alone() -> Evidence {
    Evidence { terminals: 1, duration_s: 100.0, client_cpu: 0.01, cpu_programs: 0.5, ..idle() }
}

#[test]
fn one_client_that_computes_is_limited_by_one_core() {
    let scan = Evidence { threads: threads(97.0, 0.97), cpu_busy: 0.55, cpu_own: 0.5, ..alone() };
    let reason = "The thread `mariadbd` of the server kept one core 97 % busy; the 2 cores were 55 % busy.";
    check(&scan, BottleneckKind::OneCore, reason);
    insta::assert_snapshot!(next(&scan), @"More clients at once can give at most 2 times, and a core twice as fast at most 2.");
    // Between the client and the server, no thread is busy all the time.
    let short = Evidence { threads: threads(45.0, 0.45), client_cpu: 0.2, ..scan.clone() };
    let reason = "85 % of the terminals' time went into work on a core; the 2 cores were 55 % busy.";
    check(&short, BottleneckKind::OneCore, reason);
    let client = Evidence { threads: threads(20.0, 0.20), client_cpu: 0.3, client_share: 0.6, ..scan };
    let reason =
        "60 % of the terminals' time went into the load generator's own work; the 2 cores were 55 % busy.";
    check(&client, BottleneckKind::Client, reason);
    insta::assert_snapshot!(next(&client), @"A load generator that needs no time can give at most 2 times: then all cores are busy.");
}

#[test]
fn one_client_on_a_core_is_limited_by_it_whoever_has_the_others() {
    let bulk = Evidence { threads: threads(85.0, 0.85), cpu_busy: 1.0, cpu_own: 0.5, ..alone() };
    let reason = "87 % of the terminals' time went into work on a core; \
                  the 2 cores were 100 % busy, 50 % with the trial and 50 % with other programs.";
    check(&bulk, BottleneckKind::OneCore, reason);
    // The server's own threads have the others.
    let background = Evidence { cpu_own: 0.95, ..bulk.clone() };
    assert_eq!(verdict(&background).kind, BottleneckKind::Cpu);
    let locked = Evidence { threads: threads(10.0, 0.1), lock_wait_s: 60.0, ..bulk.clone() };
    assert_eq!(verdict(&locked).kind, BottleneckKind::Locks);
    let disturbed = Evidence { threads: threads(40.0, 0.4), ..bulk };
    assert_eq!(verdict(&disturbed).kind, BottleneckKind::Cpu);
}

#[test]
fn a_busy_background_thread_decides_before_the_waits_behind_it() {
    let evidence = Evidence {
        terminals: 8,
        threads: threads(150.0, 0.96),
        commit_wait_s: Some(70.0),
        cpu_busy: 0.6,
        ..alone()
    };
    assert_eq!(verdict(&evidence).kind, BottleneckKind::OneCore);
    insta::assert_snapshot!(next(&evidence), @"A core twice as fast can give at most 2.1 times.");
    let idle_thread = Evidence { threads: threads(30.0, 0.4), ..evidence };
    assert_eq!(verdict(&idle_thread).kind, BottleneckKind::CommitLatency);
}

#[test]
fn terminals_that_wait_for_a_core_are_limited_by_all_cores() {
    // Four terminals on two cores, which are busy for 80 % of the time: most of the rest is waiting for one.
    let evidence = Evidence {
        terminals: 4,
        terminal_time_s: 400.0,
        threads: threads(110.0, 0.3),
        client_cpu: 0.2,
        cpu_busy: 0.85,
        cpu_own: 0.8,
        cpu_programs: 0.75,
        ..alone()
    };
    let reason = "38 % of the terminals' time went into work on a core and about 62 % into waits for one; \
                  the 2 cores were 85 % busy.";
    check(&evidence, BottleneckKind::Cpu, reason);
    insta::assert_snapshot!(next(&evidence), @"A core for each terminal can give at most 2.7 times.");
    // With idle cores nobody waits for one.
    let quiet = Evidence { cpu_own: 0.3, cpu_busy: 0.3, ..evidence };
    assert_eq!(verdict(&quiet).kind, BottleneckKind::OneCore);
}

fn device(busy: f64, read_s: f64, write_s: f64, flush_s: f64) -> Option<StorageEvidence> {
    Some(StorageEvidence { place: None, busy, queue_depth: 2.0, read_s, write_s, flush_s })
}

#[test]
fn the_rest_of_the_time_belongs_to_a_device_that_was_busy_in_it() {
    let writes = Evidence { storage: device(0.8, 1.0, 60.0, 40.0), commit_wait_s: Some(15.0), ..alone() };
    let reason = "Up to 65 % of the terminals' time passed outside of COMMIT while the device wrote (busy for 80 %, 40 % of it \
                  with FLUSHes), and 15 % went into COMMIT; the 2 cores were 30 % busy.";
    check(&writes, BottleneckKind::WriteLatency, reason);
    insta::assert_snapshot!(next(&writes), @"Storage that writes at once can give at most 2 times: then all cores are busy.");
    let reads = Evidence { storage: device(0.8, 60.0, 20.0, 1.0), ..writes.clone() };
    let reason = "Up to 65 % of the terminals' time passed while the device read (busy for 80 %); the 2 cores were 30 % busy.";
    check(&reads, BottleneckKind::ReadLatency, reason);
    // Nobody waited: the time went into work.
    let background = Evidence { threads: threads(80.0, 0.8), ..writes.clone() };
    assert_eq!(verdict(&background).kind, BottleneckKind::OneCore);
    let idle_device = Evidence { storage: device(0.2, 1.0, 10.0, 10.0), ..writes };
    assert_eq!(verdict(&idle_device).kind, BottleneckKind::Unknown);
}

#[test]
fn commits_and_other_writes_are_one_cause() {
    let both = Evidence {
        commit_wait_s: Some(28.0),
        storage: device(0.5, 0.0, 30.0, 20.0),
        foreground_reads: 32_000.0,
        read_latency_mean_ms: 1.0,
        ..alone()
    };
    let Shares { commit, storage_writes, .. } = Shares::of(&both);
    assert!(commit < WAIT_SHARE && storage_writes < WAIT_SHARE);
    assert_eq!(verdict(&both).kind, BottleneckKind::ReadLatency);
    let fewer = Evidence { foreground_reads: 10_000.0, ..both };
    assert_eq!(verdict(&fewer).kind, BottleneckKind::CommitLatency);
}

#[test]
fn an_estimate_of_commits_leaves_room_for_the_work() {
    // Page writes made the requests of the log's device as slow as this.
    let commits = CommitEstimate { count: 170.0, wait_ms: 600.0 };
    let evidence =
        Evidence { commit_wait_s: None, commits: Some(commits), threads: threads(57.0, 0.57), ..alone() };
    let shares = verdict(&evidence).shares;
    assert!((shares["commit"] - 0.41).abs() < 1e-9 && (shares["work"] - 0.59).abs() < 1e-9, "{shares:?}");
    assert_eq!(verdict(&evidence).kind, BottleneckKind::OneCore);
}

/// Four writers of a database with one writer at a time.
fn one_writer(wait_s: f64, commit_s: f64, client_s: f64) -> Evidence {
    Evidence {
        terminals: 4,
        terminal_time_s: 400.0,
        writer_wait_s: Some(wait_s),
        commit_wait_s: Some(commit_s),
        client_cpu: client_s / 200.0,
        client_share: client_s / 200.0,
        is_client_the_database: true,
        threads: Some(ThreadEvidence::default()),
        ..alone()
    }
}

#[test]
fn writers_that_wait_for_a_writer_wait_for_what_it_waits_for() {
    let reason = "70 % of the working terminals' time went into COMMIT; the 2 cores were 30 % busy.";
    check(&one_writer(300.0, 70.0, 25.0), BottleneckKind::CommitLatency, reason);
    let reason = "90 % of the working terminals' time went into work on a core; the 2 cores were 30 % busy.";
    check(&one_writer(300.0, 5.0, 90.0), BottleneckKind::OneCore, reason);
    insta::assert_snapshot!(next(&one_writer(300.0, 5.0, 90.0)), @"A core twice as fast can give at most 1.8 times.");
    let reason = "In 70 % of the time each writer waited for another one; the 2 cores were 30 % busy.";
    check(&one_writer(370.0, 15.0, 10.0), BottleneckKind::Locks, reason);
    let with_pauses = Evidence { terminal_time_s: 110.0, ..one_writer(70.0, 30.0, 5.0) };
    assert_eq!(verdict(&with_pauses).kind, BottleneckKind::CommitLatency);
    insta::assert_snapshot!(next(&one_writer(370.0, 15.0, 10.0)), @"One connection that does all writes can give at most 3.3 times.");
}

#[test]
fn the_database_inside_the_client_is_not_the_load_generator() {
    let busy = Evidence { client_share: 0.98, client_cpu: 0.49, is_client_the_database: true, ..alone() };
    let busy = Evidence { threads: Some(ThreadEvidence::default()), ..busy };
    let reason = "98 % of the terminals' time went into work on a core; the 2 cores were 30 % busy.";
    check(&busy, BottleneckKind::OneCore, reason);
}

#[test]
fn a_commit_that_waits_for_a_replica_most_of_all_is_limited_by_it() {
    let evidence = Evidence { commit_wait_s: Some(60.0), acknowledgement_wait_s: 42.0, ..alone() };
    let reason = "60 % of the terminals' time went into COMMIT, 70 % of it into waiting for a replica's acknowledgement; \
                  the 2 cores were 30 % busy.";
    check(&evidence, BottleneckKind::Replica, reason);
    insta::assert_snapshot!(next(&evidence), @"Commits that wait for no replica can give at most 1.7 times.");
}

#[test]
fn the_next_step_is_bounded_by_amdahls_law() {
    let commits = |share: f64| Evidence { commit_wait_s: Some(share * 100.0), ..idle() };
    insta::assert_snapshot!(next(&commits(0.61)), @"A log on its own drive can give at most 2.6 times.");
    insta::assert_snapshot!(next(&commits(0.995)), @"A log on its own drive can give much: the shares set no limit below 50 times.");
    // The cores are the next limit.
    insta::assert_snapshot!(next(&Evidence { cpu_programs: 0.8, ..commits(0.61) }), @"A log on its own drive can give at most 1.2 times: then all cores are busy.");
    let redo = RedoEvidence { place: "`card`".to_owned(), ..RedoEvidence::default() };
    insta::assert_snapshot!(next(&Evidence { redo: Some(redo), ..commits(0.61) }), @"A log drive that writes at once can give at most 2.6 times.");
    let reads = Evidence { foreground_reads: 8000.0, read_latency_mean_ms: 10.0, ..idle() };
    insta::assert_snapshot!(next(&reads), @"Memory for all data, or storage that reads at once, can give at most 5 times.");
    insta::assert_snapshot!(next(&Evidence { lock_wait_s: 60.0, ..idle() }), @"Transactions that share no rows can give at most 2.5 times.");
    let all_cores = Evidence { cpu_busy: 0.95, cpu_own: 0.9, ..idle() };
    insta::assert_snapshot!(next(&all_cores), @"Twice the cores can give at most 2.1 times.");
    let client = Evidence { client_share: 0.9, client_cpu: 0.45, duration_s: 100.0, ..idle() };
    insta::assert_snapshot!(next(&client), @"A load generator that needs no time can give at most 10 times.");
}

#[test]
fn an_unknown_bottleneck_names_the_figure_that_would_tell() {
    insta::assert_snapshot!(next(&Evidence { commit_wait_s: Some(20.0), ..idle() }), @"The server's own account of its waits would tell more; without commits and writes, at most 1.2 times.");
    insta::assert_snapshot!(next(&Evidence { commit_wait_s: None, ..idle() }), @"A stopwatch around COMMIT would tell more.");
    insta::assert_snapshot!(next(&Evidence { is_server_cpu_unknown: true, ..idle() }), @"The CPU time of the server's threads would tell more.");
}

#[test]
fn evidence_is_read_back_from_a_record() {
    let evidence = Evidence { storage: device(0.5, 1.0, 2.0, 3.0), ..one_writer(300.0, 70.0, 25.0) };
    let verdict = verdict(&evidence);
    let text = serde_json::to_string(&verdict).unwrap();
    assert_eq!(serde_json::from_str::<Bottleneck>(&text).unwrap(), verdict);
    let earlier = r#"{"kind": "commit-latency", "shares": {}, "reason": "55 %."}"#;
    assert_eq!(serde_json::from_str::<Bottleneck>(earlier).unwrap().sentences(), "55 %.");
}

#[test]
fn locks_count_only_when_they_exceed_what_their_owners_wait_for() {
    let locked = Evidence { lock_wait_s: 60.0, commit_wait_s: Some(20.0), ..idle() };
    let reason = "60 % of the terminals' time went into row locks; the 2 cores were 30 % busy.";
    check(&locked, BottleneckKind::Locks, reason);
    let behind_commits = Evidence { commit_wait_s: Some(45.0), lock_wait_s: 42.0, ..idle() };
    assert_eq!(verdict(&behind_commits).kind, BottleneckKind::CommitLatency);
}

#[test]
fn without_a_large_share_the_bottleneck_is_unknown() {
    let reason = "No single cause: reads took 0 % of the terminals' time, commits 20 %, row locks 0 %; \
                  the 2 cores were 30 % busy.";
    check(&Evidence { commit_wait_s: Some(20.0), ..idle() }, BottleneckKind::Unknown, reason);
}

#[test]
fn waits_for_the_lock_of_a_file_are_no_storage() {
    let storage = StorageEvidence { busy: 0.9, write_s: 60.0, ..StorageEvidence::default() };
    let behind = Evidence { storage: Some(storage), ..idle() };
    assert_eq!(verdict(&behind).kind, BottleneckKind::WriteLatency);
    let locked = Evidence { file_lock_wait_s: Some(66.0), ..behind };
    let reason = "66 % of the terminals' time passed in waits for the lock of a file, which on XFS a buffered write has to itself; \
                  the 2 cores were 30 % busy.";
    check(&locked, BottleneckKind::FileLocks, reason);
    insta::assert_snapshot!(next(&locked), @"A file system whose reads take no lock of the file, as ext4's, can give at most 2.9 times.");
    let shares = verdict(&locked).shares;
    assert_eq!(shares["file-locks"], 0.66);
    assert!((shares["storage"] - 0.24).abs() < 1e-9, "{shares:?}");
    let reading = Evidence { foreground_reads: 7_000.0, read_latency_mean_ms: 10.0, ..locked };
    assert_eq!(verdict(&reading).kind, BottleneckKind::ReadLatency);
}

#[test]
fn counted_waits_replace_the_reads_of_the_device() {
    let ahead = Evidence {
        foreground_reads: 7_000.0,
        read_latency_mean_ms: 10.0,
        commit_wait_s: Some(45.0),
        read_wait_s: Some(8.0),
        ..idle()
    };
    assert_eq!(verdict(&ahead).kind, BottleneckKind::CommitLatency);
    assert_eq!(verdict(&ahead).shares["read"], 0.08);
    let waited = Evidence { read_wait_s: Some(50.0), ..ahead.clone() };
    let reason = "50 % of the terminals' time passed in waits for reads, which took 10.00 ms each; the 2 cores were 30 % busy.";
    check(&waited, BottleneckKind::ReadLatency, reason);
    let not_counted = Evidence { read_wait_s: None, ..ahead };
    assert_eq!(verdict(&not_counted).kind, BottleneckKind::ReadLatency);
}

#[test]
fn shares_stay_between_zero_and_one() {
    // Background threads read too, so the estimate can exceed the terminals' time.
    let bottleneck = verdict(&Evidence { foreground_reads: 1e6, read_latency_mean_ms: 10.0, ..idle() });
    assert!(bottleneck.shares.values().all(|share| (0.0..=1.0).contains(share)), "{bottleneck:?}");
    assert_eq!(verdict(&Evidence::default()).shares["read"], 0.0);
}

fn emulated() -> Symptoms {
    Symptoms {
        scheduler: Some("SCHED_FIFO".to_owned()),
        requests: 100_000,
        transactions: 1000,
        transactions_per_s: vec![100.0; 30],
        ..Symptoms::default()
    }
}

#[track_caller]
fn check_warnings(evidence: &Evidence, symptoms: &Symptoms, expect: &[Warning]) {
    assert_eq!(warnings(evidence, symptoms), expect);
}

#[test]
fn a_clean_trial_has_no_warning() {
    check_warnings(&idle(), &emulated(), &[]);
    check_warnings(&idle(), &Symptoms { scheduler: None, ..emulated() }, &[]);
}

#[test]
fn late_replies_cause_a_warning() {
    let symptoms = Symptoms { late_share: 0.04, lateness_p99_us: 210.0, ..emulated() };
    check_warnings(&idle(), &symptoms, &[Warning::Late { p99_us: 210.0, share: 0.04 }]);
}

#[test]
fn missing_real_time_priority_causes_a_warning() {
    let symptoms = Symptoms { scheduler: Some("SCHED_OTHER".to_owned()), ..emulated() };
    check_warnings(&idle(), &symptoms, &[Warning::NoRealTime]);
}

#[test]
fn an_emulator_without_the_io_flusher_flag_causes_a_warning() {
    let symptoms = Symptoms { io_flusher_refused: true, ..emulated() };
    check_warnings(&idle(), &symptoms, &[Warning::NoIoFlusher]);
}

#[test]
fn rare_faults_cause_no_warning() {
    check_warnings(&idle(), &Symptoms { major_faults: 100, ..emulated() }, &[]);
    let symptoms = Symptoms { major_faults: 5000, ..emulated() };
    check_warnings(&idle(), &symptoms, &[Warning::HostDiskReads { major_faults: 5000 }]);
}

#[test]
fn saturated_cores_and_clients_cause_warnings() {
    let evidence = Evidence { cpu_busy: 0.95, cpu_own: 0.9, client_share: 0.85, client_cpu: 0.4, ..idle() };
    let saturated = Warning::CpuSaturated { busy: 0.95, client: 0.4, own: Some(0.9) };
    insta::assert_snapshot!(saturated.sentence(), @r#"The cores were 95 % busy, 90 % with the trial itself and 40 % with the load generator: the figure shows the limit of the machine, not of the storage. The true difference may be larger; with `dilation = "as needed"` the cores look faster."#);
    check_warnings(&evidence, &emulated(), &[saturated, Warning::ClientSaturated { share: 0.85 }]);
}

#[test]
fn a_queue_at_the_end_of_the_window_causes_a_warning() {
    check_warnings(&idle(), &Symptoms { behind_s: 0.1, ..emulated() }, &[]);
    let symptoms = Symptoms { behind_s: 3.0, ..emulated() };
    check_warnings(&idle(), &symptoms, &[Warning::BehindSchedule { behind_s: 3.0 }]);
}

#[test]
fn failed_transactions_cause_a_warning() {
    let symptoms = Symptoms { failed_transactions: 1000, ..emulated() };
    check_warnings(&idle(), &symptoms, &[Warning::TransactionsFailed { share: 0.5 }]);
}

#[test]
fn a_trend_causes_a_warning_and_noise_does_not() {
    let rising = Symptoms {
        transactions_per_s: (0..30).map(|second| 100.0 + f64::from(second) * 4.0).collect(),
        ..emulated()
    };
    let found = warnings(&idle(), &rising);
    assert!(
        matches!(found[..], [Warning::NotSteady { drift, never_settled: None }] if drift > 0.3),
        "{found:?}"
    );
    let noisy = (0..30).map(|second| if second % 3 == 0 { 180.0 } else { 60.0 }).collect();
    check_warnings(&idle(), &Symptoms { transactions_per_s: noisy, ..emulated() }, &[]);
}

#[test]
fn an_unreported_commit_wait_is_unknown_rather_than_zero() {
    let evidence = Evidence { commit_wait_s: None, ..idle() };
    let reason = "No single cause: reads took 0 % of the terminals' time, commits an unknown part, row locks 0 %; \
                  the 2 cores were 30 % busy.";
    check(&evidence, BottleneckKind::Unknown, reason);
    assert!(!verdict(&evidence).shares.contains_key("commit"));
}
