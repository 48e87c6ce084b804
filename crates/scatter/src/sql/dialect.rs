//! MySQL's operators with the server's own precedences.
//!
//! `sqlparser`'s dialect for MySQL binds some operators as other databases do (its issue 544), and its printer writes
//! no parentheses, so that a wrong tree prints right text (its issue 2460). Source of the order: "Operator
//! Precedence" in MySQL's and in MariaDB's manual, and the grammar, which binds LIKE, IN and REGEXP tighter than
//! comparisons. Tests let a server evaluate both texts.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, Expr, Statement, UnaryOperator};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

#[derive(Debug)]
pub struct Mysql;

const INNER: MySqlDialect = MySqlDialect {};

const ASSIGNMENT: u8 = 2;
const OR: u8 = 5;
const XOR: u8 = 8;
const AND: u8 = 10;
const NOT: u8 = 15;
const COMPARISON: u8 = 17;
const BETWEEN: u8 = 18;
const LIKE: u8 = 19;
const BIT_OR: u8 = 21;
const BIT_AND: u8 = 22;
const SHIFT: u8 = 23;
const SUM: u8 = 30;
const PRODUCT: u8 = 40;
const BIT_XOR: u8 = 45;
const SIGN: u8 = 47;
const BANG: u8 = 48;
const JSON_PATH: u8 = 60;

/// LIKE, IN, BETWEEN and their kind as operands of each other: grammars differ in what they bind.
pub(super) fn is_ambiguous(expression: &Expr) -> bool {
    let is_predicate = |operand: &Expr| {
        matches!(
            operand,
            Expr::Like { .. }
                | Expr::RLike { .. }
                | Expr::Between { .. }
                | Expr::InList { .. }
                | Expr::InSubquery { .. }
        )
    };
    match expression {
        Expr::Like { expr, pattern, .. } | Expr::RLike { expr, pattern, .. } => {
            is_predicate(expr) || is_predicate(pattern)
        }
        Expr::Between { expr, low, high, .. } => {
            [expr, low, high].into_iter().any(|operand| is_predicate(operand))
        }
        Expr::InList { expr, .. } | Expr::InSubquery { expr, .. } => is_predicate(expr),
        _ => false,
    }
}

fn is_mod(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("mod"))
}

fn binary(
    parser: &mut Parser<'_>,
    left: &Expr,
    op: BinaryOperator,
    precedence: u8,
) -> Result<Expr, ParserError> {
    parser.next_token();
    let right = parser.parse_subexpr(precedence)?;
    Ok(Expr::BinaryOp { left: Box::new(left.clone()), op, right: Box::new(right) })
}

fn unary(parser: &mut Parser<'_>, op: UnaryOperator, precedence: u8) -> Result<Expr, ParserError> {
    parser.next_token();
    Ok(Expr::UnaryOp { op, expr: Box::new(parser.parse_subexpr(precedence)?) })
}

