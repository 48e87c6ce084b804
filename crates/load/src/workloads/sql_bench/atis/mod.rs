//! test-ATIS: 28 small tables about air travel, and selects on them: joins, DISTINCT and GROUP BY.
//!
//! Every query is checked by its number of result rows.

mod data;
mod tables;

use super::list::{Action, List, drop_if_exists};
use crate::sql::Dialect;
use data::{airport, city};
use tables::TABLES;

/// Executions of each query.
const LOOPS: u64 = 100;

pub(super) fn atis(list: &mut List) {
    for table in &TABLES {
        list.quietly(Action::Execute(drop_if_exists(table.name)));
    }
    let create = |table: &tables::Table| list.create_indexed(table.name, table.columns, table.indexes);
    let create: Vec<Action> = TABLES.iter().map(create).collect();
    list.creates(create);
    for table in &TABLES {
        list.fill(table.name, data::rows(table.name));
    }
    let loops = list.scaled(LOOPS);
    list.queries("select_simple_join", loops, simple_joins());
    list.queries("select_join", loops, vec![(format!("SELECT airline_name, aircraft_type {FLOWN}"), 579)]);
    list.queries("select_key_prefix_join", loops, vec![(restricted_fares(), 5_692)]);
    list.queries("select_distinct", loops, distinct());
    list.queries("select_group", loops, groups(list.dialect));
    list.changes("drop_table", TABLES.len() as u64, |index, _| {
        format!("DROP TABLE {}", TABLES[index as usize].name)
    });
}

/// Every flight joined with its aircraft and its airline.
const FLOWN: &str = "FROM aircraft c, airline a, flight f WHERE f.aircraft_code = c.aircraft_code AND f.airline_code = a.airline_code";
const FLIGHT_AIRCRAFT: &str = "FROM flight f, aircraft c WHERE f.aircraft_code = c.aircraft_code";
/// Matches as many rows as there are days in a week.
const MONTH_DAYS: &str = "FROM month_name m, day_name d WHERE m.month_number = d.day_code";
const FLIGHT_DAYS: &str = "FROM flight_day f, day_name d WHERE d.day_code = f.day_code";

fn with_rows(queries: &[(&str, u64)]) -> Vec<(String, u64)> {
    queries.iter().map(|(query, rows)| ((*query).to_owned(), *rows)).collect()
}

fn simple_joins() -> Vec<(String, u64)> {
    let cities = "SELECT c.city_name, s.state_name, c.city_code FROM city c, state s WHERE c.state_code = s.state_code";
    vec![
        (format!("{cities} AND c.city_code = '{}'", city(0)), 1),
        (cities.to_owned(), 11),
        (format!("SELECT m.month_name, d.day_name {MONTH_DAYS}"), 7),
        (format!("SELECT m.month_name, d.day_name {MONTH_DAYS} AND d.day_code >= 4"), 4),
        (format!("SELECT f.flight_code, c.aircraft_type {FLIGHT_AIRCRAFT}"), 579),
    ]
}

fn restricted_fares() -> String {
    "SELECT f.fare_code FROM restrict_carrier r, airline a, fare f \
     WHERE r.airline_code = a.airline_code AND f.restrict_code = r.restrict_code"
        .to_owned()
}

fn distinct() -> Vec<(String, u64)> {
    // The same tables in another order.
    let flown = "FROM flight f, aircraft c, airline a WHERE f.aircraft_code = c.aircraft_code AND f.airline_code = a.airline_code";
    let mut queries = with_rows(&[
        ("SELECT DISTINCT category FROM aircraft", 6),
        ("SELECT DISTINCT from_airport FROM flight", 9),
        ("SELECT DISTINCT aircraft_code FROM flight", 22),
        ("SELECT DISTINCT * FROM fare", 534),
        ("SELECT DISTINCT flight_code FROM flight_fare", 579),
    ]);
    queries.extend([
        (format!("SELECT DISTINCT f.flight_code, c.aircraft_type {FLIGHT_AIRCRAFT}"), 579),
        (format!("SELECT DISTINCT a.airline_name, c.aircraft_type {FLOWN}"), 44),
        (format!("SELECT DISTINCT a.airline_name, c.aircraft_type {flown}"), 44),
    ]);
    queries
}

/// Converts a time in hours and minutes to minutes.
fn minutes(time: &str) -> String {
    format!("({time} - {time} % 100) / 100 * 60 + {time} % 100")
}

