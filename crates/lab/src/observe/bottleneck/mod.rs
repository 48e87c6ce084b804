//! The bottleneck of a trial, and the warnings for the reader. Pure functions of a few figures
//! ([`Evidence`]), each of which may be missing.
//!
//! The shares are estimates from independent counters and need not add up to one:
//! * `read`: foreground reads times the mean latency of reads as the kernel saw it, over the terminals' time.
//!   Foreground reads are the reads that a transaction waited for, as the server counts them, without
//!   read-ahead; at most as many as reached the device below the page cache. Where each session is a process (PostgreSQL),
//!   the sessions that wait for a page are counted instead, five times a second: the page cache reads more than it was
//!   asked for, and many of its reads keep nobody waiting. Where the clients' own threads
//!   read (SQLite, files), all reads of the device count. The kernel's latency includes time behind a FLUSH.
//!   In a ZFS pool, reads of the data disk and of the cache device count together; hits in its memory (ARC) do
//!   not count.
//! * `commit`: the terminals' own stopwatch around COMMIT, or that of SQLite inside the client. Where
//!   transactions commit within a statement, or a foreign tool keeps no stopwatch, an estimate replaces it
//!   (`measurement/commits.rs`; METHODOLOGY.md compares it with the stopwatch). The estimate is the server's
//!   number of commits, times a write and a FLUSH of each log that a commit waits for, as the kernel saw them.
//!   The same time is added once more in proportion to the share of the time in which the other terminals keep
//!   the log busy. It is at most the time without work. The estimate is zero where the settings let a commit return without waiting. A
//!   semi-synchronous primary's wait for a replica is included in the stopwatch, and added to the estimate.
//! * `locks`: time that sessions waited for row locks: as summed by the server, or from the number of waiting
//!   sessions once a second. A database with one writer at a time (SQLite) differs: all of its writers wait
//!   for the time that one of them works, so shares are of the time without those waits, and `locks` is the
//!   time in which none of them worked.
//! * `file-locks`: time that threads of the server waited for the lock of a file, from their number five times a second
//!   (`/proc/PID/task/TID/wchan`). On XFS a buffered write waits for all buffered reads of its file.
//! * `work`: CPU time of the load generator and of the server's busiest threads, one for each terminal.
//! * `queue`: waits for a core, estimated from `work` and the trial's use of the cores (`shares.rs`).
//! * `storage`: the rest of the terminals' time, as far as a device was busy in it. It counts as reads or as
//!   writes, as the device spent its time: page writes, full logs and FLUSHes outside of commits.
//! * `cpu`: busy share of all cores of the machine.
//! * `bandwidth`, `requests`: use of the rate that the parameters of a device state.
//!
//! The first rule that holds decides:
//! 1. `client`: the load generator used [`CLIENT_BUSY`] of the cores that its threads can use. Nothing behind
//!    it was tested. Inside the client, SQLite is the server.
//! 2. `cpu`: the cores were busy for [`CPU_BUSY`], and [`CPU_OWN`] of all cores with the trial itself. Waits
//!    then include waits for a core, so they prove nothing. Other processes that keep the cores busy cause a
//!    warning instead: where they took [`CPU_OTHERS`], and the terminals worked, or waited for row locks, for
//!    most of their time.
//! 3. `bandwidth`, `request-rate`: [`BANDWIDTH_BUSY`] of a stated rate was used.
//! 4. `one-core`: a thread of the server kept a core busy for [`CORE_BUSY`].
//! 5. `locks`, if they are at least [`WAIT_SHARE`] and exceed reads, commits, writes and locks of files together: a
//!    lock is held as long as its owner waits for the disk.
//! 6. The largest of four groups, if it is at least [`WAIT_SHARE`]: reads; commits and other writes; cores
//!    (`work` and `queue`); locks of files. Commits and writes are one group because one device slows both. The
//!    larger part of a group names the bottleneck: `commit-latency`, `write-latency` or, where most of the
//!    commits' time is a replica's, `replica`; `one-core`, `cpu` or, where most of the work is the load
//!    generator's, `client`.
//! 7. Otherwise unknown, and the sentence states the shares.

