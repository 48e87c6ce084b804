//! Runs a workload's terminals, or the tool that is its clients, and measures them.
//!
//! Belongs here: time, threads, windows, the conversation with the parent. Must not know any single workload,
//! nor how one is named.
//!
//! Closed loop: every terminal is a thread that sends its next transaction when the last one was answered,
//! after the pauses that the workload makes. Open loop: transactions have a rate, and each starts at its time
//! on a schedule if a terminal is idle then. Latency counts from the *intended start*; in the closed loop
//! that is the moment of sending, in the open loop the moment on the schedule, so that a server that stands
//! still is seen by every transaction that it kept waiting, and not only by those that were sent. Retries are
//! inside the latency.
//!
//! Terminals put samples into a buffer of their own; once a second the coordinator takes the buffers and
//! makes histograms of them. So a window has sharp edges: it holds exactly the transactions that ended inside
//! it.

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

/// What the runner is told besides the workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) seed: u64,
    /// Fixed work: the terminals begin with the first `Measure`, and the window ends when they are through.
    pub(crate) once: bool,
}

/// Runs the terminals and obeys `commands` until `Stop` or the end of the input, so that the clients end with
/// whoever started them. An error was also sent as [`crate::protocol::Event::Fatal`]; terminals may still be
/// waiting for a server then, and the process must exit.
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
