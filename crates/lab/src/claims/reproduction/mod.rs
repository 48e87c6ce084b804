//! The figures of runs whose cells name published rows, held against the claims of the studies.

use itertools::Itertools as _;
use serde::Serialize;
use spindle_base::Mistake;
use spindle_stats::Sample;

mod found;
mod trial_figure;

use super::estimate::Figure;
use super::rows::Place;
use super::study::{Better, Finding, Study, VALUE};
use super::verdict::{CheckOutcome, ClaimOutcome, FurtherTrials, Verdict, outcomes};
use super::{check_row, studies};
use crate::record::{Cell, PublishedTag};
use crate::report::{self, Records, is_limited_by_cores, puts_off_writes};
pub(super) use trial_figure::check as check_figure;

/// Blocks of two runs have nothing in common but their numbers; a scenario has fewer trials than this.
const BLOCKS_OF_A_RUN: u32 = 1_000_000;
/// The reason of a row that is in no run begins so.
pub(in crate::claims) const NO_RUN: &str = "no run has";

/// The claims of one study.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    pub study: String,
    pub title: String,
    pub year: u32,
    pub claims: Vec<ClaimOutcome>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparisons {
    pub studies: Vec<Comparison>,
    /// The rows that the runs have.
    pub rows: Vec<RowOfRun>,
    /// Reservations about the runs, as sentences.
    pub notes: Vec<String>,
}

/// A published row, and the cell that repeats it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowOfRun {
    pub tag: PublishedTag,
    pub file: String,
    pub cell: String,
    /// One value a trial.
    pub values: Vec<f64>,
    /// Why the cell has no figure for the row.
    pub problem: Option<String>,
    /// The figure is the cell's rate or time, and the cores limited it, not the storage.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_limited_by_cores: bool,
    /// The figure is the cell's rate or time, and its windows left many writes for later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub puts_off_writes: bool,
    #[serde(skip)]
    samples: Vec<Sample>,
    /// What a trial of the cell took on the clock.
    #[serde(skip)]
    trial_s: f64,
}

/// Holds the records of runs, each with its name, against the claims of the studies that their cells name.
///
/// # Errors
/// A run has no cell that names a published row, or a row that this version does not know, or two cells have
/// the same row.
pub fn compare(runs: &[(String, Records)]) -> Result<Comparisons, Mistake> {
    if let Some((file, _)) = runs.iter().find(|(_, records)| records.header.scenario.published.is_empty()) {
        let words =
            "no cell of the run names a published row; the scenario's [[published]] does (docs/scenario.md)";
        return Err(Mistake::new(format!("{file}: {words}")));
    }
    let rows = rows(runs)?;
    let is_named = |study: &&Study| rows.iter().any(|row| row.tag.study == study.slug());
    let named = studies().iter().filter(is_named).collect_vec();
    Comparisons::new(&named, rows, runs)
}

/// Holds runs against all claims of one study. `not_run` are rows of scenarios that were not run, each with the reason; a run
/// of another scenario, as it was when it was run, may have them. A run without rows is told in what was found, or in the study's own
/// words.
///
/// # Errors
/// A row that this version does not know, or two cells have the same row.
pub fn compare_study(
    study: &Study,
    runs: &[(String, Records)],
    not_run: &[(PublishedTag, String)],
) -> Result<Comparisons, Mistake> {
    let rows = rows(runs)?;
    let is_missing = |tag: &PublishedTag| !rows.iter().any(|row| row.is_same(tag));
    let row_of = |(tag, reason): &(PublishedTag, String)| RowOfRun {
        tag: tag.clone(),
        file: String::new(),
        cell: String::new(),
        values: Vec::new(),
        problem: Some(reason.clone()),
        is_limited_by_cores: false,
        puts_off_writes: false,
        samples: Vec::new(),
        trial_s: 0.0,
    };
    let missing: Vec<RowOfRun> = not_run.iter().filter(|(tag, _)| is_missing(tag)).map(row_of).collect();
    Comparisons::new(&[study], rows.into_iter().chain(missing).collect(), runs)
}

