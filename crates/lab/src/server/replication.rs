//! Replication, known only through its verbs: a primary and the servers that copy it.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::fs::File;
use std::io::Read as _;
use std::net::TcpListener;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;
use spindle_load::Check;

use super::instance::{Instance, Running};
use super::settings::Refusal;
use crate::record::{ReplicationMode, WaitPoint};
use crate::stack::layout::Layout;

/// The replicas of a server, as a scenario has them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplicationSpec {
    pub mode: ReplicationMode,
    /// The storage of each replica.
    pub replicas: Vec<Layout>,
    /// `None` leaves it to the server.
    pub wait_point: Option<WaitPoint>,
    /// How long a semi-synchronous commit waits for its acknowledgement; `None` leaves it to the server.
    pub timeout: Option<Duration>,
    /// How long a trial waits, with the timing on, until the replicas have applied what was written in the
    /// window.
    pub catch_up: Duration,
    /// Of every replica: the primary's settings with the replica's own in their place.
    pub settings: BTreeMap<String, String>,
    /// Names of the replica's own.
    pub own_settings: Vec<String>,
}

impl ReplicationSpec {
    pub fn is_semi_sync(&self) -> bool {
        self.mode == ReplicationMode::SemiSync
    }
}

/// How the replicas reach their primary: on the loopback interface, as a user of their own.
#[derive(Debug, Clone)]
pub struct Access {
    pub port: u16,
    pub password: String,
}

impl Access {
    /// A port that is free now, and a password that nobody knows.
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
    /// What primary and replicas are served with: the user's settings, and what replication needs of them.
    /// `own` are the replica's own.
    ///
    /// # Errors
    /// A setting, or the version of the server, that does not go with it.
    fn settings(
        &self,
        mode: ReplicationMode,
        primary: &BTreeMap<String, String>,
        own: &BTreeMap<String, String>,
    ) -> Result<MemberSettings, Refusal>;

    /// Settings besides the user's that say what was measured.
    fn told_settings(&self, spec: &ReplicationSpec) -> Vec<String>;

    /// As [`super::Server::start`].
    fn start_primary(
        &self,
        instance: &Instance,
        spec: &ReplicationSpec,
        access: &Access,
    ) -> Result<Box<dyn Running>>;

    /// As [`super::Server::start`]; it does not replicate yet. `number` is from 1.
    fn start_replica(
        &self,
        instance: &Instance,
        spec: &ReplicationSpec,
        number: usize,
    ) -> Result<Box<dyn Running>>;

    /// Lets the replicas follow the primary from its first transaction on; all of them answer.
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
    pub primary: BTreeMap<String, String>,
    pub replica: BTreeMap<String, String>,
}

/// A primary with replicas that were told to follow it.
pub trait ReplicaSet: Debug + Send {
    /// Whether all replicas receive and apply, and, if commits wait for them, acknowledge.
    ///
    /// # Errors
    /// As [`ReplicaSet::look`].
    fn is_running(&mut self) -> Result<bool>;

    /// How far everybody is.
    ///
    /// # Errors
    /// A replica that has stopped, with its own words; a primary that does not answer.
    fn look(&mut self) -> Result<Progress>;

    /// Tables of the users that are not the same on the primary and on the replica of this index, where both
    /// stand still.
    fn compare(&mut self, replica: usize) -> Result<Check>;
}

/// One look at a [`ReplicaSet`].
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// Bytes of binary log since the primary was started.
    pub written_bytes: u64,
    /// `None` for one that did not answer in time.
    pub replicas: Vec<Option<Position>>,
}

/// Where a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Position {
    /// Of the primary's binary log.
    pub applied_bytes: u64,
    /// `Seconds_Behind_Master`; `None` when the replica does not know it.
    pub behind_s: Option<f64>,
}
