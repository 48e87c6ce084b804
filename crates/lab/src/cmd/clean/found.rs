//! What stands on the disk of Spindle's: snapshots, fetched servers, results. Only names that Spindle gives
//! are looked for, so a user's file beside them is safe.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use crate::host::other_runs;
use crate::host::private_directory::PrivateDirectory;
use crate::record::records_file;
use crate::run::{SNAPSHOTS, TRACES, clear_traces};
use crate::server::package;
use spindle_base::text::plural;

/// A younger unfinished download may still go on.
const DOWNLOAD_PATIENCE: Duration = Duration::from_secs(3600);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Snapshot,
    Server,
    Results,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Snapshot, Kind::Server, Kind::Results];

    pub(super) fn words(self) -> &'static str {
        match self {
            Kind::Snapshot => "snapshot",
            Kind::Server => "server",
            Kind::Results => "results",
        }
    }

    pub(super) fn counted(self, count: usize) -> String {
        match self {
            Kind::Results => format!("results of {}", plural(count, "run")),
            _ => plural(count, self.words()),
        }
    }
}

#[derive(Debug, Serialize)]
pub(super) struct Found {
    pub kind: Kind,
    pub path: PathBuf,
    /// Allocated on the disk.
    pub size_bytes: u64,
    /// Seconds since the last use.
    pub unused_s: u64,
    /// Why it is not removed.
    pub kept: Option<String>,
    /// The directory of the run that it belongs to.
    #[serde(skip)]
    run: Option<PathBuf>,
}

impl Found {
    pub(super) fn unused_for(&self) -> Duration {
        Duration::from_secs(self.unused_s)
    }

    /// # Errors
    /// It is in use by now, or belongs to somebody else.
    pub(super) fn remove(&self) -> Result<()> {
        let removing = || format!("removing {}", self.path.display());
        // A run that begins now is refused until the lock is released.
        let _lock = match &self.run {
            Some(run) => {
                Some(records_file::hold(run)?.with_context(|| format!("{} is in use", run.display()))?)
            }
            None => None,
        };
        match self.kind {
            Kind::Results => {
                for name in records_file::NAMES {
                    match fs::remove_file(self.path.join(name)) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            Err(error).with_context(removing)?;
                        }
                        _ => {}
                    }
                }
                clear_traces(&self.path).with_context(removing)
            }
            Kind::Snapshot | Kind::Server => {
                if PrivateDirectory::open(&self.path)?.is_none() {
                    bail!("{} was removed meanwhile", self.path.display());
                }
                fs::remove_dir_all(&self.path).with_context(removing)
            }
        }
    }
}

/// Everything in these directories of results, and in the cache of servers.
///
/// # Errors
/// A directory cannot be read.
pub(super) fn all(directories: &[PathBuf]) -> Result<Vec<Found>> {
    let active = other_runs::all()?;
    let mut all = Vec::new();
    for directory in directories {
        let runs = if is_run(directory) { vec![directory.clone()] } else { entries(directory)? };
        for run in runs.into_iter().filter(|run| is_run(run)) {
            of_run(&run, &mut all);
        }
    }
    for path in package::cached()? {
        let mut server = found(Kind::Server, &path, &[&path], None);
        let is_draft = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if is_draft && server.unused_for() < DOWNLOAD_PATIENCE {
            server.kept = Some("may be a download that goes on".to_owned());
        }
        // A run starts its server again for each trial.
        server.kept = server.kept.or_else(|| Some(format!("{} may use it", active.first()?.words())));
        all.push(server);
    }
    Ok(all)
}

/// Removes directories of runs in which nothing is left but what Spindle makes again.
pub(super) fn remove_empty_runs(removed: &[Found]) {
    for run in removed.iter().filter_map(|found| found.run.as_ref()) {
        // Both fail for a directory that is not empty.
        let _ = fs::remove_dir(run.join(SNAPSHOTS));
        if entries(run).is_ok_and(|left| left.iter().all(|path| path.ends_with(records_file::LOCK_NAME))) {
            let _ = fs::remove_file(run.join(records_file::LOCK_NAME));
            let _ = fs::remove_dir(run);
        }
    }
}

fn is_run(directory: &Path) -> bool {
    directory.join(records_file::FILE_NAME).is_file() || directory.join(SNAPSHOTS).is_dir()
}

/// Paths in a directory; none if it is missing.
fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let reading = || format!("reading {}", directory.display());
    match fs::read_dir(directory) {
        Ok(entries) => {
            entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>().with_context(reading)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(reading),
    }
}

fn of_run(run: &Path, all: &mut Vec<Found>) {
    let kept = match PrivateDirectory::open(run) {
        Err(_) => Some("belongs to another user".to_owned()),
        Ok(_) if records_file::is_held(run) => Some("a run uses it".to_owned()),
        Ok(_) => None,
    };
    let (files, traces) = (records_file::NAMES.map(|name| run.join(name)), run.join(TRACES));
    let mut files: Vec<&Path> = files.iter().map(PathBuf::as_path).filter(|path| path.is_file()).collect();
    if traces.is_dir() && !traces.is_symlink() {
        files.push(&traces);
    }
    if !files.is_empty() {
        all.push(Found { kept: kept.clone(), ..found(Kind::Results, run, &files, Some(run)) });
    }
    // Those of another user are closed to us.
    let snapshots = entries(&run.join(SNAPSHOTS)).unwrap_or_default();
    for snapshot in snapshots.iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        all.push(Found { kept: kept.clone(), ..found(Kind::Snapshot, snapshot, &[snapshot], Some(run)) });
    }
}

fn found(kind: Kind, path: &Path, parts: &[&Path], run: Option<&Path>) -> Found {
    let (mut size_bytes, mut last_use) = (0, SystemTime::UNIX_EPOCH);
    for part in parts {
        walk(part, true, &mut |metadata, is_root| {
            size_bytes += metadata.blocks() * 512;
            // A directory is read by whoever lists it, and unpacked files have the times of their makers.
            let read = metadata.accessed().ok().filter(|_| metadata.is_file());
            let written = metadata.modified().ok().filter(|_| is_root || metadata.is_file());
            last_use = [read, written].into_iter().flatten().fold(last_use, SystemTime::max);
        });
    }
    let unused_s = SystemTime::now().duration_since(last_use).unwrap_or_default().as_secs();
    Found { kind, path: path.to_owned(), size_bytes, unused_s, kept: None, run: run.map(Path::to_owned) }
}

/// Visits everything from the root on. Links are not followed. What disappears meanwhile is left out, and so
/// is what another user has closed.
fn walk(path: &Path, is_root: bool, visit: &mut dyn FnMut(&Metadata, bool)) {
    let Ok(metadata) = fs::symlink_metadata(path) else { return };
    visit(&metadata, is_root);
    if metadata.is_dir() {
        entries(path).unwrap_or_default().iter().for_each(|entry| walk(entry, false, visit));
    }
}
