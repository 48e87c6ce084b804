//! Real ZFS on emulated disks: which requests reach which device. Nothing is ever left.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::ops::Deref;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::emulated_support::{self, emulator_of, kill, tool};
use crate::zfs_run::with_zfs;
use crate::{in_check_all, wait_until};
use rustix::process::{Pid, Signal};
use serde_json::json;
use spindle_mount::control::{Client, Command as Control};
use spindle_mount::zfs::{self, Pool, PoolDevices, PoolOptions};

/// Disks in a run directory of their own, and the name of a pool. Pools are in the usual run directory,
/// because they belong to this process, and its id is in their names.
struct Bench {
    disks: emulated_support::Bench,
    pool: String,
}

impl Deref for Bench {
    type Target = emulated_support::Bench;

    fn deref(&self) -> &Self::Target {
        &self.disks
    }
}

impl Bench {
    /// Where there is ZFS on emulated disks.
    fn new(test: &str) -> Option<Bench> {
        let disks = with_zfs()?;
        Some(Bench { disks, pool: format!("test-{}-{test}", std::process::id()) })
    }

    /// One with a volatile cache: the kernel sends FLUSH to no other.
    fn disk(&self, name: &str) -> PathBuf {
        self.up("x25m-80", name, &["--file-system", "none"])["device"].as_str().unwrap().into()
    }

    fn data_disk(&self) -> PoolDevices {
        PoolDevices { data: vec![self.disk("data")], ..PoolDevices::default() }
    }

    fn disks(&self) -> PoolDevices {
        let [data, log, cache] = ["data", "log", "cache"].map(|name| vec![self.disk(name)]);
        PoolDevices { data, log, cache }
    }

    fn create(&self, devices: &PoolDevices) -> Pool {
        Pool::create(&self.pool, devices, &options()).unwrap()
    }

    fn client(&self, disk: &str) -> Client {
        Client::connect(&self.path("run").join(disk).join("socket")).unwrap()
    }

    fn assert_no_pool(&self) {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(!mounts.contains(&self.pool), "still mounted: {mounts}");
        assert!(!zfs::state_directory(&self.pool).unwrap().exists());
        assert!(!zfs::list().unwrap().contains(&self.pool));
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let line = fs::read(process.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line);
            assert!(!(line.contains("zfs-fuse") && line.contains(&self.pool)), "still runs: {line}");
        }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        // A test that failed must not leave its pool on the machine.
        let _ = zfs::down(&self.pool);
    }
}

fn options() -> PoolOptions {
    PoolOptions {
        arc_bytes: 16 << 20,
        properties: vec!["recordsize=16K".to_owned()],
        die_with_parent: true,
        ..PoolOptions::default()
    }
}

fn write_and_sync(path: &Path, content: &[u8]) {
    let mut file = File::create(path).unwrap();
    file.write_all(content).unwrap();
    file.sync_all().unwrap();
}

#[test]
fn every_fsync_is_a_flush_of_the_log_device_alone() {
    let Some(bench) = in_check_all(|| Bench::new("flush")) else { return };
    let pool = bench.create(&bench.disks());
    let (mut log, mut data) = (bench.client("log"), bench.client("data"));
    let before = log.statistics().unwrap();
    let data_before = data.statistics().unwrap();
    let file = File::create(pool.mount.join("file")).unwrap();
    const SYNCS: u64 = 50;
    for index in 0..SYNCS {
        file.write_all_at(&[index as u8; 4096], index * 4096).unwrap();
        file.sync_all().unwrap();
    }
    let after = log.statistics().unwrap();
    let flushes = after.flush.count - before.flush.count;
    assert!(flushes >= SYNCS, "only {flushes} flushes of the log device");
    let write_bytes = after.write.bytes - before.write.bytes;
    assert!(write_bytes >= SYNCS * 4096, "only {write_bytes} bytes written to the log device");
    // It is flushed once per transaction group, which last seconds.
    let data_flushes = data.statistics().unwrap().flush.count - data_before.flush.count;
    assert!(data_flushes < SYNCS, "{data_flushes} flushes of the data device");
    drop(file);
    pool.down().unwrap();
    bench.assert_no_pool();
}

