//! The tables of a FROM clause, and the columns that names mean.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Select, TableFactor, VisitMut,
    VisitorMut,
};

use super::Refusal;
use crate::facts::{Facts, TableFacts, TableName};
use crate::sql::print::{explicit, quoted};

/// A table in FROM.
#[derive(Debug)]
pub(super) struct Place {
    /// Its name in the query's expressions.
    pub(super) alias: String,
    pub(super) name: Option<TableName>,
    /// `None` for a derived table.
    pub(super) facts: Option<TableFacts>,
    /// Index in FROM, and of the join there; 0 is the first table.
    pub(super) position: (usize, usize),
    /// An outer join may put NULLs in the place of its rows.
    pub(super) is_optional: bool,
}

#[derive(Debug)]
pub(super) struct Scope {
    pub(super) places: Vec<Place>,
    /// Columns that joins merge into one, or all of them.
    merged: Merged,
}

#[derive(Debug)]
enum Merged {
    Columns(Vec<String>),
    All,
}

impl Scope {
    pub(super) fn of(select: &Select, facts: &dyn Facts) -> Result<Scope, Refusal> {
        let mut scope = Scope { places: Vec::new(), merged: Merged::Columns(Vec::new()) };
        for (index, from) in select.from.iter().enumerate() {
            let first = scope.places.len();
            scope.add(&from.relation, (index, 0), false, facts)?;
            for (number, join) in from.joins.iter().enumerate() {
                let (is_optional, constraint) = match &join.join_operator {
                    JoinOperator::Join(constraint)
                    | JoinOperator::Inner(constraint)
                    | JoinOperator::CrossJoin(constraint)
                    | JoinOperator::StraightJoin(constraint) => (false, constraint),
                    JoinOperator::Left(constraint) | JoinOperator::LeftOuter(constraint) => {
                        (true, constraint)
                    }
                    JoinOperator::Right(constraint) | JoinOperator::RightOuter(constraint) => {
                        scope.places[first..].iter_mut().for_each(|place| place.is_optional = true);
                        (false, constraint)
                    }
                    _ => return Err(Refusal("its join is of an unknown kind".to_owned())),
                };
                scope.merge(constraint);
                scope.add(&join.relation, (index, number + 1), is_optional, facts)?;
            }
        }
        scope.check_aliases()?;
        Ok(scope)
    }

    fn add(
        &mut self,
        factor: &TableFactor,
        position: (usize, usize),
        is_optional: bool,
        facts: &dyn Facts,
    ) -> Result<(), Refusal> {
        let place = match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let name = table_name(name)?;
                let alias = alias.as_ref().map_or(&name.name, |alias| &alias.name.value).clone();
                let facts = facts.table(&name);
                if facts.is_none() {
                    return Err(Refusal(format!("nothing is known of the table {}", name.name)));
                }
                Place { alias, name: Some(name), facts, position, is_optional }
            }
            TableFactor::Derived { lateral: false, alias: Some(alias), .. } => {
                Place { alias: alias.name.value.clone(), name: None, facts: None, position, is_optional }
            }
            _ => return Err(Refusal("its FROM clause has something else than tables".to_owned())),
        };
        self.places.push(place);
        Ok(())
    }

    fn merge(&mut self, constraint: &JoinConstraint) {
        match (constraint, &mut self.merged) {
            (JoinConstraint::Natural, merged) => *merged = Merged::All,
            (JoinConstraint::Using(names), Merged::Columns(columns)) => {
                columns.extend(names.iter().filter_map(last));
            }
            _ => {}
        }
    }

    fn check_aliases(&self) -> Result<(), Refusal> {
        let mut names: Vec<String> =
            self.places.iter().map(|place| place.alias.to_ascii_lowercase()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(Refusal(format!("two of its tables are called {}", pair[0]))),
            None => Ok(()),
        }
    }

    /// Whether joins merge all columns that have one name.
    pub(super) fn merges_all(&self) -> bool {
        matches!(self.merged, Merged::All)
    }

    /// Columns that USING names.
    pub(super) fn merged_columns(&self) -> &[String] {
        match &self.merged {
            Merged::Columns(columns) => columns,
            Merged::All => &[],
        }
    }

    /// Index of the place of a column.
    pub(super) fn place_of(&self, column: &Expr) -> Option<usize> {
        let (place, _) = self.column_of(column)?;
        self.places.iter().position(|other| std::ptr::eq(other, place))
    }

    /// Whether joins merge columns, so that `*` has fewer than all tables.
    pub(super) fn merges_columns(&self) -> bool {
        !matches!(&self.merged, Merged::Columns(columns) if columns.is_empty())
    }

    /// Whether a name without a table can be a column.
    pub(super) fn may_have_column(&self, name: &str) -> bool {
        self.places.iter().any(|place| place.facts.as_ref().is_none_or(|facts| facts.column(name).is_some()))
    }

    /// The place of an expression that is a column of one table, and the column's name.
    pub(super) fn column_of(&self, expression: &Expr) -> Option<(&Place, String)> {
        match expression {
            Expr::Nested(inner) => self.column_of(inner),
            Expr::Identifier(name) => {
                let place = self.only_place_of(&name.value)?;
                Some((place, name.value.clone()))
            }
            Expr::CompoundIdentifier(parts) => {
                let [.., table, column] = parts.as_slice() else { return None };
                let is_meant = |place: &&Place| place.alias.eq_ignore_ascii_case(&table.value);
                Some((self.places.iter().find(is_meant)?, column.value.clone()))
            }
            _ => None,
        }
    }

    fn only_place_of(&self, column: &str) -> Option<&Place> {
        let is_merged = match &self.merged {
            Merged::All => true,
            Merged::Columns(columns) => columns.iter().any(|merged| merged.eq_ignore_ascii_case(column)),
        };
        if is_merged || self.places.iter().any(|place| place.facts.is_none()) {
            return None;
        }
        let has = |place: &&Place| place.facts.as_ref().is_some_and(|facts| facts.column(column).is_some());
        let mut places = self.places.iter().filter(has);
        match (places.next(), places.next()) {
            (Some(place), None) => Some(place),
            _ => None,
        }
    }

    /// The text of an expression in which each column has one name.
    pub(super) fn normal(&self, expression: &Expr) -> String {
        let mut expression = expression.clone();
        let _: ControlFlow<()> = expression.visit(&mut Qualify { scope: self, depth: 0 });
        explicit(&expression)
    }
}

