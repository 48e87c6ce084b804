//! MariaDB, MySQL and Percona Server, run privately: from the distribution's packages, from a given path, or
//! old versions that Spindle fetches.
//!
//! A private server never touches an installed one. It reads no option file, has its own directories, listens
//! only on a unix socket in its runtime directory, and runs as a numeric user without an account. Root may
//! log in without a password; only root and that user can reach the socket. A primary also listens on
//! 127.0.0.1, for its replicas (`replication.rs`).
//!
//! This module has the differences among MariaDB, MySQL, Percona Server and their versions (`release.rs`). It
//! knows no other server, and no use of its counters.

mod cache;
mod files;
mod monitor;
mod options;
mod paging;
mod prepare;
mod program;
mod release;
mod replication;
mod settings;
mod telemetry;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use spindle_load::{Endpoint, Target, WorkloadSpec};

use super::connection::Inquiry;
use super::instance::{Instance, Running};
use super::package;
use super::process::log::quote;
use super::process::own_user::OwnUser;
use super::process::started::{Started, Ways};
use super::process::{Process, check_socket};
use super::replication::Replication;
use super::settings::{
    Advice, Advised, MemorySetting, Refusal, Settings, check_memory, for_loading, has, setting,
};
use super::source::{Source, SourceForm, Trust};
use super::verbs::{self, Kind, Server};
use crate::record::FileClass;
pub(super) use files::redo_bytes;
pub(super) use monitor::PROTOCOL;
use options::{check_names, option, own_options, plain_options};
use program::Program;
use release::{Flavour, Release};
use settings::KNOWN;
pub(super) use settings::objection;

const USER: OwnUser = OwnUser(61_417);
/// The workload's schema, made during the load.
const DATABASE: &str = "spindle";

const ADVICE: &[Advice] = &[
    Advice {
        name: "innodb_buffer_pool_size",
        value: Advised::ShareOfData,
        why: "An eighth of the data. With all data in memory, no storage would be read.",
    },
    Advice {
        name: "innodb_flush_method",
        value: Advised::Value("O_DIRECT"),
        why: "Past the page cache of the machine, which would hide the storage.",
    },
    Advice {
        name: "innodb_flush_log_at_trx_commit",
        value: Advised::Value("1"),
        why: "Every commit waits until it is on the storage. `2` may lose the last second in a power cut.",
    },
];

pub(super) static MARIADB: Kind = Kind {
    source: SourceForm::Program,
    advice: ADVICE,
    is_default: true,
    has_storage_engines: true,
    sets_while_it_runs: true,
    starts_processes: true,
    program: Some(verbs::Program {
        name: "mariadbd",
        package: Some("mariadb-server-core"),
        is_required: true,
        purpose: "the server under test",
    }),
    tools: &[
        verbs::Program {
            name: "mariadb-install-db",
            package: Some("mariadb-server-core"),
            is_required: true,
            purpose: "makes empty MariaDB databases",
        },
        verbs::Program {
            name: "my_print_defaults",
            package: Some("mariadb-client-core"),
            is_required: true,
            purpose: "mariadb-install-db needs it",
        },
    ],
    ..Kind::new("mariadb", &[Target::Mysql], |source, trust| {
        Some(Box::new(Mysql::new(Flavour::MariaDb, source.clone(), trust)))
    })
};

/// Includes Percona Server.
pub(super) static MYSQL: Kind = Kind {
    source: SourceForm::Program,
    advice: ADVICE,
    has_storage_engines: true,
    sets_while_it_runs: true,
    starts_processes: true,
    how_to_get: Some(
        "name one with `program = \"/path/to/mysqld\"`, or unpack Debian's with `tools/install mysql`",
    ),
    ..Kind::new(package::MYSQL, &[Target::Mysql], |source, trust| {
        Some(Box::new(Mysql::new(Flavour::MySql, source.clone(), trust)))
    })
};

/// Settings of InnoDB, MyISAM and Aria.
pub(super) const MEMORY_SETTINGS: [MemorySetting; 3] = [
    memory_setting("innodb_buffer_pool_size"),
    memory_setting("key_buffer_size"),
    memory_setting("aria_pagecache_buffer_size"),
];

const fn memory_setting(name: &'static str) -> MemorySetting {
    MemorySetting { name, bytes: settings::size_bytes, example: "96M" }
}

#[derive(Debug)]
struct Mysql {
    flavour: Flavour,
    source: Source,
    trust: Trust,
}

impl Mysql {
    fn new(flavour: Flavour, source: Source, trust: Trust) -> Mysql {
        Mysql { flavour, source, trust }
    }

    fn program(&self) -> Result<(Program, Release)> {
        let program = Program::find(self.flavour, &self.source)?;
        USER.check_way(&program.path)?;
        let release = program.release()?;
        let is_mariadb = release.flavour == Flavour::MariaDb;
        if is_mariadb != (self.flavour == Flavour::MariaDb) {
            let kind = if is_mariadb { MARIADB.name } else { MYSQL.name };
            let words = format!("{} is {release}; write kind = \"{kind}\"", program.path.display());
            return Err(Refusal(words).into());
        }
        if let Some(base) = &program.base {
            USER.check_way(base)?;
        }
        Ok((program, release))
    }

    /// For a server that is missing or must not be asked, the newest known release.
    fn release(&self) -> Release {
        if self.source.may_not_run(self.trust) {
            return Release::newest(self.flavour);
        }
        self.program().map_or_else(|_| Release::newest(self.flavour), |(_, release)| release)
    }
}

