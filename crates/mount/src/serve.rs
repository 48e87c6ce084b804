//! The emulator process: store, model, FUSE file and control socket. It runs until it is told to end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Error, Result, bail, ensure};
use fuser::{Config, Filesystem, MountOption, Session};
use serde::{Deserialize, Serialize};
use spindle_base::dilation::Dilation;
use spindle_base::proc::CpuTimes;
use spindle_model::{Ageing, Change, Device, LayerParameters as _};

use crate::control::{self, Command, Reply};
use crate::disk;
use crate::driver::Driver;
use crate::file::{Answer, DiskFile, FILE_NAME, send};
use crate::realtime;
use crate::ring_file::{Inbox, Permission, RingAnswer, RingFile, RingServer};
use crate::statistics::LayerStatistics;
use crate::store::Store;
use crate::system::loops_of;
use crate::trace::Recorder;
use crate::watchdog;
use crate::workers;

/// Number of threads that receive requests. On two cores a second one only competes with the database and
/// with the first.
fn receivers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 4))
}

pub(crate) const BUSY: &str = "the disk is at work; try again when it is idle";

/// Period of the checks of the cores' load and of the kernel's workers.
const MACHINE_EVERY: Duration = Duration::from_millis(250);

/// Options of the emulator process, from the process that starts it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ServeOptions {
    /// Directory for the FUSE mount point, the socket and the log.
    pub state_directory: PathBuf,
    pub size_bytes: u64,
    /// At bring-up; [`Command::SetDilation`] changes it.
    #[serde(default)]
    pub dilation: Dilation,
    /// Snapshot to start from.
    pub base: Option<PathBuf>,
    /// Written data beyond this goes to a file in `spill_directory`.
    pub memory_budget_bytes: u64,
    pub spill_directory: PathBuf,
    /// Whether to use FUSE over io_uring if the kernel has it.
    pub over_io_uring: bool,
    /// The devices and layers of the stack, in the order of [`spindle_model::counters_of_all`].
    #[serde(default)]
    pub layers: Vec<LayerName>,
    /// The emulator ends when the thread that started it ends.
    pub die_with_parent: bool,
}

/// A device or a layer of the emulated stack.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, Eq)]
pub struct LayerName {
    /// Layers above it.
    pub depth: u32,
    pub name: String,
}

/// Mount point of the FUSE file system, which holds one file.
pub(crate) fn fuse_directory(state_directory: &Path) -> PathBuf {
    state_directory.join("fuse")
}

/// The file behind the loop device.
pub(crate) fn disk_file(state_directory: &Path) -> PathBuf {
    fuse_directory(state_directory).join(FILE_NAME)
}

pub(crate) fn socket(state_directory: &Path) -> PathBuf {
    state_directory.join("socket")
}

/// Serves the disk until a `shutdown` command. The device is `size_bytes` long.
///
/// # Errors
/// No FUSE, no memory, or a snapshot that does not fit: an error that names the step.
pub fn serve(device: Box<dyn Device>, options: &ServeOptions) -> Result<()> {
    if options.die_with_parent {
        realtime::die_with_parent();
        // The kernel does not signal the death of a process that was killed before the request. Such a disk is
        // being taken down already, and must not come up behind that.
        ensure!(disk::is_owned(&options.state_directory), "the process that started the emulator is gone");
        // Before the mount, so that whoever takes the disk down can wait for the end of this process.
        watchdog::write_identity(&options.state_directory, std::process::id())?;
    }
    realtime::protect_process();
    let _awake = realtime::keep_cores_awake();
    assert_eq!(device.size_bytes(), options.size_bytes, "the model and the store have one size");
    let store = Arc::new(Store::open(
        options.size_bytes,
        options.base.as_deref(),
        options.memory_budget_bytes,
        &options.spill_directory,
    )?);
    let mount_point = fuse_directory(&options.state_directory);
    fs::create_dir_all(&mount_point).with_context(|| format!("making {}", mount_point.display()))?;
    let permission = if options.over_io_uring { Permission::obtain() } else { None };
    match permission {
        Some(permission) => serve_by_ring(device, &store, options, permission),
        None => serve_by_threads(device, &store, options),
    }
}

