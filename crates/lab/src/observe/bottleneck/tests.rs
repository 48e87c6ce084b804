use super::*;

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
    let evidence = Evidence { bandwidth_share: Some(0.93), commit_wait_s: Some(40.0), ..idle() };
    check(&evidence, BottleneckKind::Bandwidth, "93 % of the device's bandwidth was used.");
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
