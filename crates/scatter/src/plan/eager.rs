//! Eager aggregation (Yan and Larson, 1995): fragments group the fact table by the keys of its dimensions, and the
//! merge joins the dimensions to the groups. A fragment then joins nothing, and the merge joins few rows.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, GroupByExpr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query, SetExpr,
    TableAlias, TableFactor, TableWithJoins, Visit, VisitMut, Visitor, VisitorMut,
};

use super::Refusal;
use super::aggregate::{Parts, aggregate, counted, is_of_values, needs_rows};
use super::block::{Block, Written, factor_at};
use super::check::{check_clauses, check_expressions, columns_in};
use super::conditions::{Conditions, all_of, conjuncts};
use super::rewrite::name_items;
use super::scope::{Scope, alias_of};
use super::semi_join::take_semi_joins;
use crate::facts::{Facts, ResultColumn};
use crate::sql::print::{explicit, quoted};

/// A larger dimension costs more than it saves.
pub const DIMENSION_ROWS_MOST: u64 = 200_000;
/// Groups that all fragments may return, of a table with this many rows for each.
const GROUPS_MOST: u64 = 100_000;
const ROWS_EACH: u64 = 10;

/// # Errors
/// Why the fragments would not gain by it.
pub(super) fn plan_eager(
    query: &Query,
    result: &[ResultColumn],
    table: &str,
    facts: &dyn Facts,
) -> Result<Block, Refusal> {
    let SetExpr::Select(select) = &*query.body else { return refused("it is no single SELECT") };
    check_clauses(query, select)?;
    check_expressions(query)?;
    if matches!(&select.group_by, GroupByExpr::Expressions(_, modifiers) if !modifiers.is_empty()) {
        return refused("it has totals");
    }
    let mut scope = Scope::of(select, facts)?;
    let fact = fact(&scope)?;
    let mut rest = query.clone();
    let semi_joins = take_semi_joins(&mut rest, &scope, fact);
    let of_fact = take_conditions(&mut rest, &scope, fact)?;

    // What is left of the query reads groups in the place of the fact table.
    let mut aggregates =
        Aggregates { parts: Parts::default(), of_dimensions: false, scope: &scope, fact, depth: 0 };
    if let ControlFlow::Break(refusal) = VisitMut::visit(&mut rest, &mut aggregates) {
        return Err(refusal);
    }
    let Aggregates { parts, of_dimensions, .. } = aggregates;
    let is_any = of_dimensions || !parts.columns.is_empty();
    if !is_any || !parts.distinct.is_empty() || !parts.means.is_empty() {
        return refused("its aggregates are not merged by themselves");
    }
    let mut names = Names { scope: &scope, fact, columns: Vec::new() };
    if let ControlFlow::Break(refusal) = Visit::visit(&rest, &mut names) {
        return Err(refusal);
    }
    let mut columns = names.columns;
    columns.extend(used(&rest)?.into_iter().filter(|name| has(&scope, fact, name)));
    columns.iter_mut().for_each(|name| *name = name.to_ascii_lowercase());
    columns.sort_unstable();
    columns.dedup();
    let conditions = Conditions::of(select, &scope);
    // Without any GROUP BY there is one group, of no rows as well.
    let is_one_group = matches!(&select.group_by, GroupByExpr::Expressions(keys, _) if keys.is_empty());
    if !columns.is_empty() || semi_joins.is_empty() || !is_one_group {
        check_groups(&conditions, &scope, fact, &columns, facts)?;
    }

    let alias = &scope.places[fact].alias;
    let column = |name: &String| format!("{}.{}", quoted(alias), quoted(name));
    let keys = columns.iter().map(|name| (quoted(name), column(name)));
    let groups: Vec<String> = columns.iter().map(column).collect();
    let written = Written {
        columns: keys.chain(parts.columns).collect(),
        is_distinct: false,
        group_by: match groups.is_empty() {
            true => String::new(),
            false => format!(" GROUP BY {} ORDER BY NULL", groups.join(", ")),
        },
        semi_joins,
        limit: String::new(),
        before_merge: Vec::new(),
        merge: merge(rest, result, &scope, fact, table)?,
        are_rows: false,
    };
    let place = &mut scope.places[fact].position;
    let relation = factor_at(&mut select.from.clone(), *place).clone();
    *place = (0, 0);
    let from = vec![TableWithJoins { relation, joins: Vec::new() }];
    Ok(Block::of(from, all_of(of_fact), conditions, scope, written, table))
}

