//! Parameters of a device that a stack table may override.

use spindle_base::Mistake;
use spindle_model::{Field, Invalid, Parameters, Style};

use crate::stack::profile::Profile;
use crate::stack::values::{self, Entries, Entry, Origin};

/// The parameters of a device that a stack table may give, by the table's keys.
pub(super) fn of_table(fields: &[Field]) -> Vec<Field> {
    let of_table = |field: &Field| {
        let (key, _) = field.of_table?;
        Some(Field { key: key.into(), ..field.clone() })
    };
    fields.iter().filter_map(of_table).collect()
}

/// The parameters of a profile with the stack table's overrides, and a sentence for each override.
pub(super) fn overridden(
    profile: &Profile,
    fields: &[Field],
    own: &Entries,
) -> Result<(Parameters, Entries, String), Mistake> {
    let mut entries = profile.entries.clone();
    let mut told = String::new();
    let mut last_key = "profile";
    for field in fields {
        let Some((key, sentence)) = field.of_table else { continue };
        let Some(entry) = own.get(key) else { continue };
        let entry = Entry { origin: Origin::Given, ..entry.clone() };
        if field.default.as_ref() != Some(&entry.value) {
            let value = field.written(&entry.value, Style::Shortest).to_string();
            told.push_str(&format!(" {}", sentence.replace("{}", &value)));
        }
        entries.insert(field.key.clone().into_owned(), entry);
        last_key = key;
    }
    let refused = |invalid: Invalid| {
        let of_table =
            fields.iter().filter(|field| field.key == invalid.key).find_map(|field| field.of_table);
        match of_table {
            Some((key, _)) => Mistake::at(key, invalid.problem),
            None => Mistake::at(last_key, format!("does not fit the profile, whose {invalid}")),
        }
    };
    let kind = profile.parameters.kind();
    let parameters = Parameters::from_values(kind, values::values(&entries)).map_err(refused)?;
    Ok((parameters, entries, told))
}
