//! Values that a stack table sets against its profile or its ready-made stack.

use spindle_base::Mistake;
use spindle_model::{Field, Style, Value};

use crate::stack::values::{Entries, Entry, Origin};

/// An override: the field, and its entry with the origin [`Origin::Override`].
pub(super) type Override<'a> = (&'a Field, Entry);

/// `of` is the profile or the ready-made stack, and `there` its value. `None` if both values are equal and
/// the table gives no reason.
pub(super) fn of<'a>(
    field: &'a Field,
    given: &Entry,
    of: &str,
    there: Option<&Value>,
) -> Option<Override<'a>> {
    if there == Some(&given.value) && given.origin == Origin::Given {
        return None;
    }
    let instead_of = there.map(|value| shortest(field, value));
    let origin = Origin::Override { of: of.to_owned(), instead_of, reason: Box::new(given.origin.clone()) };
    Some((field, Entry { origin, ..given.clone() }))
}

/// The overrides as a sentence after the summary of the stack, or nothing.
pub(super) fn sentence<'a>(overrides: impl IntoIterator<Item = &'a Override<'a>>) -> String {
    let changed = overrides.into_iter().filter_map(|(field, entry)| {
        let Origin::Override { instead_of, .. } = &entry.origin else { return None };
        let value = shortest(field, &entry.value);
        let other = instead_of.as_deref().unwrap_or("none");
        (value != other).then(|| format!("{} = {value} instead of {other}", field.key))
    });
    match changed.collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => none,
        changed => format!(" With {changed}."),
    }
}

/// A table's own entry for a device's parameter, by the key of the profile or by that of stack tables.
///
/// # Errors
/// The table has both keys.
pub(super) fn given<'a>(field: &Field, own: &'a Entries) -> Result<Option<(&'a str, &'a Entry)>, Mistake> {
    let find = |key: &str| own.get_key_value(key).map(|(key, entry)| (key.as_str(), entry));
    let by_table = field.of_table.and_then(|(key, _)| find(key));
    match (by_table, find(&field.key)) {
        (Some((table_key, _)), Some((key, _))) if table_key != key => {
            let message = format!("cannot be there together with `{key}`: both set the same parameter");
            Err(Mistake::at(table_key, message))
        }
        (by_table, by_field) => Ok(by_table.or(by_field)),
    }
}

pub(super) fn shortest(field: &Field, value: &Value) -> String {
    field.written(value, Style::Shortest).to_string()
}
