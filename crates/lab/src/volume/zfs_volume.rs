//! The ZFS pool under a trial: an emulated disk for its data, optional ones for its intent log and its read
//! cache, and a zfs-fuse process above them.
//!
//! Each device is sampled separately ([`Volume::sample`]). Figures of the volume as a whole mean:
//! * Statistics are sums over the disks. Counts, bytes and the mean queue depth are those of all devices
//!   together. A mean latency is that of a request to any of them, so many flushes of a fast log hide a few
//!   slow reads of the data disk.
//! * The block device is the data disk.
//! * The CPU time is that of all emulators and of zfs-fuse, which does the file system's work.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use spindle_base::histogram::{decode, encode};
use spindle_model::Change;
use spindle_mount::zfs::{Pool, PoolDevices, PoolOptions};
use spindle_mount::{Disk, FileSystem, Floor, OperationStatistics, Statistics, zfs};

use crate::host::trial_time::Environment;
use crate::stack::{PoolSpec, StackSpec};
use crate::volume::Volume;
use crate::volume::emulated::{self, Wishes};
use crate::volume::sample::{BlockCounters, MountSample};

#[derive(Debug)]
pub struct ZfsVolume {
    // Dropped in this order: the pool before its disks.
    pool: Pool,
    /// The data's first.
    disks: Vec<PoolDisk>,
}

#[derive(Debug)]
struct PoolDisk {
    /// `data`, `log` or `cache`; also the name of its part of a snapshot.
    key: &'static str,
    disk: Disk,
}

fn device_name(pool: &str, key: &str) -> String {
    format!("{pool}-zfs-{key}")
}

/// Whether the disk of that name was brought up for that pool.
pub fn is_device_of(disk: &str, pool: &str) -> bool {
    ["data", "log", "cache"].iter().any(|key| disk == device_name(pool, key))
}

/// Seeds of neighbouring mounts differ by one.
const SEED_STEP: u64 = 1 << 16;

impl ZfsVolume {
    /// A new pool, or the pool of a snapshot. `mount_count` volumes share the memory for written data. The environment
    /// puts zfs-fuse into the time of the disks.
    ///
    /// # Errors
    /// Any failure to bring up a disk or the pool, with the failed step; nothing is up then.
    pub fn up(
        stack: &StackSpec,
        pool: &PoolSpec,
        wishes: &Wishes<'_>,
        mount_count: u64,
        environment: &Environment,
    ) -> Result<ZfsVolume> {
        zfs::refuse_name_in_use(&wishes.name)?;
        let stacks: Vec<(&'static str, &StackSpec)> =
            std::iter::once(("data", stack)).chain(pool.devices()).collect();
        let program = std::env::current_exe().context("looking for our own binary")?;
        let mut disks = Vec::new();
        let mut devices = PoolDevices::default();
        for (index, &(key, stack)) in stacks.iter().enumerate() {
            let snapshot = wishes.snapshot.map(|directory| directory.join(key));
            let wishes = Wishes {
                name: device_name(&wishes.name, key),
                seed: wishes.seed.wrapping_add(SEED_STEP * index as u64),
                mount_at: None,
                floor: wishes.floor.or_else(|| disks.first().map(|part: &PoolDisk| part.disk.floor)),
                snapshot: snapshot.as_deref(),
                ..wishes.clone()
            };
            let mut options = emulated::options(stack, &wishes)?;
            options.formatting.file_system = FileSystem::None;
            options.serve.memory_budget_bytes /= mount_count.max(1) * stacks.len() as u64;
            let disk =
                Disk::up(&program, &options).with_context(|| format!("the pool's device for {key}"))?;
            let group = match key {
                "log" => &mut devices.log,
                "cache" => &mut devices.cache,
                _ => &mut devices.data,
            };
            group.push(disk.device.clone());
            disks.push(PoolDisk { key, disk });
        }
        let options = PoolOptions {
            arc_bytes: pool.arc_bytes,
            properties: vec![format!("recordsize={}", pool.record_bytes)],
            die_with_parent: wishes.die_with_parent,
            environment: environment.clone(),
        };
        let bring_up = if wishes.snapshot.is_some() { Pool::import } else { Pool::create };
        let mut pool = bring_up(&wishes.name, &devices, &options)?;
        if wishes.die_with_parent {
            // Nobody retries later, and the next trial has a pool of the same name.
            pool.insist();
        }
        // The requests so far are those of `zpool`.
        disks.iter_mut().try_for_each(|part| part.disk.reset_statistics())?;
        Ok(ZfsVolume { pool, disks })
    }
}

impl ZfsVolume {
    pub fn mount(&self) -> &PathBuf {
        &self.pool.mount
    }

    /// The data disk.
    ///
    /// # Panics
    /// Never: a pool has one.
    pub fn data(&self) -> &Disk {
        &self.disks[0].disk
    }

    /// Leaves pool and disks running without this handle.
    pub fn leave_up(self) {
        self.pool.leave_up();
        self.disks.into_iter().for_each(|part| part.disk.leave_up());
    }
}

impl Volume for ZfsVolume {
    fn path(&self) -> &Path {
        &self.pool.mount
    }

    fn floor(&self) -> Option<Floor> {
        self.disks.first().map(|part| part.disk.floor)
    }

    fn set_timing(&mut self, on: bool) -> Result<()> {
        self.disks.iter_mut().try_for_each(|part| part.disk.set_timing(on))
    }

    fn change(&mut self, change: Change) -> Result<()> {
        self.disks[0].disk.change(change)
    }

