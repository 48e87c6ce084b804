//! The smallest server: no process; goes with the mock workload and tests everything above it in
//! milliseconds.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use spindle_load::{Endpoint, Target};

use super::instance::{Instance, Running};
use super::settings::{Refusal, Settings};
use super::telemetry::{Chart, Line, Telemetry};
use super::verbs::{Kind, Server};
use crate::record::FileClass;

/// The setting `fail = "start"` makes a server that never starts: what a failed trial looks like is tested
/// with it.
const FAIL: &str = "fail";

/// With the setting `backlog = "grows"` it never gets to write what is waiting: a load that never settles is
/// tested with it.
const BACKLOG: &str = "backlog";

#[derive(Debug)]
struct MockTelemetry;

impl Telemetry for MockTelemetry {
    fn charts(&self) -> &'static [Chart] {
        const { &[Chart { title: "Backlog", lines: &[Line::backlog(BACKLOG, &[BACKLOG])] }] }
    }
}

pub(super) static KIND: Kind = Kind {
    is_default: true,
    is_for_tests: true,
    ..Kind::new("mock", &[Target::Mock], |_, _| Some(Box::new(Mock)))
};

#[derive(Debug)]
struct Mock;

impl Server for Mock {
    fn empty_bytes(&self) -> u64 {
        0
    }

    /// It has as many logs as are asked for, and no undo.
    fn files_of(&self, class: FileClass, _: &Settings) -> Result<String, Refusal> {
        match class {
            FileClass::Redo | FileClass::Binlog => Ok("mock".to_owned()),
            _ => Err(Refusal(format!("cannot keep {} apart from its data", class.words()))),
        }
    }

    fn version(&self) -> Result<String> {
        Ok("mock".to_owned())
    }

    fn load_settings(&self, _: &Settings) -> Settings {
        BTreeMap::new()
    }

    fn prepare(&self, instance: &Instance) -> Result<()> {
        for directory in directories(instance) {
            let file = directory.join("mock");
            fs::write(&file, "").with_context(|| format!("writing {}", file.display()))?;
        }
        Ok(())
    }

    fn start(&self, instance: &Instance) -> Result<Box<dyn Running>> {
        if let Some(empty) = directories(instance).find(|directory| !directory.join("mock").exists()) {
            bail!("{} holds no mock database", empty.display());
        }
        if instance.settings.get(FAIL).is_some_and(|fail| fail == "start") {
            bail!("the mock server was told to fail");
        }
        Ok(Box::new(RunningMock { settings: instance.settings.clone(), questions: 0.0 }))
    }
}

fn directories(instance: &Instance) -> impl Iterator<Item = &PathBuf> {
    std::iter::once(&instance.data_directory).chain(instance.class_directories.values())
}

#[derive(Debug)]
struct RunningMock {
    settings: Settings,
    questions: f64,
}

impl Running for RunningMock {
    fn endpoint(&self) -> Endpoint {
        Endpoint::Mock
    }

    fn settings(&mut self, names: &[String]) -> Result<Settings> {
        let known = names.iter().filter_map(|name| self.settings.get_key_value(name));
        Ok(known.map(|(name, value)| (name.clone(), value.clone())).collect())
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.questions += 1.0;
        let mut counters = BTreeMap::from([("Questions".to_owned(), self.questions)]);
        if self.settings.get(BACKLOG).is_some_and(|backlog| backlog == "grows") {
            counters.insert(BACKLOG.to_owned(), self.questions);
        }
        Ok(counters)
    }

    fn telemetry(&self) -> &'static dyn Telemetry {
        &MockTelemetry
    }
}
