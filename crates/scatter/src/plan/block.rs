//! One SELECT as fragments and a merge.

use sqlparser::ast::{
    Distinct, Expr, GroupByExpr, GroupByWithModifier, Ident, LimitClause, OrderByKind, OrderByOptions, Query,
    Select, SelectItem, SelectItemQualifiedWildcardKind, SetExpr, TableFactor, TableWithJoins, Value,
    ValueWithSpan,
};

use super::Refusal;
use super::aggregate::{Parts, aggregate, divides, needs_rows};
use super::check::{check_clauses, check_expressions, columns_in, has_aggregate};
use super::conditions::{ColumnOf, Conditions};
use super::placement::check_placement;
use super::rewrite::{Aliases, Key, Rewriter};
use super::scope::{Place, Scope, column_text};
use crate::facts::{Facts, ResultColumn, TableFacts};
use crate::sql::print::{explicit, quoted};

/// A SELECT whose fragments each read a part of one table.
#[derive(Debug)]
pub struct Block {
    from: Vec<TableWithJoins>,
    selection: Option<Expr>,
    pub(super) conditions: Conditions,
    pub(super) scope: Scope,
    written: Written,
    /// Name of the temporary table of its fragments' rows.
    pub table: String,
    /// Schema of its first table, if the query names one.
    pub schema: Option<String>,
}

/// What a fragment reads of one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Everything,
    /// Partitions of the table at this index of FROM.
    Partitions(usize, Vec<String>),
    /// Rows for which an expression is true.
    Where(String),
}

/// Plans a query of one SELECT. `table` will have the rows of its fragments, and `result` are the columns
/// of its result.
///
/// # Errors
/// Why no fragments can answer it.
pub(super) fn plan_block(
    query: &Query,
    result: &[ResultColumn],
    table: &str,
    facts: &dyn Facts,
) -> Result<Block, Refusal> {
    let SetExpr::Select(select) = &*query.body else {
        return Err(Refusal("it is no single SELECT".to_owned()));
    };
    check_clauses(query, select)?;
    check_expressions(query)?;
    let scope = Scope::of(select, facts)?;
    let conditions = Conditions::of(select, &scope);
    check_placement(query, &scope, &conditions, facts)?;
    let items = items(select, &scope)?;
    if items.len() != result.len() {
        return Err(Refusal("its result has other columns than its list".to_owned()));
    }
    let list = ListOf { items: &items, result, aliases: Aliases { items: &items, scope: &scope } };
    let clauses = Clauses::of(query, select, &list.aliases)?;
    let is_aggregate = !clauses.keys.is_empty()
        || list.items.iter().any(|(expression, _)| has_aggregate(expression))
        || clauses.order.iter().any(|(expression, _)| has_aggregate(expression))
        || clauses.having.as_ref().is_some_and(has_aggregate);
    let written = match is_aggregate {
        true => aggregated(&list, &clauses, table, &scope)?,
        false => rows(&list, &clauses, table)?,
    };
    Ok(Block::of(select.from.clone(), select.selection.clone(), conditions, scope, written, table))
}

impl Block {
    pub(super) fn of(
        from: Vec<TableWithJoins>,
        selection: Option<Expr>,
        conditions: Conditions,
        scope: Scope,
        written: Written,
        table: &str,
    ) -> Block {
        let schema = scope.places.iter().find_map(|place| place.name.as_ref()?.schema.clone());
        Block { from, selection, conditions, scope, written, table: table.to_owned(), schema }
    }

    /// Statements for the merging server between the last row and the merge.
    pub fn before_merge(&self) -> &[String] {
        &self.written.before_merge
    }

    /// The SELECT over the table of the fragments' rows.
    pub fn merge(&self) -> &str {
        &self.written.merge
    }

    /// Each fragment returns all its rows.
    pub fn ships_rows(&self) -> bool {
        self.written.are_rows
    }

    /// Floating point numbers that a server would show with fewer digits than they have are shipped with all of
    /// them. `shape` are the columns of [`Block::shape`].
    pub(super) fn ship_all_digits(&mut self, shape: &[ResultColumn]) {
        for ((_, expression), _) in
            self.written.columns.iter_mut().zip(shape).filter(|(_, column)| column.digits.is_some())
        {
            *expression = format!("({expression} + 0e0)");
        }
    }

