//! The ladder from the baseline to the best cell, in one sentence.
//!
//! Cells that are not shown to be better than each other share a step. A step is named by its first cell in
//! the order of the scenario, which is usually the cheapest; the others give no more, or it is not known.

use itertools::Itertools as _;

use super::super::cell::CellView;
use super::super::judged;
use crate::report::format::{self, list, number, the};
use crate::report::verdict::{Limit, Verdict, Word};
use crate::report::{Ratio, Records};

/// Parts of the sentence.
const CLAUSES_MOST: usize = 4;
/// Steps above the baseline that are all named.
const STEPS_MOST: usize = 3;

pub(super) fn sentence(records: &Records, measured: &[&CellView], baseline: &str, metric: &str) -> String {
    let is_idle = |cell: &&CellView| cell.throughput.as_ref().is_none_or(|throughput| throughput.mean <= 0.0);
    if measured.iter().any(is_idle) {
        return "Some storage did no work at all, so there is no comparison; see the table.".to_owned();
    }
    let ladder = Ladder::new(records, measured, baseline, metric);
    let (mut clauses, mut is_short) = ladder.climb();
    let top = ladder.steps.len() - 1;
    match ladder.base == top {
        true => clauses.extend([ladder.below(), ladder.beside(top)].concat()),
        false => clauses.extend([ladder.beside(top), ladder.beside(ladder.base), ladder.below()].concat()),
    }
    let others = (0..top).filter(|step| *step != ladder.base);
    clauses.extend(others.flat_map(|step| ladder.beside(step)));
    is_short |= clauses.len() > CLAUSES_MOST;
    clauses.truncate(CLAUSES_MOST);
    clauses.extend(is_short.then(|| Clause::of("the table has the rest".to_owned())));
    first_upper(&joined(&clauses)) + "."
}

/// A part of the sentence.
#[derive(Debug, Clone)]
struct Clause {
    text: String,
    /// What an answer takes that is not known yet.
    takes: Option<String>,
}

impl Clause {
    fn of(text: String) -> Clause {
        Clause { text, takes: None }
    }
}

/// What several answers take is said once, after the last of them.
fn joined(clauses: &[Clause]) -> String {
    let text = |(index, clause): (usize, &Clause)| match &clause.takes {
        Some(takes) if !clauses[index + 1..].iter().any(|later| later.takes == clause.takes) => {
            format!("{}: {takes}", clause.text)
        }
        _ => clause.text.clone(),
    };
    clauses.iter().enumerate().map(text).join("; ")
}

struct Ladder<'a> {
    records: &'a Records,
    /// From the worst to the best, each in the order of the scenario.
    steps: Vec<Vec<&'a CellView>>,
    /// Index of the step of the baseline.
    base: usize,
    is_time: bool,
    /// What a cell gives: `new-order transactions`.
    noun: &'a str,
}

/// Larger for the better cell.
fn merit(cell: &CellView) -> f64 {
    cell.throughput.as_ref().map_or(f64::NEG_INFINITY, |throughput| {
        if throughput.lower_is_better { -throughput.mean } else { throughput.mean }
    })
}

