//! Known deviations of a profile or a ready-made stack, with their reasons. They are in its file, so that its
//! user sees them.

use serde::{Deserialize, Serialize};

/// A published figure outside the tolerance of `published_raw`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDeviation {
    /// Operation of the figure, as spelled in its file.
    pub operation: String,
    /// Beginning of the source of the figure.
    pub source: String,
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackFile;

    const STACK: &str = "[stacks.pair]\nlayer = \"raid\"\nlevel = 1\non = \"null\"\nmembers = 2\n\
        [[stacks.pair.known_deviations]]\noperation = \"fsync\"\nsource = \"a sheet\"\nreason = \"Nobody knows.\"\n";

    fn read(text: &str) -> Vec<KnownDeviation> {
        StackFile::parse("mine.toml", text).unwrap().stacks["pair"].known_deviations.clone()
    }

    #[test]
    fn known_deviations_are_read_under_the_old_key_too() {
        let expected = KnownDeviation {
            operation: "fsync".to_owned(),
            source: "a sheet".to_owned(),
            reason: "Nobody knows.".to_owned(),
        };
        assert_eq!(read(STACK), [expected]);
        assert_eq!(read(&STACK.replace("known_deviations", "misses")), read(STACK));
    }

    #[test]
    fn a_deviation_without_a_reason_is_refused() {
        let text = STACK.replace("reason = \"Nobody knows.\"\n", "");
        let sentence = StackFile::parse("mine.toml", &text).unwrap_err().to_string();
        assert!(sentence.contains("reason"), "{sentence}");
    }
}
