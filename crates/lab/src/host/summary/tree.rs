//! Small files of `/proc` and `/sys` below a root directory.

use std::fs;
use std::path::Path;
use std::str::FromStr;

#[derive(Debug, Clone, Copy)]
pub(super) struct Tree<'a>(pub(super) &'a Path);

impl Tree<'_> {
    /// The content of a file without the blanks around it. `None` if it is missing or empty. What is not
    /// UTF-8 is replaced: firmware may write anything into a model's name.
    pub(super) fn text(self, path: &str) -> Option<String> {
        let bytes = fs::read(self.0.join(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes)
            .trim_matches(|one: char| one.is_whitespace() || one == '\0')
            .to_owned();
        (!text.is_empty()).then_some(text)
    }

    pub(super) fn number<T: FromStr>(self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// The choice in brackets of `always [madvise] never`, or the whole text without brackets.
    pub(super) fn choice(self, path: &str) -> Option<String> {
        let text = self.text(path)?;
        let chosen = text.split_once('[').and_then(|(_, rest)| Some(rest.split_once(']')?.0.to_owned()));
        Some(chosen.unwrap_or(text))
    }

    /// Names in a directory, which may be missing, in the order of their numbers.
    pub(super) fn names(self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort_by_cached_key(|name| {
            let prefix = name.trim_end_matches(|one: char| one.is_ascii_digit());
            (prefix.to_owned(), name[prefix.len()..].parse::<u64>().ok())
        });
        names
    }

    /// The names that are `prefix` and a number.
    pub(super) fn numbered(self, directory: &str, prefix: &str) -> Vec<String> {
        let is_one =
            |name: &String| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
        self.names(directory).into_iter().filter(is_one).collect()
    }
}
