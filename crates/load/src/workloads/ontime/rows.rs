//! The flights of a year, drawn from the counts of real ones.
//!
//! Each flight has a real route, in proportion to the flights of 2008; a day, in proportion to the flights on that
//! day of the week in that month of 2013; a carrier that flew in that year and serves the route; and hour, delay and
//! cancellation of a real flight of such a carrier in that month of 2013. These are drawn independently of each
//! other. Which carriers serve a route is drawn once for all, busy routes having more of them.

use std::io::{self, Write};

use super::calendar::{self, Day};
use super::carriers::CARRIERS;
use super::sample::{Counted, Delay, SAMPLE};
use spindle_base::random::Random;

/// Of the draw of carriers for routes, which is the same in every database.
const NETWORK: u64 = 20_110_506;
/// Of the draw of flights.
const FLIGHTS: u64 = 135;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Flight {
    pub(super) day: Day,
    /// Index of [`CARRIERS`].
    pub(super) carrier: u8,
    pub(super) number: u16,
    /// Indexes of airports.
    pub(super) origin: u16,
    pub(super) destination: u16,
    /// Scheduled departure, as hours times 100 plus minutes.
    pub(super) departure_time: u16,
    pub(super) departure_delay: Delay,
    pub(super) arrival_delay: Delay,
}

impl Flight {
    /// By the condition of the queries, more than ten minutes.
    pub(super) fn is_delayed(&self) -> bool {
        self.departure_delay.is_some_and(|delay| delay > 10)
    }

    /// The row of the staging table.
    pub(super) fn write(&self, output: &mut dyn Write) -> io::Result<()> {
        let airport = |index: u16| &SAMPLE.airports[usize::from(index)];
        let (origin, destination) = (airport(self.origin), airport(self.destination));
        let carrier = CARRIERS[usize::from(self.carrier)].code;
        let minutes = |delay: Delay| delay.map_or("\\N".to_owned(), |minutes| minutes.to_string());
        writeln!(
            output,
            "{}\t{carrier}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}",
            self.day.date(),
            self.number,
            origin.code,
            origin.city,
            destination.code,
            destination.city,
            self.departure_time,
            minutes(self.departure_delay),
            minutes(self.arrival_delay),
            u8::from(self.departure_delay.is_none()),
        )
    }
}

/// What the flights of one year are drawn from.
#[derive(Debug)]
pub(super) struct Year {
    pub(super) year: u16,
    days: Counted<Day>,
    /// Indexes of routes.
    routes: Counted<u16>,
    /// Indexes of carriers, by route.
    carriers: Vec<Counted<u8>>,
}

impl Year {
    pub(super) fn new(year: u16) -> Year {
        let of_day = |day: Day| {
            let flights = SAMPLE.days[usize::from(day.month) - 1][usize::from(day.day_of_week) - 1];
            (day, flights)
        };
        let routes = (0..).zip(&SAMPLE.routes);
        Year {
            year,
            days: Counted::new(calendar::days(year).into_iter().map(of_day)),
            routes: Counted::new(routes.clone().map(|(index, route)| (index, route.flights))),
            carriers: routes.map(|(index, route)| carriers_of(index, route.flights, year)).collect(),
        }
    }

    /// The flights of one part; equal seeds and parts give equal flights.
    pub(super) fn flights(&self, seed: u64, part: u64, count: u64) -> impl Iterator<Item = Flight> {
        let mut random = Random::seeded(&[seed, FLIGHTS, self.year.into(), part]);
        (0..count).map(move |_| self.flight(&mut random))
    }

