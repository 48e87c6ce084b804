//! Forty wide tables with three indexes each, filled or read by forty clients, after a comparison of CUBRID
//! and MySQL on a hard disk and an SSD (2010).
//!
//! `insert` adds rows one by one (the study's FULL INSERT). `select` makes three queries per transaction: by
//! the primary key, by the unique index and by the third index. A narrow range of rows stays in memory, a
//! wide one does not.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::{
    Class, Session, SqlError, Statement, Value, connect, connect_and_create_database, describe,
};
use crate::values;
use crate::workload::Violations;
use crate::workload::loading::{self, Task};
use crate::workload::retrying::until_it_ends;
use crate::workload::{
    Check, Client, Data, Declared, Example, Facts, Failure, OnProgress, Outcome, TERMINALS_MAX, Workload,
    default_number, whole_number,
};
use spindle_base::child::RunAs;
use spindle_base::random::Random;
use spindle_base::text::plural;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// One inserted row per transaction.
    Insert,
    /// Three selects per transaction.
    Select,
}

/// The rows that are read, or among which rows are inserted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Range {
    /// The first tenth of every table.
    Narrow,
    /// All rows.
    #[default]
    Wide,
}

pub const FACTS: Facts = Facts {
    example: Example::of_size("rows", r#"{"mode": "insert", "tables": 40, "terminals": 40}"#),
    ..Facts::SQL
};

/// Inserts into, or reads of, forty wide tables with three indexes each.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Statements of a transaction.
    #[arg(long, value_enum)]
    pub mode: Mode,
    /// Number of tables.
    #[serde(default = "default_number::<40, u32>")]
    #[arg(long, default_value_t = 40, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000))]
    pub tables: u32,
    /// Initial rows of each table, about 380 bytes each. Default, as in the study: 625,000 for `insert`,
    /// 1,600,000 for `select`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub rows: Option<u32>,
    /// Range of the rows that are read, or among which rows are inserted.
    #[serde(default)]
    #[arg(long, value_enum, default_value_t)]
    pub range: Range,
    /// Number of concurrent connections. Each sends one transaction after the other.
    #[serde(default = "default_number::<40, u32>")]
    #[arg(long, default_value_t = 40, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
}

/// Loaded rows per `id`.
const ROWS_OF_ID: u32 = 10;
/// Bytes of a row with its share of the indexes, as InnoDB stores a loaded table.
const ROW_BYTES: u64 = 380;
/// Rows of one transaction of the load.
const CHUNK: u32 = 100_000;
/// Each index build sorts in memory of its own.
const INDEXES_AT_ONCE: usize = 2;
/// Rows of each table that a verification looks up by every index.
const SAMPLE: u32 = 20;

/// Known deviations from the study.
const DEVIATIONS: &[&str] = &[
    "The study names the columns of its indexes, but not the types of its 15 columns. Here these are the key, seven integers, \
     two large integers and four texts, about 250 bytes.",
    "The study does not define narrow and wide. Here narrow is the first tenth of every table, and wide is the whole table.",
    "The study loads 25 and 64 million rows. Here they are spread evenly over the tables, with ten rows per `id`.",
    "An inserted row has a random `id` and a random `seq`. The study does not describe the keys of its rows.",
];

impl Declared for Spec {
    fn data(&self) -> Option<Data> {
        let words = format!("{} of {} rows", plural(self.tables as usize, "table"), self.rows());
        Some(Data { words, bytes: u64::from(self.tables) * u64::from(self.rows()) * ROW_BYTES })
    }

    fn data_set(&self) -> String {
        format!("wide-tables, {} tables of {} rows", self.tables, self.rows())
    }

    fn deviations(&self) -> Vec<&'static str> {
        DEVIATIONS.to_vec()
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(self.clone()))
    }
}

impl Spec {
    pub fn rows(&self) -> u32 {
        self.rows.unwrap_or(match self.mode {
            Mode::Insert => 625_000,
            Mode::Select => 1_600_000,
        })
    }

    /// Loaded rows in the requested range.
    fn rows_in_range(&self) -> u32 {
        match self.range {
            Range::Narrow => self.rows().div_ceil(10),
            Range::Wide => self.rows(),
        }
    }
}

fn table_name(number: u32) -> String {
    format!("tbl_{}", 200 + number)
}

/// The key of a loaded row; rows count from zero.
fn key(row: u32) -> (u32, u64) {
    (row / ROWS_OF_ID + 1, u64::from(row % ROWS_OF_ID + 1))
}

/// Column values that are derived from the key alone.
#[derive(Debug)]
struct Columns {
    col3: u32,
    col4: u32,
    col5: String,
    col9: u32,
    col14: u32,
    random: Random,
}

impl Columns {
    fn of(table: u32, (id, seq): (u32, u64)) -> Columns {
        let mut random = Random::seeded(&[table.into(), id.into(), seq]);
        Columns {
            col3: random.between(1, 100),
            col4: random.between(1, 10_000),
            col5: random.letters(16),
            col9: random.between(1, 1_000_000),
            col14: random.between(1, 1_000),
            random,
        }
    }