fn rows(runs: &[(String, Records)]) -> Result<Vec<RowOfRun>, Mistake> {
    let rows = (0..).zip(runs).map(|(index, (file, records))| of_run(index, file, records));
    rows.flatten_ok().collect()
}

impl Comparisons {
    fn new(
        studies: &[&Study],
        rows: Vec<RowOfRun>,
        runs: &[(String, Records)],
    ) -> Result<Comparisons, Mistake> {
        let mut pairs = rows.iter().tuple_combinations();
        if let Some((one, other)) = pairs.find(|(one, other)| one.is_same(&other.tag)) {
            let words = format!(
                "{} and {} are both {}; a row is of one cell",
                one.shown(),
                other.shown(),
                place(&one.tag).words()
            );
            return Err(Mistake::new(words));
        }
        let comparisons = studies.iter().map(|study| of_study(study, &rows, runs)).collect();
        let notes = runs.iter().flat_map(|(file, records)| notes(file, records, &rows)).collect();
        Ok(Comparisons { studies: comparisons, rows, notes })
    }
}

fn of_study(study: &Study, rows: &[RowOfRun], runs: &[(String, Records)]) -> Comparison {
    let lookup = |wanted: &Place| {
        let of_place = |row: &&RowOfRun| row.tag.study == study.slug() && place(&row.tag) == *wanted;
        match rows.iter().find(of_place) {
            None => Err(format!("{NO_RUN} {}", wanted.words())),
            Some(RowOfRun { problem: Some(problem), .. }) => Err(problem.clone()),
            Some(row) => Ok(Figure::Measured(row.samples.clone())),
        }
    };
    let with_rows = |claim: ClaimOutcome| {
        let places = claim.checks.iter().flat_map(|check| check.check.places()).collect_vec();
        let is_used = |row: &&RowOfRun| row.tag.study == study.slug() && places.contains(&place(&row.tag));
        let used = rows.iter().filter(is_used).collect_vec();
        let stand_ins = used.iter().filter_map(|row| row.tag.stand_in.clone()).unique().collect();
        let limited = used.iter().filter(|row| row.is_limited_by_cores).collect_vec();
        // Cells that all ran on full cores are compared for what their programs need.
        let others_are_not = limited.len() < used.len();
        let is_of_several = !used.iter().map(|row| &row.file).all_equal();
        let words = |row: &RowOfRun| match is_of_several {
            true => format!("{} ({})", row.cell, row.file),
            false => row.cell.clone(),
        };
        let limited_by_cores =
            limited.iter().filter(|_| others_are_not).map(|row| words(row)).unique().collect();
        let put_off = used.iter().filter(|row| row.puts_off_writes);
        let put_off_writes = put_off.map(|row| words(row)).unique().collect();
        let further_trials = further_trials(&claim, &used);
        ClaimOutcome { stand_ins, limited_by_cores, put_off_writes, further_trials, ..claim }
    };
    let with_figures = |claim: ClaimOutcome| {
        let finding = claim.finding.map(|finding| Finding { text: found::told(&finding, runs), ..finding });
        ClaimOutcome { finding, ..claim }
    };
    Comparison {
        study: study.slug().to_owned(),
        title: study.source.title_en.as_ref().unwrap_or(&study.source.title).clone(),
        year: study.source.year,
        claims: outcomes(study, &lookup).into_iter().map(with_rows).map(with_figures).collect(),
    }
}

/// What would decide a claim that is not decided, by the rows that it uses: the checks that are open want trials of their cells.
fn further_trials(claim: &ClaimOutcome, used: &[&RowOfRun]) -> Vec<FurtherTrials> {
    let is_open = |check: &&CheckOutcome| check.verdict == Verdict::NotDecided;
    let open = claim.checks.iter().filter(is_open).collect_vec();
    if claim.verdict != Verdict::NotDecided || open.iter().any(|check| check.trials_to_decide.is_none()) {
        return Vec::new();
    }
    let of_check = |check: &&CheckOutcome| {
        let (places, wanted) = (check.check.places(), check.trials_to_decide.unwrap_or_default());
        let rows = used.iter().filter(|row| places.contains(&place(&row.tag)));
        let of_row = |row: &&RowOfRun| FurtherTrials {
            file: row.file.clone(),
            cell: row.cell.clone(),
            trials: wanted.saturating_sub(row.values.len()),
            trial_s: row.trial_s,
        };
        rows.map(of_row).collect_vec()
    };
    FurtherTrials::joined(open.iter().flat_map(of_check))
}

