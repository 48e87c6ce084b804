//! The store: the content of a disk. The model decides when a request completes, the store holds its data.
//!
//! An immutable base image plus a copy-on-write overlay, in clusters of 4 KiB. All layers are sparse files
//! with the disk's own offsets, and one byte per cluster names the layer that holds it. The overlay is in
//! memory up to a budget and spills to a file beyond it. A trial's writes thus reach the host's disk during a
//! measurement only if the budget is too small for them.
//!
//! Only the overlay in memory is read through a mapping: that file is ours alone, and it cannot be
//! shortened. The base image has a name, and shortening it would kill the reader of a mapping (SIGBUS). It is
//! read with pread(2), which returns an error instead.
//!
//! *Invariant:* a base image is never written. *Invariant:* the store knows nothing about time. *Invariant:*
//! a store that lost a write keeps nothing more and reports the failure. A disk that continued would give
//! meaningless numbers, and a file system would retry the write for ever.

use std::fs::{File, Permissions};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{FallocateFlags, MemfdFlags, SealFlags, fallocate, fcntl_add_seals, memfd_create};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::layers::{BASE, CLUSTER_BYTES, LayerMap, MEMORY, NOWHERE, SPILL};
use crate::mapping::Mapping;
use crate::snapshot::{self, Draft, SnapshotHead};

const CLUSTER: usize = CLUSTER_BYTES as usize;
/// Clusters copied to a snapshot at a time.
const SNAPSHOT_CLUSTERS: usize = 256;

/// Size of the largest disk: about the largest file on ext4, which holds the spill files and snapshots of
/// most hosts.
pub(crate) const SIZE_BYTES_MAX: u64 = 16 << 40;

/// The reason why a disk cannot have that size, if it cannot.
pub fn size_refusal(size_bytes: u64) -> Option<String> {
    (size_bytes > SIZE_BYTES_MAX).then(|| {
        format!(
            "a disk of {size_bytes} bytes is too large: at most {} TiB can be emulated",
            SIZE_BYTES_MAX >> 40
        )
    })
}

/// The part of the overlay in memory: a file without a name, whose only descriptor is ours.
#[derive(Debug)]
struct MemoryLayer {
    file: File,
    mapping: Mapping,
}

impl MemoryLayer {
    /// Long enough for the last cluster, which may reach beyond the disk's end. The kernel refuses to shorten
    /// the file afterwards.
    fn new(size_bytes: u64) -> io::Result<MemoryLayer> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = File::from(memfd_create("spindle-overlay", flags)?);
        let size_bytes = size_bytes.next_multiple_of(CLUSTER_BYTES);
        file.set_len(size_bytes)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let mapping = Mapping::new(&file, size_bytes as usize)?;
        Ok(MemoryLayer { file, mapping })
    }
}

#[derive(Debug)]
pub struct Store {
    size_bytes: u64,
    layers: LayerMap,
    base: Option<Base>,
    memory: MemoryLayer,
    memory_clusters: AtomicU64,
    memory_clusters_max: u64,
    spill: File,
    spill_directory: PathBuf,
    /// The cause of the first loss, if there was one.
    failure: OnceLock<String>,
    /// Held while part of a cluster is copied up from a lower layer.
    copy_up: Mutex<()>,
    /// Reads of a file that missed the page cache.
    host_reads: AtomicU64,
}

#[derive(Debug)]
struct Base {
    image: File,
    directory: PathBuf,
    /// Keeps the image in memory; nothing is read through it. A kernel that reclaims idle memory (DAMON)
    /// takes unmapped pages first.
    in_memory: Option<Mapping>,
}

