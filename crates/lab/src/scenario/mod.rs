//! A scenario: prose plus a matrix of stacks, servers and workloads, in one TOML file.
//!
//! [`Scenario::read`] returns a scenario that passed every check possible on this machine without work. Any
//! failure is a [`Mistake`] of one sentence: file, key, bound.

pub mod draft;
pub mod events;
mod experiment;
mod file;
mod fit;
pub mod form;
pub mod matrix;
mod names;
pub mod plan;
mod procedure;
mod replication;
mod shards;
mod storage;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Serialize, Serializer};
use spindle_load::WorkloadSpec;

use crate::host::provenance::cpu_count;
use crate::record::{Cell, PublishedTag, ScenarioHead, StartState, Until};
use crate::server::replication::ReplicationSpec;
use crate::server::{Kind, Server, Source, Trust, catalog};
use crate::stack::StackSpec;
use crate::stack::layout::Layout;
pub use fit::fill;
pub use matrix::Matrix;
pub use procedure::dilation;
use procedure::dilation::{Cores, DilationRule};
pub use procedure::settle::Settle;
pub use procedure::warm_up::WarmUp;
use spindle_base::Mistake;
pub use spindle_base::hash::content_hash;
use spindle_base::units::format_size_bytes;

#[derive(Debug, Clone)]
pub struct Scenario {
    /// File stem.
    pub name: String,
    pub title: String,
    pub question: String,
    /// The unchanged file.
    pub text: String,
    pub stacks: BTreeMap<String, StackSpec>,
    /// The storage of the cells, in their order. A stack of the matrix is a layout with nothing but data.
    pub layouts: Vec<Layout>,
    pub servers: BTreeMap<String, ServerSpec>,
    pub workloads: BTreeMap<String, WorkloadSpec>,
    /// The named workloads and servers, or the variants that the swept axes make of them.
    pub matrix: Matrix,
    /// Empty without swept axes.
    pub variants: matrix::Variants,
    pub run: RunSettings,
    /// Trials of the cells that have more than `run` says, by the cells' names. Not in the hash, as theirs are not.
    pub more_trials: BTreeMap<String, u32>,
    /// The published rows that cells reproduce. They change no measurement, so they are not in the hash.
    pub published: Vec<PublishedTag>,
    /// In the order of their times.
    pub events: Vec<events::Event>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerSpec {
    pub kind: String,
    #[serde(flatten, skip_serializing_if = "Source::is_installed")]
    pub source: Source,
    /// By the server's own names and spelling.
    pub settings: BTreeMap<String, String>,
    /// The most that its processes and the page cache of their files may use; of each replica too.
    #[serde(rename = "memory", skip_serializing_if = "Option::is_none", serialize_with = "as_written")]
    pub memory_bytes: Option<u64>,
    /// In place of the run's dilation.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replication: Option<ReplicationSpec>,
    /// Decided by the caller, never by the scenario.
    #[serde(skip)]
    pub trust: Trust,
}

/// A size as a scenario has it.
fn as_written<S: Serializer>(bytes: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    bytes.map(format_size_bytes).serialize(serializer)
}

impl ServerSpec {
    pub fn server(&self) -> Box<dyn Server> {
        (self.facts().make)(&self.source, self.trust).expect("a scenario is read with known kinds only")
    }

    pub fn facts(&self) -> &'static Kind {
        catalog::find(&self.kind).expect("a scenario is read with known kinds only")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RunSettings {
    /// With `until`, the number before the first look.
    pub trials: u32,
    /// How many trials there are changes no trial, so it is not in the hash.
    #[serde(skip)]
    pub until: Option<Until>,
    pub start: StartState,
    pub warm_up: WarmUp,
    pub settle: Settle,
    /// Without load, before a cold start.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub idle: Duration,
    /// For fixed work, its time limit.
    pub measure: Duration,
    /// Transactions with which a window ends early.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enough: Option<u64>,
    /// Before so long, no window ends early.
    #[serde(skip_serializing_if = "Duration::is_zero")]
    pub at_least: Duration,
    /// The workload is fixed work, done once.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// The server is killed behind the window, and its recovery is timed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub recovery: bool,
    #[serde(skip_serializing_if = "DilationRule::is_none")]
    pub dilation: DilationRule,
    /// So many of the machine's cores; see [`spindle_base::affinity`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_affinity: Option<u32>,
    /// Only the first cell, twice. Decided by the caller, never by the scenario.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub a_a: bool,
    pub seed: u64,
}

impl RunSettings {
    /// The cores on which server and clients run.
    pub fn cpu_count(&self) -> u32 {
        self.cpu_affinity.unwrap_or_else(cpu_count)
    }

