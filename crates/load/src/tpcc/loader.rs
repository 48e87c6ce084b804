//! Fills the database with rows that are made while they are sent, several streams at once.
//!
//! One stream per (table, warehouse), each in key order, so that the server appends. Rows never touch the client's disk.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use super::population::{self, Table};
use super::schema;
use crate::protocol::Endpoint;
use crate::sql::{Class, Session, connect, connect_and_create_database};
use crate::workload::Progress;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
const ATTEMPTS: u32 = 10;

#[derive(Debug, Clone, Copy)]
struct Task {
    table: Table,
    /// Zero for the item table, which has no warehouse.
    warehouse: u32,
}

pub(super) fn load(
    endpoint: &Endpoint,
    warehouses: u32,
    seed: u64,
    progress: &mut dyn FnMut(Progress),
) -> Result<()> {
    let mut session = connect_and_create_database(endpoint)?;
    create_tables(&mut *session)?;

    let tasks = tasks(warehouses);
    let rows_total = tasks.iter().map(|task| task.table.row_count(seed, task.warehouse)).sum();
    let rows_done = Arc::new(AtomicU64::new(0));
    run_streams(endpoint, tasks, seed, &rows_done, &mut |rows_done| {
        progress(Progress { rows_done, rows_total })
    })?;

    run_in_parallel(endpoint, &schema::INDEXES)?;
    for table in schema::TABLES {
        if let Some(statement) = session.dialect().after_load(table) {
            session.execute(&statement).with_context(|| format!("executing {statement}"))?;
        }
    }
    check_row_counts(&mut *session, warehouses, seed)?;
    progress(Progress { rows_done: rows_total, rows_total });
    Ok(())
}

fn create_tables(session: &mut dyn Session) -> Result<()> {
    for (table, create) in schema::TABLES.iter().zip(schema::CREATE) {
        session
            .execute(&format!("DROP TABLE IF EXISTS {table}"))
            .with_context(|| format!("dropping the old table {table}"))?;
        session
            .execute(&session.dialect().create_table(create))
            .with_context(|| format!("making the table {table}"))?;
    }
    Ok(())
}

/// Largest first, so that no stream is left over at the end.
fn tasks(warehouses: u32) -> VecDeque<Task> {
    let mut tasks = VecDeque::from([Task { table: Table::Item, warehouse: 0 }]);
    let largest_first = [
        Table::OrderLine,
        Table::Stock,
        Table::Customer,
        Table::Orders,
        Table::History,
        Table::NewOrders,
        Table::District,
        Table::Warehouse,
    ];
    for table in largest_first {
        tasks.extend((1..=warehouses).map(|warehouse| Task { table, warehouse }));
    }
    tasks
}

fn run_streams(
    endpoint: &Endpoint,
    tasks: VecDeque<Task>,
    seed: u64,
    rows_done: &Arc<AtomicU64>,
    progress: &mut dyn FnMut(u64),
) -> Result<()> {
    let stream_count = std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 8));
    let tasks = Mutex::new(tasks);
    let failed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let streams: Vec<_> = (0..stream_count)
            .map(|_| {
                scope.spawn(|| {
                    let result = run_stream(endpoint, &tasks, seed, rows_done, &failed);
                    if result.is_err() {
                        failed.store(true, Ordering::Relaxed);
                    }
                    result
                })
            })
            .collect();
        while !streams.iter().all(|stream| stream.is_finished()) {
            progress(rows_done.load(Ordering::Relaxed));
            std::thread::sleep(PROGRESS_INTERVAL);
        }
        streams
            .into_iter()
            .try_for_each(|stream| stream.join().map_err(|_| anyhow!("a loading thread panicked"))?)
    })
}

fn run_stream(
    endpoint: &Endpoint,
    tasks: &Mutex<VecDeque<Task>>,
    seed: u64,
    rows_done: &Arc<AtomicU64>,
    failed: &AtomicBool,
) -> Result<()> {
    let mut session = connect(endpoint)?;
    loop {
        let task = tasks.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(task) = task.filter(|_| !failed.load(Ordering::Relaxed)) else { return Ok(()) };
        load_task(&mut *session, task, seed, rows_done)?;
    }
}

/// One transaction. Two streams that are the first on one empty table of InnoDB may deadlock over its lock; the one that the
/// server rolls back begins again, and then finds the table in use and needs no such lock.
fn load_task(session: &mut dyn Session, task: Task, seed: u64, rows_done: &Arc<AtomicU64>) -> Result<()> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let rows_sent = Arc::new(AtomicU64::new(0));
        let (sent, done) = (rows_sent.clone(), rows_done.clone());
        let rows = Box::new(move |output: &mut dyn Write| {
            population::write_rows(task.table, seed, task.warehouse, output, &mut || {
                sent.fetch_add(1, Ordering::Relaxed);
                done.fetch_add(1, Ordering::Relaxed);
            })
        });
        match session.load(task.table.name(), rows) {
            Err(error) if error.class == Class::Retry && attempts < ATTEMPTS => {
                rows_done.fetch_sub(rows_sent.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            result => {
                return result.with_context(|| {
                    format!("loading the table {} of warehouse {}", task.table.name(), task.warehouse)
                });
            }
        }
    }
}

fn run_in_parallel(endpoint: &Endpoint, statements: &[&str]) -> Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = statements
            .iter()
            .map(|statement| {
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

fn check_row_counts(session: &mut dyn Session, warehouses: u32, seed: u64) -> Result<()> {
    for table in Table::ALL {
        let expected: u64 = match table {
            Table::Item => table.row_count(seed, 0),
            _ => (1..=warehouses).map(|warehouse| table.row_count(seed, warehouse)).sum(),
        };
        let count = session.prepare(&format!("SELECT COUNT(*) FROM {}", table.name()))?;
        let found = session.first(count, &[])?.map(|(count,)| count);
        if found != Some(expected) {
            bail!(
                "the table {} has {} rows after the load, not {expected}",
                table.name(),
                found.unwrap_or(0)
            );
        }
    }
    Ok(())
}
