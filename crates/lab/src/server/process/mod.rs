//! The process of a private server: its user, its first process, its log, and its end. This module knows no
//! kind of server and connects to none.

pub(super) mod log;
pub(super) mod own_user;
pub(super) mod started;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::instance::Instance;
use super::settings::Refusal;
use crate::host::patience::Wait;
use own_user::{beside, new_file};
use spindle_base::child::enter_control_group;
use spindle_base::proc::children;

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Size limit of the part of a log that is read.
const LOG_BYTES_MAX: u64 = 16 << 20;

/// Time limit for the fork of a process.
const FORK_PATIENCE: Duration = Duration::from_secs(10);

/// Maximum path length of a unix socket, without its terminating zero.
const SOCKET_PATH_BYTES: usize = 107;

/// Checks the length of the socket's path.
pub(super) fn check_socket(socket: &Path) -> Result<(), Refusal> {
    if socket.as_os_str().len() <= SOCKET_PATH_BYTES {
        return Ok(());
    }
    Err(Refusal(format!(
        "the socket's path {} is longer than the {SOCKET_PATH_BYTES} bytes that the kernel allows; \
         use a shorter directory",
        socket.display()
    )))
}

/// For programs that make an empty database, also on a slow disk.
const PREPARE_PATIENCE: Duration = Duration::from_secs(900);
/// For programs that only report something.
const QUESTION_PATIENCE: Duration = Duration::from_secs(60);
/// For a killed process. A process that waits for a disk without an answer ends with the disk.
const DYING_PATIENCE: Duration = Duration::from_secs(10);

/// Runs a command to its end, or kills it.
///
/// # Errors
/// The command cannot be started, or did not end in time.
fn output_within(command: &mut Command, patience: Duration) -> Result<Output> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let process = Pid::from_child(&child);
    let wait = Wait { patience, who: &name, interrupt: None };
    wait.for_work(move || Ok(child.wait_with_output()?)).inspect_err(|_| {
        // The process has not been waited for yet, so its number is not reused.
        let _ = kill_process(process, Signal::KILL);
    })
}

