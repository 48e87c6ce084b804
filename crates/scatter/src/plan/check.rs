//! What a SELECT may contain if fragments are to answer it.

mod functions;

use std::ops::ControlFlow;

use sqlparser::ast::{Distinct, Expr, Function, ObjectNamePart, Query, Select, Visit, Visitor};

use self::functions::is_of_one_row;
use super::Refusal;
use super::aggregate::aggregate;

/// Clauses that no fragment keeps.
pub(super) fn check_clauses(query: &Query, select: &Select) -> Result<(), Refusal> {
    let refused = [
        (!query.locks.is_empty(), "it locks rows"),
        (query.fetch.is_some() || query.for_clause.is_some(), "it has a clause of an unknown kind"),
        (query.settings.is_some() || query.format_clause.is_some(), "it has a clause of an unknown kind"),
        (!query.pipe_operators.is_empty() || select.qualify.is_some(), "it has a clause of an unknown kind"),
        (select.into.is_some(), "its result goes elsewhere"),
        (select.top.is_some() || select.exclude.is_some(), "it has a clause of an unknown kind"),
        (select.prewhere.is_some() || !select.connect_by.is_empty(), "it has a clause of an unknown kind"),
        (!select.lateral_views.is_empty(), "it has a clause of an unknown kind"),
        (!select.named_window.is_empty(), "it has window functions"),
        (matches!(select.distinct, Some(Distinct::On(_))), "it has a clause of an unknown kind"),
        (
            select.select_modifiers.as_ref().is_some_and(|modifiers| modifiers.sql_calc_found_rows),
            "it counts the rows beyond its LIMIT",
        ),
    ];
    match refused.iter().find(|(is_there, _)| *is_there) {
        Some((_, why)) => Err(Refusal((*why).to_owned())),
        None => Ok(()),
    }
}

/// Functions and variables whose value differs between fragments.
pub(super) fn check_expressions<T: Visit>(tree: &T) -> Result<(), Refusal> {
    match tree.visit(&mut Expressions) {
        ControlFlow::Break(refusal) => Err(refusal),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Expressions;

impl Visitor for Expressions {
    type Break = Refusal;

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Refusal> {
        match expression {
            Expr::Function(function) => check_function(expression, function),
            Expr::Identifier(name) if name.value.starts_with('@') && name.quote_style.is_none() => {
                ControlFlow::Break(Refusal(format!("{name} is a variable")))
            }
            Expr::CompoundIdentifier(parts) if parts[0].value.starts_with('@') => {
                ControlFlow::Break(Refusal(format!("{expression} is a variable")))
            }
            _ => ControlFlow::Continue(()),
        }
    }
}

fn check_function(expression: &Expr, function: &Function) -> ControlFlow<Refusal> {
    if function.over.is_some() {
        return ControlFlow::Break(Refusal("it has window functions".to_owned()));
    }
    let name = match function.name.0.as_slice() {
        [ObjectNamePart::Identifier(name)] => name.value.to_ascii_uppercase(),
        _ => function.name.to_string(),
    };
    if aggregate(expression).is_some() || is_of_one_row(&name) {
        return ControlFlow::Continue(());
    }
    ControlFlow::Break(Refusal(format!("the value of {name} may differ between connections")))
}

/// Whether an aggregate stands in an expression, outside its subqueries.
pub(super) fn has_aggregate(expression: &Expr) -> bool {
    expression.visit(&mut Aggregates { depth: 0 }).is_break()
}

struct Aggregates {
    depth: usize,
}

impl Visitor for Aggregates {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        match self.depth == 0 && aggregate(expression).is_some() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// The columns in an expression; `None` with a subquery, of which nobody knows here.
pub(super) fn columns_in(expression: &Expr) -> Option<Vec<Expr>> {
    let mut names = Names { columns: Vec::new() };
    expression.visit(&mut names).is_continue().then_some(names.columns)
}

struct Names {
    columns: Vec<Expr>,
}

impl Visitor for Names {
    type Break = ();

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
        ControlFlow::Break(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<()> {
        if matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            self.columns.push(expression.clone());
        }
        ControlFlow::Continue(())
    }
}
