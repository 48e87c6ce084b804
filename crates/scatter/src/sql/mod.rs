//! MySQL's language: texts into statements and trees, and trees into texts. It knows no server.

pub mod dialect;
pub mod print;
pub mod statements;

use std::ops::ControlFlow;

use sqlparser::ast::{Query, Statement, visit_expressions};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, Tokenizer};

/// Deepest nesting of expressions and queries.
const DEPTH: usize = 100;

/// The tree of a query. Its string literals are as they were written, without their quotes.
///
/// # Errors
/// Why the text is no query, or one that the parser does not know.
pub fn parse(text: &str) -> Result<Query, String> {
    match parse_statement(text)? {
        Statement::Query(query) => Ok(*query),
        _ => Err("it is no query".to_owned()),
    }
}

/// As [`parse`], of any statement.
///
/// # Errors
/// Why the parser does not know it.
pub fn parse_statement(text: &str) -> Result<Statement, String> {
    let tokens = Tokenizer::new(&dialect::Mysql, text)
        .with_unescape(false)
        .tokenize()
        .map_err(|error| error.to_string())?;
    check_literals(&tokens)?;
    let mut parser = Parser::new(&dialect::Mysql).with_recursion_limit(DEPTH).with_tokens(tokens);
    let statement = parser.parse_statement().map_err(|error| error.to_string())?;
    parser.expect_token(&Token::EOF).map_err(|error| error.to_string())?;
    let ambiguous = visit_expressions(&statement, |expression| match dialect::is_ambiguous(expression) {
        true => {
            ControlFlow::Break(format!("servers read {expression} in different ways without parentheses"))
        }
        false => ControlFlow::Continue(()),
    });
    match ambiguous {
        ControlFlow::Break(why) => Err(why),
        ControlFlow::Continue(()) => Ok(statement),
    }
}

/// Two strings beside each other are one to the server, and to the parser a string with an alias. To MariaDB `0x41` may be
/// a number where `X'41'` is none, and to the parser they are the same.
fn check_literals(tokens: &[Token]) -> Result<(), String> {
    let is_string =
        |token: &Token| matches!(token, Token::SingleQuotedString(_) | Token::DoubleQuotedString(_));
    let words: Vec<&Token> = tokens.iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect();
    if words.windows(2).any(|pair| pair.iter().all(|token| is_string(token))) {
        return Err("it has two string literals beside each other".to_owned());
    }
    let is_word = |token: &Token, texts: &[&str]| matches!(token, Token::Word(word) if texts.iter().any(|text| word.value.eq_ignore_ascii_case(text)));
    // The parser drops the NULL.
    if words.windows(2).any(|pair| is_word(pair[0], &["rlike", "regexp"]) && is_word(pair[1], &["null"])) {
        return Err("it has a regular expression that is NULL".to_owned());
    }
    match words.iter().any(|token| matches!(token, Token::HexStringLiteral(_))) {
        true => Err("it has a hexadecimal literal".to_owned()),
        false => Ok(()),
    }
}
