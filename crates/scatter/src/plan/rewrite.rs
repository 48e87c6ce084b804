//! Expressions of a query over the columns that its fragments ship.

use std::mem;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Ident, Query, Select, SelectItem, Value, ValueWithSpan, VisitMut, VisitorMut};

use super::Refusal;
use super::aggregate::{Parts, aggregate};
use super::check::{columns_in, has_aggregate};
use super::scope::Scope;
use crate::facts::ResultColumn;
use crate::sql::print::{explicit, verbatim};

/// An expression of GROUP BY.
#[derive(Debug)]
pub(super) struct Key {
    /// See [`Scope::normal`].
    pub(super) normal: String,
    pub(super) column: String,
}

/// Rewrites the expressions of a query with aggregates.
#[derive(Debug)]
pub(super) struct Rewriter<'a> {
    pub(super) scope: &'a Scope,
    pub(super) keys: Vec<Key>,
    pub(super) parts: Parts,
    pub(super) is_rollup: bool,
}

impl Rewriter<'_> {
    pub(super) fn rewritten(&mut self, expression: &Expr) -> Result<String, Refusal> {
        let mut expression = expression.clone();
        match expression.visit(&mut Visit { rewriter: self }) {
            ControlFlow::Break(refusal) => Err(refusal),
            ControlFlow::Continue(()) => Ok(explicit(&expression)),
        }
    }

    /// What takes the place of an expression; `None` if its parts are to be looked at.
    fn replacement(&mut self, expression: &Expr) -> Result<Option<Expr>, Refusal> {
        let is_constant = columns_in(expression).is_some_and(|columns| columns.is_empty());
        if is_constant && !has_aggregate(expression) && !self.is_rollup {
            return Ok(None);
        }
        let normal = self.scope.normal(expression);
        if let Some(key) = self.keys.iter().find(|key| key.normal == normal) {
            return Ok(Some(verbatim(key.column.clone())));
        }
        if let Some((name, function)) = aggregate(expression) {
            return self.parts.finalize(&name, function).map(Some);
        }
        if has_aggregate(expression) {
            return Ok(None);
        }
        let is_key = |column: &Expr| {
            let normal = self.scope.normal(column);
            self.keys.iter().any(|key| key.normal == normal)
        };
        match columns_in(expression) {
            // Constants among them.
            Some(columns) if columns.iter().all(is_key) => Ok(None),
            _ if self.is_rollup => {
                Err(Refusal("its totals have columns that it does not group by".to_owned()))
            }
            // A value of any row of the group, as the server takes it.
            _ => Ok(Some(verbatim(self.parts.column(&explicit(expression))))),
        }
    }
}

/// Gives the columns of a select list their names and digits in the result. Printed with parentheses, a column without an
/// alias would have another name.
///
/// # Errors
/// The list has `*`, and is as it was.
pub(super) fn name_items(select: &mut Select, result: &[ResultColumn]) -> Result<(), Refusal> {
    let is_expression =
        |item: &SelectItem| matches!(item, SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. });
    if select.projection.len() != result.len() || !select.projection.iter().all(is_expression) {
        return Err(Refusal("its columns are not its expressions".to_owned()));
    }
    for (item, column) in select.projection.iter_mut().zip(result) {
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = item
        else {
            continue;
        };
        let expression = mem::replace(expression, verbatim(""));
        let expr = match column.digits {
            Some(_) => verbatim(column.shown(&explicit(&expression))),
            None => expression,
        };
        *item = SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('`', column.name.clone()) };
    }
    Ok(())
}

struct Visit<'a, 'b> {
    rewriter: &'a mut Rewriter<'b>,
}

impl VisitorMut for Visit<'_, '_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Refusal> {
        ControlFlow::Break(Refusal("a subquery stands beside its aggregates".to_owned()))
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Refusal> {
        match self.rewriter.replacement(expression) {
            Ok(Some(other)) => *expression = other,
            Ok(None) => {}
            Err(refusal) => return ControlFlow::Break(refusal),
        }
        ControlFlow::Continue(())
    }
}

/// Expressions of the SELECT list by their aliases.
#[derive(Debug)]
pub(super) struct Aliases<'a> {
    pub(super) items: &'a [(Expr, Option<Ident>)],
    pub(super) scope: &'a Scope,
}

impl Aliases<'_> {
    /// The expression of an element of GROUP BY or ORDER BY that is a position.
    pub(super) fn at_position(&self, expression: &Expr) -> Result<Option<Expr>, Refusal> {
        let Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) = expression else {
            return Ok(None);
        };
        let item = number.parse::<usize>().ok().and_then(|position| self.items.get(position.checked_sub(1)?));
        let found = item.map(|(expression, _)| expression.clone());
        found.map(Some).ok_or_else(|| Refusal(format!("it has no column {number}")))
    }

    fn of(&self, name: &Ident) -> Option<&Expr> {
        let is_it = |alias: &Ident| alias.value.eq_ignore_ascii_case(&name.value);
        let mut found = self.items.iter().filter(|(_, alias)| alias.as_ref().is_some_and(is_it));
        found.next().map(|(expression, _)| expression)
    }

    /// In GROUP BY a column is meant before an alias.
    pub(super) fn in_group_by(&self, expression: &Expr) -> Expr {
        match expression {
            Expr::Identifier(name) if !self.scope.may_have_column(&name.value) => {
                self.of(name).unwrap_or(expression).clone()
            }
            _ => expression.clone(),
        }
    }

    /// In HAVING and ORDER BY an alias is meant, but not in an aggregate. Where it could be either, servers differ.
    pub(super) fn resolved(&self, expression: &Expr) -> Result<Expr, Refusal> {
        let mut expression = expression.clone();
        match expression.visit(&mut Resolve { aliases: self, in_aggregates: 0 }) {
            ControlFlow::Break(refusal) => Err(refusal),
            ControlFlow::Continue(()) => Ok(expression),
        }
    }
}

struct Resolve<'a> {
    aliases: &'a Aliases<'a>,
    in_aggregates: usize,
}

impl VisitorMut for Resolve<'_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, _: &mut Query) -> ControlFlow<Refusal> {
        ControlFlow::Break(Refusal("a subquery stands in its HAVING or ORDER BY".to_owned()))
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Refusal> {
        self.in_aggregates += usize::from(aggregate(expression).is_some());
        ControlFlow::Continue(())
    }

    /// After its parts, so that the expression of an alias is not resolved again.
    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Refusal> {
        if aggregate(expression).is_some() {
            self.in_aggregates -= 1;
        }
        let Expr::Identifier(name) = expression else { return ControlFlow::Continue(()) };
        if self.in_aggregates > 0 {
            return ControlFlow::Continue(());
        }
        let name = name.clone();
        let Some(meant) = self.aliases.of(&name) else { return ControlFlow::Continue(()) };
        let scope = self.aliases.scope;
        if scope.may_have_column(&name.value) && scope.normal(meant) != scope.normal(expression) {
            return ControlFlow::Break(Refusal(format!("{name} is an alias and a column")));
        }
        let meant = Expr::Nested(Box::new(meant.clone()));
        drop(mem::replace(expression, meant));
        ControlFlow::Continue(())
    }
}
