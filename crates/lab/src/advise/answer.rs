//! The answer: one row for each storage, ranked.

use serde::Serialize;
use spindle_twin::Facts;

use super::memory::Memory;
use super::need::Need;
use super::prediction::{Storage, predict, predict_both, with_slower_cores};
use super::prices::Prices;
use super::row::{Offered, Row};
use super::source::Source;
use crate::record::Warning;

/// The measured storage, predicted from itself.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SelfPrediction {
    pub predicted: f64,
    pub measured: f64,
}

/// Everything that the formats lay out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Answer {
    /// The cell from which everything is predicted, and why it suffices.
    pub cell: String,
    pub why_this_cell: String,
    pub metric: String,
    /// As written.
    pub need: Option<String>,
    pub years: u64,
    /// `None` if the storage of today is not known.
    pub itself: Option<SelfPrediction>,
    /// The best first.
    pub rows: Vec<Row>,
    /// Storages that could not be predicted, with the reasons.
    pub left_out: Vec<String>,
    /// What the measured trial itself warns of, and what it cannot tell.
    pub doubts: Vec<String>,
}

/// What is asked besides the storages.
#[derive(Debug)]
pub struct Question<'a> {
    pub need: Option<&'a Need>,
    pub prices: &'a Prices,
    /// What the trace tells of other buffer pools; without a trace the answer has no row of memory.
    pub memory: Option<&'a Memory>,
    /// Why this cell was taken.
    pub why_this_cell: &'a str,
    pub years: u64,
    pub seed: u64,
}

/// Sizes of buffer pools in the answer, in sizes of the measured one.
const POOLS: [u64; 3] = [2, 4, 8];
/// Measured throughput with more memory, at most in that of the prediction, where the trace was long enough
/// (docs/results/twin.md).
const MEMORY_ERROR: f64 = 1.35;
/// A prediction of the measured storage itself that is off by more is said first.
const SELF_ERROR_MOST: f64 = 0.15;
/// Simulated time: the longest, so that a checkpoint is in it on a disk too.
pub(super) const SECONDS: f64 = 60.0;

impl SelfPrediction {
    /// 0.1 if the prediction is 10 % too high.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    /// The model does not fit this database well.
    pub fn is_off(&self) -> bool {
        self.error().abs() > SELF_ERROR_MOST
    }
}

impl Answer {
    /// The sentence that the answer begins with.
    pub fn sentence(&self) -> String {
        let meeting = self.rows.iter().filter(|row| row.meets());
        let Some(need) = &self.need else {
            let best = self.rows.first().map_or("no storage", |row| row.label.as_str());
            return format!("The fastest of {} storages is {best}.", self.rows.len());
        };
        match (meeting.clone().find(|row| row.price.is_some()), meeting.clone().next()) {
            (Some(row), _) => {
                format!("The cheapest storage for {need} is {}: {}.", row.label, row.price_words())
            }
            (None, Some(row)) => {
                format!("{} meets {need}; no price of a storage that does is known.", row.label)
            }
            (None, None) => match self.nearest() {
                Some(row) => format!(
                    "No storage meets {need}. The nearest is {}: {}.",
                    row.label,
                    row.against.join("; ")
                ),
                None => "No storage was predicted.".to_owned(),
            },
        }
    }

    fn nearest(&self) -> Option<&Row> {
        self.rows.iter().max_by(|a, b| a.predicted.total_cmp(&b.predicted))
    }

    /// Names of the rows that cost least for what they give: no other is faster and as cheap.
    pub fn pareto(&self) -> Vec<&str> {
        let priced: Vec<(&Row, f64)> =
            self.rows.iter().filter_map(|row| Some((row, row.price.as_ref()?.total))).collect();
        let is_beaten = |row: &Row, total: f64| {
            priced.iter().any(|(other, cost)| {
                row.is_priced_as(other) && *cost <= total && other.predicted > row.predicted
            })
        };
        let best = priced.iter().filter(|(row, total)| !is_beaten(row, *total));
        best.map(|(row, _)| row.name.as_str()).collect()
    }
}

