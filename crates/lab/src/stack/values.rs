//! Reader and writer for values of declared parameters: the single reader of profiles, stack tables and the
//! emulator's input. All keys that are not declared and all invalid values of a table are told at once.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::Deserializer;
use serde::{Deserialize, Serialize};
use spindle_base::Mistake;
use spindle_base::explain::explain;
use spindle_base::near;
use spindle_base::units;
use spindle_model::{Field, Kind, Style, Value, Values, Written};

/// The origin of a value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A text that gives it.
    Source(String),
    /// No text gives it; the reason for this value.
    Assumption(String),
    /// A stack table.
    Given,
    /// A stack table, against the profile or the ready-made stack that it names.
    Override {
        /// `the profile`, or the name of the ready-made stack.
        of: String,
        /// The value there; `None` if it has none.
        instead_of: Option<String>,
        /// [`Origin::Given`], or the table's own source or assumption.
        reason: Box<Origin>,
    },
    /// The default; nothing gives it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Source(source) => write!(formatter, "source: {source}"),
            Origin::Assumption(why) => write!(formatter, "assumption: {why}"),
            Origin::Given => formatter.write_str("given"),
            Origin::Default => formatter.write_str("default"),
            Origin::Override { of, instead_of, reason } => {
                write!(formatter, "{reason}; {of} has {}", instead_of.as_deref().unwrap_or("none"))
            }
        }
    }
}

/// A value of a table.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// As written in the table.
    pub(super) written: String,
    pub(super) origin: Origin,
}

impl Entry {
    /// The value as a sentence in the assumptions of a stack, if no text gives it.
    pub(super) fn assumption(&self, key: &str) -> Option<String> {
        let why = match &self.origin {
            Origin::Assumption(why) => why.clone(),
            Origin::Override { of, instead_of, reason } => {
                let why = match &**reason {
                    Origin::Assumption(why) => format!(" ({why})"),
                    Origin::Source(source) => format!(" (source: {source})"),
                    _ => String::new(),
                };
                let other = instead_of.as_deref().unwrap_or("none");
                format!("set by the scenario{why}; {of} has {other}")
            }
            Origin::Source(_) | Origin::Given | Origin::Default => return None,
        };
        Some(format!("{key} = {}: {why}", self.written))
    }
}

pub(super) type Entries = BTreeMap<String, Entry>;

/// Form of the values in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// `key = value`.
    Plain,
    /// `key = { value = ..., source = "..." }`, or `assumption`.
    Sourced,
    /// One or the other.
    Either,
}

/// Reads a table of declared keys. `others` are keys that are read elsewhere.
///
/// # Errors
/// Every key that is not declared, and every value that is invalid.
pub(super) fn read<'de, D>(
    table: D,
    form: Form,
    fields: &[Field],
    others: &[&str],
) -> Result<Entries, Mistake>
where
    D: Deserializer<'de>,
{
    let table = toml::Table::deserialize(table).map_err(|error| Mistake::new(error.to_string()))?;
    let known: Vec<&str> =
        fields.iter().map(|field| field.key.as_ref()).chain(others.iter().copied()).collect();
    let mut mistakes = Vec::new();
    let mut entries = Entries::new();
    for (key, written) in table {
        match fields.iter().find(|field| field.key == key) {
            None => mistakes.push(Mistake::at(&key, format!("unknown key{}", near::hint(&key, &known)))),
            Some(field) => match entry(form, field, written) {
                Ok(entry) => _ = entries.insert(key, entry),
                Err(mistake) => mistakes.push(mistake.under(&key)),
            },
        }
    }
    Mistake::all(mistakes).map_or(Ok(entries), Err)
}

/// The values without their origins.
pub(super) fn values(entries: &Entries) -> Values {
    entries.iter().map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
}

/// Values in the smallest units, by their keys: equal texts, equal values.
pub(super) fn canonical(fields: &[Field], values: &Values) -> BTreeMap<String, serde_json::Value> {
    let of_field = |field: &Field| {
        let written = field.written(values.get(field.key.as_ref())?, Style::Canonical);
        Some((field.key.clone().into_owned(), json(&written)))
    };
    fields.iter().filter_map(of_field).collect()
}

fn json(written: &Written) -> serde_json::Value {
    match written {
        Written::Text(text) => text.as_str().into(),
        Written::Number(number) => (*number).into(),
        Written::Switch(on) => (*on).into(),
        Written::List(items) => items.iter().map(json).collect(),
    }
}

