//! Any server, driven by the commands of one TOML file: see docs/adapters.md.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rustix::process::Signal;
use serde::{Deserialize, Serialize};
use spindle_load::sql::connect_and_create_database;
use spindle_load::{Endpoint, Target, WorkloadSpec};

use super::log::quote;
use super::monitor::Inquiry;
use super::own_user::OwnUser;
use super::process::{PREPARE_PATIENCE, Process, QUESTION_PATIENCE, output_within};
use super::{Instance, Refusal, Running, Server, endpoint};

const USER: OwnUser = OwnUser(61_419);
/// An argument of `start` in whose place the settings go.
const SETTINGS: &str = "{settings}";
/// Programs for administrators are often outside a user's PATH.
const MORE_PATH: &str = "/usr/sbin:/sbin";

/// The file. Commands are programs with their arguments, without a shell; `{data}` and `{runtime}` in them are directories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Commands {
    /// Prints the version, as one line.
    version: Vec<String>,
    /// Makes an empty database in `{data}`.
    prepare: Vec<String>,
    /// Stays in the foreground for as long as the server runs.
    start: Vec<String>,
    /// Succeeds when the server answers; without it, the URL is tried.
    #[serde(default)]
    ready: Vec<String>,
    /// Asks for a clean shutdown, upon which `start` ends; without it, `start` gets a SIGTERM.
    #[serde(default)]
    stop: Vec<String>,
    /// Where clients connect, as `spindle load --server` takes it.
    url: String,
    /// How `{settings}` of `start` is made of each setting's `{name}` and `{value}`; without it, there are no settings.
    #[serde(default)]
    setting: Option<String>,
    /// Settings that the database is loaded with besides those of the scenario.
    #[serde(default)]
    load_settings: BTreeMap<String, String>,
}

impl Commands {
    /// # Errors
    /// The file cannot be read, or is no adapter: a sentence that begins with its path.
    pub fn read(path: &Path) -> Result<Commands, String> {
        let at = |words: String| format!("{}: {words}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| at(error.to_string()))?;
        let commands: Commands =
            toml::from_str(&text).map_err(|error| at(error.message().replace('\n', " ")))?;
        commands.check().map_err(at)?;
        Ok(commands)
    }

    fn check(&self) -> Result<(), String> {
        let required = [("version", &self.version), ("prepare", &self.prepare), ("start", &self.start)];
        if let Some((key, _)) = required.iter().find(|(_, command)| command.is_empty()) {
            return Err(format!("{key}: is empty; name a program and its arguments"));
        }
        let has_place = self.start.iter().any(|argument| argument == SETTINGS);
        if has_place != self.setting.is_some() {
            let words = "belong together: the one says how a setting is written, the other where they go";
            return Err(format!("setting: `setting` and an argument `{SETTINGS}` of `start` {words}"));
        }
        endpoint::parse(&self.url.replace("{runtime}", "/run").replace("{data}", "/data"))
            .map(drop)
            .map_err(|words| format!("url: {words}"))
    }

    fn url(&self, instance: &Instance) -> Result<Endpoint> {
        endpoint::parse(&filled(&self.url, instance)).map_err(anyhow::Error::msg)
    }

    fn settings(&self, instance: &Instance) -> Vec<String> {
        let form = self.setting.as_deref().unwrap_or_default();
        let settings = instance.settings.iter();
        settings.map(|(name, value)| form.replace("{name}", name).replace("{value}", value)).collect()
    }

    /// The program, and its arguments with the settings in their place.
    fn arguments(&self, command: &[String], instance: &Instance) -> Vec<String> {
        let arguments = command.iter().flat_map(|argument| match argument.as_str() {
            SETTINGS => self.settings(instance),
            argument => vec![filled(argument, instance)],
        });
        arguments.collect()
    }

    /// As the server's own user, with all that it starts.
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

/// Runs a command to its end.
fn run(command: &mut Command, what: &str, instance: &Instance) -> Result<()> {
    command.current_dir(&instance.runtime_directory).stdin(Stdio::null());
    let output = output_within(command, PREPARE_PATIENCE)
        .with_context(|| format!("starting `{what}` of the adapter"))?;
    if !output.status.success() {
        let text = [output.stdout, output.stderr].concat();
        bail!(
            "`{what}` of the adapter failed ({}): {}",
            output.status,
            quote(&String::from_utf8_lossy(&text))
        );
    }
    Ok(())
}

#[derive(Debug)]
pub struct Adapter(pub Commands);

impl Server for Adapter {
    fn kind(&self) -> &'static str {
        "adapter"
    }

    fn accepted_workloads(&self) -> Vec<&'static str> {
        WorkloadSpec::kinds_on(Target::DATABASES)
    }

