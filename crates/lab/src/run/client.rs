//! The load generator as a separate process: pinned, killed and accounted for alone.
//!
//! The other end of the pipe is `spindle load client`, which is [`spindle_load::process`].

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command as Program, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use spindle_load::{Command, Event, RunSpec, Second, Summary};

use crate::host::trial_time::TrialTime;
use spindle_base::child::die_with_parent;

/// Maximum delay of a summary. The client does not wait for the server to write it.
const SUMMARY_PATIENCE: Duration = Duration::from_secs(30);
/// Longer than the ten seconds that the client waits for its transactions.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// Patience with the killed process.
const DYING_PATIENCE: Duration = Duration::from_secs(10);

/// With what a window ends early: both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Enough {
    pub transactions: u64,
    pub at_least: Duration,
}

/// Follows a measured window, and may change something in it.
pub trait Observer {
    /// Gets each whole second of the window.
    fn second(&mut self, second: &Second);

    /// When something is to change next, since the begin of the window.
    fn change_at(&self) -> Option<Duration> {
        None
    }

    /// Changes it, at this time since the begin of the window. Returns what the load process has to do.
    ///
    /// # Errors
    /// It could not be changed, which ends the window.
    fn change(&mut self, _at: Duration) -> Result<Vec<Command>> {
        Ok(Vec::new())
    }
}

impl<F: FnMut(&Second)> Observer for F {
    fn second(&mut self, second: &Second) {
        self(second);
    }
}

/// A running load. Dropping it kills the process.
#[derive(Debug)]
pub struct ClientProcess {
    child: Child,
    commands: Option<ChildStdin>,
    /// Lines of its output; closed when the process ends.
    events: Receiver<Result<Event>>,
    time: TrialTime,
}

