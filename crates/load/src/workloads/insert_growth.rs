//! A growing table: the cost of a million more rows, while the secondary indexes outgrow memory (Matsunobu,
//! SSD Deployment Strategies for MySQL, 2010, insert benchmark).
//!
//! Every step of the growth is a kind of transaction. With the default of 1,000 rows per statement and one
//! terminal, the mean milliseconds of a kind are the study's figure: seconds for a million rows.

use std::fmt::Write;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric, committed};
use crate::sql::{Dialect, Engine, NO_ENGINES, Session, connect, connect_and_create_database};
use crate::workload::Violations;
use crate::workload::loading::{self, Progress, Task};
use crate::workload::retrying::until_it_ends;
use crate::workload::{
    Check, Client, Data, Declared, Example, Facts, Failure, OnProgress, Outcome, TERMINALS_MAX, Workload,
    default_number, kept_for_good, whole_number,
};
use spindle_base::child::RunAs;
use spindle_base::random::Random;

pub const FACTS: Facts =
    Facts { is_fixed_work: true, example: Example::of_size("rows", r#"{"terminals": 4}"#), ..Facts::SQL };

/// Inserts into a table that outgrows memory.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Initial rows, about 210 bytes each.
    #[arg(long, default_value_t = 100_000, value_parser = whole_number::<u64>)]
    #[schemars(range(min = 1, max = 10_000_000_000_u64))]
    pub rows: u64,
    /// Number of concurrent connections.
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Rows per statement. Each statement is a transaction.
    #[serde(default = "default_number::<1000, u32>")]
    #[arg(long, default_value_t = 1_000, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 10_000))]
    pub batch: u32,
    /// Number of secondary indexes, each on a column of random numbers.
    #[serde(default = "default_number::<3, u32>")]
    #[arg(long, default_value_t = 3, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 16))]
    pub indexes: u32,
    /// Rows per step of the curve.
    #[serde(default = "default_number::<1000000, u64>")]
    #[arg(long, default_value_t = 1_000_000, value_parser = whole_number::<u64>)]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub step_rows: u64,
    /// Number of steps. Further rows count for the last step.
    #[serde(default = "default_number::<20, u32>")]
    #[arg(long, default_value_t = 20, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = STEPS_MAX))]
    pub steps: u32,
    /// Storage engine, for MariaDB and MySQL only. Default: the server's `default_storage_engine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
}

const TABLE: &str = "growth";
const FILLER: usize = 100;
/// Bytes of a row without its index entries, and of one index entry, as InnoDB stores a loaded table.
const ROW_BYTES: u64 = 150;
const ENTRY_BYTES: u64 = 20;
/// Rows of one transaction of the load.
const CHUNK: u64 = 100_000;
/// Tenths of the initial rows that are loaded before their indexes are created. A new index has full pages. The
/// other rows split each of them once, which leaves it 0.5 / 0.7 = 71 % full, as is one that grew by random
/// entries alone (ln 2 = 69 %; Yao, On Random 2-3 Trees, Acta Informatica 9, 1978).
const TENTHS_BEFORE_INDEXES: u64 = 7;
/// The index of a kind has eight bits.
const STEPS_MAX: u64 = 200;

/// Known deviations from the study.
const DEVIATIONS: &[&str] = &[
    "The study begins with an empty table. Here the initial rows are loaded, the last three tenths of them into a table that has \
     its indexes: the pages of these are about 71 % full, all alike, where those of a table that grew from nothing are between \
     half full and full.",
    "The study does not describe its table. Here a row has a number, a text of 100 characters and the indexed columns.",
];

impl Declared for Spec {
    fn data(&self) -> Option<Data> {
        let row_bytes = ROW_BYTES + u64::from(self.indexes) * ENTRY_BYTES;
        Some(Data { words: format!("{} rows", self.rows), bytes: self.rows * row_bytes })
    }

    fn data_set(&self) -> String {
        let engine = self.engine.map_or("the server's engine", Engine::name);
        format!("insert-growth, {} rows, {} indexes, {engine}", self.rows, self.indexes)
    }

    fn deviations(&self) -> Vec<&'static str> {
        DEVIATIONS.to_vec()
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(InsertGrowth::new(self.clone())))
    }
}

