//! The store: what a disk holds (the model says when, the store says what).
//!
//! An immutable base image plus a copy-on-write overlay, in clusters of 4 KiB. All layers use the disk's own offsets
//! in sparse files, and one byte per cluster names the layer that holds it, so a request that lies in one layer is one
//! slice of memory. The overlay is in memory up to a budget and spills to a file after that; a trial's writes
//! thus never touch the host's disk while something is being timed, unless the budget is too small for them.
//!
//! *Invariant:* a base image is never written. *Invariant:* the store knows nothing about time. *Invariant:* a store that
//! lost a write keeps nothing more, and says so: a disk that goes on after that would give numbers that mean nothing, and
//! a file system that retries the write for ever.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use anyhow::{Context, Result, bail};
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use serde::{Deserialize, Serialize};

use crate::mapping::Mapping;

pub(crate) const CLUSTER_BYTES: u64 = 4096;
const CLUSTER: usize = CLUSTER_BYTES as usize;
/// Longest reply that can be given as zeros without allocating.
const ZEROS: usize = 1 << 20;

const NOWHERE: u8 = 0;
const BASE: u8 = 1;
const MEMORY: u8 = 2;
const SPILL: u8 = 3;

/// What a snapshot directory says about itself; written last, so that a directory without it is not a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct SnapshotHead {
    pub format: u32,
    pub size_bytes: u64,
    /// Clusters that hold data.
    pub clusters: u64,
}

const SNAPSHOT_FORMAT: u32 = 1;

#[derive(Debug)]
struct Layer {
    file: File,
    mapping: Mapping,
}

impl Layer {
    /// Makes the file long enough for the last cluster, which may reach beyond the disk's end.
    fn new(file: File, size_bytes: u64) -> io::Result<Layer> {
        file.set_len(size_bytes.next_multiple_of(CLUSTER_BYTES))?;
        Layer::existing(file, size_bytes)
    }

    fn existing(file: File, size_bytes: u64) -> io::Result<Layer> {
        let mapping = Mapping::new(&file, size_bytes.next_multiple_of(CLUSTER_BYTES) as usize)?;
        Ok(Layer { file, mapping })
    }
}

#[derive(Debug)]
pub struct Store {
    size_bytes: u64,
    layer_of: Box<[AtomicU8]>,
    base: Option<Layer>,
    memory: Layer,
    memory_clusters: AtomicU64,
    memory_clusters_max: u64,
    spill: Layer,
    spill_directory: PathBuf,
    /// Why a write was lost, if one was.
    failure: OnceLock<String>,
    /// Held while part of a cluster is copied up from a lower layer.
    copy_up: Mutex<()>,
    zeros: Box<[u8]>,
}

impl Store {
    /// A disk of zeros, or of `base`'s content. The spill file is made in `spill_directory` and unlinked at once.
    ///
    /// # Errors
    /// A size of zero; a base of another size; files that cannot be made.
    pub fn open(
        size_bytes: u64,
        base: Option<&Path>,
        memory_budget_bytes: u64,
        spill_directory: &Path,
    ) -> Result<Store> {
        if size_bytes == 0 {
            bail!("a disk of no bytes cannot store any");
        }
        let mut layer_of: Box<[AtomicU8]> =
            (0..size_bytes.div_ceil(CLUSTER_BYTES)).map(|_| AtomicU8::new(NOWHERE)).collect();
        let base = match base {
            Some(directory) => Some(open_base(directory, size_bytes, &mut layer_of)?),
            None => None,
        };
        let memory = File::from(
            memfd_create("spindle-overlay", MemfdFlags::CLOEXEC).context("making the overlay in memory")?,
        );
        let store = Store {
            size_bytes,
            base,
            memory: Layer::new(memory, size_bytes).context("mapping the overlay in memory")?,
            memory_clusters: AtomicU64::new(0),
            memory_clusters_max: memory_budget_bytes / CLUSTER_BYTES,
            spill: Layer::new(unlinked_file(spill_directory)?, size_bytes)
                .with_context(|| format!("making the spill file in {}", spill_directory.display()))?,
            spill_directory: spill_directory.to_owned(),
            failure: OnceLock::new(),
            copy_up: Mutex::new(()),
            zeros: vec![0; ZEROS].into(),
            layer_of,
        };
        if store.base_bytes() <= memory_budget_bytes {
            store.populate_base()?;
        }
        Ok(store)
    }

    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    /// Gives the bytes to `reader` without copying them, where they lie in one layer.
    pub fn read<T>(&self, offset_bytes: u64, size_bytes: usize, reader: impl FnOnce(&[u8]) -> T) -> T {
        let (start, end) = (offset_bytes as usize, offset_bytes as usize + size_bytes);
        let first = self.layer_at(start / CLUSTER);
        let same =
            (start / CLUSTER + 1..end.div_ceil(CLUSTER)).all(|cluster| self.layer_at(cluster) == first);
        match self.mapping(first) {
            Some(mapping) if same => reader(mapping.bytes(start..end)),
            None if same && size_bytes <= ZEROS => reader(&self.zeros[..size_bytes]),
            _ => {
                let mut assembled = vec![0; size_bytes];
                self.copy_out(start, &mut assembled);
                reader(&assembled)
            }
        }
    }

