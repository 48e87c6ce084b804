//! Connections at work, so that another thread can end what they do.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Result, bail};
use mysql::Conn;
use mysql::prelude::Queryable;

use crate::servers::Server;

/// Ends the statement that runs, on all servers.
#[derive(Debug, Clone)]
pub struct Killer(pub(super) Arc<Running>);

impl Killer {
    /// Also ends each statement that begins later.
    pub fn kill_for_good(&self) {
        self.0.work().is_over = true;
        self.0.kill();
    }

    pub fn kill(&self) {
        self.0.kill();
    }
}

#[derive(Debug)]
pub(super) struct Running {
    pub(super) servers: Vec<Server>,
    work: Mutex<Work>,
}

#[derive(Debug, Default)]
struct Work {
    /// Index of the server, and its number for the connection.
    connections: Vec<(usize, u32)>,
    is_over: bool,
}

impl Running {
    pub(super) fn new(servers: Vec<Server>) -> Running {
        Running { servers, work: Mutex::default() }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// # Errors
    /// Somebody has ended all work.
    pub(super) fn add(&self, server: usize, connection: &Conn) -> Result<Entry<'_>> {
        let id = (server, connection.connection_id());
        let mut work = self.work();
        if work.is_over {
            bail!("interrupted");
        }
        work.connections.push(id);
        Ok(Entry { running: self, id })
    }

    pub(super) fn kill(&self) {
        let work = self.work();
        for (index, server) in self.servers.iter().enumerate() {
            let ids: Vec<u32> =
                work.connections.iter().filter(|(of, _)| *of == index).map(|(_, id)| *id).collect();
            if ids.is_empty() {
                continue;
            }
            // A server that does not answer runs nothing that anybody waits for.
            let Ok(mut connection) = server.connect() else { continue };
            for id in ids {
                // It may have ended by itself.
                let _ = connection.query_drop(format!("KILL QUERY {id}"));
            }
        }
    }
}

/// A connection at work. Afterwards the server may give its number to another.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    running: &'a Running,
    id: (usize, u32),
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        self.running.work().connections.retain(|id| *id != self.id);
    }
}