    /// What is known of the table at this index of FROM; `None` for a derived one.
    pub fn facts(&self, table: usize) -> Option<&TableFacts> {
        self.scope.places[table].facts.as_ref()
    }

    /// The table with the most rows, unless an outer join needs all of it in each fragment.
    pub fn largest(&self) -> Option<usize> {
        let known = self.scope.places.iter().enumerate();
        let sizes = known.filter_map(|(index, place)| Some((place.facts.as_ref()?.rows, index)));
        let (_, index) = sizes.max()?;
        let place = &self.scope.places[index];
        (place.facts.as_ref()?.is_base_table && !place.is_optional).then_some(index)
    }

    /// A column of a table as its conditions name it.
    pub fn column(&self, table: usize, column: &str) -> String {
        column_text(&self.scope.places[table], column)
    }

    /// The name of a table in the query.
    pub fn alias(&self, table: usize) -> &str {
        &self.scope.places[table].alias
    }

    /// Conditions that name columns of one table only and hold for each row, with the columns.
    pub fn conditions_of(&self, table: usize) -> impl Iterator<Item = (&[String], &str)> {
        let all = self.conditions.of_one_table.iter();
        all.filter(move |(of, _, _)| *of == table)
            .map(|(_, columns, text)| (columns.as_slice(), text.as_str()))
    }

    /// Columns of other tables that equal a column of this one in each row: the column here, and the other.
    pub fn equals_of(&self, table: usize) -> impl Iterator<Item = (&str, &ColumnOf)> {
        self.conditions.equal.iter().filter_map(move |(one, other)| {
            match (one.0 == table, other.0 == table) {
                (true, _) => Some((one.1.as_str(), other)),
                (_, true) => Some((other.1.as_str(), one)),
                _ => None,
            }
        })
    }

    /// A table as its own FROM clause has it.
    pub fn from_text(&self, table: usize) -> String {
        let place = &self.scope.places[table];
        let name = place.name.as_ref().map(|name| {
            let schema =
                name.schema.as_ref().map(|schema| format!("{}.", quoted(schema))).unwrap_or_default();
            format!("{schema}{}", quoted(&name.name))
        });
        format!("{} AS {}", name.unwrap_or_default(), quoted(&place.alias))
    }

    /// A query without rows that has the columns of the fragments.
    pub fn shape(&self) -> String {
        format!("{} LIMIT 0", self.groups(&Part::Everything))
    }

    /// The fragment that reads this part.
    pub fn fragment(&self, part: &Part) -> String {
        self.groups(part) + &self.written.limit
    }

    /// Up to GROUP BY.
    fn groups(&self, part: &Part) -> String {
        let mut from = self.from.clone();
        let mut conditions: Vec<String> = self.selection.iter().map(explicit).collect();
        match part {
            Part::Everything => {}
            Part::Where(condition) => conditions.push(format!("({condition})")),
            Part::Partitions(table, names) => {
                let factor = factor_at(&mut from, self.scope.places[*table].position);
                if let TableFactor::Table { partitions, .. } = factor {
                    *partitions = names.iter().map(|name| Ident::with_quote('`', name.clone())).collect();
                }
            }
        }
        let from: Vec<String> = from.iter().map(explicit).collect();
        let condition = match conditions.is_empty() {
            true => String::new(),
            false => format!(" WHERE {}", conditions.join(" AND ")),
        };
        let Written { columns, is_distinct, group_by, .. } = &self.written;
        let distinct = if *is_distinct { "DISTINCT " } else { "" };
        let columns = columns.iter().map(|(name, expression)| format!("{expression} AS {name}"));
        let list = columns.collect::<Vec<_>>().join(", ");
        format!("SELECT {distinct}{list} FROM {}{condition}{group_by}", from.join(", "))
    }
}

