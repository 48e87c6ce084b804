//! A whole query: its SELECTs over tables become blocks of fragments, and what is around them stays as it is, over what
//! the blocks merge to.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use sqlparser::ast::{
    Cte, Expr, Ident, OrderByKind, Query, Select, SetExpr, SetQuantifier, TableAlias, TableFactor, Visit,
    VisitMut, Visitor, VisitorMut,
};

use super::block::{Block, plan_block};
use super::check::check_expressions;
use super::eager::plan_eager;
use super::rewrite::name_items;
use super::scope::table_name;
use super::{Refusal, check};
use crate::facts::{Facts, ResultColumn};
use crate::sql::parse;
use crate::sql::print::explicit;

/// A query as blocks, which can be answered side by side, and one SELECT over their tables.
#[derive(Debug)]
pub struct Plan {
    pub blocks: Vec<Block>,
    pub merge: String,
}

/// Plans a query of any number of SELECTs.
///
/// # Errors
/// Why no fragments can answer it.
pub fn plan(query: &Query, result: &[ResultColumn], facts: &dyn Facts) -> Result<Plan, Refusal> {
    let query = inlined(query)?;
    let mut planner = Planner { facts, blocks: Vec::new() };
    let merge = planner.query(&query, Some(result))?;
    Ok(Plan { blocks: planner.blocks, merge })
}

/// A query with its common table expressions where they are named.
///
/// # Errors
/// They cannot stand there.
pub fn inlined(query: &Query) -> Result<Query, Refusal> {
    let mut query = query.clone();
    inline_tables(&mut query, &BTreeMap::new())?;
    Ok(query)
}

struct Planner<'a> {
    facts: &'a dyn Facts,
    blocks: Vec<Block>,
}

impl Planner<'_> {
    /// The text of a query over the tables of its blocks. `result` are the columns that users see.
    fn query(&mut self, query: &Query, result: Option<&[ResultColumn]>) -> Result<String, Refusal> {
        match &*query.body {
            SetExpr::Select(select) if select.from.is_empty() => self.over_derived(query, select, result),
            SetExpr::Select(select) if is_over_derived(select) => self.over_derived(query, select, result),
            SetExpr::Select(_) => self.block(query, result),
            SetExpr::Query(inner) if has_no_clause(query) => self.query(inner, result),
            SetExpr::SetOperation { .. } => self.set(query, result),
            _ => Err(Refusal("it is no SELECT".to_owned())),
        }
    }

    fn block(&mut self, query: &Query, result: Option<&[ResultColumn]>) -> Result<String, Refusal> {
        let asked;
        let result = match result {
            Some(result) => result,
            // Others go on computing with it, so it is not rounded as it would be shown.
            None => {
                let columns = self.facts.result(&explicit(query)).map_err(Refusal)?;
                asked = columns
                    .into_iter()
                    .map(|column| ResultColumn { digits: None, ..column })
                    .collect::<Vec<_>>();
                &asked
            }
        };
        let table = format!("spindle_{}", self.blocks.len() + 1);
        let mut block = match plan_eager(query, result, &table, self.facts) {
            Ok(block) => block,
            Err(_) => plan_block(query, result, &table, self.facts)?,
        };
        block.ship_all_digits(&self.facts.result(&block.shape()).map_err(Refusal)?);
        let merge = block.merge().to_owned();
        self.blocks.push(block);
        Ok(merge)
    }

    /// The merging server has all that this SELECT reads.
    fn over_derived(
        &mut self,
        query: &Query,
        select: &Select,
        result: Option<&[ResultColumn]>,
    ) -> Result<String, Refusal> {
        check::check_clauses(query, select)?;
        check_outside(query)?;
        let mut query = query.clone();
        let SetExpr::Select(select) = &mut *query.body else { unreachable!("it was one") };
        if let Some(result) = result {
            // With `*`, the columns have the names that the derived tables give them.
            let _ = name_items(select, result);
        }
        let mut texts = Vec::new();
        for factor in factors(select) {
            let TableFactor::Derived { subquery, .. } = factor else { unreachable!("all are derived") };
            texts.push(self.query(subquery, None)?);
            **subquery = placeholder(texts.len() - 1)?;
        }
        let mut text = explicit(&query);
        for (index, inner) in texts.iter().enumerate() {
            text = text.replacen(&placeholder(index)?.to_string(), inner, 1);
        }
        Ok(text)
    }

    fn set(&mut self, query: &Query, result: Option<&[ResultColumn]>) -> Result<String, Refusal> {
        let outer = match &query.order_by {
            Some(order) => match &order.kind {
                OrderByKind::Expressions(by) if by.iter().all(|by| is_name_or_position(&by.expr)) => {
                    format!(" {}", explicit(order))
                }
                _ => return Err(Refusal("it orders a union by expressions".to_owned())),
            },
            None => String::new(),
        };
        let limit = query.limit_clause.as_ref().map(explicit).unwrap_or_default();
        Ok(format!("{}{outer}{limit}", self.arms(&query.body, result)?))
    }

    fn arms(&mut self, body: &SetExpr, result: Option<&[ResultColumn]>) -> Result<String, Refusal> {
        match body {
            SetExpr::SetOperation { left, op, set_quantifier, right } => {
                let quantifier = match set_quantifier {
                    SetQuantifier::None => String::new(),
                    SetQuantifier::All | SetQuantifier::Distinct => format!(" {set_quantifier}"),
                    other => return Err(Refusal(format!("its union is {other}"))),
                };
                let left = self.arms(left, result)?;
                // A union's columns have the names of its first arm.
                let right = match &**right {
                    nested @ SetExpr::SetOperation { .. } => format!("({})", self.arms(nested, None)?),
                    arm => self.arms(arm, None)?,
                };
                Ok(format!("{left} {op}{quantifier} {right}"))
            }
            arm => {
                let query = as_query(arm.clone())?;
                Ok(format!("({})", self.query(&query, result)?))
            }
        }
    }
}

