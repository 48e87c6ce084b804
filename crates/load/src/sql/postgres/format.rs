//! Values in PostgreSQL's wire formats.
//!
//! Parameters are sent as text, which the server reads as the type that the statement needs. Rows arrive in
//! the binary formats of the types' send functions (`src/backend/utils/adt/*.c` of PostgreSQL).

use std::error::Error;
use std::fmt::Write;

use bytes::BytesMut;
use postgres::types::{Format, FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::sql::Value;

type AnyError = Box<dyn Error + Sync + Send>;

/// The column types that can be read.
const KNOWN: [Type; 12] = [
    Type::BOOL,
    Type::INT2,
    Type::INT4,
    Type::INT8,
    Type::FLOAT4,
    Type::FLOAT8,
    Type::NUMERIC,
    Type::TIMESTAMP,
    Type::TEXT,
    Type::VARCHAR,
    Type::BPCHAR,
    Type::NAME,
];

impl ToSql for Value {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, AnyError> {
        match self {
            Value::Null => return Ok(IsNull::Yes),
            Value::Integer(value) => write!(out, "{value}")?,
            Value::Real(value) => write!(out, "{value}")?,
            Value::Text(text) => out.extend_from_slice(text),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Value {
    fn from_sql(column: &Type, raw: &'a [u8]) -> Result<Value, AnyError> {
        Ok(match *column {
            Type::BOOL => Value::Integer((raw != [0]).into()),
            Type::INT2 => Value::Integer(i16::from_be_bytes(raw.try_into()?).into()),
            Type::INT4 => Value::Integer(i32::from_be_bytes(raw.try_into()?).into()),
            Type::INT8 => Value::Integer(i64::from_be_bytes(raw.try_into()?)),
            Type::FLOAT4 => Value::Real(f32::from_be_bytes(raw.try_into()?).into()),
            Type::FLOAT8 => Value::Real(f64::from_be_bytes(raw.try_into()?)),
            Type::NUMERIC => Value::Text(decimal(raw).ok_or("this is no decimal number")?.into_bytes()),
            Type::TIMESTAMP => Value::Text(date(i64::from_be_bytes(raw.try_into()?)).into_bytes()),
            _ => Value::Text(raw.to_vec()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Value, AnyError> {
        Ok(Value::Null)
    }

    fn accepts(column: &Type) -> bool {
        KNOWN.contains(column)
    }
}

/// Decodes a NUMERIC from big-endian words: number of groups of four digits, the power of 10,000 of the
/// first, the sign, number of digits after the point. Then the groups follow, without leading and trailing
/// zero groups. `None` if the value is not a number.
fn decimal(raw: &[u8]) -> Option<String> {
    const NEGATIVE: u16 = 0x4000;
    let words: Vec<u16> = raw.chunks_exact(2).map(|word| u16::from_be_bytes([word[0], word[1]])).collect();
    let (&[count, first_power, sign, scale], groups) = words.split_first_chunk()?;
    if groups.len() != usize::from(count) || ![0, NEGATIVE].contains(&sign) {
        return None;
    }
    let first_power = i32::from(first_power as i16);
    let group = |power: i32| {
        let index = usize::try_from(first_power - power).ok();
        index.and_then(|index| groups.get(index)).copied().unwrap_or(0)
    };
    let mut text = if sign == NEGATIVE { "-".to_owned() } else { String::new() };
    text.push_str(&group(first_power.max(0)).to_string());
    (0..first_power).rev().for_each(|power| text.push_str(&format!("{:04}", group(power))));
    let scale = usize::from(scale);
    if scale > 0 {
        let fraction: String =
            (1..=scale.div_ceil(4)).map(|power| format!("{:04}", group(-(power as i32)))).collect();
        text.push('.');
        text.push_str(&fraction[..scale]);
    }
    Some(text)
}

/// Formats a time in microseconds since the beginning of 2000, without the fraction of a second. Days become
/// a date by Howard Hinnant's `civil_from_days` (chrono-Compatible Low-Level Date Algorithms, 2013), with
/// years that begin in March.
fn date(microseconds: i64) -> String {
    const DAYS_BEFORE_2000_03_01: i64 = 60;
    const DAYS_IN_400_YEARS: i64 = 146_097;
    let seconds = microseconds.div_euclid(1_000_000);
    let (days, second) = (seconds.div_euclid(86_400) - DAYS_BEFORE_2000_03_01, seconds.rem_euclid(86_400));
    let (era, day) = (days.div_euclid(DAYS_IN_400_YEARS), days.rem_euclid(DAYS_IN_400_YEARS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (month, year) = if month < 10 { (month + 3, year) } else { (month - 9, year + 1) };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}", 2000 + 400 * era + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_decimal(words: &[u16], expect: Option<&str>) {
        let raw: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        assert_eq!(decimal(&raw).as_deref(), expect);
    }

    #[test]
    fn decimals_have_their_point_and_their_sign() {
        check_decimal(&[2, 0, 0x4000, 2, 10, 500], Some("-10.05"));
        check_decimal(&[0, 0, 0, 2], Some("0.00"));
        check_decimal(&[1, 0xFFFF, 0, 4, 5], Some("0.0005"));
        check_decimal(&[1, 0xFFFF, 0, 2, 2_500], Some("0.25"));
        check_decimal(&[1, 1, 0, 0, 30], Some("300000"));
        check_decimal(&[2, 1, 0, 2, 30, 7], Some("300007.00"));
        check_decimal(&[1, 0xFFFE, 0, 6, 1_200], Some("0.000012"));
    }

    #[test]
    fn what_is_no_number_is_refused() {
        check_decimal(&[0, 0, 0xC000, 0], None);
        check_decimal(&[2, 0, 0, 0, 1], None);
        check_decimal(&[1], None);
    }

    #[test]
    fn dates_are_of_the_gregorian_calendar() {
        const DAY: i64 = 86_400_000_000;
        let check = |microseconds, expect: &str| assert_eq!(date(microseconds), expect);
        check(0, "2000-01-01 00:00:00");
        check(-1, "1999-12-31 23:59:59");
        check(59 * DAY, "2000-02-29 00:00:00");
        check(60 * DAY, "2000-03-01 00:00:00");
        check(9_497 * DAY + 12 * 3_600_000_000 + 999_999, "2026-01-01 12:00:00");
        check(36_584 * DAY, "2100-03-01 00:00:00");
    }
}
