//! The emulator process: store, model, FUSE file and control socket, until it is told to end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fuser::{Config, MountOption, Session};
use serde::{Deserialize, Serialize};
use spindle_model::Device;

use crate::control::{Command, Reply};
use crate::driver::Driver;
use crate::file::{Answer, DiskFile, FILE_NAME, send};
use crate::realtime;
use crate::store::Store;
use crate::system::{core_ticks, loops_of};
use crate::workers;

/// Threads that receive requests. On two cores a second one only competes with the database and with the first.
fn receivers() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| (cores.get() / 2).clamp(1, 4))
}

/// How often the cores and the kernel's workers are looked at.
const MACHINE_EVERY: Duration = Duration::from_millis(250);

/// What the emulator process is told by the process that starts it.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq)]
pub struct ServeOptions {
    /// Directory for the FUSE mount point, the socket and the log.
    pub state_directory: PathBuf,
    pub size_bytes: u64,
    /// Snapshot to start from.
    pub base: Option<PathBuf>,
    /// Written data beyond this goes to a file in `spill_directory`.
    pub memory_budget_bytes: u64,
    pub spill_directory: PathBuf,
    /// Whether receiving threads and the kernel's workers get real-time priority. For a device that takes no time they should not: there is
    /// nothing to be late for, and preempting the client for every request costs throughput.
    pub real_time: bool,
    /// The emulator ends when the thread that started it ends.
    pub die_with_parent: bool,
}

/// Directory on which the file system of one file is mounted.
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

/// Serves until a `shutdown` command; the device is `size_bytes` long.
///
/// # Errors
/// No FUSE, no memory, a snapshot that does not fit: with what we were doing.
pub fn serve(device: Box<dyn Device>, options: &ServeOptions) -> Result<()> {
    if options.die_with_parent {
        realtime::die_with_parent();
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
    let for_driver = store.clone();
    let driver = Driver::start(device, move |answer: Answer, outcome| send(&for_driver, answer, outcome))
        .context("starting the timer")?;
    let driver = Arc::new(driver);
    driver.set_physics(false);

    let mount_point = fuse_directory(&options.state_directory);
    fs::create_dir_all(&mount_point).with_context(|| format!("making {}", mount_point.display()))?;
    let mut config = Config::default();
    config.mount_options =
        vec![MountOption::FSName("spindle".to_owned()), MountOption::NoSuid, MountOption::NoAtime];
    config.n_threads = Some(receivers());
    config.clone_fd = true;
    let file = DiskFile { store: store.clone(), driver: driver.clone() };
    let session = Session::new(file, &mount_point, &config)
        .with_context(|| format!("mounting a FUSE file system on {}", mount_point.display()))?;
    // Receiving threads inherit the policy of the thread that starts them.
    if options.real_time {
        realtime::set_fifo(realtime::RECEIVING);
    }
    let session = session.spawn().context("starting the FUSE threads")?;
    realtime::set_other();

    let listener =
        UnixListener::bind(socket(&options.state_directory)).context("opening the control socket")?;
    let file = disk_file(&options.state_directory);
    let (for_machine, real_time) = (driver.clone(), options.real_time);
    std::thread::Builder::new()
        .name("machine".to_owned())
        .spawn(move || watch_machine(&for_machine, &file, real_time))?;
    let (end, ended) = channel();
    let control = Control { store, driver, end };
    std::thread::Builder::new().name("control".to_owned()).spawn(move || control.listen(&listener))?;
    // An error means that the control thread is gone, which ends the emulator all the same.
    let _ = ended.recv();
    drop(session);
    Ok(())
}

/// Keeps an eye on how busy the cores are, and on the kernel's workers.
fn watch_machine(driver: &Driver<Answer>, file: &Path, real_time: bool) -> ! {
    let mut earlier = core_ticks();
    loop {
        sleep(MACHINE_EVERY);
        let now = core_ticks();
        if let (Some((busy_before, total_before)), Some((busy, total))) = (earlier, now)
            && total > total_before
        {
            driver.set_cores_busy((busy - busy_before) as f64 / (total - total_before) as f64);
        }
        earlier = now;
        if real_time {
            loops_of(file).iter().for_each(|device| workers::hurry(device));
        }
    }
}

#[derive(Clone)]
struct Control {
    store: Arc<Store>,
    driver: Arc<Driver<Answer>>,
    end: Sender<()>,
}

impl Control {
    fn listen(&self, listener: &UnixListener) {
        for connection in listener.incoming().map_while(Result::ok) {
            let control = self.clone();
            let started = std::thread::Builder::new().name("connection".to_owned()).spawn(move || {
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
                self.end.send(())?;
            }
        }
        Ok(())
    }

    fn obey(&self, command: Command) -> Result<Reply> {
        match command {
            // What a disk did after it lost a write is of no use to anybody.
            Command::Status => match self.store.failure() {
                Some(failure) => bail!("{failure}"),
                None => return Ok(Reply::Status(self.driver.statistics())),
            },
            Command::Physics { on } => self.driver.set_physics(on),
            Command::SetFloor(floor) => self.driver.set_floor(floor),
            Command::SetDelay { delay_ns } => self.driver.set_delay_ns(delay_ns),
            Command::Snapshot { directory } => {
                self.store.snapshot(&directory)?;
            }
            Command::Shutdown => {}
        }
        Ok(Reply::Done)
    }
}
