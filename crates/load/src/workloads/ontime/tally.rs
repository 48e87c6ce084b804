//! The answers of the queries, counted from the flights as they are drawn: an independent computation of what
//! the server must find.

use std::collections::{BTreeMap, HashSet};

use super::carriers::CARRIERS;
use super::rows::Flight;
use super::sample::SAMPLE;
use super::schema;
use crate::sql::Dialect;
use crate::workload::analytic::{Answer, Query, rounded};

/// Flights, and those of them that left more than ten minutes late.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    all: u64,
    delayed: u64,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.all += other.all;
        self.delayed += other.delayed;
    }
}

/// What the queries ask of one year.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tally {
    by_day_of_week: BTreeMap<u8, Counts>,
    by_origin: BTreeMap<u16, Counts>,
    by_carrier: BTreeMap<u8, Counts>,
    /// Carrier, destination, origin.
    pairs: HashSet<(u8, u16, u16)>,
    /// Carrier and number.
    flights: HashSet<(u8, u16)>,
    /// Rows by the day's number.
    by_day: BTreeMap<u16, u64>,
}

impl Tally {
    pub(super) fn note(&mut self, flight: &Flight) {
        let counts = Counts { all: 1, delayed: flight.is_delayed().into() };
        self.by_day_of_week.entry(flight.day.day_of_week).or_default().add(counts);
        self.by_origin.entry(flight.origin).or_default().add(counts);
        self.by_carrier.entry(flight.carrier).or_default().add(counts);
        self.pairs.insert((flight.carrier, flight.destination, flight.origin));
        self.flights.insert((flight.carrier, flight.number));
        *self.by_day.entry(flight.day.date_id).or_default() += 1;
    }

    pub(super) fn add(&mut self, other: Tally) {
        fn merge<Key: Ord>(ours: &mut BTreeMap<Key, Counts>, theirs: BTreeMap<Key, Counts>) {
            theirs.into_iter().for_each(|(key, counts)| ours.entry(key).or_default().add(counts));
        }
        merge(&mut self.by_day_of_week, other.by_day_of_week);
        merge(&mut self.by_origin, other.by_origin);
        merge(&mut self.by_carrier, other.by_carrier);
        self.pairs.extend(other.pairs);
        self.flights.extend(other.flights);
        other.by_day.into_iter().for_each(|(day, rows)| *self.by_day.entry(day).or_default() += rows);
    }

    fn total(&self) -> Counts {
        let mut total = Counts::default();
        self.by_carrier.values().for_each(|counts| total.add(*counts));
        total
    }
}

type Rows = Vec<Vec<String>>;

/// The tallies of all years.
#[derive(Debug, Default)]
pub(super) struct Tallies(pub(super) BTreeMap<u16, Tally>);

fn city(airport: u16) -> &'static str {
    SAMPLE.airports[usize::from(airport)].city
}

fn carrier(index: u8) -> &'static str {
    CARRIERS[usize::from(index)].code
}

/// One row for each key of which something was counted.
fn rows<Key: ToString>(counts: impl IntoIterator<Item = (Key, u64)>) -> Rows {
    let counted = counts.into_iter().filter(|(_, count)| *count > 0);
    counted.map(|(key, count)| vec![key.to_string(), count.to_string()]).collect()
}

impl Tallies {
    /// The right answer of each query.
    pub(super) fn answers(&self, queries: &[Query], dialect: Dialect) -> Vec<(Query, Answer)> {
        queries.iter().map(|query| (*query, Answer::of(query, self.rows(query.name, dialect)))).collect()
    }

    /// The rows that the star must have on a server with the flights of these days.
    pub(super) fn row_counts(&self, days: &[u16]) -> Vec<(&'static str, u64)> {
        let years = || self.0.values();
        let pairs = years().flat_map(|tally| &tally.pairs);
        let airports: HashSet<u16> =
            pairs.flat_map(|(_, destination, origin)| [*destination, *origin]).collect();
        let flights: HashSet<&(u8, u16)> = years().flat_map(|tally| &tally.flights).collect();
        let of_days = |tally: &Tally| days.iter().filter_map(|day| tally.by_day.get(day)).sum::<u64>();
        let rows = years().map(of_days).sum();
        vec![
            ("dim_airport", airports.len() as u64),
            ("dim_flight", flights.len() as u64),
            (schema::FACT, rows),
        ]
    }

