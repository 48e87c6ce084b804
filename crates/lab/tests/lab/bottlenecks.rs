//! Bottlenecks that are known because the trial was constructed to have them: whole runs on emulated devices
//! that make each limit on demand. `bottleneck_cells.rs` has the trials in which nothing is constructed.

use crate::emulated_support::{Bench, measured};
use crate::in_check_all;
use spindle_lab::record::{Bottleneck, BottleneckKind};
use std::sync::{PoisonError, RwLock};

/// Work is found only where the trial has the cores: two such tests side by side take them from each other.
static CORES: RwLock<()> = RwLock::new(());

fn needs_cores(kind: BottleneckKind) -> bool {
    matches!(kind, BottleneckKind::Cpu | BottleneckKind::OneCore | BottleneckKind::Client)
}

/// A server of the cases, with its settings. The last figure is the memory for pages.
fn server(name: &str) -> &'static str {
    match name {
        "small" => {
            "kind = \"mariadb\"\nsettings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"8M\" }"
        }
        "mariadb" => {
            "kind = \"mariadb\"\nsettings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"128M\" }"
        }
        "postgresql" => "kind = \"postgresql\"\nsettings = { shared_buffers = \"16MB\" }",
        // Its sessions must write pages before they can read others.
        "full" => "kind = \"postgresql\"\nmemory = \"80 MB\"\nsettings = { shared_buffers = \"16MB\" }",
        "sqlite" => "kind = \"sqlite\"\nsettings = { journal_mode = \"WAL\", synchronous = \"FULL\" }",
        "files" => "kind = \"files\"",
        "acknowledged" => {
            "kind = \"mariadb\"\nsettings = { innodb_flush_method = \"O_DIRECT\", innodb_buffer_pool_size = \"32M\" }\n\
             [servers.acknowledged.replication]\nmode = \"semi-sync\"\nreplicas = [\"slow-flush\"]\nwait_point = \"after-commit\"\n\
             settings = { sync_relay_log = 1, innodb_flush_log_at_trx_commit = 0 }\ncatch_up = \"5 s\""
        }
        other => panic!("no server {other}"),
    }
}

/// A workload of the cases.
fn workload(name: &str) -> &'static str {
    match name {
        "point-select" => {
            "kind = \"oltp\"\nscript = \"point-select\"\ntables = 1\nrows = 200000\ndistribution = \"uniform\"\nterminals = 4"
        }
        "update" => {
            "kind = \"oltp\"\nscript = \"update-non-index\"\ntables = 1\nrows = 1000\ndistribution = \"uniform\"\nterminals = 4"
        }
        "update-all" => {
            "kind = \"oltp\"\nscript = \"update-non-index\"\ntables = 1\nrows = 600000\ndistribution = \"uniform\"\nterminals = 16"
        }
        "ranges" => {
            "kind = \"oltp\"\nscript = \"read-only\"\ntables = 1\nrows = 200000\ndistribution = \"uniform\"\nterminals = 2"
        }
        "read-only" => {
            "kind = \"oltp\"\nscript = \"read-only\"\ntables = 1\nrows = 10000\ndistribution = \"uniform\"\nterminals = 8"
        }
        "commits" => "kind = \"fsync-loop\"\nterminals = 4",
        "scan" => "kind = \"scan\"\nrows = 30000\nterminals = 1",
        "large-scan" => "kind = \"scan\"\nrows = 40000\nterminals = 1",
        "hot-row" => "kind = \"custom\"\nfile = \"hot-row.sql\"\nterminals = 8",
        "texts" => "kind = \"custom\"\nfile = \"texts.sql\"\nterminals = 1",
        "random-reads" => {
            "kind = \"fileio\"\nmode = \"rndrd\"\ntotal_mib = 64\nblock_bytes = 16384\nterminals = 4\nfsync_every = 0"
        }
        "whole-reads" => {
            "kind = \"fileio\"\nmode = \"seqrd\"\ntotal_mib = 64\nblock_bytes = 262144\nterminals = 2\nfsync_every = 0"
        }
        "durable-writes" => {
            "kind = \"fileio\"\nmode = \"rndwr\"\ntotal_mib = 64\nblock_bytes = 16384\nterminals = 2\nfsync_every = 1"
        }
        other => panic!("no workload {other}"),
    }
}

