//! Directories and files that no other user can have prepared. A run as root must not write or read through a
//! name that another user planted in the results directory.
//!
//! A directory is held open. Its files are opened relative to it and never through a symbolic link, so the
//! checked file is the one in use.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;

use spindle_base::Mistake;

/// Mode bits that let the group or others write.
const OTHERS_WRITE: u32 = 0o022;

#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    directory: OwnedFd,
}

impl PrivateDirectory {
    /// Opens the directory, and creates it with this mode if it is missing, with its parents.
    ///
    /// # Errors
    /// [`Mistake`] when it belongs to another user, when others may write in it, or when it is a symbolic
    /// link.
    pub(crate) fn make(path: &Path, mode: u32) -> Result<PrivateDirectory> {
        let making = || format!("making {}", path.display());
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(parent).with_context(making)?;
        }
        match fs::DirBuilder::new().mode(mode).create(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error).with_context(making)?,
            _ => Self::open(path)?.ok_or_else(|| anyhow!("{} was removed meanwhile", path.display())),
        }
    }

    /// `None` if nothing exists at the path.
    pub(crate) fn open(path: &Path) -> Result<Option<PrivateDirectory>> {
        // `components` drops a trailing slash, which would follow a symbolic link.
        let path: PathBuf = path.components().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = match rustix::fs::open(&path, flags, Mode::empty()) {
            Ok(directory) => directory,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP | Errno::NOTDIR) => {
                let is_link = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
                let words = if is_link { LINK } else { "is not a directory" };
                return Err(refusal(&path, words).into());
            }
            Err(error) => return Err(error).with_context(|| format!("opening {}", path.display())),
        };
        let status =
            rustix::fs::fstat(&directory).with_context(|| format!("looking at {}", path.display()))?;
        check_owner(&path, status.st_uid)?;
        if status.st_mode & OTHERS_WRITE != 0 {
            let words = format!(
                "may be written by other users (mode {:o}); close it with `chmod go-w`, or name another place",
                status.st_mode & 0o7777
            );
            return Err(refusal(&path, &words).into());
        }
        Ok(Some(PrivateDirectory { path, directory }))
    }

    /// Opens a file for reading and appending. A missing file is created; its mode follows the umask.
    pub(crate) fn file(&self, name: &str) -> Result<File> {
        let path = self.path.join(name);
        // NONBLOCK, because opening a pipe in its place could block for ever.
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened =
            rustix::fs::openat(&self.directory, name, flags | OFlags::CLOEXEC, Mode::from_raw_mode(0o666));
        let file = match opened {
            Ok(file) => file,
            Err(Errno::LOOP) => return Err(refusal(&path, LINK).into()),
            Err(error) => return Err(error).with_context(|| format!("opening {}", path.display())),
        };
        let status = rustix::fs::fstat(&file).with_context(|| format!("looking at {}", path.display()))?;
        check_file(&path, &status)?;
        Ok(File::from(file))
    }

    /// Fails as [`PrivateDirectory::file`] and [`PrivateDirectory::replace`] would, and creates nothing.
    pub(crate) fn check_file(&self, name: &str) -> Result<()> {
        let path = self.path.join(name);
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) => Ok(check_file(&path, &status)?),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error).with_context(|| format!("looking at {}", path.display())),
        }
    }

    /// Replaces a file atomically: a crash leaves the old file or the new one.
    pub(crate) fn replace(
        &self,
        name: &str,
        write: impl FnOnce(&mut File) -> std::io::Result<()>,
    ) -> Result<()> {
        self.check_file(name)?;
        let draft = format!("{name}.new");
        let attempt = || -> std::io::Result<()> {
            match rustix::fs::unlinkat(&self.directory, &draft, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&self.directory, &draft, flags, Mode::from_raw_mode(0o666))?;
            let mut file = File::from(file);
            write(&mut file)?;
            file.sync_all()?;
            rustix::fs::renameat(&self.directory, &draft, &self.directory, name)?;
            Ok(rustix::fs::fsync(&self.directory)?)
        };
        attempt().with_context(|| format!("writing {}", self.path.join(name).display()))
    }
}

/// Writes a page beside the records, in a directory that may belong to anybody. An existing file is replaced
/// and never written through.
pub(crate) fn write_beside(path: &Path, text: &str) -> Result<()> {
    let writing = || format!("writing the report to {}", path.display());
    match rustix::fs::lstat(path) {
        Ok(status) => check_file(path, &status)?,
        Err(Errno::NOENT) => {}
        Err(error) => return Err(error).with_context(writing),
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    // The umask still applies.
    builder.permissions(fs::Permissions::from_mode(0o666));
    let mut draft = builder.tempfile_in(directory).with_context(writing)?;
    draft.write_all(text.as_bytes()).with_context(writing)?;
    draft.persist(path).map(drop).with_context(writing)
}

/// Refuses a symbolic link of another user at a path of our own choice, because it would lead to a place of
/// that user's choice.
pub(crate) fn refuse_foreign_link(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Ok(check_owner(path, found.uid())?),
        _ => Ok(()),
    }
}

const LINK: &str =
    "is a symbolic link, through which nothing is read or written; remove it, or name another place";

fn check_file(path: &Path, status: &Stat) -> Result<(), Mistake> {
    match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => check_owner(path, status.st_uid),
        FileType::Symlink => Err(refusal(path, LINK)),
        _ => Err(refusal(path, "is not a regular file; remove it, or name another place")),
    }
}

fn check_owner(path: &Path, owner: u32) -> Result<(), Mistake> {
    let us = geteuid().as_raw();
    if owner == us {
        return Ok(());
    }
    Err(refusal(path, &format!("belongs to user {owner} and not to user {us}; name another place")))
}

fn refusal(path: &Path, words: &str) -> Mistake {
    Mistake::new(format!("--output: {} {words}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_beside_the_records_is_replaced_and_never_written_through() {
        let directory = tempfile::tempdir().unwrap();
        let [page, victim] = ["report.html", "victim"].map(|name| directory.path().join(name));
        for text in ["first", "second"] {
            write_beside(&page, text).unwrap();
            assert_eq!(fs::read_to_string(&page).unwrap(), text);
        }
        fs::remove_file(&page).unwrap();
        fs::write(&victim, "untouched").unwrap();
        std::os::unix::fs::symlink(&victim, &page).unwrap();
        let error = write_beside(&page, "third").unwrap_err();
        assert!(error.is::<Mistake>() && error.to_string().contains("is a symbolic link"), "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    }
}
