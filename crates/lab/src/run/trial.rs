//! One trial: storage from the snapshot, server, client, warm-up, measured window, verification. Everything
//! is taken down again, after any failure too.

pub(super) mod memory;
pub(super) mod trace;
pub(super) mod warm_up;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use spindle_load::{RunSpec, Workload};
use spindle_mount::Floor;

use super::data_set::{DataSets, Load, Recipe};
use super::further::{Further, READY_PATIENCE, Roles, Start, Title};
use super::phases::{Observed, Phases, WindowEvents};
use super::probe::Probe;
use super::{Servers, cause, instance};
use crate::host::interrupt::Interrupt;
use crate::host::other_runs::OtherRuns;
use crate::host::patience::{self, Wait};
use crate::host::progress::Progress;
use crate::host::provenance;
use crate::host::trial_time::TrialTime;
use crate::host::wall_clock::Clocks;
use crate::observe::measurement::{self, Window};
use crate::record::{Cell, Check, FileClass, Measurement, Provenance, StartState, Trial, Warning};
use crate::run::client::ClientProcess;
use crate::scenario::Scenario;
use crate::scenario::events::Change;
use crate::scenario::plan::PlannedTrial;
use crate::server::replication::ReplicationSpec;
use crate::server::telemetry::Durability;
use crate::server::{FOREIGN_TOOLS, Instance, Running, Server};
use crate::stack::layout::Layout;
use crate::volume::mounts::{Mounts, MountsRequest};
use crate::watch::{LoadFacts, Publisher};
use memory::ServerMemory;
use spindle_base::affinity::Pinned;
use spindle_base::dilation::Dilation;
use spindle_base::text::causes;
use trace::Traces;
use warm_up::WarmedUp;

/// For a server with little data; see [`patience::for_data`].
const STOP_PATIENCE: Duration = Duration::from_secs(300);
const VERIFY_PATIENCE: Duration = Duration::from_secs(600);

/// How long the host is looked at alone, and the latency of the device that is pretended meanwhile.
const HOST_ALONE_TIME: Duration = Duration::from_millis(100);
const HOST_ALONE_DELAY: Duration = Duration::from_micros(200);

/// Seeds of neighbouring mounts differ by one, and those of a pool's devices by 2^16.
const SEED_STEP: u64 = 1 << 32;

/// Shared by all trials of a run, and the cell of this trial.
#[derive(Clone, Copy)]
pub(super) struct Laboratory<'a> {
    pub scenario: &'a Scenario,
    pub cell: &'a Cell,
    pub servers: &'a Servers,
    pub versions: &'a BTreeMap<String, String>,
    pub scenario_hash: &'a str,
    pub program: &'a Path,
    pub work_directory: &'a Path,
    pub interrupt: &'a Interrupt,
    pub other_runs: &'a OtherRuns,
    pub publisher: &'a Publisher,
    /// Of this cell.
    pub dilation: Dilation,
    /// Where block traces are kept; `None` without them.
    pub traces: Option<&'a Traces>,
}

#[derive(Debug, Default)]
struct Finding {
    settings: BTreeMap<String, String>,
    measured: Option<(Measurement, Vec<Warning>)>,
}

/// A trial with its storage. Values are dropped in this order, after the client and the server.
struct Attempt<'a, 'p> {
    laboratory: &'a Laboratory<'a>,
    planned: &'a PlannedTrial,
    further: Further<'a>,
    mounts: Mounts,
    memory: ServerMemory,
    phases: &'a mut Phases<'p>,
    finding: &'a mut Finding,
}

