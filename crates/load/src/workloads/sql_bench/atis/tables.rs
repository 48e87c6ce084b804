//! The columns and keys of test-ATIS, as the database of the Air Travel Information System has them.

pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static str,
    /// Secondary indexes, as (name, columns).
    pub(super) indexes: &'static [(&'static str, &'static str)],
}

const fn table(name: &'static str, columns: &'static str) -> Table {
    Table { name, columns, indexes: &[] }
}

/// In the order of the load.
pub(super) const TABLES: [Table; 28] = [
    table(
        "aircraft",
        "aircraft_code CHAR(3) NOT NULL, aircraft_type CHAR(64) NOT NULL, engines SMALLINT NOT NULL, category CHAR(10) NOT NULL, \
         wide_body CHAR(3) NOT NULL, wing_span FLOAT NOT NULL, length1 FLOAT NOT NULL, weight INTEGER NOT NULL, \
         capacity SMALLINT NOT NULL, pay_load INTEGER NOT NULL, cruising_speed INTEGER NOT NULL, range_miles INTEGER NOT NULL, \
         pressurized CHAR(3) NOT NULL, PRIMARY KEY (aircraft_code)",
    ),
    table(
        "airline",
        "airline_code CHAR(2) NOT NULL, airline_name CHAR(64) NOT NULL, notes CHAR(38) NOT NULL, PRIMARY KEY (airline_code)",
    ),
    table(
        "airport",
        "airport_code CHAR(3) NOT NULL, airport_name CHAR(40) NOT NULL, location CHAR(36) NOT NULL, state_code CHAR(2) NOT NULL, \
         country_name CHAR(25) NOT NULL, time_zone_code CHAR(3) NOT NULL, PRIMARY KEY (airport_code)",
    ),
    table(
        "airport_service",
        "city_code CHAR(4) NOT NULL, airport_code CHAR(3) NOT NULL, miles_distant FLOAT NOT NULL, direction CHAR(3) NOT NULL, \
         minutes_distant SMALLINT NOT NULL, PRIMARY KEY (city_code, airport_code)",
    ),
    table(
        "city",
        "city_code CHAR(4) NOT NULL, city_name CHAR(25) NOT NULL, state_code CHAR(2) NOT NULL, country_name CHAR(25) NOT NULL, \
         time_zone_code CHAR(3) NOT NULL, PRIMARY KEY (city_code)",
    ),
    table(
        "class_of_service",
        "class_code CHAR(2) NOT NULL, class_rank SMALLINT NOT NULL, class_description CHAR(80) NOT NULL, PRIMARY KEY (class_code)",
    ),
    table("code_description", "code CHAR(5) NOT NULL, description CHAR(110) NOT NULL, PRIMARY KEY (code)"),
    table(
        "compound_class",
        "fare_class CHAR(3) NOT NULL, base_class CHAR(2) NOT NULL, class_type CHAR(10) NOT NULL, premium CHAR(3) NOT NULL, \
         economy CHAR(3) NOT NULL, discounted CHAR(3) NOT NULL, night CHAR(3) NOT NULL, season_fare CHAR(4) NOT NULL, \
         class_days CHAR(7) NOT NULL, PRIMARY KEY (fare_class)",
    ),
    table(
        "connect_leg",
        "connect_code INTEGER NOT NULL, leg_number SMALLINT NOT NULL, flight_code INTEGER NOT NULL, \
         PRIMARY KEY (connect_code, leg_number, flight_code)",
    ),
    Table {
        name: "fconnection",
        columns: "connect_code INTEGER NOT NULL, from_airport CHAR(3) NOT NULL, to_airport CHAR(3) NOT NULL, \
            departure_time SMALLINT NOT NULL, arrival_time SMALLINT NOT NULL, flight_days CHAR(7) NOT NULL, stops SMALLINT NOT NULL, \
            connections SMALLINT NOT NULL, time_elapsed SMALLINT NOT NULL, PRIMARY KEY (connect_code)",
        indexes: &[("from_airport1", "from_airport"), ("to_airport1", "to_airport")],
    },
    table("day_name", "day_code SMALLINT NOT NULL, day_name CHAR(9) NOT NULL, PRIMARY KEY (day_code)"),
    Table {
        name: "dual_carrier",
        columns: "main_airline CHAR(2) NOT NULL, dual_airline CHAR(2) NOT NULL, low_flight SMALLINT NOT NULL, \
            high_flight SMALLINT NOT NULL, fconnection_name CHAR(64) NOT NULL, PRIMARY KEY (main_airline, dual_airline, low_flight)",
        indexes: &[("main_airline1", "main_airline")],
    },
    Table {
        name: "fare",
        columns: "fare_code CHAR(8) NOT NULL, from_airport CHAR(3) NOT NULL, to_airport CHAR(3) NOT NULL, fare_class CHAR(3) NOT NULL, \
            fare_airline CHAR(2) NOT NULL, restrict_code CHAR(5) NOT NULL, one_way_cost FLOAT NOT NULL, rnd_trip_cost FLOAT NOT NULL, \
            PRIMARY KEY (fare_code)",
        indexes: &[("from_airport2", "from_airport"), ("to_airport2", "to_airport")],
    },
    Table {
        name: "flight",
        columns: "flight_code INTEGER NOT NULL, flight_days CHAR(7) NOT NULL, from_airport CHAR(3) NOT NULL, to_airport CHAR(3) NOT NULL, \
            departure_time SMALLINT NOT NULL, arrival_time SMALLINT NOT NULL, airline_code CHAR(2) NOT NULL, \
            flight_number SMALLINT NOT NULL, class_string CHAR(8) NOT NULL, aircraft_code CHAR(3) NOT NULL, meal_code CHAR(7) NOT NULL, \
            stops SMALLINT NOT NULL, dual_carrier CHAR(1) NOT NULL, time_elapsed SMALLINT NOT NULL, PRIMARY KEY (flight_code)",
        indexes: &[("from_airport3", "from_airport"), ("to_airport3", "to_airport")],
    },
    table(
        "flight_class",
        "flight_code INTEGER NOT NULL, fare_class CHAR(3) NOT NULL, PRIMARY KEY (flight_code, fare_class)",
    ),
    table(
        "flight_day",
        "day_mask CHAR(7) NOT NULL, day_code SMALLINT NOT NULL, day_name CHAR(9) NOT NULL, PRIMARY KEY (day_mask, day_code)",
    ),
    table(
        "flight_fare",
        "flight_code INTEGER NOT NULL, fare_code CHAR(8) NOT NULL, PRIMARY KEY (flight_code, fare_code)",
    ),
    table(
        "food_service",
        "meal_code CHAR(4) NOT NULL, meal_number SMALLINT NOT NULL, meal_class CHAR(10) NOT NULL, meal_description CHAR(10) NOT NULL, \
         PRIMARY KEY (meal_code, meal_number, meal_class)",
    ),
    table(
        "ground_service",
        "city_code CHAR(4) NOT NULL, airport_code CHAR(3) NOT NULL, transport_code CHAR(1) NOT NULL, ground_fare FLOAT NOT NULL, \
         PRIMARY KEY (city_code, airport_code, transport_code)",
    ),
    table(
        "time_interval",
        "period CHAR(20) NOT NULL, begin_time SMALLINT NOT NULL, end_time SMALLINT NOT NULL, PRIMARY KEY (period, begin_time)",
    ),
    table(
        "month_name",
        "month_number SMALLINT NOT NULL, month_name CHAR(9) NOT NULL, PRIMARY KEY (month_number)",
    ),
    table(
        "restrict_carrier",
        "restrict_code CHAR(5) NOT NULL, airline_code CHAR(2) NOT NULL, PRIMARY KEY (restrict_code, airline_code)",
    ),
    table(
        "restrict_class",
        "restrict_code CHAR(5) NOT NULL, ex_fare_class CHAR(12) NOT NULL, PRIMARY KEY (restrict_code, ex_fare_class)",
    ),
    table(
        "restriction",
        "restrict_code CHAR(5) NOT NULL, application CHAR(80) NOT NULL, no_discounts CHAR(80) NOT NULL, \
         reserve_ticket SMALLINT NOT NULL, stopovers CHAR(1) NOT NULL, return_min SMALLINT NOT NULL, return_max SMALLINT NOT NULL, \
         PRIMARY KEY (restrict_code)",
    ),
    table(
        "state",
        "state_code CHAR(2) NOT NULL, state_name CHAR(25) NOT NULL, country_name CHAR(25) NOT NULL, PRIMARY KEY (state_code)",
    ),
    table(
        "stop1",
        "flight_code INTEGER NOT NULL, stop_number SMALLINT NOT NULL, stop_flight INTEGER NOT NULL, \
         PRIMARY KEY (flight_code, stop_number)",
    ),
    table(
        "time_zone",
        "time_zone_code CHAR(3) NOT NULL, time_zone_name CHAR(32) NOT NULL, PRIMARY KEY (time_zone_code, time_zone_name)",
    ),
    table(
        "transport",
        "transport_code CHAR(1) NOT NULL, transport_desc CHAR(32) NOT NULL, PRIMARY KEY (transport_code)",
    ),
];
