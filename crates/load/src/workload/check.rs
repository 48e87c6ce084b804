//! A verification of the database, and the result of one condition over many warehouses or tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One verification of the database.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema, PartialEq, Eq)]
pub struct Check {
    pub name: String,
    pub passed: bool,
    pub detail: String,
}

impl Check {
    /// The result of one condition. `place`: the scope of the check, for example `10 warehouses`.
    pub(crate) fn of(name: &str, place: &str, holds: bool, violation: impl FnOnce() -> String) -> Check {
        let mut violations = Violations::default();
        violations.note(holds, violation);
        violations.check(name, place)
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Violations {
    count: usize,
    first: Option<String>,
}

impl Violations {
    pub(crate) fn note(&mut self, holds: bool, violation: impl FnOnce() -> String) {
        if !holds {
            self.count += 1;
            self.first.get_or_insert_with(violation);
        }
    }

    pub(crate) fn add(&mut self, other: Violations) {
        self.count += other.count;
        if self.first.is_none() {
            self.first = other.first;
        }
    }

    /// `place`: the scope of the check, for example `10 warehouses`.
    pub(crate) fn check(self, name: &str, place: &str) -> Check {
        Check {
            name: name.to_owned(),
            passed: self.count == 0,
            detail: match self.first {
                None => format!("holds in {place}"),
                Some(first) => format!("{} violations, the first: {first}", self.count),
            },
        }
    }
}

impl FromIterator<String> for Violations {
    fn from_iter<T: IntoIterator<Item = String>>(found: T) -> Violations {
        let mut violations = Violations::default();
        found.into_iter().for_each(|violation| violations.note(false, || violation));
        violations
    }
}
