//! What must be true of each row of a SELECT: conditions on one table, and columns that are equal.

use sqlparser::ast::{
    BinaryOperator, Expr, JoinConstraint, JoinOperator, ObjectNamePart, Select, UnaryOperator, Value,
};

use super::check::columns_in;
use super::scope::Scope;
use crate::facts::Kind;
use crate::mapping::KeyValue;
use crate::sql::print::explicit;

/// A column of the table at this index of [`super::Block::tables`].
pub type ColumnOf = (usize, String);

#[derive(Debug, Default)]
pub(super) struct Conditions {
    /// Table, the columns that the condition names, and its text.
    pub(super) of_one_table: Vec<(usize, Vec<String>, String)>,
    pub(super) equal: Vec<(ColumnOf, ColumnOf)>,
    /// Columns whose values the query names.
    pub(super) fixed: Vec<(ColumnOf, Fixed)>,
}

/// The values that a condition leaves of a column.
#[derive(Debug, PartialEq)]
pub(super) enum Fixed {
    /// Some of these.
    Values(Vec<Literal>),
    /// Integers from the first to the last.
    Range(i128, i128),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Number(String),
    /// Between its quotes, as it is written.
    Text(String),
}

impl Literal {
    pub(super) fn of(expression: &Expr) -> Option<Literal> {
        match expression {
            Expr::Nested(inner) => Literal::of(inner),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match Literal::of(expr)? {
                Literal::Number(number) => Some(Literal::Number(format!("-{number}"))),
                _ => None,
            },
            Expr::Value(value) => match &value.value {
                Value::Null => Some(Literal::Null),
                Value::Number(number, _) => Some(Literal::Number(number.clone())),
                Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => {
                    Some(Literal::Text(text.clone()))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn integer(&self) -> Option<i128> {
        match self {
            Literal::Number(number) => number.parse().ok(),
            _ => None,
        }
    }

    /// The only value of a column of this kind that equals the literal; `None` if there may be others.
    pub(super) fn value(&self, kind: Kind) -> Option<KeyValue<'_>> {
        match (self, kind) {
            (Literal::Null, _) => Some(KeyValue::Null),
            (Literal::Number(_), Kind::Integer) => self.integer().map(KeyValue::Integer),
            (Literal::Text(text), Kind::Date) => KeyValue::of(Some(text), kind),
            (Literal::Text(text), Kind::BinaryText) if !text.contains(['\\', '\'', '"']) => {
                KeyValue::of(Some(text), kind)
            }
            _ => None,
        }
    }
}

impl Literal {
    /// The value that a column of this kind has, if this is inserted.
    pub(super) fn inserted(&self, kind: Kind) -> Option<KeyValue<'_>> {
        match (self, kind) {
            (Literal::Text(text), _) if !text.contains(['\\', '\'', '"']) => KeyValue::of(Some(text), kind),
            (Literal::Text(_), _) => None,
            _ => self.value(kind),
        }
    }
}

impl Conditions {
    pub(super) fn of(select: &Select, scope: &Scope) -> Conditions {
        let mut found = Conditions::default();
        if let Some(selection) = &select.selection {
            found.add(selection, scope);
        }
        let mut index = 0;
        for from in &select.from {
            index += 1;
            for join in &from.joins {
                let constraint = match &join.join_operator {
                    JoinOperator::Join(constraint)
                    | JoinOperator::Inner(constraint)
                    | JoinOperator::CrossJoin(constraint)
                    | JoinOperator::StraightJoin(constraint) => Some(constraint),
                    _ => None,
                };
                match constraint {
                    Some(JoinConstraint::On(condition)) => found.add(condition, scope),
                    Some(JoinConstraint::Using(names)) => {
                        let columns = names.iter().filter_map(|name| match name.0.last() {
                            Some(ObjectNamePart::Identifier(name)) => Some(name.value.as_str()),
                            _ => None,
                        });
                        columns.for_each(|column| found.add_merged(column, index, scope));
                    }
                    _ => {}
                }
                index += 1;
            }
        }
        // An outer join makes rows of NULLs, for which a condition of an inner join need not be true.
        let is_kept = |table: usize| !scope.places[table].is_optional;
        found.of_one_table.retain(|(table, _, _)| is_kept(*table));
        found.equal.retain(|((one, _), (other, _))| is_kept(*one) && is_kept(*other));
        found.fixed.retain(|((table, _), _)| is_kept(*table));
        found
    }

    fn add(&mut self, condition: &Expr, scope: &Scope) {
        match condition {
            Expr::Nested(inner) => return self.add(inner, scope),
            Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
                self.add(left, scope);
                return self.add(right, scope);
            }
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => {
                if let (Some(one), Some(other)) = (column(left, scope), column(right, scope))
                    && one.0 != other.0
                {
                    return self.equal.push((one, other));
                }
            }
            _ => {}
        }
        self.fixed.extend(fixed(condition, scope));
        let Some(columns) = columns_in(condition) else { return };
        let columns: Option<Vec<ColumnOf>> = columns.iter().map(|name| column(name, scope)).collect();
        let Some(columns) = columns else { return };
        let Some(table) = columns.first().map(|(table, _)| *table) else { return };
        if columns.iter().all(|(other, _)| *other == table) {
            let names = columns.into_iter().map(|(_, name)| name).collect();
            self.of_one_table.push((table, names, explicit(condition)));
        }
    }

    /// A column that USING names.
    fn add_merged(&mut self, name: &str, right: usize, scope: &Scope) {
        let has = |place: &super::scope::Place| {
            place.facts.as_ref().is_some_and(|facts| facts.column(name).is_some())
        };
        if let Some(left) = scope.places[..right].iter().position(has) {
            self.equal.push(((left, name.to_owned()), (right, name.to_owned())));
        }
    }
}

fn column(expression: &Expr, scope: &Scope) -> Option<ColumnOf> {
    let (place, name) = scope.column_of(expression)?;
    let index = scope.places.iter().position(|other| std::ptr::eq(other, place))?;
    Some((index, name))
}

/// The column whose values a condition names, and these.
fn fixed(condition: &Expr, scope: &Scope) -> Option<(ColumnOf, Fixed)> {
    match condition {
        Expr::BinaryOp { left, op: op @ (BinaryOperator::Eq | BinaryOperator::Spaceship), right } => {
            let (of, literal) = match (column(left, scope), column(right, scope)) {
                (Some(of), None) => (of, Literal::of(right)?),
                (None, Some(of)) => (of, Literal::of(left)?),
                _ => return None,
            };
            // Nothing equals NULL.
            let is_possible = literal != Literal::Null || *op == BinaryOperator::Spaceship;
            Some((of, Fixed::Values(if is_possible { vec![literal] } else { Vec::new() })))
        }
        Expr::InList { expr, list, negated: false } => {
            let literals = list.iter().map(Literal::of).collect::<Option<Vec<_>>>()?;
            let values = literals.into_iter().filter(|literal| *literal != Literal::Null).collect();
            Some((column(expr, scope)?, Fixed::Values(values)))
        }
        Expr::Between { expr, negated: false, low, high } => {
            let (least, most) = (Literal::of(low)?.integer()?, Literal::of(high)?.integer()?);
            Some((column(expr, scope)?, Fixed::Range(least, most)))
        }
        _ => None,
    }
}

/// The conditions that AND connects.
pub(super) fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::Nested(inner) => conjuncts(*inner),
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            let mut all = conjuncts(*left);
            all.extend(conjuncts(*right));
            all
        }
        other => vec![other],
    }
}

pub(super) fn all_of(conditions: Vec<Expr>) -> Option<Expr> {
    conditions.into_iter().reduce(|left, right| Expr::BinaryOp {
        left: Box::new(left),
        op: BinaryOperator::And,
        right: Box::new(right),
    })
}
