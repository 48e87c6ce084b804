//! Everything that a run can find out before its first trial, and that a plan refuses by the same checks: a
//! server or a tool that is missing, settings that the server does not know, options that mkfs or mount
//! refuses. A server's own program is asked for its version and its settings, as its own user; nothing is
//! started.
//!
//! Of a scenario that is only read ([`Trust::ReadOnly`]), no program runs that the scenario names. Such a
//! program only has to be there.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use spindle_base::Mistake;
use spindle_base::child::{find_program, is_static};
use spindle_base::text;

use crate::host::control_group::MemoryGroup;
use crate::host::patience::Wait;
use crate::scenario::events::Change;
use crate::scenario::matrix::place_of_setting;
use crate::scenario::{Scenario, ServerSpec};
use crate::server::{FOREIGN_TOOLS, Instance, Refusal, Server, Settings, Source, Trust, plain_name};
use crate::volume;

/// Patience with a tool that is asked for its version.
const QUESTION_PATIENCE: Duration = Duration::from_secs(60);

pub(super) type Servers = BTreeMap<String, Box<dyn Server>>;

/// The answers of servers and tools, by their names in the scenario. Those that were not asked are missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// Versions of the servers.
    pub versions: BTreeMap<String, String>,
    /// Names and versions of the tools that are clients of a workload.
    pub tools: BTreeMap<String, String>,
}

/// All checks. `path` is the scenario as the user named it.
///
/// # Errors
/// [`Mistake`] about the scenario, or an environment without a server or tool.
pub fn check(scenario: &Scenario, path: &Path) -> Result<()> {
    servers_and_tools(scenario, &servers(scenario), path)?;
    let directory = tempfile::tempdir().context("making a directory to try options in")?;
    stacks(scenario, directory.path(), path)
}

pub(super) fn servers(scenario: &Scenario) -> Servers {
    scenario.matrix.server.iter().map(|name| (name.clone(), scenario.servers[name].server())).collect()
}

/// Checks that need no storage.
pub(super) fn servers_and_tools(scenario: &Scenario, servers: &Servers, path: &Path) -> Result<Found> {
    let tools = tools(scenario)?;
    let versions = versions(scenario, servers, path)?;
    settings(scenario, servers, path)?;
    settings_of_events(scenario, servers, path)?;
    preloading(scenario, servers, path)?;
    memory(scenario, path)?;
    volume::check_environment()?;
    Ok(Found { versions, tools })
}

/// Checks that need mkfs and mount to judge their options, and the kernel to judge a real disk.
pub(super) fn stacks(scenario: &Scenario, directory: &Path, path: &Path) -> Result<()> {
    if scenario.matrix.server.iter().all(|name| scenario.servers[name].facts().is_for_tests) {
        return Ok(());
    }
    for name in scenario.stacks_in_use() {
        if let Some((key, words)) = volume::complaint(&scenario.stacks[name], directory)? {
            bail!(Mistake::at(format!("stacks.{name}.{key}"), words).in_file(path.display()));
        }
    }
    Ok(())
}

/// Whether nothing that the scenario names would run or be reached.
fn may_ask(spec: &ServerSpec) -> bool {
    spec.trust == Trust::MayRun || matches!(spec.source, Source::Installed | Source::Version(_))
}

fn versions(scenario: &Scenario, servers: &Servers, path: &Path) -> Result<BTreeMap<String, String>> {
    let mut versions = BTreeMap::new();
    for (name, server) in servers {
        let spec = &scenario.servers[name];
        let version = match may_ask(spec) {
            true => server.version().map(Some),
            false => server.path().map(|_| None),
        };
        let version = version.map_err(|error| match error.downcast_ref::<Refusal>() {
            Some(refusal) => {
                Mistake::at(format!("servers.{name}"), refusal.to_string()).in_file(path.display()).into()
            }
            None => error.context(format!("looking for server `{name}`")),
        })?;
        versions.extend(version.map(|version| (name.clone(), version)));
        if spec.source.is_installed() {
            companions(name, spec)?;
        }
    }
    Ok(versions)
}

/// Checks that an installed server's further programs are there.
fn companions(name: &str, spec: &ServerSpec) -> Result<()> {
    let is_missing = |tool: &&crate::server::Program| tool.is_required && find_program(tool.name).is_none();
    let Some(tool) = spec.facts().tools.iter().find(is_missing) else { return Ok(()) };
    let hint = tool.package.map(|package| format!("; install it with `apt-get install {package}`"));
    bail!(
        "looking for server `{name}`: there is no {}, which {}{}",
        tool.name,
        tool.purpose,
        hint.unwrap_or_default()
    )
}

