//! One transaction, tried until it ends.

use std::time::Duration;

use crate::sql::{Class, Session, SqlError};
use crate::workload::{Failure, Outcome};

/// A transaction that loses this many times in a row fails.
const MAXIMUM_RETRIES: u32 = 100;

/// The attempt says how long it waited for COMMIT. It must ask for the same rows each time.
///
/// # Errors
/// The server refused it for good.
pub(crate) fn until_it_ends(
    session: &mut dyn Session,
    mut attempt: impl FnMut(&mut dyn Session) -> Result<Duration, SqlError>,
) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::default();
    loop {
        let error = match attempt(session) {
            Ok(commit_wait) => {
                outcome.commit_wait = commit_wait;
                return Ok(outcome);
            }
            Err(error) if error.class == Class::Fatal => return Err(error.into()),
            Err(error) => error,
        };
        session.rollback()?;
        if error.class != Class::Retry || outcome.retries == MAXIMUM_RETRIES {
            return Err(error.into());
        }
        outcome.retries += 1;
    }
}
