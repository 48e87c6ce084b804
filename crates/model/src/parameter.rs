//! Declaration of parameters: key in files, unit, bounds, default, and the source of the default. All of it
//! stands at the field of the struct ([`declare`](crate::declare)). Readers, checks and printers of
//! parameters use this declaration.
//!
//! Values are plain numbers in the smallest unit of their kind. Parsing text with units is the task of a
//! file's reader. This module only writes such text ([`Field::written`]).

mod declare;
mod part;
mod written;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

pub use part::{Declared, Described, Parameter, Part, Row, value_of};
pub(crate) use part::{choices, optional_group};
pub use written::{Style, Written, format_duration_ns, format_size_bytes};

/// An invalid parameter: its key as spelled in files, its value, and the violated bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    pub key: Cow<'static, str>,
    pub problem: String,
}

impl Invalid {
    pub fn new(key: impl Into<Cow<'static, str>>, problem: impl Into<String>) -> Invalid {
        Invalid { key: key.into(), problem: problem.into() }
    }
}

impl fmt::Display for Invalid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}` {}", self.key, self.problem)
    }
}

impl std::error::Error for Invalid {}

/// The text format of a value, and the unit of its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Bytes: `20 GiB`.
    Size,
    /// Nanoseconds: `8.5 ms`.
    Duration,
    /// Bytes per second: `250 MB/s`.
    Rate,
    /// Rotations per minute: `7200 rpm`.
    Rotation,
    /// Whole percent: `50 %`.
    Percent,
    /// Parts of a million: `0.5 %`.
    Share,
    /// A number without a unit.
    Count,
    /// Operations per second, written without a unit.
    PerSecond,
    /// `true` or `false`.
    Switch,
    /// One of [`Field::words`].
    Choice,
    /// The name of a stack.
    Name,
    /// Rows with one value for each of [`Field::columns`].
    List,
    /// Parameters of a nested struct; the key is the prefix of their keys.
    Group,
}

/// Which numbers within the bounds are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Step {
    #[default]
    Any,
    PowerOfTwo,
    MultipleOf(u64),
    OneOf(&'static [u64]),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A number in the unit of its kind.
    Number(u64),
    Switch(bool),
    Word(&'static str),
    Name(String),
    List(Vec<Vec<u64>>),
}

/// Values by key.
pub type Values = BTreeMap<String, Value>;

/// A parameter as its struct declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub key: Cow<'static, str>,
    pub kind: Kind,
    /// The words of a choice; for a numeric kind, words that may replace the number.
    pub words: &'static [&'static str],
    /// The columns of a list.
    pub columns: &'static [Kind],
    /// Numbers with a name.
    pub names: &'static [(&'static str, u64)],
    pub least: u64,
    pub most: u64,
    pub step: Step,
    pub default: Option<Value>,
    /// The reason for a default without a source.
    pub assumption: Option<&'static str>,
    /// Message for a missing key.
    pub hint: Option<&'static str>,
    pub may_be_absent: bool,
    /// For a device: the stack table's key that overrides the value, and the sentence that states the
    /// override.
    pub of_table: Option<(&'static str, &'static str)>,
    pub doc: String,
}

impl Field {
    /// # Errors
    /// A value out of bounds.
    pub fn check(&self, value: &Value) -> Result<(), Invalid> {
        let Value::Number(number) = *value else { return Ok(()) };
        let said = self.kind.text(number);
        let text = |number| self.kind.text(number);
        let invalid = |problem| Err(Invalid::new(self.key.clone(), problem));
        match self.step {
            Step::OneOf(known) if !known.contains(&number) => {
                let known: Vec<String> = known.iter().copied().map(text).collect();
                let (last, others) = known.split_last().expect("a choice has choices");
                invalid(format!("is {said}, must be {} or {last}", others.join(", ")))
            }
            Step::PowerOfTwo if !number.is_power_of_two() => invalid(format!(
                "is {said}, must be a power of two, {} to {}",
                text(self.least),
                text(self.most)
            )),
            Step::MultipleOf(step) if !number.is_multiple_of(step) => {
                invalid(format!("is {said}, must be a multiple of {}", text(step)))
            }
            Step::OneOf(_) => Ok(()),
            _ => within(self.key.clone(), number, self.least, self.most, self.kind),
        }
    }

    /// The default value as a sentence in the assumptions of a stack.
    pub fn assumed(&self) -> Option<String> {
        let default = self.written(self.default.as_ref()?, Style::Shortest);
        Some(format!("{} = {default}: {}", self.key, self.assumption?))
    }
}

pub(crate) fn within(
    key: impl Into<Cow<'static, str>>,
    value: u64,
    low: u64,
    high: u64,
    kind: Kind,
) -> Result<(), Invalid> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    let [value, low, high] = [value, low, high].map(|number| kind.text(number));
    Err(Invalid::new(key, format!("is {value}, must be {low} to {high}")))
}

pub(crate) fn at_least(
    key: impl Into<Cow<'static, str>>,
    value: u64,
    other_key: &str,
    other: u64,
    kind: Kind,
) -> Result<(), Invalid> {
    if value >= other {
        return Ok(());
    }
    let [value, other] = [value, other].map(|number| kind.text(number));
    Err(Invalid::new(key, format!("is {value}, must be at least `{other_key}`, {other}")))
}

pub(crate) fn at_most(
    key: impl Into<Cow<'static, str>>,
    value: u64,
    other_key: &str,
    other: u64,
    kind: Kind,
) -> Result<(), Invalid> {
    if value <= other {
        return Ok(());
    }
    let [value, other] = [value, other].map(|number| kind.text(number));
    Err(Invalid::new(key, format!("is {value}, must be at most `{other_key}`, {other}")))
}

#[cfg(test)]
mod tests;
