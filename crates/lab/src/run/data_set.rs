//! The database that trials start from. It is loaded once with the timing off, shut down cleanly, and kept as
//! a snapshot.
//!
//! Snapshots lie next to the records, named by a hash of everything that shaped them. A resumed run loads
//! nothing again, and trials that differ only in memory or commit settings share a snapshot.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use spindle_load::WorkloadSpec;
use spindle_mount::Floor;

use super::{cause, instance};
use crate::host::interrupt::Interrupt;
use crate::host::patience::{self, Wait};
use crate::host::private_directory::PrivateDirectory;
use crate::host::progress::Progress;
use crate::host::trial_time::TrialTime;
use crate::scenario::content_hash;
use crate::server::{FOREIGN_TOOLS, Running, Server, Source, catalog};
use crate::stack::StackSpec;
use crate::stack::layout::{Layout, MountRecipe};
use crate::volume::mounts::{Mounts, MountsRequest};
use spindle_base::text::causes;

const READY_PATIENCE: Duration = Duration::from_secs(120);
/// A clean shutdown writes every dirty page. This is quick with the timing off, but the pool may be large.
const STOP_PATIENCE: Duration = Duration::from_secs(300);

const LOAD_PATIENCE: Duration = Duration::from_secs(1800);
pub(crate) const SNAPSHOTS: &str = "snapshots";
/// Mode of a directory with a database.
const CLOSED: u32 = 0o700;

fn close(directory: &Path) -> Result<()> {
    fs::set_permissions(directory, fs::Permissions::from_mode(CLOSED))
        .with_context(|| format!("closing {} to other users", directory.display()))
}

/// Checks before any work that existing snapshots are ours.
///
/// # Errors
/// [`spindle_base::Mistake`].
pub(super) fn check_directory(results: &Path) -> Result<()> {
    let directory = results.join(SNAPSHOTS);
    if PrivateDirectory::open(&directory)?.is_none() {
        return Ok(());
    }
    let entries = fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))?;
    for entry in entries {
        PrivateDirectory::open(&entry?.path())?;
    }
    Ok(())
}

/// Everything that shapes the files of a database.
#[derive(Debug, Serialize)]
pub(super) struct Recipe<'a> {
    pub server_kind: &'a str,
    pub server_version: &'a str,
    /// The program that makes the files, or the adapter's commands.
    #[serde(skip_serializing_if = "Source::is_installed")]
    pub server_source: &'a Source,
    pub settings: BTreeMap<String, String>,
    /// See [`WorkloadSpec::data_set`].
    pub data_set: String,
    /// Of the servers that hold the database together; see [`spindle_load::Declared::shards`].
    #[serde(skip_serializing_if = "is_first")]
    pub shard: u32,
    #[serde(skip)]
    pub workload: &'a WorkloadSpec,
    pub seed: u64,
    pub mounts: Vec<MountRecipe<'a>>,
}

fn is_first(shard: &u32) -> bool {
    *shard == 0
}

#[derive(Debug)]
pub(super) struct DataSets {
    directory: PathBuf,
    /// Failed loads. They are not repeated in the same run, because each later trial would wait for the same
    /// failure.
    failures: BTreeMap<String, String>,
}

impl DataSets {
    pub(super) fn open(results: &Path) -> Result<DataSets> {
        // Absolute, because the emulator is another process.
        let directory =
            std::path::absolute(results.join(SNAPSHOTS)).context("looking for the working directory")?;
        PrivateDirectory::make(&directory, CLOSED)?;
        // An earlier version left it readable by others.
        close(&directory)?;
        Ok(DataSets { directory, failures: BTreeMap::new() })
    }

    /// The directory of the snapshot, which is made now if missing.
    pub(super) fn snapshot(&mut self, load: &Load<'_>, progress: &mut Progress) -> Result<PathBuf> {
        let key = content_hash(&load.recipe);
        let directory = self.directory.join(&key);
        if PrivateDirectory::open(&directory)?.is_some() {
            // The last use, for `spindle clean`: not every file system keeps times of access.
            let _ = File::open(&directory).and_then(|opened| opened.set_modified(SystemTime::now()));
            return Ok(directory);
        }
        if let Some(failure) = self.failures.get(&key) {
            return Err(anyhow!("{failure}"));
        }
        let draft = self.directory.join(format!("{key}.part"));
        if fs::symlink_metadata(&draft).is_ok() {
            fs::remove_dir_all(&draft).with_context(|| format!("removing {}", draft.display()))?;
        }
        let result = load.run(&draft, progress).context("loading the database");
        if result.is_err() {
            // Frees space if the disk is full. The next run removes any remains.
            let _ = fs::remove_dir_all(&draft);
        }
        load.interrupt.check()?;
        match result {
            // The final name appears only once the snapshot is complete.
            Ok(()) => close(&draft)
                .and_then(|()| Ok(fs::rename(&draft, &directory)?))
                .with_context(|| format!("moving {} to {}", draft.display(), directory.display()))?,
            Err(error) => {
                self.failures.insert(key, causes(&error));
                return Err(error);
            }
        }
        progress.load_finished();
        Ok(directory)
    }
}

