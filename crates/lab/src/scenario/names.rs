//! Names of a scenario's tables, and of those that the matrix names.

use std::collections::{BTreeMap, BTreeSet};

use spindle_base::Mistake;
use spindle_base::near;

use crate::stack::suggestion;

/// Names become file names, axis labels and parts of `hdd/mariadb`.
pub(super) fn check<T>(table: &str, named: &BTreeMap<String, T>) -> Result<(), Mistake> {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    match named.keys().find(|name| name.is_empty() || name.len() > 40 || !name.chars().all(fits)) {
        Some(name) => {
            let message = "a name has 1 to 40 letters, digits, `-`, `_` or `.`";
            Err(Mistake::at(format!("{table}.{name:?}"), message))
        }
        None => Ok(()),
    }
}

/// The table of that name.
///
/// # Errors
/// There is none: a sentence with the nearest name.
pub(super) fn find<'a, T>(name: &str, table: &str, named: &'a BTreeMap<String, T>) -> Result<&'a T, String> {
    named.get(name).ok_or_else(|| {
        let defined: Vec<&str> = named.keys().map(String::as_str).collect();
        let hint = match table {
            "stacks" => suggestion(name, &defined),
            _ => near::hint(name, &defined),
        };
        format!("`{name}` is not defined under [{table}]{hint}")
    })
}

/// Checks one list of the matrix.
pub(super) fn check_axis<T>(
    axis: &str,
    names: &[String],
    table: &str,
    named: &BTreeMap<String, T>,
) -> Result<(), Mistake> {
    let mistake = |words: String| Mistake::at(format!("matrix.{axis}"), words);
    if names.is_empty() {
        let defined: Vec<&str> = named.keys().map(String::as_str).collect();
        return Err(mistake(format!("is empty; name at least one of {}", near::list(&defined))));
    }
    let mut seen = BTreeSet::new();
    for name in names {
        find(name, table, named).map_err(mistake)?;
        if !seen.insert(name) {
            return Err(mistake(format!("`{name}` is named twice")));
        }
    }
    Ok(())
}
