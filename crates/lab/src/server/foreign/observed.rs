//! A server that its own clients use. It is asked for its settings and its counters, and for nothing else.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use spindle_load::{Endpoint, sql};

use super::protocol_of;
use crate::server::connection::Inquiry;
use crate::server::settings::Settings;
use crate::server::telemetry::Telemetry;
use crate::server::telemetry::production::Production;

/// The server's name in sentences.
const WHO: &str = "the server";

/// One connection.
#[derive(Debug)]
pub struct Observed(Inquiry);

impl Observed {
    /// # Errors
    /// The endpoint is no server of a known family, does not answer, or refuses the login.
    pub fn connect(endpoint: Endpoint) -> Result<Observed> {
        let Some(protocol) = protocol_of(&endpoint) else {
            bail!("{} is not a server", sql::describe(&endpoint));
        };
        let mut inquiry = Inquiry::of_server(WHO, endpoint, protocol);
        inquiry.connect()?;
        Ok(Observed(inquiry))
    }

    /// Those that the server has, and shows to us.
    pub fn settings(&mut self, names: &[&str]) -> Result<Settings> {
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        self.0.settings(&names)
    }

    /// Of the whole server. Connects again if the connection has broken.
    pub fn counters(&mut self) -> Result<BTreeMap<String, f64>> {
        self.0.counters()
    }

    pub fn telemetry(&self) -> &'static dyn Telemetry {
        self.0.telemetry()
    }

    pub fn production(&self) -> &'static Production {
        self.0.production()
    }
}