fn of_run(index: u32, file: &str, records: &Records) -> Result<Vec<RowOfRun>, Mistake> {
    let tags = &records.header.scenario.published;
    let row = |(tag, at): (&PublishedTag, usize)| {
        check_row(tag).map_err(|mistake| mistake.under(&format!("published[{at}]")).in_file(file))?;
        let cells = records.header.cells.iter().filter(|cell| tag.is_of(cell)).collect_vec();
        if cells.is_empty() || (tag.best_over.is_none() && cells.len() > 1) {
            let words = "fits no cell of the run, or several";
            return Err(Mistake::at(format!("published[{at}]"), words).in_file(file));
        }
        Ok(of_cells(index, file, records, &cells, tag))
    };
    tags.iter().zip(0..).map(row).collect()
}

fn of_cells(index: u32, file: &str, records: &Records, cells: &[&Cell], tag: &PublishedTag) -> RowOfRun {
    let (cell, samples, problem) = match trial_figure::samples(records, cells, tag) {
        Ok((cell, samples)) => (cell, samples, opposed(records, cells[0], tag)),
        Err(problem) => (cells[0].name.clone(), Vec::new(), Some(problem)),
    };
    let trial_s = records.mean_real_s(&cell).unwrap_or_default();
    let of_run = |sample: Sample| Sample { block: sample.block + index * BLOCKS_OF_A_RUN, ..sample };
    let samples = samples.into_iter().map(of_run).collect_vec();
    RowOfRun {
        tag: tag.clone(),
        file: file.to_owned(),
        is_limited_by_cores: tag.figure.is_metric() && is_limited_by_cores(records, &cell),
        puts_off_writes: tag.figure.is_metric() && puts_off_writes(records, &cell),
        cell,
        values: samples.iter().map(|sample| sample.value).collect(),
        trial_s,
        problem: problem.map(|words| format!("{file}: {words}")),
        samples,
    }
}

/// A sentence if the metric is a rate and the row is a time, or the other way round.
fn opposed(records: &Records, cell: &Cell, tag: &PublishedTag) -> Option<String> {
    let metric = report::metric(records, &cell.name)
        .filter(|_| tag.figure.is_metric() && tag.seconds_for.is_none() && tag.over.is_none())?;
    let study = studies().iter().find(|study| study.slug() == tag.study)?;
    let table = study.table(&tag.table).filter(|_| tag.column.is_none())?;
    let words = match (metric.lower_is_better, table.better) {
        (true, Better::Higher) => ["lower", "higher"],
        (false, Better::Lower) => ["higher", "lower"],
        _ => return None,
    };
    let [ours, theirs] = words;
    Some(format!("`{}` is better when {ours}, and the row's {} when {theirs}", metric.name, table.metric))
}

fn place(tag: &PublishedTag) -> Place {
    let column = tag.column.clone().unwrap_or_else(|| VALUE.to_owned());
    Place { table: tag.table.clone(), row: tag.row.clone(), column }
}

/// A sentence for each tagged cell whose trials have warnings.
fn notes(file: &str, records: &Records, rows: &[RowOfRun]) -> Vec<String> {
    let cells = rows.iter().filter(|row| row.file == file).map(|row| &row.cell).unique();
    let note = |cell: &String| {
        let warnings = report::warning_names(records, cell).join(", ");
        let words =
            format!("{file}, cell {cell} has warnings: {warnings}; `spindle report {file}` explains them");
        (!warnings.is_empty()).then_some(words)
    };
    cells.filter_map(note).collect()
}

impl RowOfRun {
    fn is_same(&self, other: &PublishedTag) -> bool {
        self.tag.study == other.study && place(&self.tag) == place(other)
    }

    fn shown(&self) -> String {
        format!("{}:{}", self.file, self.cell)
    }
}
