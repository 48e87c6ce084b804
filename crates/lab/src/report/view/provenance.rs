//! Provenance of the numbers. Facts common to all cells appear once, other facts appear per cell.

mod errata;

use std::collections::BTreeMap;

use itertools::Itertools as _;
use serde::Serialize;

use crate::record::{Cell, Header, Provenance};
use crate::report::{Records, format};
pub(super) use errata::errata;

#[derive(Debug, Clone, Serialize)]
pub struct Setting {
    pub name: String,
    pub value: String,
}

fn setting(name: &str, value: impl Into<String>) -> Setting {
    Setting { name: name.to_owned(), value: value.into() }
}

/// The scenario's settings, as reported by the running servers, and the limit of their memory.
pub(super) fn settings(records: &Records) -> Vec<Setting> {
    let is_limited = records.trials.iter().any(|trial| trial.provenance.memory_bytes.is_some());
    let limit = is_limited.then(|| {
        let of = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), format::size);
        let limits = by_cell(records, |provenance| Some(of(provenance.memory_bytes)));
        setting("memory of the server", joined(records, &limits))
    });
    let names = records.trials.iter().flat_map(|trial| trial.provenance.settings.keys()).sorted().dedup();
    let told = names.map(|name| {
        let values = by_cell(records, |provenance| provenance.settings.get(name).cloned());
        setting(name, joined(records, &values))
    });
    limit.into_iter().chain(told).collect()
}

pub(super) fn origins(records: &Records) -> Vec<Setting> {
    let header = &records.header;
    let machine = &header.machine;
    let versions = by_cell(records, |provenance| Some(provenance.server_version.clone()));
    let stacks = by_cell(records, |provenance| Some(provenance.stack_hash.clone()));
    let mut origins = vec![
        setting("recorded", &header.created_at),
        setting(
            "Spindle",
            format!("{} ({})", header.provenance.spindle_version, header.provenance.git_revision),
        ),
        setting("server", joined(records, &versions)),
        setting("operating system", &machine.operating_system),
        setting("kernel", &machine.kernel),
        setting("processor", machine.processor()),
        setting("memory", format::bytes(machine.memory_bytes)),
        setting("seed of the run", header.scenario.seed.to_string()),
        setting("names in commands", names(records)),
        setting("scenario hash", &header.provenance.scenario_hash),
        setting("stack hash", joined(records, &stacks)),
    ];
    origins.retain(|origin| !origin.value.is_empty());
    origins
}

/// The names of cells that have a label. Empty if none has.
fn names(records: &Records) -> String {
    let cells = records.header.cells.iter().map(|cell| (&cell.name, records.header.title(&cell.name)));
    cells
        .filter(|(name, title)| *name != title)
        .map(|(name, title)| format!("{title} is `{name}`"))
        .join("; ")
}

/// Distinct values of one provenance field, with their cells.
fn by_cell(
    records: &Records,
    field: impl Fn(&Provenance) -> Option<String>,
) -> BTreeMap<String, Vec<String>> {
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for trial in &records.trials {
        if let Some(value) = field(&trial.provenance).filter(|value| !value.is_empty()) {
            let cells = values.entry(value).or_default();
            if !cells.contains(&trial.cell) {
                cells.push(trial.cell.clone());
            }
        }
    }
    values
}

fn joined(records: &Records, values: &BTreeMap<String, Vec<String>>) -> String {
    if let Ok(only) = values.keys().exactly_one() {
        return only.clone();
    }
    let position = |cells: &[String]| records.header.cells.iter().position(|cell| cells.contains(&cell.name));
    let parts = values.iter().sorted_by_key(|(_, cells)| position(cells));
    let titles = |cells: &[String]| cells.iter().map(|cell| records.header.title(cell)).join(" and ");
    parts.map(|(value, cells)| format!("{}: {value}", titles(cells))).join("; ")
}

/// Parameters of one device that have no source.
#[derive(Debug, Clone, Serialize)]
pub struct Assumptions {
    pub device: String,
    pub sentences: Vec<String>,
}

impl Assumptions {
    /// In the order of the cells, each once.
    pub(super) fn by_device(header: &Header) -> Vec<Assumptions> {
        let mut found: Vec<Assumptions> = Vec::new();
        for stack in header.cells.iter().flat_map(Cell::stacks).filter(|stack| !stack.assumptions.is_empty())
        {
            let device = header.stack_title(stack);
            let index = found.iter().position(|of| of.device == device).unwrap_or_else(|| {
                found.push(Assumptions { device: device.to_owned(), sentences: Vec::new() });
                found.len() - 1
            });
            let sentences = &mut found[index].sentences;
            sentences.extend(stack.assumptions.iter().cloned());
            *sentences = sentences.drain(..).unique().collect();
        }
        found
    }

    pub(crate) fn lines(&self) -> impl Iterator<Item = String> {
        self.sentences.iter().map(|sentence| format!("{}: {sentence}", self.device))
    }
}
