//! A private instance of the kernel's tracing (Linux, Documentation/trace/ftrace.rst, "Instances") that follows
//! one block device. Other users of tracing keep theirs.
//!
//! The instance is removed when it is dropped. One that a killed process left is removed by the next start.

use std::ffi::CStr;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rustix::fs::OFlags;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::time::{ClockId, clock_gettime};
use spindle_base::Mistake;
use spindle_base::proc;
use spindle_mount::trace::Trace;

use super::block_trace::{Extent, PASSED_ON, REQUEST, Slices, pause_s, rate_most_per_s};
use super::place::{disk_of, number_in, sysfs};

const DIRECTORY: &str = "/sys/kernel/tracing";
/// Names of our instances begin so; the process id follows.
const OURS: &str = "spindle-observe-";
/// For each core. At 100,000 requests a second it lasts for a second.
const BUFFER_KIB: u32 = 4_096;
/// Longest time until the buffer is emptied.
const POLL: Duration = Duration::from_millis(100);
const SLICE: Duration = Duration::from_secs(1);
/// Sector size in sysfs and in events, independent of the device's own sectors.
const SECTOR_BYTES: u64 = 512;

/// Checks before any work that a device can be traced.
///
/// # Errors
/// [`Mistake`]: the user is not root, or the kernel has no tracing of block devices.
pub fn check() -> Result<(), Mistake> {
    let refused = |words: &str| Err(Mistake::of_flag("trace", words));
    if !rustix::process::geteuid().is_root() {
        return refused("only root may read the kernel's block events; leave it out, or run as root");
    }
    match Path::new(DIRECTORY).exists() {
        true => Ok(()),
        false => refused("this kernel has no tracing (CONFIG_FTRACE), which knows the block events"),
    }
}

/// A trace that goes on. Dropping it ends it.
#[derive(Debug)]
pub(super) struct Tracing {
    device: String,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Slices>>>,
}

/// A trace that has ended.
#[derive(Debug)]
pub(super) struct KeptTrace {
    pub device: String,
    pub trace: Trace,
    pub slice_count: u32,
    pub lost_count: u64,
}

impl Tracing {
    /// Begins a trace of a device, in slices if its rate is high, for a window of about this length.
    pub(super) fn begin(device: &str, window: Duration) -> Result<Tracing> {
        let target = Target::of(device)?;
        let instance = Instance::make(&target).context("setting up the kernel's tracing")?;
        let pipe = instance.pipe()?;
        let stop = Arc::new(AtomicBool::new(false));
        let follower = Follower { instance, pipe, stop: Arc::clone(&stop), left: Vec::new() };
        let rate_most = rate_most_per_s(window.as_secs_f64());
        let named = std::thread::Builder::new().name("block trace".to_owned());
        let thread = named
            .spawn(move || follower.follow(Slices::new(target.extent), rate_most))
            .context("starting a thread")?;
        Ok(Tracing { device: device.to_owned(), stop, thread: Some(thread) })
    }

    /// # Errors
    /// The kernel's tracing could not be read.
    pub(super) fn end(mut self) -> Result<KeptTrace> {
        let slices = self.join().context("the block trace has ended before")??;
        let device = std::mem::take(&mut self.device);
        let (slice_count, lost_count, is_complete) =
            (slices.slice_count, slices.lost_count, !slices.is_full());
        let (requests, duration_ns) = slices.into_requests();
        let disk_size_bytes = Target::of(&device)?.extent.sector_count * SECTOR_BYTES;
        let trace = Trace { requests, duration_ns, disk_size_bytes, is_complete };
        Ok(KeptTrace { device, trace, slice_count, lost_count })
    }

    /// `None` after the first time.
    fn join(&mut self) -> Option<Result<Slices>> {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|_| Err(anyhow!("the thread of the block trace panicked"))))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        // Its failure is told by `end`.
        let _ = self.join();
    }
}

/// What is traced of a device.
#[derive(Debug, Clone)]
struct Target {
    /// As events have it: of the whole disk.
    number: u64,
    extent: Extent,
    event: &'static str,
}

impl Target {
    fn of(device: &str) -> Result<Target> {
        let disk = disk_of(device);
        let whole = disk.as_deref().unwrap_or(device);
        let number = fs::read_to_string(sysfs(whole).join("dev"))
            .with_context(|| format!("looking for the number of {whole}"))?;
        let sector_count = number_in(&sysfs(device).join("size")).context("a device without a size")?;
        let first_sector = number_in(&sysfs(device).join("start")).filter(|_| disk.is_some());
        // Devices of the device mapper and of md have no queue: they pass requests on.
        let has_queue = sysfs(whole).join("mq").exists();
        Ok(Target {
            number: kernel_number(&number).with_context(|| format!("the number of {whole} is {number:?}"))?,
            extent: Extent { first_sector: first_sector.unwrap_or(0), sector_count },
            event: if has_queue { REQUEST } else { PASSED_ON },
        })
    }
}

/// `8:1` as the kernel's `dev_t` (include/linux/kdev_t.h): twenty bits for the minor number.
fn kernel_number(text: &str) -> Option<u64> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse::<u64>().ok()? << 20) | minor.parse::<u64>().ok()?)
}

/// A directory of the kernel's tracing that is ours.
#[derive(Debug)]
struct Instance {
    path: PathBuf,
    /// Keeps the mount of the kernel's tracing, if it is ours, until the instance is removed.
    _mounted: Option<OwnMount>,
}