impl Store {
    /// A disk of zeros, or with `base`'s content. The spill file is made in `spill_directory` and has no
    /// name.
    ///
    /// # Errors
    /// The size is zero or beyond the bound; the base has another size or is not ours alone; a file cannot be
    /// made.
    pub fn open(
        size_bytes: u64,
        base: Option<&Path>,
        memory_budget_bytes: u64,
        spill_directory: &Path,
    ) -> Result<Store> {
        ensure!(size_bytes > 0, "the size of a disk must be above zero");
        if let Some(refusal) = size_refusal(size_bytes) {
            bail!("{refusal}");
        }
        let mut layers = LayerMap::new(size_bytes.div_ceil(CLUSTER_BYTES) as usize);
        let open_base = |directory: &Path| -> Result<Base> {
            let image = snapshot::open(directory, size_bytes, &mut layers)?;
            Ok(Base { image, directory: directory.to_owned(), in_memory: None })
        };
        let base = base.map(open_base).transpose()?;
        let mut store = Store {
            size_bytes,
            layers,
            base,
            memory: MemoryLayer::new(size_bytes).context("making the overlay in memory")?,
            memory_clusters: AtomicU64::new(0),
            memory_clusters_max: memory_budget_bytes / CLUSTER_BYTES,
            spill: nameless_file(spill_directory)
                .with_context(|| format!("making the spill file in {}", spill_directory.display()))?,
            spill_directory: spill_directory.to_owned(),
            failure: OnceLock::new(),
            copy_up: Mutex::new(()),
            host_reads: AtomicU64::new(0),
        };
        if store.base_bytes() <= memory_budget_bytes {
            store.populate_base()?;
        }
        Ok(store)
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Fills `into` with the content at the offset. The range must be on the disk.
    ///
    /// # Errors
    /// The host failed to read its files, now or earlier: EIO, as from a drive that died.
    pub fn read(&self, offset_bytes: u64, into: &mut [u8]) -> io::Result<()> {
        let lost = |error| format!("the host could not read the content of the emulated disk: {error}");
        self.unless_failed(|| self.copy_out(offset_bytes as usize, into), lost)
    }

    /// The sentence about the first read or write that failed. After a failure no data read can be trusted.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// Number of reads that waited for the host's disk.
    pub(crate) fn host_reads(&self) -> u64 {
        self.host_reads.load(Ordering::Relaxed)
    }

    /// # Errors
    /// The host's disk is full or broken, now or at an earlier write: EIO, as from a drive that died.
    pub fn write(&self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        self.unless_failed(|| self.write_all(offset_bytes, data), |error| self.lost_write(error))
    }

    fn unless_failed(
        &self,
        work: impl FnOnce() -> io::Result<()>,
        sentence: impl FnOnce(io::Error) -> String,
    ) -> io::Result<()> {
        if self.failure().is_none() {
            let Err(error) = work() else { return Ok(()) };
            self.failure.get_or_init(|| sentence(error));
        }
        Err(Errno::IO.into())
    }

    fn lost_write(&self, error: io::Error) -> String {
        format!(
            "the host could not keep data written to the emulated disk (up to {} MiB in memory, the rest in a file \
             in {}, where TMPDIR points): {error}",
            (self.memory_clusters_max * CLUSTER_BYTES) >> 20,
            self.spill_directory.display()
        )
    }

    fn write_all(&self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        let mut offset = offset_bytes as usize;
        let mut rest = data;
        while !rest.is_empty() {
            let within = offset % CLUSTER;
            let taken = if within != 0 || rest.len() < CLUSTER {
                let taken = rest.len().min(CLUSTER - within);
                self.write_part(offset, &rest[..taken])?;
                taken
            } else {
                self.write_clusters(offset / CLUSTER, rest)?
            };
            offset += taken;
            rest = &rest[taken..];
        }
        Ok(())
    }

    /// Makes the range read as zeros and frees the host's memory.
    ///
    /// # Errors
    /// As for [`Store::write`].
    pub fn clear(&self, offset_bytes: u64, size_bytes: u64) -> io::Result<()> {
        self.unless_failed(|| self.clear_all(offset_bytes, size_bytes), |error| self.lost_write(error))
    }

    fn clear_all(&self, offset_bytes: u64, size_bytes: u64) -> io::Result<()> {
        let end = offset_bytes + size_bytes;
        let first_whole = offset_bytes.next_multiple_of(CLUSTER_BYTES).min(end);
        let last_whole = (end / CLUSTER_BYTES * CLUSTER_BYTES).max(first_whole);
        self.write_all(offset_bytes, &[0; CLUSTER][..(first_whole - offset_bytes) as usize])?;
        self.write_all(last_whole, &[0; CLUSTER][..(end - last_whole) as usize])?;
        let mut cluster = (first_whole / CLUSTER_BYTES) as usize;
        let limit = (last_whole / CLUSTER_BYTES) as usize;
        while cluster < limit {
            let layer = self.layers.at(cluster);
            let run_end = self.layers.run_end(cluster, limit, layer);
            self.layers.set(cluster..run_end, NOWHERE);
            if let Some(file) = self.own_file(layer) {
                let (offset, size) = ((cluster * CLUSTER) as u64, ((run_end - cluster) * CLUSTER) as u64);
                fallocate(file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, offset, size)?;
            }
            if layer == MEMORY {
                self.memory_clusters.fetch_sub((run_end - cluster) as u64, Ordering::Relaxed);
            }
            cluster = run_end;
        }
        Ok(())
    }

    /// Writes the content as an immutable image that [`Store::open`] takes as a base. The directory must not
    /// exist; it appears complete or not at all.
    ///
    /// # Errors
    /// The directory exists, the host's disk is full, or a write was lost before.
    pub fn snapshot(&self, directory: &Path) -> Result<SnapshotHead> {
        if let Some(failure) = self.failure() {
            bail!("{failure}");
        }
        self.write_snapshot(directory)
            .with_context(|| format!("keeping a snapshot in {}", directory.display()))
    }

    fn write_snapshot(&self, directory: &Path) -> Result<SnapshotHead> {
        let mut draft = Draft::new(directory, self.size_bytes, self.layers.len())?;
        let mut part = vec![0; SNAPSHOT_CLUSTERS * CLUSTER];
        for (run, _) in self.layers.runs(SNAPSHOT_CLUSTERS).filter(|(_, layer)| *layer != NOWHERE) {
            let clusters = &mut part[..run.len() * CLUSTER];
            self.copy_out(run.start * CLUSTER, clusters).context("reading the content of the disk")?;
            draft.keep(run.start, clusters)?;
        }
        draft.finish()
    }

    /// Bytes of the overlay in memory: written since the store was opened, and not cleared.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_clusters.load(Ordering::Relaxed) * CLUSTER_BYTES
    }

