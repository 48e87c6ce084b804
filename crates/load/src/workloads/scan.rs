//! Scans of one table without an index. A table larger than memory measures reads of the storage.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric, committed};
use crate::sql::{Class, Session, SqlError, Statement, connect, connect_and_create_database, describe};
use crate::workload::loading::{self, Task};
use crate::workload::retrying::until_it_ends;
use crate::workload::{
    Check, Client, Data, Declared, Example, Facts, Failure, OnProgress, Outcome, TERMINALS_MAX, Workload,
    default_number, whole_number,
};
use spindle_base::child::RunAs;
use spindle_base::random::Random;

pub const FACTS: Facts = Facts { example: Example::of_size("rows", r#"{"terminals": 1}"#), ..Facts::SQL };

/// Full scans of a table.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Rows of the table, about 250 bytes each.
    #[arg(long, default_value_t = 1_000_000, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 2_000_000_000))]
    pub rows: u32,
    /// Number of concurrent connections. Each runs one scan after the other.
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
}

const TABLE: &str = "scanned";
const FILLER: usize = 200;
/// Bytes of a row, as InnoDB stores a loaded table.
const ROW_BYTES: u64 = 250;
/// Rows of one transaction of the load.
const CHUNK: u32 = 100_000;
/// `n` has no index, and the condition on the text forces the server to read the rows.
const QUERY: &str = "SELECT COUNT(*), SUM(n) FROM scanned WHERE filler <> ''";

impl Declared for Spec {
    fn data(&self) -> Option<Data> {
        Some(Data { words: format!("{} rows", self.rows), bytes: u64::from(self.rows) * ROW_BYTES })
    }

    fn data_set(&self) -> String {
        format!("scan, {} rows", self.rows)
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(self.clone()))
    }
}

impl Spec {
    /// The expected answer: the number of rows, and the sum of `n`, which counts from one.
    fn answer(&self) -> (u64, u64) {
        let rows = u64::from(self.rows);
        (rows, rows * (rows + 1) / 2)
    }
}

fn ask(session: &mut dyn Session, query: Statement) -> Result<(u64, u64), SqlError> {
    Ok(session.first(query, &[])?.unwrap_or_default())
}

#[derive(Debug)]
struct ScanClient {
    session: Box<dyn Session>,
    query: Statement,
    answer: (u64, u64),
}

impl Client for ScanClient {
    fn choose(&mut self) -> usize {
        0
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let (query, answer) = (self.query, self.answer);
        until_it_ends(&mut *self.session, |session| {
            let found = ask(session, query)?;
            if found == answer {
                return Ok(Some(Duration::ZERO));
            }
            let message = format!("a scan found rows and sum {found:?}, not {answer:?}");
            Err(SqlError { class: Class::Transaction, message })
        })
    }
}

impl Workload for Spec {
    fn kinds(&self) -> &'static [&'static str] {
        &["scan"]
    }

    fn terminals(&self) -> u32 {
        self.terminals
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let mut session = connect_and_create_database(endpoint)?;
        let dialect = session.dialect();
        let columns = format!("id INTEGER PRIMARY KEY, n BIGINT NOT NULL, filler CHAR({FILLER}) NOT NULL");
        let create = dialect.create_table(&format!("CREATE TABLE {TABLE} ({columns})"));
        session.execute_each([format!("DROP TABLE IF EXISTS {TABLE}"), create])?;
        let tasks = (1..=self.rows).step_by(CHUNK as usize).map(|first| {
            let last = self.rows.min(first + (CHUNK - 1));
            Task {
                table: TABLE.to_owned(),
                part: format!(", rows {first} to {last}"),
                row_count: u64::from(last - first) + 1,
                rows: Arc::new(move |output, count| {
                    let mut random = Random::seeded(&[seed, first.into()]);
                    (first..=last).try_for_each(|id| {
                        writeln!(output, "{id}\t{id}\t{}", random.letters(FILLER))?;
                        count();
                        Ok(())
                    })
                }),
            }
        });
        loading::load(endpoint, tasks.collect(), progress)?;
        session.execute_each(dialect.after_load(TABLE))?;
        loading::check_row_count(&mut *session, TABLE, self.rows.into())
    }

    fn connect(&self, endpoint: &Endpoint, _: u32, _: u64) -> Result<Box<dyn Client>> {
        let mut session = connect(endpoint)?;
        let query = session.prepare(QUERY).with_context(|| {
            format!("preparing the statement on {}; is the database loaded?", describe(endpoint))
        })?;
        Ok(Box::new(ScanClient { session, query, answer: self.answer() }))
    }

    /// Checks the table once more; every scan has checked its answer too.
    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let query = session.prepare(QUERY).with_context(|| format!("reading {TABLE}"))?;
        let (found, answer) =
            (ask(&mut *session, query).with_context(|| format!("reading {TABLE}"))?, self.answer());
        let violation = || format!("rows and sum are {found:?}, not {answer:?}");
        Ok(vec![Check::of("rows and sum are as loaded", TABLE, found == answer, violation)])
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        let rows = committed(kinds) * u64::from(self.rows);
        Metric::rate("rows scanned per second", rows as f64 / duration_s)
    }
}
