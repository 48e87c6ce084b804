//! Workloads whose clients are another project's program, run as a child process.
//!
//! Belongs here: the trait of a tool ([`Tool`]), one process of it, and the tool of two workloads
//! ([`sysbench`]). Must not know when its runs start and end. The runner decides that, and translates a tool's output into the events of
//! native workloads, so that all code above it is the same. A tool measures whole runs only. Before the
//! measured window one endless run warms up and is killed; the window is a run of its own ([`DEVIATIONS`]).
//!
//! The output of a tool is untrusted text. A tool that is missing, dies, complains, or prints anything
//! unexpected gives an error with its last words, never a number.

mod process;
pub(crate) mod sysbench;

use std::fmt::Debug;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

pub(crate) use process::{Ended, Process, execute};

use crate::protocol::{Endpoint, KindSummary, Second};
use spindle_base::child::RunAs;

/// Known deviations of every foreign tool.
pub const DEVIATIONS: &[&str] = &[
    "The measured window is a run of the tool of its own; the run before it, for the warm-up, is killed at its beginning. Server and \
     storage stay as the warm-up left them, connections and prepared statements are new, and the tool's start belongs to the \
     figures of storage, server and CPU, not to its own figures.",
    "The tool does not say how long its clients wait for COMMIT: that is estimated from the server's own count of commits and from how long the storage of \
     its logs took for a write and a FLUSH. Where the server or the kernel does not say so, commits cannot be found to be the bottleneck.",
];

/// The length of a run. The measured run has whole seconds; the unmeasured run before it is endless.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    Seconds(u32),
    /// Runs until it is killed.
    Endless,
}

#[derive(Debug, Clone, Copy)]
pub struct Program<'a> {
    /// The tool's own name.
    pub name: &'static str,
    /// The Debian package that contains it.
    pub package: &'static str,
    /// A path, or a name that is searched in `PATH`.
    pub path: &'a Path,
    pub run_as: RunAs,
    /// True if a line of its output reports a failure, whatever the exit code.
    pub is_complaint: fn(&str) -> bool,
}

/// A program that drives a load.
pub trait Tool: Debug + Send + Sync {
    fn program(&self) -> Program<'_>;

    /// The version that the tool reports.
    ///
    /// # Errors
    /// The tool is missing, or does not report its version.
    fn version(&self) -> Result<String> {
        process::version(self.program())
    }

    /// The command that runs the load. Equal seeds give equal requests.
    ///
    /// # Errors
    /// The tool cannot reach this endpoint.
    fn command(&self, endpoint: &Endpoint, seed: u64, length: Length) -> Result<Command>;

    /// True if a run has a fixed amount of work instead of a duration. Then runs are repeated until the
    /// window has passed.
    fn repeats(&self) -> bool {
        false
    }

    /// The second that a line of its output reports, if it reports one. Its time and `measured` are not set.
    ///
    /// # Errors
    /// The line starts like such a report but is malformed.
    fn second(&self, _line: &str) -> Result<Option<Second>> {
        Ok(None)
    }

    /// The figures of a run of [`Length::Seconds`], or of several in a row if the tool repeats.
    ///
    /// # Errors
    /// A figure is missing, or figures contradict each other.
    fn figures(&self, output: &[String]) -> Result<Figures>;
}

/// The figures that a tool reports: the duration of the run, and its transactions.
pub type Figures = (Duration, KindSummary);