/// All clients change one row, and keep it while they count others: on the fastest processor for longer than a commit
/// takes.
const HOT_ROW: &str = "\\load
DROP TABLE IF EXISTS hot;
CREATE TABLE hot (id INTEGER NOT NULL PRIMARY KEY, n BIGINT NOT NULL);
\\rows hot 1000 = sequence(1), 0
\\transaction change 1
UPDATE hot SET n = n + 1 WHERE id = 1;
SELECT COUNT(*) FROM hot;
SELECT COUNT(*) FROM hot;
SELECT COUNT(*) FROM hot;
SELECT COUNT(*) FROM hot;
\\check the others are as they were
SELECT COUNT(*) = 999 FROM hot WHERE n = 0;
";

/// The client draws texts, and the server only counts their letters.
const TEXTS: &str = "\\load
DROP TABLE IF EXISTS nothing;
CREATE TABLE nothing (id INTEGER NOT NULL PRIMARY KEY);
\\rows nothing 10 = sequence(1)
\\transaction count 1
\\set text string(200000)
SELECT LENGTH(:text);
\\check it is as it was
SELECT COUNT(*) = 10 FROM nothing;
";

/// A protected cache and no time on the link, so that a commit takes tens of microseconds.
const QUICK: &str = include_str!("../../../../profiles/flash-285us-4ch.toml");
/// A volatile cache.
const WITH_FLUSH: &str = include_str!("../../../../profiles/x25m-80.toml");

#[track_caller]
fn changed(profile: &str, from: &str, to: &str) -> String {
    assert!(profile.contains(from), "{from}");
    profile.replace(from, to)
}

fn stacks() -> String {
    let device =
        |name: &str, profile: &str| format!("[stacks.{name}]\nprofile = \"{profile}\"\nsize = \"2 GiB\"\n");
    let throttled =
        |name: &str, limit: &str| format!("[stacks.{name}]\nlayer = \"throttle\"\non = \"quick\"\n{limit}\n");
    [
        device("quick", "quick.toml"),
        device("slow-reads", "slow-reads.toml"),
        device("slow-flush", "slow-flush.toml"),
        throttled("narrow", "rate = \"8 MB/s\""),
        throttled("few-requests", "iops = 400"),
    ]
    .concat()
}

/// Runs the workloads on one server and one stack. Each has one trial, whose bottleneck is the expected one.
#[track_caller]
fn check(stack: &str, server_name: &str, cases: &[(&str, BottleneckKind)]) {
    let Some(bench) = in_check_all(Bench::new) else { return };
    let has_work = cases.iter().any(|(_, kind)| needs_cores(*kind));
    let _alone = has_work.then(|| CORES.write().unwrap_or_else(PoisonError::into_inner));
    let _beside = (!has_work).then(|| CORES.read().unwrap_or_else(PoisonError::into_inner));
    bench.write("quick.toml", &changed(QUICK, "260 us", "20 us"));
    bench.write("slow-reads.toml", &changed(QUICK, "260 us", "5 ms"));
    bench.write("slow-flush.toml", &changed(WITH_FLUSH, "value = \"2 ms\"", "value = \"20 ms\""));
    bench.write("hot-row.sql", HOT_ROW);
    bench.write("texts.sql", TEXTS);
    let tables = cases.iter().map(|(name, _)| format!("[workloads.{name}]\n{}\n", workload(name)));
    let names: Vec<String> = cases.iter().map(|(name, _)| format!("{name:?}")).collect();
    // A warm-up would fill the page cache, below which PostgreSQL reads.
    let is_cold = server_name == "files" || stack == "slow-reads" && server_name == "postgresql";
    // The waits for files are counted once a second.
    let is_counted = cases.iter().any(|(_, kind)| *kind == BottleneckKind::FileLocks);
    let measure = if is_counted { "10 s" } else { "3 s" };
    let scenario = format!(
        "title = \"Constructed\"\n{}[servers.{server_name}]\n{}\n{}[matrix]\nstack = [\"{stack}\"]\n\
         server = [\"{server_name}\"]\nworkload = [{}]\n[run]\ntrials = 1\nstart = \"{}\"\n{}measure = \"{measure}\"\nseed = 1\n",
        stacks(),
        server(server_name),
        tables.collect::<String>(),
        names.join(", "),
        if is_cold { "cold" } else { "warm-fast" },
        if is_cold { "" } else { "warm_up = \"500 ms\"\nsettle = \"200 ms\"\n" },
    );
    bench.write("test.toml", &scenario);
    let talk = bench.run_scenario(&[], &[], 0);
    let trials = bench.trials();
    assert_eq!(trials.len(), cases.len(), "{talk}");
    // Its sessions are processes.
    let is_counted_server = server(server_name).contains("postgresql");
    for (name, kind) in cases {
        let of_case = |cell: &str| cases.len() == 1 || cell.ends_with(name);
        let trial =
            trials.iter().find(|trial| of_case(&trial.cell)).unwrap_or_else(|| panic!("{name}: {talk}"));
        let Bottleneck { kind: found, next, .. } = &measured(trial).bottleneck;
        assert_eq!(found, kind, "{stack}, {server_name}, {name}: {:#?}", measured(trial).bottleneck);
        let counted = measured(trial).bottleneck.evidence.as_ref().and_then(|evidence| evidence.read_wait_s);
        assert_eq!(counted.is_some(), is_counted_server, "{server_name}: waits for reads");
        let next = next.as_ref().unwrap();
        assert!(next.sentence.ends_with('.') && next.at_most.is_none_or(|bound| bound >= 1.0), "{next:?}");
        assert!(talk.contains(next.sentence.trim_end_matches('.')), "{talk}");
    }
    bench.assert_clean();
}