/// The load of a database, and the storage for it.
pub(super) struct Load<'a> {
    pub recipe: Recipe<'a>,
    pub server: &'a dyn Server,
    pub layout: &'a Layout,
    pub stacks: &'a BTreeMap<String, StackSpec>,
    pub work_directory: &'a Path,
    pub interrupt: &'a Interrupt,
}

impl Load<'_> {
    fn run(&self, snapshot: &Path, progress: &mut Progress) -> Result<()> {
        progress.activity("making an empty database".to_owned());
        let mut mounts = Mounts::up(&MountsRequest {
            layout: self.layout,
            stacks: self.stacks,
            plain_directories: catalog::find(self.recipe.server_kind).is_some_and(|kind| kind.is_for_tests),
            snapshot: None,
            work_directory: self.work_directory,
            seed: self.recipe.seed,
            owner: "",
            mount_count: self.layout.mounts.len(),
            time: &TrialTime::real(),
            // The timing stays off.
            floor: Some(Floor::default()),
        })
        .context("bringing the storage up")?;
        mounts.set_timing(false)?;
        self.fill(&mounts, progress).map_err(|error| cause::of_storage(error, &mut mounts))?;
        mounts.into_snapshot(snapshot).context("keeping the loaded database as a snapshot")
    }

    /// Makes the database on the storage and shuts it down cleanly.
    fn fill(&self, mounts: &Mounts, progress: &mut Progress) -> Result<()> {
        let instance =
            instance(mounts, &self.work_directory.join("load"), &self.recipe.settings, &TrialTime::real())?;
        for directory in instance.class_directories.values().chain([&instance.data_directory]) {
            fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        }
        // The server's own programs are killed by a signal.
        self.interrupt.kill_on_signal(0, || self.server.prepare(&instance))?;
        self.interrupt.check()?;
        let mut running = self.server.start(&instance).context("starting the server")?;
        let filled = self.interrupt.kill_on_signal(running.process_id(), || {
            running.wait_ready(READY_PATIENCE)?;
            self.fill_server(&*running, progress)?;
            progress.activity("shutting the loaded database down".to_owned());
            running.stop(self.patience(STOP_PATIENCE, 1))
        });
        self.interrupt.check()?;
        filled.map_err(|error| cause::of_server(error, &mut *running))
    }

    fn fill_server(&self, running: &dyn Running, progress: &mut Progress) -> Result<()> {
        let workload = self.recipe.workload.build_with_tools(FOREIGN_TOOLS)?;
        let Recipe { seed, shard, .. } = self.recipe;
        let (endpoint, interrupt) = (running.endpoint(), self.interrupt.clone());
        let (sender, told) = channel();
        let load = move || {
            // A foreign tool is a child of this thread.
            interrupt.kill_on_signal(0, || {
                workload.load_shard(&endpoint, shard, seed, &mut |loaded| {
                    // The receiver is gone if the load was given up.
                    let _ = sender.send(loaded);
                    // For loads without a process to kill: SQLite, and a server that runs already.
                    Ok(interrupt.check()?)
                })
            })
        };
        let wait = Wait {
            patience: self.patience(LOAD_PATIENCE, 4),
            who: self.recipe.server_kind,
            interrupt: Some(self.interrupt),
        };
        let show = || {
            if let Some(loaded) = told.try_iter().last() {
                let share = loaded.rows_done as f64 / loaded.rows_total.max(1) as f64;
                progress.activity(format!("loading the database, {:.0} %", share * 100.0));
            }
        };
        wait.for_work_with(show, load)
    }

    /// Patience with work that goes through all data `times` times.
    fn patience(&self, least: Duration, times: u64) -> Duration {
        let data_bytes = self.recipe.workload.data().map_or(0, |data| data.bytes);
        patience::for_data(least, data_bytes.saturating_mul(times))
    }
}
