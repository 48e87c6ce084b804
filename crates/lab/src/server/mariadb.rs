//! MariaDB from the distribution's package, run privately.
//!
//! A server of ours never touches one that is installed: it reads no option file, has its own directories, listens on a
//! unix socket in its runtime directory only, and runs as a numeric user that no account has. Root may log in without a
//! password; only root and that user can reach the socket.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use mysql::Conn;
use mysql::prelude::Queryable;
use rustix::process::{Pid, Signal, kill_process};
use spindle_load::sql::mysql::connect;
use spindle_load::{Endpoint, WorkloadSpec};

use super::log::{last_words, quote};
use super::mariadb_files::{self, is_plain, plain_name};
use super::memory::parse_size_bytes;
use super::own_user::OwnUser;
use super::{Instance, Refusal, Running, Server};
use crate::layout::FileClass;
use crate::provenance;

const USER: OwnUser = OwnUser(61_417);
/// The workload's schema; made when it is loaded.
const DATABASE: &str = "spindle";
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The longest path of a unix socket, without its closing zero.
const SOCKET_PATH_BYTES: usize = 107;

/// The core packages only: the machine needs no service of its own.
const INSTALL_HINT: &str = "install it with `apt-get install mariadb-server-core mariadb-client-core`";

/// What an instance decides for itself; settings must not.
const OWN_SETTINGS: [&str; 12] = [
    "datadir",
    "socket",
    "pid_file",
    "log_error",
    "port",
    "bind_address",
    "skip_networking",
    "user",
    "defaults_file",
    "defaults_extra_file",
    "skip_grant_tables",
    "bootstrap",
];

/// Settings that shape the files when they are made.
const SHAPING_SETTINGS: [&str; 5] = [
    "innodb_page_size",
    "innodb_checksum_algorithm",
    "innodb_undo_tablespaces",
    "innodb_data_file_path",
    "innodb_log_file_size",
];

/// Nothing needs to survive a crash while a database is loaded; the clean shutdown makes it whole. Without a dump of the
/// buffer pool a trial starts with an empty one.
const LOADING_SETTINGS: [(&str, &str); 5] = [
    ("innodb_buffer_pool_size", "512M"),
    ("innodb_flush_log_at_trx_commit", "0"),
    ("innodb_doublewrite", "OFF"),
    ("innodb_buffer_pool_dump_at_shutdown", "OFF"),
    ("innodb_flush_method", "O_DIRECT"),
];

#[derive(Debug)]
pub struct MariaDb;