#[test]
fn the_first_fsync_of_a_pool_waits_for_no_transaction_group() {
    let Some(bench) = Bench::new("first") else { return };
    let devices = bench.disks();
    bench.create(&devices).export().unwrap();
    let pool = Pool::import(&bench.pool, &devices, &options()).unwrap();
    let (mut log, mut data) = (bench.client("log"), bench.client("data"));
    let flushes = |client: &mut Client| client.statistics().unwrap().flush.count;
    let before = (flushes(&mut log), flushes(&mut data));
    write_and_sync(&pool.mount.join("file"), b"content");
    let after = (flushes(&mut log), flushes(&mut data));
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 0), "flushes of the log and of the data");
    pool.down().unwrap();
    bench.assert_no_pool();
}

#[test]
fn reads_reach_the_devices_and_no_cache_of_the_host() {
    let Some(bench) = in_check_all(|| Bench::new("reads")) else { return };
    let pool = bench.create(&bench.data_disk());
    const SIZE: usize = 64 << 20;
    let content: Vec<u8> = (0..SIZE).map(|index| (index / 4099) as u8).collect();
    let path = pool.mount.join("file");
    write_and_sync(&path, &content);
    let mut data = bench.client("data");
    let before = data.statistics().unwrap();
    // Four times the ARC: at least half of it must come from the device, though it was just written.
    assert!(fs::read(&path).unwrap() == content);
    let read_bytes = data.statistics().unwrap().read.bytes - before.read.bytes;
    assert!(read_bytes > SIZE as u64 / 2, "only {read_bytes} of {SIZE} bytes were read from the device");
    pool.down().unwrap();
    bench.assert_no_pool();
}

/// ZFS closes a transaction group after some seconds of its own, and flushes the data device then.
#[test]
fn transaction_groups_close_in_dilated_time() {
    let Some(bench) = in_check_all(|| Bench::new("time")) else { return };
    // Writes until the first group closes, or that long. Whether one did, and when.
    let first_group = |k: &str, patience: Duration| {
        let pool = bench.up("barracuda-zfs-log-cache", "pool", &["--dilation", k]);
        let file = File::create(Path::new(pool["mount"].as_str().unwrap()).join("file")).unwrap();
        let mut data = bench.client("pool-zfs-data");
        let mut flushes = || data.statistics().unwrap().flush.count;
        let (before, began) = (flushes(), Instant::now());
        let mut is_closed = false;
        while !is_closed && began.elapsed() < patience {
            file.write_all_at(&[1; 4096], 0).unwrap();
            std::thread::sleep(Duration::from_millis(100));
            is_closed = flushes() > before;
        }
        let took = began.elapsed();
        drop(file);
        bench.down("pool");
        (is_closed, took)
    };
    let (is_closed, took) = first_group("0.25", Duration::from_secs(60));
    assert!(is_closed, "no transaction group was closed in {took:?}");
    // In real time both would take the same.
    let (is_closed, took) = first_group("4", 2 * took);
    assert!(!is_closed, "where time passes sixteen times slower, a group was closed in {took:?} as well");
}

#[test]
fn exported_devices_carry_the_pool_to_any_name_and_any_loop_device() {
    let Some(bench) = in_check_all(|| Bench::new("export")) else { return };
    let devices = bench.disks();
    let pool = bench.create(&devices);
    write_and_sync(&pool.mount.join("file"), b"content");
    let second = Pool::create(&format!("{}-2", bench.pool), &devices, &options()).unwrap_err();
    assert!(format!("{second:#}").contains("is in use by the ZFS pool"), "{second:#}");
    pool.export().unwrap();
    bench.assert_no_pool();

    // New disks from the snapshots, attached in another order.
    let snapshot = |disk: &str| {
        let directory = bench.path(disk);
        bench.client(disk).call(&Control::Snapshot { directory: directory.clone() }).unwrap();
        directory
    };
    let snapshots = ["data", "log", "cache"].map(snapshot);
    let copies = Copies::up(&bench, &snapshots);
    let renamed = format!("{}-copy", bench.pool);
    let pool = Pool::import(&renamed, &copies.devices(), &options()).unwrap();
    assert!(pool.mount.starts_with(zfs::state_directory(&renamed).unwrap()));
    assert_eq!(fs::read(pool.mount.join("file")).unwrap(), b"content");
    let status = pool.tool("zpool", &["iostat", "-v"]).unwrap();
    assert!(status.contains("log-0") && status.contains("cache-0"), "{status}");
    pool.destroy().unwrap();
    let none = Pool::import(&renamed, &copies.devices(), &options()).unwrap_err();
    assert!(format!("{none:#}").contains("no ZFS pool on these devices"), "{none:#}");
    // The copies were written, but not their originals.
    let pool = Pool::import(&bench.pool, &devices, &options()).unwrap();
    assert_eq!(fs::read(pool.mount.join("file")).unwrap(), b"content");
    pool.down().unwrap();
    // The check below looks for the name of the pool, which is in theirs.
    drop(copies);
    bench.assert_no_pool();
}

