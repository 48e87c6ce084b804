//! Replicas in a server table.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::file::{DurationText, ReplicationTable, ScenarioFile};
use super::{Scenario, ServerSpec};
use crate::record::ReplicationMode;
use crate::server::replication::ReplicationSpec;
use crate::server::{Kind, catalog};
use crate::stack::layout::Layout;
use crate::stack::{StackSpec, suggestion};
use spindle_base::Mistake;
use spindle_base::near;
use spindle_base::text;

/// Each replica adds a server and an emulator to the primary's.
const REPLICAS_MAX: usize = 8;
const TIMEOUT_MIN: Duration = Duration::from_millis(1);
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);
const CATCH_UP_MAX: Duration = Duration::from_secs(3600);
const CATCH_UP: Duration = Duration::from_secs(60);

/// Adds the replicas, and the settings that they require, to the server's spec.
pub(super) fn add(
    name: &str,
    table: &ReplicationTable,
    spec: &mut ServerSpec,
    file: &ScenarioFile,
    stacks: &BTreeMap<String, StackSpec>,
) -> Result<(), Mistake> {
    let at = |key: &str, words: String| Mistake::at(format!("servers.{name}.replication{key}"), words);
    let server = spec.server();
    let Some(replication) = server.replication() else {
        let is_able =
            |kind: &Kind| catalog::by_kind(kind.name).is_some_and(|server| server.replication().is_some());
        let able = near::list(&catalog::names_where(is_able));
        let words = format!(
            "kind = \"{}\" has no replication that Spindle sets up; those that have are {able}",
            spec.kind
        );
        return Err(at("", words));
    };
    let count = table.replicas.len();
    if !(1..=REPLICAS_MAX).contains(&count) {
        let words = format!("has {count} names; it can have 1 to {REPLICAS_MAX}, one for each replica");
        return Err(at(".replicas", words));
    }
    if table.mode == ReplicationMode::Async {
        for (key, is_there) in
            [("wait_point", table.wait_point.is_some()), ("timeout", table.timeout.is_some())]
        {
            if is_there {
                let words = "has no meaning with mode = \"async\"; leave it out".to_owned();
                return Err(at(&format!(".{key}"), words));
            }
        }
    }
    let bounded = |key: &str, value: Option<DurationText>, least: Duration, most: Duration| match value {
        Some(DurationText(value)) if value < least || value > most => {
            let [value, least, most] = [value, least, most].map(text::duration);
            Err(at(&format!(".{key}"), format!("{value} is out of range; it can be {least} to {most}")))
        }
        value => Ok(value.map(|DurationText(value)| value)),
    };
    let own: BTreeMap<String, String> =
        table.settings.iter().map(|(key, value)| (key.clone(), value.text())).collect();
    let members =
        replication.settings(table.mode, &spec.settings, &own).map_err(|refusal| at("", refusal.0))?;
    let replicas = table
        .replicas
        .iter()
        .map(|replica| storage(replica, file, stacks).map_err(|words| at(".replicas", words)));
    let replication = ReplicationSpec {
        mode: table.mode,
        replicas: replicas.collect::<Result<_, _>>()?,
        wait_point: table.wait_point,
        timeout: bounded("timeout", table.timeout, TIMEOUT_MIN, TIMEOUT_MAX)?,
        catch_up: bounded("catch_up", table.catch_up, Duration::ZERO, CATCH_UP_MAX)?.unwrap_or(CATCH_UP),
        settings: members.replica,
        own_settings: own.into_keys().collect(),
    };
    spec.settings = members.primary;
    spec.replication = Some(replication);
    Ok(())
}

/// The layout of that name, or else the stack.
fn storage(name: &str, file: &ScenarioFile, stacks: &BTreeMap<String, StackSpec>) -> Result<Layout, String> {
    if let Some(table) = file.layouts.get(name) {
        return Ok(table.layout(name));
    }
    if let Some(stack) = stacks.get(name) {
        return Ok(Layout::plain(name, stack.label()));
    }
    let known: Vec<&str> = file.layouts.keys().chain(stacks.keys()).map(String::as_str).collect();
    Err(format!("`{name}` is not defined under [layouts] or [stacks]{}", suggestion(name, &known)))
}

/// Emulated drives are made anew for each server; a real drive exists only once.
pub(super) fn check_drives(scenario: &Scenario) -> Result<(), Mistake> {
    for name in &scenario.matrix.server {
        let Some(spec) = &scenario.servers[name].replication else { continue };
        for layout in &scenario.layouts {
            let mounts = spec.replicas.iter().chain([layout]).flat_map(|member| &member.mounts);
            let mut seen = BTreeSet::new();
            let mut real =
                mounts.map(|mount| &mount.stack).filter(|stack| scenario.stacks[*stack].real().is_some());
            if let Some(stack) = real.find(|stack| !seen.insert(*stack)) {
                let words = format!("`{stack}` is a real disk, which two servers of a set cannot share");
                return Err(Mistake::at(format!("servers.{name}.replication.replicas"), words));
            }
        }
    }
    Ok(())
}
