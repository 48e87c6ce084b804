//! The single connection, which executes the fixed work repeatedly.

use std::fmt::{self, Debug, Formatter};

use anyhow::{Context, Result};
use spindle_base::proc::thread_cpu;

use super::list::{Action, List};
use super::{PASSES, Spec, Test};
use crate::protocol::Endpoint;
use crate::sql::{Class, Session, SqlError, Statement, connect, describe};
use crate::values;
use crate::workload::{Client, Failure, Outcome};
use spindle_base::random::Random;
use spindle_base::text::causes;

pub(super) struct ListClient {
    endpoint: Endpoint,
    session: Box<dyn Session>,
    list: List,
    /// Each test with the end of its phases.
    ends: Vec<(Test, usize)>,
    phase: usize,
    executed: u64,
    seed: u64,
    random: Random,
    prepared: Vec<(&'static str, Statement)>,
    next: Action,
    /// The execution chosen during the check for remaining work.
    chosen: Option<usize>,
    /// An error in an untimed step; the next execution returns it.
    failure: Option<SqlError>,
    /// Completed passes over the fixed work.
    passes: u64,
}

impl Debug for ListClient {
    fn fmt(&self, formatter: &mut Formatter) -> fmt::Result {
        formatter.debug_struct("ListClient").field("phase", &self.phase).finish_non_exhaustive()
    }
}

impl ListClient {
    pub(super) fn connect(endpoint: &Endpoint, spec: &Spec, seed: u64) -> Result<ListClient> {
        let mut session = connect(endpoint)?;
        session.number(&format!("SELECT COUNT(*) FROM {PASSES}")).with_context(|| {
            format!("reading {PASSES} on {}; is the database loaded?", describe(endpoint))
        })?;
        let mut list = List::new(spec, session.dialect());
        let mut ends = Vec::new();
        for test in spec.tests_that_run() {
            test.add_to(&mut list);
            ends.push((test, list.phases.len()));
        }
        Ok(ListClient {
            endpoint: endpoint.clone(),
            session,
            list,
            ends,
            phase: 0,
            executed: 0,
            seed,
            random: Random::seeded(&[seed]),
            prepared: Vec::new(),
            next: Action::Connect,
            chosen: None,
            failure: None,
            passes: 0,
        })
    }

    /// Takes the next step. A timed one is returned as its operation; an untimed one is executed, and the
    /// result is `None`.
    fn step(&mut self) -> Result<Option<usize>, SqlError> {
        let phase = &self.list.phases[self.phase];
        if self.executed < phase.count {
            let (action, operation) = ((phase.make)(self.executed, &mut self.random), phase.operation);
            self.executed += 1;
            match operation {
                Some(_) => self.next = action,
                None => self.perform(&action)?,
            }
            return Ok(operation);
        }
        self.phase += 1;
        self.executed = 0;
        if let Some(&(test, _)) = self.ends.iter().find(|(_, end)| *end == self.phase) {
            // All checks of the test have passed.
            let pass = self.passes;
            self.session.execute(&format!("INSERT INTO {PASSES} VALUES ({pass}, '{}')", test.name()))?;
        }
        if self.phase == self.list.phases.len() {
            self.phase = 0;
            self.passes += 1;
            // Every pass uses the same random numbers.
            self.random = Random::seeded(&[self.seed]);
        }
        Ok(None)
    }

    fn advance(&mut self) -> Result<usize, SqlError> {
        loop {
            if let Some(operation) = self.step()? {
                return Ok(operation);
            }
        }
    }

    fn perform(&mut self, action: &Action) -> Result<(), SqlError> {
        match action {
            Action::Execute(text) => self.session.execute(text),
            Action::Read(text) => self.session.read(text).map(drop),
            Action::ReadRows(text, expect) => {
                let found = self.session.read(text)?;
                if found == *expect {
                    return Ok(());
                }
                Err(wrong(format!("{text} returns {found} rows, not {expect}")))
            }
            Action::Begin => self.session.begin_now(true),
            Action::Commit => self.session.commit(),
            Action::Rollback => self.session.rollback(),
            Action::Several(actions) => actions.iter().try_for_each(|action| self.perform(action)),
            Action::Prepared(text, number) => {
                let known = self.prepared.iter().find(|(known, _)| known == text).map(|(_, known)| *known);
                let statement = match known {
                    Some(statement) => statement,
                    None => {
                        let statement = self.session.prepare(text)?;
                        self.prepared.push((text, statement));
                        statement
                    }
                };
                self.session.visit(statement, values![number], &mut |_| Ok(()))
            }
            Action::Connect => match connect(&self.endpoint) {
                Ok(_) => Ok(()),
                Err(error) => Err(SqlError { class: Class::Fatal, message: causes(&error) }),
            },
            Action::Refused(text) => match self.session.execute(text) {
                Err(error) if error.class == Class::Duplicate => Ok(()),
                Err(error) => Err(error),
                Ok(()) => Err(wrong(format!("a duplicate was accepted: {text}"))),
            },
            Action::Check(query, expect) => {
                let found = self.session.number(query)?;
                if u64::try_from(found) == Ok(*expect) {
                    return Ok(());
                }
                Err(wrong(format!("{query} answers {found}, not {expect}")))
            }
        }
    }
}

/// A fatal error: the work cannot continue after a step with an unexpected result.
fn wrong(message: String) -> SqlError {
    SqlError { class: Class::Fatal, message }
}

impl Client for ListClient {
    fn choose(&mut self) -> usize {
        match self.chosen.take().map_or_else(|| self.advance(), Ok) {
            Ok(operation) => operation,
            Err(error) => {
                self.failure = Some(error);
                0
            }
        }
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let before = thread_cpu();
        let result = match self.failure.take() {
            Some(error) => Err(error),
            None => {
                let action = std::mem::replace(&mut self.next, Action::Connect);
                self.perform(&action)
            }
        };
        // There is no other client, so there are no conflicts to retry.
        let client_cpu = Some(thread_cpu().saturating_sub(before));
        result
            .map(|()| Outcome { client_cpu, ..Outcome::default() })
            .map_err(|error| Failure::Fatal(error.message))
    }

    fn is_through(&mut self) -> Result<bool, Failure> {
        while self.chosen.is_none() && self.passes == 0 {
            self.chosen = self.step().map_err(|error| Failure::Fatal(error.message))?;
        }
        Ok(self.chosen.is_none())
    }
}