impl ClientProcess {
    /// `program` is this binary (`std::env::current_exe`), which has the hidden sub-command `load client`.
    /// Its clocks and its figures are those of `time`, but for CPU time.
    pub fn spawn(program: &Path, spec: &RunSpec, time: &TrialTime) -> Result<ClientProcess> {
        let mut command = Program::new(program);
        command
            .args(["load", "client"])
            .envs(time.environment())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = die_with_parent(&mut command)
            .spawn()
            .with_context(|| format!("starting the load process {}", program.display()))?;
        let output = child.stdout.take().context("the load process has no standard output")?;
        let (sender, events) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let event = line.context("reading from the load process").and_then(|line| {
                    serde_json::from_str(&line).with_context(|| format!("the load process wrote {line:?}"))
                });
                if sender.send(event).is_err() {
                    return;
                }
            }
        });
        let mut client = ClientProcess { commands: child.stdin.take(), child, events, time: time.clone() };
        client.write_line(&serde_json::to_string(spec)?)?;
        Ok(client)
    }

    pub fn process_id(&self) -> u32 {
        self.child.id()
    }

    /// The end of the patience for a dilated duration.
    fn deadline(&self, dilated: Duration) -> Instant {
        Instant::now() + self.time.patience(dilated)
    }

    /// Returns once all terminals are connected and have begun.
    pub fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let deadline = self.deadline(timeout);
        match self.next_event(deadline)? {
            Some(Event::Ready) => Ok(()),
            Some(event) => bail!("the load process began with {event:?}"),
            None => bail!("the load process was not ready after {} s", timeout.as_secs()),
        }
    }

    /// Runs the load unmeasured.
    /// For this time, which is real.
    pub fn watch(&mut self, duration: Duration, on_second: &mut dyn FnMut(&Second)) -> Result<()> {
        let deadline = Instant::now() + duration;
        while let Some(event) = self.next_event(deadline)? {
            match event {
                Event::Second(second) => on_second(&second),
                event => bail!("the load process sent {event:?} while nothing was measured"),
            }
        }
        Ok(())
    }

    /// Clears the histograms and measures for this long. `on_second` gets each whole second of the window.
    pub fn measure(&mut self, duration: Duration, mut on_second: &mut dyn FnMut(&Second)) -> Result<Summary> {
        self.measure_with(duration, None, &mut on_second)
    }

    /// As [`ClientProcess::measure`], with changes in the window, which ends with the second in which it has
    /// `enough`.
    pub fn measure_with(
        &mut self,
        duration: Duration,
        mut enough: Option<Enough>,
        observer: &mut dyn Observer,
    ) -> Result<Summary> {
        self.tell(&Command::Measure { duration_s: duration.as_secs_f64() })?;
        let begun = Instant::now();
        let (mut counted, mut lasted) = (0, Duration::ZERO);
        let deadline = self.deadline(duration + SUMMARY_PATIENCE);
        loop {
            let change_at = observer.change_at().map(|at| begun + self.time.real_time_of(at));
            match self.next_event(change_at.map_or(deadline, |at| at.min(deadline)))? {
                None if change_at.is_some_and(|at| at <= Instant::now()) => {
                    self.tell(&Command::EndPart)?;
                    let at = self.time.clock.dilation.dilated(begun.elapsed());
                    for command in observer.change(at)? {
                        self.tell(&command)?;
                    }
                }
                Some(Event::Second(second)) => {
                    // A second that ended before the window may arrive late.
                    if second.measured {
                        counted += second.transactions;
                        lasted += Duration::from_secs(1);
                        let is_reached =
                            |enough: &mut Enough| counted >= enough.transactions && lasted >= enough.at_least;
                        if enough.take_if(is_reached).is_some() {
                            self.tell(&Command::EndWindow)?;
                        }
                        observer.second(&second);
                    }
                }
                Some(Event::Summary(summary)) => return Ok(self.in_dilated_time(summary)),
                Some(event) => bail!("the load process sent {event:?} instead of a summary"),
                None => bail!("the load process sent no summary in time"),
            }
        }
    }

    /// The client's clocks are dilated, but its CPU time is real.
    fn in_dilated_time(&self, mut summary: Summary) -> Summary {
        let dilation = self.time.clock.dilation;
        summary.client_cpu_s = dilation.dilated_s(summary.client_cpu_s);
        for kind in &mut summary.kinds {
            kind.client_cpu_s = kind.client_cpu_s.map(|seconds| dilation.dilated_s(seconds));
        }
        summary
    }

    /// Ends the terminals after their current transaction.
    pub fn stop(mut self) -> Result<()> {
        self.tell(&Command::Stop)?;
        drop(self.commands.take());
        let deadline = self.deadline(STOP_PATIENCE);
        loop {
            if let Some(status) = self.child.try_wait().context("waiting for the load process")? {
                if status.success() {
                    return Ok(());
                }
                bail!("the load process ended with {status}");
            }
            if Instant::now() > deadline {
                bail!("the load process did not stop within {} s", STOP_PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// `None` if the deadline comes first. The end of the process and its last words are errors.
    fn next_event(&mut self, deadline: Instant) -> Result<Option<Event>> {
        match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(Event::Fatal { message })) => Err(anyhow!("the load cannot go on: {message}")),
            Ok(event) => event.map(Some),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().context("waiting for the load process")?;
                Err(anyhow!("the load process ended by itself with {status}"))
            }
        }
    }

    fn tell(&mut self, command: &Command) -> Result<()> {
        self.write_line(&serde_json::to_string(command)?)
    }

    fn write_line(&mut self, line: &str) -> Result<()> {
        let commands = self.commands.as_mut().context("the load process was already stopped")?;
        match writeln!(commands, "{line}").and_then(|()| commands.flush()) {
            Ok(()) => Ok(()),
            // The process's last words say more than the broken pipe.
            Err(error) => {
                while let Some(_event) = self.next_event(Instant::now() + SUMMARY_PATIENCE)? {}
                Err(error).context("writing to the load process")
            }
        }
    }
}

impl Drop for ClientProcess {
    fn drop(&mut self) {
        // Fails only if the process is already gone. A process that waits for a disk without an answer ends
        // with the disk.
        let _ = self.child.kill();
        let deadline = Instant::now() + DYING_PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
