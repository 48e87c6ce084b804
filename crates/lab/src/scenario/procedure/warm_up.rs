//! `[run] warm_up`: a time of load, or load until the server's cache is warm.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use spindle_base::{Mistake, text};

use crate::record::StartState;
use crate::scenario::file::{DurationText, RunTable};

/// Unless the scenario says otherwise.
const AT_MOST: Duration = Duration::from_secs(5 * 60);

const UNTIL_WARM: &str = "until warm";

/// The value of `warm_up` as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(in crate::scenario) enum Written {
    For(Duration),
    UntilWarm,
}

impl TryFrom<String> for Written {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.trim() {
            UNTIL_WARM => Ok(Written::UntilWarm),
            _ => DurationText::try_from(text).map(|DurationText(duration)| Written::For(duration)),
        }
    }
}

impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "WarmUp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string", "format": "duration" }, { "const": UNTIL_WARM }] })
    }
}

/// Load before the settling and the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum WarmUp {
    For(Duration),
    UntilWarm { until_warm_at_most: Duration },
}

impl WarmUp {
    /// The longest time of it.
    pub fn most(self) -> Duration {
        match self {
            WarmUp::For(duration) => duration,
            WarmUp::UntilWarm { until_warm_at_most } => until_warm_at_most,
        }
    }

    pub fn is_until_warm(self) -> bool {
        matches!(self, WarmUp::UntilWarm { .. })
    }

    /// The value in words, with its bound.
    pub fn words(self) -> String {
        match self {
            WarmUp::For(duration) => text::duration(duration),
            WarmUp::UntilWarm { until_warm_at_most } => {
                format!("{UNTIL_WARM}, at most {}", text::duration(until_warm_at_most))
            }
        }
    }
}

/// `unless_given` is the warm-up of a scenario that has none.
pub(super) fn rule(run: &RunTable, start: StartState, unless_given: Duration) -> Result<WarmUp, Mistake> {
    let is_until_warm = run.warm_up == Some(Written::UntilWarm);
    if is_until_warm && start != StartState::WarmFast {
        let message = format!(
            "\"{UNTIL_WARM}\" needs start = \"warm-fast\": on the emulated storage it can take hours; give a time"
        );
        return Err(Mistake::at("run.warm_up", message));
    }
    match (run.warm_up, run.warm_up_at_most) {
        (Some(Written::UntilWarm), at_most) => {
            let at_most = at_most.map_or(AT_MOST, |DurationText(duration)| duration);
            let until_warm_at_most = super::bounded("warm_up_at_most", at_most, Duration::from_secs(1))?;
            Ok(WarmUp::UntilWarm { until_warm_at_most })
        }
        (_, Some(_)) => {
            let message = format!("has no meaning unless warm_up = \"{UNTIL_WARM}\"; leave it out");
            Err(Mistake::at("run.warm_up_at_most", message))
        }
        (Some(Written::For(duration)), None) => {
            super::bounded("warm_up", duration, Duration::ZERO).map(WarmUp::For)
        }
        (None, None) => super::bounded("warm_up", unless_given, Duration::ZERO).map(WarmUp::For),
    }
}
