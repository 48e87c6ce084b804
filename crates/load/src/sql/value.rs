//! Values of parameters and of rows.

/// One value. Decimals and dates arrive as text.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Null,
    Integer(i64),
    Real(f64),
    Text(Vec<u8>),
}

pub type Row = Vec<Value>;

macro_rules! from_integer {
    ($($integer:ty),*) => { $(
        impl From<$integer> for Value {
            fn from(value: $integer) -> Value {
                Value::Integer(value as i64)
            }
        }

        impl FromValue for $integer {
            fn from_value(value: Value) -> Option<$integer> {
                i64::from_value(value)?.try_into().ok()
            }
        }
    )* };
}

from_integer!(u8, i32, u32, u64, usize);

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Integer(value)
    }
}

impl<T: Copy + Into<Value>> From<&T> for Value {
    fn from(value: &T) -> Value {
        (*value).into()
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Integer(value.into())
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Real(value)
    }
}

impl From<Vec<u8>> for Value {
    fn from(value: Vec<u8>) -> Value {
        Value::Text(value)
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value.into_bytes())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.as_bytes().to_vec())
    }
}

/// Types that a column can be read as; `None` if the value has another type.
pub trait FromValue: Sized {
    fn from_value(value: Value) -> Option<Self>;
}

impl FromValue for i64 {
    fn from_value(value: Value) -> Option<i64> {
        match value {
            Value::Integer(value) => Some(value),
            Value::Real(value) if value.fract() == 0.0 => Some(value as i64),
            Value::Text(text) => str::from_utf8(&text).ok()?.parse().ok(),
            Value::Real(_) | Value::Null => None,
        }
    }
}

impl FromValue for f64 {
    fn from_value(value: Value) -> Option<f64> {
        match value {
            Value::Integer(value) => Some(value as f64),
            Value::Real(value) => Some(value),
            Value::Text(text) => str::from_utf8(&text).ok()?.parse().ok(),
            Value::Null => None,
        }
    }
}

impl FromValue for bool {
    fn from_value(value: Value) -> Option<bool> {
        i64::from_value(value).map(|value| value != 0)
    }
}

impl FromValue for Vec<u8> {
    fn from_value(value: Value) -> Option<Vec<u8>> {
        match value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(value: Value) -> Option<Option<T>> {
        match value {
            Value::Null => Some(None),
            value => T::from_value(value).map(Some),
        }
    }
}

impl FromValue for Value {
    fn from_value(value: Value) -> Option<Value> {
        Some(value)
    }
}

/// Types that a row can be read as: a tuple of its first columns, or all of it.
pub trait FromRow: Sized {
    fn from_row(row: Row) -> Option<Self>;
}

impl FromRow for Row {
    fn from_row(row: Row) -> Option<Row> {
        Some(row)
    }
}

macro_rules! from_row {
    ($($column:ident),*) => {
        impl<$($column: FromValue),*> FromRow for ($($column,)*) {
            fn from_row(row: Row) -> Option<($($column,)*)> {
                let mut columns = row.into_iter();
                Some(($($column::from_value(columns.next()?)?,)*))
            }
        }
    };
}

from_row!(A);
from_row!(A, B);
from_row!(A, B, C);
from_row!(A, B, C, D);
from_row!(A, B, C, D, E);
from_row!(A, B, C, D, E, F);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_arrive_as_text_or_as_numbers() {
        for value in [Value::Text(b"12".to_vec()), Value::Integer(12), Value::Real(12.0)] {
            assert_eq!(i64::from_value(value), Some(12));
        }
        assert_eq!(f64::from_value(Value::Text(b"0.25".to_vec())), Some(0.25));
        assert_eq!(u32::from_value(Value::Integer(-1)), None);
        assert_eq!(i64::from_value(Value::Real(0.5)), None);
    }

    #[test]
    fn a_row_with_too_few_columns_or_a_null_is_not_what_was_asked_for() {
        assert_eq!(<(u32, u32)>::from_row(vec![Value::Integer(1)]), None);
        assert_eq!(<(u32,)>::from_row(vec![Value::Null]), None);
        assert_eq!(<(Option<u32>,)>::from_row(vec![Value::Null]), Some((None,)));
    }
}
