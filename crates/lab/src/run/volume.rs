//! Which storage a trial runs on.

use std::path::Path;

use anyhow::Result;

use crate::plain_directory::PlainDirectory;
use crate::profile_file::StackSpec;
use crate::storage::{self, Volume, VolumeRequest};

/// The mock server has no use for a disk; it gets a directory, so that the whole pipeline runs anywhere in milliseconds.
pub(super) fn bring_up(
    server_kind: &str,
    stack: &StackSpec,
    snapshot: Option<&Path>,
    work_directory: &Path,
    seed: u64,
) -> Result<Box<dyn Volume>> {
    match server_kind {
        "mock" => Ok(Box::new(PlainDirectory::up(&work_directory.join("volume"), snapshot)?)),
        _ => storage::bring_up(&VolumeRequest { stack, snapshot, work_directory, seed }),
    }
}
