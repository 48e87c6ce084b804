//! Replicas in a server table.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ServerSpec;
use super::file::{DurationText, ReplicationTable, ScenarioFile};
use super::validate::layout;
use crate::record::ReplicationMode;
use crate::server::catalog;
use crate::server::replication::ReplicationSpec;
use crate::stack::StackSpec;
use crate::stack::layout::Layout;
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
pub(super) fn check(
    name: &str,
    table: &ReplicationTable,
    spec: &mut ServerSpec,
    file: &ScenarioFile,
    stacks: &BTreeMap<String, StackSpec>,
) -> Result<(), Mistake> {
    let at = |key: &str, words: String| Mistake::at(format!("servers.{name}.replication{key}"), words);
    let server = spec.server();
    let Some(replication) = server.replication() else {
        let able = catalog::names_where(|kind| {
            catalog::by_kind(kind.name).is_some_and(|server| server.replication().is_some())
        });
        let able = near::list(&able);
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
        return Ok(layout(name, table));
    }
    if let Some(stack) = stacks.get(name) {
        return Ok(Layout::plain(name, stack.label()));
    }
    let known: Vec<&str> = file.layouts.keys().chain(stacks.keys()).map(String::as_str).collect();
    Err(format!("`{name}` is not defined under [layouts] or [stacks]{}", near::hint(name, &known)))
}

/// Emulated drives are made anew for each server; a real drive exists only once.
pub(super) fn check_drives(
    file: &ScenarioFile,
    servers: &BTreeMap<String, ServerSpec>,
    stacks: &BTreeMap<String, StackSpec>,
    layouts: &[Layout],
) -> Result<(), Mistake> {
    for name in &file.matrix.server {
        let Some(spec) = &servers[name].replication else { continue };
        for layout in layouts {
            let mut seen = BTreeSet::new();
            for member in std::iter::once(layout).chain(&spec.replicas) {
                for mount in member.mounts.iter().filter(|mount| stacks[&mount.stack].real().is_some()) {
                    if !seen.insert(mount.stack.as_str()) {
                        let key = format!("servers.{name}.replication.replicas");
                        let stack = &mount.stack;
                        let words =
                            format!("`{stack}` is a real disk, which two servers of a set cannot share");
                        return Err(Mistake::at(key, words));
                    }
                }
            }
        }
    }
    Ok(())
}
