//! Creates and fills the tables.

use std::sync::Arc;

use anyhow::Result;

use super::{Spec, table};
use crate::protocol::Endpoint;
use crate::sql::{Session, connect_and_create_database};
use crate::workload::OnProgress;
use crate::workload::loading::{self, Task};

/// Rows of one transaction.
const CHUNK: u32 = 100_000;
/// Each index build sorts in memory of its own.
const INDEXES_AT_ONCE: usize = 2;

pub(super) fn load(endpoint: &Endpoint, spec: &Spec, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
    let mut session = connect_and_create_database(endpoint)?;
    let dialect = session.dialect();
    drop_tables(&mut *session, spec.tables)?;
    session.execute_each((1..=spec.tables).map(|number| table::create(dialect, number)))?;
    loading::load(endpoint, tasks(spec, seed), progress)?;
    let indexes: Vec<String> = (1..=spec.tables).map(table::create_index).collect();
    for some in indexes.chunks(INDEXES_AT_ONCE) {
        loading::run_in_parallel(endpoint, some)?;
    }
    finish(&mut *session, spec)
}

pub(super) fn drop_tables(session: &mut dyn Session, tables: u32) -> Result<()> {
    session.execute_each((1..=tables).map(|number| format!("DROP TABLE IF EXISTS {}", table::name(number))))
}

/// Completes tables that have their rows and indexes.
///
/// # Errors
/// A table has a different number of rows.
pub(super) fn finish(session: &mut dyn Session, spec: &Spec) -> Result<()> {
    let dialect = session.dialect();
    for number in 1..=spec.tables {
        let name = table::name(number);
        let numbering = dialect.go_on_numbering(&name, "id");
        session.execute_each(numbering.into_iter().chain(dialect.after_load(&name)))?;
    }
    (1..=spec.tables)
        .try_for_each(|number| loading::check_row_count(session, &table::name(number), spec.rows.into()))
}

/// Tasks in the order of parts: the first part of every table, then the second of every table. So the streams
/// work on different tables if there are several.
fn tasks(spec: &Spec, seed: u64) -> Vec<Task> {
    let firsts = (1..=spec.rows).step_by(CHUNK as usize);
    firsts.flat_map(|first| (1..=spec.tables).map(move |number| task(spec, seed, number, first))).collect()
}

fn task(spec: &Spec, seed: u64, number: u32, first: u32) -> Task {
    let last = spec.rows.min(first + (CHUNK - 1));
    let drawn = spec.drawn_rows();
    Task {
        table: table::name(number),
        part: format!(", rows {first} to {last}"),
        row_count: u64::from(last - first) + 1,
        rows: Arc::new(move |output, count| {
            table::write_rows(seed, number, (first, last), drawn, output, count)
        }),
    }
}
