//! A row for each test and a column for each storage, as published studies print their results.

use itertools::Itertools as _;
use serde::Serialize;

use super::CellView;
use crate::record::Cell;
use crate::report::verdict::Word;
use crate::report::view::judged;
use crate::report::{Records, format};

/// Fewer tests are a table that reads better cell by cell.
const TESTS_LEAST: usize = 3;

#[derive(Debug, Clone, Serialize)]
pub struct StudyTable {
    /// Labels of the storage; the first is the base of the changes.
    pub storages: Vec<String>,
    pub rows: Vec<StudyRow>,
}

#[derive(Debug, Clone, Serialize)]
pub struct StudyRow {
    pub test: String,
    /// Empty without a figure.
    pub metric: String,
    pub cells: Vec<Option<StudyCell>>,
}

#[derive(Debug, Clone, Serialize)]
pub struct StudyCell {
    pub mean: f64,
    pub has_few_events: bool,
    pub is_not_steady: bool,
    /// Against the first storage, as a share; `None` for that one, and where it has no figure.
    pub change: Option<f64>,
    /// Whether the change is shown, and not only measured.
    pub is_shown: bool,
    /// The change as it is printed: `+127 %`, or `(+1.2 %)` where it is not shown.
    pub change_text: Option<String>,
}

impl StudyTable {
    /// `None` for a matrix with fewer than three workloads or two storages, or with swept axes.
    pub(in crate::report::view) fn new(records: &Records, views: &[CellView]) -> Option<StudyTable> {
        let cells = &records.header.cells;
        let storages =
            cells.iter().map(|cell| (cell.layout_name(), cell.storage_label())).unique().collect_vec();
        let tests =
            cells.iter().map(|cell| (cell.workload.as_str(), cell.server.as_str())).unique().collect_vec();
        let workload_count = tests.iter().map(|(workload, _)| workload).unique().count();
        let is_swept = cells.iter().any(|cell| !cell.sweep.is_empty());
        if workload_count < TESTS_LEAST || storages.len() < 2 || is_swept {
            return None;
        }
        let has_servers = tests.iter().map(|(_, server)| server).unique().count() > 1;
        let row = |(workload, server): &(&str, &str)| {
            let of = |(storage, _): &(&str, &str)| {
                cells.iter().find(|cell| {
                    cell.workload == *workload && cell.server == *server && cell.layout_name() == *storage
                })
            };
            let of_row = storages.iter().map(of).collect_vec();
            let base = of_row[0];
            let metric = of_row.iter().flatten().find_map(|cell| super::metric(records, &cell.name));
            StudyRow {
                test: if has_servers { format!("{workload}, {server}") } else { (*workload).to_owned() },
                metric: metric.map_or_else(String::new, |metric| metric.name.clone()),
                cells: of_row.iter().map(|cell| study_cell(records, views, base, (*cell)?)).collect(),
            }
        };
        Some(StudyTable {
            rows: tests.iter().map(row).collect(),
            storages: storages.iter().map(|(_, label)| (*label).to_owned()).collect(),
        })
    }
}

fn study_cell(records: &Records, views: &[CellView], base: Option<&Cell>, cell: &Cell) -> Option<StudyCell> {
    let view = views.iter().find(|view| view.name == cell.name)?;
    let base = base.filter(|base| base.name != cell.name);
    let judged = base.and_then(|base| judged(records, &base.name, &cell.name));
    let change = judged.as_ref().and_then(|judged| Some(judged.ratio.as_ref()?.ratio - 1.0));
    let is_shown = judged.is_some_and(|judged| matches!(judged.verdict.word, Word::Better | Word::Worse));
    Some(StudyCell {
        mean: view.throughput.as_ref()?.mean,
        has_few_events: view.has_few_events,
        is_not_steady: view.is_not_steady,
        change,
        is_shown,
        change_text: change.map(|change| up_or_down(change, is_shown)),
    })
}

fn up_or_down(change: f64, is_shown: bool) -> String {
    let sign = if change < 0.0 { "-" } else { "+" };
    let percent = change.abs() * 100.0;
    let number = if percent >= 99.95 { format::number(percent.round()) } else { format!("{percent:.1}") };
    let text = format!("{sign}{number} %");
    if is_shown { text } else { format!("({text})") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_sign_and_brackets_without_proof() {
        let check = |change: f64, is_shown: bool, expect: &str| {
            assert_eq!(up_or_down(change, is_shown), expect);
        };
        check(1.27, true, "+127 %");
        check(-0.083, true, "-8.3 %");
        check(0.012, false, "(+1.2 %)");
        check(21.4, true, "+2,140 %");
    }
}
