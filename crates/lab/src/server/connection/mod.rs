//! Connections to a server: the forms in which users name one, and the queries for its settings and counters.
//! Families of servers are known by their [`Protocol`] only; kinds are unknown here.

pub mod endpoint;

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::{Context, Result};
use spindle_load::Endpoint;

use super::settings::Settings;
use super::telemetry::Telemetry;
use super::telemetry::production::Production;
use crate::host::patience::Wait;

/// An open connection.
pub(super) trait Monitor: Debug + Send {
    /// See [`super::Running::settings`].
    fn settings(&mut self, names: &[String]) -> Result<Settings>;

    /// See [`super::Running::counters`].
    fn counters(&mut self) -> Result<BTreeMap<String, f64>>;

    /// See [`super::Running::set`].
    fn set(&mut self, settings: &Settings) -> Result<()>;
}

/// What a connection is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// The database of a trial.
    Trial,
    /// Everything that the server does, with as few questions as possible.
    Server,
}

/// Queries settings and counters of a family of servers.
#[derive(Debug)]
pub(super) struct Protocol {
    pub(super) speaks: fn(&Endpoint) -> bool,
    pub(super) connect: fn(&Endpoint, Scope) -> Result<Box<dyn Monitor>>,
    /// See [`super::Running::fill_cache`].
    pub(super) fill_cache: fn(&Endpoint) -> Result<()>,
    pub(super) telemetry: &'static dyn Telemetry,
    pub(super) production: &'static Production,
}

/// Longer than such a query takes on a server with every core busy and a slow disk.
const PATIENCE: Duration = Duration::from_secs(30);

/// Queries a server's settings and counters. The connection is made when it is needed.
#[derive(Debug)]
pub(super) struct Inquiry {
    who: String,
    endpoint: Endpoint,
    protocol: &'static Protocol,
    scope: Scope,
    monitor: Option<Box<dyn Monitor>>,
}

impl Inquiry {
    /// `who` names the server in sentences.
    pub(super) fn new(who: &str, endpoint: Endpoint, protocol: &'static Protocol) -> Inquiry {
        Inquiry { who: who.to_owned(), endpoint, protocol, scope: Scope::Trial, monitor: None }
    }

    /// About everything that the server does.
    pub(super) fn of_server(who: &str, endpoint: Endpoint, protocol: &'static Protocol) -> Inquiry {
        Inquiry { scope: Scope::Server, ..Inquiry::new(who, endpoint, protocol) }
    }

    pub(super) fn telemetry(&self) -> &'static dyn Telemetry {
        self.protocol.telemetry
    }

    pub(super) fn production(&self) -> &'static Production {
        self.protocol.production
    }

    /// Takes as long as reading the whole database does. The endpoint names it.
    pub(super) fn fill_cache(&self, endpoint: &Endpoint) -> Result<()> {
        (self.protocol.fill_cache)(endpoint).context("filling the server's cache")
    }

    pub(super) fn connect(&mut self) -> Result<()> {
        self.ask(|_| Ok(()))
    }

    pub(super) fn disconnect(&mut self) {
        self.monitor = None;
    }

    pub(super) fn settings(&mut self, names: &[String]) -> Result<Settings> {
        let names = names.to_vec();
        self.ask(move |monitor| monitor.settings(&names)).context("asking the server for its settings")
    }

    pub(super) fn set(&mut self, settings: &Settings) -> Result<()> {
        let settings = settings.clone();
        self.ask(move |monitor| monitor.set(&settings))
    }

    pub(super) fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.ask(|monitor| monitor.counters()).context("asking the server for its counters")
    }

    /// Discards the connection if no answer comes in time.
    fn ask<T: Send + 'static>(
        &mut self,
        question: impl FnOnce(&mut dyn Monitor) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (monitor, endpoint, connect, scope) =
            (self.monitor.take(), self.endpoint.clone(), self.protocol.connect, self.scope);
        let wait = Wait { patience: PATIENCE, who: &self.who, interrupt: None };
        let (monitor, answer) = wait.for_work(move || {
            let mut monitor = match monitor {
                Some(monitor) => monitor,
                None => connect(&endpoint, scope)?,
            };
            let answer = question(&mut *monitor)?;
            Ok((monitor, answer))
        })?;
        self.monitor = Some(monitor);
        Ok(answer)
    }
}
