//! A database server under test, known only through its verbs.

pub mod adapter;
pub mod endpoint;
pub mod files;
mod log;
pub(crate) mod memory;
pub mod mock;
mod monitor;
pub mod mysql;
pub mod option_file;
mod own_user;
pub mod package;
pub mod postgres;
mod postgres_log;
mod postgres_settings;
mod process;
pub mod replication;
pub mod running;
pub mod sqlite;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use spindle_base::child::RunAs;
use spindle_load::Endpoint;

use crate::record::FileClass;
use mysql::{Flavour, Mysql};
use replication::Replication;

/// Who runs the programs that a scenario names as the clients of a server.
pub(crate) const FOREIGN_TOOLS: RunAs = RunAs::User(own_user::TOOLS.0);

/// Where one private server lives, and with which settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    /// The database's files; on the storage under test.
    pub data_directory: PathBuf,
    /// For classes of files that do not lie with the data: directories on mounts of their own, also under test.
    pub class_directories: BTreeMap<FileClass, PathBuf>,
    /// Socket, process id, error log; never on the storage under test.
    pub runtime_directory: PathBuf,
    /// The server's own names and spelling.
    pub settings: BTreeMap<String, String>,
}

/// A kind of server: one file each.
pub trait Server: Debug {
    /// As scenarios name it.
    fn kind(&self) -> &'static str;

    /// Kinds of workload that it can be driven with, as [`spindle_load::WorkloadSpec`] names them.
    fn accepted_workloads(&self) -> Vec<&'static str>;

    /// Whether a workload of an accepted kind can be run with these settings.
    ///
    /// # Errors
    /// It cannot; continues a sentence that begins with the server's name.
    fn check_workload(&self, _kind: &str, _settings: &BTreeMap<String, String>) -> Result<(), Refusal> {
        Ok(())
    }

    /// What it keeps in the files of a class that does not lie with the data, for example `ib_logfile0`.
    ///
    /// # Errors
    /// It cannot keep them apart, or not with these settings; continues a sentence that begins with the server's name.
    fn files_of(&self, class: FileClass, _: &BTreeMap<String, String>) -> Result<String, Refusal> {
        Err(Refusal(format!("cannot keep {} apart from its data", class.words())))
    }

    /// Where its program is; `None` for one that has none. Errors name the command that installs it.
    fn path(&self) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// The version string of the installed binary. Errors name the command that installs it.
    fn version(&self) -> Result<String>;

    /// Looks at the settings without touching anything: a wrong one is refused before any work.
    fn check(&self, instance: &Instance) -> Result<(), Refusal>;

    /// Settings for loading a database that will be served with `settings`: those that shape the files, and whatever
    /// makes loading fast. Databases that are loaded with equal settings are interchangeable.
    fn load_settings(&self, settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        settings.clone()
    }

    /// Makes an empty database in the data directory.
    fn prepare(&self, instance: &Instance) -> Result<()>;

    /// Starts the process; it may not be ready yet.
    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>>;

    /// How replicas of it are set up; `None` where Spindle cannot.
    fn replication(&self) -> Option<&dyn Replication> {
        None
    }
}

/// The user's mistake: a sentence that names the setting and its bound. No work was begun.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refusal(pub String);

/// Names for [`by_source`].
pub const KINDS: [&str; 8] =
    ["adapter", "files", "mariadb", "mock", "mysql", "postgresql", "running", "sqlite"];

pub fn by_kind(kind: &str) -> Option<Box<dyn Server>> {
    by_source(kind, &Source::Installed)
}

/// The kind that runs all these kinds of workload where a scenario names none: SQLite, which is always here, when no server is.
pub fn default_for(workloads: &[&str], is_here: impl Fn(&dyn Server) -> bool) -> Option<&'static str> {
    ["mariadb", "postgresql", "sqlite", "files", "mock"].into_iter().find(|kind| {
        let server = by_kind(kind).expect("one of ours");
        let accepted = server.accepted_workloads();
        workloads.iter().all(|workload| accepted.contains(workload)) && is_here(&*server)
    })
}

