//! The days from 1988 to 2010: the rows of `dim_date`.

use super::carriers::YEARS;

/// Rows of the study's `dim_date`.
#[cfg(test)]
const STUDY_DAYS: usize = 8_401;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Day {
    /// From one on, without gaps.
    pub(super) date_id: u16,
    pub(super) year: u16,
    /// From one.
    pub(super) month: u8,
    pub(super) day: u8,
    /// From one, which is Monday.
    pub(super) day_of_week: u8,
}

impl Day {
    pub(super) fn date(self) -> String {
        format!("{}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn days_of(year: u16, month: u8) -> u8 {
    match month {
        4 | 6 | 9 | 11 => 30,
        // Without the rule of centuries: 2000 was a leap year.
        2 if year.is_multiple_of(4) => 29,
        2 => 28,
        _ => 31,
    }
}

/// The days of a year, in their order.
pub(super) fn days(year: u16) -> Vec<Day> {
    let days_before: u16 = (*YEARS.start()..year).map(|year| 365 + u16::from(year.is_multiple_of(4))).sum();
    let months = (1..=12).flat_map(|month| (1..=days_of(year, month)).map(move |day| (month, day)));
    let of_index = |(index, (month, day)): (u16, (u8, u8))| {
        let before = days_before + index;
        // 1988 began on a Friday.
        let day_of_week = ((before + 4) % 7 + 1) as u8;
        Day { date_id: before + 1, year, month, day, day_of_week }
    };
    (0..).zip(months).map(of_index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_is_that_of_the_study() {
        let all: Vec<Day> = YEARS.flat_map(days).collect();
        assert_eq!(all.len(), STUDY_DAYS);
        assert!((1..).zip(&all).all(|(id, day)| day.date_id == id));
        let find = |date: &str| *all.iter().find(|day| day.date() == date).unwrap();
        assert_eq!(find("1988-01-01").day_of_week, 5);
        assert_eq!(find("2000-02-29").day_of_week, 2);
        assert_eq!(find("2010-12-31"), all[STUDY_DAYS - 1]);
        assert_eq!(find("2010-12-31").day_of_week, 5);
    }
}
