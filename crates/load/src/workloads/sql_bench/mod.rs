//! sql-bench of MySQL: fixed work by one connection, one statement at a time.
//!
//! Every operation is a kind of transaction. The work is done once, or repeated for the length of the trial.
//! Client CPU time and count of each operation are recorded, as in sql-bench itself.

mod atis;
mod client;
mod insert;
mod list;
mod small_tests;
mod wisconsin;

use anyhow::{Result, bail};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use list::Operation;

use crate::protocol::{Endpoint, KindSummary, Metric};
use crate::sql::{
    Dialect, Engine, NO_ENGINES, connect, connect_and_create_database, default_engine_without_transactions,
};
use crate::workload::{
    Check, Client, Complaint, Data, Declared, Example, Facts, OnProgress, Progress, Workload, default_number,
    whole_number,
};
use client::ListClient;
use list::List;
use spindle_base::child::RunAs;
use spindle_base::histogram;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Test {
    AlterTable,
    Atis,
    BigTables,
    Connect,
    Create,
    Insert,
    Select,
    Transactions,
    Wisconsin,
}

impl Test {
    pub const ALL: [Test; 9] = [
        Test::AlterTable,
        Test::Atis,
        Test::BigTables,
        Test::Connect,
        Test::Create,
        Test::Insert,
        Test::Select,
        Test::Transactions,
        Test::Wisconsin,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Test::AlterTable => "alter-table",
            Test::Atis => "atis",
            Test::BigTables => "big-tables",
            Test::Connect => "connect",
            Test::Create => "create",
            Test::Insert => "insert",
            Test::Select => "select",
            Test::Transactions => "transactions",
            Test::Wisconsin => "wisconsin",
        }
    }

    fn add_to(self, list: &mut List) {
        match self {
            Test::AlterTable => small_tests::alter_table(list),
            Test::Atis => atis::atis(list),
            Test::BigTables => small_tests::big_tables(list),
            Test::Connect => small_tests::connect(list),
            Test::Create => small_tests::create(list),
            Test::Insert => insert::insert_test(list),
            Test::Select => insert::select_test(list),
            Test::Transactions => small_tests::transactions(list),
            Test::Wisconsin => wisconsin::wisconsin(list),
        }
    }

    /// The reason if a storage engine cannot run the test.
    fn refusal(self, engine: Option<Engine>) -> Option<&'static str> {
        match (self, engine) {
            (Test::Transactions, Some(Engine::Myisam)) => Some("MyISAM has no transactions"),
            (Test::Transactions, Some(Engine::Aria)) => Some("Aria has no transactions"),
            _ => None,
        }
    }
}

pub const FACTS: Facts = Facts {
    is_fixed_work: true,
    is_done_once: true,
    example: Example::fixed(r#"{"divisor": 10}"#),
    ..Facts::SQL
};

/// The fixed work of MySQL's sql-bench.
#[derive(Debug, Clone, Serialize, Deserialize, PartialEq, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Tests, separated by commas. Default: all.
    #[serde(default = "all")]
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = all(), hide_default_value = true)]
    #[schemars(length(min = 1, max = Test::ALL.len()))]
    pub tests: Vec<Test>,
    /// Divisor of every count.
    #[serde(default = "default_number::<1, u32>")]
    #[arg(long, default_value_t = 1, value_parser = whole_number::<u32>)]
    #[schemars(range(min = 1, max = 10_000))]
    pub divisor: u32,
    /// Storage engine, for MariaDB and MySQL only. Default: the server's `default_storage_engine`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[arg(long, value_enum)]
    pub engine: Option<Engine>,
}

fn all() -> Vec<Test> {
    Test::ALL.to_vec()
}

/// Has one row for each completed test that passed all its checks.
const PASSES: &str = "bench_passes";
/// Size of the largest tables at full count.
const FULL_BYTES: u64 = 400 << 20;

/// Known deviations from sql-bench.
const DEVIATIONS: &[&str] = &[
    "The tables of test-ATIS and test-wisconsin are generated. They have the columns, the keys and the numbers of rows of sql-bench's data, but other values. Queries of test-ATIS return the same numbers of rows.",
    "A divisor does not change the size of the tables of test-ATIS and test-wisconsin. Rows that are not inserted one by one are inserted untimed.",
    "test-wisconsin counts four created tables, where sql-bench prints 3.",
    "Statements are not copied, but written from the names and tables of the operations. Where a database lacks a word of MySQL's SQL, its own is used.",
    "Unless it is measured once, the fixed work is repeated until the trial ends, so the window begins and ends anywhere in it. The time of an operation is its mean time multiplied by its count.",
    "prepared_select is sent as text, as DBD::mysql does by default; multiple_value_insert counts statements of 1,000 rows, not rows.",
    "select_range_prefix and select_range_key2 count their queries; sql-bench reports twice as many for the second half.",
    "Counts from the limits of MySQL are used on every database. SQLite alters one column per statement, so an alter_table operation has ten statements there.",
    "Operations have no time limit, and nothing is extrapolated.",
    "Tests check numbers of rows between the operations, untimed.",
];