fn as_query(body: SetExpr) -> Result<Query, Refusal> {
    if let SetExpr::Query(query) = body {
        return Ok(*query);
    }
    let mut query = placeholder(0)?;
    query.body = Box::new(body);
    Ok(query)
}

/// A query whose text stands for another's.
fn placeholder(index: usize) -> Result<Query, Refusal> {
    parse(&format!("SELECT `spindle placeholder {index}`")).map_err(Refusal)
}

fn has_no_clause(query: &Query) -> bool {
    query.order_by.is_none() && query.limit_clause.is_none()
}

fn is_name_or_position(expression: &Expr) -> bool {
    matches!(expression, Expr::Identifier(_) | Expr::Value(_))
}

fn factors(select: &mut Select) -> impl Iterator<Item = &mut TableFactor> {
    select.from.iter_mut().flat_map(|from| {
        let joined = from.joins.iter_mut().map(|join| &mut join.relation);
        [&mut from.relation].into_iter().chain(joined)
    })
}

fn is_over_derived(select: &Select) -> bool {
    let mut all = select
        .from
        .iter()
        .flat_map(|from| [&from.relation].into_iter().chain(from.joins.iter().map(|join| &join.relation)));
    !select.from.is_empty() && all.all(|factor| matches!(factor, TableFactor::Derived { lateral: false, .. }))
}

/// Nothing but its derived tables reads a table.
fn check_outside(query: &Query) -> Result<(), Refusal> {
    let mut query = query.clone();
    if let SetExpr::Select(select) = &mut *query.body {
        for factor in factors(select) {
            if let TableFactor::Derived { subquery, .. } = factor {
                **subquery = placeholder(0)?;
            }
        }
    }
    check_expressions(&query)?;
    match query.visit(&mut Relations) {
        ControlFlow::Break(name) => {
            Err(Refusal(format!("a subquery beside its derived tables reads {name}")))
        }
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Relations;

impl Visitor for Relations {
    type Break = String;

    fn pre_visit_relation(&mut self, name: &sqlparser::ast::ObjectName) -> ControlFlow<String> {
        ControlFlow::Break(name.to_string())
    }
}

/// Puts common table expressions where they are named.
fn inline_tables(query: &mut Query, outer: &BTreeMap<String, Query>) -> Result<(), Refusal> {
    let mut known = outer.clone();
    if let Some(with) = query.with.take() {
        if with.recursive {
            return Err(Refusal("it is recursive".to_owned()));
        }
        for Cte { alias, mut query, .. } in with.cte_tables {
            inline_tables(&mut query, &known)?;
            if !alias.columns.is_empty() {
                return Err(Refusal(format!("{} renames its columns", alias.name)));
            }
            known.insert(alias.name.value.to_ascii_lowercase(), *query);
        }
    }
    match query.visit(&mut Inline { known: &known }) {
        ControlFlow::Break(refusal) => Err(refusal),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Inline<'a> {
    known: &'a BTreeMap<String, Query>,
}

impl VisitorMut for Inline<'_> {
    type Break = Refusal;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Refusal> {
        match query.with.is_some() {
            true => match inline_tables(query, self.known) {
                Ok(()) => ControlFlow::Continue(()),
                Err(refusal) => ControlFlow::Break(refusal),
            },
            false => ControlFlow::Continue(()),
        }
    }

    fn post_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Refusal> {
        let TableFactor::Table { name, alias, .. } = factor else { return ControlFlow::Continue(()) };
        let Ok(name) = table_name(name) else { return ControlFlow::Continue(()) };
        if name.schema.is_some() {
            return ControlFlow::Continue(());
        }
        let Some(meant) = self.known.get(&name.name.to_ascii_lowercase()) else {
            return ControlFlow::Continue(());
        };
        let alias = alias.take().unwrap_or_else(|| TableAlias {
            explicit: true,
            name: Ident::with_quote('`', name.name.clone()),
            columns: Vec::new(),
            at: None,
        });
        *factor = TableFactor::Derived {
            lateral: false,
            subquery: Box::new(meant.clone()),
            alias: Some(alias),
            sample: None,
        };
        ControlFlow::Continue(())
    }
}
