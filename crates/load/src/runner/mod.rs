//! Runs the terminals of a workload, or its foreign tool, and measures them.
//!
//! Belongs here: time, threads, windows, the exchange with the parent. Must not know any single workload, nor
//! its name.
//!
//! Closed loop: every terminal is a thread that sends its next transaction after the answer to the last one
//! and the pauses of the workload. Open loop: transactions have a rate, and each starts at its time on a
//! schedule if a terminal is idle then. Latency counts from the *intended start*. In the closed loop this is
//! the moment of sending. In the open loop it is the moment on the schedule, so that a stall of the server
//! counts for every transaction that it delays, and not only for those in progress. Retries are inside the
//! latency.
//!
//! Each terminal puts samples into a buffer of its own. Once a second the coordinator takes the buffers and
//! makes histograms of them. So a window has sharp edges: it holds exactly the transactions that ended inside
//! it.

mod at_work;
mod conversation;
mod coordinator;
mod foreign_tool;
mod schedule;
mod terminal;
mod window;

use std::io::{BufRead, Write};
use std::sync::Arc;

use anyhow::Result;

pub(crate) use conversation::send;

use crate::protocol::Endpoint;
use crate::workload::Workload;

/// The parameters of a run, besides the workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) endpoint: &'a Endpoint,
    /// As [`crate::process::RunSpec::further`].
    pub(crate) further: &'a [Endpoint],
    pub(crate) seed: u64,
    /// Fixed work: the terminals start with the first `Measure`, and the window ends when they are done.
    pub(crate) once: bool,
    /// As [`crate::process::RunSpec::terminals_most`].
    pub(crate) terminals_most: Option<u32>,
}

/// Runs the terminals and obeys `commands` until `Stop` or the end of the input, so that the clients end with
/// their parent. An error was also sent as [`crate::protocol::Event::Fatal`]. Terminals may still wait for a
/// server then, so the process must exit.
pub(crate) fn serve(
    run: Run<'_>,
    workload: &Arc<dyn Workload>,
    commands: impl BufRead + Send + 'static,
    events: impl Write,
) -> Result<()> {
    match workload.tool() {
        Some(tool) => foreign_tool::serve(run, &**workload, tool, commands, events),
        None => coordinator::Coordinator::new(run, events).serve(workload, commands),
    }
}
