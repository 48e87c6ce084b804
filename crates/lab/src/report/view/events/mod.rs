//! The events of a run: figures of the parts of the window before and after each.

mod levels;

use itertools::Itertools as _;
use serde::Serialize;
use spindle_stats::{CONFIDENCE, Sample, compare, mean, mean_interval};

use super::{CellView, Range, Ratio, cell::measured};
use crate::record::{EventView, Measurement, PartView, Trial};
use crate::report::Records;
pub(crate) use levels::Level;

/// One event in one cell.
#[derive(Debug, Clone, Serialize)]
pub struct EventRow {
    /// [`CellView::name`] and [`CellView::title`].
    pub cell: String,
    pub title: String,
    /// In words.
    pub change: String,
    pub planned_s: f64,
    /// When it took place: the mean over the trials.
    pub at_s: f64,
    /// Of the first trial; empty where nothing answers.
    pub outcome: String,
    /// Name of the metric.
    pub metric: String,
    /// From the event before, or the begin of the window.
    pub before: Figures,
    /// To the next event, or the end of the window.
    pub after: Figures,
    /// After to before, of the metric.
    pub ratio: Option<Ratio>,
    /// What the server's series and the cores were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Level>,
}

/// Means over the trials.
#[derive(Debug, Clone, Serialize)]
pub struct Figures {
    pub metric: Figure,
    pub p95_ms: Figure,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub struct Figure {
    pub mean: f64,
    /// 95 % interval of the mean; `None` for a single trial.
    pub interval: Option<Range>,
}

/// A mark on the charts over time.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Mark {
    at_s: f64,
    change: String,
    /// Places of its cells among those with charts.
    cells: Vec<usize>,
}

/// The events of a cell, in their order.
pub(super) fn rows(records: &Records, cells: &[CellView]) -> Vec<EventRow> {
    cells.iter().flat_map(|cell| of_cell(cell, &measured(records, &cell.name))).collect()
}

fn of_cell(cell: &CellView, trials: &[(&Trial, &Measurement)]) -> Vec<EventRow> {
    let Some((_, first)) = trials.first() else { return Vec::new() };
    // Events at one time end one part together.
    let times: Vec<f64> = first.events.iter().map(|event| event.planned_s).dedup().collect();
    let measured: Vec<(u32, &Measurement)> =
        trials.iter().map(|(trial, found)| (trial.block, *found)).collect();
    let row = |event: &EventView| {
        let part = times.iter().position(|time| *time == event.planned_s)?;
        let parts: Vec<(u32, [&PartView; 2])> = trials
            .iter()
            .filter_map(|(trial, found)| {
                Some((trial.block, [found.parts.get(part)?, found.parts.get(part + 1)?]))
            })
            .collect();
        let is_it = |other: &&EventView| other.planned_s == event.planned_s && other.change == event.change;
        let at_s = trials.iter().filter_map(|(_, found)| Some(found.events.iter().find(is_it)?.at_s));
        let samples = |side: usize| {
            let value = |(block, parts): &(u32, [&PartView; 2])| Sample {
                block: *block,
                value: parts[side].metric.value,
            };
            parts.iter().map(value).collect_vec()
        };
        Some(EventRow {
            cell: cell.name.clone(),
            title: cell.title.clone(),
            change: event.change.clone(),
            planned_s: event.planned_s,
            at_s: mean(&at_s.collect_vec())?,
            outcome: event.outcome.clone(),
            metric: parts.first()?.1[0].metric.name.clone(),
            before: figures(parts.iter().map(|(_, [before, _])| *before))?,
            after: figures(parts.iter().map(|(_, [_, after])| *after))?,
            ratio: compare(&samples(0), &samples(1), CONFIDENCE).as_ref().map(Ratio::new),
            levels: levels::levels(&measured, part),
        })
    };
    first.events.iter().filter_map(row).collect()
}

fn figures<'a>(parts: impl Iterator<Item = &'a PartView> + Clone) -> Option<Figures> {
    let metric = figure(parts.clone().map(|part| part.metric.value).collect())?;
    Some(Figures { metric, p95_ms: figure(parts.map(|part| part.latency.p95_ms).collect())? })
}

fn figure(values: Vec<f64>) -> Option<Figure> {
    let interval = mean_interval(&values, CONFIDENCE);
    // Neither figure can be negative.
    let interval = interval.map(|interval| Range { low: interval.low.max(0.0), high: interval.high });
    Some(Figure { mean: mean(&values)?, interval })
}

/// The marks of these events; those of the same time and the same cells have one. `charted` are the names of
/// the cells with charts.
pub(super) fn marks(rows: &[EventRow], charted: &[&str]) -> Vec<Mark> {
    let changes = rows.iter().into_group_map_by(|row| (time_ns(row), &row.change));
    let place = |row: &&EventRow| charted.iter().position(|name| *name == row.cell);
    let changes = changes.into_iter().sorted_by(|one, other| one.0.cmp(&other.0));
    let changes = changes.map(|((time_ns, change), rows)| {
        let cells: Vec<usize> = rows.iter().filter_map(place).collect();
        let at_s = mean(&rows.iter().map(|row| row.at_s).collect_vec()).unwrap_or_default();
        ((time_ns, cells), (at_s, change))
    });
    let same = changes.chunk_by(|(place, _)| place.clone());
    let marks = same.into_iter().map(|((_, cells), changes)| {
        let (times_s, changes): (Vec<f64>, Vec<&String>) = changes.map(|(_, change)| change).unzip();
        Mark { at_s: mean(&times_s).unwrap_or_default(), change: changes.into_iter().join(", "), cells }
    });
    marks.collect()
}

fn time_ns(row: &EventRow) -> u64 {
    (row.planned_s * 1e9) as u64
}
