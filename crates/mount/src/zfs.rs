//! Real ZFS over emulated disks, through zfs-fuse: a pool with intent-log (ZIL) and read-cache (L2ARC)
//! devices.
//!
//! Every pool has a directory of its own beside the disks' (`.zfs-NAME` in the run directory), and a zfs-fuse
//! of its own in a private mount namespace (`daemon.rs`). Nothing of the system's own ZFS is read, written or
//! needed: neither its daemon and socket nor `zpool.cache` and `zfsrc`. Mounts and processes are found again
//! from the system's tables, so [`down`] works after a crash of any part.
//!
//! # Measurements
//! With zfs-fuse 0.7.0-25 of Debian 12 (pool version 23, 4 KiB sectors, its own choice) on Linux 6.18, two
//! cores. The emulator's counters show the requests that reached a device.
//!
//! * It opens block devices with O_DIRECT (`/proc/PID/fdinfo`), with or without `--disable-block-cache`, so
//!   the page cache of the loop device never answers.
//! * The page cache of the *mounted file system* does, unless that option is given: after writing 400 MB,
//!   1500 random reads took 3 us each and not one reached a device. With the option (files get FUSE's
//!   `direct_io`) 300 of them took 12 ms each on a hard disk, and 13 us again once they were in the ARC. So
//!   the option is on, and as on Solaris the ARC is the only cache above the devices. The price: no shared
//!   writable mmap on the file system (ENODEV). Private mappings work, and files can be opened with O_DIRECT.
//! * `fsync` is one write and one FLUSH of the log device: 200 calls gave 200 flushes there and 4 of the data
//!   device, which is flushed at the end of a transaction group. The FLUSH comes from fsync(2) on the device.
//!   A device without a volatile cache gets none. Without a log device the data device gets them all.
//! * The first `fsync` after an import is more: ZFS begins its intent log then, and waits until a transaction
//!   group is written for it (`zil_create`), on a 7200 rpm disk for 0.1 to 0.3 s. It is done before a pool is
//!   given away, as on any pool in use; otherwise it falls into the measured window unless the server's own
//!   start flushes something there.
//! * Random reads of 100 MB with an ARC of 16 MiB move to the cache device: in the first 15 seconds 3900
//!   reads of the hard disk and 95000 of the SSD, in the third 15 seconds none of the hard disk.
//! * The path through zfs-fuse adds about 30 us (median) to a read of 16 KiB, compared with a raw read of the
//!   same device. A 4 KiB `fsync` takes 47 us on devices that take no time. The floor that an emulated disk
//!   subtracts does not include this cost; in the studied systems ZFS ran in the kernel.
//! * The package's settings (`/etc/zfs/zfsrc`) are not read. High-level prefetch is off, as in the package.
//!   The cache per device (10 MB in the package) is off too: it would be another cache beside the ARC.
//! * When the devices die, zfs-fuse still answers some `fsync` as done: its intent log does not look at the error.
//!   It waits for them when a transaction group is to be written. A trial fails by its look at the emulators.
//! * After `kill -9` of zfs-fuse a pool can be imported, and replay of its intent log restores the synced
//!   data.
//! * MariaDB 10.11 installs, loads and runs TPC-C on it with `innodb_flush_method=fsync` and
//!   `innodb_use_native_aio=0`; the consistency conditions hold.

mod daemon;
mod quiet;

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

pub use self::daemon::is_installed;
use crate::disk;
use crate::format_options::zfs_refusal;
use crate::run_directory::{self, run_directory};
use crate::system::{
    backing_file, detach_mount, is_mount_point, mounts_of, names_in, remove_ours, unmount, wait_until,
};
use spindle_base::Mistake;

/// Prefix of every pool's name. Pools without it are never touched.
const PREFIX: &str = "spindle-";
/// Longest wait for a use that is just ending.
const PATIENCE: Duration = Duration::from_secs(5);

