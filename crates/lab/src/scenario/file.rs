//! The scenario file as written. The structures declare the keys: serde reads them, and their JSON schema
//! drives the sentences about mistakes and the reference page.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use spindle_load::WorkloadSpec;

use super::Matrix;
use super::events::EventTable;
use super::form::schema;
use super::procedure::more_trials::MoreTrials;
use super::procedure::settle::UntilSteady;
use super::procedure::span::{DurationOr, Rule};
use super::procedure::warm_up::UntilWarm;
use super::procedure::{dilation, until};
use crate::record::{FileClass, PublishedTag, ReplicationMode, StartState, WaitPoint};
use crate::stack::StackTable;
use crate::stack::layout::Layout;
use spindle_base::Mistake;
use spindle_base::explain::{parse_toml, read_toml};
use spindle_base::form;
use spindle_base::units;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ScenarioFile {
    /// Title of the report.
    #[schemars(example = "Disk or SSD for the order database")]
    pub title: String,
    /// The purpose of the comparison. The report prints it.
    #[serde(default)]
    pub question: String,
    /// Storage. A profile or a ready-made stack that the matrix names needs no table.
    #[serde(default)]
    pub stacks: BTreeMap<String, StackTable>,
    /// Storage with some of the server's files on stacks of their own.
    #[serde(default)]
    pub layouts: BTreeMap<String, LayoutTable>,
    /// Servers under test. Without one, an installed server that runs all workloads.
    #[serde(default)]
    pub servers: BTreeMap<String, ServerTable>,
    /// Work of the clients.
    #[schemars(with = "BTreeMap<String, BTreeMap<String, serde_json::Value>>")]
    pub workloads: BTreeMap<String, WorkloadSpec>,
    /// Each combination of the named storage, servers and workloads is a cell.
    pub matrix: Matrix,
    /// Procedure of a trial.
    pub run: RunTable,
    /// Cells with more trials than the others, one table for each number of trials.
    #[serde(default)]
    pub more_trials: Vec<MoreTrials>,
    /// The published rows that cells reproduce, one table for each.
    #[serde(default)]
    pub published: Vec<PublishedTag>,
    /// Changes at times of the measured window, one table for each.
    #[serde(default)]
    pub events: Vec<EventTable>,
}

/// Stacks by class of file. A class that is absent is on the data's stack.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LayoutTable {
    /// Stack of the data, and of each class without a stack of its own.
    #[schemars(example = &"hdd")]
    pub data: String,
    /// Stack of the redo log (PostgreSQL's WAL).
    pub redo: Option<String>,
    /// Stack of InnoDB's doublewrite buffer.
    pub doublewrite: Option<String>,
    /// Stack of InnoDB's undo tablespaces.
    pub undo: Option<String>,
    /// Stack of the binary log.
    pub binlog: Option<String>,
    /// Stack of temporary files.
    pub temp: Option<String>,
    /// Name in reports; by default the table's name.
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

#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ServerTable {
    /// Kind of server: `mariadb`, `postgresql` and others (docs/servers.md).
    #[schemars(example = &"mariadb")]
    pub kind: String,
    /// Path of the server's program.
    pub program: Option<PathBuf>,
    /// Path of an adapter.
    pub file: Option<PathBuf>,
    /// URL of a server that runs already.
    pub url: Option<String>,
    /// Version of a server that `spindle server get` fetches.
    pub version: Option<String>,
    /// The most memory that the server's processes and the page cache of their files may use in a trial; of
    /// each replica too. Unless given, what the machine has.
    #[schemars(example = "256 MB")]
    pub memory: Option<SizeText>,
    /// The cores that the machine of this server and its clients shall seem to have, as fast as this machine's: its
    /// trials run in dilated time. Unless given, as `[run]` has it.
    #[schemars(range(min = 1), example = 8)]
    pub cores: Option<u32>,
    /// The server's own settings, by its own names.
    #[serde(default)]
    pub settings: BTreeMap<String, SettingValue>,
    /// The server's replicas.
    pub replication: Option<ReplicationTable>,
}

/// The server's replicas.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReplicationTable {
    /// The replicas that a commit waits for.
    pub mode: ReplicationMode,
    /// Names of layouts or stacks, one for each replica.
    #[schemars(example = ["hdd"])]
    pub replicas: Vec<String>,
    /// Where a semi-synchronous commit waits (`rpl_semi_sync_master_wait_point`).
    pub wait_point: Option<WaitPoint>,
    /// A semi-synchronous commit goes on without an acknowledgement after this time.
    #[schemars(example = "10 s")]
    pub timeout: Option<DurationText>,
    /// Time for the replicas to catch up after a trial.
    #[schemars(example = "5 min")]
    pub catch_up: Option<DurationText>,
    /// Added to the primary's settings; they take precedence.
    #[serde(default)]
    pub settings: BTreeMap<String, SettingValue>,
}

/// The value of a server's own setting. TOML's numbers and booleans are accepted because users write them.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
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