impl Laboratory<'_> {
    /// The warning about a disk that the data hardly fill.
    fn nearly_empty_disk(&self) -> Option<Warning> {
        let filled = self.scenario.filled_stack(self.layout().stack_of(FileClass::Data));
        let share = filled.nearly_empty_share()?;
        Some(Warning::NearlyEmptyDisk { stack: filled.stack, size_bytes: filled.size_bytes, share })
    }

    /// An error only if the user asked to stop. Every other failure is in the trial.
    pub(super) fn run(
        &self,
        planned: &PlannedTrial,
        data_sets: &mut DataSets,
        progress: &mut Progress,
    ) -> Result<Trial> {
        let (started_at, started) = (provenance::now(), Clocks::now());
        let title = format!("{}, trial {}", self.cell.name, planned.trial);
        self.publisher.begin_trial(&title, self.dilation, self.scenario.run.cpu_count());
        self.publisher.storage("", self.layout());
        for (title, layout) in self.further() {
            self.publisher.storage(&format!("{}: ", title.short()), layout);
        }
        let mut phases = Phases::new(title, progress, self.interrupt, self.other_runs, self.publisher);
        let mut finding = Finding::default();
        let result = self.attempt(planned, data_sets, &mut phases, &mut finding);
        let phases_s = phases.end();
        self.publisher.end_trial();
        // The signal reaches our children too, so their deaths are not findings.
        self.interrupt.check()?;
        let (measurement, warnings) = finding.measured.unzip();
        let mut warnings = warnings.unwrap_or_default();
        warnings.extend(started.jump_s().map(|by_s| Warning::ClockJumped { by_s }));
        Ok(Trial {
            cell: self.cell.name.clone(),
            trial: planned.trial,
            block: planned.block,
            provenance: Provenance {
                spindle_version: provenance::SPINDLE_VERSION.to_owned(),
                git_revision: provenance::GIT_REVISION.to_owned(),
                scenario_hash: self.scenario_hash.to_owned(),
                stack_hash: self.stack_hash(),
                kernel: provenance::kernel(),
                server_version: self.versions[&self.cell.server].clone(),
                settings: finding.settings,
                memory_bytes: self.memory_bytes(),
                seed: planned.seed,
            },
            started_at,
            phases_s,
            // A result counts only after a clean end.
            measurement: if result.is_ok() { measurement } else { None },
            error: result.err().map(|error| one_sentence(&error)),
            warnings,
            pilot: Vec::new(),
        })
    }

    fn attempt(
        &self,
        planned: &PlannedTrial,
        data_sets: &mut DataSets,
        phases: &mut Phases<'_>,
        finding: &mut Finding,
    ) -> Result<()> {
        let server = &*self.servers[&self.cell.server];
        let is_sharded = self.shards() > 1;
        let snapshots: Vec<(&Layout, PathBuf)> = (0..)
            .zip(self.layouts())
            .map(|(index, layout)| {
                let shard = if is_sharded { index } else { 0 };
                Ok((layout, self.snapshot(server, layout, shard, data_sets, phases)?))
            })
            .collect::<Result<_>>()?;
        phases.progress.trial_started();

        phases.enter("restore")?;
        let pinned = self.scenario.run.cpu_affinity.map(Pinned::to).transpose();
        let _pinned = pinned.context("setting the CPU affinity")?;
        phases.timer_tail_us = timer_tail_us();
        // Not earlier: the server must not see a time before that of its own files.
        phases.time = TrialTime::start(self.dilation, self.work_directory)?;
        let mount_count = self.layouts().map(|layout| layout.mounts.len()).sum();
        let restore = |index: usize, owner: &str, floor: Option<Floor>| {
            let (layout, snapshot) = &snapshots[index];
            Mounts::up(&MountsRequest {
                layout,
                stacks: &self.scenario.stacks,
                plain_directories: self.scenario.servers[&self.cell.server].facts().is_for_tests,
                snapshot: Some(snapshot),
                work_directory: self.work_directory,
                seed: planned.seed.wrapping_add(SEED_STEP * index as u64),
                owner,
                mount_count,
                time: &phases.time,
                floor,
            })
            .context("restoring the snapshot")
        };
        let mounts = restore(0, "", None)?;
        let floor = mounts.floor();
        let further = (1..).zip(self.further()).map(|(index, (title, _))| {
            let mounts = restore(index, &title.key, floor).with_context(|| title.name.clone())?;
            Ok((title, mounts))
        });
        let further = further.collect::<Result<_>>()?;
        let roles = Roles::of(server, self.replication());
        let further = Further::new(roles, further, self.interrupt, phases.time.clone());
        let memory = ServerMemory::of(self.memory_bytes(), snapshots.len())?;
        let mut attempt = Attempt { laboratory: self, planned, further, mounts, memory, phases, finding };
        attempt.set_timing(self.scenario.run.start == StartState::Cold)?;
        attempt.run().map_err(|error| attempt.cause(error))?;
        attempt.memory.check()?;
        attempt.further.down()?;
        attempt.mounts.down().context("taking the storage down")?;
        attempt.memory.remove()
    }

    fn memory_bytes(&self) -> Option<u64> {
        self.scenario.servers[&self.cell.server].memory_bytes
    }

    fn layout(&self) -> &Layout {
        self.scenario.layout_of(self.cell)
    }

    fn replication(&self) -> Option<&ReplicationSpec> {
        self.scenario.servers[&self.cell.server].replication.as_ref()
    }

    /// Servers that hold the database together.
    fn shards(&self) -> u32 {
        self.scenario.workloads[&self.cell.workload].shards()
    }

    /// The servers besides the first, each with the layout of its storage: replicas have their own, shards the cell's.
    fn further(&self) -> Vec<(Title, &Layout)> {
        let replicas = self.replication().into_iter().flat_map(|spec| &spec.replicas);
        let replicas = replicas.enumerate().map(|(index, layout)| (Title::of_replica(index, layout), layout));
        let shards = (2..=self.shards()).map(|number| (Title::of_shard(number), self.layout()));
        replicas.chain(shards).collect()
    }

    /// The layouts of the first server and of the further ones.
    fn layouts(&self) -> impl Iterator<Item = &Layout> {
        std::iter::once(self.layout()).chain(self.further().into_iter().map(|(_, layout)| layout))
    }

    /// One hash for each mount, in the order of the layout; those of further servers follow.
    fn stack_hash(&self) -> String {
        let of_layout = |layout: &Layout| {
            let stacks = layout.mounts.iter().map(|mount| self.scenario.stacks[&mount.stack].hash());
            stacks.collect::<Vec<_>>().join("+")
        };
        self.layouts().map(of_layout).collect::<Vec<_>>().join(" > ")
    }

    /// A wait for the server, with patience for the size of its data.
    fn wait(&self, least: Duration) -> Wait<'_> {
        let data_bytes = self.scenario.data_bytes();
        Wait {
            patience: self.dilation.patience(patience::for_data(least, data_bytes)),
            who: &self.scenario.servers[&self.cell.server].kind,
            interrupt: Some(self.interrupt),
        }
    }

    fn snapshot(
        &self,
        server: &dyn Server,
        layout: &Layout,
        shard: u32,
        data_sets: &mut DataSets,
        phases: &mut Phases<'_>,
    ) -> Result<PathBuf> {
        let Laboratory { scenario, cell, .. } = self;
        let spec = &scenario.servers[&cell.server];
        let workload = &scenario.workloads[&cell.workload];
        let recipe = Recipe {
            server_kind: &spec.kind,
            server_version: &self.versions[&cell.server],
            server_source: &spec.source,
            settings: server.load_settings(&spec.settings),
            data_set: workload.data_set(),
            shard,
            workload,
            seed: scenario.run.seed,
            mounts: layout.recipes(&scenario.stacks),
        };
        let load = Load {
            recipe,
            server,
            layout,
            stacks: &scenario.stacks,
            work_directory: self.work_directory,
            interrupt: self.interrupt,
        };
        data_sets.snapshot(&load, phases.progress)
    }
}

