//! PostgreSQL, installed, fetched or named by its path, run privately.
//!
//! A private server never touches an installed one: it has its own directories and configuration, listens
//! only on a unix socket in its runtime directory, and runs as a numeric user without an account. Any
//! connection to the socket may log in; only root and that user can reach the socket.
//!
//! PostgreSQL has a process per connection. All processes of a server are in a process namespace, so that the
//! kernel ends them together. They are also in a namespace of shared memory, so that a killed server leaves
//! none behind.
//!
//! The server reads through the machine's page cache, which `shared_buffers` does not bound. A scenario's
//! `memory` does, and from version 16 on the setting `debug_io_direct` goes past it: see METHODOLOGY.md.
//!
//! This module has PostgreSQL's programs, settings, log and statistics. It knows no other server, and no use
//! of its counters.

mod cache;
mod log;
mod monitor;
mod paging;
mod program;
mod running;
mod settings;
mod telemetry;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Context, Result};
use spindle_load::Target;
use spindle_load::sql::postgres::{DEFAULT_PORT, MAINTENANCE_DATABASE};

use super::connection::Inquiry;
use super::instance::{Instance, Running};
use super::package;
use super::process::own_user::{OwnUser, beside};
use super::process::started::Started;
use super::process::{Process, check_socket, run};
use super::settings::{Advice, Advised, MemorySetting, Refusal, Settings, for_loading, has, plain_name};
use super::source::{Source, SourceForm, Trust};
use super::verbs::{self, Kind, Server};
use crate::record::FileClass;
use log::quote;
pub(super) use monitor::PROTOCOL;
use program::option;
use running::{Postmaster, endpoint};
use settings::KNOWN;
pub(super) use settings::MEMORY_SETTINGS;

const USER: OwnUser = OwnUser(61_418);
/// The workload's database, made during the load.
const DATABASE: &str = "spindle";
/// A superuser of the database, not a user of the machine.
const SUPERUSER: &str = "postgres";

const ADVICE: &[Advice] = &[
    Advice {
        name: "shared_buffers",
        value: Advised::ShareOfData,
        why: "An eighth of the data. PostgreSQL also reads through the page cache of the machine, which this \
              does not limit: data that fit there are read once, and then the storage serves writes.",
    },
    Advice {
        name: "synchronous_commit",
        value: Advised::Value("on"),
        why: "Every commit waits until it is on the storage. `off` may lose the last ones in a power cut.",
    },
    Advice {
        name: "max_wal_size",
        value: Advised::Value("256MB"),
        why: "Log between two checkpoints. The server's own choice, 1GB, is for larger databases.",
    },
    Advice {
        name: "checkpoint_timeout",
        value: Advised::Value("30s"),
        why: "With the server's own choice, 5min, a short window sees no checkpoint.",
    },
];

pub(super) static KIND: Kind = Kind {
    source: SourceForm::Program,
    is_default: true,
    sets_while_it_runs: true,
    starts_processes: true,
    advice: ADVICE,
    program: Some(verbs::Program {
        name: "postgres",
        // The package would also start a server for the machine.
        package: None,
        is_required: false,
        purpose: "a server under test; `tools/install postgresql` installs it without starting the package's own server",
    }),
    ..Kind::new(package::POSTGRESQL, &[Target::Postgres], |source, trust| {
        Some(Box::new(Postgres { source: source.clone(), trust }))
    })
};

#[derive(Debug)]
struct Postgres {
    source: Source,
    trust: Trust,
}

impl Postgres {
    fn program(&self) -> Result<PathBuf> {
        let program = program::find(&self.source)?;
        USER.check_way(&program)?;
        Ok(program)
    }
}