/// Disks that start from snapshots.
struct Copies(Vec<spindle_mount::Disk>);

impl Copies {
    fn up(bench: &Bench, snapshots: &[PathBuf; 3]) -> Copies {
        let up = |snapshot: &PathBuf| {
            let original = snapshot.file_name().unwrap();
            let text = fs::read(bench.path("run").join(original).join("disk.json")).unwrap();
            let mut options: spindle_mount::DiskOptions = serde_json::from_slice(&text).unwrap();
            options.name = format!("{}-{}", bench.pool, original.display());
            options.serve.state_directory = spindle_mount::state_directory(&options.name).unwrap();
            options.serve.base = Some(snapshot.clone());
            spindle_mount::Disk::up(Path::new(env!("CARGO_BIN_EXE_spindle")), &options).unwrap()
        };
        let mut disks: Vec<_> = snapshots.iter().rev().map(up).collect();
        disks.reverse();
        Copies(disks)
    }

    fn devices(&self) -> PoolDevices {
        let [data, log, cache] = [0, 1, 2].map(|index| vec![self.0[index].device.clone()]);
        PoolDevices { data, log, cache }
    }
}

#[test]
fn synced_data_survives_a_killed_daemon() {
    let Some(bench) = in_check_all(|| Bench::new("killed")) else { return };
    let devices = bench.disks();
    let pool = bench.create(&devices);
    write_and_sync(&pool.mount.join("file"), b"content");
    let open = File::open(pool.mount.join("file")).unwrap();
    assert!(!zfs::is_abandoned(&bench.pool));
    kill(Pid::from_raw(pool.process_id as i32).unwrap(), Signal::KILL);
    pool.leave_up();
    wait_until("the daemon to end", || zfs::is_abandoned(&bench.pool));
    assert!(open.read_at(&mut [0; 8], 0).is_err(), "a dead pool cannot answer");
    zfs::clear_leftovers().unwrap();
    bench.assert_no_pool();

    // Only the intent log has it.
    let pool = Pool::import(&bench.pool, &devices, &options()).unwrap();
    assert_eq!(fs::read(pool.mount.join("file")).unwrap(), b"content");
    pool.down().unwrap();
    bench.assert_no_pool();
}

#[test]
fn a_pool_on_dead_disks_is_taken_down() {
    let Some(bench) = in_check_all(|| Bench::new("dead")) else { return };
    let pool = bench.create(&bench.disks());
    for disk in ["data", "log", "cache"] {
        kill(emulator_of(&bench.path("run").join(disk)), Signal::KILL);
    }
    assert!(zfs::is_abandoned(&bench.pool));
    let path = pool.mount.join("after");
    // It may wait for the disks until the pool is gone.
    let writer = std::thread::spawn(move || {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        file.and_then(|file| file.write_all_at(&[1; 4096], 0).and_then(|()| file.sync_all()))
    });
    std::thread::sleep(Duration::from_millis(500));
    pool.down().unwrap();
    bench.assert_no_pool();
    // Whatever zfs-fuse has answered: see the header of `zfs.rs` in the crate of mounts.
    let _ = writer.join().unwrap();
}