    /// Whether the load of the window goes on before it: not from a cold start, and not that of fixed work.
    pub fn warms_up(&self) -> bool {
        self.start != StartState::Cold && !self.once
    }
}

/// Limits of a scenario, and the actions allowed while it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub memory_bytes: u64,
    pub trust: Trust,
}

impl Scenario {
    pub fn read(path: &Path, bounds: &Bounds) -> Result<Scenario, Mistake> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Mistake::new(format!("{}: cannot be read: {error}", path.display())))?;
        let name = path.file_stem().map_or("scenario".into(), |stem| stem.to_string_lossy());
        let directory = path.parent().unwrap_or(Path::new(""));
        Scenario::parse_in(directory, &name, &text, bounds).map_err(|mistake| mistake.in_file(path.display()))
    }

    /// The error has no file name in front of it. Paths in the scenario are relative to the working
    /// directory.
    pub fn parse(name: &str, text: &str, bounds: &Bounds) -> Result<Scenario, Mistake> {
        Scenario::parse_in(Path::new(""), name, text, bounds)
    }

    fn parse_in(directory: &Path, name: &str, text: &str, bounds: &Bounds) -> Result<Scenario, Mistake> {
        let mut file = file::parse(text)?;
        file::read_workload_files(&mut file, directory)?;
        validate::validate(name, text, file, bounds)
    }

    /// Scenarios with the same hash have the same cells and the same procedure. Prose, comments and the
    /// number of trials may differ, so a run can be extended and keeps its records.
    pub fn hash(&self) -> String {
        let stacks: BTreeMap<&str, String> =
            self.stacks_in_use().into_iter().map(|name| (name, self.stacks[name].hash())).collect();
        let servers: BTreeMap<_, _> =
            self.matrix.server.iter().map(|name| (name, &self.servers[name])).collect();
        let workloads: BTreeMap<_, _> =
            self.matrix.workload.iter().map(|name| (name, &self.workloads[name])).collect();
        let run = RunSettings { trials: 0, ..self.run };
        let hash = match self.matrix.layout.is_empty() {
            true => content_hash(&(stacks, servers, workloads, &self.matrix, run)),
            false => content_hash(&(stacks, servers, workloads, &self.matrix, run, &self.layouts)),
        };
        if self.events.is_empty() { hash } else { content_hash(&(hash, &self.events)) }
    }

    /// The stacks of the cells by their names, each once, in the order of appearance.
    pub fn stacks_in_use(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for mount in self.layouts.iter().chain(self.replica_layouts()).flat_map(|layout| &layout.mounts) {
            if !names.contains(&mount.stack.as_str()) {
                names.push(&mount.stack);
            }
        }
        names
    }

    /// The name of the table of a server or workload: that of a variant's base.
    fn table_of<'a>(&'a self, name: &'a str) -> &'a str {
        self.variants.get(name).map_or(name, |variant| &variant.base)
    }

    /// The layouts of all replicas of the matrix.
    pub fn replica_layouts(&self) -> impl Iterator<Item = &Layout> {
        let specs = self.matrix.server.iter().filter_map(|name| self.servers[name].replication.as_ref());
        specs.flat_map(|spec| &spec.replicas)
    }

    /// The layout of one of the scenario's own cells.
    pub fn layout_of(&self, cell: &Cell) -> &Layout {
        let is_it = |layout: &&Layout| layout.name == cell.layout_name();
        self.layouts.iter().find(is_it).expect("a cell is made from a layout")
    }

    /// The first workload of the matrix that `is_it` holds for.
    fn workload_that(&self, is_it: impl Fn(&WorkloadSpec) -> bool) -> Option<&String> {
        self.matrix.workload.iter().find(|name| is_it(&self.workloads[*name]))
    }

    /// Approximate size of the largest freshly loaded database of the matrix.
    pub fn data_bytes(&self) -> u64 {
        let data_sets = self.matrix.workload.iter().filter_map(|name| self.workloads[name].data());
        data_sets.map(|data| data.bytes).max().unwrap_or(0)
    }

    pub fn head(&self) -> ScenarioHead {
        ScenarioHead {
            name: self.name.clone(),
            title: self.title.clone(),
            question: self.question.clone(),
            text: self.text.clone(),
            trials_per_cell: self.run.trials,
            until: self.run.until,
            start: self.run.start,
            seed: self.run.seed,
            experiment: Some(experiment::head(self)),
            published: self.published.clone(),
        }
    }
}
