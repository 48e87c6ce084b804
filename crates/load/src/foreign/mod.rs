//! Workloads whose clients are another project's program, run as a child process.
//!
//! Belongs here: the trait of a tool ([`Tool`]), one process of it, and the tool of two workloads
//! ([`sysbench`]). Must not know when its runs start and end. The runner decides that, and translates a
//! tool's output into the events of native workloads, so that all code above it is the same. A tool measures
//! whole runs only. Before the measured window one endless run warms up and is killed; the window is a run of
//! its own ([`DEVIATIONS`]).
//!
//! The output of a tool is untrusted text. A tool that is missing, dies, complains, or prints anything
//! unexpected gives an error with its last words, never a number.

mod process;
pub(crate) mod sysbench;

use std::fmt::Debug;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

pub(crate) use process::{Ended, Process, execute};

use crate::protocol::{Endpoint, KindSummary, Second};
use spindle_base::child::{RunAs, find_program};

/// Known deviations of every foreign tool.
pub const DEVIATIONS: &[&str] = &[
    "The measured window is a separate run of the tool. The warm-up run before it is killed when the window begins. The window keeps \
     the state of server and storage, but has new connections and prepared statements. The start of the tool is part of the \
     figures of storage, server and CPU, but not of the tool's own figures.",
    "The tool does not report how long its clients wait for COMMIT. That time is estimated from the server's count of commits and the \
     latencies of writes and FLUSHes of the log storage. If server or kernel do not report these, commits cannot become the bottleneck.",
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

impl Program<'_> {
    /// Whether it is the tool by its own name, and not a program that a file names.
    pub(crate) fn is_usual(&self) -> bool {
        self.path == Path::new(self.name)
    }

    /// Looks for the program without running it.
    ///
    /// # Errors
    /// There is no such program; the message names the package.
    pub(crate) fn find(self) -> Result<()> {
        match find_program(self.path) {
            Some(_) => Ok(()),
            None => Err(process::missing(self, ErrorKind::NotFound.into())),
        }
    }
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
