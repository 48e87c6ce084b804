//! Where a run keeps sockets, logs and process ids: outside the storage under test, short enough for the path of a
//! unix socket, and open to the server's own user.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

const PREFIX: &str = "spindle-run-";

/// Removed when dropped.
#[derive(Debug)]
pub(super) struct WorkDirectory(PathBuf);

impl WorkDirectory {
    pub(super) fn make() -> Result<WorkDirectory> {
        let path = std::env::temp_dir().join(format!("{PREFIX}{}", std::process::id()));
        // Others may pass through, which the server's user needs, and not look.
        fs::DirBuilder::new()
            .mode(0o711)
            .create(&path)
            .with_context(|| format!("making {}", path.display()))?;
        Ok(WorkDirectory(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        // What stays is removed by the next run.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Removes the directories of runs that were killed. Others than our own are not ours to judge, so errors are passed over.
pub fn clear_leftovers() {
    let Ok(entries) = fs::read_dir(std::env::temp_dir()) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process_id = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.parse::<u32>().ok());
        let is_gone = |id: u32| !Path::new("/proc").join(id.to_string()).exists() || id == std::process::id();
        if process_id.is_some_and(is_gone) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
