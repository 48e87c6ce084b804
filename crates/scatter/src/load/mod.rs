//! Files into the tables of several servers: each row to the shard by which queries look for it.
//!
//! A file is described by the options of LOAD DATA (`format.rs`) and divided into records as LOAD DATA divides it
//! (`input/`). A record goes unchanged to the server that its key names (`route.rs`), in batches that
//! are one LOAD DATA LOCAL and one transaction each (`sink.rs`). What is done is noted (`ledger.rs`), and a row that is
//! not loaded is told (`rejects.rs`).
//!
//! It knows no progress bar and no options of a command line.

mod batch;
mod files;
pub mod format;
pub mod input;
mod ledger;
mod pump;
mod reader;
mod rejects;
pub mod route;
mod sink;
mod target;

use std::path::PathBuf;

pub use format::{Format, FormatTexts};
pub use input::Input;
pub use ledger::Counts;
pub use pump::run;

use crate::facts::TableName;
use crate::shards::Cluster;

/// What to load, and how.
#[derive(Debug, Clone)]
pub struct Request {
    pub cluster: Cluster,
    pub table: TableName,
    /// Those of the fields, `@name` for a field that is passed over; `None` for those of the table.
    pub columns: Option<Vec<String>>,
    pub format: Format,
    /// Lines that end as on Windows are then what the user means.
    pub is_line_end_given: bool,
    pub on_duplicate: OnDuplicate,
    /// In their order.
    pub inputs: Vec<Input>,
    pub rejects: PathBuf,
    pub rejects_most: u64,
    /// Rows of a shard in one transaction.
    pub batch_rows: usize,
    pub destination: Destination,
}

/// A row whose key is in the table already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnDuplicate {
    /// Is rejected.
    Error,
    /// Replaces the other.
    Replace,
    /// Is left out and counted.
    Ignore,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Destination {
    /// `state`: where what is done is noted.
    Servers { state: Option<PathBuf>, start: Start },
    /// A file for each shard in this directory; the servers are only asked for the table.
    Directory(PathBuf),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    New,
    /// Where the load has ended whose state is there.
    Resume(Option<InDoubt>),
}

/// What the user found out about a batch of which it is not noted whether it was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InDoubt {
    Loaded,
    Missing,
}

/// What was done. All rows are accounted for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Of the files, those of earlier starts included.
    pub rows: u64,
    /// Rows that went to no server.
    pub rejected_on_reading: u64,
    /// Each server with its rows, or each file.
    pub shards: Vec<(String, Counts)>,
    /// Whether each server has all rows.
    pub is_reference: bool,
    /// The statement that loads the files of a directory.
    pub statement: String,
}

impl Summary {
    pub fn rejected(&self) -> u64 {
        self.rejected_on_reading + self.shards.iter().map(|(_, counts)| counts.rejected).sum::<u64>()
    }
}