impl Attempt<'_, '_> {
    /// What the kernel, the storage and the further servers say about an error that was noticed.
    fn cause(&mut self, noticed: anyhow::Error) -> anyhow::Error {
        let error = self.further.cause(cause::of_storage(noticed, &mut self.mounts));
        self.memory.cause(error)
    }

    fn set_timing(&mut self, on: bool) -> Result<()> {
        self.mounts.set_timing(on)?;
        self.further.set_timing(on)
    }

    /// From the start of the server to its stop.
    fn run(&mut self) -> Result<()> {
        self.phases.enter("start")?;
        let Laboratory { scenario, cell, servers, work_directory, .. } = self.laboratory;
        let settings = &scenario.servers[&cell.server].settings;
        let instance = Instance {
            control_group: self.memory.group(0),
            changing: scenario.events.iter().flat_map(|event| event.change.settings()).cloned().collect(),
            ..instance(&self.mounts, &work_directory.join("trial"), settings, &self.phases.time)?
        };
        let server = &*servers[&cell.server];
        let running = self.further.start_first(server, &instance);
        let mut running = running.context("starting the server")?;
        let measured = self.measured(&mut *running, &server.circular_files(&instance));
        let (client, mut window) = measured.map_err(|error| cause::of_server(error, &mut *running))?;
        let client = match scenario.run.recovery {
            true => {
                drop(client);
                running = self.recovered(running, server, &instance, &mut window)?;
                None
            }
            false => Some(client),
        };
        let finished = self.finished(&mut *running, client, window);
        finished.map_err(|error| cause::of_server(error, &mut *running))
    }

