//! The control socket: one JSON object per line in, one per line out.
//!
//! A client in any language can send `{"command": "status"}`; errors are `{"error": "..."}`.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use spindle_base::dilation::Dilation;

use crate::statistics::{Floor, Statistics};
use crate::trace::TraceHead;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Answered at once, whatever else the emulator does.
    Ping,
    Status,
    /// Begins the statistics anew.
    ResetStatistics,
    /// Off: requests are answered at memory speed.
    Timing {
        on: bool,
    },
    /// A second of the disk's time takes this many real seconds from now on. Refused while a request is in
    /// flight. Begins the statistics anew.
    SetDilation {
        dilation: Dilation,
    },
    /// Sets the cost of a request outside the model, which is subtracted; in real time.
    SetFloor(Floor),
    /// Replaces the model by a constant delay in real time (to measure the floor), or restores the model.
    SetDelay {
        delay_real_ns: Option<u64>,
    },
    /// Puts the device into the state after the given use; no data is written.
    Age {
        fill_percent: u64,
        overwrite_percent: u64,
        seed: u64,
    },
    /// A part of the disk changes: `battery fails`, `member 2 is replaced` ([`spindle_model::Change`]).
    Change {
        change: String,
    },
    /// Erases the device's mapping and content. The caller has unmounted the file system before.
    SecureErase,
    /// Keeps the content as an immutable image. The caller has unmounted the file system before.
    Snapshot {
        directory: PathBuf,
    },
    /// Begins a block trace: every request that arrives with the timing on is kept, in at most this much
    /// memory. A trace from before is dropped.
    BeginTrace {
        limit_bytes: u64,
    },
    /// Ends the block trace. What it has is kept until it is written or the next one begins.
    EndTrace,
    /// Writes the block trace to a new file and gives its memory back.
    SaveTrace {
        path: PathBuf,
    },
    /// Ends the emulator; users of the disk get I/O errors.
    Shutdown,
}

impl Command {
    /// Whether its time grows with the size of the disk or of a file. All other commands are answered at
    /// once.
    fn is_long(&self) -> bool {
        use Command::{Age, SaveTrace, SecureErase, Snapshot};
        matches!(self, Age { .. } | SecureErase | Snapshot { .. } | SaveTrace { .. })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one reply per command")]
pub enum Reply {
    Done,
    Status(Statistics),
    /// The block trace that was written.
    Trace(TraceHead),
    Error(String),
}

/// Name of the emulator's threads that execute commands.
pub(crate) const THREAD: &str = "connection";

/// Longest wait for the answer to a command that is not long.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// Longest wait for the answer to a ping.
pub(crate) const PING_TIME: Duration = Duration::from_secs(2);

/// One connection to a running emulator.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
    /// Set after a timeout. No command is sent from then on: a late answer would be taken for the next
    /// command's.
    is_silent: bool,
}

impl Client {
    /// # Errors
    /// Nobody listens there.
    pub fn connect(socket: &Path) -> Result<Client> {
        Client::connect_for(socket, ANSWER_TIME)
    }

    fn connect_for(socket: &Path, patience: Duration) -> Result<Client> {
        let stream =
            UnixStream::connect(socket).with_context(|| format!("connecting to {}", socket.display()))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Client { stream: BufReader::new(stream), socket: socket.to_owned(), is_silent: false })
    }

    /// Sends a command and returns its reply. A long command may take any time, as long as the emulator
    /// answers pings.
    ///
    /// # Errors
    /// The emulator died, does not answer, or refuses the command with this sentence; for a status, the disk
    /// lost a write.
    pub fn call(&mut self, command: &Command) -> Result<Reply> {
        ensure!(!self.is_silent, SILENT);
        let answer = self.exchange(command);
        self.is_silent = answer.as_ref().is_err_and(is_timeout);
        let answer = match answer {
            Err(_) if self.is_silent => bail!(SILENT),
            answer => answer.context("waiting for the emulator's answer")?,
        };
        ensure!(!answer.is_empty(), "the emulator closed the connection");
        match serde_json::from_slice(&answer).context("reading the emulator's answer")? {
            Reply::Error(sentence) => bail!("{sentence}"),
            reply => Ok(reply),
        }
    }

    fn exchange(&mut self, command: &Command) -> io::Result<Vec<u8>> {
        let mut line = serde_json::to_vec(command)?;
        line.push(b'\n');
        self.stream.get_mut().write_all(&line)?;
        let mut answer = Vec::new();
        loop {
            // A partial answer from before a timeout stays in `answer`.
            match self.stream.read_until(b'\n', &mut answer) {
                Err(error) if is_timeout(&error) && command.is_long() && answers(&self.socket) => {}
                read => return read.map(|_| answer),
            }
        }
    }

    /// # Errors
    /// As for [`Client::call`].
    pub fn statistics(&mut self) -> Result<Statistics> {
        match self.call(&Command::Status)? {
            Reply::Status(statistics) => Ok(statistics),
            other => bail!("the emulator answered {other:?} to a status request"),
        }
    }
}

const SILENT: &str = "the emulator does not answer";

/// The errors with which a socket reports a timeout.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Whether an emulator listens there and answers within [`PING_TIME`].
pub(crate) fn answers(socket: &Path) -> bool {
    let ping = |mut client: Client| client.exchange(&Command::Ping);
    // An emulator without this command answers with an error, which also counts.
    Client::connect_for(socket, PING_TIME).map(ping).is_ok_and(|answer| answer.is_ok_and(|it| !it.is_empty()))
}
