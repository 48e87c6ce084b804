//! Types of declared fields: plain values, choices among words, lists, and nested structs of parameters.

use std::borrow::Cow;

use super::{Field, Invalid, Kind, Step, Value, Values};

/// A struct whose fields are parameters; see [`declare`](crate::declare).
pub trait Declared {
    /// The fields of the struct, each key with the prefix. A group is one field.
    fn declarations(prefix: &str) -> Vec<Field>
    where
        Self: Sized;
    /// As [`Declared::declarations`], with each group replaced by its fields.
    fn fields_under(prefix: &str) -> Vec<Field>
    where
        Self: Sized;
    /// Removes the values of its fields from `values`.
    ///
    /// # Errors
    /// A value that is missing or out of bounds.
    fn read_under(prefix: &str, values: &mut Values) -> Result<Self, Invalid>
    where
        Self: Sized;
    /// The fields of this struct, in its order.
    fn own_fields(&self) -> Vec<Field>;
    fn write_under(&self, prefix: &str, values: &mut Values);

    /// The fields, in the order of the struct.
    fn fields() -> Vec<Field>
    where
        Self: Sized,
    {
        Self::fields_under("")
    }

    /// # Errors
    /// A value that is missing or out of bounds. Bounds that relate two parameters are checked by the struct
    /// itself.
    fn from_values(mut values: Values) -> Result<Self, Invalid>
    where
        Self: Sized,
    {
        let read = Self::read_under("", &mut values)?;
        match values.into_keys().next() {
            Some(key) => Err(Invalid::new(key, "is unknown")),
            None => Ok(read),
        }
    }

    fn values(&self) -> Values {
        let mut values = Values::new();
        self.write_under("", &mut values);
        values
    }

    /// # Errors
    /// A value out of its own bounds.
    fn check_bounds(&self) -> Result<(), Invalid> {
        let values = self.values();
        let fields = self.own_fields();
        let both = fields.iter().filter_map(|field| Some((field, values.get(field.key.as_ref())?)));
        both.into_iter().try_for_each(|(field, value)| field.check(value))
    }
}

/// The type of a declared field: one parameter, or a group of them.
pub trait Part: Sized {
    fn all_fields(declared: Field) -> Vec<Field>;
    /// # Errors
    /// A value that is missing or out of bounds.
    fn read(declared: &Field, values: &mut Values) -> Result<Self, Invalid>;
    fn write(&self, declared: &Field, values: &mut Values);
}

/// The type of one parameter.
pub trait Parameter: Sized {
    const WORDS: &'static [&'static str] = &[];
    const COLUMNS: &'static [Kind] = &[];

    /// `None` if the value is absent.
    fn value(&self) -> Option<Value>;
    /// `None` for a value of another kind.
    fn from_value(value: &Value) -> Option<Self>;
    /// The value if neither the file nor the declaration gives one; `None` if the value is mandatory.
    fn absent() -> Option<Self> {
        None
    }
}

/// The value of a field's default.
pub fn value_of<P: Parameter>(parameter: &P) -> Option<Value> {
    parameter.value()
}

impl Field {
    /// A field without bounds and without a default.
    pub fn new(prefix: &str, key: &'static str, kind: Kind, doc: &str) -> Field {
        Field {
            key: if prefix.is_empty() { Cow::Borrowed(key) } else { Cow::Owned(format!("{prefix}{key}")) },
            kind,
            words: &[],
            columns: &[],
            names: &[],
            least: 0,
            most: u64::MAX,
            step: Step::Any,
            default: None,
            assumption: None,
            hint: None,
            may_be_absent: false,
            of_table: None,
            doc: doc.trim().to_owned(),
        }
    }

    fn missing(&self) -> Invalid {
        let hint = self.hint.map_or_else(String::new, |hint| format!("; {hint}"));
        let words = match self.words {
            [] => String::new(),
            words => format!(": {}", words.join(", ")),
        };
        Invalid::new(self.key.clone(), format!("is missing{words}{hint}"))
    }
}

impl<P: Parameter> Part for P {
    fn all_fields(declared: Field) -> Vec<Field> {
        vec![Field { words: P::WORDS, columns: P::COLUMNS, may_be_absent: P::absent().is_some(), ..declared }]
    }

    fn read(declared: &Field, values: &mut Values) -> Result<P, Invalid> {
        if let Some(value) = values.remove(declared.key.as_ref()) {
            declared.check(&value)?;
            let of_another_kind = || Invalid::new(declared.key.clone(), "has a value of another kind");
            return P::from_value(&value).ok_or_else(of_another_kind);
        }
        let default = declared.default.as_ref().and_then(P::from_value).or_else(P::absent);
        default.ok_or_else(|| Field { words: P::WORDS, ..declared.clone() }.missing())
    }

