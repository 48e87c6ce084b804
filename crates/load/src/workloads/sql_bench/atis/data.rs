//! The generator of the rows of test-ATIS: nine airports, eleven cities, 579 flights between them, and
//! related data. Names and figures are generated. Numbers of rows, of distinct values and of matches between
//! tables are those of sql-bench's data.

use spindle_base::random::Random;

const AIRPORTS: usize = 9;
const AIRLINES: usize = 314;
const FLIGHTS: usize = 579;
const FARES: usize = 534;
const CONNECTIONS: usize = 164;
const RESTRICTIONS: usize = 65;
/// The time zone of each airport: hours to the west, an index into `ZONES`.
const AIRPORT_ZONES: [usize; AIRPORTS] = [0, 0, 0, 1, 2, 3, 0, 0, 3];
const ZONES: [&str; 4] = ["EST", "CST", "MST", "PST"];
/// State of each airport. Airports 5 and 8 share one, and so do 6 and 7.
const AIRPORT_STATES: [usize; AIRPORTS] = [0, 1, 2, 3, 4, 5, 6, 6, 5];
/// Aircraft: category, number of engines, count. Those without engines have unknown properties.
const AIRCRAFT: [(&str, usize, usize); 17] = [
    ("JET", 0, 12),
    ("JET", 2, 15),
    ("JET", 3, 10),
    ("JET", 4, 13),
    ("TURBOPROP", 2, 32),
    ("TURBOPROP", 0, 2),
    ("TURBOPROP", 1, 5),
    ("TURBOPROP", 4, 7),
    ("PROPELLER", 0, 2),
    ("PROPELLER", 1, 5),
    ("PROPELLER", 2, 16),
    ("PROPELLER", 3, 1),
    ("PROPELLER", 4, 3),
    ("HELICOPTER", 1, 3),
    ("HELICOPTER", 2, 4),
    ("AMPHIBIAN", 2, 3),
    ("", 0, 2),
];
/// Aircraft in service: four jets with unknown properties, four turboprops, fourteen other jets.
const FLEET: [usize; 22] =
    [0, 1, 2, 3, 50, 51, 52, 53, 12, 14, 16, 18, 20, 22, 27, 29, 31, 33, 37, 40, 43, 46];
const FLYING_AIRLINES: usize = 9;
/// Pairs of an airline and an aircraft that it flies.
const PAIRS: usize = 44;
const ROUTES: usize = AIRPORTS * (AIRPORTS - 1);
const CLASSES: [&str; 14] = ["Y", "F", "YN", "Q", "B", "FN", "M", "H", "BN", "K", "V", "QN", "C", "L"];
const CLASSES_OF_A_FLIGHT: usize = 5;
const BASE_CLASSES: [&str; 16] =
    ["Y", "F", "B", "Q", "M", "K", "H", "C", "A", "J", "L", "P", "S", "T", "V", "W"];
const NIGHT_CLASSES: [&str; 7] = ["BN", "CN", "FN", "KN", "QN", "VN", "YN"];
/// The last two flights of four hundred and thirty have the same number.
const FLIGHT_NUMBERS: usize = 430;
/// Number of flights with one fare, two, three and so on.
const FARES_OF_FLIGHTS: [usize; 11] = [2, 15, 126, 102, 81, 119, 64, 42, 11, 9, 8];
/// For each restriction in use: its number of fares, and its number of airlines.
const RESTRICTED: [(usize, usize); 8] =
    [(118, 20), (52, 28), (50, 27), (6, 34), (5, 34), (2, 30), (2, 34), (2, 12)];
const DAYS: [&str; 7] = ["MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY"];
const MONTHS: [&str; 12] = [
    "JANUARY",
    "FEBRUARY",
    "MARCH",
    "APRIL",
    "MAY",
    "JUNE",
    "JULY",
    "AUGUST",
    "SEPTEMBER",
    "OCTOBER",
    "NOVEMBER",
    "DECEMBER",
];
const DIRECTIONS: [&str; 8] = ["N", "NE", "E", "SE", "S", "SW", "W", "NW"];

