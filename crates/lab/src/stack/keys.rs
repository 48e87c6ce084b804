//! The keys of a stack table that only one layer or one kind of device has.

use std::collections::BTreeMap;

use toml::Value;

use super::{Complaint, complaint, did_you_mean, reader};

/// Takes keys one by one, and complains about what is left over.
pub(super) struct Keys<'a> {
    left: BTreeMap<&'a str, &'a Value>,
    known: Vec<&'static str>,
}

impl<'a> Keys<'a> {
    pub(super) fn new(keys: &'a BTreeMap<String, Value>) -> Keys<'a> {
        let left = keys.iter().map(|(key, value)| (key.as_str(), value)).collect();
        Keys { left, known: Vec::new() }
    }

    pub(super) fn take<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<Option<T>, Complaint> {
        self.known.push(key);
        let value = self.left.remove(key);
        value.map(parse).transpose().map_err(|message| complaint(key, message))
    }

    pub(super) fn size(&mut self, key: &'static str) -> Result<Option<u64>, Complaint> {
        self.take(key, reader::size)
    }

    pub(super) fn duration(&mut self, key: &'static str) -> Result<Option<u64>, Complaint> {
        self.take(key, reader::duration)
    }

    pub(super) fn rate(&mut self, key: &'static str) -> Result<Option<u64>, Complaint> {
        self.take(key, reader::rate)
    }

    pub(super) fn count(&mut self, key: &'static str) -> Result<Option<u64>, Complaint> {
        self.take(key, reader::count)
    }

    pub(super) fn percent(&mut self, key: &'static str) -> Result<Option<u64>, Complaint> {
        self.take(key, reader::percent)
    }

    pub(super) fn text(&mut self, key: &'static str) -> Result<Option<String>, Complaint> {
        self.take(key, |value| {
            value.as_str().map(str::to_owned).ok_or_else(|| format!("`{value}` must be a text"))
        })
    }

    pub(super) fn choice(&mut self, key: &'static str, names: &[&str]) -> Result<Option<String>, Complaint> {
        self.take(key, |value| reader::choice(value, names))
    }

    /// A list; a single value is a list of one.
    pub(super) fn list<T>(
        &mut self,
        key: &'static str,
        parse: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<Vec<T>, Complaint> {
        let list = self.take(key, |value| match value {
            Value::Array(values) => values.iter().map(&parse).collect(),
            value => Ok(vec![parse(value)?]),
        })?;
        Ok(list.unwrap_or_default())
    }

    /// # Errors
    /// The key is there, and nobody took it.
    pub(super) fn refuse(&self, key: &str, message: &str) -> Result<(), Complaint> {
        if self.left.contains_key(key) { Err(complaint(key, message)) } else { Ok(()) }
    }

    /// # Errors
    /// A key that nobody took.
    pub(super) fn finish(self) -> Result<(), Complaint> {
        let Some(key) = self.left.into_keys().next() else { return Ok(()) };
        let common = [
            "profile",
            "layer",
            "on",
            "size",
            "file_system",
            "mkfs_options",
            "mount_options",
            "path",
            "destroy_content",
            "label",
        ];
        let known: Vec<&str> = self.known.into_iter().chain(common).collect();
        let near = did_you_mean(key, &known);
        Err(complaint(key, format!("is unknown{near}; known are {}", known.join(", "))))
    }
}