    fn rows(&self, name: &str, dialect: Dialect) -> Rows {
        let ratio = |counts: Counts| rounded(counts.delayed * 1_000, counts.all, dialect);
        match name {
            "Q1" => rows(self.by_day_of_week(2000, 2008).into_iter().map(|(day, counts)| (day, counts.all))),
            "Q2" => {
                rows(self.by_day_of_week(2000, 2008).into_iter().map(|(day, counts)| (day, counts.delayed)))
            }
            "Q3" => self.fewest_delays(2000, 2008),
            "Q4" => rows(self.by_carrier(2007).map(|(carrier, counts)| (carrier, counts.delayed))),
            "Q5" => self
                .by_carrier(2007)
                .filter(|(_, counts)| counts.delayed > 0)
                .map(|(carrier, counts)| {
                    let (delayed, all) = (counts.delayed.to_string(), counts.all.to_string());
                    vec![carrier.to_owned(), delayed, all, ratio(counts)]
                })
                .collect(),
            "Q6" => self.by_year(|counts| rounded(counts.delayed * 1_000, counts.delayed, dialect)),
            "Q7" => self.by_year(ratio),
            "Q8.0" => self.origins(2001, 2001),
            "Q8.1" => self.origins(2001, 2005),
            "Q8.2" => self.origins(2001, 2011),
            "Q8.3" => self.origins(1990, 2011),
            "Q8.4" => self.origins(1980, 2011),
            "Q9" => rows(self.0.iter().map(|(year, tally)| (*year, tally.total().all))),
            "Q10" => {
                let keyed =
                    |_, carrier: &str, destination: &str| vec![carrier.to_owned(), destination.to_owned()];
                self.origins_by(2009, 2011, |_| true, keyed)
            }
            "Q11" => {
                let keyed = |year: u16, carrier: &str, destination: &str| {
                    vec![year.to_string(), carrier.to_owned(), destination.to_owned()]
                };
                self.origins_by(2000, 2003, |carrier| carrier == "AA", keyed)
            }
            other => unreachable!("{other} is no query of the study"),
        }
    }

    fn between(&self, first: u16, last: u16) -> impl Iterator<Item = (u16, &Tally)> {
        self.0.range(first..=last).map(|(year, tally)| (*year, tally))
    }

    fn by_day_of_week(&self, first: u16, last: u16) -> BTreeMap<u8, Counts> {
        let mut days = BTreeMap::<u8, Counts>::new();
        for (day, counts) in self.between(first, last).flat_map(|(_, tally)| &tally.by_day_of_week) {
            days.entry(*day).or_default().add(*counts);
        }
        days
    }

    fn by_carrier(&self, year: u16) -> impl Iterator<Item = (&'static str, Counts)> {
        self.between(year, year)
            .flat_map(|(_, tally)| &tally.by_carrier)
            .map(|(index, counts)| (carrier(*index), *counts))
    }

    /// Years with delays.
    fn by_year(&self, ratio: impl Fn(Counts) -> String) -> Rows {
        let years = self.0.iter().map(|(year, tally)| (year, tally.total()));
        let delayed = years.filter(|(_, counts)| counts.delayed > 0);
        delayed.map(|(year, counts)| vec![year.to_string(), ratio(counts)]).collect()
    }

    /// The ten cities of origin with the fewest delays, but not none.
    fn fewest_delays(&self, first: u16, last: u16) -> Rows {
        let mut cities = BTreeMap::<&str, u64>::new();
        for (origin, counts) in self.between(first, last).flat_map(|(_, tally)| &tally.by_origin) {
            *cities.entry(city(*origin)).or_default() += counts.delayed;
        }
        let mut delayed: Vec<(&str, u64)> = cities.into_iter().filter(|(_, count)| *count > 0).collect();
        delayed.sort_unstable_by_key(|(_, count)| *count);
        rows(delayed.into_iter().take(10))
    }

    /// The number of cities from which each city was reached.
    fn origins(&self, first: u16, last: u16) -> Rows {
        self.origins_by(first, last, |_| true, |_, _, destination| vec![destination.to_owned()])
    }

    /// The same by a key of year, carrier and city.
    fn origins_by(
        &self,
        first: u16,
        last: u16,
        is_asked: impl Fn(&str) -> bool,
        key: impl Fn(u16, &str, &str) -> Vec<String>,
    ) -> Rows {
        let mut origins = BTreeMap::<Vec<String>, HashSet<&str>>::new();
        for (year, tally) in self.between(first, last) {
            for (index, destination, origin) in
                tally.pairs.iter().filter(|(index, ..)| is_asked(carrier(*index)))
            {
                let key = key(year, carrier(*index), city(*destination));
                origins.entry(key).or_default().insert(city(*origin));
            }
        }
        let counted = |(mut key, cities): (Vec<String>, HashSet<&str>)| {
            key.push(cities.len().to_string());
            key
        };
        origins.into_iter().map(counted).collect()
    }
}
