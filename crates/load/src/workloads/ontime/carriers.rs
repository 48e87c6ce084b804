//! The 29 carriers of the flights from 1988 to 2010, and the flights of each year.
//!
//! Codes, names and years are facts of the real data. The weights are round figures near the real shares, and the
//! numbers of flights share the study's 58,625 in proportion to weight and years. Both are assumptions.

use std::ops::RangeInclusive;

/// Calendar years of the data.
pub(super) const YEARS: RangeInclusive<u16> = 1988..=2010;

/// Rows of the study's `ontime_fact`.
pub(super) const STUDY_ROWS: u64 = 135_125_787;

/// Flights of each year in the published data, which together are one row fewer than the study counted; 2008 has
/// it here.
const FLIGHTS: [u64; 23] = [
    5_202_096, 5_041_200, 5_270_893, 5_076_925, 5_092_157, 5_070_501, 5_180_048, 5_327_435, 5_351_983,
    5_411_843, 5_384_721, 5_527_884, 5_683_047, 5_967_780, 5_271_359, 6_488_540, 7_129_270, 7_140_596,
    7_141_922, 7_455_458, 7_009_727, 6_450_285, 6_450_117,
];

/// The years, each with its share of `rows`; the shares add up to `rows`.
pub(super) fn rows_by_year(rows: u64) -> Vec<(u16, u64)> {
    let until = |flights: u64| (u128::from(rows) * u128::from(flights) / u128::from(STUDY_ROWS)) as u64;
    let mut flights_before = 0;
    let of_year = |(year, flights): (u16, u64)| {
        let before = until(flights_before);
        flights_before += flights;
        (year, until(flights_before) - before)
    };
    YEARS.zip(FLIGHTS).map(of_year).collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Carrier {
    pub(super) code: &'static str,
    pub(super) name: &'static str,
    first_year: u16,
    last_year: u16,
    /// Its part of the flights on a route that it serves.
    pub(super) weight: u32,
    /// Rows of `dim_flight`: its flights are numbered from one.
    pub(super) flights: u16,
    /// Carrier of the sample of 2013 whose delays it has: itself, the one that it became a part of, or one of its
    /// kind.
    pub(super) delays_of: &'static str,
}

impl Carrier {
    pub(super) fn flies_in(&self, year: u16) -> bool {
        (self.first_year..=self.last_year).contains(&year)
    }
}

const fn carrier(
    code: &'static str,
    name: &'static str,
    (first_year, last_year): (u16, u16),
    weight: u32,
    flights: u16,
    delays_of: &'static str,
) -> Carrier {
    Carrier { code, name, first_year, last_year, weight, flights, delays_of }
}

pub(super) const CARRIERS: [Carrier; 29] = [
    carrier("9E", "Pinnacle Airlines", (2007, 2010), 40, 2_000, "9E"),
    carrier("AA", "American Airlines", (1988, 2010), 110, 3_400, "AA"),
    carrier("AQ", "Aloha Airlines", (2001, 2008), 5, 250, "HA"),
    carrier("AS", "Alaska Airlines", (1988, 2010), 22, 1_100, "AS"),
    carrier("B6", "JetBlue Airways", (2003, 2010), 22, 900, "B6"),
    carrier("CO", "Continental Air Lines", (1988, 2010), 62, 2_900, "UA"),
    carrier("DH", "Independence Air", (2003, 2005), 40, 1_500, "EV"),
    carrier("DL", "Delta Air Lines", (1988, 2010), 125, 4_200, "DL"),
    carrier("EA", "Eastern Air Lines", (1988, 1991), 40, 1_300, "AA"),
    carrier("EV", "Atlantic Southeast Airlines", (2003, 2010), 42, 2_000, "EV"),
    carrier("F9", "Frontier Airlines", (2005, 2010), 13, 500, "F9"),
    carrier("FL", "AirTran Airways", (2003, 2010), 33, 1_400, "FL"),
    carrier("HA", "Hawaiian Airlines", (2003, 2010), 9, 400, "HA"),
    carrier("HP", "America West Airlines", (1988, 2005), 33, 1_500, "US"),
    carrier("ML", "Midway Airlines", (1991, 1991), 12, 300, "US"),
    carrier("MQ", "American Eagle Airlines", (2001, 2010), 75, 3_100, "MQ"),
    carrier("NW", "Northwest Airlines", (1988, 2009), 78, 2_900, "DL"),
    carrier("OH", "Comair", (2003, 2010), 45, 2_100, "9E"),
    carrier("OO", "SkyWest Airlines", (2003, 2010), 85, 3_500, "OO"),
    carrier("PA", "Pan American World Airways", (1988, 1991), 16, 700, "UA"),
    carrier("PI", "Piedmont Aviation", (1988, 1989), 72, 2_000, "US"),
    carrier("PS", "Pacific Southwest Airlines", (1988, 1988), 30, 500, "US"),
    carrier("TW", "Trans World Airways", (1988, 2001), 45, 1_800, "AA"),
    carrier("TZ", "ATA Airlines", (2003, 2006), 10, 475, "FL"),
    carrier("UA", "United Air Lines", (1988, 2010), 105, 3_700, "UA"),
    carrier("US", "US Airways", (1988, 2010), 110, 4_600, "US"),
    carrier("WN", "Southwest Airlines", (1988, 2010), 120, 4_900, "WN"),
    carrier("XE", "ExpressJet Airlines", (2003, 2010), 60, 2_700, "EV"),
    carrier("YV", "Mesa Airlines", (2006, 2010), 42, 2_000, "YV"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_study_has_its_rows_flights_and_carriers() {
        assert_eq!(FLIGHTS.iter().sum::<u64>(), STUDY_ROWS);
        assert_eq!(CARRIERS.iter().map(|carrier| u64::from(carrier.flights)).sum::<u64>(), 58_625);
        assert!(CARRIERS.is_sorted_by(|one, next| one.code < next.code));
        assert!(YEARS.clone().all(|year| CARRIERS.iter().any(|carrier| carrier.flies_in(year))));
    }

    #[test]
    fn the_years_share_any_number_of_rows() {
        for rows in [1, 23, 1_000, 999_999, STUDY_ROWS] {
            let years = rows_by_year(rows);
            assert_eq!(years.len(), 23);
            assert_eq!(years.iter().map(|(_, rows)| rows).sum::<u64>(), rows);
        }
        assert_eq!(rows_by_year(STUDY_ROWS)[19], (2007, 7_455_458));
    }
}