/// Columns that USING names in what is left of a query.
fn used(rest: &Query) -> Result<Vec<String>, Refusal> {
    let SetExpr::Select(select) = &*rest.body else { return refused("it is no single SELECT") };
    let constraint = |operator: &JoinOperator| match operator {
        JoinOperator::Join(JoinConstraint::Using(names))
        | JoinOperator::Inner(JoinConstraint::Using(names))
        | JoinOperator::CrossJoin(JoinConstraint::Using(names))
        | JoinOperator::StraightJoin(JoinConstraint::Using(names)) => names.clone(),
        _ => Vec::new(),
    };
    let joins = select.from.iter().flat_map(|from| &from.joins);
    let names = joins.flat_map(|join| constraint(&join.join_operator));
    Ok(names.filter_map(|name| Some(name.0.last()?.as_ident()?.value.clone())).collect())
}

fn refused<T>(why: &str) -> Result<T, Refusal> {
    Err(Refusal(why.to_owned()))
}

fn has(scope: &Scope, fact: usize, column: &str) -> bool {
    scope.places[fact].facts.as_ref().is_some_and(|facts| facts.column(column).is_some())
}

/// The largest table, if all others are small enough to be joined later.
fn fact(scope: &Scope) -> Result<usize, Refusal> {
    let mut sizes = Vec::new();
    for (index, place) in scope.places.iter().enumerate() {
        match &place.facts {
            Some(facts) if facts.is_base_table && !place.is_optional => sizes.push((facts.rows, index)),
            _ => return refused("it does not join base tables alone"),
        }
    }
    sizes.sort_unstable();
    let Some((_, fact)) = sizes.pop() else { return refused("it reads no table") };
    // The server that merges needs all rows of the dimensions.
    let is_whole = |place: usize| scope.places[place].facts.as_ref().is_some_and(|facts| facts.key.is_none());
    let is_small = |(rows, place): &(u64, usize)| *rows <= DIMENSION_ROWS_MOST && is_whole(*place);
    match !sizes.is_empty() && sizes.iter().all(is_small) && !scope.merges_all() {
        true => Ok(fact),
        false => refused("it joins no dimensions"),
    }
}

/// Takes the conditions on the fact table alone out of WHERE.
fn take_conditions(query: &mut Query, scope: &Scope, fact: usize) -> Result<Vec<Expr>, Refusal> {
    let SetExpr::Select(select) = &mut *query.body else { return refused("it is no single SELECT") };
    let Some(selection) = select.selection.take() else { return Ok(Vec::new()) };
    let (mut of_fact, mut others) = (Vec::new(), Vec::new());
    for condition in conjuncts(selection) {
        let Some(columns) = columns_in(&condition) else { return refused("it has a subquery in WHERE") };
        let is_of_fact = |column: &Expr| scope.place_of(column) == Some(fact);
        match !columns.is_empty() && columns.iter().all(is_of_fact) {
            true => of_fact.push(condition),
            false => others.push(condition),
        }
    }
    select.selection = all_of(others);
    Ok(of_fact)
}

/// Puts what merges an aggregate in its place.
struct Aggregates<'a> {
    parts: Parts,
    /// There is one of dimensions' values alone, which the merge computes.
    of_dimensions: bool,
    scope: &'a Scope,
    fact: usize,
    depth: usize,
}

impl Aggregates<'_> {
    fn is_never_null(&self, column: &Expr) -> bool {
        let found = self.scope.column_of(column).and_then(|(place, name)| {
            let facts = place.facts.as_ref().filter(|_| !place.is_optional)?;
            Some(!facts.column(&name)?.nullable)
        });
        found.unwrap_or(false)
    }
}

impl VisitorMut for Aggregates<'_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Refusal> {
        self.depth += 1;
        match self.depth > 1 {
            true => ControlFlow::Break(Refusal("it has a subquery".to_owned())),
            false => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Refusal> {
        let Some((name, function)) = aggregate(expression) else { return ControlFlow::Continue(()) };
        // Of a column without NULLs there are as many values as rows.
        if counted(&name, function).is_some_and(|argument| self.is_never_null(argument)) {
            *expression = self.parts.count("*");
            return ControlFlow::Continue(());
        }
        let columns = columns_in(expression);
        let are_all = |is_it: &dyn Fn(usize) -> bool| {
            let is_it = |column: &Expr| self.scope.place_of(column).is_some_and(is_it);
            columns.as_ref().is_some_and(|columns| columns.iter().all(is_it))
        };
        let is_of_fact = are_all(&|place| place == self.fact);
        if !is_of_fact && are_all(&|place| place != self.fact) && is_of_values(&name, function) {
            self.of_dimensions = true;
            return ControlFlow::Continue(());
        }
        if !is_of_fact || needs_rows(&name, function) {
            return ControlFlow::Break(Refusal("an aggregate is not of the fact table alone".to_owned()));
        }
        match self.parts.finalize(&name, function) {
            Ok(merged) => *expression = merged,
            Err(refusal) => return ControlFlow::Break(refusal),
        }
        ControlFlow::Continue(())
    }
}