    fn base_runs(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.layers.runs(usize::MAX).filter(|(_, layer)| *layer == BASE).map(|(run, _)| run)
    }

    fn base_bytes(&self) -> u64 {
        self.base_runs().map(|run| run.len() as u64 * CLUSTER_BYTES).sum()
    }

    /// Reads the base image into the page cache, from the host's disk if necessary.
    fn populate_base(&mut self) -> Result<()> {
        let Some(base) = &self.base else { return Ok(()) };
        let size_bytes = self.size_bytes.next_multiple_of(CLUSTER_BYTES) as usize;
        let populate = || -> io::Result<Mapping> {
            let mapping = Mapping::new(&base.image, size_bytes)?;
            self.base_runs().try_for_each(|run| mapping.populate(run.start * CLUSTER..run.end * CLUSTER))?;
            Ok(mapping)
        };
        let mapping = populate().context("reading the base image into memory")?;
        if let Some(base) = &mut self.base {
            base.in_memory = Some(mapping);
        }
        Ok(())
    }

    /// The file of a layer, if this store may write to it.
    fn own_file(&self, layer: u8) -> Option<&File> {
        match layer {
            MEMORY => Some(&self.memory.file),
            SPILL => Some(&self.spill),
            _ => None,
        }
    }

    fn copy_out(&self, start: usize, into: &mut [u8]) -> io::Result<()> {
        let end = start + into.len();
        let mut offset = start;
        while offset < end {
            let cluster = offset / CLUSTER;
            let layer = self.layers.at(cluster);
            let run_end = (self.layers.run_end(cluster, end.div_ceil(CLUSTER), layer) * CLUSTER).min(end);
            let part = &mut into[offset - start..run_end - start];
            match (layer, &self.base) {
                (MEMORY, _) => self.memory.mapping.copy_to(offset, part),
                (SPILL, _) => self.read_file(&self.spill, offset as u64, part)?,
                (BASE, Some(base)) => self.read_file(&base.image, offset as u64, part).map_err(|error| {
                    io::Error::other(format!("reading the snapshot {}: {error}", base.directory.display()))
                })?,
                _ => part.fill(0),
            }
            offset = run_end;
        }
        Ok(())
    }

    /// Reads without blocking if the page cache has the data. Otherwise counts the read and waits for the
    /// host's disk.
    fn read_file(&self, file: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let at_once = preadv2(file, &mut [IoSliceMut::new(into)], offset, ReadWriteFlags::NOWAIT);
        let read = match at_once {
            Ok(size) if size == into.len() => return Ok(()),
            Ok(size) => size,
            Err(Errno::AGAIN) => 0,
            // Some file systems do not support NOWAIT.
            Err(_) => return read_exact(file, offset, into),
        };
        self.host_reads.fetch_add(1, Ordering::Relaxed);
        read_exact(file, offset + read as u64, &mut into[read..])
    }

    /// Writes part of one cluster.
    fn write_part(&self, offset: usize, data: &[u8]) -> io::Result<()> {
        let cluster = offset / CLUSTER;
        if let Some(file) = self.own_file(self.layers.at(cluster)) {
            return file.write_all_at(data, offset as u64);
        }
        let _guard = self.copy_up.lock().expect("no writer panics");
        if let Some(file) = self.own_file(self.layers.at(cluster)) {
            return file.write_all_at(data, offset as u64);
        }
        let mut whole = [0; CLUSTER];
        self.copy_out(cluster * CLUSTER, &mut whole)?;
        whole[offset % CLUSTER..][..data.len()].copy_from_slice(data);
        self.write_clusters(cluster, &whole).map(drop)
    }