#[test]
fn slow_reads_are_found_on_a_database_larger_than_memory() {
    check(
        "slow-reads",
        "small",
        &[("point-select", BottleneckKind::ReadLatency), ("ranges", BottleneckKind::ReadLatency)],
    );
}

#[test]
fn slow_reads_are_found_below_a_page_cache() {
    check("slow-reads", "postgresql", &[("point-select", BottleneckKind::ReadLatency)]);
}

#[test]
fn slow_reads_of_a_foreign_tool_are_found() {
    check("slow-reads", "files", &[("random-reads", BottleneckKind::ReadLatency)]);
}

#[test]
fn slow_flushes_are_found_in_commits_of_every_server() {
    let commits = [("commits", BottleneckKind::CommitLatency)];
    check("slow-flush", "mariadb", &[commits[0], ("update", BottleneckKind::CommitLatency)]);
    check("slow-flush", "postgresql", &commits);
    check("slow-flush", "sqlite", &[commits[0], ("update", BottleneckKind::CommitLatency)]);
}

#[test]
fn slow_flushes_outside_of_commits_are_found() {
    check("slow-flush", "files", &[("durable-writes", BottleneckKind::WriteLatency)]);
}

#[test]
fn a_narrow_channel_is_found() {
    check("narrow", "small", &[("large-scan", BottleneckKind::Bandwidth)]);
    check("narrow", "files", &[("whole-reads", BottleneckKind::Bandwidth)]);
}

#[test]
fn a_limit_of_requests_is_found() {
    check("few-requests", "small", &[("point-select", BottleneckKind::RequestRate)]);
    check("few-requests", "files", &[("random-reads", BottleneckKind::RequestRate)]);
}

#[test]
fn a_row_that_all_clients_want_is_found() {
    check("quick", "mariadb", &[("hot-row", BottleneckKind::Locks)]);
    check("quick", "postgresql", &[("hot-row", BottleneckKind::Locks)]);
}

#[test]
fn a_file_that_all_sessions_read_and_write_is_found_on_xfs() {
    check("slow-reads", "full", &[("update-all", BottleneckKind::FileLocks)]);
}

#[test]
fn work_for_more_clients_than_cores_is_found() {
    check("quick", "mariadb", &[("read-only", BottleneckKind::Cpu)]);
}

#[test]
fn work_for_one_core_is_found() {
    check("quick", "mariadb", &[("scan", BottleneckKind::OneCore)]);
    check("quick", "postgresql", &[("scan", BottleneckKind::OneCore)]);
    check("quick", "sqlite", &[("scan", BottleneckKind::OneCore)]);
}

#[test]
fn a_load_generator_that_works_more_than_the_server_is_found() {
    check("quick", "mariadb", &[("texts", BottleneckKind::Client)]);
}

#[test]
fn a_replica_that_acknowledges_late_is_found() {
    check("quick", "acknowledged", &[("commits", BottleneckKind::Replica)]);
}
