//! The replicas of a trial. Each is a private server on its own storage, and starts from the same database as
//! the primary.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use spindle_load::{Check, Workload};

use super::{FurtherServer, READY_PATIENCE, each};
use crate::host::interrupt::Interrupt;
use crate::host::patience::Wait;
use crate::host::trial_time::TrialTime;
use crate::observe::measurement::{ReplicaFacts, Window};
use crate::run::instance;
use crate::run::trial::memory::ServerMemory;
use crate::server::replication::{Access, Position, Progress, ReplicaSet, Replication, ReplicationSpec};
use crate::server::{Instance, Running, Server};

/// From START SLAVE until all replicas replicate; nothing is written meanwhile.
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);
/// How long a replica may make no progress at memory speed while it has more to apply. A transaction is
/// applied as a whole.
const STALL_PATIENCE: Duration = Duration::from_secs(60);
/// Also the resolution of a catch-up time.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

fn has_applied(position: Option<&Position>, bytes: u64) -> bool {
    position.is_some_and(|position| position.applied_bytes >= bytes)
}

/// Starts the servers of a cell in their roles, if it has replicas.
#[derive(Clone, Copy)]
pub(in crate::run) struct Roles<'a> {
    pub spec: &'a ReplicationSpec,
    pub replication: &'a dyn Replication,
}

impl<'a> Roles<'a> {
    pub(in crate::run) fn of(server: &'a dyn Server, spec: Option<&'a ReplicationSpec>) -> Option<Roles<'a>> {
        Some(Roles { spec: spec?, replication: server.replication()? })
    }
}

/// What the replicas of one trial have in common.
pub(super) struct Replicas<'a> {
    roles: Roles<'a>,
    /// The primary's instance, and how its replicas reach it.
    primary: Option<(Instance, Access)>,
    set: Option<Box<dyn ReplicaSet>>,
    facts: Vec<ReplicaFacts>,
    interrupt: &'a Interrupt,
    time: TrialTime,
}

