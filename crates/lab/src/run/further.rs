//! The servers of a trial besides the first, each on its own storage: its replicas, or those of the further shards.

mod replicas;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Error, Result};
use spindle_load::{Check, Endpoint, Workload};

use self::replicas::Replicas;
pub(super) use self::replicas::Roles;
use super::instance;
use super::trial::memory::ServerMemory;
use super::trial::warm_up::read_into_page_cache;
use crate::host::interrupt::Interrupt;
use crate::host::patience::Wait;
use crate::host::trial_time::TrialTime;
use crate::observe::measurement::Window;
use crate::observe::{ReplicaSample, Sample};
use crate::record::StartState;
use crate::server::{Instance, Running, Server, Settings};
use crate::stack::layout::Layout;
use crate::volume::mounts::Mounts;

/// A cold start on a hard disk reads everything it needs in random order.
pub(super) const READY_PATIENCE: Duration = Duration::from_secs(600);

/// One of them.
pub(super) struct FurtherServer {
    /// In sentences, tables and records.
    pub(super) name: String,
    /// In names of directories and disks.
    pub(super) key: String,
    pub(super) running: Option<Box<dyn Running>>,
    pub(super) mounts: Mounts,
}

/// What one of them is called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Title {
    pub(super) name: String,
    pub(super) key: String,
}

impl Title {
    /// `index` is from zero.
    pub(super) fn of_replica(index: usize, layout: &Layout) -> Title {
        let number = index + 1;
        Title { name: format!("replica {number} ({})", layout.name), key: format!("replica-{number}") }
    }

    /// From two, because the first shard is on the first server.
    pub(super) fn of_shard(number: u32) -> Title {
        Title { name: format!("shard {number}"), key: format!("shard-{number}") }
    }

    /// For a list of storage, which has the layouts.
    pub(super) fn short(&self) -> String {
        self.key.replace('-', " ")
    }
}

/// All of them; servers are dropped before storage.
pub(super) struct Further<'a> {
    replicas: Option<Replicas<'a>>,
    servers: Vec<FurtherServer>,
    interrupt: &'a Interrupt,
    time: TrialTime,
}

/// How the servers are started.
#[derive(Clone, Copy)]
pub(super) struct Start<'a> {
    pub(super) server: &'a dyn Server,
    pub(super) settings: &'a Settings,
    pub(super) state: StartState,
    pub(super) work_directory: &'a Path,
    pub(super) memory: &'a ServerMemory,
}

