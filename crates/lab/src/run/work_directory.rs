//! Where a run keeps sockets, logs and process ids: outside the storage under test, short enough for the path
//! of a unix socket, and open to the server's own user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::process::geteuid;
use spindle_base::proc;
use tempfile::TempDir;

const PREFIX: &str = "spindle-run-";

/// Removed when dropped; what stays is removed by the next run.
#[derive(Debug)]
pub(super) struct WorkDirectory(TempDir);

impl WorkDirectory {
    pub(super) fn make() -> Result<WorkDirectory> {
        // A name that nobody can plant a directory under.
        let made = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            // Others may pass through, which the server's user needs, and not look.
            .permissions(fs::Permissions::from_mode(0o711))
            .tempdir();
        made.map(WorkDirectory).context("making a directory for sockets and logs")
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Removes the directories of runs that were killed. Others than our own are not ours to judge, so errors are
/// passed over.
pub fn clear_leftovers() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let is_gone = |id: u32| !proc::is_there(id) || id == std::process::id();
        // Of the entry itself: a link is no directory.
        let is_ours = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if entry.file_name().to_str().and_then(process_id).is_some_and(is_gone) && is_ours {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Of the run that made a directory of this name.
fn process_id(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.split_once('-').map_or(rest, |(id, _)| id).parse().ok()
}
