//! `[run] until`: trials are repeated until each ratio is known as precisely as asked, or the time is up.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use spindle_base::{Mistake, units};

use super::span::DurationOr;
use crate::record::Until;
use crate::scenario::file::{Once, RunTable};

/// Unless the scenario says otherwise.
const HALF_WIDTH: f64 = 0.1;
const AT_MOST: Duration = Duration::from_secs(40 * 60);

/// Half-width of an interval as a share of the ratio, such as `"10 %"`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub(in crate::scenario) struct HalfWidth(f64);

impl TryFrom<String> for HalfWidth {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match units::parse_share_per_million(&text)? {
            per_million @ 1_000..=1_000_000 => Ok(HalfWidth(per_million as f64 / 1e6)),
            _ => Err(format!("{} is out of range; it can be 0.1 % to 100 %", text.trim())),
        }
    }
}

impl JsonSchema for HalfWidth {
    fn schema_name() -> Cow<'static, str> {
        "HalfWidth".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "half-width" })
    }
}

/// `None` if the scenario says how many trials there are.
pub(in crate::scenario) fn rule(run: &RunTable) -> Result<Option<Until>, Mistake> {
    let is_window = run.measure != DurationOr::Else(Once);
    match (run.trials, run.until) {
        (Some(_), Some(_)) => Err(Mistake::at(
            "run.until",
            "decides how many trials there are; leave out either `until` or `trials`",
        )),
        (Some(_), None) => Ok(None),
        (None, until) => {
            let at_most = run.at_most.filter(|_| is_window).map_or(AT_MOST, |written| written.0);
            let half_width = until.map_or(HALF_WIDTH, |HalfWidth(share)| share);
            Ok(Some(Until { half_width, at_most_s: at_most.as_secs_f64() }))
        }
    }
}
