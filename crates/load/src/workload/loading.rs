//! Fills tables with several streams at once. Rows are generated while they are sent and never touch the
//! client's disk.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::protocol::Endpoint;
use crate::sql::{Class, Session, connect};

const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// The first interval; the others double. A small load does not wait for its end to be noticed.
const FIRST_INTERVAL: Duration = Duration::from_millis(2);
const ATTEMPTS: u32 = 10;

/// The progress of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    pub rows_done: u64,
    pub rows_total: u64,
}

/// Called at intervals with the progress of a load. Its error ends the load and is returned.
pub type OnProgress<'a> = dyn FnMut(Progress) -> Result<()> + 'a;

/// Writes rows in the format of [`Session::load`], and calls the second argument after each. Called again for
/// every attempt.
pub(crate) type Rows = Arc<dyn Fn(&mut dyn Write, &mut dyn FnMut()) -> io::Result<()> + Send + Sync>;

/// Rows of one table that are loaded in one transaction.
pub(crate) struct Task {
    pub(crate) table: String,
    /// The part of the table, for a message: ` of warehouse 3`.
    pub(crate) part: String,
    pub(crate) row_count: u64,
    pub(crate) rows: Rows,
}

/// Runs the tasks in the given order. Each stream takes the next free task.
///
/// # Errors
/// The database refuses a row: its message, the table and the part. Or `progress` returned an error.
pub(crate) fn load(endpoint: &Endpoint, tasks: Vec<Task>, progress: &mut OnProgress<'_>) -> Result<()> {
    let rows_total = tasks.iter().map(|task| task.row_count).sum();
    let rows_done = Arc::new(AtomicU64::new(0));
    let stream_count = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8));
    let tasks = Mutex::new(VecDeque::from(tasks));
    let end = End::default();
    std::thread::scope(|scope| {
        let streams: Vec<_> = (0..stream_count)
            .map(|_| scope.spawn(|| end.note(run_stream(endpoint, &tasks, &rows_done, &end))))
            .collect();
        let mut interval = FIRST_INTERVAL;
        while !streams.iter().all(|stream| stream.is_finished()) {
            end.note(progress(Progress { rows_done: rows_done.load(Ordering::Relaxed), rows_total }));
            std::thread::sleep(interval);
            interval = PROGRESS_INTERVAL.min(interval * 2);
        }
        for stream in streams {
            end.note(stream.join().map_err(|_| anyhow!("a loading thread panicked")));
        }
    });
    end.first_error()?;
    progress(Progress { rows_done: rows_total, rows_total })
}

/// Ends a load early.
#[derive(Debug, Clone, Default)]
struct End {
    is_near: Arc<AtomicBool>,
    /// The first error. Later ones are its consequences.
    first: Arc<Mutex<Option<anyhow::Error>>>,
}

impl End {
    fn note(&self, result: Result<()>) {
        if let Err(error) = result {
            self.first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            self.is_near.store(true, Ordering::Relaxed);
        }
    }

    fn is_near(&self) -> bool {
        self.is_near.load(Ordering::Relaxed)
    }

    fn first_error(&self) -> Result<()> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), Err)
    }
}

/// Accepts rows until the load is ended.
struct UntilTheEnd<'a> {
    output: &'a mut dyn Write,
    end: &'a End,
}

impl Write for UntilTheEnd<'_> {
    fn write(&mut self, row: &[u8]) -> io::Result<usize> {
        match self.end.is_near() {
            true => Err(io::Error::other("the load was ended")),
            false => self.output.write(row),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

fn run_stream(
    endpoint: &Endpoint,
    tasks: &Mutex<VecDeque<Task>>,
    rows_done: &Arc<AtomicU64>,
    end: &End,
) -> Result<()> {
    let mut session = connect(endpoint)?;
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(task) = task.filter(|_| !end.is_near()) else { return Ok(()) };
        run_task(&mut *session, &task, rows_done, end)?;
    }
}

/// Runs one task as one transaction. Two streams that are the first on one empty table of InnoDB may deadlock
/// over its lock. The one that the server rolls back starts again. By then the table is not empty and needs
/// no such lock.
fn run_task(session: &mut dyn Session, task: &Task, rows_done: &Arc<AtomicU64>, end: &End) -> Result<()> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let rows_sent = Arc::new(AtomicU64::new(0));
        let (sent, done, make) = (rows_sent.clone(), rows_done.clone(), task.rows.clone());
        let end = end.clone();
        let rows = Box::new(move |output: &mut dyn Write| {
            make(&mut UntilTheEnd { output, end: &end }, &mut || {
                sent.fetch_add(1, Ordering::Relaxed);
                done.fetch_add(1, Ordering::Relaxed);
            })
        });
        match session.load(&task.table, rows) {
            Err(error) if error.class == Class::Retry && attempts < ATTEMPTS => {
                rows_done.fetch_sub(rows_sent.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            result => {
                return result.with_context(|| format!("loading the table {}{}", task.table, task.part));
            }
        }
    }
}

/// Runs all statements at once, each on a connection of its own.
///
/// # Errors
/// A statement fails.
pub(crate) fn run_in_parallel(endpoint: &Endpoint, statements: &[impl AsRef<str> + Sync]) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = statements
            .iter()
            .map(|statement| {
                let statement = statement.as_ref();
                scope.spawn(move || {
                    connect(endpoint)?.execute(statement).with_context(|| format!("executing {statement}"))
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().map_err(|_| anyhow!("an indexing thread panicked"))?)
    })
}

/// # Errors
/// The table has a different number of rows.
pub(crate) fn check_row_count(session: &mut dyn Session, table: &str, expected: u64) -> Result<()> {
    let count = session.prepare(&format!("SELECT COUNT(*) FROM {table}"))?;
    let found = session.first(count, &[])?.map(|(count,)| count);
    if found != Some(expected) {
        bail!("the table {table} has {} rows after the load, not {expected}", found.unwrap_or(0));
    }
    Ok(())
}
