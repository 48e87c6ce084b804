//! Compares cells of one records file, or of two.
//!
//! Within one file, the trials of a block ran next to each other and are compared pair by pair. Two files are
//! two runs at different times: their trials are not paired, and all other differences between the runs are
//! listed. Cells of different experiments are refused, because their ratio would not be the storage's.

mod layout;
mod side;

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_base::Mistake;

use crate::record::Cell;
use crate::report::experiment::{self, Difference};
use crate::report::verdict::{CellOf, Expectation, Judged, Met, Verdict, judge, metrics_differ};
use crate::report::{self, Ratio, Records, dilation};
pub use layout::Format;
pub use side::{Side, sides};

/// One pair of cells.
#[derive(Debug, Clone, Serialize)]
pub struct Pair {
    pub baseline: Name,
    pub candidate: Name,
    /// `None` when the metrics of the cells differ.
    pub metric: Option<String>,
    /// `None` without two values to divide.
    pub ratio: Option<Ratio>,
    pub verdict: Verdict,
    /// Reservations about this pair, as sentences.
    pub notes: Vec<String>,
}

/// One cell of a pair.
#[derive(Debug, Clone, Serialize)]
pub struct Name {
    pub cell: String,
    pub label: String,
    /// The label where it tells the cells apart, otherwise the cell's name.
    #[serde(skip)]
    pub shown: String,
    pub file: String,
    pub trials: usize,
    pub mean: Option<f64>,
    /// Short names of the kinds of warnings of its trials.
    pub warnings: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Comparisons {
    pub pairs: Vec<Pair>,
    /// Differences of the experiments, which the user allowed.
    pub experiment: Vec<Difference>,
    /// Warnings of the compared cells, as sentences.
    pub warnings: Vec<String>,
    /// Other differences between two files, as sentences.
    pub differences: Vec<String>,
}

impl Comparisons {
    /// Whether every pair is as expected: no if one is not, open if one is not known yet or not comparable.
    pub fn meet(&self, expectation: Expectation) -> Met {
        self.pairs.iter().map(|pair| expectation.of(&pair.verdict)).max().unwrap_or(Met::Open)
    }
}

/// Compares every cell of one file with the first cell of its family, or with the named one. A difference up to the
/// margin, a share, does not matter.
///
/// # Errors
/// The file has one cell only.
pub fn within(side: &Side, margin: f64) -> Result<Comparisons, Mistake> {
    let cells = &side.records.header.cells;
    if cells.len() < 2 {
        let words = "has one cell only; name a second file or cell to compare it with";
        return Err(Mistake::new(format!("{}: {words}", side.file)));
    }
    let mut pairs: Vec<Pair> = Vec::new();
    for family in side.records.header.families() {
        let first = side.cell().unwrap_or(&cells[family[0]]);
        let others = family.iter().map(|index| &cells[*index]).filter(|cell| cell.name != first.name);
        pairs.extend(others.map(|other| pair((side, first), (side, other), true, margin)));
    }
    let warnings = warnings(&pairs);
    Ok(Comparisons { pairs: named(pairs), experiment: Vec::new(), warnings, differences: Vec::new() })
}

/// Compares two named cells, or the cells that two files share.
///
/// # Errors
/// There is nothing to compare, or the cells are of different experiments, unless `anyway`.
pub fn between(left: &Side, right: &Side, anyway: bool, margin: f64) -> Result<Comparisons, Mistake> {
    let same_run = left.records.header.created_at == right.records.header.created_at
        && left.records.header.provenance == right.records.header.provenance;
    let mut chosen = chosen(left, right)?;
    if same_run {
        chosen.retain(|(one, other)| one.name != other.name);
    }
    if chosen.is_empty() {
        let words = "is on both sides; name two cells, or two runs";
        return Err(Mistake::new(format!("{}: {words}", right.shown())));
    }
    let reasons = chosen.iter().map(|(one, other)| metrics_differ(cell_of(left, one), cell_of(right, other)));
    if let Some(reasons) = reasons.collect::<Option<Vec<String>>>() {
        let (left, right) = (left.shown(), right.shown());
        return Err(Mistake::new(format!("{left} and {right} cannot be compared: {}", reasons[0])));
    }
    let experiment = differences_of_experiments(left, right, &chosen);
    if !experiment.is_empty() && !anyway {
        let words = experiment.iter().join("; ");
        return Err(Mistake::new(format!(
            "{} and {} are different experiments ({words}), so a ratio would not be the storage's; --anyway compares them",
            left.shown(),
            right.shown()
        )));
    }
    let of_chosen = |(one, other): &(&Cell, &Cell)| pair((left, one), (right, other), same_run, margin);
    let pairs: Vec<Pair> = chosen.iter().map(of_chosen).collect();
    let mut differences = if same_run { Vec::new() } else { differences(&left.records, &right.records) };
    differences.retain(|(name, _)| !experiment.iter().any(|difference| difference.key == *name));
    let differences = differences.into_iter().map(|(_, sentence)| sentence).collect();
    let warnings = warnings(&pairs);
    Ok(Comparisons { pairs: named(pairs), experiment, warnings, differences })
}

/// The pairs to compare: the named cells, or those of equal names.
fn chosen<'a>(left: &'a Side, right: &'a Side) -> Result<Vec<(&'a Cell, &'a Cell)>, Mistake> {
    let (lefts, rights) = (left.chosen(), right.chosen());
    if left.cell().is_some() || right.cell().is_some() {
        return Ok(lefts.into_iter().cartesian_product(rights).collect());
    }
    let same = |one: &&'a Cell| rights.iter().find(|other| other.name == one.name).copied();
    let chosen: Vec<_> = lefts.iter().filter_map(|one| Some((*one, same(one)?))).collect();
    if chosen.is_empty() {
        let (left, right) = (&left.file, &right.file);
        return Err(Mistake::new(format!(
            "{left} and {right} have no cell of the same name; name them as {left}:CELL and {right}:CELL"
        )));
    }
    Ok(chosen)
}

