//! PostgreSQL's programs: location, version, and the server's own check of settings.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use super::USER;
use super::log::quote;
use crate::server::package;
use crate::server::settings::{Refusal, Settings, unknown_setting};
use crate::server::source::{Source, program_at};

/// Directories of programs outside the PATH; of several versions the newest is used.
const INSTALLED: [&str; 2] = ["/usr/lib/postgresql", "/usr/local/pgsql"];
const INSTALL_HINT: &str = "install it with `tools/install postgresql`, which starts no server";

/// The server's program; all other programs of its version are in the same directory.
///
/// # Errors
/// It is not there.
pub(super) fn find(source: &Source) -> Result<PathBuf> {
    match source {
        Source::Installed => installed(),
        Source::Program(path) => program_at(path),
        Source::Version(version) => {
            let package = package::find(package::POSTGRESQL, version)
                .with_context(|| format!("no package has PostgreSQL {version}"))?;
            package.program()
        }
        Source::Adapter(_) | Source::Url(_) => bail!("this is a kind of its own"),
    }
}

/// From the PATH, or the newest of those that packages install outside of it.
fn installed() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut candidates: Vec<PathBuf> = std::env::split_paths(&path).collect();
    for directory in INSTALLED {
        let versions = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut versions: Vec<(u32, PathBuf)> = versions
            .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
            .collect();
        versions.sort_unstable();
        candidates.extend(versions.into_iter().rev().map(|(_, bin)| bin));
        candidates.push(Path::new(directory).join("bin"));
    }
    let server = candidates.into_iter().map(|bin| bin.join("postgres")).find(|server| server.is_file());
    server
        // The PATH may have a lone link to it.
        .and_then(|server| server.canonicalize().ok())
        .with_context(|| format!("there is no PostgreSQL on this machine; {INSTALL_HINT}"))
}

/// Another program of the server's version.
pub(super) fn companion(server: &Path, name: &str) -> Result<PathBuf> {
    let program = server.with_file_name(name);
    ensure!(program.is_file(), "there is no {name} beside {}", server.display());
    Ok(program)
}

/// The form in records.
pub(super) fn version(program: &Path) -> Result<String> {
    let output = USER.ask(Command::new(program).arg("--version"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)"
    let version = text.split_once("(PostgreSQL) ").map(|(_, version)| version.trim());
    let version = version.with_context(|| format!("{} printed no version: {text}", program.display()))?;
    Ok(format!("PostgreSQL {version}"))
}

/// Lets the server itself read the settings, without starting. It is the authority on its names and values,
/// and on conflicts among them. It gets as far as the control file of an empty directory.
pub(super) fn check_settings(program: &Path, settings: &Settings) -> Result<(), Refusal> {
    const CAME_TO_THE_CONTROL_FILE: &str = "database files are incompatible with server";
    const CONTROL_FILE_BYTES: usize = 8192;
    let ask = || -> Result<Option<String>> {
        let only_ours = fs::Permissions::from_mode(0o700);
        let directory = tempfile::Builder::new().permissions(only_ours).tempdir()?;
        USER.check_way(directory.path())?;
        fs::create_dir(directory.path().join("global"))?;
        let version = format!("{}\n", major_version(&version(program)?));
        let control_file = vec![0; CONTROL_FILE_BYTES];
        let files = [
            ("postgresql.conf", Vec::new()),
            ("PG_VERSION", version.into_bytes()),
            ("global/pg_control", control_file),
        ];
        for (name, content) in files {
            fs::write(directory.path().join(name), content)?;
        }
        USER.give_all(directory.path())?;
        let mut command = Command::new(program);
        command
            .arg("-D")
            .arg(directory.path())
            .args(settings.iter().flat_map(|(name, value)| ["-c".to_owned(), option(name, value)]))
            .env("LC_ALL", "C");
        let output = USER.ask(&mut command)?;
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        Ok((!words.contains(CAME_TO_THE_CONTROL_FILE)).then(|| quote(&words)))
    };
    // If the server cannot be asked, its start reports the fault.
    match ask() {
        Ok(Some(words)) if unknown_name(&words).is_some() => {
            let name = unknown_name(&words).unwrap_or_default();
            Err(unknown_setting(name, "PostgreSQL", &names(program)))
        }
        Ok(Some(words)) => Err(Refusal(format!("the server refuses them: {words}"))),
        Ok(None) | Err(_) => Ok(()),
    }
}

/// The setting that the words refuse: `unrecognized configuration parameter "NAME"`.
fn unknown_name(words: &str) -> Option<&str> {
    words.split_once("unrecognized configuration parameter \"")?.1.split('"').next()
}

/// The server's own list of its settings; empty if it gives none.
fn names(program: &Path) -> Vec<String> {
    let output = USER.ask(Command::new(program).arg("--describe-config"));
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| Some(line.split('\t').next()?.to_owned())).collect()
}

/// Major version, as the server writes it into its directory: 15 of
/// "PostgreSQL 15.18 (Debian 15.18-0+deb12u1)".
fn major_version(version: &str) -> &str {
    let number = version.trim_start_matches("PostgreSQL ");
    number.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default()
}

pub(super) fn option(name: &str, value: &str) -> String {
    format!("{name}={value}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_what_the_directory_has() {
        assert_eq!(major_version("PostgreSQL 15.18 (Debian 15.18-0+deb12u1)"), "15");
        assert_eq!(major_version("PostgreSQL 18beta1"), "18");
    }
}
