//! The main thread of the load process: starts the terminals, keeps the seconds, answers the parent.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use super::Run;
use super::at_work::AtWork;
use super::conversation::{CommandLine, Message, read_commands, send};
use super::schedule::Schedule;
use super::terminal::{PanicReport, Samples, Shared, run};
use super::window::{Window, second};

use crate::protocol::{Command, Event, Summary};
use crate::workload::Workload;
use spindle_base::text::causes;

/// How long a stop waits for transactions in progress before it abandons them.
const STOP_PATIENCE: Duration = Duration::from_secs(10);
const SECOND: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Coordinator<'a, Output> {
    run: Run<'a>,
    events: Output,
    stop: Arc<AtomicBool>,
    /// The schedule of the open loop.
    schedule: Option<Arc<Schedule>>,
    at_work: Arc<AtWork>,
    samples: Vec<Arc<Mutex<Samples>>>,
    /// The barrier at which the terminals and the coordinator wait for each other.
    start: Option<Arc<Barrier>>,
    threads: Vec<JoinHandle<()>>,
    /// The terminals have passed the barrier. Until then they wait there, and end only with the process.
    started: bool,
    sender: Sender<Message>,
    messages: Receiver<Message>,
}

impl<'a, Output: Write> Coordinator<'a, Output> {
    pub(super) fn new(run: Run<'a>, events: Output) -> Self {
        let (sender, messages) = channel();
        Coordinator {
            run,
            events,
            stop: Arc::default(),
            schedule: None,
            at_work: Arc::new(AtWork::new(0)),
            samples: Vec::new(),
            start: None,
            threads: Vec::new(),
            started: false,
            sender,
            messages,
        }
    }

    pub(super) fn serve(
        mut self,
        workload: &Arc<dyn Workload>,
        commands: impl BufRead + Send + 'static,
    ) -> Result<()> {
        let seed = self.run.seed;
        self.schedule = workload.rate_per_s().map(|per_s| Arc::new(Schedule::new(per_s, seed)));
        self.at_work.set(workload.terminals());
        let result = self.run(workload, commands);
        self.stop.store(true, Ordering::Relaxed);
        if let Err(error) = &result {
            // Sending may fail because the parent is gone, which may be the cause of this error.
            let _ = self.send(&Event::Fatal { message: causes(error) });
        } else if self.started {
            self.join();
        }
        result
    }

    fn run(&mut self, workload: &Arc<dyn Workload>, commands: impl BufRead + Send + 'static) -> Result<()> {
        let sender = self.sender.clone();
        read_commands(commands, move |line| sender.send(Message::Parent(line)).is_ok());
        self.connect_terminals(workload)?;
        for _ in 0..self.terminals_most(&**workload) {
            match self.messages.recv().context("the terminals are gone")? {
                Message::Connected | Message::Through => {}
                Message::Fatal(message) | Message::Parent(CommandLine::Unreadable(message)) => bail!(message),
                Message::Parent(CommandLine::Closed | CommandLine::Command(Command::Stop)) => return Ok(()),
                Message::Parent(CommandLine::Command(command)) => {
                    bail!("{command:?} came before the terminals were ready")
                }
            }
        }
        if !self.run.once {
            self.let_go();
        }
        self.send(&Event::Ready)?;
        self.keep_time(&**workload)
    }

    /// Terminals that are connected.
    fn terminals_most(&self, workload: &dyn Workload) -> u32 {
        workload.terminals().max(self.run.terminals_most.unwrap_or_default())
    }

    /// Changes the load. Without a schedule, returns the new number of terminals.
    fn set_load(&self, workload: &dyn Workload, times: f64) -> Option<u32> {
        if let Some(schedule) = &self.schedule {
            schedule.set_times(times);
            return None;
        }
        let count = (f64::from(workload.terminals()) * times).round() as u32;
        let count = count.clamp(1, self.terminals_most(workload));
        self.at_work.set(count);
        Some(count)
    }

    /// Releases the terminals, unless they have started.
    fn let_go(&mut self) {
        if let Some(start) = self.start.take() {
            start.wait();
            self.started = true;
        }
    }

    fn connect_terminals(&mut self, workload: &Arc<dyn Workload>) -> Result<()> {
        let terminals = self.terminals_most(&**workload);
        let start = Arc::new(Barrier::new(terminals as usize + 1));
        let endpoints: Vec<_> = [self.run.endpoint].into_iter().chain(self.run.further).cloned().collect();
        for terminal in 0..terminals {
            let shared = Shared {
                stop: self.stop.clone(),
                start: start.clone(),
                schedule: self.schedule.clone(),
                samples: Arc::default(),
                once: self.run.once,
                terminal,
                at_work: self.at_work.clone(),
            };
            self.samples.push(shared.samples.clone());
            let (workload, endpoints, seed) = (workload.clone(), endpoints.clone(), self.run.seed);
            let messages = self.sender.clone();
            let thread = move || {
                let _report = PanicReport(messages.clone());
                match workload.connect_to_shards(&endpoints, terminal, seed) {
                    Ok(client) => {
                        let _ = messages.send(Message::Connected);
                        run(client, &shared, &messages);
                    }
                    Err(error) => {
                        let _ = messages.send(Message::Fatal(causes(&error)));
                    }
                }
            };
            let thread = std::thread::Builder::new()
                .name(format!("terminal-{terminal}"))
                .spawn(thread)
                .with_context(|| format!("starting the thread of terminal {terminal}"))?;
            self.threads.push(thread);
        }
        self.start = Some(start);
        Ok(())
    }

