//! A connection that asks a server about itself.

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Context, Result, bail};
use spindle_load::Endpoint;
use spindle_load::sql::describe;

use super::process::Process;
use super::{mysql, postgres};

pub(super) trait Monitor: Debug {
    /// See [`super::Running::settings`].
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>>;

    /// See [`super::Running::counters`].
    fn counters(&mut self) -> Result<BTreeMap<String, f64>>;
}

/// By whichever protocol the endpoint is of.
pub(super) fn connect(endpoint: &Endpoint) -> Result<Box<dyn Monitor>> {
    Ok(match endpoint {
        Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => {
            Box::new(mysql::Monitor::connect(endpoint)?)
        }
        Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. } => {
            Box::new(postgres::Monitor::connect(endpoint)?)
        }
        Endpoint::Sqlite { .. } | Endpoint::Directory { .. } | Endpoint::Mock => {
            bail!("{} is no server", describe(endpoint))
        }
    })
}

/// Asks a private server about itself, over a connection that is made when it is needed.
#[derive(Debug)]
pub(super) struct Inquiry {
    endpoint: Endpoint,
    monitor: Option<Box<dyn Monitor>>,
}

impl Inquiry {
    pub(super) fn new(endpoint: Endpoint) -> Inquiry {
        Inquiry { endpoint, monitor: None }
    }

    pub(super) fn connect(&mut self) -> Result<()> {
        self.monitor = Some(connect(&self.endpoint)?);
        Ok(())
    }

    pub(super) fn disconnect(&mut self) {
        self.monitor = None;
    }

    pub(super) fn settings(
        &mut self,
        process: &mut Process,
        names: &[String],
    ) -> Result<BTreeMap<String, String>> {
        self.ask(process, |monitor| monitor.settings(names)).context("asking the server for its settings")
    }

    pub(super) fn counters(&mut self, process: &mut Process) -> Result<BTreeMap<String, f64>> {
        self.ask(process, |monitor| monitor.counters()).context("asking the server for its counters")
    }

    /// When it fails, a process that died is the reason.
    fn ask<T>(
        &mut self,
        process: &mut Process,
        question: impl FnOnce(&mut dyn Monitor) -> Result<T>,
    ) -> Result<T> {
        if self.monitor.is_none() {
            process.fail_if_dead()?;
            self.connect()?;
        }
        let monitor = self.monitor.as_mut().context("there is no connection to the server")?;
        question(&mut **monitor).map_err(|error| {
            self.monitor = None;
            process.explain(error)
        })
    }
}
