//! The command line of the server: settings as this version knows them, and what Spindle adds. The server
//! itself says whether it takes them.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use super::USER;
use super::files::is_plain;
use super::program::Program;
use super::release::{self, Flavour, Release};
use crate::server::process::log::quote;
use crate::server::process::{QUESTION_PATIENCE, output_within};
use crate::server::settings::Refusal;

/// What MySQL would do otherwise: listen in a second protocol, want a directory that only packages make, and
/// refuse the loader's rows.
pub(super) fn own_options(release: &Release) -> Vec<&'static str> {
    match release.flavour {
        Flavour::MariaDb => Vec::new(),
        // What a workload told the server to keep (SET PERSIST) would override what we say here.
        _ if release.can(release::NO_FILES) => {
            vec![
                "--local-infile=1",
                "--loose-mysqlx=0",
                "--secure-file-priv=NULL",
                "--loose-persisted-globals-load=0",
            ]
        }
        _ => vec!["--local-infile=1"],
    }
}

pub(super) fn option(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

/// Settings that the server gets as they were written.
pub(super) fn plain_options(
    release: &Release,
    settings: &BTreeMap<String, String>,
) -> impl Iterator<Item = String> {
    let plain = settings.iter().filter(|(name, _)| is_plain(name));
    plain.map(|(name, value)| option(name, value_for(release, value)))
}

/// A switch in the words that this version knows.
pub(super) fn value_for<'a>(release: &Release, value: &'a str) -> &'a str {
    match value.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" if !release.can(release::WORDS_FOR_SWITCHES) => "1",
        "OFF" | "FALSE" if !release.can(release::WORDS_FOR_SWITCHES) => "0",
        _ => value,
    }
}

/// Lets the server itself read the settings, without starting: it knows its own names and values best.
pub(super) fn check_names(
    program: &Program,
    release: &Release,
    settings: &BTreeMap<String, String>,
) -> Result<(), Refusal> {
    /// It looks for plugins in tables that are not there.
    const NO_TABLES: &str = "mysql.plugin";
    /// A wrong value of a switch is passed over.
    const PASSED_OVER: &str = "due to invalid value";
    let mut command = Command::new(&program.path);
    command.arg("--no-defaults").args(plain_options(release, settings));
    command.args(program.options()).args(own_options(release)).stdin(Stdio::null());
    if release.can(release::VALIDATE_CONFIG) {
        // Values that are passed over are warnings.
        command.args(["--validate-config", "--log-error-verbosity=2"]);
    } else {
        command.args(["--help", "--verbose"]);
    }
    let Ok(output) = output_within(USER.run(&mut command), QUESTION_PATIENCE) else { return Ok(()) };
    let errors = String::from_utf8_lossy(&output.stderr);
    let complains = |line: &str| line.contains("[ERROR]") || line.contains(PASSED_OVER);
    let lines = errors.lines().filter(|line| !line.contains(NO_TABLES));
    // A wrong value of an InnoDB setting disables InnoDB, and is no failure.
    if output.status.success() && !lines.clone().any(complains) {
        return Ok(());
    }
    let passed_over = lines.clone().find(|line| line.contains(PASSED_OVER));
    let words = match passed_over.and_then(|line| line.split_once(": ")) {
        Some((_, words)) => words.to_owned(),
        None => quote(&lines.collect::<Vec<_>>().join("\n")),
    };
    Err(Refusal(format!("the server refuses them: {words}")))
}
