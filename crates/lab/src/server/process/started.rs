//! A server in a process of ours, queried over a connection.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;
use spindle_load::Endpoint;

use super::Process;
use crate::server::connection::Inquiry;
use crate::server::instance::Running;
use crate::server::settings::Settings;
use crate::server::telemetry::Telemetry;

/// Differences between such servers.
pub(in crate::server) trait Ways: Debug {
    /// Whether it answers. The error is the server's message, if any.
    fn is_ready(&self, _endpoint: &Endpoint, inquiry: &mut Inquiry) -> Result<(), Option<String>> {
        inquiry.connect().map_err(|_| None)
    }

    /// Shuts the server down cleanly.
    fn stop(&self, process: &mut Process, timeout: Duration) -> Result<()> {
        process.stop(Signal::TERM, timeout)
    }

    /// See [`Running::discard`].
    fn discard(&self, process: &mut Process, _timeout: Duration) -> Result<()> {
        process.fail_if_dead()?;
        process.crash()
    }
}

#[derive(Debug)]
pub(in crate::server) struct Started<W> {
    pub(in crate::server) process: Process,
    pub(in crate::server) endpoint: Endpoint,
    pub(in crate::server) inquiry: Inquiry,
    pub(in crate::server) ways: W,
}

impl<W: Ways> Running for Started<W> {
    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let Started { process, endpoint, inquiry, ways } = self;
        process.wait_ready(timeout, || ways.is_ready(endpoint, inquiry))
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

    fn fill_cache(&mut self) -> Result<()> {
        self.inquiry.fill_cache(&self.endpoint).map_err(|error| self.process.explain(error))
    }

    fn settings(&mut self, names: &[String]) -> Result<Settings> {
        self.inquiry.settings(names).map_err(|error| self.process.explain(error))
    }

    fn set(&mut self, settings: &Settings) -> Result<()> {
        self.inquiry.set(settings).map_err(|error| self.process.explain(error))
    }

    fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.inquiry.counters().map_err(|error| self.process.explain(error))
    }

    fn telemetry(&self) -> &'static dyn Telemetry {
        self.inquiry.telemetry()
    }

    fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.inquiry.disconnect();
        self.ways.stop(&mut self.process, timeout)
    }

    fn discard(&mut self, timeout: Duration) -> Result<()> {
        self.inquiry.disconnect();
        self.ways.discard(&mut self.process, timeout)
    }

    fn crash(&mut self) -> Result<()> {
        self.inquiry.disconnect();
        self.process.crash()
    }
}
