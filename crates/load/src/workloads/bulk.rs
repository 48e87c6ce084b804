//! Bulk loads into an empty table, by multi-row INSERT or by the database's own loader (LOAD DATA, COPY).
//!
//! Every client has a table of its own. It empties and fills the table in turn. Both are timed, each as a
//! kind of transaction.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::{Dialect, Session, SqlError, connect, connect_and_create_database};
use crate::workload::Violations;
use crate::workload::retrying::until_it_ends;
use crate::workload::{
    Check, Client, Data, Declared, Example, Facts, Failure, OnProgress, Outcome, Progress, Workload,
    default_number, whole_number,
};
use spindle_base::child::RunAs;
use spindle_base::random::Random;
use spindle_base::text::plural;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Multi-row INSERT statements in one transaction.
    Insert,
    /// LOAD DATA on MariaDB and MySQL, COPY on PostgreSQL, a prepared INSERT per row on SQLite.
    #[default]
    LoadData,
}

pub const FACTS: Facts =
    Facts { example: Example::fixed(r#"{"rows": 10000, "terminals": 4}"#), ..Facts::SQL };

/// Bulk loads into an empty table.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Rows per transaction, about 170 bytes each.
    #[arg(long, default_value_t = 100_000, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 100_000_000))]
    pub rows: u32,
    /// Statements that fill the table.
    #[serde(default)]
    #[arg(long, value_enum, default_value_t)]
    pub method: Method,
    /// Rows per statement of `insert`.
    #[serde(default = "default_number::<1000, u32>")]
    #[arg(long, default_value_t = 1_000, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 10_000))]
    pub batch: u32,
    /// Number of concurrent connections. Each has a table of its own.
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = CLIENTS_MAX))]
    pub terminals: u32,
}

/// A limit on tables, because each client fills one.
const CLIENTS_MAX: u64 = 1_000;
const FILLER: usize = 100;
/// Bytes of a row with its share of the index, as InnoDB stores them.
const ROW_BYTES: u64 = 170;
const KINDS: &[&str] = &["fill", "empty"];
const FILL: usize = 0;
const EMPTY: usize = 1;

impl Declared for Spec {
    /// The size to which a trial fills the tables. Emptied tables add to it until the server reuses their
    /// space.
    fn data(&self) -> Option<Data> {
        let rows = u64::from(self.rows) * u64::from(self.terminals);
        let words = format!("{} of {} rows", plural(self.terminals as usize, "table"), self.rows);
        Some(Data { words, bytes: 2 * rows * ROW_BYTES })
    }

    fn data_set(&self) -> String {
        format!("bulk, {} tables", self.terminals)
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(self.clone()))
    }
}

fn table_name(terminal: u32) -> String {
    format!("bulk{terminal}")
}

/// Writes a row in the format of [`Session::load`].
fn write_row(id: u32, random: &mut Random, output: &mut dyn Write) -> io::Result<()> {
    writeln!(output, "{id}\t{}\t{}", number(random), random.letters(FILLER))
}

fn number(random: &mut Random) -> u32 {
    random.between(0, i32::MAX as u32)
}

#[derive(Debug)]
struct BulkClient {
    session: Box<dyn Session>,
    spec: Spec,
    table: String,
    random: Random,
    next: usize,
}

impl BulkClient {
    fn empty(session: &mut dyn Session, table: &str) -> Result<Option<Duration>, SqlError> {
        let words = match session.dialect() {
            Dialect::Sqlite => "DELETE FROM",
            Dialect::Mysql | Dialect::Postgres => "TRUNCATE TABLE",
        };
        session.execute(&format!("{words} {table}")).map(|()| None)
    }

