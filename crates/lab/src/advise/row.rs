//! One storage in the answer: what is predicted, what it costs, how long it lasts, what a power cut takes.

use std::cmp::Ordering;

use serde::Serialize;
use spindle_twin::{Outcome, Waits};

use super::answer::Question;
use super::endurance::{DailyWrites, DriveSize, Life, life};
use super::need::Need;
use super::power_cut::{self, Class};
use super::prediction::{Prediction, Storage};
use super::prices::Price;
use crate::stack::StackSpec;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    pub name: String,
    pub label: String,
    /// In the unit of the workload's metric.
    pub predicted: f64,
    /// [`MODEL_ERROR`] on both sides.
    pub low: f64,
    pub high: f64,
    /// At the needed rate; at full load without a need, or where the storage cannot meet it.
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    /// Of the measured storage's own prediction.
    pub times_todays: f64,
    pub bottleneck: &'static str,
    /// Share of what the storage can do that the need leaves, negative if it does not suffice.
    pub headroom: Option<f64>,
    /// Life of its drives at the needed rate, or at the predicted one without a need. `None` without flash.
    pub life: Option<Life>,
    pub price: Option<Price>,
    /// Price for each unit of the metric.
    pub price_per_unit: Option<f64>,
    /// Why there is no price.
    pub unpriced: Option<String>,
    /// What a power cut may take.
    pub may_lose: &'static str,
    /// The whole drives' capacity.
    pub capacity_bytes: u64,
    pub reasons_for: Vec<String>,
    /// Why it does not meet the need; empty if it does, or without a need.
    pub against: Vec<String>,
}

/// Figures that all rows share.
#[derive(Debug)]
pub(super) struct Offered<'a> {
    /// Units of the metric for each transaction.
    pub(super) of_transaction: f64,
    /// The metric as predicted for the measured storage.
    pub(super) todays: f64,
    /// Transactions a second that are needed.
    pub(super) needed_per_s: Option<f64>,
    pub(super) data_bytes: Option<u64>,
    pub(super) metric: &'a str,
}

/// Nine of ten predictions of other storages are within this share of the measured throughput: on MariaDB, by
/// docs/results/twin.md. For PostgreSQL it is an aim.
pub const MODEL_ERROR: f64 = 0.2;
/// Least number of transactions that are slower than a quantile (METHODOLOGY.md).
const SLOWER_LEAST: f64 = 10.0;

impl Row {
    pub(super) fn of(
        storage: &Storage,
        prediction: &Prediction,
        offered: &Offered<'_>,
        question: &Question<'_>,
    ) -> Row {
        let outcome = &prediction.capacity;
        let at_need = prediction.at_need.as_ref().unwrap_or(outcome);
        let predicted = outcome.per_second() * offered.of_transaction;
        let needed = question.need.map(|need| need.in_units_of(offered.metric));
        let capacity_bytes = storage.stacks.iter().map(StackSpec::natural_bytes).sum();
        let price = price(storage, question);
        let safety = storage.stacks.iter().filter_map(power_cut::safety).map(|safety| safety.class).max();
        let times_todays = predicted / offered.todays;
        let mut against =
            question.need.map_or(Vec::new(), |need| against(need, predicted, at_need, offered.metric));
        if let Some(data) = offered.data_bytes.filter(|data| *data > capacity_bytes) {
            against.push(format!(
                "its {} GB are too small for {} GB of data",
                capacity_bytes / 1_000_000_000,
                data / 1_000_000_000
            ));
        }
        Row {
            name: storage.name.clone(),
            label: storage.label.clone(),
            predicted,
            low: predicted * (1.0 - MODEL_ERROR),
            high: predicted * (1.0 + MODEL_ERROR),
            p95_ms: latency_ms(at_need, 0.95),
            p99_ms: latency_ms(at_need, 0.99),
            times_todays,
            bottleneck: bottleneck(&outcome.waits),
            headroom: needed.map(|needed| predicted / needed - 1.0),
            life: life_of(storage, at_need),
            price_per_unit: price.as_ref().ok().map(|price| price.total / predicted),
            unpriced: price.as_ref().err().cloned(),
            price: price.ok(),
            may_lose: safety.map_or("unknown", Class::words),
            capacity_bytes,
            reasons_for: reasons_for(times_todays, safety),
            against,
        }
    }

    /// The same at another price.
    pub(super) fn priced(self, price: Option<Price>) -> Row {
        let unpriced = price.is_none().then(|| "no price of memory is known".to_owned());
        let price_per_unit = price.as_ref().map(|price| price.total / self.predicted);
        Row { price, price_per_unit, unpriced, ..self }
    }

