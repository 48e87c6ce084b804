//! The one client of an analytic workload: it executes the queries in order, and compares every answer.

use std::fmt::{self, Debug, Formatter};
use std::time::Duration;

use anyhow::Result;
use spindle_base::proc::thread_cpu;
use spindle_scatter::mapping::Mapping;

use super::Query;
use super::answers::{self, Answer};
use super::split::{Over, Split};
use crate::protocol::Endpoint;
use crate::sql::{Row, Session, SqlError, Statement, connect};
use crate::workload::{Client, Failure, Outcome};

pub(super) struct Analyst {
    session: Box<dyn Session>,
    /// Answers the queries in place of the session.
    split: Option<Split>,
    queries: Vec<Query>,
    /// Of each query.
    expected: Vec<Answer>,
    /// Of each query, once it was executed.
    statements: Vec<Option<Statement>>,
    next: usize,
    /// The rows of the last execution, which are not compared yet.
    rows: Option<Vec<Row>>,
    /// A wrong answer; the next execution returns it.
    failure: Option<Failure>,
    /// Completed passes over all queries.
    passes: u64,
}

impl Debug for Analyst {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.debug_struct("Analyst").field("next", &self.next).finish_non_exhaustive()
    }
}

impl Analyst {
    /// The servers are those of the shards, in their order.
    ///
    /// # Errors
    /// The database is not loaded.
    pub(super) fn connect(
        endpoints: &[Endpoint],
        queries: Vec<Query>,
        over: Over,
        mapping: Mapping,
    ) -> Result<Analyst> {
        let mut session = connect(&endpoints[0])?;
        let expected = answers::read(&mut *session, &queries)?;
        answers::forget_passes(&mut *session)?;
        let split = (!over.is_whole()).then(|| Split::connect(endpoints, over, mapping)).transpose()?;
        let statements = vec![None; queries.len()];
        Ok(Analyst {
            session,
            split,
            queries,
            expected,
            statements,
            next: 0,
            rows: None,
            failure: None,
            passes: 0,
        })
    }

    /// The query with its rows. The first execution includes the preparation: the server opens the tables in
    /// it.
    fn ask(&mut self, index: usize) -> Result<Vec<Row>, Failure> {
        let Query { name, sql, .. } = self.queries[index];
        let refused = |message: String| Failure::Fatal(format!("{name}: {message}"));
        match &mut self.split {
            Some(split) => split.rows(sql).map_err(|error| refused(format!("{error:#}"))),
            None => self.ask_whole(index).map_err(|error| refused(error.message)),
        }
    }

    fn ask_whole(&mut self, index: usize) -> Result<Vec<Row>, SqlError> {
        let statement = match self.statements[index] {
            Some(statement) => statement,
            None => *self.statements[index].insert(self.session.prepare(self.queries[index].sql)?),
        };
        let mut rows = Vec::new();
        self.session.visit(statement, &[], &mut |row| {
            rows.push(row);
            Ok(())
        })?;
        Ok(rows)
    }

    /// Compares the last answer, and counts a pass after the last query.
    fn settle(&mut self) -> Result<(), Failure> {
        let Some(rows) = self.rows.take() else { return Ok(()) };
        let (query, expected) = (&self.queries[self.next], &self.expected[self.next]);
        let found = Answer::of_server(query, rows);
        if found != *expected {
            return Err(Failure::Fatal(format!(
                "{} was answered wrongly: {} rows with digest {}, not {} with {}",
                query.name, found.row_count, found.digest, expected.row_count, expected.digest
            )));
        }
        self.next += 1;
        if self.next == self.queries.len() {
            self.next = 0;
            self.passes += 1;
            answers::count_pass(&mut *self.session, &self.queries)?;
        }
        Ok(())
    }
}

impl Client for Analyst {
    fn choose(&mut self) -> usize {
        self.failure = self.settle().err();
        self.next
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let before = thread_cpu();
        // There is no other client, so nothing is retried; a query that is refused is refused again.
        self.rows = Some(self.ask(self.next)?);
        let client_cpu = Some(thread_cpu().saturating_sub(before));
        Ok(Outcome { commit_wait: Some(Duration::ZERO), client_cpu, ..Outcome::default() })
    }

    fn is_through(&mut self) -> Result<bool, Failure> {
        self.settle()?;
        Ok(self.passes > 0)
    }
}
