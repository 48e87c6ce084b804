//! Any server, run by the commands of a TOML file: see docs/adapters.md.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use spindle_load::sql::connect_and_create_database;
use spindle_load::{Endpoint, Target};

use super::commands::{Commands, SETTINGS};
use super::inquiry;
use crate::server::connection::{Inquiry, endpoint};
use crate::server::instance::{Instance, Running};
use crate::server::process::log::quote;
use crate::server::process::own_user::OwnUser;
use crate::server::process::started::{Started, Ways};
use crate::server::process::{Process, run};
use crate::server::settings::{MemorySetting, Refusal, Settings};
use crate::server::source::{Source, SourceForm};
use crate::server::verbs::{Kind, Server};
use crate::server::{mysql, postgres};
use spindle_base::text::causes;

const USER: OwnUser = OwnUser(61_419);
/// Directories of administrators' programs, which a user's PATH often lacks.
const MORE_PATH: &str = "/usr/sbin:/sbin";

impl Commands {
    fn url(&self, instance: &Instance) -> Result<Endpoint> {
        endpoint::parse(&filled(&self.url, instance)).map_err(anyhow::Error::msg)
    }

    fn settings(&self, instance: &Instance) -> Vec<String> {
        let form = self.setting.as_deref().unwrap_or_default();
        let settings = instance.settings.iter();
        settings.map(|(name, value)| form.replace("{name}", name).replace("{value}", value)).collect()
    }

    /// The program and its arguments, with the settings substituted.
    fn arguments(&self, command: &[String], instance: &Instance) -> Vec<String> {
        let arguments = command.iter().flat_map(|argument| match argument.as_str() {
            SETTINGS => self.settings(instance),
            argument => vec![filled(argument, instance)],
        });
        arguments.collect()
    }

    /// Runs it and all its children as the server's own user.
    fn command(&self, command: &[String], instance: &Instance) -> Command {
        let arguments = self.arguments(command, instance);
        let mut made = USER.command_with_all_children(Path::new(&arguments[0]));
        made.args(&arguments[1..]).env("PATH", path()).env("TMPDIR", temporary_directory(instance));
        made
    }
}

fn path() -> String {
    format!("{}:{MORE_PATH}", std::env::var("PATH").unwrap_or_default())
}

fn filled(text: &str, instance: &Instance) -> String {
    text.replace("{data}", &instance.data_directory.to_string_lossy())
        .replace("{runtime}", &instance.runtime_directory.to_string_lossy())
}

fn run_command(command: &mut Command, what: &str, instance: &Instance) -> Result<()> {
    command.current_dir(&instance.runtime_directory).stdin(Stdio::null());
    let who = format!("`{what}` of the adapter");
    run(command, &who, &who, quote)
}

pub(in crate::server) static ADAPTER: Kind = Kind {
    source: SourceForm::File,
    has_storage_engines: true,
    starts_processes: true,
    ..Kind::new("adapter", Target::DATABASES, |source, _| match source {
        Source::Adapter(commands) => Some(Box::new(Adapter((**commands).clone()))),
        _ => None,
    })
};

#[derive(Debug)]
struct Adapter(Commands);

impl Server for Adapter {
    /// The settings of all known families, because the adapter's server is unknown.
    fn memory_settings(&self) -> Vec<MemorySetting> {
        [&mysql::MEMORY_SETTINGS[..], &postgres::MEMORY_SETTINGS].concat()
    }

    fn redo_bytes(&self, settings: &Settings) -> Option<u64> {
        mysql::redo_bytes(settings, 2)
    }

    fn version(&self) -> Result<String> {
        let [program, arguments @ ..] = self.0.version.as_slice() else { bail!("`version` is empty") };
        let mut command = Command::new(program);
        let output = USER.ask(command.args(arguments).env("PATH", path()));
        let output = output.context("`version` of the adapter")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.filter(|_| output.status.success())
            .map(str::to_owned)
            .with_context(|| format!("`version` of the adapter printed none ({})", output.status))
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        match instance.settings.keys().next() {
            Some(name) if self.0.setting.is_none() => {
                Err(Refusal(format!("setting `{name}`: the adapter has no form for settings (`setting`)")))
            }
            _ => Ok(()),
        }
    }

    /// All settings, because any of them may shape the files.
    fn load_settings(&self, settings: &Settings) -> Settings {
        let mut chosen = settings.clone();
        chosen.extend(self.0.load_settings.clone());
        chosen
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        self.check(instance)?;
        USER.own_instance(instance, Some(temporary_directory(instance)))?;
        run_command(&mut self.0.command(&self.0.prepare, instance), "prepare", instance)
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        self.check(instance)?;
        USER.own_instance(instance, Some(temporary_directory(instance)))?;
        let mut command = self.0.command(&self.0.start, instance);
        let name = Path::new(&self.0.start[0]).file_name().unwrap_or_default().to_string_lossy();
        let mut process = Process::spawn(&mut command, &name, instance, quote)?;
        process.find_first()?;
        Ok(Box::new(Started {
            endpoint: self.0.url(instance)?,
            process,
            inquiry: inquiry(&name, self.0.url(instance)?)?,
            ways: ByCommands { commands: self.0.clone(), instance: instance.clone() },
        }))
    }
}

/// A directory on the storage under test.
fn temporary_directory(instance: &Instance) -> PathBuf {
    instance.data_directory.with_file_name("temp")
}

#[derive(Debug)]
struct ByCommands {
    commands: Commands,
    instance: Instance,
}

impl Ways for ByCommands {
    fn is_ready(&self, endpoint: &Endpoint, _: &mut Inquiry) -> Result<(), Option<String>> {
        let ByCommands { commands, instance } = self;
        let is_ready = commands.ready.is_empty()
            || run_command(&mut commands.command(&commands.ready, instance), "ready", instance).is_ok();
        match is_ready {
            // The database belongs to the load, which creates it in the same way.
            true => connect_and_create_database(endpoint).map(drop).map_err(|error| Some(causes(&error))),
            false => Err(None),
        }
    }

    fn stop(&self, process: &mut Process, timeout: Duration) -> Result<()> {
        let ByCommands { commands, instance } = self;
        if commands.stop.is_empty() {
            return process.stop(Signal::TERM, timeout);
        }
        process.fail_if_dead()?;
        run_command(&mut commands.command(&commands.stop, instance), "stop", instance)?;
        process.wait_stopped(timeout)
    }

    /// What its process started is known to its commands alone.
    fn discard(&self, process: &mut Process, timeout: Duration) -> Result<()> {
        self.stop(process, timeout)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::commands::tests::GOOD;
    use super::*;

    #[test]
    fn arguments_have_the_directories_and_the_settings_in_their_places() {
        let commands: Commands = toml::from_str(GOOD).unwrap();
        commands.check().unwrap();
        let instance = Instance {
            data_directory: "/d".into(),
            class_directories: BTreeMap::new(),
            runtime_directory: "/r".into(),
            settings: [("x", "1"), ("y", "2")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            environment: Vec::new(),
            control_group: None,
            changing: Vec::new(),
        };
        assert_eq!(commands.arguments(&commands.start, &instance), ["c", "--x=1", "--y=2"]);
        assert_eq!(commands.arguments(&commands.prepare, &instance), ["b", "/d"]);
    }
}
