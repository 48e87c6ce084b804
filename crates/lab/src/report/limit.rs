//! What a cell waited for: the limiter that most of its trials agree on.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_stats::mean;

use crate::record::{LimiterKind, Measurement};

#[derive(Debug, Clone, Serialize)]
pub struct Limit {
    pub name: String,
    /// How many of the measured trials agree.
    pub trial_count: usize,
    pub reason: String,
    /// Mean shares of the terminals' time by cause; without `cpu`.
    pub shares: BTreeMap<String, f64>,
    /// Share of all cores that was busy.
    pub cpu: f64,
}

pub(super) fn limiter_name(kind: LimiterKind) -> &'static str {
    match kind {
        LimiterKind::Cpu => "CPU",
        LimiterKind::ReadLatency => "read latency",
        LimiterKind::CommitLatency => "commit latency",
        LimiterKind::Bandwidth => "bandwidth",
        LimiterKind::Locks => "locks",
        LimiterKind::Client => "load generator",
        LimiterKind::Unknown => "unknown",
    }
}

pub(super) fn limit(measurements: &[&Measurement]) -> Option<Limit> {
    let votes = |kind: LimiterKind| measurements.iter().filter(|m| m.limiter.kind == kind).count();
    // Of equally frequent kinds the first trial's wins, so that the choice does not depend on an order of names.
    let mut chosen = measurements.first()?;
    for measurement in measurements {
        if votes(measurement.limiter.kind) > votes(chosen.limiter.kind) {
            chosen = measurement;
        }
    }
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for measurement in measurements {
        for (cause, share) in &measurement.limiter.shares {
            *shares.entry(cause.clone()).or_default() += share / measurements.len() as f64;
        }
    }
    let cpu = shares.remove("cpu");
    let busy: Vec<f64> = measurements.iter().map(|measurement| measurement.cpu.busy).collect();
    Some(Limit {
        name: limiter_name(chosen.limiter.kind).to_owned(),
        trial_count: votes(chosen.limiter.kind),
        reason: chosen.limiter.reason.clone(),
        shares,
        cpu: cpu.or_else(|| mean(&busy)).unwrap_or_default(),
    })
}
