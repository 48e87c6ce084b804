//! A server that was started.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use rustix::process::Signal;
use spindle_load::Endpoint;

use crate::server::connection::Inquiry;
use crate::server::process::Process;
use crate::server::process::started::Ways;

#[derive(Debug)]
pub(super) struct Mysqld;

pub(super) fn endpoint(socket: &Path, database: &str) -> Endpoint {
    Endpoint::MysqlSocket { path: socket.to_owned(), user: "root".to_owned(), database: database.to_owned() }
}

impl Ways for Mysqld {
    fn is_ready(&self, _: &Endpoint, inquiry: &mut Inquiry) -> Result<(), Option<String>> {
        inquiry.connect().map_err(|_| None)
    }

    fn stop(&self, process: &mut Process, timeout: Duration) -> Result<()> {
        process.stop(Signal::TERM, timeout)
    }
}
