//! Which servers have rows of a SELECT's tables, if some of them are sharded.
//!
//! The fragments of several servers make the whole answer if each combination of rows that the query joins is on one
//! server: one table is sharded and the others are reference tables, or the sharded ones are joined by their keys.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use sqlparser::ast::{ObjectName, Query, SetExpr, Visit, Visitor};

use super::Refusal;
use super::block::Block;
use super::conditions::{Conditions, Fixed};
use super::scope::{Place, Scope, table_name};
use crate::facts::{Facts, Kind, TableName};
use crate::mapping::{KeyValue, Mapping};

/// # Errors
/// Why the fragments of each server do not make the answer.
pub(super) fn check_placement(
    query: &Query,
    scope: &Scope,
    conditions: &Conditions,
    facts: &dyn Facts,
) -> Result<(), Refusal> {
    if let Some(name) = sharded_inside(query, facts) {
        return Err(Refusal(format!("a subquery reads the sharded table {name}")));
    }
    let sharded: Vec<usize> = sharded(scope).map(|(index, _, _)| index).collect();
    let optional = sharded.iter().map(|index| &scope.places[*index]).find(|place| place.is_optional);
    if let Some(place) = optional {
        return Err(Refusal(format!(
            "an outer join puts NULLs in the place of rows of {} that another server may have",
            place.alias
        )));
    }
    let Some((first, others)) = sharded.split_first() else { return Ok(()) };
    let joined = joined_by_keys(*first, scope, conditions);
    match others.iter().find(|other| !joined.contains(other)) {
        None => Ok(()),
        Some(other) => Err(Refusal(format!(
            "rows of {} that it joins to {} may be on another server",
            scope.places[*other].alias, scope.places[*first].alias
        ))),
    }
}

/// Indexes of sharded tables with their keys and the kinds of these.
fn sharded(scope: &Scope) -> impl Iterator<Item = (usize, &str, Kind)> {
    scope.places.iter().enumerate().filter_map(|(index, place)| {
        let (key, kind) = key_of(place)?;
        Some((index, key, kind))
    })
}

fn key_of(place: &Place) -> Option<(&str, Kind)> {
    let facts = place.facts.as_ref()?;
    let key = facts.key.as_deref()?;
    Some((key, facts.column(key).map(|column| column.kind).unwrap_or_default()))
}

/// Tables whose keys equal that of this one in each row.
fn joined_by_keys(first: usize, scope: &Scope, conditions: &Conditions) -> BTreeSet<usize> {
    let key = |(table, column): &(usize, String)| {
        let (key, kind) = key_of(&scope.places[*table])?;
        // Of texts that a collation holds for equal, each may be on another server.
        (key.eq_ignore_ascii_case(column) && kind != Kind::Text).then_some((*table, kind))
    };
    let pairs: Vec<(usize, usize)> = conditions
        .equal
        .iter()
        .filter_map(|(one, other)| {
            let ((one, kind), (other, other_kind)) = (key(one)?, key(other)?);
            (kind == other_kind).then_some((one, other))
        })
        .collect();
    let mut found = BTreeSet::from([first]);
    loop {
        let more = pairs.iter().flat_map(|(one, other)| [(*one, *other), (*other, *one)]);
        let more: Vec<usize> = more
            .filter(|(one, other)| found.contains(one) && !found.contains(other))
            .map(|(_, other)| other)
            .collect();
        if more.is_empty() {
            return found;
        }
        found.extend(more);
    }
}

/// A sharded table that a subquery or a derived table reads.
fn sharded_inside(query: &Query, facts: &dyn Facts) -> Option<String> {
    match query.visit(&mut Inside { facts, depth: 0, from: 2 }) {
        ControlFlow::Break(name) => Some(name),
        ControlFlow::Continue(()) => None,
    }
}

/// Whether a query reads a sharded table anywhere.
pub fn reads_sharded(query: &Query, facts: &dyn Facts) -> bool {
    query.visit(&mut Inside { facts, depth: 0, from: 1 }).is_break()
}

/// Looks for sharded tables, from this depth of queries on.
struct Inside<'a> {
    facts: &'a dyn Facts,
    depth: usize,
    from: usize,
}

