//! Runs the best storages for real: the measured cell's scenario with other storage.

use spindle_base::Mistake;
use toml::{Table, Value};

use super::prediction::Storage;
use crate::record::{Cell, SweptPart};

/// Trials of each storage.
const TRIALS: i64 = 2;
/// Above it a confirmation would take longer than most people wait.
const DILATION_MOST: i64 = 8;

/// The scenario of a cell on these storages, each with a device of its own size.
///
/// # Errors
/// The text is not a scenario.
pub fn scenario_text(text: &str, cell: &Cell, storages: &[&Storage]) -> Result<String, Mistake> {
    let mut scenario: Table =
        text.parse().map_err(|error| Mistake::new(format!("the scenario cannot be read: {error}")))?;
    for key in ["layouts", "published", "events"] {
        scenario.remove(key);
    }
    let (server, workload) = cell.bases();
    set_swept_values(&mut scenario, cell, server, workload);
    let mut stacks = Table::new();
    for storage in storages {
        stacks.extend(storage.tables.clone());
    }
    let names: Vec<Value> = storages.iter().map(|storage| storage.name.as_str().into()).collect();
    scenario.insert("stacks".to_owned(), Value::Table(stacks));
    let matrix = [("stack", names), ("server", vec![server.into()]), ("workload", vec![workload.into()])];
    let matrix = matrix.into_iter().map(|(key, values)| (key.to_owned(), Value::Array(values)));
    scenario.insert("matrix".to_owned(), Value::Table(matrix.collect()));
    scenario.insert("title".to_owned(), "Predicted storage, measured".into());
    if let Some(Value::Table(run)) = scenario.get_mut("run") {
        for key in ["until", "cores", "recovery"] {
            run.remove(key);
        }
        run.insert("trials".to_owned(), TRIALS.into());
        run.insert("dilation".to_owned(), "as needed".into());
        run.insert("dilation_at_most".to_owned(), DILATION_MOST.into());
    }
    toml::to_string(&scenario)
        .map_err(|error| Mistake::new(format!("the scenario cannot be written: {error}")))
}

/// The cell's values on swept axes become those of its server and workload.
fn set_swept_values(scenario: &mut Table, cell: &Cell, server: &str, workload: &str) {
    for swept in &cell.sweep {
        let table = match swept.part {
            SweptPart::Workload => table_at(scenario, &["workloads", workload]),
            SweptPart::Server => table_at(scenario, &["servers", server, "settings"]),
        };
        let number = swept.value.parse::<i64>().map(Value::Integer);
        table.insert(swept.key.clone(), number.unwrap_or_else(|_| swept.value.as_str().into()));
    }
}

/// The table at a path, which is made where it is not there.
fn table_at<'a>(scenario: &'a mut Table, path: &[&str]) -> &'a mut Table {
    path.iter().fold(scenario, |table, key| {
        let entry = table.entry((*key).to_owned()).or_insert_with(|| Value::Table(Table::new()));
        if !entry.is_table() {
            *entry = Value::Table(Table::new());
        }
        entry.as_table_mut().expect("made a table above")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::candidates::candidates;
    use crate::scenario::plan::plan;
    use crate::scenario::{Bounds, Scenario};
    use crate::server::Trust;

    const BOUNDS: Bounds = Bounds { memory_bytes: 16 << 30, trust: Trust::ReadOnly };

    #[test]
    fn the_cell_is_measured_on_other_storage() {
        let text = include_str!("../../../../scenarios/how-many-connections.toml");
        let scenario = Scenario::parse("how-many-connections", text, &BOUNDS).unwrap();
        let cells = plan(&scenario).cells;
        let cell = cells.last().unwrap();
        let (storages, _) = candidates("x25m-80,raid10-4x15k-wb", 2 << 30).unwrap();
        let text = scenario_text(text, cell, &storages.iter().collect::<Vec<_>>()).unwrap();
        let confirmed =
            Scenario::parse("confirm", &text, &BOUNDS).unwrap_or_else(|mistake| panic!("{mistake}: {text}"));
        let names: Vec<String> = plan(&confirmed).cells.into_iter().map(|cell| cell.name).collect();
        assert_eq!(names, ["x25m-80", "raid10-4x15k-wb"]);
        assert!(!cell.sweep.is_empty(), "the scenario sweeps nothing");
        for swept in &cell.sweep {
            assert!(text.contains(&format!("{} = {}", swept.key, swept.value)), "{text}");
        }
    }
}