/// Differences besides the storage, of all pairs. Cells of one scenario differ by intent.
fn differences_of_experiments(left: &Side, right: &Side, chosen: &[(&Cell, &Cell)]) -> Vec<Difference> {
    let (before, after) = (&left.records.header, &right.records.header);
    // Cells of one run have the dilation that its pilots found.
    if before.created_at == after.created_at && before.provenance == after.provenance {
        return Vec::new();
    }
    let is_same = before.provenance.scenario_hash == after.provenance.scenario_hash;
    let of_pair = |(one, other): &(&Cell, &Cell)| {
        let mut found = match is_same {
            true => Vec::new(),
            false => experiment::differences((before, one), (after, other)).unwrap_or_default(),
        };
        let of_cell = |side: &Side, cell: &Cell| dilation::of_cell(&side.records, &cell.name);
        if let (Some(baseline), Some(candidate)) = (of_cell(left, one), of_cell(right, other))
            && baseline != candidate
        {
            found.retain(|difference| difference.key != "dilation");
            found.push(Difference { key: "dilation".to_owned(), baseline, candidate });
        }
        found
    };
    let mut differences: Vec<Difference> = Vec::new();
    for difference in chosen.iter().flat_map(of_pair) {
        if !differences.contains(&difference) {
            differences.push(difference);
        }
    }
    differences
}

fn pair(
    (left, baseline): (&Side, &Cell),
    (right, candidate): (&Side, &Cell),
    same_run: bool,
    within: f64,
) -> Pair {
    let [one, other] = [cell_of(left, baseline), cell_of(right, candidate)];
    let Judged { ratio, verdict } = judge(one, other, same_run, within);
    let is_same =
        left.records.header.provenance.scenario_hash == right.records.header.provenance.scenario_hash;
    let axes = is_same.then(|| experiment::axes(baseline, candidate)).flatten();
    let metric =
        report::metric(&left.records, &baseline.name).filter(|_| metrics_differ(one, other).is_none());
    Pair {
        baseline: name(left, baseline),
        candidate: name(right, candidate),
        metric: metric.map(|metric| metric.name.clone()),
        ratio,
        verdict,
        notes: axes.into_iter().collect(),
    }
}

fn cell_of<'a>(side: &'a Side, cell: &'a Cell) -> CellOf<'a> {
    CellOf { records: &side.records, cell }
}

fn name(side: &Side, cell: &Cell) -> Name {
    let samples = report::samples(&side.records, &cell.name);
    Name {
        cell: cell.name.clone(),
        label: cell.label.clone(),
        shown: cell.name.clone(),
        file: side.file.clone(),
        trials: samples.len(),
        mean: spindle_stats::mean(&samples.iter().map(|sample| sample.value).collect::<Vec<_>>()),
        warnings: report::warning_names(&side.records, &cell.name),
    }
}

impl Name {
    /// A sentence if its trials have warnings.
    pub(super) fn warned(&self) -> Option<String> {
        let (file, cell, warnings) = (&self.file, &self.cell, self.warnings.join(", "));
        (!self.warnings.is_empty()).then(|| {
            format!("{cell} has warnings: {warnings}; `spindle report {file} --format text` explains them")
        })
    }
}

/// The sentences of both sides of all pairs, each once.
fn warnings(pairs: &[Pair]) -> Vec<String> {
    let baselines = pairs.iter().map(|pair| &pair.baseline);
    baselines.chain(pairs.iter().map(|pair| &pair.candidate)).filter_map(Name::warned).unique().collect()
}

/// Shows labels if every cell has one of its own.
fn named(mut pairs: Vec<Pair>) -> Vec<Pair> {
    let mut labels: BTreeMap<String, String> = BTreeMap::new();
    let is_clear = pairs.iter().flat_map(|pair| [&pair.baseline, &pair.candidate]).all(|name| {
        !name.label.is_empty() && *labels.entry(name.label.clone()).or_insert(name.cell.clone()) == name.cell
    });
    for name in pairs.iter_mut().flat_map(|pair| [&mut pair.baseline, &mut pair.candidate]) {
        if is_clear {
            name.shown.clone_from(&name.label);
        }
    }
    pairs
}

/// Facts in which two runs differ: the name, and a sentence.
fn differences(left: &Records, right: &Records) -> Vec<(String, String)> {
    let (left, right) = (origins(left), origins(right));
    let names = left.keys().chain(right.keys()).sorted().dedup();
    let value = |side: &BTreeMap<String, String>, name: &str| {
        side.get(name).cloned().unwrap_or_else(|| "not recorded".to_owned())
    };
    names
        .filter(|name| *name != "recorded" && *name != "seed of the run")
        .map(|name| (name, value(&left, name), value(&right, name)))
        .filter(|(_, left, right)| left != right)
        .map(|(name, left, right)| (name.clone(), format!("{name} differs: {left} | {right}")))
        .collect()
}

fn origins(records: &Records) -> BTreeMap<String, String> {
    let view = report::View::new(records);
    view.provenance.into_iter().chain(view.settings).map(|setting| (setting.name, setting.value)).collect()
}
