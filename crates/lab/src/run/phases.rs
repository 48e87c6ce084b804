//! The phases of a trial: timed, displayed, and with a check for signals in between.

mod events;
mod observer;
mod settle;
mod warm_up;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use spindle_load::Second;

use super::client::{ClientProcess, Enough};
use super::further::Further;
use crate::host::interrupt::Interrupt;
use crate::host::other_runs::{OtherRuns, RunHead};
use crate::host::progress::Progress;
use crate::host::trial_time::TrialTime;
use crate::observe::Sample;
use crate::observe::core_work::CoreWork;
use crate::observe::measurement::Window;
use crate::scenario::RunSettings;
use crate::scenario::events::Event;
use crate::server::Running;
use crate::server::telemetry::{Durability, Telemetry};
use crate::stack::layout::Layout;
use crate::volume::mounts::Mounts;
use crate::watch::{LoadFacts, Publisher, WindowFeed};
pub(super) use events::WindowEvents;
pub(super) use observer::Observed;
use observer::{Looks, WindowObserver};

/// Maximum time before a signal is noticed during a warm-up.
const WATCH_STEP: Duration = Duration::from_millis(100);

/// Times the phases of a trial, displays them, and checks for signals in between.
pub(super) struct Phases<'a> {
    title: String,
    pub(super) progress: &'a mut Progress,
    interrupt: &'a Interrupt,
    other_runs: &'a OtherRuns,
    publisher: &'a Publisher,
    pub(super) load: LoadFacts,
    /// [`crate::record::MachineActivity::timer_tail_us`].
    pub(super) timer_tail_us: Option<f64>,
    /// Real until the trial's storage is there.
    pub(super) time: TrialTime,
    spent_s: BTreeMap<String, f64>,
    current: Option<(&'static str, Instant)>,
}

