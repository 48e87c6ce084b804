//! Records of a run: one JSON line per trial, flushed at once, with its full provenance.
//!
//! A records file is JSON lines. The first line is a [`Header`], every further line a [`Trial`]. The report
//! is a pure function of them. A failed trial is a line with `error`. Names contain the units. Times of day
//! are UTC, RFC 3339.

use std::collections::BTreeMap;
use std::time::Duration;

use itertools::Itertools as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use spindle_base::dilation::Dilation;
use spindle_base::text;

use crate::host::provenance::Machine;

mod cell;
pub mod input;
mod masking;
mod measurement;
mod old_formats;
mod part;
pub mod records_file;
mod replication;
pub(crate) mod schema;
mod storage;
mod warning;

pub use cell::{
    Cell, FigureName, FileClass, Mark, MountHead, Per, PublishedTag, Selector, StackHead, SweptPart,
    SweptValue, ZfsDeviceHead, ZfsHead, selector_words,
};
pub use measurement::{
    Bottleneck, BottleneckKind, BusyThread, ChartHead, CommitEstimate, CpuSummary, EventView, Evidence,
    Latency, MachineActivity, Measurement, NextStep, PartView, PerTransaction, ProductionView, RateEvidence,
    RateOf, RedoEvidence, SampledTrace, Series, SeriesUnit, Settling, StorageEvidence, ThreadEvidence,
    TransactionSummary,
};
pub use part::{Difference, ParameterHead, PartBelow, PartHead, differences};
pub use replication::{
    ReplicaHead, ReplicaSeries, ReplicaView, ReplicationHead, ReplicationMode, ReplicationView, SemiSyncView,
    WaitPoint,
};
pub use spindle_load::{Check, Metric};
pub use storage::{
    DeviceView, EmulatorSummary, HostSeries, HostView, LayerView, MountView, OperationSeries, StorageSeries,
    TraceView,
};
pub(crate) use warning::{CPU_BUSY, CPU_OTHERS, CPU_OWN};
pub use warning::{NeverSettled, Warning};

/// Raised when a reader of the old format would misread the new one. This reader accepts all formats up to
/// its own.
///
/// 2: a cell may have several mounts. 3: mounts are one list with the data's first ([`Cell::mounts`],
/// [`Measurement::mounts`]).
pub const FORMAT: u32 = 3;
/// Earlier formats are converted when they are read.
const OLDEST_KEPT: u64 = 3;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "line", rename_all = "kebab-case")]
#[expect(
    clippy::large_enum_variant,
    reason = "lines are read one by one; a box would only complicate the readers"
)]
pub enum Line {
    /// The first line of a file.
    Header(Header),
    Trial(Trial),
}

impl Line {
    /// Parses one line of a file of this format, which [`Line::format_of`] reads from the file's first line.
    ///
    /// # Errors
    /// The line is not a record of that format.
    pub fn parse(text: &str, format: u64) -> serde_json::Result<Line> {
        let line = match format {
            ..OLDEST_KEPT => serde_json::from_value(old_formats::converted(serde_json::from_str(text)?))?,
            _ => serde_json::from_str(text)?,
        };
        match &line {
            Line::Header(header) if header.cells.iter().any(|cell| cell.mounts.is_empty()) => {
                Err(serde::de::Error::custom("a cell without a mount"))
            }
            _ => Ok(line),
        }
    }

    /// The format named by a file's first line; zero if there is none.
    ///
    /// # Errors
    /// The line is not JSON.
    pub fn format_of(text: &str) -> serde_json::Result<u64> {
        let value: serde_json::Value = serde_json::from_str(text)?;
        Ok(value["format"].as_u64().unwrap_or(0))
    }
}

/// The scenario, and the machine that ran it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Header {
    pub format: u32,
    pub created_at: String,
    pub provenance: Provenance,
    pub scenario: ScenarioHead,
    pub cells: Vec<Cell>,
    pub machine: Machine,
    /// Differences between the workloads and their specifications, as sentences.
    #[serde(default)]
    pub deviations: Vec<String>,
    /// Command that prints the report again: `spindle report FILE`.
    pub report_command: String,
    /// `None` for a run of a scenario.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RecordSource>,
}

/// What made a record, where no scenario was run.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum RecordSource {
    /// `spindle observe`: a server that its own clients used, by its counters.
    Production,
}

impl Header {
    /// The machine's cores on which servers and clients ran.
    pub fn cpu_count(&self) -> u32 {
        let run = self.scenario.experiment.as_ref().map(|experiment| &experiment.run);
        let bound = run.and_then(|run| u32::try_from(run.get("cpu_affinity")?.as_u64()?).ok());
        bound.unwrap_or(self.machine.cpu_count)
    }

    /// A sentence of a record about a cell, with labels in place of the names of its stacks and replicas.
    pub fn with_titles(&self, cell: &Cell, sentence: &str, noun: fn(&str) -> String) -> String {
        let stacks = cell.stacks().map(|stack| (format!("`{}`", stack.name), noun(self.stack_title(stack))));
        let replicas = cell.replication.iter().flat_map(|replication| &replication.replicas);
        let replicas = replicas.enumerate().filter_map(|(index, replica)| {
            let name = |layout: &str| format!("replica {} ({layout})", index + 1);
            let [only] = replica.mounts.as_slice() else { return None };
            let is_stack = only.stack.name == replica.layout;
            is_stack.then(|| (name(&replica.layout), name(self.stack_title(&only.stack))))
        });
        stacks.chain(replicas).fold(sentence.to_owned(), |text, (name, title)| text.replace(&name, &title))
    }

