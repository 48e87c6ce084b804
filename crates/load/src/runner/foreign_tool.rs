//! The load process of a foreign tool: starts its runs, translates its output, and obeys the parent.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::Run;
use super::conversation::{CommandLine, read_commands, send};
use crate::foreign::{Ended, Length, Process, Program, Tool};
use crate::protocol::{Command, Event, Second, Summary};
use crate::workload::Workload;
use spindle_base::text::causes;

/// A measurement this soon after `Ready` still finds the database untouched: a cold start has no unmeasured
/// run.
const HEAD_START: Duration = Duration::from_millis(20);

#[derive(Debug)]
enum Message {
    Parent(CommandLine),
    /// A line of the run with this number.
    Line(u32, String),
    OutputEnded(u32),
}

/// A run of the tool in progress.
#[derive(Debug)]
struct ToolRun {
    number: u32,
    length: Length,
    /// The end of the window, if this run is measured.
    ends_at: Option<Instant>,
    /// The output of this run and of the earlier runs in the window.
    output: Vec<String>,
    cpu: Duration,
    process: Process,
}

struct Load<'a, Output> {
    run: Run<'a>,
    workload: &'a dyn Workload,
    tool: &'a dyn Tool,
    events: Output,
    sender: Sender<Message>,
    ready_at: Instant,
    runs_started: u32,
}

/// As [`super::serve`].
pub(super) fn serve<Output: Write>(
    run: Run<'_>,
    workload: &dyn Workload,
    tool: &dyn Tool,
    commands: impl BufRead + Send + 'static,
    events: Output,
) -> Result<()> {
    let (sender, messages) = channel();
    let mut load = Load {
        run,
        workload,
        tool,
        events,
        sender: sender.clone(),
        ready_at: Instant::now(),
        runs_started: 0,
    };
    let result = load.begin(commands, sender).and_then(|()| load.obey(&messages));
    if let Err(error) = &result {
        // Sending may fail because the parent is gone, which may be the cause of this error.
        let _ = send(&mut load.events, &Event::Fatal { message: causes(error) });
    }
    result
}

impl<Output: Write> Load<'_, Output> {
    fn begin(&mut self, commands: impl BufRead + Send + 'static, sender: Sender<Message>) -> Result<()> {
        self.tool.version()?;
        read_commands(commands, move |line| sender.send(Message::Parent(line)).is_ok());
        self.ready_at = Instant::now();
        send(&mut self.events, &Event::Ready)
    }

    fn obey(&mut self, messages: &Receiver<Message>) -> Result<()> {
        let mut run = match messages.recv_timeout(HEAD_START) {
            Ok(Message::Parent(line)) => match self.command(line, None)? {
                None => return Ok(()),
                run => run,
            },
            Ok(_) | Err(RecvTimeoutError::Timeout) => Some(self.start(Length::Endless)?),
            Err(RecvTimeoutError::Disconnected) => bail!("the input is gone"),
        };
        loop {
            match messages.recv().context("the input is gone")? {
                Message::Parent(line) => match self.command(line, run.take())? {
                    None => return Ok(()),
                    next => run = next,
                },
                Message::Line(number, line) => {
                    if let Some(run) = run.as_mut().filter(|run| run.number == number) {
                        self.line(run, line)?;
                    }
                }
                Message::OutputEnded(number) => {
                    if let Some(ended) = run.take_if(|run| run.number == number) {
                        run = self.end(ended)?;
                    }
                }
            }
        }
    }

    /// The run that continues after the command; `None` after the last command.
    fn command(&mut self, line: CommandLine, running: Option<ToolRun>) -> Result<Option<ToolRun>> {
        match line {
            CommandLine::Command(Command::Measure { duration_s }) => {
                ensure!(
                    running.as_ref().is_none_or(|run| run.ends_at.is_none()),
                    "a second measurement was asked for while one is running"
                );
                drop(running);
                Ok(Some(self.start(Length::Seconds(whole_seconds(duration_s)?))?))
            }
            CommandLine::Command(Command::EndWindow) => bail!("the window of a foreign tool ends by itself"),
            CommandLine::Command(Command::Stop) | CommandLine::Closed => Ok(None),
            CommandLine::Unreadable(message) => bail!(message),
        }
    }

    fn start(&mut self, length: Length) -> Result<ToolRun> {
        self.runs_started += 1;
        let number = self.runs_started;
        // Each run has its own seed. A run with the seed of the one before would find all its rows in memory.
        let seed = self.run.seed.wrapping_add(number.into());
        let command = self.tool.command(self.run.endpoint, seed, length)?;
        let end = OutputEnd { number, sender: self.sender.clone() };
        let process = Process::start(command, self.tool.program(), move |line| {
            // Sending fails if the load has already ended.
            let _ = end.sender.send(Message::Line(end.number, line));
        })?;
        let ends_at = match length {
            Length::Seconds(seconds) => Some(Instant::now() + Duration::from_secs(seconds.into())),
            Length::Endless => None,
        };
        Ok(ToolRun { number, length, ends_at, output: Vec::new(), cpu: Duration::ZERO, process })
    }

    fn line(&mut self, run: &mut ToolRun, line: String) -> Result<()> {
        if let Some(second) = self.tool.second(&line)? {
            let at_s = self.ready_at.elapsed().as_secs_f64();
            let second = Second { at_s, measured: run.ends_at.is_some(), ..second };
            send(&mut self.events, &Event::Second(second))?;
        }
        run.output.push(line);
        Ok(())
    }

    /// The next run, if there is one.
    fn end(&mut self, run: ToolRun) -> Result<Option<ToolRun>> {
        let mut ended = run.process.wait(run.output)?;
        ended.cpu += run.cpu;
        let Program { name, is_complaint, .. } = self.tool.program();
        ended.check(name, is_complaint)?;
        if self.tool.repeats() && run.ends_at.is_none_or(|ends_at| Instant::now() < ends_at) {
            let next = self.start(run.length)?;
            return Ok(Some(ToolRun { ends_at: run.ends_at, output: ended.output, cpu: ended.cpu, ..next }));
        }
        if run.ends_at.is_none() {
            bail!("{name} ended by itself before it was asked to: {}", ended.last_words(&[]));
        }
        let summary = self.summary(&ended).with_context(|| {
            format!("{name} printed no measurement (its last words: {})", ended.last_words(&[]))
        })?;
        send(&mut self.events, &Event::Summary(summary))?;
        Ok(None)
    }

    fn summary(&self, ended: &Ended) -> Result<Summary> {
        let (duration, kind) = self.tool.figures(&ended.output)?;
        let (duration_s, kinds) = (duration.as_secs_f64(), vec![kind]);
        let terminals = self.workload.terminals();
        Ok(Summary {
            duration_s,
            metric: self.workload.metric(&kinds, duration_s),
            kinds,
            commit_wait_s: None,
            lock_wait_s: None,
            terminal_time_s: f64::from(terminals) * duration_s,
            client_cpu_s: ended.cpu.as_secs_f64(),
            worker_threads: terminals,
            errors: Default::default(),
            behind_s: None,
        })
    }
}

/// Reports the end of the output when it is dropped.
struct OutputEnd {
    number: u32,
    sender: Sender<Message>,
}

impl Drop for OutputEnd {
    fn drop(&mut self) {
        let _ = self.sender.send(Message::OutputEnded(self.number));
    }
}

fn whole_seconds(duration_s: f64) -> Result<u32> {
    ensure!(
        duration_s.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(&duration_s),
        "cannot measure for {duration_s} seconds: the tool knows whole seconds only"
    );
    Ok(duration_s as u32)
}
