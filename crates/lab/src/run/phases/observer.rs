//! Follows a measured window: a sample each second, and the events when they are due.

use std::time::Duration;

use anyhow::Result;
use spindle_base::proc::ThreadCpu;
use spindle_load::{Command, Second};

use super::{Phases, WindowEvents, sample};
use crate::observe::waits::{Lookout, Watched};
use crate::observe::{Sample, server_threads};
use crate::run::client::Observer;
use crate::run::further::Further;
use crate::server::Running;
use crate::volume::mounts::Mounts;
use crate::watch::WindowFeed;

/// What is sampled, and changed by events.
pub(in crate::run) struct Observed<'a, 'r> {
    pub mounts: &'a mut Mounts,
    pub further: &'a mut Further<'r>,
    pub running: &'a mut dyn Running,
    /// The limit of the block trace that each mount keeps of the window; `None` without traces.
    pub trace_bytes: Option<u64>,
}

pub(super) struct WindowObserver<'a, 'o, 'r, 'p> {
    phases: &'a Phases<'p>,
    observed: Observed<'o, 'r>,
    lookout: Lookout,
    feed: WindowFeed<'a>,
    events: WindowEvents,
    first: Sample,
    seconds: Vec<(Second, Sample)>,
    /// The first failure of a sample.
    failure: Option<anyhow::Error>,
}

/// The samples of a window, and its events.
pub(super) struct Looks {
    pub first: Sample,
    pub seconds: Vec<(Second, Sample)>,
    pub last: Sample,
    pub events: WindowEvents,
}

impl<'a, 'o, 'r, 'p> WindowObserver<'a, 'o, 'r, 'p> {
    pub(super) fn begin(
        phases: &'a Phases<'p>,
        mut observed: Observed<'o, 'r>,
        feed: WindowFeed<'a>,
        events: WindowEvents,
    ) -> Result<WindowObserver<'a, 'o, 'r, 'p>> {
        // Just before the samples, so that the trace has the requests that they count.
        if let Some(limit_bytes) = observed.trace_bytes {
            observed.mounts.begin_trace(limit_bytes)?;
        }
        let mut first = look(phases, &mut observed, feed.client_id)?;
        first.server_threads = threads(phases, &observed);
        let watched = Watched {
            server_id: observed.running.process_id(),
            is_session: observed.running.telemetry().is_session(),
        };
        let lookout = Lookout::begin(watched);
        Ok(WindowObserver {
            phases,
            observed,
            lookout,
            feed,
            events,
            first,
            seconds: Vec::new(),
            failure: None,
        })
    }

    pub(super) fn end(mut self) -> Result<Looks> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let ended = threads(self.phases, &self.observed);
        if self.observed.trace_bytes.is_some() {
            self.observed.mounts.end_trace()?;
        }
        let mut last = look(self.phases, &mut self.observed, self.feed.client_id)?;
        last.server_threads = ended;
        Ok(Looks { first: self.first, seconds: self.seconds, last, events: self.events })
    }
}

fn threads(phases: &Phases<'_>, observed: &Observed<'_, '_>) -> Vec<ThreadCpu> {
    server_threads(observed.running.process_id(), phases.time.clock.dilation)
}

fn look(phases: &Phases<'_>, observed: &mut Observed<'_, '_>, client_id: u32) -> Result<Sample> {
    let Observed { mounts, further, running, .. } = observed;
    let sample = sample(phases.interrupt, &phases.time, mounts, further, *running)?;
    Ok(sample.with_client(client_id, phases.time.clock.dilation))
}

impl Observer for WindowObserver<'_, '_, '_, '_> {
    fn second(&mut self, second: &Second) {
        self.phases.progress.tick();
        self.phases.look_for_other_runs();
        match look(self.phases, &mut self.observed, self.feed.client_id) {
            Ok(sample) => {
                self.seconds.push((second.clone(), sample.with_waits(self.lookout.take())));
                self.feed.second(&self.first, &self.seconds);
            }
            Err(error) => self.failure = self.failure.take().or(Some(error)),
        }
    }

    fn change_at(&self) -> Option<Duration> {
        self.events.next_at()
    }

    fn change(&mut self, at: Duration) -> Result<Vec<Command>> {
        let mut commands = Vec::new();
        for event in self.events.take_due() {
            self.phases.say_event(&event);
            let Observed { mounts, running, .. } = &mut self.observed;
            let events = &mut self.events;
            self.phases.interrupt.kill_on_signal(running.process_id(), || {
                events.carry_out(&event, at, (mounts, *running), &mut commands)
            })?;
        }
        Ok(commands)
    }
}
