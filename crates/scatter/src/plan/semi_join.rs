//! Dimensions that only filter (semi-join reduction; Bernstein and Chiu, "Using Semi-Joins to Solve Relational Queries",
//! 1981): of such a dimension the query reads nothing but which keys it leaves. Fragments ask for these, and nobody joins
//! it.

use std::ops::ControlFlow;

use sqlparser::ast::{
    BinaryOperator, Expr, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, Select,
    SelectItem, SetExpr, TableFactor, TableWithJoins, Visit, Visitor,
};

use super::check::columns_in;
use super::conditions::{all_of, conjuncts};
use super::scope::{Place, Scope, alias_of, column_text, table_text};
use crate::facts::Kind;
use crate::sql::print::explicit;

/// A dimension that fragments do not join.
#[derive(Debug)]
pub(super) struct SemiJoin {
    /// Index of its place.
    pub(super) dimension: usize,
    /// The condition on the fact table in its place.
    pub(super) condition: String,
}

/// Takes the dimensions that only filter out of a query of one SELECT, whose joins are inner ones.
pub(super) fn take_semi_joins(query: &mut Query, scope: &Scope, fact: usize) -> Vec<SemiJoin> {
    let others = (0..scope.places.len()).filter(|index| *index != fact);
    others.filter_map(|dimension| take(query, scope, fact, dimension)).collect()
}

fn take(query: &mut Query, scope: &Scope, fact: usize, dimension: usize) -> Option<SemiJoin> {
    let mut without = query.clone();
    let SetExpr::Select(select) = &mut *without.body else { return None };
    let has_all =
        |item: &SelectItem| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(..));
    if select.projection.iter().any(has_all) {
        return None;
    }
    let found = Filter::taken(select, scope, fact, dimension)?;
    let names = Names { scope, place: dimension, depth: 0 };
    if Visit::visit(&without, &mut { names }).is_break() {
        return None;
    }
    *query = without;
    let place = &scope.places[dimension];
    let (column, key) = &found.key;
    let condition = match found.conditions.is_empty() {
        true => String::new(),
        false => format!(" WHERE {}", found.conditions.join(" AND ")),
    };
    let of_fact = column_text(&scope.places[fact], column);
    let keys = format!("SELECT {} FROM {}{condition}", column_text(place, key), table_text(place));
    Some(SemiJoin { dimension, condition: format!("{of_fact} IN ({keys})") })
}

/// What a query says of a dimension.
struct Filter {
    /// Columns of the fact table and of the dimension that are equal.
    key: (String, String),
    /// Conditions on the dimension alone.
    conditions: Vec<String>,
}

impl Filter {
    /// Takes the dimension and what is said of it out of FROM and WHERE.
    fn taken(select: &mut Select, scope: &Scope, fact: usize, dimension: usize) -> Option<Filter> {
        let mut keys = Vec::new();
        let mut conditions = Vec::new();
        let mut sort = |condition: Expr, kept: &mut Vec<Expr>| -> Option<()> {
            let columns = columns_in(&condition)?;
            let place = |column: &Expr| match scope.place_of(column) {
                // A column that joins merge is the fact table's as well.
                None => is_merged(column, scope).then_some(fact),
                place => place,
            };
            let places: Vec<usize> = columns.iter().map(place).collect::<Option<_>>()?;
            match places.contains(&dimension) {
                false => kept.push(condition),
                true if places.iter().all(|place| *place == dimension) => {
                    conditions.push(explicit(&condition))
                }
                true => keys.push(equal_columns(&condition, scope, fact, dimension)?),
            }
            Some(())
        };
        let mut kept = Vec::new();
        for condition in select.selection.take().map(conjuncts).unwrap_or_default() {
            sort(condition, &mut kept)?;
        }
        let constraint = take_table(&mut select.from, &scope.places[dimension].alias)?;
        let mut of_join = Vec::new();
        match constraint {
            JoinConstraint::None => {}
            JoinConstraint::On(condition) => {
                for condition in conjuncts(condition) {
                    sort(condition, &mut of_join)?;
                }
            }
            JoinConstraint::Using(names) => keys.push(merged_columns(&names, scope, fact, dimension)?),
            JoinConstraint::Natural => return None,
        }
        let [key] = <[(String, String); 1]>::try_from(keys).ok()?;
        if !of_join.is_empty() || !is_key(&key, scope, fact, dimension) {
            return None;
        }
        select.selection = all_of(kept);
        Some(Filter { key, conditions })
    }
}

