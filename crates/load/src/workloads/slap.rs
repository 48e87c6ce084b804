//! The generated statements of mysqlslap, natively: the same table, rows, list of statements and rounds.
//! Unlike the tool it reports latencies.
//!
//! Semantics follow `client/mysqlslap.c` of MariaDB 10.11, as its `--only-print` shows them. 10 different
//! INSERTs make 99 rows (the number of writes includes the CREATE TABLE). Then come 11 statements whose
//! values are drawn once; every client repeats them from the start. When each client has sent its share of a
//! round, the table is created again.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::{Dialect, Engine, NO_ENGINES, Session, SqlError, connect, connect_and_create_database};
use crate::workload::retrying::until_it_ends;
use crate::workload::{
    Check, Client, Complaint, Data, Declared, Example, Facts, Failure, OnProgress, Outcome, Progress,
    TERMINALS_MAX, Workload, default_number, whole_number,
};
use crate::workloads::mysqlslap::{LoadType, shares_complaint};
use spindle_base::child::RunAs;
use spindle_base::histogram;
use spindle_base::random::Random;

pub const FACTS: Facts =
    Facts { example: Example::fixed(r#"{"load_type": "mixed", "terminals": 8}"#), ..Facts::SQL };

/// The generated statements of mysqlslap, natively.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Generated statements.
    #[arg(long, value_enum, default_value_t = LoadType::Mixed)]
    pub load_type: LoadType,
    /// Number of concurrent clients (`--concurrency`).
    #[serde(default = "default_number::<8, u32>")]
    #[arg(long, default_value_t = 8, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Statements of one round, in total. Clients have equal shares, rounded down (`--number-of-queries`).
    /// Default: each client sends its list of 11 once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 1_000_000_000))]
    pub queries: Option<u32>,
    /// The table has a primary key (`--auto-generate-sql-add-autoincrement`). UPDATE and SELECT then access
    /// one row.
    #[serde(default)]
    #[arg(long)]
    pub autoincrement: bool,
    /// Number of integer columns (`--number-int-cols`).
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 100))]
    pub int_columns: u32,
    /// Number of text columns (`--number-char-cols`).
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 100))]
    pub char_columns: u32,
    /// Storage engine, for MariaDB and MySQL only. Default: the server's `default_storage_engine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
}

const TABLE: &str = "t1";
/// `--auto-generate-sql-write-number` is 100, and the CREATE TABLE is one of them.
const ROWS: u32 = 99;
/// `--auto-generate-sql-unique-write-number`.
const UNIQUE_WRITES: usize = 10;
/// One more than `--auto-generate-sql-unique-query-number`.
const STATEMENTS: usize = 11;
/// Length of a text, for a column of 128.
const LETTERS: usize = 126;

/// Known deviations from the tool.
const DEVIATIONS: &[&str] = &[
    "Clients stay connected between rounds. The tool's clients connect again in each round, and the tool counts that time.",
    "The metric is statements divided by the mean time of the clients in them. The creation of the table between rounds is \
     part of the figures of storage, server and CPU, as with the tool, but of no latency and not of the metric.",
    "Texts have the letters a to z. The tool's text keys and additional indexes are not available.",
];

impl Declared for Spec {
    fn contradiction(&self) -> Option<Complaint> {
        if self.load_type == LoadType::Key && !self.autoincrement {
            return Some(("load_type", "`key` needs the key that `autoincrement` makes".to_owned()));
        }
        shares_complaint(self.queries?, self.terminals)
    }

    fn data(&self) -> Option<Data> {
        Some(Data { words: format!("{ROWS} rows"), bytes: 1 << 20 })
    }

    fn data_set(&self) -> String {
        let engine = self.engine.map_or("the server's engine", Engine::name);
        let Spec { int_columns, char_columns, autoincrement, .. } = self;
        format!("slap, {int_columns} and {char_columns} columns, key {autoincrement}, {engine}")
    }

    fn deviations(&self) -> Vec<&'static str> {
        DEVIATIONS.to_vec()
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(Slap { spec: self.clone(), rounds: Arc::default() }))
    }
}

impl Spec {
    /// Statements of one client in a round.
    fn share(&self) -> usize {
        self.queries.map_or(STATEMENTS, |queries| (queries / self.terminals) as usize)
    }

    fn columns(&self) -> Vec<String> {
        let numbers = (1..=self.int_columns).map(|number| format!("intcol{number}"));
        numbers.chain((1..=self.char_columns).map(|number| format!("charcol{number}"))).collect()
    }

    fn values(&self, random: &mut Random) -> Vec<String> {
        let mut values = Vec::new();
        values.extend((0..self.int_columns).map(|_| random.between(0, i32::MAX as u32).to_string()));
        values.extend((0..self.char_columns).map(|_| format!("'{}'", random.letters(LETTERS))));
        values
    }

    fn create(&self, dialect: Dialect) -> String {
        let key = self.autoincrement.then(|| dialect.numbered_key("id"));
        let numbers = (1..=self.int_columns).map(|number| format!("intcol{number} INTEGER"));
        let texts = (1..=self.char_columns).map(|number| format!("charcol{number} VARCHAR(128)"));
        let columns: Vec<String> = key.into_iter().chain(numbers).chain(texts).collect();
        dialect.create_table_in(&format!("CREATE TABLE {TABLE} ({})", columns.join(", ")), self.engine)
    }

