//! A profile that is being written: a built-in one of the same kind, in which what was measured replaces what was assumed.

use std::collections::BTreeMap;

use spindle_model::Parameters;
use toml::Value;

use crate::stack::{PROFILES, Profile};
use spindle_base::Mistake;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    name: String,
    kind: String,
    summary: String,
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    value: Value,
    origin: Origin,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Origin {
    Source(String),
    Assumption(String),
}

impl Draft {
    /// All assumptions, as `template` has them.
    pub(super) fn from_template(name: &str, summary: &str, template: &str) -> Draft {
        let text = PROFILES.iter().find(|(known, _)| *known == template).map_or("", |(_, text)| *text);
        let read: toml::Table = toml::from_str(text).expect("built-in profiles are tested");
        let parameters = read.get("parameters").and_then(Value::as_table).cloned().unwrap_or_default();
        let entries = parameters.into_iter().filter_map(|(key, entry)| {
            let value = entry.get("value")?.clone();
            let origin = Origin::Assumption(format!("Not measured; as in the built-in profile {template}."));
            Some((key, Entry { value, origin }))
        });
        Draft {
            name: name.to_owned(),
            kind: read.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned(),
            summary: summary.to_owned(),
            entries: entries.collect(),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.contains_key(key)
    }

    pub(super) fn value(&self, key: &str) -> Option<&Value> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// Where the template has such a key; models gain and lose parameters.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>, origin: &Origin) {
        if let Some(entry) = self.entries.get_mut(key) {
            *entry = Entry { value: value.into(), origin: origin.clone() };
        }
    }

    pub(super) fn text(&self) -> String {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut text =
            format!("kind = {}\nsummary = {}\n\n[parameters]\n", quoted(&self.kind), quoted(&self.summary));
        for (key, Entry { value, origin }) in &self.entries {
            let (word, sentence) = match origin {
                Origin::Source(sentence) => ("source", sentence),
                Origin::Assumption(sentence) => ("assumption", sentence),
            };
            text.push_str(&format!("{key} = {{ value = {value}, {word} = {} }}\n", quoted(sentence)));
        }
        text
    }

    /// # Errors
    /// The values do not make a device, as a sentence.
    pub(super) fn parameters(&self) -> Result<Parameters, Mistake> {
        Profile::parse(&self.name, &self.name, &self.text()).map(|profile| profile.parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_a_device_of_assumptions() {
        for template in ["hdd-7200", "x25m-80"] {
            let draft = Draft::from_template("mine", "A \"clone\".", template);
            let profile = Profile::parse("mine", "mine", &draft.text()).unwrap();
            let original = Profile::find(template).unwrap();
            assert_eq!(profile.parameters, original.parameters);
            assert_eq!(
                (profile.summary.as_str(), profile.assumptions.len()),
                ("A \"clone\".", draft.entries.len())
            );
        }
    }

    #[test]
    fn what_was_measured_has_a_source() {
        let mut draft = Draft::from_template("mine", "s", "hdd-7200");
        draft.set("seek_average", "7 ms", &Origin::Source("measured".to_owned()));
        draft.set("no_such_parameter", 3, &Origin::Source("measured".to_owned()));
        assert!(draft.text().contains("seek_average = { value = \"7 ms\", source = \"measured\" }\n"));
        assert!(!draft.text().contains("no_such_parameter"));
        assert!(
            matches!(draft.parameters(), Ok(Parameters::Disk(disk)) if disk.seek_average_ns == 7_000_000)
        );
    }
}
