//! The bottleneck of a cell: the one that most of its trials agree on.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_stats::mean;

use super::cell::CellView;
use crate::record::{BottleneckKind, Measurement, Trial};
use crate::report::format::{percent, the_first};

#[derive(Debug, Clone, Serialize)]
pub struct CellBottleneck {
    pub name: String,
    /// Number of measured trials with this bottleneck.
    pub trial_count: usize,
    /// The mean share of the cause, in words. `None` where it has no share.
    pub average: Option<String>,
    /// The figures of one trial: of those with this bottleneck, the one whose share is closest to the mean.
    pub reason: String,
    pub reason_trial: u32,
    /// Mean shares of the terminals' time by cause.
    pub shares: BTreeMap<String, f64>,
    /// Busy share of all cores.
    pub cpu: f64,
}

/// The share that decides about a bottleneck, by its name in the records.
fn cause(kind: BottleneckKind) -> Option<&'static str> {
    match kind {
        BottleneckKind::ReadLatency => Some("read"),
        BottleneckKind::CommitLatency | BottleneckKind::Replica => Some("commit"),
        BottleneckKind::WriteLatency => Some("storage"),
        BottleneckKind::OneCore => Some("work"),
        BottleneckKind::RequestRate => Some("requests"),
        BottleneckKind::Locks => Some("locks"),
        BottleneckKind::FileLocks => Some("file-locks"),
        BottleneckKind::Cpu => Some("cpu"),
        BottleneckKind::Bandwidth => Some("bandwidth"),
        BottleneckKind::Client | BottleneckKind::Unknown => None,
    }
}

/// Continues "was limited by reads in all 3 trials".
fn average_words(cause: &str, share: f64) -> String {
    let share = percent(share);
    match cause {
        "cpu" => format!("with the cores {share} busy on average"),
        "requests" => format!("with {share} of the requests per second used on average"),
        "bandwidth" => format!("with {share} of the bandwidth used on average"),
        _ => format!("on average for {share} of the terminals' time"),
    }
}

pub(super) fn bottleneck(trials: &[(&Trial, &Measurement)]) -> Option<CellBottleneck> {
    let votes = |kind: BottleneckKind| trials.iter().filter(|(_, m)| m.bottleneck.kind == kind).count();
    // Among equally frequent kinds, that of the earliest trial wins. The choice is then independent of the
    // order of names.
    let mut kind = trials.first()?.1.bottleneck.kind;
    for (_, measurement) in trials {
        if votes(measurement.bottleneck.kind) > votes(kind) {
            kind = measurement.bottleneck.kind;
        }
    }
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for (name, share) in trials.iter().flat_map(|(_, measurement)| &measurement.bottleneck.shares) {
        *shares.entry(name.clone()).or_default() += share / trials.len() as f64;
    }
    let deciding = cause(kind).and_then(|cause| Some((cause, *shares.get(cause)?)));
    let distance = |measurement: &Measurement| {
        let share =
            |(cause, mean): (&str, f64)| Some((measurement.bottleneck.shares.get(cause)? - mean).abs());
        deciding.and_then(share).unwrap_or(0.0)
    };
    let agreeing = trials.iter().filter(|(_, measurement)| measurement.bottleneck.kind == kind);
    let (trial, typical) = agreeing.min_by(|left, right| distance(left.1).total_cmp(&distance(right.1)))?;
    let cpu = shares.remove("cpu");
    // These are no shares of the terminals' time either.
    shares.retain(|name, _| !["bandwidth", "requests"].contains(&name.as_str()));
    let busy: Vec<f64> = trials.iter().map(|(_, measurement)| measurement.cpu.busy).collect();
    Some(CellBottleneck {
        name: kind.name(),
        trial_count: votes(kind),
        average: deciding.map(|(cause, share)| average_words(cause, share)),
        reason: typical.bottleneck.sentences(),
        reason_trial: trial.trial,
        shares,
        cpu: cpu.or_else(|| mean(&busy)).unwrap_or_default(),
    })
}

/// The bottleneck of a cell in a sentence, with its figures.
pub(super) fn bottleneck_sentence(cell: &CellView) -> Option<String> {
    let bottleneck = cell.bottleneck.as_ref()?;
    let count = cell.trials.len();
    let agreement = match (bottleneck.trial_count, count) {
        (_, 1) => "in its only trial".to_owned(),
        (2, 2) => "in both trials".to_owned(),
        (agreeing, count) if agreeing == count => format!("in all {count} trials"),
        (agreeing, count) => format!("in {agreeing} of {count} trials"),
    };
    let title = the_first(&cell.title);
    let verdict = match bottleneck.name.as_str() {
        "unknown" => format!("{title} had no single bottleneck {agreement}"),
        limit => format!("{title} was limited by {limit} {agreement}"),
    };
    let reason = bottleneck.reason.as_str();
    if count == 1 || reason.is_empty() {
        return Some(format!("{verdict}. {reason}").trim_end().to_owned());
    }
    let average = bottleneck.average.as_ref().map_or_else(String::new, |words| format!(", {words}"));
    // About busy cores, the average says all.
    if bottleneck.name == "CPU" && bottleneck.average.is_some() {
        return Some(format!("{verdict}{average}."));
    }
    Some(format!("{verdict}{average}. Trial {}: {reason}", bottleneck.reason_trial))
}