    /// Writes whole clusters from the front of `data`, as many as go to one layer. Returns the bytes written.
    fn write_clusters(&self, first: usize, data: &[u8]) -> io::Result<usize> {
        let count = data.len() / CLUSTER;
        let now = self.layers.at(first);
        let run_end = self.layers.run_end(first, first + count, now);
        let taken = (run_end - first) * CLUSTER;
        let target = if self.own_file(now).is_some() { now } else { self.allocate((run_end - first) as u64) };
        let file = self.own_file(target).expect("own layer");
        file.write_all_at(&data[..taken], (first * CLUSTER) as u64)?;
        if target != now {
            self.layers.set(first..run_end, target);
        }
        Ok(taken)
    }

    /// The layer for new clusters of the overlay.
    fn allocate(&self, clusters: u64) -> u8 {
        let before = self.memory_clusters.fetch_add(clusters, Ordering::Relaxed);
        if before + clusters <= self.memory_clusters_max {
            return MEMORY;
        }
        self.memory_clusters.fetch_sub(clusters, Ordering::Relaxed);
        SPILL
    }
}

/// A file that only we can open, because it has no name.
fn nameless_file(directory: &Path) -> io::Result<File> {
    let file = tempfile::tempfile_in(directory)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

fn read_exact(file: &File, offset: u64, into: &mut [u8]) -> io::Result<()> {
    file.read_exact_at(into, offset).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            io::Error::new(error.kind(), "the file is shorter than it was when the disk came up")
        }
        _ => error,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// The last cluster reaches beyond the disk's end.
    const SIZE: u64 = 256 * CLUSTER_BYTES - 512;

    fn open(base: Option<&Path>, memory_clusters: u64, directory: &Path) -> Store {
        Store::open(SIZE, base, memory_clusters * CLUSTER_BYTES, directory).unwrap()
    }

    fn content(store: &Store) -> Vec<u8> {
        let mut content = vec![0xff; SIZE as usize];
        store.read(0, &mut content).unwrap();
        content
    }

    /// Sector-aligned writes, clears and reads, the same on the store and on plain memory, must agree; also
    /// after a snapshot, on which a second round runs.
    fn check_against_memory(seed: u64, memory_clusters: u64) {
        println!("seed {seed}");
        let directory = tempfile::tempdir().unwrap();
        let mut state = seed;
        let mut random = move |bound: u64| {
            // Knuth's MMIX generator; its low bits are poor, its high bits are not.
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % bound
        };
        let mut expected = vec![0; SIZE as usize];
        let mut store = open(None, memory_clusters, directory.path());
        for round in 0..3 {
            for step in 0..400 {
                let offset = random(SIZE / 512) * 512;
                let size = (1 + random(64)).min((SIZE - offset) / 512) * 512;
                let range = offset as usize..(offset + size) as usize;
                match random(4) {
                    0 => {
                        store.clear(offset, size).unwrap();
                        expected[range].fill(0);
                    }
                    1 => {
                        let mut bytes = vec![0xff; size as usize];
                        store.read(offset, &mut bytes).unwrap();
                        assert_eq!(bytes, expected[range]);
                    }
                    _ => {
                        let data = vec![(1 + step % 255) as u8; size as usize];
                        store.write(offset, &data).unwrap();
                        expected[range].copy_from_slice(&data);
                    }
                }
            }
            assert!(content(&store) == expected, "round {round}");
            let snapshot = directory.path().join(format!("snapshot-{round}"));
            store.snapshot(&snapshot).unwrap();
            store = open(Some(&snapshot), memory_clusters, directory.path());
            assert!(content(&store) == expected, "after the snapshot of round {round}");
        }
    }

    #[test]
    fn store_behaves_like_memory() {
        (0..20).for_each(|seed| check_against_memory(seed, 256));
    }

    #[test]
    fn store_behaves_like_memory_when_it_spills() {
        (0..20).for_each(|seed| check_against_memory(seed, 16));
    }

    #[test]
    fn writes_do_not_change_the_snapshot_below() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("snapshot");
        let first = open(None, 256, directory.path());
        first.write(0, &[1; 8192]).unwrap();
        first.snapshot(&snapshot).unwrap();
        let second = open(Some(&snapshot), 256, directory.path());
        second.write(512, &[2; 4096]).unwrap();
        assert!(content(&open(Some(&snapshot), 256, directory.path())) == content(&first));
    }

    #[test]
    fn clearing_gives_memory_back() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(None, 256, directory.path());
        store.write(0, &[1; 1 << 19]).unwrap();
        assert_eq!(store.memory_bytes(), 1 << 19);
        store.clear(0, 1 << 19).unwrap();
        assert_eq!(store.memory_bytes(), 0);
    }

    #[test]
    fn a_store_that_lost_a_write_refuses_further_writes() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = open(None, 1, directory.path());
        store.write(0, &[1; CLUSTER]).unwrap();
        // Open for reading only, so data beyond the one cluster of memory is lost.
        store.spill = File::open("/dev/null").unwrap();
        assert_eq!(store.failure(), None);
        let lost = store.write(CLUSTER_BYTES, &[2; CLUSTER]).unwrap_err();
        assert_eq!(lost.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
        assert!(store.failure().unwrap().contains("Bad file descriptor"), "{:?}", store.failure());
        assert!(store.write(0, &[3; CLUSTER]).is_err());
        assert!(store.clear(0, CLUSTER_BYTES).is_err());
        let snapshot = directory.path().join("snapshot");
        assert!(store.snapshot(&snapshot).unwrap_err().to_string().contains("could not keep"));
        assert!(!snapshot.exists());
    }

    #[test]
    fn snapshot_of_another_size_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("snapshot");
        open(None, 256, directory.path()).snapshot(&snapshot).unwrap();
        let error = Store::open(2 * SIZE, Some(&snapshot), 0, directory.path()).unwrap_err();
        assert!(format!("{error:#}").contains("is of a disk of 1048064 bytes"), "{error:#}");
    }

    #[test]
    fn an_unfinished_snapshot_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("half")).unwrap();
        assert!(Store::open(SIZE, Some(&directory.path().join("half")), 0, directory.path()).is_err());
    }

    #[test]
    fn reads_of_a_shortened_base_image_fail_with_a_sentence() {
        let directory = tempfile::tempdir().unwrap();
        let snapshot = directory.path().join("snapshot");
        let first = open(None, 256, directory.path());
        first.write(0, &vec![1; SIZE as usize - 512]).unwrap();
        first.snapshot(&snapshot).unwrap();
        let store = open(Some(&snapshot), 256, directory.path());
        let image = std::fs::OpenOptions::new().write(true).open(snapshot.join("image")).unwrap();
        image.set_len(SIZE / 2).unwrap();
        let mut bytes = [0; CLUSTER];
        store.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [1; CLUSTER]);
        let lost = store.read(SIZE / CLUSTER_BYTES * CLUSTER_BYTES - CLUSTER_BYTES, &mut bytes).unwrap_err();
        assert_eq!(lost.raw_os_error(), Some(Errno::IO.raw_os_error()));
        let failure = store.failure().unwrap();
        assert!(
            failure.starts_with(
                "the host could not read the content of the emulated disk: reading the snapshot"
            )
        );
        assert!(failure.ends_with("the file is shorter than it was when the disk came up"), "{failure}");
        assert!(store.write(0, &bytes).is_err());
    }

    #[test]
    fn a_link_in_the_spill_directory_is_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let victim = directory.path().join("victim");
        fs::write(&victim, "not ours").unwrap();
        let link = directory.path().join(format!("spill-{}", std::process::id()));
        symlink(&victim, &link).unwrap();
        let store = open(None, 0, directory.path());
        store.write(0, &[1; CLUSTER]).unwrap();
        assert_eq!(fs::read_to_string(&link).unwrap(), "not ours");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2, "the spill file has a name");
        assert_eq!(rustix::fs::fstat(&store.spill).unwrap().st_mode & 0o777, 0o600);
    }

    #[test]
    fn the_overlay_in_memory_cannot_be_shortened() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(None, 256, directory.path());
        assert!(store.memory.file.set_len(0).is_err());
    }

    #[test]
    fn a_disk_above_the_bound_is_refused_and_a_large_one_takes_the_space_of_its_data() {
        let directory = tempfile::tempdir().unwrap();
        let error = Store::open(SIZE_BYTES_MAX + 1, None, 0, directory.path()).unwrap_err().to_string();
        assert!(error.ends_with("is too large: at most 16 TiB can be emulated"), "{error}");
        let store = Store::open(SIZE_BYTES_MAX, None, 1 << 20, directory.path()).unwrap();
        store.write(SIZE_BYTES_MAX - CLUSTER_BYTES, &[1; CLUSTER]).unwrap();
        store.clear(0, SIZE_BYTES_MAX).unwrap();
        assert_eq!(store.memory_bytes(), 0);
    }
}
