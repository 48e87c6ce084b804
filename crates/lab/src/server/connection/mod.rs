//! How a server is reached: the forms in which users name one, and a connection that asks it about itself. It
//! knows the families of servers by their [`Protocol`] only, and no kind.

pub mod endpoint;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result};
use spindle_load::Endpoint;

use super::telemetry::Telemetry;
use crate::host::patience::Wait;

/// A connection that is open.
pub(super) trait Monitor: Debug + Send {
    /// See [`super::Running::settings`].
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>>;

    /// See [`super::Running::counters`].
    fn counters(&mut self) -> Result<BTreeMap<String, f64>>;
}

/// How a family of servers is asked about itself.
#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) speaks: fn(&Endpoint) -> bool,
    pub(super) connect: fn(&Endpoint) -> Result<Box<dyn Monitor>>,
    pub(super) telemetry: &'static dyn Telemetry,
}

/// Longer than a server with every core busy and a slow disk needs for a question about itself.
const PATIENCE: Duration = Duration::from_secs(30);

/// Asks a server about itself, over a connection that is made when it is needed.
#[derive(Debug)]
pub(super) struct Inquiry {
    who: String,
    endpoint: Endpoint,
    protocol: &'static Protocol,
    monitor: Option<Box<dyn Monitor>>,
}

impl Inquiry {
    /// `who` names the server in sentences.
    pub(super) fn new(who: &str, endpoint: Endpoint, protocol: &'static Protocol) -> Inquiry {
        Inquiry { who: who.to_owned(), endpoint, protocol, monitor: None }
    }

    pub(super) fn telemetry(&self) -> &'static dyn Telemetry {
        self.protocol.telemetry
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
        let (monitor, endpoint, connect) =
            (self.monitor.take(), self.endpoint.clone(), self.protocol.connect);
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