/// Where the program of a server comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Whatever the machine has.
    #[default]
    Installed,
    Program(PathBuf),
    /// One of [`package::PACKAGES`].
    Version(String),
    /// Commands of the user's; for the kind `adapter` only.
    Adapter(Box<adapter::Commands>),
    /// Of a server that runs already; for the kind `running` only.
    Url(String),
}

impl Source {
    pub fn is_installed(&self) -> bool {
        *self == Source::Installed
    }
}

/// Kinds whose program a scenario may choose; the others ignore the source.
pub const KINDS_WITH_SOURCE: [&str; 2] = ["mariadb", "mysql"];

pub fn by_source(kind: &str, source: &Source) -> Option<Box<dyn Server>> {
    with_trust(kind, source, Trust::MayRun)
}

/// Whether a program that a file names may be run to see what it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// As its own user.
    #[default]
    MayRun,
    /// Whoever reads a scenario to see what it would do runs nothing of it.
    ReadOnly,
}

pub fn with_trust(kind: &str, source: &Source, trust: Trust) -> Option<Box<dyn Server>> {
    match kind {
        "files" => Some(Box::new(files::Files)),
        "adapter" => match source {
            Source::Adapter(commands) => Some(Box::new(adapter::Adapter((**commands).clone()))),
            _ => None,
        },
        "mariadb" => Some(Box::new(Mysql::new(Flavour::MariaDb, source.clone(), trust))),
        "mysql" => Some(Box::new(Mysql::new(Flavour::MySql, source.clone(), trust))),
        "mock" => Some(Box::new(mock::Mock)),
        "postgresql" => Some(Box::new(postgres::Postgres)),
        "running" => match source {
            Source::Url(url) => Some(Box::new(running::RunsAlready(url.clone()))),
            _ => None,
        },
        "sqlite" => Some(Box::new(sqlite::Sqlite)),
        _ => None,
    }
}

/// A started server. Dropping it kills the process.
pub trait Running: Debug {
    /// Returns when the server answers, or with the last words of its log when it died or took too long.
    fn wait_ready(&mut self, timeout: Duration) -> Result<()>;

    /// An error with the last words of its log when the process is gone, or is gone within `dying_time`.
    fn check_alive(&mut self, dying_time: Duration) -> Result<()>;

    fn endpoint(&self) -> Endpoint;

    /// Zero when there is no process (files, mock).
    fn process_id(&self) -> u32;

    /// What the server itself says about these settings, by the same names.
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>>;

    /// Cumulative counters and levels by the server's own names.
    fn counters(&mut self) -> Result<BTreeMap<String, f64>>;

    /// A clean shutdown.
    fn stop(&mut self, timeout: Duration) -> Result<()>;

    /// SIGKILL, as a crash of the process (not of the storage).
    fn crash(&mut self) -> Result<()>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sqlite_is_there_when_no_server_is() {
        let check = |workloads: &[&str], here: &[&str], expect| {
            assert_eq!(default_for(workloads, |server| here.contains(&server.kind())), expect);
        };
        let built_in = ["sqlite", "files", "mock"];
        check(&["tpcc", "oltp"], &["mariadb", "postgresql", "sqlite"], Some("mariadb"));
        check(&["tpcc", "oltp"], &["postgresql", "sqlite"], Some("postgresql"));
        check(&["tpcc", "oltp"], &built_in, Some("sqlite"));
        check(&["mysqlslap"], &built_in, None);
        check(&["fileio"], &built_in, Some("files"));
        check(&["fileio", "tpcc"], &built_in, None);
        check(&["mock"], &built_in, Some("mock"));
    }

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in KINDS.into_iter().filter(|kind| !["adapter", "running"].contains(kind)) {
            assert_eq!(by_kind(kind).unwrap().kind(), kind);
        }
        assert!(by_kind("oracle").is_none());
    }
}
