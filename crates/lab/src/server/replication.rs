//! Replication by its verbs: a primary and the servers that copy it.

use std::fmt::Debug;
use std::fs::File;
use std::io::Read as _;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use spindle_load::Check;

use super::instance::{Instance, Running};
use super::settings::{Refusal, Settings};
use crate::record::{ReplicationMode, WaitPoint};
use crate::stack::layout::Layout;

/// The replicas of a server in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicationSpec {
    pub mode: ReplicationMode,
    /// The storage of each replica.
    pub replicas: Vec<Layout>,
    /// `None` for the server's default.
    pub wait_point: Option<WaitPoint>,
    /// Maximum wait of a semi-synchronous commit for its acknowledgement; `None` for the server's default.
    pub timeout: Option<Duration>,
    /// Maximum wait of a trial, with the timing on, until the replicas have applied the writes of the window.
    pub catch_up: Duration,
    /// Settings of every replica: the primary's, overridden by the replica's own.
    pub settings: Settings,
    /// Names of the replica's own settings.
    pub own_settings: Vec<String>,
}

impl ReplicationSpec {
    pub fn is_semi_sync(&self) -> bool {
        self.mode == ReplicationMode::SemiSync
    }
}

/// Access of the replicas to their primary: on the loopback interface, as a separate user.
#[derive(Debug, Clone)]
pub struct Access {
    pub port: u16,
    pub password: String,
}

impl Access {
    /// A free port, and an unpredictable password.
    ///
    /// # Errors
    /// The machine has no port or no random numbers.
    pub fn new() -> Result<Access> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("looking for a free port")?;
        let port = listener.local_addr().context("looking at the free port")?.port();
        let mut bytes = [0; 16];
        File::open("/dev/urandom")
            .and_then(|mut random| random.read_exact(&mut bytes))
            .context("reading /dev/urandom")?;
        Ok(Access { port, password: bytes.iter().map(|byte| format!("{byte:02x}")).collect() })
    }
}

/// A kind of server whose replicas Spindle can set up.
pub trait Replication {
    /// Settings of primary and replicas: the user's, and those that replication needs. `own` are the
    /// replica's own.
    ///
    /// # Errors
    /// A setting, or a version of the server, that does not work with replication.
    fn settings(
        &self,
        mode: ReplicationMode,
        primary: &Settings,
        own: &Settings,
    ) -> Result<MemberSettings, Refusal>;

    /// Settings besides the user's that describe the measured configuration.
    fn told_settings(&self, spec: &ReplicationSpec) -> Vec<String>;

    /// See [`super::Server::start`].
    fn start_primary(
        &self,
        instance: &Instance,
        spec: &ReplicationSpec,
        access: &Access,
    ) -> Result<Box<dyn Running>>;

    /// See [`super::Server::start`]; the server does not replicate yet. `number` is from 1.
    fn start_replica(
        &self,
        instance: &Instance,
        spec: &ReplicationSpec,
        number: usize,
    ) -> Result<Box<dyn Running>>;

    /// Makes the replicas follow the primary from its first transaction on. All of them answer already.
    fn connect(
        &self,
        primary: &Instance,
        replicas: &[Instance],
        spec: &ReplicationSpec,
        access: &Access,
    ) -> Result<Box<dyn ReplicaSet>>;
}

/// See [`Replication::settings`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSettings {
    pub primary: Settings,
    pub replica: Settings,
}

/// A primary with replicas that were told to follow it.
pub trait ReplicaSet: Debug + Send {
    /// Whether all replicas receive and apply, and, if commits wait for them, acknowledge.
    ///
    /// # Errors
    /// See [`ReplicaSet::look`].
    fn is_running(&mut self) -> Result<bool>;

    /// The progress of primary and replicas.
    ///
    /// # Errors
    /// A replica that has stopped, with its own message; a primary that does not answer.
    fn look(&mut self) -> Result<Progress>;

    /// Compares the users' tables on the primary and on the replica of this index, with neither being written
    /// to.
    fn compare(&mut self, replica: usize) -> Result<Check>;
}

/// A sample of a [`ReplicaSet`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Bytes of binary log since the start of the primary.
    pub written_bytes: u64,
    /// `None` for a replica that did not answer in time.
    pub replicas: Vec<Option<Position>>,
}

/// A replica's position.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Position {
    /// Bytes of the primary's binary log.
    pub applied_bytes: u64,
    /// `Seconds_Behind_Master`; `None` when the replica does not know it.
    pub behind_s: Option<f64>,
}