impl Visitor for Inside<'_> {
    type Break = String;

    fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &Query) -> ControlFlow<String> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_relation(&mut self, name: &ObjectName) -> ControlFlow<String> {
        let is_sharded = |name: &TableName| self.facts.table(name).is_some_and(|facts| facts.key.is_some());
        match table_name(name) {
            Ok(name) if self.depth >= self.from && is_sharded(&name) => ControlFlow::Break(name.name),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// Indexes of the servers, of so many, that may have rows for which the conditions on the key of this table hold.
fn servers_of(
    table: usize,
    scope: &Scope,
    conditions: &Conditions,
    mapping: &Mapping,
    count: usize,
) -> BTreeSet<usize> {
    let mut servers: BTreeSet<usize> = (0..count).collect();
    let Some((key, kind)) = key_of(&scope.places[table]) else { return servers };
    for ((of, column), fixed) in &conditions.fixed {
        if *of == table
            && column.eq_ignore_ascii_case(key)
            && let Some(some) = servers_with(fixed, kind, mapping, count)
        {
            servers.retain(|server| some.contains(server));
        }
    }
    servers
}

/// `None` if they may be anywhere.
fn servers_with(fixed: &Fixed, kind: Kind, mapping: &Mapping, count: usize) -> Option<BTreeSet<usize>> {
    match fixed {
        Fixed::Values(literals) => {
            let values = literals.iter().map(|literal| literal.value(kind));
            let values = values.collect::<Option<Vec<KeyValue<'_>>>>()?;
            Some(values.iter().filter_map(|value| mapping.mapper.shard_of(value, count)).collect())
        }
        Fixed::Range(least, most) if kind == Kind::Integer => {
            mapping.mapper.shards_between(*least, *most, count)
        }
        Fixed::Range(..) => None,
    }
}

impl Block {
    /// Indexes of the servers, of so many, whose fragments make the answer: at least one, and any one if all have all
    /// rows.
    pub fn servers(&self, mapping: Option<&Mapping>, count: usize) -> Vec<usize> {
        let Some(mapping) = mapping else { return vec![0] };
        let (scope, conditions) = (&self.scope, &self.conditions);
        let tables: Vec<usize> = sharded(scope).map(|(index, _, _)| index).collect();
        if tables.is_empty() {
            return vec![0];
        }
        let mut servers: BTreeSet<usize> = (0..count).collect();
        for table in tables {
            let some = servers_of(table, scope, conditions, mapping, count);
            servers.retain(|server| some.contains(server));
        }
        // Of no rows an aggregate has a value as well.
        if servers.is_empty() { vec![0] } else { servers.into_iter().collect() }
    }
}

/// The servers, of so many, that may have rows which a query of one sharded table reads.
///
/// # Errors
/// A subquery reads a sharded table.
pub(super) fn servers_with_rows(
    query: &Query,
    facts: &dyn Facts,
    mapping: &Mapping,
    count: usize,
) -> Result<BTreeSet<usize>, Refusal> {
    let SetExpr::Select(select) = &*query.body else { return Ok((0..count).collect()) };
    if let Some(name) = sharded_inside(query, facts) {
        return Err(Refusal(format!("a subquery reads the sharded table {name}")));
    }
    let scope = Scope::of(select, facts)?;
    let conditions = Conditions::of(select, &scope);
    Ok(servers_of(0, &scope, &conditions, mapping, count))
}

/// The one server that has all rows of sharded tables that a query reads, because its conditions name their keys.
pub fn only_server(query: &Query, facts: &dyn Facts, mapping: &Mapping, count: usize) -> Option<usize> {
    let SetExpr::Select(select) = &*query.body else { return None };
    if query.with.is_some() || sharded_inside(query, facts).is_some() {
        return None;
    }
    let scope = Scope::of(select, facts).ok()?;
    let conditions = Conditions::of(select, &scope);
    let mut only = None;
    for (table, _, _) in sharded(&scope) {
        let servers = servers_of(table, &scope, &conditions, mapping, count);
        let [server] = Vec::from_iter(servers)[..] else { return None };
        if only.is_some_and(|only| only != server) {
            return None;
        }
        only = Some(server);
    }
    only
}
