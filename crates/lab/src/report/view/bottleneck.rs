//! The bottleneck of a cell: the one that most of its trials agree on.

use std::collections::BTreeMap;

use serde::Serialize;
use spindle_stats::mean;

use crate::record::{BottleneckKind, Measurement, words};

#[derive(Debug, Clone, Serialize)]
pub struct CellBottleneck {
    pub name: String,
    /// Number of measured trials with this bottleneck.
    pub trial_count: usize,
    pub reason: String,
    /// Mean shares of the terminals' time by cause, without `cpu`.
    pub shares: BTreeMap<String, f64>,
    /// Busy share of all cores.
    pub cpu: f64,
}

pub(super) fn bottleneck_name(kind: BottleneckKind) -> String {
    match kind {
        BottleneckKind::Cpu => "CPU".to_owned(),
        BottleneckKind::Client => "load generator".to_owned(),
        other => words(&other),
    }
}

pub(super) fn bottleneck(measurements: &[&Measurement]) -> Option<CellBottleneck> {
    let votes = |kind: BottleneckKind| measurements.iter().filter(|m| m.bottleneck.kind == kind).count();
    // Among equally frequent kinds, that of the earliest trial wins. The choice is then independent of the
    // order of names.
    let mut chosen = measurements.first()?;
    for measurement in measurements {
        if votes(measurement.bottleneck.kind) > votes(chosen.bottleneck.kind) {
            chosen = measurement;
        }
    }
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for measurement in measurements {
        for (cause, share) in &measurement.bottleneck.shares {
            *shares.entry(cause.clone()).or_default() += share / measurements.len() as f64;
        }
    }
    let cpu = shares.remove("cpu");
    let busy: Vec<f64> = measurements.iter().map(|measurement| measurement.cpu.busy).collect();
    Some(CellBottleneck {
        name: bottleneck_name(chosen.bottleneck.kind),
        trial_count: votes(chosen.bottleneck.kind),
        reason: chosen.bottleneck.reason.clone(),
        shares,
        cpu: cpu.or_else(|| mean(&busy)).unwrap_or_default(),
    })
}
