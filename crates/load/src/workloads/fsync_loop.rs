//! Commits of one row, by one client or several: commits per second. Every client has a row of its own, so
//! that none waits for another's lock.

use std::time::Instant;

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::{Class, Session, SqlError, Statement, connect, connect_and_create_database, describe};
use crate::values;
use crate::workload::retrying::until_it_ends;
use crate::workload::{
    Check, Client, Data, Declared, Example, Facts, Failure, OnProgress, Outcome, Progress, TERMINALS_MAX,
    Workload, default_number, whole_number,
};
use spindle_base::child::RunAs;

pub const FACTS: Facts = Facts { example: Example::fixed(r#"{"terminals": 4}"#), ..Facts::SQL };

/// Commits of single-row updates.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Number of concurrent connections. Each updates a row of its own.
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
}

const TABLE: &str = "commits";
/// The table has a row for the maximum number of terminals; it is small all the same.
const ROWS: u64 = TERMINALS_MAX;

impl Declared for Spec {
    fn data(&self) -> Option<Data> {
        Some(Data { words: format!("{ROWS} rows"), bytes: ROWS * 100 })
    }

    fn data_set(&self) -> String {
        "fsync-loop".to_owned()
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(self.clone()))
    }
}

#[derive(Debug)]
struct CommitClient {
    session: Box<dyn Session>,
    update: Statement,
    terminal: u32,
}

impl Client for CommitClient {
    fn choose(&mut self) -> usize {
        0
    }

    /// The statement is its own transaction, so all of its time counts as commit wait.
    fn execute(&mut self) -> Result<Outcome, Failure> {
        let (update, terminal) = (self.update, self.terminal);
        until_it_ends(&mut *self.session, |session| {
            let before = Instant::now();
            match session.run(update, values![terminal])? {
                1 => Ok(Some(before.elapsed())),
                rows => Err(SqlError {
                    class: Class::Transaction,
                    message: format!("{rows} rows of {TABLE} belong to one terminal"),
                }),
            }
        })
    }
}

impl Workload for Spec {
    fn kinds(&self) -> &'static [&'static str] {
        &["commit"]
    }

    fn terminals(&self) -> u32 {
        self.terminals
    }

    fn load(&self, endpoint: &Endpoint, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let mut session = connect_and_create_database(endpoint)?;
        let dialect = session.dialect();
        let columns = "id INTEGER PRIMARY KEY, n BIGINT NOT NULL, twice BIGINT NOT NULL";
        let create = dialect.create_table(&format!("CREATE TABLE {TABLE} ({columns})"));
        session.execute_each([format!("DROP TABLE IF EXISTS {TABLE}"), create])?;
        session
            .load(TABLE, Box::new(|output| (0..ROWS).try_for_each(|id| writeln!(output, "{id}\t0\t0"))))
            .with_context(|| format!("loading the table {TABLE}"))?;
        session.execute_each(dialect.after_load(TABLE))?;
        progress(Progress { rows_done: ROWS, rows_total: ROWS })
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, _: u64) -> Result<Box<dyn Client>> {
        let mut session = connect(endpoint)?;
        let update = session
            .prepare(&format!("UPDATE {TABLE} SET n = n + 1, twice = twice + 2 WHERE id = ?"))
            .with_context(|| {
                format!("preparing the statement on {}; is the database loaded?", describe(endpoint))
            })?;
        Ok(Box::new(CommitClient { session, update, terminal }))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let (rows, terminals) = (session.count(TABLE, "twice = 2 * n")?, i64::from(self.terminals));
        let changed = session.count(TABLE, &format!("id < {terminals} AND n > 0"))?;
        Ok(vec![
            Check::of("every row was changed as a whole", TABLE, rows == ROWS as i64, || {
                format!("{rows} rows of {ROWS} are whole")
            }),
            Check::of("every client committed", TABLE, changed == terminals, || {
                format!("{changed} of {terminals} clients committed")
            }),
        ])
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::committed_per_s("commits per second", kinds, duration_s)
    }
}
