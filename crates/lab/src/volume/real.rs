//! The real disk under a trial. Its timing is its own and cannot be switched off. Its snapshot is a copy of
//! the files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use spindle_mount::real::{Place, RealDisk, write_back_and_forget};

use crate::volume::Volume;
use crate::volume::plain_directory::{FILES, copy};

#[derive(Debug)]
pub struct RealVolume {
    disk: RealDisk,
}

impl RealVolume {
    /// # Errors
    /// Any failure to use the disk, with the failed step.
    pub fn up(name: &str, place: &Place, snapshot: Option<&Path>) -> Result<RealVolume> {
        let disk = RealDisk::up(name, place)?;
        if let Some(snapshot) = snapshot {
            // The dot copies into the existing directory.
            copy(&snapshot.join(FILES).join("."), disk.path())?;
            write_back_and_forget(disk.path())?;
        }
        Ok(RealVolume { disk })
    }
}

impl Volume for RealVolume {
    fn path(&self) -> &Path {
        self.disk.path()
    }

    /// The kernel reports lost writes of a real disk to the process that wrote them.
    fn check(&mut self) -> Result<()> {
        let path = self.disk.path();
        let status = rustix::fs::statvfs(path).with_context(|| format!("looking at {}", path.display()))?;
        ensure!(status.f_bavail > 0, "the file system of {} is full", path.display());
        Ok(())
    }

    fn block_device(&self) -> Option<&Path> {
        self.disk.device()
    }

    fn into_snapshot(self: Box<Self>, directory: &Path) -> Result<()> {
        let files = directory.join(FILES);
        fs::create_dir_all(&files).with_context(|| format!("making {}", files.display()))?;
        copy(&self.disk.path().join("."), &files)?;
        self.disk.down()
    }

    fn down(self: Box<Self>) -> Result<()> {
        self.disk.down()
    }
}
