//! Carries out the events of a window when they are due.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use spindle_base::dilation::Dilation;
use spindle_load::Command;

use crate::record::EventView;
use crate::scenario::Scenario;
use crate::scenario::events::{Change, Event};
use crate::server::{Running, Settings};
use crate::stack::layout::Layout;
use crate::volume::mounts::Mounts;

/// The events of one window.
#[derive(Debug)]
pub(in crate::run) struct WindowEvents {
    due: VecDeque<Event>,
    done: Vec<EventView>,
    dilation: Dilation,
}

impl WindowEvents {
    /// Those of a cell with this storage.
    pub(in crate::run) fn of(scenario: &Scenario, layout: &Layout, dilation: Dilation) -> WindowEvents {
        let due = scenario.events.iter().filter(|event| event.is_of(layout)).cloned().collect();
        WindowEvents { due, done: Vec::new(), dilation }
    }

    /// Time of the next one since the begin of the window.
    pub(super) fn next_at(&self) -> Option<Duration> {
        self.due.front().map(|event| event.at)
    }

    /// Takes those with the time of the next one.
    pub(super) fn take_due(&mut self) -> Vec<Event> {
        let at = self.next_at();
        let count = self.due.iter().take_while(|event| Some(event.at) == at).count();
        self.due.drain(..count).collect()
    }

    /// Carries one out, `at` that time of the window. What the load process has to do is added to `commands`.
    ///
    /// # Errors
    /// It could not be carried out, in a sentence that names it.
    pub(super) fn carry_out(
        &mut self,
        event: &Event,
        at: Duration,
        (mounts, running): (&mut Mounts, &mut dyn Running),
        commands: &mut Vec<Command>,
    ) -> Result<()> {
        let begun = Instant::now();
        let outcome = match &event.change {
            Change::Settings(settings) => set(running, settings),
            Change::Disk { stack, change } => mounts.change(stack, *change).map(|()| String::new()),
            Change::Load { times } => {
                commands.push(Command::SetLoad { times: *times });
                Ok(String::new())
            }
        };
        let outcome =
            outcome.with_context(|| format!("the event {} could not be carried out", event.sentence()))?;
        self.done.push(EventView {
            change: event.change.words(),
            planned_s: event.at.as_secs_f64(),
            at_s: at.as_secs_f64(),
            took_s: self.dilation.dilated(begun.elapsed()).as_secs_f64(),
            outcome,
        });
        Ok(())
    }

    /// What took place.
    ///
    /// # Errors
    /// The window ended before an event.
    pub(super) fn end(self) -> Result<Vec<EventView>> {
        match self.due.front() {
            Some(event) => bail!("the window ended before the event {}", event.sentence()),
            None => Ok(self.done),
        }
    }
}

/// Gives a running server new values. Returns what they were and are, as the server says.
fn set(running: &mut dyn Running, settings: &Settings) -> Result<String> {
    let names: Vec<String> = settings.keys().cloned().collect();
    let before = running.settings(&names)?;
    running.set(settings)?;
    let after = running.settings(&names)?;
    let mut words = Vec::new();
    for (name, wanted) in settings {
        let value = |settings: &BTreeMap<String, String>| settings.get(name).cloned().unwrap_or_default();
        let (before, after) = (value(&before), value(&after));
        if before == after {
            bail!("`{name}` is {after} as before, and not {wanted}");
        }
        words.push(format!("{name}: {before} before, then {after}"));
    }
    Ok(words.join("; "))
}
