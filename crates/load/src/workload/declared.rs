//! What a workload says before anything runs.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use super::{Count, Workload};
use crate::protocol::Endpoint;
use crate::sql::Engine;
use spindle_base::child::RunAs;

/// A parameter that is wrong: its key, and a sentence without it.
pub type Complaint = (&'static str, String);

/// The parameters of a workload. Whoever implements it is a structure with the keys of a scenario, which are
/// the options of `spindle load`, too: serde and clap read the same fields. Beside it in its module is its
/// [`Facts`].
pub trait Declared: Debug + Send + Sync {
    /// The bounds of what is counted.
    fn counts(&self) -> Vec<Count>;

    /// What else is wrong with a parameter, or with two together.
    fn contradiction(&self) -> Option<Complaint> {
        None
    }

    /// What is wrong with a parameter.
    fn complaint(&self) -> Option<Complaint> {
        let out_of_range = |count: &Count| Some((count.key, count.complaint()?));
        self.counts().iter().find_map(out_of_range).or_else(|| self.contradiction())
    }

    /// The freshly loaded database; `None` where there is none.
    fn data(&self) -> Option<Data>;

    /// What shapes the loaded database: equal texts, equal data.
    fn data_set(&self) -> String;

    /// Where the workload differs from its specification, as sentences.
    fn deviations(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// How long the kit that it follows warms up unless told otherwise.
    fn warm_up(&self) -> Option<Duration> {
        None
    }

    /// The storage engine that its tables must have; only MariaDB and MySQL have any.
    fn engine(&self) -> Option<Engine> {
        None
    }

    /// Parts that these parameters leave out, with the reasons.
    fn skipped(&self) -> Vec<String> {
        Vec::new()
    }

    /// Puts the content of files that it names into itself; their paths are relative to the directory.
    ///
    /// # Errors
    /// A file cannot be read.
    fn read_files(&mut self, _directory: &Path) -> Result<(), Complaint> {
        Ok(())
    }

    /// The workload itself; its parameters are known to be right. A program that is its clients runs as
    /// `run_as`.
    ///
    /// # Errors
    /// What cannot be known of the parameters alone.
    fn workload(&self, run_as: RunAs) -> Result<Box<dyn Workload>>;
}

/// The freshly loaded database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Data {
    /// For a sentence: `10 warehouses`.
    pub words: String,
    /// About; without what a server needs anyway.
    pub bytes: u64,
}

/// What is behind an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// MariaDB, MySQL, Percona Server.
    Mysql,
    Postgres,
    Sqlite,
    /// A directory for files.
    Directory,
    /// Nothing: the clients answer themselves.
    Mock,
}

impl Target {
    /// What speaks SQL.
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

/// What holds of a workload with any parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    pub runs_on: &'static [Target],
    /// Work with a beginning and an end, whose clients can go through it once
    /// ([`super::Client::is_through`]).
    pub is_fixed_work: bool,
    /// `spindle load` makes its tables and goes through it once, unless it is told how long to go on.
    pub is_done_once: bool,
    /// Its clients are another project's program.
    pub has_tool: bool,
    /// A storage engine without transactions cannot run it.
    pub needs_transactions: bool,
}

impl Facts {
    /// Speaks SQL to any of our databases.
    pub const SQL: Facts = Facts {
        runs_on: Target::DATABASES,
        is_fixed_work: false,
        is_done_once: false,
        has_tool: false,
        needs_transactions: false,
    };

    /// Another project's program is the clients.
    pub const FOREIGN: Facts = Facts { has_tool: true, ..Facts::SQL };
}
