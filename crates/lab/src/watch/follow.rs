//! Finds a run of this machine and reads its states. A run may be another user's, so what it sends is bounded
//! and escaped.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use itertools::Itertools as _;
use serde::Deserialize;
use serde_json::Value;
use spindle_base::{Mistake, text};

use super::state::{State, VERSION};
use crate::host::other_runs::RunHead;

/// A longer line is no state.
const LINE_BYTES_MOST: u64 = 16 << 20;
/// States that wait for a terminal that does not show them. The run gives a follower up that reads no more.
const WAITING_MOST: usize = 8;
/// A run opens its socket just after it has announced itself.
const CONNECT_PATIENCE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(50);

/// The newest run; with a word, the newest of the runs that it names by process, scenario or title.
///
/// # Errors
/// There is none.
pub fn choose(mut runs: Vec<RunHead>, word: Option<&str>) -> Result<RunHead, Mistake> {
    runs.sort_by_key(|run| (run.begun_at_s, run.started_at_ticks));
    if runs.is_empty() {
        return Err(Mistake::new("no run is active on this machine; `spindle run SCENARIO` begins one"));
    }
    let Some(word) = word else { return Ok(runs.swap_remove(runs.len() - 1)) };
    let lower = word.to_lowercase();
    let is_exact =
        |run: &RunHead| run.process_id.to_string() == word || run.name == word || run.title == word;
    let is_part = |run: &RunHead| {
        !word.is_empty() && [&run.name, &run.title].iter().any(|name| name.to_lowercase().contains(&lower))
    };
    let found =
        runs.iter().rev().find(|run| is_exact(run)).or_else(|| runs.iter().rev().find(|run| is_part(run)));
    found.cloned().ok_or_else(|| {
        let active = runs.iter().map(RunHead::words).join(", ");
        Mistake::new(format!("no active run is `{word}`; active: {active}"))
    })
}

/// What a run sent.
#[derive(Debug)]
pub enum News {
    State(Box<State>),
    /// Nothing more will come.
    End,
}

/// The states of a run.
#[derive(Debug)]
pub struct Followed {
    states: Receiver<Result<State>>,
}

impl Followed {
    /// # Errors
    /// The run has no socket, as those of earlier versions.
    pub fn connect(head: &RunHead) -> Result<Followed> {
        let deadline = Instant::now() + CONNECT_PATIENCE;
        let stream = loop {
            match UnixStream::connect(head.socket()) {
                Ok(stream) => break stream,
                Err(_) if Instant::now() < deadline && head.is_alive() => thread::sleep(POLL),
                Err(error) => {
                    let words = || format!("{} tells nothing of itself", head.words());
                    return Err(error).with_context(words);
                }
            }
        };
        Ok(Followed::over(stream))
    }

    pub(super) fn over(stream: UnixStream) -> Followed {
        let (sender, states) = sync_channel(WAITING_MOST);
        thread::spawn(move || {
            let mut reader = BufReader::new(stream);
            while let Some(state) = read(&mut reader).transpose() {
                let is_last = state.is_err();
                if sender.send(state).is_err() || is_last {
                    return;
                }
            }
        });
        Followed { states }
    }

    /// `None` if nothing comes in time.
    ///
    /// # Errors
    /// What came is no state.
    pub fn news(&self, patience: Duration) -> Result<Option<News>> {
        match self.states.recv_timeout(patience) {
            Ok(state) => Ok(Some(News::State(Box::new(state?)))),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Ok(Some(News::End)),
        }
    }
}

/// `None` at the end.
fn read(reader: &mut impl BufRead) -> Result<Option<State>> {
    let mut line = Vec::new();
    // A connection that breaks is the end of the run.
    if reader.by_ref().take(LINE_BYTES_MOST).read_until(b'\n', &mut line).is_err() || line.is_empty() {
        return Ok(None);
    }
    match line.ends_with(b"\n") {
        true => parse(&line).map(Some),
        false if line.len() as u64 == LINE_BYTES_MOST => bail!("the run sent a line without an end"),
        false => Ok(None),
    }
}

pub(super) fn parse(line: &[u8]) -> Result<State> {
    #[derive(Deserialize)]
    struct Head {
        version: u32,
    }
    let value: Value = serde_json::from_slice(line).context("the run sent no JSON")?;
    let Head { version } = Head::deserialize(&value).context("the run sent no state")?;
    ensure!(
        version == VERSION,
        "the run is of another version of Spindle: its state has version {version}, and this program reads {VERSION}"
    );
    serde_json::from_value(escaped(value)).context("the run sent no state")
}

/// Every text of it, as [`text::one_line`] writes it.
fn escaped(value: Value) -> Value {
    match value {
        Value::String(foreign) => Value::String(text::one_line(&foreign)),
        Value::Array(values) => Value::Array(values.into_iter().map(escaped).collect()),
        Value::Object(fields) => {
            let escape = |(name, value): (String, Value)| (text::one_line(&name), escaped(value));
            Value::Object(fields.into_iter().map(escape).collect())
        }
        other => other,
    }
}