/// Predicts the database on each storage, and ranks them.
pub fn answer(
    source: &Source<'_>,
    facts: &Facts,
    today: Option<&Storage>,
    (candidates, left_out): (&[Storage], Vec<String>),
    question: &Question<'_>,
) -> Answer {
    let metric = &source.measurement.metric;
    let of_transaction = source.metric_of_transaction();
    let own = today.map(|today| predict(facts, today, source.measurement.duration_s, question.seed));
    let at_full_load = |today| predict_both(facts, today, None, SECONDS, question.seed).capacity.per_second();
    let offered = Offered {
        of_transaction,
        todays: today.map_or(metric.value, |today| at_full_load(today) * of_transaction),
        needed_per_s: question.need.map(|need| need.in_units_of(&metric.name) / of_transaction),
        data_bytes: source.data_bytes,
        metric: &metric.name,
    };
    let mut rows: Vec<Row> = candidates
        .iter()
        .map(|storage| {
            let prediction = predict_both(facts, storage, offered.needed_per_s, SECONDS, question.seed);
            Row::of(storage, &prediction, &offered, question)
        })
        .collect();
    let measured = question.memory.zip(today);
    rows.extend(
        measured
            .into_iter()
            .flat_map(|(memory, today)| with_memory(memory, facts, today, &offered, question)),
    );
    rows.sort_by(|a, b| a.compare(b));
    let warnings = source.trial.warnings.iter().filter(|warning| !warning.is_of_machine());
    Answer {
        doubts: warnings.map(Warning::sentence).chain(doubt_of_work(source)).collect(),
        cell: source.cell.name.clone(),
        why_this_cell: question.why_this_cell.to_owned(),
        metric: metric.name.clone(),
        need: question.need.map(|need| need.text.clone()),
        years: question.years,
        itself: own.map(|own| SelfPrediction {
            predicted: own.per_second() * of_transaction,
            measured: metric.value,
        }),
        rows,
        left_out,
    }
}

/// Cores that a server kept busy, below which a transaction takes more of the processor than on a busy machine: its
/// caches are cold, and the server's own housekeeping counts as work (docs/results/twin.md).
const AT_WORK_LEAST: f64 = 0.1;

fn doubt_of_work(source: &Source<'_>) -> Option<String> {
    let measurement = source.measurement;
    // Neither goes by the database's clock.
    let cores = measurement.cpu.server_s / measurement.duration_s * measurement.dilation.factor();
    (cores > 0.0 && cores < AT_WORK_LEAST).then(|| {
        format!(
            "The server used {:.1} % of a core. At so little work a transaction takes more of the processor than on a busy machine, \
             so fast storage may do better than predicted.",
            cores * 100.0
        )
    })
}

/// What a row would predict for cores as they are at that dilation, in the unit of the measured metric.
pub fn predicted_at(source: &Source<'_>, facts: &Facts, storage: &Storage, dilation: f64, seed: u64) -> f64 {
    let facts = with_slower_cores(facts, source.measurement.dilation.factor() / dilation);
    predict_both(&facts, storage, None, SECONDS, seed).capacity.per_second() * source.metric_of_transaction()
}

/// The measured storage with larger buffer pools, of which the memory alone costs something.
fn with_memory(
    memory: &Memory,
    facts: &Facts,
    today: &Storage,
    offered: &Offered<'_>,
    question: &Question<'_>,
) -> Vec<Row> {
    let larger = POOLS.iter().map(|times| {
        let pool_bytes = times * memory.pool_bytes();
        let larger = memory.larger(pool_bytes);
        let facts = memory.with_pool(facts, larger);
        let prediction = predict_both(&facts, today, offered.needed_per_s, SECONDS, question.seed);
        let storage = Storage {
            name: format!("{} + memory x {times}", today.name),
            label: format!("{} with {times} times the buffer pool", today.label),
            ..today.clone()
        };
        let row = Row::of(&storage, &prediction, offered, question);
        let row = row.priced(question.prices.price_of_memory(pool_bytes - memory.pool_bytes()));
        let row = row.at_most(
            MEMORY_ERROR,
            format!(
                "more memory gave up to {MEMORY_ERROR} times as much as predicted where it was measured with a long enough trace"
            ),
        );
        if larger.is_known { row } else { row.doubted("the trace is too short to know its misses") }
    });
    larger.collect()
}