fn mount<F: Filesystem>(file: F, options: &ServeOptions) -> Result<Session<F>> {
    let mount_point = fuse_directory(&options.state_directory);
    let mut config = Config::default();
    let name = MountOption::FSName("spindle".to_owned());
    config.mount_options = vec![name, MountOption::NoSuid, MountOption::NoDev, MountOption::NoAtime];
    config.n_threads = Some(receivers());
    config.clone_fd = true;
    Session::new(file, &mount_point, &config)
        .with_context(|| format!("mounting a FUSE file system on {}", mount_point.display()))
}

/// Serves through a ring. If the kernel refuses the ring after all (its memory, or a slot of it), threads
/// serve.
fn serve_by_ring(
    device: Box<dyn Device>,
    store: &Arc<Store>,
    options: &ServeOptions,
    permission: Permission,
) -> Result<()> {
    let session = mount(RingFile, options)?;
    drop(permission);
    let fuse = session.as_fd().try_clone_to_owned().context("sharing the FUSE connection")?;
    let inbox = Inbox::new().context("making an event")?;
    let (end, ended) = channel();
    let ring = RingThread::start(fuse, inbox.clone(), end.clone())?;
    if let Err(refused) = ring.registered.recv().context("the thread of the FUSE ring ended")? {
        eprintln!("{refused:#}; threads serve instead");
        // Earlier requests wait for ever in the ring's queues. Only the kernel can have sent any.
        drop(session);
        return serve_by_threads(device, store, options);
    }
    let driver = Arc::new(Driver::unattended(device, options.dilation, move |answer, outcome| {
        inbox.put(answer, outcome)
    }));
    driver.set_timing(false);
    // Fails only if the thread is gone, which `ended` reports.
    let _ = ring.begin.send((store.clone(), driver.clone()));
    let _session = session.spawn().context("starting the FUSE thread")?;
    obey(driver, store.clone(), options, end, &ended)
}

/// The thread of a ring. Only the thread that registers a ring can use it.
struct RingThread {
    registered: Receiver<Result<()>>,
    /// Hands over the store and the driver once the ring is registered.
    begin: Sender<(Arc<Store>, Arc<Driver<RingAnswer>>)>,
}

impl RingThread {
    fn start(fuse: OwnedFd, inbox: Inbox, end: Sender<Result<()>>) -> Result<RingThread> {
        let (tell, registered) = channel();
        let (begin, begun) = channel();
        std::thread::Builder::new().name("ring".to_owned()).spawn(move || {
            let ring = match RingServer::register(fuse, &inbox) {
                Ok(ring) => ring,
                // As below, fails only if the emulator is ending already.
                Err(refused) => return drop(tell.send(Err(refused))),
            };
            let _ = tell.send(Ok(()));
            let Ok((store, driver)) = begun.recv() else { return };
            let _ = end.send(RingServer { store, driver, inbox }.run(ring));
        })?;
        Ok(RingThread { registered, begin })
    }
}

/// Serves without FUSE over io_uring: fuser's threads receive, a timer thread answers.
fn serve_by_threads(device: Box<dyn Device>, store: &Arc<Store>, options: &ServeOptions) -> Result<()> {
    let for_driver = store.clone();
    let driver = Driver::start(device, options.dilation, move |answer: Answer, outcome| {
        send(&for_driver, answer, outcome)
    })
    .context("starting the timer")?;
    let driver = Arc::new(driver);
    driver.set_timing(false);
    let session = mount(DiskFile { store: store.clone(), driver: driver.clone() }, options)?;
    // Receiving threads inherit the policy of the thread that starts them.
    realtime::set_fifo(realtime::RECEIVING);
    let _session = session.spawn().context("starting the FUSE threads")?;
    realtime::set_other(0);
    let (end, ended) = channel();
    obey(driver, store.clone(), options, end, &ended)
}

/// Watches the machine's load and obeys the control socket, each in a thread, until the emulator ends.
fn obey<P: Send + 'static>(
    driver: Arc<Driver<P>>,
    store: Arc<Store>,
    options: &ServeOptions,
    end: Sender<Result<()>>,
    ended: &Receiver<Result<()>>,
) -> Result<()> {
    let listener =
        UnixListener::bind(socket(&options.state_directory)).context("opening the control socket")?;
    let file = disk_file(&options.state_directory);
    let for_machine = driver.clone();
    std::thread::Builder::new()
        .name("machine".to_owned())
        .spawn(move || watch_machine(&for_machine, &file))?;
    let control = Arc::new(Control { store, driver, layers: options.layers.clone(), end });
    std::thread::Builder::new().name("control".to_owned()).spawn(move || control.listen(&listener))?;
    // An error means that every thread that could end the emulator is gone, which ends it all the same.
    ended.recv().unwrap_or(Ok(()))
}

