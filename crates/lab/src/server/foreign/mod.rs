//! Servers that Spindle does not know by kind: any that a user's commands run, and any that runs already.
//! They are known by the protocol that they answer in, and by nothing else.

pub(super) mod adapter;
pub mod commands;
pub(super) mod running;

use anyhow::{Result, bail};
use spindle_load::{Endpoint, sql};

use super::connection::{Inquiry, Protocol};
use super::{mysql, postgres};

static PROTOCOLS: [&Protocol; 2] = [&mysql::PROTOCOL, &postgres::PROTOCOL];

fn protocol_of(endpoint: &Endpoint) -> Option<&'static Protocol> {
    PROTOCOLS.into_iter().find(|protocol| (protocol.speaks)(endpoint))
}

/// What a server that answers there counts; `None` where nothing could be asked.
#[cfg(test)]
pub(crate) fn telemetry_of(endpoint: &Endpoint) -> Option<&'static dyn super::telemetry::Telemetry> {
    protocol_of(endpoint).map(|protocol| protocol.telemetry)
}

/// # Errors
/// Nothing at that place could be asked.
fn inquiry(who: &str, endpoint: Endpoint) -> Result<Inquiry> {
    match protocol_of(&endpoint) {
        Some(protocol) => Ok(Inquiry::new(who, endpoint, protocol)),
        None => bail!("{} is no server", sql::describe(&endpoint)),
    }
}
