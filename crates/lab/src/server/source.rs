//! Where the program of a server comes from, and what a scenario may say of it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::foreign::commands::Commands;

/// Where the program of a server comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Whatever the machine has.
    #[default]
    Installed,
    Program(PathBuf),
    /// One of [`super::package::PACKAGES`].
    Version(String),
    /// Commands of the user's.
    Adapter(Box<Commands>),
    /// Of a server that runs already.
    Url(String),
}

impl Source {
    pub fn is_installed(&self) -> bool {
        *self == Source::Installed
    }
}

/// What a scenario says of a server's program besides the kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    /// Nothing: there is one, or none at all.
    Installed,
    /// A program or a version, if it likes.
    Program,
    /// A file with commands.
    File,
    /// Where the server answers.
    Url,
}

/// The keys of a scenario that name a source.
#[derive(Debug, Clone, Copy, Default)]
pub struct SourceKeys<'a> {
    pub program: Option<&'a Path>,
    pub version: Option<&'a str>,
    pub file: Option<&'a Path>,
    pub url: Option<&'a str>,
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
