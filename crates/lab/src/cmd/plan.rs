//! `spindle plan SCENARIO`: the cells and the time they will take.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::Args;
use itertools::Itertools as _;
use serde_json::json;

use crate::cmd::output::{columns, print_answer};
use crate::cmd::run::emulation_blockers;
use crate::host::provenance;
use crate::record::{Cell, MountHead, spelling};
use crate::report::{self, Records};
use crate::run::{self, preflight};
use crate::scenario::events::Event;
use crate::scenario::fill::{Filled, percent};
use crate::scenario::plan::{Plan, plan};
use crate::scenario::{Bounds, Scenario, Settle, WarmUp};
use crate::server::{Source, Trust};
use spindle_base::Mistake;
use spindle_base::text::{self, plural};
use spindle_base::units::format_size_rounded;

#[derive(Debug, Args)]
pub struct PlanArguments {
    /// Scenario file (TOML).
    scenario: PathBuf,
    /// Print cells and trials as JSON. Trials are in the order in which they run.
    #[arg(long)]
    json: bool,
}

/// # Errors
/// Whatever a run refuses before its first trial.
pub fn run(arguments: &PlanArguments) -> Result<()> {
    let bounds = Bounds { memory_bytes: provenance::memory_bytes(), trust: Trust::ReadOnly };
    let scenario = Scenario::read(&arguments.scenario, &bounds)?;
    for (name, server) in &scenario.servers {
        if let Source::Program(path) = &server.source {
            eprintln!(
                "spindle: servers.{name}: a plan does not run {}, and assumes the newest release that it knows",
                path.display()
            );
        }
    }
    let blockers = emulation_blockers(&scenario);
    match blockers.is_empty() {
        true => preflight::check(&scenario, &arguments.scenario)?,
        false => eprintln!(
            "spindle: no emulated disk can be mounted here ({}), so a run answers for the storage alone, in \
             virtual time and without a database; servers and tools are not looked for",
            blockers.join(", ")
        ),
    }
    let plan = plan(&scenario);
    let filled = scenario.filled();
    for (stack, warning) in filled.iter().filter_map(|filled| Some((&filled.stack, filled.warning()?))) {
        eprintln!("spindle: warning: stacks.{stack}: {warning}");
    }
    print_answer(arguments.json, &json(&scenario, &plan, &filled), || table(&scenario, &plan, &filled))
}

/// A scenario that is no file of the user's, with its plan.
///
/// # Errors
/// Whatever a run refuses before its first trial.
pub(super) fn of_text(name: &str, content: &str) -> Result<(Scenario, Plan), Mistake> {
    let bounds = Bounds { memory_bytes: provenance::memory_bytes(), trust: Trust::ReadOnly };
    let scenario = Scenario::parse(name, content, &bounds)?;
    if let Err(error) = preflight::check(&scenario, Path::new(name)) {
        return Err(error.downcast::<Mistake>().unwrap_or_else(|error| Mistake::new(text::causes(&error))));
    }
    let plan = plan(&scenario);
    Ok((scenario, plan))
}

