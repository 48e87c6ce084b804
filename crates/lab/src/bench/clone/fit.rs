//! Finds the parameters with which the model matches the measurements, by running the model.
//!
//! Coordinate descent: it scales one parameter after the other by factors that shrink from round to round. A
//! step is kept when the sum of squared logarithms of model over measured falls. The method needs no inverse
//! of the model's equations, so it still works when they change.

use spindle_model::StackSpec as Tree;
use spindle_stats::{QuantileFunction, demerit};

use super::draft::Draft;
use crate::bench::fio::Figures;
use crate::bench::raw;
use crate::bench::{Question, Row};
use crate::stack::Origin;

const SEED: u64 = 1;
/// Requests per question. The mean of a disk is then within about one per cent.
const REQUESTS: u64 = 2_000;
/// Bytes per question. The model spends its time on each page of a large request.
const BYTES: u64 = 128 << 20;
/// Factors of each round.
const ROUNDS: [&[f64]; 5] = [
    &[0.25, 0.5, 0.7, 1.4, 2.0, 4.0],
    &[0.5, 0.7, 0.85, 1.2, 1.4, 2.0],
    &[0.8, 0.9, 1.1, 1.25],
    &[0.94, 0.97, 1.03, 1.06],
    &[0.98, 0.99, 1.01, 1.02],
];
/// A smaller gain is noise.
const GAIN: f64 = 1e-7;

/// A question and the figures of the device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Observation {
    pub(super) question: Question,
    /// Length of the range, from the start of the device.
    pub(super) span_bytes: u64,
    pub(super) figures: Figures,
}

/// A parameter to fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Knob {
    /// Scaled by factors.
    Scaled(&'static str),
    /// One of these values.
    OneOf(&'static str, &'static [u64]),
}

impl Knob {
    pub(super) fn key(self) -> &'static str {
        match self {
            Knob::Scaled(key) | Knob::OneOf(key, _) => key,
        }
    }

    fn candidates(self, draft: &Draft, factors: &[f64]) -> Vec<u64> {
        match self {
            Knob::Scaled(key) => {
                let now = draft.number(key).unwrap_or(0) as f64;
                factors.iter().map(|factor| (now * factor).round() as u64).collect()
            }
            Knob::OneOf(_, numbers) => numbers.to_vec(),
        }
    }
}

/// Fits the knobs of the draft to the observations. `origin` becomes the origin of each.
pub(super) fn fit(draft: &mut Draft, size_bytes: u64, knobs: &[Knob], seen: &[Observation], origin: &Origin) {
    let mut error = error(draft, size_bytes, seen);
    for factors in ROUNDS {
        for knob in knobs {
            for number in knob.candidates(draft, factors) {
                let mut moved = draft.clone();
                moved.set(knob.key(), number, origin);
                let new_error = self::error(&moved, size_bytes, seen);
                if new_error < error - GAIN {
                    (*draft, error) = (moved, new_error);
                }
            }
        }
    }
    // A knob that did not move is confirmed by the measurement, so it gets the origin too.
    for knob in knobs {
        draft.set_origin(knob.key(), origin);
    }
}

/// Sum of squared logarithms of model over measured; infinite when the values do not make a device.
pub(super) fn error(draft: &Draft, size_bytes: u64, seen: &[Observation]) -> f64 {
    let square = |observation: &Observation| match answer(draft, size_bytes, observation) {
        Some(row) => ratio(&row, &observation.figures.row).ln().powi(2),
        None => f64::INFINITY,
    };
    seen.iter().map(square).sum()
}

/// Speed of the model divided by the measured speed. Questions with one request in flight are compared by
/// median latency, which a busy host disturbs least; questions with several by rate.
pub(super) fn ratio(model: &Row, measured: &Row) -> f64 {
    match (model.latency_us_p50, measured.latency_us_p50) {
        (Some(model_us), Some(measured_us)) if measured.question.iodepth == 1 && model_us > 0.0 => {
            measured_us / model_us
        }
        _ => model.per_second / measured.per_second,
    }
}

/// The model's answer to the observed question.
pub(super) fn answer(draft: &Draft, size_bytes: u64, observation: &Observation) -> Option<Row> {
    Some(sample(draft, size_bytes, observation)?.0)
}

/// Distance of the model's distribution of latencies from the observed one, as a share of the observed mean.
pub(super) fn distance(draft: &Draft, size_bytes: u64, observation: &Observation) -> Option<f64> {
    let (_, latencies_us) = sample(draft, size_bytes, observation)?;
    demerit(&observation.figures.distribution()?, &QuantileFunction::of_samples(&latencies_us)?)?
        .share_of_mean
}

fn sample(draft: &Draft, size_bytes: u64, observation: &Observation) -> Option<(Row, Vec<f64>)> {
    let device = Tree::Device(draft.parameters().ok()?).build(size_bytes, SEED).ok()?;
    let requests = raw::Requests {
        span_bytes: observation.span_bytes,
        count: REQUESTS.min(BYTES / observation.question.block_bytes),
    };
    raw::sample(device, SEED, &observation.question, requests)
}
