//! The database that trials start from: loaded once with the physics off, shut down cleanly, kept as a snapshot.
//!
//! Snapshots lie next to the records under a hash of everything that shaped them, so a resumed run loads nothing again
//! and trials that differ only in memory or commit settings share one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use spindle_load::WorkloadSpec;

use super::{cause, volume};
use crate::interrupt::Interrupt;
use crate::profile_file::StackSpec;
use crate::progress::Progress;
use crate::scenario::content_hash;
use crate::server::{Instance, Running, Server};
use crate::storage::Volume;

const READY_PATIENCE: Duration = Duration::from_secs(120);
/// A clean shutdown writes every dirty page; with the physics off that is quick, but the pool may be large.
const STOP_PATIENCE: Duration = Duration::from_secs(300);

/// Everything that shapes the files of a database.
#[derive(Debug, Serialize)]
pub(super) struct Recipe<'a> {
    pub server_kind: &'a str,
    pub server_version: &'a str,
    pub settings: BTreeMap<String, String>,
    pub workload: &'a WorkloadSpec,
    pub seed: u64,
    pub file_system: &'a str,
    pub size_bytes: u64,
}

#[derive(Debug)]
pub(super) struct DataSets {
    directory: PathBuf,
    /// Loads that failed are not tried again in the same run: the next trial would wait for the same failure.
    failures: BTreeMap<String, String>,
}

impl DataSets {
    pub(super) fn open(results: &Path) -> Result<DataSets> {
        // Absolute, because the emulator is another process.
        let directory =
            std::path::absolute(results.join("snapshots")).context("looking for the working directory")?;
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
        Ok(DataSets { directory, failures: BTreeMap::new() })
    }

    /// The directory of the snapshot, made now if need be.
    pub(super) fn snapshot(
        &mut self,
        recipe: &Recipe<'_>,
        server: &dyn Server,
        stack: &StackSpec,
        work_directory: &Path,
        interrupt: &Interrupt,
        progress: &mut Progress,
    ) -> Result<PathBuf> {
        let key = content_hash(recipe);
        let directory = self.directory.join(&key);
        if directory.exists() {
            return Ok(directory);
        }
        if let Some(failure) = self.failures.get(&key) {
            return Err(anyhow!("{failure}"));
        }
        let draft = self.directory.join(format!("{key}.part"));
        if draft.exists() {
            fs::remove_dir_all(&draft).with_context(|| format!("removing {}", draft.display()))?;
        }
        let load = Load { recipe, server, stack, work_directory, interrupt };
        let result = load.run(&draft, progress).context("loading the database");
        interrupt.check()?;
        match result {
            // The name appears only when the snapshot is whole.
            Ok(()) => fs::rename(&draft, &directory)
                .with_context(|| format!("moving {} to {}", draft.display(), directory.display()))?,
            Err(error) => {
                self.failures.insert(key, format!("{error:#}"));
                return Err(error);
            }
        }
        progress.load_finished();
        Ok(directory)
    }
}

struct Load<'a> {
    recipe: &'a Recipe<'a>,
    server: &'a dyn Server,
    stack: &'a StackSpec,
    work_directory: &'a Path,
    interrupt: &'a Interrupt,
}

impl Load<'_> {
    fn run(&self, snapshot: &Path, progress: &mut Progress) -> Result<()> {
        progress.activity("making an empty database".to_owned());
        let mut volume = volume::bring_up(
            self.recipe.server_kind,
            self.stack,
            None,
            self.work_directory,
            self.recipe.seed,
        )
        .context("bringing the storage up")?;
        self.fill(&*volume, progress).map_err(|error| cause::of_storage(error, &mut *volume))?;
        volume.into_snapshot(snapshot).context("keeping the loaded database as a snapshot")
    }

    /// Makes the database on the storage, and shuts it down cleanly.
    fn fill(&self, volume: &dyn Volume, progress: &mut Progress) -> Result<()> {
        let instance = Instance {
            data_directory: volume.path().join("data"),
            runtime_directory: self.work_directory.join("load"),
            settings: self.recipe.settings.clone(),
        };
        for directory in [&instance.data_directory, &instance.runtime_directory] {
            fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        }
        self.server.prepare(&instance)?;
        self.interrupt.check()?;
        let mut running = self.server.start(&instance).context("starting the server")?;
        let filled = self.interrupt.kill_on_signal(running.process_id(), || {
            running.wait_ready(READY_PATIENCE)?;
            self.fill_server(&*running, progress)?;
            progress.activity("shutting the loaded database down".to_owned());
            running.stop(STOP_PATIENCE)
        });
        self.interrupt.check()?;
        filled.map_err(|error| cause::of_server(error, &mut *running))
    }

    fn fill_server(&self, running: &dyn Running, progress: &mut Progress) -> Result<()> {
        let workload = self.recipe.workload.build()?;
        workload.load(&running.endpoint(), self.recipe.seed, &mut |loaded| {
            let share = loaded.rows_done as f64 / loaded.rows_total.max(1) as f64;
            progress.activity(format!("loading the database, {:.0} %", share * 100.0));
        })
    }
}