    /// All fifteen columns, in order.
    fn values(mut self, (id, seq): (u32, u64)) -> [Value; 15] {
        let random = &mut self.random;
        [
            id.into(),
            seq.into(),
            self.col3.into(),
            self.col4.into(),
            self.col5.into(),
            random.between(1, 1_000_000).into(),
            random.between(1, 1_000_000).into(),
            random.between(1, 1_000_000).into(),
            self.col9.into(),
            random.letters(40).into(),
            random.letters(40).into(),
            (random.next_u64() >> 20).into(),
            (random.next_u64() >> 20).into(),
            self.col14.into(),
            random.letters(100).into(),
        ]
    }
}

const COLUMNS: &str = "id INTEGER NOT NULL, seq BIGINT NOT NULL, col3 INTEGER NOT NULL, col4 INTEGER NOT NULL, \
     col5 VARCHAR(20) NOT NULL, col6 INTEGER, col7 INTEGER, col8 INTEGER, col9 INTEGER, col10 VARCHAR(40), col11 VARCHAR(40), \
     col12 BIGINT, col13 BIGINT, col14 INTEGER, col15 VARCHAR(100), PRIMARY KEY (id, seq)";

fn indexes(number: u32) -> [String; 2] {
    let name = table_name(number);
    [
        format!("CREATE UNIQUE INDEX unique_{number} ON {name} (id, col3, col4, col5)"),
        format!("CREATE INDEX other_{number} ON {name} (id, col9 DESC, col14)"),
    ]
}

fn load(endpoint: &Endpoint, spec: &Spec, progress: &mut OnProgress<'_>) -> Result<()> {
    let mut session = connect_and_create_database(endpoint)?;
    let dialect = session.dialect();
    for name in (0..spec.tables).map(table_name) {
        let create = dialect.create_table(&format!("CREATE TABLE {name} ({COLUMNS})"));
        session.execute_each([format!("DROP TABLE IF EXISTS {name}"), create])?;
    }
    let firsts = (0..spec.rows()).step_by(CHUNK as usize);
    let tasks = firsts.flat_map(|first| (0..spec.tables).map(move |number| (number, first)));
    let tasks = tasks.map(|(number, first)| {
        let end = spec.rows().min(first + CHUNK);
        Task {
            table: table_name(number),
            part: format!(", rows {first} to {end}"),
            row_count: u64::from(end - first),
            rows: Arc::new(move |output, count| write_rows(number, first..end, output, count)),
        }
    });
    loading::load(endpoint, tasks.collect(), progress)?;
    let statements: Vec<String> = (0..spec.tables).flat_map(indexes).collect();
    for some in statements.chunks(INDEXES_AT_ONCE) {
        loading::run_in_parallel(endpoint, some)?;
    }
    let names = || (0..spec.tables).map(table_name);
    session.execute_each(names().filter_map(|name| dialect.after_load(&name)))?;
    names().try_for_each(|name| loading::check_row_count(&mut *session, &name, spec.rows().into()))
}

fn write_rows(
    table: u32,
    rows: std::ops::Range<u32>,
    output: &mut dyn Write,
    count: &mut dyn FnMut(),
) -> io::Result<()> {
    for key in rows.map(key) {
        for (index, value) in Columns::of(table, key).values(key).into_iter().enumerate() {
            if index > 0 {
                output.write_all(b"\t")?;
            }
            match value {
                Value::Integer(value) => write!(output, "{value}")?,
                Value::Text(text) => output.write_all(&text)?,
                Value::Real(_) | Value::Null => unreachable!("there is no such column"),
            }
        }
        output.write_all(b"\n")?;
        count();
    }
    Ok(())
}

/// The three queries, each for one existing row.
#[derive(Debug, Clone, Copy)]
struct Selects {
    primary: Statement,
    unique: Statement,
    other: Statement,
}

impl Selects {
    fn prepare(session: &mut dyn Session, number: u32) -> Result<Selects, SqlError> {
        let mut select = |condition: &str| {
            session.prepare(&format!("SELECT * FROM {} WHERE {condition}", table_name(number)))
        };
        Ok(Selects {
            primary: select("id=? AND seq=?")?,
            unique: select("id=? AND col3=? AND col4=? AND col5=?")?,
            other: select("id=? AND col9=? AND col14=?")?,
        })
    }

    /// The name of a query that finds no row, if any.
    fn ask(
        self,
        session: &mut dyn Session,
        table: u32,
        key: (u32, u64),
    ) -> Result<Option<&'static str>, SqlError> {
        let (id, seq) = key;
        let columns = Columns::of(table, key);
        let mut finds = |statement, parameters: &[Value]| -> Result<bool, SqlError> {
            let mut found = 0;
            session.visit(statement, parameters, &mut |_| {
                found += 1;
                Ok(())
            })?;
            Ok(found > 0)
        };
        if !finds(self.primary, values![id, seq])? {
            return Ok(Some("the primary key"));
        }
        if !finds(self.unique, values![id, columns.col3, columns.col4, columns.col5])? {
            return Ok(Some("the unique index"));
        }
        let is_found = finds(self.other, values![id, columns.col9, columns.col14])?;
        Ok((!is_found).then_some("the other index"))
    }
}