/// The rows of a table in SQL syntax. They do not depend on the seed of a run, because the results of the
/// queries are fixed.
pub(super) fn rows(table: &str) -> Vec<String> {
    let random = &mut Random::seeded(&[1990, table.bytes().map(u64::from).sum()]);
    match table {
        "aircraft" => aircraft(random),
        "airline" => numbered(AIRLINES, |index| {
            let length = random.between(4, 35);
            format!("'{}', '{}', ''", code(index, 2), name(random, length))
        }),
        "airport" => numbered(AIRPORTS, |index| {
            let (state, zone) = (code(AIRPORT_STATES[index], 2), ZONES[AIRPORT_ZONES[index]]);
            format!(
                "'{}', '{}', '{}', '{state}', 'USA', '{zone}'",
                airport(index),
                name(random, 25),
                name(random, 18)
            )
        }),
        "airport_service" => airport_service(random),
        "city" => numbered(11, |index| {
            let at = city_airport(index);
            // The last city lies in another state than its airport.
            let state = if index == 10 { 7 } else { AIRPORT_STATES[at] };
            let zone = ZONES[AIRPORT_ZONES[at]];
            format!("'{}', '{}', '{}', 'USA', '{zone}'", city(index), name(random, 9), code(state, 2))
        }),
        "class_of_service" => {
            let bases = BASE_CLASSES.iter().chain(&NIGHT_CLASSES).chain(&["D", "E", "R", "U"]);
            let row =
                |(index, class): (usize, &&str)| format!("'{class}', {}, '{}'", index + 1, name(random, 28));
            bases.enumerate().map(row).collect()
        }
        "code_description" => numbered(15, |index| format!("'{}', '{}'", code(index, 3), name(random, 48))),
        "compound_class" => compound_class(),
        "connect_leg" => connect_leg(random),
        "fconnection" => numbered(CONNECTIONS, |index| {
            let route = random.between(0, ROUTES as u32 - 1) as usize;
            let (times, elapsed) = times(random, route, 90);
            let number = connection(index);
            format!("{number}, {}, {times}, '{}', 0, 1, {elapsed}", airports(route), flight_days(random))
        }),
        "day_name" => numbered(7, |day| format!("{}, '{}'", day + 1, DAYS[day])),
        "dual_carrier" => numbered(114, |index| {
            let low = 1_000 + 10 * index;
            let (main, dual) = (code(index % 24, 2), code(24 + index * 7 % 64, 2));
            format!("'{main}', '{dual}', {low}, {}, '{}'", low + 9, name(random, 14))
        }),
        "fare" => fares(random),
        "flight" => flights(random),
        "flight_class" => flight_class(),
        "flight_day" => flight_day(),
        "flight_fare" => flight_fare(random),
        "food_service" => numbered(121, |index| {
            let (number, class) = (index / 64 + 1, ["FIRST", "COACH"][index / 32 % 2]);
            let meal = ["BREAKFAST", "LUNCH", "DINNER", "SNACK"][index % 4];
            format!("'{}', {number}, '{class}', '{meal}'", meal_code(index % 32))
        }),
        "ground_service" => ground_service(random),
        "time_interval" => numbered(12, |index| {
            // The last period has two intervals.
            let begin = 200 * index;
            format!("'{}', {begin}, {}", name(random, 7) + &code(index.min(10), 2), begin + 200)
        }),
        "month_name" => numbered(12, |month| format!("{}, '{}'", month + 1, MONTHS[month])),
        "restrict_carrier" => restrict_carrier(),
        "restrict_class" => numbered(4, |index| format!("'{}', '{}'", restriction(1), code(index, 5))),
        "restriction" => numbered(RESTRICTIONS, |index| {
            let (application, discounts) = (name(random, 45), name(random, 25));
            let (ahead, shortest) = ([0, 3, 7, 14, 21, 30][index % 6], index % 7);
            let stopovers = ["Y", "N"][index % 2];
            format!(
                "'{}', '{application}', '{discounts}', {ahead}, '{stopovers}', {shortest}, {}",
                restriction(index),
                30 + 10 * (index % 14)
            )
        }),
        "state" => numbered(63, |index| {
            let country = if index < 51 { "USA" } else { "CANADA" };
            format!("'{}', '{}', '{country}'", code(index, 2), name(random, 9) + &code(index, 2))
        }),
        "stop1" => stops(random),
        "time_zone" => {
            let codes = ["EST", "CST", "MST", "PST", "YST", "AST", "AST", "HST", "NST"];
            numbered(9, |index| format!("'{}', '{}'", codes[index], name(random, 22)))
        }
        "transport" => numbered(4, |index| format!("'{}', '{}'", code(index, 1), name(random, 12))),
        unknown => unreachable!("{unknown} is no table of test-ATIS"),
    }
}

fn numbered(count: usize, row: impl FnMut(usize) -> String) -> Vec<String> {
    (0..count).map(row).collect()
}

