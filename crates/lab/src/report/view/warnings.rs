//! Warnings and failed trials of the cells.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::Serialize;

use super::cell::{Failure, failure, measured};
use crate::record::{Cell, Trial, Warning};
use crate::report::{Records, format};

/// One kind of warning in one cell, with the sentence of the worst trial.
#[derive(Debug, Clone, Serialize)]
pub struct WarningView {
    pub cell: String,
    /// [`super::CellView::title`].
    pub title: String,
    pub name: String,
    pub trial_count: usize,
    pub sentence: String,
}

pub(super) fn failures(records: &Records) -> Vec<Failure> {
    let of_cell = |cell: &Cell| {
        let measured = measured(records, &cell.name).iter().map(|(trial, _)| trial.trial).collect_vec();
        let trials = records.trials.iter().filter(|trial| trial.cell == cell.name);
        let failed = trials.filter_map(|trial| Some((trial, failure(trial)?)));
        let view = |(trial, error): (&Trial, String)| Failure {
            cell: cell.name.clone(),
            title: records.header.title(&cell.name),
            trial: trial.trial,
            block: trial.block,
            error,
            repeated: measured.contains(&trial.trial),
        };
        failed.map(view).collect_vec()
    };
    records.header.cells.iter().flat_map(of_cell).collect()
}

pub(super) fn warnings(records: &Records) -> Vec<WarningView> {
    let mut views = Vec::new();
    for cell in &records.header.cells {
        let trials = measured(records, &cell.name);
        let mut by_name: BTreeMap<&str, Vec<&Warning>> = BTreeMap::new();
        for (trial, _) in &trials {
            let warnings = trial.warnings.iter().filter(|warning| !warning.is_of_machine());
            // Each trial counts once per kind.
            for warning in warnings.unique_by(|warning| warning.name()) {
                by_name.entry(warning.name()).or_default().push(warning);
            }
        }
        for (name, found) in by_name {
            let worst = found.iter().max_by(|left, right| left.severity().total_cmp(&right.severity()));
            views.extend(worst.map(|worst| WarningView {
                cell: cell.name.clone(),
                title: records.header.title(&cell.name),
                name: name.to_owned(),
                trial_count: found.len(),
                sentence: records.header.with_titles(cell, &worst.sentence(), format::the),
            }));
        }
    }
    views
}
