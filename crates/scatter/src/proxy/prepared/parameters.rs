//! The values of a prepared statement: read from a client's packet, and written into the text as literals.

use bytes::Buf;
use mysql::Value;
use mysql_common::constants::{ColumnFlags, ColumnType};
use mysql_common::io::ParseBuf;
use mysql_common::packets::NullBitmap;
use mysql_common::value::{BinValue, ClientSide, ValueDeserializer};

use crate::proxy::fault::Fault;
use crate::proxy::statement::Place;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::proxy) struct Type {
    kind: ColumnType,
    is_unsigned: bool,
}

/// A value that came in pieces, for each parameter that has one.
pub(in crate::proxy) type LongData = std::collections::BTreeMap<u16, Vec<u8>>;

/// How a session reads a literal.
#[derive(Debug, Clone, Copy)]
pub(in crate::proxy) struct Reading<'a> {
    pub(in crate::proxy) has_escapes: bool,
    /// The client's character set.
    pub(in crate::proxy) character_set: &'a str,
}

/// The values after the head of COM_STMT_EXECUTE. A client names their types once; `types` keeps them for its next call.
pub(in crate::proxy) fn read(
    payload: &[u8],
    count: usize,
    types: &mut Vec<Type>,
    long_data: &LongData,
) -> Result<Vec<(Type, Value)>, Fault> {
    if count == 0 {
        return Ok(Vec::new());
    }
    let bitmap_length = NullBitmap::<ClientSide>::bitmap_len(count);
    let (Some(nulls), Some(rest)) = (payload.get(..bitmap_length), payload.get(bitmap_length..)) else {
        return Err(Fault::malformed());
    };
    let nulls = NullBitmap::<ClientSide, _>::from_bytes(nulls);
    let mut rest = ParseBuf(rest);
    if rest.checked_eat_u8().ok_or_else(Fault::malformed)? == 1 {
        let named = rest.checked_eat(2 * count).ok_or_else(Fault::malformed)?;
        *types = named.chunks(2).map(read_type).collect::<Result<_, _>>()?;
    }
    if types.len() != count {
        return Err(Fault::malformed());
    }
    let mut values = Vec::with_capacity(count);
    for (index, kind) in types.iter().enumerate() {
        let long = u16::try_from(index).ok().and_then(|index| long_data.get(&index));
        let value = match long {
            Some(bytes) => Value::Bytes(bytes.clone()),
            None if nulls.is_null(index) || kind.kind == ColumnType::MYSQL_TYPE_NULL => Value::NULL,
            None => read_value(*kind, &mut rest)?,
        };
        values.push((*kind, value));
    }
    Ok(values)
}

/// A byte of the type, and one whose first bit says that it has no sign.
fn read_type(bytes: &[u8]) -> Result<Type, Fault> {
    let kind = ColumnType::try_from(bytes[0]).map_err(|_| Fault::malformed())?;
    Ok(Type { kind, is_unsigned: bytes[1] & 0x80 != 0 })
}

fn read_value(kind: Type, rest: &mut ParseBuf<'_>) -> Result<Value, Fault> {
    // Types that no client may send, on which the reader panics.
    if matches!(
        kind.kind,
        ColumnType::MYSQL_TYPE_TIMESTAMP2
            | ColumnType::MYSQL_TYPE_DATETIME2
            | ColumnType::MYSQL_TYPE_TIME2
            | ColumnType::MYSQL_TYPE_TYPED_ARRAY
            | ColumnType::MYSQL_TYPE_UNKNOWN
    ) {
        return Err(Fault::malformed());
    }
    let flags = if kind.is_unsigned { ColumnFlags::UNSIGNED_FLAG } else { ColumnFlags::empty() };
    let value = rest.parse::<ValueDeserializer<BinValue>>((kind.kind, flags));
    value.map(|value| value.0).map_err(|_| Fault::malformed())
}

