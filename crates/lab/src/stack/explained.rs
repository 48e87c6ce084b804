//! A stack with every parameter, its value and its origin.

use serde::Serialize;
use spindle_base::units::format_size_rounded;
use spindle_model::{Field, Style, Values};

use super::profile::endurance::Endurance;
use super::values::{Entries, Origin};
use crate::record::{ParameterHead, PartBelow, PartHead};

/// A device or a layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// Name of its table or of the profile.
    pub name: String,
    /// Name of the layer, or kind of the device.
    pub kind: String,
    pub size_bytes: u64,
    /// `None` for a layer or a real disk.
    #[serde(skip)]
    pub device: Option<DeviceFacts>,
    pub parameters: Vec<Explanation>,
    /// Keys that it can have, and that have no value.
    #[serde(skip)]
    pub unset: Vec<String>,
    /// The devices or layers below, by the keys that name them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<ExplainedBelow>,
}

/// What the profile of a device says besides its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// Name of the profile.
    pub profile: String,
    pub endurance: Option<Endurance>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExplainedBelow {
    pub key: String,
    /// Number of identical stacks.
    pub count: usize,
    pub stack: Explained,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    pub key: String,
    /// With its unit.
    pub value: String,
    pub origin: Origin,
}

/// Explanations in the order of declaration; an absent value has no row. `given` are the values with an
/// origin of their own.
pub(super) fn explanations(fields: &[Field], values: &Values, given: &Entries) -> Vec<Explanation> {
    let explain = |field: &Field| {
        let value = field.written(values.get(field.key.as_ref())?, Style::Shortest).to_string();
        let origin = given.get(field.key.as_ref()).map(|entry| entry.origin.clone());
        let by_default = || match field.assumption {
            Some(why) => Origin::Assumption(why.to_owned()),
            None => Origin::Default,
        };
        Some(Explanation {
            key: field.key.clone().into_owned(),
            value,
            origin: origin.unwrap_or_else(by_default),
        })
    };
    fields.iter().filter_map(explain).collect()
}

/// The keys without a value, in the order of declaration.
pub(super) fn unset(fields: &[Field], values: &Values) -> Vec<String> {
    let is_unset = |field: &&Field| !values.contains_key(field.key.as_ref());
    fields.iter().filter(is_unset).map(|field| field.key.clone().into_owned()).collect()
}

impl Explained {
    /// The explanation in a record, which has the origins of the values as assumptions.
    pub(super) fn part(&self) -> PartHead {
        let parameter = |row: &Explanation| ParameterHead {
            key: row.key.clone(),
            value: row.value.clone(),
            is_given: matches!(row.origin, Origin::Given | Origin::Override { .. }),
        };
        let below = |below: &ExplainedBelow| PartBelow {
            key: below.key.clone(),
            count: below.count,
            part: below.stack.part(),
        };
        PartHead {
            name: self.name.clone(),
            kind: self.kind.clone(),
            parameters: self.parameters.iter().map(parameter).collect(),
            below: self.below.iter().map(below).collect(),
        }
    }

    /// The explanation as text.
    pub fn table(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        let indent = "  ".repeat(depth);
        let size = format_size_rounded(self.size_bytes);
        text.push_str(&format!("{}, {}, {size}\n", self.name, self.kind));
        let width = |of: fn(&Explanation) -> &String| {
            self.parameters.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
        };
        let (key_width, value_width) = (width(|row| &row.key), width(|row| &row.value));
        for Explanation { key, value, origin } in &self.parameters {
            text.push_str(&format!("{indent}  {key:key_width$}  {value:value_width$}  {origin}\n"));
        }
        if !self.unset.is_empty() {
            text.push_str(&format!("{indent}  not set: {}\n", self.unset.join(", ")));
        }
        for (index, ExplainedBelow { key, count, stack }) in self.below.iter().enumerate() {
            if let Some(same) = self.below[..index].iter().find(|earlier| earlier.stack == *stack) {
                text.push_str(&format!("{indent}  {key}: another of the same as `{}`\n", same.key));
                continue;
            }
            let times = if *count > 1 { format!("{count} x ") } else { String::new() };
            text.push_str(&format!("{indent}  {key}: {times}"));
            stack.write(text, depth + 1);
        }
    }
}
