//! What real flights tell: airports, routes, days, hours and delays, as counts that `tools/ontime-data` makes.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use spindle_base::random::Random;

/// Values with the number of times that each was seen; draws one with that probability.
#[derive(Debug, Clone)]
pub(super) struct Counted<T> {
    values: Vec<T>,
    /// Sums of the counts, up to and including each value.
    sums: Vec<u64>,
}

impl<T: Copy> Counted<T> {
    /// Values without a count are left out.
    pub(super) fn new(counts: impl IntoIterator<Item = (T, u64)>) -> Counted<T> {
        let mut all = 0;
        let counts = counts.into_iter().filter(|(_, count)| *count > 0);
        let (values, sums) = counts
            .map(|(value, count)| {
                all += count;
                (value, all)
            })
            .unzip();
        Counted { values, sums }
    }

    pub(super) fn total(&self) -> u64 {
        self.sums.last().copied().unwrap_or(0)
    }

    /// The values with their counts.
    #[cfg(test)]
    pub(super) fn counts(&self) -> impl Iterator<Item = (T, u64)> {
        let before = std::iter::once(0).chain(self.sums.iter().copied());
        let counts = self.sums.iter().zip(before).map(|(sum, before)| sum - before);
        self.values.iter().copied().zip(counts)
    }

    /// # Panics
    /// There are no values.
    pub(super) fn draw(&self, random: &mut Random) -> T {
        let drawn = ((u128::from(random.next_u64()) * u128::from(self.total())) >> 64) as u64;
        self.values[self.sums.partition_point(|sum| *sum <= drawn)]
    }
}

/// Minutes; `None`: cancelled.
pub(super) type Delay = Option<i16>;

/// Fewer flights of a carrier in a month are not enough to draw from.
const ENOUGH: u64 = 100;
/// Flights a year on a route to an airport that had none in 2008, so that the study's size has some of each.
const RARE: u64 = 3;
/// Airports that such routes lead to.
const HUBS: [&str; 4] = ["ATL", "DEN", "DFW", "ORD"];

#[derive(Debug)]
pub(super) struct Airport {
    pub(super) code: &'static str,
    /// As in the study: `New York, NY`. Several airports may have the same.
    pub(super) city: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Route {
    /// Indexes of airports.
    pub(super) origin: u16,
    pub(super) destination: u16,
    /// Flights a year.
    pub(super) flights: u64,
}

#[derive(Debug)]
pub(super) struct Sample {
    pub(super) airports: Vec<Airport>,
    pub(super) routes: Vec<Route>,
    /// Flights of a day by month and day of the week, both from zero, which is January and Monday.
    pub(super) days: [[u64; 7]; 12],
    hours: BTreeMap<&'static str, Counted<u16>>,
    delays: BTreeMap<(&'static str, usize), Counted<Delay>>,
    /// Of all carriers.
    delays_of_month: Vec<Counted<Delay>>,
    /// Delay of arrival less delay of departure.
    pub(super) differences: Counted<i16>,
}

pub(super) static SAMPLE: LazyLock<Sample> = LazyLock::new(|| {
    let airports = airports(include_str!("data/airports.txt"));
    let routes = routes(include_str!("data/routes.txt"), &airports);
    sample(airports, routes, include_str!("data/delays.txt"))
});

impl Sample {
    /// Hours of departure of a carrier of the sample.
    pub(super) fn hours(&self, carrier: &str) -> &Counted<u16> {
        &self.hours[carrier]
    }

    /// Delays of departure of a carrier of the sample in a month, from zero; those of all carriers if its own are
    /// few.
    pub(super) fn delays(&self, carrier: &'static str, month: usize) -> &Counted<Delay> {
        let own = self.delays.get(&(carrier, month));
        own.filter(|delays| delays.total() >= ENOUGH).unwrap_or(&self.delays_of_month[month])
    }
}

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

fn number<T: std::str::FromStr>(word: &str) -> T {
    word.parse().unwrap_or_else(|_| panic!("`{word}` in the data of real flights is no such number"))
}

/// `value:count` pairs.
fn pairs<'a, T: std::str::FromStr>(words: impl Iterator<Item = &'a str>) -> impl Iterator<Item = (T, u64)> {
    words.map(|word| {
        let (value, count) = word.split_once(':').expect("the tool writes pairs");
        (number(value), number(count))
    })
}

fn airports(text: &'static str) -> Vec<Airport> {
    let airport = |line: &'static str| {
        let (code, city) = line.split_once(' ').expect("the tool writes a code and a city");
        Airport { code, city }
    };
    lines(text).map(airport).collect()
}