    fn insert(&self, random: &mut Random) -> String {
        format!(
            "INSERT INTO {TABLE} ({}) VALUES ({})",
            self.columns().join(", "),
            self.values(random).join(", ")
        )
    }

    /// The list of statements, equal for all clients.
    fn statements(&self, seed: u64) -> Vec<Statement> {
        let mut random = Random::seeded(&[seed, 1]);
        let mut statement = |kind: Kind| {
            let text = match kind {
                Kind::Insert => self.insert(&mut random),
                Kind::Select => format!("SELECT {} FROM {TABLE}", self.columns().join(", ")),
                Kind::Update => {
                    let pairs = self.columns().into_iter().zip(self.values(&mut random));
                    let pairs: Vec<String> =
                        pairs.map(|(column, value)| format!("{column} = {value}")).collect();
                    format!("UPDATE {TABLE} SET {}", pairs.join(", "))
                }
            };
            // The load type `read` reads the whole table, with or without a key.
            let has_key = self.autoincrement && kind != Kind::Insert && self.load_type != LoadType::Read;
            Statement { kind, text, has_key }
        };
        let kind = |index: usize| match self.load_type {
            LoadType::Mixed if index.is_multiple_of(2) => Kind::Insert,
            LoadType::Write => Kind::Insert,
            LoadType::Update => Kind::Update,
            LoadType::Mixed | LoadType::Read | LoadType::Key => Kind::Select,
        };
        (0..STATEMENTS).map(|index| statement(kind(index))).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Insert,
    Select,
    Update,
}

#[derive(Debug)]
struct Statement {
    kind: Kind,
    text: String,
    /// The statement is for one row, whose key is drawn for each execution.
    has_key: bool,
}

/// Creates the table for a round; one client calls this.
fn make_table(session: &mut dyn Session, spec: &Spec, seed: u64) -> Result<(), SqlError> {
    session.execute(&format!("DROP TABLE IF EXISTS {TABLE}"))?;
    session.execute(&spec.create(session.dialect()))?;
    let mut random = Random::seeded(&[seed, 0]);
    let inserts: Vec<String> = (0..UNIQUE_WRITES).map(|_| spec.insert(&mut random)).collect();
    (0..ROWS as usize).try_for_each(|row| session.execute(&inserts[row % UNIQUE_WRITES]))
}

/// A barrier for all clients between rounds.
#[derive(Debug, Default)]
struct Rounds {
    state: Mutex<Round>,
    turned: Condvar,
}

#[derive(Debug, Default)]
struct Round {
    number: u64,
    arrived: u32,
    /// A client has left, so the others stop waiting.
    is_over: bool,
}

impl Rounds {
    /// Returns when all clients have arrived and the last of them has made the table. Returns at once if a
    /// client has left.
    fn meet(&self, clients: u32, make: impl FnOnce() -> Result<(), SqlError>) -> Result<(), SqlError> {
        let mut round = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        round.arrived += 1;
        if round.arrived == clients {
            let made = make();
            round.arrived = 0;
            round.number += 1;
            self.turned.notify_all();
            return made;
        }
        let number = round.number;
        while round.number == number && !round.is_over {
            round = self.turned.wait(round).unwrap_or_else(PoisonError::into_inner);
        }
        Ok(())
    }

    fn leave(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.turned.notify_all();
    }
}

#[derive(Debug)]
struct SlapClient {
    session: Box<dyn Session>,
    spec: Spec,
    seed: u64,
    statements: Vec<Statement>,
    rounds: Arc<Rounds>,
    random: Random,
    /// Statements sent in this round.
    sent: usize,
    failure: Option<SqlError>,
}

impl Drop for SlapClient {
    fn drop(&mut self) {
        self.rounds.leave();
    }
}

impl Client for SlapClient {
    fn choose(&mut self) -> usize {
        if self.sent == self.spec.share() {
            let (session, spec, seed) = (&mut *self.session, &self.spec, self.seed);
            let met = self.rounds.meet(spec.terminals, || make_table(session, spec, seed));
            self.failure = met.err();
            self.sent = 0;
        }
        let kind = self.statements[self.sent % STATEMENTS].kind;
        usize::from(self.spec.load_type == LoadType::Mixed && kind == Kind::Select)
    }

    /// Each statement is its own transaction.
    fn execute(&mut self) -> Result<Outcome, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure.into());
        }
        let statement = &self.statements[self.sent % STATEMENTS];
        self.sent += 1;
        let text = match statement.has_key {
            true => &format!("{} WHERE id = {}", statement.text, self.random.between(1, ROWS)),
            false => &statement.text,
        };
        until_it_ends(&mut *self.session, |session| {
            let before = Instant::now();
            match statement.kind {
                Kind::Select => session.read(text).map(|_| Some(Duration::ZERO)),
                Kind::Insert | Kind::Update => session.execute(text).map(|()| Some(before.elapsed())),
            }
        })
    }
}

