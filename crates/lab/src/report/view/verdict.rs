//! The verdict: the fastest cell, its lead, and the limit of each cell. It claims no more than the intervals
//! support.

use serde::Serialize;

use super::{
    cell::{CellView, Failure, Ratio},
    ratio,
};
use crate::report::format::{self, the, the_first};
use crate::report::{Records, advice};
use spindle_base::text::plural;

#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct VerdictView {
    /// The answer in one sentence.
    pub sentence: String,
    /// The limit of each cell, the parameters in which its storage differs, and missing data.
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
            ([], ..) => format!("Nothing was measured: {}.", all_failed(failures.len())),
            ([only], ..) => single(only),
            (_, Some(baseline), Some(_)) => ranking(records, &measured, baseline),
            _ => "The figures count different things, so they are not compared.".to_owned(),
        };
        Self { sentence, details: details(cells, &measured, baseline, failures) }
    }
}

/// Parameters that a sentence names.
const DIFFERENCES_MOST: usize = 8;

fn all_failed(count: usize) -> String {
    match count {
        1 => "the only trial failed".to_owned(),
        2 => "both trials failed".to_owned(),
        _ => format!("all {count} trials failed"),
    }
}

fn details(
    cells: &[CellView],
    measured: &[&CellView],
    baseline: Option<&str>,
    failures: &[Failure],
) -> Vec<String> {
    let mut details: Vec<String> = measured.iter().filter_map(|cell| bottleneck_sentence(cell)).collect();
    let baseline = cells.iter().find(|cell| Some(cell.name.as_str()) == baseline);
    let differing = cells.iter().filter(|cell| !cell.differences.is_empty());
    details.extend(differing.zip(std::iter::repeat(baseline)).filter_map(|(cell, baseline)| {
        let (title, baseline) = (the(&cell.title), the(&baseline?.title));
        let mut list: Vec<String> = cell.differences.iter().map(ToString::to_string).collect();
        if list.len() > DIFFERENCES_MOST {
            let more = list.split_off(DIFFERENCES_MOST).len();
            list.push(plural(more, "further parameter"));
        }
        let list = format::list(list);
        Some(format!("The storage of {title} differs from that of {baseline} only in: {list}."))
    }));
    let few: Vec<String> =
        measured.iter().filter(|cell| cell.has_few_events).map(|cell| the(&cell.title)).collect();
    if !few.is_empty() {
        let figures = if few.len() == 1 { "figure" } else { "figures" };
        details.push(format!(
            "Too few transactions for the {figures} of {}: see the warnings.",
            format::list(few)
        ));
    }
    if measured.is_empty() {
        return details;
    }
    for cell in cells.iter().filter(|cell| cell.throughput.is_none()) {
        details.push(format!("{} has no measurement.", the_first(&cell.title)));
    }
    match failures.iter().filter(|failure| !failure.repeated).count() {
        0 => {}
        1 => details.push("1 trial failed and is left out.".to_owned()),
        lost => details.push(format!("{lost} trials failed and are left out.")),
    }
    details
}

/// Larger for the better cell.
fn merit(cell: &CellView) -> f64 {
    cell.throughput.as_ref().map_or(f64::NEG_INFINITY, |throughput| {
        if throughput.lower_is_better { -throughput.mean } else { throughput.mean }
    })
}

fn single(cell: &CellView) -> String {
    let Some(throughput) = &cell.throughput else {
        return String::new();
    };
    let did = if throughput.lower_is_better { "took" } else { "reached" };
    let (mean, metric) = (format::number(throughput.mean), &throughput.name);
    let value = format!("{} {did} {mean} {metric}", the_first(&cell.title));
    let count = cell.trials.len();
    let trials = plural(count, "trial");
    match (throughput.interval, advice::too_few_trials(count)) {
        (Some(interval), None) => {
            format!("{value} (95 % interval {interval}, {trials}). There is nothing to compare it with.")
        }
        (_, advice) => format!("{value}; {}.", advice.unwrap_or_default()),
    }
}

/// The leader's ratio to another cell, for the middle of a sentence: `9.81 times the throughput of the disk`.
fn times(ratio: &Ratio, of: &CellView) -> String {
    let is_time = of.throughput.as_ref().is_some_and(|throughput| throughput.lower_is_better);
    let figure = if is_time { "time" } else { "throughput" };
    format!("{} times the {figure} of {}{}", format::number(ratio.ratio), the(&of.title), interval(ratio))
}

fn interval(ratio: &Ratio) -> String {
    ratio.interval.map_or_else(String::new, |range| format!(" (95 % interval {range})"))
}

fn ranking(records: &Records, measured: &[&CellView], baseline: &str) -> String {
    let mut ranked = measured.to_vec();
    ranked.sort_by(|left, right| merit(right).total_cmp(&merit(left)));
    let (leader, others) = (ranked[0], &ranked[1..]);
    // Comparison of the leader with each other cell. The leader is the fastest only if it is faster than all
    // of them.
    let ratios = others.iter().map(|other| Some((*other, ratio(records, &other.name, &leader.name)?)));
    let Some(against) = ratios.collect::<Option<Vec<_>>>() else {
        return "Some storage did no work at all, so there is no comparison; see the table.".to_owned();
    };
    let to_baseline = against.iter().find(|(cell, _)| cell.name == baseline);
    let tied: Vec<&(&CellView, Ratio)> =
        against.iter().filter(|(_, ratio)| ratio.verdict != "faster").collect();
    let fewest = tied.iter().map(|(cell, _)| cell.trials.len()).min().unwrap_or(usize::MAX);
    if let Some(advice) = advice::too_few_trials(fewest.min(leader.trials.len())).filter(|_| !tied.is_empty())
    {
        let (other, ratio) = to_baseline.unwrap_or(&against[0]);
        if format::number(ratio.ratio) == "1.00" {
            let other = the(&other.title);
            return format!("{} and {other} were level, but {advice}.", the_first(&leader.title));
        }
        let times = times(&Ratio { interval: None, ..ratio.clone() }, other);
        return format!("{} was ahead with {times}, but {advice}.", the_first(&leader.title));
    }
    if tied.is_empty() {
        let (runner_up, closest) = &against[0];
        let (other, ratio) = to_baseline.unwrap_or(&against[0]);
        let mut sentence = format!("{} is the fastest: {}", the_first(&leader.title), times(ratio, other));
        if other.name != runner_up.name {
            let (title, interval) = (the(&runner_up.title), interval(closest));
            sentence += &format!(
                ", and {} times that of the runner-up, {title}{interval}",
                format::number(closest.ratio)
            );
        }
        return sentence + ".";
    }
    let names = std::iter::once(leader).chain(tied.iter().map(|(cell, _)| *cell));
    let mut sentence = format!(
        "No difference is shown between {}: {} had {}",
        format::list(names.map(|cell| the(&cell.title))),
        the(&leader.title),
        format::list(tied.iter().map(|(cell, ratio)| times(ratio, cell)))
    );
    let is_behind = |(_, ratio): &&(&CellView, Ratio)| ratio.verdict == "faster";
    if let Some((cell, ratio)) = to_baseline.filter(is_behind).or_else(|| against.iter().find(is_behind)) {
        sentence += &format!("; it had {}", times(ratio, cell));
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
    let title = the_first(&cell.title);
    let verdict = match bottleneck.name.as_str() {
        "unknown" => format!("{title} had no single bottleneck {agreement}."),
        limit => format!("{title} was limited by {limit} {agreement}."),
    };
    Some(format!("{verdict} {}", bottleneck.reason).trim_end().to_owned())
}