#[derive(Debug)]
enum Statements {
    Insert(Vec<Statement>),
    Select(Vec<Selects>),
}

#[derive(Debug)]
struct WideClient {
    session: Box<dyn Session>,
    spec: Spec,
    statements: Statements,
    random: Random,
    table: u32,
    key: (u32, u64),
}

impl WideClient {
    fn connect(endpoint: &Endpoint, spec: &Spec, terminal: u32, seed: u64) -> Result<WideClient> {
        let mut session = connect(endpoint)?;
        session.use_transactions()?;
        let statements = prepare(&mut *session, spec).with_context(|| {
            format!("preparing the statements on {}; is the database loaded?", describe(endpoint))
        })?;
        let random = Random::seeded(&[seed, u64::MAX, terminal.into()]);
        Ok(WideClient { session, spec: spec.clone(), statements, random, table: 0, key: (0, 0) })
    }
}

fn prepare(session: &mut dyn Session, spec: &Spec) -> Result<Statements, SqlError> {
    let tables = 0..spec.tables;
    Ok(match spec.mode {
        Mode::Insert => {
            let places = ["?"; 15].join(", ");
            let insert = |number| format!("INSERT INTO {} VALUES ({places})", table_name(number));
            Statements::Insert(
                tables.map(|number| session.prepare(&insert(number))).collect::<Result<_, _>>()?,
            )
        }
        Mode::Select => Statements::Select(
            tables.map(|number| Selects::prepare(session, number)).collect::<Result<_, _>>()?,
        ),
    })
}

impl Client for WideClient {
    fn choose(&mut self) -> usize {
        self.table = self.random.between(0, self.spec.tables - 1);
        self.key = key(self.random.between(0, self.spec.rows_in_range() - 1));
        if self.spec.mode == Mode::Insert {
            // Far from the keys of loaded rows, in a range so large that collisions do not occur.
            self.key.1 = (1 << 40) + (self.random.next_u64() >> 20);
        }
        0
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let (table, key) = (self.table, self.key);
        let statements = &self.statements;
        until_it_ends(&mut *self.session, |session| {
            session.begin(matches!(statements, Statements::Insert(_)))?;
            match statements {
                Statements::Insert(inserts) => {
                    session.run(inserts[table as usize], &Columns::of(table, key).values(key)).map(drop)?;
                }
                Statements::Select(selects) => {
                    if let Some(by) = selects[table as usize].ask(session, table, key)? {
                        let message = format!("a row of {} is not found by {by}", table_name(table));
                        return Err(SqlError { class: Class::Transaction, message });
                    }
                }
            }
            let before = Instant::now();
            session.commit()?;
            Ok(Some(before.elapsed()))
        })
    }
}

fn verify(endpoint: &Endpoint, spec: &Spec) -> Result<Vec<Check>> {
    let mut session = connect(endpoint)?;
    let (mut counts, mut texts, mut indexes) =
        (Violations::default(), Violations::default(), Violations::default());
    let loaded = i64::from(spec.rows());
    for number in 0..spec.tables {
        let name = table_name(number);
        let reading = || format!("reading {name}");
        let rows = session.number(&format!("SELECT COUNT(*) FROM {name}")).with_context(reading)?;
        let is_expected = if spec.mode == Mode::Insert { rows >= loaded } else { rows == loaded };
        counts.note(is_expected, || format!("{name} has {rows} rows, {loaded} were loaded"));
        let condition =
            "LENGTH(col5) = 16 AND LENGTH(col10) = 40 AND LENGTH(col11) = 40 AND LENGTH(col15) = 100";
        let whole = session.count(&name, condition)?;
        texts.note(whole == rows, || format!("{} rows of {name} have texts of another length", rows - whole));
        let selects = Selects::prepare(&mut *session, number).with_context(reading)?;
        for row in (0..spec.rows()).step_by(spec.rows().div_ceil(SAMPLE) as usize) {
            let missing = selects.ask(&mut *session, number, key(row)).with_context(reading)?;
            indexes.note(missing.is_none(), || {
                format!("row {row} of {name} is not found by {}", missing.unwrap_or_default())
            });
        }
    }
    let place = format!("{} tables", spec.tables);
    Ok(vec![
        counts.check("rows are as many as the mode leaves", &place),
        texts.check("texts are whole", &place),
        indexes.check("rows are found by all three indexes", &format!("a sample of {place}")),
    ])
}

impl Workload for Spec {
    fn kinds(&self) -> &'static [&'static str] {
        match self.mode {
            Mode::Insert => &["insert"],
            Mode::Select => &["three selects"],
        }
    }

    fn terminals(&self) -> u32 {
        self.terminals
    }

    /// Rows are derived from their keys, so the seed is unused.
    fn load(&self, endpoint: &Endpoint, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        load(endpoint, self, progress)
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(WideClient::connect(endpoint, self, terminal, seed)?))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        verify(endpoint, self)
    }

    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        Metric::committed_per_s("transactions per second", kinds, duration_s)
    }
}