#[derive(Debug)]
struct Slap {
    spec: Spec,
    rounds: Arc<Rounds>,
}

impl Workload for Slap {
    fn kinds(&self) -> &'static [&'static str] {
        match self.spec.load_type {
            LoadType::Mixed => &["insert", "select"],
            LoadType::Read | LoadType::Key => &["select"],
            LoadType::Write => &["insert"],
            LoadType::Update => &["update"],
        }
    }

    fn terminals(&self) -> u32 {
        self.spec.terminals
    }

    /// Clients pause while the table is created between rounds.
    fn pauses(&self) -> bool {
        true
    }

    fn load(&self, endpoint: &Endpoint, seed: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let mut session = connect_and_create_database(endpoint)?;
        if self.spec.engine.is_some() && session.dialect() != Dialect::Mysql {
            bail!("slap: engine: {NO_ENGINES}");
        }
        make_table(&mut *session, &self.spec, seed).context("making the table")?;
        progress(Progress { rows_done: ROWS.into(), rows_total: ROWS.into() })
    }

    fn connect(&self, endpoint: &Endpoint, terminal: u32, seed: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(SlapClient {
            session: connect(endpoint)?,
            seed,
            statements: self.spec.statements(seed),
            rounds: self.rounds.clone(),
            random: Random::seeded(&[seed, u64::MAX, terminal.into()]),
            // A full share: the first round also begins with a new table.
            sent: self.spec.share(),
            spec: self.spec.clone(),
            failure: None,
        }))
    }

    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let rows = session.count(TABLE, "intcol1 >= 0")?;
        let whole = session.count(TABLE, &format!("LENGTH(charcol1) = {LETTERS}"))?;
        let adds = matches!(self.spec.load_type, LoadType::Mixed | LoadType::Write);
        let most = match adds {
            true => i64::from(ROWS) + (self.spec.share() * self.spec.terminals as usize) as i64,
            false => ROWS.into(),
        };
        let is_expected = (i64::from(ROWS)..=most).contains(&rows);
        Ok(vec![
            Check::of("rows are as many as a round leaves", TABLE, is_expected, || {
                format!("{rows} rows, not {ROWS} to {most}")
            }),
            Check::of("texts are whole", TABLE, whole == rows, || {
                format!("{} rows have texts of another length", rows - whole)
            }),
        ])
    }

    fn metric(&self, kinds: &[KindSummary], _: f64) -> Metric {
        let (mut statements, mut busy_s) = (0, 0.0);
        for kind in kinds {
            // An unreadable histogram is left out.
            let Ok(latencies) = histogram::decode(&kind.histogram) else { continue };
            statements += kind.committed;
            busy_s += latencies.mean() * latencies.len() as f64 / 1e6;
        }
        let value =
            if busy_s > 0.0 { statements as f64 * f64::from(self.spec.terminals) / busy_s } else { 0.0 };
        Metric::rate("queries per second", value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Spec {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_mixed_list_begins_and_ends_with_an_insert() {
        let statements = spec(r#"{"load_type": "mixed", "terminals": 2}"#).statements(1);
        let inserts = statements.iter().filter(|statement| statement.kind == Kind::Insert).count();
        assert_eq!((statements.len(), inserts), (11, 6));
        assert_eq!(statements[1].text, "SELECT intcol1, charcol1 FROM t1");
        assert!(statements.iter().all(|statement| !statement.has_key));
        assert_ne!(statements[0].text, statements[2].text);
    }

    #[test]
    fn a_key_is_asked_for_where_there_is_one() {
        let has_key = |load_type: &str| {
            let text = format!(r#"{{"load_type": "{load_type}", "terminals": 2, "autoincrement": true}}"#);
            spec(&text).statements(1).iter().map(|statement| statement.has_key).collect::<Vec<_>>()
        };
        assert_eq!(has_key("key"), [true; 11]);
        assert_eq!(has_key("update"), [true; 11]);
        assert_eq!(has_key("read"), [false; 11]);
        assert_eq!(has_key("write"), [false; 11]);
        assert_eq!(has_key("mixed")[..2], [false, true]);
    }

    #[test]
    fn clients_have_the_whole_part_of_their_share() {
        assert_eq!(spec(r#"{"load_type": "read", "terminals": 3, "queries": 100}"#).share(), 33);
        assert_eq!(spec(r#"{"load_type": "read", "terminals": 3}"#).share(), 11);
        let few = spec(r#"{"load_type": "read", "terminals": 3, "queries": 2}"#);
        assert_eq!(few.contradiction().unwrap().0, "queries");
        assert_eq!(spec(r#"{"load_type": "key", "terminals": 3}"#).contradiction().unwrap().0, "load_type");
    }

    #[test]
    fn nobody_waits_for_a_client_that_has_gone() {
        let rounds = Arc::new(Rounds::default());
        let waiting = rounds.clone();
        let waiter = std::thread::spawn(move || waiting.meet(2, || unreachable!("not all have come")));
        while rounds.state.lock().unwrap().arrived == 0 {
            std::thread::yield_now();
        }
        rounds.leave();
        waiter.join().unwrap().unwrap();
    }
}