impl<'a> Replicas<'a> {
    pub(super) fn new(roles: Roles<'a>, interrupt: &'a Interrupt, time: TrialTime) -> Replicas<'a> {
        Replicas { roles, primary: None, set: None, facts: Vec::new(), interrupt, time }
    }

    pub(super) fn start_primary(&mut self, instance: &Instance) -> Result<Box<dyn Running>> {
        let Roles { spec, replication } = self.roles;
        let (_, access) = self.primary.insert((instance.clone(), Access::new()?));
        replication.start_primary(instance, spec, access)
    }

    /// Settings besides the user's that describe the measured configuration.
    pub(super) fn told_settings(&self) -> Vec<String> {
        self.roles.replication.told_settings(self.roles.spec)
    }

    /// Starts all replicas, and returns once they follow the primary.
    pub(super) fn follow(
        &mut self,
        servers: &mut [FurtherServer],
        work_directory: &Path,
        memory: &ServerMemory,
    ) -> Result<()> {
        let Roles { spec, replication } = self.roles;
        let Some((primary, access)) = &self.primary else { return Ok(()) };
        let mut instances = Vec::new();
        for (index, replica) in servers.iter_mut().enumerate() {
            let directory = work_directory.join(&replica.key);
            let instance = Instance {
                control_group: memory.group(index + 1),
                ..instance(&replica.mounts, &directory, &spec.settings, &self.time)?
            };
            let running = replication.start_replica(&instance, spec, index + 1);
            replica.running = Some(running.with_context(|| format!("starting {}", replica.name))?);
            instances.push(instance);
        }
        for (replica, layout) in servers.iter_mut().zip(&spec.replicas) {
            let running = replica.running.as_mut().expect("was just started");
            let ready = self.interrupt.kill_on_signal(running.process_id(), || {
                running.wait_ready(self.time.patience(READY_PATIENCE))
            });
            ready.with_context(|| replica.name.clone())?;
            self.facts.push(ReplicaFacts {
                name: replica.name.clone(),
                layout: layout.clone(),
                settings: running.settings(&spec.own_settings)?,
                ..ReplicaFacts::default()
            });
        }
        let mut set = replication.connect(primary, &instances, spec, access)?;
        let deadline = Instant::now() + self.time.patience(CONNECT_PATIENCE);
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

    /// # Errors
    /// A replica is dead or has stopped.
    pub(super) fn progress(&mut self, servers: &mut [FurtherServer]) -> Result<Option<Progress>> {
        let Some(set) = &mut self.set else { return Ok(None) };
        // A replica that is dead or stalled does not answer.
        for replica in servers {
            if let Some(running) = &mut replica.running {
                running.check_alive(Duration::ZERO).with_context(|| replica.name.clone())?;
            }
        }
        set.look().map(Some)
    }

    /// Runs after the window, without clients. Times how long the replicas need to apply the writes of the
    /// window, then lets them apply the rest at memory speed.
    pub(super) fn catch_up(&mut self, servers: &mut [FurtherServer], window: &mut Window) -> Result<()> {
        let Roles { spec, .. } = self.roles;
        let Some(target_bytes) = window.last.binlog_bytes else { return Ok(()) };
        for (facts, sample) in self.facts.iter_mut().zip(&window.last.replicas) {
            let is_there = has_applied(sample.position.as_ref(), target_bytes);
            facts.catch_up_s = is_there.then_some(0.0);
            facts.catch_up_limit_s = spec.catch_up.as_secs_f64();
        }
        let (clock, end) = (self.time.clock, window.last.at);
        self.wait(servers, |facts, progress| {
            for (facts, position) in facts.iter_mut().zip(&progress.replicas) {
                if facts.catch_up_s.is_none() && has_applied(position.as_ref(), target_bytes) {
                    facts.catch_up_s = Some((clock.now() - end).as_secs_f64());
                }
            }
            clock.now() - end > spec.catch_up || facts.iter().all(|facts| facts.catch_up_s.is_some())
        })?;
        each(servers, |replica| replica.mounts.set_timing(false))?;
        self.apply_all(servers)?;
        window.replicas.clone_from(&self.facts);
        Ok(())
    }

    /// Applies the rest at memory speed, of any size.
    ///
    /// # Errors
    /// A replica makes no more progress.
    fn apply_all(&mut self, servers: &mut [FurtherServer]) -> Result<()> {
        let mut behind = Vec::new();
        let patience = self.time.patience(STALL_PATIENCE);
        let (mut applied_bytes, mut since) = (0, Instant::now());
        self.wait(servers, |facts, progress| {
            let positions = facts.iter().zip(&progress.replicas);
            let late =
                positions.filter(|(_, position)| !has_applied(position.as_ref(), progress.written_bytes));
            behind = late.map(|(facts, _)| facts.name.clone()).collect();
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
    fn wait(
        &mut self,
        servers: &mut [FurtherServer],
        mut is_done: impl FnMut(&mut [ReplicaFacts], &Progress) -> bool,
    ) -> Result<()> {
        loop {
            self.interrupt.check()?;
            match self.progress(servers)? {
                Some(progress) if !is_done(&mut self.facts, &progress) => {
                    std::thread::sleep(POLL_INTERVAL);
                }
                _ => return Ok(()),
            }
        }
    }

    /// Runs the workload's checks on every replica, and compares its tables with the primary's.
    pub(super) fn verify(
        &mut self,
        servers: &[FurtherServer],
        workload: &Arc<dyn Workload>,
        patience: Duration,
    ) -> Result<Vec<Check>> {
        let mut checks = Vec::new();
        for (index, replica) in servers.iter().enumerate() {
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
            checks.extend(replica.named(found));
        }
        Ok(checks)
    }

    /// Before its servers are stopped.
    pub(super) fn forget_set(&mut self) {
        self.set = None;
    }
}
