//! Predicts every cell of a record from each other one, and holds the predictions against what was measured.

mod pools;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;
use itertools::Itertools as _;
use serde::Serialize;
use spindle_base::Mistake;

pub use pools::PoolComparison;

use super::calibration::with_locks;
use super::facts::facts;
use super::prediction::{SETTLE_NS, Storage, predict, with_slower_cores};
use super::source::{Source, scenario_of};
use crate::record::input::Records;
use crate::record::{Cell, Warning};
use crate::scenario::Scenario;
use crate::stack::StackSpec;
use spindle_twin::Facts;

/// A prediction beside its measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Names of the cells.
    pub from: String,
    pub of: String,
    /// What both share besides the storage: server, workload, swept values.
    pub experiment: String,
    /// In the unit of the workload's metric.
    pub predicted: f64,
    pub measured: f64,
    /// Of all transactions, in milliseconds; `None` with too few transactions.
    pub predicted_p99_ms: Option<f64>,
    pub measured_p99_ms: Option<f64>,
    /// Whether this machine limited one of the two cells, not its storage. Such a comparison counts in no error.
    pub is_limited: bool,
    /// Whether a disk is among the drives of the predicted cell.
    pub rotates: bool,
    /// Processor time that the simulation took, in seconds, and the model time that it covered.
    pub took_s: f64,
    pub simulated_s: f64,
}

impl Comparison {
    /// 0.1 if the prediction is 10 % too high.
    pub fn error(&self) -> f64 {
        self.predicted / self.measured - 1.0
    }

    pub fn p99_error(&self) -> Option<f64> {
        Some(self.predicted_p99_ms? / self.measured_p99_ms? - 1.0)
    }

    pub fn is_of_another(&self) -> bool {
        self.from != self.of
    }

    fn speed(&self) -> f64 {
        self.simulated_s / self.took_s.max(1e-9)
    }
}

/// What a record says about predictions.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Validation {
    /// Of all comparisons. `None` if no two cells differ in their storage only, or this machine limited one of each two.
    pub errors: Option<Errors>,
    /// By [`Comparison::experiment`], in alphabetical order.
    pub experiments: BTreeMap<String, Errors>,
    pub comparisons: Vec<Comparison>,
    /// Of storage with a disk, and without.
    pub speed_on_disks: Option<Speed>,
    pub speed_on_others: Option<Speed>,
    /// Of cells that differ in their buffer pool only.
    pub pools: Vec<PoolComparison>,
    /// Names of cells with fewer than [`RATE_TRANSACTIONS`].
    pub left_out: Vec<String>,
    /// Names of cells that this machine limited, by the warnings of their trials.
    pub limited: Vec<String>,
}

/// Simulated seconds for each second of one core.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Speed {
    pub median: f64,
    pub slowest: f64,
}

impl Speed {
    fn of<'a>(comparisons: impl Iterator<Item = &'a Comparison>) -> Option<Speed> {
        let speeds: Vec<f64> = comparisons.map(Comparison::speed).sorted_by(f64::total_cmp).collect();
        Some(Speed { median: median(&speeds)?, slowest: *speeds.first()? })
    }
}

/// Transactions that a quantile of 99 % needs (METHODOLOGY.md).
const P99_TRANSACTIONS: u64 = 1_000;
/// Transactions of a cell below which its own rate is not known to 20 %, neither to predict from it nor to hold a
/// prediction against it: twice the square root of 100 is 20.
pub const RATE_TRANSACTIONS: u64 = 100;

/// A cell with its facts.
struct Known<'a> {
    source: Source<'a>,
    storage: Storage,
    facts: Facts,
}

impl Known<'_> {
    /// Whether its figure tells of this machine: the cores were busy, or the emulator answered late.
    fn is_limited(&self) -> bool {
        let is_of_machine =
            |warning: &Warning| matches!(warning, Warning::Late { .. } | Warning::CpuSaturated { .. });
        self.source.trial.warnings.iter().any(is_of_machine)
    }
}

