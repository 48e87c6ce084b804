//! Reads parameters one by one, keeps what is assumed, and complains about what is left over.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use toml::Value;

use super::Complaint;
use spindle_base::near::did_you_mean;
use spindle_base::units;
use strsim::osa_distance;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Entry {
    value: Value,
    source: Option<String>,
    assumption: Option<String>,
}

#[derive(Debug)]
pub(super) struct Reader {
    entries: BTreeMap<String, Entry>,
    known: BTreeSet<&'static str>,
    assumptions: Vec<String>,
}

impl Reader {
    pub(super) fn new(entries: BTreeMap<String, Entry>) -> Reader {
        Reader { entries, known: BTreeSet::new(), assumptions: Vec::new() }
    }

    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<T, Complaint> {
        let complain = |message: &str| (key.to_owned(), message.to_owned());
        self.known.insert(key);
        let Some(entry) = self.entries.remove(key) else {
            // A misspelt key is both missing and left over; the second complaint helps more.
            return Err(self.misspelt(key).unwrap_or_else(|| complain("is missing")));
        };
        let value = parse(&entry.value).map_err(|message| complain(&message))?;
        match (entry.source, entry.assumption) {
            (Some(source), None) if source.contains("UNVERIFIED") => {
                Err(complain("has an unverified source: say `assumption` instead of `source`"))
            }
            (Some(source), None) if !source.trim().is_empty() => Ok(value),
            (None, Some(assumption)) if !assumption.trim().is_empty() => {
                let written = entry.value.as_str().map_or_else(|| entry.value.to_string(), str::to_owned);
                self.assumptions.push(format!("{key} = {written}: {}", assumption.trim()));
                Ok(value)
            }
            (None, None) => Err(complain("needs a `source`, or an `assumption` that says why this value")),
            (Some(_), Some(_)) => {
                Err(complain("has both a `source` and an `assumption`, must have one of them"))
            }
            _ => Err(complain("has an empty `source` or `assumption`")),
        }
    }

    /// Whether the file has one of the keys, which all are known from then on.
    pub(super) fn has_any(&mut self, keys: &[&'static str]) -> bool {
        self.known.extend(keys);
        keys.iter().any(|key| self.entries.contains_key(*key))
    }

    fn misspelt(&self, key: &str) -> Option<Complaint> {
        let near = self.entries.keys().find(|other| osa_distance(other, key) <= 2)?;
        Some((near.clone(), format!("is unknown; did you mean `{key}`?")))
    }

    /// The assumptions, when every key was known.
    pub(super) fn finish(self) -> Result<Vec<String>, Complaint> {
        match self.entries.into_keys().next() {
            Some(key) => {
                let known: Vec<&str> = self.known.into_iter().collect();
                let message = match known.len() {
                    0 => "is unknown; this kind of device has no parameters".to_owned(),
                    _ => format!("is unknown{}; known are {}", did_you_mean(&key, &known), known.join(", ")),
                };
                Err((key, message))
            }
            None => Ok(self.assumptions),
        }
    }
}

fn text<T>(value: &Value, example: &str, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, String> {
    match value.as_str() {
        Some(text) => parse(text),
        None => Err(format!("`{value}` has no unit; write for example \"{example}\"")),
    }
}

pub(super) fn size(value: &Value) -> Result<u64, String> {
    text(value, "20 GiB", units::parse_size_bytes)
}

pub(super) fn duration(value: &Value) -> Result<u64, String> {
    text(value, "8.5 ms", units::parse_duration_ns)
}

pub(super) fn rate(value: &Value) -> Result<u64, String> {
    text(value, "250 MB/s", units::parse_rate_bytes_per_s)
}

pub(super) fn rotation(value: &Value) -> Result<u64, String> {
    text(value, "7200 rpm", |text| suffixed(text, "rpm", "7200 rpm"))
}

pub(super) fn percent(value: &Value) -> Result<u64, String> {
    text(value, "50 %", |text| suffixed(text, "%", "50 %"))
}

pub(super) fn share_per_million(value: &Value) -> Result<u64, String> {
    text(value, "0.5 %", units::parse_share_per_million)
}

fn suffixed(text: &str, unit: &str, example: &str) -> Result<u64, String> {
    text.trim()
        .strip_suffix(unit)
        .and_then(|number| number.trim().parse().ok())
        .ok_or_else(|| format!("`{text}` is not a whole number of {unit}; write for example \"{example}\""))
}

pub(super) fn count(value: &Value) -> Result<u64, String> {
    value
        .as_integer()
        .and_then(|count| u64::try_from(count).ok())
        .ok_or_else(|| format!("`{value}` is not a whole number, zero or above, without quotes"))
}

pub(super) fn boolean(value: &Value) -> Result<bool, String> {
    value.as_bool().ok_or_else(|| format!("`{value}` must be true or false, without quotes"))
}

pub(super) fn choice(value: &Value, names: &[&str]) -> Result<String, String> {
    match value.as_str() {
        Some(name) if names.contains(&name) => Ok(name.to_owned()),
        _ => Err(format!("{value} must be one of \"{}\"", names.join("\", \""))),
    }
}
