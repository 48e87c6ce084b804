//! The facts and verbs of every kind of server: its handling of settings, its creation and its start.

use std::fmt::Debug;
use std::path::PathBuf;

use anyhow::Result;
use spindle_load::{Target, WorkloadSpec};

use super::instance::{Instance, Running};
use super::replication::Replication;
use super::settings::{Advice, MemorySetting, Refusal, Settings};
use super::source::{Source, SourceForm, Trust};
use crate::record::FileClass;

/// Makes a server; `None` for a source of another form.
type Make = fn(&Source, Trust) -> Option<Box<dyn Server>>;

/// Facts about a kind of server, known before there is a server. Its file declares it, [`super::catalog`]
/// lists it.
#[derive(Debug)]
pub struct Kind {
    /// Name in a scenario.
    pub name: &'static str,
    /// It accepts the workloads that run on all of these.
    pub targets: &'static [Target],
    /// The keys of a scenario for the program.
    pub source: SourceForm,
    pub make: Make,
    /// Available as the default of a scenario that names no server.
    pub is_default: bool,
    /// Only for tests of the code above it: directories replace emulated disks, and no list shows it.
    pub is_for_tests: bool,
    /// A workload may name the engine that keeps its tables.
    pub has_storage_engines: bool,
    /// The server's own program, for `spindle doctor`.
    pub program: Option<Program>,
    /// Other programs that it needs.
    pub tools: &'static [Program],
    /// Instructions for installing the server, if the error of [`Server::path`] is not enough.
    pub how_to_get: Option<&'static str>,
    /// Settings of a new scenario.
    pub advice: &'static [Advice],
    /// It implements [`Running::set`].
    pub sets_while_it_runs: bool,
    /// Its processes are started by us, so that a control group can limit their memory.
    pub starts_processes: bool,
}

impl Kind {
    /// A kind without programs, engines or a source.
    pub const fn new(name: &'static str, targets: &'static [Target], make: Make) -> Kind {
        Kind {
            name,
            targets,
            source: SourceForm::Installed,
            make,
            is_default: false,
            is_for_tests: false,
            has_storage_engines: false,
            program: None,
            tools: &[],
            how_to_get: None,
            advice: &[],
            sets_while_it_runs: false,
            starts_processes: false,
        }
    }

    /// Kinds of workload that it accepts, by their names in [`WorkloadSpec`].
    pub fn accepted_workloads(&self) -> Vec<&'static str> {
        WorkloadSpec::kinds_on(self.targets)
    }

    /// Whether it is neither started nor stopped: its storage, settings and process are not ours.
    pub fn runs_already(&self) -> bool {
        self.source == SourceForm::Url
    }
}

/// A program that a server needs on the machine.
#[derive(Debug, Clone, Copy)]
pub struct Program {
    pub name: &'static str,
    /// Debian's package of the program; `None` if installing one is not enough.
    pub package: Option<&'static str>,
    /// Whether a real scenario cannot run without it.
    pub is_required: bool,
    pub purpose: &'static str,
}

/// A server that can be prepared and started.
pub trait Server: Debug {
    /// Checks a workload of an accepted kind with these settings.
    ///
    /// # Errors
    /// The workload cannot run; continues a sentence that begins with the server's name.
    fn check_workload(&self, _kind: &str, _settings: &Settings) -> Result<(), Refusal> {
        Ok(())
    }

    /// Names the files of a class that can have a mount of its own, for example `ib_logfile0`.
    ///
    /// # Errors
    /// The server cannot separate them, or not with these settings; continues a sentence that begins with the
    /// server's name.
    fn files_of(&self, class: FileClass, _: &Settings) -> Result<String, Refusal> {
        Err(Refusal(format!("cannot keep {} apart from its data", class.words())))
    }

    /// Settings that reserve memory for as long as the server runs.
    fn memory_settings(&self) -> Vec<MemorySetting> {
        Vec::new()
    }

    /// Settings that Spindle treats in a way of its own: the treatment, and their names.
    fn special_settings(&self) -> Vec<(&'static str, Vec<String>)> {
        Vec::new()
    }

    /// Maximum size of the redo log under these settings; `None` for the server's default, which is included
    /// in every workload's figure.
    fn redo_bytes(&self, _settings: &Settings) -> Option<u64> {
        None
    }