/// The block devices of a pool: raw emulated disks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PoolDevices {
    /// Striped: ZFS stripes over several top-level devices.
    pub data: Vec<PathBuf>,
    /// For the intent log, which otherwise lies on `data`.
    pub log: Vec<PathBuf>,
    /// Second-level read cache. It is empty after every import, because this version of ZFS does not keep its
    /// content.
    pub cache: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PoolOptions {
    /// Upper bound of the first-level cache, in whole MiB from 16 MiB to 16 GiB. It is the only cache above
    /// the devices.
    pub arc_bytes: u64,
    /// `name=value` for the file system of a new pool, added to `atime=off` and `compression=off`, which they
    /// may override. An imported pool keeps the properties from its creation.
    pub properties: Vec<String>,
    /// Whether zfs-fuse is killed when the thread that started it ends.
    pub die_with_parent: bool,
    /// Environment variables of zfs-fuse, which put it into dilated time: its transaction groups and the feeding of
    /// the cache device go by timers.
    pub environment: Vec<(&'static str, OsString)>,
}

impl PoolOptions {
    /// The default of zfs-fuse.
    pub const ARC_BYTES: u64 = 100 << 20;
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            arc_bytes: PoolOptions::ARC_BYTES,
            properties: Vec::new(),
            die_with_parent: false,
            environment: Vec::new(),
        }
    }
}

/// A mounted pool. Dropping it takes it down.
#[derive(Debug)]
pub struct Pool {
    pub name: String,
    pub mount: PathBuf,
    /// The process of zfs-fuse, for CPU accounting.
    pub process_id: u32,
    /// Reaped when it ends.
    daemon: Option<Child>,
    /// See [`Pool::insist`].
    insists: bool,
    down: bool,
}

impl Pool {
    /// Makes a new pool and mounts it.
    ///
    /// # Errors
    /// No privilege, a name or device in use, a device that holds something, or a property that ZFS refuses:
    /// with the tool's last words. Nothing is left behind.
    pub fn create(name: &str, devices: &PoolDevices, options: &PoolOptions) -> Result<Pool> {
        Pool::bring_up(name, devices, options, |pool, state| {
            let (root, pool_name) = (path_text(state)?, pool_name(name));
            // Dead devices give errors; the default is to wait for their return.
            let mut arguments =
                vec!["create", "-o", "failmode=continue", "-O", "atime=off", "-O", "compression=off"];
            arguments.extend(options.properties.iter().flat_map(|property| ["-O", property]));
            arguments.extend(["-R", &root, "-m", "/mount", &pool_name]);
            let mut links = Vec::new();
            for (kind, paths) in groups(devices) {
                links.extend((kind != "data" && !paths.is_empty()).then(|| kind.to_owned()));
                for index in 0..paths.len() {
                    links.push(path_text(&link(state, kind, index))?);
                }
            }
            arguments.extend(links.iter().map(String::as_str));
            pool.tool("zpool", &arguments).map(drop)
        })
    }

    /// Mounts the pool on these devices, whatever its name was: after [`Pool::export`], from copies of
    /// exported devices, or after a crash, when ZFS replays its intent log.
    ///
    /// # Errors
    /// As for [`Pool::create`]; or a device of the pool is missing.
    pub fn import(name: &str, devices: &PoolDevices, options: &PoolOptions) -> Result<Pool> {
        Pool::bring_up(name, devices, options, |pool, state| {
            let links = path_text(&state.join("devices"))?;
            let found = match pool.tool("zpool", &["import", "-d", &links]) {
                Err(error) if error.to_string().ends_with(daemon::SILENT) => String::new(),
                found => found?,
            };
            let id = imported_id(&found)?;
            // Forced: the pool may not have been exported, or may come from another machine. Nobody else can
            // have these devices.
            let arguments = ["import", "-f", "-R", &path_text(state)?, "-d", &links, id, &pool_name(name)];
            pool.tool("zpool", &arguments)?;
            let health = pool.tool("zpool", &["list", "-H", "-o", "health", &pool_name(name)])?;
            if health != "ONLINE" {
                bail!("the pool is {health}: {}", pool.tool("zpool", &["status", "-x"])?.replace('\n', "; "));
            }
            Ok(())
        })
    }

