//! The devices and layers of a stack with every parameter, and the differences of two stacks.

use std::fmt::{self, Display, Formatter};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A device or a layer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartHead {
    /// Name of the stack's table or of the profile.
    pub name: String,
    /// Name of the layer, or kind and profile of the device.
    pub kind: String,
    pub parameters: Vec<ParameterHead>,
    /// The parts below a layer, by the keys that name them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub below: Vec<PartBelow>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ParameterHead {
    pub key: String,
    /// With its unit.
    pub value: String,
    /// Whether the stack's table gives it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_given: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PartBelow {
    pub key: String,
    /// Number of identical parts.
    pub count: usize,
    pub part: PartHead,
}

/// A fact in which two stacks differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The key of a parameter in words, or a layer.
    pub name: String,
    /// Values with their units; `None` where there is none.
    pub value: Option<String>,
    pub other: Option<String>,
}

/// `battery out at 0 s instead of none`: the value, and the other's.
impl Display for Difference {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let words = |value: &Option<String>| value.clone().unwrap_or_else(|| "none".to_owned());
        write!(formatter, "{} {} instead of {}", self.name, words(&self.value), words(&self.other))
    }
}

/// The facts in which a stack differs from another of the same structure, or of the same but for layers on
/// top of one of them. `None` for storage of another kind.
pub fn differences(part: &PartHead, other: &PartHead) -> Option<Vec<Difference>> {
    if part.kind == other.kind {
        return same_kind(part, other);
    }
    let below = |part: &PartHead| part.below.first().map(|below| below.part.clone());
    if let Some(found) = below(part).and_then(|below| differences(&below, other)) {
        let layer = Difference { value: Some(part.given()), ..layer(part) };
        return Some([vec![layer], found].concat());
    }
    let found = below(other).and_then(|below| differences(part, &below))?;
    let layer = Difference { other: Some(other.given()), ..layer(other) };
    Some([vec![layer], found].concat())
}

fn layer(part: &PartHead) -> Difference {
    Difference { name: format!("layer {}", part.kind), value: None, other: None }
}

fn same_kind(part: &PartHead, other: &PartHead) -> Option<Vec<Difference>> {
    let keys = |part: &PartHead| part.parameters.iter().map(|row| row.key.clone()).collect::<Vec<_>>();
    let mut all = keys(part);
    all.extend(keys(other).into_iter().filter(|key| part.value(key).is_none()));
    let differs = |key: &String| part.value(key) != other.value(key);
    let mut found: Vec<Difference> = all
        .into_iter()
        .filter(differs)
        .map(|key| Difference {
            value: part.value(&key).map(str::to_owned),
            other: other.value(&key).map(str::to_owned),
            name: key.replace('_', " "),
        })
        .collect();
    let mut keys: Vec<&str> = part.below.iter().map(|below| below.key.as_str()).collect();
    keys.extend(other.below.iter().map(|below| below.key.as_str()));
    keys.sort_unstable();
    keys.dedup();
    for key in keys {
        let at =
            |part: &PartHead| part.below.iter().filter(|below| below.key == key).cloned().collect::<Vec<_>>();
        found.extend(below(key, &at(part), &at(other))?);
    }
    Some(found)
}

/// The differences of the parts at one key.
fn below(key: &str, own: &[PartBelow], others: &[PartBelow]) -> Option<Vec<Difference>> {
    let difference = |value: Option<String>, other: Option<String>| Difference {
        name: key.replace('_', " "),
        value,
        other,
    };
    match (own, others) {
        _ if own == others => Some(Vec::new()),
        ([], _) => Some(vec![difference(None, Some(names(others)))]),
        (_, []) => Some(vec![difference(Some(names(own)), None)]),
        ([one], [other]) => {
            let mut found = differences(&one.part, &other.part)?;
            if one.count != other.count {
                let count = |below: &PartBelow| Some(below.count.to_string());
                let name = "members".to_owned();
                found.push(Difference { name, value: count(one), other: count(other) });
            }
            Some(found)
        }
        // Members that are not alike.
        _ => None,
    }
}

fn names(parts: &[PartBelow]) -> String {
    parts.iter().map(|below| below.part.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl PartHead {
    fn value(&self, key: &str) -> Option<&str> {
        self.parameters.iter().find(|row| row.key == key).map(|row| row.value.as_str())
    }

    /// What the stack's table gives: `(fill 50 %, overwrite 300 %)`.
    fn given(&self) -> String {
        let words = |row: &ParameterHead| format!("{} {}", row.key.replace('_', " "), row.value);
        format!(
            "({})",
            self.parameters.iter().filter(|row| row.is_given).map(words).collect::<Vec<_>>().join(", ")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(kind: &str, parameters: &[(&str, &str)], below: &[(&str, usize, PartHead)]) -> PartHead {
        let parameter = |(key, value): &(&str, &str)| ParameterHead {
            key: (*key).to_owned(),
            value: (*value).to_owned(),
            is_given: true,
        };
        let part_below = |(key, count, part): &(&str, usize, PartHead)| PartBelow {
            key: (*key).to_owned(),
            count: *count,
            part: part.clone(),
        };
        PartHead {
            name: format!("my {kind}"),
            kind: kind.to_owned(),
            parameters: parameters.iter().map(parameter).collect(),
            below: below.iter().map(part_below).collect(),
        }
    }

    #[track_caller]
    fn check(one: &PartHead, other: &PartHead, expect: &[&str]) {
        let found = differences(one, other).expect("of one structure");
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn values_of_equal_keys_are_compared() {
        let [good, dead] = [&[][..], &[("battery_out_at", "0 s")]].map(|given| part("cache", given, &[]));
        check(&dead, &good, &["battery out at 0 s instead of none"]);
        check(&good, &dead, &["battery out at none instead of 0 s"]);
        check(&good, &good, &[]);
    }

    #[test]
    fn parts_below_are_compared() {
        let array =
            |count, cache| part("raid", &[], &[("on", count, part("disk", &[("cache", cache)], &[]))]);
        check(&array(6, "off"), &array(4, "on"), &["cache off instead of on", "members 6 instead of 4"]);
        let log = part("pool", &[], &[("log", 1, part("flash", &[], &[]))]);
        check(&log, &part("pool", &[], &[]), &["log my flash instead of none"]);
    }

    #[test]
    fn a_layer_on_one_of_them_is_a_difference() {
        let drive = part("flash", &[], &[]);
        let used = part("aged", &[("fill", "50 %")], &[("on", 1, drive.clone())]);
        check(&used, &drive, &["layer aged (fill 50 %) instead of none"]);
        check(&drive, &used, &["layer aged none instead of (fill 50 %)"]);
    }

    #[test]
    fn other_kinds_have_no_list_of_differences() {
        assert_eq!(differences(&part("disk", &[], &[]), &part("flash", &[], &[])), None);
    }
}
