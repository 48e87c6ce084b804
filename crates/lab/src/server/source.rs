//! The source of a server's program, and the keys for it in a scenario.

use std::path::{Path, PathBuf};

use anyhow::{Result, ensure};
use serde::Serialize;

use super::foreign::commands::Commands;
use super::settings::Refusal;

/// The source of a server's program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// Any program installed on the machine.
    #[default]
    Installed,
    Program(PathBuf),
    /// A version from [`super::package::PACKAGES`].
    Version(String),
    /// The user's commands.
    Adapter(Box<Commands>),
    /// URL of a server that runs already.
    Url(String),
}

impl Source {
    pub fn is_installed(&self) -> bool {
        *self == Source::Installed
    }

    /// Whether it is a program that a scenario names which is only read.
    pub(super) fn may_not_run(&self, trust: Trust) -> bool {
        trust == Trust::ReadOnly && matches!(self, Source::Program(_))
    }
}

/// The program of [`Source::Program`], without links.
///
/// # Errors
/// It is not there, or no file.
pub(super) fn program_at(path: &Path) -> Result<PathBuf> {
    let path = path.canonicalize().map_err(|error| Refusal(format!("{}: {error}", path.display())))?;
    ensure!(path.is_file(), Refusal(format!("{} is not a program", path.display())));
    Ok(path)
}

/// The key besides the kind that names a server's source in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceForm {
    /// None: there is one program, or none at all.
    Installed,
    /// A program or a version, both optional.
    Program,
    /// A file with commands.
    File,
    /// The server's URL.
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

/// Whether a program that a file names may be run for its version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Trust {
    /// As its own user.
    #[default]
    MayRun,
    /// Nothing is run: the scenario is only read to show its plan.
    ReadOnly,
}
