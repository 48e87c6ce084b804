//! What a parameter is: its key in files, its unit, bounds and default, and where the default comes from. All
//! of that stands at the field of the struct that has it ([`declare`](crate::declare)), and what reads,
//! checks and prints parameters goes by it.
//!
//! Values are plain numbers in the smallest unit of their kind. Texts with units are the business of whoever
//! reads a file; here they are only written ([`Field::written`]).

mod declare;
mod part;
mod written;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

pub use part::{Declared, Parameter, Part, Row, value_of};
pub(crate) use part::{choices, optional_group};
pub use written::{Style, Written, format_duration_ns, format_size_bytes};

/// A parameter that no device can have: the key as a file spells it, what it is, and the bound.
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

/// How a value is written, and what its number counts.
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
    /// A number of operations per second, without a unit.
    PerSecond,
    /// `true` or `false`.
    Switch,
    /// One of [`Field::words`].
    Choice,
    /// The name of a stack.
    Name,
    /// Rows, each with a value for each of [`Field::columns`].
    List,
    /// Parameters of a struct of their own; the key is what their keys begin with.
    Group,
}

impl Kind {
    /// After the number in a sentence about bounds.
    pub fn unit(self) -> &'static str {
        match self {
            Kind::Size => " bytes",
            Kind::Duration => " ns",
            Kind::Rate => " bytes/s",
            Kind::Rotation => " rpm",
            Kind::Percent => " %",
            Kind::Share => " of a million",
            Kind::PerSecond => "/s",
            Kind::Count | Kind::Switch | Kind::Choice | Kind::Name | Kind::List | Kind::Group => "",
        }
    }
}

/// Which numbers within the bounds are meant.
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
    /// In the unit of its kind.
    Number(u64),
    Switch(bool),
    Word(&'static str),
    Name(String),
    List(Vec<Vec<u64>>),
}

/// By their keys.
pub type Values = BTreeMap<String, Value>;

/// A parameter as its struct declares it.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    pub key: Cow<'static, str>,
    pub kind: Kind,
    /// The choices; beside a kind with numbers, words that may stand for one.
    pub words: &'static [&'static str],
    /// Of a list.
    pub columns: &'static [Kind],
    /// Numbers that have a name.
    pub names: &'static [(&'static str, u64)],
    pub least: u64,
    pub most: u64,
    pub step: Step,
    pub default: Option<Value>,
    /// Why the default is what it is, where no source says so.
    pub assumption: Option<&'static str>,
    /// For who left it out.
    pub hint: Option<&'static str>,
    pub may_be_absent: bool,
    /// For a device: the key by which a stack table may give another value, and the sentence that says so.
    pub of_table: Option<(&'static str, &'static str)>,
    pub doc: String,
}

impl Field {
    /// # Errors
    /// A value beyond the bounds.
    pub fn check(&self, value: &Value) -> Result<(), Invalid> {
        let Value::Number(number) = *value else { return Ok(()) };
        let unit = self.kind.unit();
        let invalid = |problem| Err(Invalid::new(self.key.clone(), problem));
        match self.step {
            Step::OneOf(known) if !known.contains(&number) => {
                let known: Vec<String> = known.iter().map(u64::to_string).collect();
                let (last, others) = known.split_last().expect("a choice has choices");
                invalid(format!("is {number}{unit}, must be {} or {last}", others.join(", ")))
            }
            Step::PowerOfTwo if !number.is_power_of_two() => {
                invalid(format!("is {number}{unit}, must be a power of two, {} to {}", self.least, self.most))
            }
            Step::MultipleOf(step) if !number.is_multiple_of(step) => {
                invalid(format!("is {number}{unit}, must be a multiple of {step}"))
            }
            Step::OneOf(_) => Ok(()),
            _ => within(self.key.clone(), number, self.least, self.most, unit),
        }
    }

    /// What it is when its key is left out, as a sentence of the assumptions of a stack.
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
    unit: &str,
) -> Result<(), Invalid> {
    if (low..=high).contains(&value) {
        return Ok(());
    }
    Err(Invalid::new(key, format!("is {value}{unit}, must be {low} to {high}{unit}")))
}

pub(crate) fn at_least(
    key: impl Into<Cow<'static, str>>,
    value: u64,
    other_key: &str,
    other: u64,
    unit: &str,
) -> Result<(), Invalid> {
    if value >= other {
        return Ok(());
    }
    Err(Invalid::new(key, format!("is {value}{unit}, must be at least `{other_key}`, {other}{unit}")))
}

pub(crate) fn at_most(
    key: impl Into<Cow<'static, str>>,
    value: u64,
    other_key: &str,
    other: u64,
    unit: &str,
) -> Result<(), Invalid> {
    if value <= other {
        return Ok(());
    }
    Err(Invalid::new(key, format!("is {value}{unit}, must be at most `{other_key}`, {other}{unit}")))
}

#[cfg(test)]
mod tests;
