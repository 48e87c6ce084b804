//! Servers of unknown kinds: servers run by a user's commands, and servers that run already. They are known
//! by their protocol only.

mod adapter;
pub(super) mod commands;
mod running;

use anyhow::{Result, bail};
use spindle_load::{Endpoint, sql};

use super::connection::{Inquiry, Protocol};
use super::{mysql, postgres};
pub(super) use adapter::ADAPTER;
pub(super) use running::RUNNING;

static PROTOCOLS: [&Protocol; 2] = [&mysql::PROTOCOL, &postgres::PROTOCOL];

fn protocol_of(endpoint: &Endpoint) -> Option<&'static Protocol> {
    PROTOCOLS.into_iter().find(|protocol| (protocol.speaks)(endpoint))
}

/// Telemetry of a server at that endpoint; `None` if no known protocol fits.
#[cfg(test)]
pub(crate) fn telemetry_of(endpoint: &Endpoint) -> Option<&'static dyn super::telemetry::Telemetry> {
    protocol_of(endpoint).map(|protocol| protocol.telemetry)
}

/// # Errors
/// The endpoint speaks no known protocol.
fn inquiry(who: &str, endpoint: Endpoint) -> Result<Inquiry> {
    match protocol_of(&endpoint) {
        Some(protocol) => Ok(Inquiry::new(who, endpoint, protocol)),
        None => bail!("{} is not a server", sql::describe(&endpoint)),
    }
}
