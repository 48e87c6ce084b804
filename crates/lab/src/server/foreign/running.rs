//! A server that runs already, named by its URL. Its storage, settings and process are not ours: we connect,
//! load a database, measure, and leave the database there.
//!
//! It has no snapshot. The database is loaded once a run, and each trial continues with the state that the
//! previous trial left.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result};
use spindle_load::sql::connect_and_create_database;
use spindle_load::{Endpoint, Target};

use super::inquiry;
use crate::host::patience::Wait;
use crate::host::provenance;
use crate::server::connection::{Inquiry, endpoint};
use crate::server::instance::{Instance, Running};
use crate::server::settings::{Refusal, Settings};
use crate::server::source::{Source, SourceForm};
use crate::server::telemetry::Telemetry;
use crate::server::verbs::{Kind, Server};

/// Key in the recipe of a data set that names the run which loaded it.
const LOADED_BY: &str = "loaded by the run of";

/// The server's name in sentences.
const WHO: &str = "the server that runs already";
const CONNECT_PATIENCE: Duration = Duration::from_secs(60);

fn create_database(endpoint: &Endpoint) -> Result<()> {
    let endpoint = endpoint.clone();
    let wait = Wait { patience: CONNECT_PATIENCE, who: WHO, interrupt: None };
    wait.for_work(move || connect_and_create_database(&endpoint).map(drop))
}

pub(in crate::server) static RUNNING: Kind = Kind {
    source: SourceForm::Url,
    has_storage_engines: true,
    ..Kind::new("running", Target::DATABASES, |source, _| match source {
        Source::Url(url) => Some(Box::new(RunsAlready(url.clone()))),
        _ => None,
    })
};

#[derive(Debug)]
struct RunsAlready(String);

impl RunsAlready {
    fn endpoint(&self) -> Result<Endpoint> {
        endpoint::parse(&self.0).map_err(|words| Refusal(format!("url: {words}")).into())
    }
}

impl Server for RunsAlready {
    fn version(&self) -> Result<String> {
        let endpoint = self.endpoint()?;
        // A query for the version precedes a load, which needs the database.
        create_database(&endpoint)?;
        let names = ["version".to_owned(), "server_version".to_owned()];
        inquiry(WHO, endpoint)?
            .settings(&names)?
            .into_values()
            .next()
            .context("the server does not report its version")
    }

    fn check(&self, instance: &Instance) -> Result<(), Refusal> {
        match instance.settings.keys().next() {
            Some(name) => {
                Err(Refusal(format!("setting `{name}`: a server that runs already has its own settings")))
            }
            None => Ok(()),
        }
    }

    /// Names the run, because a database of an earlier run may have been changed or dropped since.
    fn load_settings(&self, settings: &Settings) -> Settings {
        static RUN: OnceLock<String> = OnceLock::new();
        let run = RUN.get_or_init(|| format!("{} by process {}", provenance::now(), std::process::id()));
        let mut chosen = settings.clone();
        chosen.insert(LOADED_BY.to_owned(), run.clone());
        chosen
    }

    fn start(&self, _: &Instance) -> Result<Box<dyn Running>> {
        let endpoint = self.endpoint()?;
        create_database(&endpoint)?;
        let mut inquiry = inquiry(WHO, endpoint.clone())?;
        inquiry.connect()?;
        Ok(Box::new(Connected { endpoint, inquiry }))
    }
}

/// Its process is not ours to signal or stop, and may be on another machine.
#[derive(Debug)]
struct Connected {
    endpoint: Endpoint,
    inquiry: Inquiry,
}

impl Running for Connected {
    fn check_alive(&mut self, _: Duration) -> Result<()> {
        self.counters().map(drop).context("the server does not answer any more")
    }

    fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
    }

    fn settings(&mut self, names: &[String]) -> Result<Settings> {
        self.inquiry.settings(names)
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.inquiry.counters()
    }

    fn telemetry(&self) -> &'static dyn Telemetry {
        self.inquiry.telemetry()
    }

    fn crash(&mut self) -> Result<()> {
        Err(Refusal("a server that runs already is not ours to kill".to_owned()).into())
    }
}
