//! Retries of transactions that conflict with others.

use std::time::Duration;

use super::{Failure, Outcome};
use crate::sql::{Class, Session, SqlError};

/// A transaction that conflicts this many times in a row fails.
const MAXIMUM_RETRIES: u32 = 100;

/// Repeats a transaction until an attempt succeeds or fails for good. Each attempt follows a rollback of the
/// one before.
pub(crate) fn retry<Client: ?Sized>(
    client: &mut Client,
    session: impl Fn(&mut Client) -> &mut dyn Session,
    mut attempt: impl FnMut(&mut Client) -> Result<Outcome, SqlError>,
) -> Result<Outcome, Failure> {
    let mut retries = 0;
    loop {
        let error = match attempt(client) {
            Ok(outcome) => return Ok(Outcome { retries, ..outcome }),
            Err(error) if error.class == Class::Fatal => return Err(error.into()),
            Err(error) => error,
        };
        session(client).rollback()?;
        if error.class != Class::Retry || retries == MAXIMUM_RETRIES {
            return Err(error.into());
        }
        retries += 1;
    }
}

/// As [`retry`], with a session only. The attempt returns its wait for COMMIT, as [`Outcome::commit_wait`].
/// It must access the same rows each time.
pub(crate) fn until_it_ends(
    session: &mut dyn Session,
    mut attempt: impl FnMut(&mut dyn Session) -> Result<Option<Duration>, SqlError>,
) -> Result<Outcome, Failure> {
    retry(
        session,
        |session| session,
        |session| attempt(session).map(|commit_wait| Outcome { commit_wait, ..Outcome::default() }),
    )
}