/// Reports the load of the cores to the driver, and raises the priority of the kernel's workers.
fn watch_machine<P: Send + 'static>(driver: &Driver<P>, file: &Path) -> ! {
    let mut earlier = CpuTimes::read();
    loop {
        sleep(MACHINE_EVERY);
        let now = CpuTimes::read();
        if let (Some(earlier), Some(now)) = (earlier, now)
            && now.total > earlier.total
        {
            driver.set_cores_busy(now.busy_since(earlier));
        }
        earlier = now;
        loops_of(file).iter().for_each(|device| workers::hurry(device));
    }
}

struct Control<P: Send + 'static> {
    store: Arc<Store>,
    driver: Arc<Driver<P>>,
    layers: Vec<LayerName>,
    end: Sender<Result<()>>,
}

impl<P: Send + 'static> Control<P> {
    fn listen(self: &Arc<Self>, listener: &UnixListener) {
        for connection in listener.incoming().map_while(Result::ok) {
            let control = self.clone();
            let started = std::thread::Builder::new().name(control::THREAD.to_owned()).spawn(move || {
                if let Err(error) = control.talk(connection) {
                    eprintln!("control connection: {error:#}");
                }
            });
            if let Err(error) = started {
                eprintln!("control connection: {error}");
            }
        }
    }

    fn talk(&self, connection: UnixStream) -> Result<()> {
        let mut writer = connection.try_clone()?;
        for line in BufReader::new(connection).lines() {
            let command = serde_json::from_str(&line?);
            let ends = matches!(command, Ok(Command::Shutdown));
            let reply = match command {
                Ok(command) => self.obey(command).unwrap_or_else(|error| Reply::Error(format!("{error:#}"))),
                Err(error) => Reply::Error(format!("not a command: {error}")),
            };
            let mut text = serde_json::to_string(&reply)?;
            text.push('\n');
            writer.write_all(text.as_bytes())?;
            if ends {
                self.end.send(Ok(()))?;
            }
        }
        Ok(())
    }

    fn obey(&self, command: Command) -> Result<Reply> {
        match command {
            // Statistics after a lost write are useless, so they are refused.
            Command::Status => match self.store.failure() {
                Some(failure) => bail!("{failure}"),
                None => {
                    let mut statistics = self.driver.statistics();
                    statistics.major_faults += self.store.host_reads();
                    let counters = self.driver.counters_of_all();
                    let layers = self.layers.iter().zip(&counters);
                    statistics.layers = layers.map(|(name, of)| LayerStatistics::new(name, of)).collect();
                    return Ok(Reply::Status(statistics));
                }
            },
            Command::Timing { on } => self.driver.set_timing(on),
            Command::ResetStatistics => self.driver.reset_statistics(),
            Command::SetFloor(floor) => self.driver.set_floor(floor),
            Command::SetDelay { delay_real_ns } => self.driver.set_delay_real_ns(delay_real_ns),
            Command::SetDilation { dilation } => ensure!(self.driver.set_dilation(dilation), BUSY),
            Command::Age { fill_percent, overwrite_percent, seed } => {
                let ageing = Ageing { fill_percent, overwrite_percent, seed };
                ageing.validate()?;
                ensure!(self.driver.set_use(Some(&ageing)), BUSY);
            }
            Command::SecureErase => {
                ensure!(self.driver.set_use(None), BUSY);
                self.store.clear(0, self.store.size_bytes())?;
            }
            Command::Change { change } => {
                let change: Change = change.parse().map_err(Error::msg)?;
                ensure!(self.driver.change(change)?, "the disk has no part for it: {}", change.part());
            }
            Command::Snapshot { directory } => {
                self.store.snapshot(&directory)?;
            }
            Command::BeginTrace { limit_bytes } => {
                let recorder = Recorder::new(self.store.size_bytes(), limit_bytes)?;
                self.driver.begin_trace(recorder);
            }
            Command::EndTrace => self.driver.end_trace(),
            Command::SaveTrace { path } => {
                let trace = self.driver.take_trace().context("no block trace was begun")?;
                return Ok(Reply::Trace(trace.write(&path)?));
            }
            Command::Ping | Command::Shutdown => {}
        }
        Ok(Reply::Done)
    }
}
