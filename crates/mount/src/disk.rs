//! The life of an emulated disk: bring up, switch the timing, snapshot, take down.
//!
//! Every disk has a directory under the run directory. Mounts and loop devices are always found from the
//! system's own tables, never from the memory of a process, so [`down`] works after a crash of any part.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::control::{self, Client, Reply};
use crate::file_system::Formatting;
use crate::floor;
use crate::format_options::FileSystem;
use crate::run_directory::{run_directory, state_directory};
use crate::serve::{BUSY, ServeOptions, disk_file, fuse_directory, socket};
use crate::statistics::{Floor, Statistics};
use crate::system::{
    self, detach_mount, file_of_loop, is_claimed, is_mount_point, loops_of, mounts_of, names_in, remove_ours,
    run, unmount, wait_until, wait_until_served,
};
use crate::trace::TraceHead;
use crate::users::users_of;
use crate::watchdog::{self, LOG_FILE, PROCESS_DRAFT, PROCESS_FILE, Watchdog};
use crate::workers;
use spindle_base::affinity::keep_apart;
use spindle_base::dilation::Dilation;
use spindle_base::{Mistake, near};
use spindle_model::Change;

#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct DiskOptions {
    /// Letters, digits, `-`, `_` and `.`; names the state directory.
    pub name: String,
    /// The stack to emulate, in a form that only the serving program reads.
    pub stack: String,
    pub seed: u64,
    /// Reported to the kernel. Software such as InnoDB behaves differently on rotating disks.
    pub rotational: bool,
    /// Reported to the kernel, which sends no FLUSH to a disk without a volatile cache.
    pub volatile_cache: bool,
    #[serde(flatten)]
    pub formatting: Formatting,
    /// The mount point; a directory of the disk's own when absent. Ignored for a raw disk.
    pub mount_at: Option<PathBuf>,
    /// Whether the timing is on after bring-up.
    pub timing: bool,
    /// What another disk measured just now, at the same dilation, or anything for a disk whose timing stays off; `None` to measure it,
    /// which takes a second.
    pub floor: Option<Floor>,
    pub serve: ServeOptions,
}

/// The state directory of a disk that has one, whether up or broken.
///
/// # Errors
/// There is no such disk: a [`Mistake`].
fn existing(name: &str) -> Result<PathBuf> {
    let state = state_directory(name)?;
    if !state.exists() {
        let up = list()?;
        let meant = near::did_you_mean_one_of(name, up.iter().map(|known| (known.as_str(), "")));
        let hint =
            if meant.is_empty() { "; `spindle disk status` lists the disks that are up" } else { &meant };
        bail!(Mistake::new(format!("there is no disk called {name}{hint}")));
    }
    Ok(state)
}

/// File in the state directory that the process holds which brings the disk up, and as long as the disk is to
/// end with it. The kernel releases it even after `kill -9`.
const OWNER_FILE: &str = "owner";
const OWNER_DRAFT: &str = "owner.new";
/// File in the state directory with the options of the emulator.
pub const OPTIONS_FILE: &str = "disk.json";
// These times are about this machine, so they are real under any dilation, as are those of the watchdog.
/// The base image may first have to be read from the host's disk.
const START_TIMEOUT: Duration = Duration::from_secs(300);
const END_TIMEOUT: Duration = Duration::from_secs(20);
/// A mounted file system writes now and then, for a moment.
const IDLE_TIME: Duration = Duration::from_secs(10);
/// A dying process closes its connections a moment before it is gone.
const DYING_TIME: Duration = Duration::from_millis(500);

/// A disk that is up. Dropping it takes it down.
#[derive(Debug)]
pub struct Disk {
    pub name: String,
    pub device: PathBuf,
    /// `None` for a raw disk.
    pub mount: Option<PathBuf>,
    /// Subtracted from every service time.
    pub floor: Floor,
    formatting: Formatting,
    pub socket: PathBuf,
    pub process_id: u32,
    client: Client,
    /// Reaped when the emulator ends.
    emulator: Option<Child>,
    _watchdog: Watchdog,
    _owner: File,
    down: bool,
}

