//! One terminal: a connection, its prepared statements, the five transactions, and the retries around each.
//!
//! Belongs here: input, statements and transactions. Must not know the load and the verification of the
//! database.

mod deck;
mod delivery;
mod input;
mod new_order;
mod order_status;
mod payment;
mod statements;
mod stock_level;
mod wait_times;

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::Spec;
use crate::protocol::Endpoint;
use crate::sql::{Class, Session, SqlError, connect, describe};
use crate::values;
use crate::workload::retrying::retry;
use crate::workload::{Client, Failure, Outcome};
use input::{Customer, Generator, Input};
use spindle_base::random::Random;
use statements::Statements;

/// Separates the random numbers of think times from those of inputs.
const WAITS: u64 = 1;

/// The end of a transaction without errors. The caller sends the COMMIT or ROLLBACK.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Commit,
    Rollback,
}

#[derive(Debug)]
pub(super) struct Terminal {
    session: Box<dyn Session>,
    statements: Statements,
    inputs: Generator,
    chosen: Option<Input>,
    /// Random numbers of keying and think times, if the terminal has them, and the kind of the current
    /// transaction.
    waits: Option<Random>,
    kind: usize,
}

impl Terminal {
    pub(super) fn connect(endpoint: &Endpoint, spec: &Spec, number: u32, seed: u64) -> Result<Terminal> {
        let inputs = Generator::new(spec, number, seed);
        let waits = spec.wait_times.then(|| Random::seeded(&[seed, u64::from(number), WAITS]));
        let mut session = connect(endpoint)?;
        session.use_transactions()?;
        let statements = Statements::prepare(&mut *session).with_context(|| {
            format!("preparing the TPC-C statements on {}; is the database loaded?", describe(endpoint))
        })?;
        Ok(Terminal { session, statements, inputs, chosen: None, waits, kind: 0 })
    }

    fn attempt(&mut self, input: &Input) -> Result<Outcome, SqlError> {
        self.session.begin(!matches!(input, Input::OrderStatus(_) | Input::StockLevel(_)))?;
        let end = match input {
            Input::NewOrder(order) => self.new_order(order)?,
            Input::Payment(payment) => self.payment(payment)?,
            Input::OrderStatus(status) => self.order_status(status)?,
            Input::Delivery(delivery) => self.delivery(delivery)?,
            Input::StockLevel(level) => self.stock_level(level)?,
        };
        let before = Instant::now();
        match end {
            End::Commit => self.session.commit()?,
            End::Rollback => self.session.rollback()?,
        }
        let rolled_back = end == End::Rollback;
        let commit_wait = if rolled_back { Duration::ZERO } else { before.elapsed() };
        Ok(Outcome { rolled_back, commit_wait: Some(commit_wait), ..Outcome::default() })
    }

    /// The number of a customer. For a last name it is the middle one by first name, rounded up (2.5.2.2).
    ///
    /// First names never change, so this read needs no lock.
    fn customer_id(&mut self, warehouse: u32, district: u32, customer: &Customer) -> Result<u32, SqlError> {
        let name = match customer {
            Customer::Id(id) => return Ok(*id),
            Customer::LastName(name) => name,
        };
        let found: Vec<(u32,)> = self
            .session
            .rows(self.statements.customer_by_name, values![warehouse, district, name.as_str()])?;
        middle(&found)
            .ok_or_else(|| missing(format!("customer {name} of warehouse {warehouse}, district {district}")))
    }
}

/// The error if a required row is missing: the database is damaged or has another size.
fn missing(what: String) -> SqlError {
    SqlError { class: Class::Transaction, message: format!("missing row: {what}") }
}

/// The customer at position n/2 of n, rounded up, counted from one.
fn middle(customers: &[(u32,)]) -> Option<u32> {
    customers.get(customers.len().div_ceil(2).checked_sub(1)?).map(|customer| customer.0)
}

impl Client for Terminal {
    fn choose(&mut self) -> usize {
        let input = self.inputs.draw();
        self.kind = input.kind();
        self.chosen = Some(input);
        self.kind
    }

    fn pause_before(&mut self) -> Duration {
        self.waits.as_ref().map_or(Duration::ZERO, |_| wait_times::keying(self.kind))
    }

    fn pause_after(&mut self) -> Duration {
        self.waits.as_mut().map_or(Duration::ZERO, |random| wait_times::think(self.kind, random))
    }

    fn execute(&mut self) -> Result<Outcome, Failure> {
        let input = self.chosen.take().expect("choose comes before execute");
        retry(self, |terminal| &mut *terminal.session, |terminal| terminal.attempt(&input))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_customer_is_rounded_up() {
        assert_eq!(middle(&[]), None);
        assert_eq!(middle(&[(11,)]), Some(11));
        assert_eq!(middle(&[(11,), (12,)]), Some(11));
        assert_eq!(middle(&[(11,), (12,), (13,)]), Some(12));
        assert_eq!(middle(&[(11,), (12,), (13,), (14,)]), Some(12));
    }
}