/// Columns of the fact table that the rest of the query names.
struct Names<'a> {
    scope: &'a Scope,
    fact: usize,
    columns: Vec<String>,
}

impl Visitor for Names<'_> {
    type Break = Refusal;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Refusal> {
        let name = match expression {
            Expr::Identifier(name) if self.scope.place_of(expression).is_none() => Some(&name.value),
            Expr::CompoundIdentifier(parts) if parts.len() > 2 => {
                return ControlFlow::Break(Refusal("it names columns with their schema".to_owned()));
            }
            Expr::Identifier(_) | Expr::CompoundIdentifier(_) => {
                if let Some((place, column)) = self.scope.column_of(expression)
                    && std::ptr::eq(place, &self.scope.places[self.fact])
                {
                    self.columns.push(column);
                }
                None
            }
            _ => None,
        };
        // An alias, or a column that a join merges: if the fact table has it, its own is as good.
        if let Some(name) = name.filter(|name| has(self.scope, self.fact, name)) {
            self.columns.push(name.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Each column by which the fragments group must be the key of a dimension: of others nobody knows how many values
/// they have. Where all combinations of keys are too many, the server is asked for those that there are.
fn check_groups(
    conditions: &Conditions,
    scope: &Scope,
    fact: usize,
    columns: &[String],
    facts: &dyn Facts,
) -> Result<(), Refusal> {
    if columns.is_empty() {
        return refused("it joins no dimension by a key");
    }
    let dimension_rows = |column: &String| {
        let others = conditions.equal.iter().filter_map(|(one, other)| {
            let is_it = |side: &(usize, String)| side.0 == fact && side.1.eq_ignore_ascii_case(column);
            match (is_it(one), is_it(other)) {
                (true, _) => Some(other.0),
                (_, true) => Some(one.0),
                _ => None,
            }
        });
        others.filter_map(|place| scope.places[place].facts.as_ref().map(|facts| facts.rows)).min()
    };
    let mut keys = Vec::new();
    for column in columns {
        match dimension_rows(column) {
            Some(rows) => keys.push((column.as_str(), rows.max(1))),
            None => return Err(Refusal(format!("{column} is the key of no dimension"))),
        }
    }
    let place = &scope.places[fact];
    let rows = place.facts.as_ref().map_or(0, |facts| facts.rows);
    let are_few = |groups: u64| groups <= GROUPS_MOST && groups.saturating_mul(ROWS_EACH) <= rows;
    let most = keys.iter().fold(1_u64, |product, (_, rows)| product.saturating_mul(*rows));
    let sampled = || place.name.as_ref().and_then(|name| facts.groups(name, &keys));
    match are_few(most) || sampled().is_some_and(are_few) {
        true => Ok(()),
        false => refused("its groups are too many"),
    }
}

/// The rest of the query, over the groups in the place of the fact table.
fn merge(
    mut rest: Query,
    result: &[ResultColumn],
    scope: &Scope,
    fact: usize,
    table: &str,
) -> Result<String, Refusal> {
    let SetExpr::Select(select) = &mut *rest.body else { return refused("it is no single SELECT") };
    name_items(select, result)?;
    let factor = factor_of(&mut select.from, &scope.places[fact].alias);
    if let Some(TableFactor::Table { name, alias, partitions, index_hints, .. }) = factor {
        *name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new(table))]);
        *alias = Some(TableAlias {
            explicit: true,
            name: Ident::with_quote('`', scope.places[fact].alias.clone()),
            columns: Vec::new(),
            at: None,
        });
        partitions.clear();
        index_hints.clear();
    }
    Ok(explicit(&rest))
}

/// The table of this alias in FROM.
fn factor_of<'a>(from: &'a mut [TableWithJoins], alias: &str) -> Option<&'a mut TableFactor> {
    let is_it =
        |factor: &TableFactor| alias_of(factor).is_some_and(|given| given.eq_ignore_ascii_case(alias));
    let factors = from.iter_mut().flat_map(|from| {
        let joined = from.joins.iter_mut().map(|join| &mut join.relation);
        [&mut from.relation].into_iter().chain(joined)
    });
    factors.into_iter().find(|factor| is_it(factor))
}