    fn bring_up(
        name: &str,
        devices: &PoolDevices,
        options: &PoolOptions,
        open: impl FnOnce(&Pool, &Path) -> Result<()>,
    ) -> Result<Pool> {
        ensure!(rustix::process::geteuid().is_root(), "a ZFS pool needs root (mount and FUSE)");
        let arc_bytes = options.arc_bytes;
        let fits = (16 << 20..=16 << 30).contains(&arc_bytes) && arc_bytes.is_multiple_of(1 << 20);
        ensure!(fits, "a cache (ARC) of {arc_bytes} bytes: it must be whole MiB, 16 MiB to 16 GiB");
        if let Some(words) = zfs_refusal(&options.properties) {
            bail!(Mistake::new(words));
        }
        let state = state_directory(name)?;
        refuse_name_in_use(name)?;
        refuse_devices_in_use(devices)?;
        let attempt = || -> Result<Pool> {
            lay_out(&state, devices)?;
            let daemon = daemon::start(&state, options)?;
            let mount = mount_of(name)?;
            let process_id = daemon.id();
            let pool = Pool {
                name: name.to_owned(),
                mount,
                process_id,
                daemon: Some(daemon),
                insists: false,
                down: false,
            };
            open(&pool, &state)?;
            daemon::show_mount(process_id, &pool.mount)?;
            begin_intent_log(&pool.mount)?;
            Ok(pool)
        };
        let opened = attempt();
        if opened.is_err() {
            // The first error is the one to report. If the pool was made, dropping it has taken it down.
            let _ = down(name);
        }
        opened.with_context(|| format!("bringing up the ZFS pool {name}"))
    }

    /// Runs `zpool` or `zfs` against this pool's daemon, for example `["iostat", "-v"]`. Returns standard
    /// output.
    ///
    /// # Errors
    /// The tool's last words.
    pub fn tool(&self, program: &str, arguments: &[&str]) -> Result<String> {
        daemon::tool(self.process_id, program, arguments)
    }

    /// Unmounts, writes everything out and releases the devices. They can then be kept as snapshots and
    /// imported.
    ///
    /// # Errors
    /// The file system is in use, and the pool stays up for another try by [`down`]; or a device fails.
    pub fn export(mut self) -> Result<()> {
        unmount(&self.mount)?;
        let name = pool_name(&self.name);
        // The daemon notices the end of the last use a moment later.
        retry(|| self.tool("zfs", &["umount", &name]))?;
        retry(|| self.tool("zpool", &["export", &name]))?;
        self.take_down()
    }

    /// Unmounts, and marks the devices as free. For devices that stay up; for disks that are taken down
    /// anyway, [`Pool::down`] suffices.
    ///
    /// # Errors
    /// The file system is in use.
    pub fn destroy(mut self) -> Result<()> {
        unmount(&self.mount)?;
        let name = pool_name(&self.name);
        retry(|| self.tool("zpool", &["destroy", "-f", &name]))?;
        self.take_down()
    }

    /// Unmounts and ends zfs-fuse at once; unwritten data does not reach the devices.
    ///
    /// # Errors
    /// The file system is in use; see also [`Pool::insist`].
    pub fn down(mut self) -> Result<()> {
        self.take_down()
    }

    /// From now on a pool that cannot be taken down is taken away, and its users get I/O errors.
    pub fn insist(&mut self) {
        self.insists = true;
    }

    /// Leaves the pool running without this handle.
    pub fn leave_up(mut self) {
        self.down = true;
    }

    fn take_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.down, true) {
            return Ok(());
        }
        // A killed process stays in the process table until it is waited for.
        let daemon = self.daemon.take();
        let result = down(&self.name);
        if result.is_err()
            && self.insists
            && let Ok(state) = state_directory(&self.name)
            && let Err(error) = take_away(&state)
        {
            eprintln!("spindle: taking the ZFS pool {} away: {error:#}", self.name);
        }
        if let Some(mut daemon) = daemon.filter(|_| result.is_ok() || self.insists) {
            // It was killed, so this only reaps it, unless a device below never answers.
            wait_until(PATIENCE, || !matches!(daemon.try_wait(), Ok(None)));
        }
        result
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Err(error) = self.take_down() {
            eprintln!("spindle: taking down the ZFS pool {}: {error:#}", self.name);
        }
    }
}