    fn version(&self) -> Result<String> {
        let [program, arguments @ ..] = self.0.version.as_slice() else { bail!("`version` is empty") };
        let mut command = Command::new(program);
        command.args(arguments).env("PATH", path()).current_dir("/").stdin(Stdio::null());
        let output = output_within(USER.run(&mut command), QUESTION_PATIENCE)
            .with_context(|| format!("starting {program}, which `version` of the adapter names"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let line = text.lines().map(str::trim).find(|line| !line.is_empty());
        line.filter(|_| output.status.success())
            .map(str::to_owned)
            .with_context(|| format!("`version` of the adapter told none ({})", output.status))
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        match instance.settings.keys().next() {
            Some(name) if self.0.setting.is_none() => Err(Refusal(format!(
                "setting `{name}`: the adapter does not say how settings are given (`setting`)"
            ))),
            _ => Ok(()),
        }
    }

    /// What shapes the files is not known, so all settings do.
    fn load_settings(&self, settings: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut chosen = settings.clone();
        chosen.extend(self.0.load_settings.clone());
        chosen
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        self.check(instance)?;
        own_directories(instance)?;
        run(&mut self.0.command(&self.0.prepare, instance), "prepare", instance)
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        self.check(instance)?;
        own_directories(instance)?;
        let mut command = self.0.command(&self.0.start, instance);
        let name = Path::new(&self.0.start[0]).file_name().unwrap_or_default().to_string_lossy();
        let mut process = Process::spawn(&mut command, &name, &instance.runtime_directory, quote)?;
        process.find_first()?;
        Ok(Box::new(RunningAdapter {
            endpoint: self.0.url(instance)?,
            commands: self.0.clone(),
            instance: instance.clone(),
            process,
            inquiry: Inquiry::new(&name, self.0.url(instance)?),
        }))
    }
}

/// On the storage under test.
fn temporary_directory(instance: &Instance) -> PathBuf {
    instance.data_directory.with_file_name("temp")
}

fn own_directories(instance: &Instance) -> Result<()> {
    let temporary = temporary_directory(instance);
    [&instance.data_directory, &temporary].into_iter().try_for_each(|path| USER.own(path))?;
    USER.own_runtime(&instance.runtime_directory)
}

#[derive(Debug)]
struct RunningAdapter {
    endpoint: Endpoint,
    commands: Commands,
    instance: Instance,
    process: Process,
    inquiry: Inquiry,
}

impl Running for RunningAdapter {
    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let (commands, instance, endpoint) = (&self.commands, &self.instance, &self.endpoint);
        let attempt = || {
            let is_ready = commands.ready.is_empty()
                || run(&mut commands.command(&commands.ready, instance), "ready", instance).is_ok();
            match is_ready {
                // Its database is the load's, which makes it in the same way.
                true => connect_and_create_database(endpoint)
                    .map(drop)
                    .map_err(|error| Some(format!("{error:#}"))),
                false => Err(None),
            }
        };
        self.process.wait_ready(timeout, attempt)
    }

    fn check_alive(&mut self, dying_time: Duration) -> Result<()> {
        self.process.check_alive(dying_time)
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn process_id(&self) -> u32 {
        self.process.id()
    }

    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        self.inquiry.settings(names).map_err(|error| self.process.explain(error))
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.inquiry.counters().map_err(|error| self.process.explain(error))
    }

    fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.inquiry.disconnect();
        if self.commands.stop.is_empty() {
            return self.process.stop(Signal::TERM, timeout);
        }
        self.process.fail_if_dead()?;
        run(&mut self.commands.command(&self.commands.stop, &self.instance), "stop", &self.instance)?;
        self.process.wait_stopped(timeout)
    }

    fn crash(&mut self) -> Result<()> {
        self.inquiry.disconnect();
        self.process.crash()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "version = [\"a\"]\nprepare = [\"b\", \"{data}\"]\nstart = [\"c\", \"{settings}\"]\n\
                        url = \"socket:{runtime}/s\"\nsetting = \"--{name}={value}\"\n";

    #[track_caller]
    fn check(from: &str, to: &str, expect: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.toml");
        std::fs::write(&file, GOOD.replacen(from, to, 1)).unwrap();
        let words = Commands::read(&file).unwrap_err();
        assert!(words.contains(expect), "{words}");
    }

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
        };
        assert_eq!(commands.arguments(&commands.start, &instance), ["c", "--x=1", "--y=2"]);
        assert_eq!(commands.arguments(&commands.prepare, &instance), ["b", "/d"]);
    }

    #[test]
    fn what_is_no_adapter_is_refused_with_its_key() {
        check("url = \"socket:{runtime}/s\"", "url = \"here\"", "url: write `socket:/path`");
        check("start = [\"c\", \"{settings}\"]", "start = [\"c\"]", "setting: `setting` and an argument");
        check("version = [\"a\"]", "version = []", "version: is empty");
        check("setting =", "settings =", "unknown field `settings`");
        check("prepare = [\"b\", \"{data}\"]\n", "", "missing field `prepare`");
    }
}