impl Dialect for Mysql {
    fn dialect(&self) -> TypeId {
        INNER.dialect()
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Or => OR,
            Precedence::Xor => XOR,
            Precedence::And => AND,
            Precedence::UnaryNot => NOT,
            Precedence::Is | Precedence::Eq => COMPARISON,
            Precedence::Between => BETWEEN,
            Precedence::Like => LIKE,
            Precedence::Pipe => BIT_OR,
            Precedence::Ampersand => BIT_AND,
            Precedence::Caret => SHIFT,
            Precedence::PlusMinus => SUM,
            Precedence::MulDivModOp => PRODUCT,
            other => INNER.prec_value(other),
        }
    }

    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        let keyword = |nth: usize| match &parser.peek_nth_token_ref(nth).token {
            Token::Word(word) => word.keyword,
            _ => Keyword::NoKeyword,
        };
        let is_in = keyword(0) == Keyword::IN || keyword(0) == Keyword::NOT && keyword(1) == Keyword::IN;
        let precedence = match &parser.peek_token_ref().token {
            _ if is_in => LIKE,
            token if is_mod(token) => PRODUCT,
            Token::Assignment => ASSIGNMENT,
            Token::StringConcat => OR,
            Token::Overlap => AND,
            Token::Caret => BIT_XOR,
            Token::Arrow | Token::LongArrow => JSON_PATH,
            _ => return None,
        };
        Some(Ok(precedence))
    }

    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let op = match &parser.peek_token_ref().token {
            token if is_mod(token) => BinaryOperator::Modulo,
            Token::StringConcat => BinaryOperator::Or,
            _ => return INNER.parse_infix(parser, left, precedence),
        };
        Some(binary(parser, left, op, precedence))
    }

    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        let (op, precedence) = match &parser.peek_token_ref().token {
            Token::Minus => (UnaryOperator::Minus, SIGN),
            Token::Plus => (UnaryOperator::Plus, SIGN),
            Token::Tilde => (UnaryOperator::BitwiseNot, SIGN),
            Token::ExclamationMark => (UnaryOperator::Not, BANG),
            _ => return INNER.parse_prefix(parser),
        };
        Some(unary(parser, op, precedence))
    }

    /// The parser would join literals of either quote into one.
    fn supports_string_literal_concatenation(&self) -> bool {
        false
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        INNER.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        INNER.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        INNER.is_delimited_identifier_start(ch)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        INNER.identifier_quote_style(identifier)
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        INNER.supports_string_literal_backslash_escape()
    }

    fn ignores_wildcard_escapes(&self) -> bool {
        INNER.ignores_wildcard_escapes()
    }

    fn supports_numeric_prefix(&self) -> bool {
        INNER.supports_numeric_prefix()
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        INNER.supports_bitwise_shift_operators()
    }

    fn supports_multiline_comment_hints(&self) -> bool {
        INNER.supports_multiline_comment_hints()
    }

    fn require_interval_qualifier(&self) -> bool {
        INNER.require_interval_qualifier()
    }

    fn supports_limit_comma(&self) -> bool {
        INNER.supports_limit_comma()
    }

    fn supports_create_table_select(&self) -> bool {
        INNER.supports_create_table_select()
    }

    fn supports_insert_set(&self) -> bool {
        INNER.supports_insert_set()
    }

    fn supports_user_host_grantee(&self) -> bool {
        INNER.supports_user_host_grantee()
    }

    fn supports_table_hints(&self) -> bool {
        INNER.supports_table_hints()
    }

    fn requires_single_line_comment_whitespace(&self) -> bool {
        INNER.requires_single_line_comment_whitespace()
    }

    fn supports_match_against(&self) -> bool {
        INNER.supports_match_against()
    }

    fn supports_select_modifiers(&self) -> bool {
        INNER.supports_select_modifiers()
    }

    fn supports_set_names(&self) -> bool {
        INNER.supports_set_names()
    }

    fn supports_comma_separated_set_assignments(&self) -> bool {
        INNER.supports_comma_separated_set_assignments()
    }

    fn supports_update_order_by(&self) -> bool {
        INNER.supports_update_order_by()
    }

    fn supports_data_type_signed_suffix(&self) -> bool {
        INNER.supports_data_type_signed_suffix()
    }

    fn supports_cross_join_constraint(&self) -> bool {
        INNER.supports_cross_join_constraint()
    }

    fn supports_double_ampersand_operator(&self) -> bool {
        INNER.supports_double_ampersand_operator()
    }

    fn supports_binary_kw_as_cast(&self) -> bool {
        INNER.supports_binary_kw_as_cast()
    }

    fn supports_comment_optimizer_hint(&self) -> bool {
        INNER.supports_comment_optimizer_hint()
    }

    fn supports_constraint_keyword_without_name(&self) -> bool {
        INNER.supports_constraint_keyword_without_name()
    }

    fn supports_key_column_option(&self) -> bool {
        INNER.supports_key_column_option()
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        INNER.supports_group_by_with_modifier()
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        INNER.supports_left_associative_joins_without_parens()
    }

    fn parse_statement(&self, parser: &mut Parser<'_>) -> Option<Result<Statement, ParserError>> {
        INNER.parse_statement(parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, keyword: &Keyword, parser: &mut Parser<'_>) -> bool {
        INNER.is_table_factor_alias(explicit, keyword, parser)
    }
}
