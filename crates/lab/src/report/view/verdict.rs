//! The headline: what the cells give, in one sentence, and the limit of each cell. It claims no more than the
//! verdicts of the pairs.

mod ladder;

use itertools::Itertools as _;
use serde::Serialize;

use super::{
    bottleneck::bottleneck_sentence,
    cell::{Baseline, CellView, Failure},
};
use crate::report::format::{self, the, the_first};
use crate::report::{Records, advice};
use spindle_base::text::plural;

#[derive(Debug, Clone, Serialize, PartialEq)]
pub struct VerdictView {
    /// The answer: a sentence for each workload.
    pub sentences: Vec<String>,
    /// The limit of each cell, the parameters in which its storage differs, and missing data.
    pub details: Vec<String>,
}

impl VerdictView {
    /// Of a sweep, only the cells at the `peaks` of its curves are compared in the sentences, with the first of them. The
    /// details are about each one's ratio to its baseline.
    pub(super) fn new(records: &Records, cells: &[CellView], peaks: &[&str], failures: &[Failure]) -> Self {
        let is_of_verdict = |cell: &&CellView| peaks.is_empty() || peaks.contains(&cell.name.as_str());
        let measured = cells.iter().filter(|cell| cell.throughput.is_some()).filter(is_of_verdict);
        let measured: Vec<&CellView> = measured.collect();
        let baselines = measured.iter().map(|cell| &cell.baseline).unique();
        let family = |baseline: &Option<Baseline>| {
            measured.iter().copied().filter(|cell| cell.baseline == *baseline).collect()
        };
        let families: Vec<Vec<&CellView>> = baselines.map(family).collect();
        let sentences = match families.as_slice() {
            [] if records.trials.is_empty() => vec!["No trial has been recorded yet.".to_owned()],
            [] => vec![format!("Nothing was measured: {}.", all_failed(failures.len()))],
            [family] => vec![of_family(records, family, peaks)],
            several if several.len() <= FAMILIES_MOST => several
                .iter()
                .map(|family| {
                    let cells = family.iter().map(|cell| without_workload(cell)).collect_vec();
                    let answer = of_family(records, &cells.iter().collect_vec(), peaks);
                    format!("`{}`: {answer}", workload(records, family[0]))
                })
                .collect(),
            many => {
                vec![format!("Each of the {} workloads has an answer of its own; see the table.", many.len())]
            }
        };
        Self { sentences, details: details(&measured, cells, failures) }
    }
}

/// Workloads whose answers are in the headline.
const FAMILIES_MOST: usize = 3;

/// Without swept values.
fn workload<'a>(records: &'a Records, cell: &'a CellView) -> &'a str {
    let head = records.header.cells.iter().find(|head| head.name == cell.name);
    head.map_or(&cell.workload, |head| head.bases().1)
}

/// For a sentence that has named the workload.
fn without_workload(cell: &CellView) -> CellView {
    let end = format!(", {}", cell.workload);
    let title = cell.title.strip_suffix(&end).unwrap_or(&cell.title).to_owned();
    CellView { title, ..cell.clone() }
}

fn of_family(records: &Records, family: &[&CellView], peaks: &[&str]) -> String {
    let throughputs = family.iter().filter_map(|cell| cell.throughput.as_ref());
    let metric = throughputs.map(|throughput| &throughput.name).all_equal_value().ok();
    let is_of_family = |peak: &&&str| family.iter().any(|cell| cell.name == **peak);
    let first = peaks.iter().find(is_of_family).copied().unwrap_or(&family[0].name);
    match (family, metric) {
        ([only], _) => single(only),
        (_, Some(metric)) => ladder::sentence(records, family, first, metric),
        (_, None) => "The figures count different things, so they are not compared.".to_owned(),
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

fn details(measured: &[&CellView], cells: &[CellView], failures: &[Failure]) -> Vec<String> {
    let mut details: Vec<String> = measured.iter().filter_map(|cell| bottleneck_sentence(cell)).collect();
    details.extend(measured.iter().filter_map(|cell| reservation(cell)));
    let differing = measured.iter().filter(|cell| !cell.differences.is_empty());
    details.extend(differing.filter_map(|cell| {
        let (title, baseline) = (the(&cell.title), the(&cell.baseline.as_ref()?.title));
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

/// The verdict of a cell that needs its reason.
fn reservation(cell: &CellView) -> Option<String> {
    let verdict = cell.verdict.as_ref().filter(|verdict| verdict.needs_its_reason())?;
    let ratio = cell.ratio.as_ref().map(|ratio| format!(", ratio {}", ratio.bounded(verdict.bound)));
    let (title, baseline) = (the_first(&cell.title), the(&cell.baseline.as_ref()?.title));
    let (words, ratio, reason) = (verdict.words(), ratio.unwrap_or_default(), &verdict.reason);
    Some(format!("{title} compared with {baseline}: {words}{ratio}: {reason}."))
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
