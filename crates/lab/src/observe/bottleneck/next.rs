//! What to try next, and how much it can give at most.
//!
//! The bound is Amdahl's law (Validity of the single processor approach to achieving large scale computing
//! capabilities, 1967): without a part p of the time, the rest takes 1 - p, so the throughput grows at most
//! 1 / (1 - p) times, and with that part s times as fast, 1 / (1 - p + p / s) times. No step helps beyond the
//! point at which the programs keep all cores busy: the utilization law (Denning and Buzen, The operational
//! analysis of queueing network models, 1978). Both take the work of a transaction as constant.

use super::shares::Shares;
use crate::record::{BottleneckKind, Evidence, NextStep, RateOf};

/// Above this, a bound is of no use, because the share behind it is hardly known to one percent.
const TIMES_MOST: f64 = 50.0;
/// A smaller share is worth no step.
const WORTH: f64 = 0.05;
/// How much faster the steps make what they make faster, where they cannot remove it.
const FASTER: f64 = 2.0;

/// The bound without a part of the time.
fn without(share: f64) -> f64 {
    1.0 / (1.0 - share.clamp(0.0, 1.0))
}

/// The bound with a part of the time [`FASTER`].
fn with_faster(share: f64) -> f64 {
    let share = share.clamp(0.0, 1.0);
    1.0 / (1.0 - share + share / FASTER)
}

/// The bound of a resource that is used to this share, when there is [`FASTER`] as much of it.
fn with_more(share: f64) -> f64 {
    FASTER / share.clamp(f64::MIN_POSITIVE, 1.0)
}

/// For a sentence: 2.6, 2, 14.
fn times(bound: f64) -> String {
    let bound = bound.max(1.0);
    let digits = if bound < 9.95 { format!("{bound:.1}") } else { format!("{bound:.0}") };
    digits.strip_suffix(".0").map(str::to_owned).unwrap_or(digits)
}

/// "STEP can give at most 2.6 times."
fn bounded(step: &str, bound: f64) -> NextStep {
    let bound = bound.max(1.0);
    if bound > TIMES_MOST {
        let most = times(TIMES_MOST);
        let sentence = format!("{step} can give much: the shares set no limit below {most} times.");
        return NextStep { sentence, at_most: None };
    }
    NextStep { sentence: format!("{step} can give at most {} times.", times(bound)), at_most: Some(bound) }
}

/// As [`bounded`], with the cores as the next limit.
fn removed(step: &str, share: f64, evidence: &Evidence) -> NextStep {
    let bound = without(share);
    let Some(cores) = all_cores(evidence).filter(|cores| *cores < bound) else { return bounded(step, bound) };
    let NextStep { sentence, at_most } = bounded(step, cores);
    let sentence = format!("{}: then all cores are busy.", sentence.trim_end_matches('.'));
    NextStep { sentence, at_most }
}

/// How much more throughput the cores allow.
fn all_cores(evidence: &Evidence) -> Option<f64> {
    let is_known = !evidence.is_server_cpu_unknown && evidence.cpu_programs > 0.0;
    is_known.then(|| 1.0 / evidence.cpu_programs.min(1.0))
}

pub(super) fn step(kind: BottleneckKind, evidence: &Evidence, shares: &Shares) -> NextStep {
    match kind {
        BottleneckKind::Client => {
            removed("A load generator that needs no time", shares.client_work, evidence)
        }
        BottleneckKind::Cpu if shares.queue > shares.work => {
            bounded("A core for each terminal", without(shares.queue))
        }
        BottleneckKind::Cpu => bounded("Twice the cores", with_more(evidence.cpu_busy)),
        BottleneckKind::OneCore => one_core(evidence, shares),
        BottleneckKind::Bandwidth | BottleneckKind::RequestRate => {
            let rate = evidence.rate.clone().unwrap_or_default();
            let step = match rate.of {
                RateOf::Bytes => "A device with twice the bandwidth",
                RateOf::Requests => "A device for twice the requests per second",
            };
            bounded(step, with_more(rate.share))
        }
        BottleneckKind::Locks if evidence.writer_wait_s.is_some() => {
            bounded("One connection that does all writes", without(shares.locks))
        }
        BottleneckKind::Locks => removed("Transactions that share no rows", shares.locks, evidence),
        // The one file system of which the kernel tells these waits is XFS.
        BottleneckKind::FileLocks => removed(
            "A file system whose reads take no lock of the file, as ext4's,",
            shares.file_locks,
            evidence,
        ),
        BottleneckKind::ReadLatency => {
            removed("Memory for all data, or storage that reads at once,", shares.reads(), evidence)
        }
        BottleneckKind::CommitLatency => {
            let step = match evidence.redo {
                Some(_) => "A log drive that writes at once",
                None => "A log on its own drive",
            };
            removed(step, shares.commit, evidence)
        }
        BottleneckKind::Replica => {
            let share = shares.commit * evidence.acknowledged_share();
            removed("Commits that wait for no replica", share, evidence)
        }
        BottleneckKind::WriteLatency => removed("Storage that writes at once", shares.writes(), evidence),
        BottleneckKind::Unknown => unknown(evidence, shares),
    }
}

fn one_core(evidence: &Evidence, shares: &Shares) -> NextStep {
    if let Some(thread) = evidence.busy_thread().filter(|_| evidence.terminals > 1) {
        return bounded("A core twice as fast", with_more(thread.share));
    }
    let faster = with_faster(shares.work);
    let has_one_writer = evidence.writer_wait_s.is_some() && shares.commit > 0.0;
    match all_cores(evidence).filter(|_| !has_one_writer) {
        Some(more) if more > faster => {
            let parallel = bounded("More clients at once", more);
            let sentence = format!(
                "{}, and a core twice as fast at most {}.",
                parallel.sentence.trim_end_matches('.'),
                times(faster)
            );
            NextStep { sentence, at_most: Some(more.max(faster)) }
        }
        _ => bounded("A core twice as fast", faster),
    }
}

/// The figure that would tell more, and the bound of the largest share.
fn unknown(evidence: &Evidence, shares: &Shares) -> NextStep {
    let sought = if evidence.threads.is_none() && evidence.is_server_cpu_unknown {
        "The CPU time of the server's threads would tell more"
    } else if evidence.commit_s().is_none() {
        "A stopwatch around COMMIT would tell more"
    } else if shares.other >= 0.5 {
        "The server's own account of its waits would tell more"
    } else {
        "Several causes share the time, so change one at a time"
    };
    let causes = [
        ("reads", shares.reads()),
        ("commits and writes", shares.writes()),
        ("row locks", shares.locks),
        ("locks of files", shares.file_locks),
        ("work on a core", shares.cores()),
    ];
    let largest = causes.into_iter().reduce(|best, cause| if cause.1 > best.1 { cause } else { best });
    let (cause, share) = largest.unwrap_or_default();
    if share < WORTH {
        return NextStep { sentence: format!("{sought}."), at_most: None };
    }
    let bound = without(share);
    let sentence = format!("{sought}; without {cause}, at most {} times.", times(bound));
    NextStep { sentence, at_most: Some(bound) }
}
