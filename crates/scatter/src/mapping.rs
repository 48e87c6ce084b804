//! Which server has which rows, as one function for the loader, for pruning and for the check of a table's rows.
//!
//! A sharded table has each row on one server, by the value of one column. A reference table has all its rows on each.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::facts::Kind;

/// Which tables are sharded, by which column, and where each value is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mapping {
    /// Tables that have this column are sharded by it.
    pub column: String,
    /// Sharded tables whose column has another name, in small letters.
    pub columns: BTreeMap<String, String>,
    /// Reference tables that have the column as well, in small letters.
    pub reference: BTreeSet<String>,
    pub mapper: Mapper,
}

impl Mapping {
    /// The column by which a table is sharded; `None` for a reference table. `has_column` says whether the table has a
    /// column of this name.
    pub fn column_of(&self, table: &str, has_column: impl Fn(&str) -> bool) -> Option<&str> {
        let table = table.to_ascii_lowercase();
        if self.reference.contains(&table) {
            return None;
        }
        let column = self.columns.get(&table).unwrap_or(&self.column);
        has_column(column).then_some(column)
    }
}

/// A value of the column by which tables are sharded.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyValue<'a> {
    Null,
    Integer(i128),
    /// A text, or a date as `YYYY-MM-DD`.
    Text(Cow<'a, str>),
}

