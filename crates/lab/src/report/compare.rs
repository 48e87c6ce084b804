//! Compares cells of one records file, or of two.
//!
//! Within one file, the trials of a block ran next to each other and are compared pair by pair. Two files are
//! two runs at different times: their trials are not paired, and all other differences between the runs are
//! listed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_base::{Mistake, near};
use spindle_stats::{CONFIDENCE, Sample, compare};

use crate::report::{self, Ratio, Records};

/// One pair of cells.
#[derive(Debug, Clone, Serialize)]
pub struct Pair {
    pub baseline: String,
    pub candidate: String,
    /// `None` when the metrics of the cells differ.
    pub metric: Option<String>,
    pub baseline_mean: Option<f64>,
    pub candidate_mean: Option<f64>,
    /// `None` without two values to divide.
    pub ratio: Option<Ratio>,
    /// Why there is no ratio.
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Comparisons {
    pub pairs: Vec<Pair>,
    /// Other differences between two files, as sentences.
    pub differences: Vec<String>,
}

/// One side of a comparison: a file, or one cell of it.
#[derive(Debug, Clone)]
pub struct Side {
    pub file: String,
    pub records: Records,
    pub cell: Option<String>,
}

/// Compares every cell of one file with its first cell.
pub fn within(side: &Side) -> Result<Comparisons, Mistake> {
    let names: Vec<&str> = side.records.header.cells.iter().map(|cell| cell.name.as_str()).collect();
    let [first, _, ..] = names.as_slice() else {
        let words = "has one cell only; name a second file or cell to compare it with";
        return Err(Mistake::new(format!("{}: {words}", side.file)));
    };
    let first = side.cell.as_deref().unwrap_or(first);
    check_cell(side, first)?;
    let others = names.iter().filter(|name| **name != first);
    let pairs = others.map(|other| pair((side, first), (side, other), true)).collect();
    Ok(Comparisons { pairs, differences: Vec::new() })
}

/// Compares two named cells, or the cells that two files share.
pub fn between(left: &Side, right: &Side) -> Result<Comparisons, Mistake> {
    let same_run = left.records.header.created_at == right.records.header.created_at
        && left.records.header.provenance == right.records.header.provenance;
    let names = |side: &Side| -> Vec<String> {
        match &side.cell {
            Some(cell) => vec![cell.clone()],
            None => side.records.header.cells.iter().map(|cell| cell.name.clone()).collect(),
        }
    };
    let (lefts, rights) = (names(left), names(right));
    for (side, names) in [(left, &lefts), (right, &rights)] {
        for name in names {
            check_cell(side, name)?;
        }
    }
    let chosen: Vec<(&String, &String)> = if left.cell.is_some() || right.cell.is_some() {
        lefts.iter().cartesian_product(&rights).collect()
    } else {
        lefts.iter().filter(|name| rights.contains(name)).map(|name| (name, name)).collect()
    };
    if chosen.is_empty() {
        let (left, right) = (&left.file, &right.file);
        return Err(Mistake::new(format!(
            "{left} and {right} have no cell of the same name; name them as {left}:CELL and {right}:CELL"
        )));
    }
    let pair =
        |(baseline, candidate): (&String, &String)| pair((left, baseline), (right, candidate), same_run);
    let pairs = chosen.into_iter().map(pair).collect();
    let differences = if same_run { Vec::new() } else { differences(&left.records, &right.records) };
    Ok(Comparisons { pairs, differences })
}

fn check_cell(side: &Side, name: &str) -> Result<(), Mistake> {
    let cells = &side.records.header.cells;
    if cells.iter().any(|cell| cell.name == name) {
        return Ok(());
    }
    let known = near::list(&cells.iter().map(|cell| cell.name.as_str()).collect_vec());
    Err(Mistake::new(format!("{}: has no cell `{name}`; its cells are {known}", side.file)))
}

fn pair((left, baseline): (&Side, &str), (right, candidate): (&Side, &str), same_run: bool) -> Pair {
    let baseline_samples = report::samples(&left.records, baseline);
    let mut candidate_samples = report::samples(&right.records, candidate);
    if !same_run {
        // Blocks of two runs have nothing in common but their numbers. The offset keeps the second run's
        // blocks apart.
        let last = baseline_samples.iter().map(|sample| sample.block).max().unwrap_or_default();
        for sample in &mut candidate_samples {
            sample.block += last + 1;
        }
    }
    let metrics = (report::metric(&left.records, baseline), report::metric(&right.records, candidate));
    let mean = |samples: &[Sample]| {
        spindle_stats::mean(&samples.iter().map(|sample| sample.value).collect::<Vec<_>>())
    };
    let (ratio, reason) = match &metrics {
        (None, _) => (None, Some(format!("{baseline} has no measurement"))),
        (_, None) => (None, Some(format!("{candidate} has no measurement"))),
        (Some(left), Some(right)) if left.name != right.name => {
            (None, Some(format!("their metrics differ ({}; {})", left.name, right.name)))
        }
        (Some(metric), _) => match compare(&baseline_samples, &candidate_samples, CONFIDENCE) {
            Some(comparison) => (Some(Ratio::new(comparison, metric.lower_is_better)), None),
            None => (None, Some("one of them did no work".to_owned())),
        },
    };
    Pair {
        baseline: baseline.to_owned(),
        candidate: candidate.to_owned(),
        metric: metrics
            .0
            .map(|metric| metric.name.clone())
            .filter(|name| metrics.1.is_some_and(|other| other.name == *name)),
        baseline_mean: mean(&baseline_samples),
        candidate_mean: mean(&candidate_samples),
        ratio,
        reason,
    }
}

fn differences(left: &Records, right: &Records) -> Vec<String> {
    let (left, right) = (origins(left), origins(right));
    let names = left.keys().chain(right.keys()).sorted().dedup();
    let value = |side: &BTreeMap<String, String>, name: &str| {
        side.get(name).cloned().unwrap_or_else(|| "not recorded".to_owned())
    };
    names
        .filter(|name| *name != "recorded" && *name != "seed of the run")
        .map(|name| (name, value(&left, name), value(&right, name)))
        .filter(|(_, left, right)| left != right)
        .map(|(name, left, right)| format!("{name} differs: {left} | {right}"))
        .collect()
}

fn origins(records: &Records) -> BTreeMap<String, String> {
    let view = report::View::new(records);
    view.provenance.into_iter().chain(view.settings).map(|setting| (setting.name, setting.value)).collect()
}

/// One sentence per pair.
pub fn text(comparisons: &Comparisons) -> String {
    let mut text = String::new();
    for pair in &comparisons.pairs {
        let head = format!("{} to {}", pair.candidate, pair.baseline);
        let line = match (&pair.ratio, &pair.reason) {
            (Some(ratio), _) => {
                let verdict = match ratio.verdict.as_str() {
                    "not tested" => "one trial on a side, so no interval and no verdict",
                    other => other,
                };
                format!("{head}: ratio {}, {verdict}; {}", ratio.text(), ratio.method)
            }
            (None, reason) => {
                format!("{head}: not compared, {}", reason.as_deref().unwrap_or("no reason known"))
            }
        };
        let _ = writeln!(text, "{}", report::wrapped(&line, "  "));
    }
    for difference in &comparisons.differences {
        let _ = writeln!(text, "{}", report::wrapped(&format!("note: {difference}"), "  "));
    }
    text
}
