//! One server: its directories, and the queries to it while it runs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Result, bail};
use spindle_load::Endpoint;

use super::settings::Settings;
use super::telemetry::{Durability, Silent, Telemetry};
use crate::host::trial_time::Environment;
use crate::record::FileClass;

/// Directories and settings of a private server.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The database's files, on the storage under test.
    pub data_directory: PathBuf,
    /// Directories of the classes of files with mounts of their own; also under test.
    pub class_directories: BTreeMap<FileClass, PathBuf>,
    /// Socket, process id, error log; never on the storage under test.
    pub runtime_directory: PathBuf,
    /// By the server's own names and spelling.
    pub settings: Settings,
    /// Environment variables of its processes, besides those of every process.
    pub environment: Environment,
    /// Directory of the control group of its processes; `None` for our own.
    pub control_group: Option<PathBuf>,
    /// Names of the settings that get new values while it runs.
    pub changing: Vec<String>,
}

/// A started server. Dropping it kills the process. The defaults are those of a server without a process.
pub trait Running: Debug {
    /// Returns once the server answers. The error, if it dies or takes too long, has the last words of its
    /// log.
    fn wait_ready(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    /// An error with the last words of its log if the process is gone, or is gone within `dying_time`.
    fn check_alive(&mut self, _dying_time: Duration) -> Result<()> {
        Ok(())
    }

    fn endpoint(&self) -> Endpoint;

    /// Zero when there is no process, or none of ours.
    fn process_id(&self) -> u32 {
        0
    }

    /// Reads all data into the server's own cache, if that holds them: as after hours of work. A run of a few
    /// seconds leaves the pages out that it does not meet.
    fn fill_cache(&mut self) -> Result<()> {
        Ok(())
    }

    /// Values of these settings as the server reports them, by the same names.
    fn settings(&mut self, _names: &[String]) -> Result<Settings> {
        Ok(BTreeMap::new())
    }

    /// Gives settings new values while it runs, as the server allows.
    ///
    /// # Errors
    /// The server refuses, in its own words.
    fn set(&mut self, _settings: &Settings) -> Result<()> {
        bail!("this kind of server takes no setting while it runs")
    }

    /// Cumulative counters and levels by the server's own names, for the record. [`Running::telemetry`]
    /// interprets them.
    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        Ok(BTreeMap::new())
    }

    fn telemetry(&self) -> &'static dyn Telemetry {
        &Silent
    }

    /// The logs and replicas that a commit waits for, under the server's present settings.
    fn durability(&mut self) -> Result<Durability> {
        let telemetry = self.telemetry();
        let names: Vec<String> = telemetry.commit_settings().iter().map(|&name| name.to_owned()).collect();
        Ok(telemetry.durability(&self.settings(&names)?))
    }

    /// Shuts the server down cleanly.
    fn stop(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    /// Ends the server as fast as it allows. What it wrote is not needed any more.
    fn discard(&mut self, timeout: Duration) -> Result<()> {
        self.stop(timeout)
    }

    /// Sends SIGKILL. This simulates a crash of the process, not of the storage.
    fn crash(&mut self) -> Result<()> {
        Ok(())
    }
}
