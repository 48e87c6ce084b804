//! The list of operations as data: what is sent, how often, under which name.

use super::Spec;
use crate::random::Random;
use crate::sql::Dialect;

/// What one execution of an operation does.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Action {
    /// No rows come back.
    Execute(String),
    /// Rows are read and dropped.
    Read(String),
    /// One prepared statement for all executions, with one whole number.
    Prepared(&'static str, u64),
    /// The database must refuse it.
    Refused(String),
    Connect,
    Begin,
    Commit,
    Rollback,
    Several(Vec<Action>),
    /// A query must answer with this number.
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

type Make = Box<dyn Fn(u64, &mut Random) -> Action + Send>;

/// Executions of one operation, one after the other.
pub(super) struct Phase {
    /// Index of the operation; `None`: not timed.
    pub(super) operation: Option<usize>,
    pub(super) count: u64,
    pub(super) make: Make,
}

/// One name of sql-bench; tests that use the same name add up, as in its summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    pub name: &'static str,
    /// Executions in one list.
    pub count: u64,
    /// Each execution ends with something durable: a commit, or a table made, changed or dropped.
    pub is_storage_sensitive: bool,
}

/// What an execution leaves.
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

    /// The count of sql-bench, made smaller.
    pub(super) fn scaled(&self, count: u64) -> u64 {
        (count / u64::from(self.spec.divisor)).max(1)
    }

    /// Something that is not timed.
    pub(super) fn quietly(&mut self, action: Action) {
        let make = Box::new(move |_, _: &mut Random| action.clone());
        self.phases.push(Phase { operation: None, count: 1, make });
    }

    pub(super) fn check(&mut self, query: &str, expect: u64) {
        self.quietly(Action::Check(query.to_owned(), expect));
    }

    /// Makes a table, in the place of one that an unfinished list left.
    pub(super) fn table(&mut self, name: &str, columns: &str) {
        self.quietly(Action::execute(drop_if_exists(name)));
        let create = self.create(name, columns);
        self.quietly(Action::execute(create));
    }

    pub(super) fn create(&self, name: &str, columns: &str) -> String {
        self.dialect.create_table_in(&format!("CREATE TABLE {name} ({columns})"), self.spec.engine)
    }

    /// So many executions; `make` gets their number, from zero.
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

    /// The same with a text that returns rows.
    pub(super) fn reads(
        &mut self,
        name: &'static str,
        count: u64,
        make: impl Fn(u64, &mut Random) -> String + Send + 'static,
    ) {
        self.timed(name, Leaves::Nothing, count, move |index, random| Action::Read(make(index, random)));
    }

    /// The same with a text that changes something for good.
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
