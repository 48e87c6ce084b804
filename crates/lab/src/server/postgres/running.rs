//! A server that was started.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;
use spindle_load::Endpoint;
use spindle_load::sql::postgres::DEFAULT_PORT;

use super::SUPERUSER;
use crate::server::connection::Inquiry;
use crate::server::instance::Instance;
use crate::server::process::Process;
use crate::server::process::started::Ways;

#[derive(Debug)]
pub(super) struct Postmaster {
    pub(super) data_directory: PathBuf,
}

pub(super) fn endpoint(instance: &Instance, database: &str) -> Endpoint {
    Endpoint::PostgresSocket {
        directory: instance.runtime_directory.clone(),
        port: DEFAULT_PORT,
        user: SUPERUSER.to_owned(),
        database: database.to_owned(),
    }
}

/// Whether the server is ready, by `pg_ctl`'s method: the last line of the file with the process id.
fn says_ready(data_directory: &Path) -> bool {
    let file = fs::read_to_string(data_directory.join("postmaster.pid")).unwrap_or_default();
    file.lines().nth(7).is_some_and(|status| status.trim() == "ready")
}

impl Ways for Postmaster {
    fn is_ready(&self, _: &Endpoint, inquiry: &mut Inquiry) -> Result<(), Option<String>> {
        // The file may be left from an earlier server that crashed.
        match says_ready(&self.data_directory) {
            true => inquiry.connect().map_err(|error| Some(format!("{error:#}"))),
            false => Err(None),
        }
    }

    /// A fast shutdown: connections are closed, and a checkpoint is written.
    fn stop(&self, process: &mut Process, timeout: Duration) -> Result<()> {
        process.stop(Signal::INT, timeout)
    }
}
