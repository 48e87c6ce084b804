//! From a client that runs to a load that can be measured.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use spindle_load::RunSpec;

use super::Attempt;
use crate::observe::warmth::{Warmth, cache_bytes};
use crate::record::{Settling, StartState};
use crate::run::client::ClientProcess;
use crate::run::further::READY_PATIENCE;
use crate::scenario::{Settle, WarmUp};
use crate::server::Running;
use crate::server::telemetry::Durability;

/// What is known of the time before a window.
#[derive(Debug)]
pub(super) struct WarmedUp {
    /// [`crate::record::Measurement::cache_turnovers`].
    pub cache_turnovers: Option<f64>,
    pub settling: Option<Settling>,
}

impl Attempt<'_, '_> {
    /// Before a warm start, fixed work that only reads is done once by a client of its own.
    pub(super) fn pass_before(&mut self, run_spec: &RunSpec) -> Result<()> {
        let laboratory = self.laboratory;
        let interrupt = laboratory.interrupt;
        self.phases.enter("pass before")?;
        self.set_timing(true)?;
        let mut client = ClientProcess::spawn(laboratory.program, run_spec, &self.phases.time)?;
        let id = client.process_id();
        interrupt.kill_on_signal(id, || client.wait_ready(READY_PATIENCE))?;
        let at_most = laboratory.scenario.run.measure;
        let pass = interrupt.kill_on_signal(id, || client.measure(at_most, &mut |_| ()));
        pass.context("the pass before the measured one")?;
        interrupt.kill_on_signal(id, || client.stop())
    }

    /// Returns once the timing is on and the load is the one to be measured, or the time to wait for that is
    /// over.
    pub(super) fn warm_up(
        &mut self,
        client: &mut ClientProcess,
        running: &mut dyn Running,
        durability: &Durability,
    ) -> Result<WarmedUp> {
        let run = &self.laboratory.scenario.run;
        self.phases.enter("warm-up")?;
        let is_fast = run.start == StartState::WarmFast;
        self.set_timing(!is_fast)?;
        let (telemetry, memory_bytes) = (running.telemetry(), self.laboratory.memory_bytes());
        let cache_bytes = cache_bytes(telemetry, &self.finding.settings, durability, memory_bytes);
        let mut warmth = Warmth::begin(cache_bytes.filter(|_| run.warms_up()), &self.mounts.samples()?);
        match run.warm_up {
            WarmUp::For(duration) => self.phases.watch(client, duration)?,
            WarmUp::Until { at_most, .. } => {
                self.phases.explain(&run.warm_up.words());
                self.phases.until_warm(client, at_most, &mut warmth, &mut self.mounts)?;
            }
        }
        let settling = self.settle(client, running, is_fast)?;
        Ok(WarmedUp { cache_turnovers: warmth.turnovers(&self.mounts.samples()?), settling })
    }

    fn settle(
        &mut self,
        client: &mut ClientProcess,
        running: &mut dyn Running,
        is_fast: bool,
    ) -> Result<Option<Settling>> {
        let run = &self.laboratory.scenario.run;
        self.phases.enter("settle")?;
        if is_fast {
            // What a fast disk let the server write to the page cache does not come back as the load of a
            // slow one.
            self.mounts.write_back()?;
            self.further.write_back()?;
        }
        self.set_timing(true)?;
        match run.settle {
            Settle::For(duration) => self.phases.watch(client, duration).map(|()| None),
            Settle::Until { at_most, .. } => {
                self.phases.explain(&run.settle.words());
                let layout = self.laboratory.layout();
                let (mounts, further) = (&mut self.mounts, &mut self.further);
                let settling = self.phases.settle(client, at_most, layout, mounts, further, running);
                settling.map(Some)
            }
        }
    }
}

/// As after hours of work; see [`crate::server::Server::circular_files`].
pub(in crate::run) fn read_into_page_cache(files: &[PathBuf]) -> Result<()> {
    for path in files {
        let reading = || format!("reading {} into the page cache", path.display());
        let mut file = File::open(path).with_context(reading)?;
        io::copy(&mut file, &mut io::sink()).with_context(reading)?;
    }
    Ok(())
}
