//! The macro that declares parameters.

/// Makes a struct whose fields are parameters. The type of a field is followed by its kind and its key, then
/// by these optional items, in this order:
///
/// ```text
/// pub chunk_bytes: u64 = Size "chunk" in 4_096..=1 << 30, step Step::PowerOfTwo, default 64 << 10,
///     assumed "most controllers'";
/// ```
///
/// * `in LOW..=HIGH`: the bounds of a number
/// * `step`: a [`Step`](crate::parameter::Step)
/// * `names`: numbers that have a name in files
/// * `default`: the value of a missing key; `assumed`: the reason for a default without a source
/// * `hint`: the message for a missing key without a default
/// * `table`: the stack table's key that overrides a device's value, and the sentence that states the
///   override
///
/// The doc comment of the field is its text in the reference.
#[macro_export]
macro_rules! declare {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                pub $field:ident: $type:ty = $kind:ident $key:literal
                    $(in $bounds:expr)?
                    $(, step $step:expr)?
                    $(, names $names:expr)?
                    $(, default $default:expr)?
                    $(, assumed $assumption:literal)?
                    $(, hint $hint:literal)?
                    $(, table $table_key:literal $sentence:literal)?
                    ;
            )*
        }
    ) => {
        $(#[$attribute])*
        $visibility struct $name {
            $( $(#[doc = $doc])* pub $field: $type, )*
        }

        impl $crate::parameter::Declared for $name {
            fn declarations(_prefix: &str) -> Vec<$crate::parameter::Field> {
                vec![$(
                    $crate::parameter::Field {
                        $( least: *($bounds).start(), most: *($bounds).end(), )?
                        $( step: $step, )?
                        $( names: $names, )?
                        $( default: $crate::parameter::value_of::<$type>(&$default), )?
                        $( assumption: Some($assumption), )?
                        $( hint: Some($hint), )?
                        $( of_table: Some(($table_key, $sentence)), )?
                        ..$crate::parameter::Field::new(
                            _prefix, $key, $crate::parameter::Kind::$kind, concat!($($doc),*),
                        )
                    },
                )*]
            }
        }

        impl $crate::parameter::Part for $name {
            fn all_fields(declared: $crate::parameter::Field) -> Vec<$crate::parameter::Field> {
                let mut _declared =
                    <Self as $crate::parameter::Declared>::declarations(&declared.key).into_iter();
                let fields: Vec<Vec<$crate::parameter::Field>> = vec![$(
                    <$type as $crate::parameter::Part>::all_fields(_declared.next().expect(stringify!($field))),
                )*];
                fields.concat()
            }

            fn read(
                declared: &$crate::parameter::Field,
                _values: &mut $crate::parameter::Values,
            ) -> Result<Self, $crate::parameter::Invalid> {
                let mut _declared =
                    <Self as $crate::parameter::Declared>::declarations(&declared.key).into_iter();
                Ok($name {
                    $( $field: $crate::parameter::Part::read(
                        &_declared.next().expect(stringify!($field)), _values,
                    )?, )*
                })
            }

            fn write(&self, declared: &$crate::parameter::Field, _values: &mut $crate::parameter::Values) {
                let mut _declared =
                    <Self as $crate::parameter::Declared>::declarations(&declared.key).into_iter();
                $( $crate::parameter::Part::write(
                    &self.$field, &_declared.next().expect(stringify!($field)), _values,
                ); )*
            }
        }
    };
}