/// Checks that need the server itself to judge its settings.
fn settings(scenario: &Scenario, servers: &Servers, path: &Path) -> Result<(), Mistake> {
    for (name, server) in servers {
        let spec = &scenario.servers[name];
        let of_replicas =
            spec.replication.as_ref().map(|replication| ("replication.settings", &replication.settings));
        for (key, settings) in std::iter::once(("settings", &spec.settings)).chain(of_replicas) {
            server.check(&instance_to_check(settings)).map_err(|refusal| {
                let place = place_of_setting(scenario, name, key, &refusal.0);
                Mistake::at(place, refusal.to_string()).in_file(path.display())
            })?;
        }
    }
    Ok(())
}

/// Checks the settings of each event together with those of the server.
fn settings_of_events(scenario: &Scenario, servers: &Servers, path: &Path) -> Result<(), Mistake> {
    for (name, server) in servers {
        for event in &scenario.events {
            let Change::Settings(changed) = &event.change else { continue };
            let mut settings = scenario.servers[name].settings.clone();
            settings.retain(|own, _| !changed.keys().any(|name| plain_name(name) == plain_name(own)));
            settings.extend(changed.clone());
            server.check(&instance_to_check(&settings)).map_err(|refusal| {
                Mistake::at(format!("{}.set", event.place), refusal.to_string()).in_file(path.display())
            })?;
        }
    }
    Ok(())
}

fn instance_to_check(settings: &Settings) -> Instance {
    Instance {
        data_directory: "data".into(),
        class_directories: BTreeMap::new(),
        runtime_directory: "runtime".into(),
        settings: settings.clone(),
        environment: Vec::new(),
        control_group: None,
        changing: Vec::new(),
    }
}

/// Checks that every program can be put into dilated time.
fn preloading(scenario: &Scenario, servers: &Servers, path: &Path) -> Result<(), Mistake> {
    if !scenario.is_dilated() {
        return Ok(());
    }
    let mut programs: Vec<(String, PathBuf)> = Vec::new();
    for (name, server) in servers.iter().filter(|(name, _)| scenario.is_dilated_with(name)) {
        let program = server.path().ok().flatten();
        programs.extend(program.map(|program| (format!("servers.{name}"), program)));
    }
    for name in &scenario.matrix.workload {
        let tool = scenario.workloads[name].tool_path();
        programs.extend(tool.map(|tool| (format!("workloads.{name}"), tool)));
    }
    let unfit = programs.into_iter().find(|(_, program)| is_static(program).unwrap_or(false));
    match unfit {
        Some((key, program)) => Err(Mistake::at(
            key,
            format!(
                "{} is linked statically, so its clock cannot be dilated; leave `dilation` out, or use a program \
                 that is linked dynamically",
                program.display()
            ),
        )
        .in_file(path.display())),
        None => Ok(()),
    }
}

/// Checks that the memory of servers can be limited here: makes a control group, and removes it again.
fn memory(scenario: &Scenario, path: &Path) -> Result<(), Mistake> {
    for name in &scenario.matrix.server {
        let Some(limit_bytes) = scenario.servers[name].memory_bytes else { continue };
        let tried = MemoryGroup::make(Path::new("/"), 0, limit_bytes).and_then(MemoryGroup::remove);
        tried.map_err(|error| {
            let base = scenario.variants.get(name).map_or(name, |variant| &variant.base);
            let words = format!("cannot be limited here: {}", text::causes(&error));
            Mistake::at(format!("servers.{base}.memory"), words).in_file(path.display())
        })?;
    }
    Ok(())
}

/// Names and versions of the tools that are clients of a workload, as the tools report them.
///
/// # Errors
/// A tool is missing.
fn tools(scenario: &Scenario) -> Result<BTreeMap<String, String>> {
    let runs_named = scenario.matrix.server.iter().all(|name| scenario.servers[name].trust == Trust::MayRun);
    let mut tools = BTreeMap::new();
    for name in &scenario.matrix.workload {
        let workload = scenario.workloads[name].clone();
        let wait = Wait { patience: QUESTION_PATIENCE, who: name, interrupt: None };
        let version = wait.for_work(move || workload.tool_version(FOREIGN_TOOLS, runs_named));
        let version = version.with_context(|| format!("looking for the tool of workload `{name}`"))?;
        tools.extend(version.map(|version| (name.clone(), version)));
    }
    Ok(tools)
}