    fn write(&self, declared: &Field, values: &mut Values) {
        if let Some(value) = self.value() {
            values.insert(declared.key.clone().into_owned(), value);
        }
    }
}

impl Parameter for u64 {
    fn value(&self) -> Option<Value> {
        Some(Value::Number(*self))
    }

    fn from_value(value: &Value) -> Option<u64> {
        match value {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }
}

impl Parameter for Option<u64> {
    fn value(&self) -> Option<Value> {
        self.map(Value::Number)
    }

    fn from_value(value: &Value) -> Option<Option<u64>> {
        u64::from_value(value).map(Some)
    }

    fn absent() -> Option<Option<u64>> {
        Some(None)
    }
}

impl Parameter for Option<String> {
    fn value(&self) -> Option<Value> {
        self.clone().map(Value::Name)
    }

    fn from_value(value: &Value) -> Option<Option<String>> {
        match value {
            Value::Name(name) => Some(Some(name.clone())),
            _ => None,
        }
    }

    fn absent() -> Option<Option<String>> {
        Some(None)
    }
}

impl Parameter for bool {
    fn value(&self) -> Option<Value> {
        Some(Value::Switch(*self))
    }

    fn from_value(value: &Value) -> Option<bool> {
        match value {
            Value::Switch(on) => Some(*on),
            _ => None,
        }
    }
}

/// An item of a list.
pub trait Row: Sized {
    const KINDS: &'static [Kind];
    fn cells(&self) -> Vec<u64>;
    /// `None` for a wrong number of cells.
    fn from_cells(cells: &[u64]) -> Option<Self>;
}

impl<T: Row> Parameter for Vec<T> {
    const COLUMNS: &'static [Kind] = T::KINDS;

    fn value(&self) -> Option<Value> {
        (!self.is_empty()).then(|| Value::List(self.iter().map(Row::cells).collect()))
    }

    fn from_value(value: &Value) -> Option<Vec<T>> {
        match value {
            Value::List(rows) => rows.iter().map(|cells| T::from_cells(cells)).collect(),
            _ => None,
        }
    }

    fn absent() -> Option<Vec<T>> {
        Some(Vec::new())
    }
}

impl Row for usize {
    const KINDS: &'static [Kind] = &[Kind::Count];

    fn cells(&self) -> Vec<u64> {
        vec![*self as u64]
    }

    fn from_cells(cells: &[u64]) -> Option<usize> {
        match cells {
            [index] => usize::try_from(*index).ok(),
            _ => None,
        }
    }
}

/// Offset and size.
impl Row for (u64, u64) {
    const KINDS: &'static [Kind] = &[Kind::Size, Kind::Size];

    fn cells(&self) -> Vec<u64> {
        vec![self.0, self.1]
    }

    fn from_cells(cells: &[u64]) -> Option<(u64, u64)> {
        match cells {
            [offset, size] => Some((*offset, *size)),
            _ => None,
        }
    }
}

/// Implements [`Part`] for an optional struct of parameters: either all of them are present, or none.
macro_rules! optional_group {
    ($name:ident) => {
        impl $crate::parameter::Part for Option<$name> {
            fn all_fields(declared: $crate::parameter::Field) -> Vec<$crate::parameter::Field> {
                <$name as $crate::parameter::Part>::all_fields(declared)
            }

            fn read(
                declared: &$crate::parameter::Field,
                values: &mut $crate::parameter::Values,
            ) -> Result<Self, $crate::parameter::Invalid> {
                let fields = <$name as $crate::parameter::Part>::all_fields(declared.clone());
                if !fields.iter().any(|field| values.contains_key(field.key.as_ref())) {
                    return Ok(None);
                }
                $crate::parameter::Part::read(declared, values).map(Some)
            }

            fn write(&self, declared: &$crate::parameter::Field, values: &mut $crate::parameter::Values) {
                if let Some(group) = self {
                    $crate::parameter::Part::write(group, declared, values);
                }
            }
        }
    };
}

/// An enum whose variants are words in files.
macro_rules! choices {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident {
            $( $(#[$of_variant:meta])* $variant:ident = $word:literal, )*
        }
    ) => {
        $(#[$attribute])*
        $visibility enum $name {
            $( $(#[$of_variant])* $variant, )*
        }

        impl $crate::parameter::Parameter for $name {
            const WORDS: &'static [&'static str] = &[$($word),*];

            fn value(&self) -> Option<$crate::parameter::Value> {
                Some($crate::parameter::Value::Word(match self { $( $name::$variant => $word, )* }))
            }

            fn from_value(value: &$crate::parameter::Value) -> Option<Self> {
                match value {
                    $( $crate::parameter::Value::Word($word) => Some($name::$variant), )*
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use {choices, optional_group};