    /// Kills the server and starts it again on the emulated storage, which it must read to be consistent.
    fn recovered(
        &mut self,
        mut running: Box<dyn Running>,
        server: &dyn Server,
        instance: &Instance,
        window: &mut Window,
    ) -> Result<Box<dyn Running>> {
        let Laboratory { interrupt, dilation, .. } = *self.laboratory;
        running.crash().context("killing the server")?;
        drop(running);
        self.phases.enter("recovery")?;
        let began = Instant::now();
        let mut running = server.start(instance).context("starting the server after it was killed")?;
        let ready = interrupt
            .kill_on_signal(running.process_id(), || running.wait_ready(dilation.patience(READY_PATIENCE)));
        ready.map_err(|error| cause::of_server(error, &mut *running))?;
        window.recovery_s = Some(dilation.dilated_s(began.elapsed().as_secs_f64()));
        Ok(running)
    }

    fn run_spec(&self, running: &mut dyn Running) -> RunSpec {
        let Laboratory { scenario, cell, .. } = self.laboratory;
        RunSpec {
            endpoint: running.endpoint(),
            further: self.further.shards(),
            workload: scenario.workloads[&cell.workload].clone(),
            seed: self.planned.seed,
            once: scenario.run.once,
            terminals_most: self.terminals_most(),
            tools_run_as: FOREIGN_TOOLS,
        }
    }

    /// From a server that was started to the end of the measured window.
    fn measured(
        &mut self,
        running: &mut dyn Running,
        circular_files: &[PathBuf],
    ) -> Result<(ClientProcess, Window)> {
        let laboratory = self.laboratory;
        let Laboratory { scenario, interrupt, .. } = laboratory;
        let server_id = running.process_id();
        interrupt
            .kill_on_signal(server_id, || running.wait_ready(laboratory.dilation.patience(READY_PATIENCE)))?;
        if scenario.run.start != StartState::Cold {
            warm_up::read_into_page_cache(circular_files)?;
        }
        if scenario.run.start == StartState::WarmFast {
            interrupt.kill_on_signal(server_id, || running.fill_cache())?;
        }
        let durability = self.ask(running)?;
        let server = &*laboratory.servers[&laboratory.cell.server];
        self.further.start(&Start {
            server,
            settings: &scenario.servers[&laboratory.cell.server].settings,
            state: scenario.run.start,
            work_directory: laboratory.work_directory,
            memory: &self.memory,
        })?;
        let run_spec = self.run_spec(running);
        if scenario.run.once && scenario.run.start == StartState::Warm {
            self.pass_before(&run_spec)?;
        }
        let rates = laboratory.layout().mounts.iter().map(|mount| scenario.stacks[&mount.stack].rates());
        self.phases.load = LoadFacts {
            terminals: waiting_terminals(&run_spec),
            durability: durability.clone(),
            rates: rates.collect(),
        };
        if !scenario.run.idle.is_zero() {
            self.phases.enter("idle")?;
            self.phases.pause(scenario.run.idle)?;
        }
        let probe = Probe::start(&run_spec.endpoint, laboratory.dilation);
        let mut client = ClientProcess::spawn(laboratory.program, &run_spec, &self.phases.time)?;
        let client_id = client.process_id();
        interrupt.kill_on_signal(client_id, || client.wait_ready(READY_PATIENCE))?;

        let WarmedUp { cache_turnovers, settling } = self.warm_up(&mut client, running, &durability)?;
        if let Some(probe) = probe {
            interrupt.kill_on_signal(server_id, || probe.end())?;
        }
        self.phases.enter("measure")?;
        let (mounts, further) = (&mut self.mounts, &mut self.further);
        let layout = laboratory.layout();
        let events = WindowEvents::of(scenario, layout, laboratory.dilation);
        let observed = Observed {
            mounts: &mut *mounts,
            further: &mut *further,
            running: &mut *running,
            trace_bytes: laboratory.traces.map(Traces::limit_bytes),
        };
        let mut window = self.phases.measure(&mut client, &scenario.run, layout, observed, events)?;
        window.durability = durability;
        (window.cache_turnovers, window.settling) = (cache_turnovers, settling);
        mounts.check()?;
        further.check()?;
        Ok((client, window))
    }

