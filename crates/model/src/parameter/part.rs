//! Types of declared fields: plain values, choices among words, lists, and nested structs of parameters.

use std::borrow::Cow;

use super::{Field, Invalid, Kind, Step, Value, Values};

/// The type of a declared field: one parameter, or a group of them.
pub trait Part: Sized {
    fn all_fields(declared: Field) -> Vec<Field>;
    /// Removes its values from `values`.
    ///
    /// # Errors
    /// A value that is missing or out of bounds.
    fn read(declared: &Field, values: &mut Values) -> Result<Self, Invalid>;
    fn write(&self, declared: &Field, values: &mut Values);
}

/// A struct whose fields are parameters; see [`declare`](crate::declare).
pub trait Declared: Part {
    /// The fields of the struct, each key with the prefix. A group is one field.
    fn declarations(prefix: &str) -> Vec<Field>;

    /// The fields, in the order of the struct, with each group replaced by its fields.
    fn fields() -> Vec<Field> {
        Self::all_fields(Field::whole())
    }

    /// # Errors
    /// A value that is missing or out of bounds. Bounds that relate two parameters are checked by the struct
    /// itself.
    fn from_values(mut values: Values) -> Result<Self, Invalid> {
        let read = Self::read(&Field::whole(), &mut values)?;
        match values.into_keys().next() {
            Some(key) => Err(Invalid::new(key, "is unknown")),
            None => Ok(read),
        }
    }
}

/// The parameters of a struct that [`Declared`] them, whatever its type.
pub trait Described {
    fn own_fields(&self) -> Vec<Field>;
    fn values(&self) -> Values;

    /// # Errors
    /// A value out of its own bounds.
    fn check_bounds(&self) -> Result<(), Invalid> {
        let values = self.values();
        let mut fields = self.own_fields().into_iter();
        fields.try_for_each(|field| values.get(field.key.as_ref()).map_or(Ok(()), |value| field.check(value)))
    }
}

impl<D: Declared> Described for D {
    fn own_fields(&self) -> Vec<Field> {
        D::fields()
    }

    fn values(&self) -> Values {
        let mut values = Values::new();
        self.write(&Field::whole(), &mut values);
        values
    }
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

    /// The struct of parameters itself.
    fn whole() -> Field {
        Field::new("", "", Kind::Group, "")
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

impl<P: Parameter> Parameter for Option<P> {
    const WORDS: &'static [&'static str] = P::WORDS;
    const COLUMNS: &'static [Kind] = P::COLUMNS;

    fn value(&self) -> Option<Value> {
        self.as_ref().and_then(P::value)
    }

    fn from_value(value: &Value) -> Option<Option<P>> {
        P::from_value(value).map(Some)
    }

    fn absent() -> Option<Option<P>> {
        Some(None)
    }
}

impl Parameter for String {
    fn value(&self) -> Option<Value> {
        Some(Value::Name(self.clone()))
    }

    fn from_value(value: &Value) -> Option<String> {
        match value {
            Value::Name(name) => Some(name.clone()),
            _ => None,
        }
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
        let [index] = *cells else { return None };
        usize::try_from(index).ok()
    }
}

/// Offset and size.
impl Row for (u64, u64) {
    const KINDS: &'static [Kind] = &[Kind::Size, Kind::Size];

    fn cells(&self) -> Vec<u64> {
        vec![self.0, self.1]
    }

    fn from_cells(cells: &[u64]) -> Option<(u64, u64)> {
        let [offset, size] = *cells else { return None };
        Some((offset, size))
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
