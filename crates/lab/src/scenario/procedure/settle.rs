//! `[run] settle`: a time of load on the emulated storage, or load until it is steady.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use spindle_base::{Mistake, text};
use spindle_stats::settling;

use super::warm_up;
use crate::record::{StartState, spelling};
use crate::scenario::file::{DurationText, Measure, RunTable};

/// Unless the scenario says otherwise.
const AT_MOST: Duration = Duration::from_secs(5 * 60);

const UNTIL_STEADY: &str = "until steady";

/// The value of `settle` as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(in crate::scenario) enum Written {
    For(Duration),
    UntilSteady,
}

impl TryFrom<String> for Written {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.trim() {
            UNTIL_STEADY => Ok(Written::UntilSteady),
            _ => DurationText::try_from(text).map(|DurationText(duration)| Written::For(duration)),
        }
    }
}

impl JsonSchema for Written {
    fn schema_name() -> Cow<'static, str> {
        "Settle".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string", "format": "duration" }, { "const": UNTIL_STEADY }] })
    }
}

/// Load between the warm-up and the measured window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Settle {
    For(Duration),
    UntilSteady { until_steady_at_most: Duration },
}

impl Settle {
    /// The longest time of it.
    pub fn most(self) -> Duration {
        match self {
            Settle::For(duration) => duration,
            Settle::UntilSteady { until_steady_at_most } => until_steady_at_most,
        }
    }

    pub fn is_until_steady(self) -> bool {
        matches!(self, Settle::UntilSteady { .. })
    }

    /// The value in words, with its bound.
    pub fn words(self) -> String {
        match self {
            Settle::For(duration) => text::duration(duration),
            Settle::UntilSteady { until_steady_at_most } => {
                format!("{UNTIL_STEADY}, at most {}", text::duration(until_steady_at_most))
            }
        }
    }
}

/// A run that decides itself how many trials it needs also decides when each is steady, unless the scenario says how
/// long the load is to go on before the window.
fn is_left_to_the_run(run: &RunTable, start: StartState) -> bool {
    let has_window = run.measure != Measure::Once && start != StartState::Cold;
    let has_time = matches!(run.warm_up, Some(warm_up::Written::For(_)));
    has_window && run.trials.is_none() && !has_time
}

pub(super) fn rule(run: &RunTable, start: StartState) -> Result<Settle, Mistake> {
    let meaningless = || {
        let message = format!("has no meaning with start = \"{}\"; leave it out", spelling(&start));
        Err(Mistake::at("run.settle", message))
    };
    let settle = run.settle.or_else(|| is_left_to_the_run(run, start).then_some(Written::UntilSteady));
    match (settle, run.settle_at_most) {
        (Some(_), _) if start == StartState::Cold => meaningless(),
        (Some(Written::UntilSteady), _) if run.measure == Measure::Once => {
            let message =
                "has no meaning with measure = \"once\", before which there is no load; leave it out";
            Err(Mistake::at("run.settle", message))
        }
        (Some(Written::UntilSteady), at_most) => {
            let at_most = at_most.map_or(AT_MOST, |DurationText(duration)| duration);
            let shortest = Duration::from_secs(settling::SHORTEST as u64);
            let until_steady_at_most = super::bounded("settle_at_most", at_most, shortest)?;
            Ok(Settle::UntilSteady { until_steady_at_most })
        }
        (_, Some(_)) => {
            let message = format!("has no meaning unless settle = \"{UNTIL_STEADY}\"; leave it out");
            Err(Mistake::at("run.settle_at_most", message))
        }
        (Some(Written::For(_)), None) if start != StartState::WarmFast => meaningless(),
        (Some(Written::For(duration)), None) => {
            super::bounded("settle", duration, Duration::ZERO).map(Settle::For)
        }
        (None, None) => Ok(Settle::For(Duration::ZERO)),
    }
}
