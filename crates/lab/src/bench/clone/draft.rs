//! A profile in progress: a built-in profile of the same kind, whose assumptions are replaced by
//! measurements.

use spindle_base::Mistake;
use spindle_model::{Field, Parameters, Style, Value, Values};

use crate::stack::{Origin, Profile, toml_text};

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Draft {
    kind: &'static str,
    summary: String,
    /// The parameters of the template, in the order of their declaration.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    field: Field,
    value: Value,
    origin: Origin,
}

impl Draft {
    /// The parameters of `template`, all as assumptions.
    pub(super) fn from_template(summary: &str, template: &str) -> Draft {
        let parameters = Profile::find(template).expect("built-in profiles are tested").parameters;
        let fields = Parameters::fields_of(parameters.kind()).expect("a kind has fields");
        let values = parameters.values();
        let entry = |field: Field| {
            // A parameter with a default, such as the stroke, does not belong in a profile.
            let value = values.get(field.key.as_ref()).filter(|_| field.default.is_none())?.clone();
            let origin = Origin::Assumption(format!("Not measured; as in the built-in profile {template}."));
            Some(Entry { field, value, origin })
        };
        let entries = fields.into_iter().filter_map(entry).collect();
        Draft { kind: parameters.kind(), summary: summary.to_owned(), entries }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.field.key == key)
    }

    /// The value, in the unit of its kind.
    pub(super) fn number(&self, key: &str) -> Option<u64> {
        match self.entry(key)?.value {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    /// Sets a number in the unit of its kind, if the template has the key.
    pub(super) fn set(&mut self, key: &str, number: u64, origin: &Origin) {
        self.set_value(key, Value::Number(number), origin);
    }

    pub(super) fn set_value(&mut self, key: &str, value: Value, origin: &Origin) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.field.key == key) {
            (entry.value, entry.origin) = (value, origin.clone());
        }
    }

    /// Changes the origin only.
    pub(super) fn set_origin(&mut self, key: &str, origin: &Origin) {
        if let Some(entry) = self.entries.iter_mut().find(|entry| entry.field.key == key) {
            entry.origin = origin.clone();
        }
    }

    pub(super) fn text(&self) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let mut text =
            format!("kind = {}\nsummary = {}\n\n[parameters]\n", quoted(self.kind), quoted(&self.summary));
        for Entry { field, value, origin } in &self.entries {
            let value = toml_text(&field.written(value, Style::Shortest));
            let (word, sentence) = match origin {
                Origin::Source(sentence) => ("source", sentence.as_str()),
                Origin::Assumption(sentence) => ("assumption", sentence.as_str()),
                Origin::Given | Origin::Default | Origin::Override { .. } => ("assumption", "As given."),
            };
            text.push_str(&format!("{} = {{ value = {value}, {word} = {} }}\n", field.key, quoted(sentence)));
        }
        text
    }

    /// # Errors
    /// One sentence why the values do not make a device.
    pub(super) fn parameters(&self) -> Result<Parameters, Mistake> {
        let value = |entry: &Entry| (entry.field.key.clone().into_owned(), entry.value.clone());
        let values: Values = self.entries.iter().map(value).collect();
        Ok(Parameters::from_values(self.kind, values)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_a_device_of_assumptions() {
        for template in ["hdd-7200", "x25m-80"] {
            let draft = Draft::from_template("A \"clone\".", template);
            let profile = Profile::parse("mine", "mine", &draft.text()).unwrap();
            let original = Profile::find(template).unwrap();
            assert_eq!(profile.parameters, original.parameters);
            assert_eq!(draft.parameters().unwrap(), original.parameters);
            assert_eq!(
                (profile.summary.as_str(), profile.assumptions.len()),
                ("A \"clone\".", draft.entries.len())
            );
        }
    }

    #[test]
    fn what_was_measured_has_a_source() {
        let mut draft = Draft::from_template("s", "hdd-7200");
        draft.set("seek_average", 7_000_000, &Origin::Source("measured".to_owned()));
        draft.set("no_such_parameter", 3, &Origin::Source("measured".to_owned()));
        assert!(draft.text().contains("seek_average = { value = \"7 ms\", source = \"measured\" }\n"));
        assert!(!draft.text().contains("no_such_parameter"));
        assert!(
            matches!(draft.parameters(), Ok(Parameters::Disk(disk)) if disk.seek_average_ns == 7_000_000)
        );
    }
}
