//! PostgreSQL from the distribution's package, run privately.
//!
//! A server of ours never touches one that is installed: it has its own directories and configuration, listens on a unix socket in its
//! runtime directory only, and runs as a numeric user that no account has. Whoever reaches the socket may log in; only root
//! and that user can.
//!
//! A connection is a process here. All processes of a server are in a process namespace, so that the kernel ends them together, and in a
//! namespace of shared memory, so that a server which was killed leaves none behind.
//!
//! It reads through the machine's page cache, which `shared_buffers` does not bound: see METHODOLOGY.md.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use spindle_load::sql::postgres::{DEFAULT_PORT, MAINTENANCE_DATABASE};
use spindle_load::sql::{Session, Statement, connect};
use spindle_load::{Endpoint, WorkloadSpec};

use super::monitor::{self, Inquiry};
use super::own_user::{OwnUser, beside};
use super::postgres_log::quote;
use super::postgres_settings::{self, LOADING_SETTINGS, OWN_SETTINGS, SHAPING_SETTINGS, is_named};
pub(crate) use super::postgres_settings::{PAGE_BYTES, log_bytes, size_bytes};
use super::process::{PREPARE_PATIENCE, Process, QUESTION_PATIENCE, check_socket, output_within};
use super::{Instance, Refusal, Running, Server};
use crate::record::FileClass;

const USER: OwnUser = OwnUser(61_418);
/// The workload's database; made when it is loaded.
const DATABASE: &str = "spindle";
/// Of the database, not of the machine.
const SUPERUSER: &str = "postgres";

/// Which programs are looked for where the PATH has none; of several versions the newest.
const INSTALLED: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/pgsql"];
const INSTALL_HINT: &str =
    "install it with `tools/install postgresql`, which starts no server of the machine's own";

#[derive(Debug)]
pub struct Postgres;