/// A code that is unique for each index.
fn code(index: usize, length: u32) -> String {
    let letter = |place| char::from(b'A' + (index / 26usize.pow(place) % 26) as u8);
    (0..length).rev().map(letter).collect()
}

fn name(random: &mut Random, length: u32) -> String {
    random.letters(length as usize).to_uppercase()
}

fn airport(index: usize) -> String {
    code(1_000 + 77 * index, 3)
}

/// The airport that serves a city.
fn city_airport(index: usize) -> usize {
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 3, 2][index]
}

fn city(index: usize) -> String {
    format!("{}{}", code(index, 1), airport(city_airport(index)))
}

fn aircraft_code(index: usize) -> String {
    code(5_000 + 29 * index, 3)
}

fn connection(index: usize) -> usize {
    300_000 + 13 * index
}

fn restriction(index: usize) -> String {
    format!("AP/{}", index + 1)
}

fn fare_code(index: usize) -> usize {
    7_100_001 + index
}

fn flight_code(index: usize) -> usize {
    101_000 + 41 * index
}

fn meal_code(index: usize) -> String {
    code(index, 2)
}

/// The airports at both ends of a route.
fn ends(route: usize) -> (usize, usize) {
    let (from, other) = (route / (AIRPORTS - 1), route % (AIRPORTS - 1));
    (from, if other < from { other } else { other + 1 })
}

fn airports(route: usize) -> String {
    let (from, to) = ends(route);
    format!("'{}', '{}'", airport(from), airport(to))
}

/// Departure and arrival in local time, and the minutes between them.
fn times(random: &mut Random, route: usize, most_minutes: u32) -> (String, u32) {
    let (from, to) = ends(route);
    let (from, to) = (AIRPORT_ZONES[from] as i64, AIRPORT_ZONES[to] as i64);
    let elapsed = 45 + 70 * from.abs_diff(to) as u32 + random.between(0, most_minutes);
    let departure = 6 * 60 + 5 * i64::from(random.between(0, 194));
    let arrival = (departure + i64::from(elapsed) + 60 * (from - to)).rem_euclid(24 * 60);
    let clock = |minutes: i64| minutes / 60 * 100 + minutes % 60;
    (format!("{}, {}", clock(departure), clock(arrival)), elapsed)
}

/// Five of six flights operate every day of the week.
fn flight_days(random: &mut Random) -> &'static str {
    let rare = ["12345-7", "123456-", "-----6-", "------7", "12345--", "--34567", "-2-4--7"];
    if random.percent(84) { "1234567" } else { rare[random.between(0, rare.len() as u32 - 1) as usize] }
}

fn aircraft(random: &mut Random) -> Vec<String> {
    let kinds = AIRCRAFT.iter().flat_map(|&(category, engines, count)| vec![(category, engines); count]);
    let row = |(index, (category, engines)): (usize, (&str, usize))| {
        let length = random.between(8, 40);
        let head = format!("'{}', '{}', {engines}, '{category}'", aircraft_code(index), name(random, length));
        if engines == 0 {
            return format!("{head}, '', 0.00, 0.00, 0, 0, 0, 0, 0, ''");
        }
        let size = if category == "JET" { random.between(70, 200) } else { random.between(28, 110) };
        let is_wide = if size > 145 { "YES" } else { "NO" };
        // Ten more aircraft have an unknown range.
        let range = if (110..120).contains(&index) { 0 } else { 20 * size + random.between(1, 900) };
        format!(
            "{head}, '{is_wide}', {size}.25, {}.50, {}, {}, {}, {}, {range}, '{}'",
            size - 5,
            size * size * 12,
            2 * size - 40,
            size * size * 2,
            150 + 3 * size,
            if size > 60 { "YES" } else { "NO" }
        )
    };
    kinds.enumerate().map(row).collect()
}

fn airport_service(random: &mut Random) -> Vec<String> {
    let mut row = |at: usize, near: usize, direction: usize| {
        let (miles, minutes) = (random.between(3, 30), random.between(3, 14) * 5);
        format!("'{}', '{}', {miles}.0, '{}', {minutes}", city(at), airport(near), DIRECTIONS[direction % 8])
    };
    let mut rows: Vec<String> = (0..11).map(|at| row(at, city_airport(at), at)).collect();
    rows.push(row(5, 8, 7));
    // The same direction as its own airport, so that no group is added.
    rows.push(row(8, 5, 8));
    rows.push("'', '', 0.0, '', 0".to_owned());
    rows
}

