//! Fragments on several connections of each server. The first that fails ends all.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use mysql::Conn;
use mysql::prelude::Queryable;

use super::idle::Idle;
use super::merge::Rows;
use super::running::Running;
use super::values;
use crate::servers::session::Session;
use crate::split::Options;

/// A query for one server.
#[derive(Debug)]
pub(super) struct Fragment {
    /// Index of the table that takes its rows.
    pub(super) table: usize,
    pub(super) server: usize,
    pub(super) text: String,
}

/// What all fragments of a query have in common.
#[derive(Debug)]
pub(super) struct Workers<'a> {
    pub(super) session: &'a Session,
    pub(super) options: &'a Options,
    pub(super) running: &'a Running,
    pub(super) idle: &'a Idle,
}

/// The fragments of one server, and how many of them are taken.
struct Queue<'a> {
    fragments: Vec<&'a Fragment>,
    next: AtomicUsize,
    is_ended: AtomicBool,
}

impl<'a> Queue<'a> {
    fn next(&self) -> Option<&'a Fragment> {
        self.fragments.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }

    /// No worker begins another.
    fn end(&self) {
        self.is_ended.store(true, Ordering::Relaxed);
        self.next.store(self.fragments.len(), Ordering::Relaxed);
    }
}

type Outcome = Result<(usize, Rows)>;

impl Workers<'_> {
    /// Hands the rows of all fragments on as they come, in any order, with the index of their table.
    pub(super) fn run(
        &self,
        fragments: &[Fragment],
        mut take: impl FnMut(usize, Rows) -> Result<()>,
    ) -> Result<()> {
        let queues: Vec<Queue<'_>> = (0..self.running.servers.len())
            .map(|server| Queue {
                fragments: fragments.iter().filter(|fragment| fragment.server == server).collect(),
                next: AtomicUsize::new(0),
                is_ended: AtomicBool::new(false),
            })
            .collect();
        let connections = self.connections(&queues)?;
        thread::scope(|scope| {
            let (sender, results) = channel();
            let work = |(index, connection)| {
                let (sender, queue): (_, &Queue<'_>) = (sender.clone(), &queues[index]);
                (index, scope.spawn(move || self.work(connection, queue, &sender)))
            };
            let workers: Vec<_> = connections.into_iter().map(work).collect();
            drop(sender);
            let outcome = self.taken(&results, fragments.len(), &mut take);
            if outcome.is_err() {
                queues.iter().for_each(Queue::end);
                self.running.kill();
            } else if self.options.keeps_connections && !self.options.is_snapshot {
                let ended =
                    workers.into_iter().filter_map(|(index, worker)| Some((index, worker.join().ok()?)));
                self.idle.keep(ended);
            }
            outcome
        })
    }

    fn taken(
        &self,
        results: &Receiver<Outcome>,
        count: usize,
        take: &mut impl FnMut(usize, Rows) -> Result<()>,
    ) -> Result<()> {
        /// Longer than any query.
        const NO_LIMIT: Duration = Duration::from_secs(365 * 24 * 3600);
        let end = Instant::now() + self.options.timeout.unwrap_or(NO_LIMIT);
        for _ in 0..count {
            let (table, rows) = match results.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(result) => result?,
                Err(RecvTimeoutError::Timeout) => {
                    let timeout_s = self.options.timeout.unwrap_or_default().as_secs_f64();
                    return Err(anyhow!("its fragments took longer than {timeout_s} s"));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(anyhow!("interrupted")),
            };
            take(table, rows)?;
        }
        Ok(())
    }

    /// With the index of each one's server, which is that of its queue.
    fn connections(&self, queues: &[Queue<'_>]) -> Result<Vec<(usize, Conn)>> {
        let mut locks = Vec::new();
        if self.options.is_snapshot {
            let asked = queues.iter().zip(&self.running.servers);
            for (_, server) in asked.filter(|(queue, _)| !queue.fragments.is_empty()) {
                let mut connection = server.connect()?;
                connection
                    .query_drop("FLUSH TABLES WITH READ LOCK")
                    .with_context(|| format!("keeping {} from writing for a moment", server.name))?;
                locks.push(connection);
            }
        }
        let mut connections = Vec::new();
        for (server, queue) in queues.iter().enumerate() {
            for _ in 0..self.options.connections.min(queue.fragments.len()) {
                connections.push((server, self.connect(server)?));
            }
        }
        for mut lock in locks {
            lock.query_drop("UNLOCK TABLES").context("letting a server write again")?;
        }
        Ok(connections)
    }

    fn connect(&self, server: usize) -> Result<Conn> {
        // After the time of all fragments, of which this one may not be the first that is told to be late.
        let longest = self.options.timeout.map(|timeout| timeout + Duration::from_secs(1));
        let mut connection = self.idle.connection(
            server,
            self.session,
            |connection| self.session.apply(connection),
            || self.running.servers[server].connect_for(longest),
        )?;
        if self.options.is_snapshot {
            connection
                .query_drop("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                .and_then(|()| connection.query_drop("START TRANSACTION WITH CONSISTENT SNAPSHOT"))
                .with_context(|| format!("beginning a snapshot on {}", self.running.servers[server].name))?;
        }
        Ok(connection)
    }

    /// Returns the connection.
    fn work(&self, mut connection: Conn, queue: &Queue<'_>, sender: &Sender<Outcome>) -> Conn {
        while let Some(fragment) = queue.next() {
            let rows = self.answered(&mut connection, fragment, queue);
            let is_error = rows.is_err();
            if sender.send(rows.map(|rows| (fragment.table, rows))).is_err() || is_error {
                break;
            }
        }
        connection
    }

    /// A connection that is lost is made once more: nobody has seen a row yet.
    fn answered(&self, connection: &mut Conn, fragment: &Fragment, queue: &Queue<'_>) -> Result<Rows> {
        let result = self.asked(connection, fragment);
        let is_lost = |error: &anyhow::Error| {
            error.downcast_ref().is_some_and(|error| matches!(error, mysql::Error::IoError(_)))
        };
        let may_repeat = !self.options.is_snapshot && !queue.is_ended.load(Ordering::Relaxed);
        let result = match result {
            Err(error) if is_lost(&error) && may_repeat => {
                self.connect(fragment.server).and_then(|another| {
                    *connection = another;
                    self.asked(connection, fragment)
                })
            }
            other => other,
        };
        result.with_context(|| format!("a fragment on {}", self.running.servers[fragment.server].name))
    }

    fn asked(&self, connection: &mut Conn, fragment: &Fragment) -> Result<Rows> {
        let _running = self.running.add(fragment.server, connection)?;
        let result = connection.query_iter(&fragment.text)?;
        let columns = result.columns().as_ref().to_vec();
        let rows = result.map(|row| Ok(values(row?))).collect::<Result<_, mysql::Error>>()?;
        Ok(Rows::of(&columns, rows))
    }
}