/// The table at this place of FROM: index, and that of the join there; 0 is the first table.
pub(super) fn factor_at(from: &mut [TableWithJoins], (index, join): (usize, usize)) -> &mut TableFactor {
    let from = &mut from[index];
    if join == 0 { &mut from.relation } else { &mut from.joins[join - 1].relation }
}

struct ListOf<'a> {
    items: &'a [(Expr, Option<Ident>)],
    result: &'a [ResultColumn],
    aliases: Aliases<'a>,
}

/// The select list with `*` as columns, each with its alias.
fn items(select: &Select, scope: &Scope) -> Result<Vec<(Expr, Option<Ident>)>, Refusal> {
    let mut items = Vec::new();
    for item in &select.projection {
        match item {
            SelectItem::UnnamedExpr(expression) => items.push((expression.clone(), None)),
            SelectItem::ExprWithAlias { expr, alias } => items.push((expr.clone(), Some(alias.clone()))),
            SelectItem::Wildcard(_) if !scope.merges_columns() => {
                for place in &scope.places {
                    items.extend(columns_of(place)?);
                }
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let name = super::scope::table_name(name)?.name;
                let place = scope.places.iter().find(|place| place.alias.eq_ignore_ascii_case(&name));
                items.extend(columns_of(place.ok_or_else(|| Refusal(format!("{name} is no table")))?)?);
            }
            _ => return Err(Refusal(format!("its columns are not known: {item}"))),
        }
    }
    Ok(items)
}

fn columns_of(place: &Place) -> Result<Vec<(Expr, Option<Ident>)>, Refusal> {
    let facts = place.facts.as_ref();
    let facts = facts.ok_or_else(|| Refusal(format!("the columns of {} are not known", place.alias)))?;
    let column = |name: &str| {
        let part = |part: &str| Ident::with_quote('`', part);
        (Expr::CompoundIdentifier(vec![part(&place.alias), part(name)]), None)
    };
    Ok(facts.columns.iter().map(|known| column(&known.name)).collect())
}

/// Clauses of a query, with aliases and positions as the expressions that they mean.
struct Clauses {
    is_distinct: bool,
    keys: Vec<Expr>,
    is_rollup: bool,
    having: Option<Expr>,
    order: Vec<(Expr, OrderByOptions)>,
    /// Offset and count.
    limit: Option<(u64, u64)>,
}

impl Clauses {
    fn of(query: &Query, select: &Select, aliases: &Aliases<'_>) -> Result<Clauses, Refusal> {
        let GroupByExpr::Expressions(keys, modifiers) = &select.group_by else {
            return Err(Refusal("its GROUP BY is of an unknown kind".to_owned()));
        };
        let key = |key: &Expr| Ok(aliases.at_position(key)?.unwrap_or_else(|| aliases.in_group_by(key)));
        let is_rollup = match modifiers.as_slice() {
            [] => false,
            [GroupByWithModifier::Rollup] => true,
            _ => return Err(Refusal("its GROUP BY is of an unknown kind".to_owned())),
        };
        let order = match query.order_by.as_ref().map(|order| &order.kind) {
            None => &[][..],
            Some(OrderByKind::Expressions(order)) => order.as_slice(),
            Some(OrderByKind::All(_)) => {
                return Err(Refusal("its ORDER BY is of an unknown kind".to_owned()));
            }
        };
        let by = |by: &sqlparser::ast::OrderByExpr| {
            let expression = match aliases.at_position(&by.expr)? {
                Some(expression) => expression,
                None => aliases.resolved(&by.expr)?,
            };
            Ok((expression, by.options.clone()))
        };
        Ok(Clauses {
            is_distinct: select.distinct == Some(Distinct::Distinct),
            keys: keys.iter().map(key).collect::<Result<_, Refusal>>()?,
            is_rollup,
            having: select.having.as_ref().map(|having| aliases.resolved(having)).transpose()?,
            order: order.iter().map(by).collect::<Result<_, Refusal>>()?,
            limit: query.limit_clause.as_ref().map(limit).transpose()?,
        })
    }

    /// LIMIT as the merge has it.
    fn limit_text(&self) -> String {
        self.limit.map(|(offset, count)| format!(" LIMIT {offset}, {count}")).unwrap_or_default()
    }
}

