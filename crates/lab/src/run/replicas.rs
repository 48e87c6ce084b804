//! The replicas of a trial. Each is a private server on its own storage, and starts from the same database as
//! the primary.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, ensure};
use spindle_load::{Check, Workload};

use super::instance;
use super::trial::memory::ServerMemory;
use crate::host::interrupt::Interrupt;
use crate::host::patience::Wait;
use crate::host::trial_time::TrialTime;
use crate::observe::measurement::{ReplicaFacts, Window};
use crate::observe::{ReplicaSample, Sample};
use crate::server::replication::{Access, Position, Progress, ReplicaSet, Replication, ReplicationSpec};
use crate::server::{Instance, Running, Server};
use crate::volume::mounts::Mounts;

/// A cold start on a hard disk reads everything it needs in random order.
pub(super) const READY_PATIENCE: Duration = Duration::from_secs(600);
/// From START SLAVE until all replicas replicate; nothing is written meanwhile.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);
/// How long a replica may make no progress at memory speed while it has more to apply. A transaction is
/// applied as a whole.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// Also the resolution of a catch-up time.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Name of a replica in sentences, tables and records; `index` is from 0.
fn name(index: usize, layout: &str) -> String {
    format!("replica {} ({layout})", index + 1)
}

fn has_applied(position: Option<&Position>, bytes: u64) -> bool {
    position.is_some_and(|position| position.applied_bytes >= bytes)
}

/// Starts the servers of a cell in their roles, if it has replicas.
#[derive(Clone, Copy)]
pub(super) struct Roles<'a> {
    pub spec: &'a ReplicationSpec,
    pub replication: &'a dyn Replication,
}

impl<'a> Roles<'a> {
    pub(super) fn of(server: &'a dyn Server, spec: Option<&'a ReplicationSpec>) -> Option<Roles<'a>> {
        Some(Roles { spec: spec?, replication: server.replication()? })
    }
}

/// The replicas of one trial; none for a single server. Servers are dropped before storage.
pub(super) struct Replicas<'a> {
    roles: Option<Roles<'a>>,
    /// The primary's instance, and how its replicas reach it.
    primary: Option<(Instance, Access)>,
    set: Option<Box<dyn ReplicaSet>>,
    replicas: Vec<Replica>,
    interrupt: &'a Interrupt,
    time: TrialTime,
}

struct Replica {
    name: String,
    running: Option<Box<dyn Running>>,
    mounts: Mounts,
    facts: ReplicaFacts,
}

