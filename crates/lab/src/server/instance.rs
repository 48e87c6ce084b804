//! One server: where it lives, and what can be asked of it while it runs.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use spindle_load::Endpoint;

use super::telemetry::{Durability, Silent, Telemetry};
use crate::record::FileClass;

/// Where one private server lives, and with which settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The database's files; on the storage under test.
    pub data_directory: PathBuf,
    /// For classes of files that do not lie with the data: directories on mounts of their own, also under
    /// test.
    pub class_directories: BTreeMap<FileClass, PathBuf>,
    /// Socket, process id, error log; never on the storage under test.
    pub runtime_directory: PathBuf,
    /// The server's own names and spelling.
    pub settings: BTreeMap<String, String>,
}

/// A started server. Dropping it kills the process.
pub trait Running: Debug {
    /// Returns when the server answers, or with the last words of its log when it died or took too long.
    fn wait_ready(&mut self, timeout: Duration) -> Result<()>;

    /// An error with the last words of its log when the process is gone, or is gone within `dying_time`.
    fn check_alive(&mut self, dying_time: Duration) -> Result<()>;

    fn endpoint(&self) -> Endpoint;

    /// Zero when there is no process (files, mock).
    fn process_id(&self) -> u32;

    /// What the server itself says about these settings, by the same names.
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>>;

    /// Cumulative counters and levels by the server's own names, for the record; [`Running::telemetry`] says
    /// what they mean.
    fn counters(&mut self) -> Result<BTreeMap<String, f64>>;

    fn telemetry(&self) -> &'static dyn Telemetry {
        &Silent
    }

    /// What a commit waits for, by the settings that the server has now.
    fn durability(&mut self) -> Result<Durability> {
        let telemetry = self.telemetry();
        let names: Vec<String> = telemetry.commit_settings().iter().map(|&name| name.to_owned()).collect();
        Ok(telemetry.durability(&self.settings(&names)?))
    }

    /// A clean shutdown.
    fn stop(&mut self, timeout: Duration) -> Result<()>;

    /// SIGKILL, as a crash of the process (not of the storage).
    fn crash(&mut self) -> Result<()>;
}
