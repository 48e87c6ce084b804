//! Fragments on several connections. The first that fails ends all.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use anyhow::{Context, Result};
use mysql::Conn;
use mysql::prelude::Queryable;

use super::merge::Rows;
use super::values;
use crate::servers::Server;
use crate::servers::session::Session;

/// Runs all fragments, each with the index of its table, and hands their rows on as they come, in any order.
pub(super) fn run(
    server: &Server,
    session: &Session,
    connections: usize,
    fragments: &[(usize, String)],
    mut take: impl FnMut(usize, Rows) -> Result<()>,
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let running = Running::default();
    thread::scope(|scope| {
        let (sender, results) = channel();
        for _ in 0..connections.min(fragments.len()) {
            let sender = sender.clone();
            let (next, running) = (&next, &running);
            scope.spawn(move || work(server, session, fragments, next, running, &sender));
        }
        drop(sender);
        let mut outcome = Ok(());
        for result in results {
            if outcome.is_err() {
                continue;
            }
            outcome = result.and_then(|(index, rows)| take(index, rows));
            if outcome.is_err() {
                // No worker begins another fragment, and those that run are ended.
                next.store(fragments.len(), Ordering::Relaxed);
                running.kill(server);
            }
        }
        outcome
    })
}

fn work(
    server: &Server,
    session: &Session,
    fragments: &[(usize, String)],
    next: &AtomicUsize,
    running: &Running,
    sender: &Sender<Result<(usize, Rows)>>,
) {
    let connected = server.connect().and_then(|mut connection| {
        session.apply(&mut connection)?;
        Ok(connection)
    });
    let mut connection = match connected {
        Ok(connection) => connection,
        Err(error) => return drop(sender.send(Err(error))),
    };
    running.add(&connection);
    while let Some((index, fragment)) = fragments.get(next.fetch_add(1, Ordering::Relaxed)) {
        let rows =
            answered(&mut connection, fragment).with_context(|| format!("a fragment on {}", server.name));
        let is_error = rows.is_err();
        if sender.send(rows.map(|rows| (*index, rows))).is_err() || is_error {
            break;
        }
    }
    running.remove(&connection);
}

fn answered(connection: &mut Conn, fragment: &str) -> Result<Rows> {
    let result = connection.query_iter(fragment)?;
    let columns = result.columns().as_ref().to_vec();
    let rows = result.map(|row| Ok(values(row?))).collect::<Result<_, mysql::Error>>()?;
    Ok(Rows::of(&columns, rows))
}

/// Connections at work, by the server's numbers for them.
#[derive(Debug, Default)]
struct Running(Mutex<Vec<u32>>);

impl Running {
    fn add(&self, connection: &Conn) {
        self.0.lock().expect("no panic").push(connection.connection_id());
    }

    /// Afterwards, the server may give the number to another.
    fn remove(&self, connection: &Conn) {
        self.0.lock().expect("no panic").retain(|id| *id != connection.connection_id());
    }

    fn kill(&self, server: &Server) {
        let ids = self.0.lock().expect("no panic");
        let Ok(mut connection) = server.connect() else { return };
        for id in ids.iter() {
            // It may have ended by itself.
            let _ = connection.query_drop(format!("KILL QUERY {id}"));
        }
    }
}
