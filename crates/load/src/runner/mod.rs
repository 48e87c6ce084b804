//! Runs a workload's terminals and measures them: the load process.
//!
//! Closed loop: every terminal is a thread that sends its next transaction when the last one was answered, after the pauses that the
//! workload makes. Open loop: transactions have a rate, and each starts at its time on a schedule if a terminal is idle then.
//! Latency counts from the *intended start*; in the closed loop that is the moment of sending, in the open loop the moment on the schedule, so
//! that a server that stands still is seen by every transaction that it kept waiting, and not only by those that were sent. Retries
//! are inside the latency.
//!
//! Terminals put samples into a buffer of their own; once a second the coordinator takes the buffers and makes
//! histograms of them. So a window has sharp edges: it holds exactly the transactions that ended inside it.

mod coordinator;
mod schedule;
mod terminal;
mod window;

use std::io::{BufRead, Write};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::foreign;
use crate::protocol::{Command, Event, RunSpec};
use crate::workload::Workload;

/// Reads the [`RunSpec`] from the first line of `commands`, then serves it. What the hidden sub-command `load client`
/// calls. Every error was also sent as [`Event::Fatal`].
pub fn serve_standard(mut commands: impl BufRead + Send + 'static, mut events: impl Write) -> Result<()> {
    match read_specification(&mut commands) {
        Ok(spec) => serve(&spec, commands, events),
        Err(error) => {
            send(&mut events, &Event::Fatal { message: format!("{error:#}") })?;
            Err(error)
        }
    }
}

fn read_specification(commands: &mut impl BufRead) -> Result<RunSpec> {
    let mut line = String::new();
    if commands.read_line(&mut line).context("reading the run's specification")? == 0 {
        bail!("no specification of the run on the standard input");
    }
    serde_json::from_str(&line).context("the first line is no specification of a run")
}

/// What the parent says.
#[derive(Debug)]
pub(crate) enum CommandLine {
    Command(Command),
    /// It closed our input: it stopped or died.
    Closed,
    /// A line was no command.
    Unreadable(String),
}

/// Reads on a thread of its own until the end of the input, or until `take` returns false.
pub(crate) fn read_commands(
    commands: impl BufRead + Send + 'static,
    take: impl Fn(CommandLine) -> bool + Send + 'static,
) {
    std::thread::spawn(move || {
        for line in commands.lines() {
            let line = match line {
                Err(_) => break,
                Ok(line) => match serde_json::from_str(&line) {
                    Ok(command) => CommandLine::Command(command),
                    Err(error) => CommandLine::Unreadable(format!("{line:?} is no command: {error}")),
                },
            };
            if !take(line) {
                return;
            }
        }
        take(CommandLine::Closed);
    });
}

pub(crate) fn send(events: &mut impl Write, event: &Event) -> Result<()> {
    serde_json::to_writer(&mut *events, event).context("writing an event")?;
    events.write_all(b"\n").and_then(|()| events.flush()).context("writing an event")
}

/// Runs the terminals and obeys `commands` until `Stop` or the end of the input, so that the clients end with whoever
/// started them. An error was also sent as [`Event::Fatal`]; terminals may still be waiting for a server then,
/// and the process must exit.
pub fn serve(spec: &RunSpec, commands: impl BufRead + Send + 'static, events: impl Write) -> Result<()> {
    let workload = spec.workload.build_with_tools(spec.tools_run_as).map(Arc::from);
    let tool =
        workload.as_ref().ok().and_then(|workload: &Arc<dyn Workload>| Some((workload, workload.tool()?)));
    if let Some((workload, tool)) = tool {
        return foreign::serve(spec, &**workload, tool, commands, events);
    }
    // A workload that cannot be built is the coordinator's to complain about.
    coordinator::Coordinator::new(spec, events).serve(workload, commands)
}

#[cfg(test)]
pub(crate) mod tests;
