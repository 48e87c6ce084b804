//! One terminal of a workload, and how its transactions end.

use std::fmt::Debug;
use std::time::Duration;

use crate::sql::{Class, SqlError};

/// One terminal. The runner calls `choose`, notes the time, and calls `execute`.
pub trait Client: Debug + Send {
    /// Draws the next transaction and its input; its index in [`super::Workload::kinds`].
    fn choose(&mut self) -> usize;

    /// Executes what was chosen, with its retries.
    fn execute(&mut self) -> Result<Outcome, Failure>;

    /// Of fixed work: whether nothing is left to choose. What is not timed is done here.
    fn is_through(&mut self) -> Result<bool, Failure> {
        Ok(false)
    }

    /// In the closed loop: between the choice and its execution.
    fn pause_before(&mut self) -> Duration {
        Duration::ZERO
    }

    /// In the closed loop: between the answer and the next choice.
    fn pause_after(&mut self) -> Duration {
        Duration::ZERO
    }
}

/// A transaction that ended as the workload intends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Rolled back because the workload says so.
    pub rolled_back: bool,
    /// Attempts that the server refused (deadlock, lock wait timeout) before the one that ended.
    pub retries: u32,
    /// Time spent waiting for COMMIT, zero where nothing was written; `None` for one that committed within a
    /// statement, which has no stopwatch of its own.
    pub commit_wait: Option<Duration>,
    /// User and system CPU of the client, where it looks at it.
    pub client_cpu: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// This transaction failed; the next may succeed.
    Transaction(String),
    /// The server is gone, or will refuse everything.
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