impl Disk {
    /// Starts the emulator (`program disk serve STATE_DIRECTORY`), attaches a loop device, makes a file
    /// system unless the disk starts from a snapshot, and mounts it. On an error everything is taken down
    /// again.
    ///
    /// # Errors
    /// A name or mount point in use, or an option that reaches beyond the disk: a [`Mistake`]. No privilege,
    /// or a tool that fails: an error that names the step.
    pub fn up(program: &Path, options: &DiskOptions) -> Result<Disk> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "an emulated disk needs root (loop devices and mount); without it, only virtual time works"
        );
        options.formatting.check()?;
        let state = &options.serve.state_directory;
        if state.exists() {
            let name = &options.name;
            bail!(Mistake::new(format!(
                "a disk called {name} exists already: `spindle disk down {name}` takes it down"
            )));
        }
        if let Some(at) = options.mount_at.as_deref().filter(|at| is_mount_point(at)) {
            bail!(Mistake::new(format!("{} is in use: something is mounted there", at.display())));
        }
        fs::create_dir_all(state).with_context(|| format!("making {}", state.display()))?;
        let brought_up = own(state).and_then(|owner| bring_up(program, options, owner));
        if brought_up.is_err() && down(&options.name).is_err() {
            // The first error is the one to report. `disk down --all` will undo the rest.
            let _ = take_away(&options.name, state);
        }
        brought_up
    }

    /// # Errors
    /// The emulator died.
    pub fn set_timing(&mut self, on: bool) -> Result<()> {
        let switched = self.client.call(&control::Command::Timing { on });
        switched.map(drop).map_err(|error| self.death().unwrap_or(error))
    }

    /// A part of the disk changes.
    ///
    /// # Errors
    /// The emulator died, or the disk cannot change so.
    pub fn change(&mut self, change: Change) -> Result<()> {
        let changed = self.client.call(&control::Command::Change { change: change.to_string() });
        changed.map(drop).map_err(|error| self.death().unwrap_or(error))
    }

    /// # Errors
    /// The emulator died, or the disk lost a write.
    pub fn statistics(&mut self) -> Result<Statistics> {
        self.client.statistics().map_err(|error| self.death().unwrap_or(error))
    }

    /// From now on a second of the disk's time takes `dilation` real seconds. Waits until no request is in
    /// flight, and begins the statistics anew.
    ///
    /// # Errors
    /// The emulator died, or the disk stays at work.
    pub fn set_dilation(&mut self, dilation: Dilation) -> Result<()> {
        let mut set = Ok(());
        wait_until(IDLE_TIME, || {
            set = self.client.call(&control::Command::SetDilation { dilation }).map(drop);
            !set.as_ref().is_err_and(|error| error.to_string() == BUSY)
        });
        set.map_err(|error| self.death().unwrap_or(error))?;
        set_throttle(&self.device, dilation)?;
        self.mount.as_deref().map_or(Ok(()), |at| self.formatting.set_dilation(at, dilation))
    }

    /// Begins the statistics anew.
    ///
    /// # Errors
    /// The emulator died.
    pub fn reset_statistics(&mut self) -> Result<()> {
        let reset = self.client.call(&control::Command::ResetStatistics);
        reset.map(drop).map_err(|error| self.death().unwrap_or(error))
    }

    /// Begins a block trace of at most that many bytes of requests.
    ///
    /// # Errors
    /// The emulator died, or has no memory for it, or they are more than [`trace::LIMIT_BYTES`].
    pub fn begin_trace(&mut self, limit_bytes: u64) -> Result<()> {
        let begun = self.client.call(&control::Command::BeginTrace { limit_bytes });
        begun.map(drop).map_err(|error| self.death().unwrap_or(error))
    }

    /// Ends the block trace; [`Disk::save_trace`] writes it.
    ///
    /// # Errors
    /// The emulator died.
    pub fn end_trace(&mut self) -> Result<()> {
        let ended = self.client.call(&control::Command::EndTrace);
        ended.map(drop).map_err(|error| self.death().unwrap_or(error))
    }

    /// Writes the block trace to a new file. The path is absolute, because the emulator writes it.
    ///
    /// # Errors
    /// The emulator died, no trace was begun, or the file exists or cannot be written.
    pub fn save_trace(&mut self, path: &Path) -> Result<TraceHead> {
        match self.client.call(&control::Command::SaveTrace { path: path.to_owned() }) {
            Ok(Reply::Trace(head)) => Ok(head),
            Ok(other) => bail!("the emulator answered {other:?} to a request for its block trace"),
            Err(error) => Err(self.death().unwrap_or(error)),
        }
    }

    /// The emulator's last log lines, if it is dead or dying.
    fn death(&mut self) -> Option<anyhow::Error> {
        let log = self.socket.with_file_name(LOG_FILE);
        death(self.emulator.as_mut()?, &log)
    }

    /// Unmounts, and keeps the content as an immutable image in a new directory.
    ///
    /// # Errors
    /// The file system is in use, here or in another mount namespace, or the host's disk is full.
    pub fn snapshot(&mut self, directory: &Path) -> Result<()> {
        self.set_timing(false)?;
        let mounts = mounts_of(&self.device);
        for at in &mounts {
            unmount(at)?;
        }
        if !mounts.is_empty() {
            // A mount namespace made meanwhile (unshare, a container) has a copy of the mount. Dirty data
            // reaches the device only when the last copy is gone.
            wait_for("other mount namespaces to release the file system", || !is_claimed(&self.device))?;
        }
        self.client.call(&control::Command::Snapshot { directory: directory.to_owned() }).map(drop)
    }

    /// Leaves the disk running without this handle.
    pub fn leave_up(mut self) {
        self.down = true;
        self.emulator = None;
    }

    /// Unmounts, detaches and ends the emulator; the written data is lost.
    ///
    /// # Errors
    /// The file system is in use: it is taken away all the same, and its users get I/O errors.
    pub fn down(mut self) -> Result<()> {
        self.take_down()
    }

    fn take_down(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.down, true) {
            return Ok(());
        }
        // Dirty data is discarded, so it need not be written slowly. A dead emulator is taken down all the
        // same.
        let _ = self.client.call(&control::Command::Timing { on: false });
        let result = down(&self.name);
        if result.is_err()
            && let Ok(state) = existing(&self.name)
            && let Err(error) = take_away(&self.name, &state)
        {
            eprintln!("spindle: taking the disk {} away: {error:#}", self.name);
        }
        if let Some(mut emulator) = self.emulator.take() {
            // The emulator has ended, so waiting only reaps it. It can hang if the emulator is blocked on
            // another disk that never answers.
            let _ = wait_for("the emulator to end", || !matches!(emulator.try_wait(), Ok(None)));
        }
        result
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        if let Err(error) = self.take_down() {
            eprintln!("spindle: taking down the disk {}: {error:#}", self.name);
        }
    }
}