impl<'a> Further<'a> {
    pub(super) fn new(
        roles: Option<Roles<'a>>,
        servers: Vec<(Title, Mounts)>,
        interrupt: &'a Interrupt,
        time: TrialTime,
    ) -> Further<'a> {
        let replicas = roles.map(|roles| Replicas::new(roles, interrupt, time.clone()));
        let server = |(Title { name, key }, mounts)| FurtherServer { name, key, running: None, mounts };
        Further { replicas, servers: servers.into_iter().map(server).collect(), interrupt, time }
    }

    pub(super) fn are_replicas(&self) -> bool {
        self.replicas.is_some()
    }

    /// The servers of the further shards, in their order.
    pub(super) fn shards(&self) -> Vec<Endpoint> {
        let servers = self.servers.iter().filter(|_| !self.are_replicas());
        servers.filter_map(|server| Some(server.running.as_ref()?.endpoint())).collect()
    }

    pub(super) fn set_timing(&mut self, on: bool) -> Result<()> {
        each(&mut self.servers, |server| server.mounts.set_timing(on))
    }

    pub(super) fn write_back(&mut self) -> Result<()> {
        each(&mut self.servers, |server| server.mounts.write_back())
    }

    /// An error if measurements on the storage of any of them are meaningless from now on.
    pub(super) fn check(&mut self) -> Result<()> {
        each(&mut self.servers, |server| server.mounts.check())
    }

    /// Starts the server that the clients use first: the primary, or the only server.
    pub(super) fn start_first(
        &mut self,
        server: &dyn Server,
        instance: &Instance,
    ) -> Result<Box<dyn Running>> {
        match &mut self.replicas {
            Some(replicas) => replicas.start_primary(instance),
            None => server.start(instance),
        }
    }

    /// Settings besides the user's that describe the measured configuration.
    pub(super) fn told_settings(&self) -> Vec<String> {
        self.replicas.as_ref().map(Replicas::told_settings).unwrap_or_default()
    }

    /// Starts all, and returns once they answer, and replicas follow the primary.
    pub(super) fn start(&mut self, start: &Start<'_>) -> Result<()> {
        match &mut self.replicas {
            Some(replicas) => replicas.follow(&mut self.servers, start.work_directory, start.memory),
            None => self.start_shards(start),
        }
    }

    fn start_shards(&mut self, start: &Start<'_>) -> Result<()> {
        let (interrupt, time) = (self.interrupt, self.time.clone());
        let mut number = 0;
        each(&mut self.servers, |shard| {
            number += 1;
            let directory = start.work_directory.join(&shard.key);
            let instance = Instance {
                control_group: start.memory.group(number),
                ..instance(&shard.mounts, &directory, start.settings, &time)?
            };
            let running = shard.running.insert(start.server.start(&instance)?);
            let id = running.process_id();
            interrupt.kill_on_signal(id, || running.wait_ready(time.patience(READY_PATIENCE)))?;
            if start.state != StartState::Cold {
                read_into_page_cache(&start.server.circular_files(&instance))?;
            }
            if start.state == StartState::WarmFast {
                interrupt.kill_on_signal(id, || running.fill_cache())?;
            }
            Ok(())
        })
    }

    /// Adds them to a sample.
    ///
    /// # Errors
    /// One of them is dead, or a replica has stopped.
    pub(super) fn look(&mut self, sample: &mut Sample) -> Result<()> {
        let mut positions = Vec::new();
        if let Some(replicas) = &mut self.replicas {
            let Some(progress) = replicas.progress(&mut self.servers)? else { return Ok(()) };
            sample.binlog_bytes = Some(progress.written_bytes);
            positions = progress.replicas;
        }
        let dilation = self.time.clock.dilation;
        let mut positions = positions.into_iter();
        each(&mut self.servers, |server| {
            let process_id = server.running.as_ref().map_or(0, |running| running.process_id());
            let position = positions.next().flatten();
            sample.replicas.push(ReplicaSample::take(&mut server.mounts, process_id, position, dilation)?);
            Ok(())
        })
    }

    /// Runs after the window, without clients.
    pub(super) fn catch_up(&mut self, window: &mut Window) -> Result<()> {
        match &mut self.replicas {
            Some(replicas) => replicas.catch_up(&mut self.servers, window),
            None => Ok(()),
        }
    }

    /// Runs the workload's checks on every one, and compares replicas with the primary.
    pub(super) fn verify(&mut self, workload: &Arc<dyn Workload>, patience: Duration) -> Result<Vec<Check>> {
        if let Some(replicas) = &mut self.replicas {
            return replicas.verify(&self.servers, workload, patience);
        }
        let mut checks = Vec::new();
        for (shard, server) in (1..).zip(&self.servers) {
            let Some(running) = &server.running else { continue };
            let (endpoint, workload) = (running.endpoint(), workload.clone());
            let wait = Wait { patience, who: &server.name, interrupt: Some(self.interrupt) };
            let found = self.interrupt.kill_on_signal(running.process_id(), || {
                wait.for_work(move || workload.verify_shard(&endpoint, shard))
            });
            checks.extend(server.named(found.with_context(|| format!("verifying {}", server.name))?));
        }
        Ok(checks)
    }

    /// Shuts them down.
    pub(super) fn stop(&mut self, patience: Duration) -> Result<()> {
        if let Some(replicas) = &mut self.replicas {
            replicas.forget_set();
        }
        let interrupt = self.interrupt;
        each(&mut self.servers, |server| match server.running.take() {
            Some(mut running) => interrupt.kill_on_signal(running.process_id(), || running.discard(patience)),
            None => Ok(()),
        })
    }

    pub(super) fn down(self) -> Result<()> {
        self.servers.into_iter().try_for_each(|server| {
            let down = server.mounts.down();
            down.with_context(|| format!("taking down the storage of {}", server.name))
        })
    }

    /// The fault of the server or storage of any of them; otherwise the error that was noticed.
    pub(super) fn cause(&mut self, noticed: Error) -> Error {
        for server in &mut self.servers {
            let storage = server.mounts.check().err();
            let program =
                server.running.as_mut().and_then(|running| running.check_alive(Duration::ZERO).err());
            if let Some(error) = storage.or(program) {
                return error.context(server.name.clone());
            }
        }
        noticed
    }
}

/// With the name of each one in its errors.
fn each(servers: &mut [FurtherServer], mut act: impl FnMut(&mut FurtherServer) -> Result<()>) -> Result<()> {
    servers.iter_mut().try_for_each(|server| act(server).with_context(|| server.name.clone()))
}

impl FurtherServer {
    /// Its checks, with its name before theirs.
    pub(super) fn named(&self, checks: Vec<Check>) -> impl Iterator<Item = Check> {
        checks.into_iter().map(|check| Check { name: format!("{}: {}", self.name, check.name), ..check })
    }
}
