//! Which shard has a row: one function for the loader, for pruning and for the check of a table's rows.

use std::collections::BTreeMap;

use crate::facts::Kind;

/// A value of the column by which tables are sharded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyValue {
    Null,
    Integer(i128),
    /// A text, or a date as `YYYY-MM-DD`.
    Text(String),
}

impl KeyValue {
    /// A value as the server or a file writes it; `None` if a column of this kind does not have it in this form.
    pub fn of(text: Option<&str>, kind: Kind) -> Option<KeyValue> {
        let Some(text) = text else { return Some(KeyValue::Null) };
        match kind {
            Kind::Integer => text.trim().parse().ok().map(KeyValue::Integer),
            Kind::Date => is_date(text).then(|| KeyValue::Text(text.to_owned())),
            // Collations with padding, as MariaDB's are without another choice, hold 'a' and 'a ' for equal.
            Kind::Other => Some(KeyValue::Text(text.trim_end_matches(' ').to_owned())),
        }
    }
}

fn is_date(text: &str) -> bool {
    let has_form = |(index, byte): (usize, u8)| match index {
        4 | 7 => byte == b'-',
        _ => byte.is_ascii_digit(),
    };
    text.len() == 10 && text.bytes().enumerate().all(has_form)
}

#[derive(Debug, Clone, Default, PartialEq)]
pub enum Mapper {
    /// Integers by the remainder of their division by the number of shards, texts by that of their CRC-32. NULL is on
    /// the first.
    #[default]
    Hash,
    Directory(Directory),
}

/// Values and ranges with the index of their shard.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Directory {
    pub values: BTreeMap<KeyValue, usize>,
    /// First and last integer, and shard; no two have a value in common.
    pub ranges: Vec<(i128, i128, usize)>,
}

impl Mapper {
    /// Index of the shard of a value, of so many shards; `None` if a directory does not have the value.
    pub fn shard_of(&self, value: &KeyValue, count: usize) -> Option<usize> {
        match self {
            Mapper::Hash => Some(match value {
                KeyValue::Null => 0,
                KeyValue::Integer(number) => number.rem_euclid(count as i128) as usize,
                KeyValue::Text(text) => crc32fast::hash(text.as_bytes()) as usize % count,
            }),
            Mapper::Directory(directory) => directory.shard_of(value),
        }
    }
}

impl Directory {
    fn shard_of(&self, value: &KeyValue) -> Option<usize> {
        if let Some(shard) = self.values.get(value) {
            return Some(*shard);
        }
        let KeyValue::Integer(number) = value else { return None };
        let of_range = |(first, last, shard): &(i128, i128, usize)| {
            (first..=last).contains(&number).then_some(*shard)
        };
        self.ranges.iter().find_map(of_range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_form() {
        let check = |text: &str, kind: Kind, expect: Option<KeyValue>| {
            assert_eq!(KeyValue::of(Some(text), kind), expect, "{text}");
        };
        check("0007", Kind::Integer, Some(KeyValue::Integer(7)));
        check(" -7", Kind::Integer, Some(KeyValue::Integer(-7)));
        check("7.0", Kind::Integer, None);
        check("'abc'", Kind::Other, Some(KeyValue::Text("'abc'".to_owned())));
        check("abc  ", Kind::Other, Some(KeyValue::Text("abc".to_owned())));
        check("2010-01-31", Kind::Date, Some(KeyValue::Text("2010-01-31".to_owned())));
        check("2010-1-31", Kind::Date, None);
        assert_eq!(KeyValue::of(None, Kind::Integer), Some(KeyValue::Null));
    }

    #[test]
    fn the_hash_is_that_of_the_study() {
        let shard = |value: KeyValue| Mapper::Hash.shard_of(&value, 3);
        assert_eq!(shard(KeyValue::Integer(7)), Some(1));
        assert_eq!(shard(KeyValue::Integer(-1)), Some(2));
        assert_eq!(shard(KeyValue::Null), Some(0));
        // CRC-32 of "123456789" is 0xcbf43926 (ITU-T V.42).
        assert_eq!(shard(KeyValue::Text("123456789".to_owned())), Some(0xcbf4_3926 % 3));
    }

    #[test]
    fn a_directory_has_values_and_ranges() {
        let mapper = Mapper::Directory(Directory {
            values: BTreeMap::from([(KeyValue::Integer(5), 1), (KeyValue::Text("x".to_owned()), 0)]),
            ranges: vec![(0, 9, 0), (10, 19, 1)],
        });
        let check = |value: KeyValue, expect: Option<usize>| assert_eq!(mapper.shard_of(&value, 2), expect);
        check(KeyValue::Integer(5), Some(1));
        check(KeyValue::Integer(6), Some(0));
        check(KeyValue::Integer(19), Some(1));
        check(KeyValue::Integer(20), None);
        check(KeyValue::Text("x".to_owned()), Some(0));
        check(KeyValue::Null, None);
    }
}