/// The text with its values at their places.
pub(in crate::proxy) fn fill(
    text: &str,
    places: &[Place],
    values: &[(Type, Value)],
    reading: Reading<'_>,
) -> Result<String, Fault> {
    let mut filled = String::with_capacity(text.len() + 16 * values.len());
    let mut from = 0;
    for (place, (kind, value)) in places.iter().zip(values) {
        filled.push_str(&text[from..place.at]);
        from = place.at + 1;
        let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok().and_then(|text| text.parse::<u64>().ok());
        match value {
            Value::Bytes(bytes) if place.is_in_limit && number(bytes).is_some() => {
                filled.push_str(&number(bytes).unwrap_or_default().to_string());
            }
            value => put(&mut filled, *kind, value, reading)?,
        }
    }
    filled.push_str(&text[from..]);
    Ok(filled)
}

fn put(text: &mut String, kind: Type, value: &Value, reading: Reading<'_>) -> Result<(), Fault> {
    match value {
        Value::NULL => text.push_str("NULL"),
        // A space, because two minus signs may begin a comment.
        Value::Int(number) if *number < 0 => *text += &format!(" {number}"),
        Value::Int(number) => *text += &number.to_string(),
        Value::UInt(number) => *text += &number.to_string(),
        Value::Float(number) => put_double(text, f64::from(*number))?,
        Value::Double(number) => put_double(text, *number)?,
        Value::Date(year, month, day, hour, minute, second, microsecond) => {
            let date = format!("{year:04}-{month:02}-{day:02}");
            let is_date = kind.kind == ColumnType::MYSQL_TYPE_DATE;
            // A literal that says its type has no zero in its date.
            let type_name = match (*year == 0 || *month == 0 || *day == 0, is_date) {
                (true, _) => "",
                (_, true) => "DATE",
                (_, false) => "TIMESTAMP",
            };
            match is_date {
                true => *text += &format!("{type_name}'{date}'"),
                false => {
                    let clock = clock((*hour).into(), *minute, *second, *microsecond);
                    *text += &format!("{type_name}'{date} {clock}'");
                }
            }
        }
        Value::Time(is_negative, days, hours, minutes, seconds, microseconds) => {
            let sign = if *is_negative { "-" } else { "" };
            let hours = days.saturating_mul(24).saturating_add((*hours).into());
            *text += &format!("TIME'{sign}{}'", clock(hours, *minutes, *seconds, *microseconds));
        }
        Value::Bytes(bytes) => put_bytes(text, kind, bytes, reading),
    }
    Ok(())
}

fn clock(hours: u32, minutes: u8, seconds: u8, microseconds: u32) -> String {
    let whole = format!("{hours:02}:{minutes:02}:{seconds:02}");
    if microseconds == 0 { whole } else { format!("{whole}.{microseconds:06}") }
}

/// With an exponent: without one it would be a DECIMAL.
fn put_double(text: &mut String, number: f64) -> Result<(), Fault> {
    if !number.is_finite() {
        return Err(Fault::new(1210, b"HY000", "Incorrect arguments to EXECUTE: a number is not finite"));
    }
    *text += &format!("{}{number:e}", if number.is_sign_negative() { " " } else { "" });
    Ok(())
}

fn put_bytes(text: &mut String, kind: Type, bytes: &[u8], reading: Reading<'_>) {
    let is_blob = matches!(
        kind.kind,
        ColumnType::MYSQL_TYPE_TINY_BLOB
            | ColumnType::MYSQL_TYPE_BLOB
            | ColumnType::MYSQL_TYPE_MEDIUM_BLOB
            | ColumnType::MYSQL_TYPE_LONG_BLOB
            | ColumnType::MYSQL_TYPE_GEOMETRY
    );
    let is_decimal = matches!(kind.kind, ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL);
    match std::str::from_utf8(bytes) {
        Ok(number) if is_decimal && is_decimal_number(number) => *text += &format!(" {number}"),
        Ok(string) if !is_blob => {
            text.push('\'');
            for letter in string.chars() {
                match letter {
                    '\'' => text.push_str("''"),
                    '\\' if reading.has_escapes => text.push_str("\\\\"),
                    letter => text.push(letter),
                }
            }
            text.push('\'');
        }
        _ => {
            let is_text = !is_blob && !reading.character_set.starts_with("utf8");
            let set = if is_text { reading.character_set } else { "binary" };
            *text += &format!("_{set} x'");
            text.extend(bytes.iter().map(|byte| format!("{byte:02x}")));
            text.push('\'');
        }
    }
}