    /// Files that it writes round and round through the page cache, which has them after hours of work. A block
    /// that is not there has to be read before a part of it is written.
    fn circular_files(&self, _instance: &Instance) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Size of a database without rows, with its default redo log. The default is an upper bound for a server
    /// of which nothing is known.
    fn empty_bytes(&self) -> u64 {
        512 << 20
    }

    /// Path of its program; `None` without one. Errors name the command that installs it.
    fn path(&self) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// The version string of the installed binary. Errors name the command that installs it.
    fn version(&self) -> Result<String>;

    /// Checks the settings without side effects, before any work.
    fn check(&self, _instance: &Instance) -> Result<(), Refusal> {
        Ok(())
    }

    /// Settings for loading a database that will be served with `settings`: those that shape the files, and
    /// those that make loading fast. Databases that are loaded with equal settings are interchangeable.
    fn load_settings(&self, settings: &Settings) -> Settings {
        settings.clone()
    }

    /// Makes an empty database in the data directory.
    fn prepare(&self, _instance: &Instance) -> Result<()> {
        Ok(())
    }

    /// Starts the process; it may not be ready yet.
    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>>;

    /// The setup of its replicas; `None` if Spindle has none.
    fn replication(&self) -> Option<&dyn Replication> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spindle_load::Endpoint;

    use super::super::telemetry::Durability;
    use super::*;

    /// The example of docs/extending.md.
    static KIND: Kind = Kind::new("toy", &[Target::Mock], |_, _| Some(Box::new(Toy)));

    #[derive(Debug)]
    struct Toy;

    impl Server for Toy {
        fn version(&self) -> Result<String> {
            Ok("toy 1".to_owned())
        }
        fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
            Ok(Box::new(RunningToy { settings: instance.settings.clone() }))
        }
    }

    #[derive(Debug)]
    struct RunningToy {
        settings: Settings,
    }

    impl Running for RunningToy {
        fn endpoint(&self) -> Endpoint {
            Endpoint::Mock
        }
        fn settings(&mut self, names: &[String]) -> Result<Settings> {
            let known = names.iter().filter_map(|name| self.settings.get_key_value(name));
            Ok(known.map(|(name, value)| (name.clone(), value.clone())).collect())
        }
        fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
            Ok(BTreeMap::from([("questions".to_owned(), 1.0)]))
        }
    }

    #[test]
    fn a_server_that_says_nothing_of_itself_is_run_and_nothing_is_made_up_for_it() {
        let server = (KIND.make)(&Source::Installed, Trust::MayRun).unwrap();
        let settings = BTreeMap::from([("size".to_owned(), "1".to_owned())]);
        assert_eq!((KIND.name, server.path().unwrap()), ("toy", None));
        assert_eq!((server.redo_bytes(&settings), server.memory_settings().len()), (None, 0));
        assert!(server.files_of(FileClass::Redo, &settings).is_err() && server.replication().is_none());
        let instance = Instance {
            data_directory: PathBuf::new(),
            class_directories: BTreeMap::new(),
            runtime_directory: PathBuf::new(),
            settings: server.load_settings(&settings),
            environment: Vec::new(),
            control_group: None,
            changing: Vec::new(),
        };
        let mut running = server.start(&instance).unwrap();
        assert_eq!(running.settings(&["size".to_owned(), "x".to_owned()]).unwrap(), settings);
        assert_eq!(running.durability().unwrap(), Durability::default());
        assert_eq!(running.telemetry().charts().len(), 0);
    }

    #[test]
    fn the_page_about_a_new_server_quotes_the_source() {
        let plain = |text: &str| text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n");
        let page = include_str!("../../../../docs/extending.md");
        let section = page.split("\n## ").find(|section| section.starts_with("A server\n")).unwrap();
        let quotes: Vec<&str> =
            section.split("```rust\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert_eq!(quotes.len(), 3);
        let sources = [include_str!("verbs.rs"), include_str!("catalog.rs")].map(plain);
        for quote in quotes {
            let is_there = sources.iter().any(|source| source.contains(&plain(quote)));
            assert!(is_there, "nowhere in the source: {quote}");
        }
    }
}
