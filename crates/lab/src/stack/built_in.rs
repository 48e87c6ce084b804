//! Profiles (`profiles/*.toml`) and ready-made stacks (`stacks/*.toml`) in the binary, for use by name.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use itertools::Itertools as _;
use spindle_base::near;

use super::profile::Profile;
use super::table::{StackFile, StackTable};

/// The profiles in the binary, by name: every file in `profiles/`, collected by `build.rs`.
pub const PROFILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/profiles.rs"));

const STACK_FILES: [(&str, &str); 1] = [("arrays", include_str!("../../../../stacks/arrays.toml"))];

static READY_MADE: LazyLock<BTreeMap<String, StackTable>> = LazyLock::new(|| {
    let mut all = BTreeMap::new();
    for (name, text) in STACK_FILES {
        let file = StackFile::parse(&format!("stacks/{name}.toml"), text);
        all.extend(file.unwrap_or_else(|error| panic!("{error}")).stacks);
    }
    all
});

/// A ready-made stack.
pub(super) fn ready_made(name: &str) -> Option<&'static StackTable> {
    READY_MADE.get(name)
}

/// In alphabetical order.
pub fn ready_made_names() -> impl Iterator<Item = &'static str> {
    READY_MADE.keys().map(String::as_str)
}

/// Names of profiles, then of ready-made stacks.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name).chain(ready_made_names())
}

/// A ready-made stack, or a stack of only the profile of that name.
pub fn built_in_stack(name: &str) -> Option<StackTable> {
    let profile = || {
        let is_known = PROFILES.iter().any(|(known, _)| *known == name);
        is_known.then(|| StackTable { profile: Some(name.to_owned()), ..StackTable::default() })
    };
    ready_made(name).cloned().or_else(profile)
}

/// The table of that name: the file's own, a ready-made stack, or a profile alone.
pub(super) fn find(name: &str, tables: &BTreeMap<String, StackTable>) -> Option<StackTable> {
    tables.get(name).cloned().or_else(|| built_in_stack(name))
}

/// Message for an unknown name.
pub(super) fn unknown(name: &str) -> String {
    format!("there is no profile or stack `{name}`{}", suggestion(name, &[]))
}

/// `; did you mean ...?` with the names of `own` tables, profiles and ready-made stacks that the name may
/// stand for; newer devices come first. If there are none, the command that lists all.
pub fn suggestion(name: &str, own: &[&str]) -> String {
    let profiles = PROFILES.iter().filter_map(|(known, _)| Some((*known, Profile::find(known).ok()?)));
    let profiles = profiles.sorted_by_key(|(_, profile)| std::cmp::Reverse(profile.year)).collect_vec();
    let profiles = profiles.iter().map(|(known, profile)| (*known, profile.summary.as_str()));
    let stacks =
        READY_MADE.iter().map(|(known, table)| (known.as_str(), table.label.as_deref().unwrap_or("")));
    let known = own.iter().map(|known| (*known, "")).chain(profiles).chain(stacks);
    match near::did_you_mean_one_of(name, known).as_str() {
        "" if own.is_empty() => "; `spindle disk list` shows them all".to_owned(),
        "" => format!("; known here: {}; `spindle disk list` shows the ready-made ones", near::list(own)),
        meant => meant.to_owned(),
    }
}
