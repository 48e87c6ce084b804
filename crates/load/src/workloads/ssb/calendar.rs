//! The date dimension: every day from 1992 to 1998.

use std::io::{self, Write};

pub(super) const FIRST_YEAR: u16 = 1992;
pub(super) const LAST_YEAR: u16 = 1998;

const MONTHS: [(&str, u8); 12] = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];
/// From the first of the week.
const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
/// Month and day; the benchmark leaves the choice open.
const HOLIDAYS: [(u8, u8); 6] = [(1, 1), (5, 1), (7, 4), (11, 11), (12, 24), (12, 25)];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Day {
    pub(super) year: u16,
    /// From one, like the three below.
    pub(super) month: u8,
    day: u8,
    day_of_year: u16,
    /// Sunday is the first.
    day_of_week: u8,
}

impl Day {
    /// `19920131`.
    pub(super) fn key(self) -> u32 {
        u32::from(self.year) * 10_000 + u32::from(self.month) * 100 + u32::from(self.day)
    }

    /// `199201`.
    pub(super) fn year_month(self) -> u32 {
        self.key() / 100
    }

    /// As the benchmark's generator counts.
    pub(super) fn week(self) -> u16 {
        self.day_of_year / 7 + 1
    }

    fn season(self) -> &'static str {
        match self.month {
            1..=3 => "Winter",
            4 => "Spring",
            5..=8 => "Summer",
            9 | 10 => "Fall",
            _ => "Christmas",
        }
    }

    pub(super) fn write(self, output: &mut dyn Write) -> io::Result<()> {
        let Day { year, day, day_of_year, day_of_week, month } = self;
        let (name, _) = MONTHS[usize::from(month) - 1];
        let is_last_of_month = u8::from(day == days_of(year, month));
        let is_holiday = u8::from(HOLIDAYS.contains(&(month, day)));
        let is_weekday = u8::from((2..=6).contains(&day_of_week));
        writeln!(
            output,
            "{}\t{name} {day}, {year}\t{}\t{name}\t{year}\t{}\t{}{year}\t{day_of_week}\t{day}\t{day_of_year}\t{month}\t{}\t{}\t{}\t{is_last_of_month}\t{is_holiday}\t{is_weekday}",
            self.key(),
            WEEKDAYS[usize::from(day_of_week) - 1],
            self.year_month(),
            &name[..3],
            self.week(),
            self.season(),
            u8::from(day_of_week == 7),
        )
    }
}

fn days_of(year: u16, month: u8) -> u8 {
    let leap_day = u8::from(month == 2 && year.is_multiple_of(4));
    MONTHS[usize::from(month) - 1].1 + leap_day
}

/// All days in order.
pub(super) fn days() -> Vec<Day> {
    let mut days = Vec::new();
    // 1992 began on a Wednesday.
    let mut day_of_week = 4;
    for year in FIRST_YEAR..=LAST_YEAR {
        let of_month = |month| (1..=days_of(year, month)).map(move |day| (month, day));
        for (day_of_year, (month, day)) in (1..).zip((1..=12).flat_map(of_month)) {
            days.push(Day { year, month, day, day_of_year, day_of_week });
            day_of_week = day_of_week % 7 + 1;
        }
    }
    days
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calendar_has_seven_years() {
        let days = days();
        assert_eq!(days.len(), 2_557);
        let line = |key: u32| {
            let mut line = Vec::new();
            days.iter().find(|day| day.key() == key).unwrap().write(&mut line).unwrap();
            String::from_utf8(line).unwrap()
        };
        assert_eq!(
            line(19_971_225),
            "19971225\tDecember 25, 1997\tThursday\tDecember\t1997\t199712\tDec1997\t5\t25\t359\t12\t52\tChristmas\t0\t0\t1\t1\n"
        );
        assert!(line(19_960_229).starts_with("19960229\tFebruary 29, 1996\tThursday\t"));
    }
}
