//! One process of a foreign tool.

use std::io::{BufRead, BufReader, ErrorKind, Read};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::Program;
use spindle_base::child::{RunAs, die_with_parent, wait_with_cpu};

/// Maximum length of the last words, in characters.
const LAST_WORDS_LENGTH: usize = 400;
/// Maximum size of the kept error output, in bytes.
const ERRORS_LENGTH: u64 = 1 << 16;

/// A running tool. Dropping it kills the tool.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    errors: Option<JoinHandle<String>>,
    is_reaped: bool,
}

/// A tool that exited by itself.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) output: Vec<String>,
    pub(crate) errors: String,
    pub(crate) status: ExitStatus,
    /// User and system CPU time.
    pub(crate) cpu: Duration,
}

impl Process {
    /// Starts a tool. `take` receives every line of its output on a thread of its own, and is dropped at the
    /// end of the output.
    ///
    /// # Errors
    /// There is no such program; the message names the package.
    pub(crate) fn start(
        mut command: Command,
        program: Program<'_>,
        mut take: impl FnMut(String) + Send + 'static,
    ) -> Result<Process> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = die_with_parent(program.run_as.apply(&mut command))
            .spawn()
            .map_err(|error| missing(program, error))?;
        let output = child.stdout.take().context("the tool has no standard output")?;
        let errors = child.stderr.take().context("the tool has no standard error")?;
        std::thread::spawn(move || {
            for line in BufReader::new(output).split(b'\n') {
                let Ok(line) = line else { break };
                take(String::from_utf8_lossy(&line).into_owned());
            }
        });
        let errors = std::thread::spawn(move || read_errors(errors));
        Ok(Process { child, errors: Some(errors), is_reaped: false })
    }

    /// Waits for the exit. Call it at the end of the output.
    pub(crate) fn wait(mut self, output: Vec<String>) -> Result<Ended> {
        let (status, cpu) = wait_with_cpu(&self.child).context("waiting for the tool")?;
        self.is_reaped = true;
        let errors = self.errors.take().map(|thread| thread.join().unwrap_or_default()).unwrap_or_default();
        Ok(Ended { output, errors, status, cpu })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.is_reaped {
            // Both calls fail only if the process is already gone.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn read_errors(mut errors: ChildStderr) -> String {
    let mut text = Vec::new();
    // An unreadable rest is ignored. Output beyond the limit is drained, so that the tool does not block on
    // the pipe.
    let _ = errors.by_ref().take(ERRORS_LENGTH).read_to_end(&mut text);
    let _ = std::io::copy(&mut errors, &mut std::io::sink());
    String::from_utf8_lossy(&text).into_owned()
}

pub(super) fn missing(program: Program<'_>, error: std::io::Error) -> anyhow::Error {
    let Program { path, package, run_as, .. } = program;
    let path = path.display();
    match (error.kind(), run_as) {
        (ErrorKind::NotFound, _) => anyhow!(
            "{path} is not installed: it comes with the package `{package}`, which `tools/install tools` installs"
        ),
        (ErrorKind::PermissionDenied, RunAs::User(id)) => {
            anyhow!(
                "starting {path}: {error}: it runs as user {id}, which must be able to reach and execute it"
            )
        }
        _ => anyhow!("starting {path}: {error}"),
    }
}

impl Ended {
    /// An error with its last words if it failed or complained.
    pub(crate) fn check(&self, name: &str, is_complaint: fn(&str) -> bool) -> Result<()> {
        let lines = self.output.iter().map(String::as_str).chain(self.errors.lines());
        let complaints: Vec<&str> = lines.filter(|line| is_complaint(line)).collect();
        if !self.status.success() || !complaints.is_empty() {
            bail!("{name} ended with {}: {}", self.status, self.last_words(&complaints));
        }
        Ok(())
    }

    /// Its complaints. Without any, its last lines of standard error, or of standard output if that is empty.
    pub(crate) fn last_words(&self, complaints: &[&str]) -> String {
        let lines = [
            complaints.to_vec(),
            last_lines(self.errors.lines()),
            last_lines(self.output.iter().map(String::as_str)),
        ];
        let lines = lines.into_iter().find(|lines| !lines.is_empty()).unwrap_or_default();
        let words = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" / ");
        match words.is_empty() {
            true => "it said nothing".to_owned(),
            false => words.chars().take(LAST_WORDS_LENGTH).collect(),
        }
    }
}

/// The last three lines that are not blank.
fn last_lines<'a>(lines: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(3)..].to_vec()
}

/// Runs a tool to its end.
///
/// # Errors
/// The tool is missing, fails or complains; the message has its last words.
pub(crate) fn execute(command: Command, name: &str, program: Program<'_>) -> Result<Ended> {
    let (sender, lines) = std::sync::mpsc::channel();
    let process = Process::start(command, program, move |line| {
        let _ = sender.send(line);
    })?;
    let output = lines.iter().collect();
    let ended = process.wait(output)?;
    ended.check(name, program.is_complaint)?;
    Ok(ended)
}

/// The output of `--version`, in one line.
///
/// # Errors
/// The tool is missing or does not report a version.
pub(super) fn version(program: Program<'_>) -> Result<String> {
    let path = program.path.display();
    let mut command = Command::new(program.path);
    command.arg("--version");
    let ended =
        execute(command, &format!("{path} --version"), Program { is_complaint: |_| false, ..program })?;
    let line = ended.output.iter().map(|line| line.trim()).find(|line| !line.is_empty());
    line.map(str::to_owned)
        .with_context(|| format!("{path} does not tell its version: {}", ended.last_words(&[])))
}