impl Server for Mysql {
    fn check_workload(&self, kind: &str, settings: &Settings) -> Result<(), Refusal> {
        let needs_transactions = WorkloadSpec::facts_of(kind).is_some_and(|facts| facts.needs_transactions);
        match table_engine(settings) {
            Some(engine) if needs_transactions && has_no_transactions(engine) => Err(Refusal(format!(
                "keeps its tables in {engine} (`default_storage_engine`), which has no transactions"
            ))),
            _ => Ok(()),
        }
    }

    fn files_of(&self, class: FileClass, settings: &Settings) -> Result<String, Refusal> {
        files::files_of(&self.release(), class, settings)
    }

    fn memory_settings(&self) -> Vec<MemorySetting> {
        MEMORY_SETTINGS.to_vec()
    }

    fn special_settings(&self) -> Vec<(&'static str, Vec<String>)> {
        settings::special()
    }

    /// The default is one file in MariaDB and two in MySQL.
    fn redo_bytes(&self, settings: &Settings) -> Option<u64> {
        redo_bytes(settings, if self.flavour == Flavour::MariaDb { 1 } else { 2 })
    }

    fn circular_files(&self, instance: &Instance) -> Vec<PathBuf> {
        files::circular_files(&self.release(), instance)
    }

    /// An empty MariaDB 10.11 has 126 MiB (`du`), and from 11.0 on 30 MiB more; MySQL 9.7 has 201 MiB. About
    /// 100 MiB of each are redo log.
    fn empty_bytes(&self) -> u64 {
        if self.flavour == Flavour::MariaDb { 160 << 20 } else { 224 << 20 }
    }

    fn path(&self) -> Result<Option<PathBuf>> {
        Ok(Some(Program::find(self.flavour, &self.source)?.path))
    }

    fn version(&self) -> Result<String> {
        Ok(self.program()?.1.to_string())
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        settings::check(&instance.settings)?;
        check_socket(&socket(instance))?;
        files::check(&self.release(), &instance.settings)?;
        check_memory(&instance.settings, &MEMORY_SETTINGS)?;
        if self.source.may_not_run(self.trust) {
            return Ok(());
        }
        // A missing server is not the settings' fault and is reported elsewhere.
        self.program()
            .map_or(Ok(()), |(program, release)| check_names(&program, &release, &instance.settings))
    }

    fn load_settings(&self, settings: &Settings) -> Settings {
        let release = self.release();
        let shapes = |name: &str| {
            has(&KNOWN.shaping, name) || has(&KNOWN.for_tables, name) || name.starts_with("rocksdb_")
        };
        let is_known = |name: &str| match name {
            "innodb_buffer_pool_dump_at_shutdown" => release.can(release::DUMP_OF_THE_POOL),
            // In the others the default is off.
            files::LOG_BIN => release.can(release::BINLOG_BY_DEFAULT),
            _ => true,
        };
        for_loading(settings, shapes, KNOWN.loading.iter().filter(|(name, _)| is_known(name)))
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        self.check(instance)?;
        USER.own_instance(instance, Some(files::temporary_directory(instance)))?;
        let (program, release) = self.program()?;
        prepare::prepare(&program, &release, instance)
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        self.start_with(instance, &["--skip-networking".to_owned()])
    }

    fn replication(&self) -> Option<&dyn Replication> {
        (self.flavour == Flavour::MariaDb).then_some(self)
    }
}

impl Mysql {
    /// `more` are options in addition to the instance's.
    fn start_with(&self, instance: &Instance, more: &[String]) -> Result<Box<dyn Running>> {
        self.check(instance)?;
        USER.own_instance(instance, Some(files::temporary_directory(instance)))?;
        let (program, release) = self.program()?;
        let runtime = &instance.runtime_directory;
        let mut command = Command::new(&program.path);
        // The server takes the last value of a repeated option, which is ours.
        command
            .arg("--no-defaults")
            .args(plain_options(&release, &instance.settings))
            .args(program.options())
            .arg(option("datadir", &instance.data_directory.to_string_lossy()))
            .arg(option("socket", &socket(instance).to_string_lossy()))
            .arg(option("pid-file", &runtime.join("pid").to_string_lossy()))
            .args(files::options(&release, instance).iter().map(|(name, value)| option(name, value)))
            .arg("--skip-name-resolve")
            .args(own_options(&release))
            .args(more);
        let process = Process::spawn(USER.run(&mut command), &program.name(), instance, quote)?;
        let socket = socket(instance);
        let inquiry = Inquiry::new(&program.name(), endpoint(&socket, "mysql"), &PROTOCOL);
        Ok(Box::new(Started { process, endpoint: endpoint(&socket, DATABASE), inquiry, ways: Mysqld }))
    }
}

#[derive(Debug)]
struct Mysqld;

impl Ways for Mysqld {}

fn endpoint(socket: &Path, database: &str) -> Endpoint {
    Endpoint::MysqlSocket { path: socket.to_owned(), user: "root".to_owned(), database: database.to_owned() }
}

fn socket(instance: &Instance) -> PathBuf {
    instance.runtime_directory.join("socket")
}

fn table_engine(settings: &Settings) -> Option<&str> {
    ["default_storage_engine", "storage_engine"].iter().find_map(|name| setting(settings, name))
}

/// Other engines may be plugins; the loader asks the server about them.
fn has_no_transactions(engine: &str) -> bool {
    const ENGINES: [&str; 8] =
        ["myisam", "aria", "memory", "heap", "csv", "archive", "blackhole", "mrg_myisam"];
    ENGINES.contains(&engine.to_ascii_lowercase().as_str())
}
