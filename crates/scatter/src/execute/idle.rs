//! Connections between queries: a short query need not wait for new ones.

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use mysql::Conn;

use crate::servers::Session;

/// Idle connections, each with the index of its server.
#[derive(Debug, Default)]
pub(super) struct Idle(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The database that all of them use.
    database: Option<String>,
    connections: Vec<(usize, Conn)>,
}

impl Idle {
    /// A connection with this session, idle or new.
    pub(super) fn connection(
        &self,
        server: usize,
        session: &Session,
        apply: impl Fn(&mut Conn) -> Result<()>,
        connect: impl FnOnce() -> Result<Conn>,
    ) -> Result<Conn> {
        // A server ends connections that are idle for long.
        if let Some(mut idle) = self.take(server, session)
            && apply(&mut idle).is_ok()
        {
            return Ok(idle);
        }
        let mut connection = connect()?;
        apply(&mut connection)?;
        Ok(connection)
    }

    fn take(&self, server: usize, session: &Session) -> Option<Conn> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.database != session.database {
            kept.connections.clear();
            kept.database.clone_from(&session.database);
        }
        let at = kept.connections.iter().position(|(of, _)| *of == server)?;
        Some(kept.connections.swap_remove(at).1)
    }

    /// Keeps connections on which nothing runs and nothing is left.
    pub(super) fn keep(&self, connections: impl IntoIterator<Item = (usize, Conn)>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).connections.extend(connections);
    }
}
