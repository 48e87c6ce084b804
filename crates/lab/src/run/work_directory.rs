//! The directory for sockets, logs and process ids of a run. It is outside the storage under test, has a path
//! short enough for a unix socket, and is open to the server's own user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use anyhow::{Context, Result};
use rustix::process::geteuid;
use spindle_base::proc;
use tempfile::TempDir;

const PREFIX: &str = "spindle-run-";

/// Removed when dropped; the next run removes any remains.
#[derive(Debug)]
pub(super) struct WorkDirectory(TempDir);

impl WorkDirectory {
    pub(super) fn make() -> Result<WorkDirectory> {
        // An unpredictable name, so that nobody can create the directory first.
        let made = tempfile::Builder::new()
            .prefix(&format!("{PREFIX}{}-", std::process::id()))
            // Others may pass through, as the server's user must, but not list it.
            .permissions(fs::Permissions::from_mode(0o711))
            .tempdir();
        made.map(WorkDirectory).context("making a directory for sockets and logs")
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

/// Removes the directories of killed runs. Errors are ignored, because directories of other users are not
/// ours to judge.
pub fn clear_leftovers() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let is_gone = |id: u32| !proc::is_there(id) || id == std::process::id();
        // Metadata of the entry itself: a link is not a directory.
        let is_ours = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == geteuid().as_raw());
        if entry.file_name().to_str().and_then(process_id).is_some_and(is_gone) && is_ours {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Process id of the run that made a directory of this name.
fn process_id(name: &str) -> Option<u32> {
    let rest = name.strip_prefix(PREFIX)?;
    rest.split_once('-').map_or(rest, |(id, _)| id).parse().ok()
}
