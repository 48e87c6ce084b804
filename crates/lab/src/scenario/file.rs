//! The scenario file as written: serde structures, and sentences for serde's errors.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use spindle_load::WorkloadSpec;

use super::Matrix;
use crate::record::{FileClass, ReplicationMode, StartState, WaitPoint};
use crate::stack::StackTable;
use crate::stack::layout::Layout;
use spindle_base::Mistake;
use spindle_base::explain::{explain, parse_toml};
use spindle_base::units;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    pub title: String,
    /// The purpose of the comparison; printed in the report.
    pub question: String,
    pub stacks: BTreeMap<String, StackTable>,
    #[serde(default)]
    pub layouts: BTreeMap<String, LayoutTable>,
    /// If empty, a server that the machine has.
    #[serde(default)]
    pub servers: BTreeMap<String, ServerTable>,
    pub workloads: BTreeMap<String, WorkloadSpec>,
    pub matrix: Matrix,
    pub run: RunTable,
}

/// Stack names by class of file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutTable {
    pub data: String,
    pub redo: Option<String>,
    pub doublewrite: Option<String>,
    pub undo: Option<String>,
    pub binlog: Option<String>,
    pub temp: Option<String>,
    pub label: Option<String>,
}

impl LayoutTable {
    pub(super) fn layout(&self, name: &str) -> Layout {
        let label = self.label.as_deref().unwrap_or(name);
        Layout::new(name, label, &self.data, &self.named()[1..])
    }

    /// Every named class, the data's first.
    pub(super) fn named(&self) -> Vec<(FileClass, &str)> {
        let others = [
            (FileClass::Redo, &self.redo),
            (FileClass::Doublewrite, &self.doublewrite),
            (FileClass::Undo, &self.undo),
            (FileClass::Binlog, &self.binlog),
            (FileClass::Temp, &self.temp),
        ];
        let others = others.into_iter().filter_map(|(class, stack)| Some((class, stack.as_deref()?)));
        std::iter::once((FileClass::Data, self.data.as_str())).chain(others).collect()
    }
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    pub kind: String,
    /// Path of the server's program.
    pub program: Option<PathBuf>,
    /// Path of an adapter.
    pub file: Option<PathBuf>,
    /// URL of a server that runs already.
    pub url: Option<String>,
    /// Version of a server that `spindle server get` fetches.
    pub version: Option<String>,
    #[serde(default)]
    pub settings: BTreeMap<String, SettingValue>,
    pub replication: Option<ReplicationTable>,
}

/// The server's replicas.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplicationTable {
    pub mode: ReplicationMode,
    /// Names of layouts or stacks, one for each replica.
    pub replicas: Vec<String>,
    pub wait_point: Option<WaitPoint>,
    pub timeout: Option<DurationText>,
    pub catch_up: Option<DurationText>,
    /// Added to the primary's settings; they take precedence.
    #[serde(default)]
    pub settings: BTreeMap<String, SettingValue>,
}

/// The value of a server's own setting. TOML's numbers and booleans are accepted because users write them.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(super) enum SettingValue {
    Switch(bool),
    Integer(i64),
    Real(f64),
    Text(String),
}

impl SettingValue {
    pub(super) fn text(&self) -> String {
        match self {
            SettingValue::Switch(on) => if *on { "ON" } else { "OFF" }.to_owned(),
            SettingValue::Integer(value) => value.to_string(),
            SettingValue::Real(value) => value.to_string(),
            SettingValue::Text(value) => value.clone(),
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunTable {
    pub trials: i64,
    pub start: StartState,
    pub warm_up: Option<DurationText>,
    pub settle: Option<DurationText>,
    pub measure: Measure,
    /// Time limit of fixed work.
    pub at_most: Option<DurationText>,
    pub seed: i64,
}

/// Length of a trial's measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Measure {
    For(Duration),
    /// `"once"`: until the workload's fixed work is done.
    Once,
}

impl TryFrom<String> for Measure {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.trim() {
            "once" => Ok(Measure::Once),
            _ => DurationText::try_from(text).map(|DurationText(duration)| Measure::For(duration)),
        }
    }
}

/// A duration such as `"30 s"` or `"5 min"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct DurationText(pub Duration);

impl TryFrom<String> for DurationText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        units::parse_duration(&text).map(DurationText).map_err(|error| error.to_string())
    }
}

pub(super) fn parse(text: &str) -> Result<ScenarioFile, Mistake> {
    serde_path_to_error::deserialize(parse_toml(text)?).map_err(|error| {
        let path = error.path().to_string();
        in_workload(text, &path).unwrap_or_else(|| explain(&path, error.inner().message()))
    })
}

/// Replaces the file names in workloads by the files' content; paths are relative to the scenario.
pub(super) fn read_workload_files(file: &mut ScenarioFile, directory: &Path) -> Result<(), Mistake> {
    for (name, workload) in &mut file.workloads {
        workload
            .read_files(directory)
            .map_err(|(key, message)| Mistake::at(key, message).under(&format!("workloads.{name}")))?;
    }
    Ok(())
}

/// The wrong key of a workload. Serde buffers the variants that `kind` selects and loses the path below it.
fn in_workload(text: &str, path: &str) -> Option<Mistake> {
    let name = path.strip_prefix("workloads.")?;
    let mut table = text.parse::<toml::Table>().ok()?.remove("workloads")?.get(name)?.as_table()?.clone();
    let kind = table.remove("kind")?;
    let error = WorkloadSpec::mistake_in(kind.as_str()?, table)?;
    Some(explain(&error.path().to_string(), error.inner().message()).under(path))
}
