//! `spindle plan SCENARIO`: the cells and the time they will take.

use std::io::Write as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::json;

use crate::host::provenance;
use crate::record::{Cell, MountHead};
use crate::scenario::plan::{Plan, plan};
use crate::scenario::{Bounds, Scenario};
use crate::server::{Source, Trust};
use spindle_base::text;

#[derive(Debug, Args)]
pub struct PlanArguments {
    /// Scenario file (TOML).
    scenario: PathBuf,
    /// Print cells and trials as JSON, trials in the order in which they run.
    #[arg(long)]
    json: bool,
}

pub fn run(arguments: &PlanArguments) -> Result<()> {
    let bounds = Bounds { memory_bytes: provenance::memory_bytes(), trust: Trust::ReadOnly };
    let scenario = Scenario::read(&arguments.scenario, &bounds)?;
    for (name, server) in &scenario.servers {
        if let Source::Program(path) = &server.source {
            eprintln!(
                "spindle: servers.{name}: a plan does not run {}, so it takes it for the newest release that it knows",
                path.display()
            );
        }
    }
    let plan = plan(&scenario);
    let mut output = std::io::stdout().lock();
    if arguments.json {
        writeln!(output, "{}", text::json(&json(&scenario, &plan))?)?;
    } else {
        write!(output, "{}", table(&scenario, &plan))?;
    }
    Ok(())
}

fn table(scenario: &Scenario, plan: &Plan) -> String {
    let heads = ["cell", "server", "workload", "storage"].map(str::to_owned);
    let rows = std::iter::once(heads).chain(plan.cells.iter().flat_map(rows_of_cell));
    let rows: Vec<[String; 4]> = rows.map(|row| row.map(|field| text::one_line(&field))).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [width(0), width(1), width(2)];
    let mut text = format!("{}\n\n", text::one_line(&scenario.title));
    for [cell, server, workload, storage] in rows {
        let [first, second, third] = widths;
        text.push_str(&format!("{cell:first$}  {server:second$}  {workload:third$}  {storage}\n"));
    }
    let run = &scenario.run;
    let measured = if run.once { "at most for a list" } else { "measured" };
    let phases: Vec<String> = [("warm-up", run.warm_up), ("settling", run.settle), (measured, run.measure)]
        .iter()
        .filter(|(_, duration)| !duration.is_zero())
        .map(|(name, duration)| format!("{} {name}", text::duration(*duration)))
        .collect();
    text.push_str(&format!(
        "\n{} trials in {} shuffled blocks, start {}: {}\n{} {} ({} a trial, {} to load), seed {}\n",
        plan.trials.len(),
        run.trials,
        run.start.key(),
        phases.join(", "),
        if run.once { "at most" } else { "about" },
        text::duration(plan.estimate.total),
        text::duration(plan.estimate.per_trial),
        text::duration(plan.estimate.load),
        run.seed,
    ));
    text
}

/// One row for the data and one for every further mount, then the same for every replica.
fn rows_of_cell(cell: &Cell) -> Vec<[String; 4]> {
    let mut storage = rows_of_server("", &cell.mounts);
    if let Some(replication) = &cell.replication {
        let mode = replication.mode.name();
        for (index, replica) in replication.replicas.iter().enumerate() {
            let whose = format!("{mode} replica {}: ", index + 1);
            storage.extend(rows_of_server(&whose, &replica.mounts));
        }
    }
    let names = [&cell.name, &cell.server, &cell.workload].map(Clone::clone);
    let mut names = std::iter::once(names);
    let row = |storage| {
        let [cell, server, workload] = names.next().unwrap_or_default();
        [cell, server, workload, storage]
    };
    storage.into_iter().map(row).collect()
}

fn rows_of_server(whose: &str, mounts: &[MountHead]) -> Vec<String> {
    let row = |(index, mount): (usize, &MountHead)| {
        let MountHead { classes, files, stack } = mount;
        let summary = &stack.summary;
        match (index, mounts.len()) {
            (0, 1) => format!("{whose}{summary}"),
            (0, _) => format!("{whose}data on {}: {summary}", stack.name),
            _ => {
                let classes = classes.iter().map(|class| class.key()).collect::<Vec<_>>().join(", ");
                format!("{whose}{classes} ({files}) on {}: {summary}", stack.name)
            }
        }
    };
    mounts.iter().enumerate().map(row).collect()
}

fn json(scenario: &Scenario, plan: &Plan) -> serde_json::Value {
    let trials: Vec<_> = plan
        .trials
        .iter()
        .map(|trial| {
            let cell = &plan.cells[trial.cell_index].name;
            json!({ "cell": cell, "trial": trial.trial, "block": trial.block, "seed": trial.seed })
        })
        .collect();
    json!({
        "title": scenario.title,
        "scenario_hash": scenario.hash(),
        "seed": scenario.run.seed,
        "cells": plan.cells,
        "trials": trials,
        "estimate_s": {
            "load": plan.estimate.load.as_secs_f64(),
            "per_trial": plan.estimate.per_trial.as_secs_f64(),
            "total": plan.estimate.total.as_secs_f64(),
        },
    })
}
