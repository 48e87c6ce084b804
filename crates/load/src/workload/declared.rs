//! Declarations of a workload that are known before it runs.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::Workload;
use crate::protocol::Endpoint;
use crate::sql::Engine;
use spindle_base::child::RunAs;

/// A wrong parameter: its key, and a sentence without the key.
pub type Complaint = (&'static str, String);

/// The parameters of a workload. The implementing structure has the keys of a scenario as its fields. They
/// are the options of `spindle load` too: serde and clap read the same fields. The module also has the
/// workload's [`Facts`].
pub trait Declared: Debug + Send + Sync {
    /// A mistake in a parameter besides its declared bounds, or in two together.
    fn contradiction(&self) -> Option<Complaint> {
        None
    }

    /// The freshly loaded database; `None` for workloads without one.
    fn data(&self) -> Option<Data>;

    /// The parameters that shape the loaded database. Equal texts mean equal data.
    fn data_set(&self) -> String;

    /// Where the workload differs from its specification, as sentences.
    fn deviations(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// The default warm-up of the kit that the workload follows.
    fn warm_up(&self) -> Option<Duration> {
        None
    }

    /// The storage engine that its tables must have. Only MariaDB and MySQL have engines.
    fn engine(&self) -> Option<Engine> {
        None
    }

    /// Servers that hold the database together, each a part of its sharded tables and a copy of the others. Only
    /// MariaDB and MySQL can.
    fn shards(&self) -> u32 {
        1
    }

    /// Transaction types that change nothing, by name.
    fn read_only_types(&self) -> &'static [&'static str] {
        &[]
    }

    /// Parts that these parameters leave out, with the reasons.
    fn skipped(&self) -> Vec<String> {
        Vec::new()
    }

    /// Reads the files that the parameters name into the parameters. Paths are relative to the directory.
    ///
    /// # Errors
    /// A file cannot be read.
    fn read_files(&mut self, _directory: &Path) -> Result<(), Complaint> {
        Ok(())
    }

    /// The workload itself. Its parameters are already checked. A foreign tool runs as `run_as`.
    ///
    /// # Errors
    /// A mistake that the parameters alone do not show.
    fn workload(&self, run_as: RunAs) -> Result<Box<dyn Workload>>;
}

/// The freshly loaded database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// Its size in a sentence: `10 warehouses`.
    pub words: String,
    /// Approximate size, without the server's own files.
    pub bytes: u64,
}

/// The kind of system behind an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// MariaDB, MySQL, Percona Server.
    Mysql,
    Postgres,
    Sqlite,
    /// A directory for files.
    Directory,
    /// No server: the clients answer their own requests.
    Mock,
}

impl Target {
    /// Targets that speak SQL.
    pub const DATABASES: &[Target] = &[Target::Mysql, Target::Postgres, Target::Sqlite];

    pub fn of(endpoint: &Endpoint) -> Target {
        match endpoint {
            Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => Target::Mysql,
            Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. } => Target::Postgres,
            Endpoint::Sqlite { .. } => Target::Sqlite,
            Endpoint::Directory { .. } => Target::Directory,
            Endpoint::Mock => Target::Mock,
        }
    }
}

/// Properties of a workload that hold for any parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub runs_on: &'static [Target],
    /// Fixed work: a list of operations that clients can execute once ([`super::Client::is_through`]).
    pub is_fixed_work: bool,
    /// `spindle load` creates its tables and does the work once, unless a duration is given.
    pub is_done_once: bool,
    /// Fixed work that leaves the loaded tables as they are, so that it can be done before the measured pass
    /// too.
    pub is_read_only: bool,
    /// Its clients are a foreign tool.
    pub has_tool: bool,
    /// A storage engine without transactions cannot run it.
    pub needs_transactions: bool,
    /// Its parameters in a new scenario. Without them, `spindle new` does not offer it.
    pub example: Option<Example>,
}

/// Parameters of a workload in a new scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// Every required key and its value besides `size_key`, as a JSON object.
    pub table: &'static str,
    /// The count that sets the size of the loaded database. `None` if the size is fixed, or is set otherwise.
    pub size_key: Option<&'static str>,
}

impl Example {
    pub const fn of_size(size_key: &'static str, table: &'static str) -> Option<Example> {
        Some(Example { table, size_key: Some(size_key) })
    }

    pub const fn fixed(table: &'static str) -> Option<Example> {
        Some(Example { table, size_key: None })
    }
}

impl Facts {
    /// A native workload for all SQL databases.
    pub const SQL: Facts = Facts {
        runs_on: Target::DATABASES,
        is_fixed_work: false,
        is_done_once: false,
        is_read_only: false,
        has_tool: false,
        needs_transactions: false,
        example: None,
    };

    /// A workload whose clients are a foreign tool.
    pub const FOREIGN: Facts = Facts { has_tool: true, ..Facts::SQL };
}