/// Every cell from each one of the same experiment, itself included.
///
/// # Errors
/// No cell of the record can be predicted: why the first cannot. No two differ in their storage only, or in their
/// buffer pool only.
///
/// `cpu_s` tells the processor time of this process.
pub fn validate(records: &Records, directory: &Path, cpu_s: &dyn Fn() -> f64) -> Result<Validation> {
    let scenario = scenario_of(records)?;
    let (mut known, mut left_out) = (Vec::new(), Vec::new());
    let mut refusal = None;
    for cell in &records.header.cells {
        match Source::of_cell(records, Some(&scenario), cell, directory) {
            Ok(source) if source.measurement.ended() < RATE_TRANSACTIONS => left_out.push(cell.name.clone()),
            source => match source.and_then(|source| know(source, &scenario)) {
                Ok(one) => known.push(one),
                Err(error) => refusal = refusal.or(Some(error)),
            },
        }
    }
    if known.is_empty()
        && left_out.is_empty()
        && let Some(refusal) = refusal
    {
        return Err(refusal);
    }
    let mut comparisons = Vec::new();
    for from in &known {
        for of in known.iter().filter(|of| experiment(of.source.cell) == experiment(from.source.cell)) {
            if of.storage.stacks.len() == from.storage.stacks.len() {
                comparisons.push(compare(from, of, cpu_s));
            }
        }
    }
    let pools = pools::compare_pools(&known);
    let errors_of_all = match errors(&comparisons) {
        Err(_) if !pools.is_empty() || comparisons.iter().any(Comparison::is_of_another) => None,
        errors => Some(errors?),
    };
    // One with a single cell has no errors.
    let by_experiment = comparisons.iter().into_group_map_by(|one| one.experiment.clone());
    let experiments = by_experiment.into_iter().filter_map(|(name, of_it)| Some((name, errors(of_it).ok()?)));
    let limited =
        known.iter().filter(|one| one.is_limited()).map(|one| one.source.cell.name.clone()).collect();
    let (on_disks, on_others) = comparisons.iter().partition::<Vec<&Comparison>, _>(|one| one.rotates);
    Ok(Validation {
        errors: errors_of_all,
        experiments: experiments.collect(),
        speed_on_disks: Speed::of(on_disks.into_iter()),
        speed_on_others: Speed::of(on_others.into_iter()),
        comparisons,
        pools,
        left_out,
        limited,
    })
}

fn know<'a>(source: Source<'a>, scenario: &Scenario) -> Result<Known<'a>> {
    let storage = measured_storage(scenario, source.cell);
    storage.check()?;
    let facts = with_locks(facts(&source, Some(&storage))?, &source, &storage);
    Ok(Known { source, storage, facts })
}

/// The storage on which a cell was measured.
pub fn measured_storage(scenario: &Scenario, cell: &Cell) -> Storage {
    let layout = scenario.layout_of(cell);
    let stacks: Vec<StackSpec> =
        layout.mounts.iter().map(|mount| scenario.stacks[&mount.stack].clone()).collect();
    Storage {
        name: cell.layout_name().to_owned(),
        label: cell.storage_label().to_owned(),
        stacks,
        tables: toml::Table::new(),
    }
}

/// What a cell has besides its storage.
fn experiment(cell: &Cell) -> String {
    format!("{}, {}", cell.server, cell.workload)
}

fn compare(from: &Known<'_>, of: &Known<'_>, cpu_s: &dyn Fn() -> f64) -> Comparison {
    let facts = at_dilation_of(from, of);
    let began = cpu_s();
    let outcome = predict(&facts, &of.storage, of.source.measurement.duration_s, 1);
    let took_s = cpu_s() - began;
    let enough = |count: u64| count >= P99_TRANSACTIONS;
    let latency = &of.source.measurement.latency;
    let p99_ms = outcome.latency_ns(0.99, |_| true).map(|ns| ns as f64 / 1e6);
    Comparison {
        from: from.source.cell.name.clone(),
        of: of.source.cell.name.clone(),
        experiment: experiment(of.source.cell),
        predicted: outcome.per_second() * from.source.metric_of_transaction(),
        measured: of.source.measurement.metric.value,
        predicted_p99_ms: p99_ms.filter(|_| enough(outcome.transactions())),
        measured_p99_ms: enough(latency.count).then_some(latency.p99_ms),
        is_limited: from.is_limited() || of.is_limited(),
        rotates: of.storage.stacks.iter().any(|stack| stack.tree().rotates()),
        took_s,
        simulated_s: (SETTLE_NS + outcome.elapsed_ns) as f64 / 1e9,
    }
}

