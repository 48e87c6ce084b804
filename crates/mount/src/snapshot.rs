//! A disk's content, kept in a directory: `image` (the content, sparse), `map` (one byte per cluster: whether
//! the image holds it) and `snapshot.json`, which is written last.
//!
//! A disk that starts from a snapshot is mounted by root, so only our own files are accepted. Neither the
//! directory nor a file in it may belong to another user, be writable by others, or be a link. The check is
//! made on the open files, because names could come to mean other files in between.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::{Deserialize, Serialize};

use crate::layers::{BASE, CLUSTER_BYTES, LayerMap, NOWHERE};

/// The head of a snapshot. A directory without it is not a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct SnapshotHead {
    pub format: u32,
    pub size_bytes: u64,
    /// Clusters that hold data.
    pub clusters: u64,
}

pub(crate) const FORMAT: u32 = 1;
const HEAD: &str = "snapshot.json";
const MAP: &str = "map";
const IMAGE: &str = "image";
/// Bound on the size of a head; real ones are much shorter.
const HEAD_BYTES_MAX: u64 = 1 << 16;
const MAP_PART_BYTES: usize = 1 << 16;

/// Marks the snapshot's clusters in `layers` and returns its image. `size_bytes` is the size of the disk; the
/// image is that, rounded up to whole clusters.
///
/// # Errors
/// Not a snapshot, not ours alone, damaged, or of a disk of another size.
pub(crate) fn open(directory: &Path, size_bytes: u64, layers: &mut LayerMap) -> Result<File> {
    open_parts(directory, size_bytes, layers)
        .with_context(|| format!("reading the snapshot {}", directory.display()))
}

fn open_parts(directory: &Path, size_bytes: u64, layers: &mut LayerMap) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = File::from(openat(CWD, directory, flags, Mode::empty())?);
    refuse_unless_ours("the directory", &handle)?;
    let mut text = Vec::new();
    open_file(&handle, HEAD)?.take(HEAD_BYTES_MAX).read_to_end(&mut text).context(HEAD)?;
    let head: SnapshotHead = serde_json::from_slice(&text).context(HEAD)?;
    if head.format != FORMAT || head.size_bytes != size_bytes {
        bail!(
            "it is of a disk of {} bytes (format {}), this disk has {size_bytes} bytes (format {FORMAT})",
            head.size_bytes,
            head.format
        );
    }
    read_map(&open_file(&handle, MAP)?, layers)?;
    let image = open_file(&handle, IMAGE)?;
    let image_bytes = size_bytes.next_multiple_of(CLUSTER_BYTES);
    ensure!(image.metadata()?.len() == image_bytes, "its image has the wrong size");
    Ok(image)
}

/// Opens a regular file of ours. It does not block if a FIFO is in its place.
fn open_file(directory: &File, name: &str) -> Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(directory, name, flags, Mode::empty()).context(name.to_owned())?);
    ensure!(file.metadata()?.is_file(), "`{name}` is not a regular file");
    refuse_unless_ours(&format!("`{name}`"), &file)?;
    Ok(file)
}

fn refuse_unless_ours(what: &str, file: &File) -> Result<()> {
    let status = file.metadata()?;
    let us = rustix::process::geteuid().as_raw();
    let owner = status.uid();
    ensure!(owner == us, "{what} belongs to user {owner}, and only files of user {us} are trusted");
    let is_closed = status.mode() & 0o022 == 0;
    ensure!(
        is_closed,
        "{what} can be written by others than its owner, so it is not trusted: use `chmod go-w`"
    );
    Ok(())
}

fn read_map(map: &File, layers: &mut LayerMap) -> Result<()> {
    let size = map.metadata()?.len();
    ensure!(size == layers.len() as u64, "its map has {size} clusters instead of {}", layers.len());
    let mut part = vec![0; MAP_PART_BYTES];
    let mut first = 0;
    while first < layers.len() {
        let count = MAP_PART_BYTES.min(layers.len() - first);
        map.read_exact_at(&mut part[..count], first as u64).context(MAP)?;
        if let Some(strange) = part[..count].iter().find(|&&held| held != NOWHERE && held != BASE) {
            bail!("its map is damaged: it has the value {strange}, and only {NOWHERE} and {BASE} are valid");
        }
        for (index, _) in part[..count].iter().enumerate().filter(|&(_, &held)| held == BASE) {
            layers.set(first + index..first + index + 1, BASE);
        }
        first += count;
    }
    Ok(())
}

/// A snapshot that is being written, under a temporary name. Dropping it unfinished removes it.
pub(crate) struct Draft {
    directory: PathBuf,
    unfinished: PathBuf,
    image: File,
    map: File,
    head: SnapshotHead,
    is_finished: bool,
}