/// Base class, season and days in up to three letters; then the night classes.
fn compound_class() -> Vec<String> {
    let combinations = ["", "H", "L", "O", "K"]
        .iter()
        .flat_map(|season| ["", "W", "X"].map(|days| (*season, days)))
        .flat_map(|(season, days)| BASE_CLASSES.map(|base| (base, season, days)));
    let yes = |is: bool| if is { "YES" } else { "NO" };
    let row = |(base, season, days): (&str, &str, &str), night: bool| {
        let kind = ["COACH", "FIRST", "BUSINESS", "THRIFT", "STANDARD", "SUPERSONIC"]
            [usize::from(base.as_bytes()[0]) % 6];
        let season_fare = match season {
            "H" => "HIGH",
            "L" => "LOW",
            "" => "NONE",
            _ => "MID",
        };
        let class_days = match days {
            "W" => "-----67",
            "X" => "12345--",
            _ => "1234567",
        };
        let (premium, economy) = (yes(base == "J" || base == "P"), yes(kind == "COACH" || kind == "THRIFT"));
        format!(
            "'{base}{season}{days}', '{base}', '{kind}', '{premium}', '{economy}', '{}', '{}', '{season_fare}', '{class_days}'",
            yes(kind == "THRIFT"),
            yes(night)
        )
    };
    combinations
        .take(149 - NIGHT_CLASSES.len())
        .map(|class| row(class, false))
        .chain(NIGHT_CLASSES.map(|base| row((base, "", ""), true)))
        .collect()
}

/// 142 connections of two flights, 21 of three and one of four.
fn connect_leg(random: &mut Random) -> Vec<String> {
    let legs = |index: usize| if index == 0 { 4 } else { 2 + usize::from(index <= 21) };
    let mut row = |index: usize, leg: usize| {
        let flight = 3 * (random.between(0, 181) as usize) + leg % 3;
        format!("{}, {}, {}", connection(index), leg + 1, flight_code(flight))
    };
    (0..CONNECTIONS)
        .flat_map(|index| (0..legs(index)).map(move |leg| (index, leg)))
        .map(|(index, leg)| row(index, leg))
        .collect()
}

fn fares(random: &mut Random) -> Vec<String> {
    let mut restrictions: Vec<String> = RESTRICTED
        .iter()
        .enumerate()
        .flat_map(|(index, &(fares, _))| vec![restriction(index); fares])
        .collect();
    restrictions.resize(FARES, String::new());
    random.shuffle(&mut restrictions);
    // Six fares of every route, and additional ones of the first twelve.
    let route = |index: usize| if index < 6 * ROUTES { index % ROUTES } else { index % 12 };
    let row = |(index, restriction): (usize, &String)| {
        let (from, to) = ends(route(index));
        let apart = AIRPORT_ZONES[from].abs_diff(AIRPORT_ZONES[to]) as u32;
        let cost = 60 + 130 * apart + random.between(0, 500);
        let carrier = if random.percent(74) { String::new() } else { code(random.between(0, 6) as usize, 2) };
        let class = match random.between(0, 9) {
            0..=3 => "Y",
            4..=5 => "F",
            6 => "B",
            7 => NIGHT_CLASSES[random.between(0, 6) as usize],
            _ => BASE_CLASSES[random.between(2, 12) as usize],
        };
        let round_trip = if random.percent(30) { 0 } else { 2 * cost };
        format!(
            "'{}', {}, '{class}', '{carrier}', '{restriction}', {cost}.00, {round_trip}.00",
            fare_code(index),
            airports(route(index))
        )
    };
    restrictions.iter().enumerate().map(row).collect()
}

/// One flight in seventeen has stops: its number among those.
fn stopping(flight: usize) -> Option<usize> {
    (flight % 17 == 5).then_some(flight / 17)
}

/// An index below the limit, skewed towards low ones. The skew, like the times of flights, was chosen to
/// match the numbers of rows that queries return.
fn skewed(random: &mut Random, limit: usize) -> usize {
    let unit = random.unit();
    (unit * (0.11 + 0.89 * unit) * limit as f64) as usize
}

fn class_string(flight: usize) -> usize {
    // Seventeen class strings; half of the flights have the first.
    if flight.is_multiple_of(2) { 0 } else { flight / 2 % 17 }
}

fn classes(flight: usize) -> [&'static str; CLASSES_OF_A_FLIGHT] {
    let kind = class_string(flight);
    let stride = if kind < 14 { 1 } else { 5 };
    std::array::from_fn(|place| CLASSES[(kind + place * stride) % 14])
}

