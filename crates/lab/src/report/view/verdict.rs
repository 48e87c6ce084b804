//! The verdict: the fastest cell, its lead, and the limit of each cell. It claims no more than the intervals
//! support.

use serde::Serialize;

use super::{
    cell::{CellView, Failure, Ratio},
    ratio,
};
use crate::report::{Records, format};

#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct VerdictView {
    /// The answer in one sentence.
    pub sentence: String,
    /// The limit of each cell, and missing data.
    pub details: Vec<String>,
}

impl VerdictView {
    pub(super) fn new(
        records: &Records,
        cells: &[CellView],
        baseline: Option<&str>,
        metric: Option<&str>,
        failures: &[Failure],
    ) -> Self {
        let measured: Vec<&CellView> = cells.iter().filter(|cell| cell.throughput.is_some()).collect();
        let sentence = match (measured.as_slice(), baseline, metric) {
            ([], ..) if records.trials.is_empty() => "No trial has been recorded yet.".to_owned(),
            ([], ..) => {
                let count = failures.len();
                let trials =
                    if count == 1 { "The only trial".to_owned() } else { format!("All {count} trials") };
                format!("No cell has a measurement. {trials} failed.")
            }
            ([only], ..) => single(only),
            (_, Some(baseline), Some(_)) => ranking(records, &measured, baseline),
            _ => "The cells have different metrics, so their figures are not compared.".to_owned(),
        };
        let mut details: Vec<String> = measured.iter().filter_map(|cell| bottleneck_sentence(cell)).collect();
        for cell in cells.iter().filter(|cell| cell.throughput.is_none() && !measured.is_empty()) {
            details.push(format!("{} has no measurement.", cell.name));
        }
        let lost = failures.iter().filter(|failure| !failure.repeated).count();
        if lost > 0 && !measured.is_empty() {
            details.push(format!("{} failed and are left out.", format::plural(lost, "trial")));
        }
        Self { sentence, details }
    }
}

/// Larger for the better cell.
fn merit(cell: &CellView) -> f64 {
    cell.throughput.as_ref().map_or(f64::NEG_INFINITY, |throughput| {
        if throughput.lower_is_better { -throughput.mean } else { throughput.mean }
    })
}

fn is_time(cell: &CellView) -> bool {
    cell.throughput.as_ref().is_some_and(|throughput| throughput.lower_is_better)
}

fn single(cell: &CellView) -> String {
    let Some(throughput) = &cell.throughput else {
        return String::new();
    };
    let did = if throughput.lower_is_better { "took" } else { "reached" };
    let value = format!("{} {did} {} {}", cell.name, format::number(throughput.mean), throughput.name);
    match throughput.interval {
        Some(interval) => format!(
            "{value} (95 % interval {interval}, {}); there is no second cell to compare it with.",
            format::plural(cell.trials.len(), "trial"),
        ),
        None => {
            format!("{value} in a single trial; there is no interval and no second cell to compare it with.")
        }
    }
}

/// A ratio for the middle of a sentence.
fn times(ratio: &Ratio, of: &str) -> String {
    let interval = ratio.interval.map_or_else(String::new, |range| format!(" (95 % interval {range})"));
    format!("{} times {of}{interval}", format::number(ratio.ratio))
}

fn ranking(records: &Records, measured: &[&CellView], baseline: &str) -> String {
    let mut ranked = measured.to_vec();
    ranked.sort_by(|left, right| merit(right).total_cmp(&merit(left)));
    let (leader, others) = (ranked[0], &ranked[1..]);
    let times = |ratio: &Ratio, of: &str| {
        if is_time(leader) { times(ratio, &format!("the time of {of}")) } else { times(ratio, of) }
    };
    // Comparison of the leader with each other cell. The leader is the fastest only if it is faster than all
    // of them.
    let ratios =
        others.iter().map(|other| Some((other.name.as_str(), ratio(records, &other.name, &leader.name)?)));
    let Some(against) = ratios.collect::<Option<Vec<_>>>() else {
        return "Some cells did no work, so there is no ratio; see the table.".to_owned();
    };
    let to_baseline = against.iter().find(|(name, _)| *name == baseline);
    if against.iter().any(|(_, ratio)| ratio.interval.is_none()) {
        let (name, ratio) = to_baseline.unwrap_or(&against[0]);
        return format!(
            "{} was ahead: {}. A cell with a single trial has no interval, so this is an observation and not a finding.",
            leader.name,
            times(ratio, name)
        );
    }
    let tied: Vec<_> = against.iter().filter(|(_, ratio)| ratio.verdict != "faster").collect();
    if tied.is_empty() {
        let (runner_up, closest) = &against[0];
        let (name, ratio) = to_baseline.unwrap_or(&against[0]);
        let mut sentence = format!("{} is the fastest: {}", leader.name, times(ratio, name));
        if name != runner_up {
            sentence += &format!(", and {}, the runner-up", times(closest, runner_up));
        }
        return sentence + ".";
    }
    let names = std::iter::once(leader.name.as_str()).chain(tied.iter().map(|(name, _)| *name));
    let mut sentence = format!(
        "No difference is shown between {}: {} measured {}",
        format::list(names),
        leader.name,
        format::list(tied.iter().map(|(name, ratio)| times(ratio, name)))
    );
    let is_behind = |(_, ratio): &&(&str, Ratio)| ratio.verdict == "faster";
    if let Some((name, ratio)) = to_baseline.filter(is_behind).or_else(|| against.iter().find(is_behind)) {
        sentence += &format!("; it is {}", times(ratio, name));
    }
    sentence + "."
}

fn bottleneck_sentence(cell: &CellView) -> Option<String> {
    let bottleneck = cell.bottleneck.as_ref()?;
    let count = cell.trials.len();
    let agreement = match (bottleneck.trial_count, count) {
        (_, 1) => "in its only trial".to_owned(),
        (2, 2) => "in both trials".to_owned(),
        (agreeing, count) if agreeing == count => format!("in all {count} trials"),
        (agreeing, count) => format!("in {agreeing} of {count} trials"),
    };
    let name = &cell.name;
    let verdict = match bottleneck.name.as_str() {
        "unknown" => format!("{name}: no single bottleneck {agreement}."),
        limit => format!("{name}: limited by {limit} {agreement}."),
    };
    Some(format!("{verdict} {}", bottleneck.reason).trim_end().to_owned())
}
