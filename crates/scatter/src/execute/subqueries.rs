//! Subqueries that name nothing of the query around them are answered first, and their values take their places. They
//! may then read other servers than the query, and stand beside its aggregates.

use std::ops::ControlFlow;

use anyhow::{Error, Result};
use mysql::Column;
use mysql::consts::ColumnType;
use sqlparser::ast::{Expr, Query, SetExpr, VisitMut, VisitorMut};

use super::Answer;
use crate::plan::Refusal;
use crate::servers::BINARY;
use crate::sql::parse;
use crate::sql::print::{text_literal, verbatim};

/// Values that take the place of a subquery after IN.
const VALUES_MOST: usize = 10_000;

/// Who answers subqueries.
pub(super) trait Answering {
    /// Whether this subquery is to be answered first, as it can be.
    fn is_first(&mut self, query: &Query) -> bool;

    fn answer(&mut self, query: &Query) -> Result<Answer>;
}

/// Answers those in any expression.
///
/// # Errors
/// A subquery was not answered.
pub(super) fn answer_all(query: &mut Query, answering: &mut dyn Answering) -> Result<()> {
    visit(query, answering)
}

/// Answers those in HAVING.
pub(super) fn answer_having(query: &mut Query, answering: &mut dyn Answering) -> Result<()> {
    let SetExpr::Select(select) = &mut *query.body else { return Ok(()) };
    select.having.as_mut().map_or(Ok(()), |having| visit(having, answering))
}

fn visit<T: VisitMut>(tree: &mut T, answering: &mut dyn Answering) -> Result<()> {
    match tree.visit(&mut Subqueries { answering }) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

struct Subqueries<'a> {
    answering: &'a mut dyn Answering,
}

impl VisitorMut for Subqueries<'_> {
    type Break = Error;

    fn pre_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<Error> {
        match self.replacement(expression) {
            Ok(Some(other)) => *expression = other,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl Subqueries<'_> {
    fn replacement(&mut self, expression: &Expr) -> Result<Option<Expr>> {
        let (Expr::Subquery(query)
        | Expr::InSubquery { subquery: query, .. }
        | Expr::Exists { subquery: query, .. }) = expression
        else {
            return Ok(None);
        };
        if !self.answering.is_first(query) {
            return Ok(None);
        }
        let answer = self.answering.answer(query)?;
        let other = match expression {
            Expr::InSubquery { expr, negated, .. } => in_values(expr, *negated, &answer),
            Expr::Exists { negated, .. } => {
                let is_true = answer.rows.is_empty() == *negated;
                Ok(verbatim(if is_true { "TRUE" } else { "FALSE" }))
            }
            _ => scalar(&answer),
        };
        // As it is, it may keep the query from being split.
        Ok(other.ok())
    }
}

fn scalar(answer: &Answer) -> Result<Expr, Refusal> {
    let [column] = answer.columns.as_slice() else {
        return Err(Refusal("a subquery beside an operator has several columns".to_owned()));
    };
    match answer.rows.as_slice() {
        [] => Ok(verbatim("NULL")),
        [row] => literal(row[0].as_deref(), column),
        rows => Err(Refusal(format!("a subquery beside an operator has {} rows", rows.len()))),
    }
}

fn in_values(expr: &Expr, negated: bool, answer: &Answer) -> Result<Expr, Refusal> {
    let [column] = answer.columns.as_slice() else {
        return Err(Refusal("a subquery after IN has several columns".to_owned()));
    };
    if answer.rows.len() > VALUES_MOST {
        return Err(Refusal(format!("a subquery after IN has {} rows", answer.rows.len())));
    }
    if answer.rows.is_empty() {
        let none = parse("SELECT NULL FROM DUAL WHERE FALSE").map_err(Refusal)?;
        return Ok(Expr::InSubquery { expr: Box::new(expr.clone()), subquery: Box::new(none), negated });
    }
    let list = answer.rows.iter().map(|row| literal(row[0].as_deref(), column)).collect::<Result<_, _>>()?;
    Ok(Expr::InList { expr: Box::new(expr.clone()), list, negated })
}

/// A value of the type that it had as a column.
fn literal(value: Option<&[u8]>, column: &Column) -> Result<Expr, Refusal> {
    let Some(value) = value else { return Ok(verbatim("NULL")) };
    let text = String::from_utf8_lossy(value);
    let kind = column.column_type();
    let written = match kind {
        ColumnType::MYSQL_TYPE_TINY
        | ColumnType::MYSQL_TYPE_SHORT
        | ColumnType::MYSQL_TYPE_INT24
        | ColumnType::MYSQL_TYPE_LONG
        | ColumnType::MYSQL_TYPE_LONGLONG
        | ColumnType::MYSQL_TYPE_YEAR
        | ColumnType::MYSQL_TYPE_DECIMAL
        | ColumnType::MYSQL_TYPE_NEWDECIMAL => text.into_owned(),
        ColumnType::MYSQL_TYPE_DOUBLE if text.contains('e') => text.into_owned(),
        ColumnType::MYSQL_TYPE_DOUBLE => format!("{text}e0"),
        ColumnType::MYSQL_TYPE_DATE => format!("DATE'{text}'"),
        ColumnType::MYSQL_TYPE_DATETIME | ColumnType::MYSQL_TYPE_TIMESTAMP => format!("TIMESTAMP'{text}'"),
        ColumnType::MYSQL_TYPE_VARCHAR
        | ColumnType::MYSQL_TYPE_VAR_STRING
        | ColumnType::MYSQL_TYPE_STRING
            if column.character_set() != BINARY =>
        {
            text_literal(&text)
        }
        _ => return Err(Refusal(format!("a subquery has values of the type {kind:?}"))),
    };
    Ok(verbatim(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_keeps_its_type() {
        let check = |kind: ColumnType, value: &str, expect: &str| {
            let column = Column::new(kind).with_character_set(45);
            let written = literal(Some(value.as_bytes()), &column).map(|literal| literal.to_string());
            assert_eq!(written.unwrap_or_else(|Refusal(why)| why), expect);
        };
        check(ColumnType::MYSQL_TYPE_LONG, "-7", "-7");
        check(ColumnType::MYSQL_TYPE_NEWDECIMAL, "1.50", "1.50");
        check(ColumnType::MYSQL_TYPE_DOUBLE, "1.5", "1.5e0");
        check(ColumnType::MYSQL_TYPE_DOUBLE, "1e30", "1e30");
        check(ColumnType::MYSQL_TYPE_DATE, "2010-01-31", "DATE'2010-01-31'");
        check(ColumnType::MYSQL_TYPE_VAR_STRING, r"it's \", r"'it\'s \\'");
        check(ColumnType::MYSQL_TYPE_FLOAT, "1.5", "a subquery has values of the type MYSQL_TYPE_FLOAT");
    }
}