fn limit(clause: &LimitClause) -> Result<(u64, u64), Refusal> {
    let number = |expression: &Expr| match expression {
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. }) => {
            number.parse().map_err(|_| Refusal(format!("its LIMIT is {number}")))
        }
        other => Err(Refusal(format!("its LIMIT is {other}"))),
    };
    match clause {
        LimitClause::OffsetCommaLimit { offset, limit } => Ok((number(offset)?, number(limit)?)),
        LimitClause::LimitOffset { limit: Some(limit), offset, limit_by } if limit_by.is_empty() => {
            let offset = offset.as_ref().map_or(Ok(0), |offset| number(&offset.value))?;
            Ok((offset, number(limit)?))
        }
        LimitClause::LimitOffset { .. } => Err(Refusal("its LIMIT is of an unknown kind".to_owned())),
    }
}

/// What is around FROM and WHERE of the fragments, and their merge.
#[derive(Debug)]
pub(super) struct Written {
    /// Names and expressions of the select list.
    pub(super) columns: Vec<(String, String)>,
    pub(super) is_distinct: bool,
    pub(super) group_by: String,
    /// ORDER BY and LIMIT.
    pub(super) limit: String,
    pub(super) before_merge: Vec<String>,
    pub(super) merge: String,
    pub(super) are_rows: bool,
}

/// Fragments return rows; the merge puts them in order.
fn rows(list: &ListOf<'_>, clauses: &Clauses, table: &str) -> Result<Written, Refusal> {
    if clauses.having.is_some() {
        return Err(Refusal("it has HAVING without aggregates".to_owned()));
    }
    let mut parts = Parts::default();
    let items: Vec<String> =
        list.items.iter().map(|(expression, _)| parts.column(&explicit(expression))).collect();
    let item_count = parts.columns.len();
    let order: Vec<(String, OrderByOptions)> =
        clauses.order.iter().map(|(by, options)| (parts.column(&explicit(by)), options.clone())).collect();
    if clauses.is_distinct && parts.columns.len() > item_count {
        return Err(Refusal("its distinct rows are ordered by what is not among them".to_owned()));
    }
    let distinct = if clauses.is_distinct { "DISTINCT " } else { "" };
    let named = items.iter().zip(list.result).map(|(item, column)| named(item, column));
    let merge_list = named.collect::<Vec<_>>().join(", ");
    let order = ordered(order.iter().map(|(by, options)| (by.clone(), options)));
    let limit =
        clauses.limit.map(|(offset, count)| format!("{order} LIMIT {}", offset.saturating_add(count)));
    Ok(Written {
        columns: parts.columns,
        is_distinct: clauses.is_distinct,
        group_by: String::new(),
        limit: limit.unwrap_or_default(),
        before_merge: Vec::new(),
        merge: format!("SELECT {distinct}{merge_list} FROM {table}{order}{}", clauses.limit_text()),
        are_rows: true,
    })
}

