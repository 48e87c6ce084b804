//! Values as the binary rows of prepared statements have them, made of the text that servers answered.

use bytes::BufMut;
use mysql::Column;
use mysql::Value;
use mysql_common::constants::{ColumnFlags, ColumnType};
use mysql_common::io::BufMutExt;
use mysql_common::packets::NullBitmap;
use mysql_common::proto::MySerialize;
use mysql_common::value::ServerSide;

use crate::proxy::fault::Fault;

/// # Errors
/// A text that is no value of its column's type.
pub(in crate::proxy) fn row(columns: &[Column], row: &[Option<Vec<u8>>]) -> Result<Vec<u8>, Fault> {
    let mut nulls = NullBitmap::<ServerSide>::new(columns.len());
    let mut values = Vec::new();
    for (index, (column, value)) in columns.iter().zip(row).enumerate() {
        match value {
            None => nulls.set(index, true),
            Some(text) => put(&mut values, column, text).ok_or_else(|| {
                let shown = String::from_utf8_lossy(text);
                Fault::new(1105, b"HY000", format!("{shown:?} is no value of {}", column.name_str()))
            })?,
        }
    }
    let mut payload = vec![0];
    payload.extend_from_slice(nulls.as_ref());
    payload.append(&mut values);
    Ok(payload)
}

fn put(values: &mut Vec<u8>, column: &Column, bytes: &[u8]) -> Option<()> {
    let text = std::str::from_utf8(bytes);
    match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY => values.put_u8(integer(column, text.ok()?)? as u8),
        ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => {
            values.put_u16_le(integer(column, text.ok()?)? as u16);
        }
        ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 => {
            values.put_u32_le(integer(column, text.ok()?)? as u32);
        }
        ColumnType::MYSQL_TYPE_LONGLONG => values.put_u64_le(integer(column, text.ok()?)? as u64),
        ColumnType::MYSQL_TYPE_FLOAT => values.put_f32_le(text.ok()?.parse().ok()?),
        ColumnType::MYSQL_TYPE_DOUBLE => values.put_f64_le(text.ok()?.parse().ok()?),
        ColumnType::MYSQL_TYPE_DATE
        | ColumnType::MYSQL_TYPE_NEWDATE
        | ColumnType::MYSQL_TYPE_DATETIME
        | ColumnType::MYSQL_TYPE_TIMESTAMP => moment(text.ok()?)?.serialize(values),
        ColumnType::MYSQL_TYPE_TIME => duration(text.ok()?)?.serialize(values),
        _ => values.put_lenenc_str(bytes),
    }
    Some(())
}

/// Of any sign, in the range of the column's.
fn integer(column: &Column, text: &str) -> Option<i128> {
    let number: i128 = text.parse().ok()?;
    let bits = match column.column_type() {
        ColumnType::MYSQL_TYPE_TINY => 8,
        ColumnType::MYSQL_TYPE_SHORT | ColumnType::MYSQL_TYPE_YEAR => 16,
        ColumnType::MYSQL_TYPE_LONG | ColumnType::MYSQL_TYPE_INT24 => 32,
        _ => 64,
    };
    let range = match column.flags().contains(ColumnFlags::UNSIGNED_FLAG) {
        true => 0..1 << bits,
        false => -(1 << (bits - 1))..1 << (bits - 1),
    };
    range.contains(&number).then_some(number)
}

/// `2020-01-31`, `2020-01-31 10:00:00.5`.
fn moment(text: &str) -> Option<Value> {
    let (date, time) = text.split_once(' ').unwrap_or((text, "00:00:00"));
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (hours, minutes, seconds, microseconds) = clock(time)?;
    Some(Value::Date(
        year.parse().ok()?,
        month.parse().ok()?,
        day.parse().ok()?,
        u8::try_from(hours).ok()?,
        minutes,
        seconds,
        microseconds,
    ))
}

/// `-838:59:59.000001`.
fn duration(text: &str) -> Option<Value> {
    let (is_negative, rest) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (hours, minutes, seconds, microseconds) = clock(rest)?;
    Some(Value::Time(is_negative, hours / 24, (hours % 24) as u8, minutes, seconds, microseconds))
}

