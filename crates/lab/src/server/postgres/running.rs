//! A server that was started.

use std::fs;
use std::path::PathBuf;
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
use crate::server::settings::Settings;
use spindle_base::text::causes;

#[derive(Debug)]
pub(super) struct Postmaster {
    pub(super) data_directory: PathBuf,
    /// Settings that are set once it is ready, because they change later.
    pub(super) initial: Settings,
}

pub(super) fn endpoint(instance: &Instance, database: &str) -> Endpoint {
    Endpoint::PostgresSocket {
        directory: instance.runtime_directory.clone(),
        port: DEFAULT_PORT,
        user: SUPERUSER.to_owned(),
        database: database.to_owned(),
    }
}

impl Ways for Postmaster {
    fn is_ready(&self, _: &Endpoint, inquiry: &mut Inquiry) -> Result<(), Option<String>> {
        // As `pg_ctl` does: the eighth line of the file. It may be left from an earlier server that crashed.
        let file = fs::read_to_string(self.data_directory.join("postmaster.pid")).unwrap_or_default();
        match file.lines().nth(7).map(str::trim) {
            Some("ready") => inquiry.set(&self.initial).map_err(|error| Some(causes(&error))),
            _ => Err(None),
        }
    }

    /// A fast shutdown: connections are closed, and a checkpoint is written.
    fn stop(&self, process: &mut Process, timeout: Duration) -> Result<()> {
        process.stop(Signal::INT, timeout)
    }
}
