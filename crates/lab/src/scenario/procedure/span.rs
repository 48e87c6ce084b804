//! A duration in a scenario, or words for a rule in its place, which needs a bound.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, Serializer};
use spindle_base::{Mistake, text};

use crate::scenario::file::DurationText;

/// What ends a span that has no fixed length.
pub trait Rule: Copy + Default {
    /// The rule as a scenario has it.
    const WORDS: &'static str;
}

/// The value as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "R: Rule")]
pub(in crate::scenario) enum DurationOr<R> {
    For(Duration),
    Else(R),
}

impl<R: Rule> TryFrom<String> for DurationOr<R> {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text.trim() == R::WORDS {
            return Ok(DurationOr::Else(R::default()));
        }
        DurationText::try_from(text).map(|DurationText(duration)| DurationOr::For(duration))
    }
}

impl<R: Rule> JsonSchema for DurationOr<R> {
    fn schema_name() -> Cow<'static, str> {
        format!("Duration or {}", R::WORDS).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string", "format": "duration" }, { "const": R::WORDS }] })
    }
}

/// A rule of load before the measured window.
pub trait Ending: Rule {
    /// The key of the span. That of its bound is the same with `_at_most`.
    const KEY: &'static str;
    /// The shortest bound.
    const SHORTEST: Duration;
}

/// The bound unless the scenario says otherwise.
const AT_MOST: Duration = Duration::from_secs(5 * 60);

fn bound_key<R: Ending>() -> String {
    format!("{}_at_most", R::KEY)
}

/// Load for a time, or until a rule holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span<R> {
    For(Duration),
    Until { rule: R, at_most: Duration },
}

impl<R: Ending> Span<R> {
    pub(super) fn of(written: DurationOr<R>, at_most: Option<DurationText>) -> Result<Span<R>, Mistake> {
        match (written, at_most) {
            (DurationOr::Else(rule), at_most) => {
                let at_most = at_most.map_or(AT_MOST, |DurationText(at_most)| at_most);
                let at_most = super::bounded(&bound_key::<R>(), at_most, R::SHORTEST)?;
                Ok(Span::Until { rule, at_most })
            }
            (DurationOr::For(_), Some(_)) => {
                let message = format!("has no meaning unless {} = \"{}\"; leave it out", R::KEY, R::WORDS);
                Err(Mistake::at(format!("run.{}", bound_key::<R>()), message))
            }
            (DurationOr::For(duration), None) => {
                super::bounded(R::KEY, duration, Duration::ZERO).map(Span::For)
            }
        }
    }

    /// The longest time of it.
    pub fn most(self) -> Duration {
        match self {
            Span::For(duration) => duration,
            Span::Until { at_most, .. } => at_most,
        }
    }

    pub fn is_ruled(self) -> bool {
        matches!(self, Span::Until { .. })
    }

    /// The value in words, with its bound.
    pub fn words(self) -> String {
        match self {
            Span::For(duration) => text::duration(duration),
            Span::Until { at_most, .. } => format!("{}, at most {}", R::WORDS, text::duration(at_most)),
        }
    }
}

/// For the hash of a scenario.
impl<R: Ending> Serialize for Span<R> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Span::For(duration) => duration.serialize(serializer),
            Span::Until { at_most, .. } => {
                let key = format!("{}_at_most", R::WORDS.replace(' ', "_"));
                serializer.collect_map([(key, at_most)])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Settle, WarmUp};

    #[test]
    fn the_hash_of_a_scenario_has_the_rule_and_its_bound() {
        fn check<R: Ending>(span: Span<R>, expect: &str) {
            assert_eq!(serde_json::to_string(&span).unwrap(), expect);
        }
        let at_most = Duration::from_secs(300);
        let until = |name: &str| format!(r#"{{"{name}":{{"secs":300,"nanos":0}}}}"#);
        check(Settle::For(at_most), r#"{"secs":300,"nanos":0}"#);
        check(Settle::Until { rule: Default::default(), at_most }, &until("until_steady_at_most"));
        check(WarmUp::Until { rule: Default::default(), at_most }, &until("until_warm_at_most"));
    }
}
