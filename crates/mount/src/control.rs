//! The control socket: one JSON object per line in, one per line out.
//!
//! `{"command": "status"}` from any language is enough to talk to a disk; the errors are `{"error": "..."}`.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use crate::statistics::{Floor, Statistics};

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    Status,
    /// Off: requests are answered at memory speed.
    Physics {
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
    /// The device forgets where everything was, and its content is gone. The caller has unmounted the file system before.
    SecureErase,
    /// Keeps the content as an immutable image. The caller has unmounted the file system before.
    Snapshot {
        directory: PathBuf,
    },
    /// Ends the emulator; whatever still uses the disk gets I/O errors.
    Shutdown,
}

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
#[serde(rename_all = "kebab-case")]
#[expect(clippy::large_enum_variant, reason = "one reply per command")]
pub enum Reply {
    Done,
    Status(Statistics),
    Error(String),
}

/// One connection to a running emulator.
#[derive(Debug)]
pub struct Client {
    stream: BufReader<UnixStream>,
}

/// A snapshot of a large disk takes its time; everything else answers at once.
const TIMEOUT: Duration = Duration::from_secs(600);

impl Client {
    /// # Errors
    /// Nobody listens there.
    pub fn connect(socket: &Path) -> Result<Client> {
        let stream =
            UnixStream::connect(socket).with_context(|| format!("connecting to {}", socket.display()))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client { stream: BufReader::new(stream) })
    }

    /// # Errors
    /// The emulator died, or refuses the command with this sentence; a status, when the disk lost a write.
    pub fn call(&mut self, command: &Command) -> Result<Reply> {
        let mut line = serde_json::to_string(command)?;
        line.push('\n');
        self.stream.get_mut().write_all(line.as_bytes()).context("sending to the emulator")?;
        line.clear();
        let read = self.stream.read_line(&mut line).context("waiting for the emulator's answer")?;
        if read == 0 {
            bail!("the emulator closed the connection");
        }
        match serde_json::from_str(&line).context("reading the emulator's answer")? {
            Reply::Error(sentence) => bail!("{sentence}"),
            reply => Ok(reply),
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