/// Makes this process the owner of a new disk. Its file is there once it is locked, so nobody finds a new disk
/// without an owner.
fn own(state: &Path) -> Result<File> {
    let draft = state.join(OWNER_DRAFT);
    let owner = File::create(&draft).context("making the lock of the disk")?;
    rustix::fs::flock(&owner, FlockOperation::NonBlockingLockExclusive).context("locking the disk")?;
    fs::rename(&draft, state.join(OWNER_FILE)).context("making the lock of the disk")?;
    Ok(owner)
}

/// Whether a process owns the disk.
pub(crate) fn is_owned(state: &Path) -> bool {
    let Ok(owner) = File::open(state.join(OWNER_FILE)) else { return false };
    rustix::fs::flock(&owner, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
}

fn bring_up(program: &Path, options: &DiskOptions, owner: File) -> Result<Disk> {
    let state = &options.serve.state_directory;
    let write = |name: &str, content: Vec<u8>| {
        fs::write(state.join(name), content)
            .with_context(|| format!("writing {}", state.join(name).display()))
    };
    write(OPTIONS_FILE, serde_json::to_vec_pretty(options)?)?;
    let log = File::create(state.join(LOG_FILE)).context("making the emulator's log")?;
    let mut emulator = keep_apart(&mut Command::new(program))
        .args(["disk", "serve"])
        .arg(state)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        // Ctrl-C in a terminal goes to the whole foreground process group, and the emulator must outlive the
        // unmounting.
        .process_group(0)
        .spawn()
        .with_context(|| format!("starting {}", program.display()))?;
    // One that ends with us writes it itself: we may be killed before we can.
    if !options.serve.die_with_parent {
        watchdog::write_identity(state, emulator.id())?;
    }
    // The socket appears after the FUSE file does.
    let connect = || Client::connect(&socket(state)).ok();
    let log = state.join(LOG_FILE);
    let client = wait_until_served(&mut emulator, "the emulator", &log, START_TIMEOUT, connect)?;
    let watchdog = Watchdog::start(state, emulator.id())?;
    let attached = attach(client, options);
    let Attached { client, device, mount, floor } =
        attached.map_err(|error| death(&mut emulator, &log).unwrap_or(error))?;
    Ok(Disk {
        name: options.name.clone(),
        device,
        mount,
        floor,
        formatting: options.formatting.clone(),
        socket: socket(state),
        process_id: emulator.id(),
        client,
        emulator: Some(emulator),
        _watchdog: watchdog,
        _owner: owner,
        down: false,
    })
}

struct Attached {
    client: Client,
    device: PathBuf,
    mount: Option<PathBuf>,
    floor: Floor,
}

/// Attaches a loop device to the FUSE file, and makes and mounts a file system on it.
fn attach(mut client: Client, options: &DiskOptions) -> Result<Attached> {
    let state = &options.serve.state_directory;
    let file = disk_file(state);
    let device = run("losetup", &["--find", "--show", "--direct-io=on", &file.to_string_lossy()])
        .context("attaching a loop device")?;
    let device = PathBuf::from(device);
    tell_kernel(&device, options)?;
    let floor = match options.floor {
        Some(floor) => floor,
        None => measure_floor(&mut client, &device, options.serve.dilation)?,
    };
    client.call(&control::Command::SetFloor(floor))?;

    let mount = match options.formatting.file_system {
        FileSystem::None => None,
        _ => {
            if options.serve.base.is_none() {
                options.formatting.make(&device)?;
            }
            let at = options.mount_at.clone().unwrap_or_else(|| state.join("mount"));
            options.formatting.mount(&device, &at, options.serve.dilation)?;
            Some(at)
        }
    };
    // The requests so far are those of mkfs and mount.
    client.call(&control::Command::ResetStatistics)?;
    client.call(&control::Command::Timing { on: options.timing })?;
    Ok(Attached { client, device, mount, floor })
}

/// The timing is off again then.
fn measure_floor(client: &mut Client, device: &Path, dilation: Dilation) -> Result<Floor> {
    let delay_real_ns = floor::delay_real_ns(dilation);
    client.call(&control::Command::SetDelay { delay_real_ns: Some(delay_real_ns) })?;
    client.call(&control::Command::Timing { on: true })?;
    let floor = floor::measure(device, dilation, || workers::hurry(device))
        .context("measuring the emulator's floor")?;
    client.call(&control::Command::SetDelay { delay_real_ns: None })?;
    client.call(&control::Command::Timing { on: false })?;
    Ok(floor)
}

/// The emulator's last log lines, if it is dead or dying.
fn death(emulator: &mut Child, log: &Path) -> Option<anyhow::Error> {
    wait_until(DYING_TIME, || !matches!(emulator.try_wait(), Ok(None)));
    emulator.try_wait().ok().flatten().map(|status| system::death("the emulator", status, log))
}

/// What the kernel reads ahead of a drive that asks for no other size (`VM_READAHEAD_PAGES` in include/linux/mm.h). Linux 6.17 and
/// later read ahead twice the largest request, 2.5 MiB, of a rotating drive (`blk_apply_bdi_limits` in block/blk-settings.c), and
/// a loop device keeps that for its next user. Here it is the same on all kernels, and for all drives.
const READ_AHEAD_KB: &str = "128";
const READ_AHEAD: &str = "read_ahead_kb";

/// Tells the kernel the attributes that a real drive of this kind would report. Also directs each completion
/// to the core that issued the request (queue-sysfs.rst), where the interrupt handles it. On our thread's
/// core it would wait for ksoftirqd to be scheduled.
fn tell_kernel(device: &Path, options: &DiskOptions) -> Result<()> {
    tell_queue(device, "rq_affinity", "2")?;
    tell_queue(device, "rotational", if options.rotational { "1" } else { "0" })?;
    tell_queue(device, "write_cache", if options.volatile_cache { "write back" } else { "write through" })?;
    tell_queue(device, READ_AHEAD, READ_AHEAD_KB)?;
    set_throttle(device, options.serve.dilation)
}

/// The kernel holds back the write-back of the page cache while reads take longer than this (wbt_lat_usec in
/// Documentation/ABI/stable/sysfs-block). Sets its own default for a drive that does or does not rotate, in
/// dilated time; a loop device keeps that of its first user. A kernel without this throttle has no such
/// attribute.
fn set_throttle(device: &Path, dilation: Dilation) -> Result<()> {
    const ATTRIBUTE: &str = "wbt_lat_usec";
    let path = queue_directory(device).join(ATTRIBUTE);
    if !path.exists() {
        return Ok(());
    }
    tell_queue(device, ATTRIBUTE, "-1")?;
    let text = fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    let default_us = text.trim().parse().with_context(|| format!("reading {}", path.display()))?;
    let real = dilation.real(Duration::from_micros(default_us));
    tell_queue(device, ATTRIBUTE, &real.as_micros().to_string())
}

fn queue_directory(device: &Path) -> PathBuf {
    Path::new("/sys/block").join(device.file_name().unwrap_or_default()).join("queue")
}

fn tell_queue(device: &Path, attribute: &str, value: &str) -> Result<()> {
    let path = queue_directory(device).join(attribute);
    fs::write(&path, value).with_context(|| format!("setting {}", path.display()))
}

/// Names of the disks that have a state directory, whether up or broken.
///
/// # Errors
/// The run directory cannot be read.
pub fn list() -> Result<Vec<String>> {
    names_in(&run_directory(), |path, name| {
        let is_disk = [OPTIONS_FILE, OWNER_FILE].iter().any(|file| path.join(file).exists());
        (is_disk || fuse_directory(path).exists()).then(|| name.to_owned())
    })
}

/// Options, loop device and mount point of a disk that has a state directory.
///
/// # Errors
/// There is no such disk.
pub fn inspect(name: &str) -> Result<(DiskOptions, Option<PathBuf>, Option<PathBuf>)> {
    let state = existing(name)?;
    let text =
        fs::read(state.join(OPTIONS_FILE)).with_context(|| format!("reading the options of {name}"))?;
    let options = serde_json::from_slice(&text).with_context(|| format!("reading the state of {name}"))?;
    let device = loops_of(&disk_file(&state)).into_iter().next();
    // The oldest is the disk's own; others are bind mounts of it.
    let mount = device.as_deref().and_then(|device| mounts_of(device).pop());
    Ok((options, device, mount))
}

/// A connection to the emulator of a disk that is up.
///
/// # Errors
/// There is no such disk, or its emulator is dead or does not answer.
pub fn connect(name: &str) -> Result<Client> {
    let socket = socket(&existing(name)?);
    let client = Client::connect(&socket)?;
    let patience_s = control::PING_TIME.as_secs();
    ensure!(control::answers(&socket), "the emulator of {name} did not answer within {patience_s} s");
    Ok(client)
}

/// Whether no process is left to take this disk down: the process that started it is gone, and its emulator
/// is gone too, or is to end with it and may need a moment.
pub fn is_abandoned(name: &str) -> bool {
    let Ok(state) = state_directory(name) else { return false };
    let ends_with_owner = || inspect(name).is_ok_and(|(options, ..)| options.serve.die_with_parent);
    !is_owned(&state) && (watchdog::emulator_of(&state).is_none() || ends_with_owner())
}

/// Unmounts, detaches, ends the emulator and removes the state directory, whatever the disk's state.
///
/// # Errors
/// There is no such disk, or a living file system is in use.
pub fn down(name: &str) -> Result<()> {
    let state = existing(name)?;
    let Some(process) =
        watchdog::emulator_of(&state).filter(|&process| !watchdog::is_silent(&state, process))
    else {
        return take_away(name, &state);
    };
    let devices = loops_of(&disk_file(&state));
    for device in &devices {
        mounts_of(device).iter().try_for_each(|at| unmount(at))?;
        tell_default(device);
        detach(name, device)?;
    }
    workers::relax();
    let detached = wait_for("the loop device to be detached", || loops_of(&disk_file(&state)).is_empty());
    detached.map_err(|error| match devices.iter().find_map(|device| users_of(device)) {
        Some(users) => error.context(format!("{name} is in use: end the processes {users}, then try again")),
        None => error,
    })?;
    end_emulator(process, &state)?;
    remove(&state)
}

/// As [`down`], for a disk that is dead, hung or in use. Its users get errors, and the loop device goes with
/// the last of them.
fn take_away(name: &str, state: &Path) -> Result<()> {
    let devices = loops_of(&disk_file(state));
    let process = watchdog::emulator_of(state);
    if let Some(process) = process {
        watchdog::end_at_once(state, process, "was taken away");
    }
    // Also if it was killed before: some of its threads may be blocked on its own disk.
    let aborted = watchdog::abort(state);
    let gone = || process.is_none() || watchdog::emulator_of(state) != process;
    let ended = wait_for("the killed emulator to end", gone);
    for device in &devices {
        for at in mounts_of(device) {
            detach_mount(&at)?;
        }
        // The queue's attributes cannot be set while requests are in it.
        if aborted {
            tell_default(device);
        }
        detach(name, device)?;
    }
    workers::relax();
    remove(state)?;
    ended?;
    ensure!(
        aborted,
        "the emulator of {name} waits for its own disk, and the kernel cannot end that: restart the machine"
    );
    Ok(())
}

/// Ends the emulator behind a loop device if it is alive but does not answer. Users of the device then stop
/// waiting for it.
pub(crate) fn end_if_silent(device: &Path) {
    let Some(file) = file_of_loop(device) else { return };
    // The file is in the FUSE directory, which is in the disk's state directory.
    let Some(state) = file.parent().and_then(Path::parent).filter(|state| state.join(OPTIONS_FILE).exists())
    else {
        return;
    };
    if let Some(process) = watchdog::emulator_of(state).filter(|&process| watchdog::is_silent(state, process))
    {
        watchdog::end_at_once(state, process, "did not answer");
    }
}

/// Detaches the loop device, at once or when its last user is gone.
fn detach(name: &str, device: &Path) -> Result<()> {
    if let Ok((options, ..)) = inspect(name) {
        options.formatting.forget(device);
    }
    run("losetup", &["--detach", &device.to_string_lossy()]).map(drop)
}

/// Restores the defaults. The kernel would keep the settings for the next user of this loop device, whose FLUSH
/// would do nothing.
fn tell_default(device: &Path) {
    let _ = tell_queue(device, "write_cache", "write back");
    let _ = tell_queue(device, "rotational", "0");
    let _ = tell_queue(device, READ_AHEAD, READ_AHEAD_KB);
    let _ = set_throttle(device, Dilation::NONE);
}

/// Removes the FUSE file and the state directory. A loop device still in use then has another path for its
/// file, so a later disk of the same name is not mistaken for this one.
fn remove(state: &Path) -> Result<()> {
    let fuse = fuse_directory(state);
    if is_mount_point(&fuse) {
        detach_mount(&fuse)?;
    }
    let files = [OPTIONS_FILE, LOG_FILE, PROCESS_FILE, PROCESS_DRAFT, OWNER_DRAFT, "socket", "fuse", "mount"];
    // The owner's file goes last: a disk with any other file is found by it.
    remove_ours(state, files.into_iter().chain([OWNER_FILE]))
}

fn end_emulator(process: u32, state: &Path) -> Result<()> {
    if let Ok(mut client) = Client::connect(&socket(state)) {
        // A process that does not answer is killed below.
        let _ = client.call(&control::Command::Shutdown);
    }
    let gone = || watchdog::emulator_of(state) != Some(process);
    if wait_for("the emulator to end", gone).is_err() {
        watchdog::end_at_once(state, process, "did not end");
        wait_for("the killed emulator to end", gone)?;
    }
    Ok(())
}

fn wait_for(what: &str, is_done: impl FnMut() -> bool) -> Result<()> {
    ensure!(wait_until(END_TIMEOUT, is_done), "waited {} s for {what}", END_TIMEOUT.as_secs());
    Ok(())
}
