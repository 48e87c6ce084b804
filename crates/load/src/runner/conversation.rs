//! Commands of the parent, events to the parent, and messages to the coordinator.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};

use crate::protocol::{Command, Event};

/// A line of input from the parent.
#[derive(Debug)]
pub(super) enum CommandLine {
    Command(Command),
    /// The parent closed our input: it stopped or died.
    Closed,
    /// A line that is not a command.
    Unreadable(String),
}

/// Reads on a thread of its own until the end of the input, or until `take` returns false.
pub(super) fn read_commands(
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

/// A message to the coordinator.
#[derive(Debug)]
pub(super) enum Message {
    Parent(CommandLine),
    Connected,
    /// A client has finished its part of fixed work.
    Through,
    Fatal(String),
}