    fn fill(
        session: &mut dyn Session,
        spec: &Spec,
        table: &str,
        random: &Random,
    ) -> Result<Option<Duration>, SqlError> {
        let (rows, mut random) = (spec.rows, random.clone());
        if spec.method == Method::LoadData {
            let write = move |output: &mut dyn Write| {
                let mut random = random.clone();
                (1..=rows).try_for_each(|id| write_row(id, &mut random, output))
            };
            return session.load(table, Box::new(write)).map(|()| None);
        }
        session.begin_now(true)?;
        for first in (1..=rows).step_by(spec.batch as usize) {
            let mut text = format!("INSERT INTO {table} VALUES ");
            for id in first..=rows.min(first + (spec.batch - 1)) {
                let comma = if id == first { "" } else { ", " };
                let (number, filler) = (number(&mut random), random.letters(FILLER));
                write!(text, "{comma}({id}, {number}, '{filler}')").expect("a text takes everything");
            }
            session.execute(&text)?;
        }
        let before = Instant::now();
        session.commit()?;
        Ok(Some(before.elapsed()))
    }
}

impl Client for BulkClient {
    fn choose(&mut self) -> usize {
        let chosen = self.next;
        self.next = if chosen == FILL { EMPTY } else { FILL };
        if chosen == FILL {
            // Drawn once per fill, so that a retry sends the same rows.
            self.random.next_u64();
        }
        chosen
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let (spec, table, random) = (&self.spec, &self.table, &self.random);
        let is_fill = self.next == EMPTY;
        let result = until_it_ends(&mut *self.session, |session| match is_fill {
            true => BulkClient::fill(session, spec, table, random),
            false => BulkClient::empty(session, table),
        });
        if result.is_err() {
            // After a failure the client continues with an empty table.
            self.next = EMPTY;
        }
        result
    }
}

impl Workload for Spec {
    fn kinds(&self) -> &'static [&'static str] {
        KINDS
    }

    fn terminals(&self) -> u32 {
        self.terminals
    }

    /// Creates empty tables. Filling them is measured.
    fn load(&self, endpoint: &Endpoint, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let mut session = connect_and_create_database(endpoint)?;
        let dialect = session.dialect();
        for table in (0..self.terminals).map(table_name) {
            let columns =
                format!("id INTEGER PRIMARY KEY, k INTEGER NOT NULL, filler CHAR({FILLER}) NOT NULL");
            session.execute_each([
                format!("DROP TABLE IF EXISTS {table}"),
                dialect.create_table(&format!("CREATE TABLE {table} ({columns})")),
                format!("CREATE INDEX k_{table} ON {table} (k)"),
            ])?;
        }
        progress(Progress { rows_done: 1, rows_total: 1 })
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        let mut session = connect(endpoint)?;
        let table = table_name(terminal);
        BulkClient::empty(&mut *session, &table)
            .with_context(|| format!("emptying {table}; is the database loaded?"))?;
        let random = Random::seeded(&[seed, terminal.into()]);
        Ok(Box::new(BulkClient { session, spec: self.clone(), table, random, next: FILL }))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let (mut counts, mut texts) = (Violations::default(), Violations::default());
        for table in (0..self.terminals).map(table_name) {
            let mut count = |condition: &str| session.count(&table, condition);
            let (rows, all) = (count("id > 0")?, i64::from(self.rows));
            let is_expected = (rows == 0 || rows == all) && count("k >= 0")? == rows;
            counts.note(is_expected, || format!("{table} has {rows} rows; all are {all}"));
            let whole = count(&format!("LENGTH(filler) = {FILLER}"))?;
            texts.note(whole == rows, || format!("{} rows of {table} are not whole", rows - whole));
        }
        let place = format!("{} tables", self.terminals);
        Ok(vec![
            counts.check("a table has all its rows or none, by key and by index", &place),
            texts.check("texts are whole", &place),
        ])
    }

    /// Rows per second; the time includes emptying the tables.
    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        let rows = kinds[FILL].committed * u64::from(self.rows);
        Metric::rate("rows per second", rows as f64 / duration_s)
    }
}
