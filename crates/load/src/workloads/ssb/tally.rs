//! The answers of the queries, summed up from the rows as they are made: an independent computation of what
//! the server must find.

use std::collections::BTreeMap;

use super::calendar::Day;
use super::dimensions::{Dimensions, Part};
use super::geography::Place;
use super::rows::LineOrder;
use crate::workload::analytic::{Answer, Query};

const UNITED_KINGDOM: u8 = 23;
const UNITED_STATES: u8 = 24;

/// Sums by the keys of a group.
type Groups = BTreeMap<Vec<Key>, i64>;

/// A column that a query groups by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Year(u16),
    Nation(u8),
    City(u8, u8),
    Category(u8, u8),
    Brand(u8, u8, u8),
}

impl Key {
    fn city(place: Place) -> Key {
        Key::City(place.nation, place.digit)
    }

    fn nation(place: Place) -> Key {
        Key::Nation(place.nation)
    }

    fn category(part: &Part) -> Key {
        Key::Category(part.manufacturer, part.category)
    }

    fn brand(part: &Part) -> Key {
        Key::Brand(part.manufacturer, part.category, part.brand)
    }

    fn text(self) -> String {
        match self {
            Key::Year(year) => year.to_string(),
            Key::Nation(nation) => Place { nation, digit: 0 }.nation_name().to_owned(),
            Key::City(nation, digit) => Place { nation, digit }.city(),
            Key::Category(manufacturer, category) => format!("MFGR#{manufacturer}{category}"),
            Key::Brand(manufacturer, category, brand) => format!("MFGR#{manufacturer}{category}{brand}"),
        }
    }
}

/// A row of the fact table with those of its dimensions.
struct Joined<'a> {
    line: &'a LineOrder,
    day: Day,
    customer: Place,
    supplier: Place,
    part: &'a Part,
}

/// What a query sums up of a row, and its group; `None` if the row is none of its rows.
type Take = fn(&Joined<'_>) -> Option<(Vec<Key>, i64)>;

fn is_in_one_of_two_cities(place: Place) -> bool {
    place.nation == UNITED_KINGDOM && [1, 5].contains(&place.digit)
}

impl Joined<'_> {
    fn discounted(&self, discounts: [i64; 2], quantities: [i64; 2]) -> Option<(Vec<Key>, i64)> {
        let line = self.line;
        let is_asked = (discounts[0]..=discounts[1]).contains(&line.discount)
            && (quantities[0]..=quantities[1]).contains(&line.quantity);
        is_asked.then(|| (Vec::new(), line.extended_price * line.discount))
    }

    fn revenue_of_brand(&self, is_brand: bool, region: &str) -> Option<(Vec<Key>, i64)> {
        let is_asked = is_brand && self.supplier.region() == region;
        is_asked.then(|| (vec![Key::Year(self.day.year), Key::brand(self.part)], self.line.revenue))
    }

    fn revenue_between(&self, is_asked: bool, key: fn(Place) -> Key) -> Option<(Vec<Key>, i64)> {
        let keys = || vec![key(self.customer), key(self.supplier), Key::Year(self.day.year)];
        is_asked.then(|| (keys(), self.line.revenue))
    }

    fn profit(&self, is_asked: bool, keys: &[Key]) -> Option<(Vec<Key>, i64)> {
        let keys = || [&[Key::Year(self.day.year)], keys].concat();
        is_asked.then(|| (keys(), self.line.revenue - self.line.supply_cost))
    }

    fn is_american(&self) -> bool {
        self.customer.region() == "AMERICA" && self.supplier.region() == "AMERICA"
    }
}

