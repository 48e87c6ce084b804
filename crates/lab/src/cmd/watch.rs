//! `spindle watch [PID|NAME]`: the run that goes on in another terminal.

use std::io::{IsTerminal as _, stdin, stdout};
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::Args;

use crate::cmd::output::{allows_colour, print};
use crate::host::interrupt::Interrupt;
use crate::host::other_runs::{self, RunHead};
use crate::watch::State;
use crate::watch::follow::{Followed, choose};
use crate::watch::line::{self, Ending};
use crate::watch::screen;
use crate::watch::view::Paint;

/// A run writes its report after its last trial.
const REPORT_PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Args)]
pub struct WatchArguments {
    /// Process id of a run, name of its scenario, or a part of its title [default: the newest run].
    #[arg(value_name = "PID|NAME")]
    run: Option<String>,
    /// Print a line every five seconds, as without a terminal.
    #[arg(long)]
    lines: bool,
}

pub fn run(arguments: &WatchArguments) -> Result<()> {
    let head = choose(other_runs::all()?, arguments.run.as_deref())?;
    let interrupt = Interrupt::listen()?;
    let mut last: Option<Box<State>> = None;
    // A run gives up who does not read, such as a watch that was stopped for a while.
    let mut followed = Followed::connect(&head);
    while let Ok(connected) = &followed {
        let Ending::Over(state) = show(arguments, connected, &interrupt)? else { return Ok(()) };
        let has_told = state.is_some();
        last = state.or(last);
        let is_over = last.as_ref().is_none_or(|last| last.is_over);
        if is_over || !has_told || !head.is_alive() {
            break;
        }
        followed = Followed::connect(&head);
    }
    match (last, followed) {
        (Some(last), _) => print(&line::last_words(&last, wait_for_report(&head, &last, &interrupt)?)),
        (None, Ok(_)) => print("the run has ended, or too many watch it already\n"),
        (None, Err(error)) => Err(error),
    }
}

fn show(arguments: &WatchArguments, followed: &Followed, interrupt: &Interrupt) -> Result<Ending> {
    if arguments.lines || !can_draw() {
        return line::show(followed, interrupt, &mut |line| print(&format!("{line}\n")));
    }
    let paint = if allows_colour() { Paint::Coloured } else { Paint::Plain };
    screen::show(followed, interrupt, paint)
}

/// A screen needs keys and an answering terminal.
fn can_draw() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|name| name.is_empty() || name == "dumb");
    stdin().is_terminal() && stdout().is_terminal() && !is_dumb
}

/// Returns when the process of the run has ended, which writes its report last.
fn wait_for_report(head: &RunHead, last: &State, interrupt: &Interrupt) -> Result<bool> {
    let deadline = Instant::now() + REPORT_PATIENCE;
    while head.is_alive() && Instant::now() < deadline {
        interrupt.sleep(Duration::from_millis(20))?;
    }
    Ok(last.report.exists())
}
