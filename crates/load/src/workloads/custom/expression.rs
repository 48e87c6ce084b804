//! Expressions for values in a workload file: `uniform(1, :customers)`, `string(20)`, `sequence(1)`, or a
//! plain amount.

use std::collections::BTreeMap;

use crate::sql::Value;
use spindle_base::random::Random;

/// The whole-number parameters of a file, with the scenario's values.
pub(super) type Numbers = BTreeMap<String, i64>;

/// The longest text, beyond any benchmark's column.
const STRING_MAX: i64 = 1_000_000;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    /// Both bounds included.
    Uniform {
        low: i64,
        high: i64,
    },
    /// A text of this many letters.
    String {
        length: usize,
    },
    /// Increases by one for every row, or for every transaction of all terminals.
    Sequence {
        first: i64,
    },
    Constant(i64),
}

impl Expression {
    /// # Errors
    /// The mistake in the text, as a sentence.
    pub(super) fn parse(text: &str, parameters: &Numbers) -> Result<Expression, String> {
        let text = text.trim();
        let Some((name, rest)) = text.split_once('(') else {
            return amount(text, parameters).map(Expression::Constant);
        };
        let inside = rest.strip_suffix(')').ok_or_else(|| format!("`{text}` has no `)` at its end"))?;
        let arguments: Vec<i64> =
            inside.split(',').map(|argument| amount(argument, parameters)).collect::<Result<_, _>>()?;
        match (name.trim(), arguments.as_slice()) {
            ("uniform", &[low, high]) if low <= high => Ok(Expression::Uniform { low, high }),
            ("uniform", &[low, high]) => Err(format!("the bounds of `{text}` are {low} and {high}")),
            ("string", &[length]) if (0..=STRING_MAX).contains(&length) => {
                Ok(Expression::String { length: length as usize })
            }
            ("string", &[length]) => {
                Err(format!("a string of {length} letters; it can have 0 to {STRING_MAX}"))
            }
            ("sequence", &[first]) => Ok(Expression::Sequence { first }),
            _ => Err(format!(
                "`{text}` is not known; there are uniform(low, high), string(length) and sequence(first)"
            )),
        }
    }

    /// The value for a row or transaction; `index` counts them from zero.
    pub(super) fn value(&self, random: &mut Random, index: u64) -> Value {
        match *self {
            Expression::Uniform { low, high } => {
                // The span of two 64-bit numbers needs 65 bits; multiply-shift as in `Random::between`.
                let span = (i128::from(high) - i128::from(low)) as u128 + 1;
                let above = (u128::from(random.next_u64() >> 1) * span) >> 63;
                Value::Integer((i128::from(low) + above as i128) as i64)
            }
            Expression::String { length } => random.letters(length).into(),
            Expression::Sequence { first } => Value::Integer(first.wrapping_add_unsigned(index)),
            Expression::Constant(value) => Value::Integer(value),
        }
    }

    /// Approximate bytes of a value.
    pub(super) fn width(&self) -> u64 {
        match self {
            Expression::String { length } => *length as u64,
            _ => 8,
        }
    }
}

/// A product of numbers and parameters, joined by `*`.
///
/// # Errors
/// The mistake in the text, as a sentence.
pub(super) fn amount(text: &str, parameters: &Numbers) -> Result<i64, String> {
    let factor = |factor: &str| {
        let factor = factor.trim();
        match factor.strip_prefix(':') {
            Some(name) => {
                parameters.get(name).copied().ok_or_else(|| format!("`:{name}` is no parameter of the file"))
            }
            None => factor.parse().map_err(|_| format!("`{factor}` is no whole number")),
        }
    };
    text.split('*').try_fold(1_i64, |product, next| {
        product.checked_mul(factor(next)?).ok_or_else(|| format!("`{}` is too large", text.trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Expression, String> {
        Expression::parse(text, &BTreeMap::from([("scale".to_owned(), 3)]))
    }

    #[test]
    fn amounts_are_products_of_numbers_and_parameters() {
        assert_eq!(parse("10 * :scale*2"), Ok(Expression::Constant(60)));
        assert_eq!(parse("uniform(-5, :scale)"), Ok(Expression::Uniform { low: -5, high: 3 }));
        assert_eq!(parse("uniform(1, :size)").unwrap_err(), "`:size` is no parameter of the file");
        assert_eq!(parse("ten").unwrap_err(), "`ten` is no whole number");
        assert_eq!(
            parse("uniform(4, :scale)").unwrap_err(),
            "the bounds of `uniform(4, :scale)` are 4 and 3"
        );
        assert!(parse("zipf(1, 2)").unwrap_err().contains("is not known"));
        assert!(parse("9223372036854775807 * 2").unwrap_err().contains("too large"));
    }

    #[test]
    fn a_uniform_value_reaches_both_bounds() {
        let mut random = Random::seeded(&[1]);
        let dice = Expression::Uniform { low: -1, high: 1 };
        let drawn: Vec<Value> = (0..100).map(|index| dice.value(&mut random, index)).collect();
        for expect in [-1_i64, 0, 1] {
            assert!(drawn.contains(&expect.into()), "{expect}");
        }
        assert!(drawn.iter().all(|value| [-1_i64, 0, 1].iter().any(|known| *value == known.into())));
        let widest = Expression::Uniform { low: i64::MIN, high: i64::MAX };
        assert_ne!(widest.value(&mut random, 0), widest.value(&mut random, 0));
    }
}
