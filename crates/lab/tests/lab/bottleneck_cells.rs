//! The bottlenecks of forty short trials in which nothing is constructed: five servers and eight workloads on
//! one drive, an X25-M, with all data in memory. Their figures were recorded once
//! (`bottleneck_cells/cells.jsonl`); the rule is applied to them again.
//!
//! `bottleneck_cells/cells.toml` is the scenario. The figures are those of its records: `jq -c 'select(.line ==
//! "trial") | {cell, evidence: .measurement.bottleneck.evidence}' records.jsonl | sort`

use std::collections::BTreeMap;

use serde::Deserialize;
use spindle_lab::observe::bottleneck::verdict;
use spindle_lab::record::BottleneckKind::{self, CommitLatency, OneCore, WriteLatency};
use spindle_lab::record::Evidence;

const CELLS: &str = include_str!("bottleneck_cells/cells.jsonl");
const UNKNOWN_MOST: usize = 4;
const SERVERS: [&str; 5] = ["mariadb", "mysql", "mysql-5-6", "postgresql", "sqlite"];

#[derive(Debug, Deserialize)]
struct Recorded {
    cell: String,
    evidence: Evidence,
}

fn recorded() -> BTreeMap<String, Evidence> {
    let cells = CELLS.lines().map(|line| serde_json::from_str(line).unwrap());
    cells.map(|Recorded { cell, evidence }| (cell.trim_start_matches("x25m/").to_owned(), evidence)).collect()
}

/// A FLUSH of the drive takes 2 ms or more, and a statement on data in memory takes tenths of that. So whatever
/// commits after few statements waits for its commits. The exceptions are the others.
const COMMITS_AFTER_FEW_STATEMENTS: [&str; 5] = ["tpcc", "oltp", "wide-tables", "slap", "fsync-loop"];

/// The expected bottleneck of each cell; more than one where two causes are equal by the construction of the
/// server.
fn expected(server: &str, workload: &str) -> &'static [BottleneckKind] {
    match (server, workload) {
        (_, workload) if COMMITS_AFTER_FEW_STATEMENTS.contains(&workload) => &[CommitLatency],
        // One client, and a table in memory. It is too small for PostgreSQL's parallel workers.
        (_, "scan") => &[OneCore],
        // A thousand rows a statement fill the pages of four indexes, and are committed together: the commit's
        // FLUSH comes behind the page writes on the same device. SQLite writes all of its pages in commits.
        ("sqlite" | "mariadb", "insert-growth") => &[CommitLatency],
        (_, "insert-growth") => &[CommitLatency, WriteLatency],
        // MariaDB makes the indexes of an empty table at the end of its load, with one thread, and SQLite inserts
        // row by row in the client. Neither has a log of these rows that must be flushed meanwhile.
        ("mariadb" | "sqlite", "bulk") => &[OneCore],
        // Both MySQLs write every row to the log and the pages; TRUNCATE flushes what it drops.
        ("mysql" | "mysql-5-6", "bulk") => &[WriteLatency],
        // PostgreSQL writes most of a load's log when the load commits: megabytes at the drive's 70 MB/s.
        ("postgresql", "bulk") => &[CommitLatency],
        _ => panic!("nothing is expected of {server}, {workload}"),
    }
}

#[test]
fn of_forty_cells_at_most_four_are_unknown_and_none_is_wrong() {
    let cells = recorded();
    assert_eq!(cells.len(), 40);
    let mut unknown = Vec::new();
    let mut wrong = Vec::new();
    for (cell, evidence) in &cells {
        let (server, workload) = cell.split_once('/').unwrap();
        assert!(SERVERS.contains(&server), "{cell}");
        let found = verdict(evidence);
        let sentences = format!("{cell}: {:?}: {} {:?}", found.kind, found.sentences(), found.shares);
        match found.kind {
            BottleneckKind::Unknown => unknown.push(sentences),
            kind if expected(server, workload).contains(&kind) => {}
            _ => wrong.push(sentences),
        }
    }
    assert!(wrong.is_empty(), "wrong: {wrong:#?}, unknown: {unknown:#?}");
    assert!(unknown.len() <= UNKNOWN_MOST, "unknown: {unknown:#?}");
}

#[test]
fn every_cell_has_a_next_step_with_a_bound_of_one_or_more() {
    for (cell, evidence) in recorded() {
        let next = verdict(&evidence).next.unwrap();
        assert!(next.sentence.ends_with('.') && !next.sentence.contains("NaN"), "{cell}: {next:?}");
        assert!(next.at_most.is_none_or(|bound| (1.0..=50.0).contains(&bound)), "{cell}: {next:?}");
    }
}
