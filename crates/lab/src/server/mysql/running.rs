//! A server that was started.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;
use spindle_load::Endpoint;

use crate::server::connection::Inquiry;
use crate::server::instance::Running;
use crate::server::process::Process;
use crate::server::telemetry::Telemetry;

#[derive(Debug)]
pub(super) struct RunningMysql {
    pub(super) process: Process,
    pub(super) endpoint: Endpoint,
    pub(super) inquiry: Inquiry,
}

pub(super) fn endpoint(socket: &Path, database: &str) -> Endpoint {
    Endpoint::MysqlSocket { path: socket.to_owned(), user: "root".to_owned(), database: database.to_owned() }
}

impl Running for RunningMysql {
    fn wait_ready(&mut self, timeout: Duration) -> Result<()> {
        let inquiry = &mut self.inquiry;
        self.process.wait_ready(timeout, || inquiry.connect().map_err(|_| None))
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

    fn telemetry(&self) -> &'static dyn Telemetry {
        self.inquiry.telemetry()
    }

    fn stop(&mut self, timeout: Duration) -> Result<()> {
        self.inquiry.disconnect();
        self.process.stop(Signal::TERM, timeout)
    }

    fn crash(&mut self) -> Result<()> {
        self.inquiry.disconnect();
        self.process.crash()
    }
}
