//! Trees as text that says the whole tree: every operator is in parentheses, every literal is as it was written.

use std::mem;
use std::ops::ControlFlow;

use sqlparser::ast::{Expr, Value, ValueWithSpan, VisitMut, VisitorMut};

/// The text of a query, of an expression or of any other part with parentheses around each operator.
pub fn explicit<T: VisitMut + Clone + ToString>(tree: &T) -> String {
    let mut tree = tree.clone();
    let _: ControlFlow<()> = tree.visit(&mut Explicit);
    tree.to_string()
}

/// An expression that is printed as this text.
pub(crate) fn verbatim(text: impl Into<String>) -> Expr {
    Expr::Value(Value::Placeholder(text.into()).into())
}

struct Explicit;

impl VisitorMut for Explicit {
    type Break = ();

    fn post_visit_expr(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if is_operator(expression) {
            let inner = mem::replace(expression, Expr::Value(Value::Null.into()));
            *expression = Expr::Nested(Box::new(inner));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_value(&mut self, value: &mut ValueWithSpan) -> ControlFlow<()> {
        let written = match &value.value {
            Value::SingleQuotedString(text) => format!("'{text}'"),
            Value::DoubleQuotedString(text) => format!("\"{text}\""),
            _ => return ControlFlow::Continue(()),
        };
        value.value = Value::Placeholder(written);
        ControlFlow::Continue(())
    }
}

/// An interval stands beside its operator without parentheses.
fn is_operator(expression: &Expr) -> bool {
    matches!(
        expression,
        Expr::BinaryOp { .. }
            | Expr::UnaryOp { .. }
            | Expr::Like { .. }
            | Expr::RLike { .. }
            | Expr::Between { .. }
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::AnyOp { .. }
            | Expr::AllOp { .. }
            | Expr::IsNull(_)
            | Expr::IsNotNull(_)
            | Expr::IsTrue(_)
            | Expr::IsNotTrue(_)
            | Expr::IsFalse(_)
            | Expr::IsNotFalse(_)
            | Expr::IsUnknown(_)
            | Expr::IsNotUnknown(_)
            | Expr::Collate { .. }
    )
}

/// A name between backticks.
pub fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A text as a literal that servers with escapes, and Spark, read as it is.
pub(crate) fn text_literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::parse;

    #[track_caller]
    fn check(expression: &str, expect: &str) {
        let text = explicit(&parse(&format!("SELECT {expression}")).expect("it parses"));
        assert_eq!(text, format!("SELECT {expect}"));
    }

    #[test]
    fn operators_bind_as_in_the_server() {
        check("a = 1 || b = 2 AND d > 5", "((a = 1) OR ((b = 2) AND (d > 5)))");
        check("a OR b XOR c", "(a OR (b XOR c))");
        check("a = 1 XOR b = 2", "((a = 1) XOR (b = 2))");
        check("a && b = c", "(a AND (b = c))");
        check("2 ^ 3 & 1", "((2 ^ 3) & 1)");
        check("1 | 2 << 1 + 1", "(1 | (2 << (1 + 1)))");
        check("-2 ^ 2", "((-2) ^ 2)");
        check("!a = b", "((NOT a) = b)");
        check("NOT a = b", "(NOT (a = b))");
        check("a MOD b * c", "((a % b) * c)");
        check("a DIV b", "(a DIV b)");
        check("a = b IS NULL", "((a = b) IS NULL)");
        check("a = b LIKE c", "(a = (b LIKE c))");
        check("a = b IN (1, 2)", "(a = (b IN (1, 2)))");
        check("a BETWEEN 1 AND b AND d", "((a BETWEEN 1 AND b) AND d)");
        check("a <=> b = c", "((a <=> b) = c)");
    }

    #[test]
    fn literals_stay_as_they_were_written() {
        check(r"'it''s' = 'it\'s'", r"('it''s' = 'it\'s')");
        check(r#""say ""x""" = 'a\\b\n'"#, r#"("say ""x""" = 'a\\b\n')"#);
        check("d + INTERVAL 1 + 1 DAY", "(d + INTERVAL (1 + 1) DAY)");
        check("DATE '2010-01-31'", "DATE '2010-01-31'");
        check("1e3 + .5", "(1e3 + .5)");
    }

    #[test]
    fn literals_that_the_parser_misreads_are_refused() {
        assert!(parse("SELECT 0x4D").is_err() && parse("SELECT x'4d'").is_err());
        assert!(parse("SELECT 'a' 'b'").is_err());
        assert!(parse("SELECT 'a', 'b'").is_ok());
        assert!(
            parse("SELECT a LIKE b BETWEEN 1 AND 2").is_err()
                && parse("SELECT (a LIKE b) BETWEEN 1 AND 2").is_ok()
        );
    }
}
