//! What a report says of dilated time: at which dilation each cell ran, and why.

use std::collections::BTreeMap;

use itertools::Itertools as _;
use spindle_base::dilation::Dilation;
use spindle_base::text::plural;

use super::{Records, format};

/// The dilation of a cell's trials as text: `4`; several values only if records were joined by hand. `None`
/// without a measurement.
pub(super) fn of_cell(records: &Records, cell: &str) -> Option<String> {
    let found = measured(records).filter(|(name, _)| *name == cell).map(|(_, dilation)| dilation.to_string());
    let found = found.unique().join(" and ");
    (!found.is_empty()).then_some(found)
}

fn measured(records: &Records) -> impl Iterator<Item = (&str, Dilation)> {
    let trials = records.trials.iter();
    trials.filter_map(|trial| Some((trial.cell.as_str(), trial.measurement.as_ref()?.dilation)))
}

/// Sentences for the notes; none if nothing was dilated.
pub(super) fn notes(records: &Records) -> Vec<String> {
    let mut cells: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for cell in &records.header.cells {
        if let Some(dilation) = of_cell(records, &cell.name) {
            cells.entry(dilation).or_default().push(&cell.name);
        }
    }
    if measured(records).all(|(_, dilation)| dilation.is_none()) {
        return Vec::new();
    }
    let title = |name: &&str| format::the(&records.header.title(name));
    let cores = plural(records.header.cpu_count() as usize, "core");
    let each = |(dilation, names): (&String, &Vec<&str>)| {
        let names = format::list(names.iter().map(title));
        match dilation.as_str() {
            "1" => format!("{names} ran in real time"),
            k if cells.len() == 1 => {
                format!("a second in this report took {k} s, and the {cores} looked {k} times as fast")
            }
            k => format!(
                "for {names} a second in this report took {k} s, and the {cores} looked {k} times as fast"
            ),
        }
    };
    let sentence = format!("Time was dilated: {}.", cells.iter().map(each).join("; "));
    std::iter::once(sentence).chain(pilots(records)).collect()
}

/// One sentence for each cell with a pilot.
fn pilots(records: &Records) -> impl Iterator<Item = String> {
    let of_cell =
        |cell: &str| records.trials.iter().find(|trial| trial.cell == cell && !trial.pilot.is_empty());
    records.header.cells.iter().filter_map(move |cell| {
        let steps = &of_cell(&cell.name)?.pilot;
        let step = |step: &crate::record::PilotStep| {
            let late = if step.late { ", and the emulator was late" } else { "" };
            let (busy, figure) = (step.cpu_busy * 100.0, format::number(step.figure));
            format!("at {} the cores were {busy:.0} % busy{late} ({figure})", step.dilation)
        };
        let title = format::the(&records.header.title(&cell.name));
        Some(format!("Pilots of {title}: {}.", steps.iter().map(step).join("; ")))
    })
}
