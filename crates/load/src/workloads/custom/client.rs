//! One terminal of a workload file.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::expression::Expression;
use super::program::{Program, Transaction};
use crate::protocol::Endpoint;
use crate::sql::{Session, SqlError, Statement, Value, connect};
use crate::workload::retrying::until_it_ends;
use crate::workload::{Client, Failure, Outcome};
use spindle_base::random::Random;

#[derive(Debug)]
pub(super) struct CustomClient {
    session: Box<dyn Session>,
    transactions: Vec<Transaction>,
    /// Prepared statements of each transaction.
    statements: Vec<Vec<Statement>>,
    weights: u32,
    random: Random,
    /// This terminal's next index in the sequences that all terminals share, and the stride between its
    /// indexes.
    next: u64,
    terminals: u64,
    chosen: usize,
    /// Values of the variables of the chosen transaction.
    values: Vec<Value>,
    file: String,
}

impl CustomClient {
    /// `file` is the file's name for messages.
    pub(super) fn connect(
        endpoint: &Endpoint,
        program: &Program,
        (terminal, terminals): (u32, u32),
        seed: u64,
        file: String,
    ) -> Result<CustomClient> {
        let mut session = connect(endpoint)?;
        let mut statements = Vec::new();
        for transaction in &program.transactions {
            let mut prepared = Vec::new();
            for statement in &transaction.statements {
                let place = || format!("{file}, line {}; is the database loaded?", statement.line);
                prepared.push(session.prepare(&statement.text).with_context(place)?);
            }
            statements.push(prepared);
        }
        Ok(CustomClient {
            session,
            weights: program.transactions.iter().map(|transaction| transaction.weight).sum(),
            transactions: program.transactions.clone(),
            statements,
            random: Random::seeded(&[seed, u64::MAX, terminal.into()]),
            next: terminal.into(),
            terminals: terminals.into(),
            chosen: 0,
            values: Vec::new(),
            file,
        })
    }

    fn draw(&mut self) -> usize {
        let mut left = self.random.between(1, self.weights);
        let passed = |transaction: &Transaction| {
            let is_past = left > transaction.weight;
            left = left.saturating_sub(transaction.weight);
            !is_past
        };
        self.transactions.iter().position(passed).unwrap_or(0)
    }
}

impl Client for CustomClient {
    fn choose(&mut self) -> usize {
        self.chosen = self.draw();
        let (random, index) = (&mut self.random, self.next);
        let variables = &self.transactions[self.chosen].variables;
        self.values = variables.iter().map(|(_, expression)| expression.value(random, index)).collect();
        if variables.iter().any(|(_, expression)| matches!(expression, Expression::Sequence { .. })) {
            self.next += self.terminals;
        }
        self.chosen
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let transaction = &self.transactions[self.chosen];
        let (prepared, values, file) = (&self.statements[self.chosen], &self.values, &self.file);
        until_it_ends(&mut *self.session, |session| {
            let is_several = transaction.statements.len() > 1;
            if is_several {
                session.begin_now(transaction.writes())?;
            }
            for (statement, prepared) in transaction.statements.iter().zip(prepared) {
                let parameters: Vec<Value> =
                    statement.slots.iter().map(|slot| values[*slot].clone()).collect();
                // Result rows are read and dropped.
                session.visit(*prepared, &parameters, &mut |_| Ok(())).map_err(|error| SqlError {
                    message: format!("{file}, line {}: {}", statement.line, error.message),
                    ..error
                })?;
            }
            if !is_several {
                return Ok((!transaction.writes()).then_some(Duration::ZERO));
            }
            let before = Instant::now();
            session.commit()?;
            Ok(Some(before.elapsed()))
        })
    }
}