    fn check(&mut self) -> Result<()> {
        self.statistics()?;
        // A pool continues without its log or its cache.
        let health = self.pool.tool("zpool", &["list", "-H", "-o", "health"])?;
        ensure!(health == "ONLINE", "the ZFS pool is {health}");
        emulated::check_room(&self.pool.mount)
    }

    fn statistics(&mut self) -> Result<Option<Statistics>> {
        Ok(self.sample()?.statistics)
    }

    fn sample(&mut self) -> Result<MountSample> {
        let look = |PoolDisk { key, disk }: &mut PoolDisk| {
            let statistics = disk.statistics().with_context(|| format!("the pool's device for {key}"))?;
            let block_device = Some(BlockCounters::read(&disk.device)?);
            let sample = MountSample { statistics: Some(statistics), block_device, devices: Vec::new() };
            Ok((*key, sample))
        };
        let devices: Vec<(&'static str, MountSample)> =
            self.disks.iter_mut().map(look).collect::<Result<_>>()?;
        let each: Vec<Statistics> =
            devices.iter().filter_map(|(_, device)| device.statistics.clone()).collect();
        let block_device = devices.first().and_then(|(_, data)| data.block_device);
        // A pool of one device is that device.
        let devices = if devices.len() > 1 { devices } else { Vec::new() };
        Ok(MountSample { statistics: Some(sum(&each)?), block_device, devices })
    }

    fn block_device(&self) -> Option<&Path> {
        self.disks.first().map(|part| part.disk.device.as_path())
    }

    fn process_ids(&self) -> Vec<u32> {
        let emulators = self.disks.iter().map(|part| part.disk.process_id);
        emulators.chain([self.pool.process_id]).collect()
    }

    fn into_snapshot(mut self: Box<Self>, directory: &Path) -> Result<()> {
        self.set_timing(false)?;
        let ZfsVolume { pool, disks } = *self;
        pool.export()?;
        for PoolDisk { key, mut disk } in disks {
            let part: PathBuf = directory.join(key);
            disk.snapshot(&part)?;
            disk.down()?;
        }
        Ok(())
    }

    fn down(mut self: Box<Self>) -> Result<()> {
        // Dirty data is discarded, so it need not be written slowly. Dead disks are taken down as well.
        let _ = self.set_timing(false);
        let ZfsVolume { pool, disks } = *self;
        pool.down()?;
        disks.into_iter().try_for_each(|part| part.disk.down())
    }
}

/// Statistics of all devices together. Values without a sum (uptime, dilation, transport, floor) are the
/// first device's; the scheduler is the worst.
fn sum(each: &[Statistics]) -> Result<Statistics> {
    let (first, others) = each.split_first().context("a pool without a device")?;
    // The layers are those of each device.
    let mut total = Statistics { layers: Vec::new(), ..first.clone() };
    let mut lateness = decode(&first.lateness_histogram)?;
    for other in others {
        if other.scheduler != "SCHED_FIFO" {
            total.scheduler.clone_from(&other.scheduler);
        }
        total.timing &= other.timing;
        total.io_flusher_refused |= other.io_flusher_refused;
        for (to, from) in [
            (&mut total.read, &other.read),
            (&mut total.write, &other.write),
            (&mut total.flush, &other.flush),
            (&mut total.discard, &other.discard),
        ] {
            *to = OperationStatistics {
                count: to.count + from.count,
                bytes: to.bytes + from.bytes,
                latency_ns: to.latency_ns + from.latency_ns,
            };
        }
        total.queue_time_ns += other.queue_time_ns;
        total.queue_depth += other.queue_depth;
        total.seeks += other.seeks;
        total.nand_write_bytes += other.nand_write_bytes;
        total.late_requests += other.late_requests;
        total.late_ns += other.late_ns;
        total.major_faults += other.major_faults;
        lateness.add(decode(&other.lateness_histogram)?).context("adding up the devices' lateness")?;
    }
    total.lateness_histogram = encode(&lateness);
    Ok(total)
}

#[cfg(test)]
mod tests {
    use spindle_base::histogram;

    use super::*;

    fn device(reads: u64, lateness_ns: &[u64], scheduler: &str) -> Statistics {
        let mut recorded = histogram::new();
        lateness_ns.iter().for_each(|value| recorded.record(*value).unwrap());
        Statistics {
            uptime_ns: 1000 + reads,
            timing: true,
            scheduler: scheduler.to_owned(),
            read: OperationStatistics { count: reads, bytes: reads * 4096, latency_ns: reads * 10 },
            queue_time_ns: reads * 10,
            lateness_histogram: encode(&recorded),
            ..Statistics::default()
        }
    }

    #[test]
    fn one_emulator_that_memory_reclaim_does_not_spare_is_told() {
        let refused = Statistics { io_flusher_refused: true, ..device(4, &[10], "SCHED_FIFO") };
        assert!(sum(&[device(3, &[10], "SCHED_FIFO"), refused]).unwrap().io_flusher_refused);
    }

    #[test]
    fn requests_add_up_and_the_worst_scheduler_is_told() {
        let devices = [device(3, &[10, 20], "SCHED_FIFO"), device(4, &[500_000], "SCHED_OTHER")];
        let total = sum(&devices).unwrap();
        assert_eq!(total.read, OperationStatistics { count: 7, bytes: 28_672, latency_ns: 70 });
        assert_eq!((total.queue_time_ns, total.uptime_ns), (70, 1003));
        assert_eq!(total.scheduler, "SCHED_OTHER");
        let lateness = decode(&total.lateness_histogram).unwrap();
        assert_eq!((lateness.len(), lateness.max() >= 499_000), (3, true));
        assert!(sum(&[]).is_err());
    }
}
