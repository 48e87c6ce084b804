//! The battery of a controller's cache.

use schemars::JsonSchema;
use serde::Deserialize;
use spindle_base::Mistake;

use super::{Change, Kind, of_disk};
use crate::scenario::Scenario;

/// Battery of a controller's cache.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Battery {
    /// Stack of a mount.
    stack: String,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
enum State {
    #[serde(rename = "fails")]
    Fails,
    #[serde(rename = "is replaced")]
    IsReplaced,
}

impl Kind for Battery {
    fn change(&self, scenario: &Scenario) -> Result<Change, Mistake> {
        let is_good = self.state == State::IsReplaced;
        of_disk(scenario, &self.stack, spindle_model::Change::Battery { is_good })
    }
}
