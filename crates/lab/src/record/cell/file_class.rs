//! Classes of database files, which can lie on mounts of their own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A class of database file, in the order of the mounts: the data's first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FileClass {
    /// Tables and indexes, and every file of no other class.
    Data,
    Redo,
    Doublewrite,
    Undo,
    Binlog,
    Temp,
}

impl FileClass {
    pub const ALL: [FileClass; 6] = [
        FileClass::Data,
        FileClass::Redo,
        FileClass::Doublewrite,
        FileClass::Undo,
        FileClass::Binlog,
        FileClass::Temp,
    ];

    /// Key in a scenario; also the name of its directory.
    pub fn key(self) -> &'static str {
        match self {
            FileClass::Data => "data",
            FileClass::Redo => "redo",
            FileClass::Doublewrite => "doublewrite",
            FileClass::Undo => "undo",
            FileClass::Binlog => "binlog",
            FileClass::Temp => "temp",
        }
    }

    /// Name in a sentence.
    pub fn words(self) -> &'static str {
        match self {
            FileClass::Data => "its data",
            FileClass::Redo => "its redo log",
            FileClass::Doublewrite => "its doublewrite buffer",
            FileClass::Undo => "its undo logs",
            FileClass::Binlog => "its binary log",
            FileClass::Temp => "its temporary files",
        }
    }
}
