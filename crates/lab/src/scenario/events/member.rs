//! A member of an array.

use schemars::JsonSchema;
use serde::Deserialize;
use spindle_base::Mistake;

use super::{Change, Kind, of_disk};
use crate::scenario::Scenario;

/// Member of an array.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario) struct Member {
    /// Stack of a mount.
    stack: String,
    /// From 1, in the order of the stack's table.
    #[schemars(range(min = 1))]
    number: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Deserialize, JsonSchema)]
enum State {
    #[serde(rename = "fails")]
    Fails,
    #[serde(rename = "is replaced")]
    IsReplaced,
}

impl Kind for Member {
    fn change(&self, scenario: &Scenario) -> Result<Change, Mistake> {
        let member = self.number.saturating_sub(1);
        let change = match self.state {
            State::Fails => spindle_model::Change::MemberFails(member),
            State::IsReplaced => spindle_model::Change::MemberIsReplaced(member),
        };
        of_disk(scenario, &self.stack, change)
    }
}