impl<'a> Ladder<'a> {
    fn new(records: &'a Records, measured: &[&'a CellView], baseline: &str, metric: &'a str) -> Self {
        let mut ranked = measured.to_vec();
        ranked.sort_by(|left, right| merit(left).total_cmp(&merit(right)));
        let is_better = |cell: &CellView, than: &CellView| {
            judged(records, &than.name, &cell.name).is_some_and(|found| found.verdict.word == Word::Better)
        };
        let mut steps: Vec<Vec<&CellView>> = Vec::new();
        for cell in ranked {
            match steps.last_mut() {
                Some(step) if !is_better(cell, step[0]) => step.push(cell),
                _ => steps.push(vec![cell]),
            }
        }
        let place = |cell: &&CellView| measured.iter().position(|other| other.name == cell.name);
        steps.iter_mut().for_each(|step| step.sort_by_key(place));
        let has_baseline = |step: &Vec<&CellView>| step.iter().any(|cell| cell.name == baseline);
        Ladder {
            records,
            base: steps.iter().position(has_baseline).unwrap_or_default(),
            steps,
            is_time: measured[0].throughput.as_ref().is_some_and(|throughput| throughput.lower_is_better),
            noun: metric.split_once(" per ").map_or("throughput", |(noun, _)| noun),
        }
    }

    /// The steps above the baseline, and whether some are left out.
    fn climb(&self) -> (Vec<Clause>, bool) {
        let named: Vec<&CellView> = self.steps[self.base..].iter().map(|step| step[0]).collect();
        if named.len() <= STEPS_MOST + 1 {
            let is_better = |pair: &[&CellView]| self.compared(pair[0], pair[1]).0.word == Word::Better;
            let mut is_that = false;
            let of = |pair: &[&'a CellView]| {
                let clause = self.step(pair[0], pair[1], is_that);
                // "That" is the figure of the clause before.
                is_that = is_better(pair);
                clause
            };
            return (named.windows(2).map(of).collect(), false);
        }
        let [base, .., second, best] = named.as_slice() else { return (Vec::new(), false) };
        let title = the(&second.title);
        let (verdict, ratio) = self.compared(second, best);
        let runner_up = match (verdict.word, ratio) {
            (Word::Better, Some(ratio)) => {
                let times = times(&verdict, &ratio);
                Clause::of(format!("that is {times} times the figure of the runner-up, {title}"))
            }
            _ => self.other(second, &[*best], &verdict),
        };
        (vec![self.step(base, best, false), runner_up], true)
    }

    /// `the X gives 22 times the orders of the Y`, or `... times that`.
    fn step(&self, lower: &CellView, upper: &CellView, is_that: bool) -> Clause {
        let (verdict, ratio) = self.compared(lower, upper);
        let (Word::Better | Word::Worse, Some(ratio)) = (verdict.word, ratio) else {
            return self.other(lower, &[upper], &verdict);
        };
        let (title, gives, times) = (the(&upper.title), self.gives(1), times(&verdict, &ratio));
        let what = match (is_that, self.is_time) {
            (true, _) => "that".to_owned(),
            (false, true) => format!("the time of {}", the(&lower.title)),
            (false, false) => format!("the {} of {}", self.noun, the(&lower.title)),
        };
        let but = match verdict.limited_by.filter(|_| verdict.bound.is_some()) {
            Some(limit) => format!(", but there {}", decides(limit)),
            None => String::new(),
        };
        Clause::of(format!("{title} {gives} {times} times {what}{but}"))
    }

    /// The other cells of a step, compared with its first: one clause for each kind of verdict.
    fn beside(&self, step: usize) -> Vec<Clause> {
        let Some((first, others)) = self.steps[step].split_first() else { return Vec::new() };
        let of = |cell: &&'a CellView| (*cell, self.compared(first, cell).0);
        let others: Vec<(&CellView, Verdict)> = others.iter().map(of).collect();
        let mut clauses = Vec::new();
        let mut done: Vec<(Word, Option<Limit>)> = Vec::new();
        for (cell, verdict) in &others {
            let kind = (verdict.word, verdict.limited_by);
            if matches!(verdict.word, Word::Better | Word::Worse) {
                clauses.push(self.step(first, cell, false));
            } else if !done.contains(&kind) {
                done.push(kind);
                let alike = others.iter().filter(|(_, other)| (other.word, other.limited_by) == kind);
                // The verdict that takes the most trials speaks for all of them.
                let most = alike.clone().max_by_key(|(_, other)| other.more_trials.unwrap_or(u32::MAX));
                let cells: Vec<&CellView> = alike.map(|(cell, _)| *cell).collect();
                clauses.push(self.other(first, &cells, most.map_or(verdict, |(_, verdict)| verdict)));
            }
        }
        clauses
    }

    /// The steps below the baseline, the best first.
    fn below(&self) -> Vec<Clause> {
        let base = self.steps[self.base][0];
        let is_best = self.base + 1 == self.steps.len();
        let below = self.steps[..self.base].iter().rev();
        let mut clauses: Vec<Clause> = below.map(|step| self.step(base, step[0], is_best)).collect();
        if let Some(first) = clauses.first_mut().filter(|_| is_best) {
            let most = if self.is_time { "needs the least time" } else { "gives the most" };
            first.text = format!("{} {most}: {}", the(&base.title), first.text);
        }
        clauses
    }

    /// Cells that are neither better nor worse than another.
    fn other(&self, than: &CellView, cells: &[&CellView], verdict: &Verdict) -> Clause {
        let titles = list(cells.iter().map(|cell| the(&cell.title)));
        let (gives, than_title) = (self.gives(cells.len()), the(&than.title));
        let mut takes = None;
        let text = match (verdict.word, verdict.limited_by) {
            (Word::Same, _) => {
                let (no_more, margin) =
                    (if self.is_time { "no less time" } else { "no more" }, format::margin(verdict.within));
                format!("{titles} {gives} {no_more} than {than_title} (the same within {margin})")
            }
            (Word::NotComparable, Some(limit)) => {
                let all =
                    list(std::iter::once(than).chain(cells.iter().copied()).map(|cell| the(&cell.title)));
                format!("between {all} {}, and not the storage", decides(limit))
            }
            (Word::NotComparable, None) => {
                format!("{titles} and {than_title} are not comparable: {}", verdict.reason)
            }
            _ => {
                takes.clone_from(&verdict.takes);
                let amount = self.amount(than, cells);
                format!("whether {titles} {gives} {amount} than {than_title} is not known yet")
            }
        };
        Clause { text, takes }
    }

    /// The direction in which cells seem to differ from another.
    fn amount(&self, than: &CellView, cells: &[&CellView]) -> &'static str {
        let more = cells.iter().filter(|cell| merit(cell) >= merit(than)).count();
        match (more == cells.len(), more == 0, self.is_time) {
            (true, _, false) | (_, true, true) => "more",
            (_, true, false) | (true, _, true) => "less",
            _ => "more or less",
        }
    }

    fn gives(&self, count: usize) -> &'static str {
        match (self.is_time, count) {
            (false, 1) => "gives",
            (false, _) => "give",
            (true, 1) => "needs",
            (true, _) => "need",
        }
    }

    fn compared(&self, lower: &CellView, upper: &CellView) -> (Verdict, Option<Ratio>) {
        let found = judged(self.records, &lower.name, &upper.name).expect("both cells are in the header");
        (found.verdict, found.ratio)
    }
}

/// `at least 3.95`.
fn times(verdict: &Verdict, ratio: &Ratio) -> String {
    let bound = verdict.bound.map_or_else(String::new, |bound| format!("{} ", bound.words()));
    format!("{bound}{}", number(ratio.ratio))
}

fn decides(limit: Limit) -> &'static str {
    match limit {
        Limit::Cores => "the cores decide",
        Limit::LoadGenerator => "the load generator decides",
        Limit::Lateness => "the emulator was late",
    }
}

fn first_upper(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}
