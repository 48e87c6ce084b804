//! One terminal of a workload, and the outcomes of its transactions.

use std::fmt::Debug;
use std::time::Duration;

use crate::sql::{Class, SqlError};

/// One terminal. The runner calls `choose`, notes the time, then calls `execute`.
pub trait Client: Debug + Send {
    /// Draws the next transaction and its input. Returns its index in [`super::Workload::kinds`].
    fn choose(&mut self) -> usize;

    /// Executes the chosen transaction, with its retries.
    fn execute(&mut self) -> Result<Outcome, Failure>;

    /// Fixed work: true when it is done. Untimed steps run here.
    fn is_through(&mut self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// Closed loop: the pause between the choice and its execution.
    fn pause_before(&mut self) -> Duration {
        Duration::ZERO
    }

    /// Closed loop: the pause between the answer and the next choice.
    fn pause_after(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// A transaction that ended as the workload intends, with a commit or a rollback.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rolled back by the workload's own rules.
    pub rolled_back: bool,
    /// Attempts that the server refused (deadlock, lock wait timeout) before the last one.
    pub retries: u32,
    /// Time spent waiting for COMMIT, zero if nothing was written. `None` if the commit is part of a
    /// statement, so that it cannot be timed alone.
    pub commit_wait: Option<Duration>,
    /// User and system CPU time of the client, if the workload reports it.
    pub client_cpu: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// This transaction failed; the next may succeed.
    Transaction(String),
    /// The server is gone, or will refuse every further transaction.
    Fatal(String),
}

impl From<SqlError> for Failure {
    fn from(error: SqlError) -> Failure {
        match error.class {
            Class::Fatal => Failure::Fatal(error.message),
            Class::Retry | Class::Duplicate | Class::Transaction => Failure::Transaction(error.message),
        }
    }
}