    /// Emits one second after the other. A window restarts the count, so that all of its seconds are whole.
    fn keep_time(&mut self, workload: &dyn Workload) -> Result<()> {
        let ready = Instant::now();
        let mut next_second = ready + SECOND;
        let mut window: Option<Window> = None;
        let mut at_work = workload.terminals();
        let mut of_second = Samples::default();
        loop {
            let mut is_part_over = false;
            let deadline = window.as_ref().map_or(next_second, |window| next_second.min(window.ends_at()));
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(Message::Parent(CommandLine::Command(Command::Measure { duration_s }))) => {
                    if window.is_some() {
                        bail!("a second measurement was asked for while one is running");
                    }
                    let begun = self.begin_window(workload, duration_s)?;
                    next_second = begun.began + SECOND;
                    of_second = Samples::default();
                    window = Some(begun);
                    continue;
                }
                Ok(Message::Parent(CommandLine::Command(Command::EndWindow))) => {
                    if let Some(window) = &mut window {
                        window.duration = window.began.elapsed();
                    }
                }
                Ok(Message::Parent(CommandLine::Command(Command::EndPart))) => is_part_over = true,
                Ok(Message::Parent(CommandLine::Command(Command::SetLoad { times }))) => {
                    let terminals = self.set_load(workload, times);
                    if let Some((window, terminals)) = window.as_mut().zip(terminals) {
                        window.set_terminals(Instant::now(), terminals);
                    }
                    continue;
                }
                Ok(Message::Parent(CommandLine::Command(Command::Stop) | CommandLine::Closed)) => {
                    return Ok(());
                }
                Ok(Message::Parent(CommandLine::Unreadable(message)) | Message::Fatal(message)) => {
                    bail!(message)
                }
                Ok(Message::Connected) => continue,
                Ok(Message::Through) => at_work -= 1,
                Err(RecvTimeoutError::Disconnected) => bail!("the terminals are gone"),
                Err(RecvTimeoutError::Timeout) => {}
            }

            let samples = self.take_samples();
            let now = Instant::now();
            if let Some(window) = &mut window {
                window.add(&samples);
                if is_part_over {
                    window.end_part(workload, now);
                }
            }
            of_second.extend(samples);
            if now >= next_second {
                let samples = std::mem::take(&mut of_second);
                self.send(&Event::Second(second(&samples, now - ready, window.is_some())))?;
                next_second += SECOND;
            }
            let is_through = at_work == 0;
            if let Some(ended) = window.take_if(|window| is_through || now >= window.ends_at()) {
                let summary = self.end_window(ended, workload, is_through, now)?;
                self.send(&Event::Summary(summary))?;
                next_second = now + SECOND;
            }
        }
    }

    fn begin_window(&mut self, workload: &dyn Workload, duration_s: f64) -> Result<Window> {
        let duration = Duration::try_from_secs_f64(duration_s)
            .map_err(|error| anyhow!("cannot measure for {duration_s} seconds: {error}"))?;
        // Discards the samples from before the window.
        self.take_samples();
        let window = Window::new(workload, Instant::now(), duration, self.at_work.count());
        self.let_go();
        Ok(window)
    }

    /// # Errors
    /// Fixed work was not finished.
    fn end_window(
        &self,
        window: Window,
        workload: &dyn Workload,
        is_through: bool,
        now: Instant,
    ) -> Result<Summary> {
        let mut summary = match (self.run.once, is_through) {
            (false, _) => window.summary(workload, now),
            (true, true) => window.summary_of_fixed_work(workload, now),
            (true, false) => bail!(
                "the fixed work was not done after {:.0} s, its time limit; {} operations were",
                window.duration.as_secs_f64(),
                window.count()
            ),
        };
        summary.behind_s = self.schedule.as_ref().map(|schedule| schedule.behind(now).as_secs_f64());
        Ok(summary)
    }

    /// Takes the samples of all terminals together.
    fn take_samples(&mut self) -> Samples {
        let mut all = Samples::default();
        for samples in &self.samples {
            let taken = std::mem::take(&mut *samples.lock().unwrap_or_else(PoisonError::into_inner));
            all.extend(taken);
        }
        all
    }

    fn send(&mut self, event: &Event) -> Result<()> {
        send(&mut self.events, event)
    }

    fn join(self) {
        let patience_ends = Instant::now() + STOP_PATIENCE;
        for thread in self.threads {
            while !thread.is_finished() && Instant::now() < patience_ends {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}