impl<'a> Phases<'a> {
    /// `title` names the trial.
    pub(super) fn new(
        title: String,
        progress: &'a mut Progress,
        interrupt: &'a Interrupt,
        other_runs: &'a OtherRuns,
        publisher: &'a Publisher,
    ) -> Phases<'a> {
        Phases {
            title,
            progress,
            interrupt,
            other_runs,
            publisher,
            load: LoadFacts::default(),
            timer_tail_us: None,
            time: TrialTime::real(),
            spent_s: BTreeMap::new(),
            current: None,
        }
    }

    /// Real duration of each phase.
    pub(super) fn end(mut self) -> BTreeMap<String, f64> {
        self.leave();
        self.spent_s
    }

    pub(super) fn enter(&mut self, name: &'static str) -> Result<()> {
        self.leave();
        self.interrupt.check()?;
        self.publisher.enter(name);
        self.progress.activity(format!("{}: {name}", self.title));
        self.current = Some((name, Instant::now()));
        Ok(())
    }

    /// Displays what the present phase waits for.
    pub(super) fn explain(&mut self, words: &str) {
        if let Some((name, _)) = self.current {
            self.progress.activity(format!("{}: {name}, {words}", self.title));
        }
    }

    fn leave(&mut self) {
        if let Some((name, since)) = self.current.take() {
            self.spent_s.insert(name.to_owned(), since.elapsed().as_secs_f64());
        }
    }

    /// Waits without load for this long of the trial's time.
    pub(super) fn pause(&self, dilated: Duration) -> Result<()> {
        let end = Instant::now() + self.time.real_time_of(dilated);
        self.publisher.plan_phase(dilated);
        loop {
            self.interrupt.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(WATCH_STEP));
            self.progress.tick();
        }
    }

    /// Lets the load run for this long of the trial's time.
    pub(super) fn watch(&self, client: &mut ClientProcess, dilated: Duration) -> Result<()> {
        self.publisher.plan_phase(dilated);
        self.watch_until(client, dilated, &mut |_| Ok(false))
    }

    /// Lets the load run until it is said to be enough at the end of a second, at most for this long of the trial's time.
    fn watch_until(
        &self,
        client: &mut ClientProcess,
        at_most: Duration,
        is_enough: &mut dyn FnMut(&Second) -> Result<bool>,
    ) -> Result<()> {
        let end = Instant::now() + self.time.real_time_of(at_most);
        let mut outcome = Ok(false);
        loop {
            self.interrupt.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            client.watch(left.min(WATCH_STEP), &mut |second| {
                self.progress.tick();
                self.publisher.second_of_clients(second);
                if matches!(outcome, Ok(false)) {
                    outcome = is_enough(second);
                }
            })?;
            if !matches!(outcome, Ok(false)) {
                return outcome.map(drop);
            }
        }
    }

    pub(super) fn measure<'w>(
        &'w self,
        client: &mut ClientProcess,
        run: &RunSettings,
        layout: &'w Layout,
        observed: Observed<'_, '_>,
        events: WindowEvents,
    ) -> Result<Window> {
        let (telemetry, server_id) = (observed.running.telemetry(), observed.running.process_id());
        // Runs that ended before the window are no matter.
        self.other_runs.take_seen();
        self.look_for_other_runs();
        self.publisher.plan_phase(run.measure);
        let feed = self.feed(client, run.cpu_count(), layout, telemetry, server_id);
        let mut observer = WindowObserver::begin(self, observed, feed, events)?;
        let core_work = CoreWork::begin();
        let summary = self.interrupt.kill_on_signal(client.process_id(), || {
            let enough = run.enough.map(|transactions| Enough { transactions, at_least: run.at_least });
            client.measure_with(run.measure, enough, &mut observer)
        });
        let core_work_us = core_work.end();
        let Looks { first, seconds, last, events } = observer.end()?;
        self.look_for_other_runs();
        Ok(Window {
            summary: summary?,
            seconds,
            first,
            last,
            layout: layout.clone(),
            cache_turnovers: None,
            settling: None,
            recovery_s: None,
            replicas: Vec::new(),
            telemetry,
            durability: Durability::default(),
            rates: self.load.rates.clone(),
            timer_tail_us: self.timer_tail_us,
            core_work_us,
            cpu_count: run.cpu_count(),
            dilation: self.time.clock.dilation,
            events: events.end()?,
        })
    }

    fn feed<'w>(
        &'w self,
        client: &ClientProcess,
        cpu_count: u32,
        layout: &'w Layout,
        telemetry: &'static dyn Telemetry,
        server_id: u32,
    ) -> WindowFeed<'w> {
        let mut feed = WindowFeed {
            publisher: self.publisher,
            telemetry,
            layout,
            load: &self.load,
            dilation: self.time.clock.dilation,
            cpu_count,
            client_id: client.process_id(),
            server_id,
            client_cpu_s: [0.0; 2],
        };
        feed.begin();
        feed
    }

    /// On the screen, and to those who watch.
    fn say_event(&self, event: &Event) {
        self.progress.say(&format!("{}: {}", self.title, event.sentence()));
        self.publisher.event(event.at, &event.change.words());
    }

    fn look_for_other_runs(&self) {
        for run in self.other_runs.look() {
            self.progress.say(&other_run(&run));
        }
    }
}

/// A sample of the trial. A signal meanwhile ends the server, which could keep it waiting.
fn sample(
    interrupt: &Interrupt,
    time: &TrialTime,
    mounts: &mut Mounts,
    further: &mut Further<'_>,
    running: &mut dyn Running,
) -> Result<Sample> {
    interrupt.kill_on_signal(running.process_id(), || {
        let mut sample = Sample::take(mounts, running, &time.clock)?;
        further.look(&mut sample)?;
        Ok(sample)
    })
}

/// The warning on the screen.
pub(super) fn other_run(run: &RunHead) -> String {
    format!(
        "warning: another run is active on this machine: {}; the two disturb each other, and both records say so",
        run.words()
    )
}
