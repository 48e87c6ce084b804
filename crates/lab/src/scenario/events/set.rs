//! Settings of a server that get new values while it runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use spindle_base::{Mistake, near};

use super::{Change, Kind};
use crate::scenario::Scenario;
use crate::scenario::file::SettingValue;
use crate::server::catalog;

/// New values by the server's own names.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
pub(in crate::scenario) struct Set(BTreeMap<String, SettingValue>);

impl Kind for Set {
    fn change(&self, scenario: &Scenario) -> Result<Change, Mistake> {
        if self.0.is_empty() {
            return Err(Mistake::new("names no setting"));
        }
        let cannot = |name: &&String| !scenario.servers[*name].facts().sets_while_it_runs;
        if let Some(name) = scenario.matrix.server.iter().find(cannot) {
            let known = catalog::names_where(|kind| kind.sets_while_it_runs && !kind.is_for_tests);
            let message = format!(
                "server `{name}` of kind `{}` takes no setting while it runs; {} do",
                scenario.servers[name].kind,
                near::list(&known)
            );
            return Err(Mistake::new(message));
        }
        Ok(Change::Settings(self.0.iter().map(|(name, value)| (name.clone(), value.text())).collect()))
    }
}
