//! The control socket: one JSON object per line in, one per line out.
//!
//! `{"command": "status"}` from any language is enough to talk to a disk; the errors are `{"error": "..."}`.

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::statistics::{Floor, Statistics};

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Is answered whatever else the emulator does.
    Ping,
    Status,
    /// Off: requests are answered at memory speed.
    Timing {
        on: bool,
    },
    /// What a request costs outside the model, to be subtracted.
    SetFloor(Floor),
    /// Puts a constant delay in the place of the model (to measure the floor), or the model back.
    SetDelay {
        delay_ns: Option<u64>,
    },
    /// Lets the device become as such use leaves it; no data is written.
    Age {
        fill_percent: u64,
        overwrite_percent: u64,
        seed: u64,
    },
    /// The device forgets where everything was, and its content is gone. The caller has unmounted the file
    /// system before.
    SecureErase,
    /// Keeps the content as an immutable image. The caller has unmounted the file system before.
    Snapshot {
        directory: PathBuf,
    },
    /// Ends the emulator; whatever still uses the disk gets I/O errors.
    Shutdown,
}

impl Command {
    /// Whether it takes as long as the disk is large; everything else is answered at once.
    fn is_long(&self) -> bool {
        matches!(self, Command::Age { .. } | Command::SecureErase | Command::Snapshot { .. })
    }
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one reply per command")]
pub enum Reply {
    Done,
    Status(Statistics),
    Error(String),
}

/// Name of the threads of the emulator that obey.
pub(crate) const THREAD: &str = "connection";

/// How long an answer may take to a command that is not long.
const ANSWER_TIME: Duration = Duration::from_secs(5);
/// How long an answer to a ping may take.
pub(crate) const PING_TIME: Duration = Duration::from_secs(2);

/// One connection to a running emulator.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
    socket: PathBuf,
    /// Nothing is asked any more: what came late would be taken for the next command's answer.
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

    /// A long command takes its time, for as long as the emulator answers pings.
    ///
    /// # Errors
    /// The emulator died, does not answer, or refuses the command with this sentence; a status, when the disk
    /// lost a write.
    pub fn call(&mut self, command: &Command) -> Result<Reply> {
        ensure!(!self.is_silent, SILENT);
        let answer = self.exchange(command);
        self.is_silent = answer.as_ref().is_err_and(is_timeout);
        let answer = match answer {
            Err(_) if self.is_silent => bail!(SILENT),
            answer => answer.context("waiting for the emulator's answer")?,
        };
        if answer.is_empty() {
            bail!("the emulator closed the connection");
        }
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
            // What was read before a timeout stays in `answer`.
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

/// How a socket tells that the time is over.
fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut)
}

/// Whether an emulator listens there and answers within [`PING_TIME`].
pub(crate) fn answers(socket: &Path) -> bool {
    let ping = |mut client: Client| client.exchange(&Command::Ping);
    // One that does not know the command says so.
    Client::connect_for(socket, PING_TIME).map(ping).is_ok_and(|answer| answer.is_ok_and(|it| !it.is_empty()))
}