/// The value in TOML's syntax.
pub fn toml_text(written: &Written) -> String {
    match written {
        Written::Text(text) => toml::Value::from(text.as_str()).to_string(),
        Written::List(items) => {
            format!("[{}]", items.iter().map(toml_text).collect::<Vec<_>>().join(", "))
        }
        Written::Number(_) | Written::Switch(_) => written.to_string(),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sourced {
    value: toml::Value,
    source: Option<String>,
    assumption: Option<String>,
}

fn entry(form: Form, field: &Field, written: toml::Value) -> Result<Entry, Mistake> {
    let (value, origin) = match (form, written) {
        (Form::Sourced | Form::Either, table @ toml::Value::Table(_)) => {
            let Sourced { value, source, assumption } =
                Sourced::deserialize(table).map_err(|error| explain("", error.message()))?;
            (value, origin(source, assumption).map_err(Mistake::new)?)
        }
        (Form::Sourced, value) => {
            let right = format!("{} = {{ value = {value}, source = \"...\" }}", field.key);
            let words = format!(
                "needs its origin; write `{right}`, or `assumption = \"why\"` in place of the source"
            );
            return Err(Mistake::new(words));
        }
        (Form::Plain | Form::Either, value) => (value, Origin::Given),
    };
    let written = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let value = parse(field, &value).map_err(Mistake::new)?;
    Ok(Entry { value, written, origin })
}

/// Requires an origin: an unverifiable number must not pass for a fact.
fn origin(source: Option<String>, assumption: Option<String>) -> Result<Origin, &'static str> {
    match (source, assumption) {
        (Some(source), None) if source.contains("UNVERIFIED") => {
            Err("has an unverified source: say `assumption` instead of `source`")
        }
        (Some(source), None) if !source.trim().is_empty() => Ok(Origin::Source(source.trim().to_owned())),
        (None, Some(assumption)) if !assumption.trim().is_empty() => {
            Ok(Origin::Assumption(assumption.trim().to_owned()))
        }
        (None, None) => Err("needs a `source`, or an `assumption` that says why this value"),
        (Some(_), Some(_)) => Err("has both a `source` and an `assumption`, must have one of them"),
        _ => Err("has an empty `source` or `assumption`"),
    }
}

fn parse(field: &Field, written: &toml::Value) -> Result<Value, String> {
    if let Some(text) = written.as_str() {
        if let Some(word) = field.words.iter().find(|word| **word == text) {
            return Ok(Value::Word(word));
        }
        if let Some((_, number)) = field.names.iter().find(|(name, _)| *name == text) {
            return Ok(Value::Number(*number));
        }
    }
    match field.kind {
        Kind::Choice => Err(format!("{written} must be one of \"{}\"", field.words.join("\", \""))),
        Kind::Switch => {
            let on = written.as_bool();
            on.map(Value::Switch).ok_or_else(|| format!("`{written}` must be true or false, without quotes"))
        }
        Kind::Name => {
            let name = written.as_str();
            name.map(|name| Value::Name(name.to_owned())).ok_or_else(|| format!("`{written}` must be a text"))
        }
        Kind::List => rows(field, written).map(Value::List),
        kind => number(kind, written).map(Value::Number).map_err(|problem| match field.words {
            [] => problem,
            words => format!("{problem}; or one of \"{}\"", words.join("\", \"")),
        }),
    }
}

/// Reads a list. If its rows have one value, a bare value is a list of one.
fn rows(field: &Field, written: &toml::Value) -> Result<Vec<Vec<u64>>, String> {
    let row = |written: &toml::Value| match (field.columns, written.as_array()) {
        ([kind], None) => Ok(vec![number(*kind, written)?]),
        (kinds, Some(cells)) if cells.len() == kinds.len() && kinds.len() > 1 => {
            kinds.iter().zip(cells).map(|(kind, cell)| number(*kind, cell)).collect()
        }
        (kinds, _) => {
            let example = |kind: &Kind| format!("{:?}", unit(*kind).map_or("1", |(_, example)| example));
            let examples: Vec<String> = kinds.iter().map(example).collect();
            Err(format!("`{written}` must be a list of entries such as [{}]", examples.join(", ")))
        }
    };
    match written.as_array() {
        Some(rows) => rows.iter().map(row).collect(),
        None => Ok(vec![row(written)?]),
    }
}

type Parse = fn(&str) -> Result<u64, String>;

/// The reader of numbers with a unit, and an example; `None` for a kind without a unit.
fn unit(kind: Kind) -> Option<(Parse, &'static str)> {
    match kind {
        Kind::Size => Some((units::parse_size_bytes, "20 GiB")),
        Kind::Duration => Some((units::parse_duration_ns, "8.5 ms")),
        Kind::Rate => Some((units::parse_rate_bytes_per_s, "250 MB/s")),
        Kind::Rotation => Some((units::parse_rotations_per_minute, "7200 rpm")),
        Kind::Percent => Some((units::parse_percent, "50 %")),
        Kind::Share => Some((units::parse_share_per_million, "0.5 %")),
        _ => None,
    }
}

/// Reads a number in the unit of its kind.
fn number(kind: Kind, written: &toml::Value) -> Result<u64, String> {
    match (unit(kind), written.as_str()) {
        (Some((parse, _)), Some(text)) => parse(text),
        (Some((_, example)), None) => {
            Err(format!("`{written}` has no unit; write for example \"{example}\""))
        }
        (None, _) => written
            .as_integer()
            .and_then(|count| u64::try_from(count).ok())
            .ok_or_else(|| format!("`{written}` is not a whole number, zero or above, without quotes")),
    }
}
