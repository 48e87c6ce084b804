//! The load process: reads a [`RunSpec`], builds its workload, and passes both to the runner.
//!
//! Belongs here: the work before the runner starts. This module may use everything in the crate; no other
//! module may use it.

use std::io::{BufRead, Write};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::catalog::WorkloadSpec;
use crate::protocol::{Endpoint, Event};
use crate::runner::{self, Run};
use spindle_base::child::RunAs;
use spindle_base::text::causes;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct RunSpec {
    pub endpoint: Endpoint,
    /// The servers of the further shards ([`crate::Declared::shards`]).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Endpoint>,
    pub workload: WorkloadSpec,
    pub seed: u64,
    /// Fixed work: the terminals start with the first `Measure`, and the window ends when the work is done.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub once: bool,
    /// Terminals that are connected, if more than the workload's can be at work later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminals_most: Option<u32>,
    /// The user of the foreign tool, if the workload has one.
    #[serde(default, skip_serializing_if = "RunAs::is_caller")]
    pub tools_run_as: RunAs,
}

impl RunSpec {
    /// A workload that continues until `Stop`. A foreign tool runs as the caller.
    pub fn new(endpoint: Endpoint, workload: WorkloadSpec, seed: u64) -> RunSpec {
        RunSpec {
            endpoint,
            further: Vec::new(),
            workload,
            seed,
            once: false,
            terminals_most: None,
            tools_run_as: RunAs::Caller,
        }
    }
}

/// Reads the [`RunSpec`] from the first line of `commands`, then runs it. The hidden sub-command `load
/// client` calls this. Every error was also sent as [`Event::Fatal`].
pub fn serve_standard(mut commands: impl BufRead + Send + 'static, events: impl Write) -> Result<()> {
    let spec = read_specification(&mut commands);
    serve(spec, commands, events)
}

fn read_specification(commands: &mut impl BufRead) -> Result<RunSpec> {
    let mut line = String::new();
    if commands.read_line(&mut line).context("reading the run's specification")? == 0 {
        bail!("no specification of the run on the standard input");
    }
    serde_json::from_str(&line).context("the first line is no specification of a run")
}

/// On an error terminals may still wait for a server, so the process must exit.
fn serve(
    spec: Result<RunSpec>,
    commands: impl BufRead + Send + 'static,
    mut events: impl Write,
) -> Result<()> {
    let built = spec.and_then(|spec| {
        let workload = Arc::from(spec.workload.build_with_tools(spec.tools_run_as)?);
        Ok((spec, workload))
    });
    match built {
        Ok((spec, workload)) => {
            let RunSpec { endpoint, further, seed, once, terminals_most, .. } = &spec;
            let run = Run { endpoint, further, seed: *seed, once: *once, terminals_most: *terminals_most };
            runner::serve(run, &workload, commands, events)
        }
        Err(error) => {
            runner::send(&mut events, &Event::Fatal { message: causes(&error) })?;
            Err(error)
        }
    }
}

#[cfg(test)]
mod foreign_tests;
#[cfg(test)]
mod tests;