impl Server for Postgres {
    fn kind(&self) -> &'static str {
        "postgresql"
    }

    fn accepted_workloads(&self) -> Vec<&'static str> {
        [WorkloadSpec::ON_EVERY_DATABASE, &["sysbench"]].concat()
    }

    fn files_of(&self, class: FileClass, _: &BTreeMap<String, String>) -> Result<String, Refusal> {
        let refusal = match class {
            FileClass::Data => return Ok("tables and indexes".to_owned()),
            FileClass::Redo => return Ok("pg_wal, the write-ahead log".to_owned()),
            FileClass::Doublewrite => {
                "has no doublewrite buffer: `full_page_writes` puts whole pages into the write-ahead log, which is the class `redo`"
            }
            FileClass::Undo => {
                "has no undo logs: old versions of rows stay in their tables until they are vacuumed"
            }
            FileClass::Binlog => {
                "has no binary log: its replicas read the write-ahead log, which is the class `redo`"
            }
            FileClass::Temp => "keeps its temporary files with its data here: tablespaces are not laid out",
        };
        Err(Refusal(refusal.to_owned()))
    }

    fn path(&self) -> Result<Option<PathBuf>> {
        program("postgres").map(Some)
    }

    fn version(&self) -> Result<String> {
        let program = program("postgres")?;
        let mut command = Command::new(&program);
        command.arg("--version").current_dir("/").stdin(Stdio::null());
        let output = output_within(USER.run(&mut command), QUESTION_PATIENCE)
            .with_context(|| format!("asking {} for its version", program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
        let version = text.split_once("(PostgreSQL) ").map(|(_, version)| version.trim());
        let version = version.with_context(|| format!("{} told no version: {text}", program.display()))?;
        Ok(format!("PostgreSQL {version}"))
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        let settings = &instance.settings;
        check_socket(&instance.runtime_directory.join(format!(".s.PGSQL.{DEFAULT_PORT}")))?;
        postgres_settings::check(settings)?;
        self.check_by_the_server(settings)
    }

    fn load_settings(&self, settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let shapes = |name: &&String| SHAPING_SETTINGS.iter().any(|known| is_named(name, known));
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
        let program = program("initdb")?;
        // It asks for the name of the user that it runs as, who has none: it sees a list of users with that one only.
        let users = beside(&instance.runtime_directory, "passwd");
        USER.write(&users, format!("{SUPERUSER}:x:{0}:{0}::/:/bin/false\n", USER.0).as_bytes())?;
        let with_users = ["sh", "-c", "mount --bind \"$0\" /etc/passwd && exec \"$@\""].map(OsStr::new);
        let with_users: Vec<&OsStr> = with_users.into_iter().chain([users.as_os_str()]).collect();
        let mut command = USER.command_in_namespaces(&["--mount", "--ipc"], &with_users, &program);
        command
            .arg("--pgdata")
            .arg(&instance.data_directory)
            .args(["--username", SUPERUSER, "--auth", "trust", "--encoding", "UTF8", "--locale", "C"])
            // A clean shutdown and an unmount make it durable.
            .args(["--no-sync", "--no-instructions"])
            .current_dir(&instance.runtime_directory)
            .env("LC_ALL", "C")
            .stdin(Stdio::null());
        if let Some(directory) = instance.class_directories.get(&FileClass::Redo) {
            command.arg("--waldir").arg(directory);
        }
        let output = output_within(&mut command, PREPARE_PATIENCE)
            .with_context(|| format!("starting {}", program.display()))?;
        if !output.status.success() {
            bail!(
                "making a database in {} failed ({}): {}",
                instance.data_directory.display(),
                output.status,
                quote(&String::from_utf8_lossy(&output.stderr))
            );
        }
        Ok(())
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        self.check(instance)?;
        own_directories(instance)?;
        place_log(instance)?;
        let program = program("postgres")?;
        let mut command = USER.command_in_namespaces(&["--ipc"], &[], &program);
        let own = OWN_SETTINGS.iter().filter_map(|(name, value)| Some((*name, (*value)?)));
        let user = instance.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        command
            .arg("-D")
            .arg(&instance.data_directory)
            // Of two values the later counts, which is ours.
            .args(user.chain(own).flat_map(|(name, value)| ["-c".to_owned(), option(name, value)]))
            .arg("-c")
            .arg(option("unix_socket_directories", &instance.runtime_directory.to_string_lossy()))
            .env("LC_ALL", "C");
        let mut process = Process::spawn(&mut command, "postgres", &instance.runtime_directory, quote)?;
        process.find_first()?;
        Ok(Box::new(RunningPostgres {
            process,
            data_directory: instance.data_directory.clone(),
            endpoint: endpoint(instance, DATABASE),
            inquiry: Inquiry::new("postgres", endpoint(instance, MAINTENANCE_DATABASE)),
        }))
    }
}

impl Postgres {
    /// Lets the server itself read the settings, without starting: it knows its own names and values best, and which do not go together. It
    /// gets as far as the control file of a directory that has nothing in it. A missing server is not the settings' fault and is told elsewhere.
    fn check_by_the_server(&self, settings: &BTreeMap<String, String>) -> Result<(), Refusal> {
        const CAME_TO_THE_CONTROL_FILE: &str = "database files are incompatible with server";
        const CONTROL_FILE_BYTES: usize = 8192;
        let Ok(program) = program("postgres") else { return Ok(()) };
        let ask = || -> Result<Option<String>> {
            let only_ours = fs::Permissions::from_mode(0o700);
            let directory = tempfile::Builder::new().permissions(only_ours).tempdir()?;
            USER.check_way(directory.path())?;
            fs::create_dir(directory.path().join("global"))?;
            let version = format!("{}\n", major_version(&self.version()?));
            let control_file = vec![0; CONTROL_FILE_BYTES];
            let files = [
                ("postgresql.conf", Vec::new()),
                ("PG_VERSION", version.into_bytes()),
                ("global/pg_control", control_file),
            ];
            for (name, content) in files {
                fs::write(directory.path().join(name), content)?;
            }
            USER.give_all(directory.path())?;
            let mut command = Command::new(&program);
            command
                .arg("-D")
                .arg(directory.path())
                .args(settings.iter().flat_map(|(name, value)| ["-c".to_owned(), option(name, value)]))
                .env("LC_ALL", "C")
                .stdin(Stdio::null());
            let output = output_within(USER.run(&mut command), QUESTION_PATIENCE)?;
            let words = String::from_utf8_lossy(&output.stderr).into_owned();
            Ok((!words.contains(CAME_TO_THE_CONTROL_FILE)).then(|| quote(&words)))
        };
        // Where the server cannot be asked, its start will tell.
        match ask() {
            Ok(Some(words)) => Err(Refusal(format!("the server refuses them: {words}"))),
            Ok(None) | Err(_) => Ok(()),
        }
    }
}

/// "PostgreSQL 15.18 (Debian 15.18-0+deb12u1)": 15, as the server writes it into its directory.
fn major_version(version: &str) -> &str {
    let number = version.trim_start_matches("PostgreSQL ");
    number.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default()
}

fn option(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

/// From the PATH, or the newest of those that packages install outside of it. All programs of a version lie together.
fn program(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for directory in INSTALLED {
        let versions = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut versions: Vec<(u32, PathBuf)> = versions
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
            .collect();
        versions.sort_unstable();
        candidates.extend(versions.into_iter().rev().map(|(_, bin)| bin));
        candidates.push(Path::new(directory).join("bin"));
    }
    let server = candidates.into_iter().map(|bin| bin.join("postgres")).find(|server| server.is_file());
    server
        // A link to it may stand alone.
        .and_then(|server| server.canonicalize().ok())
        .map(|server| server.with_file_name(name))
        .filter(|program| program.is_file())
        .with_context(|| format!("there is no {name} of PostgreSQL on this machine; {INSTALL_HINT}"))
}

fn own_directories(instance: &Instance) -> Result<()> {
    USER.own(&instance.data_directory)?;
    instance.class_directories.values().try_for_each(|path| USER.own(path))?;
    USER.own_runtime(&instance.runtime_directory)
}

/// The log is a link in the data directory, which was made when the mounts were elsewhere.
fn place_log(instance: &Instance) -> Result<()> {
    let Some(directory) = instance.class_directories.get(&FileClass::Redo) else { return Ok(()) };
    let link = instance.data_directory.join("pg_wal");
    if fs::read_link(&link).is_ok_and(|target| target == *directory) {
        return Ok(());
    }
    fs::remove_file(&link).with_context(|| format!("removing {}", link.display()))?;
    symlink(directory, &link).with_context(|| format!("linking {}", link.display()))
}

#[derive(Debug)]
struct RunningPostgres {
    process: Process,
    data_directory: PathBuf,
    endpoint: Endpoint,
    inquiry: Inquiry,
}

/// A connection, and the question that [`Running::counters`] asks.
#[derive(Debug)]
pub(super) struct Monitor {
    session: Box<dyn Session>,
    counters: Statement,
}

impl Monitor {
    pub(super) fn connect(endpoint: &Endpoint) -> Result<Monitor> {
        let mut session = connect(endpoint)?;
        let statement = session.prepare("SELECT viewname FROM pg_views WHERE schemaname = 'pg_catalog'")?;
        let views: Vec<(Vec<u8>,)> = session.rows(statement, &[])?;
        let has = |view: &str| views.iter().any(|(name,)| name == view.as_bytes());
        let counters = session.prepare(&counters_question(has))?;
        Ok(Monitor { session, counters })
    }
}

impl monitor::Monitor for Monitor {
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        // NULL for what it does not know.
        let current = self.session.prepare("SELECT current_setting(?, true)")?;
        let mut known = BTreeMap::new();
        for name in names {
            let value: Option<(Option<Vec<u8>>,)> =
                self.session.first(current, spindle_load::values![name.as_str()])?;
            if let Some((Some(value),)) = value {
                known.insert(name.clone(), String::from_utf8_lossy(&value).into_owned());
            }
        }
        Ok(known)
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        let pairs: Vec<(Vec<u8>, Option<Vec<u8>>)> = self.session.rows(self.counters, &[])?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let number = |value: Option<Vec<u8>>| text(value?).parse().ok();
        Ok(pairs.into_iter().filter_map(|(name, value)| Some((text(name), number(value)?))).collect())
    }
}

/// The cumulative statistics of the database, of checkpoints and of the log, as `view.column`; and two levels. Views differ between versions.
fn counters_question(has_view: impl Fn(&str) -> bool) -> String {
    const VIEWS: [&str; 4] = ["pg_stat_database", "pg_stat_bgwriter", "pg_stat_checkpointer", "pg_stat_wal"];
    let views = VIEWS.iter().filter(|view| has_view(view)).map(|view| {
        let of_the_database =
            if *view == VIEWS[0] { format!(" WHERE datname = '{DATABASE}'") } else { String::new() };
        format!(
            "SELECT '{view}.' || key, value FROM (SELECT to_jsonb(v) - 'numbackends' AS all_columns FROM {view} v{of_the_database}) w, \
             jsonb_each_text(all_columns)"
        )
    });
    let levels = [
        "SELECT 'lock_waiters', COUNT(*)::text FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
        "SELECT 'checkpoint_age_bytes', pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::text FROM pg_control_checkpoint()",
    ];
    views.chain(levels.map(str::to_owned)).collect::<Vec<_>>().join(" UNION ALL ")
}

fn endpoint(instance: &Instance, database: &str) -> Endpoint {
    Endpoint::PostgresSocket {
        directory: instance.runtime_directory.clone(),
        port: DEFAULT_PORT,
        user: SUPERUSER.to_owned(),
        database: database.to_owned(),
    }
}

/// As `pg_ctl` learns it: from the last line of the file of the process id.
fn says_ready(data_directory: &Path) -> bool {
    let file = fs::read_to_string(data_directory.join("postmaster.pid")).unwrap_or_default();
    file.lines().nth(7).is_some_and(|status| status.trim() == "ready")
}

impl Running for RunningPostgres {
    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let (inquiry, data_directory) = (&mut self.inquiry, &self.data_directory);
        // The file may be that of an earlier server, which crashed.
        let attempt = || match says_ready(data_directory) {
            true => inquiry.connect().map_err(|error| Some(format!("{error:#}"))),
            false => Err(None),
        };
        self.process.wait_ready(timeout, attempt)
    }

    fn check_alive(&mut self, dying_time: Duration) -> Result<()> {
        self.process.check_alive(dying_time)
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn process_id(&self) -> u32 {
        self.process.id()
    }

    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        self.inquiry.settings(names).map_err(|error| self.process.explain(error))
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.inquiry.counters().map_err(|error| self.process.explain(error))
    }

    /// A fast shutdown: what is connected is disconnected, and a checkpoint is written.
    fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.inquiry.disconnect();
        self.process.stop(Signal::INT, timeout)
    }

    fn crash(&mut self) -> Result<()> {
        self.inquiry.disconnect();
        self.process.crash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_what_the_directory_has() {
        assert_eq!(major_version("PostgreSQL 15.18 (Debian 15.18-0+deb12u1)"), "15");
        assert_eq!(major_version("PostgreSQL 18beta1"), "18");
    }

    #[test]
    fn views_that_a_version_lacks_are_not_asked_for() {
        let question = counters_question(|view| view != "pg_stat_checkpointer");
        assert!(
            question.contains("FROM pg_stat_wal ") && !question.contains("pg_stat_checkpointer"),
            "{question}"
        );
    }

    #[test]
    fn what_postgresql_lacks_is_refused_in_one_sentence() {
        for class in FileClass::ALL {
            let files = Postgres.files_of(class, &BTreeMap::new());
            assert_eq!(files.is_ok(), matches!(class, FileClass::Data | FileClass::Redo), "{class:?}");
        }
    }
}
