//! The tables of the study: a staging table, and the star that is made of it.

use super::calendar;
use super::carriers::YEARS;
use crate::sql::{Dialect, Engine};

/// The dimensions besides their keys; `dim_airport` has two roles, origin and destination.
pub(super) const TABLES: [&str; 5] = ["dim_date", "dim_airport", "dim_flight", "dim_carrier", FACT];
pub(super) const FACT: &str = "ontime_fact";
pub(super) const STAGING: &str = "ontime_staging";
/// The days of a server, while it is loaded: of several servers, each has flights of its own days.
pub(super) const DAYS: &str = "ontime_days";
pub(super) const CREATE_DAYS: &str = "CREATE TABLE ontime_days (own_date_id INTEGER NOT NULL PRIMARY KEY)";

/// The study printed parts of its tables only. What its queries do not name has the names of the published
/// data.
const DATE: &str = "date_id INTEGER NOT NULL PRIMARY KEY, FlightDate DATE NOT NULL UNIQUE, Year SMALLINT NOT NULL, Quarter SMALLINT NOT NULL, Month SMALLINT NOT NULL, DayofMonth SMALLINT NOT NULL, DayOfWeek SMALLINT NOT NULL";
const AIRPORT: &str = "Airport VARCHAR(4) NOT NULL UNIQUE, CityName VARCHAR(60) NOT NULL";
const FLIGHT: &str = "UniqueCarrier VARCHAR(2) NOT NULL, Carrier VARCHAR(2) NOT NULL, FlightNum INTEGER NOT NULL, UNIQUE (UniqueCarrier, FlightNum)";
const CARRIER: &str = "UniqueCarrier VARCHAR(2) NOT NULL PRIMARY KEY, CarrierName VARCHAR(40) NOT NULL";
const FACTS: &str = "date_id INTEGER NOT NULL, origin_airport_id INTEGER NOT NULL, dest_airport_id INTEGER NOT NULL, flight_id INTEGER NOT NULL, CRSDepTime SMALLINT NOT NULL, DepDelay SMALLINT, ArrDelay SMALLINT, Cancelled SMALLINT NOT NULL";
const STAGED: &str = "FlightDate DATE NOT NULL, UniqueCarrier VARCHAR(2) NOT NULL, FlightNum INTEGER NOT NULL, Origin VARCHAR(4) NOT NULL, OriginCityName VARCHAR(60) NOT NULL, Dest VARCHAR(4) NOT NULL, DestCityName VARCHAR(60) NOT NULL, CRSDepTime SMALLINT NOT NULL, DepDelay SMALLINT, ArrDelay SMALLINT, Cancelled SMALLINT NOT NULL";

/// Airports, then flights that are new in the staging table, then its rows of the server's days with the keys of the
/// dimensions. The order makes the numbers of new ones the same in every database of a seed.
pub(super) const FROM_STAGING: [&str; 3] = [
    "INSERT INTO dim_airport (Airport, CityName) \
     SELECT staged.Airport, staged.CityName \
       FROM (SELECT Origin AS Airport, OriginCityName AS CityName FROM ontime_staging \
             UNION SELECT Dest, DestCityName FROM ontime_staging) staged \
       LEFT JOIN dim_airport known ON known.Airport = staged.Airport \
      WHERE known.airport_id IS NULL \
      ORDER BY staged.Airport",
    "INSERT INTO dim_flight (UniqueCarrier, Carrier, FlightNum) \
     SELECT staged.UniqueCarrier, staged.UniqueCarrier, staged.FlightNum \
       FROM (SELECT DISTINCT UniqueCarrier, FlightNum FROM ontime_staging) staged \
       LEFT JOIN dim_flight known \
         ON known.UniqueCarrier = staged.UniqueCarrier AND known.FlightNum = staged.FlightNum \
      WHERE known.flight_id IS NULL \
      ORDER BY staged.UniqueCarrier, staged.FlightNum",
    "INSERT INTO ontime_fact \
     SELECT date_id, origin.airport_id, dest.airport_id, flight_id, CRSDepTime, DepDelay, ArrDelay, Cancelled \
       FROM ontime_staging staged \
       JOIN dim_date ON dim_date.FlightDate = staged.FlightDate \
       JOIN ontime_days ON own_date_id = date_id \
       JOIN dim_airport origin ON origin.Airport = staged.Origin \
       JOIN dim_airport dest ON dest.Airport = staged.Dest \
       JOIN dim_flight \
         ON dim_flight.UniqueCarrier = staged.UniqueCarrier AND dim_flight.FlightNum = staged.FlightNum",
];

/// After the rows, unless they are in partitions. The study's column store had no indexes; a row store would read the
/// whole table for one year.
pub(super) const INDEX: &str = "CREATE INDEX ontime_fact_by_date ON ontime_fact (date_id)";

/// The tables of the star. `engine` is that of all of them; `None`: the server's default.
pub(super) fn create(dialect: Dialect, engine: Option<Engine>, is_partitioned: bool) -> Vec<String> {
    let airport = format!("{}, {AIRPORT}", dialect.numbered_key("airport_id"));
    let flight = format!("{}, {FLIGHT}", dialect.numbered_key("flight_id"));
    let columns = [DATE, &airport, &flight, CARRIER, FACTS];
    let tables = TABLES.into_iter().zip(columns).map(|(table, columns)| {
        let create = dialect.create_table_in(&format!("CREATE TABLE {table} ({columns})"), engine);
        if table == FACT && is_partitioned { format!("{create} {}", by_year()) } else { create }
    });
    tables.collect()
}

/// As in the study, MySQL's table is of MyISAM.
pub(super) fn create_staging(dialect: Dialect) -> String {
    dialect.create_table_in(&format!("CREATE TABLE {STAGING} ({STAGED})"), Some(Engine::Myisam))
}

/// One partition for each year.
fn by_year() -> String {
    let partitions = YEARS.map(|year| {
        let last = calendar::days(year).last().map_or(0, |day| day.date_id);
        format!("PARTITION y{year} VALUES LESS THAN ({})", last + 1)
    });
    format!("PARTITION BY RANGE (date_id) ({})", partitions.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_the_days_of_a_year() {
        let partitions = by_year();
        assert!(
            partitions
                .contains("(PARTITION y1988 VALUES LESS THAN (367), PARTITION y1989 VALUES LESS THAN (732)")
        );
        assert!(partitions.ends_with("PARTITION y2010 VALUES LESS THAN (8402))"), "{partitions}");
    }
}