fn routes(text: &'static str, airports: &[Airport]) -> Vec<Route> {
    let index = |code: &str| {
        let index = airports.binary_search_by_key(&code, |airport| airport.code);
        index.expect("every route is between airports of the list") as u16
    };
    let mut routes = Vec::new();
    for line in lines(text) {
        let (origin, counts) = line.split_once(' ').expect("the tool writes an origin and counts");
        let counts = pairs::<String>(counts.split(' '));
        routes.extend(counts.map(|(destination, flights)| Route {
            origin: index(origin),
            destination: index(&destination),
            flights,
        }));
    }
    let served: Vec<u16> = routes.iter().flat_map(|route| [route.origin, route.destination]).collect();
    let others = (0..airports.len() as u16).filter(|airport| !served.contains(airport));
    let rare = others.zip(HUBS.into_iter().cycle()).flat_map(|(airport, hub)| {
        let there = Route { origin: index(hub), destination: airport, flights: RARE };
        [there, Route { origin: airport, destination: index(hub), ..there }]
    });
    let rare: Vec<Route> = rare.collect();
    routes.extend(rare);
    routes
}

fn sample(airports: Vec<Airport>, routes: Vec<Route>, text: &'static str) -> Sample {
    let (mut days, mut hours, mut delays) = ([[0; 7]; 12], BTreeMap::new(), BTreeMap::new());
    let mut of_months = vec![BTreeMap::<Delay, u64>::new(); 12];
    let mut differences = Counted::new([]);
    for line in lines(text) {
        let mut words = line.split(' ');
        let mut word = || words.next().expect("the tool writes whole lines");
        match word() {
            "days" => {
                let month: usize = number(word());
                days[month - 1] = std::array::from_fn(|_| number(word()));
            }
            "hours" => {
                hours.insert(word(), Counted::new(pairs(words)));
            }
            "delays" => {
                let (carrier, month, cancelled) = (word(), number::<usize>(word()) - 1, number(word()));
                let known = pairs(words).map(|(delay, count)| (Some(delay), count));
                let all: Vec<(Delay, u64)> = std::iter::once((None, cancelled)).chain(known).collect();
                for (delay, count) in &all {
                    *of_months[month].entry(*delay).or_default() += count;
                }
                delays.insert((carrier, month), Counted::new(all));
            }
            _ => differences = Counted::new(pairs(words)),
        }
    }
    let delays_of_month = of_months.into_iter().map(Counted::new).collect();
    Sample { airports, routes, days, hours, delays, delays_of_month, differences }
}

#[cfg(test)]
mod tests {
    use super::super::carriers::{CARRIERS, STUDY_ROWS};
    use super::*;

    #[test]
    fn the_counts_are_those_of_the_packages() {
        let sample = &*SAMPLE;
        assert_eq!(sample.airports.len(), 396);
        assert!(sample.airports.is_sorted_by(|one, next| one.code < next.code));
        let real: Vec<&Route> = sample.routes.iter().filter(|route| route.flights != RARE).collect();
        assert!((5_000..5_400).contains(&real.len()), "{}", real.len());
        let flights: u64 = sample.delays_of_month.iter().map(Counted::total).sum();
        assert_eq!(flights, 336_776);
        assert!(
            sample.days.iter().flatten().all(|flights| (500..1_100).contains(flights)),
            "{:?}",
            sample.days
        );
        for carrier in &CARRIERS {
            assert!(sample.hours(carrier.delays_of).total() > 0, "{}", carrier.code);
            assert!((0..12).all(|month| sample.delays(carrier.delays_of, month).total() >= ENOUGH));
        }
    }

    /// So that the study's cardinality holds without luck: each is expected dozens of times.
    #[test]
    fn at_the_size_of_the_study_every_airport_has_flights() {
        let sample = &*SAMPLE;
        let all: u64 = sample.routes.iter().map(|route| route.flights).sum();
        for airport in 0..sample.airports.len() as u16 {
            let own =
                sample.routes.iter().filter(|route| [route.origin, route.destination].contains(&airport));
            let flights: u64 = own.map(|route| route.flights).sum();
            let expected = STUDY_ROWS as f64 * flights as f64 / all as f64;
            assert!(expected > 30.0, "{}: {expected}", sample.airports[usize::from(airport)].code);
        }
    }

    #[test]
    fn a_value_is_drawn_as_often_as_it_was_seen() {
        let counted = Counted::new([('a', 1), ('b', 0), ('c', 3)]);
        let mut random = Random::seeded(&[1]);
        let drawn: Vec<char> = (0..4_000).map(|_| counted.draw(&mut random)).collect();
        let of = |value| drawn.iter().filter(|drawn| **drawn == value).count();
        assert!((900..1_100).contains(&of('a')) && of('b') == 0, "{} {}", of('a'), of('b'));
    }
}