fn flights(random: &mut Random) -> Vec<String> {
    let mut row = |index: usize| {
        let (pair, route) = match stopping(index) {
            // Four flights with an aircraft of unknown range, one with a turboprop, the rest with jets.
            Some(stopping @ 0..=4) => (stopping, 2 * stopping),
            Some(stopping) => (8 + stopping % 14, 2 * stopping),
            // Every airline flies each of its aircraft at least once.
            None if index < PAIRS + 3 => (index % PAIRS, skewed(random, ROUTES)),
            None => (skewed(random, PAIRS), skewed(random, ROUTES)),
        };
        let (airline, aircraft) = (code(pair % FLYING_AIRLINES, 2), aircraft_code(FLEET[pair % FLEET.len()]));
        let stops = match stopping(index) {
            Some(0) => 2,
            Some(_) => 1,
            None => 0,
        };
        let (times, elapsed) = times(random, route, 90);
        let meal = meal_code(skewed(random, 17));
        let shared = if random.percent(5) { "Y" } else { "N" };
        format!(
            "{}, '{}', {}, {times}, '{airline}', {}, '{}', '{aircraft}', '{meal}', {stops}, '{shared}', {elapsed}",
            flight_code(index),
            flight_days(random),
            airports(route),
            100 + 7 * index % FLIGHT_NUMBERS,
            classes(index).concat()
        )
    };
    (0..FLIGHTS).map(&mut row).collect()
}

fn flight_class() -> Vec<String> {
    let of = |flight| classes(flight).map(|class| format!("{}, '{class}'", flight_code(flight)));
    (0..FLIGHTS).flat_map(of).collect()
}

/// Every non-empty set of days, with each of its days.
fn flight_day() -> Vec<String> {
    let mut rows = Vec::new();
    for set in 1..128_u32 {
        let has = |day: &usize| set & (1 << day) != 0;
        let mask: String =
            (0..7).map(|day| if has(&day) { (day + 1).to_string() } else { "-".to_owned() }).collect();
        rows.extend((0..7).filter(has).map(|day| format!("'{mask}', {}, '{}'", day + 1, DAYS[day])));
    }
    rows
}

fn flight_fare(random: &mut Random) -> Vec<String> {
    let mut counts: Vec<usize> =
        FARES_OF_FLIGHTS.iter().enumerate().flat_map(|(index, &flights)| vec![index + 1; flights]).collect();
    random.shuffle(&mut counts);
    let of = |(flight, count): (usize, &usize)| {
        let first = 12 * flight;
        let row = move |fare| format!("{}, '{}'", flight_code(flight), fare_code((first + fare) % FARES));
        (0..*count).map(row).collect::<Vec<_>>()
    };
    counts.iter().enumerate().flat_map(of).collect()
}

/// Three kinds of transport into every city except the last, which has two. Only the first has a price.
fn ground_service(random: &mut Random) -> Vec<String> {
    let mut row = |index: usize| {
        let (at, way) = (index / 3, index % 3);
        let fare = if way == 0 { random.between(3, 12) } else { 0 };
        format!("'{}', '{}', '{}', {fare}.00", city(at), airport(city_airport(at)), code(way, 1))
    };
    let mut rows: Vec<String> = (0..32).map(&mut row).collect();
    rows.push("'', '', '', 0.00".to_owned());
    rows
}

fn restrict_carrier() -> Vec<String> {
    let carriers = |index: usize| match RESTRICTED.get(index) {
        Some((_, carriers)) => *carriers,
        None if index < RESTRICTIONS - 6 => 7,
        None => 6,
    };
    // 118 airlines have agreements.
    let row = |index: usize, carrier: usize| {
        format!("'{}', '{}'", restriction(index), code((11 * index + carrier) % 118, 2))
    };
    (0..RESTRICTIONS).flat_map(|index| (0..carriers(index)).map(move |carrier| row(index, carrier))).collect()
}

/// Two legs of each flight with stops; the first flight has a third leg.
fn stops(random: &mut Random) -> Vec<String> {
    let flights = (0..FLIGHTS).filter_map(|flight| Some((flight, stopping(flight)?)));
    flights
        .flat_map(|(flight, stopping)| (0..if stopping == 0 { 3 } else { 2 }).map(move |leg| (flight, leg)))
        .map(|(flight, leg)| {
            let over = flight_code(random.between(0, FLIGHTS as u32 - 1) as usize);
            format!("{}, {}, {over}", flight_code(flight), leg + 1)
        })
        .collect()
}