/// Runs a command to its end. `who` names it and `work` its work in sentences.
///
/// # Errors
/// It cannot be started, did not end in time, or failed, with its last words.
pub(super) fn run(command: &mut Command, who: &str, work: &str, quote: fn(&str) -> String) -> Result<()> {
    let output = output_within(command, PREPARE_PATIENCE).with_context(|| format!("starting {who}"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!("{work} failed ({}): {}", output.status, quote(&String::from_utf8_lossy(&text)));
    }
    Ok(())
}

/// Repeats the attempt until it has a result; `None` if it has none within the patience.
fn repeat<T>(patience: Duration, mut attempt: impl FnMut() -> Result<Option<T>>) -> Result<Option<T>> {
    let deadline = Instant::now() + patience;
    loop {
        match attempt()? {
            None if Instant::now() > deadline => return Ok(None),
            None => std::thread::sleep(POLL_INTERVAL),
            done => return Ok(done),
        }
    }
}

/// Dropping it kills the process.
#[derive(Debug)]
pub(super) struct Process {
    /// Name in sentences.
    name: String,
    /// Ends when the server has ended, with its status.
    child: Child,
    /// The server's first process: the child, or the child's own child if the child made namespaces for it.
    first: Pid,
    /// The server's standard output and error. Read by this descriptor only: the file with the name of a log
    /// may be another one.
    log: File,
    log_path: PathBuf,
    quote: fn(&str) -> String,
}

impl Process {
    /// Starts a command whose output goes to a log beside the runtime directory; `quote` finds the last words
    /// in it. The server gets only the open file: its user cannot open, replace or remove it. It begins in the
    /// instance's control group, and all its children with it.
    pub(super) fn spawn(
        command: &mut Command,
        name: &str,
        instance: &Instance,
        quote: fn(&str) -> String,
    ) -> Result<Process> {
        let log_path = beside(&instance.runtime_directory, "log");
        let log = new_file(&log_path)?;
        let again = || log.try_clone().context("opening the log a second time");
        command.envs(instance.environment.iter().map(|(name, value)| (name, value)));
        command
            .current_dir(&instance.runtime_directory)
            .stdin(Stdio::null())
            .stdout(again()?)
            .stderr(again()?);
        if let Some(group) = &instance.control_group {
            enter_control_group(command, group)
                .with_context(|| format!("putting {name} into the control group {}", group.display()))?;
        }
        let child = command.spawn().with_context(|| format!("starting {name}"))?;
        let first = Pid::from_child(&child);
        Ok(Process { name: name.to_owned(), child, first, log, log_path, quote })
    }

    /// Finds the server's first process. For a command in its own namespaces, this is the child's own child.
    pub(super) fn find_first(&mut self) -> Result<()> {
        if !geteuid().is_root() {
            return Ok(());
        }
        let first = repeat(FORK_PATIENCE, || {
            let first = children(self.child.id()).first().and_then(|id| Pid::from_raw(*id as i32));
            match self.child.try_wait().context("looking after unshare")? {
                Some(status) if first.is_none() => {
                    bail!("{} ended at once (unshare: {status}): {}", self.name, self.last_words())
                }
                _ => Ok(first),
            }
        })?;
        self.first = first.with_context(|| {
            format!("the server's process did not appear within {} s", FORK_PATIENCE.as_secs())
        })?;
        Ok(())
    }

    pub(super) fn id(&self) -> u32 {
        self.first.as_raw_nonzero().get() as u32
    }

    fn last_words(&self) -> String {
        match text_of(&self.log) {
            Ok(text) => (self.quote)(&text),
            Err(error) => format!("its log {} cannot be read: {error}", self.log_path.display()),
        }
    }

    pub(super) fn fail_if_dead(&mut self) -> Result<()> {
        match self.child.try_wait().with_context(|| format!("looking after {}", self.name))? {
            Some(status) => bail!("{} died ({status}): {}", self.name, self.last_words()),
            None => Ok(()),
        }
    }

    /// Explains a failed query. The log of a dead server says more, so a dying server gets a moment to end.
    pub(super) fn explain(&mut self, error: anyhow::Error) -> anyhow::Error {
        std::thread::sleep(POLL_INTERVAL);
        self.fail_if_dead().err().unwrap_or(error)
    }

    /// Repeats the attempt until it succeeds. A failed attempt may give a reason, for the message of a
    /// timeout.
    pub(super) fn wait_ready(
        &mut self,
        timeout: Duration,
        mut attempt: impl FnMut() -> Result<(), Option<String>>,
    ) -> Result<()> {
        let mut refused = None;
        let ready = repeat(timeout, || {
            self.fail_if_dead()?;
            Ok(attempt().map_err(|words| refused = words.or(refused.take())).ok())
        })?;
        ready.with_context(|| {
            let words = refused.unwrap_or_else(|| self.last_words());
            format!("{} was not ready after {} s: {words}", self.name, timeout.as_secs())
        })
    }

    pub(super) fn check_alive(&mut self, dying_time: Duration) -> Result<()> {
        repeat::<()>(dying_time, || self.fail_if_dead().map(|()| None)).map(drop)
    }

    /// Sends the server's signal for a clean shutdown, and waits for its end.
    pub(super) fn stop(&mut self, signal: Signal, timeout: Duration) -> Result<()> {
        self.fail_if_dead()?;
        kill_process(self.first, signal).with_context(|| format!("asking {} to stop", self.name))?;
        self.wait_stopped(timeout)
    }

    /// Waits for a clean end that has been requested.
    pub(super) fn wait_stopped(&mut self, timeout: Duration) -> Result<()> {
        let ended =
            repeat(timeout, || self.child.try_wait().with_context(|| format!("waiting for {}", self.name)));
        match ended? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("{} stopped with {status}: {}", self.name, self.last_words()),
            None => bail!("{} did not stop within {} s", self.name, timeout.as_secs()),
        }
    }

    /// Kills the process, with all its children if it has namespaces.
    pub(super) fn crash(&mut self) -> Result<()> {
        self.kill();
        if !self.is_gone_within(DYING_PATIENCE) {
            bail!("the killed {} did not end within {} s", self.name, DYING_PATIENCE.as_secs());
        }
        Ok(())
    }

    fn is_gone_within(&mut self, patience: Duration) -> bool {
        !matches!(repeat(patience, || Ok(self.child.try_wait()?)), Ok(None))
    }

    fn kill(&mut self) {
        // Fails only if the process is already gone. Never after the wait, when another process may have
        // its number.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_process(self.first, Signal::KILL);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        self.is_gone_within(DYING_PATIENCE);
    }
}

/// The text of the log; only the end of a long one. The server appends by the same descriptor, so its
/// position is not ours to use.
fn text_of(log: &File) -> std::io::Result<String> {
    let length_bytes = log.metadata()?.len();
    let begin = length_bytes.saturating_sub(LOG_BYTES_MAX);
    let mut text = vec![0; (length_bytes - begin) as usize];
    log.read_exact_at(&mut text, begin)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