impl Server for MariaDb {
    fn kind(&self) -> &'static str {
        "mariadb"
    }

    fn accepted_workloads(&self) -> &'static [&'static str] {
        WorkloadSpec::ON_EVERY_DATABASE
    }

    fn files_of(&self, class: FileClass, settings: &BTreeMap<String, String>) -> Result<String, Refusal> {
        mariadb_files::files_of(class, settings)
    }

    fn version(&self) -> Result<String> {
        let program = program("mariadbd")?;
        let output = Command::new(&program)
            .args(["--no-defaults", "--version"])
            .output()
            .with_context(|| format!("asking {} for its version", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // "/usr/sbin/mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)"
        let version = text.split_once("Ver ").and_then(|(_, rest)| rest.split_whitespace().next());
        version.map(str::to_owned).with_context(|| format!("{} told no version: {text}", program.display()))
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        for name in instance.settings.keys() {
            if OWN_SETTINGS.contains(&plain_name(name).as_str()) {
                return Err(Refusal(format!(
                    "setting `{name}`: the server is private, so Spindle decides this one; remove it"
                )));
            }
        }
        let socket = socket(instance);
        if socket.as_os_str().len() > SOCKET_PATH_BYTES {
            return Err(Refusal(format!(
                "the socket's path {} is longer than the {SOCKET_PATH_BYTES} bytes that the kernel allows; \
                 use a shorter directory",
                socket.display()
            )));
        }
        mariadb_files::check(&instance.settings)?;
        check_buffer_pool(&instance.settings)?;
        check_names(&instance.settings)
    }

    fn load_settings(&self, settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let shapes = |name: &str| SHAPING_SETTINGS.contains(&plain_name(name).as_str());
        let mut chosen: BTreeMap<String, String> = settings
            .iter()
            .filter(|(name, _)| shapes(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        chosen.extend(LOADING_SETTINGS.map(|(name, value)| (name.to_owned(), value.to_owned())));
        chosen
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        self.check(instance)?;
        own_directories(instance)?;
        let program = program("mariadb-install-db")?;
        let mut command = USER.command_with_all_children(&program);
        command
            .arg("--no-defaults")
            .arg(option("datadir", &instance.data_directory.to_string_lossy()))
            .args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"])
            .args(mariadb_files::options(instance).iter().map(|(name, value)| option(name, value)))
            .args(
                SHAPING_SETTINGS
                    .iter()
                    .filter(|name| is_plain(name))
                    .filter_map(|name| Some(option(name, instance.settings.get(*name)?))),
            )
            .current_dir(&instance.runtime_directory)
            .env("TMPDIR", mariadb_files::temporary_directory(instance))
            .stdin(Stdio::null());
        let output = command.output().with_context(|| format!("starting {}", program.display()))?;
        if !output.status.success() {
            let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
            text.push_str(&String::from_utf8_lossy(&output.stderr));
            let log = instance.runtime_directory.join("install.log");
            fs::write(&log, &text).with_context(|| format!("writing {}", log.display()))?;
            bail!(
                "making a database in {} failed ({}): {}",
                instance.data_directory.display(),
                output.status,
                last_words(&log, 0)
            );
        }
        Ok(())
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        self.check(instance)?;
        own_directories(instance)?;
        let program = program("mariadbd")?;
        let log = instance.runtime_directory.join("error.log");
        let log_offset_bytes = fs::metadata(&log).map_or(0, |metadata| metadata.len());
        // What the server says before it opens its log goes to the same file.
        let log_file = File::options()
            .append(true)
            .create(true)
            .open(&log)
            .with_context(|| format!("opening {}", log.display()))?;
        USER.give(&log)?;
        let mut command = Command::new(&program);
        command
            .arg("--no-defaults")
            .arg(option("datadir", &instance.data_directory.to_string_lossy()))
            .arg(option("socket", &socket(instance).to_string_lossy()))
            .arg(option("pid-file", &instance.runtime_directory.join("pid").to_string_lossy()))
            .arg(option("log-error", &log.to_string_lossy()))
            .args(mariadb_files::options(instance).iter().map(|(name, value)| option(name, value)))
            // A file system's own directory at the root of a mount is no schema.
            .args(["--skip-networking", "--skip-name-resolve", "--ignore-db-dirs=lost+found"])
            .args(plain_options(&instance.settings))
            .current_dir(&instance.runtime_directory)
            .stdin(Stdio::null())
            .stdout(log_file.try_clone().context("opening the log a second time")?)
            .stderr(log_file);
        let child =
            USER.run(&mut command).spawn().with_context(|| format!("starting {}", program.display()))?;
        Ok(Box::new(RunningMariaDb {
            child,
            socket: socket(instance),
            log,
            log_offset_bytes,
            connection: None,
        }))
    }
}

fn option(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

fn socket(instance: &Instance) -> PathBuf {
    instance.runtime_directory.join("socket")
}

/// Settings that the server gets as they were written.
fn plain_options(settings: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    settings.iter().filter(|(name, _)| is_plain(name)).map(|(name, value)| option(name, value))
}

/// Where Debian and others install it; sbin is often not in the PATH.
fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let well_known = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/mysql/bin"].map(PathBuf::from);
    let mut candidates = std::env::split_paths(&path).chain(well_known).map(|directory| directory.join(name));
    candidates
        .find(|candidate| candidate.is_file())
        .with_context(|| format!("there is no {name} on this machine; {INSTALL_HINT}"))
}

/// InnoDB would start with a pool larger than memory, and the trial would measure the swap.
fn check_buffer_pool(settings: &BTreeMap<String, String>) -> Result<(), Refusal> {
    const NAME: &str = "innodb_buffer_pool_size";
    let Some((name, value)) = settings.iter().find(|(name, _)| name.replace('-', "_") == NAME) else {
        return Ok(());
    };
    let Some(pool_bytes) = parse_size_bytes(value) else {
        return Err(Refusal(format!(
            "setting `{name}` = \"{value}\" is no size; write for example \"128M\""
        )));
    };
    let memory_bytes = provenance::memory_bytes();
    if pool_bytes > memory_bytes {
        return Err(Refusal(format!(
            "setting `{name}` = \"{value}\" is larger than this machine's memory of {} MiB; choose less",
            memory_bytes >> 20
        )));
    }
    Ok(())
}

/// Lets the server itself read the settings, without starting: it knows its own names and values best. A missing server is not the
/// settings' fault and is told elsewhere.
fn check_names(settings: &BTreeMap<String, String>) -> Result<(), Refusal> {
    let Ok(program) = program("mariadbd") else { return Ok(()) };
    let mut command = Command::new(program);
    command.arg("--no-defaults").args(plain_options(settings));
    command.args(["--help", "--verbose"]).stdin(Stdio::null());
    let Ok(output) = USER.run(&mut command).output() else { return Ok(()) };
    let errors = String::from_utf8_lossy(&output.stderr);
    // A wrong value of an InnoDB setting disables InnoDB, and is no failure.
    if output.status.success() && !errors.contains("[ERROR]") {
        return Ok(());
    }
    let words = quote(&errors);
    Err(Refusal(format!("the server refuses them: {words}")))
}

/// Gives the instance's directories to the server's user, and closes the runtime directory to everybody else.
fn own_directories(instance: &Instance) -> Result<()> {
    let mut directories = mariadb_files::directories(instance);
    directories.push(instance.runtime_directory.clone());
    directories.iter().try_for_each(|directory| USER.own(directory))
}

#[derive(Debug)]
struct RunningMariaDb {
    child: Child,
    socket: PathBuf,
    log: PathBuf,
    /// Where this start's part of the log begins.
    log_offset_bytes: u64,
    connection: Option<Conn>,
}

impl RunningMariaDb {
    fn endpoint_of(&self, database: &str) -> Endpoint {
        Endpoint::MysqlSocket {
            path: self.socket.clone(),
            user: "root".to_owned(),
            database: database.to_owned(),
        }
    }

    fn connection(&mut self) -> Result<&mut Conn> {
        if self.connection.is_none() {
            self.fail_if_dead()?;
            self.connection = Some(connect(&self.endpoint_of("mysql"))?);
        }
        self.connection.as_mut().context("there is no connection to the server")
    }

    /// All rows of a statement that has a name and a value per row.
    fn pairs(&mut self, statement: &str) -> Result<Vec<(String, String)>> {
        match self.connection()?.query(statement) {
            Ok(pairs) => Ok(pairs),
            Err(error) => {
                self.connection = None;
                // A server that died says more in its log; give it the moment that it takes to be gone.
                std::thread::sleep(POLL_INTERVAL);
                self.fail_if_dead()?;
                Err(error).with_context(|| format!("asking the server: {statement}"))
            }
        }
    }

    fn fail_if_dead(&mut self) -> Result<()> {
        match self.child.try_wait().context("looking after mariadbd")? {
            Some(status) => {
                bail!("mariadbd died ({status}): {}", last_words(&self.log, self.log_offset_bytes))
            }
            None => Ok(()),
        }
    }
}

impl Running for RunningMariaDb {
    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let deadline = Instant::now() + timeout;
        loop {
            self.fail_if_dead()?;
            if let Ok(connection) = connect(&self.endpoint_of("mysql")) {
                self.connection = Some(connection);
                return Ok(());
            }
            if Instant::now() > deadline {
                bail!(
                    "mariadbd was not ready after {} s: {}",
                    timeout.as_secs(),
                    last_words(&self.log, self.log_offset_bytes)
                );
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn check_alive(&mut self, dying_time: Duration) -> Result<()> {
        let deadline = Instant::now() + dying_time;
        loop {
            self.fail_if_dead()?;
            if Instant::now() > deadline {
                return Ok(());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint_of(DATABASE)
    }

    fn process_id(&self) -> u32 {
        self.child.id()
    }

    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        let all: BTreeMap<String, String> = self.pairs("SHOW GLOBAL VARIABLES")?.into_iter().collect();
        let known =
            names.iter().filter_map(|name| Some((name.clone(), all.get(&name.replace('-', "_"))?.clone())));
        Ok(known.collect())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        let pairs = self.pairs("SHOW GLOBAL STATUS")?;
        Ok(pairs.into_iter().filter_map(|(name, value)| Some((name, value.parse().ok()?))).collect())
    }

    fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.connection = None;
        self.fail_if_dead()?;
        let process = Pid::from_child(&self.child);
        kill_process(process, Signal::TERM).context("asking mariadbd to stop")?;
        let deadline = Instant::now() + timeout;
        loop {
            if let Some(status) = self.child.try_wait().context("waiting for mariadbd")? {
                if status.success() {
                    return Ok(());
                }
                bail!("mariadbd stopped with {status}: {}", last_words(&self.log, self.log_offset_bytes));
            }
            if Instant::now() > deadline {
                bail!("mariadbd did not stop within {} s", timeout.as_secs());
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn crash(&mut self) -> Result<()> {
        self.connection = None;
        self.child.kill().context("killing mariadbd")?;
        self.child.wait().context("waiting for the killed mariadbd")?;
        Ok(())
    }
}

impl Drop for RunningMariaDb {
    fn drop(&mut self) {
        // Both fail only when it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