impl<'a> KeyValue<'a> {
    /// A value as the server or a file writes it; `None` if a column of this kind does not have it in this form.
    pub fn of(text: Option<&'a str>, kind: Kind) -> Option<KeyValue<'a>> {
        let Some(text) = text else { return Some(KeyValue::Null) };
        match kind {
            Kind::Integer => text.trim().parse().ok().map(KeyValue::Integer),
            Kind::Date => is_date(text).then(|| KeyValue::Text(text.into())),
            // Collations with padding, as MariaDB's are without another choice, hold 'a' and 'a ' for equal.
            Kind::BinaryText | Kind::Text | Kind::Other => {
                Some(KeyValue::Text(text.trim_end_matches(' ').into()))
            }
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
    pub values: BTreeMap<KeyValue<'static>, usize>,
    /// First and last integer, and shard; no two have a value in common.
    pub ranges: Vec<(i128, i128, usize)>,
}

impl Mapper {
    /// Index of the shard of a value, of so many shards; `None` if a directory does not have the value.
    pub fn shard_of(&self, value: &KeyValue<'_>, count: usize) -> Option<usize> {
        match self {
            Mapper::Hash => Some(match value {
                KeyValue::Null => 0,
                KeyValue::Integer(number) => number.rem_euclid(count as i128) as usize,
                KeyValue::Text(text) => crc32fast::hash(text.as_bytes()) as usize % count,
            }),
            Mapper::Directory(directory) => directory.shard_of(value),
        }
    }

    /// Indexes of the shards of all integers from the first to the last; `None` for all shards.
    pub fn shards_between(&self, first: i128, last: i128, count: usize) -> Option<BTreeSet<usize>> {
        match self {
            Mapper::Hash if last.saturating_sub(first) >= count as i128 - 1 => None,
            Mapper::Hash => {
                let shard = |number| self.shard_of(&KeyValue::Integer(number), count);
                Some((first..=last).filter_map(shard).collect())
            }
            Mapper::Directory(directory) => Some(directory.shards_between(first, last)),
        }
    }
}

impl Directory {
    fn shard_of(&self, value: &KeyValue<'_>) -> Option<usize> {
        let values: &BTreeMap<KeyValue<'_>, usize> = &self.values;
        if let Some(shard) = values.get(value) {
            return Some(*shard);
        }
        let KeyValue::Integer(number) = value else { return None };
        let of_range =
            |(first, last, shard): &(i128, i128, usize)| (first..=last).contains(&number).then_some(*shard);
        self.ranges.iter().find_map(of_range)
    }

    fn shards_between(&self, first: i128, last: i128) -> BTreeSet<usize> {
        let of_values = self.values.iter().filter_map(|(value, shard)| match value {
            KeyValue::Integer(number) => (first..=last).contains(number).then_some(*shard),
            _ => None,
        });
        let of_ranges = self
            .ranges
            .iter()
            .filter_map(|(from, to, shard)| (*from <= last && first <= *to).then_some(*shard));
        of_values.chain(of_ranges).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_one_form() {
        let check = |text: &str, kind: Kind, expect: Option<KeyValue<'_>>| {
            assert_eq!(KeyValue::of(Some(text), kind), expect, "{text}");
        };
        check("0007", Kind::Integer, Some(KeyValue::Integer(7)));
        check(" -7", Kind::Integer, Some(KeyValue::Integer(-7)));
        check("7.0", Kind::Integer, None);
        check("'abc'", Kind::Text, Some(KeyValue::Text("'abc'".into())));
        check("abc  ", Kind::Text, Some(KeyValue::Text("abc".into())));
        check("2010-01-31", Kind::Date, Some(KeyValue::Text("2010-01-31".into())));
        check("2010-1-31", Kind::Date, None);
        assert_eq!(KeyValue::of(None, Kind::Integer), Some(KeyValue::Null));
    }

    #[test]
    fn the_hash_is_that_of_the_study() {
        let shard = |value: KeyValue<'_>| Mapper::Hash.shard_of(&value, 3);
        assert_eq!(shard(KeyValue::Integer(7)), Some(1));
        assert_eq!(shard(KeyValue::Integer(-1)), Some(2));
        assert_eq!(shard(KeyValue::Null), Some(0));
        // CRC-32 of "123456789" is 0xcbf43926 (ITU-T V.42).
        assert_eq!(shard(KeyValue::Text("123456789".into())), Some(0xcbf4_3926 % 3));
    }

    #[test]
    fn a_directory_has_values_and_ranges() {
        let mapper = Mapper::Directory(Directory {
            values: BTreeMap::from([(KeyValue::Integer(5), 1), (KeyValue::Text("x".into()), 0)]),
            ranges: vec![(0, 9, 0), (10, 19, 1)],
        });
        let check =
            |value: KeyValue<'_>, expect: Option<usize>| assert_eq!(mapper.shard_of(&value, 2), expect);
        check(KeyValue::Integer(5), Some(1));
        check(KeyValue::Integer(6), Some(0));
        check(KeyValue::Integer(19), Some(1));
        check(KeyValue::Integer(20), None);
        check(KeyValue::Text("x".into()), Some(0));
        check(KeyValue::Null, None);
        let between = |first, last| mapper.shards_between(first, last, 2).unwrap_or_default();
        assert_eq!(between(0, 4), BTreeSet::from([0]));
        assert_eq!(between(3, 12), BTreeSet::from([0, 1]));
        assert_eq!(between(20, 30), BTreeSet::new());
    }

    #[test]
    fn a_short_range_of_integers_is_on_few_shards() {
        let between = |first, last| Mapper::Hash.shards_between(first, last, 3);
        assert_eq!(between(4, 4), Some(BTreeSet::from([1])));
        assert_eq!(between(4, 5), Some(BTreeSet::from([1, 2])));
        assert_eq!(between(4, 6), None);
        assert_eq!(between(6, 4), Some(BTreeSet::new()));
    }

    #[test]
    fn a_table_is_sharded_if_it_has_the_column() {
        let mapping = Mapping {
            column: "day_id".to_owned(),
            columns: BTreeMap::from([("orders".to_owned(), "customer_id".to_owned())]),
            reference: BTreeSet::from(["days".to_owned()]),
            mapper: Mapper::Hash,
        };
        let check = |table: &str, columns: &[&str], expect: Option<&str>| {
            assert_eq!(mapping.column_of(table, |name| columns.contains(&name)), expect, "{table}");
        };
        check("facts", &["id", "day_id"], Some("day_id"));
        check("carriers", &["code"], None);
        check("Orders", &["day_id", "customer_id"], Some("customer_id"));
        check("Days", &["day_id"], None);
    }
}