impl Server for Postgres {
    fn files_of(&self, class: FileClass, _: &Settings) -> Result<String, Refusal> {
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

    fn memory_settings(&self) -> Vec<MemorySetting> {
        MEMORY_SETTINGS.to_vec()
    }

    fn special_settings(&self) -> Vec<(&'static str, Vec<String>)> {
        settings::special()
    }

    fn redo_bytes(&self, settings: &Settings) -> Option<u64> {
        Some(settings::log_bytes(settings))
    }

    /// An empty PostgreSQL 15 has four databases of 7 MiB each, and 16 MiB of log (`du`).
    fn empty_bytes(&self) -> u64 {
        64 << 20
    }

    fn path(&self) -> Result<Option<PathBuf>> {
        program::find(&self.source).map(Some)
    }

    fn version(&self) -> Result<String> {
        program::version(&self.program()?)
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        let settings = &instance.settings;
        check_socket(&instance.runtime_directory.join(format!(".s.PGSQL.{DEFAULT_PORT}")))?;
        settings::check(settings)?;
        if self.source.may_not_run(self.trust) {
            return Ok(());
        }
        // A missing server is not the settings' fault and is reported elsewhere.
        self.program().map_or(Ok(()), |program| program::check_settings(&program, settings))
    }

    fn load_settings(&self, settings: &Settings) -> Settings {
        for_loading(settings, |name| has(&KNOWN.shaping, name), &KNOWN.loading)
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        self.check(instance)?;
        USER.own_instance(instance, None)?;
        let program = program::companion(&self.program()?, "initdb")?;
        // initdb looks up the name of its user, which has no account. It gets a list of users with this user
        // only.
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
        let work = format!("making a database in {}", instance.data_directory.display());
        run(&mut command, &program.to_string_lossy(), &work, quote)
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        self.check(instance)?;
        USER.own_instance(instance, None)?;
        place_log(instance)?;
        let program = self.program()?;
        // A setting of the command line would take precedence over a later value.
        let is_changing =
            |name: &&String| instance.changing.iter().any(|other| plain_name(other) == plain_name(name));
        let (initial, settings): (Settings, Settings) =
            instance.settings.clone().into_iter().partition(|(name, _)| is_changing(&name));
        let mut command = USER.command_in_namespaces(&["--ipc"], &[], &program);
        command
            .arg("-D")
            .arg(&instance.data_directory)
            // The last value of a repeated setting counts, which is ours.
            .args(
                settings
                    .iter()
                    .chain(&KNOWN.fixed)
                    .flat_map(|(name, value)| ["-c".to_owned(), option(name, value)]),
            )
            .arg("-c")
            .arg(option("unix_socket_directories", &instance.runtime_directory.to_string_lossy()))
            .env("LC_ALL", "C");
        let mut process = Process::spawn(&mut command, "postgres", instance, quote)?;
        process.find_first()?;
        Ok(Box::new(Started {
            process,
            ways: Postmaster { data_directory: instance.data_directory.clone(), initial },
            endpoint: endpoint(instance, DATABASE),
            inquiry: Inquiry::new("postgres", endpoint(instance, MAINTENANCE_DATABASE), &PROTOCOL),
        }))
    }
}

/// Points the log's link in the data directory to its present mount. The link was made with the mounts
/// elsewhere.
fn place_log(instance: &Instance) -> Result<()> {
    let Some(directory) = instance.class_directories.get(&FileClass::Redo) else { return Ok(()) };
    let link = instance.data_directory.join("pg_wal");
    if fs::read_link(&link).is_ok_and(|target| target == *directory) {
        return Ok(());
    }
    fs::remove_file(&link).with_context(|| format!("removing {}", link.display()))?;
    symlink(directory, &link).with_context(|| format!("linking {}", link.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_classes_of_files_are_refused() {
        let postgres = Postgres { source: Source::Installed, trust: Trust::MayRun };
        for class in FileClass::ALL {
            let files = postgres.files_of(class, &Settings::new());
            assert_eq!(files.is_ok(), matches!(class, FileClass::Data | FileClass::Redo), "{class:?}");
        }
    }
}
