//! Fills the tables year by year: the flights go to the staging table through several streams, and from
//! there, with the keys of the dimensions, to the star.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use super::carriers::{CARRIERS, YEARS, rows_by_year};
use super::rows::Year;
use super::tally::{Tallies, Tally};
use super::{Spec, calendar, schema};
use crate::protocol::Endpoint;
use crate::sql::{Dialect, Session, connect_and_create_database};
use crate::workload::analytic::{self, Shard, Star as _};
use crate::workload::loading::{self, Task};
use crate::workload::{OnProgress, Progress};

/// Rows of one transaction into the staging table.
const PART_ROWS: u64 = 100_000;

pub(super) fn load(
    spec: &Spec,
    endpoint: &Endpoint,
    shard: Shard,
    seed: u64,
    progress: &mut OnProgress<'_>,
) -> Result<()> {
    let mut session = connect_and_create_database(endpoint)?;
    let dialect = session.dialect();
    spec.check(dialect)?;
    for table in schema::TABLES.iter().rev() {
        session.execute_each([format!("DROP TABLE IF EXISTS {table}")])?;
    }
    session.execute_each(schema::create(dialect, spec.engine, spec.partitions.is_by_year()))?;
    fill_calendar_and_carriers(&mut *session)?;
    let mapping = spec.mapping();
    let is_here = |date_id: u16| shard.has(&mapping, date_id.into());
    let days: Vec<u16> =
        YEARS.flat_map(calendar::days).map(|day| day.date_id).filter(|id| is_here(*id)).collect();
    fill_days(&mut *session, days.clone())?;
    let mut tallies = Tallies::default();
    let (rows_total, mut rows_before) = (u64::from(spec.rows), 0);
    for (year, rows) in rows_by_year(rows_total).into_iter().filter(|(_, rows)| *rows > 0) {
        let mut of_all =
            |part: Progress| progress(Progress { rows_done: rows_before + part.rows_done, rows_total });
        let tally = load_year(&mut *session, endpoint, Year::new(year), rows, seed, &mut of_all)?;
        tallies.0.insert(year, tally);
        rows_before += rows;
    }
    let drop = [schema::STAGING, schema::DAYS].map(|table| format!("DROP TABLE {table}"));
    let index = (!spec.partitions.is_by_year()).then(|| schema::INDEX.to_owned());
    session.execute_each(drop.into_iter().chain(index))?;
    session.execute_each(schema::TABLES.into_iter().filter_map(|table| dialect.after_load(table)))?;
    let answers = match shard.index {
        0 => tallies.answers(&super::statements(), dialect),
        _ => Vec::new(),
    };
    analytic::store(&mut *session, &answers, &tallies.row_counts(&days))
}

/// The days whose flights this server has: all of them, unless there are several servers.
fn fill_days(session: &mut dyn Session, days: Vec<u16>) -> Result<()> {
    session
        .execute_each([format!("DROP TABLE IF EXISTS {}", schema::DAYS), schema::CREATE_DAYS.to_owned()])?;
    let rows =
        move |output: &mut dyn std::io::Write| days.iter().try_for_each(|day| writeln!(output, "{day}"));
    session.load(schema::DAYS, Box::new(rows)).with_context(|| format!("loading the table {}", schema::DAYS))
}

/// Rows that are no flights: all of the calendar, and the names of the carriers.
fn fill_calendar_and_carriers(session: &mut dyn Session) -> Result<()> {
    let dates = |output: &mut dyn std::io::Write| {
        YEARS.flat_map(calendar::days).try_for_each(|day| {
            let quarter = (day.month - 1) / 3 + 1;
            writeln!(
                output,
                "{}\t{}\t{}\t{quarter}\t{}\t{}\t{}",
                day.date_id,
                day.date(),
                day.year,
                day.month,
                day.day,
                day.day_of_week
            )
        })
    };
    session.load("dim_date", Box::new(dates)).context("loading the table dim_date")?;
    let carriers = |output: &mut dyn std::io::Write| {
        CARRIERS.iter().try_for_each(|carrier| writeln!(output, "{}\t{}", carrier.code, carrier.name))
    };
    session.load("dim_carrier", Box::new(carriers)).context("loading the table dim_carrier")
}

/// Returns what its flights tell about the answers.
fn load_year(
    session: &mut dyn Session,
    endpoint: &Endpoint,
    year: Year,
    rows: u64,
    seed: u64,
    progress: &mut OnProgress<'_>,
) -> Result<Tally> {
    let dialect = session.dialect();
    let drop = format!("DROP TABLE IF EXISTS {}", schema::STAGING);
    session.execute_each([drop, schema::create_staging(dialect)])?;
    let year = Arc::new(year);
    let part_count = rows.div_ceil(PART_ROWS);
    let tallies: Vec<Arc<Mutex<Tally>>> = (0..part_count).map(|_| Arc::default()).collect();
    let tasks = (0..).zip(&tallies).map(|(part, tally)| {
        let row_count = PART_ROWS.min(rows - part * PART_ROWS);
        task(year.clone(), seed, part, row_count, tally.clone())
    });
    loading::load(endpoint, tasks.collect(), progress)?;
    // Without numbers about the tables, a planner may read the largest one in the inner loop.
    let analyze = match dialect {
        Dialect::Postgres => Some(format!("ANALYZE {}", schema::STAGING)),
        Dialect::Mysql | Dialect::Sqlite => None,
    };
    session.execute_each(analyze)?;
    session.execute_each(schema::FROM_STAGING)?;
    let mut all = Tally::default();
    for tally in tallies {
        all.add(std::mem::take(&mut *tally.lock().unwrap_or_else(PoisonError::into_inner)));
    }
    Ok(all)
}

/// The tally is replaced by every attempt to send the rows.
fn task(year: Arc<Year>, seed: u64, part: u64, row_count: u64, tally: Arc<Mutex<Tally>>) -> Task {
    Task {
        table: schema::STAGING.to_owned(),
        part: format!(", part {} of {}", part + 1, year.year),
        row_count,
        rows: Arc::new(move |output, count| {
            let mut of_part = Tally::default();
            for flight in year.flights(seed, part, row_count) {
                flight.write(output)?;
                of_part.note(&flight);
                count();
            }
            *tally.lock().unwrap_or_else(PoisonError::into_inner) = of_part;
            Ok(())
        }),
    }
}