    /// The sentence about the first write that was lost; from then on nothing that is read can be trusted.
    pub fn failure(&self) -> Option<&str> {
        self.failure.get().map(String::as_str)
    }

    /// # Errors
    /// The host's disk is full or broken, now or at an earlier write: EIO, as from a drive that died.
    pub fn write(&self, offset_bytes: u64, data: &[u8]) -> io::Result<()> {
        self.unless_failed(|| self.write_all(offset_bytes, data))
    }

    fn unless_failed(&self, change: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        if self.failure().is_none() {
            let Err(error) = change() else { return Ok(()) };
            self.failure.get_or_init(|| {
                format!(
                    "the host could not keep what was written to the emulated disk (up to {} MiB in memory, the rest in a file \
                     in {}, where TMPDIR points): {error}",
                    (self.memory_clusters_max * CLUSTER_BYTES) >> 20,
                    self.spill_directory.display()
                )
            });
        }
        Err(rustix::io::Errno::IO.into())
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

    /// Afterwards the range reads as zeros, and the host's memory is free for others.
    ///
    /// # Errors
    /// As for [`Store::write`].
    pub fn clear(&self, offset_bytes: u64, size_bytes: u64) -> io::Result<()> {
        self.unless_failed(|| self.clear_all(offset_bytes, size_bytes))
    }

    fn clear_all(&self, offset_bytes: u64, size_bytes: u64) -> io::Result<()> {
        let end = offset_bytes + size_bytes;
        let first_whole = offset_bytes.next_multiple_of(CLUSTER_BYTES).min(end);
        let last_whole = (end / CLUSTER_BYTES * CLUSTER_BYTES).max(first_whole);
        self.write_all(offset_bytes, &self.zeros[..(first_whole - offset_bytes) as usize])?;
        self.write_all(last_whole, &self.zeros[..(end - last_whole) as usize])?;
        let mut cluster = (first_whole / CLUSTER_BYTES) as usize;
        while cluster < (last_whole / CLUSTER_BYTES) as usize {
            let layer = self.layer_at(cluster);
            let run_end = self.run_end(cluster, (last_whole / CLUSTER_BYTES) as usize, layer);
            for index in cluster..run_end {
                self.layer_of[index].store(NOWHERE, Ordering::Release);
            }
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

    /// Writes the content as an immutable image that [`Store::open`] takes as a base. The directory must not exist;
    /// it appears whole or not at all.
    ///
    /// # Errors
    /// The directory exists, the host's disk is full, or a write was lost before.
    pub fn snapshot(&self, directory: &Path) -> Result<SnapshotHead> {
        if let Some(failure) = self.failure() {
            bail!("{failure}");
        }
        if directory.exists() {
            bail!("{} exists already", directory.display());
        }
        let unfinished = directory.with_extension("unfinished");
        let _ = fs::remove_dir_all(&unfinished);
        let head = self.write_snapshot(&unfinished).and_then(|head| {
            fs::rename(&unfinished, directory).with_context(|| format!("naming {}", directory.display()))?;
            Ok(head)
        });
        if head.is_err() {
            // On a full disk it would keep everybody else from writing too.
            let _ = fs::remove_dir_all(&unfinished);
        }
        head.with_context(|| format!("keeping a snapshot in {}", directory.display()))
    }

    fn write_snapshot(&self, unfinished: &Path) -> Result<SnapshotHead> {
        fs::create_dir_all(unfinished).with_context(|| format!("making {}", unfinished.display()))?;
        let image = File::create(unfinished.join("image")).context("making the image")?;
        image.set_len(self.size_bytes.next_multiple_of(CLUSTER_BYTES))?;
        let mut map = vec![NOWHERE; self.layer_of.len()];
        let mut head = SnapshotHead { format: SNAPSHOT_FORMAT, size_bytes: self.size_bytes, clusters: 0 };
        let mut cluster = 0;
        while cluster < map.len() {
            let layer = self.layer_at(cluster);
            let run_end = self.run_end(cluster, map.len().min(cluster + ZEROS / CLUSTER), layer);
            if let Some(mapping) = self.mapping(layer) {
                let bytes = mapping.bytes(cluster * CLUSTER..run_end * CLUSTER);
                image.write_all_at(bytes, (cluster * CLUSTER) as u64).context("writing the image")?;
                map[cluster..run_end].fill(BASE);
                head.clusters += (run_end - cluster) as u64;
            }
            cluster = run_end;
        }
        image.sync_data().context("writing the image")?;
        fs::write(unfinished.join("map"), &map).context("writing the map")?;
        fs::write(unfinished.join("snapshot.json"), serde_json::to_vec(&head)?)
            .context("writing the head")?;
        Ok(head)
    }

    /// Bytes written since the store was opened and not cleared, in memory.
    pub fn memory_bytes(&self) -> u64 {
        self.memory_clusters.load(Ordering::Relaxed) * CLUSTER_BYTES
    }

    fn base_bytes(&self) -> u64 {
        self.layer_of.iter().filter(|layer| layer.load(Ordering::Relaxed) == BASE).count() as u64
            * CLUSTER_BYTES
    }

    fn populate_base(&self) -> Result<()> {
        let Some(base) = &self.base else { return Ok(()) };
        let mut cluster = 0;
        while cluster < self.layer_of.len() {
            let layer = self.layer_at(cluster);
            let run_end = self.run_end(cluster, self.layer_of.len(), layer);
            if layer == BASE {
                let range = cluster * CLUSTER..run_end * CLUSTER;
                base.mapping.populate(range).context("reading the base image into memory")?;
            }
            cluster = run_end;
        }
        Ok(())
    }

    fn layer_at(&self, cluster: usize) -> u8 {
        self.layer_of[cluster].load(Ordering::Acquire)
    }

    /// First cluster after `start` (at most `limit`) that another layer holds.
    fn run_end(&self, start: usize, limit: usize, layer: u8) -> usize {
        (start + 1..limit).find(|&cluster| self.layer_at(cluster) != layer).unwrap_or(limit)
    }

    fn mapping(&self, layer: u8) -> Option<&Mapping> {
        match layer {
            NOWHERE => None,
            BASE => self.base.as_ref().map(|base| &base.mapping),
            MEMORY => Some(&self.memory.mapping),
            _ => Some(&self.spill.mapping),
        }
    }

    /// The file of a layer that this store may write.
    fn own_file(&self, layer: u8) -> Option<&File> {
        match layer {
            MEMORY => Some(&self.memory.file),
            SPILL => Some(&self.spill.file),
            _ => None,
        }
    }

    fn copy_out(&self, start: usize, into: &mut [u8]) {
        let mut done = 0;
        while done < into.len() {
            let offset = start + done;
            let size = (CLUSTER - offset % CLUSTER).min(into.len() - done);
            if let Some(mapping) = self.mapping(self.layer_at(offset / CLUSTER)) {
                into[done..done + size].copy_from_slice(mapping.bytes(offset..offset + size));
            }
            done += size;
        }
    }

    /// Part of one cluster.
    fn write_part(&self, offset: usize, data: &[u8]) -> io::Result<()> {
        let cluster = offset / CLUSTER;
        if let Some(file) = self.own_file(self.layer_at(cluster)) {
            return file.write_all_at(data, offset as u64);
        }
        let _guard = self.copy_up.lock().expect("no writer panics");
        if let Some(file) = self.own_file(self.layer_at(cluster)) {
            return file.write_all_at(data, offset as u64);
        }
        let mut whole = [0; CLUSTER];
        self.copy_out(cluster * CLUSTER, &mut whole);
        whole[offset % CLUSTER..][..data.len()].copy_from_slice(data);
        self.write_clusters(cluster, &whole).map(drop)
    }

    /// Whole clusters from the front of `data`, as many as go to one layer; returns the bytes taken.
    fn write_clusters(&self, first: usize, data: &[u8]) -> io::Result<usize> {
        let count = data.len() / CLUSTER;
        let now = self.layer_at(first);
        let run_end = self.run_end(first, first + count, now);
        let taken = (run_end - first) * CLUSTER;
        let target = if self.own_file(now).is_some() { now } else { self.allocate((run_end - first) as u64) };
        let file = self.own_file(target).expect("own layer");
        file.write_all_at(&data[..taken], (first * CLUSTER) as u64)?;
        if target != now {
            for cluster in first..run_end {
                self.layer_of[cluster].store(target, Ordering::Release);
            }
        }
        Ok(taken)
    }

    /// The layer for clusters that were in none of ours.
    fn allocate(&self, clusters: u64) -> u8 {
        let before = self.memory_clusters.fetch_add(clusters, Ordering::Relaxed);
        if before + clusters <= self.memory_clusters_max {
            return MEMORY;
        }
        self.memory_clusters.fetch_sub(clusters, Ordering::Relaxed);
        SPILL
    }
}

fn open_base(directory: &Path, size_bytes: u64, layer_of: &mut [AtomicU8]) -> Result<Layer> {
    let reading = || format!("reading the snapshot {}", directory.display());
    let head = fs::read(directory.join("snapshot.json")).with_context(reading)?;
    let head: SnapshotHead = serde_json::from_slice(&head).with_context(reading)?;
    if head.format != SNAPSHOT_FORMAT || head.size_bytes != size_bytes {
        bail!(
            "the snapshot {} is of a disk of {} bytes (format {}), this disk has {size_bytes} bytes (format {SNAPSHOT_FORMAT})",
            directory.display(),
            head.size_bytes,
            head.format
        );
    }
    let map = fs::read(directory.join("map")).with_context(reading)?;
    if map.len() != layer_of.len() {
        bail!(
            "the snapshot {} has a map of {} clusters instead of {}",
            directory.display(),
            map.len(),
            layer_of.len()
        );
    }
    for (layer, &held) in layer_of.iter_mut().zip(&map) {
        *layer.get_mut() = held;
    }
    let image = File::open(directory.join("image")).with_context(reading)?;
    if image.metadata().with_context(reading)?.len() != size_bytes.next_multiple_of(CLUSTER_BYTES) {
        bail!("the snapshot {} has an image of the wrong size", directory.display());
    }
    Layer::existing(image, size_bytes).with_context(reading)
}

fn unlinked_file(directory: &Path) -> Result<File> {
    let path: PathBuf = directory.join(format!("spill-{}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path)
        .with_context(|| format!("making {}", path.display()))?;
    fs::remove_file(&path)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last cluster reaches beyond the disk's end.
    const SIZE: u64 = 256 * CLUSTER_BYTES - 512;

    fn open(base: Option<&Path>, memory_clusters: u64, directory: &Path) -> Store {
        Store::open(SIZE, base, memory_clusters * CLUSTER_BYTES, directory).unwrap()
    }

    fn content(store: &Store) -> Vec<u8> {
        store.read(0, SIZE as usize, <[u8]>::to_vec)
    }

    /// Sector-aligned writes, clears and reads, the same on the store and on plain memory, must agree; also after a snapshot, on which a
    /// second round runs.
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
                    1 => store.read(offset, size as usize, |bytes| assert_eq!(bytes, &expected[range])),
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
    fn writes_on_a_snapshot_leave_it_as_it_was() {
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
    fn a_store_that_lost_a_write_keeps_nothing_more() {
        let directory = tempfile::tempdir().unwrap();
        let mut store = open(None, 1, directory.path());
        store.write(0, &[1; CLUSTER]).unwrap();
        // Open for reading only: what goes beyond the one cluster of memory is lost.
        store.spill.file = File::open("/dev/null").unwrap();
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
        assert!(error.to_string().contains("is of a disk of 1048064 bytes"), "{error}");
    }

    #[test]
    fn unfinished_snapshot_is_no_snapshot() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("half")).unwrap();
        assert!(Store::open(SIZE, Some(&directory.path().join("half")), 0, directory.path()).is_err());
    }
}