/// Hours, minutes, seconds and microseconds.
fn clock(text: &str) -> Option<(u32, u8, u8, u32)> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let mut parts = whole.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let microseconds = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some((hours.parse().ok()?, minutes.parse().ok()?, seconds.parse().ok()?, microseconds))
}

#[cfg(test)]
mod tests {
    use mysql_common::io::ParseBuf;
    use mysql_common::value::{BinValue, ValueDeserializer};

    use super::*;

    /// What a client reads.
    fn read(column: &Column, text: &str) -> Value {
        let payload = row(std::slice::from_ref(column), &[Some(text.as_bytes().to_vec())]).unwrap();
        assert_eq!(payload[..2], [0, 0]);
        let mut rest = ParseBuf(&payload[2..]);
        let context = (column.column_type(), column.flags());
        let value = rest.parse::<ValueDeserializer<BinValue>>(context).unwrap().0;
        assert!(rest.is_empty());
        value
    }

    #[track_caller]
    fn check(kind: ColumnType, text: &str, expect: Value) {
        assert_eq!(read(&Column::new(kind), text), expect, "{text}");
    }

    #[test]
    fn numbers_have_the_size_of_their_column() {
        check(ColumnType::MYSQL_TYPE_TINY, "-128", Value::Int(-128));
        check(ColumnType::MYSQL_TYPE_YEAR, "2026", Value::Int(2026));
        check(ColumnType::MYSQL_TYPE_INT24, "-5", Value::Int(-5));
        check(ColumnType::MYSQL_TYPE_LONG, "00042", Value::Int(42));
        check(ColumnType::MYSQL_TYPE_LONGLONG, "-9223372036854775808", Value::Int(i64::MIN));
        check(ColumnType::MYSQL_TYPE_FLOAT, "0.5", Value::Float(0.5));
        check(ColumnType::MYSQL_TYPE_DOUBLE, "-1.7976931348623157e308", Value::Double(f64::MIN));
        check(ColumnType::MYSQL_TYPE_NEWDECIMAL, "1.50", Value::Bytes(b"1.50".to_vec()));
        let unsigned = Column::new(ColumnType::MYSQL_TYPE_LONGLONG).with_flags(ColumnFlags::UNSIGNED_FLAG);
        assert_eq!(read(&unsigned, "18446744073709551615"), Value::UInt(u64::MAX));
    }

    #[test]
    fn moments_are_read() {
        check(ColumnType::MYSQL_TYPE_DATE, "2020-02-29", Value::Date(2020, 2, 29, 0, 0, 0, 0));
        check(ColumnType::MYSQL_TYPE_DATETIME, "0000-00-00 00:00:00", Value::Date(0, 0, 0, 0, 0, 0, 0));
        let text = "2020-02-29 23:59:58.5";
        check(ColumnType::MYSQL_TYPE_TIMESTAMP, text, Value::Date(2020, 2, 29, 23, 59, 58, 500_000));
        check(ColumnType::MYSQL_TYPE_TIME, "-838:59:59", Value::Time(true, 34, 22, 59, 59, 0));
        check(ColumnType::MYSQL_TYPE_TIME, "00:00:00.000001", Value::Time(false, 0, 0, 0, 0, 1));
    }

    #[test]
    fn what_is_no_value_of_the_type_is_refused() {
        let refused = |kind: ColumnType, text: &str| {
            row(&[Column::new(kind)], &[Some(text.as_bytes().to_vec())]).unwrap_err().code
        };
        assert_eq!(refused(ColumnType::MYSQL_TYPE_TINY, "128"), 1105);
        assert_eq!(refused(ColumnType::MYSQL_TYPE_LONG, "a"), 1105);
        assert_eq!(refused(ColumnType::MYSQL_TYPE_DATE, "2020"), 1105);
    }

    #[test]
    fn a_null_is_a_bit() {
        let columns = vec![Column::new(ColumnType::MYSQL_TYPE_TINY); 7];
        let mut values = vec![None; 7];
        values[6] = Some(b"1".to_vec());
        assert_eq!(row(&columns, &values).unwrap(), [0, 0b1111_1100, 0, 1]);
    }
}
