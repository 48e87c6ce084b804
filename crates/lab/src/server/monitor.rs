//! A connection that asks a server about itself.

use std::collections::BTreeMap;
use std::fmt::Debug;

use anyhow::{Result, bail};
use spindle_load::Endpoint;
use spindle_load::sql::describe;

use super::{mysql, postgres};

pub(super) trait Monitor: Debug {
    /// See [`super::Running::settings`].
    fn settings(&mut self, names: &[String]) -> Result<BTreeMap<String, String>>;

    /// See [`super::Running::counters`].
    fn counters(&mut self) -> Result<BTreeMap<String, f64>>;
}

/// By whichever protocol the endpoint is of.
pub(super) fn connect(endpoint: &Endpoint) -> Result<Box<dyn Monitor>> {
    Ok(match endpoint {
        Endpoint::MysqlSocket { .. } | Endpoint::MysqlTcp { .. } => {
            Box::new(mysql::Monitor::connect(endpoint)?)
        }
        Endpoint::PostgresSocket { .. } | Endpoint::PostgresTcp { .. } => {
            Box::new(postgres::Monitor::connect(endpoint)?)
        }
        Endpoint::Sqlite { .. } | Endpoint::Directory { .. } | Endpoint::Mock => {
            bail!("{} is no server", describe(endpoint))
        }
    })
}