/// Fragments return groups, or the rows of aggregates that need them.
fn aggregated(list: &ListOf<'_>, clauses: &Clauses, table: &str, scope: &Scope) -> Result<Written, Refusal> {
    let expressions = list.items.iter().map(|(expression, _)| expression);
    let all = expressions.clone().chain(&clauses.having).chain(clauses.order.iter().map(|(by, _)| by));
    let mut parts = Parts { are_rows: all.into_iter().any(needs_rows_in), ..Parts::default() };
    let is_constant = |key: &Expr| columns_in(key).is_some_and(|columns| columns.is_empty());
    if clauses.is_rollup && clauses.keys.iter().any(is_constant) {
        return Err(Refusal("its totals are of a constant".to_owned()));
    }
    if clauses.keys.iter().any(divides) {
        return Err(Refusal(
            "it groups by quotients, of whose digits a fragment would round some".to_owned(),
        ));
    }
    let keys: Vec<Key> = clauses
        .keys
        .iter()
        .map(|key| Key { normal: scope.normal(key), column: parts.column(&explicit(key)) })
        .collect();
    let key_columns: Vec<String> = keys.iter().map(|key| key.column.clone()).collect();
    let mut rewriter = Rewriter { scope, keys, parts, is_rollup: clauses.is_rollup };
    let items: Vec<String> =
        expressions.map(|expression| rewriter.rewritten(expression)).collect::<Result<_, _>>()?;
    let having = clauses.having.as_ref().map(|having| rewriter.rewritten(having)).transpose()?;
    let order: Vec<(String, &OrderByOptions)> = clauses
        .order
        .iter()
        .map(|(by, options)| Ok((rewriter.rewritten(by)?, options)))
        .collect::<Result<_, Refusal>>()?;
    let parts = rewriter.parts;
    if clauses.is_rollup && !parts.means.is_empty() {
        return Err(Refusal("its totals have variances".to_owned()));
    }

    let mut groups: Vec<String> = clauses.keys.iter().map(explicit).collect();
    groups.extend(parts.distinct.iter().cloned());
    let fragment_groups = match groups.is_empty() || parts.are_rows {
        true => String::new(),
        false => format!(" GROUP BY {} ORDER BY NULL", groups.join(", ")),
    };
    let (before_merge, means) = means(&parts, &key_columns, table);
    let named = items.iter().zip(list.result).map(|(item, column)| named(item, column));
    let group_by = match key_columns.is_empty() {
        true => String::new(),
        false => {
            let rollup = if clauses.is_rollup { " WITH ROLLUP" } else { "" };
            format!(" GROUP BY {}{rollup}", key_columns.join(", "))
        }
    };
    let merge = format!(
        "SELECT {}{} FROM {table}{means}{group_by}{}{}{}",
        if clauses.is_distinct { "DISTINCT " } else { "" },
        named.collect::<Vec<_>>().join(", "),
        having.map(|having| format!(" HAVING {having}")).unwrap_or_default(),
        ordered(order.into_iter()),
        clauses.limit_text(),
    );
    Ok(Written {
        columns: parts.columns,
        is_distinct: false,
        group_by: fragment_groups,
        limit: String::new(),
        before_merge,
        merge,
        are_rows: parts.are_rows,
    })
}

/// The table of the groups' means, which a merge can read beside the other one once, and how it is joined.
fn means(parts: &Parts, key_columns: &[String], table: &str) -> (Vec<String>, String) {
    if parts.means.is_empty() {
        return (Vec::new(), String::new());
    }
    let keys = key_columns.iter().enumerate().map(|(index, column)| format!("{column} AS k{index}"));
    let means = parts
        .means
        .iter()
        .enumerate()
        .map(|(index, (mean, count))| format!("SUM({mean} * {count}) / SUM({count}) AS m{index}"));
    let group_by = match key_columns.is_empty() {
        true => String::new(),
        false => format!(" GROUP BY {}", key_columns.join(", ")),
    };
    let of_means = format!("{table}_means");
    let create = format!(
        "CREATE TEMPORARY TABLE {of_means} AS SELECT {} FROM {table}{group_by}",
        keys.chain(means).collect::<Vec<_>>().join(", ")
    );
    let same = key_columns.iter().enumerate().map(|(index, column)| format!("{column} <=> k{index}"));
    let condition = match key_columns.is_empty() {
        true => String::new(),
        false => format!(" ON {}", same.collect::<Vec<_>>().join(" AND ")),
    };
    (vec![create], format!(" JOIN {of_means}{condition}"))
}

fn needs_rows_in(expression: &Expr) -> bool {
    use std::ops::ControlFlow;
    let found = sqlparser::ast::visit_expressions(expression, |inner| {
        match aggregate(inner).is_some_and(|(name, function)| needs_rows(&name, function)) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    found.is_break()
}

fn named(item: &str, column: &ResultColumn) -> String {
    format!("{} AS {}", column.shown(item), quoted(&column.name))
}

fn ordered<'a>(order: impl Iterator<Item = (String, &'a OrderByOptions)>) -> String {
    let by: Vec<String> = order.map(|(by, options)| format!("{by}{options}")).collect();
    if by.is_empty() { String::new() } else { format!(" ORDER BY {}", by.join(", ")) }
}