mod next;
mod shares;
#[cfg(test)]
mod tests;
mod warnings;
mod words;

use crate::record::{Bottleneck, BottleneckKind, CPU_BUSY, CPU_OTHERS, CPU_OWN, Evidence, RateOf};
use shares::Shares;
pub use warnings::{Symptoms, warnings};

pub const CLIENT_BUSY: f64 = 0.80;
pub const BANDWIDTH_BUSY: f64 = 0.80;
/// A thread cannot do better than this while it waits for its next task now and then.
pub const CORE_BUSY: f64 = 0.90;
pub const WAIT_SHARE: f64 = 0.30;
/// The larger part.
const MOSTLY: f64 = 0.5;

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

pub fn verdict(evidence: &Evidence) -> Bottleneck {
    let shares = Shares::of(evidence);
    let kind = kind(evidence, &shares);
    Bottleneck {
        kind,
        shares: shares.by_name(evidence),
        reason: words::reason(kind, evidence, &shares),
        next: Some(next::step(kind, evidence, &shares)),
        evidence: Some(Box::new(evidence.clone())),
    }
}

fn kind(evidence: &Evidence, shares: &Shares) -> BottleneckKind {
    if evidence.client_share >= CLIENT_BUSY && !evidence.is_client_the_database {
        return BottleneckKind::Client;
    }
    let are_cores_full = evidence.cpu_busy >= CPU_BUSY && evidence.cpu_own >= CPU_OWN;
    if are_cores_full && !is_filled_by_others(evidence, shares) {
        return BottleneckKind::Cpu;
    }
    if let Some(rate) = evidence.rate.as_ref().filter(|rate| rate.share >= BANDWIDTH_BUSY) {
        return match rate.of {
            RateOf::Bytes => BottleneckKind::Bandwidth,
            RateOf::Requests => BottleneckKind::RequestRate,
        };
    }
    if evidence.busy_thread().is_some() {
        return BottleneckKind::OneCore;
    }
    let (reads, writes, cores) = (shares.reads(), shares.writes(), shares.cores());
    if shares.locks >= WAIT_SHARE && shares.locks > reads + writes + shares.file_locks {
        return BottleneckKind::Locks;
    }
    let groups = [
        (reads, BottleneckKind::ReadLatency),
        (writes, kind_of_writes(evidence, shares)),
        (cores, kind_of_cores(evidence, shares)),
        (shares.file_locks, BottleneckKind::FileLocks),
    ];
    // Among equals the first wins.
    let largest = groups.into_iter().reduce(|best, group| if group.0 > best.0 { group } else { best });
    largest.filter(|(share, _)| *share >= WAIT_SHARE).map_or(BottleneckKind::Unknown, |(_, kind)| kind)
}

/// Whether other programs take what the trial leaves of the cores, and hardly disturb it: its terminals work
/// or wait for row locks for most of their time, so they do not wait for a core for most of it.
fn is_filled_by_others(evidence: &Evidence, shares: &Shares) -> bool {
    evidence.cpu_busy - evidence.cpu_own >= CPU_OTHERS && shares.work.max(shares.locks) >= MOSTLY
}

fn kind_of_writes(evidence: &Evidence, shares: &Shares) -> BottleneckKind {
    if shares.storage_writes > shares.commit {
        BottleneckKind::WriteLatency
    } else if evidence.acknowledged_share() > MOSTLY {
        BottleneckKind::Replica
    } else {
        BottleneckKind::CommitLatency
    }
}

fn kind_of_cores(evidence: &Evidence, shares: &Shares) -> BottleneckKind {
    if shares.queue > shares.work {
        BottleneckKind::Cpu
    } else if shares.client_work > shares.work / 2.0 && !evidence.is_client_the_database {
        BottleneckKind::Client
    } else {
        BottleneckKind::OneCore
    }
}