    /// The label of a stack. Earlier records have it only where a cell is the stack alone.
    pub fn stack_title<'a>(&'a self, stack: &'a StackHead) -> &'a str {
        let is_alone = |cell: &&Cell| cell.layout.is_none() && cell.data().name == stack.name;
        match self.cells.iter().find(is_alone) {
            Some(cell) if stack.label.is_empty() => cell.storage_label(),
            _ => stack.title(),
        }
    }

    /// The label of a cell, with its name if two cells have the same label. The name itself for a cell that
    /// is not in the header.
    pub fn title(&self, name: &str) -> String {
        let Some(cell) = self.cells.iter().find(|cell| cell.name == name) else { return name.to_owned() };
        let is_shared = self.cells.iter().any(|other| other.name != name && other.label == cell.label);
        if is_shared { format!("{} ({name})", cell.label) } else { cell.label.clone() }
    }

    /// The cells that are compared with each other, by their indices: those of one workload, whatever is swept. A
    /// workload with a single cell joins the first family. The first cell of a family is its baseline.
    pub fn families(&self) -> Vec<Vec<usize>> {
        let workload = |index: &usize| self.cells[*index].bases().1;
        let by_workload = (0..self.cells.len()).into_group_map_by(workload).into_values();
        let mut families: Vec<Vec<usize>> = by_workload.sorted().collect();
        if families.is_empty() {
            return families;
        }
        let mut first = families.remove(0);
        let (alone, mut others): (Vec<_>, Vec<_>) =
            families.into_iter().partition(|family| family.len() == 1);
        first.extend(alone.into_iter().flatten());
        first.sort_unstable();
        others.insert(0, first);
        others
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ScenarioHead {
    /// File stem of the scenario.
    pub name: String,
    pub title: String,
    /// The prose of the scenario (paragraphs separated by an empty line).
    pub question: String,
    /// The scenario file, unchanged, so that a reader can run it again.
    pub text: String,
    /// With `until`, the number before the first look.
    pub trials_per_cell: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
    pub start: StartState,
    pub seed: u64,
    /// `None` in earlier records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub experiment: Option<ExperimentHead>,
    /// The published rows that cells reproduce.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedTag>,
}

/// What the cells measure besides their storage, with all defaults filled in: JSON by the scenario's names.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct ExperimentHead {
    pub servers: BTreeMap<String, Value>,
    pub workloads: BTreeMap<String, Value>,
    /// The procedure of a trial.
    pub run: Value,
}

impl ExperimentHead {
    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = &mut Value> {
        self.servers.values_mut().chain(self.workloads.values_mut()).chain([&mut self.run])
    }
}

/// When a run that repeats its trials until its ratios are known ends.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Until {
    /// Of the 95 % interval of a ratio to the first cell, or of the figure of a cell that has no such ratio, as a
    /// share of it: 0.1 is 10 % to either side.
    pub half_width: f64,
    /// The run begins no further trial that would end later.
    pub at_most_s: f64,
}

impl Until {
    pub fn at_most(&self) -> Duration {
        Duration::from_secs_f64(self.at_most_s)
    }

    /// For the end of a sentence.
    pub fn words(&self) -> String {
        let (width, at_most) = (self.half_width * 100.0, text::duration(self.at_most()));
        format!("until each ratio is known to within {width} %, at most {at_most} in all")
    }
}

/// State of the server's memory at the start of the measured window.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum StartState {
    /// Server just started, empty caches.
    Cold,
    /// Warmed up on the emulated storage.
    Warm,
    /// Warmed up with the timing off, then settled on the emulated storage.
    WarmFast,
}

/// Everything that can make two results differ; on every line.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Default)]
pub struct Provenance {
    pub spindle_version: String,
    pub git_revision: String,
    pub scenario_hash: String,
    /// Hash of the resolved stack of this cell (profiles included); empty on the header.
    pub stack_hash: String,
    pub kernel: String,
    /// Version string of the server; empty on the header.
    pub server_version: String,
    /// The scenario's settings as the running server reports them.
    pub settings: BTreeMap<String, String>,
    /// The most that the server's processes and the page cache of their files could use; of each replica too.
    /// `None` without such a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    pub seed: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct Trial {
    /// [`Cell::name`].
    pub cell: String,
    /// From 1.
    pub trial: u32,
    /// A block has one trial of each cell, run one after the other in shuffled order.
    pub block: u32,
    pub provenance: Provenance,
    pub started_at: String,
    /// Seconds spent per phase: restore, start, warm-up, settle, measure, verify, stop.
    pub phases_s: BTreeMap<String, f64>,
    /// The reason why there is no measurement, in one sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// The pilots that found the cell's dilation, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pilot: Vec<PilotStep>,
}

impl Trial {
    /// What it took on the clock, from the restored storage to the stopped server.
    pub fn real_s(&self) -> f64 {
        self.phases_s.values().sum()
    }
}

/// One pilot of a cell.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq)]
pub struct PilotStep {
    #[schemars(with = "f64")]
    pub dilation: Dilation,
    /// Share of all cores.
    pub cpu_busy: f64,
    /// The part of it that server, clients and emulators used. The kernel's work for them is not in it.
    pub cpu_own: f64,
    /// The emulator answered late, as [`Warning::Late`] says.
    pub late: bool,
    /// The workload's own metric.
    pub figure: f64,
}

/// The same as words in a sentence.
pub(crate) fn words(variant: &impl Serialize) -> String {
    spelling(variant).replace('-', " ")
}

/// The spelling of a variant in a file.
pub(crate) fn spelling(variant: &impl Serialize) -> String {
    serde_json::to_value(variant).ok().and_then(|name| Some(name.as_str()?.to_owned())).unwrap_or_default()
}