    /// The same, where a measurement was up to so many times as high as the prediction.
    pub(super) fn at_most(mut self, times: f64, reason: String) -> Row {
        self.high = self.predicted * times;
        self.reasons_for.push(reason);
        self
    }

    /// The same with a reason not to rely on it.
    pub(super) fn doubted(mut self, reason: &str) -> Row {
        self.against.push(reason.to_owned());
        self
    }

    pub fn meets(&self) -> bool {
        self.against.is_empty()
    }

    /// `225 USD (2009)`, or that it is unknown.
    pub fn price_words(&self) -> String {
        self.price.as_ref().map_or("price unknown".to_owned(), |price| {
            format!("{:.0} {} ({})", price.total, price.currency, price.date)
        })
    }

    pub(super) fn is_priced_as(&self, other: &Row) -> bool {
        let currency = |row: &Row| row.price.as_ref().map(|price| price.currency.clone());
        currency(self) == currency(other)
    }

    /// Those that meet the need before those that do not; the cheaper first, without a price last; then the
    /// faster.
    pub(super) fn compare(&self, other: &Row) -> Ordering {
        let of_price = match (&self.price, &other.price) {
            (Some(own), Some(others)) if self.meets() => own.compare(others).unwrap_or(Ordering::Equal),
            (Some(_), None) if self.meets() => Ordering::Less,
            (None, Some(_)) if self.meets() => Ordering::Greater,
            _ => Ordering::Equal,
        };
        let meets = other.meets().cmp(&self.meets());
        let is_asked = self.headroom.is_some();
        let of_price = if is_asked { of_price } else { Ordering::Equal };
        meets.then(of_price).then(other.predicted.total_cmp(&self.predicted))
    }
}

/// `None` with too few transactions.
fn latency_ms(outcome: &Outcome, quantile: f64) -> Option<f64> {
    let is_enough = outcome.transactions() as f64 * (1.0 - quantile) >= SLOWER_LEAST;
    let latency_ns = outcome.latency_ns(quantile, |_| true).filter(|_| is_enough)?;
    Some(latency_ns as f64 / 1e6)
}

fn price(storage: &Storage, question: &Question<'_>) -> Result<Price, String> {
    question.prices.price_of_all(&storage.stacks, question.years).map_err(|reason| reason.to_string())
}

/// Life of the storage's flash drives, of which each gets its share of its mount's writes: that of the first to fail.
fn life_of(storage: &Storage, outcome: &Outcome) -> Option<Life> {
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    let of_mount = storage.stacks.iter().zip(&outcome.mounts).flat_map(|(stack, counters)| {
        stack.drives().into_iter().filter_map(move |drives| {
            let size = DriveSize::of(drives.parameters)?;
            let writes = DailyWrites::over(
                counters.write_bytes / drives.count,
                counters.nand_write_bytes / drives.count,
                seconds,
            );
            Some(life(drives.facts.endurance.as_ref(), writes, size))
        })
    });
    let years = |life: &Life| life.years().unwrap_or(f64::INFINITY);
    of_mount.min_by(|one, other| years(one).total_cmp(&years(other)))
}

fn reasons_for(times_todays: f64, class: Option<Class>) -> Vec<String> {
    let mut reasons = Vec::new();
    if times_todays >= 1.05 {
        reasons.push(format!("{times_todays:.1} times today's throughput"));
    }
    if class == Some(Class::Nothing) {
        reasons.push("a power cut takes nothing that was acknowledged".to_owned());
    }
    reasons
}

/// Why a storage does not meet the need.
fn against(need: &Need, predicted: f64, outcome: &Outcome, metric: &str) -> Vec<String> {
    let wanted = need.in_units_of(metric);
    let mut against = Vec::new();
    if predicted < wanted {
        against.push(format!("{predicted:.0} of {wanted:.0}"));
    }
    if let Some(latency) = need.latency
        && let Some(ns) = outcome.latency_ns(latency.quantile, |_| true)
        && ns as f64 / 1e6 > latency.at_most_ms
    {
        let p = latency.quantile * 100.0;
        against.push(format!("p{p:.0} {:.1} ms instead of {:.1} ms", ns as f64 / 1e6, latency.at_most_ms));
    }
    against
}

/// What the terminals waited for most.
fn bottleneck(waits: &Waits) -> &'static str {
    let all = [
        (waits.cpu_ns, "cores"),
        (waits.read_ns, "reads"),
        (waits.commit_ns, "commits"),
        (waits.lock_ns, "locks"),
        (waits.file_ns, "a file's lock"),
        (waits.flushing_ns, "flushing"),
    ];
    all.into_iter().max_by_key(|(ns, _)| *ns).map_or("nothing", |(_, words)| words)
}
