//! Reads a scenario's tables, and checks the whole before any work is done.

use std::collections::{BTreeMap, BTreeSet};

use spindle_base::Mistake;
use spindle_base::near;
use spindle_load::WorkloadSpec;

use super::file::{ScenarioFile, ServerTable, SizeText};
use super::matrix::sweep;
use super::procedure::dilation::Cores;
use super::procedure::more_trials;
use super::{
    Bounds, Scenario, ServerSpec, events, fill, fit, names, plan, procedure, replication, shards, storage,
};
use crate::claims;
use crate::record::{Cell, PublishedTag, StartState};
use crate::server::{SourceKeys, catalog};
use crate::stack::StackSpec;

pub(super) fn validate(
    name: &str,
    text: &str,
    mut file: ScenarioFile,
    bounds: &Bounds,
) -> Result<Scenario, Mistake> {
    storage::add_built_in(&mut file);
    add_default_server(&mut file)?;
    names::check("stacks", &file.stacks)?;
    names::check("layouts", &file.layouts)?;
    names::check("servers", &file.servers)?;
    names::check("workloads", &file.workloads)?;
    let stacks = storage::stacks(&file.stacks, None)?;
    let complaint = |(name, workload): (&String, &WorkloadSpec)| {
        let (key, message) = workload.complaint()?;
        Some(Mistake::at(format!("workloads.{name}.{key}"), message))
    };
    if let Some(mistakes) = Mistake::all(file.workloads.iter().filter_map(complaint)) {
        return Err(mistakes);
    }
    let layouts = storage::layouts(&file, &stacks)?;
    let mut servers = BTreeMap::new();
    for (name, table) in &file.servers {
        servers.insert(name.clone(), server(name, table, &file, &stacks, bounds)?);
    }
    names::check_axis("server", &file.matrix.server, "servers", &servers)?;
    names::check_axis("workload", &file.matrix.workload, "workloads", &file.workloads)?;
    let variants = sweep::expand(&mut file, &mut servers, |file, name, table| {
        server(name, table, file, &stacks, bounds)
    })?;
    let mut scenario = Scenario {
        name: name.to_owned(),
        title: file.title.trim().to_owned(),
        question: file.question.trim().to_owned(),
        text: text.to_owned(),
        stacks,
        layouts,
        servers,
        run: procedure::settings(&file)?,
        workloads: file.workloads,
        matrix: file.matrix,
        variants,
        more_trials: BTreeMap::new(),
        published: file.published,
        events: Vec::new(),
    };
    sweep::check_count(&scenario)?;
    scenario.more_trials = more_trials::read(&file.more_trials, file.run.trials, &plan::cells(&scenario))?;
    check_pairs(&scenario)?;
    check_published(&scenario)?;
    storage::check_placement(&scenario)?;
    replication::check_drives(&scenario)?;
    shards::check(&scenario, bounds)?;
    check_running(&scenario)?;
    procedure::check(&scenario)?;
    fill::size_stacks(&mut scenario, &file.stacks)?;
    fit::check_storage(&scenario)?;
    scenario.events = events::read(&file.events, &scenario)?;
    Ok(scenario)
}

/// Used by a scenario without servers.
fn add_default_server(file: &mut ScenarioFile) -> Result<(), Mistake> {
    if !file.servers.is_empty() || !file.matrix.server.is_empty() {
        return Ok(());
    }
    let workloads: Vec<&str> = file.workloads.values().map(WorkloadSpec::kind).collect();
    let is_here = |name: &str| catalog::by_kind(name).is_some_and(|server| server.version().is_ok());
    let kind = catalog::default_for(&workloads, is_here)
        .ok_or_else(|| Mistake::at("servers", "is missing; no installed server runs all of the workloads"))?;
    file.servers.insert(kind.to_owned(), ServerTable { kind: kind.to_owned(), ..ServerTable::default() });
    file.matrix.server.push(kind.to_owned());
    Ok(())
}

fn server(
    name: &str,
    table: &ServerTable,
    file: &ScenarioFile,
    stacks: &BTreeMap<String, StackSpec>,
    bounds: &Bounds,
) -> Result<ServerSpec, Mistake> {
    let kind = catalog::find(&table.kind).ok_or_else(|| {
        let hint = near::hint(&table.kind, &catalog::names_where(|kind| !kind.is_for_tests));
        Mistake::at(format!("servers.{name}.kind"), format!("server `{}` is not known{hint}", table.kind))
    })?;
    let keys = SourceKeys {
        program: table.program.as_deref(),
        version: table.version.as_deref(),
        file: table.file.as_deref(),
        url: table.url.as_deref(),
    };
    let source = catalog::source(kind, &keys)
        .map_err(|(key, words)| Mistake::at(format!("servers.{name}.{key}"), words))?;
    let settings = table.settings.iter().map(|(key, value)| (key.clone(), value.text())).collect();
    let mut spec = ServerSpec {
        kind: table.kind.clone(),
        source,
        settings,
        memory_bytes: table.memory.map(|SizeText(bytes)| bytes),
        cores: table
            .cores
            .map(|cores| Cores::new(cores, &file.run))
            .transpose()
            .map_err(|words| Mistake::at(format!("servers.{name}.cores"), words))?,
        replication: None,
        trust: bounds.trust,
    };
    if let Some(table) = &table.replication {
        replication::add(name, table, &mut spec, file, stacks)?;
    }
    fit::check_memory(name, &spec, bounds)?;
    fit::check_limit(name, &spec, bounds)?;
    Ok(spec)
}