/// A longer table of trials is a mistake.
pub(super) const TRIALS_MAX: u32 = 1000;

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RunTable {
    /// Trials of each cell, in place of `until`. Three or more give an interval.
    #[schemars(range(min = 1, max = TRIALS_MAX), example = 3)]
    pub trials: Option<u32>,
    /// Trials are repeated until the 95 % interval of each ratio reaches no further than this to either side and says
    /// whether the two cells differ, at the latest when it reaches no further than six tenths of this, or
    /// until the ratio is surely above 2 or below 1/2. Unless given, and without `trials`, 10 %.
    #[schemars(example = "5 %")]
    pub until: Option<until::HalfWidth>,
    /// With `start = "cold"`, time without load on the emulated storage before the measured window. Unless given, none.
    #[schemars(example = "1 min")]
    pub idle: Option<DurationText>,
    /// Behind the measured window the server is killed, and started again on the emulated storage; the record has the
    /// time until it answers.
    #[serde(default)]
    pub recovery: bool,
    /// State of the server's memory at the start of the measured window. Unless given, `warm`, or `cold` for
    /// fixed work. Fixed work that only reads can be `warm` by a pass before the measured one.
    pub start: Option<StartState>,
    /// Load before the measured window: a time, or with `start = "warm-fast"` also `until warm`, which is until it has
    /// read what fills the server's cache two and a half times, or hardly reads. Unless given, the workload's own, or the
    /// length of the window; none before a `warm` start that settles.
    #[schemars(example = "30 s")]
    pub warm_up: Option<DurationOr<UntilWarm>>,
    /// With `warm_up = "until warm"`, the warm-up ends after so long, warm or not. Unless given, 5 min.
    #[schemars(example = "1 min")]
    pub warm_up_at_most: Option<DurationText>,
    /// Load on the emulated storage between the warm-up and the measured window: a time after a `warm-fast`
    /// warm-up, or `until steady`. Unless given, none, or `until steady` where neither `trials` nor a time as
    /// `warm_up` is given.
    #[schemars(example = "10 s")]
    pub settle: Option<DurationOr<UntilSteady>>,
    /// With `settle = "until steady"`, the window begins after so long, steady or not. Unless given, 5 min.
    #[schemars(example = "10 min")]
    pub settle_at_most: Option<DurationText>,
    /// Length of the measured window, or `once` for fixed work.
    #[schemars(example = "30 s")]
    pub measure: Measure,
    /// A window that has seen so many transactions ends with that second, so that fast storage, or dilated
    /// time, costs less. Unless given, every window has its full length.
    #[schemars(range(min = 100), example = 2000)]
    pub enough: Option<u64>,
    /// With `enough`, no window ends before so long, so that a fast storage's has its checkpoints too. Unless
    /// given, one second.
    #[schemars(example = "20 s")]
    pub at_least: Option<DurationText>,
    /// With `until`, the run ends after so long, whatever is known by then. Unless given, 40 min. With
    /// `measure = "once"`, the time limit of a trial's fixed work.
    #[schemars(example = "1 h")]
    pub at_most: Option<DurationText>,
    /// How many times slower time passes for everything but the processor, so that the cores look that many
    /// times as fast; or `as needed`, to find the number by a pilot. Below 1 time passes faster and the cores look
    /// slower. Unless given, 1.
    #[schemars(example = 4)]
    pub dilation: Option<dilation::Written>,
    /// The largest dilation that `as needed` may choose. Unless given, 16.
    #[schemars(range(min = 1, max = 64), example = 8)]
    pub dilation_at_most: Option<f64>,
    /// In place of `dilation`: this machine's cores shall look as fast as so many of them.
    #[schemars(range(min = 1), example = 8)]
    pub cores: Option<u32>,
    /// CPU affinity: the server, its clients and a file system that is a process stay on so many of this machine's cores,
    /// and the emulators on the others, if there are any. With 1, a client and a server that take turns do not wake each
    /// other on another core, which costs them half of their speed on some virtual machines, and not the same in each
    /// trial. Unless given, they run on all.
    #[schemars(range(min = 1), example = 1)]
    pub cpu_affinity: Option<u32>,
    /// Seed of all random choices.
    #[serde(default = "default_seed")]
    pub seed: u64,
}

/// A fixed number, so that a scenario repeats itself.
fn default_seed() -> u64 {
    1
}

/// Length of a trial's measured window, or until the workload's fixed work is done.
pub(super) type Measure = DurationOr<Once>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Once;

impl Rule for Once {
    const WORDS: &'static str = "once";
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

impl JsonSchema for DurationText {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "duration" })
    }
}

/// Bytes of a size such as `"256 MB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct SizeText(pub u64);

impl TryFrom<String> for SizeText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        units::parse_size_bytes(&text).map(SizeText)
    }
}

impl JsonSchema for SizeText {
    fn schema_name() -> Cow<'static, str> {
        "Size".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "size" })
    }
}

/// # Errors
/// The text is not TOML; keys or values do not have the declared form, all of them at once; or a value has no
/// meaning.
pub(super) fn parse(text: &str) -> Result<ScenarioFile, Mistake> {
    let table = toml::Table::deserialize(parse_toml(text)?)
        .map_err(|error| Mistake::new(error.message().to_owned()))?;
    if let Some(mistakes) = Mistake::all(form::mistakes(&schema(&table), &table)) {
        return Err(mistakes);
    }
    read_toml(text)
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
