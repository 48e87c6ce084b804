//! The storage under a trial, as the runner sees it: the emulated disk, or a plain directory for the mock.

use std::fmt::Debug;
use std::path::Path;

use anyhow::Result;
use spindle_mount::Statistics;

/// One volume mount that is up. Dropping it takes everything down again.
pub trait Volume: Debug {
    /// Where the file system is mounted.
    fn path(&self) -> &Path;

    /// With the physics off, requests are answered at memory speed.
    fn set_physics(&mut self, on: bool) -> Result<()>;

    /// Cumulative since the volume came up; take differences. `None` when nothing is emulated.
    fn statistics(&mut self) -> Result<Option<Statistics>>;

    /// The emulator's process, for CPU accounting.
    fn process_id(&self) -> Option<u32>;

    /// Unmounts, keeps what is stored as an immutable image in `directory` and takes the volume down.
    fn into_snapshot(self: Box<Self>, directory: &Path) -> Result<()>;

    /// Unmounts and forgets what was written.
    fn down(self: Box<Self>) -> Result<()>;
}