impl Spec {
    /// Rows at the end of the last step. Fixed work ends there.
    fn end(&self) -> u64 {
        (self.rows / self.step_rows + u64::from(self.steps)) * self.step_rows
    }

    /// The step of a row, by the number of rows before it.
    fn step_of(&self, rows: u64) -> usize {
        let passed = rows / self.step_rows - self.rows / self.step_rows;
        passed.min(u64::from(self.steps) - 1) as usize
    }
}

fn columns(spec: &Spec) -> impl Iterator<Item = String> {
    (1..=spec.indexes).map(|number| format!("k{number}"))
}

fn load(endpoint: &Endpoint, spec: &Spec, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
    let mut session = connect_and_create_database(endpoint)?;
    let dialect = session.dialect();
    if spec.engine.is_some() && dialect != Dialect::Mysql {
        bail!("insert-growth: engine: {NO_ENGINES}");
    }
    let keys: String = columns(spec).map(|column| format!(", {column} INTEGER NOT NULL")).collect();
    let id = dialect.numbered_key("id");
    let create = format!("CREATE TABLE {TABLE} ({id}{keys}, filler CHAR({FILLER}) NOT NULL)");
    let drop = format!("DROP TABLE IF EXISTS {TABLE}");
    session.execute_each([drop, dialect.create_table_in(&create, spec.engine)])?;
    let before_indexes = spec.rows * TENTHS_BEFORE_INDEXES / 10;
    load_rows(endpoint, spec, seed, 0..before_indexes, progress)?;
    let indexes = columns(spec).map(|column| format!("CREATE INDEX growth_{column} ON {TABLE} ({column})"));
    session.execute_each(indexes)?;
    load_rows(endpoint, spec, seed, before_indexes..spec.rows, progress)?;
    session
        .execute_each(dialect.go_on_numbering(TABLE, "id").into_iter().chain(dialect.after_load(TABLE)))?;
    loading::check_row_count(&mut *session, TABLE, spec.rows)
}

fn load_rows(
    endpoint: &Endpoint,
    spec: &Spec,
    seed: u64,
    rows: Range<u64>,
    progress: &mut OnProgress<'_>,
) -> Result<()> {
    let tasks = rows.clone().step_by(CHUNK as usize);
    let tasks = tasks.map(|first| task(spec.indexes, seed, first..rows.end.min(first + CHUNK)));
    loading::load(endpoint, tasks.collect(), &mut |part| {
        progress(Progress { rows_done: rows.start + part.rows_done, rows_total: spec.rows })
    })
}

fn task(indexes: u32, seed: u64, Range { start: first, end }: Range<u64>) -> Task {
    Task {
        table: TABLE.to_owned(),
        part: format!(", rows {first} to {end}"),
        row_count: end - first,
        rows: Arc::new(move |output, count| {
            let mut random = Random::seeded(&[seed, first]);
            (first..end).try_for_each(|row| {
                let mut line = (row + 1).to_string();
                for _ in 0..indexes {
                    line.push('\t');
                    line.push_str(&number(&mut random).to_string());
                }
                line.push('\t');
                line.push_str(&random.letters(FILLER));
                line.push('\n');
                io::Write::write_all(output, line.as_bytes())?;
                count();
                Ok(())
            })
        }),
    }
}

fn number(random: &mut Random) -> u32 {
    random.between(0, i32::MAX as u32)
}

#[derive(Debug)]
struct GrowthClient {
    session: Box<dyn Session>,
    spec: Spec,
    random: Random,
    /// Rows of the table, counted by all terminals together.
    rows: Arc<AtomicU64>,
    text: String,
}