    /// From the end of the window to the stop of the server. Without a client, the server was killed.
    fn finished(
        &mut self,
        running: &mut dyn Running,
        client: Option<ClientProcess>,
        mut window: Window,
    ) -> Result<()> {
        let laboratory = self.laboratory;
        let Laboratory { interrupt, .. } = laboratory;
        let server_id = running.process_id();
        let run_spec = self.run_spec(running);
        let (mounts, further) = (&mut self.mounts, &mut self.further);
        self.phases.enter(if further.are_replicas() { "catch-up" } else { "verify" })?;
        mounts.set_timing(false)?;
        if let Some(client) = client {
            interrupt.kill_on_signal(client.process_id(), || client.stop())?;
        }
        if further.are_replicas() {
            further.catch_up(&mut window)?;
            self.phases.enter("verify")?;
        }
        let checks = self.verify(&run_spec, server_id)?;
        let (measured, mut warnings) = measurement::measurement(&window, checks)?;
        warnings.extend(laboratory.nearly_empty_disk());
        let seen = laboratory.other_runs.take_seen().into_iter();
        warnings.extend(seen.map(|run| Warning::OtherRun { title: run.title }));
        self.finding.measured = Some((measured, warnings));

        self.phases.enter("stop")?;
        let patience = laboratory.wait(STOP_PATIENCE).patience;
        self.further.stop(patience)?;
        interrupt.kill_on_signal(server_id, || running.discard(patience))?;
        self.keep_traces()
    }

    /// Terminals of the closed loop that an event can need.
    fn terminals_most(&self) -> Option<u32> {
        let Laboratory { scenario, cell, .. } = self.laboratory;
        let workload = scenario.workloads[&cell.workload].build_with_tools(FOREIGN_TOOLS).ok()?;
        let times = scenario.events.iter().filter_map(|event| match event.change {
            Change::Load { times } if workload.rate_per_s().is_none() => Some(times),
            _ => None,
        });
        let most = times.fold(0.0, f64::max);
        (most > 1.0).then(|| (f64::from(workload.terminals()) * most).round() as u32)
    }

    /// Asks the server for its settings, which the finding keeps, and returns the durability of its commits.
    fn ask(&mut self, running: &mut dyn Running) -> Result<Durability> {
        let Laboratory { scenario, cell, interrupt, .. } = self.laboratory;
        let mut names: Vec<String> = scenario.servers[&cell.server].settings.keys().cloned().collect();
        names.extend(self.further.told_settings());
        interrupt.kill_on_signal(running.process_id(), || {
            self.finding.settings = running.settings(&names)?;
            running.durability().context("asking the server for the settings of its logs")
        })
    }

    /// Runs the workload's checks on every server. A failed check is an error.
    fn verify(&mut self, run_spec: &RunSpec, server_id: u32) -> Result<Vec<Check>> {
        let workload: Arc<dyn Workload> = Arc::from(run_spec.workload.build_with_tools(FOREIGN_TOOLS)?);
        let wait = self.laboratory.wait(VERIFY_PATIENCE);
        let work = {
            let (workload, endpoint) = (workload.clone(), run_spec.endpoint.clone());
            move || workload.verify(&endpoint)
        };
        self.laboratory.interrupt.kill_on_signal(server_id, || {
            let mut checks = wait.for_work(work).context("verifying the database")?;
            checks.extend(self.further.verify(&workload, wait.patience)?);
            if let Some(failed) = checks.iter().find(|check| !check.passed) {
                bail!("the database is not consistent: {}: {}", failed.name, failed.detail);
            }
            Ok(checks)
        })
    }
}

/// What the host alone adds to timed answers, before the trial has a process that could disturb them.
fn timer_tail_us() -> Option<f64> {
    let tail = spindle_mount::bare_tail(HOST_ALONE_DELAY, HOST_ALONE_TIME).ok()?;
    Some(tail.as_secs_f64() * 1e6)
}

/// The number of terminals, if they do nothing but wait for answers.
fn waiting_terminals(spec: &RunSpec) -> Option<u32> {
    let workload = spec.workload.build_with_tools(spec.tools_run_as).ok()?;
    (!workload.pauses()).then(|| workload.terminals())
}

/// The context chain as one line.
fn one_sentence(error: &anyhow::Error) -> String {
    let text = causes(error);
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" / ")
}
