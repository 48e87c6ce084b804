//! `spindle advise --confirm 2`: the best storages, measured.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use spindle_base::Mistake;

use crate::advise::answer::Answer;
use crate::advise::confirm::scenario_text;
use crate::advise::prediction::Storage;
use crate::cmd::output::columns;
use crate::host::interrupt::Interrupt;
use crate::host::provenance;
use crate::record::input::{self, Records};
use crate::record::records_file::Resume;
use crate::record::{Cell, Measurement};
use crate::run;
use crate::scenario::plan::plan;
use crate::scenario::{Bounds, Scenario};
use crate::server::Trust;

/// The load under which the best storages are measured.
#[derive(Debug)]
pub(super) struct Load {
    text: String,
    cell: Cell,
}

impl Load {
    /// That of the record's own cell.
    pub(super) fn of_record(records: &Records, cell: &Cell) -> Load {
        Load { text: records.header.scenario.text.clone(), cell: cell.clone() }
    }

    /// That of the first cell of a scenario, for a server in production.
    ///
    /// # Errors
    /// It is not a scenario.
    pub(super) fn of_file(path: &Path) -> Result<Load, Mistake> {
        let scenario = Scenario::read(path, &bounds())?;
        let cell = plan(&scenario).cells.into_iter().next();
        let cell = cell.ok_or_else(|| Mistake::at("--load", "the scenario has no cell"))?;
        Ok(Load { text: scenario.text, cell })
    }
}

fn bounds() -> Bounds {
    Bounds { memory_bytes: provenance::memory_bytes(), trust: Trust::MayRun }
}

/// Measures the first `count` storages of the answer that can be had alone, and lays predictions beside measurements.
/// `predict` gives the prediction for a storage with cores as they are at a dilation: time is dilated where the cores of
/// this machine would decide.
///
/// # Errors
/// The run fails, or the user ends it.
pub(super) fn confirm(
    answer: &Answer,
    storages: &[Storage],
    count: usize,
    load: &Load,
    predict: &dyn Fn(&Storage, f64) -> f64,
) -> Result<String> {
    let found = answer.rows.iter().filter_map(|row| storages.iter().find(|storage| storage.name == row.name));
    let best: Vec<&Storage> = found.take(count).collect();
    let text = scenario_text(&load.text, &load.cell, &best)?;
    let scenario = Scenario::parse("confirm", &text, &bounds())?;
    let plan = plan(&scenario);
    let directory = run::default_directory(&scenario);
    run::check_directory(&directory)?;
    let options = run::Options {
        scenario_path: PathBuf::from("confirm.toml"),
        directory,
        resume: Resume::default(),
        wait: false,
        keep_disturbed: false,
        trace_bytes: None,
        at_most: None,
        program: std::env::current_exe().context("finding this program")?,
    };
    let interrupt = Interrupt::listen()?;
    let outcome = run::run(&scenario, &plan, &options, &interrupt)?;
    let records = input::read(&outcome.records)?;
    Ok(table(answer, &best, &records, predict))
}

fn table(
    answer: &Answer,
    best: &[&Storage],
    records: &Records,
    predict: &dyn Fn(&Storage, f64) -> f64,
) -> String {
    let head = ["storage", "time", "predicted", "measured", "error"].map(str::to_owned);
    let rows = best.iter().map(|storage| {
        let of_cell = records.trials.iter().filter(|trial| trial.cell == storage.name);
        let measurements: Vec<&Measurement> =
            of_cell.filter_map(|trial| trial.measurement.as_ref()).collect();
        let values: Vec<f64> = measurements.iter().map(|found| in_metric(found, &answer.metric)).collect();
        let (Some(first), Some(measured)) = (measurements.first(), spindle_stats::mean(&values)) else {
            let failed = "every trial failed".to_owned();
            return [storage.name.clone(), String::new(), String::new(), failed, String::new()];
        };
        let dilation = first.dilation.factor();
        let predicted = predict(storage, dilation);
        let time = if dilation > 1.0 { format!("dilated by {dilation}") } else { "real".to_owned() };
        [
            storage.name.clone(),
            time,
            format!("{predicted:.0}"),
            format!("{measured:.0}"),
            format!("{:+.0} %", (predicted / measured - 1.0) * 100.0),
        ]
    });
    let table = columns(std::iter::once(head).chain(rows));
    let mut measurements = records.trials.iter().filter_map(|trial| trial.measurement.as_ref());
    let words = if measurements.any(|found| found.dilation.factor() > 1.0) {
        "In dilated time the cores are as many times as fast; so they are in the prediction beside it.\n"
    } else {
        ""
    };
    format!("\nMeasured, in {}:\n{table}{words}", answer.metric)
}

/// What was measured, in the metric of the prediction. That of a server in production is all of its transactions
/// per second, whatever the workload counts that stands for its load.
fn in_metric(measurement: &Measurement, metric: &str) -> f64 {
    if measurement.metric.name == metric {
        return measurement.metric.value;
    }
    measurement.ended() as f64 / measurement.duration_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prediction_of_transactions_is_held_against_transactions() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../records/quickstart");
        let records = input::read(&root).unwrap();
        let measurement = records.trials[0].measurement.as_ref().unwrap();
        let own = &measurement.metric;
        assert_eq!(in_metric(measurement, &own.name), own.value);
        let per_second = in_metric(measurement, "transactions per second");
        assert!((per_second * measurement.duration_s - measurement.latency.count as f64).abs() < 1e-6);
        assert!(per_second < own.value / 10.0, "new orders a minute are many more");
    }
}
