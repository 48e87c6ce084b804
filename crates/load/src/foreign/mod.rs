//! Workloads whose clients are another project's program, really run.
//!
//! Belongs here: what a tool is ([`Tool`]) and one process of it. Must not know any single tool, nor when its
//! runs begin and end: that is the runner's, which translates what a tool prints into the events of the
//! native workloads, so that everything above it is the same. A tool measures whole runs only: before the
//! measured window one run of it goes on without an end and is killed, and the window is a run of its own
//! ([`DEVIATIONS`]).
//!
//! What a tool prints is foreign text. A tool that is missing, dies, complains, or prints something else
//! gives an error with its last words, never a number.

mod process;

use std::fmt::Debug;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

pub(crate) use process::{Ended, Process, execute};

use crate::protocol::{Endpoint, KindSummary, Second};
use spindle_base::child::RunAs;

/// Of every foreign tool.
pub const DEVIATIONS: &[&str] = &[
    "The measured window is a run of the tool of its own; the run before it, for the warm-up, is killed at its beginning. Server and \
     storage stay as the warm-up left them, connections and prepared statements are new, and the tool's start belongs to the \
     figures of storage, server and CPU, not to its own figures.",
    "The tool does not say how long its clients wait for COMMIT: that is estimated from the server's own count of commits and from how long the storage of \
     its logs took for a write and a FLUSH. Where the server or the kernel does not say so, commits cannot be found to be the bottleneck.",
];

/// How many whole and unmeasured seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Seconds(u32),
    /// Until it is killed.
    Endless,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program<'a> {
    /// As it calls itself.
    pub name: &'static str,
    /// Debian package that brings it.
    pub package: &'static str,
    /// A path, or a name that is looked for in `PATH`.
    pub path: &'a Path,
    pub run_as: RunAs,
}

/// A program that drives a load.
pub trait Tool: Debug + Send + Sync {
    fn program(&self) -> Program<'_>;

    /// What it says of itself.
    ///
    /// # Errors
    /// It is missing, or does not know its version.
    fn version(&self) -> Result<String> {
        process::version(self.program())
    }

    /// The command that runs the load. Equal seeds, equal requests.
    ///
    /// # Errors
    /// The tool cannot reach this endpoint.
    fn command(&self, endpoint: &Endpoint, seed: u64, length: Length) -> Result<Command>;

    /// Whether a run is so much work and not so much time: then one follows the other until the window has
    /// passed.
    fn repeats(&self) -> bool {
        false
    }

    /// Whether a line of its output says that something failed, whatever its exit code will be.
    fn is_complaint(&self, line: &str) -> bool;

    /// The second that a line of its output ends, if it ends one; without its time, and whether it is
    /// measured.
    ///
    /// # Errors
    /// The line begins as one of these and is none.
    fn second(&self, line: &str) -> Result<Option<Second>>;

    /// What a run of [`Length::Seconds`] measured, or several one after the other if it repeats.
    ///
    /// # Errors
    /// A figure is missing, or figures contradict each other.
    fn figures(&self, output: &[String]) -> Result<Figures>;
}

/// As the tool says.
#[derive(Debug, Clone, PartialEq)]
pub struct Figures {
    pub duration: Duration,
    pub kinds: Vec<KindSummary>,
}
