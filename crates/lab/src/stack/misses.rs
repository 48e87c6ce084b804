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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackFile;

    const STACK: &str = "[stacks.pair]\nlayer = \"raid\"\nlevel = 1\non = \"null\"\nmembers = 2\n\
        [[stacks.pair.misses]]\noperation = \"fsync\"\nsource = \"a sheet\"\nreason = \"Nobody knows.\"\n";

    #[test]
    fn a_stack_keeps_its_misses_on_the_way_to_another_process() {
        let stack = StackFile::parse("mine.toml", STACK).unwrap().resolve("mine.toml", "pair").unwrap();
        let read = StackFile::parse("its text", &stack.to_stack_file()).unwrap();
        let expected = Miss {
            operation: "fsync".to_owned(),
            source: "a sheet".to_owned(),
            reason: "Nobody knows.".to_owned(),
        };
        assert_eq!(read.stacks["pair"].misses, [expected]);
    }

    #[test]
    fn a_miss_without_a_reason_is_refused() {
        let text = STACK.replace("reason = \"Nobody knows.\"\n", "");
        let sentence = StackFile::parse("mine.toml", &text).unwrap_err().to_string();
        assert!(sentence.contains("missing field `reason`"), "{sentence}");
    }

    #[test]
    fn a_name_that_is_not_built_in_has_no_misses() {
        assert_eq!(built_in_misses("nowhere"), []);
        assert!(!built_in_misses("micron7300-pro").is_empty());
    }
}