fn pool_name(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Prefix of every pool's state directory. No disk's name begins with a dot.
const DIRECTORY_PREFIX: &str = ".zfs-";

/// The state directory of the pool of that name; [`Pool::mount`] is `mount` in it.
///
/// # Errors
/// A name that is not allowed for a disk either.
pub fn state_directory(name: &str) -> Result<PathBuf> {
    run_directory::state_directory(name)?;
    Ok(run_directory().join(format!("{DIRECTORY_PREFIX}{name}")))
}

/// The mount point of the pool of that name.
///
/// # Errors
/// As [`state_directory`].
pub fn mount_of(name: &str) -> Result<PathBuf> {
    Ok(state_directory(name)?.join("mount"))
}

fn groups(devices: &PoolDevices) -> [(&'static str, &[PathBuf]); 3] {
    [("data", &devices.data), ("log", &devices.log), ("cache", &devices.cache)]
}

/// The name by which ZFS knows a device, independent of the number of its loop device.
fn link(state: &Path, kind: &str, index: usize) -> PathBuf {
    state.join("devices").join(format!("{kind}-{index}"))
}

fn path_text(path: &Path) -> Result<String> {
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not UTF-8", path.display()))
}

fn lay_out(state: &Path, devices: &PoolDevices) -> Result<()> {
    for directory in ["devices", "mount"] {
        let directory = state.join(directory);
        fs::create_dir_all(&directory).with_context(|| format!("making {}", directory.display()))?;
    }
    for (kind, paths) in groups(devices) {
        for (index, path) in paths.iter().enumerate() {
            let link = link(state, kind, index);
            symlink(path, &link).with_context(|| format!("making {}", link.display()))?;
        }
    }
    Ok(())
}

/// # Errors
/// There is a pool of that name, up or broken: a [`Mistake`].
pub fn refuse_name_in_use(name: &str) -> Result<()> {
    let words = || format!("a pool called {name} exists already: `spindle disk down {name}` takes it down");
    ensure!(!state_directory(name)?.exists(), Mistake::new(words()));
    Ok(())
}

fn refuse_devices_in_use(devices: &PoolDevices) -> Result<()> {
    ensure!(!devices.data.is_empty(), "a ZFS pool needs at least one data device");
    let all: Vec<&PathBuf> = groups(devices).into_iter().flat_map(|(_, paths)| paths).collect();
    for (index, device) in all.iter().enumerate() {
        ensure!(!all[..index].contains(device), "{} is named twice in one pool", device.display());
        if let Some(at) = mounts_of(device).first() {
            bail!("{} is in use: it is mounted on {}", device.display(), at.display());
        }
        for name in list()? {
            let is_its = devices_of(&state_directory(&name)?).contains(device);
            ensure!(!is_its, "{} is in use by the ZFS pool {name}", device.display());
        }
    }
    Ok(())
}

/// By a first fsync: see "Measurements" in the header.
fn begin_intent_log(mount: &Path) -> Result<()> {
    let path = mount.join(".spindle-first-fsync");
    let begin = || {
        let mut file = File::create(&path)?;
        file.write_all(b"-")?;
        file.sync_all()?;
        fs::remove_file(&path)
    };
    begin().with_context(|| format!("the first fsync of {}", mount.display()))
}

/// The id of the only pool in the list of `zpool import`.
fn imported_id(found: &str) -> Result<&str> {
    let mut ids = found.lines().filter_map(|line| line.trim().strip_prefix("id:")).map(str::trim);
    match (ids.next(), ids.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => bail!("there is no ZFS pool on these devices"),
        (Some(_), Some(_)) => bail!("these devices belong to several ZFS pools"),
    }
}

/// Names of the pools that have a state directory, whether up or broken.
///
/// # Errors
/// The directory cannot be read.
pub fn list() -> Result<Vec<String>> {
    names_in(&run_directory(), |_, name| Some(name.strip_prefix(DIRECTORY_PREFIX)?.to_owned()))
}

/// Whether the pool's zfs-fuse or a disk below it is gone. Then no process will take it down, and nothing can
/// be written.
pub fn is_abandoned(name: &str) -> bool {
    state_directory(name).is_ok_and(|state| state.exists() && is_dead(&state))
}

fn is_dead(state: &Path) -> bool {
    daemon::find(state).is_none() || devices_of(state).iter().any(|device| has_lost_its_file(device))
}

fn devices_of(state: &Path) -> Vec<PathBuf> {
    let links = fs::read_dir(state.join("devices")).into_iter().flatten().flatten();
    links.filter_map(|link| fs::read_link(link.path()).ok()).collect()
}

/// Whether this is a loop device without a file, or whose file cannot be reached: its emulator is dead.
fn has_lost_its_file(device: &Path) -> bool {
    let name = device.file_name().unwrap_or_default();
    name.as_encoded_bytes().starts_with(b"loop")
        && backing_file(device).is_none_or(|file| fs::metadata(file).is_err())
}

/// Unmounts, ends zfs-fuse and removes the state directory, whatever the pool's state. A pool that was not
/// exported keeps the data written out so far. Take the disks below down afterwards.
///
/// # Errors
/// There is no such pool, or a living file system is in use.
pub fn down(name: &str) -> Result<()> {
    let state = state_directory(name)?;
    ensure!(state.exists(), "there is no ZFS pool called {name}");
    for device in devices_of(&state) {
        disk::end_if_silent(&device);
    }
    // Users that still wait for dead disks get errors.
    let mount = mount_of(name)?;
    while !is_dead(&state) && is_mount_point(&mount) {
        unmount(&mount)?;
    }
    take_away(&state)
}

/// Ends zfs-fuse and unmounts; users of the file system get errors.
fn take_away(state: &Path) -> Result<()> {
    daemon::kill(state)?;
    let mount = state.join("mount");
    while is_mount_point(&mount) {
        detach_mount(&mount)?;
    }
    for link in fs::read_dir(state.join("devices")).into_iter().flatten().flatten() {
        let _ = fs::remove_file(link.path());
    }
    let files = [daemon::LOG_FILE, daemon::SOCKET, "lock/zfs_lock", "pools/zpool.cache"];
    let directories = daemon::PRIVATE.map(|(ours, _)| ours);
    remove_ours(state, files.into_iter().chain(["devices", "mount"]).chain(directories))
}

/// Takes down abandoned pools, left by killed runs. Call it before the disks are cleared.
///
/// # Errors
/// A pool that cannot be taken down, by name.
pub fn clear_leftovers() -> Result<()> {
    for name in list()?.iter().filter(|name| is_abandoned(name)) {
        down(name).with_context(|| format!("taking down the abandoned ZFS pool {name}"))?;
    }
    Ok(())
}

fn retry<T>(mut attempt: impl FnMut() -> Result<T>) -> Result<()> {
    let started = Instant::now();
    loop {
        match attempt() {
            Ok(_) => return Ok(()),
            Err(error) if started.elapsed() > PATIENCE => return Err(error),
            Err(_) => sleep(Duration::from_millis(100)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_pool_on_the_devices_is_found_by_its_id() {
        let one = "  pool: spindle-a\n    id: 6993891372193414519\n state: ONLINE\n";
        assert_eq!(imported_id(one).unwrap(), "6993891372193414519");
        assert!(imported_id("").unwrap_err().to_string().contains("no ZFS pool"));
        assert!(imported_id(&one.repeat(2)).unwrap_err().to_string().contains("several"));
    }

    #[test]
    fn a_pool_cannot_leave_its_directory_or_be_a_disk() {
        assert!(state_directory("../a").is_err());
        assert!(state_directory("a").unwrap().ends_with(".zfs-a"));
        assert!(run_directory::state_directory(".zfs-a").is_err());
    }

    #[test]
    fn a_pool_needs_data_devices_each_named_once() {
        let sda = PathBuf::from("/dev/null");
        let words = |devices: &PoolDevices| refuse_devices_in_use(devices).unwrap_err().to_string();
        assert!(words(&PoolDevices::default()).contains("at least one data device"));
        let twice = PoolDevices { data: vec![sda.clone()], log: vec![sda], cache: vec![] };
        assert_eq!(words(&twice), "/dev/null is named twice in one pool");
    }
}
