//! Fills the database with several streams at once. Rows are generated while they are sent.
//!
//! One stream per (table, warehouse), each in key order, so that the server appends. Rows never touch the
//! client's disk.

use std::sync::Arc;

use anyhow::{Context, Result, bail};

use super::super::preset::Rules;
use super::population::{self, Table};
use super::schema;
use crate::protocol::Endpoint;
use crate::sql::{Session, connect_and_create_database, default_engine_without_transactions};
use crate::workload::OnProgress;
use crate::workload::loading::{self, Task};

pub(in super::super) fn load(
    endpoint: &Endpoint,
    warehouses: u32,
    rules: &Rules,
    seed: u64,
    progress: &mut OnProgress<'_>,
) -> Result<()> {
    let mut session = connect_and_create_database(endpoint)?;
    check_transactions(&mut *session)?;
    create_tables(&mut *session)?;

    loading::load(endpoint, tasks(warehouses, seed), progress)?;
    loading::run_in_parallel(endpoint, &[&schema::INDEXES, rules.indexes].concat())?;
    if session.dialect().adds_foreign_keys() {
        session.execute_each(session.dialect().trust_rows().iter().chain(rules.foreign_keys))?;
    }
    let dialect = session.dialect();
    session.execute_each(schema::TABLES.into_iter().filter_map(|table| dialect.after_load(table)))?;
    check_row_counts(&mut *session, warehouses, seed)
}

/// # Errors
/// The server's default storage engine has no transactions.
fn check_transactions(session: &mut dyn Session) -> Result<()> {
    if let Some(engine) = default_engine_without_transactions(session)? {
        bail!("TPC-C is made of transactions, and the server's default storage engine {engine} has none");
    }
    Ok(())
}

fn create_tables(session: &mut dyn Session) -> Result<()> {
    for table in schema::TABLES.iter().rev() {
        session
            .execute(&format!("DROP TABLE IF EXISTS {table}"))
            .with_context(|| format!("dropping the old table {table}"))?;
    }
    for (table, create) in schema::TABLES.iter().zip(schema::CREATE) {
        session
            .execute(&session.dialect().create_table(create))
            .with_context(|| format!("making the table {table}"))?;
    }
    Ok(())
}

/// Largest first, so that all streams end at about the same time.
fn tasks(warehouses: u32, seed: u64) -> Vec<Task> {
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
    let of_warehouses =
        largest_first.into_iter().flat_map(|table| (1..=warehouses).map(move |id| task(table, id, seed)));
    // The item table belongs to no warehouse.
    std::iter::once(task(Table::Item, 0, seed)).chain(of_warehouses).collect()
}

fn task(table: Table, warehouse: u32, seed: u64) -> Task {
    Task {
        table: table.name().to_owned(),
        part: format!(" of warehouse {warehouse}"),
        row_count: table.row_count(seed, warehouse),
        rows: Arc::new(move |output, count| population::write_rows(table, seed, warehouse, output, count)),
    }
}

fn check_row_counts(session: &mut dyn Session, warehouses: u32, seed: u64) -> Result<()> {
    for table in Table::ALL {
        let expected: u64 = match table {
            Table::Item => table.row_count(seed, 0),
            _ => (1..=warehouses).map(|warehouse| table.row_count(seed, warehouse)).sum(),
        };
        loading::check_row_count(session, table.name(), expected)?;
    }
    Ok(())
}
