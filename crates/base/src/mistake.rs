//! A mistake of the user: a sentence that names the file or flag, the key and the bound. The program exits
//! with code 2, before any work.

use std::fmt::{self, Display, Formatter};

use spindle_model::Invalid;

/// The place and the problem: `scenario.toml: stacks.hdd.size: 20 XB is not a size`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Mistake {
    /// The file or flag, then the dotted path of a key; empty when the message names the place.
    pub place: String,
    /// The sentence without the place.
    pub message: String,
    /// Further mistakes of the same file. The program prints each on a line of its own.
    pub others: Vec<Mistake>,
}

impl Mistake {
    /// A mistake whose message names its place.
    pub fn new(message: impl Into<String>) -> Mistake {
        Mistake { place: String::new(), message: message.into(), others: Vec::new() }
    }

    /// A mistake at a key; an empty key stands for the whole table.
    pub fn at(key: impl Into<String>, message: impl Into<String>) -> Mistake {
        Mistake { place: key.into(), message: message.into(), others: Vec::new() }
    }

    /// All of these mistakes, and those that come with them, as one; `None` if there are none.
    pub fn all(mistakes: impl IntoIterator<Item = Mistake>) -> Option<Mistake> {
        let with_others = |mut mistake: Mistake| {
            let others = std::mem::take(&mut mistake.others);
            std::iter::once(mistake).chain(others)
        };
        let mut mistakes = mistakes.into_iter().flat_map(with_others);
        let mut first = mistakes.next()?;
        first.others = mistakes.collect();
        Some(first)
    }

    /// A mistake at an option of the command line. `key` is spelt with underscores, as in scenarios.
    pub fn of_flag(key: &str, message: impl Into<String>) -> Mistake {
        Mistake::at(format!("--{}", key.replace('_', "-")), message)
    }

    /// Puts the table before the key.
    #[must_use]
    pub fn under(mut self, table: &str) -> Mistake {
        self.place = match (table, self.place.as_str()) {
            (_, "") => table.to_owned(),
            ("", key) => key.to_owned(),
            (table, key) => format!("{table}.{key}"),
        };
        self.others = self.others.into_iter().map(|other| other.under(table)).collect();
        self
    }

    /// Puts the file before the key.
    #[must_use]
    pub fn in_file(mut self, file: impl Display) -> Mistake {
        let file = file.to_string();
        self.others = self.others.into_iter().map(|other| other.in_file(&file)).collect();
        self.place = if self.place.is_empty() { file } else { format!("{file}: {}", self.place) };
        self
    }
}

impl Display for Mistake {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        match self.place.as_str() {
            "" => formatter.write_str(&self.message),
            place => write!(formatter, "{place}: {}", self.message),
        }
    }
}

/// A parameter that the model rejects.
impl From<Invalid> for Mistake {
    fn from(invalid: Invalid) -> Mistake {
        Mistake::at(invalid.key, invalid.problem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_says_file_then_key_then_what_is_wrong() {
        let check = |mistake: Mistake, expect: &str| assert_eq!(mistake.to_string(), expect);
        check(Mistake::new("there is no disk `a`"), "there is no disk `a`");
        check(
            Mistake::at("size", "is empty").under("stacks.hdd").in_file("a.toml"),
            "a.toml: stacks.hdd.size: is empty",
        );
        check(Mistake::new("needs a `profile`").under("stacks.hdd"), "stacks.hdd: needs a `profile`");
        check(Mistake::of_flag("warm_up", "is empty"), "--warm-up: is empty");
    }

    #[test]
    fn each_of_several_mistakes_names_the_file() {
        let mistakes = [Mistake::at("size", "is empty"), Mistake::at("label", "is long")];
        let all = Mistake::all(mistakes).expect("there are two").under("stacks.hdd").in_file("a.toml");
        assert_eq!(all.to_string(), "a.toml: stacks.hdd.size: is empty");
        assert_eq!(all.others[0].to_string(), "a.toml: stacks.hdd.label: is long");
        assert_eq!(Mistake::all([]), None);
    }
}