impl Instance {
    fn make(target: &Target) -> Result<Instance> {
        let mounted = OwnMount::if_needed()?;
        let instances = Path::new(DIRECTORY).join("instances");
        clear_leftovers(&instances);
        let path = instances.join(format!("{OURS}{}", std::process::id()));
        fs::create_dir(&path).with_context(|| format!("making {}", path.display()))?;
        // From here on, dropping it removes it.
        let instance = Instance { path, _mounted: mounted };
        instance.set("tracing_on", "0")?;
        instance.set("trace_clock", "mono")?;
        instance.set("buffer_size_kb", &BUFFER_KIB.to_string())?;
        let event = format!("events/block/{}", target.event);
        instance.set(&format!("{event}/filter"), &format!("dev == {}", target.number))?;
        instance.set(&format!("{event}/enable"), "1")?;
        Ok(instance)
    }

    fn set(&self, name: &str, value: &str) -> Result<()> {
        let file = self.path.join(name);
        fs::write(&file, value).with_context(|| format!("writing {value} to {}", file.display()))
    }

    /// Its events as text. Reading never waits.
    fn pipe(&self) -> Result<File> {
        let path = self.path.join("trace_pipe");
        let flags = OFlags::NONBLOCK.bits() as i32;
        OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(&path)
            .with_context(|| format!("opening {}", path.display()))
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

/// The kernel refuses to remove an instance that somebody reads.
fn remove(instance: &Path) {
    let _ = fs::write(instance.join("tracing_on"), "0");
    let _ = fs::write(instance.join("events/enable"), "0");
    if let Err(error) = fs::remove_dir(instance) {
        eprintln!("spindle: removing {}: {error}", instance.display());
    }
}

/// Instances of processes that were killed.
fn clear_leftovers(instances: &Path) {
    let entries = fs::read_dir(instances).into_iter().flatten().flatten();
    for entry in entries {
        let owner = entry.file_name().to_str().and_then(owner_of);
        if owner.is_some_and(|owner| !proc::is_there(owner)) {
            remove(&entry.path());
        }
    }
}

fn owner_of(instance: &str) -> Option<u32> {
    instance.strip_prefix(OURS)?.parse().ok()
}

/// A mount of the kernel's tracing that was not there before. Dropping it unmounts it, unless somebody else uses
/// it by then.
#[derive(Debug)]
struct OwnMount;

impl OwnMount {
    fn if_needed() -> Result<Option<OwnMount>> {
        if Path::new(DIRECTORY).join("instances").exists() {
            return Ok(None);
        }
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        mount("tracefs", DIRECTORY, "tracefs", flags, None::<&CStr>)
            .with_context(|| format!("mounting the kernel's tracing on {DIRECTORY}"))?;
        Ok(Some(OwnMount))
    }
}

impl Drop for OwnMount {
    fn drop(&mut self) {
        let _ = unmount(DIRECTORY, UnmountFlags::empty());
    }
}

/// The thread that reads the events. Its fields are dropped in this order: the instance cannot be removed while
/// it is read.
#[derive(Debug)]
struct Follower {
    pipe: File,
    instance: Instance,
    stop: Arc<AtomicBool>,
    /// The begin of a line whose end has not been read.
    left: Vec<u8>,
}

impl Follower {
    /// Slices, with pauses between them if the rate is high, until it is told to stop or there is no more room.
    fn follow(mut self, mut slices: Slices, rate_most_per_s: f64) -> Result<Slices> {
        while !self.is_stopped() && !slices.is_full() {
            let before = slices.event_count;
            let begun = Instant::now();
            slices.begin(now_ns());
            self.instance.set("tracing_on", "1")?;
            let pause = loop {
                self.sleep(POLL);
                self.read(&mut slices)?;
                let slice_s = begun.elapsed().as_secs_f64();
                let pause_s = pause_s(slices.event_count - before, slice_s, rate_most_per_s);
                let is_over = begun.elapsed() >= SLICE && pause_s > 0.0;
                if is_over || self.is_stopped() || slices.is_full() {
                    break Duration::from_secs_f64(pause_s);
                }
            };
            self.instance.set("tracing_on", "0")?;
            let ended_ns = now_ns();
            self.read(&mut slices)?;
            slices.end(ended_ns);
            self.sleep(pause);
        }
        Ok(slices)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Ends early when it is told to stop.
    fn sleep(&self, duration: Duration) {
        let end = Instant::now() + duration;
        while !self.is_stopped() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(POLL));
        }
    }

    /// Everything that has been printed so far.
    fn read(&mut self, slices: &mut Slices) -> Result<()> {
        let mut buffer = [0; 64 << 10];
        loop {
            let count = match self.pipe.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                read => read.context("reading the kernel's block events")?,
            };
            self.left.extend_from_slice(&buffer[..count]);
            let whole = self.left.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            String::from_utf8_lossy(&self.left[..whole]).lines().for_each(|line| slices.add(line));
            self.left.drain(..whole);
        }
    }
}

/// The clock that the instance is set to.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_the_kernels_own() {
        assert_eq!(kernel_number("8:1\n"), Some(8_388_609));
        assert_eq!(kernel_number("259:0"), Some(271_581_184));
        assert_eq!(kernel_number("8"), None);
    }

    #[test]
    fn an_instance_names_its_process() {
        assert_eq!(owner_of("spindle-observe-4711"), Some(4711));
        for other in ["spindle-observe-", "spindle-4711", "mine"] {
            assert_eq!(owner_of(other), None, "{other}");
        }
    }
}
