//! What a profile or a ready-made stack is known to get wrong, and why: kept in its file, where its user sees it.

use serde::{Deserialize, Serialize};

use super::ready_made::ready_made;
use super::{PROFILES, Profile};

/// Published figures that it does not meet within the tolerance of `published_raw`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Miss {
    /// Of the figures, as their file spells it.
    pub operation: String,
    /// How the source of the figures begins.
    pub source: String,
    pub reason: String,
}

/// Of a ready-made stack or of a profile inside the binary; none of any other name.
pub fn built_in_misses(name: &str) -> Vec<Miss> {
    if let Some(table) = ready_made(name) {
        return table.misses;
    }
    let is_built_in = PROFILES.iter().any(|(known, _)| *known == name);
    let profile = is_built_in.then(|| Profile::find(name)).and_then(Result::ok);
    profile.map_or_else(Vec::new, |profile| profile.misses)
}