    fn flight(&self, random: &mut Random) -> Flight {
        let sample = &*SAMPLE;
        let day = self.days.draw(random);
        let route_index = usize::from(self.routes.draw(random));
        let route = sample.routes[route_index];
        let carrier_index = self.carriers[route_index].draw(random);
        let carrier = &CARRIERS[usize::from(carrier_index)];
        let number = random.between(1, carrier.flights.into()) as u16;
        let hour = sample.hours(carrier.delays_of).draw(random);
        let minute = random.between(0, 59) as u16;
        let month = usize::from(day.month) - 1;
        let departure_delay = sample.delays(carrier.delays_of, month).draw(random);
        let difference = sample.differences.draw(random);
        Flight {
            day,
            carrier: carrier_index,
            number,
            origin: route.origin,
            destination: route.destination,
            departure_time: hour * 100 + minute,
            departure_delay,
            arrival_delay: departure_delay.map(|delay| delay + difference),
        }
    }
}

/// Those that serve the route and fly in the year; all that fly then, if none of them serves it.
fn carriers_of(route: u16, flights: u64, year: u16) -> Counted<u8> {
    let share = f64::log2(flights as f64 + 1.0) / 50.0;
    let flying = || (0_u8..).zip(&CARRIERS).filter(|(_, carrier)| carrier.flies_in(year));
    let serves = |carrier: u8| Random::seeded(&[NETWORK, route.into(), carrier.into()]).unit() < share;
    let weighted = |(index, carrier): (u8, &super::carriers::Carrier)| (index, carrier.weight.into());
    let serving = Counted::new(flying().filter(|(index, _)| serves(*index)).map(weighted));
    if serving.total() > 0 { serving } else { Counted::new(flying().map(weighted)) }
}

#[cfg(test)]
mod tests {
    use super::super::carriers::{STUDY_ROWS, YEARS, rows_by_year};
    use super::*;

    #[test]
    fn one_seed_gives_one_database() {
        let year = Year::new(2007);
        let flights = |seed, part| year.flights(seed, part, 100).collect::<Vec<_>>();
        assert_eq!(flights(1, 0), flights(1, 0));
        assert_ne!(flights(1, 0), flights(2, 0));
        assert_ne!(flights(1, 0), flights(1, 1));
        let mut line = Vec::new();
        flights(1, 0)[0].write(&mut line).unwrap();
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.matches('\t').count(), 10, "{line}");
        assert!(line.starts_with("2007-") && line.is_ascii(), "{line}");
    }

    /// The study's cardinality of flights, without its rows: each number of a carrier is expected dozens of times.
    #[test]
    fn at_the_size_of_the_study_every_flight_is_there() {
        let mut expected = [0.0; 29];
        for (year, rows) in rows_by_year(STUDY_ROWS) {
            let drawn = Year::new(year);
            for (route, carriers) in SAMPLE.routes.iter().zip(&drawn.carriers) {
                let on_route = rows as f64 * route.flights as f64 / drawn.routes.total() as f64;
                for (index, weight) in carriers.counts() {
                    expected[usize::from(index)] += on_route * weight as f64 / carriers.total() as f64;
                }
            }
        }
        assert!((expected.iter().sum::<f64>() / STUDY_ROWS as f64 - 1.0).abs() < 1e-9);
        for (carrier, rows) in CARRIERS.iter().zip(expected) {
            assert!(rows / f64::from(carrier.flights) > 50.0, "{}: {rows}", carrier.code);
        }
    }

    #[test]
    fn delays_are_those_of_real_flights() {
        let all: Vec<Flight> =
            YEARS.flat_map(|year| Year::new(year).flights(1, 0, 1_000).collect::<Vec<_>>()).collect();
        let share = |is_so: fn(&Flight) -> bool| {
            all.iter().filter(|flight| is_so(flight)).count() as f64 / all.len() as f64
        };
        // Of the sample, 2.5 % are cancelled and 26 % leave more than ten minutes late.
        assert!((0.01..0.05).contains(&share(|flight| flight.departure_delay.is_none())));
        assert!((0.20..0.32).contains(&share(Flight::is_delayed)), "{}", share(Flight::is_delayed));
        assert!(all.iter().all(|flight| CARRIERS[usize::from(flight.carrier)].flies_in(flight.day.year)));
    }
}