#[test]
fn a_pool_dies_with_the_thread_that_started_it() {
    let Some(bench) = Bench::new("thread") else { return };
    let devices = bench.data_disk();
    std::thread::scope(|scope| {
        scope.spawn(|| bench.create(&devices).leave_up());
    });
    wait_until("the daemon to end", || zfs::is_abandoned(&bench.pool));
    zfs::clear_leftovers().unwrap();
    bench.assert_no_pool();
}

#[test]
fn a_mistake_gives_one_sentence_and_leaves_nothing() {
    let Some(bench) = Bench::new("mistake") else { return };
    let devices = bench.data_disk();
    let words = |devices: &PoolDevices, options: &PoolOptions| {
        let error = Pool::create(&bench.pool, devices, options).unwrap_err();
        bench.assert_no_pool();
        format!("{error:#}")
    };
    let property = PoolOptions { properties: vec!["recordsize=17K".to_owned()], ..options() };
    let refused = words(&devices, &property);
    assert!(refused.contains("'recordsize' must be power of 2 from 512 to 128k"), "{refused}");
    let small = words(&devices, &PoolOptions { arc_bytes: 1 << 20, ..options() });
    assert!(small.contains("16 MiB to 16 GiB"), "{small}");
    let missing = PoolDevices { data: vec!["/dev/no-such-device".into()], ..PoolDevices::default() };
    let missing = words(&missing, &options());
    assert!(missing.contains("zpool create") && missing.contains("data-0"), "{missing}");
    let empty = Pool::import(&bench.pool, &devices, &options()).unwrap_err();
    assert!(format!("{empty:#}").contains("no ZFS pool on these devices"), "{empty:#}");
    bench.assert_no_pool();
}

#[test]
fn a_pool_does_not_keep_other_disks_in_use() {
    let Some(bench) = Bench::new("other") else { return };
    // Its mounts are there when the daemon's mount namespace is made.
    bench.up("null", "other", &[]);
    let pool = bench.create(&bench.data_disk());
    bench.down("other");
    write_and_sync(&pool.mount.join("file"), b"content");
    pool.down().unwrap();
    bench.assert_no_pool();
}

#[test]
fn a_ready_made_pool_is_brought_up_measured_and_taken_down() {
    let Some(bench) = in_check_all(|| Bench::new("ready-made")) else { return };
    let pool = bench.up("barracuda-zfs-log-cache", "pool", &[]);
    let mount = pool["mount"].as_str().unwrap();
    let status = bench.json(&["disk", "status", "--json"]);
    let disks = status.as_array().unwrap();
    assert_eq!(disks.len(), 3, "{status}");
    assert!(disks.iter().all(|disk| disk["mount"] == mount), "{status}");
    let options = tool("findmnt", &["--noheadings", "--output", "OPTIONS", mount]);
    assert!(options.contains("nosuid,nodev"), "{options}");
    let before = bench.client("pool-zfs-log").statistics().unwrap();
    write_and_sync(&Path::new(mount).join("file"), &[1; 65_536]);
    assert!(bench.client("pool-zfs-log").statistics().unwrap().flush.count > before.flush.count);
    bench.down("pool");
    assert!(!Path::new(mount).exists());
    assert_eq!(bench.json(&["disk", "status", "--json"]), json!([]));
}

#[test]
fn a_pool_in_use_is_taken_down_by_an_owner_who_insists() {
    let Some(bench) = in_check_all(|| Bench::new("insists")) else { return };
    let mut pool = bench.create(&bench.data_disk());
    pool.insist();
    let file = File::create(pool.mount.join("open")).unwrap();
    let words = pool.down().unwrap_err().to_string();
    assert!(words.contains("is in use: end the processes"), "{words}");
    assert!(file.write_all_at(b"nowhere", 0).is_err());
    bench.assert_no_pool();
}

#[test]
fn a_pool_in_use_is_not_taken_down() {
    let Some(bench) = in_check_all(|| Bench::new("busy")) else { return };
    let pool = bench.create(&bench.data_disk());
    let file = File::create(pool.mount.join("open")).unwrap();
    let words = pool.export().unwrap_err().to_string();
    assert!(words.contains("is in use: end the processes"), "{words}");
    file.write_all_at(b"still there", 0).unwrap();
    drop(file);
    zfs::down(&bench.pool).unwrap();
    bench.assert_no_pool();
}
