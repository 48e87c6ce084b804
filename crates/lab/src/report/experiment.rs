//! What a cell measured besides its storage: workload, server and procedure, as the scenario in the records
//! states them.
//!
//! A ratio is about storage only if everything else is equal. The values are compared generically, so a new
//! key of a workload or a server needs no line here. Earlier records have the scenario's text only; there,
//! defaults and old names are resolved by the workload's own reader.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};

use serde::{Deserialize as _, Serialize};
use serde_json::{Value, json};
use spindle_base::text;
use spindle_base::units::{parse_duration_ns, parse_size_bytes};
use spindle_load::WorkloadSpec;

use crate::record::{Cell, ExperimentHead, Header, ReplicationHead, spelling};

/// Two values of one key.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Difference {
    pub key: String,
    pub baseline: String,
    pub candidate: String,
}

impl Display for Difference {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} against {}", self.key, self.baseline, self.candidate)
    }
}

/// Values by key, of each part.
#[derive(Debug, PartialEq)]
struct Experiment {
    parts: [(&'static str, BTreeMap<String, String>); 3],
}

/// Differences between two cells of different scenarios. `None` if a scenario cannot be read.
pub(super) fn differences(left: (&Header, &Cell), right: (&Header, &Cell)) -> Option<Vec<Difference>> {
    let (left, right) = both(left, right)?;
    Some(left.differences(&right))
}

fn both(left: (&Header, &Cell), right: (&Header, &Cell)) -> Option<(Experiment, Experiment)> {
    // One source for both, because the text of a scenario leaves defaults out.
    let is_recorded = left.0.scenario.experiment.is_some() && right.0.scenario.experiment.is_some();
    let of = |(header, cell): (&Header, &Cell)| {
        let head = header.scenario.experiment.clone().filter(|_| is_recorded);
        Experiment::of(&head.or_else(|| from_text(header, cell))?, cell)
    };
    Some((of(left)?, of(right)?))
}

/// In which of its parts the experiments of two cells differ: what their comparison asks about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Apart {
    pub(super) storage: bool,
    pub(super) workload: bool,
    pub(super) server: ServersApart,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServersApart {
    No,
    /// One program with other settings, memory, cores or replicas.
    Settings,
    /// Other programs.
    Program,
}

impl Apart {
    pub(super) fn new(left: (&Header, &Cell), right: (&Header, &Cell)) -> Apart {
        let (baseline, candidate) = (left.1, right.1);
        let storage = !baseline.stacks().eq(candidate.stacks());
        let Some((one, other)) = both(left, right) else {
            let is_other = baseline.server != candidate.server;
            let server = if is_other { ServersApart::Program } else { ServersApart::No };
            return Apart { storage, workload: baseline.workload != candidate.workload, server };
        };
        let [workload, server, _] =
            [0, 1, 2].map(|part| keys_apart(&one.parts[part].1, &other.parts[part].1));
        let is_setting = |key: &&String| {
            let is_of_machine = ["memory", "cores", "dilation"].contains(&key.as_str());
            is_of_machine || ["settings.", "replication."].iter().any(|part| key.starts_with(part))
        };
        let server = match server.as_slice() {
            [] => ServersApart::No,
            keys if keys.iter().all(is_setting) => ServersApart::Settings,
            _ => ServersApart::Program,
        };
        Apart { storage, workload: !workload.is_empty(), server }
    }
}

/// The keys whose values differ, sorted.
fn keys_apart<'a>(
    left: &'a BTreeMap<String, String>,
    right: &'a BTreeMap<String, String>,
) -> Vec<&'a String> {
    let is_apart = |key: &&String| match (left.get(*key), right.get(*key)) {
        (Some(left), Some(right)) => !is_same(left, right),
        _ => true,
    };
    let keys: BTreeSet<&String> = left.keys().chain(right.keys()).collect();
    keys.into_iter().filter(is_apart).collect()
}

/// The axes of the matrix in which two cells of one scenario differ, if they are several.
pub(super) fn axes(left: &Cell, right: &Cell) -> Option<String> {
    let axes = [
        ("storage", left.layout_name(), right.layout_name()),
        ("server", &left.server, &right.server),
        ("workload", &left.workload, &right.workload),
    ];
    let apart = axes.iter().filter(|(_, left, right)| left != right);
    let apart: Vec<String> =
        apart.map(|(axis, left, right)| format!("{axis} (`{left}`, `{right}`)")).collect();
    (apart.len() > 1).then(|| {
        let (left, right) = (&left.name, &right.name);
        format!("{left} and {right} differ in {}: the ratio is of all of it together", apart.join(" and in "))
    })
}

