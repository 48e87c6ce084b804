//! The fixed work as data: statements, counts and names of operations.

use super::Spec;
use crate::sql::Dialect;
use spindle_base::random::Random;

/// The action of one execution.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// A statement without result rows.
    Execute(String),
    /// A query whose rows are read and dropped.
    Read(String),
    /// As `Read`, with the required number of rows.
    ReadRows(String, u64),
    /// A statement that is prepared once for all executions, with one whole number as parameter.
    Prepared(&'static str, u64),
    /// A statement that the database must refuse.
    Refused(String),
    Connect,
    Begin,
    Commit,
    Rollback,
    Several(Vec<Action>),
    /// A query that must return this number.
    Check(String, u64),
}

impl Action {
    pub(super) fn execute(text: impl Into<String>) -> Action {
        Action::Execute(text.into())
    }

    pub(super) fn read(text: impl Into<String>) -> Action {
        Action::Read(text.into())
    }
}

/// Rows of a multi-row statement.
pub(super) const ROWS_AT_ONCE: u64 = 1_000;

type Make = Box<dyn Fn(u64, &mut Random) -> Action + Send>;

/// Consecutive executions of one operation.
pub(super) struct Phase {
    /// Index of the operation; `None`: untimed.
    pub(super) operation: Option<usize>,
    pub(super) count: u64,
    pub(super) make: Make,
}

/// An operation with its name in sql-bench. Tests that use the same name add up, as in its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub name: &'static str,
    /// Executions in one pass over the fixed work.
    pub count: u64,
    /// Each execution ends with a durable write: a commit, or a table created, changed or dropped.
    pub is_storage_sensitive: bool,
}

/// The effect that an execution leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaves {
    Nothing,
    Durable,
}

pub(super) struct List {
    pub(super) dialect: Dialect,
    spec: Spec,
    pub(super) operations: Vec<Operation>,
    pub(super) phases: Vec<Phase>,
}

impl List {
    pub(super) fn new(spec: &Spec, dialect: Dialect) -> List {
        List { dialect, spec: spec.clone(), operations: Vec::new(), phases: Vec::new() }
    }

    /// A count of sql-bench, divided by the divisor.
    pub(super) fn scaled(&self, count: u64) -> u64 {
        (count / u64::from(self.spec.divisor)).max(1)
    }

    /// Adds an untimed action.
    pub(super) fn quietly(&mut self, action: Action) {
        let make = Box::new(move |_, _: &mut Random| action.clone());
        self.phases.push(Phase { operation: None, count: 1, make });
    }

    pub(super) fn check(&mut self, query: &str, expect: u64) {
        self.quietly(Action::Check(query.to_owned(), expect));
    }

    /// Creates a table, untimed, and replaces one that an unfinished pass left.
    pub(super) fn table(&mut self, name: &str, columns: &str) {
        self.quietly(Action::execute(drop_if_exists(name)));
        let create = self.create(name, columns);
        self.quietly(Action::execute(create));
    }

    /// Creates a table with its secondary indexes, as (name, columns). MySQL creates them in the same
    /// statement.
    pub(super) fn create_indexed(&self, name: &str, columns: &str, indexes: &[(&str, &str)]) -> Action {
        if self.dialect == Dialect::Mysql {
            let inline = indexes.iter().map(|(index, keys)| format!(", INDEX {index} ({keys})"));
            return Action::Execute(self.create(name, &format!("{columns}{}", inline.collect::<String>())));
        }
        let create = Action::Execute(self.create(name, columns));
        let indexes = indexes
            .iter()
            .map(|(index, keys)| Action::Execute(format!("CREATE INDEX {index} ON {name} ({keys})")));
        Action::Several(std::iter::once(create).chain(indexes).collect())
    }

    /// Creates tables, one per execution.
    pub(super) fn creates(&mut self, tables: Vec<Action>) {
        let count = tables.len() as u64;
        self.timed("create_table", Leaves::Durable, count, move |index, _| tables[index as usize].clone());
    }

    /// Fills a table row by row. With a divisor most rows are inserted untimed, many at once, so that queries
    /// find the same rows at every scale.
    pub(super) fn fill(&mut self, table: &'static str, mut rows: Vec<String>) {
        let all = rows.len() as u64;
        let timed = self.scaled(all);
        let rest = rows.split_off(timed as usize);
        self.changes("insert", timed, move |index, _| {
            format!("INSERT INTO {table} VALUES ({})", rows[index as usize])
        });
        for rows in rest.chunks(ROWS_AT_ONCE as usize) {
            self.quietly(Action::Execute(format!("INSERT INTO {table} VALUES ({})", rows.join("), ("))));
        }
        self.check(&format!("SELECT COUNT(*) FROM {table}"), all);
    }

    pub(super) fn create(&self, name: &str, columns: &str) -> String {
        self.dialect.create_table_in(&format!("CREATE TABLE {name} ({columns})"), self.spec.engine)
    }

    /// Adds `count` executions; `make` gets the index of each, from zero.
    pub(super) fn timed(
        &mut self,
        name: &'static str,
        leaves: Leaves,
        count: u64,
        make: impl Fn(u64, &mut Random) -> Action + Send + 'static,
    ) {
        let operation = match self.operations.iter().position(|operation| operation.name == name) {
            Some(known) => known,
            None => {
                let is_storage_sensitive = leaves == Leaves::Durable;
                self.operations.push(Operation { name, count: 0, is_storage_sensitive });
                self.operations.len() - 1
            }
        };
        self.operations[operation].count += count;
        self.phases.push(Phase { operation: Some(operation), count, make: Box::new(make) });
    }

    /// As [`List::timed`], with queries that return any number of rows.
    pub(super) fn reads(
        &mut self,
        name: &'static str,
        count: u64,
        make: impl Fn(u64, &mut Random) -> String + Send + 'static,
    ) {
        self.timed(name, Leaves::Nothing, count, move |index, random| Action::Read(make(index, random)));
    }

    /// Queries with their required numbers of rows, in order, `loops` times.
    pub(super) fn queries(&mut self, name: &'static str, loops: u64, queries: Vec<(String, u64)>) {
        let count = queries.len() as u64;
        self.timed(name, Leaves::Nothing, loops * count, move |index, _| {
            let (query, rows) = &queries[(index % count) as usize];
            Action::ReadRows(query.clone(), *rows)
        });
    }

    /// As [`List::timed`], with statements that make durable changes.
    pub(super) fn changes(
        &mut self,
        name: &'static str,
        count: u64,
        make: impl Fn(u64, &mut Random) -> String + Send + 'static,
    ) {
        self.timed(name, Leaves::Durable, count, move |index, random| Action::Execute(make(index, random)));
    }
}

pub(super) fn drop_if_exists(table: &str) -> String {
    format!("DROP TABLE IF EXISTS {table}")
}
