//! Servers of unknown kinds: servers run by a user's commands, and servers that run already. They are known
//! by their protocol only.

mod adapter;
pub(super) mod commands;
mod observed;
mod running;

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use spindle_load::{Endpoint, sql};

use super::connection::{Inquiry, Protocol};
use super::settings::Settings;
use super::telemetry::Paging;
use super::{mysql, postgres};
pub(super) use adapter::ADAPTER;
pub use observed::Observed;
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

/// The same for a server in production.
#[cfg(test)]
pub(crate) fn production_of(
    endpoint: &Endpoint,
) -> Option<&'static super::telemetry::production::Production> {
    protocol_of(endpoint).map(|protocol| protocol.production)
}

/// What a server did with pages and its log, by differences of its counters over a window; `version` is its own
/// text. `None` if they are of no known server.
pub(crate) fn paging_of(moved: &BTreeMap<String, f64>, settings: &Settings, version: &str) -> Option<Paging> {
    PROTOCOLS.into_iter().find_map(|protocol| protocol.telemetry.paging(moved, settings, version))
}

/// # Errors
/// The endpoint speaks no known protocol.
fn inquiry(who: &str, endpoint: Endpoint) -> Result<Inquiry> {
    match protocol_of(&endpoint) {
        Some(protocol) => Ok(Inquiry::new(who, endpoint, protocol)),
        None => bail!("{} is not a server", sql::describe(&endpoint)),
    }
}