impl Draft {
    /// Starts a snapshot. The directory must not exist.
    pub(crate) fn new(directory: &Path, size_bytes: u64, clusters: usize) -> Result<Draft> {
        ensure!(!directory.exists(), "{} exists already", directory.display());
        let unfinished = directory.with_extension("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&unfinished)
            .with_context(|| format!("making {}", unfinished.display()))?;
        let draft = Draft {
            directory: directory.to_owned(),
            image: new_file(&unfinished.join(IMAGE))?,
            map: new_file(&unfinished.join(MAP))?,
            unfinished,
            head: SnapshotHead { format: FORMAT, size_bytes, clusters: 0 },
            is_finished: false,
        };
        draft.image.set_len(size_bytes.next_multiple_of(CLUSTER_BYTES)).context("making the image")?;
        draft.map.set_len(clusters as u64).context("making the map")?;
        Ok(draft)
    }

    /// Adds whole clusters, from cluster `first` on.
    pub(crate) fn keep(&mut self, first: usize, clusters: &[u8]) -> Result<()> {
        let count = clusters.len() / CLUSTER_BYTES as usize;
        self.image.write_all_at(clusters, first as u64 * CLUSTER_BYTES).context("writing the image")?;
        self.map.write_all_at(&vec![BASE; count], first as u64).context("writing the map")?;
        self.head.clusters += count as u64;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> Result<SnapshotHead> {
        self.image.sync_data().context("writing the image")?;
        let head = new_file(&self.unfinished.join(HEAD))?;
        head.write_all_at(&serde_json::to_vec(&self.head)?, 0).context("writing the head")?;
        fs::rename(&self.unfinished, &self.directory)
            .with_context(|| format!("naming {}", self.directory.display()))?;
        self.is_finished = true;
        Ok(self.head.clone())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_finished {
            // On a full disk the draft would block all other writers too.
            let _ = fs::remove_dir_all(&self.unfinished);
        }
    }
}

fn new_file(path: &Path) -> Result<File> {
    let new: io::Result<File> = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    new.with_context(|| format!("making {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;
    use crate::store::Store;

    const SIZE: u64 = 4 * CLUSTER_BYTES;

    /// Opening a snapshot after `tamper` must fail with the message `expect`.
    #[track_caller]
    fn check_refused(tamper: impl FnOnce(&Path), expect: &str) {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("snapshot");
        let store = Store::open(SIZE, None, SIZE, directory.path()).unwrap();
        store.write(0, &[1; 4096]).unwrap();
        store.snapshot(&snapshot).unwrap();
        Store::open(SIZE, Some(&snapshot), SIZE, directory.path()).unwrap();
        tamper(&snapshot);
        let refused = Store::open(SIZE, Some(&snapshot), SIZE, directory.path()).unwrap_err();
        let refused = format!("{refused:#}");
        assert!(refused.starts_with("reading the snapshot") && refused.contains(expect), "{refused}");
    }

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_snapshot_that_others_may_write_is_refused() {
        check_refused(
            |snapshot| mode(snapshot, 0o777),
            "the directory can be written by others than its owner",
        );
        for name in [HEAD, MAP, IMAGE] {
            let expect = format!("`{name}` can be written by others than its owner");
            check_refused(|snapshot| mode(&snapshot.join(name), 0o620), &expect);
        }
    }

    #[test]
    fn a_snapshot_of_somebody_else_is_refused() {
        if !rustix::process::geteuid().is_root() {
            assert!(std::env::var_os("CI").is_none(), "CI must be root");
            eprintln!("skipped: not root; only root can give files away");
            return;
        }
        check_refused(
            |snapshot| chown(snapshot, Some(65534), None).unwrap(),
            "the directory belongs to user 65534",
        );
        for name in [HEAD, MAP, IMAGE] {
            let give_away = |snapshot: &Path| chown(snapshot.join(name), Some(65534), None).unwrap();
            check_refused(give_away, &format!("`{name}` belongs to user 65534"));
        }
    }

    #[test]
    fn a_link_or_a_pipe_in_the_place_of_a_file_is_refused() {
        for name in [HEAD, MAP, IMAGE] {
            let replace = |snapshot: &Path| {
                fs::rename(snapshot.join(name), snapshot.join("moved")).unwrap();
                symlink("moved", snapshot.join(name)).unwrap();
            };
            check_refused(replace, name);
        }
        let moved = |snapshot: &Path| {
            fs::rename(snapshot, snapshot.with_extension("moved")).unwrap();
            symlink(snapshot.with_extension("moved"), snapshot).unwrap();
        };
        check_refused(moved, "");
        let pipe = |snapshot: &Path| {
            fs::remove_file(snapshot.join(IMAGE)).unwrap();
            let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR);
            rustix::fs::mknodat(CWD, snapshot.join(IMAGE), kind, mode, 0).unwrap();
        };
        check_refused(pipe, "`image` is not a regular file");
    }

    #[test]
    fn a_damaged_map_is_refused() {
        let damage = |snapshot: &Path| fs::write(snapshot.join(MAP), [1, 0, 2, 0]).unwrap();
        check_refused(damage, "its map is damaged: it has the value 2");
        check_refused(|snapshot| fs::write(snapshot.join(MAP), [1; 3]).unwrap(), "3 clusters instead of 4");
    }

    #[test]
    fn a_snapshot_is_for_its_owner_alone() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("of-a-run").join("snapshot");
        Store::open(SIZE, None, SIZE, directory.path()).unwrap().snapshot(&snapshot).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(&snapshot), 0o700);
        for name in [HEAD, MAP, IMAGE] {
            assert_eq!(mode(&snapshot.join(name)), 0o600, "{name}");
        }
    }
}
