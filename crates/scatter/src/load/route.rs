//! The shards that a record goes to.

use crate::facts::Kind;
use crate::mapping::{KeyValue, Mapper};

/// Where the rows of a table go.
#[derive(Debug, Clone, PartialEq)]
pub enum Route {
    /// A reference table, or one server: to every server.
    Every,
    By(Key),
}

/// The column by which the table is sharded.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    pub column: String,
    /// Its index in a record.
    pub field: usize,
    pub kind: Kind,
    pub mapper: Mapper,
    pub shards: usize,
    /// Whether the files are in the characters of a query.
    pub is_utf8: bool,
}

/// Characters of a value in a sentence.
const SHOWN_MOST: usize = 40;

impl Key {
    /// The shard of a value.
    ///
    /// # Errors
    /// The value has none; the words say why.
    pub fn shard(&self, value: Option<&[u8]>) -> Result<usize, String> {
        let text = value.map(|bytes| self.text(bytes)).transpose()?;
        let Some(value) = KeyValue::of(text, self.kind) else {
            let form = match self.kind {
                Kind::Integer => "an integer",
                Kind::Date => "a date of the form YYYY-MM-DD",
                Kind::BinaryText | Kind::Text | Kind::Other => "a text",
            };
            return Err(format!("{} of {} is not {form}, so it has no shard", shown(text), self.column));
        };
        let shard = self.mapper.shard_of(&value, self.shards).filter(|shard| *shard < self.shards);
        shard.ok_or_else(|| format!("{} of {} is on no shard of the directory", shown(text), self.column))
    }

    fn text<'a>(&self, bytes: &'a [u8]) -> Result<&'a str, String> {
        match std::str::from_utf8(bytes) {
            Ok(text) if self.is_utf8 || text.is_ascii() => Ok(text),
            _ if self.is_utf8 => Err(format!("{} is not UTF-8, so it has no shard", self.column)),
            _ => {
                Err(format!("{} is not ASCII, so it has no shard; convert the file to utf8mb4", self.column))
            }
        }
    }
}

fn shown(text: Option<&str>) -> String {
    let Some(text) = text else { return "NULL".to_owned() };
    match text.char_indices().nth(SHOWN_MOST) {
        None => format!("`{text}`"),
        Some((end, _)) => format!("`{}...`", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::mapping::Directory;

    fn key(kind: Kind, mapper: Mapper) -> Key {
        Key { column: "k".to_owned(), field: 0, kind, mapper, shards: 3, is_utf8: true }
    }

    #[test]
    fn mistake_8_a_row_is_where_its_value_is_looked_for() {
        let check = |text: Option<&str>, kind: Kind| {
            let value = KeyValue::of(text, kind).unwrap();
            let expect = Mapper::Hash.shard_of(&value, 3).unwrap();
            assert_eq!(key(kind, Mapper::Hash).shard(text.map(str::as_bytes)), Ok(expect), "{text:?}");
        };
        for text in ["abc", "'abc'", "", "é中", "abc  "] {
            check(Some(text), Kind::Text);
        }
        for text in ["0", "-17", " 0007 ", "18446744073709551615"] {
            check(Some(text), Kind::Integer);
        }
        check(Some("2010-01-31"), Kind::Date);
        check(None, Kind::Integer);
    }

    #[test]
    fn mistake_9_a_row_without_a_shard_is_told() {
        let check =
            |key: &Key, value: Option<&[u8]>, expect: &str| assert_eq!(key.shard(value).unwrap_err(), expect);
        let values = BTreeMap::from([(KeyValue::Integer(1), 0), (KeyValue::Integer(2), 7)]);
        let directory = key(Kind::Integer, Mapper::Directory(Directory { values, ranges: Vec::new() }));
        assert_eq!(directory.shard(Some(b"1")), Ok(0));
        check(&directory, Some(b"3"), "`3` of k is on no shard of the directory");
        check(&directory, Some(b"2"), "`2` of k is on no shard of the directory");
        check(&directory, None, "NULL of k is on no shard of the directory");
        let integer = key(Kind::Integer, Mapper::Hash);
        check(&integer, Some(b"7.0"), "`7.0` of k is not an integer, so it has no shard");
        check(&integer, Some(b""), "`` of k is not an integer, so it has no shard");
        let date = key(Kind::Date, Mapper::Hash);
        check(
            &date,
            Some(b"2010-1-31"),
            "`2010-1-31` of k is not a date of the form YYYY-MM-DD, so it has no shard",
        );
        let text = key(Kind::Text, Mapper::Hash);
        check(&text, Some(b"\xe9"), "k is not UTF-8, so it has no shard");
        let latin1 = Key { is_utf8: false, ..text };
        check(
            &latin1,
            Some("é".as_bytes()),
            "k is not ASCII, so it has no shard; convert the file to utf8mb4",
        );
    }
}
