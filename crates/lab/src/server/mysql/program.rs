//! Locations of the programs and the shared files of MySQL or MariaDB.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::USER;
use super::release::{Flavour, Release};
use crate::server::package;
use crate::server::source::{Source, program_at};

/// Directories of packages' programs; sbin is often missing from the PATH.
const WELL_KNOWN: [&str; 4] = ["/usr/sbin", "/usr/bin", "/usr/local/bin", "/usr/local/mysql/bin"];
/// Shared files, relative to the directory above the program's.
const SHARES: [&str; 4] = ["share/mysql", "share/mariadb", "share", "share/percona-server"];
/// Part of every directory of shared files.
const MESSAGES: &str = "english/errmsg.sys";

/// The server's program, and its companions.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    /// The directory above `bin`, with the shared files; `None` for a program with built-in paths.
    pub(super) base: Option<PathBuf>,
    pub(super) share: Option<PathBuf>,
}

impl Program {
    pub(super) fn find(flavour: Flavour, source: &Source) -> Result<Program> {
        match source {
            Source::Installed => Program::installed(flavour),
            Source::Program(path) => Program::at(path),
            Source::Adapter(_) | Source::Url(_) => bail!("this is a kind of its own"),
            Source::Version(version) => {
                let package = package::find(package::MYSQL, version)
                    .with_context(|| format!("no package has MySQL {version}"))?;
                Program::at(&package.program()?)
            }
        }
    }

    fn installed(flavour: Flavour) -> Result<Program> {
        let (name, hint) = match flavour {
            Flavour::MariaDb => (
                "mariadbd",
                // The core packages only, because the machine needs no service.
                "install it with `apt-get install mariadb-server-core mariadb-client-core`",
            ),
            Flavour::MySql | Flavour::Percona => (
                "mysqld",
                "name one with `program = \"/path/to/mysqld\"`, unpack Debian's with `tools/install mysql`, or fetch an old one \
                 with `spindle server get mysql-5.6` and say `version = \"5.6\"`",
            ),
        };
        let unpacked = || package::unpacked_mysql().filter(|_| flavour == Flavour::MySql);
        let found = find(name)
            .or_else(unpacked)
            .with_context(|| format!("there is no {name} on this machine; {hint}"))?;
        match flavour {
            // A program from a package has built-in paths.
            Flavour::MariaDb => Ok(Program { path: found, base: None, share: None }),
            Flavour::MySql | Flavour::Percona => Program::at(&found),
        }
    }

    fn at(path: &Path) -> Result<Program> {
        let path = program_at(path)?;
        let base = path.parent().and_then(Path::parent).map(Path::to_owned);
        let share = base.as_deref().and_then(share);
        Ok(Program { base: base.filter(|_| share.is_some()), share, path })
    }

    /// Name in sentences.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// A program from the same directory, or from the PATH for an installed package.
    pub(super) fn companion(&self, names: &[&str]) -> Result<PathBuf> {
        let beside = self.base.iter().flat_map(|base| ["scripts", "bin", "sbin"].map(|part| base.join(part)));
        let beside = beside.flat_map(|directory| names.iter().map(move |name| directory.join(name)));
        beside
            .into_iter()
            .find(|candidate| candidate.is_file())
            .or_else(|| names.iter().filter(|_| self.base.is_none()).find_map(|name| find(name)))
            .with_context(|| format!("there is no {} beside {}", names[0], self.path.display()))
    }

    /// Options with the paths of its shared files, for a program at any location.
    pub(super) fn options(&self) -> Vec<String> {
        let option = |name: &str, path: &Path| format!("--{name}={}", path.display());
        let base = self.base.iter().map(|base| option("basedir", base));
        let share = self.share.iter().flat_map(|share| {
            [option("lc-messages-dir", share), option("character-sets-dir", &share.join("charsets"))]
        });
        base.chain(share).collect()
    }

    /// # Errors
    /// The program does not run here; the message names the package of a missing library.
    pub(super) fn release(&self) -> Result<Release> {
        let path = self.path.display();
        let output = USER.ask(Command::new(&self.path).args(["--no-defaults", "--version"]))?;
        let words = String::from_utf8_lossy(&output.stderr);
        if let Some(library) = missing_library(&words) {
            let hint = package_of(library).map_or_else(
                || "install the package that has it".to_owned(),
                |package| format!("install it with `apt-get install {package}`"),
            );
            bail!("{path} needs {library}, which this machine does not have; {hint}");
        }
        let text = String::from_utf8_lossy(&output.stdout);
        Release::parse(&text).with_context(|| format!("{path} printed no version: {text}{words}"))
    }
}

/// Whether the candidate is another server: MariaDB's packages have a link with MySQL's name to their own.
fn is_another(name: &str, candidate: &Path) -> bool {
    let meant = candidate.canonicalize().unwrap_or_default();
    name == "mysqld" && meant.file_name().is_some_and(|name| name == "mariadbd")
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(WELL_KNOWN.map(PathBuf::from));
    directories
        .map(|directory| directory.join(name))
        .find(|candidate| candidate.is_file() && !is_another(name, candidate))
}

/// The directory of the shared files, recognized by its messages.
fn share(base: &Path) -> Option<PathBuf> {
    let known = SHARES.iter().map(|share| base.join(share));
    // `share/mysql-8.0` and similar.
    let named = fs::read_dir(base.join("share")).into_iter().flatten().flatten().map(|entry| entry.path());
    known.chain(named).find(|share| share.join(MESSAGES).is_file())
}

/// `mysqld: error while loading shared libraries: libaio.so.1: cannot open shared object file: ...`
fn missing_library(words: &str) -> Option<&str> {
    words.split_once("error while loading shared libraries: ")?.1.split(':').next()
}

/// Debian's package of a library that old binaries need.
fn package_of(library: &str) -> Option<&'static str> {
    const PACKAGES: [(&str, &str); 7] = [
        ("libaio.so.1", "libaio1"),
        ("libnuma.so.1", "libnuma1"),
        ("libncurses.so.5", "libncurses5"),
        ("libtinfo.so.5", "libtinfo5"),
        ("libcrypt.so.1", "libcrypt1"),
        ("libz.so.1", "zlib1g"),
        ("libstdc++.so.6", "libstdc++6"),
    ];
    PACKAGES.iter().find(|(name, _)| *name == library).map(|(_, package)| *package)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_told_with_its_package() {
        let words = "mysqld: error while loading shared libraries: libaio.so.1: cannot open shared object file: \
                     No such file or directory\n";
        assert_eq!(missing_library(words).and_then(package_of), Some("libaio1"));
        assert_eq!(missing_library("Ver 5.5"), None);
    }
}
