//! The smallest volume: a directory on the machine's own disk. Nothing is emulated; used by the mock server.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::volume::Volume;

/// Inside a snapshot directory.
pub(crate) const FILES: &str = "files";

#[derive(Debug)]
pub struct PlainDirectory {
    path: PathBuf,
}

impl PlainDirectory {
    /// An empty directory at `path`, or a copy of a snapshot. Any previous content is removed.
    pub fn up(path: &Path, snapshot: Option<&Path>) -> Result<PlainDirectory> {
        remove(path)?;
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).with_context(|| format!("making {}", parent.display()))?;
        }
        match snapshot {
            None => fs::create_dir(path).with_context(|| format!("making {}", path.display()))?,
            Some(snapshot) => copy(&snapshot.join(FILES), path)?,
        }
        Ok(PlainDirectory { path: path.to_owned() })
    }
}

pub(crate) fn copy(from: &Path, to: &Path) -> Result<()> {
    let output = Command::new("cp").arg("--archive").args([from, to]).output().context("starting cp")?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        bail!("copying {} to {}: {}", from.display(), to.display(), message.trim());
    }
    Ok(())
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", path.display()))
        }
        _ => Ok(()),
    }
}

impl Volume for PlainDirectory {
    fn path(&self) -> &Path {
        &self.path
    }

    fn into_snapshot(self: Box<Self>, directory: &Path) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| format!("making {}", directory.display()))?;
        let files = directory.join(FILES);
        fs::rename(&self.path, &files)
            .with_context(|| format!("moving {} to {}", self.path.display(), files.display()))
    }

    fn down(self: Box<Self>) -> Result<()> {
        remove(&self.path)
    }
}

impl Drop for PlainDirectory {
    fn drop(&mut self) {
        // After a snapshot the directory is already gone; after a failure the next start removes it.
        let _ = remove(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_copy_of_a_snapshot_starts_the_same_and_goes_its_own_way() {
        let directory = tempfile::tempdir().unwrap();
        let (path, snapshot) = (directory.path().join("volume"), directory.path().join("snapshot"));
        let volume = Box::new(PlainDirectory::up(&path, None).unwrap());
        fs::write(volume.path().join("table"), "loaded").unwrap();
        volume.into_snapshot(&snapshot).unwrap();
        for _ in 0..2 {
            let volume = Box::new(PlainDirectory::up(&path, Some(&snapshot)).unwrap());
            assert_eq!(fs::read_to_string(volume.path().join("table")).unwrap(), "loaded");
            fs::write(volume.path().join("table"), "changed").unwrap();
            volume.down().unwrap();
            assert!(!path.exists());
        }
    }
}