fn is_decimal_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    are_digits(whole) && are_digits(fraction)
}

/// The head of a packet about a statement: its id, and what follows.
pub(in crate::proxy) fn statement_id(payload: &[u8]) -> Result<(u32, &[u8]), Fault> {
    let mut head = payload;
    match head.try_get_u32_le() {
        Ok(id) => Ok((id, head)),
        Err(_) => Err(Fault::malformed()),
    }
}

#[cfg(test)]
mod tests {
    use mysql_common::packets::ComStmtExecuteRequestBuilder;
    use mysql_common::proto::MySerialize;

    use super::*;
    use crate::proxy::statement::Statement;
    use crate::sql::statements::Quoting;

    const READING: Reading<'static> = Reading { has_escapes: true, character_set: "utf8mb4" };

    fn filled(text: &str, values: &[Value]) -> String {
        let (request, _) = ComStmtExecuteRequestBuilder::new(1).build(values);
        let mut payload = Vec::new();
        request.serialize(&mut payload);
        // A command, an id, flags and a count come before the values.
        let found = read(&payload[10..], values.len(), &mut Vec::new(), &LongData::new()).unwrap();
        let places = Statement::read(text, Quoting::USUAL).unwrap().places;
        fill(text, &places, &found, READING).unwrap()
    }

    #[track_caller]
    fn check(value: Value, expect: &str) {
        assert_eq!(filled("SELECT ?", &[value]), format!("SELECT {expect}"));
    }

    #[test]
    fn values_become_literals_of_their_type() {
        check(Value::NULL, "NULL");
        check(Value::Int(-5), " -5");
        check(Value::UInt(u64::MAX), "18446744073709551615");
        check(Value::Double(1e300), "1e300");
        check(Value::Double(-0.5), " -5e-1");
        check(Value::Float(0.5), "5e-1");
        check(Value::from("it's a \\"), "'it''s a \\\\'");
        check(Value::Bytes(vec![0, 255]), "_binary x'00ff'");
        check(Value::Date(2020, 2, 29, 0, 0, 0, 0), "TIMESTAMP'2020-02-29 00:00:00'");
        check(Value::Date(2020, 2, 29, 1, 2, 3, 4), "TIMESTAMP'2020-02-29 01:02:03.000004'");
        check(Value::Date(0, 0, 0, 0, 0, 0, 0), "'0000-00-00 00:00:00'");
        check(Value::Time(true, 34, 22, 59, 59, 0), "TIME'-838:59:59'");
    }

    #[test]
    fn values_stand_at_their_places() {
        let text = "SELECT '?', ? - ? FROM t LIMIT ?";
        let values = [Value::Int(1), Value::Int(-1), Value::from("5")];
        assert_eq!(filled(text, &values), "SELECT '?', 1 -  -1 FROM t LIMIT 5");
    }

    #[test]
    fn a_value_of_another_character_set_keeps_it() {
        let kind = Type { kind: ColumnType::MYSQL_TYPE_VAR_STRING, is_unsigned: false };
        let mut text = String::new();
        let reading = Reading { has_escapes: false, character_set: "latin1" };
        put_bytes(&mut text, kind, &[0xE9], reading);
        put_bytes(&mut text, kind, b"\\", reading);
        assert_eq!(text, "_latin1 x'e9''\\'");
    }

    #[test]
    fn decimals_are_numbers() {
        assert!(is_decimal_number("-12.50") && is_decimal_number("7"));
        assert!(!is_decimal_number("1e5") && !is_decimal_number(".5") && !is_decimal_number("1 OR 1"));
    }

    #[test]
    fn a_packet_that_ends_early_is_malformed() {
        let mut types = Vec::new();
        for payload in [&[][..], &[0], &[0, 1, 3], &[0, 1, 3, 0, 7], &[0, 1, 19, 0, 1], &[0, 0]] {
            assert!(read(payload, 1, &mut types, &LongData::new()).is_err(), "{payload:?}");
            types.clear();
        }
    }
}
