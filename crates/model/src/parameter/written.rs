//! Text of values: the shortest form for people, the smallest unit for canonical output.

use std::fmt;

use super::{Field, Kind, Value};

/// A value as it is written in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Written {
    Text(String),
    Number(u64),
    Switch(bool),
    List(Vec<Written>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// In the unit that gives the shortest text: `20 GiB`.
    Shortest,
    /// In the smallest unit: `21474836480 B`. Part of the hashed format.
    Canonical,
}

impl Kind {
    /// The number in the unit that gives the shortest text: `20 GiB`.
    pub fn text(self, number: u64) -> String {
        match self {
            Kind::PerSecond => format!("{number}/s"),
            _ => write(self, number, Style::Shortest).to_string(),
        }
    }
}

impl Field {
    /// Text that reads back as the same value.
    pub fn written(&self, value: &Value, style: Style) -> Written {
        match value {
            Value::Number(number) => write(self.kind, *number, style),
            Value::Switch(on) => Written::Switch(*on),
            Value::Word(word) => Written::Text((*word).to_owned()),
            Value::Name(name) => Written::Text(name.clone()),
            Value::List(rows) => {
                let cell = |(kind, number): (&Kind, &u64)| write(*kind, *number, style);
                let row = |cells: &Vec<u64>| {
                    let mut cells: Vec<Written> = self.columns.iter().zip(cells).map(cell).collect();
                    if cells.len() == 1 { cells.remove(0) } else { Written::List(cells) }
                };
                Written::List(rows.iter().map(row).collect())
            }
        }
    }
}

fn write(kind: Kind, number: u64, style: Style) -> Written {
    let is_short = style == Style::Shortest;
    Written::Text(match kind {
        Kind::Size if is_short => format_size_bytes(number),
        Kind::Size => format!("{number} B"),
        Kind::Duration if is_short => format_duration_ns(number),
        Kind::Duration => format!("{number} ns"),
        Kind::Rate if is_short => format!("{}/s", format_size_bytes(number)),
        Kind::Rate => format!("{number} B/s"),
        Kind::Rotation => format!("{number} rpm"),
        Kind::Percent => format!("{number} %"),
        Kind::Share if is_short => format!("{} %", number as f64 / 1e4),
        Kind::Share => format!("{}.{:04} %", number / 10_000, number % 10_000),
        Kind::Count
        | Kind::PerSecond
        | Kind::Switch
        | Kind::Choice
        | Kind::Name
        | Kind::List
        | Kind::Group => {
            return Written::Number(number);
        }
    })
}

impl fmt::Display for Written {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Written::Text(text) => formatter.write_str(text),
            Written::Number(number) => number.fmt(formatter),
            Written::Switch(on) => on.fmt(formatter),
            Written::List(items) => {
                let items: Vec<String> = items.iter().map(Written::to_string).collect();
                write!(formatter, "[{}]", items.join(", "))
            }
        }
    }
}

/// The shortest text that reads back as the same size.
pub fn format_size_bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 9] = [
        (1 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
        (1_000_000_000_000, "TB"),
        (1_000_000_000, "GB"),
        (1_000_000, "MB"),
        (1_000, "KB"),
        (1, "B"),
    ];
    let whole = UNITS.iter().filter(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor));
    match whole.min_by_key(|(factor, _)| bytes / factor) {
        Some((factor, unit)) => format!("{} {unit}", bytes / factor),
        None => "0 B".to_owned(),
    }
}

/// The shortest text that reads back as the same duration.
pub fn format_duration_ns(nanoseconds: u64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    if nanoseconds == 0 {
        return "0 s".to_owned();
    }
    let fits = |factor: &u64| nanoseconds >= *factor && nanoseconds.is_multiple_of(factor / 1_000);
    match units.iter().find(|(factor, _)| fits(factor)) {
        Some((factor, unit)) => format!("{} {unit}", nanoseconds as f64 / *factor as f64),
        None => format!("{nanoseconds} ns"),
    }
}
