//! A server that was started.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;
use spindle_load::Endpoint;
use spindle_load::sql::postgres::DEFAULT_PORT;

use super::SUPERUSER;
use crate::server::connection::Inquiry;
use crate::server::instance::{Instance, Running};
use crate::server::process::Process;
use crate::server::telemetry::Telemetry;

#[derive(Debug)]
pub(super) struct RunningPostgres {
    pub(super) process: Process,
    pub(super) data_directory: PathBuf,
    pub(super) endpoint: Endpoint,
    pub(super) inquiry: Inquiry,
}

pub(super) fn endpoint(instance: &Instance, database: &str) -> Endpoint {
    Endpoint::PostgresSocket {
        directory: instance.runtime_directory.clone(),
        port: DEFAULT_PORT,
        user: SUPERUSER.to_owned(),
        database: database.to_owned(),
    }
}

/// As `pg_ctl` learns it: from the last line of the file of the process id.
fn says_ready(data_directory: &Path) -> bool {
    let file = fs::read_to_string(data_directory.join("postmaster.pid")).unwrap_or_default();
    file.lines().nth(7).is_some_and(|status| status.trim() == "ready")
}

impl Running for RunningPostgres {
    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let (inquiry, data_directory) = (&mut self.inquiry, &self.data_directory);
        // The file may be that of an earlier server, which crashed.
        let attempt = || match says_ready(data_directory) {
            true => inquiry.connect().map_err(|error| Some(format!("{error:#}"))),
            false => Err(None),
        };
        self.process.wait_ready(timeout, attempt)
    }

    fn check_alive(&mut self, dying_time: Duration) -> Result<()> {
        self.process.check_alive(dying_time)
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn process_id(&self) -> u32 {
        self.process.id()
    }

    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        self.inquiry.settings(names).map_err(|error| self.process.explain(error))
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.inquiry.counters().map_err(|error| self.process.explain(error))
    }

    fn telemetry(&self) -> &'static dyn Telemetry {
        self.inquiry.telemetry()
    }

    /// A fast shutdown: what is connected is disconnected, and a checkpoint is written.
    fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.inquiry.disconnect();
        self.process.stop(Signal::INT, timeout)
    }

    fn crash(&mut self) -> Result<()> {
        self.inquiry.disconnect();
        self.process.crash()
    }
}