fn groups(dialect: Dialect) -> Vec<(String, u64)> {
    let deviation = match dialect {
        Dialect::Mysql => "STD(engines)",
        Dialect::Postgres => "STDDEV_POP(engines)",
        // SQLite has no square root; this is the square.
        Dialect::Sqlite => "AVG(engines * engines) - AVG(engines) * AVG(engines)",
    };
    let total = if dialect == Dialect::Postgres { "COUNT(*)" } else { "total" };
    let mut queries = vec![
        (
            format!(
                "SELECT d.day_name, d.day_code, COUNT(*) {FLIGHT_DAYS} GROUP BY d.day_name, d.day_code ORDER BY d.day_code"
            ),
            7,
        ),
        (format!("SELECT d.day_name, COUNT(*) {FLIGHT_DAYS} GROUP BY d.day_name"), 7),
        (
            format!(
                "SELECT m.month_name, d.day_name {MONTH_DAYS} AND d.day_code > 3 GROUP BY m.month_name, d.day_name"
            ),
            4,
        ),
        (
            format!(
                "SELECT d.day_name, f.day_code, COUNT(*) {FLIGHT_DAYS} GROUP BY f.day_code, d.day_name ORDER BY f.day_code"
            ),
            7,
        ),
        (format!("SELECT {deviation} FROM aircraft"), 1),
        (
            format!(
                "SELECT category, COUNT(*) AS total FROM aircraft WHERE engines = 2 GROUP BY category HAVING {total} > 4"
            ),
            3,
        ),
        (
            format!(
                "SELECT from_airport, to_airport, AVG(time_elapsed) FROM flight WHERE from_airport = '{}' AND to_airport = '{}' \
                 GROUP BY from_airport, to_airport",
                airport(0),
                airport(1)
            ),
            1,
        ),
        (
            format!(
                "SELECT from_airport, to_airport, f.fare_class, night, one_way_cost, rnd_trip_cost, class_days \
                 FROM compound_class c, fare f WHERE c.fare_class = f.fare_class AND one_way_cost <= 825 AND one_way_cost >= 310 \
                 AND from_airport = '{}' AND to_airport = '{}' \
                 GROUP BY from_airport, to_airport, f.fare_class, night, one_way_cost, rnd_trip_cost, class_days ORDER BY one_way_cost",
                airport(0),
                airport(1)
            ),
            10,
        ),
    ];
    queries.extend(with_rows(&[
        ("SELECT SUM(engines) FROM aircraft", 1),
        ("SELECT AVG(engines) FROM aircraft", 1),
        ("SELECT AVG(engines) FROM aircraft WHERE engines > 0", 1),
        ("SELECT COUNT(*), MIN(pay_load), MAX(pay_load) FROM aircraft WHERE pay_load > 0", 1),
        ("SELECT MIN(flight_code), MAX(flight_code) FROM flight", 1),
        ("SELECT MIN(from_airport), MIN(to_airport) FROM flight", 1),
        ("SELECT COUNT(*) FROM aircraft WHERE pay_load > 10000", 1),
        ("SELECT COUNT(*) FROM aircraft WHERE pay_load <> 0", 1),
        ("SELECT COUNT(*) FROM flight WHERE flight_code >= 112793", 1),
        ("SELECT city_code, AVG(ground_fare) FROM ground_service WHERE ground_fare <> 0 GROUP BY city_code", 11),
        ("SELECT COUNT(*), city_code FROM ground_service GROUP BY city_code", 12),
        ("SELECT category, COUNT(*) FROM aircraft WHERE engines = 2 GROUP BY category HAVING COUNT(*) > 4", 3),
        (
            "SELECT f.flight_number, c.range_miles, k.fare_class FROM aircraft c, flight f, flight_class k \
             WHERE f.flight_code = k.flight_code AND f.aircraft_code = c.aircraft_code AND c.range_miles <> 0 \
             AND (f.stops = 1 OR f.stops = 2) GROUP BY f.flight_number, c.range_miles, k.fare_class",
            150,
        ),
        (
            "SELECT from_airport, to_airport, range_miles, time_elapsed FROM aircraft c, flight f \
             WHERE c.aircraft_code = f.aircraft_code AND to_airport NOT LIKE from_airport AND range_miles <> 0 AND time_elapsed <> 0 \
             GROUP BY from_airport, to_airport, range_miles, time_elapsed",
            409,
        ),
        (
            "SELECT engines, category, cruising_speed, from_airport, to_airport FROM aircraft c, flight f \
             WHERE category = 'JET' AND engines >= 1 AND c.aircraft_code = f.aircraft_code AND to_airport NOT LIKE from_airport \
             AND stops > 0 GROUP BY engines, category, cruising_speed, from_airport, to_airport ORDER BY engines DESC",
            29,
        ),
    ]));
    queries.extend(zone_differences());
    queries.extend(services());
    queries
}

/// Time zone differences from the times of flights: by local clocks, and corrected by a day for flights past
/// midnight.
fn zone_differences() -> [(String, u64); 2] {
    let difference =
        format!("({} - ({}) - time_elapsed) / 60", minutes("arrival_time"), minutes("departure_time"));
    let from = "FROM flight, airport a, airport b WHERE flight.from_airport = a.airport_code AND flight.to_airport = b.airport_code";
    let within_a_day = format!("({difference} + 36) % 24 - 12");
    [
        (
            format!(
                "SELECT DISTINCT a.time_zone_code, b.time_zone_code, {difference} AS zone_difference {from} \
                 GROUP BY a.time_zone_code, b.time_zone_code, arrival_time, departure_time, time_elapsed"
            ),
            21,
        ),
        (
            format!(
                "SELECT DISTINCT a.time_zone_code, b.time_zone_code, {within_a_day} AS zone_difference {from} AND {within_a_day} < 10"
            ),
            14,
        ),
    ]
}

/// Directions of the airports in a city's own state.
fn services() -> Vec<(String, u64)> {
    let query = "SELECT a.country_name, t.state_name, c.city_name, s.direction \
        FROM airport_service s, state t, airport a, city c \
        WHERE s.city_code = c.city_code AND s.airport_code = a.airport_code AND t.state_code = a.state_code \
        AND t.state_code = c.state_code AND a.state_code = c.state_code AND a.country_name = c.country_name \
        AND a.country_name = t.country_name AND c.time_zone_code = a.time_zone_code \
        GROUP BY a.country_name, t.state_name, c.city_name, s.direction ORDER BY t.state_name";
    ["", " DESC", ""].map(|order| (format!("{query}{order}"), 11)).to_vec()
}
