//! A connection that asks a server about itself.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use spindle_load::Endpoint;
use spindle_load::sql::describe;

use super::{mysql, postgres};
use crate::host::patience::Wait;

pub(super) trait Monitor: Debug + Send {
    /// See [`super::Running::settings`].
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>>;

    /// See [`super::Running::counters`].
    fn counters(&mut self) -> Result<BTreeMap<String, f64>>;
}

/// By whichever protocol the endpoint is of.
fn connect(endpoint: &Endpoint) -> Result<Box<dyn Monitor>> {
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

/// Longer than a server with every core busy and a slow disk needs for a question about itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks a server about itself, over a connection that is made when it is needed.
#[derive(Debug)]
pub(super) struct Inquiry {
    who: String,
    endpoint: Endpoint,
    monitor: Option<Box<dyn Monitor>>,
}

impl Inquiry {
    /// `who` names the server in sentences.
    pub(super) fn new(who: &str, endpoint: Endpoint) -> Inquiry {
        Inquiry { who: who.to_owned(), endpoint, monitor: None }
    }

    pub(super) fn connect(&mut self) -> Result<()> {
        self.ask(|_| Ok(()))
    }

    pub(super) fn disconnect(&mut self) {
        self.monitor = None;
    }

    pub(super) fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>> {
        let names = names.to_vec();
        self.ask(move |monitor| monitor.settings(&names)).context("asking the server for its settings")
    }

    pub(super) fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.ask(|monitor| monitor.counters()).context("asking the server for its counters")
    }

    /// A connection whose answer does not come is given up.
    fn ask<T: Send + 'static>(
        &mut self,
        question: impl FnOnce(&mut dyn Monitor) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (monitor, endpoint) = (self.monitor.take(), self.endpoint.clone());
        let wait = Wait { patience: PATIENCE, who: &self.who, interrupt: None };
        let (monitor, answer) = wait.for_work(move || {
            let mut monitor = match monitor {
                Some(monitor) => monitor,
                None => connect(&endpoint)?,
            };
            let answer = question(&mut *monitor)?;
            Ok((monitor, answer))
        })?;
        self.monitor = Some(monitor);
        Ok(answer)
    }
}