fn table(scenario: &Scenario, plan: &Plan, filled: &[Filled]) -> String {
    let heads = ["cell", "server", "workload", "storage"].map(str::to_owned);
    let rows = std::iter::once(heads).chain(plan.cells.iter().flat_map(rows_of_cell));
    let mut text = format!("{}\n\n{}", text::one_line(&scenario.title), columns(rows));
    text.push_str(&storage(scenario, filled));
    let run = &scenario.run;
    let measured = if run.once { "at most for the fixed work" } else { "measured" };
    let settling = match run.settle {
        Settle::For(_) => "settling".to_owned(),
        Settle::Until { at_most, .. } => {
            let in_all = scenario.dilation_at_most().real(at_most) * plan.trials.len() as u32;
            format!("at most until the load is steady (that can take {} in all)", text::duration(in_all))
        }
    };
    let warming = match run.warm_up {
        WarmUp::For(_) => "warm-up",
        WarmUp::Until { .. } => "at most until the cache is warm",
    };
    let phases = [(warming, run.warm_up.most()), (&settling, run.settle.most()), (measured, run.measure)];
    let phases = phases.into_iter().filter(|(_, duration)| !duration.is_zero());
    let phases = phases.map(|(name, duration)| format!("{} {name}", text::duration(duration)));
    let is_bound = run.once
        || run.enough.is_some()
        || scenario.dilation().is_none()
        || run.settle.is_ruled()
        || run.warm_up.is_ruled();
    let enough = run.enough.map(|enough| match run.at_least {
        Duration::ZERO => format!("or {enough} transactions"),
        at_least => format!("or {enough} transactions, but at least {}", text::duration(at_least)),
    });
    let dilated = scenario.is_dilated().then(|| {
        let most = scenario.dilation_at_most();
        let known = if scenario.dilation().is_some() { "" } else { "up to " };
        format!("each second of them takes {known}{most} s")
    });
    let events: String =
        scenario.events.iter().map(|event| format!("event {}\n", event.sentence())).collect();
    let goes_on = run.until.map(|until| format!("then further ones {}\n", until.words()));
    text.push_str(&format!(
        "\n{} in {}, start {}: {}\n{} {} ({} a trial, {} to load), seed {}\n{}{events}",
        plural(plan.trials.len(), "trial"),
        plural(plan.trials.last().map_or(0, |planned| planned.block as usize), "shuffled block"),
        spelling(&run.start),
        phases.chain(enough).chain(dilated).collect::<Vec<_>>().join(", "),
        if is_bound { "at most" } else { "about" },
        text::duration(plan.estimate.total),
        text::duration(plan.estimate.per_trial),
        text::duration(plan.estimate.load),
        run.seed,
        goes_on.unwrap_or_default(),
    ));
    text.push_str(&so_far(scenario));
    text
}

/// What the trials that are there already know, for a run that goes on until it is known.
fn so_far(scenario: &Scenario) -> String {
    let directory = run::default_directory(scenario);
    let records = scenario.run.until.and_then(|_| report::read(&directory).ok());
    let is_same = |records: &Records| records.header.provenance.scenario_hash == scenario.hash();
    let Some(records) = records.filter(is_same) else { return String::new() };
    let done = plural(records.trials.len(), "trial");
    let open = report::not_known(&records);
    let known = if open.is_empty() { vec!["Each ratio is known.".to_owned()] } else { open };
    format!("\n{done} done, in {}:\n{}", directory.display(), text::lines(&(known.join("\n") + "\n")))
}

/// The size of each stack, and the part of it that the data fill.
fn storage(scenario: &Scenario, filled: &[Filled]) -> String {
    let rows = filled.iter().map(|Filled { stack, size_bytes, filled_share, why, .. }| {
        let share = filled_share.map_or_else(|| "-".to_owned(), percent);
        [stack.clone(), format_size_rounded(*size_bytes), share, why.clone()]
    });
    let heads = ["stack", "size", "filled", "why this size"].map(str::to_owned);
    let loaded = scenario.fill_in_words().map(|words| format!("freshly loaded: {words}\n"));
    format!("\n{}{}", columns(std::iter::once(heads).chain(rows)), loaded.unwrap_or_default())
}

/// One row for the data and one for every further mount, then the same for every replica.
fn rows_of_cell(cell: &Cell) -> Vec<[String; 4]> {
    let mut storage = rows_of_server("", &cell.mounts);
    if let Some(replication) = &cell.replication {
        let mode = spelling(&replication.mode);
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
                let classes = classes.iter().map(|class| class.key()).join(", ");
                format!("{whose}{classes} ({files}) on {}: {summary}", stack.name)
            }
        }
    };
    mounts.iter().enumerate().map(row).collect()
}

fn json(scenario: &Scenario, plan: &Plan, filled: &[Filled]) -> serde_json::Value {
    let trials = plan.trials.iter().map(|trial| {
        let cell = &plan.cells[trial.cell_index].name;
        json!({ "cell": cell, "trial": trial.trial, "block": trial.block, "seed": trial.seed })
    });
    let mut plan_json = json!({
        "title": scenario.title,
        "scenario_hash": scenario.hash(),
        "seed": scenario.run.seed,
        "cells": plan.cells,
        "storage": filled,
        "trials": trials.collect_vec(),
        "until": scenario.run.until,
        "estimate_s": {
            "load": plan.estimate.load.as_secs_f64(),
            "per_trial": plan.estimate.per_trial.as_secs_f64(),
            "total": plan.estimate.total.as_secs_f64(),
        },
    });
    if !scenario.events.is_empty() {
        let event = |event: &Event| json!({ "at_s": event.at.as_secs_f64(), "change": event.change.words() });
        plan_json["events"] = scenario.events.iter().map(event).collect();
    }
    plan_json
}