impl<'a> Replicas<'a> {
    /// `mounts` are the replicas' mounts, in the order of the replicas.
    pub(super) fn new(
        roles: Option<Roles<'a>>,
        mounts: Vec<Mounts>,
        interrupt: &'a Interrupt,
        time: TrialTime,
    ) -> Replicas<'a> {
        let layouts = roles.iter().flat_map(|roles| &roles.spec.replicas);
        let replicas = layouts.zip(mounts).enumerate().map(|(index, (layout, mounts))| {
            let name = name(index, &layout.name);
            let facts =
                ReplicaFacts { name: name.clone(), layout: layout.clone(), ..ReplicaFacts::default() };
            Replica { name, running: None, mounts, facts }
        });
        let replicas = replicas.collect();
        Replicas { roles, primary: None, set: None, replicas, interrupt, time }
    }

    pub(super) fn are_there(&self) -> bool {
        self.roles.is_some()
    }

    pub(super) fn set_timing(&mut self, on: bool) -> Result<()> {
        self.replicas.iter_mut().try_for_each(|replica| {
            let switched = replica.mounts.set_timing(on);
            switched.with_context(|| replica.name.clone())
        })
    }

    pub(super) fn write_back(&mut self) -> Result<()> {
        self.replicas
            .iter_mut()
            .try_for_each(|replica| replica.mounts.write_back().with_context(|| replica.name.clone()))
    }

    /// An error if measurements on the storage of any replica are meaningless from now on.
    pub(super) fn check(&mut self) -> Result<()> {
        self.replicas
            .iter_mut()
            .try_for_each(|replica| replica.mounts.check().with_context(|| replica.name.clone()))
    }

    /// Starts the server that the clients use: the primary, or the only server.
    pub(super) fn start_primary(
        &mut self,
        server: &dyn Server,
        instance: &Instance,
    ) -> Result<Box<dyn Running>> {
        let Some(Roles { spec, replication }) = self.roles else { return server.start(instance) };
        let (_, access) = self.primary.insert((instance.clone(), Access::new()?));
        replication.start_primary(instance, spec, access)
    }

    /// Settings besides the user's that describe the measured configuration.
    pub(super) fn told_settings(&self) -> Vec<String> {
        self.roles.map(|roles| roles.replication.told_settings(roles.spec)).unwrap_or_default()
    }

    /// Starts all replicas, and returns once they follow the primary.
    pub(super) fn follow(&mut self, work_directory: &Path, memory: &ServerMemory) -> Result<()> {
        let (Some(Roles { spec, replication }), Some((primary, access))) = (self.roles, &self.primary) else {
            return Ok(());
        };
        let mut instances = Vec::new();
        for (index, replica) in self.replicas.iter_mut().enumerate() {
            let directory = work_directory.join(format!("replica-{}", index + 1));
            let instance = Instance {
                control_group: memory.group(index + 1),
                ..instance(&replica.mounts, &directory, &spec.settings, &self.time)?
            };
            let running = replication.start_replica(&instance, spec, index + 1);
            replica.running = Some(running.with_context(|| format!("starting {}", replica.name))?);
            instances.push(instance);
        }
        for replica in &mut self.replicas {
            let running = replica.running.as_mut().expect("was just started");
            let ready = self.interrupt.kill_on_signal(running.process_id(), || {
                running.wait_ready(self.time.real_time_of(READY_PATIENCE))
            });
            ready.with_context(|| replica.name.clone())?;
            replica.facts.settings = running.settings(&spec.own_settings)?;
        }
        let mut set = replication.connect(primary, &instances, spec, access)?;
        let deadline = Instant::now() + self.time.real_time_of(CONNECT_PATIENCE);
        while !set.is_running()? {
            self.interrupt.check()?;
            let patience_s = CONNECT_PATIENCE.as_secs();
            ensure!(
                Instant::now() < deadline,
                "the replicas did not follow the primary within {patience_s} s"
            );
            std::thread::sleep(POLL_INTERVAL);
        }
        self.set = Some(set);
        Ok(())
    }

    /// Adds the replicas to a sample.
    ///
    /// # Errors
    /// A replica is dead or has stopped.
    pub(super) fn look(&mut self, sample: &mut Sample) -> Result<()> {
        let Some(progress) = self.progress()? else { return Ok(()) };
        sample.binlog_bytes = Some(progress.written_bytes);
        for (replica, position) in self.replicas.iter_mut().zip(progress.replicas) {
            let process_id = replica.running.as_ref().map_or(0, |running| running.process_id());
            let look =
                ReplicaSample::take(&mut replica.mounts, process_id, position, self.time.clock.dilation);
            sample.replicas.push(look.with_context(|| replica.name.clone())?);
        }
        Ok(())
    }

    fn progress(&mut self) -> Result<Option<Progress>> {
        let Some(set) = &mut self.set else { return Ok(None) };
        // A replica that is dead or stalled does not answer.
        for replica in &mut self.replicas {
            if let Some(running) = &mut replica.running {
                running.check_alive(Duration::ZERO).with_context(|| replica.name.clone())?;
            }
        }
        set.look().map(Some)
    }

    /// Runs after the window, without clients. Times how long the replicas need to apply the writes of the
    /// window, then lets them apply the rest at memory speed.
    pub(super) fn catch_up(&mut self, window: &mut Window) -> Result<()> {
        let (Some(Roles { spec, .. }), Some(target_bytes)) = (self.roles, window.last.binlog_bytes) else {
            return Ok(());
        };
        for (replica, sample) in self.replicas.iter_mut().zip(&window.last.replicas) {
            let is_there = has_applied(sample.position.as_ref(), target_bytes);
            replica.facts.catch_up_s = is_there.then_some(0.0);
            replica.facts.catch_up_limit_s = spec.catch_up.as_secs_f64();
        }
        let (clock, end) = (self.time.clock, window.last.at);
        self.wait(|replicas, progress| {
            for (replica, position) in replicas.iter_mut().zip(&progress.replicas) {
                if replica.facts.catch_up_s.is_none() && has_applied(position.as_ref(), target_bytes) {
                    replica.facts.catch_up_s = Some((clock.now() - end).as_secs_f64());
                }
            }
            clock.now() - end > spec.catch_up
                || replicas.iter().all(|replica| replica.facts.catch_up_s.is_some())
        })?;
        self.set_timing(false)?;
        self.apply_all()?;
        window.replicas = self.replicas.iter().map(|replica| replica.facts.clone()).collect();
        Ok(())
    }

    /// Applies the rest at memory speed, of any size.
    ///
    /// # Errors
    /// A replica makes no more progress.
    fn apply_all(&mut self) -> Result<()> {
        let mut behind = Vec::new();
        let patience = self.time.real_time_of(STALL_PATIENCE);
        let (mut applied_bytes, mut since) = (0, Instant::now());
        self.wait(|replicas, progress| {
            let positions = replicas.iter().zip(&progress.replicas);
            let late =
                positions.filter(|(_, position)| !has_applied(position.as_ref(), progress.written_bytes));
            behind = late.map(|(replica, _)| replica.name.clone()).collect();
            let now_bytes = progress.replicas.iter().flatten().map(|position| position.applied_bytes).sum();
            if now_bytes > applied_bytes {
                (applied_bytes, since) = (now_bytes, Instant::now());
            }
            behind.is_empty() || since.elapsed() > patience
        })?;
        ensure!(
            behind.is_empty(),
            "{} did not apply anything for {} s, though the load had ended and the storage was at memory speed",
            behind.join(" and "),
            STALL_PATIENCE.as_secs()
        );
        Ok(())
    }

    /// Polls until `is_done`.
    fn wait(&mut self, mut is_done: impl FnMut(&mut [Replica], &Progress) -> bool) -> Result<()> {
        loop {
            self.interrupt.check()?;
            match self.progress()? {
                Some(progress) if !is_done(&mut self.replicas, &progress) => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Runs the workload's checks on every replica, and compares its tables with the primary's.
    pub(super) fn verify(&mut self, workload: &Arc<dyn Workload>, patience: Duration) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        for (index, replica) in self.replicas.iter_mut().enumerate() {
            let (Some(running), Some(mut set)) = (&replica.running, self.set.take()) else { continue };
            let (endpoint, workload) = (running.endpoint(), workload.clone());
            // The comparison asks the primary too.
            let who = format!("{} or its primary", replica.name);
            let wait = Wait { patience, who: &who, interrupt: Some(self.interrupt) };
            let verified = self.interrupt.kill_on_signal(running.process_id(), || {
                wait.for_work(move || {
                    let mut found = workload.verify(&endpoint)?;
                    found.push(set.compare(index)?);
                    Ok((set, found))
                })
            });
            let (set, found) = verified.with_context(|| format!("verifying {}", replica.name))?;
            self.set = Some(set);
            checks.extend(
                found
                    .into_iter()
                    .map(|check| Check { name: format!("{}: {}", replica.name, check.name), ..check }),
            );
        }
        Ok(checks)
    }

    /// Shuts the replicas down cleanly.
    pub(super) fn stop(&mut self, patience: Duration) -> Result<()> {
        self.set = None;
        for replica in &mut self.replicas {
            if let Some(mut running) = replica.running.take() {
                let stopped =
                    self.interrupt.kill_on_signal(running.process_id(), || running.discard(patience));
                stopped.with_context(|| replica.name.clone())?;
            }
        }
        Ok(())
    }

    pub(super) fn down(self) -> Result<()> {
        self.replicas.into_iter().try_for_each(|replica| {
            let down = replica.mounts.down();
            down.with_context(|| format!("taking down the storage of {}", replica.name))
        })
    }

    /// The fault of a replica's server or storage, if any; otherwise the error that was noticed.
    pub(super) fn cause(&mut self, noticed: Error) -> Error {
        for replica in &mut self.replicas {
            let storage = replica.mounts.check().err();
            let server =
                replica.running.as_mut().and_then(|running| running.check_alive(Duration::ZERO).err());
            if let Some(error) = storage.or(server) {
                return error.context(replica.name.clone());
            }
        }
        noticed
    }
}