/// By the names of the queries.
const QUERIES: [(&str, Take); 13] = [
    ("Q1.1", |row| row.discounted([1, 3], [i64::MIN, 24]).filter(|_| row.day.year == 1993)),
    ("Q1.2", |row| row.discounted([4, 6], [26, 35]).filter(|_| row.day.year_month() == 199_401)),
    ("Q1.3", |row| row.discounted([5, 7], [26, 35]).filter(|_| row.day.year == 1994 && row.day.week() == 6)),
    ("Q2.1", |row| row.revenue_of_brand(Key::category(row.part) == Key::Category(1, 2), "AMERICA")),
    ("Q2.2", |row| {
        let brands = Key::Brand(2, 2, 21)..=Key::Brand(2, 2, 28);
        row.revenue_of_brand(brands.contains(&Key::brand(row.part)), "ASIA")
    }),
    ("Q2.3", |row| row.revenue_of_brand(Key::brand(row.part) == Key::Brand(2, 2, 21), "EUROPE")),
    ("Q3.1", |row| {
        let is_asian = row.customer.region() == "ASIA" && row.supplier.region() == "ASIA";
        row.revenue_between(is_asian && row.day.year <= 1997, Key::nation)
    }),
    ("Q3.2", |row| {
        let is_american = row.customer.nation == UNITED_STATES && row.supplier.nation == UNITED_STATES;
        row.revenue_between(is_american && row.day.year <= 1997, Key::city)
    }),
    ("Q3.3", |row| {
        let are_there = is_in_one_of_two_cities(row.customer) && is_in_one_of_two_cities(row.supplier);
        row.revenue_between(are_there && row.day.year <= 1997, Key::city)
    }),
    ("Q3.4", |row| {
        let are_there = is_in_one_of_two_cities(row.customer) && is_in_one_of_two_cities(row.supplier);
        row.revenue_between(are_there && row.day.year_month() == 199_712, Key::city)
    }),
    ("Q4.1", |row| row.profit(row.is_american() && row.part.manufacturer <= 2, &[Key::nation(row.customer)])),
    ("Q4.2", |row| {
        let is_asked = row.is_american() && row.day.year >= 1997 && row.part.manufacturer <= 2;
        row.profit(is_asked, &[Key::nation(row.supplier), Key::category(row.part)])
    }),
    ("Q4.3", |row| {
        let is_asked = row.customer.region() == "AMERICA" && row.supplier.nation == UNITED_STATES;
        let is_asked = is_asked && row.day.year >= 1997 && Key::category(row.part) == Key::Category(1, 4);
        row.profit(is_asked, &[Key::city(row.supplier), Key::brand(row.part)])
    }),
];

/// The sums of all queries.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    groups: [Groups; QUERIES.len()],
    /// Lines that the server has; the sums are those of all servers.
    pub(super) lines: u64,
}

impl Tally {
    /// `is_here` says whether the server has the line.
    pub(super) fn note(&mut self, line: &LineOrder, is_here: bool, dimensions: &Dimensions) {
        let row = Joined {
            line,
            day: line.day,
            customer: dimensions.customer(line.customer_key).place,
            supplier: dimensions.supplier(line.supplier_key).place,
            part: dimensions.part(line.part_key),
        };
        for ((_, take), groups) in QUERIES.iter().zip(&mut self.groups) {
            if let Some((keys, amount)) = take(&row) {
                *groups.entry(keys).or_default() += amount;
            }
        }
        self.lines += u64::from(is_here);
    }

    pub(super) fn add(&mut self, other: Tally) {
        for (ours, theirs) in self.groups.iter_mut().zip(other.groups) {
            theirs.into_iter().for_each(|(keys, amount)| *ours.entry(keys).or_default() += amount);
        }
        self.lines += other.lines;
    }

    /// The right answer of each query.
    pub(super) fn answers(&self, queries: &[Query]) -> Vec<(Query, Answer)> {
        queries.iter().map(|query| (*query, Answer::of(query, self.rows(query.name)))).collect()
    }

    fn rows(&self, name: &str) -> Vec<Vec<String>> {
        let index = QUERIES.iter().position(|(known, _)| *known == name).expect("each query has its sum");
        let groups = &self.groups[index];
        if name.starts_with("Q1") && groups.is_empty() {
            return vec![vec!["NULL".to_owned()]];
        }
        let row = |(keys, amount): (&Vec<Key>, &i64)| {
            let mut row: Vec<String> = keys.iter().map(|key| key.text()).collect();
            // In the second flight of queries the sum comes first.
            row.insert(if name.starts_with("Q2") { 0 } else { row.len() }, amount.to_string());
            row
        };
        groups.iter().map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_has_its_sum() {
        let names: Vec<&str> = super::super::statements().iter().map(|query| query.name).collect();
        assert_eq!(names, QUERIES.map(|(name, _)| name));
    }
}
