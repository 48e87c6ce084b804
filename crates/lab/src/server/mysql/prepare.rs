//! Creation of an empty database, by the method of each version.
//!
//! * MySQL from 5.7: the server itself, `--initialize-insecure`.
//! * MySQL before 5.7: the server reads the SQL files of its share directory, `--bootstrap`, as
//!   mysql_install_db does.
//! * MariaDB: its own mariadb-install-db, formerly mysql_install_db.

use std::fs;
use std::io::{Seek as _, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result};

use super::options::{option, value_for};
use super::program::Program;
use super::release::{self, Flavour, Release};
use super::settings::KNOWN;
use super::{USER, files};
use crate::server::instance::Instance;
use crate::server::process::log::quote;
use crate::server::process::run;
use crate::server::settings::setting;

/// The first makes the tables, the second fills them.
const SQL_FILES: [&str; 2] = ["mysql_system_tables.sql", "mysql_system_tables_data.sql"];
/// Removes anonymous users, and databases that anybody may write to.
const CLEAN_UP: &str = "DELETE FROM user WHERE User = '';\nDELETE FROM db;\n";

pub(super) fn prepare(program: &Program, release: &Release, instance: &Instance) -> Result<()> {
    let mut command = match release.flavour {
        Flavour::MariaDb => by_script(program, release)?,
        _ if release.can(release::INITIALIZE) => by_the_server(program, "--initialize-insecure"),
        _ => by_bootstrap(program, instance)?,
    };
    command
        .arg(option("datadir", &instance.data_directory.to_string_lossy()))
        .args(files::options(release, instance).iter().map(|(name, value)| option(name, value)))
        .args(KNOWN.shaping.iter().filter(|name| files::is_plain(name)).filter_map(|name| {
            let value = setting(&instance.settings, name)?;
            Some(option(name, value_for(release, value)))
        }))
        .current_dir(&instance.runtime_directory)
        .env("TMPDIR", files::temporary_directory(instance));
    let work = format!("making a database in {}", instance.data_directory.display());
    run(&mut command, &program.name(), &work, quote)
}

fn by_script(program: &Program, release: &Release) -> Result<Command> {
    let script = program.companion(&["mariadb-install-db", "mysql_install_db"])?;
    let mut command = USER.command_with_all_children(&script);
    command.arg("--no-defaults").arg("--skip-name-resolve").stdin(Stdio::null());
    command.args(program.base.iter().map(|base| option("basedir", &base.to_string_lossy())));
    if release.can(release::INSTALL_OPTIONS) {
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db"]);
    }
    Ok(command)
}

fn by_the_server(program: &Program, how: &str) -> Command {
    let mut command = USER.command_with_all_children(&program.path);
    command.args(["--no-defaults", how]).args(program.options()).stdin(Stdio::null());
    command
}

fn by_bootstrap(program: &Program, instance: &Instance) -> Result<Command> {
    let share = program.share.as_deref().with_context(|| {
        format!(
            "there are no shared files beside {}, from which it makes its system tables",
            program.path.display()
        )
    })?;
    let mut sql = tempfile::tempfile().context("making a file for the SQL of the system tables")?;
    sql.write_all(system_tables(share)?.as_bytes())
        .and_then(|()| sql.rewind())
        .context("writing the SQL of the system tables")?;
    USER.own(&instance.data_directory.join("mysql"))?;
    let mut command = by_the_server(program, "--bootstrap");
    command.stdin(sql);
    Ok(command)
}

fn system_tables(share: &Path) -> Result<String> {
    let mut sql = "USE mysql;\n".to_owned();
    for name in SQL_FILES {
        let file = share.join(name);
        sql += &fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    }
    Ok(sql + CLEAN_UP)
}
