//! `spindle server`: the database servers at hand, and how to get the others.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use clap::{Args, Subcommand};
use itertools::Itertools as _;
use serde::Serialize;

use crate::cmd::output::{columns, print, print_answer};
use crate::server::option_file;
use crate::server::package::{self, PACKAGES, Package};
use crate::server::{Source, SourceForm, catalog};
use spindle_base::Mistake;

use spindle_base::near;
use spindle_base::text::{self, causes};

#[derive(Debug, Args)]
pub struct ServerArguments {
    #[command(subcommand)]
    command: ServerCommand,
}

#[derive(Debug, Subcommand)]
enum ServerCommand {
    /// List every kind of server: version and path if it is installed, otherwise how to get it.
    List {
        /// Print a JSON array of objects instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Print the settings of a `my.cnf` or `cubrid.conf` as a table for a scenario, and list the omitted
    /// ones.
    Import {
        /// The `my.cnf` or `cubrid.conf`.
        file: PathBuf,
    },
    /// Fetch a server that the distribution does not have. A scenario selects it with `version = "..."`.
    Get {
        /// Name from `spindle server list`, for example `mysql-5.6`.
        name: String,
    },
}

/// A line of the list.
#[derive(Debug, Serialize)]
pub(super) struct Entry {
    /// The kind in scenarios.
    pub kind: &'static str,
    /// The version in scenarios, besides the kind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scenario_version: Option<&'static str>,
    here: bool,
    /// The version that the server reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Command or advice for a server that is not here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub get: Option<String>,
    /// Why a server that is here cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

pub fn run(arguments: &ServerArguments) -> Result<()> {
    match &arguments.command {
        ServerCommand::List { json } => {
            let entries = entries();
            print_answer(*json, &entries, || columns(entries.iter().map(row)))
        }
        ServerCommand::Import { file } => import(file),
        ServerCommand::Get { name } => get(name),
    }
}

fn import(file: &Path) -> Result<()> {
    let mistake = |words: String| Mistake::new(format!("{}: {words}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| mistake(error.to_string()))?;
    let settings = option_file::parse(&text).map_err(|misfit| mistake(misfit.to_string()))?;
    let kind = settings.family.kind_lines();
    print(&format!("[servers.NAME]\n{kind}\n[servers.NAME.settings]\n{settings}"))
}

fn get(name: &str) -> Result<()> {
    let package = package::by_name(name).ok_or_else(|| {
        let names: Vec<String> = PACKAGES.iter().map(Package::name).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Mistake::new(format!("`{name}` is no server that can be fetched{}", near::hint(name, &names)))
    })?;
    let program = package.get(&mut |words| eprintln!("{words}"))?;
    let server = catalog::by_source(&package.kind, &Source::Version(package.version.clone()));
    let server = server.context("a package is of a known kind")?;
    print(&(text::one_line(&format!("{} in {}", server.version()?, program.display())) + "\n"))
}

fn row(entry: &Entry) -> [String; 3] {
    let name = match entry.scenario_version {
        Some(version) => format!("{} version = \"{version}\"", entry.kind),
        None => entry.kind.to_owned(),
    };
    let no_version = if entry.here { "does not run" } else { "not here" };
    let found = entry.version.as_deref().unwrap_or(no_version).to_owned();
    [name, found, [&entry.path, &entry.problem, &entry.get].into_iter().flatten().join("; ")]
}

/// Every kind of server, and every version that can be fetched.
pub(super) fn entries() -> Vec<Entry> {
    let may_be_here = |form: SourceForm| matches!(form, SourceForm::Installed | SourceForm::Program);
    let names = catalog::names_where(|kind| may_be_here(kind.source) && !kind.is_for_tests);
    let installed = names.into_iter().map(|name| {
        let how_to_get = catalog::find(name).and_then(|kind| kind.how_to_get);
        entry(name, None, &Source::Installed, how_to_get.map(str::to_owned))
    });
    let fetched = PACKAGES.iter().map(|package| {
        let get = format!("spindle server get {}", package.name());
        entry(&package.kind, Some(&package.version), &Source::Version(package.version.clone()), Some(get))
    });
    installed.chain(fetched).collect()
}

fn entry(
    kind: &'static str,
    scenario_version: Option<&'static str>,
    source: &Source,
    get: Option<String>,
) -> Entry {
    let server = catalog::by_source(kind, source).expect("the list has known kinds only");
    let path = server.path();
    let here = path.is_ok();
    let (version, problem) = match server.version() {
        Ok(version) => (Some(version), None),
        Err(error) => (None, here.then(|| causes(&error))),
    };
    let how = path.as_ref().err().map(|error| get.unwrap_or_else(|| causes(error)));
    let path = path.ok().flatten().map(|path| path.display().to_string());
    Entry { kind, scenario_version, here, version, path, get: how, problem }
}
