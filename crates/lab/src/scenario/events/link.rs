//! The link between the two sides of a replicated device.

use schemars::JsonSchema;
use serde::Deserialize;
use spindle_base::Mistake;

use super::{Change, Kind, of_disk};
use crate::scenario::Scenario;

/// Link of a replicated device.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Link {
    /// Stack of a mount.
    stack: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
enum State {
    #[serde(rename = "breaks")]
    Breaks,
    #[serde(rename = "is restored")]
    IsRestored,
}

impl Kind for Link {
    fn change(&self, scenario: &Scenario) -> Result<Change, Mistake> {
        let is_up = self.state == State::IsRestored;
        of_disk(scenario, &self.stack, spindle_model::Change::Link { is_up })
    }
}