/// The facts of one cell with cores as fast as those of the other, whose time may be dilated otherwise.
fn at_dilation_of(from: &Known<'_>, of: &Known<'_>) -> Facts {
    let slower = from.source.measurement.dilation.factor() / of.source.measurement.dilation.factor();
    with_slower_cores(&from.facts, slower)
}

/// The errors of predictions of other cells, of which this machine limited none.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Errors {
    pub predictions: usize,
    /// Median of the sizes of the errors: 0.08 is 8 %.
    pub median: f64,
    /// Share whose error is 20 % at most.
    pub within_fifth: f64,
    /// Pairs of storages whose measured figures differ by more than 30 %, and the share of them whose
    /// predictions are in the same order.
    pub pairs: usize,
    pub in_order: Option<f64>,
    /// Median of the sizes of the errors of p99.
    pub p99_median: Option<f64>,
}

/// # Errors
/// There is no prediction of another cell.
fn errors<'a>(comparisons: impl IntoIterator<Item = &'a Comparison>) -> Result<Errors, Mistake> {
    let others: Vec<&Comparison> =
        comparisons.into_iter().filter(|one| one.is_of_another() && !one.is_limited).collect();
    let sizes = |errors: Vec<f64>| {
        let mut sizes: Vec<f64> = errors.into_iter().map(f64::abs).collect();
        sizes.sort_by(f64::total_cmp);
        sizes
    };
    let all = sizes(others.iter().map(|one| one.error()).collect());
    let Some(median) = median(&all) else {
        return Err(Mistake::new(format!(
            "the record has no two cells that differ only in their storage and have {RATE_TRANSACTIONS} transactions each"
        )));
    };
    let orders = orders(&others);
    let right = orders.iter().filter(|is_right| **is_right).count();
    let p99 = sizes(others.iter().filter_map(|one| one.p99_error()).collect());
    Ok(Errors {
        predictions: all.len(),
        median,
        within_fifth: all.iter().filter(|size| **size <= 0.2).count() as f64 / all.len() as f64,
        pairs: orders.len(),
        in_order: (!orders.is_empty()).then(|| right as f64 / orders.len() as f64),
        p99_median: self::median(&p99),
    })
}

fn median(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

/// For each two cells that were predicted from the same one and differ by more than 30 %: whether the
/// prediction has them in the measured order.
fn orders(others: &[&Comparison]) -> Vec<bool> {
    let mut orders = Vec::new();
    for (index, one) in others.iter().enumerate() {
        for other in &others[index + 1..] {
            let ratio = one.measured / other.measured;
            if one.from == other.from && one.experiment == other.experiment && ratio.max(1.0 / ratio) > 1.3 {
                orders.push((one.predicted > other.predicted) == (ratio > 1.0));
            }
        }
    }
    orders
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(from: &str, of: &str, predicted: f64, measured: f64) -> Comparison {
        Comparison {
            from: from.to_owned(),
            of: of.to_owned(),
            experiment: "mariadb, tpcc".to_owned(),
            predicted,
            measured,
            predicted_p99_ms: None,
            measured_p99_ms: Some(1.0),
            is_limited: false,
            rotates: false,
            took_s: 0.1,
            simulated_s: 50.0,
        }
    }

    #[test]
    fn errors_are_those_of_other_cells() {
        let found = errors(&[
            comparison("a", "a", 500.0, 100.0),
            comparison("a", "b", 110.0, 100.0),
            comparison("a", "c", 150.0, 200.0),
            comparison("b", "a", 100.0, 100.0),
            Comparison { is_limited: true, ..comparison("b", "c", 900.0, 200.0) },
        ])
        .unwrap();
        assert_eq!((found.predictions, found.pairs, found.in_order), (3, 1, Some(1.0)));
        assert!((found.median - 0.1).abs() < 1e-9 && (found.within_fifth - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_speed_of_predictions_is_that_of_the_middle_one() {
        let comparisons =
            [0.1, 0.2, 0.5].map(|took_s| Comparison { took_s, ..comparison("a", "b", 1.0, 1.0) });
        let speed = Speed::of(comparisons.iter()).unwrap();
        assert!((speed.median - 250.0).abs() < 1e-9 && (speed.slowest - 100.0).abs() < 1e-9, "{speed:?}");
        assert_eq!(Speed::of([].iter()), None);
    }

    #[test]
    fn one_storage_alone_cannot_be_validated() {
        assert!(errors(&[comparison("a", "a", 1.0, 1.0)]).is_err());
    }
}