impl Client for GrowthClient {
    fn choose(&mut self) -> usize {
        let names = columns(&self.spec).collect::<Vec<_>>().join(", ");
        self.text = format!("INSERT INTO {TABLE} ({names}, filler) VALUES ");
        for row in 0..self.spec.batch {
            self.text.push_str(if row == 0 { "(" } else { ", (" });
            for _ in 0..self.spec.indexes {
                let number = number(&mut self.random);
                write!(self.text, "{number}, ").expect("a text takes everything");
            }
            self.text.push('\'');
            self.text.push_str(&self.random.letters(FILLER));
            self.text.push_str("')");
        }
        self.spec.step_of(self.rows.load(Ordering::Relaxed))
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let text = &self.text;
        let outcome = until_it_ends(&mut *self.session, |session| session.execute(text).map(|()| None))?;
        self.rows.fetch_add(self.spec.batch.into(), Ordering::Relaxed);
        Ok(outcome)
    }

    fn is_through(&mut self) -> Result<bool, Failure> {
        Ok(self.rows.load(Ordering::Relaxed) >= self.spec.end())
    }
}

#[derive(Debug)]
struct InsertGrowth {
    spec: Spec,
    kinds: &'static [&'static str],
    rows: Arc<AtomicU64>,
}

impl InsertGrowth {
    fn new(spec: Spec) -> InsertGrowth {
        let first = spec.rows / spec.step_rows;
        let name = |step: u64| {
            let from = (first + step) * spec.step_rows;
            format!("from {}", from.max(spec.rows))
        };
        let names = (0..u64::from(spec.steps)).map(name);
        InsertGrowth { kinds: kept_for_good(names), rows: Arc::new(spec.rows.into()), spec }
    }
}

impl Workload for InsertGrowth {
    fn kinds(&self) -> &'static [&'static str] {
        self.kinds
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        load(endpoint, &self.spec, seed, progress)
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        let mut session = connect(endpoint)?;
        // An earlier run may have left more rows than were loaded.
        let last = session
            .number(&format!("SELECT MAX(id) FROM {TABLE}"))
            .with_context(|| format!("reading {TABLE}; is the database loaded?"))?;
        self.rows.fetch_max(last.max(0) as u64, Ordering::Relaxed);
        Ok(Box::new(GrowthClient {
            session,
            spec: self.spec.clone(),
            random: Random::seeded(&[seed, u64::MAX, terminal.into()]),
            rows: self.rows.clone(),
            text: String::new(),
        }))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let mut count = |condition: &str| session.count(TABLE, condition);
        let mut indexes = Violations::default();
        let (rows, loaded, batch) = (count("id > 0")?, self.spec.rows as i64, i64::from(self.spec.batch));
        let is_expected = rows >= loaded && (rows - loaded) % batch == 0;
        let whole = count(&format!("LENGTH(filler) = {FILLER}"))?;
        for column in columns(&self.spec) {
            let by_index = count(&format!("{column} >= 0"))?;
            indexes.note(by_index == rows, || format!("{rows} rows by the key and {by_index} by {column}"));
        }
        Ok(vec![
            Check::of("rows are as many as statements leave", TABLE, is_expected, || {
                format!("{rows} rows: {loaded} were loaded, and {batch} come at a time")
            }),
            Check::of("texts are whole", TABLE, whole == rows, || {
                format!("{} rows have texts of another length", rows - whole)
            }),
            indexes.check("key and secondary indexes agree", TABLE),
        ])
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        let rows = committed(kinds) * u64::from(self.spec.batch);
        Metric::rate("rows per second", rows as f64 / duration_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_begin_at_round_numbers_and_the_last_has_the_rest() {
        let spec: Spec = serde_json::from_str(r#"{"rows": 2500, "step_rows": 1000, "steps": 3}"#)
            .expect("a specification");
        assert_eq!(InsertGrowth::new(spec.clone()).kinds(), ["from 2500", "from 3000", "from 4000"]);
        let steps = [2_500, 2_999, 3_000, 4_999, 9_000].map(|rows| spec.step_of(rows));
        assert_eq!(steps, [0, 0, 1, 2, 2]);
        assert_eq!(spec.end(), 5_000);
    }
}
