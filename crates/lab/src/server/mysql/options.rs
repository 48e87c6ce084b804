//! The command line of the server: settings in the form of this version, and Spindle's own options. The
//! server itself checks whether it takes them.

use std::process::Command;

use super::USER;
use super::files::is_plain;
use super::program::Program;
use super::release::{self, Flavour, Release};
use crate::server::process::log::quote;
use crate::server::settings::{Refusal, Settings, plain_name, unknown_setting};

/// Options against MySQL's defaults: a listener for a second protocol, a directory that only packages make,
/// and the refusal of the loader's rows.
pub(super) fn own_options(release: &Release) -> &'static [&'static str] {
    // Settings that a workload made persistent (SET PERSIST) would override ours.
    const ALL: [&str; 4] = [
        "--local-infile=1",
        "--loose-mysqlx=0",
        "--secure-file-priv=NULL",
        "--loose-persisted-globals-load=0",
    ];
    match release.flavour {
        Flavour::MariaDb => &[],
        _ if release.can(release::NO_FILES) => &ALL,
        _ => &ALL[..1],
    }
}

pub(super) fn option(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

/// Settings that are passed to the server unchanged.
pub(super) fn plain_options(release: &Release, settings: &Settings) -> impl Iterator<Item = String> {
    let plain = settings.iter().filter(|(name, _)| is_plain(name));
    plain.map(|(name, value)| option(name, value_for(release, value)))
}

/// The value of a switch in the form of this version.
pub(super) fn value_for<'a>(release: &Release, value: &'a str) -> &'a str {
    match value.to_ascii_uppercase().as_str() {
        "ON" | "TRUE" if !release.can(release::WORDS_FOR_SWITCHES) => "1",
        "OFF" | "FALSE" if !release.can(release::WORDS_FOR_SWITCHES) => "0",
        _ => value,
    }
}

/// The setting that a line refuses: `unknown variable 'NAME=VALUE'`, or `unknown option '--NAME'`.
fn unknown_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once("unknown variable '").or_else(|| line.split_once("unknown option '"))?;
    let name = rest.split(['=', '\'']).next()?.trim_start_matches('-');
    Some(name).filter(|name| !name.is_empty())
}

/// The server's own list of its settings; empty if it gives none.
fn names(program: &Program) -> Vec<String> {
    let mut command = Command::new(&program.path);
    command.arg("--no-defaults").args(program.options()).args(["--help", "--verbose"]);
    let Ok(output) = USER.ask(&mut command) else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout);
    // A table of names and values follows the descriptions, under a line of dashes.
    let table = text.lines().skip_while(|line| !line.starts_with("-----")).skip(1);
    let names = table.map_while(|line| line.split_whitespace().next());
    names.map(plain_name).collect()
}

/// Lets the server itself read the settings, without starting; it is the authority on its names and values.
pub(super) fn check_names(program: &Program, release: &Release, settings: &Settings) -> Result<(), Refusal> {
    /// Expected complaint: the server looks for plugins in tables that do not exist.
    const NO_TABLES: &str = "mysql.plugin";
    /// Complaint about the wrong value of a switch, which the server ignores.
    const PASSED_OVER: &str = "due to invalid value";
    let mut command = Command::new(&program.path);
    command.arg("--no-defaults").args(plain_options(release, settings));
    command.args(program.options()).args(own_options(release));
    if release.can(release::VALIDATE_CONFIG) {
        // Ignored values are warnings.
        command.args(["--validate-config", "--log-error-verbosity=2"]);
    } else {
        command.args(["--help", "--verbose"]);
    }
    let Ok(output) = USER.ask(&mut command) else { return Ok(()) };
    let errors = String::from_utf8_lossy(&output.stderr);
    let complains = |line: &str| line.contains("[ERROR]") || line.contains(PASSED_OVER);
    let lines = errors.lines().filter(|line| !line.contains(NO_TABLES));
    // A wrong value of an InnoDB setting disables InnoDB without failing.
    if output.status.success() && !lines.clone().any(complains) {
        return Ok(());
    }
    if let Some(name) = lines.clone().find_map(unknown_name) {
        let known = names(program);
        // A wrong value stops InnoDB, and then its names are unknown too: they are not the mistake.
        if !known.contains(&plain_name(name)) {
            let written = settings.keys().find(|written| plain_name(written) == plain_name(name));
            let written = written.map_or(name, String::as_str);
            return Err(unknown_setting(written, &program.name(), &known));
        }
    }
    let passed_over = lines.clone().find(|line| line.contains(PASSED_OVER));
    let words = match passed_over.and_then(|line| line.split_once(": ")) {
        Some((_, words)) => words.to_owned(),
        None => quote(&lines.collect::<Vec<_>>().join("\n")),
    };
    Err(Refusal(format!("the server refuses them: {words}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_found_in_the_servers_complaint() {
        let check = |line: &str, expect| assert_eq!(unknown_name(line), expect, "{line}");
        check(
            "0 [ERROR] mariadbd: unknown variable 'innodb_bufer_pool_size=96M'",
            Some("innodb_bufer_pool_size"),
        );
        check("[ERROR] mysqld: unknown option '--skip-inodb'", Some("skip-inodb"));
        check("[ERROR] mysqld: Error while setting value 'x' to 'y'", None);
    }
}