impl Experiment {
    fn of(head: &ExperimentHead, cell: &Cell) -> Option<Experiment> {
        let flat = |value: &Value| {
            let mut leaves = BTreeMap::new();
            flatten("", value, &mut leaves);
            leaves
        };
        let server = with_replication(head.servers.get(&cell.server)?.clone(), cell);
        let workload = head.workloads.get(&cell.workload)?;
        Some(Experiment {
            parts: [("workload", flat(workload)), ("server", flat(&server)), ("run", flat(&head.run))],
        })
    }

    fn differences(&self, other: &Experiment) -> Vec<Difference> {
        let mut differences = Vec::new();
        for ((part, left), (_, right)) in self.parts.iter().zip(&other.parts) {
            let value = |side: &BTreeMap<String, String>, key: &str| {
                side.get(key).cloned().unwrap_or_else(|| "not set".to_owned())
            };
            let of_key = |key: &String, name: &str| Difference {
                key: name.to_owned(),
                baseline: value(left, key),
                candidate: value(right, key),
            };
            let kind = "kind".to_owned();
            if left.get(&kind) != right.get(&kind) {
                // Keys of different kinds have nothing in common.
                differences.push(of_key(&kind, part));
                continue;
            }
            let apart = keys_apart(left, right).into_iter();
            differences.extend(apart.map(|key| of_key(key, key.strip_prefix("settings.").unwrap_or(key))));
        }
        differences
    }
}

/// The experiment of a cell of earlier records, from the scenario's text.
fn from_text(header: &Header, cell: &Cell) -> Option<ExperimentHead> {
    let scenario: toml::Table = header.scenario.text.parse().ok()?;
    let table = |kind: &str, name: &str| serde_json::to_value(scenario.get(kind)?.get(name)?).ok();
    let workload = table("workloads", &cell.workload)?;
    let spec = WorkloadSpec::deserialize(&workload).ok();
    // Without a table, the server is the machine's default, and the cell has its kind.
    let server = table("servers", &cell.server).unwrap_or(json!({"kind": cell.server}));
    let mut run = serde_json::to_value(scenario.get("run")?).ok()?;
    let fields = run.as_object_mut()?;
    // More trials or another seed are more of the same experiment.
    fields.retain(|key, _| !["trials", "seed"].contains(&key.as_str()));
    fields.insert("start".to_owned(), spelling(&header.scenario.start).into());
    fields.entry("settle").or_insert("0 s".into());
    let of_kit = spec.as_ref().and_then(|spec| spec.warm_up()).map(text::duration);
    fields.entry("warm_up").or_insert(of_kit.unwrap_or("0 s".to_owned()).into());
    let workload = spec.as_ref().map_or(Ok(workload), serde_json::to_value).ok()?;
    Some(ExperimentHead {
        servers: BTreeMap::from([(cell.server.clone(), server)]),
        workloads: BTreeMap::from([(cell.workload.clone(), workload)]),
        run,
    })
}

/// Replaces the table of replicas by the resolved one. The replicas' storage may differ, their number not.
fn with_replication(mut server: Value, cell: &Cell) -> Value {
    if let (Some(fields), Some(replication)) = (server.as_object_mut(), &cell.replication) {
        let ReplicationHead { mode, wait_point, timeout_s, replicas } = replication;
        let settings = fields.get("replication").and_then(|table| table.get("settings")).cloned();
        let resolved = json!({
            "mode": mode, "wait_point": wait_point, "timeout_s": timeout_s,
            "replicas": replicas.len(), "settings": settings,
        });
        fields.insert("replication".to_owned(), resolved);
    }
    server
}

fn flatten(path: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
    let text = match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                flatten(&path, value, leaves);
            }
            return;
        }
        Value::Null => return,
        // As a server's setting is written.
        Value::Bool(on) => if *on { "ON" } else { "OFF" }.to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    leaves.insert(path.to_owned(), text);
}

/// Equal as text, as durations or as sizes: `30 s` is `0.5 min`, and `96M` is `96 MiB`.
fn is_same(left: &str, right: &str) -> bool {
    let parsed = |parse: fn(&str) -> Result<u64, String>| match (parse(left), parse(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    };
    left == right || parsed(parse_duration_ns) || parsed(parse_size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_equal_in_any_spelling() {
        let check = |left, right, expect| assert_eq!(is_same(left, right), expect, "{left}, {right}");
        check("30 s", "0.5 min", true);
        check("96M", "96 MiB", true);
        check("96M", "96 MB", false);
        check("10", "2", false);
    }
}
