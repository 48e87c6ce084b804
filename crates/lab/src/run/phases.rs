//! The phases of a trial: timed, displayed, and with a check for signals in between.

mod settle;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::Result;
use spindle_load::Second;

use super::client::ClientProcess;
use super::replicas::Replicas;
use crate::host::interrupt::Interrupt;
use crate::host::other_runs::{OtherRuns, RunHead};
use crate::host::progress::Progress;
use crate::host::provenance;
use crate::host::trial_time::TrialTime;
use crate::observe::measurement::Window;
use crate::observe::{Sample, server_threads};
use crate::scenario::RunSettings;
use crate::server::Running;
use crate::server::telemetry::{Durability, Telemetry};
use crate::stack::layout::Layout;
use crate::volume::mounts::Mounts;
use crate::watch::{LoadFacts, Publisher, WindowFeed};

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

    /// Lets the load run for this long of the trial's time.
    pub(super) fn watch(&self, client: &mut ClientProcess, dilated: Duration) -> Result<()> {
        let end = Instant::now() + self.time.real_time_of(dilated);
        self.publisher.plan_phase(dilated);
        let mut on_second = |second: &Second| {
            self.progress.tick();
            self.publisher.second_of_clients(second);
        };
        loop {
            self.interrupt.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            client.watch(left.min(WATCH_STEP), &mut on_second)?;
        }
    }

    pub(super) fn measure(
        &self,
        client: &mut ClientProcess,
        run: &RunSettings,
        layout: &Layout,
        mounts: &mut Mounts,
        replicas: &mut Replicas<'_>,
        running: &mut dyn Running,
    ) -> Result<Window> {
        let (telemetry, server_id) = (running.telemetry(), running.process_id());
        let (client_id, dilation) = (client.process_id(), self.time.clock.dilation);
        let threads = || server_threads(server_id, dilation);
        let mut look = || {
            let sample = sample(self.interrupt, &self.time, mounts, replicas, running)?;
            Ok::<Sample, anyhow::Error>(sample.with_client(client_id, dilation))
        };
        // Runs that ended before the window are no matter.
        self.other_runs.take_seen();
        self.look_for_other_runs();
        self.publisher.plan_phase(run.measure);
        let mut feed = self.feed(client, layout, telemetry, server_id);
        let mut first = look()?;
        first.server_threads = threads();
        let mut seconds: Vec<(Second, Sample)> = Vec::new();
        let mut failure = None;
        let summary = self.interrupt.kill_on_signal(client.process_id(), || {
            client.measure(run.measure, run.enough, &mut |second| {
                self.progress.tick();
                self.look_for_other_runs();
                match look() {
                    Ok(sample) => {
                        seconds.push((second.clone(), sample));
                        feed.second(&first, &seconds);
                    }
                    Err(error) => failure = failure.take().or(Some(error)),
                }
            })
        });
        if let Some(failure) = failure {
            return Err(failure);
        }
        let ended = threads();
        let mut last = look()?;
        last.server_threads = ended;
        self.look_for_other_runs();
        Ok(Window {
            summary: summary?,
            seconds,
            first,
            last,
            layout: layout.clone(),
            settling: None,
            replicas: Vec::new(),
            telemetry,
            durability: Durability::default(),
            rates: self.load.rates.clone(),
            timer_tail_us: self.timer_tail_us,
            cpu_count: provenance::cpu_count(),
            dilation: self.time.clock.dilation,
        })
    }

    fn feed<'w>(
        &'w self,
        client: &ClientProcess,
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
            client_id: client.process_id(),
            server_id,
            client_cpu_s: [0.0; 2],
        };
        feed.begin();
        feed
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
    replicas: &mut Replicas<'_>,
    running: &mut dyn Running,
) -> Result<Sample> {
    interrupt.kill_on_signal(running.process_id(), || {
        let mut sample = Sample::take(mounts, running, &time.clock)?;
        replicas.look(&mut sample)?;
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