impl Declared for Spec {
    fn contradiction(&self) -> Option<Complaint> {
        let is_empty = self.tests_that_run().is_empty();
        is_empty.then(|| ("tests", format!("no test is left: {}", self.skipped().join("; "))))
    }

    fn data(&self) -> Option<Data> {
        let bytes = (FULL_BYTES / u64::from(self.divisor)).max(16 << 20);
        Some(Data { words: "the tables of sql-bench".to_owned(), bytes })
    }

    fn data_set(&self) -> String {
        format!("sql-bench, {:?}", self.engine)
    }

    fn deviations(&self) -> Vec<&'static str> {
        DEVIATIONS.to_vec()
    }

    fn engine(&self) -> Option<Engine> {
        self.engine
    }

    /// Tests that the storage engine cannot run.
    fn skipped(&self) -> Vec<String> {
        let refused = |test: &Test| Some(format!("{}: {}", test.name(), test.refusal(self.engine)?));
        self.tests.iter().filter_map(refused).collect()
    }

    fn workload(&self, _: RunAs) -> Result<Box<dyn Workload>> {
        Ok(Box::new(SqlBench::new(self.clone())))
    }
}

impl Spec {
    fn tests_that_run(&self) -> Vec<Test> {
        self.tests.iter().copied().filter(|test| test.refusal(self.engine).is_none()).collect()
    }

    /// Operations of one pass; the same on every database.
    pub fn operations(&self) -> Vec<Operation> {
        let mut list = List::new(self, Dialect::Mysql);
        self.tests_that_run().into_iter().for_each(|test| test.add_to(&mut list));
        list.operations
    }
}

#[derive(Debug)]
struct SqlBench {
    spec: Spec,
    operations: Vec<Operation>,
    kinds: &'static [&'static str],
}

impl SqlBench {
    fn new(spec: Spec) -> SqlBench {
        let operations = spec.operations();
        let names: Vec<&'static str> = operations.iter().map(|operation| operation.name).collect();
        SqlBench { spec, operations, kinds: Vec::leak(names) }
    }
}

impl Workload for SqlBench {
    fn kinds(&self) -> &'static [&'static str] {
        self.kinds
    }

    fn terminals(&self) -> u32 {
        1
    }

    fn durable_kinds(&self) -> Vec<bool> {
        self.operations.iter().map(|operation| operation.is_storage_sensitive).collect()
    }

    /// Creates no test tables: the tests make their own.
    fn load(&self, endpoint: &Endpoint, _: u64, progress: &mut OnProgress<'_>) -> Result<()> {
        let mut session = connect_and_create_database(endpoint)?;
        let dialect = session.dialect();
        if self.spec.engine.is_some() && dialect != Dialect::Mysql {
            bail!("sql-bench: engine: {NO_ENGINES}");
        }
        if self.spec.engine.is_none()
            && self.spec.tests.contains(&Test::Transactions)
            && let Some(engine) = default_engine_without_transactions(&mut *session)?
        {
            bail!(
                "sql-bench: the server's default storage engine {engine} has no transactions: name it with `engine`, so that `transactions` is skipped"
            );
        }
        let create = format!("CREATE TABLE {PASSES} (pass INTEGER NOT NULL, test CHAR(20) NOT NULL)");
        let create = dialect.create_table_in(&create, self.spec.engine);
        session.execute_each([list::drop_if_exists(PASSES), create])?;
        progress(Progress { rows_done: 1, rows_total: 1 })
    }

    fn connect(&self, endpoint: &Endpoint, _: u32, seed: u64) -> Result<Box<dyn Client>> {
        Ok(Box::new(ListClient::connect(endpoint, &self.spec, seed)?))
    }

    /// Counts the completed tests. A completed test has passed every check between its operations; a failed
    /// check would have ended the trial.
    fn verify(&self, endpoint: &Endpoint) -> Result<Vec<Check>> {
        let mut session = connect(endpoint)?;
        let mut checks = Vec::new();
        for test in self.spec.tests_that_run() {
            let passes = session.count(PASSES, &format!("test = '{}'", test.name()))?;
            let name = format!("test-{} passed all its checks", test.name());
            checks.push(Check::of(&name, &format!("{passes} passes"), passes > 0, || {
                "the window ended before the test: raise `divisor`, lengthen `measure` or name fewer tests".to_owned()
            }));
        }
        Ok(checks)
    }

    /// Passes over the fixed work per hour, from the mean time of every operation. Operations per second if
    /// the window did not include all of them.
    fn metric(&self, kinds: &[KindSummary], duration_s: f64) -> Metric {
        let list_s = self.operations.iter().zip(kinds).map(|(operation, kind)| {
            let latencies =
                histogram::decode(&kind.histogram).ok().filter(|latencies| !latencies.is_empty())?;
            Some(operation.count as f64 * latencies.mean() / 1e6)
        });
        match list_s.sum::<Option<f64>>() {
            Some(list_s) if list_s > 0.0 => Metric::rate("passes per hour", 3600.0 / list_s),
            _ => Metric::committed_per_s("operations per second of an unfinished pass", kinds, duration_s),
        }
    }
}
