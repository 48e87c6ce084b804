//! The verdict: the fastest cell, its lead, and the limit of each cell. It claims no more than the intervals
//! support.

use serde::Serialize;

use super::{
    bottleneck::bottleneck_sentence,
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
    /// Of a sweep, only the cells at the `peaks` of its curves are compared; the first of them is the baseline.
    pub(super) fn new(
        records: &Records,
        cells: &[CellView],
        peaks: &[&str],
        baseline: Option<&str>,
        metric: Option<&str>,
        failures: &[Failure],
    ) -> Self {
        let is_of_verdict = |cell: &&CellView| peaks.is_empty() || peaks.contains(&cell.name.as_str());
        let measured = cells.iter().filter(|cell| cell.throughput.is_some()).filter(is_of_verdict);
        let measured: Vec<&CellView> = measured.collect();
        let baseline = if peaks.is_empty() { baseline } else { peaks.first().copied() };
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
    let differing = measured.iter().filter(|cell| !cell.differences.is_empty());
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

/// One cell divided by another, in the direction of the tables: by the baseline, if it is one of the two.
struct Clause<'a> {
    subject: &'a CellView,
    of: &'a CellView,
    ratio: Ratio,
}

impl<'a> Clause<'a> {
    fn new(records: &Records, leader: &'a CellView, other: &'a CellView, baseline: &str) -> Option<Self> {
        let (subject, of) = if leader.name == baseline { (other, leader) } else { (leader, other) };
        Some(Self { subject, of, ratio: ratio(records, &of.name, &subject.name)? })
    }

    fn figure(&self) -> &'static str {
        let is_time = self.of.throughput.as_ref().is_some_and(|throughput| throughput.lower_is_better);
        if is_time { "time" } else { "throughput" }
    }

    /// For the middle of a sentence: `9.81 times the throughput of the disk`.
    fn times(&self) -> String {
        let (ratio, of) = (format::number(self.ratio.ratio), the(&self.of.title));
        format!("{ratio} times the {} of {of}{}", self.figure(), interval(&self.ratio))
    }

    /// The same after the name of the other cell: `9.81 times its throughput`.
    fn times_its(&self) -> String {
        let ratio = format::number(self.ratio.ratio);
        format!("{ratio} times its {}{}", self.figure(), interval(&self.ratio))
    }

    /// Without the point ratio, which would look like a difference: `0.982 to 1.05 times`.
    fn range(&self) -> Option<String> {
        Some(format!("{} times", self.ratio.interval?))
    }
}

/// The clauses of cells that are level, of which one side is the same.
fn ranges(leader: &CellView, tied: &[&Clause<'_>]) -> String {
    let of_leader = |clause: &&Clause<'_>| clause.subject.name == leader.name;
    let list = |words: fn(&Clause<'_>, String) -> String| {
        format::list(
            tied.iter().filter_map(|clause| Some(words(clause, clause.range()?))).collect::<Vec<_>>(),
        )
    };
    let Some(first) = tied.iter().find(|clause| clause.ratio.interval.is_some()) else {
        return String::new();
    };
    if of_leader(first) {
        let words =
            list(|clause, range| format!("{range} the {} of {}", clause.figure(), the(&clause.of.title)));
        return format!(": with 95 % confidence, {} had {words}", the(&leader.title));
    }
    let words = list(|clause, range| format!("{} had {range}", the(&clause.subject.title)));
    format!(": with 95 % confidence, {words} the {} of {}", first.figure(), the(&leader.title))
}

fn interval(ratio: &Ratio) -> String {
    ratio.interval.map_or_else(String::new, |range| format!(" (95 % interval {range})"))
}

fn ranking(records: &Records, measured: &[&CellView], baseline: &str) -> String {
    let mut ranked = measured.to_vec();
    ranked.sort_by(|left, right| merit(right).total_cmp(&merit(left)));
    let (leader, others) = (ranked[0], &ranked[1..]);
    let clauses = others.iter().map(|other| Clause::new(records, leader, other, baseline));
    let Some(clauses) = clauses.collect::<Option<Vec<_>>>() else {
        return "Some storage did no work at all, so there is no comparison; see the table.".to_owned();
    };
    // The leader is the fastest only if it is faster than all others.
    let won = if leader.name == baseline { "slower" } else { "faster" };
    let (behind, tied): (Vec<_>, Vec<_>) =
        clauses.iter().zip(others).partition(|(clause, _)| clause.ratio.verdict == won);
    let to_baseline = clauses.iter().find(|clause| clause.of.name == baseline).unwrap_or(&clauses[0]);
    let fewest = tied.iter().map(|(_, cell)| cell.trials.len()).min().unwrap_or(usize::MAX);
    let advice = advice::too_few_trials(fewest.min(leader.trials.len())).filter(|_| !tied.is_empty());
    if let Some(advice) = advice {
        return open(leader, to_baseline, &advice);
    }
    if tied.is_empty() {
        return fastest(leader, to_baseline, &clauses[0]);
    }
    let names = std::iter::once(leader).chain(tied.iter().map(|(_, cell)| **cell));
    let mut sentence =
        format!("No difference is shown between {}", format::list(names.map(|cell| the(&cell.title))));
    let level: Vec<&Clause<'_>> = tied.iter().map(|(clause, _)| *clause).collect();
    sentence += &ranges(leader, &level);
    let is_of_baseline = |(clause, _): &&(&Clause<'_>, _)| clause.of.name == baseline;
    if let Some((clause, _)) = behind.iter().find(is_of_baseline).or(behind.first()) {
        let is_leader = clause.subject.name == leader.name;
        let subject = if is_leader { "it".to_owned() } else { the(&clause.subject.title) };
        sentence += &format!("; {subject} had {}", clause.times());
    }
    sentence + "."
}

fn fastest(leader: &CellView, to_baseline: &Clause<'_>, closest: &Clause<'_>) -> String {
    let title = the_first(&leader.title);
    // The baseline leads, so the others are divided by it.
    if closest.of.name == leader.name {
        return format!(
            "{title} is the fastest: {} had {}.",
            the(&closest.subject.title),
            closest.times_its()
        );
    }
    let mut sentence = format!("{title} is the fastest: {}", to_baseline.times());
    if to_baseline.of.name != closest.of.name {
        let (title, interval) = (the(&closest.of.title), interval(&closest.ratio));
        let ratio = format::number(closest.ratio.ratio);
        sentence += &format!(", and {ratio} times that of the runner-up, {title}{interval}");
    }
    sentence + "."
}

/// The sentence about a leader with too few trials.
fn open(leader: &CellView, clause: &Clause<'_>, advice: &str) -> String {
    let first = the_first(&leader.title);
    let is_leader = clause.subject.name == leader.name;
    let other = the(if is_leader { &clause.of.title } else { &clause.subject.title });
    let ratio = clause.ratio.ratio;
    let is_less = is_leader != (clause.figure() == "time");
    if format::number(ratio) == "1.00" {
        return format!("{first} and {other} were level, but {advice}.");
    }
    // The mean leads, the pairs of trials do not.
    if (ratio < 1.0) == is_less {
        return format!("No difference is shown between {} and {other}: {advice}.", the(&leader.title));
    }
    let clause = Clause { ratio: Ratio { interval: None, ..clause.ratio.clone() }, ..*clause };
    if is_leader {
        return format!("{first} was ahead with {}, but {advice}.", clause.times());
    }
    format!("{first} was ahead: {other} had {}, but {advice}.", clause.times_its())
}