/// Checks every server of the matrix with every workload.
fn check_pairs(scenario: &Scenario) -> Result<(), Mistake> {
    for server in &scenario.matrix.server {
        let spec = &scenario.servers[server];
        let accepted = spec.facts().accepted_workloads();
        for workload in &scenario.matrix.workload {
            let kind = scenario.workloads[workload].kind();
            spec.server().check_workload(kind, &spec.settings).map_err(|refusal| {
                let message = format!("`{workload}` is of kind `{kind}`, and server `{server}` {refusal}");
                Mistake::at("matrix.workload", message)
            })?;
            if !accepted.contains(&kind) {
                let accepted = near::list(&accepted);
                let message =
                    format!("`{workload}` is of kind `{kind}`, but server `{server}` runs only {accepted}");
                return Err(Mistake::at("matrix.workload", message));
            }
            if scenario.workloads[workload].engine().is_some() && !spec.facts().has_storage_engines {
                let message = format!("server `{server}` has no storage engines; leave it out");
                return Err(Mistake::at(format!("workloads.{workload}.engine"), message));
            }
        }
    }
    Ok(())
}

/// The name that a tag gives on one axis of the matrix.
type Selected = fn(&PublishedTag) -> Option<&str>;

/// Checks the published rows that cells reproduce.
fn check_published(scenario: &Scenario) -> Result<(), Mistake> {
    for (index, tag) in scenario.published.iter().enumerate() {
        claims::check_row(tag).map_err(|mistake| mistake.under(&format!("published[{index}]")))?;
    }
    if scenario.published.is_empty() {
        return Ok(());
    }
    let layouts: Vec<&str> = scenario.layouts.iter().map(|layout| layout.name.as_str()).collect();
    let matrix = &scenario.matrix;
    // A tag with `best_over` names what the values are of.
    let with_bases = |names: &'_ [String]| -> Vec<String> {
        let bases =
            names.iter().filter_map(|name| scenario.variants.get(name)).map(|variant| variant.base.clone());
        names.iter().cloned().chain(bases).collect()
    };
    let (servers, workloads) = (with_bases(&matrix.server), with_bases(&matrix.workload));
    let axes: [(&str, Selected, Vec<&str>); 3] = [
        ("stack", |tag| tag.stack.as_deref(), layouts),
        ("server", |tag| tag.server.as_deref(), servers.iter().map(String::as_str).collect()),
        ("workload", |tag| tag.workload.as_deref(), workloads.iter().map(String::as_str).collect()),
    ];
    for (index, tag) in scenario.published.iter().enumerate() {
        for (key, selected, known) in &axes {
            if let Some(name) = selected(tag).filter(|name| !known.contains(name)) {
                let message = format!("the matrix has no `{name}`{}", near::hint(name, known));
                return Err(Mistake::at(format!("published[{index}].{key}"), message));
            }
        }
    }
    let cells = plan::cells(scenario);
    for (index, tag) in scenario.published.iter().enumerate() {
        check_best_over(scenario, &cells, tag)
            .map_err(|mistake| mistake.under(&format!("published[{index}]")))?;
    }
    let of_tag = |tag: &PublishedTag| {
        cells.iter().filter(|cell| tag.is_of(cell)).map(|cell| cell.name.clone()).collect::<Vec<_>>()
    };
    claims::check_cells(&scenario.published, &scenario.published.iter().map(of_tag).collect::<Vec<_>>())
}

/// The axis of a tag with `best_over` must be one of the matrix, and its cells must differ in nothing else.
fn check_best_over(scenario: &Scenario, cells: &[Cell], tag: &PublishedTag) -> Result<(), Mistake> {
    let Some(axis) = &tag.best_over else { return Ok(()) };
    let Some(values) = scenario.matrix.sweeps.get(axis) else {
        let known: Vec<&str> = scenario.matrix.sweeps.keys().map(String::as_str).collect();
        let message = format!("the matrix has no axis of values `{axis}`{}", near::hint(axis, &known));
        return Err(Mistake::at("best_over", message));
    };
    let count = cells.iter().filter(|cell| tag.is_of(cell)).count();
    if count > values.len() {
        let message = format!(
            "{count} cells fit, which differ in more than `{axis}`; name their `stack`, `server` or `workload`"
        );
        return Err(Mistake::at("best_over", message));
    }
    Ok(())
}

/// Checks the limits of a server that runs already: it is not restarted or reset, and it keeps its data.
fn check_running(scenario: &Scenario) -> Result<(), Mistake> {
    let is_running = |name: &&String| scenario.servers[*name].facts().runs_already();
    let Some(server) = scenario.matrix.server.iter().find(is_running) else { return Ok(()) };
    if scenario.run.start != StartState::Warm {
        let message = format!("must be \"warm\": server `{server}` runs already");
        return Err(Mistake::at("run.start", message));
    }
    if let Some((name, _)) = scenario.stacks.iter().find(|(_, stack)| stack.real().is_none()) {
        let message = format!(
            "is emulated, and server `{server}` is on storage of its own: give the directory of a disk (`path`)"
        );
        return Err(Mistake::at(format!("stacks.{name}"), message));
    }
    let data_set = |name: &String| scenario.workloads[name].data_set();
    let data_sets: BTreeSet<String> = scenario.matrix.workload.iter().map(data_set).collect();
    if data_sets.len() > 1 {
        let message = format!(
            "has workloads with different databases, and server `{server}` has room for one at a time"
        );
        return Err(Mistake::at("matrix.workload", message));
    }
    Ok(())
}