/// Gives each column outside subqueries its table, in small letters.
struct Qualify<'a> {
    scope: &'a Scope,
    depth: usize,
}

impl VisitorMut for Qualify<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _: &mut sqlparser::ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _: &mut sqlparser::ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 {
            return ControlFlow::Continue(());
        }
        if let Some((place, column)) = self.scope.column_of(expression) {
            let part = |name: &str| Ident::with_quote('`', name.to_ascii_lowercase());
            *expression = Expr::CompoundIdentifier(vec![part(&place.alias), part(&column)]);
        } else if let Expr::Identifier(name) = expression {
            *expression = Expr::Identifier(Ident::with_quote('`', name.value.to_ascii_lowercase()));
        }
        ControlFlow::Continue(())
    }
}

pub(super) fn table_name(name: &ObjectName) -> Result<TableName, Refusal> {
    let part = |part: &ObjectNamePart| match part {
        ObjectNamePart::Identifier(ident) => Some(ident.value.clone()),
        ObjectNamePart::Function(_) => None,
    };
    let parts: Option<Vec<String>> = name.0.iter().map(part).collect();
    match parts.as_deref() {
        Some([name]) => Ok(TableName { schema: None, name: name.clone() }),
        Some([schema, name]) => Ok(TableName { schema: Some(schema.clone()), name: name.clone() }),
        _ => Err(Refusal(format!("{name} is not a table's name"))),
    }
}

fn last(name: &ObjectName) -> Option<String> {
    match name.0.last()? {
        ObjectNamePart::Identifier(ident) => Some(ident.value.clone()),
        ObjectNamePart::Function(_) => None,
    }
}

/// A column of a place, as an expression has it.
pub(super) fn column_text(place: &Place, column: &str) -> String {
    format!("{}.{}", quoted(&place.alias), quoted(column))
}

/// The name of a table in the query's expressions; `None` for what is no table.
pub(super) fn alias_of(factor: &TableFactor) -> Option<String> {
    let TableFactor::Table { name, alias, .. } = factor else { return None };
    match alias {
        Some(alias) => Some(alias.name.value.clone()),
        None => table_name(name).ok().map(|name| name.name),
    }
}

/// A table as a FROM clause of its own has it.
pub(super) fn table_text(place: &Place) -> String {
    let name = place.name.as_ref().map(TableName::quoted).unwrap_or_default();
    format!("{name} AS {}", quoted(&place.alias))
}