fn is_merged(column: &Expr, scope: &Scope) -> bool {
    let Expr::Identifier(name) = column else { return false };
    scope.merged_columns().iter().any(|merged| merged.eq_ignore_ascii_case(&name.value))
}

/// Whether each row of the fact table finds one row of the dimension at most, by values that are compared alike
/// everywhere.
fn is_key((column, key): &(String, String), scope: &Scope, fact: usize, dimension: usize) -> bool {
    let kind = |place: usize, column: &str| {
        let facts = scope.places[place].facts.as_ref()?;
        facts.column(column).map(|column| column.kind)
    };
    let is_unique = scope.places[dimension].facts.as_ref().is_some_and(|facts| {
        facts
            .unique
            .iter()
            .any(|columns| matches!(columns.as_slice(), [only] if only.eq_ignore_ascii_case(key)))
    });
    let kinds = (kind(fact, column), kind(dimension, key));
    is_unique
        && matches!(kinds, (Some(Kind::Integer), Some(Kind::Integer)) | (Some(Kind::Date), Some(Kind::Date)))
}

fn equal_columns(condition: &Expr, scope: &Scope, fact: usize, dimension: usize) -> Option<(String, String)> {
    let Expr::BinaryOp { left, op: BinaryOperator::Eq, right } = condition else { return None };
    let (one, other) = (scope.column_of(left)?, scope.column_of(right)?);
    let place =
        |(place, _): &(&Place, String)| scope.places.iter().position(|known| std::ptr::eq(known, *place));
    match (place(&one)?, place(&other)?) {
        (left, right) if left == fact && right == dimension => Some((one.1, other.1)),
        (left, right) if left == dimension && right == fact => Some((other.1, one.1)),
        _ => None,
    }
}

/// The column of USING, if only the fact table and the dimension have it.
fn merged_columns(
    names: &[ObjectName],
    scope: &Scope,
    fact: usize,
    dimension: usize,
) -> Option<(String, String)> {
    let [name] = names else { return None };
    let ObjectNamePart::Identifier(name) = name.0.last()? else { return None };
    let has = |(index, place): (usize, &Place)| {
        place.facts.as_ref().is_some_and(|facts| facts.column(&name.value).is_some()).then_some(index)
    };
    let mut having: Vec<usize> = scope.places.iter().enumerate().filter_map(has).collect();
    having.retain(|index| *index != fact && *index != dimension);
    having.is_empty().then(|| (name.value.clone(), name.value.clone()))
}

/// Takes a table with no joins of its own out of FROM.
fn take_table(from: &mut Vec<TableWithJoins>, alias: &str) -> Option<JoinConstraint> {
    let is_plain = |factor: &TableFactor| {
        matches!(factor, TableFactor::Table { partitions, index_hints, .. }
            if partitions.is_empty() && index_hints.is_empty())
    };
    let is_it = |factor: &TableFactor| {
        is_plain(factor) && alias_of(factor).is_some_and(|given| given.eq_ignore_ascii_case(alias))
    };
    if from.len() > 1
        && let Some(index) = from.iter().position(|from| from.joins.is_empty() && is_it(&from.relation))
    {
        from.remove(index);
        return Some(JoinConstraint::None);
    }
    for from in from {
        if let Some(index) = from.joins.iter().position(|join| is_it(&join.relation)) {
            let Join { join_operator, .. } = from.joins.remove(index);
            return match join_operator {
                JoinOperator::Join(constraint)
                | JoinOperator::Inner(constraint)
                | JoinOperator::CrossJoin(constraint) => Some(constraint),
                _ => None,
            };
        }
    }
    None
}

/// Looks for columns of one table, and for subqueries, in which nobody knows what names mean.
struct Names<'a> {
    scope: &'a Scope,
    place: usize,
    depth: usize,
}

impl Visitor for Names<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        if self.depth > 1 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match self.scope.place_of(expression) == Some(self.place) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
