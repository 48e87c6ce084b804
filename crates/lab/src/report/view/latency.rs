//! Quantiles over all trials of a cell together. They come from the sum of the histograms, because quantiles
//! cannot be averaged.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;
use spindle_base::histogram::decode;
use spindle_base::text;
use spindle_stats::fewest_for_quantile;

use crate::record::{Latency, Measurement};
use crate::report::format;

/// Probabilities in the table of a quantile curve.
pub(in crate::report) const PROBABILITIES: [f64; 8] = [0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999];

/// Whether a quantile of so many transactions is given. The only rule about it, for every format.
pub(super) fn is_shown(count: u64, probability: f64) -> bool {
    count >= fewest_for_quantile(probability)
}

/// The reason for a hidden quantile of the cells' table.
pub(super) fn footnote<'a>(cells: impl Iterator<Item = &'a Quantiles> + Clone) -> Option<String> {
    let hides =
        |quantile: fn(&Quantiles) -> Option<f64>| cells.clone().any(|latency| quantile(latency).is_none());
    let hidden = [
        ("p50", 0.5, hides(|latency| latency.p50_ms)),
        ("p95", 0.95, hides(|latency| latency.p95_ms)),
        ("p99", 0.99, hides(|latency| latency.p99_ms)),
    ];
    let hidden = hidden.into_iter().filter(|(.., hidden)| *hidden);
    let needs = hidden.map(|(name, probability, _)| {
        format!("{name} needs {} transactions", format::count(fewest_for_quantile(probability)))
    });
    let needs: Vec<String> = needs.collect();
    (!needs.is_empty())
        .then(|| format!("A dash stands for a quantile of too few transactions: {}.", format::list(needs)))
}

#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct Quantiles {
    pub count: u64,
    pub mean_ms: f64,
    /// `None`, as for all quantiles here, when there are too few transactions for it ([`is_shown`]).
    pub p50_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub max_ms: f64,
    /// Quantiles at [`PROBABILITIES`].
    pub table_ms: Vec<Option<f64>>,
    /// Points of the curve: number of nines (-log10 of the share above) and milliseconds.
    pub curve: Vec<(f64, f64)>,
}

/// Why a measured cell has no quantiles, for a sentence that begins with its title.
pub(super) fn why_unknown<'a>(mut measurements: impl Iterator<Item = &'a Measurement>) -> String {
    let Some(production) = measurements.find_map(|measurement| measurement.production.as_ref()) else {
        return "has no complete latency histograms, so no quantiles".to_owned();
    };
    let at_work = production.transaction_at_work_ms.map_or_else(String::new, |ms| {
        let ms = format::number(ms);
        format!("; by Little's law, a transaction was at work for {ms} ms on average")
    });
    let every = (production.every_s != 1.0).then(|| {
        let every = text::duration(Duration::from_secs_f64(production.every_s));
        format!("; a value over time is of {every}, not of a second")
    });
    format!("was observed by counters, which time no transaction{at_work}{}", every.unwrap_or_default())
}

/// `None` without a transaction, or when a histogram is missing or damaged.
pub(super) fn merged<'a>(latencies: impl Iterator<Item = &'a Latency>) -> Option<Quantiles> {
    let mut all: Option<Histogram<u64>> = None;
    for latency in latencies.filter(|latency| latency.count > 0) {
        let histogram = decode(&latency.histogram).ok()?;
        match &mut all {
            Some(sum) => sum.add(&histogram).ok()?,
            None => all = Some(histogram),
        }
    }
    let histogram = all.filter(|histogram| !histogram.is_empty())?;
    let at = |probability: f64| histogram.value_at_quantile(probability) as f64 / 1000.0;
    let count = histogram.len();
    let quantile = |probability: f64| is_shown(count, probability).then(|| at(probability));
    let curve = (0..=74)
        .map(|step| std::f64::consts::LOG10_2 + f64::from(step) * 0.05)
        .take_while(|nines| *nines <= 4.001 && is_shown(count, 1.0 - 10_f64.powf(-nines)))
        .map(|nines| (nines, at(1.0 - 10_f64.powf(-nines))))
        .collect();
    Some(Quantiles {
        count,
        mean_ms: histogram.mean() / 1000.0,
        p50_ms: quantile(0.5),
        p95_ms: quantile(0.95),
        p99_ms: quantile(0.99),
        max_ms: histogram.max() as f64 / 1000.0,
        table_ms: PROBABILITIES.iter().map(|probability| quantile(*probability)).collect(),
        curve,
    })
}
